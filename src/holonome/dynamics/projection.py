"""The projection onto the manifold of constraints and invariants, (2.5) of Eich 1993, for steps of BDF and for the
solution between them.

    y ← y − H⁺ φ(y) + (I − H⁺H)(ŷ − y)

φ collects g(t, q), w(t, q, v) and invariants, H = φ′.  The second term, of second order in the distance to the manifold,
makes it the nearest point; the *relaxed* projection leaves it out and keeps an old factorization of H as long as that
converges well (section 4.2).
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
_ITERATIONS, _ROUNDING, _SLOW = 8, 1e-8, 0.02
"""After a correction smaller than the second number, relative to the state, the next would be at rounding
level; a rate above the third asks for a new factorization.
"""


class ProjectionKernels:
    """Kernels of the projection in one metric, with y = (q, v, s):

    projection    z = e, out = ((I − H⁺H) e, −H⁺φ)

    and, for the relaxed one,

    factors       out = the factorization, as many numbers as ``size``
    repeated      z = (factorization, e), out as above
    """

    def __init__(self, system: System, metric: str, relaxed: bool) -> None:
        model = system.model
        if kernels(system).sparse and metric == "mass" and not relaxed:
            self.projection, self.factors, self.repeated, self.size = sparse_onto.address, 0, 0, 0
            return
        W = model.M if metric == "mass" else ca.SX.eye(model.n)
        factors = ca.ldl(W)
        manifold, e = Manifold(model, factors), ca.SX.sym("e", model.y.numel())
        margin = ca.fmin(smallest_pivot(ca.diag(W), factors) - PIVOT_MARGIN, manifold.margin())

        def kernel(name: str, z: ca.SX, out: ca.SX, margin: ca.SX | None) -> int:
            return system.kernel(
                f"projection {metric}: {name}", lambda model: (model.y, z, ca.densify(out), margin)
            ).address

        self.projection, self.factors, self.repeated, self.size = (
            kernel("projection", e, ca.vertcat(manifold.tangential(e), manifold.correction()), margin),
            0,
            0,
            0,
        )
        if relaxed:
            old = ca.SX.sym("old", manifold.kept.numel())
            again = manifold.with_kept(old)
            self.size, self.factors = old.numel(), kernel("factors", ca.SX(0, 1), manifold.kept, margin)
            self.repeated = kernel(
                "repeated", ca.vertcat(old, e), ca.vertcat(again.tangential(e), again.correction()), None
            )


def projection_kernels(system: System, metric: str, relaxed: bool) -> ProjectionKernels:
    """Made once for a system."""
    key = ("projection", metric, relaxed)
    return system.compiled.once(key, lambda: ProjectionKernels(system, metric, relaxed))


class Projector(NamedTuple):
    """What a projection works with: kernels, and memory for (factorization, e), for their result, and for
    that of the dense twin.

    ``factors`` is zero unless relaxed; ``kept`` tells whether a factorization is there, and the rate at which
    it converged.
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
    """((I − H⁺H) e, −H⁺φ) at a point, for the e behind the factorization; with a new factorization or the old one."""
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
    """Replace y by its projection; e ← what that leaves of an error vector; ``moved`` ← δ.  Returns a status."""
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
    """The nearest point, for the solution between steps."""
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
