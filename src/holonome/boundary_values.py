"""Boundary value problems of index 2 and 3, (2.2) and (4.2) of Ascher & Lin 1995: SRM iterations, each of
which calls scipy.integrate.solve_bvp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import Kind, checked, read, real_array, shown
from holonome.formulations.sequential_regularization import MOST_ITERATIONS, SRM, Regularized, regularized
from holonome.problem.general import Index2System, Index3System
from holonome.problem.system import System

_EPS = 1e-8
_STIFF_EPS = 1e-3
"""ε where α₁ = 0, so that the equations become stiff as ε falls."""


@dataclass(frozen=True, eq=False)
class BoundarySolution:
    """Result of :func:`solve_bvp`.

    Attributes
    ----------
    t : (nodes,) array
    x, v : (n, nodes) arrays
        The unknowns (positions) and, for index 3, their derivatives.
    y : (m, nodes) array
        Multipliers; for the variant "singular" B y.
    sol : callable
        ``sol(t)``: x, or x and v one above the other, at any time.
    success, message, iterations, change
        Whether every problem was solved and the iterations converged; their number, and by how much the last
        one changed x.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> bob = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1, names=["x", "y"])
    >>> ends = lambda qa, qb, va, vb: [qa[0] - 0.6, qb[0] + 0.9]
    >>> guess = lambda t: [0.6 - 1.9 * t, -0.8, -1.9, 0.0]
    >>> aimed = hn.solve_bvp(bob, ends, np.linspace(0, 0.8, 20), guess)
    >>> aimed.x[0, [0, -1]].round(6), aimed.sol(0.4).shape
    (array([ 0.6, -0.9]), (4,))
    """

    t: np.ndarray = field(repr=False)
    x: np.ndarray = field(repr=False)
    v: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    sol: Callable = field(repr=False)
    success: bool
    message: str
    iterations: int
    change: float


def solve_bvp(
    system: System | Index2System | Index3System,
    boundary: Callable,
    mesh: Any,
    guess: Any = None,
    *,
    srm: SRM | None = None,
    tol: float = 1e-9,
    max_nodes: int = 20_000,
    parameters: dict[str, Any] | None = None,
) -> BoundarySolution:
    """Solve a two-point boundary value problem on the constraints.

    Parameters
    ----------
    system
        An :class:`Index2System`, an :class:`Index3System` or a mechanical :class:`System`.
    boundary
        For index 2 ``boundary(xa, xb)``, n − m values that vanish; for index 3 and mechanical systems
        ``boundary(xa, xb, va, vb)``, 2 (n − m) values: (2.2), (4.2). The constraints at the left end, (2.3b),
        (4.3b), are added to them.
    mesh
        Increasing times from one end to the other: the initial mesh.
    guess : array or callable, optional
        x at the mesh, (n, nodes), for index 3 x and v one above the other, (2n, nodes); or a function of t
        that returns such a column.  Default: zeros.
    srm
        The iteration.  By default α₁ = 1, E = (GB)⁻¹ and ε = 1e-8, which is not stiff: with Baumgarte's form
        (4.5) for index 3.  y₀ is 0 unless numbers are given.
    tol
        Tolerance of scipy's residuals, and of the change from one iteration to the next.
    max_nodes
        As in scipy.
    parameters
        Values that replace those of the system.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> pendulum = hn.mechanisms.pendulum().system
    >>> ends = lambda qa, qb, va, vb: [qa[0] - 0.6, qb[0] + 0.6]
    >>> guess = lambda t: [0.6 - 2.4 * t, -0.8, -2.4, 0.0]
    >>> result = hn.solve_bvp(pendulum, ends, np.linspace(0, 0.5, 20), guess)
    >>> result.success, bool(np.max(np.abs((result.x**2).sum(axis=0) - 1)) < 1e-7)
    (True, True)
    """
    if not isinstance(system, System | Index2System | Index3System):
        raise TypeError(f"system: {shown(system)} is not an hn.System, hn.Index2System or hn.Index3System")
    if parameters is not None:
        system = system.with_parameters(**checked("parameters", parameters))
    if srm is not None and not isinstance(srm, SRM):
        raise TypeError(f"srm: {shown(srm)} is not an hn.SRM")
    boundary, tol, max_nodes = map(checked, ("boundary", "tol", "max_nodes"), (boundary, tol, max_nodes))
    if isinstance(system, System) and (system.states or system.unknowns):
        raise ValueError(
            "system: boundary value problems do not support states and unknowns; use hn.Index2System"
        )
    iteration = _Iteration(system, srm, boundary)
    times, x = _initial_mesh(mesh, guess, iteration.size)
    return iteration.solve(times, x, tol, max_nodes)


_CONDITIONS = Kind("a function that returns numbers", real_array)


def _with_defaults(srm: SRM | None, order: int) -> SRM:
    """The iteration with defaults for what was not given."""
    if srm is None:
        if order == 1:
            return SRM(eps=_EPS, E="inverse", alpha=(1.0, 1.0))
        return SRM(eps=_EPS, E="inverse", variant="baumgarte", alpha=(1.0, 2.0, 1.0))
    if srm.post_stabilization:
        raise ValueError(
            "srm: post_stabilization belongs to the steps of an initial value problem; leave it out"
        )
    if srm.eps is None:
        return replace(srm, eps=_EPS if srm.alpha and srm.alpha[0] else _STIFF_EPS)
    return srm


class _Iteration:
    """The iterations of SRM, each of which is a boundary value problem of an ODE."""

    def __init__(
        self, system: System | Index2System | Index3System, srm: SRM | None, boundary: Callable
    ) -> None:
        self._order = 2 if isinstance(system, System) else system.order
        srm = _with_defaults(srm, self._order)
        problem = regularized(system, srm)
        self.size = problem.size
        self._carried = problem.carried
        self._n = system.n
        self._boundary = boundary
        self._equations = _Functions(problem, system.parameters.flat)
        self._settles = srm.iterations is None
        self._most = srm.iterations or MOST_ITERATIONS
        self._eps = np.broadcast_to(np.asarray(srm.eps, dtype=float), self._most)
        y0 = 0.0 if isinstance(srm.y0, str) else np.asarray(srm.y0, dtype=float)
        self._y0 = np.broadcast_to(y0, problem.carried)[:, np.newaxis]
        self._solutions: list[Callable] = []

    def solve(self, mesh: np.ndarray, x: np.ndarray, tol: float, max_nodes: int) -> BoundarySolution:
        from scipy.integrate import solve_bvp as scipy_bvp

        t0 = float(mesh[0])
        change = np.inf
        message = ""
        result = None
        for eps in self._eps:
            result = scipy_bvp(
                lambda t, x, eps=eps: self._equations.rate(t, x, eps, self._multipliers(t))[0],
                lambda xa, xb: self._conditions(t0, xa, xb),
                mesh,
                x,
                tol=tol,
                max_nodes=max_nodes,
                fun_jac=lambda t, x, eps=eps: self._equations.jacobian(t, x, eps, self._multipliers(t)),
            )
            if not result.success:
                message = f"iteration {len(self._solutions) + 1}: {result.message}"
                break
            mesh = result.x
            x = result.y
            if self._solutions:
                change = self._relative_change(result)
            self._solutions.append(result.sol)
            if self._settles and change <= tol:
                break
        if not message and self._settles and change > tol:
            message = (
                f"the iterations do not settle: the last of {self._most} still changes x by {change:.1e}; "
                "give a smaller eps"
            )
        return self._solution(result, message, change)

    def _multipliers(self, t: np.ndarray) -> np.ndarray:
        """y_s(t) after the iterations done so far, by recursion from y₀."""
        y = np.repeat(self._y0, t.size, axis=1)
        for solution, eps in zip(self._solutions, self._eps, strict=False):
            y = self._equations.rate(t, solution(t), eps, y)[1]
        return y

    def _conditions(self, t0: float, xa: np.ndarray, xb: np.ndarray) -> np.ndarray:
        """The boundary conditions, and the constraints at the left end."""
        n = self._n
        ends = (xa, xb) if self._order == 1 else (xa[:n], xb[:n], xa[n:], xb[n:])
        given = read(_CONDITIONS, "boundary", self._boundary(*ends)).ravel()
        constraints = self._equations.constraints(t0, xa)
        wanted = self.size - constraints.size
        if given.size != wanted:
            raise ValueError(
                f"boundary: {given.size} conditions; with the {constraints.size} constraints at the left end "
                f"there must be {self.size}, so give {wanted}"
            )
        return np.concatenate([given, constraints])

    def _relative_change(self, result: Any) -> float:
        """The change of x since the previous iteration."""
        x = result.y[: self._n]
        difference = (result.sol(result.x) - self._solutions[-1](result.x))[: self._n]
        return float(np.max(np.abs(difference)) / (1 + np.max(np.abs(x))))

    def _solution(self, result: Any, message: str, change: float) -> BoundarySolution:
        n = self._n
        count = len(self._solutions)
        unknown = np.full((self._carried, result.x.size), np.nan)
        return BoundarySolution(
            t=result.x,
            x=result.y[:n],
            v=result.y[n:],
            y=self._multipliers(result.x) if result.success else unknown,
            sol=result.sol,
            success=not message,
            message=message or f"solved in {count} iterations",
            iterations=count,
            change=change,
        )


class _Functions:
    """Right-hand side and constraints at many times at once."""

    def __init__(self, problem: Regularized, p: np.ndarray) -> None:
        self.size = problem.size
        self.p = p
        iteration = problem.iteration
        e = iteration.e
        x, z, out, _ = iteration.rate(None)
        motion = out[: problem.size]
        y = out[problem.size : problem.size + problem.carried]
        symbols = problem.system.symbols["p"]
        if ca.depends_on(
            out, problem.system.model.p[symbols.numel() :] if isinstance(problem.system, System) else ca.SX()
        ):
            raise ValueError(
                "system: boundary value problems need functions that can be traced; print(system) says which "
                "cannot, and why"
            )
        self._rate = ca.Function("rate", [e.t, x, z, symbols], [motion, y])
        self._jacobian = ca.Function("jacobian", [e.t, x, z, symbols], [ca.densify(ca.jacobian(motion, x))])
        self._constraints = ca.Function(
            "constraints", [e.t, x, symbols], [ca.densify(e.g if e.order == 1 else ca.vertcat(e.g, e.w))]
        )

    def _inputs(self, t: np.ndarray, eps: float, y: np.ndarray) -> tuple:
        return (
            t[np.newaxis],
            np.vstack([np.full(t.size, eps), y]),
            np.repeat(self.p[:, np.newaxis], t.size, axis=1),
        )

    def rate(self, t: np.ndarray, x: np.ndarray, eps: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        times, z, p = self._inputs(t, eps, y)
        motion, carried = self._rate(times, x, z, p)
        return np.array(motion), np.array(carried)

    def jacobian(self, t: np.ndarray, x: np.ndarray, eps: float, y: np.ndarray) -> np.ndarray:
        times, z, p = self._inputs(t, eps, y)
        return (
            np.array(self._jacobian(times, x, z, p)).reshape(self.size, t.size, self.size).transpose(0, 2, 1)
        )

    def constraints(self, t: float, x: np.ndarray) -> np.ndarray:
        return np.array(self._constraints(t, x, self.p)).ravel()


def _initial_mesh(mesh: Any, guess: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    times = checked("mesh", mesh)
    if guess is None:
        return times, np.zeros((size, times.size))
    values = checked("guess", [guess(t) for t in times] if callable(guess) else guess)
    values = values.T if callable(guess) else values
    if values.shape != (size, times.size):
        raise ValueError(
            f"guess: shape {values.shape}; expected ({size}, {times.size})"
            + (", or a function of t that returns so many values" if callable(guess) else "")
        )
    return times, values
