"""Small deviations from a state, on the manifold: δx = T z, z′ = A z + B u.

Deviations of positions ξ and of velocities ζ satisfy the linearised constraints,

    G ξ = 0,     W ξ + C ζ = 0      (W = ∂w/∂q, with w the constraints on the velocity level),

so that ξ = T_q y and ζ = T_v η + V y, where y and η are independent coordinates and velocities, chosen by
pivoting.  At an equilibrium, and in a steady motion seen in the frame that moves along (with the matrix X),

    ξ′ = ζ − X ξ,     M ζ′ = −K ξ − (D + M X) ζ − S σ − Cᵀ δλ + B u,

where K = ∂(M a + Cᵀ λ − f)/∂q contains the geometric stiffness of the constraint forces.  At any other state
y and η obey  y′ = v,  η′ = a  with the derivatives of the accelerations on the manifold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from holonome.analysis.balance import Balance
from holonome.analysis.given import Place
from holonome.analysis.newton import null_space
from holonome.analysis.symmetry import steady_acceleration
from holonome.errors import SingularSystem
from holonome.problem.system import System

_SINGULAR, _ROUNDING = 1e-13, 4e-15


@dataclass(frozen=True, eq=False)
class Tangent:
    """Bases of the deviations that constraints allow.

    Attributes
    ----------
    Tq, Tv, V
        ξ = Tq y,  ζ = Tv η + V y.
    iq, iv, states
        Numbers of the independent coordinates, velocities and first-order states.
    """

    Tq: np.ndarray
    Tv: np.ndarray
    V: np.ndarray
    iq: np.ndarray
    iv: np.ndarray
    states: np.ndarray

    @property
    def size(self) -> int:
        return self.iq.size + self.iv.size + self.states.size

    def names(self, system: System) -> list[str]:
        """Of the entries of z."""
        states = list(system.states)
        return [
            *(system.names[i] for i in self.iq),
            *(f"{system.names[i]}'" for i in self.iv),
            *(states[i] for i in self.states),
        ]

    def deviations(self, z: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(ξ, ζ, σ) of z, or of its columns."""
        y, eta, sigma = np.split(z, [self.iq.size, self.iq.size + self.iv.size])
        s = np.zeros((k, *z.shape[1:]), z.dtype)
        s[self.states] = sigma
        return self.Tq @ y, self.Tv @ eta + self.V @ y, s


@dataclass(frozen=True, eq=False)
class Reduced:
    """z′ = A z + B u + rates; deviations of accelerations and multipliers as matrices of z and of u."""

    tangent: Tangent
    A: np.ndarray
    B: np.ndarray
    rates: np.ndarray
    a: tuple[np.ndarray, np.ndarray]
    lam: tuple[np.ndarray, np.ndarray]
    second_order: tuple[np.ndarray, np.ndarray, np.ndarray] | None
    follows_multipliers: bool


def tangent_at(system: System, G: np.ndarray, C: np.ndarray, W: np.ndarray) -> Tangent:
    """The allowed deviations, in independent coordinates."""
    Tq, iq = _independent(G, system.n)
    Tv, iv = (Tq, iq) if len(G) == len(C) else _independent(C, system.n)
    V = np.zeros_like(Tq)
    if C.size and np.any(W):
        scale = np.maximum(np.max(np.abs(C), axis=1, keepdims=True), 1e-300)
        V = -np.linalg.lstsq(C / scale, (W @ Tq) / scale, rcond=1e-10)[0]
        V -= Tv @ V[iv]
    counted = set(getattr(system, "counted_turns", ()))
    states = np.array([k for k in range(len(system.states)) if k not in counted], dtype=int)
    return Tangent(Tq, Tv, V, iq, iv, states)


def _independent(J: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """A basis of the null space that is the identity at some coordinates, and their numbers."""
    if not J.size:
        return np.eye(n), np.arange(n)
    Z = null_space(J)
    if not Z.shape[1]:
        return Z, np.zeros(0, int)
    *_, order = scipy.linalg.qr(Z.T, mode="economic", pivoting=True)
    chosen = np.sort(order[: Z.shape[1]])
    T = Z @ np.linalg.inv(Z[chosen])
    T[np.abs(T) < 4e-16] = 0.0
    T[chosen] = np.eye(chosen.size)
    return T, chosen


def reduced_steady(
    system: System, here: Place, lam: np.ndarray, X: np.ndarray, names: tuple[str, ...]
) -> Reduced:
    """At an equilibrium or in a steady motion."""
    a, _, _ = steady_acceleration(system, here.q, here.v)
    found = Balance(system, names).at(system, here, a, lam)

    def block(rows: str, columns: str) -> np.ndarray:
        return found.full(rows, columns)

    C, M, K = block("w", "v"), block("balance", "a"), block("balance", "q")
    D, S, Ct = block("balance", "v"), block("balance", "s"), block("balance", "lam")
    at = tangent_at(system, block("g", "q"), C, block("w", "q"))
    B = -found.by_names[found.rows("balance")]
    Yy, Ye = (at.V - X @ at.Tq)[at.iq], at.Tv[at.iq]
    S = S[:, at.states]
    DX = D + M @ X
    ahead = np.hstack([Yy, Ye, np.zeros((at.iq.size, at.states.size))])
    right = -np.hstack([K @ at.Tq + DX @ at.V, DX @ at.Tv, S]) - M @ at.V @ ahead
    follows = bool(np.max(np.abs(Ct - C.T), initial=0.0) > 1e-12 * np.max(np.abs(C), initial=0.0))
    both = np.hstack([right, B])
    if follows:
        eta, dlam = _with_multipliers(system, M @ at.Tv, Ct, both)
    else:
        eta = _solve_mass(system, at.Tv.T @ M @ at.Tv, at.Tv.T @ both)
        rest = both - M @ at.Tv @ eta
        dlam = np.linalg.lstsq(Ct, rest, rcond=1e-10)[0] if system.m else np.zeros((0, both.shape[1]))
    size = at.size
    T_z = np.hstack([at.V, at.Tv, np.zeros((system.n, at.states.size))])
    accelerations = at.Tv @ eta
    accelerations[:, :size] += at.V @ ahead + X @ T_z
    rate = [block("r", x) for x in ("q", "v", "s", "lam")]
    sigma = np.zeros((len(system.states), both.shape[1]))
    sigma[:, :size] = np.hstack([rate[0] @ at.Tq + rate[1] @ at.V, rate[1] @ at.Tv, rate[2][:, at.states]])
    sigma[:, size:] = found.by_names[found.rows("r")]
    sigma += rate[3] @ dlam
    sigma = sigma[at.states]
    A = np.vstack([ahead, eta[:, :size], sigma[:, :size]])
    A[np.abs(A) < _noise(at, M, K, DX, S, X, A)] = 0.0
    full_B = np.vstack([np.zeros((at.iq.size, B.shape[1])), eta[:, size:], sigma[:, size:]])
    second = None
    if at.iq.size == at.iv.size and not at.states.size and not follows and not np.any(at.V - X @ at.Tq):
        T = at.Tq
        second = T.T @ M @ T, T.T @ D @ T, T.T @ K @ T
    elif at.Tv is at.Tq and not at.states.size and not follows:
        T = at.Tq
        second = T.T @ M @ T, T.T @ (D + 2 * M @ X) @ T, T.T @ (K + D @ X + M @ X @ X) @ T
    return Reduced(
        at,
        A,
        full_B,
        np.zeros(size),
        (accelerations[:, :size], accelerations[:, size:]),
        (dlam[:, :size], dlam[:, size:]),
        second,
        follows,
    )


def _noise(
    at: Tangent, M: np.ndarray, K: np.ndarray, DX: np.ndarray, S: np.ndarray, X: np.ndarray, A: np.ndarray
) -> np.ndarray:
    """Rounding errors of the entries of A, from the sizes of the terms that cancel."""
    T, V, E = np.abs(at.Tq), np.abs(at.V), np.abs(at.Tv)
    ahead = np.hstack([V + np.abs(X) @ T, E, np.zeros((len(V), at.states.size))])
    sizes = [np.abs(x) + np.max(np.abs(x), axis=1, keepdims=True, initial=0.0) for x in (K, DX)]
    forces = np.hstack([sizes[0] @ T + sizes[1] @ V, sizes[1] @ E, np.abs(S)]) + np.abs(M) @ V @ ahead[at.iq]
    inverse = np.linalg.pinv(at.Tv.T @ M @ at.Tv) if at.iv.size else np.zeros((0, 0))
    eta = np.abs(inverse) @ E.T @ forces
    return _ROUNDING * np.vstack([ahead[at.iq], eta, np.abs(A[at.iq.size + at.iv.size :])])


def _solve_mass(system: System, M: np.ndarray, right: np.ndarray) -> np.ndarray:
    if not M.size:
        return np.zeros((M.shape[0], right.shape[1]))
    scale = 1 / np.sqrt(np.maximum(np.abs(np.diag(M)), 1e-300))
    scaled = M * scale[:, None] * scale
    values = np.linalg.svd(scaled, compute_uv=False)
    if not values[-1] > _SINGULAR * values[0] or np.any(np.diag(M) == 0):
        raise SingularSystem(
            f"mass: singular for motions that the constraints allow, so {system.name} has no linearisation "
            "in independent coordinates; give mass to what moves without any, or a constraint"
        )
    return scale[:, None] * np.linalg.solve(scaled, scale[:, None] * right)


def _with_multipliers(
    system: System, MT: np.ndarray, Ct: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """η′ and δλ together, where forces depend on λ."""
    both = np.hstack([MT, Ct])
    r = 1 / np.maximum(np.max(np.abs(both), axis=1, keepdims=True), 1e-300)
    c = 1 / np.maximum(np.max(np.abs(r * both), axis=0), 1e-300)
    if np.linalg.matrix_rank(r * both * c, _SINGULAR) < MT.shape[0]:
        raise SingularSystem(
            f"mass: together with forces that depend on λ, that of {system.name} does not determine how "
            "deviations move"
        )
    x = c[:, None] * np.linalg.lstsq(r * both * c, r * right, rcond=1e-12)[0]
    return x[: MT.shape[1]], x[MT.shape[1] :]


def reduced_anywhere(system: System, here: Place, names: tuple[str, ...]) -> Reduced:
    """At any state, from the derivatives of the accelerations on the manifold."""
    state, n, k = here.at(system), system.n, len(system.states)
    G = state.derivative("g", by="q") if n else np.zeros((0, 0))
    C, W = (state.G, state.derivative("gv", by="q")) if n else (np.zeros((0, 0)),) * 2
    at = tangent_at(system, np.reshape(G, (-1, n)), np.reshape(C, (-1, n)), np.reshape(W, (-1, n)))
    T_q = np.hstack([at.Tq, np.zeros((n, at.size - at.iq.size))])
    T_v = np.hstack([at.V, at.Tv, np.zeros((n, at.states.size))])
    T_s = np.zeros((k, at.size))
    T_s[at.states, at.size - at.states.size + np.arange(at.states.size)] = 1.0

    def along(of: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
        if not rows:
            return np.zeros((0, at.size)), np.zeros((0, _width(system, names)))
        z = np.zeros((rows, at.size))
        if n:
            z += state.derivative(of, by="q") @ T_q + state.derivative(of, by="v") @ T_v
        if k:
            z += state.derivative(of, by="s") @ T_s
        parts = [np.reshape(state.derivative(of, by=name), (rows, -1)) for name in names]
        return z, np.hstack([np.zeros((rows, 0)), *parts])

    a, lam, rate = along("a", n), along("lam", system.m), along("rate", k)
    A = np.vstack([T_v[at.iq], a[0][at.iv], rate[0][at.states]])
    B = np.vstack([np.zeros((at.iq.size, a[1].shape[1])), a[1][at.iv], rate[1][at.states]])
    parts = [here.v[at.iq], state.a[at.iv] if n else np.zeros(0), state.rate[at.states] if k else np.zeros(0)]
    return Reduced(at, A, B, np.concatenate(parts), a, lam, None, False)


def _width(system: System, names: tuple[str, ...]) -> int:
    return sum(np.size(system.parameters[name]) for name in names)


def deflated(A: np.ndarray) -> tuple[np.ndarray, list[int], np.ndarray]:
    """Eigenvalues that are not zero, the numbers of zeros by the length of their chains, and a basis of the
    kernel of A; balanced beforehand.
    """
    if not A.size:
        return np.zeros(0, complex), [], np.zeros((len(A), 0))
    balanced, (scale, order) = scipy.linalg.matrix_balance(A, permute=False, separate=True)
    del order
    rest, counts, kernel = balanced, [], np.zeros((len(A), 0))
    size = np.linalg.norm(balanced, 2)
    while rest.size:
        _, values, rows = np.linalg.svd(rest)
        zero = values <= _zero(len(A)) * size
        if not zero.any():
            break
        counts.append(int(zero.sum()))
        if len(counts) == 1:
            kernel = scale[:, None] * rows[zero].T
            kernel = kernel / np.linalg.norm(kernel, axis=0)
        kept = rows[~zero].T
        rest = kept.T @ rest @ kept
    found = np.linalg.eigvals(rest) if rest.size else np.zeros(0, complex)
    return np.sort_complex(np.asarray(found, complex)), counts, kernel


def _zero(size: int) -> float:
    return 2e-13 * np.sqrt(size)
