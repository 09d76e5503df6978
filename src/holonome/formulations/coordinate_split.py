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

CS needs nothing of a step but its residuals, so that Radau methods can take it as well: each of their stages
has the P of its own position, all of a step the same Y, and the multipliers, which no stage knows, are s at
the point of the matrix.  CM would need a P for each predicted stage: one P for all of them errs by O(h) in
Gᵀλ, and with it the order is lost.  So CM is for BDF.

With velocity constraints C has the rows of G first, then theirs; the elimination of Cᵀ contains that of
Gᵀ.  Rows that depend on those before them are left out.

References
----------
J. Yen, L. Petzold, An efficient Newton-type iteration for the numerical solution of highly oscillatory
constrained multibody dynamic systems, SIAM J. Sci. Comput. 19 (1998) 1513-1534; technical report TR 96-028,
University of Minnesota (1996).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import casadi as ca
import numpy as np
from numba import njit

from holonome.arguments import check_fields
from holonome.equations.model import Model
from holonome.formulations import split
from holonome.formulations.contract import Formulation
from holonome.formulations.ggl import GGL
from holonome.formulations.implicit import FormulationState, ImplicitKernels, Residual, formulation_state
from holonome.formulations.split import Split
from holonome.machine.calls import NativeKernel, call, shift
from holonome.machine.context import OK, SINGULAR
from holonome.machine.layout import lay_out
from holonome.problem.system import System

_named = Split.named()
_OWN = FormulationState.words


@njit(cache=True)
def _split_in(block):
    return _named(shift(block, _OWN))


_GROWTH, _ACCEPTABLE = 2.0, 4.0
"""The split is chosen again when the largest entry of Q has grown by the first factor since the last choice,
and is larger than the second.
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
    mean
        Over what the error test takes its root mean square: "independent", what it sees, or "all", as many
        components as there are coordinates, which is laxer; Table 5.1 of the paper suggests it.

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
    mean: str = "independent"
    offers: ClassVar[tuple[str, ...]] = ("residual",)

    @property
    def for_bdf(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """CM fixes P at the one prediction that a step of BDF has; CS evaluates it wherever it is asked."""
        return self.iteration == "CM"

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
            "row_shift": m + mg,
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
        """Vectors of BDF that lie in the block, and where: the weights of the error test."""
        return {"error_mask": _place_of("mask", self.block)} if self.error_test else {}

    def splits(self, block: np.ndarray) -> int:
        """How often the split of the coordinates was changed."""
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
        over_all = self.formulation.mean == "all"
        return super()._split() | {"current_p": newton, "frozen_p": frozen, "over_all": over_all}

    @property
    def borrowed(self) -> dict[str, int]:
        """The weights of the error test, and e."""
        return super().borrowed | {"row_shift": _place_of("row_shift", self.block)}


@njit(cache=True)
def _test_independent(b):
    """What the error test sees: Xᵀq; with velocities, Xᵀv; with (2.27), κ times that; states always.

    BDF divides by their number; over all coordinates the weights make up for it.
    """
    n, mask, place = b.coordinates, b.mask, b.place
    weight = max(1.0, b.kappa) if b.times_kappa else 1.0
    if b.over_all:
        seen = n - b.position_rank + (n - b.rank if b.with_velocities else 0) + b.states
        weight *= math.sqrt(seen / (n + (n if b.with_velocities else 0) + b.states))
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
    """Choose the split at a position; whether a new matrix is needed."""
    call(b.jacobian, t, y, y, context, b.T)
    changed = split.choose(b, b.T)
    split.measure(b, b.T)
    if b.chosen > 0.0:
        b.changes += 1
    b.chosen = max(b.largest, 1e-300)
    return changed


@NativeKernel
def split_at_prediction(t, y, block, context, out):
    """Check the split at the predicted position, choose another if necessary; out = (λ, μ) for the matrix: s
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
        chosen = b.chosen > 0.0 and split.factor(b, b.T)
        if chosen:
            split.measure(b, b.T)
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
        split.multipliers(b, b.T, b.work, out)
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
        if not split.factor(b, b.T):
            return SINGULAR
    split.project(b, b.T, out, b.position_rank)
    split.project(b, b.T, shift(out, b.coordinates), b.rank)
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
    if not split.factor(b, b.T_end):
        return SINGULAR
    split.multipliers(b, b.T_end, b.work, out)
    return OK
