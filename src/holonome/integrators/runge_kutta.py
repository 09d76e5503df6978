"""Explicit Runge–Kutta methods on the underlying ODE, each step followed by a return to the manifold.

One step from y with k₀ = y′:

    k_i = F(t + c_i h, y + h Σ_{j<i} a_ij k_j),     ẑ = y + h Σ b_i k_i,     e = h Σ e_i k_i

ẑ is corrected by Newton steps δ until it lies on the manifold to rounding (usually one or two), the error e
is freed of its part normal to the manifold (Eich 1993, section 4.1), and the derivative at the end serves as
k₀ of the next step; all three come from one kernel, ``landing``.  Between the steps the solution is a step of
the same method from y to the wanted time, so it has the method's order, lies on the manifold, and costs no
memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from holonome.integrators import loop as run
from holonome.integrators.loop import part
from holonome.integrators.rank_watch import watch_step
from holonome.integrators.tableau import END, TABLEAUS, Tableau, addresses, combine, padded
from holonome.machine.calls import NativeKernel, call, pointer, shift
from holonome.machine.context import DENSE_CALLS, INTERRUPTED, OK, RAISED, SINGULAR

(
    STAGES,
    DERIVATIVE,
    LANDING,
    DENSE_DERIVATIVE,
    DENSE_LANDING,
    PROJECT,
    CHECK,
    CONSTANT,
    KAPPA,
    SCALE_Q,
    SCALE_V,
    SUMS,
    C,
    LAST_WEIGHT,
    K,
    K_NEW,
    Z,
    ERROR_VECTOR,
    LANDED,
    EXPONENT,
    BETA,
    LOG_ERROR,
    AFTER_REJECTION,
    TWO_ERRORS,
    COORDINATES,
    ORDER,
    STIFF,
    STABLE,
) = range(30, 58)
"""Places in the header of the memory that belong to this integrator."""

TRUSTED, UNCONSTRAINED, CONSTRAINED = 0.0, 1.0, 2.0
"""What the start has to be checked for: nothing, masses, or constraints as well."""

ROUNDING = 1e-15
_SAFETY, _SHRINK, _GROW, _LARGEST_CORRECTION, _MOST_CORRECTIONS = 0.9, 0.2, 8.0, 0.3, 8
_EVERY, _HITS, _NEAR = 8, 8, 0.5
"""A step looks stiff where h|λ| is more than this part of the stability interval; looked at every so many
steps, and told after so many hits in a row.
"""

_CONTRADICTION = 1e-7
"""What may remain of a row that depends on others, as a distance relative to the largest position (or
velocity).
"""


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

    Examples
    --------
    Heun's method with two constant steps: half the step, a quarter of the error.

    >>> import numpy as np, holonome as hn
    >>> falling = hn.System(1.0, lambda v: -v, n=1)
    >>> errors = [hn.solve(falling, (0, 1), [0], [1], method=hn.Method(hn.UnderlyingODE(), hn.RungeKutta("heun", step=h))).v[0, -1] - np.exp(-1) for h in (0.02, 0.01)]
    >>> bool(3.9 < errors[0] / errors[1] < 4.1)
    True
    """

    name: str = "dopri5"
    step: float | None = None

    def __post_init__(self) -> None:
        if self.name not in TABLEAUS:
            raise ValueError(
                f"RungeKutta: name {self.name!r} is not known; choose one of {', '.join(TABLEAUS)}"
            )

    @property
    def tableau(self) -> Tableau:
        return TABLEAUS[self.name]


def own_memory(name: str, n: int, rows: int, offset: int) -> tuple[np.ndarray, dict[int, float]]:
    """The integrator's part of the memory, beginning at ``offset``, and the entries of the header that
    describe it.
    """
    tableau, stride = TABLEAUS[name], padded(2 * n)
    stages = tableau.stages
    sizes = {
        SUMS: stages + 2,
        C: stages,
        K: stages * stride,
        K_NEW: stride,
        Z: stride,
        ERROR_VECTOR: stride + 8,
        LANDED: padded(6 * n + rows + 8),
    }
    header: dict[int, float] = {
        STAGES: stages,
        EXPONENT: 1 / (tableau.error_order + 1),
        BETA: tableau.beta,
        TWO_ERRORS: len(tableau.errors) - 1,
        COORDINATES: n,
        KAPPA: 10.0,
        ORDER: tableau.order,
        LAST_WEIGHT: tableau.errors[0][-1],
        STABLE: tableau.stable,
    }
    own, at = np.zeros(sum(sizes.values())), 0
    values = {SUMS: addresses(name, 2 * n), C: tableau.c}
    for key, size in sizes.items():
        header[key] = offset + at
        if key in values:
            own[at : at + size] = values[key]
        at += size
    return own, header


class Parts(NamedTuple):
    """The memory taken apart once, so that the loop works with plain pointers and numbers."""

    n: int
    size: int
    stride: int
    stages: int
    derivative: int
    landing: int
    dense_derivative: int
    dense_landing: int
    two_errors: bool
    rtol: float
    atol: Any
    y: Any
    y_old: Any
    z: Any
    k: Any
    k_new: Any
    sums: Any
    c: Any
    last_weight: float
    error: Any
    landed: Any


@njit(cache=True, error_model="numpy")
def _parts(memory):
    return Parts(
        int(memory[COORDINATES]),
        int(memory[run.SIZE]),
        int(memory[run.STRIDE]),
        int(memory[STAGES]),
        int(memory[DERIVATIVE]),
        int(memory[LANDING]),
        int(memory[DENSE_DERIVATIVE]),
        int(memory[DENSE_LANDING]),
        memory[TWO_ERRORS] > 0.0,
        memory[run.RTOL],
        part(memory, run.ATOL),
        part(memory, run.Y),
        part(memory, run.Y_OLD),
        part(memory, Z),
        part(memory, K),
        part(memory, K_NEW),
        part(memory, SUMS),
        part(memory, C),
        memory[LAST_WEIGHT],
        part(memory, ERROR_VECTOR),
        part(memory, LANDED),
    )


@njit(cache=True, inline="always", error_model="numpy")
def _derivative(P, context, t, y, out):
    status = call(P.derivative, t, y, y, context, out)
    if status == SINGULAR:
        status = call(P.dense_derivative, t, y, y, context, out)
    return status


@njit(cache=True, inline="always", error_model="numpy")
def _landing(P, context, t, y, out):
    status = call(P.landing, t, y, P.error, context, out)
    if status == SINGULAR:
        status = call(P.dense_landing, t, y, P.error, context, out)
        out[6 * P.n + 2] = -1.0  # elimination failed, says the watch over the rank
    return status


@njit(cache=True, error_model="numpy")
def _stages(P, memory, context, t, y, h):
    """All stages, from k₀, and the new point in z; not yet on the manifold."""
    for i in range(1, P.stages):
        combine(P.sums, i, h, y, P.k, P.z)
        status = _derivative(P, context, t + P.c[i] * h, P.z, shift(P.k, i * P.stride))
        if status != OK:
            memory[run.T_FAILED] = t + P.c[i] * h
            return status
    combine(P.sums, END, h, y, P.k, P.z)
    return OK


@njit(cache=True, error_model="numpy")
def _correct(P, memory):
    """Add δ to z; its size, relative to the largest position and velocity met."""
    scale_q = memory[SCALE_Q]
    scale_v = max(memory[SCALE_V], scale_q / abs(memory[run.T_END] - memory[run.T_START]))
    n, z, dq, dv = P.n, P.z, shift(P.landed, 4 * P.n), shift(P.landed, 5 * P.n)
    largest_q, largest_v, total = 0.0, 0.0, 0.0
    for i in range(n):
        scale_q, scale_v = max(scale_q, abs(z[i])), max(scale_v, abs(z[n + i]))
        largest_q, largest_v = max(largest_q, abs(dq[i])), max(largest_v, abs(dv[i]))
        total += dq[i] + dv[i]
        z[i] += dq[i]
        z[n + i] += dv[i]
    if total - total != 0.0:
        return math.nan, False
    contradiction = (
        P.landed[6 * n] > _CONTRADICTION * scale_q or P.landed[6 * n + 1] > _CONTRADICTION * scale_v
    )
    return max(largest_q / scale_q, largest_v / scale_v), contradiction


@njit(cache=True, error_model="numpy")
def _land(P, memory, context, t, y, h, measure):
    """Bring z onto the manifold; returns (status, cause, squared error).  The derivative there is left in
    ``landed``.

    κ is the measured constant of Newton's quadratic convergence: a correction δ leaves about κ δ².
    """
    previous, square = math.inf, 0.0
    if measure:
        combine(P.sums, P.stages, h, y, P.k, P.error)
        P.error[P.size] = h * P.last_weight
    for iteration in range(_MOST_CORRECTIONS):
        status = _landing(P, context, t, P.z, P.landed)
        memory[run.LANDINGS] += 1.0
        if status != OK:
            memory[run.T_FAILED] = t
            return status, run.SINGULAR_MATRIX, math.inf
        if measure and iteration == 0:
            square = run.weighted_square(shift(P.landed, P.size), y, P.z, P.atol, P.rtol, P.size) * _share(
                P, y, h
            )
            if square > P.size and memory[CONSTANT] == 0.0:
                return OK, run.ERROR_TEST, square
        correction, contradiction = _correct(P, memory)
        memory[run.CORRECTION], memory[run.ITERATIONS] = correction, iteration + 1.0
        if not correction < _LARGEST_CORRECTION:
            return OK, run.PROJECTION_FAILED if correction == correction else run.NOT_FINITE, math.inf
        if 1e-7 < previous < 1e-2:
            memory[KAPPA] = max(2.0 * correction / (previous * previous), 0.5 * memory[KAPPA], 1e-3)
        if memory[KAPPA] * correction * correction <= ROUNDING or (
            correction < 1e-7 and correction > 0.1 * previous
        ):
            return OK, run.CONTRADICTION if contradiction else 0, square
        if iteration > 2 and correction > previous:
            break
        previous = correction
    return OK, run.PROJECTION_FAILED, math.inf


@njit(cache=True, error_model="numpy")
def _share(P, y, h):
    """For the method of order 8, the factor e₅² / (e₅² + e₃²/100) by which its estimate of order 5 is
    reduced; from the whole error, so that it cannot vanish by chance.
    """
    if not P.two_errors:
        return 1.0
    fifth = run.weighted_square(P.error, y, P.z, P.atol, P.rtol, P.size)
    combine(P.sums, P.stages + 1, h, y, P.k, P.error)
    both = fifth + 0.01 * run.weighted_square(P.error, y, P.z, P.atol, P.rtol, P.size)
    return fifth / both if both > 0.0 else 1.0


@njit(cache=True, error_model="numpy")
def _end_without_landing(P, memory, context, t, y, h):
    """Derivative and error at the end of a step that is not projected; as `_land`."""
    status = _derivative(P, context, t, P.z, P.landed)
    if status != OK:
        memory[run.T_FAILED] = t
        return status, run.SINGULAR_MATRIX, math.inf
    combine(P.sums, P.stages, h, y, P.k, P.error)
    for i in range(P.size):
        P.error[i] += h * P.last_weight * P.landed[i]
    return OK, 0, run.weighted_square(P.error, y, P.z, P.atol, P.rtol, P.size) * _share(P, y, h)


@njit(cache=True, error_model="numpy")
def _step(P, memory, context, t, h):
    """Try one step of size h; the new point is left in z, its derivative in ``landed``.  Returns (status,
    cause of failure, error).
    """
    status = _stages(P, memory, context, t, P.y, h)
    if status != OK:
        return status, run.SINGULAR_MATRIX, math.inf
    if memory[PROJECT] > 0.0:
        status, cause, square = _land(P, memory, context, t + h, P.y, h, True)
    else:
        status, cause, square = _end_without_landing(P, memory, context, t + h, P.y, h)
    finite = square
    for i in range(P.size):
        finite += P.landed[i]
    if cause == 0 and finite - finite != 0.0:
        cause = run.NOT_FINITE
    return status, cause, math.sqrt(square / P.size)


@njit(cache=True, error_model="numpy")
def _first_step(P, memory, context, counts):
    """Hairer, Nørsett & Wanner, section II.4: from the sizes of y, y′ and an estimate of y″."""
    y, k, z, size, way, t = P.y, P.k, P.z, P.size, counts[run.WAY], memory[run.T]
    span = abs(memory[run.T_END] - t)
    limit = min(span, memory[run.H_MAX])
    d0 = math.sqrt(run.weighted_square(y, y, y, P.atol, P.rtol, size) / size)
    d1 = math.sqrt(run.weighted_square(k, y, y, P.atol, P.rtol, size) / size)
    h = min(0.01 * d0 / d1 if d0 > 1e-5 and d1 > 1e-5 else 1e-6 * span, limit)
    for i in range(size):
        z[i] = y[i] + way * h * k[i]
    counts[run.NFEV] += 1
    d2 = 0.0
    if _derivative(P, context, t + way * h, z, P.landed) == OK:
        for i in range(size):
            P.landed[i] = (P.landed[i] - k[i]) / h
        d2 = math.sqrt(run.weighted_square(P.landed, y, y, P.atol, P.rtol, size) / size)
    if d2 - d2 != 0.0:
        return h * 1e-3
    largest = max(d1, d2)
    other = (0.01 / largest) ** memory[EXPONENT] if largest > 1e-15 else max(1e-6 * span, h * 1e-3)
    return min(100 * h, other, limit)


@njit(cache=True, error_model="numpy")
def _start(P, memory, context, counts):
    """Derivative, events and step size at the initial point."""
    n, y, landed, atol = P.n, P.y, P.landed, P.atol
    for i in range(n):
        memory[SCALE_Q], memory[SCALE_V] = (
            max(memory[SCALE_Q], abs(y[i]), atol[i]),
            max(memory[SCALE_V], abs(y[n + i]), atol[n + i]),
        )
    counts[run.NFEV] += 1
    if memory[CHECK] == CONSTRAINED:
        for i in range(P.size + 1):
            P.error[i] = 0.0
        status = _landing(P, context, memory[run.T], y, landed)
        if status == OK and context[DENSE_CALLS] > 0.0:
            return run.OFF_MANIFOLD
        largest_q, largest_v = 0.0, 0.0
        for i in range(n):
            largest_q, largest_v = (
                max(largest_q, abs(landed[4 * n + i])),
                max(largest_v, abs(landed[5 * n + i])),
            )
        if status == OK and not (
            largest_q <= 1e-13 * memory[SCALE_Q] and largest_v <= 1e-13 * memory[SCALE_V]
        ):
            return run.OFF_MANIFOLD
    else:
        status = _derivative(P, context, memory[run.T], y, landed)
        if status == OK and context[DENSE_CALLS] > 0.0 and memory[CHECK] == UNCONSTRAINED:
            return run.OFF_MANIFOLD
    if status >= RAISED:
        return run.USER_FUNCTION_FAILED if status == RAISED else run.STOPPED
    total = 0.0
    for i in range(P.size):
        P.k[i] = landed[i]
        total += landed[i] + y[i]
    if status != OK or total - total != 0.0:
        return run.CANNOT_START
    if (
        counts[run.EVENTS] > 0
        and call(int(memory[run.EVENT_KERNEL]), memory[run.T], y, y, context, part(memory, run.EVENT_OLD))
        != OK
    ):
        return run.USER_FUNCTION_FAILED
    if memory[CONSTANT] > 0.0:
        memory[run.H] = memory[CONSTANT]
    elif memory[run.FIRST_STEP] > 0.0:
        memory[run.H] = memory[run.FIRST_STEP]
    else:
        memory[run.H] = _first_step(P, memory, context, counts)
    return OK


@njit(cache=True, error_model="numpy")
def _reject(memory, counts, rejections, h, error, cause):
    """Note a rejected step and shrink."""
    row = counts[run.REJECTIONS]
    rejections[row, 0], rejections[row, 1], rejections[row, 2], rejections[row, 3] = (
        memory[run.T],
        h,
        error,
        cause,
    )
    counts[run.REJECTIONS] += 1
    counts[run.REJECTED] += 1
    shrink = max(_SHRINK, _SAFETY * error ** -memory[EXPONENT]) if cause == run.ERROR_TEST else 0.25
    memory[run.H] = abs(h) * shrink
    memory[AFTER_REJECTION] = 1.0


@njit(cache=True, error_model="numpy")
def _accept(P, memory, counts, steps, h, error):
    """Move on to z and choose the next step size."""
    n, y, z = P.n, P.y, P.z
    scale_q, scale_v = memory[SCALE_Q], memory[SCALE_V]
    for i in range(n):
        scale_q, scale_v = max(scale_q, abs(z[i])), max(scale_v, abs(z[n + i]))
    memory[SCALE_Q], memory[SCALE_V] = scale_q, scale_v
    if counts[run.KEEP_STEPS]:
        row = counts[run.STEPS]
        steps[row, 0], steps[row, 1], steps[row, 2], steps[row, 3], steps[row, 4] = (
            memory[run.T],
            h,
            error,
            memory[run.CORRECTION],
            memory[run.ITERATIONS],
        )
        steps[row, 5] = memory[ORDER]
        if steps.shape[1] > run.STEP_COLUMNS:
            for i in range(P.size):
                steps[row, run.STEP_COLUMNS + i] = y[i]
        counts[run.STEPS] += 1
    for i in range(P.size):
        P.y_old[i], y[i], P.k_new[i] = y[i], z[i], P.landed[i]
    memory[run.T_OLD] = memory[run.T]
    counts[run.ACCEPTED] += 1
    if memory[CONSTANT] > 0.0:
        return
    log_error = math.log(max(error, 1e-10))
    grow = _SAFETY * math.exp(
        memory[BETA] * memory[LOG_ERROR] - (memory[EXPONENT] - 0.75 * memory[BETA]) * log_error
    )
    limit = 1.0 if memory[AFTER_REJECTION] > 0.0 else _GROW
    memory[LOG_ERROR], memory[AFTER_REJECTION] = log_error, 0.0
    memory[run.H] = min(abs(h) * min(limit, max(_SHRINK, grow)), memory[run.H_MAX])


@njit(cache=True, error_model="numpy")
def _looks_stiff(P, memory, h):
    """Whether stability limits the step: h |λ| from the end of the step and its last stage, which belong to
    the same time (Hairer & Wanner, section IV.2).
    """
    combine(P.sums, P.stages - 1, h, P.y_old, P.k, P.z)
    k, rates, distance = shift(P.k, (P.stages - 1) * P.stride), 0.0, 0.0
    for i in range(P.size):
        rates += (P.k_new[i] - k[i]) ** 2
        distance += (P.y[i] - P.z[i]) ** 2
    return h * h * rates > (_NEAR * memory[STABLE]) ** 2 * distance


@njit(cache=True, error_model="numpy")
def _watch_stiffness(P, memory, counts, h):
    """Return soon, once, when stiffness has been met: what then happens is not decided here."""
    if not _looks_stiff(P, memory, h):
        memory[STIFF] = 1.0
        return
    memory[STIFF] += 1.0
    if memory[STIFF] > _HITS:
        memory[STIFF] = -1.0
        counts[run.BUDGET] = 0


@njit(cache=True, error_model="numpy")
def _next(memory, counts):
    """Size of the step to try, with its sign: it meets the end exactly, and does not leave a crumb before it."""
    way, left = counts[run.WAY], abs(run.target(memory, counts) - memory[run.T])
    if memory[CONSTANT] > 0.0:
        h = memory[CONSTANT]
        return way * (left if left < h * (1 + 1e-9) else h)
    h = memory[run.H]
    if h >= left * (1 - 1e-10):
        return way * left
    return way * (0.5 * left if h > 0.5 * left else h)


@NativeKernel
def interpolant(t, y, memory, context, out):
    """The solution at a time inside the last step: a step of the method from its beginning."""
    P = _parts(memory)
    status = _inside(P, memory, context, memory[run.T_OLD], P.y_old, t)
    for i in range(P.size):
        out[i] = P.z[i]
    return status


@njit(cache=True, error_model="numpy")
def _inside(P, memory, context, t_old, y_old, t):
    """A step from t_old to t, in z; k₀ is at hand."""
    status = _stages(P, memory, context, t_old, y_old, t - t_old)
    if status == OK and memory[PROJECT] > 0.0:
        status, cause, _ = _land(P, memory, context, t, y_old, t - t_old, False)
        if cause != 0:
            status = max(status, SINGULAR)
    return status


@njit(cache=True, error_model="numpy")
def _cross(P, memory, context, counts, points):
    """Step over a switch: the state stays, the derivative and the step size are new, and the far side is a
    point of its own.
    """
    if run.cross_switch(memory, counts, points) != run.DONE:
        return run.FULL
    status = _derivative(P, context, memory[run.T], P.y, P.k)
    if status != OK:
        return (
            run.USER_FUNCTION_FAILED
            if status == RAISED
            else run.STOPPED
            if status == INTERRUPTED
            else run.STEP_TOO_SMALL
        )
    if memory[CONSTANT] == 0.0:
        memory[run.H] = min(memory[run.H], _first_step(P, memory, context, counts))
        memory[AFTER_REJECTION] = 0.0
    counts[run.STATE] = run.STEPPING
    return run.DONE


@njit(cache=True, nogil=True, error_model="numpy")
def advance(memory_array, context_array, counts, points, steps, rejections, found, t_eval):
    """Integrate until something has to be told; see :mod:`holonome.integrators.loop`."""
    memory, context = pointer(memory_array), pointer(context_array)
    P = _parts(memory)
    if counts[run.STATE] == run.START:
        failure = _start(P, memory, context, counts)
        if failure != OK:
            return failure
        run.watch_start(memory, context, P.y)
        counts[run.STATE] = run.STEPPING
    constant, projected, watch, watched = (
        memory[CONSTANT] > 0.0,
        memory[PROJECT] > 0.0,
        memory[run.WATCH] > 0.0,
        part(memory, run.WATCH),
    )
    while True:
        if counts[run.STATE] == run.CROSSING:
            code = _cross(P, memory, context, counts, points)
            if code != run.DONE:
                return code
        elif counts[run.STATE] != run.STEPPING:
            leave, code = run.tell(memory, context, counts, points, t_eval)
            if leave:
                return code
            if run.at_switch(memory, counts):
                counts[run.STATE] = run.CROSSING
                continue
            for i in range(P.size):
                P.k[i] = P.k_new[i]
            counts[run.STATE] = run.STEPPING
        code = run.another_step(counts, steps, rejections, found)
        if code != run.DONE:
            return code
        t, h = memory[run.T], _next(memory, counts)
        if t + h == t:
            return run.STEP_TOO_SMALL
        counts[run.NFEV] += P.stages
        status, cause, error = _step(P, memory, context, t, h)
        if status == INTERRUPTED:
            return run.STOPPED
        if status == RAISED:
            cause = run.FUNCTION_RAISED
        if cause == 0 and error > 1.0 and not constant:
            cause = run.ERROR_TEST
        if cause != 0:
            _reject(memory, counts, rejections, h, error, cause)
            if constant or memory[run.H] <= 1e-15 * max(abs(t), abs(t + h)) or memory[run.H] < 1e-290:
                return run.STEP_TOO_SMALL
            continue
        _accept(P, memory, counts, steps, h, error)
        if memory[STIFF] > 0.0 and counts[run.ACCEPTED] % _EVERY == 0:
            _watch_stiffness(P, memory, counts, h)
        run.arrive(memory, counts, t, h, memory[CONSTANT])
        if not projected:
            run.watch(memory, context, counts, found, P.y_old, shift(P.y_old, P.n), P.y, shift(P.y, P.n))
        elif watch:
            counts[run.FOUND] = watch_step(
                watched,
                context,
                t,
                P.y_old,
                shift(P.y_old, P.n),
                memory[run.T],
                P.y,
                shift(P.y, P.n),
                shift(P.landed, 6 * P.n + 2),
                found,
                counts[run.FOUND],
            )
        code = run.look_for_events(memory, context, counts, found)
        if code != run.DONE:
            return code


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(memory_array, context_array, times, states, wanted, out):
    """The solution at many times from the stored steps: ``times`` (ordered along the run) and ``states`` (one
    row each) bracket every wanted time.  Returns the number done.
    """
    memory, context = pointer(memory_array), pointer(context_array)
    P = _parts(memory)
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
        if wanted[row] == times[upper]:
            lower = upper
        if wanted[row] == times[lower]:
            for i in range(P.size):
                out[row, i] = states[lower, i]
            continue
        if lower != current:
            for i in range(P.size):
                P.y_old[i] = states[lower, i]
            if _derivative(P, context, times[lower], P.y_old, P.k) != OK:
                return row
            current = lower
        if _inside(P, memory, context, times[lower], P.y_old, wanted[row]) != OK:
            return row
        for i in range(P.size):
            out[row, i] = P.z[i]
    return wanted.size
