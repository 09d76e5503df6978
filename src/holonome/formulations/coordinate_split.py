"""Coordinate splitting, sections 2 and 3 of Yen & Petzold 1996: the iterations CS and CM.

A discretised GGL form without its multipliers.  With r₁ = ρ_h q − v and r₂ = M ρ_h v − f the equations of a
step are (2.12)

    P(q) r₁ = 0,     P(q) r₂ = 0,     G v = 0,     g = 0;
    P = Xᵀ − Qᵀ Yᵀ,     Q = (G Y)⁻¹ G X     (2.1)

X and Y are columns of the unit matrix: Yᵀq the dependent, Xᵀq the independent coordinates.  P Gᵀ = 0, so the
multipliers are gone from the equations, and from their tests.

P is never formed.  Gaussian elimination with row pivoting on Gᵀ (2.2) chooses Y, the pivot rows, and leaves L
U in them and L_x in the others: P r = Xᵀr − L_x L⁻¹ Yᵀr. With s = −(G Y)⁻ᵀ Yᵀ r, of which L⁻¹ Yᵀ r is a part,

    X P r = r + Gᵀ s     (2.1),          d(P r)/dq = P (dr/dq + d(Gᵀ s)/dq)     (2.9)

so that Newton's method on (2.12) reads, J₁ of (2.16) being the derivative of (r₁ + Gᵀ s₁, r₂ + Gᵀ s₂) for
fixed s,

    J₁ (Δq, Δv) + (Gᵀ k₁, Gᵀ k₂) = −(X P r₁, X P r₂),     G Δq = −g,     G Δv + d(G v)/dq Δq = −G v

This is the matrix of the GGL form with the multipliers μ = s₁, λ = s₂, whose elimination is emitted: J₁, 2n ×
2n, first, then k.  The iterates are those of Newton's method.

CS   P(q), s and the right-hand side at the current iterate.
CM   d(Gᵀs)/dq = 0, so the matrix has μ = λ = 0 (3.11), and P is fixed: at the prediction of each step, which
     converges with the order of the method; or, as printed, at the last evaluation of the matrix and kept
     over several steps, which damps, and does not converge as the tolerance falls.

Deviations from the paper, where it is wrong.  P Pᵀ = I + QᵀQ, not I (Remark 2.1).  (2.17) asks for P J₁⁻¹ r =
0 instead of P r = 0, and (2.23) … (2.26) follow it; they drop the factor (I + QᵀQ)⁻¹ as well.  Remark 3.1
would need the annihilator of M⁻¹Gᵀ; with r₂ as above nothing of it is needed.

With velocity constraints C has the rows of G first and theirs behind; the elimination of Cᵀ contains that of
Gᵀ.  Rows that depend on those before them are left out.

References
----------
J. Yen, L. Petzold, An efficient Newton-type iteration for the numerical solution of highly oscillatory
constrained multibody dynamic systems, SIAM J. Sci. Comput. 19 (1998) 1513-1534; technical report TR 96-028,
University of Minnesota (1996).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import casadi as ca
import numpy as np
from numba import njit

from holonome.arguments import check_fields
from holonome.equations.model import Model
from holonome.formulations.contract import Formulation
from holonome.formulations.ggl import GGL
from holonome.formulations.implicit import FormulationState, ImplicitKernels, Residual, formulation_state
from holonome.machine.calls import NativeKernel, call, shift
from holonome.machine.context import OK, SINGULAR, SPARE
from holonome.machine.layout import Layout, Real, Vector, Whole, lay_out
from holonome.problem.system import System


class Split(Layout):
    """The formulation's own memory: which iteration, and what is known of the split."""

    coordinates: Whole
    states: Whole  # first-order states
    rows: Whole
    position_rows: Whole
    current_p: Whole  # CS: P follows the iterate
    frozen_p: Whole  # CM as printed: P is kept as long as the matrix
    with_velocities: Whole  # what the error test sees
    times_kappa: Whole
    equations: Whole  # address of the GGL residual
    jacobian: Whole  # address of C
    chosen: Real  # largest entry of Q when the split was chosen; 0: there is none
    rank: Whole
    position_rank: Whole
    kappa: Real
    largest: Real  # entry of Q
    changes: Whole  # how often the split was chosen anew
    mask: Vector  # weights of the error test
    spare: Vector  # e, which marks the rows that are left out
    T: Vector  # Cᵀ, eliminated; n × m, by rows
    T_end: Vector  # the same at the end of a step
    order: Vector  # pivot rows, so the dependent coordinates
    columns: Vector  # the column of each
    place: Vector  # of each coordinate among the pivots; n: independent
    scale: Vector  # largest entry of each column
    work: Vector


_named = Split.named()
_OWN = FormulationState.words


@njit(cache=True)
def _split_in(block):
    return _named(shift(block, _OWN))


_DEPENDENT = 1e-9
"""A column of Gᵀ that elimination leaves with less than this of its size depends on those before it."""

_GROWTH, _ACCEPTABLE = 2.0, 4.0
"""The split is chosen anew when the largest entry of Q has grown by the first factor since, and is larger
than the second.
"""

LARGEST_SPLIT = 200_000_000
"""n m²: the split is found, and measured in every step, by dense elimination."""

_TESTS = {"x": (0, 0), "xw": (1, 0), "bound": (1, 1)}
"""Whether an error test sees velocities, and whether it is multiplied by κ."""


@dataclass(frozen=True)
class CoordinateSplit(Formulation):
    """Coordinate splitting.

    Parameters
    ----------
    iteration
        "CS", Newton's method, or "CM", its modification for highly oscillatory systems.
    refresh
        For CM, where P is taken: "step", at the prediction of every step; "jacobian", at the last evaluation
        of the matrix, as the paper has it.  The latter damps the motion and does not converge; it is there to
        reproduce the paper.
    error_test
        What the error test sees: "x", the independent positions (section 5.1), "xw", with their velocities
        (section 5.2), or "bound", the estimate (2.27) of the error of all coordinates, κ ‖(Δx, Δw)‖ with κ =
        ‖Q‖.

    References
    ----------
    J. Yen, L. Petzold, SIAM J. Sci. Comput. 19 (1998) 1513-1534.

    Examples
    --------
    >>> import holonome as hn
    >>> crank = hn.mechanisms.slider_crank_unequal()
    >>> sol = hn.solve(
    ...     crank.system, (0, 1), crank.q0, crank.v0,
    ...     method=hn.Method(hn.CoordinateSplit("CS"), hn.BDF()),
    ... )
    >>> sol.success, sol.drift[0] < 1e-6
    (True, True)
    """

    iteration: str = "CM"
    refresh: str = "step"
    error_test: str = "xw"
    offers: ClassVar[tuple[str, ...]] = ("residual",)

    def __post_init__(self) -> None:
        check_fields(self)

    def residual(self, model: Model) -> Residual:
        """That of the GGL form, for its matrix; the error test is found with the split."""
        refuse_lam(model, "CoordinateSplit")
        return replace(GGL().residual(model), error_tested=np.zeros(0))

    def kernels(self, system: System) -> SplitKernels:
        return SplitKernels(system, self)


def refuse_lam(model: Model, name: str) -> None:
    """An iteration without multipliers cannot evaluate forces that depend on them."""
    if model.lam.numel():
        raise ValueError(
            f"method: {name.partition('(')[0]} takes the multipliers from the forces, so the forces must not "
            "depend on lam; use 'ggl', 'bdf' or an explicit method"
        )


class PredictionKernels(ImplicitKernels):
    """The kernels of the GGL form; multipliers are predicted as s₁ and s₂ of the predicted motion, and the
    error test may see the independent coordinates.
    """

    def __init__(
        self, system: System, name: str, residual: Callable[[Model], Residual], error_test: str
    ) -> None:
        super().__init__(system, name, residual)
        refuse_lam(system.model, name)
        if system.n * system.m**2 > LARGEST_SPLIT:
            raise ValueError(
                f"method: {name.partition('(')[0]} splits coordinates by dense elimination, which is too "
                f"slow for {system.n} coordinates and {system.m} constraints"
                "; use 'ggl' or 'bdf'"
            )
        self.error_test = error_test

    @property
    def prediction(self) -> int:
        return split_at_prediction.address

    @property
    def block(self) -> np.ndarray:
        """The formulation's own memory."""
        return lay_out((FormulationState, {}), (Split, self._split()))

    def _split(self) -> dict[str, Any]:
        model = self.system.model
        n, m, mg = model.n, model.rows, model.position_rows
        with_velocities, times_kappa = _TESTS.get(self.error_test, (0, 0))

        def transposed(model: Model) -> tuple[ca.SX, ca.SX, ca.SX, None]:
            return model.y, ca.SX(0, 1), ca.densify(ca.reshape(model.C, m * n, 1)), None

        return {
            "coordinates": n,
            "states": model.states,
            "rows": m,
            "position_rows": mg,
            "current_p": 1,
            "with_velocities": with_velocities,
            "times_kappa": times_kappa,
            "equations": ImplicitKernels.F.__get__(self),
            "jacobian": self._address("jacobian", transposed) if m else 0,
            "mask": self.size,
            "spare": m + mg,
            "T": n * m,
            "T_end": n * m,
            "order": m,
            "columns": m,
            "place": n,
            "scale": m,
            "work": self.size + m + mg,
        }

    @property
    def borrowed(self) -> dict[str, int]:
        """Vectors of BDF that stand in the block, and where: the weights of the error test."""
        return {"error_mask": _place_of("mask", self.block)} if self.error_test else {}

    def splits(self, block: np.ndarray) -> int:
        """How often the coordinates were split anew."""
        return int(Split.of(block, _OWN)["changes"])


def _place_of(name: str, block: np.ndarray) -> int:
    return _OWN + int(Split.of(block, _OWN)[name])


class SplitKernels(PredictionKernels):
    """Around the kernels of the GGL form those of the split."""

    def __init__(self, system: System, formulation: CoordinateSplit) -> None:
        super().__init__(system, "CoordinateSplit", formulation.residual, formulation.error_test)
        self.formulation = formulation

    @property
    def F(self) -> int:
        return projected_residual.address

    @property
    def after(self) -> int:
        return multipliers.address

    def _split(self) -> dict[str, Any]:
        newton = self.formulation.iteration == "CS"
        frozen = self.formulation.iteration == "CM" and self.formulation.refresh == "jacobian"
        return super()._split() | {"current_p": newton, "frozen_p": frozen}

    @property
    def borrowed(self) -> dict[str, int]:
        """The weights of the error test, and e."""
        return super().borrowed | {"spare": _place_of("spare", self.block)}


@njit(cache=True)
def _eliminate(b, T, k):
    """Step k of (2.2): multipliers below the pivot, in the rows that are no pivots yet, and what they do to
    the columns behind.
    """
    m, place, pivot, column = b.rows, b.place, int(b.order[k]), int(b.columns[k])
    for i in range(b.coordinates):
        if place[i] > k:
            factor = T[i * m + column] / T[pivot * m + column]
            T[i * m + column] = factor
            if factor != 0.0:
                for j in range(column + 1, m):
                    T[i * m + j] -= factor * T[pivot * m + j]


@njit(cache=True)
def _largest_free(b, T, j):
    """The row of the largest entry of a column among those that are no pivots; −1 if the column depends on
    others.
    """
    best, size = -1, _DEPENDENT * b.scale[j]
    for i in range(b.coordinates):
        if b.place[i] == b.coordinates and abs(T[i * b.rows + j]) > size:
            best, size = i, abs(T[i * b.rows + j])
    return best


@njit(cache=True)
def _choose(b, T):
    """Pivot rows, the dependent coordinates Y, by the largest entry; columns without one depend on those
    before.

    Sets e and the ranks; True if e changed.
    """
    n, m, mg, changed = b.coordinates, b.rows, b.position_rows, False
    b.rank = 0
    b.position_rank = 0
    for i in range(n):
        b.place[i] = n
    for j in range(m):
        b.scale[j] = 0.0
        for i in range(n):
            b.scale[j] = max(b.scale[j], abs(T[i * m + j]))
    for j in range(m):
        best = _largest_free(b, T, j)
        e = SPARE if best < 0 else 0.0
        changed = changed or b.spare[j] != e
        b.spare[j] = e
        if j < mg:
            b.spare[m + j] = e
        if best < 0:
            continue
        b.order[b.rank] = best
        b.columns[b.rank] = j
        b.place[best] = b.rank
        _eliminate(b, T, b.rank)
        b.rank += 1
        if j < mg:
            b.position_rank = b.rank
    return changed


@njit(cache=True)
def _factor(b, T):
    """(2.2) with the pivots that are in use; False if one of them has lost its digits."""
    for k in range(b.rank):
        column = int(b.columns[k])
        if not abs(T[int(b.order[k]) * b.rows + column]) > _DEPENDENT * b.scale[column]:
            return False
        _eliminate(b, T, k)
    return True


@njit(cache=True)
def _measure(b, T):
    """Largest entry of Q and its norm κ, from Qᵀ = L_x L⁻¹."""
    n, m, rank, largest, order, columns, work = b.coordinates, b.rows, b.rank, 0.0, b.order, b.columns, b.work
    for k in range(rank):
        work[rank + k] = 0.0
    for i in range(n):
        if b.place[i] < n:
            continue
        for k in range(rank - 1, -1, -1):
            z = T[i * m + int(columns[k])]
            for l in range(k + 1, rank):
                z -= work[l] * T[int(order[l]) * m + int(columns[k])]
            work[k] = z
            work[rank + k] += abs(z)
            largest = max(largest, abs(z))
    b.largest = largest
    b.kappa = 0.0
    for k in range(rank):
        b.kappa = max(b.kappa, work[rank + k])


@njit(cache=True)
def _project(b, T, r, rank):
    """Replace r by X P r: L⁻¹ Yᵀ r, then Xᵀ r − L_x L⁻¹ Yᵀ r, and zero for the dependent coordinates."""
    m, order, columns, place = b.rows, b.order, b.columns, b.place
    for k in range(rank):
        y = r[int(order[k])]
        if y != 0.0:
            for i in range(b.coordinates):
                if place[i] > k:
                    r[i] -= T[i * m + int(columns[k])] * y
    for k in range(rank):
        r[int(order[k])] = 0.0


@njit(cache=True)
def _multiplier(b, T, r, rank, out, rows):
    """Solve s = −(G Y)⁻ᵀ Yᵀ r = −U⁻¹ L⁻¹ Yᵀ r; zero for rows that are left out.  Overwrites Yᵀ r."""
    m, order, columns = b.rows, b.order, b.columns
    for j in range(rows):
        out[j] = 0.0
    for k in range(rank):
        y = r[int(order[k])]
        for l in range(k + 1, rank):
            r[int(order[l])] -= T[int(order[l]) * m + int(columns[k])] * y
    for k in range(rank - 1, -1, -1):
        s = r[int(order[k])]
        for l in range(k + 1, rank):
            s += T[int(order[k]) * m + int(columns[l])] * out[int(columns[l])]
        out[int(columns[k])] = -s / T[int(order[k]) * m + int(columns[k])]


@njit(cache=True)
def _multipliers(b, T, r, out):
    """λ = s₂ and μ = s₁ from the residuals r₁ and r₂."""
    _multiplier(b, T, shift(r, b.coordinates), b.rank, out, b.rows)
    _multiplier(b, T, r, b.position_rank, shift(out, b.rows), b.position_rows)


@njit(cache=True)
def _test_independent(b):
    """What the error test sees: Xᵀq; with velocities, Xᵀv; with (2.27), κ times that; states always."""
    n, mask, place = b.coordinates, b.mask, b.place
    weight = max(1.0, b.kappa) if b.times_kappa else 1.0
    for i in range(n):
        mask[i] = weight if place[i] >= b.position_rank else 0.0
        mask[n + i] = weight if place[i] >= b.rank and b.with_velocities else 0.0
    for i in range(2 * n, 2 * n + b.states):
        mask[i] = weight


@njit(cache=True)
def _equations(b, t, y, context, out):
    """(r₁, r₂, …, w, g): the residual of the GGL form without multipliers."""
    first = 2 * b.coordinates + b.states
    for i in range(first, first + b.rows + b.position_rows):
        y[i] = 0.0
    return call(b.equations, t, y, y, context, out)


@njit(cache=True)
def _split_anew(b, t, y, context):
    """Choose the split at a position; whether another matrix is due."""
    call(b.jacobian, t, y, y, context, b.T)
    changed = _choose(b, b.T)
    _measure(b, b.T)
    if b.chosen > 0.0:
        b.changes += 1
    b.chosen = max(b.largest, 1e-300)
    return changed


@NativeKernel
def split_at_prediction(t, y, block, context, out):
    """Check the split at the predicted position, choose it anew if need be; out = (λ, μ) for the matrix: s
    for CS, zero for CM.
    """
    b, state = _split_in(block), formulation_state(block)
    for i in range(b.rows + b.position_rows):
        out[i] = 0.0
    state.changed = 0
    if b.frozen_p and not state.fresh:
        return OK
    if b.rows > 0:
        status = call(b.jacobian, t, y, y, context, b.T)
        if status != OK:
            return status
        chosen = b.chosen > 0.0 and _factor(b, b.T)
        if chosen:
            _measure(b, b.T)
            chosen = b.largest <= max(_ACCEPTABLE, _GROWTH * b.chosen)
        if not chosen:
            state.changed = _split_anew(b, t, y, context)
        if not b.kappa < 1e12:
            return SINGULAR
    else:
        for i in range(b.coordinates):
            b.place[i] = b.coordinates
    _test_independent(b)
    if b.current_p:
        status = _equations(b, t, y, context, b.work)
        if status != OK:
            return status
        _multipliers(b, b.T, b.work, out)
    return OK


@NativeKernel
def projected_residual(t, y, block, context, out):
    """(X P r₁, X P r₂, G v, g), with P at the current iterate (CS) or where it was fixed (CM)."""
    b = _split_in(block)
    status = _equations(b, t, y, context, out)
    if status != OK:
        return status
    if b.current_p and b.rows > 0:
        status = call(b.jacobian, t, y, y, context, b.T)
        if status != OK:
            return status
        if not _factor(b, b.T):
            return SINGULAR
    _project(b, b.T, out, b.position_rank)
    _project(b, b.T, shift(out, b.coordinates), b.rank)
    return OK


@NativeKernel
def multipliers(t, y, block, context, out):
    """After the fact: λ = s₂ and μ = s₁ at the end of a step, (3.3) with the G of that point."""
    b = _split_in(block)
    status = _equations(b, t, y, context, b.work)
    if status != OK or b.rows == 0:
        return status
    status = call(b.jacobian, t, y, y, context, b.T_end)
    if status != OK:
        return status
    if not _factor(b, b.T_end):
        return SINGULAR
    _multipliers(b, b.T_end, b.work, out)
    return OK
