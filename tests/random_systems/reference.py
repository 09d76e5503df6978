"""The motion of a random system, by other means: NumPy and SciPy, and nothing of holonome.

Derivatives are taken in the complex plane: G by complex steps, and (d/dt)²g along a straight motion by
Cauchy's integral on a small circle.  Accelerations and multipliers are the least-squares solution of the
saddle-point system, of least norm where rows are redundant.  DOP853 integrates the underlying ODE between the
kinks.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg.lapack import dgetrf, dgetrs

from random_systems.compiled import CompiledTerms
from random_systems.mechanisms import Mechanism

STEP = 1e-30
CIRCLE = np.exp(1j * np.pi / 8 * np.array([1, 3, 5, 7]))
"""Half of eight points on a circle; the others are their conjugates."""

RADIUS = 0.03
RTOL = 1e-11


class NoReference(Exception):
    """The reference itself cannot be trusted, or takes too long."""


def jacobian(function, x):
    """∂function/∂x by complex steps; functions of one row count as vectors."""
    columns = [np.atleast_1d(function(x + 1j * STEP * unit)).imag / STEP for unit in np.eye(x.size)]
    return np.array(columns).T


def along(function, t, q, v):
    """First and second derivative of function(t + τ, q + τ v) by τ at 0."""
    radius = RADIUS / (1 + np.max(np.abs(v)))
    values = [(z, np.atleast_1d(function(t + radius * z, q + radius * z * v))) for z in CIRCLE]
    first = sum((g / z).real for z, g in values) / (4 * radius)
    second = sum((g / z**2).real for z, g in values) / (2 * radius**2)
    return first, second


def solver(K, redundant):
    """x of K x = load, of least norm if K is singular; otherwise by LU with one step of refinement."""
    if redundant:
        return lambda load: np.linalg.lstsq(K, load, rcond=1e-11)[0]
    factors, pivots, info = dgetrf(K)
    if info:
        raise np.linalg.LinAlgError("singular")

    def solve(load):
        x = dgetrs(factors, pivots, load)[0]
        return x + dgetrs(factors, pivots, load - K @ x)[0]

    return solve


class Motion:
    """The underlying ODE of a mechanism, y = (q, v, s)."""

    def __init__(self, part: Mechanism, inertial: bool, limit: float) -> None:
        self.part, self.inertial = part, inertial
        self.deadline = time.perf_counter() + limit
        self.lam = np.zeros(0)
        self.redundant: bool | None = None

    def unknowns(self, q):
        """w, by Newton's method, for complex q as well."""
        if not self.part.unknowns:
            return np.zeros(0)
        w = q[:1].copy()
        for _ in range(60):
            residual = w[0] + 0.3 * np.sin(w[0]) - q[0]
            w = w - residual / (1 + 0.3 * np.cos(w[0]))
        return w

    def rows(self, t, q):
        """g(t, q), with its unknowns."""
        return self.part.constraint(t, q, self.unknowns(q)) if self.part.constraint else np.zeros(0)

    def levels(self, t, q, v):
        """C, C v + d and γ of the constraints on velocities, C v + d = 0, whose derivative is C a + γ."""
        n = self.part.n
        C, residual, gamma = np.zeros((0, n)), np.zeros(0), np.zeros(0)
        if self.part.constraint:
            C = jacobian(lambda x: self.rows(t, x), q)
            residual, gamma = along(self.rows, t, q, v)
        if self.part.velocity:
            row = np.array(
                [self.part.velocity(t, q, unit) - self.part.velocity(t, q, 0 * q) for unit in np.eye(n)]
            )
            rate = self.part.velocity(t + 1j * STEP, q + 1j * STEP * v, v).imag / STEP
            C, gamma = np.vstack([C, row]), np.append(gamma, rate)
            residual = np.append(residual, self.part.velocity(t, q, v))
        return C, residual, gamma

    def inertia(self, t, q, v):
        """c = Ṁ v − ½ ∂(vᵀMv)/∂q."""
        if not self.inertial:
            return np.zeros(q.size)
        rate = self.part.mass(t + 1j * STEP, q + 1j * STEP * v).imag / STEP
        return rate @ v - 0.5 * jacobian(lambda x: v @ self.part.mass(t, x) @ v, q)[0]

    def elastic(self, t, q, v):
        if self.part.elastic is None:
            return np.zeros(q.size)
        c, K, D = self.part.elastic
        rate = np.imag(c(t + 1j * STEP, q + 1j * STEP * v)) / STEP
        return -jacobian(lambda x: c(t, x), q)[0] * (K * c(t, q) + D * rate)

    def terms(self, t, q, v, s):
        """M, C, γ, the force as a function of λ, and the rate of the states."""
        C, _, gamma = self.levels(t, q, v)
        w, fixed = self.unknowns(q), self.elastic(t, q, v) - self.inertia(t, q, v)
        further = self.part.rate(t, q, v, s) if self.part.rate else np.zeros(0)
        return (
            self.part.mass(t, q),
            C,
            gamma,
            lambda lam: self.part.force(t, q, v, s, w, lam) + fixed,
            further,
        )

    def accelerations(self, t, q, v, s):
        """a and λ."""
        return self.balance(*self.terms(t, q, v, s)[:4])

    def balance(self, M, C, gamma, force):
        """a and λ, where friction asks for λ by iteration."""
        (m, n), scale = C.shape, np.sqrt(np.sum(C**2, axis=1))
        K = np.zeros((n + m, n + m))
        K[:n, :n], K[n:, :n] = M, C / scale[:, None]
        K[:n, n:] = K[n:, :n].T
        lam = self.lam if self.lam.size == m else np.zeros(m)
        if self.redundant is None:
            self.redundant = bool(m and np.linalg.matrix_rank(K[n:, :n], tol=1e-9) < m)
        solve = solver(K, self.redundant)
        for _ in range(200):
            x = solve(np.append(force(lam), -gamma / scale))
            new = x[n:] / scale
            difference = np.abs(new - lam) / (1 + np.abs(new))
            lam = new
            if not self.part.friction or np.all(difference <= 1e-14):
                break
        else:
            if not np.all(difference <= 1e-11):
                raise NoReference("the iteration for the multipliers does not settle")
        self.lam = lam
        return x[:n], lam

    def rate(self, t, y, terms):
        if time.perf_counter() > self.deadline:
            raise NoReference("the reference takes too long")
        n = self.part.n
        q, v, s = y[:n], y[n : 2 * n], y[2 * n :]
        M, C, gamma, force, further = terms(t, q, v, s)
        a, _ = self.balance(M, C, gamma, force)
        return np.concatenate([v, a, further])

    def compiled(self) -> CompiledTerms:
        """The terms, many times faster."""
        rows = self.levels(0.0, self.part.q0, self.part.v0)[0].shape[0]
        return CompiledTerms(self.part, self.inertial, rows)

    def check(self, compiled: CompiledTerms, reference: Reference) -> None:
        """At some points of the motion, the compiled terms are those of the complex plane."""
        for t, y in zip(reference.times, reference.y.T, strict=True):
            exact, found = self.rate(t, y, self.terms), self.rate(t, y, compiled)
            if not np.max(np.abs(found - exact)) <= 1e-8 * (1 + np.max(np.abs(exact))):
                raise AssertionError("compiled and complex derivatives differ")

    def consistent(self, q, v):
        """The nearest position by Gauss–Newton, and the nearest velocity."""
        for _ in range(30):
            g = self.rows(0.0, q)
            if not g.size:
                break
            dq = np.linalg.lstsq(jacobian(lambda x: self.rows(0.0, x), q), -g, rcond=1e-10)[0]
            q = q + dq
            if np.max(np.abs(dq)) < 1e-15:
                break
        if self.part.constraint and not np.max(np.abs(self.rows(0.0, q))) < 1e-13:
            raise NoReference("no consistent start")
        for _ in range(3):
            C, residual, _ = self.levels(0.0, q, v)
            v = v - np.linalg.lstsq(C, residual, rcond=1e-10)[0] if residual.size else v
        return q, v

    def residuals(self, t, q, v):
        """Largest violation at the level of positions and of velocities, relative to the terms."""
        C, residual, _ = self.levels(t, q, v)
        m = self.rows(t, q).size
        terms = np.abs(C) @ np.ones(q.size)
        position = np.abs(self.rows(t, q)) / (1 + terms[:m] * (1 + np.max(np.abs(q))))
        speed = np.abs(residual) / (1 + terms * (1 + np.max(np.abs(v))))
        return float(np.max(position, initial=0.0)), float(np.max(speed, initial=0.0))


@dataclass
class Reference:
    """States at some times, and how errors grow on the way."""

    times: np.ndarray
    y: np.ndarray
    growth: np.ndarray
    blocks: list[slice]

    def error(self, y: np.ndarray) -> float:
        """The largest distance, in units of how errors grow."""
        return float(np.max(distance(y, self.y, self.blocks) / self.growth))


def distance(y: np.ndarray, exact: np.ndarray, blocks: list[slice]) -> np.ndarray:
    """By point, the largest difference relative to the size of its block: positions, velocities, states."""
    return np.max(
        [
            np.max(np.abs(y[block] - exact[block]), axis=0) / (np.max(np.abs(exact[block])) + 1e-3)
            for block in blocks
            if exact[block].size
        ],
        axis=0,
    )


def integrate(rate, y0, times, breaks, rtol=RTOL):
    """States at the times, from kink to kink."""
    corners = sorted({0.0, float(times[-1]), *(b for b in breaks if 0 < b < times[-1])})
    found, y = {0.0: y0}, y0
    for begin, end in pairwise(corners):
        inside = [float(t) for t in times if begin < t <= end]
        wanted = sorted({*inside, end})
        nudge = 1e-14 * (end - begin)
        run = solve_ivp(
            lambda t, x, low=begin + nudge, high=end - nudge: rate(min(max(t, low), high), x),
            (begin, end),
            y,
            method="DOP853",
            rtol=rtol,
            atol=1e-2 * rtol,
            t_eval=wanted,
        )
        if not run.success or not np.all(np.isfinite(run.y)):
            raise NoReference(f"the reference stops: {run.message}")
        found |= dict(zip(wanted, run.y.T, strict=True))
        y = run.y[:, -1]
    return np.array([found[float(t)] for t in times]).T


def reference_of(rate, start, times, breaks, blocks) -> Reference:
    """A reference and its sensitivity; ``start(size)`` is the start, moved at random by about that much."""
    y = integrate(rate, start(0.0), times, breaks)
    moved = distance(integrate(rate, start(1e-6), times, breaks, rtol=1e-8), y, blocks)
    growth = np.maximum.accumulate(moved) / max(moved[0], 1e-9)
    return Reference(times, y, np.maximum(1.0, growth), blocks)
