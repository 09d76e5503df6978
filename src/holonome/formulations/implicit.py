"""What all implicit formulations share: a residual F(t, Y, Y′) = 0, its Newton matrix ∂F/∂Y + cj ∂F/∂Y′,
and code for both.

Y begins with (q, v, s, λ).  CasADi derives the matrix exactly from the residual.  Its elimination is emitted
as straight-line sparse code too: rows are paired with unknowns so that q and v can be eliminated first, with
pivots that are close to cj and cj M, and the multipliers after them, whose pivots are those of the Schur
complement.  No pivoting; a pivot that lost its digits makes the kernel return SINGULAR, and a dense
elimination with row pivoting takes over.

The elimination of a large system is not emitted, only the nonzeros of its matrix are: compiled loops
eliminate (:mod:`holonome.algebra.sparse`), each multiplier after the coordinates that its row contains, and
choose other pivots where these fail.

Kernels, with y = (Y, Y′):

    residual      z = (cj, tolerances of q), out = F
    factors       z = (cj, e, tolerances of q), out = the nonzeros of L and U
    solution      y = F, z = (L, U), out = Δ with (∂F/∂Y + cj ∂F/∂Y′) Δ = F
    nonzeros      z = (cj, e, tolerances of q), out = the nonzeros of the matrix, column by column;
                  for large systems
    matrix        z = (cj, e, tolerances of q), out = the matrix, row by row, rows and columns scaled by
                  powers of cj; for the dense elimination, which clears the memory first

e_i, one for each multiplier, is zero, or very large where the constraint depends on others: it is subtracted
from the diagonal, so that this row says that its multiplier does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from holonome.algebra import sparse
from holonome.algebra.elimination import Elimination
from holonome.arguments import checked
from holonome.equations.model import Model
from holonome.machine.calls import NativeKernel, call
from holonome.machine.compiled import made_once
from holonome.machine.context import OK
from holonome.machine.layout import Layout, Whole
from holonome.problem.system import System


class FormulationState(Layout):
    """What a formulation's own memory begins with, of formulations that predict multipliers."""

    fresh: Whole  # whether a new matrix will be computed
    changed: Whole  # whether the formulation asks for one


formulation_state = FormulationState.named()

EMITTED_UP_TO = 60
"""Unknowns.  Of larger systems the elimination is not emitted: that takes a second in Python at this size and
grows with its square, while the loops are nearly as fast.
"""


@dataclass(frozen=True, eq=False)
class Residual:
    """The equations of a formulation.

    Attributes
    ----------
    Y, dY
        Symbols of the unknowns, beginning with q, v, λ, and of their derivatives.
    F
        Residual; row i is paired with unknown i for elimination.
    groups
        The unknowns in groups, by number, that are eliminated one after the other, so that each pivot is
        safe.
    error_tested, newton_tested
        Which unknowns the error test and the convergence test of Newton's method see.
    multipliers
        How many unknowns after q and v are multipliers, whose rows are constraints.
    row_powers, column_powers
        Powers of cj by which rows and unknowns are scaled so that the condition of the matrix stays bounded
        as h → 0.
    cj, tolerance
        Symbols under which F may ask for the leading coefficient and for the tolerances of the positions.
    accelerations
        Whether the unknowns after λ are the accelerations.
    initial
        Values of the unknowns after q, v, s, λ at the start, as expressions of these; None is zero.

    Examples
    --------
    >>> import holonome as hn
    >>> residual = hn.GGL().residual(hn.mechanisms.pendulum().system.model)
    >>> residual.size, residual.multipliers  # q, v, λ and μ
    (6, 2)
    """

    Y: ca.SX
    dY: ca.SX
    F: ca.SX
    groups: tuple[range, ...]
    error_tested: np.ndarray
    newton_tested: np.ndarray
    multipliers: int
    row_powers: np.ndarray = field(default_factory=lambda: np.zeros(0))
    column_powers: np.ndarray = field(default_factory=lambda: np.zeros(0))
    cj: ca.SX = field(default_factory=lambda: ca.SX.sym("cj"))
    tolerance: ca.SX = field(default_factory=lambda: ca.SX(0, 1))
    initial: ca.SX | None = None
    accelerations: bool = False

    @property
    def size(self) -> int:
        return self.Y.numel()


def unknowns(model: Model, **others: int) -> tuple[ca.SX, ca.SX, dict[str, ca.SX], dict[str, ca.SX]]:
    """Symbols Y = (q, v, s, λ, others …) and Y′, whole and by name."""
    sizes = {"q": model.n, "v": model.n, "s": model.states, "lam": model.rows, **others}
    y = {name: ca.SX.sym(name, size) for name, size in sizes.items()}
    dy = {name: ca.SX.sym("d" + name, size) for name, size in sizes.items()}
    return ca.vertcat(*y.values()), ca.vertcat(*dy.values()), y, dy


def at(model: Model, expression: ca.SX, y: dict[str, ca.SX]) -> ca.SX:
    """An expression of the model in the symbols of a formulation."""
    lam = (model.lam, y["lam"]) if model.lam.numel() else (ca.SX(0, 1), ca.SX(0, 1))
    old, new = ca.vertcat(model.y, lam[0]), ca.vertcat(y["q"], y["v"], y["s"], lam[1])
    return ca.substitute(expression, old, new)


def balance(model: Model, y: dict[str, ca.SX], a: ca.SX) -> ca.SX:
    """The equations of motion, M a + Cᵀ λ − f."""
    M, C, f = (at(model, part, y) for part in (model.M, model.C, model.f))
    return M @ a + C.T @ y["lam"] - f


def rate_of_states(model: Model, y: dict[str, ca.SX], dy: dict[str, ca.SX]) -> ca.SX:
    """The rows of the first-order states, s′ − r = 0."""
    return dy["s"] - at(model, model.r, y)


def equations_of_motion(model: Model, y: dict[str, ca.SX], dy: dict[str, ca.SX]) -> ca.SX:
    """q′ − v = 0, M v′ + Cᵀ λ − f = 0 and s′ − r = 0."""
    return ca.vertcat(dy["q"] - y["v"], balance(model, y, dy["v"]), rate_of_states(model, y, dy))


def tested(which: str, model: Model, size: int) -> np.ndarray:
    """A mask over the unknowns: positions, positions and velocities, or all; first-order states always."""
    n, state = model.n, model.y.numel()
    count = {"q": n, "qv": 2 * n, "all": size}[checked("error_test", which)]
    number = np.arange(size)
    return ((number < count) | ((number >= 2 * n) & (number < state))).astype(float)


def residual_of(
    model: Model,
    Y: ca.SX,
    dY: ca.SX,
    F: ca.SX,
    error_test: str,
    newton_test: str,
    multipliers: int,
    **others: Any,
) -> Residual:
    """A residual with (q, v, s) in one group and all that follows in another.  Unless other powers are given,
    rows of the first are scaled by 1/cj and unknowns of the second by cj.
    """
    state, size = model.y.numel(), Y.numel()
    behind = (np.arange(size) >= state).astype(float)
    groups = range(state), range(state, size)
    tests = tested(error_test, model, size), tested(newton_test, model, size)
    powers: dict[str, Any] = {"row_powers": behind - 1, "column_powers": behind}
    return Residual(Y, dY, F, groups, *tests, multipliers, **powers | others)


def elimination_plan(matrix: ca.SX, groups: Sequence[Sequence[int]]) -> sparse.Plan:
    """In which order compiled loops eliminate: one group of unknowns after the other."""
    stages, pattern = np.zeros(matrix.shape[0], int), matrix.sparsity()
    for number, group in enumerate(groups):
        stages[list(group)] = number
    return sparse.Plan(pattern.colind(), pattern.row(), stages.tolist())


class ImplicitKernels:
    """Addresses of the kernels of a formulation for one system."""

    def __init__(self, system: System, name: str, residual: Callable[[Model], Residual]) -> None:
        self.system, self.name, self.residual = system, name, residual(system.lean)
        self.size = self.residual.size
        self._lengths: dict[str, int] = {}

    @made_once
    def _row_shift(self) -> ca.SX:
        return ca.SX.sym("e", self.residual.multipliers)

    @made_once
    def _matrix(self) -> ca.SX:
        r, first = self.residual, self.system.state_size
        row_shift = ca.vertcat(ca.SX(first, 1), self._row_shift, ca.SX(self.size - first - r.multipliers, 1))
        matrix = ca.jacobian(r.F, r.Y) + r.cj * ca.jacobian(r.F, r.dY) - ca.diag(row_shift)
        return matrix + self._by_unknowns() + self._by_supplied_values()

    def _by_unknowns(self) -> ca.SX:
        """What the unknowns of the system, which follow q, add to ∂F/∂q."""
        r, model = self.residual, self.system.lean
        if not model.u.numel():
            return ca.SX(self.size, self.size)
        u_q = ca.substitute(model.u_q, model.q, r.Y[: model.n])
        return ca.horzcat(ca.jacobian(r.F, model.u) @ u_q, ca.SX(self.size, self.size - model.n))

    def _by_supplied_values(self) -> ca.SX:
        """What functions that cannot be traced add to ∂F/∂q and ∂F/∂v."""
        r, model = self.residual, self.system.lean
        if not self.system.supplied:
            return ca.SX(self.size, self.size)
        state = model.y.numel()
        added = ca.substitute(model.by_supplied_values(r.F), model.y, r.Y[:state])
        return ca.horzcat(added, ca.SX(self.size, self.size - 2 * model.n))

    @property
    def _z(self) -> ca.SX:
        return ca.vertcat(self.residual.cj, self._row_shift, self.residual.tolerance)

    @property
    def sparse(self) -> bool:
        """Whether the elimination is done by compiled loops instead of emitted code."""
        return self.size > EMITTED_UP_TO

    @made_once
    def _plan(self) -> sparse.Plan:
        return elimination_plan(self._matrix, self.residual.groups)

    @made_once
    def _elimination(self) -> Elimination | None:
        if self.sparse:
            return None
        try:
            return Elimination(self._matrix, self.residual.groups)
        except ArithmeticError:
            return None

    @property
    def factor_count(self) -> int:
        """Numbers that an emitted factorization consists of."""
        return 0 if self._elimination is None else len(self._elimination.values)

    @property
    def factor_memory(self) -> np.ndarray:
        """Memory for a factorization."""
        return self._plan.memory(self.nonzeros) if self.sparse else np.zeros(self.factor_count + 1)

    @property
    def instructions(self) -> tuple[int, int]:
        """Length of the code for an iteration and for a factorization; of a dense one, by its
        multiplications.
        """
        length = self._lengths
        if self.sparse:
            return (
                length["residual"] + 4 * self._plan.fill,
                length["nonzeros"] + 2 * self._plan.multiplications,
            )
        if self._elimination is None:
            return 2 * self.size**2, self.size**3
        return length["residual"] + length["solution"], length["factors"]

    def _address(self, what: str, build) -> int:
        kernel = self.system.kernel(f"{self.name}: {what}", build, lean=True)
        self._lengths[what] = kernel.instructions
        return kernel.address

    prediction = 0
    """Kernel that predicts the multipliers, of formulations that do not extrapolate them."""

    after = 0
    """Kernel for the multipliers at the end of a step, of formulations that iterate without them."""

    @property
    def block(self) -> np.ndarray:
        """Memory that kernels get as z: cj and the tolerances of q.  Kernels with a ``prediction`` have their
        own, which may hold the weights of the error test and e.
        """
        return np.zeros(1 + self.system.n)

    borrowed: Mapping[str, int] = {}
    """Vectors of BDF that lie in that memory, and where."""

    def splits(self, block: np.ndarray) -> int:
        """How often the split of the coordinates was changed."""
        return 0

    @made_once
    def F(self) -> int:
        r = self.residual
        return self._address(
            "residual",
            lambda model: (ca.vertcat(r.Y, r.dY), ca.vertcat(r.cj, r.tolerance), ca.densify(r.F), None),
        )

    @made_once
    def initial(self) -> int:
        r, initial = self.residual, self.residual.initial
        return (
            0
            if initial is None
            else self._address("initial", lambda model: (r.Y, ca.SX(0, 1), ca.densify(initial), None))
        )

    @made_once
    def factors(self) -> int:
        r, e = self.residual, self._elimination
        if self.sparse:
            return factor_sparse.address
        return (
            0
            if e is None
            else self._address(
                "factors",
                lambda model: (ca.vertcat(r.Y, r.dY), self._z, ca.densify(ca.vertcat(*e.values)), e.margin),
            )
        )

    @made_once
    def solution(self) -> int:
        e = self._elimination
        if e is None:
            return solve_sparse.address if self.sparse else 0
        right, factors = ca.SX.sym("F", self.size), ca.SX.sym("factors", len(e.values))
        return self._address(
            "solution", lambda model: (right, factors, ca.densify(e.solve(right, factors)), None)
        )

    @made_once
    def nonzeros(self) -> int:
        r = self.residual
        return self._address(
            "nonzeros", lambda model: (ca.vertcat(r.Y, r.dY), self._z, self._matrix.nz[:], None)
        )

    @made_once
    def plain_matrix(self) -> int:
        """The matrix, row by row, without scaling; the caller clears the memory before."""
        r, flat = self.residual, ca.reshape(self._matrix.T, self.size**2, 1)
        return self._address("plain matrix", lambda model: (ca.vertcat(r.Y, r.dY), self._z, flat, None))

    @made_once
    def matrix(self) -> int:
        r = self.residual
        if self.sparse:
            return 0
        scaled = (
            ca.diag(r.cj ** ca.DM(r.row_powers)) @ self._matrix @ ca.diag(r.cj ** ca.DM(r.column_powers))
            if r.row_powers.size
            else self._matrix
        )
        flat = ca.reshape(scaled.T, self.size**2, 1)
        return self._address("matrix", lambda model: (ca.vertcat(r.Y, r.dY), self._z, flat, None))


@NativeKernel
def factor_sparse(t, y, z, context, out):
    """`factors` by loops; ``out`` is the memory of a factorization."""
    status = call(sparse.named_factors(out).kernel, t, y, z, context, sparse.named_factors(out).values)
    return sparse.factor(out) if status == OK else status


@NativeKernel
def solve_sparse(t, y, z, context, out):
    """`solution` by loops; ``z`` is the memory of a factorization."""
    sparse.solve(z, y, out)
    return OK
