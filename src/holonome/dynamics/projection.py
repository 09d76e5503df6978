"""The projection onto the manifold of constraints and invariants, (2.5) of Eich 1993, for the steps of BDF
and for dense output.

    y ← y − H⁺ φ(y) + (I − H⁺H)(ŷ − y)

φ collects g(t, q), w(t, q, v) and invariants, H = φ′.  The second term, of second order in the distance to
the manifold, makes the result the nearest point; the *relaxed* projection omits it and keeps an old
factorization of H as long as it converges fast (section 4.2).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import casadi as ca
from numba import njit

from holonome.dynamics.kernels import kernels
from holonome.dynamics.manifold import PIVOT_MARGIN, Manifold, smallest_pivot
from holonome.dynamics.parts import error_in
from holonome.dynamics.sparse_saddle import sparse_onto
from holonome.machine.calls import call, shift
from holonome.machine.context import OK, SINGULAR
from holonome.problem.system import System

METRICS = ("mass", "euclidean")
_ITERATIONS = 8
_ROUNDING = 1e-8
"""After a correction smaller than this, relative to the state, the next would be at rounding level."""
_SLOW = 0.02
"""A rate of convergence above this calls for a new factorization."""


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


class Projector(NamedTuple):
    """Kernels of a projection, and memory: ``z`` for (factorization, e), ``out`` for the result, and
    ``dense_out`` for that of the dense fallback.

    ``factors`` is zero unless relaxed; ``kept`` holds whether there is a factorization, and its rate of
    convergence.
    """

    n: int
    state: int
    projection: int
    factors: int
    repeated: int
    dense: int
    size: int
    z: Any
    out: Any
    dense_out: Any
    kept: Any


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
    size, wish = J.state, shift(J.z, J.size)
    for i in range(size):
        wish[i], moved[i] = e[i], 0.0
    relaxed = J.factors != 0
    fresh, previous = not (relaxed and J.kept[0] > 0.0 and J.kept[1] < _SLOW), math.inf
    for iteration in range(_ITERATIONS):
        status = _correction(J, t, y, context, fresh)
        if status != OK:
            return status
        largest, scale = 0.0, 1e-300
        for i in range(size):
            step = J.out[size + i]
            if iteration == 0:
                e[i] = J.out[i]
            elif not relaxed:
                step += J.out[i]
            scale, largest = max(scale, abs(y[i])), max(largest, abs(step))
            y[i] += step
            moved[i] += step
            wish[i] = -moved[i]
        if not largest < 0.3 * scale:
            return SINGULAR
        if relaxed and iteration > 0:
            J.kept[1] = max(J.kept[1], largest / previous) if iteration == 1 else J.kept[1]
        rounding = _ROUNDING if fresh else 1e-15 / max(J.kept[1], 1e-3)
        if largest <= rounding * scale or (iteration > 1 and largest > 0.5 * previous):
            return OK
        fresh = not relaxed or J.kept[1] >= _SLOW
        previous = largest
    return OK


@njit(cache=True)
def onto_manifold(J, context, t, y):
    """Replace y by the nearest point of the manifold, for dense output."""
    size, e = J.state, shift(J.z, J.size)
    for i in range(size):
        e[i] = 0.0
    for _ in range(4):
        status = _correction(J, t, y, context, True)
        if status != OK:
            return status
        largest, scale = 0.0, 1e-300
        for i in range(size):
            scale = max(scale, abs(y[i]))
            largest = max(largest, abs(J.out[size + i]))
            y[i] += J.out[size + i]
        if largest <= 1e-9 * scale:
            return OK
    return OK
