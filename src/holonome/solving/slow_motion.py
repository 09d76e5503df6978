"""The slow motion of a stiff system: where it begins, and what following it alone did to the energy.

Linearised about a position, the motions within the constraints are modes φ with frequencies ω:  Φᵀ M Φ = I,
Φᵀ (−f_q + (Cᵀλ)_q) Φ = diag(ω²).  The stiffness of elastic elements enters as c_qᵀ K c_q without the
contribution of their present load, which will vanish, and with it; the smaller correction is tried first.
Where the frequencies have a wide gap, and the modes below it move slowly, those above it are fast.  On the
slow motion they do not oscillate:

    P v = 0,     P a + P′ v = 0,     P = Φ_fast Φ_fastᵀ M

A start off this is moved there along the fast modes, by Newton's method; so oscillations are taken out
whatever their amplitude, and no step has to follow them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from holonome.dynamics.kernels import kernels, over_points
from holonome.errors import HolonomeError
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK
from holonome.solving.methods import SMOOTH

if TYPE_CHECKING:
    from holonome.equations.model import Model
    from holonome.problem.system import System
    from holonome.results.solution import Solution

GAP, GAP_ALONE, NARROW_GAP = 10.0, 1e4, 3.0
"""Fast modes are so many times faster than everything else; where all modes are fast, than the run; and where
what they do at the start is hardly larger than the tolerance.
"""
_HARDLY, _NOTHING = 10.0, 0.01
"""Sizes in units of the tolerance.  Oscillations between them cannot be seen, but keep the steps small until
they are damped.
"""
LARGEST, LARGEST_DENSE = 200, 1000
"""Degrees of freedom, and coordinates, up to which modes are looked for."""
HIDDEN_STIFFNESS = 1e5
"""Stiffness of forces that are not elastic elements, relative to inertia within a step, beyond which smooth
motion cannot be trusted.
"""
_MOST_ITERATIONS, _HALVINGS, _DIFFERENCE = 30, 8, 1e-5


class _Frame(NamedTuple):
    """At a state: mass matrix, directions within the constraints (Nᵀ M N = I), accelerations, and
    multipliers, also those without the load of elastic elements.
    """

    q: np.ndarray
    v: np.ndarray
    M: np.ndarray
    N: np.ndarray
    a: np.ndarray
    lam: np.ndarray
    unloaded_lam: np.ndarray


class _Modes(NamedTuple):
    """At a position: accelerations, mass matrix, squared frequencies in rising order and their modes."""

    a: np.ndarray
    M: np.ndarray
    squares: np.ndarray
    shapes: np.ndarray

    def projector(self, fast: int) -> np.ndarray:
        shapes = self.shapes[:, self.shapes.shape[1] - fast :]
        return shapes @ shapes.T @ self.M


def slow_start(system: System, t: float, y: np.ndarray, span: float, rtol: float, atol: Any) -> np.ndarray:
    """The start of the slow motion near a given one; itself if that is on it already, there is no gap between
    slow and fast, or the nearest one is not found.
    """
    n = system.n
    found = _slow_start(system, t, y[:n], y[n : 2 * n], span, rtol, atol)
    return y if found is None else np.concatenate(found)


def _slow_start(
    system: System, t: float, q: np.ndarray, v: np.ndarray, span: float, rtol: float, atol: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    if (
        not system.n
        or system.supplied
        or system.states
        or system.unknowns
        or system.model.lam.numel()
        or not 1 <= system.n - system.m <= LARGEST
        or system.n > LARGEST_DENSE
    ):
        return None
    try:
        place = _Place(system, t)
        if place.driven or place.distance(q) > 1e-6 * np.max(np.abs(q)):
            return None
        tolerance = rtol * float(np.max(np.abs(q))) + float(np.min(atol))
        frame = place.frame(q, v)
        attempts = [
            _attempt(place, frame, span, loaded)
            for loaded in ((False,) if system.model.elastic is None else (False, True))
        ]
        for attempt in sorted(
            (attempt for attempt in attempts if attempt is not None), key=lambda attempt: attempt.size
        ):
            speed = float(np.max(np.abs(v - attempt.v))) / math.sqrt(attempt.modes.squares[-attempt.fast])
            amplitude = (attempt.size + speed) / tolerance
            if amplitude <= _NOTHING:
                return None
            if amplitude > _HARDLY and attempt.gap < GAP:
                continue
            found = _settle(place, attempt, tolerance)
            if found is not None:
                q = place.onto(found[0], 1e-15)
                return q, place.allowed(q, found[1])
    except (HolonomeError, ValueError, np.linalg.LinAlgError):
        pass
    return None


def _is_driven(model: Model) -> bool:
    """Whether the stiffness depends on time: that of the elements, or of all forces where there are none."""
    stiff = model.f if model.elastic is None else model.elastic.c
    return ca.depends_on(ca.jacobian(stiff, model.q), model.t)


class _Place:
    """Evaluates the equations at one time.

    ``driven`` where the stiffness depends on time, so that fast modes are never at rest.
    """

    def __init__(self, system: System, t: float) -> None:
        n, m, compiled = system.n, system.m, kernels(system)
        self.driven, self.t, self.n = (
            system.compiled.once("driven stiffness", lambda: _is_driven(system.model)),
            t,
            n,
        )
        self.kernel, self.context = (
            system.kernel("slow motion", _expressions).address,
            compiled.context(system),
        )
        self.y, self.lam, self.results, at = np.zeros(2 * n), np.zeros(m + 1), [], 0
        shapes = (n, n), (n,), (m, n), (m,), (n,), (n, n), (compiled.position_rows,), (m,), (n, n)
        self.flat = np.zeros(sum(map(math.prod, shapes)))
        for shape in shapes:
            size = math.prod(shape)
            self.results.append(self.flat[at : at + size].reshape(shape))
            at += size

    def __call__(self, q: np.ndarray, v: np.ndarray, lam: np.ndarray | float = 0.0) -> list[np.ndarray]:
        """M, f, C, γ, f without elastic elements, the stiffness, g, w, the stiffness of loaded elements."""
        self.y[: self.n], self.y[self.n :], self.lam[:-1] = q, v, lam
        if (
            run_kernel(self.kernel, self.t, self.y, self.lam, self.context, self.flat) != OK
            or not np.isfinite(self.flat).all()
        ):
            raise ValueError("the equations are not finite here")
        return self.results

    def onto(self, q: np.ndarray, accuracy: float = 1e-10) -> np.ndarray:
        """The nearest position that satisfies the constraints."""
        for _ in range(6):
            _, _, C, _, _, _, g, *_ = self(q, np.zeros_like(q))
            if not g.size:
                break
            step = np.linalg.lstsq(C[: g.size], -g, rcond=1e-10)[0]
            q = q + step
            if np.max(np.abs(step)) <= accuracy * np.max(np.abs(q)):
                break
        return q

    def allowed(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The nearest velocity that satisfies the constraints."""
        _, _, C, _, _, _, _, w, _ = self(q, v)
        return v - np.linalg.lstsq(C, w, rcond=1e-10)[0] if w.size else v

    def distance(self, q: np.ndarray) -> float:
        """How far a position is from the constraints, row by row."""
        _, _, C, _, _, _, g, *_ = self(q, np.zeros_like(q))
        return float(
            np.max(
                np.abs(g) / np.maximum(np.sqrt(np.einsum("ij,ij->i", C[: g.size], C[: g.size])), 1e-300),
                initial=0.0,
            )
        )

    def frame(self, q: np.ndarray, v: np.ndarray) -> _Frame:
        M, f, C, gamma, rest, *_ = (result.copy() for result in self(q, v)[:5])
        if C.size:
            left, sizes, right = np.linalg.svd(C)
            rank = int(np.sum(sizes > 1e-10 * sizes[0]))
            tangent, inverse = right[rank:].T, (right[:rank].T / sizes[:rank]) @ left[:, :rank].T
        else:
            tangent, inverse = np.eye(self.n), np.zeros((self.n, 0))
        N = np.linalg.solve(np.linalg.cholesky(tangent.T @ M @ tangent), tangent.T).T
        curved = -inverse @ gamma
        a, unloaded = (curved + N @ (N.T @ (force - M @ curved)) for force in (f, rest))
        return _Frame(q, v, M, N, a, inverse.T @ (f - M @ a), inverse.T @ (rest - M @ unloaded))

    def modes(self, frame: _Frame, loaded: bool) -> _Modes:
        K = (
            frame.N.T
            @ self(frame.q, frame.v, frame.lam if loaded else frame.unloaded_lam)[8 if loaded else 5]
            @ frame.N
        )
        squares, shapes = np.linalg.eigh((K + K.T) / 2)
        return _Modes(frame.a, frame.M, squares, frame.N @ shapes)

    def correction(
        self, q: np.ndarray, v: np.ndarray, modes: _Modes, fast: int, loaded: bool
    ) -> tuple[np.ndarray, float]:
        """The next step of Newton's method for P a + P′ v = 0, and its size."""
        turning, speed = np.zeros_like(v), float(np.max(np.abs(v)))
        if speed > 0:
            step = _DIFFERENCE * max(float(np.max(np.abs(q))), 1e-300) / speed
            for sign in (-1, 1):
                turning += (
                    sign
                    * self.modes(self.frame(self.onto(q + sign * step * v), v), loaded).projector(fast)
                    @ v
                    / (2 * step)
                )
        shapes, squares = modes.shapes[:, -fast:], modes.squares[-fast:]
        direction = shapes @ ((shapes.T @ modes.M @ (modes.a + turning)) / squares)
        return direction, float(np.max(np.abs(direction)))


def _expressions(model: Model) -> tuple[ca.SX, ca.SX, ca.SX, None]:
    lam, elastic = ca.SX.sym("lam", model.rows), model.elastic
    rest = model.f if elastic is None else elastic.rest
    K = ca.jacobian(model.C.T @ lam - rest, model.q)
    if elastic is not None:
        c_q = ca.jacobian(elastic.c, model.q)
        K += c_q.T @ elastic.K @ c_q
    loaded = ca.jacobian(model.C.T @ lam - model.f, model.q)
    return (
        model.y,
        lam,
        ca.vertcat(
            *(
                ca.vec(x.T)
                for x in (model.M, model.f, model.C, model.gamma, rest, K, model.g, model.w, loaded)
            )
        ),
        None,
    )


def _fast(modes: _Modes, q: np.ndarray, v: np.ndarray, span: float) -> tuple[int, float]:
    """How many modes lie above the widest gap, and the gap; 0 if none is wide enough."""
    size, count, widest, fast = max(float(np.max(np.abs(q))), 1e-300), modes.squares.size, NARROW_GAP, 0
    for slow in range(1, count):
        P = np.eye(q.size) - modes.projector(count - slow)
        moving = max(
            1 / span,
            float(np.max(np.abs(P @ v))) / size,
            math.sqrt(float(np.max(np.abs(P @ modes.a))) / size),
            math.sqrt(max(modes.squares[slow - 1], 0.0)),
        )
        gap = math.sqrt(max(modes.squares[slow], 0.0)) / moving
        if gap > widest:
            widest, fast = gap, count - slow
    if widest < GAP and modes.squares[0] > (GAP_ALONE / span) ** 2:
        return count, math.inf
    return fast, widest


class _Attempt(NamedTuple):
    """A first step towards the slow motion: where from, with its slow velocity; the modes there and how many
    of them are fast, by how much; the step and its size.
    """

    q: np.ndarray
    v: np.ndarray
    modes: _Modes
    fast: int
    gap: float
    direction: np.ndarray
    size: float
    loaded: bool


def _attempt(place: _Place, frame: _Frame, span: float, loaded: bool) -> _Attempt | None:
    """The first step with the stiffness of elements without their load, or with it; None if there are no fast
    modes.
    """
    modes = place.modes(frame, loaded)
    fast, gap = _fast(modes, frame.q, frame.v, span)
    if fast == 0:
        return None
    slow = frame.v - modes.projector(fast) @ frame.v
    direction, size = place.correction(frame.q, slow, modes, fast, loaded)
    return _Attempt(frame.q, slow, modes, fast, gap, direction, size, loaded)


def _settle(place: _Place, attempt: _Attempt, tolerance: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Newton's method along the fast modes; None if it finds nothing."""
    q, v, _, fast, _, direction, size, loaded = attempt
    for _ in range(_MOST_ITERATIONS):
        if size <= 0.01 * tolerance:
            break
        for halving in range(_HALVINGS):
            moved = place.onto(q + 0.5**halving * direction)
            there = place.modes(place.frame(moved, v), loaded)
            if there.squares[-fast] <= 0:
                continue
            slow = v - there.projector(fast) @ v
            further, left = place.correction(moved, slow, there, fast, loaded)
            if left < size:
                q, v, direction, size = moved, slow, further, left
                break
        else:
            break
    return (q, v) if size <= tolerance else None


def about_smooth_motion(solution: Solution, given: np.ndarray | None) -> str:
    """A remark on a run that followed only the slow motion; ``given`` is the start if it was moved there."""
    return f" ({what_was_damped(solution, given)}{hidden_stiffness(solution)})"


def what_was_damped(solution: Solution, given: np.ndarray | None) -> str:
    """What leaving out the fast oscillations did, in words; ``given`` is the start where it was moved onto
    the slow motion.
    """
    energy, n, remark = solution.energy, solution.system.n, ""
    damped = f"fast oscillations were damped out{'' if solution.method == SMOOTH else ' in part'}"
    if energy is None or not energy.size:
        return f"{damped}; give the system a potential to learn how much energy that took"
    before = energy[0]
    if given is not None:
        start, moved = np.empty((1, 1)), np.abs(solution.states[0, : solution.system.state_size] - given)
        compiled = kernels(solution.system)
        over_points(
            compiled.energy,
            0,
            compiled.context(solution.system),
            solution.t[:1],
            given.reshape(1, -1),
            start,
            1,
        )
        before, remark = (
            start[0, 0],
            f"; the start was moved onto the slow motion by {np.max(moved[:n]):.1e} (q) and "
            f"{np.max(moved[n:]):.1e} (v)",
        )
    return f"{damped}: the energy went from {before:.6g} to {energy[-1]:.6g}{remark}"


def hidden_stiffness(solution: Solution) -> str:
    """A warning where ``force`` is so stiff, h² ‖M⁻¹ ∂f/∂q‖, that Newton's method may lock: only elastic
    elements are safe from that.
    """
    system, n = solution.system, solution.system.n
    if not n or system.supplied or not solution.steps or not solution.t.size:
        return ""
    large = kernels(system).sparse
    kernel = system.kernel("stiffness of force", _stiffness_over_mass if large else _mass_and_stiffness)
    chosen = np.linspace(0, solution.t.size - 1, 5).astype(int)
    found = np.zeros(
        (chosen.size, ca.jacobian(_forces(system.model), system.model.q).nnz() if large else 2 * n * n)
    )
    over_points(
        kernel.address,
        0,
        kernels(system).context(system),
        solution.t[chosen],
        np.ascontiguousarray(solution.states[chosen, : system.state_size]),
        found,
        64 if system.unknowns else 1,
    )
    h, relative = abs(solution.t[-1] - solution.t[0]) / solution.steps, found
    if not large and np.all(np.isfinite(found)):
        relative = np.linalg.pinv(found[:, : n * n].reshape(-1, n, n)) @ found[:, n * n :].reshape(-1, n, n)
    largest = h**2 * float(np.max(np.abs(relative), initial=0.0)) if np.all(np.isfinite(found)) else 0.0
    return (
        f"; force is very stiff, h² |∂f/∂q| / M = {largest:.0e}, and the result may be wrong: give its stiff "
        "part as hn.Elastic"
        if largest > HIDDEN_STIFFNESS
        else ""
    )


def _mass_and_stiffness(model: Model) -> tuple[ca.SX, ca.SX, ca.SX, None]:
    return (
        model.y,
        ca.SX(0, 1),
        ca.vertcat(*(ca.vec(ca.densify(x.T)) for x in (model.M, ca.jacobian(_forces(model), model.q)))),
        None,
    )


def _stiffness_over_mass(model: Model) -> tuple[ca.SX, ca.SX, ca.SX, None]:
    """The nonzeros of ∂f/∂q by the masses of their rows; zero where there is no mass."""
    stiffness, mass = ca.jacobian(_forces(model), model.q), ca.densify(ca.diag(model.M))
    of_row = mass[stiffness.sparsity().row()]
    return model.y, ca.SX(0, 1), ca.densify(ca.if_else(of_row > 0, stiffness.nz[:] / of_row, 0)), None


def _forces(model: Model) -> ca.SX:
    return model.f if model.elastic is None else model.elastic.rest
