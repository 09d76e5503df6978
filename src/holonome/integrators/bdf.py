"""Backward differentiation formulas: the user's options, and the methods with a name.

The stepper for a system is in :mod:`holonome.integrators.bdf_stepper`, a step in
:mod:`holonome.integrators.bdf_steps`, the formulas in :mod:`holonome.integrators.dassl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holonome.arguments import check_fields
from holonome.formulations.coordinate_projection import CoordinateProjection
from holonome.formulations.coordinate_split import CoordinateSplit
from holonome.formulations.ggl import GGL
from holonome.formulations.index1 import Baumgarte, Index1
from holonome.formulations.index2 import Index2
from holonome.formulations.index3 import Index3
from holonome.integrators.bdf_stepper import BDFStepper
from holonome.integrators.contract import Integrator, Request, Stepper
from holonome.integrators.sequential_bdf import ImplicitSequential


@dataclass(frozen=True)
class BDF(Integrator):
    """Backward differentiation formulas.

    Parameters
    ----------
    max_order
        Highest order, 1 to 5 (6 with a constant step).
    step
        Constant step size; None chooses it by the tolerances.
    order
        Constant order, with a constant step, for order studies.
    newton_tolerance
        Bound for the estimated error of Newton's method, in units of the tolerance.
    rate_floor
        Lower bound of the factor by which a change of Newton's method is multiplied to estimate its error.

    DASSL has 0.33 and 0 for the last two (``BDF.dassl()``): errors that it leaves hide in the higher
    differences, keep the order low and cost a third more steps. With 0 the choice of the order is DASSL's in
    every respect as well; otherwise a run that stays at low order under stiff forces makes a new start.

    References
    ----------
    K. E. Brenan, S. L. Campbell, L. R. Petzold, Numerical Solution of Initial-Value Problems in
    Differential-Algebraic Equations, SIAM 1996.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> second = hn.solve(
    ...     pendulum.system, (0, 10), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.GGL(), hn.BDF(max_order=2)),
    ... )
    >>> fifth = hn.solve(
    ...     pendulum.system, (0, 10), pendulum.q0, pendulum.v0,
    ...     method=hn.Method(hn.GGL(), hn.BDF()),
    ... )
    >>> second.steps > 3 * fifth.steps, int(fifth.history.order.max())
    (True, 5)
    """

    max_order: int = 5
    step: float | None = None
    order: int | None = None
    newton_tolerance: float = 0.01
    rate_floor: float = 0.1
    needs: ClassVar[tuple[str, ...]] = ("residual", "sequence")
    tests_whole_error: ClassVar[bool] = True
    is_bdf: ClassVar[bool] = True

    @classmethod
    def dassl(cls, max_order: int = 5) -> BDF:
        """DASSL's own convergence test and choice of the order, as in the papers."""
        return cls(max_order, newton_tolerance=0.33, rate_floor=0.0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.max_order == 6 and self.step is None:
            raise ValueError("max_order: 6 needs a constant step; choose 1 to 5, or give step=")
        if self.order is not None and self.step is None:
            raise ValueError(f"order: {self.order}; a constant order needs a constant step, so give step=")

    def stepper(self, request: Request) -> Stepper:
        steppers = {"residual": BDFStepper, "sequence": ImplicitSequential}
        return steppers[self.form(request.formulation) or "residual"](self, request)


_EICH = "Eich, SIAM J. Numer. Anal. 30 (1993)"
_DASSL = "Brenan, Campbell & Petzold, Numerical Solution of Initial-Value Problems in DAEs (1996)"
_GGL = "Gear, Leimkuhler & Gupta, J. Comput. Appl. Math. 12 (1985)"
_YEN = "Yen & Petzold, SIAM J. Sci. Comput. 19 (1998)"
METHODS = {
    "bdf": (
        CoordinateProjection(),
        BDF(),
        "BDF on index 1 with coordinate projection: the robust choice among the implicit methods",
        f"{_EICH}; {_DASSL}",
    ),
    "ggl": (
        GGL(),
        BDF(),
        "BDF on the stabilised index-2 form of Gear, Gupta & Leimkuhler",
        f"{_GGL}; {_DASSL}",
    ),
    "ggl*": (
        GGL(predict_multipliers=True),
        BDF.dassl(),
        "GGL* of Yen & Petzold: DASSL's convergence test without multipliers, which are predicted from the "
        "motion",
        f"{_YEN}; {_DASSL}",
    ),
    "cs": (
        CoordinateSplit("CS"),
        BDF(),
        "BDF with coordinate splitting, Newton's method without multipliers",
        f"{_YEN}; {_DASSL}",
    ),
    "cm": (
        CoordinateSplit("CM"),
        BDF(),
        "BDF with coordinate splitting, the modified iteration for highly oscillatory systems",
        f"{_YEN}; {_DASSL}",
    ),
    "index3": (Index3(), BDF(), "BDF on the equations as they stand", _DASSL),
    "index2": (Index2(), BDF(), "BDF with the constraints on the velocity level; positions drift", _DASSL),
    "index1": (Index1(), BDF(), "BDF with the constraints on the acceleration level; drifts", _EICH),
    "baumgarte": (
        Baumgarte(),
        BDF(),
        "BDF with Baumgarte's stabilisation of index 1",
        "Baumgarte, Comput. Methods Appl. Mech. Eng. 1 (1972)",
    ),
}
