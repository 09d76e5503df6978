"""Explicit Runge–Kutta methods on the underlying ODE, each step followed by a return to the manifold.

One step from y with k₀ = y′:

    k_i = F(t + c_i h, y + h Σ_{j<i} a_ij k_j),     ẑ = y + h Σ b_i k_i,     e = h Σ e_i k_i

ẑ is corrected by Newton steps δ until it lies on the manifold to rounding (usually one or two), the error e is freed of its part normal to the manifold (Eich 1993, section 4.1), and the
derivative at the end serves as k₀ of the next step; all three come from one kernel, ``landing``.  Between the steps the solution is a step of the same method from y to the wanted
time, so it has the method's order, lies on the manifold, and costs no memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numba import cfunc, njit

from holonome.engine import run
from holonome.engine.calls import KERNEL, call, pointer, shift
from holonome.engine.context import OK, RAISED, SINGULAR
from holonome.engine.run import part
from holonome.integrators import dop853

(STAGES, DERIVATIVE, LANDING, DENSE_DERIVATIVE, DENSE_LANDING, PROJECT, CONSTRAINED, CONSTANT, KAPPA, SCALE_Q, SCALE_V, A, B, C, E, E_SECOND, LAST, LAST_SECOND, K, K_NEW, Z,
 ERROR_VECTOR, LANDED, EXPONENT, BETA, LOG_ERROR, AFTER_REJECTION, TWO_ERRORS, COORDINATES) = range(30, 59)
"""Places in the header of the memory that belong to this integrator."""

ROUNDING = 1e-15
_SAFETY, _SHRINK, _GROW, _LARGEST_CORRECTION, _MOST_CORRECTIONS = 0.9, 0.2, 8.0, 0.3, 8


@dataclass(frozen=True)
class Tableau:
    """Coefficients: stages a, c, weights b, one or two error estimators with an entry for the derivative at the end, the order, and that of the estimate."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    errors: tuple[np.ndarray, ...]
    order: int
    error_order: int
    beta: float = 0.0


def _lower(rows: list[list[float]]) -> np.ndarray:
    return np.array([row + [0.0] * (len(rows) - len(row)) for row in rows])


def _full(entries: dict[int, float], size: int) -> np.ndarray:
    return np.array([entries.get(i, 0.0) for i in range(size)])


def _heun() -> Tableau:
    return Tableau(_lower([[], [1]]), np.array([1 / 2, 1 / 2]), np.array([0.0, 1.0]), (np.array([-1 / 2, 1 / 2, 0.0]),), 2, 1)


def _dormand_prince() -> Tableau:
    a = _lower([[], [1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9], [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
                [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656]])
    b = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84])
    e = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
    return Tableau(a, b, np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1]), (e,), 5, 4, beta=0.04)


def _dormand_prince_8() -> Tableau:
    a = np.array([_full(row, 12) for row in dop853.A])
    return Tableau(a, _full(dop853.B, 12), np.array(dop853.C), (_full(dop853.E5, 13), _full(dop853.E3, 13)), 8, 7)


TABLEAUS = {"heun": _heun(), "dopri5": _dormand_prince(), "dop853": _dormand_prince_8()}


@dataclass(frozen=True)
class RungeKutta:
    """An explicit Runge–Kutta method.

    Parameters
    ----------
    name
        "heun" (order 2), "dopri5" (Dormand–Prince 5(4)) or "dop853" (Dormand–Prince 8(5,3)).
    step
        Constant step size; None chooses it by the tolerances.

    References
    ----------
    J. R. Dormand, P. J. Prince, A family of embedded Runge–Kutta formulae, J. Comput. Appl. Math. 6 (1980).
    E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential Equations I, Springer 1993.
    """

    name: str = "dopri5"
    step: float | None = None

    def __post_init__(self) -> None:
        if self.name not in TABLEAUS:
            raise ValueError(f"RungeKutta: name {self.name!r} is not known; choose one of {', '.join(TABLEAUS)}")

    @property
    def tableau(self) -> Tableau:
        return TABLEAUS[self.name]


def own_memory(tableau: Tableau, n: int, offset: int) -> tuple[np.ndarray, dict[int, float]]:
    """The integrator's part of the memory, beginning at ``offset``, and the entries of the header that describe it."""
    stages, stride = len(tableau.b), padded(2 * n)
    second = tableau.errors[-1]
    sizes = {A: stages * stages, B: stages, C: stages, E: stages + 1, E_SECOND: stages + 1, K: stages * stride, K_NEW: stride, Z: stride, ERROR_VECTOR: stride + 8, LANDED: padded(6 * n + 8)}
    header: dict[int, float] = {STAGES: stages, EXPONENT: 1 / (tableau.error_order + 1), BETA: tableau.beta, TWO_ERRORS: len(tableau.errors) - 1, COORDINATES: n, KAPPA: 10.0}
    header |= {LAST: tableau.errors[0][-1], LAST_SECOND: second[-1]}
    own, at = np.zeros(sum(sizes.values())), 0
    values = {A: tableau.a.ravel(), B: tableau.b, C: tableau.c, E: tableau.errors[0], E_SECOND: second}
    for key, size in sizes.items():
        header[key] = offset + at
        if key in values:
            own[at: at + size] = values[key]
        at += size
    return own, header


def padded(size: int) -> int:
    """Rounded up to whole vector registers."""
    return (size + 3) // 4 * 4


@njit(cache=True, inline="always")
def _combine(y, k, weights, count, h, stride, out):
    """out = y + h Σ weights_j k_j, four components at a time."""
    for i in range(0, stride, 4):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        at = i
        for j in range(count):
            x = weights[j]
            a += x * k[at]
            b += x * k[at + 1]
            c += x * k[at + 2]
            d += x * k[at + 3]
            at += stride
        out[i], out[i + 1], out[i + 2], out[i + 3] = y[i] + h * a, y[i + 1] + h * b, y[i + 2] + h * c, y[i + 3] + h * d


@njit(cache=True, inline="always")
def _combine_alone(k, weights, count, h, stride, out):
    """out = h Σ weights_j k_j."""
    for i in range(0, stride, 4):
        a, b, c, d = 0.0, 0.0, 0.0, 0.0
        at = i
        for j in range(count):
            x = weights[j]
            a += x * k[at]
            b += x * k[at + 1]
            c += x * k[at + 2]
            d += x * k[at + 3]
            at += stride
        out[i], out[i + 1], out[i + 2], out[i + 3] = h * a, h * b, h * c, h * d


@njit(cache=True, inline="always")
def _derivative(memory, context, t, y, out):
    status = call(int(memory[DERIVATIVE]), t, y, y, context, out)
    if status == SINGULAR:
        status = call(int(memory[DENSE_DERIVATIVE]), t, y, y, context, out)
    return status


@njit(cache=True, inline="always")
def _landing(memory, context, t, y, error, out):
    status = call(int(memory[LANDING]), t, y, error, context, out)
    if status == SINGULAR:
        status = call(int(memory[DENSE_LANDING]), t, y, error, context, out)
    return status


@njit(cache=True)
def _stages(memory, context, t, y, h):
    """All stages, from k₀, and the new point in Z; not yet on the manifold."""
    stages, stride = int(memory[STAGES]), int(memory[run.STRIDE])
    a, c, k, z = part(memory, A), part(memory, C), part(memory, K), part(memory, Z)
    for i in range(1, stages):
        _combine(y, k, shift(a, i * stages), i, h, stride, z)
        status = _derivative(memory, context, t + c[i] * h, z, shift(k, i * stride))
        if status != OK:
            return status
    _combine(y, k, part(memory, B), stages, h, stride, z)
    return OK


@njit(cache=True)
def _correction(memory, z, landed):
    """Add δ to z; its size, relative to the largest position and velocity met."""
    n = int(memory[COORDINATES])
    dq, dv, scale_q, scale_v, largest_q, largest_v = shift(landed, 4 * n), shift(landed, 5 * n), memory[SCALE_Q], memory[SCALE_V], 0.0, 0.0
    finite = 0.0
    for i in range(n):
        scale_q, scale_v = max(scale_q, abs(z[i])), max(scale_v, abs(z[n + i]))
        largest_q, largest_v = max(largest_q, abs(dq[i])), max(largest_v, abs(dv[i]))
        finite += dq[i] + dv[i]
        z[i] += dq[i]
        z[n + i] += dv[i]
    if finite - finite != 0.0:
        return math.nan
    size = 0.0
    if largest_q > 0.0:
        size = largest_q / max(scale_q, 1e-300)
    if largest_v > 0.0:
        size = max(size, largest_v / max(scale_v, 1e-300))
    return size


@njit(cache=True)
def _land(memory, context, t, y, h, measure):
    """Bring Z onto the manifold; returns (status, cause, squared error).  The derivative there is left in LANDED.

    κ is the measured constant of Newton's quadratic convergence: a correction δ leaves about κ δ².
    """
    stages, stride, size = int(memory[STAGES]), int(memory[run.STRIDE]), int(memory[run.SIZE])
    z, landed, error, k = part(memory, Z), part(memory, LANDED), part(memory, ERROR_VECTOR), part(memory, K)
    previous, square = math.inf, 0.0
    calls_wanted = 1 + int(memory[TWO_ERRORS]) if measure else 1
    for iteration in range(_MOST_CORRECTIONS):
        estimator = E if iteration == 0 else E_SECOND
        if measure and iteration < calls_wanted:
            _combine_alone(k, part(memory, estimator), stages, h, stride, error)
            error[size] = h * (memory[LAST] if iteration == 0 else memory[LAST_SECOND])
        status = _landing(memory, context, t, z, error, landed)
        memory[run.LANDINGS] += 1.0
        if status != OK:
            return status, run.SINGULAR_MATRIX, math.inf
        if measure and iteration < calls_wanted:
            this = run.weighted_square(memory, shift(landed, size), y, z, 1.0)
            square = this if iteration == 0 else _two_errors(square, this)
        correction = _correction(memory, z, landed)
        memory[run.CORRECTION] = correction
        if not correction < _LARGEST_CORRECTION:
            return OK, run.PROJECTION_FAILED if correction == correction else run.NOT_FINITE, math.inf
        if previous < 1e-2 and previous > 1e-7:
            memory[KAPPA] = max(2.0 * correction / (previous * previous), 0.5 * memory[KAPPA], 1e-3)
        small = memory[KAPPA] * correction * correction <= ROUNDING or (correction < 1e-9 and correction > 0.1 * previous)
        if small and iteration + 1 >= calls_wanted:
            return OK, 0, square
        if iteration > 2 and correction > previous:
            break
        previous = correction
    return OK, run.PROJECTION_FAILED, math.inf


@njit(cache=True)
def _two_errors(fifth, third):
    """The combined estimate of the method of order 8."""
    both = fifth + 0.01 * third
    return fifth * fifth / both if both > 0.0 else 0.0


@njit(cache=True)
def _step(memory, context, counts, h):
    """Try one step of size h; the new point is left in Z, its derivative in LANDED.  Returns (status, cause of failure, error)."""
    t, y, size, stages, stride = memory[run.T], part(memory, run.Y), int(memory[run.SIZE]), int(memory[STAGES]), int(memory[run.STRIDE])
    z, landed, k = part(memory, Z), part(memory, LANDED), part(memory, K)
    counts[run.NFEV] += stages
    status = _stages(memory, context, t, y, h)
    if status != OK:
        return status, run.SINGULAR_MATRIX, math.inf
    if memory[PROJECT] > 0.0:
        status, cause, square = _land(memory, context, t + h, y, h, True)
        if status != OK or cause != 0:
            return status, cause, math.inf
    else:
        status = _derivative(memory, context, t + h, z, landed)
        if status != OK:
            return status, run.SINGULAR_MATRIX, math.inf
        error = part(memory, ERROR_VECTOR)
        _combine_alone(k, part(memory, E), stages, h, stride, error)
        for i in range(size):
            error[i] += h * memory[LAST] * landed[i]
        square = run.weighted_square(memory, error, y, z, 1.0)
        if memory[TWO_ERRORS] > 0.0:
            _combine_alone(k, part(memory, E_SECOND), stages, h, stride, error)
            square = _two_errors(square, run.weighted_square(memory, error, y, z, 1.0))
    finite = square
    for i in range(size):
        finite += landed[i]
    if finite - finite != 0.0:
        return OK, run.NOT_FINITE, math.inf
    return OK, 0, math.sqrt(square / size)


@njit(cache=True)
def _first_step(memory, context, counts):
    """Hairer, Nørsett & Wanner, section II.4: from the sizes of y, y′ and an estimate of y″."""
    y, k, z, size, way, t = part(memory, run.Y), part(memory, K), part(memory, Z), int(memory[run.SIZE]), counts[run.WAY], memory[run.T]
    landed, span = part(memory, LANDED), abs(memory[run.T_END] - t)
    limit = min(span, memory[run.H_MAX])
    d0, d1 = math.sqrt(run.weighted_square(memory, y, y, y, 1.0) / size), math.sqrt(run.weighted_square(memory, k, y, y, 1.0) / size)
    h = min(0.01 * d0 / d1 if d0 > 1e-5 and d1 > 1e-5 else 1e-6 * span, limit)
    for i in range(size):
        z[i] = y[i] + way * h * k[i]
    counts[run.NFEV] += 1
    d2 = 0.0
    if _derivative(memory, context, t + way * h, z, landed) == OK:
        for i in range(size):
            landed[i] -= k[i]
        d2 = math.sqrt(run.weighted_square(memory, landed, y, y, 1.0 / h) / size)
    if not d2 - d2 == 0.0:
        return h * 1e-3
    largest = max(d1, d2)
    other = (0.01 / largest) ** memory[EXPONENT] if largest > 1e-15 else max(1e-6 * span, h * 1e-3)
    return min(100 * h, other, limit)


@njit(cache=True)
def _start(memory, context, counts, points):
    """Derivative, events and step size at the initial point."""
    y, landed, k, error, size = part(memory, run.Y), part(memory, LANDED), part(memory, K), part(memory, ERROR_VECTOR), int(memory[run.SIZE])
    n = int(memory[COORDINATES])
    for i in range(n):
        memory[SCALE_Q], memory[SCALE_V] = max(memory[SCALE_Q], abs(y[i])), max(memory[SCALE_V], abs(y[n + i]))
    if memory[CONSTRAINED] > 0.0:
        for i in range(size + 1):
            error[i] = 0.0
        status = _landing(memory, context, memory[run.T], y, error, landed)
        largest_q, largest_v = 0.0, 0.0
        for i in range(n):
            largest_q, largest_v = max(largest_q, abs(landed[4 * n + i])), max(largest_v, abs(landed[5 * n + i]))
        if status == OK and not (largest_q <= 1e-13 * max(memory[SCALE_Q], 1e-300) and largest_v <= 1e-13 * max(memory[SCALE_V], 1e-300)):
            return run.OFF_MANIFOLD
    else:
        status = _derivative(memory, context, memory[run.T], y, landed)
    counts[run.NFEV] += 1
    if status == RAISED:
        return run.USER_FUNCTION_FAILED
    total = 0.0
    for i in range(size):
        k[i] = landed[i]
        total += k[i]
    if status != OK or total - total != 0.0:
        return run.CANNOT_START
    if counts[run.EVENTS] > 0 and call(int(memory[run.EVENT_KERNEL]), memory[run.T], y, y, context, part(memory, run.EVENT_OLD)) != OK:
        return run.USER_FUNCTION_FAILED
    memory[run.H] = memory[run.FIRST_STEP] if memory[run.FIRST_STEP] > 0.0 else _first_step(memory, context, counts)
    if memory[CONSTANT] > 0.0:
        memory[run.H] = memory[CONSTANT]
    return OK


@njit(cache=True)
def _reject(memory, context, counts, rejections, h, error, cause):
    """Note a rejected step and shrink."""
    row = counts[run.REJECTIONS]
    rejections[row, 0], rejections[row, 1], rejections[row, 2], rejections[row, 3] = memory[run.T], h, error, cause
    counts[run.REJECTIONS] += 1
    counts[run.REJECTED] += 1
    shrink = 0.25
    if cause == run.ERROR_TEST:
        shrink = max(_SHRINK, _SAFETY * error ** -memory[EXPONENT])
    memory[run.H] = abs(h) * shrink
    memory[AFTER_REJECTION] = 1.0


@njit(cache=True)
def _accept(memory, counts, steps, h, error):
    """Move on to Z and choose the next step size."""
    size, n = int(memory[run.SIZE]), int(memory[COORDINATES])
    y, y_old, z, landed, k_new = part(memory, run.Y), part(memory, run.Y_OLD), part(memory, Z), part(memory, LANDED), part(memory, K_NEW)
    scale_q, scale_v = memory[SCALE_Q], memory[SCALE_V]
    for i in range(n):
        scale_q, scale_v = max(scale_q, abs(z[i])), max(scale_v, abs(z[n + i]))
    memory[SCALE_Q], memory[SCALE_V] = scale_q, scale_v
    for i in range(size):
        y_old[i], y[i], k_new[i] = y[i], z[i], landed[i]
    memory[run.T_OLD], memory[run.H_TRY] = memory[run.T], h
    counts[run.ACCEPTED] += 1
    if counts[run.KEEP_STEPS]:
        row = counts[run.STEPS]
        steps[row, 0], steps[row, 1], steps[row, 2], steps[row, 3] = memory[run.T], h, error, memory[run.CORRECTION]
        counts[run.STEPS] += 1
    if memory[CONSTANT] > 0.0:
        return
    log_error = math.log(max(error, 1e-10))
    grow = _SAFETY * math.exp(memory[BETA] * memory[LOG_ERROR] - (memory[EXPONENT] - 0.75 * memory[BETA]) * log_error)
    limit = 1.0 if memory[AFTER_REJECTION] > 0.0 else _GROW
    memory[LOG_ERROR], memory[AFTER_REJECTION] = log_error, 0.0
    memory[run.H] = min(abs(h) * min(limit, max(_SHRINK, grow)), memory[run.H_MAX])


@njit(cache=True)
def _next(memory, counts):
    """Size of the step to try, with its sign: it meets the end exactly, and does not leave a crumb before it."""
    way, left = counts[run.WAY], abs(memory[run.T_END] - memory[run.T])
    if memory[CONSTANT] > 0.0:
        h = memory[CONSTANT]
        return way * (left if left < h * (1 + 1e-9) else h)
    h = memory[run.H]
    if h >= left * (1 - 1e-10):
        return way * left
    return way * (0.5 * left if h > 0.5 * left and h < left else h)


@cfunc(KERNEL, cache=True)
def interpolant(t, y, memory, context, out):
    """The solution at a time inside the last step: a step of the method from its beginning."""
    h, y_old, z = t - memory[run.T_OLD], part(memory, run.Y_OLD), part(memory, Z)
    status = _stages(memory, context, memory[run.T_OLD], y_old, h)
    if status == OK and memory[PROJECT] > 0.0:
        status, _, _ = _land(memory, context, t, y_old, h, False)
    for i in range(int(memory[run.SIZE])):
        out[i] = z[i]
    return status


@njit(cache=True, nogil=True)
def advance(memory_array, context_array, counts, points, steps, rejections, found, t_eval):
    """Integrate until something has to be told; see :mod:`holonome.engine.run`."""
    memory, context = pointer(memory_array), pointer(context_array)
    if counts[run.STATE] == run.START:
        failure = _start(memory, context, counts, points)
        if failure != OK:
            return failure
        counts[run.STATE] = run.STEPPING
    k, k_new, size = part(memory, K), part(memory, K_NEW), int(memory[run.SIZE])
    while True:
        if counts[run.STATE] != run.STEPPING:
            if not run.record(memory, context, counts, points, t_eval):
                return run.FULL
            if counts[run.STATE] == run.ENDING:
                return run.TERMINATED
            if memory[run.T] == memory[run.T_END]:
                return run.DONE
            for i in range(size):
                k[i] = k_new[i]
            counts[run.STATE] = run.STEPPING
        if counts[run.BUDGET] <= 0 or counts[run.STEPS] == steps.shape[0] or counts[run.REJECTIONS] == rejections.shape[0] or counts[run.FOUND] + counts[run.EVENTS] > found.shape[0]:
            return run.FULL
        if counts[run.ACCEPTED] + counts[run.REJECTED] >= counts[run.MAX_STEPS]:
            return run.TOO_MANY_STEPS
        counts[run.BUDGET] -= 1
        t, h = memory[run.T], _next(memory, counts)
        status, cause, error = _step(memory, context, counts, h)
        if status == RAISED:
            return run.USER_FUNCTION_FAILED
        constant = memory[CONSTANT] > 0.0
        if cause == 0 and error > 1.0 and not constant:
            cause = run.ERROR_TEST
        if cause != 0:
            _reject(memory, context, counts, rejections, h, error, cause)
            if constant or memory[run.H] <= 1e-15 * max(abs(t), abs(t + h)) or memory[run.H] < 1e-290:
                return run.STEP_TOO_SMALL
            continue
        _accept(memory, counts, steps, h, error)
        if abs(h) == abs(memory[run.T_END] - t):
            memory[run.T] = memory[run.T_END]
        elif constant:
            memory[run.T] = memory[run.T_START] + counts[run.WAY] * memory[CONSTANT] * counts[run.ACCEPTED]
        else:
            memory[run.T] = t + h
        counts[run.STATE] = run.RECORDING
        if counts[run.EVENTS] > 0:
            fine, terminated = run.find_events(memory, context, counts, found)
            if not fine:
                return run.USER_FUNCTION_FAILED
            if terminated:
                counts[run.STATE] = run.ENDING


@njit(cache=True, nogil=True)
def evaluate(memory_array, context_array, times, states, wanted, out):
    """The solution at many times from the stored steps: ``times`` (ordered along the run) and ``states`` (one row each) bracket every wanted time.  Returns the number done."""
    memory, context = pointer(memory_array), pointer(context_array)
    size, y_old, k, z = int(memory[run.SIZE]), part(memory, run.Y_OLD), part(memory, K), part(memory, Z)
    way = 1.0 if times[-1] >= times[0] else -1.0
    current = -1
    for row in range(wanted.size):
        lower, upper = 0, times.size - 1
        while upper - lower > 1:
            middle = (lower + upper) // 2
            if way * times[middle] <= way * wanted[row]:
                lower = middle
            else:
                upper = middle
        if upper < times.size and wanted[row] == times[upper]:
            lower = upper
        if wanted[row] == times[lower]:
            for i in range(size):
                out[row, i] = states[lower, i]
            continue
        if lower != current:
            for i in range(size):
                y_old[i] = states[lower, i]
            memory[run.T_OLD] = times[lower]
            if _derivative(memory, context, times[lower], y_old, k) != OK:
                return row
            current = lower
        status = _stages(memory, context, times[lower], y_old, wanted[row] - times[lower])
        if status == OK and memory[PROJECT] > 0.0:
            status, _, _ = _land(memory, context, wanted[row], y_old, wanted[row] - times[lower], False)
        if status != OK:
            return row
        for i in range(size):
            out[row, i] = z[i]
    return wanted.size
