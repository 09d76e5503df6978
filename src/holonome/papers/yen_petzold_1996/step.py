"""One step of implicit Euler on the point mass, and its Newton iterations."""

from __future__ import annotations

from typing import Any

import numpy as np


class Step:
    """One step of implicit Euler for the point on the circle with f = −K (q − (0, −1)) − (0, 1), and its
    Newton iterations.

    From (q_n, v_n) with step h: r₁ = (q − q_n)/h − v, r₂ = (v − v_n)/h − f(q), and F = [P r₁; P r₂; G v; g] =
    0, (2.12). X and Y split the coordinates at the start of the iteration; G = qᵀ.

    Parameters
    ----------
    stiffness : (2,)
        Diagonal of K.
    q, v : (2,)
        Start of the iteration.
    qn, vn, h
        The last point and the step size.
    """

    def __init__(
        self, stiffness: Any, q: Any, v: Any, qn: Any = (0.0, -1.0), vn: Any = (0.01, 0.0), h: float = 0.1
    ) -> None:
        self.K, self.h = np.diag(stiffness), h
        self.q, self.v, self.qn, self.vn = (np.asarray(x, float) for x in (q, v, qn, vn))
        self.y = int(np.argmax(np.abs(self.q)))  # pivot of Gᵀ: the dependent coordinate
        self.x = 1 - self.y

    def residuals(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        force = -self.K @ (q - [0.0, -1.0]) - [0.0, 1.0]
        return (q - self.qn) / self.h - v, (v - self.vn) / self.h - force

    def P(self, q: np.ndarray) -> np.ndarray:
        """P = Xᵀ − Qᵀ Yᵀ with Q = (GY)⁻¹ G X, (2.1)."""
        row = np.zeros((1, 2))
        row[0, self.x], row[0, self.y] = 1.0, -q[self.x] / q[self.y]
        return row

    def J1(self, q: np.ndarray, v: np.ndarray, kind: str) -> np.ndarray:
        """(2.16) for CS, (3.11) for CM."""
        eye = np.eye(2)
        s1, s2 = (
            -r[self.y] / q[self.y] if kind == "CS" else 0.0 for r in self.residuals(q, v)
        )  # s = −(GY)⁻ᵀ Yᵀ r
        return np.block(
            [[eye / self.h + s1 * eye, -eye], [self.K + s2 * eye, eye / self.h]]
        )  # ∂(Gᵀs)/∂q = s I

    def jacobian(self, q: np.ndarray, v: np.ndarray, kind: str, P: np.ndarray) -> np.ndarray:
        """(2.14)."""
        zero = np.zeros((1, 2))
        return np.vstack([np.block([[P, zero], [zero, P]]) @ self.J1(q, v, kind), [*v, *q], [*q, 0.0, 0.0]])

    def iterate(self, kind: str, tolerance: float = 1e-12, most: int = 30) -> tuple[np.ndarray, np.ndarray]:
        """Iterates (q, v), the start included, and the norms of the increments; the matrix stays that of the
        start.

        The decoupling in its correct form: with z = (X P r₁, X P r₂) and D = −J₁⁻¹ z the increment is Δ = D −
        J₁⁻¹ diag(G₀ᵀ, G₀ᵀ) k, with k such that G₀ Δq = −g and G₀ Δv + ∂(Gv)/∂q Δq = −G v. (2.17) to (2.26) as
        printed converge to P J₁⁻¹ r = 0 instead.
        """
        q, v, X = self.q, self.v, np.eye(2)[:, [self.x]]
        G0, P0, J1 = q[np.newaxis], self.P(q), self.J1(q, v, kind)
        rows = np.block([[G0, np.zeros((1, 2))], [v[np.newaxis], G0]])
        W = np.linalg.solve(J1, np.block([[G0.T, np.zeros((2, 1))], [np.zeros((2, 1)), G0.T]]))
        points, sizes = [np.concatenate([q, v])], []
        while len(sizes) < most and (not sizes or tolerance < sizes[-1] < 1e6):
            P = self.P(q) if kind == "CS" else P0
            D = -np.linalg.solve(J1, np.concatenate([X @ P @ r for r in self.residuals(q, v)]))
            k = np.linalg.solve(rows @ W, rows @ D + [(q @ q - 1) / 2, q @ v])
            increment = D - W @ k
            points.append(points[-1] + increment)
            q, v = points[-1][:2], points[-1][2:]
            sizes.append(float(np.linalg.norm(increment[:2])))
        return np.array(points), np.array(sizes)

    def iterate_as_printed(self, weighted: bool, tolerance: float = 1e-12, most: int = 60) -> np.ndarray:
        """Iterates of Algorithm 2.1, with the signs of (2.22): with the factor (I + QᵀQ)⁻¹ of (2.23), or
        without it as in (2.25).
        """
        points = [np.concatenate([self.q, self.v])]
        J1 = self.J1(self.q, self.v, "CS")
        x = self.x
        y = self.y
        q0 = self.q
        Q, size = q0[x] / q0[y], 1.0
        factor = 1 / (1 + Q**2) if weighted else 1.0
        while len(points) <= most and tolerance < size < 1e6:
            q, v = points[-1][:2], points[-1][2:]
            hat = -np.linalg.solve(J1, np.concatenate(self.residuals(q, v)))  # (2.26)
            increments: list[np.ndarray] = []
            for part, below in ((hat[:2], (q @ q - 1) / 2), (hat[2:], q @ v)):
                below = below + self.v @ increments[0] if increments else below  # g, and η
                increment = np.zeros(2)
                increment[x] = factor * ((self.P(q) @ part)[0] - Q * below / q0[y])  # (2.25a), (2.25c)
                increment[y] = -(below + q0[x] * increment[x]) / q0[y]  # (2.25b), (2.25d)
                increments.append(increment)
            points.append(points[-1] + np.concatenate(increments))
            size = float(np.linalg.norm(increments[0]))
        return np.array(points)

    def F(self, q: np.ndarray, v: np.ndarray, P: np.ndarray) -> np.ndarray:
        """(2.12)."""
        return np.concatenate([*(P @ r for r in self.residuals(q, v)), [q @ v], [(q @ q - 1) / 2]])

    def solution(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) with F = 0, by Newton's method from the last point; for CM with P at the start of the
        iteration.
        """
        q, v = self.qn + 0.0, self.vn + 0.0
        for _ in range(12):
            P = self.P(q if kind == "CS" else self.q)
            increment = np.linalg.solve(self.jacobian(q, v, kind, P), self.F(q, v, P))
            q, v = q - increment[:2], v - increment[2:]
        return q, v

    def jacobians(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """J₀ at the start and J* at the solution; for CM both with P at the start."""
        q, v = self.solution(kind)
        P0 = self.P(self.q)
        return self.jacobian(self.q, self.v, kind, P0), self.jacobian(
            q, v, kind, self.P(q) if kind == "CS" else P0
        )

    def rate(self, kind: str) -> float:
        """σ = ρ(I − J₀⁻¹ J*), as in the proof of Theorem 4.2."""
        J0, J = self.jacobians(kind)
        return float(np.max(np.abs(np.linalg.eigvals(np.eye(4) - np.linalg.solve(J0, J)))))


def off_the_manifold(eps: float, delta: float, isotropic: bool = False, h: float = 0.1) -> Step:
    """The step that starts δ off the manifold, along the normal; stiffness (1/ε, 1/ε²), or 1/ε² in both
    directions.
    """
    return Step([1 / eps**2 if isotropic else 1 / eps, 1 / eps**2], [0.0, -1.0 - delta], [0.01, 0.0], h=h)


def swinging(stiffness: Any, angle: float = 0.5, h: float = 0.1) -> Step:
    """A step of the point mass that swings through an angle, started at the explicit predictor."""
    qn, vn = np.array([np.sin(angle), -np.cos(angle)]), 0.3 * np.array([np.cos(angle), np.sin(angle)])
    return Step(stiffness, qn + h * vn, vn, qn, vn, h)
