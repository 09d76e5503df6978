"""BDF for sequential regularization with an ε of any size: the iterations x_1 … x_S on one mesh, with one
order.

    for each step:  for s = 1 … S:  Newton's method for (x_s, y_s) at the end of the step, where y_{s−1} is
    known already

Together that is one step of BDF for all of them as one system, whose Newton matrix is block triangular.  The
history is that of :mod:`holonome.integrators.bdf`, with the last iteration first, so that its interpolant and
its rows of the history are those of x_S, y_S.  y_s belongs to the unknowns, so that it is interpolated as
they are.

Where the number of iterations is free, one is added as in :mod:`holonome.integrators.sequential`; it inherits
the history of the last one.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from holonome.integrators import bdf, newton, sequential
from holonome.integrators import loop as run
from holonome.integrators.loop import part
from holonome.integrators.sequential import ASTRAY, HELPS, MOST_RESTARTS, SETTLED
from holonome.machine.calls import call, pointer, shift
from holonome.machine.context import INTERRUPTED, OK, RAISED

(
    RATE,
    STATE,
    CARRIED,
    ACTIVE,
    MOST,
    AUTOMATIC,
    EPS,
    Y0,
    DIFFERENCE,
    BEFORE,
    INDEX,
    RESTARTS,
    WORK,
    OUT,
    RATES,
    KINDS,
    ALL_FACTORS,
    VIOLATION,
    LARGEST,
    FASTEST,
    IMPASSE,
    ALL_DENSE,
    ALL_PIVOTS,
    RATE_OLD,
) = range(86, 110)
"""Places in the header of the memory behind those of BDF."""


def own_memory(
    compiled, size: int, carried: int, most: int, offset: int
) -> tuple[np.ndarray, dict[int, float]]:
    """The integrator's part of the memory, beginning at ``offset``, and the entries of the header that
    describe it.
    """
    residual, factors = compiled.residual, compiled.factor_count
    one = size + carried
    whole = most * one
    vectors = {
        bdf.PSI: 10,
        bdf.ALPHA: 10,
        bdf.BETA: 10,
        bdf.SIGMA: 10,
        bdf.GAMMA: 10,
        bdf.ERROR_WEIGHTS: whole,
        bdf.NEWTON_WEIGHTS: whole,
        bdf.YY: 2 * whole,
        bdf.E: whole,
        bdf.DELTA: whole,
        bdf.SCRATCH: one + 3,
        bdf.ROW_SCALE: one,
        bdf.ERROR_MASK: whole,
        bdf.NEWTON_MASK: whole,
        bdf.ROW_POWERS: one,
        bdf.COLUMN_POWERS: one,
        bdf.ATOL_ALL: whole,
        bdf.PHI: (bdf.MOST + 3) * whole,
        bdf.SPARE: 0,
        bdf.BLOCK: 2 + carried,
        EPS: most,
        Y0: 2 + 4 * carried,
        WORK: 2 * one,
        OUT: one + 2,
        RATES: most,
        KINDS: most,
        RATE_OLD: size,
        ALL_FACTORS: most * (factors + 1),
        ALL_DENSE: most * one * one,
        ALL_PIVOTS: most * one,
    }
    values = {
        bdf.ERROR_MASK: np.tile(residual.error_tested, most),
        bdf.NEWTON_MASK: np.tile(residual.newton_tested, most),
        bdf.ROW_POWERS: residual.row_powers,
        bdf.COLUMN_POWERS: residual.column_powers,
    }
    header: dict[int, float] = {
        bdf.FACTOR_COUNT: factors,
        bdf.RESIDUAL_KERNEL: compiled.F,
        bdf.FACTORS_KERNEL: compiled.factors,
        bdf.SOLUTION_KERNEL: compiled.solution,
        bdf.MATRIX_KERNEL: compiled.matrix,
        STATE: size,
        CARRIED: carried,
        MOST: most,
        bdf.UNKNOWNS: whole,
    }
    own, at = np.zeros(sum(vectors.values())), 0
    for key, length in vectors.items():
        header[key] = offset + at
        if key in values:
            own[at : at + length] = values[key]
        at += length
    return own, header | {
        bdf.FACTORS: header[ALL_FACTORS],
        bdf.DENSE: header[ALL_DENSE],
        bdf.PIVOTS: header[ALL_PIVOTS],
    }


@njit(cache=True)
def _block(P, memory, s, place):
    """BDF's parts for iteration s alone, which stands at this place of the history."""
    one = int(memory[STATE] + memory[CARRIED])
    at = place * one
    return bdf.Parts(
        one,
        P.n,
        P.residual_kernel,
        P.factors_kernel,
        P.solution_kernel,
        P.matrix_kernel,
        P.factor_count,
        P.newton_tolerance,
        P.rate_floor,
        memory[STATE],
        memory[STATE],
        P.rtol,
        P.atol,
        part(memory, WORK),
        P.phi,
        P.psi,
        P.alpha,
        P.beta,
        P.sigma,
        P.gamma,
        shift(P.error_weights, at),
        shift(P.newton_weights, at),
        shift(P.e, at),
        P.delta,
        P.scratch,
        shift(P.factors, s * (P.factor_count + 1)),
        shift(P.dense, s * one * one),
        shift(P.pivots, s * one),
        P.row_scale,
        P.error_mask,
        P.newton_mask,
        P.row_powers,
        P.column_powers,
        0,
        1 + int(memory[CARRIED]),
        P.spare,
        P.block,
    )


@njit(cache=True)
def _y0(memory, t):
    """y₀(t), as in :mod:`holonome.integrators.sequential`."""
    y0, n = part(memory, Y0), int(memory[CARRIED])
    return sequential.first_y(y0, t, n, shift(y0, 2 + 3 * n))


@njit(cache=True)
def _previous(P, memory, t, s, target):
    """ε and y_{s−1} at the time t, for a kernel: y₀(t), or what the iteration before has just found."""
    size, carried = int(memory[STATE]), int(memory[CARRIED])
    place = int(memory[ACTIVE]) - s  # of iteration s − 1
    y = _y0(memory, t) if s == 0 else shift(P.y, place * (size + carried) + size)
    target[0] = part(memory, EPS)[s]
    for i in range(carried):
        target[1 + i] = y[i]


@njit(cache=True)
def _solve(P, memory, context, counts, t, s, fresh):
    """Newton's method for one iteration; returns (status, converged)."""
    place = int(memory[ACTIVE]) - 1 - s
    B = _block(P, memory, s, place)
    at, rates, kinds = place * B.size, part(memory, RATES), part(memory, KINDS)
    for i in range(B.size):
        B.y[i], B.y[B.size + i] = P.y[at + i], P.y[P.size + at + i]
    _previous(P, memory, t, s, shift(B.block, 1))
    if fresh:
        status, kinds[s] = newton.evaluate_matrix(B, context, t, memory[bdf.CJ])
        rates[s] = 100.0
        if status != OK:
            return status, False
    if memory[bdf.CJ] != memory[bdf.CJ_LAST]:
        rates[s] = 100.0
    cj_of_matrix = memory[bdf.CJ] if fresh else memory[bdf.CJ_OF_MATRIX]
    status, converged, rates[s], evaluations = newton.iterate(
        B, context, t, memory[bdf.CJ], cj_of_matrix, kinds[s], rates[s], int(memory[bdf.MAX_ITERATIONS])
    )
    counts[run.NFEV] += evaluations
    for i in range(B.size):
        P.y[at + i], P.y[P.size + at + i] = B.y[i], B.y[B.size + i]
    return status, converged


@njit(cache=True)
def _correct(P, memory, context, counts, t):
    """All iterations at the end of a step, with new matrices if there are none or the old ones fail; returns
    (status, converged).
    """
    while True:
        bdf._predict(P, memory, context, t, counts[bdf.ORDER])
        fresh, status, converged = counts[bdf.HAVE_MATRIX] == 0, OK, True
        for s in range(int(memory[ACTIVE])):
            status, converged = _solve(P, memory, context, counts, t, s, fresh)
            if status != OK or not converged:
                break
        if fresh:
            counts[bdf.NJEV] += 1
            counts[bdf.HAVE_MATRIX], memory[bdf.CJ_OF_MATRIX] = 1, memory[bdf.CJ]
        if status != OK or not converged:
            counts[bdf.HAVE_MATRIX] = 0
        if converged or status != OK or fresh:
            return status, converged


@njit(cache=True)
def _difference(P, memory):
    """Distance of the last two iterations, as the explicit methods measure it."""
    size = int(memory[STATE])
    one = size + int(memory[CARRIED])
    return (
        sequential.difference(P.y, shift(P.y, one), P.atol, P.rtol, size, int(memory[INDEX]) - 1)
        if memory[ACTIVE] > 1.0
        else math.inf
    )


@njit(cache=True)
def _add(P, memory):
    """One more iteration, with the history of the last one; as the last one, it stands first."""
    one, active = int(memory[STATE] + memory[CARRIED]), int(memory[ACTIVE])
    old, new = active * one, (active + 1) * one
    for j in range(bdf.MOST + 2, -1, -1):
        for i in range(old - 1, -1, -1):
            P.phi[j * new + one + i] = P.phi[j * old + i]
        for i in range(one):
            P.phi[j * new + i] = P.phi[j * new + one + i]
    memory[ACTIVE], memory[bdf.UNKNOWNS] = active + 1.0, new


@njit(cache=True)
def _begin_anew(P, memory, t):
    """From the last iteration with its y as y₀, a quarter of ε and two iterations."""
    size, carried, eps, y0 = int(memory[STATE]), int(memory[CARRIED]), part(memory, EPS), part(memory, Y0)
    one = size + carried
    y0[0], y0[1] = t, 0.0
    for i in range(carried):
        y0[2 + i], y0[2 + carried + i], y0[2 + 2 * carried + i] = P.phi[size + i], 0.0, 0.0
    active = min(2, int(memory[MOST]))
    for j in range(bdf.MOST + 3):
        for i in range(one):
            value = P.phi[j * P.size + i]
            for place in range(active):
                P.phi[j * active * one + place * one + i] = value
    for s in range(int(memory[MOST])):
        eps[s] *= 0.25
    memory[ACTIVE], memory[bdf.UNKNOWNS], memory[BEFORE], memory[run.H] = (
        active,
        active * one,
        0.0,
        0.25 * memory[run.H],
    )


@njit(cache=True)
def _derivatives(P, memory, context, t):
    """x_s′ and y_s of all iterations where they stand; returns a status."""
    size, carried, out = int(memory[STATE]), int(memory[CARRIED]), part(memory, OUT)
    for s in range(int(memory[ACTIVE])):
        _previous(P, memory, t, s, P.block)
        at = (int(memory[ACTIVE]) - 1 - s) * (size + carried)
        status = call(int(memory[RATE]), t, shift(P.y, at), P.block, context, out)
        if status != OK:
            return status
        for i in range(size):
            P.y[P.size + at + i] = out[i]
        for i in range(carried):
            P.y[at + size + i], P.y[P.size + at + size + i] = out[size + i], 0.0
    return OK


@njit(cache=True)
def _start(P, memory, context, counts):
    """Order one, from derivatives that are new: at the beginning, and again after a switch."""
    status = _derivatives(P, memory, context, memory[run.T])
    if status != OK:
        return (
            run.USER_FUNCTION_FAILED
            if status == RAISED
            else run.STOPPED
            if status == INTERRUPTED
            else run.CANNOT_START
        )
    bdf._start(P, memory, counts)
    for i in range(int(memory[STATE])):
        part(memory, RATE_OLD)[i] = P.y[P.size + i]
    return OK


@njit(cache=True)
def _is_impasse(P, memory, context, t):
    """As for the explicit methods, after a step."""
    size, out, s = int(memory[STATE]), part(memory, OUT), int(memory[ACTIVE]) - 1
    _previous(P, memory, t, s, P.block)
    if call(int(memory[RATE]), t, P.y, P.block, context, out) != OK:
        return False
    memory[VIOLATION] = out[size + int(memory[CARRIED])]
    first = size // 2 if memory[INDEX] > 2.0 else 0
    memory[LARGEST], memory[FASTEST], impasse = sequential.suddenly_violated(
        P.y,
        out,
        first,
        size,
        memory[VIOLATION],
        P.atol[first],
        memory[LARGEST],
        memory[FASTEST],
        part(memory, EPS)[s],
    )
    return impasse


@njit(cache=True, nogil=True)
def advance(memory_array, context_array, counts, points, steps, rejections, found, t_eval):
    """Integrate until something has to be told; see :mod:`holonome.integrators.loop`."""
    memory, context = pointer(memory_array), pointer(context_array)
    P = bdf._parts(memory)
    constant, automatic = memory[bdf.CONSTANT_STEP] > 0.0, memory[AUTOMATIC] > 0.0
    if counts[run.STATE] == run.START:
        code = _start(P, memory, context, counts)
        if code != OK:
            return code
        if (
            counts[run.EVENTS] > 0
            and call(
                int(memory[run.EVENT_KERNEL]),
                memory[run.T],
                part(memory, run.Y),
                P.y,
                context,
                part(memory, run.EVENT_OLD),
            )
            != OK
        ):
            return run.USER_FUNCTION_FAILED
        run.watch_start(memory, context, P.y)
        counts[run.STATE] = run.STEPPING
    while True:
        if counts[run.STATE] != run.STEPPING:
            leave, code = run.tell(memory, context, counts, points, t_eval)
            if leave:
                return code
            counts[run.STATE] = run.STEPPING
        code = run.another_step(counts, steps, rejections, found)
        if code != run.DONE:
            return code
        if run.at_switch(memory, counts):
            run.pass_switch(memory, counts)
            code = _start(P, memory, context, counts)
            if code != OK:
                return code
        t, h = memory[run.T], bdf._fit_end(memory, counts)
        if t + h == t:
            return run.STEP_TOO_SMALL
        k, repeated = counts[bdf.ORDER], counts[bdf.NS]
        bdf._coefficients(P, memory, counts, h)
        status, converged = _correct(P, memory, context, counts, t + h)
        if status == INTERRUPTED:
            return run.STOPPED
        size_of_e, terk, terkm1, erkm1, order_new, estimate = math.inf, 0.0, 0.0, 0.0, k, math.inf
        if converged:
            size_of_e, terk, terkm1, erkm1, order_new, estimate = bdf._estimate(P, k)
        error = memory[bdf.CK] * size_of_e
        if not converged or not (error <= 1.0 or (constant and error - error == 0.0)):
            if bdf._reject(
                P, memory, counts, rejections, t, h, error, status, converged, order_new, estimate
            ):
                return run.STEP_TOO_SMALL
            continue
        memory[DIFFERENCE] = _difference(P, memory)
        if automatic and memory[DIFFERENCE] > SETTLED:
            helps = memory[ACTIVE] < memory[MOST] and (
                memory[BEFORE] == 0.0 or memory[DIFFERENCE] < HELPS * memory[BEFORE]
            )
            astray = memory[DIFFERENCE] > (ASTRAY[0] if memory[AUTOMATIC] > 1.0 else ASTRAY[1])
            if helps or astray:
                bdf._restore(P, memory, counts, h)
                counts[bdf.NS], counts[bdf.HAVE_MATRIX] = repeated, 0
                if helps:
                    memory[BEFORE] = memory[DIFFERENCE]
                    _add(P, memory)
                elif memory[AUTOMATIC] < 2.0 or memory[RESTARTS] >= MOST_RESTARTS:
                    return run.STEP_TOO_SMALL
                else:
                    memory[RESTARTS] += 1.0
                    _begin_anew(P, memory, t)
                P = bdf._parts(memory)
                bdf._set_weights(P)
                continue
        memory[BEFORE] = 0.0
        if memory[IMPASSE] >= 0.0 and _is_impasse(P, memory, context, t + h):
            memory[IMPASSE] = 1.0
            return run.STEP_TOO_SMALL
        counts[bdf.NEWTON_IN_STEP], rate_old = int(memory[ACTIVE]), part(memory, RATE_OLD)
        bdf._accept(P, memory, counts, steps, t, h, error, order_new, estimate, terk, terkm1, erkm1)
        run.watch(memory, context, counts, found, part(memory, run.Y_OLD), rate_old, P.y, shift(P.y, P.size))
        for i in range(int(memory[STATE])):
            rate_old[i] = P.y[P.size + i]
        code = run.look_for_events(memory, context, counts, found)
        if code != run.DONE:
            return code
