"""Remark 2.2: the split by LU, which the paper takes, beside one by QR, an orthonormal basis of the "
"tangents.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from holonome.papers.paper import Progress
from holonome.papers.table import Table
from holonome.papers.verdict import NOT_PUBLISHED, Band, Claim, Row
from holonome.papers.yen_petzold_1996.runs import PAPER
from holonome.papers.yen_petzold_1996.step import Step


def by_lu(G: np.ndarray) -> np.ndarray:
    """P = Xᵀ − QᵀYᵀ, (2.1), with the split of Gaussian elimination with row pivoting on Gᵀ, (2.2)."""
    m, n = G.shape
    factors, exchanged = scipy.linalg.lu_factor(G.T)
    rows = np.arange(n)
    for k, pivot in enumerate(exchanged):
        rows[[k, pivot]] = rows[[pivot, k]]
    L, y, x = np.tril(factors, -1), rows[:m], rows[m:]
    Q = scipy.linalg.solve_triangular(L[:m].T, L[m:].T, unit_diagonal=True)
    P = np.zeros((n - m, n))
    P[np.arange(n - m), x], P[:, y] = 1.0, -Q.T
    return P


def by_qr(G: np.ndarray) -> np.ndarray:
    """X̃ᵀ of (2.5): the last n − m columns of the orthogonal factor of Gᵀ."""
    return np.linalg.qr(G.T, mode="complete")[0][:, G.shape[0] :].T


def tangent(q: np.ndarray) -> np.ndarray:
    """An orthonormal basis on the circle that turns smoothly with the point."""
    return np.array([[-q[1], q[0]]]) / np.linalg.norm(q)


class WithTangents(Step):
    """The same step with an orthonormal P."""

    def P(self, q: np.ndarray) -> np.ndarray:
        return tangent(q)

    def newton(self, most: int = 30) -> tuple[np.ndarray, int]:
        """(q, v) and the number of iterations of Newton's method with differences for derivatives."""
        y = np.concatenate([self.q, self.v])

        def F(y: np.ndarray) -> np.ndarray:
            return self.F(y[:2], y[2:], self.P(y[:2]))

        for count in range(1, most + 1):
            J = np.stack([(F(y + e) - F(y - e)) / 2e-6 for e in 1e-6 * np.eye(4)], axis=1)
            increment = np.linalg.solve(J, F(y))
            y = y - increment
            if np.linalg.norm(increment) < 1e-11:
                return y, count
        return y, most


class WithCoordinates(WithTangents):
    """The same with the split by LU."""

    def P(self, q: np.ndarray) -> np.ndarray:
        return Step.P(self, q)


def _iterations() -> tuple[int, int, float]:
    """Of Newton's method with both bases, at most, and how far their solutions are apart."""
    counts, apart = {WithTangents: 0, WithCoordinates: 0}, 0.0
    for angle in np.linspace(0.0, 0.75, 16):
        qn = np.array([np.sin(angle), -np.cos(angle)])
        vn = 0.3 * np.array([np.cos(angle), np.sin(angle)])
        ends = []
        for kind in counts:
            end, count = kind([10.0, 100.0], qn + 0.1 * vn, vn, qn, vn, 0.1).newton()
            counts[kind] = max(counts[kind], count)
            ends.append(end)
        apart = max(apart, float(np.max(np.abs(ends[0] - ends[1]))))
    return counts[WithTangents], counts[WithCoordinates], apart


@PAPER.experiment("remark-2.2", "the split by LU, and an orthonormal basis of the tangents by QR")
def remark_2_2(progress: Progress) -> Table:
    """
    P by Gaussian elimination with row pivoting on Gᵀ and by Householder's QR, for 40 random G of each size:
    what is left of P Gᵀ, the largest condition of P Pᵀ, and multiplications for the factors. Then Newton's
    method on (2.12) with both, on the point mass at many angles.
    """
    random, rows = np.random.default_rng(1), []
    standard = 0.0
    for i, (n, m) in enumerate(((2, 1), (6, 5), (7, 6), (30, 10), (60, 50))):
        progress(i / 6, f"n = {n}, m = {m}")
        left, conditions = 0.0, [0.0, 0.0]
        for _ in range(40):
            G = random.standard_normal((m, n))
            for k, P in enumerate((by_lu(G), by_qr(G))):
                left = max(left, float(np.max(np.abs(P @ G.T))))
                conditions[k] = max(conditions[k], float(np.linalg.cond(P @ P.T)))
            standard = max(standard, float(np.max(np.min([np.abs(P), np.abs(1 - np.abs(P))], axis=0))))
        found = {
            "|P Gᵀ|": left,
            "condition, LU": conditions[0],
            "condition, QR": conditions[1],
            "LU": n * m**2 - m**3 / 3,
            "QR": 2 * n * m**2 - 2 * m**3 / 3,
        }
        rows.append(Row({"n": n, "m": m}, {}, found, NOT_PUBLISHED))
    progress(0.9, "Newton's method")
    with_qr, with_lu, apart = _iterations()
    worst = max(row.measured["condition, LU"] for row in rows)
    return Table(
        rows=rows,
        shown=("LU", "QR"),
        symbols={
            "|P Gᵀ|": "largest entry, with both",
            "condition, LU": "largest condition of P Pᵀ = I + QᵀQ",
            "condition, QR": "the same with the orthonormal basis",
            "LU": "multiplications of the factorization",
            "QR": "the same, without forming the basis",
        },
        claims=[
            Claim.of(
                "Alternatively, QR can be applied to Gᵀ for the computation of P r.",
                [
                    Band("distance of the solutions", apart, high=1e-8),
                    Band("iterations", with_qr, high=with_lu + 1),
                ],
                f"the solutions of (2.12) differ by {apart:.0e}; Newton's method takes {with_qr} "
                "iterations at "
                f"most with the orthonormal basis and {with_lu} with the split.",
            ),
            Claim.of(
                "X̃ and Ỹ are usually subsets of the standard basis.",
                Band("largest distance of an entry from 0 or ±1", standard, high=1e-12),
                f"entries of X̃ are up to {standard:.2f} away from 0 and ±1; only those of the split are.",
            ),
            Claim.ours(
                "LU costs half of QR, and its P is as good: with row pivoting the condition of P Pᵀ stays "
                "moderate, and it needs no basis that turns smoothly.",
                Band("largest condition", worst, high=1e6),
                f"the condition of P Pᵀ is {worst:.0e} at most in 200 random G.",
            ),
        ],
    )
