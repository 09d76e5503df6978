"""Explicit Runge–Kutta methods for sequential regularization: the iterations x_1 … x_S advanced together,
step by step.

    for each step:  for s = 1 … S:  a step of the method for x_s, in which y_{s−1} is known

so that nothing of y_{s−1}(t) has to be stored.  Heun's method takes y_{s−1} as mesh values, as the paper
does: y_{s−1}(t_n) in its first stage, the finished y_{s−1}(t_{n+1}) in its second.  The others take the value
that belongs to the same stage of x_{s−1}, so that they have their order for the iterations as one system.

Where the number of iterations is free, one is added as soon as the last two differ by more than half the
tolerance at the end of a step: the new one begins where the last one stands, and the step is repeated.
x_{S−1} was within the tolerance up to there, and x_S better.  If the last one allowed still differs by far
more, ε is too large.  Where it is free too, the whole begins anew from x_S with a quarter of it and y₀ = y_S.
In a layer of length ε behind a start, more iterations help only as far as y₀ agrees with y there, (2.14) and
Theorem 2.2; so y₀ begins with y, y′ and y″ of the exact solution, anew with y_S and its slope.

A motion that runs into an impasse is recognised by its velocity, a substantial part of which suddenly
violates the constraints: ε⁻¹ B E g′ then is far larger than all accelerations before.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from holonome.integrators import loop as run
from holonome.integrators.loop import part
from holonome.integrators.tableau import END, TABLEAUS, addresses, combine, padded
from holonome.machine.calls import NativeKernel, call, pointer, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED, SINGULAR

(
    RATE,
    FREE,
    STABILIZATION,
    TIMES,
    STATE,
    CARRIED,
    ACTIVE,
    ACTIVE_OLD,
    MOST,
    AUTOMATIC,
    MESH,
    CONSTANT,
    ORDER,
    EPS,
    Y0,
    X,
    X_OLD,
    F,
    F_OLD,
    CARRY,
    CARRY_OLD,
    X_NEW,
    F_NEW,
    CARRY_NEW,
    K,
    STAGE_CARRY,
    POINT,
    OUT,
    Z,
    ERROR_VECTOR,
    STAGES,
    SUMS,
    C,
    LAST_WEIGHT,
    TWO_ERRORS,
    EXPONENT,
    BETA,
    LOG_ERROR,
    AFTER_REJECTION,
    HELD,
    T_HELD,
    DIFFERENCE,
    VIOLATION,
    LARGEST,
    FASTEST,
    IMPASSE,
    INDEX,
    BEFORE,
    MULTIPLIER,
    TAU,
    FIRST,
    HOLDS,
) = range(30, 82)
"""Places in the header of the memory that belong to this integrator."""

_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 5.0
SETTLED, HELPS, ASTRAY = 0.5, 0.9, (2.0, 30.0)
_PARTLY, _SUDDEN, _SEEN, MOST_RESTARTS = 0.3, 3.0, 1e3, 8
_LATER = 20.0
"""Tolerance of x′ in the test for another iteration, in units of its own: near singular positions x′ settles
late.
"""

RESTARTS, HELD_STEPS = run.ITERATIONS, run.CORRECTION
MOST_HELD_STEPS = 8
"""Steps in a row with a held value: more, and the position is not an isolated singular one."""


def own_memory(
    name: str, size: int, carried: int, most: int, offset: int
) -> tuple[np.ndarray, dict[int, float]]:
    """The integrator's part of the memory, beginning at ``offset``, and the entries of the header that
    describe it.
    """
    tableau, stride = TABLEAUS[name], padded(size)
    stages = tableau.stages
    whole = most * stride
    sizes = {
        SUMS: stages + 2,
        C: stages,
        EPS: most,
        Y0: 2 + 3 * carried,
        FIRST: carried,
        X: whole,
        X_OLD: whole,
        X_NEW: whole,
        F: whole,
        F_OLD: whole,
        F_NEW: whole,
        CARRY: most * carried,
        CARRY_OLD: most * carried,
        CARRY_NEW: most * carried,
        K: stages * stride,
        STAGE_CARRY: most * stages * carried,
        POINT: stride,
        OUT: size + carried + 2,
        Z: carried + 1,
        ERROR_VECTOR: stride,
    }
    header: dict[int, float] = {
        STAGES: stages,
        EXPONENT: 1 / (tableau.error_order + 1),
        BETA: tableau.beta,
        TWO_ERRORS: len(tableau.errors) - 1,
        ORDER: tableau.order,
        STATE: size,
        CARRIED: carried,
        MOST: most,
        LAST_WEIGHT: tableau.errors[0][-1],
    }
    own, at = np.zeros(sum(map(padded, sizes.values()))), 0
    values = {SUMS: addresses(name, size), C: tableau.c}
    for key, length in sizes.items():
        header[key] = offset + at
        if key in values:
            own[at : at + length] = values[key]
        at += padded(length)
    return own, header


class Parts(NamedTuple):
    """The memory taken apart once."""

    size: int
    stride: int
    carried: int
    stages: int
    rate: int
    free: int
    times: int
    mesh: bool
    rtol: float
    atol: Any
    eps: Any
    y0: Any
    first: Any
    k: Any
    sums: Any
    c: Any
    last_weight: float
    point: Any
    out: Any
    z: Any
    error: Any
    stage_carry: Any
    x_new: Any
    f_new: Any
    carry_new: Any


@njit(cache=True)
def _parts(memory):
    size = int(memory[STATE])
    return Parts(
        size,
        (size + 3) // 4 * 4,
        int(memory[CARRIED]),
        int(memory[STAGES]),
        int(memory[RATE]),
        int(memory[FREE]),
        int(memory[TIMES]),
        memory[MESH] > 0.0,
        memory[run.RTOL],
        part(memory, run.ATOL),
        part(memory, EPS),
        part(memory, Y0),
        part(memory, FIRST),
        part(memory, K),
        part(memory, SUMS),
        part(memory, C),
        memory[LAST_WEIGHT],
        part(memory, POINT),
        part(memory, OUT),
        part(memory, Z),
        part(memory, ERROR_VECTOR),
        part(memory, STAGE_CARRY),
        part(memory, X_NEW),
        part(memory, F_NEW),
        part(memory, CARRY_NEW),
    )


@njit(cache=True)
def _copy(source, target, count):
    for i in range(count):
        target[i] = source[i]


@njit(cache=True)
def first_y(y0, t, n, out):
    """y₀(t) = y + (b s + c s²) exp(−s/τ) with s = t − t₀; ``y0`` is (t₀, 1/τ, y, b, c)."""
    s = t - y0[0]
    decay = math.exp(-s * y0[1])
    for i in range(n):
        out[i] = y0[2 + i] + s * (y0[2 + n + i] + s * y0[2 + 2 * n + i]) * decay
    return out


@njit(cache=True)
def _y0(P, t):
    return first_y(P.y0, t, P.carried, P.first)


@njit(cache=True)
def _expand(P, memory, context, way, t, x):
    """Let y₀ begin with y, y′, y″ of the exact solution through x, (2.14) with m = 2, from differences over
    τ/1000.  Where y is not known it stays constant.
    """
    n, size, h, exact, y = (
        P.carried,
        P.size,
        1e-3 * way * memory[TAU],
        int(memory[MULTIPLIER]),
        shift(P.y0, 2),
    )
    P.y0[0], P.y0[1] = t, way / memory[TAU]
    if call(exact, t, x, P.z, context, P.first) != OK:
        return
    _copy(P.first, y, n)
    for side in (h, -h):
        _copy(y, shift(P.z, 1), n)
        _copy(x, P.point, size)
        for share in (0.5, 1.0):  # the midpoint rule
            if call(P.free, t + (share - 0.5) * side, P.point, P.z, context, P.out) != OK:
                return
            for i in range(size):
                P.point[i] = x[i] + share * side * P.out[i]
            if call(exact, t + share * side, P.point, P.out, context, shift(P.z, 1)) != OK:
                return
        if side == h:
            _copy(shift(P.z, 1), P.first, n)
    for i in range(n):
        slope, bend = (P.first[i] - P.z[1 + i]) / (2.0 * h), (P.first[i] - 2.0 * y[i] + P.z[1 + i]) / (h * h)
        P.y0[2 + n + i], P.y0[2 + 2 * n + i] = slope, 0.5 * bend + slope * P.y0[1]


@njit(cache=True)
def _rate(P, memory, context, t, s, x, previous, last, f, carry):
    """x_s′ and y_s from y_{s−1}; in an exact singular point y_s keeps its last value."""
    P.z[0] = P.eps[s]
    _copy(previous, shift(P.z, 1), P.carried)
    status = call(P.rate, t, x, P.z, context, P.out)
    if status == SINGULAR and memory[HOLDS] > 0.0:
        if memory[HELD] == 0.0:
            memory[T_HELD] = t
        memory[HELD] += 1.0
        _copy(last, shift(P.z, 1), P.carried)
        status = call(P.free, t, x, P.z, context, P.out)
    if status != OK:
        memory[run.T_FAILED] = t
        return status
    _copy(P.out, f, P.size)
    _copy(shift(P.out, P.size), carry, P.carried)
    memory[VIOLATION] = P.out[P.size + P.carried]
    return OK


@njit(cache=True)
def _sweep(P, memory, context, active, x_all, f_all, carry_all, t, h, measure):
    """One step for all iterations, in order; the new ones are left in ``x_new``, ``f_new``, ``carry_new``.
    Returns the status and the squared error, summed.
    """
    total, stages, size, stride, carried = 0.0, P.stages, P.size, P.stride, P.carried
    for s in range(active):
        x, last = shift(x_all, s * stride), shift(carry_all, s * carried)
        x_new, f_new, carry_new = (
            shift(P.x_new, s * stride),
            shift(P.f_new, s * stride),
            shift(P.carry_new, s * carried),
        )
        own, before = (
            shift(P.stage_carry, s * stages * carried),
            shift(P.stage_carry, (s - 1) * stages * carried),
        )
        finished = shift(P.carry_new, (s - 1) * carried)
        _copy(shift(f_all, s * stride), P.k, stride)
        _copy(last, own, carried)
        for i in range(1, stages):
            combine(P.sums, i, h, x, P.k, P.point)
            previous = (
                _y0(P, t + P.c[i] * h) if s == 0 else finished if P.mesh else shift(before, i * carried)
            )
            status = _rate(
                P,
                memory,
                context,
                t + P.c[i] * h,
                s,
                P.point,
                previous,
                last,
                shift(P.k, i * stride),
                shift(own, i * carried),
            )
            if status != OK:
                return status, math.inf
        combine(P.sums, END, h, x, P.k, x_new)
        for _ in range(P.times):  # (5.2)
            status = call(int(memory[STABILIZATION]), t + h, x_new, P.z, context, P.out)
            if status >= RAISED:
                return status, math.inf
            if status == OK:
                for i in range(size):
                    x_new[i] += P.out[i]
        status = _rate(
            P, memory, context, t + h, s, x_new, _y0(P, t + h) if s == 0 else finished, last, f_new, carry_new
        )
        if status != OK:
            return status, math.inf
        if measure:
            total += _error(P, memory, x, x_new, f_new, h)
    return OK, total


@njit(cache=True)
def _error(P, memory, x, x_new, f_new, h):
    """Σ of the squared weighted error of one iteration; for the method of order 8 combined as in
    :mod:`holonome.integrators.runge_kutta`.
    """
    combine(P.sums, P.stages, h, x, P.k, P.error)
    for i in range(P.size):
        P.error[i] += h * P.last_weight * f_new[i]
    square = run.weighted_square(P.error, x, x_new, P.atol, P.rtol, P.size)
    if memory[TWO_ERRORS] > 0.0:
        combine(P.sums, P.stages + 1, h, x, P.k, P.error)
        both = square + 0.01 * run.weighted_square(P.error, x, x_new, P.atol, P.rtol, P.size)
        square = square * square / both if both > 0.0 else 0.0
    return square


@njit(cache=True)
def difference(x, other, atol, rtol, size, order):
    """Distance of two iterations in units of the tolerance, relative to the largest entry of x; of x′
    likewise, with _LATER times the tolerance.
    """
    n, distance = size // order, 0.0
    for level in range(order):
        scale = 0.0
        for i in range(level * n, (level + 1) * n):
            scale = max(scale, abs(x[i]))
        for i in range(level * n, (level + 1) * n):
            distance = max(
                distance, abs(x[i] - other[i]) / ((atol[i] + rtol * scale) * (1.0 if level == 0 else _LATER))
            )
    return distance


@njit(cache=True)
def _add(P, memory, context, active, t):
    """One more iteration, from where the last one stands."""
    x_all, f_all, carry_all = part(memory, X), part(memory, F), part(memory, CARRY)
    last = shift(carry_all, (active - 1) * P.carried)
    _copy(shift(x_all, (active - 1) * P.stride), shift(x_all, active * P.stride), P.stride)
    status = _rate(
        P,
        memory,
        context,
        t,
        active,
        shift(x_all, active * P.stride),
        last,
        last,
        shift(f_all, active * P.stride),
        shift(carry_all, active * P.carried),
    )
    memory[ACTIVE] = active + 1.0
    return status


@njit(cache=True)
def _begin_anew(P, memory, context, counts, active):
    """From x_S with y₀ = y_S and its slope over the last step, a quarter of ε and two iterations."""
    x_all, n, t, t_old = part(memory, X), P.carried, memory[run.T], memory[run.T_OLD]
    y, before = shift(part(memory, CARRY), (active - 1) * n), shift(part(memory, CARRY_OLD), (active - 1) * n)
    known = memory[TAU] > 0.0 and memory[ACTIVE_OLD] == active and t != t_old
    P.y0[0], P.y0[1] = t, counts[run.WAY] / memory[TAU] if known else 0.0
    for i in range(n):
        slope = (y[i] - before[i]) / (t - t_old) if known else 0.0
        P.y0[2 + i], P.y0[2 + n + i], P.y0[2 + 2 * n + i] = y[i], slope, slope * P.y0[1]
    for s in range(int(memory[MOST])):
        P.eps[s] *= 0.25
        if s != active - 1:
            _copy(shift(x_all, (active - 1) * P.stride), shift(x_all, s * P.stride), P.stride)
    memory[ACTIVE], memory[BEFORE], memory[run.H] = min(2.0, memory[MOST]), 0.0, 0.25 * memory[run.H]
    return _rates(P, memory, context, counts)


@njit(cache=True)
def _rates(P, memory, context, counts):
    """x_s′ and y_s of all iterations where they stand."""
    t, x_all, f_all, carry_all = memory[run.T], part(memory, X), part(memory, F), part(memory, CARRY)
    for s in range(int(memory[ACTIVE])):
        previous = _y0(P, t) if s == 0 else shift(carry_all, (s - 1) * P.carried)
        counts[run.NFEV] += 1
        status = _rate(
            P,
            memory,
            context,
            t,
            s,
            shift(x_all, s * P.stride),
            previous,
            previous,
            shift(f_all, s * P.stride),
            shift(carry_all, s * P.carried),
        )
        if status != OK:
            return (
                run.USER_FUNCTION_FAILED
                if status == RAISED
                else run.STOPPED
                if status == INTERRUPTED
                else run.CANNOT_START
            )
    return OK


@njit(cache=True)
def _show(P, memory, x_all, carry_all, active, y):
    """The last iteration as the state of the run: x_S, and y_S as far as the state has room."""
    _copy(shift(x_all, (active - 1) * P.stride), y, P.size)
    _copy(shift(carry_all, (active - 1) * P.carried), shift(y, P.size), int(memory[run.SIZE]) - P.size)


@njit(cache=True)
def _start(P, memory, context, counts):
    """Derivatives of all iterations, events and step size at the start."""
    if memory[TAU] > 0.0:
        _expand(P, memory, context, counts[run.WAY], memory[run.T], part(memory, X))
    failure = _rates(P, memory, context, counts)
    if failure != OK:
        return failure
    if (
        counts[run.EVENTS] > 0
        and call(
            int(memory[run.EVENT_KERNEL]),
            memory[run.T],
            part(memory, run.Y),
            part(memory, run.Y),
            context,
            part(memory, run.EVENT_OLD),
        )
        != OK
    ):
        return run.USER_FUNCTION_FAILED
    memory[run.H] = memory[CONSTANT] if memory[CONSTANT] > 0.0 else memory[run.FIRST_STEP]
    return OK


@njit(cache=True)
def suddenly_violated(x, f, first, size, violation, tolerance, largest, fastest, eps):
    """Whether a substantial part of the velocity (for index 2: of x) violates the constraints, and would be
    stopped faster than anything before.

    Entries from ``first`` on count.  Returns the largest of them and of their rates so far, too.
    """
    rate = 0.0
    for i in range(first, size):
        largest, rate = max(largest, abs(x[i])), max(rate, abs(f[i]))
    if fastest == 0.0 or violation < 0.1 * _PARTLY * largest:
        fastest = max(fastest, rate)
    return (
        largest,
        fastest,
        violation > _SEEN * tolerance
        and violation > _PARTLY * largest
        and violation > _SUDDEN * fastest * eps,
    )


@njit(cache=True)
def _is_impasse(P, memory, active):
    x, f, first = (
        shift(P.x_new, (active - 1) * P.stride),
        shift(P.f_new, (active - 1) * P.stride),
        P.size // 2 if memory[INDEX] > 2.0 else 0,
    )
    memory[LARGEST], memory[FASTEST], impasse = suddenly_violated(
        x,
        f,
        first,
        P.size,
        memory[VIOLATION],
        P.atol[first],
        memory[LARGEST],
        memory[FASTEST],
        P.eps[active - 1],
    )
    return impasse


@njit(cache=True)
def _accept(P, memory, counts, steps, h, error, active):
    """Move on, and choose the next step size."""
    if counts[run.KEEP_STEPS]:
        row = counts[run.STEPS]
        steps[row, 0], steps[row, 1], steps[row, 2], steps[row, 3], steps[row, 4] = (
            memory[run.T],
            h,
            error,
            memory[DIFFERENCE],
            active,
        )
        steps[row, 5] = memory[ORDER]
        if steps.shape[1] > run.STEP_COLUMNS:
            x_all, column = part(memory, X), run.STEP_COLUMNS + 3 + 3 * P.carried
            steps[row, run.STEP_COLUMNS] = P.eps[0]
            for i in range(2 + 3 * P.carried):
                steps[row, run.STEP_COLUMNS + 1 + i] = P.y0[i]
            for i in range(active * P.stride):
                steps[row, column + i] = x_all[i]
        counts[run.STEPS] += 1
    whole, carried = active * P.stride, active * P.carried
    _copy(part(memory, X), part(memory, X_OLD), whole)
    _copy(part(memory, F), part(memory, F_OLD), whole)
    _copy(part(memory, CARRY), part(memory, CARRY_OLD), carried)
    _copy(P.x_new, part(memory, X), whole)
    _copy(P.f_new, part(memory, F), whole)
    _copy(P.carry_new, part(memory, CARRY), carried)
    memory[ACTIVE_OLD] = active
    memory[run.T_OLD] = memory[run.T]
    counts[run.ACCEPTED] += 1
    _show(P, memory, P.x_new, P.carry_new, active, part(memory, run.Y))
    if memory[CONSTANT] > 0.0:
        return
    log_error = math.log(max(error, 1e-10))
    grow = _SAFETY * math.exp(
        memory[BETA] * memory[LOG_ERROR] - (memory[EXPONENT] - 0.75 * memory[BETA]) * log_error
    )
    limit = 1.0 if memory[AFTER_REJECTION] > 0.0 else _GROW
    memory[LOG_ERROR], memory[AFTER_REJECTION] = log_error, 0.0
    memory[run.H] = min(abs(h) * min(limit, max(_SHRINK, grow)), memory[run.H_MAX])


@njit(cache=True)
def _reject(memory, counts, rejections, h, error, cause):
    row = counts[run.REJECTIONS]
    rejections[row, 0], rejections[row, 1], rejections[row, 2], rejections[row, 3] = (
        memory[run.T],
        h,
        error,
        cause,
    )
    counts[run.REJECTIONS] += 1
    counts[run.REJECTED] += 1
    memory[run.H] = abs(h) * (
        max(_SHRINK, _SAFETY * error ** -memory[EXPONENT]) if cause == run.ERROR_TEST else 0.25
    )
    memory[AFTER_REJECTION] = 1.0


@njit(cache=True)
def _next(memory, counts):
    """Size of the step to try, with its sign: it meets the end exactly, and does not leave a crumb before it."""
    way, left, h = counts[run.WAY], abs(run.target(memory, counts) - memory[run.T]), memory[run.H]
    if memory[CONSTANT] > 0.0:
        return way * (left if left < memory[CONSTANT] * (1 + 1e-9) else memory[CONSTANT])
    if h >= left * (1 - 1e-10):
        return way * left
    return way * (0.5 * left if h > 0.5 * left else h)


@NativeKernel
def interpolant(t, y, memory, context, out):
    """The solution at a time inside the last step: a step of all iterations from its beginning."""
    P, active = _parts(memory), int(memory[ACTIVE_OLD])
    status, _ = _sweep(
        P,
        memory,
        context,
        active,
        part(memory, X_OLD),
        part(memory, F_OLD),
        part(memory, CARRY_OLD),
        memory[run.T_OLD],
        t - memory[run.T_OLD],
        False,
    )
    _show(P, memory, P.x_new, P.carry_new, active, out)
    return status


@njit(cache=True)
def _cross(P, memory, context, counts, points):
    """Step over a switch: the state stays, the derivatives are new, and the far side is a point of its own."""
    if run.cross_switch(memory, counts, points) != run.DONE:
        return run.FULL
    code = _rates(P, memory, context, counts)
    counts[run.STATE] = run.STEPPING
    return run.DONE if code == OK else code


@njit(cache=True, nogil=True)
def advance(memory_array, context_array, counts, points, steps, rejections, found, t_eval):
    """Integrate until something has to be told; see :mod:`holonome.integrators.loop`."""
    memory, context = pointer(memory_array), pointer(context_array)
    P = _parts(memory)
    constant, automatic = memory[CONSTANT] > 0.0, memory[AUTOMATIC] > 0.0
    if counts[run.STATE] == run.START:
        failure = _start(P, memory, context, counts)
        if failure != OK:
            return failure
        run.watch_start(memory, context, part(memory, X))
        counts[run.STATE] = run.STEPPING
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
            counts[run.STATE] = run.STEPPING
        code = run.another_step(counts, steps, rejections, found)
        if code != run.DONE:
            return code
        t, h, active = memory[run.T], _next(memory, counts), int(memory[ACTIVE])
        if t + h == t:
            return run.STEP_TOO_SMALL
        counts[run.NFEV] += P.stages * active
        held = memory[HELD]
        status, square = _sweep(
            P, memory, context, active, part(memory, X), part(memory, F), part(memory, CARRY), t, h, True
        )
        if status == INTERRUPTED:
            return run.STOPPED
        error, cause = math.sqrt(square / (active * P.size)), 0
        if status != OK:
            cause = run.FUNCTION_RAISED if status == RAISED else run.SINGULAR_MATRIX
        elif error - error != 0.0:
            cause = run.NOT_FINITE
        elif error > 1.0 and not constant:
            cause = run.ERROR_TEST
        if cause != 0:
            _reject(memory, counts, rejections, h, error, cause)
            if constant or memory[run.H] <= 1e-15 * max(abs(t), abs(t + h)) or memory[run.H] < 1e-290:
                return run.STEP_TOO_SMALL
            continue
        last = shift(P.x_new, (active - 1) * P.stride)
        memory[DIFFERENCE] = (
            difference(last, shift(last, -P.stride), P.atol, P.rtol, P.size, int(memory[INDEX]) - 1)
            if active > 1
            else math.inf
        )
        if automatic and memory[DIFFERENCE] > SETTLED:
            if active < int(memory[MOST]) and (
                memory[BEFORE] == 0.0 or memory[DIFFERENCE] < HELPS * memory[BEFORE]
            ):
                memory[BEFORE] = memory[DIFFERENCE]
                counts[run.NFEV] += 1
                status = _add(P, memory, context, active, t)
                if status >= RAISED:
                    return run.USER_FUNCTION_FAILED if status == RAISED else run.STOPPED
                continue
            if memory[DIFFERENCE] > (ASTRAY[0] if memory[AUTOMATIC] > 1.0 else ASTRAY[1]):
                if memory[AUTOMATIC] < 2.0 or memory[RESTARTS] >= MOST_RESTARTS:
                    return run.STEP_TOO_SMALL
                memory[RESTARTS] += 1.0
                failure = _begin_anew(P, memory, context, counts, active)
                if failure != OK:
                    return failure
                continue
        memory[BEFORE] = 0.0
        memory[HELD_STEPS] = memory[HELD_STEPS] + 1.0 if memory[HELD] > held else 0.0
        if memory[HELD_STEPS] > MOST_HELD_STEPS:
            return run.STEP_TOO_SMALL
        if memory[IMPASSE] >= 0.0 and _is_impasse(P, memory, active):
            memory[IMPASSE] = 1.0
            return run.STEP_TOO_SMALL
        _accept(P, memory, counts, steps, h, error, active)
        run.arrive(memory, counts, t, h, memory[CONSTANT])
        at = (active - 1) * P.stride
        run.watch(
            memory,
            context,
            counts,
            found,
            shift(part(memory, X_OLD), at),
            shift(part(memory, F_OLD), at),
            last,
            shift(P.f_new, at),
        )
        code = run.look_for_events(memory, context, counts, found)
        if code != run.DONE:
            return code


@njit(cache=True, nogil=True)
def evaluate(memory_array, context_array, starts, counts, states, wanted, out):
    """The solution at many times from stored steps: where each began, how many iterations it had, and (one
    row each) ε, y₀ and all of them.  Returns the number done.
    """
    memory, context = pointer(memory_array), pointer(context_array)
    P = _parts(memory)
    way = 1.0 if starts[-1] >= starts[0] else -1.0
    current, x_all, f_all, carry_all = -1, part(memory, X), part(memory, F), part(memory, CARRY)
    for row in range(wanted.size):
        lower = 0
        upper = starts.size
        while upper - lower > 1:
            middle = (lower + upper) // 2
            if way * starts[middle] <= way * wanted[row]:
                lower = middle
            else:
                upper = middle
        active = int(counts[lower])
        if lower != current:
            for i in range(2 + 3 * P.carried):
                P.y0[i] = states[lower, 1 + i]
            if states[lower, 0] != P.eps[0]:
                for s in range(int(memory[MOST])):
                    P.eps[s] = states[lower, 0]
            for i in range(active * P.stride):
                x_all[i] = states[lower, 3 + 3 * P.carried + i]
            for s in range(active):
                previous = _y0(P, starts[lower]) if s == 0 else shift(carry_all, (s - 1) * P.carried)
                if (
                    _rate(
                        P,
                        memory,
                        context,
                        starts[lower],
                        s,
                        shift(x_all, s * P.stride),
                        previous,
                        previous,
                        shift(f_all, s * P.stride),
                        shift(carry_all, s * P.carried),
                    )
                    != OK
                ):
                    return row
            current = lower
        status, _ = _sweep(
            P,
            memory,
            context,
            active,
            x_all,
            f_all,
            carry_all,
            starts[lower],
            wanted[row] - starts[lower],
            False,
        )
        if status != OK:
            return row
        _show(P, memory, P.x_new, P.carry_new, active, pointer(out[row]))
    return wanted.size
