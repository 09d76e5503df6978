"""Sequential regularization of Ascher & Lin 1995: the user's options, and the kernels of a system.

The equations are in :mod:`holonome.formulations.regularized_equations`.

Kernels, with y = x_s (for index 3 (x_s, x_s′)) and z = (ε, y_{s−1}):

    rate            out = (y′, y_s, δ), δ the size of the constraint violation as a change of x (index 2)
                    or of x′ (index 3), max |B E g| or max |B E g′|
    free            z = (·, y_s), out as above: the motion with a given y_s
    multiplier      out = y of the exact solution through this point, in the form in which y_s is carried
    stabilization   out = −F h, the step of (5.2)
    stiffness       out = G B E, row by row
    regularity      for general problems, what vanishes where GB becomes singular
                    (:mod:`holonome.integrators.rank_watch`)

For BDF, y = (x_s, y_s; x_s′, y_s′) and z = (cj, ε, y_{s−1}): the kernels of
:mod:`holonome.formulations.implicit`.  Nothing there is bound to ε, and y_s is an unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import casadi as ca
import numpy as np
from scipy.sparse import csc_matrix

from holonome.arguments import check_fields
from holonome.errors import ModelError
from holonome.formulations.contract import Formulation
from holonome.formulations.implicit import ImplicitKernels
from holonome.formulations.regularized_equations import Iteration
from holonome.machine.calls import run_kernel
from holonome.machine.compiled import made_once
from holonome.machine.context import OK
from holonome.problem.general import HigherIndex, mechanical
from holonome.problem.system import System
from holonome.tracing import argument_names, trace, traced

MOST_ITERATIONS = 10
"""As many as are tried where their number is chosen automatically."""

LARGEST_ORTHOGONALISATION = 2_000_000
"""Multiplications; emitting more of them takes too long."""


@dataclass(frozen=True)
class SRM(Formulation):
    """Sequential regularization: a few iterations, each an ordinary differential equation, advanced together.

    Parameters
    ----------
    eps
        ε > 0; or one value for each iteration.  None takes it from the step size: as small as the integrator
        allows at a constant step; otherwise what goes with the step that the tolerance asks for at the start,
        and smaller where the iterations do not settle.  With ``alpha[0] != 0`` any ε ≥ 0 will do, and None is
        1e-8.
    iterations
        Number of iterations.  None: as many as are needed until another one changes the positions by less
        than half the tolerance, up to 10.
    E
        "identity" (GB is then never formed), "inverse" (GB)⁻¹, "transpose" (GB)ᵀ, or a function of t, q (or
        x), p.  The variant "singular" has E = (GB)⁻¹.
    variant
        "invariant": (2.4)–(2.5) and (4.14)–(4.16), (5.3)–(5.4).  "singular": (3.2) and (4.23), (5.5)–(5.6),
        through isolated singular positions. "baumgarte": (4.4)–(4.5).  "underlying": (4.12).
    alpha
        (α₁, α₂) for index 2, default (0, 1); (α₁, α₂, α₃) for "baumgarte" on index 3, default (0, 1, 1).
    y0
        y₀: "consistent", which begins with y, y′ and y″ of the exact solution at the start, (2.14) with m =
        2; or numbers, 0 as in the paper's experiments.
    post_stabilization
        How often (5.2) is applied after each step; the paper recommends twice, with α₁ = 1 and the other α
        zero.

    References
    ----------
    U. Ascher and P. Lin, Sequential regularization methods for nonlinear higher index DAEs, SIAM J. Sci.
    Comput. 18 (1997) 160-181.

    Examples
    --------
    >>> import holonome as hn
    >>> arm = hn.mechanisms.two_link_arm()
    >>> method = hn.Method(hn.SRM(eps=5e-3, iterations=2, y0=0), hn.RungeKutta("heun", step=1e-3))
    >>> sol = hn.solve(arm.system, (0, 1), arm.q0, arm.v0, method=method)
    >>> bool(abs(sol.q[0, -1] - 0.8414709848) < 1e-6)
    True
    """

    eps: float | Sequence[float] | None = None
    iterations: int | None = None
    E: str | Callable = "identity"
    variant: str = "invariant"
    alpha: tuple[float, ...] | None = None
    y0: Any = "consistent"
    post_stabilization: int = 0
    offers: ClassVar[tuple[str, ...]] = ("sequence",)

    def __post_init__(self) -> None:
        check_fields(self)
        several = self.eps if isinstance(self.eps, tuple) else None
        free = self.alpha is not None and self.alpha[0] != 0
        if not free and 0.0 in (several or (self.eps,)):
            raise ValueError("eps: 0 is possible only with alpha[0] != 0; give positive numbers")
        if several is not None and len(several) != self.iterations:
            raise ValueError(
                f"eps: {len(several)} values; give as many as iterations, which is {self.iterations}"
            )

    def checked_alpha(self, order: int) -> tuple[float, ...]:
        """α₁, α₂ (and α₃ for index 3 in Baumgarte's form); ValueError if they do not go together with the
        rest.
        """
        used = self.variant != "singular" and (order == 1 or self.variant == "baumgarte")
        if not used:
            if self.alpha is not None:
                raise ValueError(
                    f"alpha: it has no meaning for variant {self.variant!r} at index {order + 1}; use "
                    "variant='baumgarte', or leave it out"
                )
            return ()
        alpha = self.alpha or (0.0, 1.0, 1.0)[: order + 1]
        if len(alpha) != order + 1 or (order == 2 and not any(alpha[:2])) or not any(alpha):
            raise ValueError(
                f"alpha: {self.alpha!r}; index {order + 1} wants {order + 1} numbers that are not "
                "negative, " + ("and one of the first two positive" if order == 2 else "one of them positive")
            )
        if self.post_stabilization == 0 and alpha[-1] == 0:
            raise ValueError(
                f"alpha: {self.alpha!r} lets the constraints drift; make the last one positive, or "
                "give post_stabilization=2"
            )
        return alpha

    @property
    def key(self) -> tuple:
        """What its machine code depends on."""
        return self.variant, self.E, self.alpha

    def count(self) -> tuple[int, bool]:
        """Iterations to provide for, and whether they are added as needed."""
        return (MOST_ITERATIONS, True) if self.iterations is None else (int(self.iterations), False)


class Regularized:
    """Addresses of the kernels of one system and variant, compiled when first asked for; ``size`` of a state,
    ``carried`` numbers of y_s.
    """

    def __init__(self, system: System | HigherIndex, srm: SRM, direction: int) -> None:
        self.system, self.srm = system, srm
        self._name = f"SRM {(srm.variant, srm.E, srm.alpha, direction)!r}"
        if system.m == 0:
            raise ValueError("method: SRM regularizes constraints, and this system has none; use 'dop853'")
        if system.mechanical:
            model = system.model
            if model.lam.numel() or model.I.numel():
                raise ValueError(
                    "method: SRM is not made for "
                    f"{'forces that depend on lam' if model.lam.numel() else 'invariants'}; use 'dop853'"
                )
            if not all(model.M.sparsity().has_nz(i, i) for i in range(model.n)):
                raise ValueError(
                    "method: SRM needs a regular mass matrix, and a coordinate of this system has no mass; "
                    "use 'dop853'"
                )
            equations = mechanical(model, self._trace)  # type: ignore[arg-type]
        else:
            equations = system.equations
        if (
            srm.variant == "singular" or srm.E in ("inverse", "transpose")
        ) and equations.n * equations.m**2 > LARGEST_ORTHOGONALISATION:
            raise ValueError(
                f"method: SRM with {equations.m} constraints on {equations.n} coordinates is made for "
                "E='identity' only; use Method(SRM(eps=1e-4, iterations=3), BDF())"
            )
        self.large = not system.mechanical and equations.n * equations.m**2 > LARGEST_ORTHOGONALISATION
        self.iteration = Iteration(equations, srm, direction)
        self.order, self.size, self.m = equations.order, equations.state.numel(), equations.m
        self.coordinates, self.carried = equations.n, self.iteration.carried

    def _trace(self, function: Callable, size: int) -> ca.SX:
        """E as a function of t, q, p of a mechanical system."""
        system, names = self.system, argument_names(function)
        symbols = system.symbols
        given = {
            "t": traced(symbols["t"], ()),
            "q": traced(symbols["q"], (system.n,)),
            "p": system.parameters.namespace(symbols["p"]),
        }
        unknown = [name for name in names if name not in given]
        if unknown:
            raise ModelError(
                f"E: its argument {unknown[0]!r} is not known; arguments go by name and may be any of t, q, p"
            )
        flat, shape = trace(function, {name: given[name] for name in names})
        if flat.numel() != size * size:
            raise ModelError(f"E has shape {shape}; expected ({size}, {size})")
        return ca.reshape(flat, size, size).T

    @made_once
    def implicit(self) -> RegularizedImplicit:
        """The kernels for BDF."""
        return RegularizedImplicit(self.system, self._name, self.iteration)

    def kernel(self, name: str) -> Any:
        return self.system.kernel(f"{self._name} {name}", getattr(self.iteration, name))

    def address(self, name: str) -> int:
        return self.kernel(name).address

    def matrices(
        self, context: np.ndarray, t: float, x: np.ndarray
    ) -> tuple[csc_matrix, csc_matrix, np.ndarray] | None:
        """GB, GBE and G f + γ of a large problem; None where a function failed."""
        GB, GBE = self.iteration.GB.sparsity(), self.iteration.GBE.sparsity()
        size = GB.nnz() + GBE.nnz() + self.m
        found = self.evaluate("pieces", context, t, x, np.zeros(self.carried + 1), size)
        if found is None:
            return None
        parts = np.split(found, [GB.nnz(), GB.nnz() + GBE.nnz()])
        sparse = [
            csc_matrix((part, pattern.row(), pattern.colind()), shape=(self.m, self.m))
            for part, pattern in zip(parts, (GB, GBE), strict=False)
        ]
        return sparse[0], sparse[1], parts[2]

    def evaluate(
        self, name: str, context: np.ndarray, t: float, x: np.ndarray, z: np.ndarray, size: int
    ) -> np.ndarray | None:
        """A kernel's result; None where the position is singular or a function failed."""
        out = np.zeros(size + 1)
        return (
            out[:size]
            if run_kernel(self.address(name), t, x, z, context, out) == OK and np.all(np.isfinite(out))
            else None
        )


class RegularizedImplicit(ImplicitKernels):
    """Addresses of the kernels for one iteration by BDF; with z = (cj, ε, y_{s−1})."""

    def __init__(self, system: System | HigherIndex, name: str, iteration: Iteration) -> None:
        self.system, self.name, self.iteration = system, name, iteration  # type: ignore[assignment]
        self.residual = iteration.residual()
        self.size = self.residual.size
        self._lengths = {}

    @made_once
    def _matrix(self) -> ca.SX:
        by_Y, by_dY = self.iteration.jacobians
        return by_Y + self.residual.cj * by_dY + (self._by_unknowns() if self.system.mechanical else 0)

    @made_once
    def F(self) -> int:
        r = self.residual
        return self._address(
            "residual",
            lambda _: (
                ca.vertcat(r.Y, r.dY),
                ca.vertcat(r.cj, r.tolerance),
                ca.densify(r.F),
                self.iteration.margin,
            ),
        )


def regularized(system: System | HigherIndex, srm: SRM, direction: int = 1) -> Regularized:
    """The kernels of a system for a variant; shared by all its copies with other parameters."""
    key = "SRM", srm.variant, srm.E, srm.alpha, direction
    return system.compiled.once(key, lambda: Regularized(system, srm, direction))
