"""The projection onto the manifold of constraints and invariants, (2.5) of Eich 1993, for the steps of BDF
and for dense output.

    y ← y − H⁺ φ(y) + (I − H⁺H)(ŷ − y)

φ collects g(t, q), w(t, q, v) and invariants, H = φ′.  The second term, of second order in the distance to
the manifold, makes the result the nearest point; the *relaxed* projection omits it and keeps an old
factorization of H as long as it converges fast (section 4.2).  Runge–Kutta methods project in the same way,
with a kernel that also evaluates the accelerations (:mod:`holonome.integrators.runge_kutta_steps`); all judge
the corrections alike (`add_correction`, `has_converged`).
"""

from __future__ import annotations

import math
from collections import namedtuple

import casadi as ca
from numba import njit

from holonome.dynamics.kernels import kernels
from holonome.dynamics.manifold import PIVOT_MARGIN, Manifold, smallest_pivot
from holonome.dynamics.parts import error_in
from holonome.dynamics.sparse_saddle import sparse_onto
from holonome.machine.calls import call, pointer, shift
from holonome.machine.context import OK, SINGULAR
from holonome.problem.system import System

ROUNDING, LARGEST_CORRECTION, MOST_CORRECTIONS = 1e-15, 0.3, 8
"""Corrections relative to the largest position and velocity: what is rounding, what is too far."""
_USUAL = 10.0
"""κ, where it is not measured: a correction δ leaves about κ δ²."""
_NEAREST, _MOST_STEPS = 1e-14, 100
_SLOW = 0.02
"""A rate of convergence above this calls for a new factorization."""


@njit(cache=True, error_model="numpy")
def add_correction(y, d, n, size, scale_q, scale_v, span):
    """Add d to y; its size relative to the largest position and velocity (NaN if it is not finite), and these
    two, which are not below those given.  A velocity that would not move anything in the whole run counts
    as rest.
    """
    largest_q, largest_v, total = 0.0, 0.0, 0.0
    for i in range(n):
        scale_q = max(scale_q, abs(y[i]))
        largest_q = max(largest_q, abs(d[i]))
        total += d[i]
        y[i] += d[i]
    scale_v = max(scale_v, scale_q / span if span > 0.0 else 0.0, 1e-300)
    for i in range(n, size):
        scale_v = max(scale_v, abs(y[i]))
        largest_v = max(largest_v, abs(d[i]))
        total += d[i]
        y[i] += d[i]
    if total - total != 0.0:
        return math.nan, scale_q, scale_v
    return max(largest_q / max(scale_q, 1e-300), largest_v / scale_v), scale_q, scale_v


@njit(cache=True, inline="always")
def has_converged(correction, previous, kappa):
    """Whether the next correction would be rounding, as Newton's method converges quadratically, or the last
    one was.
    """
    return kappa * correction * correction <= ROUNDING or (correction < 1e-7 and correction > 0.1 * previous)


class ProjectionKernels:
    """Kernels of the projection in one metric, with y = (q, v, s):

    projection    z = e, out = ((I − H⁺H) e, −H⁺φ)

    and, for the relaxed one,

    factors       out = the factorization, as many numbers as ``size``
    repeated      z = (factorization, e), out as above
    """

    def __init__(self, system: System, metric: str, relaxed: bool) -> None:
        model = system.model
        self.factors = self.repeated = self.size = 0
        if kernels(system).sparse and metric == "mass" and not relaxed:
            self.projection = sparse_onto.address
            return
        W = model.M if metric == "mass" else ca.SX.eye(model.n)
        factors = ca.ldl(W)
        manifold, e = Manifold(model, factors), ca.SX.sym("e", model.y.numel())
        margin = ca.fmin(smallest_pivot(ca.diag(W), factors) - PIVOT_MARGIN, manifold.margin())

        def kernel(name: str, z: ca.SX, out: ca.SX, margin: ca.SX | None) -> int:
            return system.kernel(
                f"projection {metric}: {name}", lambda model: (model.y, z, ca.densify(out), margin)
            ).address

        both = ca.vertcat(manifold.tangential(e), manifold.correction())
        self.projection = kernel("projection", e, both, margin)
        if relaxed:
            old = ca.SX.sym("old", manifold.kept.numel())
            again = manifold.with_kept(old)
            both = ca.vertcat(again.tangential(e), again.correction())
            self.size = old.numel()
            self.factors = kernel("factors", ca.SX(0, 1), manifold.kept, margin)
            self.repeated = kernel("repeated", ca.vertcat(old, e), both, None)


def projection_kernels(system: System, metric: str, relaxed: bool) -> ProjectionKernels:
    """The kernels of a system, created once."""
    key = ("projection", metric, relaxed)
    return system.compiled.once(key, lambda: ProjectionKernels(system, metric, relaxed))


Projector = namedtuple(
    "Projector",
    "n state span projection factors repeated dense size z out dense_out kept",
)
"""Kernels of a projection, and memory: ``z`` for (factorization, e), ``out`` for the result, and
``dense_out`` for that of the dense fallback.

``factors`` is zero unless relaxed; ``kept`` holds whether there is a factorization, and its rate of
convergence.
"""


@njit(cache=True)
def _correction(J, t, y, context, fresh):
    """Write ((I − H⁺H) e, −H⁺φ) for the e that follows the factorization, which is renewed if ``fresh``."""
    size, e = J.state, shift(J.z, J.size)
    status = OK
    if J.factors != 0:
        if fresh:
            status = call(J.factors, t, y, y, context, J.z)
            J.kept[0], J.kept[1] = (1.0 if status == OK else 0.0), 0.0
        if status == OK:
            return call(J.repeated, t, y, J.z, context, J.out)
    elif J.projection != 0:
        status = call(J.projection, t, y, e, context, J.out)
    if status == SINGULAR or J.projection == 0:
        e[size] = 0.0
        status = call(J.dense, t, y, e, context, J.dense_out)
        error = error_in(J.dense_out, size)
        for i in range(2 * size):
            J.out[i] = error[i]
    return status


@njit(cache=True)
def project(J, context, t, y, e, moved):
    """Replace y by its projection and the error vector e by its tangential part; ``moved`` ← δ.

    Returns a status.
    """
    size, target, step = J.state, shift(J.z, J.size), shift(J.out, J.state)
    for i in range(size):
        target[i], moved[i] = e[i], 0.0
    relaxed = J.factors != 0
    fresh, previous = not (relaxed and J.kept[0] > 0.0 and J.kept[1] < _SLOW), math.inf
    for iteration in range(MOST_CORRECTIONS):
        status = _correction(J, t, y, context, fresh)
        if status != OK:
            return status
        for i in range(size):
            if iteration == 0:
                e[i] = J.out[i]
            elif not relaxed:
                step[i] += J.out[i]
            moved[i] += step[i]
            target[i] = -moved[i]
        correction, _, _ = add_correction(y, step, J.n, size, 0.0, 0.0, J.span)
        if not correction < LARGEST_CORRECTION:
            return SINGULAR
        if relaxed and iteration == 1:
            J.kept[1] = max(J.kept[1], correction / previous)
        if fresh and has_converged(correction, previous, _USUAL):
            return OK
        if not fresh and (correction * _SLOW <= ROUNDING or 0.5 * previous < correction < 1e-7):
            return OK
        fresh = not relaxed or J.kept[1] >= _SLOW
        previous = correction
    return OK


@njit(cache=True)
def nearest_point(kernel, offset, n, t, first, context_array, work, y_array, far):
    """Bring y from ``first`` to the nearest point on the manifold; a status, SINGULAR where that does not
    converge or a first correction of q is larger than ``far``, relative to q.

    The kernel writes ((I − H⁺H) e, −H⁺φ) at the offset into ``work``, behind which there is room for e.
    """
    y, out, size, before = pointer(y_array), pointer(work), len(first), math.inf
    e, step = shift(out, len(work) - size - 2), shift(out, offset + size)
    for _ in range(_MOST_STEPS):
        for i in range(size):
            e[i] = first[i] - y[i]
        status = call(kernel, t, y, e, pointer(context_array), out)
        if status != OK:
            return status
        largest, scale = 0.0, 0.0
        for i in range(size):
            step[i] += out[offset + i]
        for i in range(n):
            largest, scale = max(largest, abs(step[i])), max(scale, abs(y[i]))
        correction, _, _ = add_correction(y, step, n, size, 0.0, 0.0, 0.0)
        if correction != correction or largest > far * scale:
            return SINGULAR
        if correction <= _NEAREST or 0.5 * before < correction <= 1e-9:
            return OK
        before = correction
    return SINGULAR
