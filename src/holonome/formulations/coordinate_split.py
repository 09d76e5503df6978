"""Coordinate splitting, sections 2 and 3 of Yen & Petzold 1996: the iterations CS and CM.

A discretised GGL form without its multipliers.  With r₁ = ρ_h q − v and r₂ = M ρ_h v − f the equations of a
step are (2.12)

    P(q) r₁ = 0,     P(q) r₂ = 0,     G v = 0,     g = 0;          P = Xᵀ − Qᵀ Yᵀ,     Q = (G Y)⁻¹ G X                       (2.1)

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
CM   d(Gᵀs)/dq = 0, so the matrix has μ = λ = 0 (3.11), and P is fixed: at the prediction of each step, which converges with the order of the method; or, as printed, at the
     last evaluation of the matrix and kept over several steps, which damps, and does not converge as the
     tolerance falls.

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

import casadi as ca
import numpy as np
from numba import njit

from holonome.equations.model import Model
from holonome.formulations.ggl import GGL
from holonome.formulations.implicit import CHANGED, FRESH, ImplicitKernels, Residual
from holonome.machine.calls import NativeKernel, call, shift
from holonome.machine.context import OK, SINGULAR, SPARE
from holonome.problem.system import System

(
    N,
    ROWS,
    POSITION_ROWS,
    CURRENT_P,
    FROZEN_P,
    WITH_V,
    TIMES_KAPPA,
    EQUATIONS,
    JACOBIAN,
    CHOSEN,
    RANK,
    POSITION_RANK,
    KAPPA,
    LARGEST_Q,
    CHANGES,
    STATES,
) = range(2, 18)
"""The block goes on with: sizes; which iteration; addresses of the GGL residual and of C; the largest entry
of Q when the split was chosen; what is known of the split.
"""
HEADER = 20

_DEPENDENT = 1e-9
"""A column of Gᵀ that elimination leaves with less than this of its size depends on those before it."""

_GROWTH, _ACCEPTABLE = 2.0, 4.0
"""The split is chosen anew when the largest entry of Q has grown by the first factor since, and is larger
than the second.
"""

LARGEST_SPLIT = 200_000_000
"""n m²: the split is found, and measured in every step, by dense elimination."""

_TESTS = {"x": (0.0, 0.0), "xw": (1.0, 0.0), "bound": (1.0, 1.0)}


@dataclass(frozen=True)
class CoordinateSplit:
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
    >>> sol = hn.solve(crank.system, (0, 1), crank.q0, crank.v0, method=hn.Method(hn.CoordinateSplit("CS"), hn.BDF()))
    >>> sol.success, sol.drift[0] < 1e-6
    (True, True)
    """

    iteration: str = "CM"
    refresh: str = "step"
    error_test: str = "xw"

    def __post_init__(self) -> None:
        if self.iteration not in ("CS", "CM"):
            raise ValueError(f"iteration: {self.iteration!r} is not known; choose 'CS' or 'CM'")
        if self.refresh not in ("step", "jacobian"):
            raise ValueError(f"refresh: {self.refresh!r} is not known; choose 'step' or 'jacobian'")
        if self.error_test not in _TESTS:
            raise ValueError(
                f"error_test: {self.error_test!r} is not known; choose {', '.join(map(repr, _TESTS))}"
            )

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
        if system.dim * system.m**2 > LARGEST_SPLIT:
            raise ValueError(
                f"method: {name.partition('(')[0]} splits coordinates by dense elimination, which is too "
                f"slow for {system.dim} coordinates and {system.m} constraints"
                "; use 'ggl' or 'bdf'"
            )
        self.error_test = error_test

    @property
    def prediction(self) -> int:
        return split_at_prediction.address

    @property
    def block(self) -> np.ndarray:
        """Memory of the split: a header, then the arrays of `_places`."""
        model = self.system.model
        n, m, mg = model.n, model.rows, model.position_rows
        C = (
            self._address(
                "jacobian",
                lambda model: (model.y, ca.SX(0, 1), ca.densify(ca.reshape(model.C, m * n, 1)), None),
            )
            if m
            else 0
        )
        block = np.zeros(_places(n, m, mg)[-1])
        block[[N, ROWS, POSITION_ROWS, EQUATIONS, JACOBIAN]] = n, m, mg, ImplicitKernels.F.__get__(self), C
        block[CURRENT_P], block[STATES] = 1.0, model.states
        block[[WITH_V, TIMES_KAPPA]] = _TESTS.get(self.error_test, (0.0, 0.0))
        return block

    @property
    def error_mask_at(self) -> int:
        """Where in the block the weights of the error test stand."""
        model = self.system.model
        return _places(model.n, model.rows, model.position_rows)[0] if self.error_test else -1


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

    @property
    def block(self) -> np.ndarray:
        block, formulation = super().block, self.formulation
        block[CURRENT_P] = formulation.iteration == "CS"
        block[FROZEN_P] = formulation.iteration == "CM" and formulation.refresh == "jacobian"
        return block

    @property
    def spare_at(self) -> int:
        """Where in the block e stands, which marks the rows that are left out."""
        model = self.system.model
        return _places(model.n, model.rows, model.position_rows)[1]


def _places(n, m, mg):
    """Where the arrays of the block begin: error mask, e, T, pivot rows, pivot columns, position of each
    coordinate, scale, T at the end of a step, work; and its size.
    """
    mask = HEADER
    spare = mask + 2 * n + m + mg
    T = spare + m + mg
    order = T + n * m
    columns = order + m
    place = columns + m
    scale = place + n
    T_end = scale + m
    work = T_end + n * m
    return mask, spare, T, order, columns, place, scale, T_end, work, work + 2 * n + 2 * (m + mg) + 8


_numba_places = njit(cache=True)(_places)


@njit(cache=True)
def _eliminate(T, block, k, n, m, order, columns, place):
    """Step k of (2.2): multipliers below the pivot, in the rows that are no pivots yet, and what they do to
    the columns behind.
    """
    pivot, column = int(order[k]), int(columns[k])
    for i in range(n):
        if place[i] > k:
            factor = T[i * m + column] / T[pivot * m + column]
            T[i * m + column] = factor
            if factor != 0.0:
                for j in range(column + 1, m):
                    T[i * m + j] -= factor * T[pivot * m + j]


@njit(cache=True)
def _choose(T, block, n, m, mg, order, columns, place, scale, spare):
    """Pivot rows, the dependent coordinates Y, by the largest entry; columns without one depend on those
    before.  Sets e and the ranks; True if e changed.
    """
    rank, position_rank, changed = 0, 0, False
    for i in range(n):
        place[i] = n
    for j in range(m):
        scale[j] = 0.0
        for i in range(n):
            scale[j] = max(scale[j], abs(T[i * m + j]))
    for j in range(m):
        best, size = -1, _DEPENDENT * scale[j]
        for i in range(n):
            if place[i] == n and abs(T[i * m + j]) > size:
                best, size = i, abs(T[i * m + j])
        e = SPARE if best < 0 else 0.0
        changed = changed or spare[j] != e
        spare[j] = e
        if j < mg:
            spare[m + j] = e
        if best < 0:
            continue
        order[rank], columns[rank], place[best] = best, j, rank
        _eliminate(T, block, rank, n, m, order, columns, place)
        rank += 1
        if j < mg:
            position_rank = rank
    block[RANK], block[POSITION_RANK] = rank, position_rank
    return changed


@njit(cache=True)
def _factor(T, block, n, m, order, columns, place, scale):
    """(2.2) with the pivots that are in use; False if one of them has lost its digits."""
    for k in range(int(block[RANK])):
        pivot = T[int(order[k]) * m + int(columns[k])]
        if not abs(pivot) > _DEPENDENT * scale[int(columns[k])]:
            return False
        _eliminate(T, block, k, n, m, order, columns, place)
    return True


@njit(cache=True)
def _measure(T, block, n, m, order, columns, place, work):
    """Largest entry of Q and its norm κ, from Qᵀ = L_x L⁻¹."""
    rank, largest = int(block[RANK]), 0.0
    for k in range(rank):
        work[rank + k] = 0.0
    for i in range(n):
        if place[i] < n:
            continue
        for k in range(rank - 1, -1, -1):
            z = T[i * m + int(columns[k])]
            for l in range(k + 1, rank):
                z -= work[l] * T[int(order[l]) * m + int(columns[k])]
            work[k] = z
            work[rank + k] += abs(z)
            largest = max(largest, abs(z))
    block[LARGEST_Q], block[KAPPA] = largest, 0.0
    for k in range(rank):
        block[KAPPA] = max(block[KAPPA], work[rank + k])


@njit(cache=True)
def _project(T, r, rank, n, m, order, columns, place):
    """Replace r by X P r: L⁻¹ Yᵀ r, then Xᵀ r − L_x L⁻¹ Yᵀ r, and zero for the dependent coordinates."""
    for k in range(rank):
        y = r[int(order[k])]
        if y != 0.0:
            for i in range(n):
                if place[i] > k:
                    r[i] -= T[i * m + int(columns[k])] * y
    for k in range(rank):
        r[int(order[k])] = 0.0


@njit(cache=True)
def _multiplier(T, r, rank, m, order, columns, out, rows):
    """Solve s = −(G Y)⁻ᵀ Yᵀ r = −U⁻¹ L⁻¹ Yᵀ r; zero for rows that are left out.  Overwrites Yᵀ r."""
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
def _test_independent(block, n, place, mask):
    """What the error test sees: Xᵀq; with velocities, Xᵀv; with (2.27), κ times that."""
    weight = max(1.0, block[KAPPA]) if block[TIMES_KAPPA] > 0.0 else 1.0
    for i in range(n):
        mask[i] = weight if place[i] >= block[POSITION_RANK] else 0.0
        mask[n + i] = (
            weight if place[i] >= block[RANK] and (block[WITH_V] > 0.0 or i >= n - block[STATES]) else 0.0
        )


@njit(cache=True)
def _equations(t, y, block, context, out):
    """(r₁, r₂, w, g): the residual of the GGL form without multipliers."""
    n, m, mg = int(block[N]), int(block[ROWS]), int(block[POSITION_ROWS])
    for i in range(2 * n, 2 * n + m + mg):
        y[i] = 0.0
    return call(int(block[EQUATIONS]), t, y, y, context, out)


@NativeKernel
def split_at_prediction(t, y, block, context, out):
    """Check the split at the predicted position, choose it anew if need be; out = (λ, μ) for the matrix: s
    for CS, zero for CM.
    """
    n, m, mg = int(block[N]), int(block[ROWS]), int(block[POSITION_ROWS])
    mask, spare, T, order, columns, place, scale, _, work, _ = _numba_places(n, m, mg)
    T, order, columns, place, work = (
        shift(block, T),
        shift(block, order),
        shift(block, columns),
        shift(block, place),
        shift(block, work),
    )
    for i in range(m + mg):
        out[i] = 0.0
    block[CHANGED] = 0.0
    if block[FROZEN_P] > 0.0 and block[FRESH] == 0.0:
        return OK
    if m > 0:
        status = call(int(block[JACOBIAN]), t, y, y, context, T)
        if status != OK:
            return status
        chosen = block[CHOSEN] > 0.0 and _factor(T, block, n, m, order, columns, place, shift(block, scale))
        if chosen:
            _measure(T, block, n, m, order, columns, place, work)
            chosen = block[LARGEST_Q] <= max(_ACCEPTABLE, _GROWTH * block[CHOSEN])
        if not chosen:
            status = call(int(block[JACOBIAN]), t, y, y, context, T)
            if _choose(T, block, n, m, mg, order, columns, place, shift(block, scale), shift(block, spare)):
                block[CHANGED] = 1.0
            _measure(T, block, n, m, order, columns, place, work)
            if block[CHOSEN] > 0.0:
                block[CHANGES] += 1.0
            block[CHOSEN] = max(block[LARGEST_Q], 1e-300)
        if not block[KAPPA] < 1e12:
            return SINGULAR
    else:
        for i in range(n):
            place[i] = n
    _test_independent(block, n, place, shift(block, mask))
    if block[CURRENT_P] > 0.0:
        status = _equations(t, y, block, context, work)
        if status != OK:
            return status
        _multiplier(T, shift(work, n), int(block[RANK]), m, order, columns, out, m)
        _multiplier(T, work, int(block[POSITION_RANK]), m, order, columns, shift(out, m), mg)
    return OK


@NativeKernel
def projected_residual(t, y, block, context, out):
    """(X P r₁, X P r₂, G v, g), with P at the current iterate (CS) or where it was fixed (CM)."""
    n, m, mg = int(block[N]), int(block[ROWS]), int(block[POSITION_ROWS])
    _, _, T, order, columns, place, scale, _, _, _ = _numba_places(n, m, mg)
    T, order, columns, place = (
        shift(block, T),
        shift(block, order),
        shift(block, columns),
        shift(block, place),
    )
    status = _equations(t, y, block, context, out)
    if status != OK:
        return status
    if block[CURRENT_P] > 0.0 and m > 0:
        status = call(int(block[JACOBIAN]), t, y, y, context, T)
        if status != OK:
            return status
        if not _factor(T, block, n, m, order, columns, place, shift(block, scale)):
            return SINGULAR
    _project(T, out, int(block[POSITION_RANK]), n, m, order, columns, place)
    _project(T, shift(out, n), int(block[RANK]), n, m, order, columns, place)
    return OK


@NativeKernel
def multipliers(t, y, block, context, out):
    """After the fact: λ = s₂ and μ = s₁ at the end of a step, (3.3) with the G of that point."""
    n, m, mg = int(block[N]), int(block[ROWS]), int(block[POSITION_ROWS])
    _, _, _, order, columns, place, scale, T, work, _ = _numba_places(n, m, mg)
    T, order, columns, place, work = (
        shift(block, T),
        shift(block, order),
        shift(block, columns),
        shift(block, place),
        shift(block, work),
    )
    status = _equations(t, y, block, context, work)
    if status != OK or m == 0:
        return status
    status = call(int(block[JACOBIAN]), t, y, y, context, T)
    if status != OK:
        return status
    if not _factor(T, block, n, m, order, columns, place, shift(block, scale)):
        return SINGULAR
    _multiplier(T, shift(work, n), int(block[RANK]), m, order, columns, out, m)
    _multiplier(T, work, int(block[POSITION_RANK]), m, order, columns, shift(out, m), mg)
    return OK
