"""A reference by hand: Newton's and Euler's equations of every body, with the joints as constraints.

Absolute coordinates, in NumPy and SciPy alone: position and unit quaternion (w first) of each body, velocity
and angular velocity seen from the world. With u the velocities, M u' = f + J^T lambda and J u' = gamma.
By Gauss's principle u' is M^-1 f and the shortest correction, in the metric of M, that J asks for; that is a
problem of least squares, in which redundant rows do no harm.
DOP853 with constant steps; nothing is projected, and what the joints have opened at the end says how good the
run was.
"""

from __future__ import annotations

import numpy as np
from scipy.integrate import DOP853
from scipy.linalg import lstsq

from bodies.models import GROUND, Model, normals


def version() -> str:
    return "by hand"


def cross(vector) -> np.ndarray:
    x, y, z = vector
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def product(a, b) -> np.ndarray:
    """The cross product of two vectors; np.cross takes ten times as long."""
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], dtype=float
    )


def matrix(q) -> np.ndarray:
    """The rotation matrix of a quaternion, w first, of any length."""
    w, v = q[0], q[1:]
    return np.eye(3) + 2 * (w * cross(v) + cross(v) @ cross(v)) / (q @ q)


def start(model: Model) -> np.ndarray:
    """Per body: position, quaternion, velocity, angular velocity."""
    return np.array([[*b.center, 1.0, 0.0, 0.0, 0.0, *b.velocity, *b.angular_velocity] for b in model.bodies])


class Equations:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.index = {body.name: i for i, body in enumerate(model.bodies)}
        self.n = 6 * len(model.bodies)
        self.roots = [np.linalg.cholesky(np.linalg.inv(body.inertia)) for body in model.bodies]
        self.drives = {drive.joint: drive for drive in model.drives}
        center = {body.name: np.array(body.center) for body in model.bodies} | {GROUND: np.zeros(3)}
        self.arms = [
            (np.subtract(j.point, center[j.first]), np.subtract(j.point, center[j.second]))
            for j in model.joints
        ]

    def _body(self, state: np.ndarray, name: str):
        """Position, rotation, velocity, angular velocity and its columns; the ground has none."""
        if name == GROUND:
            return np.zeros(3), np.eye(3), np.zeros(3), np.zeros(3), None
        i = self.index[name]
        return (
            state[i, :3],
            matrix(state[i, 3:7]),
            state[i, 7:10],
            state[i, 10:],
            slice(6 * i, 6 * i + 6),
        )

    def rows(self, state: np.ndarray):
        """Constraints g, their matrix J, gamma, and the forces of the drives."""
        g, J, gamma, effort = [], [], [], np.zeros(self.n)
        for joint, (sa, sb) in zip(self.model.joints, self.arms, strict=True):
            ra, Ra, va, wa, first = self._body(state, joint.first)
            rb, Rb, vb, wb, second = self._body(state, joint.second)
            sa, sb = Ra @ sa, Rb @ sb
            gap = rb + sb - ra - sa
            gap_rate = vb + product(wb, sb) - va - product(wa, sa)
            central = product(wb, product(wb, sb)) - product(wa, product(wa, sa))

            def row(on_first, on_second, value, right, first=first, second=second):
                line = np.zeros(self.n)
                if first is not None:
                    line[first] = on_first
                if second is not None:
                    line[second] = on_second
                g.append(value)
                J.append(line)
                gamma.append(right)

            def along(
                n, sa=sa, sb=sb, gap=gap, gap_rate=gap_rate, central=central, wa=wa, row=row, value=0.0
            ):
                """The gap along a direction that is fixed in the first body."""
                row(
                    np.concatenate([-n, product(n, sa) + product(n, gap)]),
                    np.concatenate([n, product(sb, n)]),
                    n @ gap - value,
                    -(n @ central + 2 * product(wa, n) @ gap_rate + product(wa, product(wa, n)) @ gap),
                )

            def upright(n, d, wa=wa, wb=wb, row=row):
                """A direction of the first body stays normal to one of the second."""
                c, w = product(d, n), wb - wa
                right = -w @ (product(product(wb, d), n) + product(d, product(wa, n)))
                row(np.concatenate([np.zeros(3), -c]), np.concatenate([np.zeros(3), c]), n @ d, right)

            axis = None if joint.axis is None else np.array(joint.axis)
            if joint.kind == "prismatic":
                across = normals(axis)
                for n in across:
                    along(Ra @ n)
                    upright(Ra @ n, Rb @ axis)
                upright(Ra @ across[0], Rb @ across[1])
            else:
                for k in range(3):
                    e = np.eye(3)[k]
                    row(
                        np.concatenate([-e, product(e, sa)]),
                        np.concatenate([e, product(sb, e)]),
                        gap[k],
                        -central[k],
                    )
                if joint.kind == "revolute":
                    for n in normals(axis):
                        upright(Ra @ n, Rb @ axis)
                elif joint.kind == "universal":
                    upright(Ra @ axis, Rb @ joint.axis2)
            drive = self.drives.get(joint.name)
            if drive is not None:
                e = Ra @ axis
                if joint.kind == "revolute":
                    assert drive.stiffness == 0
                    push = drive.constant - drive.rate * (e @ (wb - wa))
                    onto = np.zeros(3), push * e
                    back = np.zeros(3), -push * e
                else:
                    rate = e @ gap_rate + product(wa, e) @ gap
                    push = drive.constant - drive.rate * rate - drive.stiffness * (e @ gap)
                    onto = push * e, push * product(sb, e)
                    back = -push * e, -push * product(sa + gap, e)
                for columns, (force, moment) in ((second, onto), (first, back)):
                    if columns is not None:
                        effort[columns] += np.concatenate([force, moment])
        n = len(g)
        return np.array(g), np.array(J).reshape(n, self.n), np.array(gamma), effort

    def accelerations(self, state: np.ndarray) -> np.ndarray:
        """Per body: acceleration of the centre and angular acceleration, seen from the world."""
        g, J, gamma, f = self.rows(state)
        root = np.zeros((self.n, self.n))
        for i, body in enumerate(self.model.bodies):
            R, w = matrix(state[i, 3:7]), state[i, 10:]
            k = 6 * i
            f[k : k + 3] += body.mass * np.array(self.model.gravity)
            f[k + 3 : k + 6] -= product(w, R @ (np.array(body.inertia) @ (R.T @ w)))
            root[k : k + 3, k : k + 3] = np.eye(3) / np.sqrt(body.mass)
            root[k + 3 : k + 6, k + 3 : k + 6] = R @ self.roots[i]
        a = root @ (root.T @ f)
        if len(g):
            scaled = J @ root
            a = a + root @ lstsq(scaled, gamma - J @ a, cond=1e-8, lapack_driver="gelsy")[0]
        return a.reshape(-1, 6)

    def rate(self, t: float, y: np.ndarray) -> np.ndarray:
        state = y.reshape(-1, 13)
        out = np.empty_like(state)
        out[:, :3] = state[:, 7:10]
        w, q = state[:, 10:], state[:, 3:7]
        out[:, 3] = -0.5 * np.sum(w * q[:, 1:], axis=1)
        out[:, 4:7] = 0.5 * (q[:, :1] * w + np.cross(w, q[:, 1:]))
        out[:, 7:] = self.accelerations(state)
        return out.ravel()


def accelerations(model: Model) -> np.ndarray:
    return Equations(model).accelerations(start(model))


ROWS = {"revolute": 5, "prismatic": 5, "universal": 4, "spherical": 3}


def reactions(model: Model) -> dict[str, np.ndarray] | None:
    """What every joint does to its second body at the start: force, and moment about the joint's point, seen
    from the world, without its drive. None where redundant rows in space leave them open; in the plane these
    rows are those across it, which do nothing.
    """
    if model.redundant and not model.planar:
        return None
    equations, state = Equations(model), start(model)
    _, J, _, f = equations.rows(state)
    a = equations.accelerations(state)
    needed = -f
    for i, body in enumerate(model.bodies):
        w, inertia = state[i, 10:], np.array(body.inertia)  # at the start the axes are those of the world
        needed[6 * i : 6 * i + 3] += body.mass * (a[i, :3] - np.array(model.gravity))
        needed[6 * i + 3 : 6 * i + 6] += inertia @ a[i, 3:] + product(w, inertia @ w)
    multipliers = lstsq(J.T, needed, cond=1e-10)[0]
    assert np.allclose(J.T @ multipliers, needed, atol=1e-9)
    found, first = {}, 0
    for joint, (_, arm) in zip(model.joints, equations.arms, strict=True):
        rows = slice(first, first + ROWS[joint.kind])
        first = rows.stop
        i = 6 * equations.index[joint.second]
        wrench = multipliers[rows] @ J[rows, i : i + 6]
        found[joint.name] = np.concatenate([wrench[:3], wrench[3:] - product(arm, wrench[:3])])
    return found


def motion(model: Model, times, step: float) -> np.ndarray:
    """States at these times, by steps of equal length, at most ``step``."""
    equations, y, t, states = Equations(model), start(model).ravel(), 0.0, []
    for end in times:
        h = (end - t) / np.ceil((end - t) / step - 1e-9)
        run = DOP853(equations.rate, t, y, end, max_step=h, first_step=h, rtol=1.0, atol=1e10)
        while run.status == "running":
            run.step()
        t, y = end, run.y
        states.append(y.reshape(-1, 13).copy())
    states = np.array(states)
    states[:, :, 3:7] /= np.linalg.norm(states[:, :, 3:7], axis=2, keepdims=True)
    return states


def opened(model: Model, state: np.ndarray) -> float:
    """The largest constraint that is not zero."""
    g = Equations(model).rows(state)[0]
    return float(np.max(np.abs(g), initial=0.0))


def energy(model: Model, state: np.ndarray) -> float:
    total = 0.0
    for body, s in zip(model.bodies, state, strict=True):
        R = matrix(s[3:7])
        w = R.T @ s[10:]
        total += body.mass * (s[7:10] @ s[7:10] / 2 - np.dot(model.gravity, s[:3]))
        total += w @ np.array(body.inertia) @ w / 2
    return float(total)
