"""BDF for sequential regularization with an ε of any size: the iterations x_1 … x_S on one mesh, with one
order.

    for each step:  for s = 1 … S:  Newton's method for (x_s, y_s) at the end of the step, where y_{s−1} is
    known

Together that is one step of BDF for all of them as one system, whose Newton matrix is block triangular.  The
history is that of :mod:`holonome.integrators.bdf_steps`, with the last iteration first, so that its
interpolant and its rows of the history are those of x_S, y_S.  y_s belongs to the unknowns, so that it is
interpolated as they are.

Where the number of iterations is not given, one is added as in :mod:`holonome.integrators.sequential_steps`;
it inherits the history of the last one.
"""

import math
from collections import namedtuple

from numba import njit

from holonome.integrators import bdf_steps, dassl, loop, newton, sequence
from holonome.integrators.bdf_steps import BDFState
from holonome.integrators.dassl import MOST
from holonome.integrators.loop import OWN, leave, watch_between
from holonome.integrators.residual_steps import outcome_of
from holonome.integrators.residual_steps import propose as propose
from holonome.integrators.sequence import SequenceState, y0_at
from holonome.machine.calls import call, shift
from holonome.machine.context import OK
from holonome.machine.layout import Layout, Vector, Whole, replaced


class SequentialBDFState(Layout):
    """What one Newton iteration after the other needs."""

    factor_room: Whole  # numbers of the memory of one factorization
    dense_room: Whole  # numbers of one dense matrix
    work: Vector  # (x_s, y_s) and their derivatives
    rates: Vector  # S of Newton's convergence test, for each iteration
    kinds: Vector  # which factorization is in place, for each
    rate_old: Vector  # x_S′ before the last step


_named_sequence, _named = SequenceState.named(), SequentialBDFState.named()
_SECOND = OWN + BDFState.words
_THIRD = _SECOND + SequenceState.words


@njit(cache=True)
def _sequence(w):
    return _named_sequence(shift(w.memory, _SECOND))


@njit(cache=True)
def _own(w):
    return _named(shift(w.memory, _THIRD))


_Alone = namedtuple(
    "_Alone",
    "size error_count newton_count multipliers tolerances y error_weights newton_weights e factors dense "
    "pivots",
)
"""What one iteration has for itself."""


@njit(cache=True)
def _alone(w, s, place):
    """The memory of BDF for iteration s alone, which stands at this place of the history."""
    q, o = _sequence(w), _own(w)
    one, tested = q.state + q.carried, float(q.state)
    at = place * one
    own = _Alone(
        one,
        tested,
        tested,
        0,
        1 + q.carried,
        o.work,
        shift(w.error_weights, at),
        shift(w.newton_weights, at),
        shift(w.e, at),
        shift(w.factors, s * o.factor_room),
        shift(w.dense, s * o.dense_room),
        shift(w.pivots, s * one),
    )
    return replaced(w, own)


@njit(cache=True)
def _previous(w, t, s, target):
    """ε and y_{s−1} at the time t, for a kernel: y₀(t), or what the iteration before has just found."""
    q = _sequence(w)
    place = q.active - s  # of iteration s − 1
    y = y0_at(q, t) if s == 0 else shift(w.y, place * (q.state + q.carried) + q.state)
    target[0] = q.eps[s]
    for i in range(q.carried):
        target[1 + i] = y[i]


@njit(cache=True)
def _solve(w, context, t, s, fresh):
    """Newton's method for one iteration; returns (status, converged)."""
    place = _sequence(w).active - 1 - s
    b, o = _alone(w, s, place), _own(w)
    at, rates, kinds = place * b.size, o.rates, o.kinds
    for i in range(b.size):
        b.y[i] = w.y[at + i]
        b.y[b.size + i] = w.y[w.size + at + i]
    _previous(w, t, s, shift(b.block, 1))
    if fresh:
        status, kinds[s] = newton.evaluate_matrix(b, context, t, w.s.cj)
        rates[s] = 100.0
        if status != OK:
            return status, False
    if w.s.cj != w.s.cj_last:
        rates[s] = 100.0
    cj_of_matrix = w.s.cj if fresh else w.s.cj_of_matrix
    status, converged, rates[s], evaluations = newton.iterate(
        b, context, t, w.s.cj, cj_of_matrix, int(kinds[s]), rates[s], w.s.max_iterations
    )
    w.run.nfev += evaluations
    for i in range(b.size):
        w.y[at + i] = b.y[i]
        w.y[w.size + at + i] = b.y[b.size + i]
    return status, converged


@njit(cache=True)
def _correct(w, context, t):
    """All iterations at the end of a step, with new matrices if there are none or the old ones fail.

    Returns (status, converged).
    """
    while True:
        dassl.predict(w, context, t, w.s.order)
        fresh, status, converged = w.s.have_matrix == 0, OK, True
        for s in range(_sequence(w).active):
            status, converged = _solve(w, context, t, s, fresh)
            if status != OK or not converged:
                break
        if fresh:
            w.s.njev += 1
            w.s.have_matrix = 1
            w.s.cj_of_matrix = w.s.cj
        if status != OK or not converged:
            w.s.have_matrix = 0
        if converged or status != OK or fresh:
            return status, converged


@njit(cache=True)
def _set_active(w, active):
    """Go on with so many iterations, of which the tests see x."""
    q, s = _sequence(w), w.s
    q.active = active
    s.unknowns = active * (q.state + q.carried)
    s.error_count = active * q.state
    s.newton_count = active * q.state


@njit(cache=True)
def _add(w):
    """One more iteration, with the history of the last one; as the last one, it stands first."""
    q = _sequence(w)
    one = q.state + q.carried
    old, new = q.active * one, (q.active + 1) * one
    for j in range(MOST + 2, -1, -1):
        for i in range(old - 1, -1, -1):
            w.phi[j * new + one + i] = w.phi[j * old + i]
        for i in range(one):
            w.phi[j * new + i] = w.phi[j * new + one + i]
    _set_active(w, q.active + 1)


@njit(cache=True)
def _restart(w, t):
    """Restart from the last iteration with its y as y₀, ε/4 and two iterations."""
    q = _sequence(w)
    one = q.state + q.carried
    q.restarts += 1
    q.y0_time = t
    q.y0_rate = 0.0
    for i in range(q.carried):
        q.y0[i] = w.phi[q.state + i]
        q.y0_slope[i] = 0.0
        q.y0_bend[i] = 0.0
    active = min(2, q.most)
    for j in range(MOST + 3):
        for i in range(one):
            value = w.phi[j * w.size + i]
            for place in range(active):
                w.phi[j * active * one + place * one + i] = value
    for s in range(q.most):
        q.eps[s] *= 0.25
    q.before = 0.0
    _set_active(w, active)
    w.run.h *= 0.25


@njit(cache=True)
def _derivatives(w, context, t):
    """x_s′ and y_s of all iterations at the current time; returns a status."""
    q = _sequence(w)
    size, carried, out = q.state, q.carried, q.out
    for s in range(q.active):
        _previous(w, t, s, w.block)
        at = (q.active - 1 - s) * (size + carried)
        status = call(q.rate, t, shift(w.y, at), w.block, context, out)
        if status != OK:
            return status
        for i in range(size):
            w.y[w.size + at + i] = out[i]
        for i in range(carried):
            w.y[at + size + i] = out[size + i]
            w.y[w.size + at + size + i] = 0.0
    return OK


@njit(cache=True)
def begin(w, context):
    """Start at order one with newly evaluated derivatives: at the beginning, and after a switch."""
    status = _derivatives(w, context, w.run.t)
    if status != OK:
        return loop.code_of(status)
    dassl.start(w)
    settle(w)
    return OK


@njit(cache=True)
def _is_impasse(w, context, t):
    """The same test as for explicit methods, after a step."""
    q = _sequence(w)
    s = q.active - 1
    _previous(w, t, s, w.block)
    if call(q.rate, t, w.y, w.block, context, q.out) != OK:
        return False
    q.violation = q.out[q.state + q.carried]
    first = q.coordinates if q.index > 2 else 0
    return sequence.is_impasse(q, w.y, q.out, w.atol[first], q.eps[s])


@njit(cache=True)
def _add_or_restart(w, t, h, repeated):
    """Where the last two iterations differ, add one or restart all; ACCEPTED if neither is needed."""
    q = _sequence(w)
    helps = sequence.another_helps(q)
    if not helps and not sequence.eps_is_too_large(q):
        return loop.ACCEPTED
    dassl.restore(w, h)
    w.s.ns = repeated
    w.s.have_matrix = 0
    if helps:
        q.before = q.difference
        _add(w)
    elif not sequence.may_restart(q):
        return leave(w, loop.STEP_TOO_SMALL)
    else:
        _restart(w, t)
    dassl.set_weights(bdf_steps.parts(w.memory))
    return loop.REPEAT


@njit(cache=True)
def attempt(w, context, t, h):
    """A step of all iterations; where they have not converged, again with one more or a smaller ε."""
    s, q = w.s, _sequence(w)
    k, repeated = s.order, s.ns
    dassl.coefficients(w, h)
    status, converged = _correct(w, context, t + h)
    s.order_new = k
    s.estimate = math.inf
    s.converged = converged
    size_of_e = dassl.estimate(w, k) if converged else math.inf
    outcome = outcome_of(w, status, s.ck * size_of_e)
    if outcome != loop.ACCEPTED:
        return outcome
    q.difference = math.inf
    if q.active > 1:
        q.difference = sequence.difference(q, w.y, shift(w.y, q.state + q.carried), w.atol, w.rtol)
    if q.automatic and q.difference > sequence.CONVERGED:
        outcome = _add_or_restart(w, t, h, repeated)
        if outcome != loop.ACCEPTED:
            return outcome
    q.before = 0.0
    if q.watches_impasse:
        q.impasse = _is_impasse(w, context, t + h)
        if q.impasse:
            return leave(w, loop.STEP_TOO_SMALL)
    w.run.iterations = q.active
    return loop.ACCEPTED


@njit(cache=True)
def watch(w, context, found):
    watch_between(w, context, found, w.run.y_old, _own(w).rate_old, w.y, shift(w.y, w.size))


@njit(cache=True)
def settle(w):
    sequence.copy(shift(w.y, w.size), _own(w).rate_old, _sequence(w).state)


parts, reject, accept = bdf_steps.parts, bdf_steps.reject, bdf_steps.accept
resume = begin
advance = loop.advance_with(globals())
