"""Rotations in generalised α: unit quaternions with a norm row, as this package has them, against a Lie-group
method, on the heavy top of Brüls and Cardona.

    python benchmarks/heavy_top.py [--out FILE] [--quick]

A body of mass 15 kg, with inertia diag(0.234375, 0.46875, 0.234375) kg m² about its centre, turns about a
fixed point at (0, 1, 0) m in its axes from there, under gravity along −z, and starts upright with Ω = (0,
150, −4.61538) rad/s. Codes with the same ρ∞ and the same steps: "quaternions", this package's
`GeneralizedAlpha` on index 3 with the position of the centre, a quaternion, three rows of the hinge and one
of the norm, and the same on GGL, "stabilised"; "Lie group", the method of Brüls, Cardona and Arnold (2012)
on R³ × SO(3) with three rows, index 3, in NumPy below, without a correction of its start, so that its
forces are of order 1. The error is the largest distance of the centre from the reference, a run of "dop853"
at 1e-13. The drift is that of the norm, or of the orthogonality of the rotation, and of the hinge.

References
----------
O. Brüls, A. Cardona, On the use of Lie group time integrators in multibody dynamics, J. Comput. Nonlinear
Dynam. 5 (2010) 031002.  O. Brüls, A. Cardona, M. Arnold, Lie group generalized-α time integration of
constrained flexible multibody systems, Mech. Mach. Theory 48 (2012) 121-137.
"""

from __future__ import annotations

import numpy as np

import holonome as hn
from harness.options import Options, stamp
from harness.tables import write_rows

MASS, ARM = 15.0, np.array([0.0, 1.0, 0.0])
INERTIA = np.diag([0.234375, 0.46875, 0.234375])
SPIN = np.array([0.0, 150.0, -4.61538])
WEIGHT = np.array([0.0, 0.0, -9.81 * MASS])
END, RHO = 1.0, 0.9
STEPS = (1000, 2000, 4000)


def skew(x: np.ndarray) -> np.ndarray:
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def exponential(x: np.ndarray) -> np.ndarray:
    """The rotation by a vector."""
    angle, W = np.linalg.norm(x), skew(x)
    return np.eye(3) + np.sinc(angle / np.pi) * W + 0.5 * np.sinc(angle / 2 / np.pi) ** 2 * W @ W


def tangent(x: np.ndarray) -> np.ndarray:
    """The change of a rotation by exp(x) with x, in its own axes."""
    angle, W = np.linalg.norm(x), skew(x)
    second = (1 - np.sinc(angle / np.pi)) / angle**2 if angle > 1e-4 else 1 / 6
    return np.eye(3) - 0.5 * np.sinc(angle / 2 / np.pi) ** 2 * W + second * W @ W


class LieGroup:
    """Generalised α on R³ × SO(3): q ← q exp(h Δ), Δ = v + (½ − β) h a + β h a⁺, with index-3 constraints."""

    def __init__(self, h: float) -> None:
        am, af = (2 * RHO - 1) / (RHO + 1), RHO / (RHO + 1)
        self.h, self.am, self.af = h, am, af
        self.gamma = 0.5 + af - am
        self.beta = 0.25 * (self.gamma + 0.5) ** 2
        self.x, self.R = ARM.copy(), np.eye(3)
        self.v = np.concatenate([np.cross(SPIN, ARM), SPIN])
        self.dv, self.lam = self._accelerations()
        self.a = self.dv.copy()

    @staticmethod
    def _rows(R: np.ndarray) -> np.ndarray:
        """Of x − R X = 0, by the velocities (x′, Ω)."""
        return np.hstack([np.eye(3), R @ skew(ARM)])

    @staticmethod
    def _mass() -> np.ndarray:
        M = np.zeros((6, 6))
        M[:3, :3], M[3:, 3:] = MASS * np.eye(3), INERTIA
        return M

    @staticmethod
    def _force(v: np.ndarray) -> np.ndarray:
        return np.concatenate([WEIGHT, -np.cross(v[3:], INERTIA @ v[3:])])

    def _accelerations(self) -> tuple[np.ndarray, np.ndarray]:
        W, B = skew(self.v[3:]), self._rows(self.R)
        saddle = np.block([[self._mass(), B.T], [B, np.zeros((3, 3))]])
        both = np.linalg.solve(saddle, np.concatenate([self._force(self.v), self.R @ W @ W @ ARM]))
        return both[:6], both[6:]

    def step(self) -> None:
        h, am, af, beta, gamma = self.h, self.am, self.af, self.beta, self.gamma
        a = (af * self.dv - am * self.a) / (1 - am)
        base = self.v + (0.5 - beta) * h * self.a
        velocity = self.v + h * (1 - gamma) * self.a
        dv, lam = self.dv.copy(), self.lam.copy()
        for _ in range(12):
            new = a + (1 - af) / (1 - am) * dv
            delta, v = base + beta * h * new, velocity + gamma * h * new
            x, R = self.x + h * delta[:3], self.R @ exponential(h * delta[3:])
            B = self._rows(R)
            residual = np.concatenate(
                [self._mass() @ dv - self._force(v) + B.T @ lam, (x - R @ ARM) / (beta * h * h)]
            )
            factor = (1 - af) / (1 - am)
            T = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), tangent(h * delta[3:])]])
            gyro = np.zeros((6, 6))
            gyro[3:, 3:] = skew(v[3:]) @ INERTIA - skew(INERTIA @ v[3:])
            stiff = np.zeros((6, 6))
            stiff[3:, 3:] = skew(ARM) @ skew(R.T @ lam)
            upper = self._mass() + factor * (gamma * h * gyro + beta * h * h * stiff @ T)
            matrix = np.block([[upper, B.T], [factor * B @ T, np.zeros((3, 3))]])
            change = np.linalg.solve(matrix, -residual)
            dv, lam = dv + change[:6], lam + change[6:]
            if np.linalg.norm(change[:6]) <= 1e-10 * (1 + np.linalg.norm(dv)):
                break
        self.a, self.dv, self.lam = a + (1 - af) / (1 - am) * dv, dv, lam
        delta, self.v = base + beta * h * self.a, velocity + gamma * h * self.a
        self.x, self.R = self.x + h * delta[:3], self.R @ exponential(h * delta[3:])

    def drift(self) -> float:
        off = np.max(np.abs(self.R.T @ self.R - np.eye(3)))
        return max(off, float(np.max(np.abs(self.x - self.R @ ARM))))


def top() -> hn.System:
    """The same with q = (x, quaternion); v their rates."""

    def rotation(e):
        w, x, y, z = e
        return np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )

    def mass(q):
        w, x, y, z = q[3:]
        E = 2 * np.array([[-x, w, z, -y], [-y, -z, w, x], [-z, y, -x, w]])
        own = E.T @ INERTIA @ E + np.outer(q[3:], q[3:])
        zero = np.zeros((3, 4))
        return np.vstack([np.hstack([MASS * np.eye(3), zero]), np.hstack([zero.T, own])])

    def constraint(q):
        return np.concatenate([q[:3] - rotation(q[3:]) @ ARM, [(q[3:] @ q[3:] - 1) / 2]])

    force = np.concatenate([WEIGHT, np.zeros(4)])
    return hn.System(mass, force, constraint, n=7, inertial="derived")


START = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
RATES = np.concatenate([np.cross(SPIN, ARM), [0.0], SPIN / 2])


def lie(steps: int) -> tuple[np.ndarray, float, np.ndarray]:
    run = LieGroup(END / steps)
    path, drift, lam = [run.x], 0.0, [run.lam]
    for _ in range(steps):
        run.step()
        path.append(run.x)
        lam.append(run.lam)
        drift = max(drift, run.drift())
    return np.array(path).T, drift, np.array(lam).T


def ours(system: hn.System, steps: int, formulation: hn.Formulation) -> tuple[np.ndarray, float, np.ndarray]:
    sol = hn.solve(
        system,
        (0, END),
        START,
        RATES,
        method=hn.Method(formulation, hn.GeneralizedAlpha(rho_inf=RHO)),
        step=END / steps,
        t_eval=np.linspace(0, END, steps + 1),
    )
    if not sol.success:
        return np.full((3, steps + 1), np.nan), np.nan, np.full((3, steps + 1), np.nan)
    return sol.q[:3], sol.drift[0], sol.lam[:3]


def main() -> None:
    arguments = Options(__doc__, "heavy_top.csv").given()
    counts = STEPS[:1] if arguments.quick else STEPS
    system = top()
    times = np.linspace(0, END, counts[0] + 1)
    fine = hn.solve(system, (0, END), START, RATES, method="dop853", rtol=1e-13, atol=1e-13, t_eval=times)
    rows = []
    for steps in counts:
        every = steps // counts[0]
        found = {
            "quaternions": ours(system, steps, hn.Index3()),
            "quaternions, stabilised": ours(system, steps, hn.GGL()),
            "Lie group": lie(steps),
        }
        for code, (path, drift, lam) in found.items():
            error = float(np.max(np.abs(path[:, ::every] - fine.q[:3])))
            force = float(np.max(np.abs(lam[:, ::every] - fine.lam[:3])))
            row = {"code": code, "steps": steps, "error": f"{error:.2e}", "error_of_force": f"{force:.2e}"}
            rows.append(row | {"drift": f"{drift:.0e}"} | stamp())
            print(f"{code:24s} {steps} steps: {error:.2e} m, {force:.2e} N, drift {drift:.0e}", flush=True)
    write_rows(arguments.out, rows)


if __name__ == "__main__":
    main()
