"""Coordinate projection, sections 2 and 4 of Eich 1993: each step of BDF ends on the manifold.

    1.  The discretised equations of index 1, (1.5), are solved by Newton's method,
        starting from past values that were projected:  ŷ_n.                                 (2.4)
    2.  ‖y_n − ŷ_n‖ = min  subject to  φ(y_n) = 0.  The run continues from these values.     (2.5)

φ collects g(t, q), w(t, q, v) and further invariants; H = φ′.  The minimum is found by Gauss–Newton (section
4.2),

    y ← y − H⁺ φ(y) + (I − H⁺H)(ŷ − y)

whose second term is of second order in the distance to the manifold.  The *relaxed* projection leaves it out
and keeps an old factorization of H as long as that converges well; then y_n is not exactly the nearest point.

Error test (section 4.1): only the part of the error that lies in the manifold survives the projection, so the
error vector is projected as well.  History: with δ = y_n − ŷ_n every backward difference that contains y_n
gets δ; in the differences φ_i of DASSL that is one addition to the correction of the step.

References
----------
E. Eich, Convergence results for a coordinate projection method applied to mechanical systems with algebraic
constraints, SIAM J. Numer. Anal. 30 (1993) 1467-1482.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from holonome.arguments import check_fields, shown
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.implicit import Residual
from holonome.formulations.index1 import Index1
from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.problem.system import System


@dataclass(frozen=True)
class CoordinateProjection(Formulation):
    """BDF on a form of index 1 that ends every step on the manifold.

    Parameters
    ----------
    formulation
        What is discretised: :class:`Index1` or :class:`UnderlyingODE`.
    metric
        In which sense the projected point is the nearest: "mass", kinetic energy as the measure of distance,
        or "euclidean", as in the paper.
    relaxed
        Keep the factorization of the projection over several steps, as long as it converges well (section
        4.2).  It saves factorizations and costs iterations; as factorizations are emitted sparse code here,
        that does not pay even for chains of many links.
    projects_error
        Project the error before it is tested (section 4.1).  Without it BDF takes the steps of the form that
        is not projected; only for comparison.

    References
    ----------
    E. Eich, SIAM J. Numer. Anal. 30 (1993) 1467-1482.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> sol = hn.solve(
    ...     pendulum.system, (0, 10), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.CoordinateProjection(metric="euclidean"), hn.BDF()),
    ... )
    >>> sol.drift[0] < 1e-14
    True
    """

    formulation: Index1 | UnderlyingODE = field(default_factory=Index1)
    metric: str = "mass"
    relaxed: bool = False
    projects_error: bool = True
    offers: ClassVar[tuple[str, ...]] = ("residual", "rate")
    projects: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.formulation, (Index1, UnderlyingODE)):
            raise TypeError(
                f"formulation: {shown(self.formulation)} is not of index 1; use Index1() or UnderlyingODE()"
            )
        check_fields(self)

    @property
    def damping(self) -> tuple[float, float] | None:  # type: ignore[override]
        return self.formulation.damping

    def for_run(self, span: float, step: float) -> CoordinateProjection:
        settled = self.formulation.for_run(span, 0.0)
        return self if settled is self.formulation else replace(self, formulation=settled)

    def with_projection(self, wanted: bool) -> Formulation:
        return self if wanted else self.formulation.with_projection(False)

    def rate(self, system: System) -> int:
        return self.formulation.rate(system)

    def residual(self, model: Model) -> Residual:
        return self.formulation.residual(model)
