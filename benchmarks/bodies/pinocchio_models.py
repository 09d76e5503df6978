"""Pinocchio: joint coordinates, loops closed by proximal constraint dynamics.

It has no integrator; its accelerations are integrated by the classical Runge-Kutta method with constant
steps, on the manifold by pinocchio.integrate within a step. Loops are RigidConstraintModel of type
CONTACT_3D, one or two for a joint, without Baumgarte's terms, so what a loop opens in a run is its drift.
Redundant rows are met by the proximal iterations. Every revolute axis is the z axis of its joint's frame, so
that JointModelRZ serves.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pinocchio as pin

from bodies.models import GRAVITY, GROUND, Model
from bodies.tree import frame, pairs, quaternion, tree

ACCURACY = 1e-14
ALONE, REDUNDANT = (1e-10, 50), (1e-3, 10)
"""Weight of the proximal term and number of iterations. Where rows are redundant a small weight multiplies
what they disagree by, and that is what the run has drifted: at 1e-8 Bennett's linkage is a hundred thousand
times less accurate.
"""


def version() -> str:
    return pin.__version__


class Built:
    def __init__(self, model: Model) -> None:
        self.model, self.pin = model, pin.Model()
        self.pin.gravity.linear = np.array(model.gravity)
        self.joints, self.turn = {GROUND: 0}, {GROUND: np.eye(3)}
        place = {GROUND: pin.SE3.Identity()}
        self.drives, branches = [], tree(model)
        for branch in branches:
            body, joint = branch.body, branch.joint
            R, point = np.eye(3), np.array(body.center if joint is None else joint.point)
            if joint is None:
                kind = pin.JointModelFreeFlyer()
            elif joint.kind == "spherical":
                kind = pin.JointModelSpherical()
            elif joint.kind == "universal":
                kind = pin.JointModelUniversal(np.array(joint.axis), np.array(joint.axis2))
            else:
                R = frame(joint.axis)
                kind = pin.JointModelRZ() if joint.kind == "revolute" else pin.JointModelPZ()
            here = pin.SE3(R, point)
            before = branch.before
            i = self.pin.addJoint(self.joints[before], kind, place[before].actInv(here), body.name)
            self.joints[body.name], self.turn[body.name], place[body.name] = i, R, here
            lever = R.T @ np.subtract(body.center, point)
            inertia = pin.Inertia(body.mass, lever, R.T @ np.array(body.inertia) @ R)
            self.pin.appendBodyToJoint(i, inertia, pin.SE3.Identity())
            if branch.drive is not None:
                self.drives.append((branch.drive, self.pin.joints[i].idx_q, self.pin.joints[i].idx_v))
        self.q0, self.v0 = pin.neutral(self.pin), np.zeros(self.pin.nv)
        for branch in branches:
            j = self.pin.joints[self.joints[branch.body.name]]
            self.v0[j.idx_v : j.idx_v + j.nv] = branch.rates(model)
        self.data = self.pin.createData()
        self.loops = pin.StdVec_RigidConstraintModel()
        for pair in pairs(model):
            first, second = self.joints[pair.first], self.joints[pair.second]
            at = pin.SE3(np.eye(3), pair.point)
            contact = pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D,
                self.pin,
                first,
                place[pair.first].actInv(at),
                second,
                place[pair.second].actInv(at),
                pin.ReferenceFrame.LOCAL,
            )
            self.loops.append(contact)
        self.constraint_data = pin.StdVec_RigidConstraintData()
        for contact in self.loops:
            self.constraint_data.append(contact.createData())
        self.settings = pin.ProximalSettings(ACCURACY, *(REDUNDANT if model.redundant else ALONE))
        if len(self.loops):
            pin.initConstraintDynamics(self.pin, self.data, self.loops, self.constraint_data)

    def effort(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = np.zeros(self.pin.nv)
        for drive, iq, iv in self.drives:
            tau[iv] = drive.constant - drive.rate * v[iv]
            if drive.stiffness:
                tau[iv] -= drive.stiffness * q[iq]
        return tau

    def joint_accelerations(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = self.effort(q, v)
        if not len(self.loops):
            return pin.aba(self.pin, self.data, q, v, tau).copy()
        return pin.constraintDynamics(
            self.pin, self.data, q, v, tau, self.loops, self.constraint_data, self.settings
        ).copy()

    def bodies(self, q: np.ndarray, v: np.ndarray, a: np.ndarray | None = None) -> np.ndarray:
        """Per body: position, quaternion, velocity, angular velocity; or with the accelerations of the
        joints: acceleration and angular acceleration.
        """
        if a is None:
            pin.forwardKinematics(self.pin, self.data, q, v)
        else:
            pin.forwardKinematics(self.pin, self.data, q, v, a)
        out = []
        for body in self.model.bodies:
            i = self.joints[body.name]
            place, lever = self.data.oMi[i], self.pin.inertias[i].lever
            velocity = self.data.v[i]
            w = place.rotation @ velocity.angular
            s = place.rotation @ lever
            if a is None:
                position = place.translation + s
                turn = quaternion(place.rotation @ self.turn[body.name].T)
                rate = place.rotation @ velocity.linear + np.cross(w, s)
                out.append(np.concatenate([position, turn, rate, w]))
            else:
                spatial = self.data.a[i]
                alpha = place.rotation @ spatial.angular
                linear = place.rotation @ (spatial.linear + np.cross(velocity.angular, velocity.linear))
                out.append(np.concatenate([linear + np.cross(alpha, s) + np.cross(w, np.cross(w, s)), alpha]))
        return np.array(out)


def accelerations(model: Model) -> np.ndarray:
    """Per body: acceleration of the centre and angular acceleration at the start, seen from the world."""
    built = Built(model)
    return built.bodies(built.q0, built.v0, built.joint_accelerations(built.q0, built.v0))


def reactions(model: Model) -> dict[str, np.ndarray]:
    """What every joint of a tree does to its second body at the start: force, and moment about the joint's
    point, seen from the world, without its drive.
    """
    built = Built(model)
    if len(built.loops):
        raise NotImplementedError("only for trees")
    q, v = built.q0, built.v0
    tau = built.effort(q, v)
    pin.rnea(built.pin, built.data, q, v, built.joint_accelerations(q, v))
    pin.updateGlobalPlacements(built.pin, built.data)
    found = {}
    for joint in model.joints:
        i = built.joints[joint.second]
        R, force = built.data.oMi[i].rotation, built.data.f[i]
        moment = R @ force.angular
        if joint.kind == "revolute":
            moment = moment - tau[built.pin.joints[i].idx_v] * np.array(joint.axis)
        found[joint.name] = np.concatenate([R @ force.linear, moment])
    return found


def motion(model: Model, times, step: float) -> np.ndarray:
    """States of the bodies at these times by the classical Runge-Kutta method."""
    built = Built(model)
    q, v, t, states = built.q0.copy(), built.v0.copy(), 0.0, []

    def move(q, dq):
        return pin.integrate(built.pin, q, dq)

    f = built.joint_accelerations
    for end in times:
        n = int(np.ceil((end - t) / step - 1e-9))
        h = (end - t) / n
        for _ in range(n):
            # Runge, Kutta and Munthe-Kaas: rates of the chart are corrected by pinocchio.dDifference
            q, v = _step(built, f, move, q, v, h)
        t = end
        states.append(built.bodies(q, v))
    return np.array(states)


def _step(built: Built, f, move, q, v, h):
    m = built.pin

    def chart_rate(d, v):
        """The rate of d at which integrate(q, d) has the velocity v."""
        if m.nq == m.nv:
            return v
        return np.linalg.solve(pin.dIntegrate(m, q, d, pin.ArgumentPosition.ARG1), v)

    zero = np.zeros(m.nv)
    d1, a1 = chart_rate(zero, v), f(q, v)
    x2, v2 = h / 2 * d1, v + h / 2 * a1
    d2, a2 = chart_rate(x2, v2), f(move(q, x2), v2)
    x3, v3 = h / 2 * d2, v + h / 2 * a2
    d3, a3 = chart_rate(x3, v3), f(move(q, x3), v3)
    x4, v4 = h * d3, v + h * a3
    d4, a4 = chart_rate(x4, v4), f(move(q, x4), v4)
    return move(q, h / 6 * (d1 + 2 * d2 + 2 * d3 + d4)), v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)


def aba_seconds(model: Model, calls: int = 20000, repeats: int = 20) -> dict[str, float]:
    """Seconds of one ABA, the best of many, in several ways.

    "python" is a call of pinocchio.aba from Python; "trivial" one of pinocchio.difference, which takes a
    model and two vectors and returns their difference; "net" what is left. "C++" is a loop over
    pinocchio::aba in C++, which calls the library of the wheel, see `native_seconds`.
    """
    built = Built(model)
    m, data, q, v, tau = built.pin, built.data, built.q0, built.v0, built.effort(built.q0, built.v0)

    def best(call, *arguments) -> float:
        found = np.inf
        for _ in range(repeats):
            began = time.perf_counter()
            for _ in range(calls):
                call(*arguments)
            found = min(found, (time.perf_counter() - began) / calls)
        return found

    called, trivial = best(pin.aba, m, data, q, v, tau), best(pin.difference, m, q, q)
    return {"python": called, "trivial": trivial, "net": called - trivial}


def native_seconds(folder: Path, *, native: bool = False) -> float | None:
    """Seconds of one pinocchio::aba of the arm in a loop in C++, or None where it cannot be compiled.

    It needs g++ and the headers of Eigen (package cmeel-eigen); compiling takes two minutes, and the program
    is kept in ``folder``. It calls the code in the wheel; with ``native`` everything is compiled here, with
    -O3 -march=native.
    """
    prefix = Path(pin.__file__).parents[4]
    include, library = prefix / "include", prefix / "lib"
    program = folder / ("aba_native" if native else "aba")
    if not program.exists():
        if not shutil.which("g++") or not (include / "eigen3").exists():
            return None
        folder.mkdir(parents=True, exist_ok=True)
        kind = (
            ["-march=native"]
            if native
            else [
                "-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION",
                f"-L{library}",
                "-lpinocchio_default",
                f"-Wl,-rpath,{library}",
            ]
        )
        command = ["g++", "-std=c++17", "-O3", "-DNDEBUG", "-DCONVENTION=pin::Convention::LOCAL"]
        command += ["-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"]
        command += [f"-I{include}", f"-I{include / 'eigen3'}"]
        command += [str(Path(__file__).parent / "aba.cpp"), "-o", str(program), *kind]
        subprocess.run(command, check=True, capture_output=True)
    data = json.loads((Path(__file__).parent / "arm.json").read_text())
    numbers = [*GRAVITY]
    for link in data["links"]:
        numbers += [*np.ravel(link["R"]), *link["p"], link["m"], *link["c"], *np.ravel(link["I"])]
    numbers += [*data["q"], *data["v"], *data["tau"]]
    text = f"{len(data['links'])} " + " ".join(repr(float(x)) for x in numbers)
    out = subprocess.run([program], input=text, check=True, capture_output=True, text=True).stdout.split()
    np.testing.assert_allclose(np.array(out[1:], dtype=float), data["a"], rtol=1e-11)
    return float(out[0])
