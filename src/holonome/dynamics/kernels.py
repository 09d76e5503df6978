"""The underlying ordinary differential equation, (1.7) of Eich 1993, and the projection onto the manifold.

    q′ = v,     s′ = r,     v′ = a   from   M a + Cᵀ λ = f,   C a = −γ

For a small system the whole solution is emitted as straight-line sparse code
(:mod:`holonome.dynamics.emitted`); large ones are factored by compiled loops
(:mod:`holonome.dynamics.sparse_saddle`).  Where small pivots show that this is not safe, the kernel returns
SINGULAR, and the dense fallback is called instead (:mod:`holonome.dynamics.dense`).
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from numba import njit

from holonome.dynamics import emitted
from holonome.dynamics.dense import (
    DenseWork,
    dense_derivative,
    dense_multipliers,
    dense_projection,
    piece_sizes,
    work_memory,
)
from holonome.dynamics.parts import projection_size
from holonome.dynamics.sparse_saddle import (
    SparseSaddle,
    scattered_pieces,
    sparse_derivative,
    sparse_multipliers,
    sparse_projection,
)
from holonome.equations.model import Model
from holonome.machine.calls import NativeKernel, call, pointer, run_kernel
from holonome.machine.compiled import made_once
from holonome.machine.context import OK, SINGULAR, Context
from holonome.machine.deferred import Deferred
from holonome.machine.kernel import OPTIMISED_UP_TO, Kernel
from holonome.machine.layout import CHECKED, appended
from holonome.problem.solved_variables import KernelExpressions
from holonome.problem.system import System

EMITTED_UP_TO = 100
"""Coordinates and constraints.  Of larger systems only the nonzeros are emitted: an emitted elimination is
two to four times as fast as the loops, but takes seconds to derive.
"""

PROJECTION_OPTIMISED_UP_TO, PIECES_OPTIMISED_UP_TO = 10_000, 2_000
"""Instructions beyond which it does not pay to compile them well: a projection is called once for a dozen
evaluations of the derivative, the pieces hardly ever.
"""

_NONE = ((None, None, None), np.zeros(0))

LARGEST_DENSE = 5000
"""Coordinates and constraints beyond which there is no memory for the dense kernels."""

_COPIED = 4096
"""Work space up to this size is copied; larger work space is allocated lazily, as zeros."""


class Kernels:
    """Addresses of the kernels of one system; expressions are built and compiled lazily.

    ``sparse``: the system is large, so compiled loops replace the emitted elimination.  ``dense``: only the
    dense kernels are used, because the elimination would be too large or a coordinate has no mass.
    """

    def __init__(self, system: System) -> None:
        model = system.model
        self.system, self.n, self.position_rows, self.rows = system, model.n, model.position_rows, model.rows
        self.sparse = model.n + model.rows > EMITTED_UP_TO and not model.I.numel() and not model.lam.numel()
        self.dense = not self.sparse and emitted.elimination_cost(model) > emitted.LARGEST_ELIMINATION
        self._latest: dict[int, tuple[tuple, np.ndarray]] = {}  # contexts for the values used last

    @made_once
    def _emitted(self) -> emitted.Emitted:
        return emitted.Emitted(self.system.lean)

    @made_once
    def _saddle(self) -> SparseSaddle:
        return SparseSaddle(self.system)

    @property
    def motion(self) -> KernelExpressions:
        """y′ and its margin, as expressions."""
        return self._emitted.derivative(self.system.lean)

    @made_once
    def derivative(self) -> int:
        return self._chosen("derivative", sparse_derivative, dense_derivative)

    @made_once
    def projection(self) -> int:
        return self._chosen("projection", sparse_projection, dense_projection)

    @made_once
    def multipliers(self) -> int:
        return self._chosen("multipliers", sparse_multipliers, dense_multipliers)

    def _chosen(self, name: str, sparse: NativeKernel, dense: NativeKernel) -> int:
        """Address of one of the three implementations of a kernel."""
        if self.sparse:
            return sparse.address
        return dense.address if self.dense else self._emitted_kernel(name).address

    def _emitted_kernel(self, name: str) -> Kernel:
        limit = PROJECTION_OPTIMISED_UP_TO if name == "projection" else OPTIMISED_UP_TO
        return self.system.kernel(name, getattr(self._emitted, name), limit, lean=True)

    @property
    def projection_size(self) -> int:
        """One more than the numbers that a projection writes."""
        return projection_size(self.system.state_size, self.rows)

    @property
    def instructions(self) -> tuple[int, int]:
        """Number of instructions of the derivative and of a projection."""
        if self.sparse:
            return self._saddle.instructions
        derivative, projection = map(self._emitted_kernel, ("derivative", "projection"))
        return derivative.instructions, projection.instructions

    @made_once
    def residuals(self) -> int:
        return self.system.kernel("residuals", emitted.residuals, lean=True).address

    @made_once
    def energy(self) -> int:
        return self.system.kernel("energy", emitted.energy, lean=True).address

    @made_once
    def invariants(self) -> int:
        return self.system.kernel("invariants", emitted.invariants, lean=True).address

    @made_once
    def unknowns(self) -> int:
        return self.system.kernel("unknowns", emitted.unknowns, lean=True).address

    @made_once
    def _pieces_when_needed(self) -> Deferred:
        """The dense kernels are called where others find the matrix singular, in most runs never."""
        return Deferred("pieces", lambda: self.pieces)

    @made_once
    def pieces(self) -> int:
        return (
            scattered_pieces.address
            if self.sparse
            else self.system.kernel("pieces", emitted.pieces, PIECES_OPTIMISED_UP_TO, lean=True).address
        )

    def context(self, system: System, extra: int = 0) -> np.ndarray:
        """A context for one run of this system, or of a copy with other parameters; ``extra`` doubles are
        reserved after the parameters.
        """
        (parameters, unknowns, lam), kept = self._latest.get(extra, _NONE)
        if unknowns is system.unknowns and lam is system.multipliers and kept.size:
            context = kept.copy()
            if parameters is not system.parameters:
                system.fill_parameters(context)
            return context
        template, rest = self.system.compiled.once(("context", extra), lambda: self._template(extra))
        context = np.zeros(template.size + rest)  # zeros are not touched until the dense kernels need them
        context[: template.size] = template
        system.fill_parameters(context)
        system.fill_guess(context)
        if not rest:
            values = system.parameters, system.unknowns, system.multipliers
            self._latest[extra] = values, context.copy()
        return context

    def _template(self, extra: int) -> tuple[np.ndarray, int]:
        """What contexts begin with, and the number of zeros that follow."""
        n, m, mg, states = self.n, self.rows, self.position_rows, len(self.system.states)
        template = self.system.context(extra)
        pieces = self.pieces if self.dense or self.sparse else self._pieces_when_needed.address
        Context.set(template, coordinates=n, states=states, position_rows=mg, rows=m, pieces=pieces)
        Context.set(template, rank=m, usual_rank=m)
        sparse = self._saddle.memory if self.sparse else np.zeros(0)
        template = appended(template, Context, 0, left_out=np.zeros(m), sparse=sparse)
        dense = work_memory(n, m, mg, states) if n + m <= LARGEST_DENSE else np.zeros(0)
        Context.of(template)["has_work"] = dense.size > 0
        if CHECKED or dense.size <= _COPIED:
            return appended(template, Context, 0, work=dense), 0
        return appended(template, Context, 0, work=dense[: DenseWork.words]), dense.size - DenseWork.words

    def invariants_along(self, system: System, times: np.ndarray, states: np.ndarray) -> np.ndarray:
        """The invariants at some points, their rates of change along the motion without projection, and the
        sums of the absolute values of the terms of these rates; (3, invariants, points).
        """
        count, size, parts = system.invariant_count, system.state_size, 64 if system.unknowns else 1
        values, motion = (
            np.full((times.size, count * (2 + size)), np.nan),
            np.full((times.size, size), np.nan),
        )
        over_points(self.invariants, 0, self.context(system), times, states, values, parts)
        over_points(
            self.derivative, dense_derivative.address, self.context(system), times, states, motion, parts
        )
        invariants, by_t, by_y = np.split(values, [count, 2 * count], axis=1)
        terms = by_y.reshape(times.size, count, size) * motion[:, np.newaxis]
        sums = np.sum(terms, axis=2), np.sum(np.abs(terms), axis=2)
        return np.array([invariants.T, (by_t + sums[0]).T, (np.abs(by_t) + sums[1]).T])

    def evaluate_pieces(self, context: np.ndarray, t: float, y: np.ndarray) -> dict[str, np.ndarray] | None:
        """M, C, D, f, γ, g, w, r as arrays; None if one of the user's functions raised."""
        n, m, mg, k = self.n, self.rows, self.position_rows, len(self.system.states)
        matrices = {"M": (n, n), "C": (m, n), "D": (m, n)}
        shapes = matrices | {"f": (n,), "gamma": (m,), "g": (mg,), "w": (m,), "r": (k,)}
        *begins, end = piece_sizes(n, m, mg, k)
        out = np.zeros(end + 1)
        if run_kernel(self.pieces, t, y, out, context, out) != OK:
            return None
        parts = np.split(out[:end], begins[1:])
        return {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}


def unprojected_derivative(system: System, stabilised: bool) -> int:
    """Address of the derivative, with Baumgarte's terms where wanted: C a = −γ − 2α w − β² g, with α and β
    from the context.
    """
    if system.model.lam.numel():
        raise ValueError(
            "method: Baumgarte's terms with an explicit method need forces that do not depend on lam; use it "
            "with BDF()"
        )
    name = "stabilised derivative" if stabilised else "unprojected derivative"

    def build(model: Model) -> KernelExpressions:
        alpha, beta = ca.vertsplit(model.damping) if stabilised else (0.0, 0.0)
        return emitted.Emitted(model, alpha, beta).derivative(model)

    return system.kernel(name, build, lean=True).address


def kernels(system: System) -> Kernels:
    """The kernels of a system; shared by all of its copies with other parameters."""
    return system.compiled.once("underlying ODE", lambda: Kernels(system))


@njit(cache=True, nogil=True)
def over_points(address, dense, context_array, times, states, out, fewest=1):
    """Evaluate a kernel at many points, or its dense fallback where it finds the matrix singular; returns the
    number of points done before a failure.

    Between points, the state is moved in ``fewest`` equal parts, so that the unknowns can be continued.
    """
    context = pointer(context_array)
    y = np.empty(states.shape[1])
    value = np.empty(out.shape[1] + 1)
    for i in range(times.size):
        parts = 1 if i == 0 else fewest
        for part in range(1, parts + 1):
            if part == parts:
                t = times[i]
                y[:] = states[i]
            else:
                share = part / parts
                t = times[i - 1] + share * (times[i] - times[i - 1])
                y[:] = states[i - 1] + share * (states[i] - states[i - 1])
            status = call(address, t, pointer(y), pointer(y), context, pointer(value))
            if status == SINGULAR and dense != 0:
                status = call(dense, t, pointer(y), pointer(y), context, pointer(value))
            if status != OK:
                return i
        out[i] = value[:-1]
    return times.size
