"""The underlying ordinary differential equation, (1.7) of Eich 1993, with what a step needs to return to the
manifold.

    q′ = v,     v′ = a   from   M a + Cᵀ λ = f,   C a = −γ

M = LDLᵀ and S = C M⁻¹ Cᵀ = L′D′L′ᵀ are definite for a regular system, so neither needs pivoting and the whole
solution is emitted as straight-line sparse code.  The pivots D and D′ tell when that is no longer safe: the
kernel then returns SINGULAR, and its dense twin, a rank-revealing factorization
(:mod:`holonome.algebra.saddle_point`), does the same job.  Large systems are factored by compiled loops
instead (:mod:`holonome.dynamics.sparse_saddle`).

Kernels, with y = (q, v):

    derivative      out = (v, a)
    landing         z = (e, c), out = (v, a, P(e + c (v, a)), δ, ρ, σ)
    multipliers     out = λ
    residuals       out = (g, w)
    energy          out = T + V
    pieces          out = (M, C, D, f, γ, g, w), for the dense twins

``landing`` is everything the end of a step asks for with one factorization.  δ = (δq, δv) is a Newton step,
in the metric of M, for g(q) = 0 and w(q, v) = 0 together: G δq = −g, C δv = −w − D δq.  P removes from an
error vector what that projection will remove (Eich, section 4.1): G e_q = 0, C e_v + D e_q = 0. ρ is the
largest distance, on the position and on the velocity level, by which rows that depend on others miss their
linearised equation: zero for a regular system. σ tells when the rank is about to fall
(:mod:`holonome.integrators.rank_watch`): the least pivot of S relative to its diagonal entry, and these
entries.
"""

from __future__ import annotations

from itertools import pairwise

import casadi as ca
import numpy as np
from numba import njit

from holonome.algebra import saddle_point as sp
from holonome.dynamics.manifold import PIVOT_MARGIN, Manifold, smallest_pivot
from holonome.dynamics.reduction import reduced_accelerations
from holonome.dynamics.sparse_saddle import (
    SparseSaddle,
    scattered_pieces,
    sparse_derivative,
    sparse_landing,
    sparse_multipliers,
)
from holonome.equations.model import Model
from holonome.machine.calls import NativeKernel, call, carray, pointer, run_kernel, shift
from holonome.machine.compiled import made_once
from holonome.machine.context import (
    COORDINATES,
    DENSE_CALLS,
    LEFT_OUT,
    OK,
    PARAMETERS,
    PIECES,
    POSITION_ROWS,
    RANK,
    ROWS,
    SINGULAR,
    SPARSE,
    WORK,
)
from holonome.problem.system import System

EMITTED_UP_TO = 100
"""Coordinates and constraints.  Of larger systems only the nonzeros are emitted: code of an elimination is
two to four times as fast as the loops, but takes seconds to derive.
"""

LARGEST_DENSE = 5000
"""Coordinates and constraints beyond which there is no memory for the dense twins."""

_COPIED = 4096
"""Numbers that are copied rather than left to be cleared when they are first touched."""

LARGEST_ELIMINATION = 1_000_000
"""Multiplications.  Emitting an elimination beyond this takes longer than a run with a dense one."""


class Emitted:
    """The expressions shared by the kernels of one model."""

    def __init__(self, model: Model, alpha: float = 0.0, beta: float = 0.0) -> None:
        self.model = model
        factors = ca.ldl(model.M)
        Mif = ca.ldl_solve(model.f, *factors)
        self.manifold = Manifold(model, factors)
        saddle = self.manifold.all
        level = (
            model.gamma
            + 2 * alpha * model.w
            + beta**2 * ca.vertcat(model.g, ca.SX(model.rows - model.position_rows, 1))
        )
        self.a, self.lam = saddle.solve(Mif, -level)
        if model.lam.numel():
            self.a, self.lam = Mif - saddle.WiCt @ model.lam, model.lam
        self.margin = ca.fmin(
            smallest_pivot(ca.diag(model.M), factors) - PIVOT_MARGIN, self.manifold.margin()
        )
        self._level = level

    def derivative(self, model: Model):
        """The accelerations alone, in the way that takes fewer instructions."""
        a, margin = self.a, self.margin
        reduced = (
            None
            if model.lam.numel()
            else reduced_accelerations(model.M, self.manifold.all, model.f, -self._level)
        )
        if reduced is not None and instructions(reduced[0]) < instructions(a):
            a, margin = reduced
        return model.y, ca.SX(0, 1), ca.densify(ca.vertcat(model.v, a)), margin

    def multipliers(self, model: Model):
        return model.y, ca.SX(0, 1), ca.densify(self.lam), self.margin

    def landing(self, model: Model):
        n = model.n
        z = ca.SX.sym("z", 2 * n + 1)
        velocity = ca.vertcat(model.v, self.a)
        error = self.manifold.tangential(z[: 2 * n] + z[2 * n] * velocity)
        return (
            model.y,
            z,
            ca.densify(
                ca.vertcat(
                    velocity, error, self.manifold.correction(), ca.SX(2, 1), self.manifold.all.lengths()
                )
            ),
            self.margin,
        )


def instructions(expression: ca.SX) -> int:
    """Length of the code for an expression."""
    return ca.Function("length", ca.symvar(expression), [expression], {"cse": True}).n_instructions()


def _pieces(model: Model):
    """Structural zeros of the matrices are not written: whoever provides the memory clears it once."""
    matrices = [model.M, model.C, model.D]
    M, C, D = [ca.reshape(part.T, part.numel(), 1) for part in matrices]
    vectors = [ca.densify(part) for part in (model.f, model.gamma, model.g, model.w)]
    return model.y, ca.SX(0, 1), ca.vertcat(M, C, D, *vectors), None


def _residuals(model: Model):
    return model.y, ca.SX(0, 1), ca.densify(ca.vertcat(model.g, model.w)), None


def _energy(model: Model):
    n = model.n - model.states
    v, M = model.v[:n], model.M[:n, :n]
    return model.y, ca.SX(0, 1), ca.densify(ca.dot(v, M @ v) / 2 + (0 if model.V is None else model.V)), None


def _invariants(model: Model):
    """The invariants, the rate at which they change along the motion without projection, and the size of what
    that rate is summed from.
    """
    rate = model.by_t(model.I) + model.I_y @ ca.vertcat(model.v, Emitted(model).a)
    terms = ca.fabs(model.I_y) @ ca.fabs(ca.vertcat(model.v, Emitted(model).a)) + ca.fabs(model.by_t(model.I))
    return model.y, ca.SX(0, 1), ca.densify(ca.vertcat(model.I, rate, terms)), None


def _unknowns(model: Model):
    return model.y, ca.SX(0, 1), ca.densify(model.u), None


def elimination_cost(model: Model) -> int:
    """Multiplications of the two sparse factorizations; a large number where M has a coordinate without any
    mass, which only the dense kernel can treat.
    """
    M = (model.M + model.M.T).sparsity()
    if not all(M.has_nz(i, i) for i in range(model.n)):
        return LARGEST_ELIMINATION + 1
    cost = _factorization_cost(M)
    if cost <= LARGEST_ELIMINATION and model.rows:
        C = ca.DM(model.C.sparsity(), 1)
        cost += _factorization_cost((C @ ca.DM(_inverse_pattern(M), 1) @ C.T).sparsity())
    return cost


def _factorization_cost(pattern: ca.Sparsity) -> int:
    upper, _ = pattern.ldl()
    return int(np.sum(np.diff(upper.T.colind()).astype(np.int64) ** 2))


def _inverse_pattern(M: ca.Sparsity) -> ca.Sparsity:
    """Pattern of M⁻¹: full within each block of coordinates that M connects."""
    _, order, ends = M.scc()
    pairs = [(i, j) for a, b in pairwise(ends) for i in order[a:b] for j in order[a:b]]
    rows, columns = zip(*pairs, strict=True)
    return ca.Sparsity.triplet(M.size1(), M.size1(), rows, columns)


class Kernels:
    """Addresses of everything the underlying ODE needs of one system; expressions are built and compiled when
    first asked for.

    ``sparse`` says that compiled loops eliminate instead of emitted code, as the system is large; ``dense``
    that the kernels without pivoting are left out: the elimination would be too large, or a coordinate has no
    mass.
    """

    def __init__(self, system: System) -> None:
        model = system.model
        self.system, self.n, self.position_rows, self.rows = system, model.n, model.position_rows, model.rows
        self.sparse = model.n + model.rows > EMITTED_UP_TO and not model.I.numel() and not model.lam.numel()
        self.dense = not self.sparse and elimination_cost(model) > LARGEST_ELIMINATION
        self._templates: dict[int, np.ndarray] = {}
        self._work_size = _work_size(model.n, model.rows) if model.n + model.rows <= LARGEST_DENSE else 0

    @made_once
    def _emitted(self) -> Emitted:
        return Emitted(self.system.model)

    @made_once
    def _saddle(self) -> SparseSaddle:
        return SparseSaddle(self.system)

    @made_once
    def derivative(self) -> int:
        if self.sparse:
            return sparse_derivative.address
        return (
            dense_derivative.address
            if self.dense
            else self.system.kernel("derivative", self._emitted.derivative).address
        )

    @made_once
    def landing(self) -> int:
        if self.sparse:
            return sparse_landing.address
        return (
            dense_landing.address
            if self.dense
            else self.system.kernel("landing", self._emitted.landing).address
        )

    @made_once
    def multipliers(self) -> int:
        if self.sparse:
            return sparse_multipliers.address
        return (
            dense_multipliers.address
            if self.dense
            else self.system.kernel("multipliers", self._emitted.multipliers).address
        )

    @property
    def landing_size(self) -> int:
        """Numbers that a landing writes, and one more."""
        return 6 * self.n + self.rows + 4

    @property
    def instructions(self) -> tuple[int, int]:
        """Length of the code for the derivative and for a landing."""
        if self.sparse:
            return self._saddle.instructions
        return self.system.kernel("derivative", self._emitted.derivative).instructions, self.system.kernel(
            "landing", self._emitted.landing
        ).instructions

    @made_once
    def residuals(self) -> int:
        return self.system.kernel("residuals", _residuals).address

    @made_once
    def energy(self) -> int:
        return self.system.kernel("energy", _energy).address

    @made_once
    def invariants(self) -> int:
        return self.system.kernel("invariants", _invariants).address

    @made_once
    def unknowns(self) -> int:
        return self.system.kernel("unknowns", _unknowns).address

    @made_once
    def pieces(self) -> int:
        return scattered_pieces.address if self.sparse else self.system.kernel("pieces", _pieces).address

    def context(self, system: System, extra: int = 0) -> np.ndarray:
        """A context for one run of this system, or of the same with other parameters; ``extra`` doubles are
        left free behind the parameters.
        """
        if extra not in self._templates:
            template = system.context(extra)
            template[[COORDINATES, POSITION_ROWS, ROWS, PIECES, LEFT_OUT, SPARSE, RANK]] = (
                self.n,
                self.position_rows,
                self.rows,
                self.pieces,
                template.size,
                template.size + self.rows,
                self.rows,
            )
            template = np.concatenate(
                [template, np.zeros(self.rows), self._saddle.memory if self.sparse else np.zeros(0)]
            )
            template[WORK] = template.size if self._work_size else 0
            self._templates[extra] = (
                template
                if self._work_size > _COPIED
                else np.concatenate([template, np.zeros(self._work_size)])
            )
        template = self._templates[extra]
        if self._work_size > _COPIED:
            context = np.zeros(template.size + self._work_size)  # not touched until the dense twins need it
            context[: template.size] = template
        else:
            context = template.copy()
        context[PARAMETERS : PARAMETERS + system.parameters.size] = system.parameters.flat
        system.fill_guess(context)
        return context

    def evaluate_pieces(
        self, context: np.ndarray, t: float, q: np.ndarray, v: np.ndarray
    ) -> dict[str, np.ndarray] | None:
        """M, f, C, D, γ, g, w as arrays; None if a function of the user raised."""
        n, m, mg = self.n, self.rows, self.position_rows
        shapes = {"M": (n, n), "C": (m, n), "D": (m, n), "f": (n,), "gamma": (m,), "g": (mg,), "w": (m,)}
        sizes = [int(np.prod(shape, dtype=int)) for shape in shapes.values()]
        out = np.zeros(sum(sizes) + 1)
        if run_kernel(self.pieces, t, np.concatenate([q, v]), out, context, out) != OK:
            return None
        parts = np.split(out[:-1], np.cumsum(sizes)[:-1])
        return {
            name: values.reshape(shape) for (name, shape), values in zip(shapes.items(), parts, strict=True)
        }


def stabilised_derivative(system: System, alpha: float, beta: float) -> int:
    """Address of the derivative with Baumgarte's terms, C a = −γ − 2α w − β² g."""
    if system.model.lam.numel():
        raise ValueError(
            "method: Baumgarte's terms with an explicit method need forces that do not depend on lam; use it "
            "with BDF()"
        )
    return system.kernel(
        f"derivative {alpha!r} {beta!r}", lambda model: Emitted(model, alpha, beta).derivative(model)
    ).address


def kernels(system: System) -> Kernels:
    """The kernels of a system; shared by all its copies with other parameters."""
    return system.compiled.once("underlying ODE", lambda: Kernels(system))


def _work_size(n: int, m: int) -> int:
    """Doubles that a dense kernel needs: the pieces, two factorizations, a few vectors."""
    return (n * n + n + 2 * m * n + 3 * m) + 2 * (m * n + 3 * m) + 2 * (n * n + n) + 4 * n + m


@njit(cache=True)
def _view(memory, at, rows, columns):
    return carray(shift(memory, at), (rows, columns)), at + rows * columns


@njit(cache=True)
def _vector(memory, at, size):
    return carray(shift(memory, at), (size,)), at + size


@njit(cache=True)
def _dense(t, y, z, context, out, what):
    """The dense twin of derivative (what = 0), landing (1) and multipliers (2)."""
    n, mg, m = np.int64(context[COORDINATES]), np.int64(context[POSITION_ROWS]), np.int64(context[ROWS])
    if context[WORK] == 0.0:
        return SINGULAR
    memory = shift(context, np.int64(context[WORK]))
    status = call(np.int64(context[PIECES]), t, y, z, context, memory)
    if status != OK:
        return status
    context[DENSE_CALLS] += 1.0
    M, at = _view(memory, 0, n, n)
    C, at = _view(memory, at, m, n)
    D, at = _view(memory, at, m, n)
    f, at = _vector(memory, at, n)
    gamma, at = _vector(memory, at, m)
    g, at = _vector(memory, at, mg)
    w, at = _vector(memory, at, m)
    total = 0.0
    for i in range(at):
        total += memory[i]
    if total - total != 0.0:
        return SINGULAR
    A, at = _view(memory, at, m, n)
    tau, at = _vector(memory, at, m)
    scale, at = _vector(memory, at, m)
    order_, at = _vector(memory, at, m)
    B, at = _view(memory, at, n, n)
    pivots, at = _vector(memory, at, n)
    r, at = _vector(memory, at, n)
    zero, at = _vector(memory, at, n)
    b, at = _vector(memory, at, m)
    order = order_.view(np.int64)
    left_out = shift(context, np.int64(context[LEFT_OUT]))
    rank = sp.factor_rows(C, A, tau, scale, order, left_out, n, m)
    context[RANK] = min(context[RANK], float(rank))
    if not sp.factor_mass(M, A, tau, rank, B, pivots, n):
        return SINGULAR
    for i in range(m):
        b[i] = -gamma[i]
    v = shift(y, n)
    if what == 2:
        lam, x = carray(out, (m,)), zero
        sp.solve(M, A, tau, scale, order, rank, B, pivots, f, b, x, lam, r, n, m, True)
        return OK
    x = carray(shift(out, n), (n,))
    sp.solve(M, A, tau, scale, order, rank, B, pivots, f, b, x, b, r, n, m, False)
    for i in range(n):
        out[i] = v[i]
    if what == 0:
        return OK
    for i in range(n):
        zero[i] = 0.0
    c = z[2 * n]
    e_q, e_v, dq, dv = (
        carray(shift(out, 2 * n), (n,)),
        carray(shift(out, 3 * n), (n,)),
        carray(shift(out, 4 * n), (n,)),
        carray(shift(out, 5 * n), (n,)),
    )
    for i in range(n):
        e_q[i], e_v[i] = z[i] + c * out[i], z[n + i] + c * out[n + i]
    # position level: its own factorization where there are velocity constraints as well
    A2, tau2, scale2, order2, rank2, B2, pivots2 = A, tau, scale, order, rank, B, pivots
    if mg < m:
        A2, at = _view(memory, at, m, n)
        tau2, at = _vector(memory, at, m)
        scale2, at = _vector(memory, at, m)
        order2_, at = _vector(memory, at, m)
        order2 = order2_.view(np.int64)
        B2, at = _view(memory, at, n, n)
        pivots2, at = _vector(memory, at, n)
        rank2 = sp.factor_rows(C, A2, tau2, scale2, order2, left_out, n, mg)
        if not sp.factor_mass(M, A2, tau2, rank2, B2, pivots2, n):
            return SINGULAR
    for i in range(mg):
        b[i] = -g[i]
    sp.solve(M, A2, tau2, scale2, order2, rank2, B2, pivots2, zero, b, dq, b, r, n, mg, False)
    for i in range(m):
        s = w[i]
        for j in range(n):
            s += D[i, j] * dq[j]
        b[i] = -s
    sp.solve(M, A, tau, scale, order, rank, B, pivots, zero, b, dv, b, r, n, m, False)
    missed_g, missed_w = 0.0, 0.0
    for i in range(m):
        s, s_w = 0.0, -b[i]
        for j in range(n):
            s += C[i, j] * dq[j]
            s_w += C[i, j] * dv[j]
        if i < mg:
            missed_g = max(missed_g, abs(g[i] + s) / max(scale2[i], 1e-300))
        missed_w = max(missed_w, abs(s_w) / max(scale[i], 1e-300))
    out[6 * n], out[6 * n + 1] = missed_g, missed_w
    out[6 * n + 2] = 0.0 if rank < m else A[m - 1, m - 1] ** 2 if m > 0 else 1.0
    for i in range(m):
        out[6 * n + 3 + i] = scale[i] ** 2
    f[:] = e_q
    _multiply(C, f, b, mg, n, -1.0)
    sp.solve(M, A2, tau2, scale2, order2, rank2, B2, pivots2, zero, b, e_q, b, r, n, mg, False)
    for i in range(n):
        e_q[i] += f[i]
    for i in range(m):
        s = 0.0
        for j in range(n):
            s += C[i, j] * e_v[j] + D[i, j] * e_q[j]
        b[i] = -s
    f[:] = e_v
    sp.solve(M, A, tau, scale, order, rank, B, pivots, zero, b, e_v, b, r, n, m, False)
    for i in range(n):
        e_v[i] += f[i]
    return OK


@njit(cache=True)
def _multiply(A, x, out, rows, columns, factor):
    for i in range(rows):
        s = 0.0
        for j in range(columns):
            s += A[i, j] * x[j]
        out[i] = factor * s


@NativeKernel
def dense_derivative(t, y, z, context, out):
    """`derivative` for any rank."""
    return _dense(t, y, z, context, out, 0)


@NativeKernel
def dense_landing(t, y, z, context, out):
    """`landing` for any rank."""
    return _dense(t, y, z, context, out, 1)


@NativeKernel
def dense_multipliers(t, y, z, context, out):
    """`multipliers` of least norm for any rank."""
    return _dense(t, y, z, context, out, 2)


@njit(cache=True, nogil=True)
def over_points(address, twin, context_array, times, states, out, fewest=1):
    """A kernel, or where it finds the matrix singular its dense twin, at many points; returns the number done
    before a failure.

    With ``fewest`` pieces or more the way from the point before is gone, so that unknowns can follow.
    """
    context = pointer(context_array)
    y = np.empty(states.shape[1])
    value = np.empty(out.shape[1] + 1)
    for i in range(times.size):
        pieces, done, status = (1 if i == 0 else fewest), 0, OK
        while done < pieces:
            part = (done + 1.0) / pieces
            t = times[i] if i == 0 or part == 1.0 else times[i - 1] + part * (times[i] - times[i - 1])
            y[:] = states[i] if i == 0 or part == 1.0 else states[i - 1] + part * (states[i] - states[i - 1])
            status = call(address, t, pointer(y), pointer(y), context, pointer(value))
            if status == SINGULAR and twin != 0:
                status = call(twin, t, pointer(y), pointer(y), context, pointer(value))
            if status == OK:
                done += 1
            else:
                return i
        out[i] = value[:-1]
    return times.size
