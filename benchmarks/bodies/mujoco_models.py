"""MuJoCo: joint coordinates; loops closed by equality constraints, which are soft.

RK4 with constant steps. The equality constraints are `connect`, one or two pairs of points for a joint, as
stiff as MuJoCo recommends at most: a time constant of two steps, impedance 0.9999, its largest. Newton's
solver at tolerance 1e-14. Drives are actuators with an affine bias. Contacts are off. The steps of a motion
are those of mujoco.rollout, in C++.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
from mujoco import rollout

from bodies.models import GROUND, Model
from bodies.tree import Branch, pairs, quaternion, tree


def version() -> str:
    return mujoco.__version__


def _text(values) -> str:
    return " ".join(repr(float(x)) for x in values)


def xml(model: Model, step: float, *, integrator: str = "RK4", defaults: bool = False) -> str:
    """The model for one step size, on which the stiffness of its loops depends; or with MuJoCo's defaults."""
    branches = tree(model)
    actuators = []

    def body(branch: Branch) -> str:
        b, joint = branch.body, branch.joint
        before = np.zeros(3) if branch.before == GROUND else model.body(branch.before).center
        at = "" if joint is None else f' pos="{_text(np.subtract(joint.point, b.center))}"'
        if joint is None:
            joints = "<freejoint/>"
        elif joint.kind == "spherical":
            joints = f'<joint type="ball" name="{joint.name}"{at}/>'
        elif joint.kind == "universal":
            joints = (
                f'<joint type="hinge" axis="{_text(joint.axis)}"{at}/>'
                f'<joint type="hinge" axis="{_text(joint.axis2)}"{at}/>'
            )
        else:
            kind = {"revolute": "hinge", "prismatic": "slide"}[joint.kind]
            joints = f'<joint type="{kind}" name="{joint.name}" axis="{_text(joint.axis)}"{at}/>'
        if branch.drive is not None:
            d = branch.drive
            actuators.append(
                f'<general joint="{joint.name}" biastype="affine" gainprm="0" '
                f'biasprm="{_text([d.constant, -d.stiffness, -d.rate])}"/>'
            )
        I = np.array(b.inertia)
        inertia = _text([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
        inside = "".join(body(branch) for branch in branches if branch.before == b.name)
        return (
            f'<body name="{b.name}" pos="{_text(np.subtract(b.center, before))}">{joints}'
            f'<inertial pos="0 0 0" mass="{b.mass!r}" fullinertia="{inertia}"/>{inside}</body>'
        )

    bodies = "".join(body(branch) for branch in branches if branch.before == GROUND)
    stiff = "" if defaults else f'solref="{2 * step!r} 1" solimp="0.9999 0.9999 0.001 0.5 2"'
    tolerance = "1e-8" if defaults else "1e-14"
    loops = "".join(
        f'<connect body1="{pair.first}" body2="{pair.second}" '
        f'anchor="{_text(pair.point - np.array(model.body(pair.first).center))}" '
        f"{stiff}/>"
        for pair in pairs(model)
    )
    return (
        '<mujoco><compiler angle="radian" autolimits="false" boundmass="0" balanceinertia="false"/>'
        f'<option timestep="{step!r}" integrator="{integrator}" gravity="{_text(model.gravity)}" '
        f'solver="Newton" tolerance="{tolerance}" iterations="100"><flag contact="disable"/></option>'
        f"<worldbody>{bodies}</worldbody><equality>{loops}</equality>"
        f"<actuator>{''.join(actuators)}</actuator></mujoco>"
    )


class Built:
    def __init__(self, model: Model, step: float, *, defaults: bool = False) -> None:
        self.model = model
        self.mj = mujoco.MjModel.from_xml_string(xml(model, step, defaults=defaults))
        self.data = mujoco.MjData(self.mj)
        self.ids = [mujoco.mj_name2id(self.mj, mujoco.mjtObj.mjOBJ_BODY, b.name) for b in model.bodies]
        for branch in tree(model):
            i = mujoco.mj_name2id(self.mj, mujoco.mjtObj.mjOBJ_BODY, branch.body.name)
            first, number = self.mj.body_dofadr[i], self.mj.body_dofnum[i]
            self.data.qvel[first : first + number] = branch.rates(model)

    def bodies(self) -> np.ndarray:
        """Per body: position, quaternion, velocity, angular velocity."""
        mujoco.mj_forward(self.mj, self.data)
        out, six = [], np.empty(6)
        for i in self.ids:
            mujoco.mj_objectVelocity(self.mj, self.data, mujoco.mjtObj.mjOBJ_XBODY, i, six, 0)
            turn = quaternion(self.data.xmat[i].reshape(3, 3))
            out.append(np.concatenate([self.data.xpos[i], turn, six[3:], six[:3]]))
        return np.array(out)


def accelerations(model: Model, step: float = 1e-3) -> np.ndarray:
    """Per body: acceleration of the centre and angular acceleration at the start, seen from the world.

    Those of a loop are soft too: the impedance leaves a part of 1e-4.
    """
    built = Built(model, step)
    mujoco.mj_forward(built.mj, built.data)
    mujoco.mj_rnePostConstraint(built.mj, built.data)
    out, six = [], np.empty(6)
    for i in built.ids:
        mujoco.mj_objectAcceleration(built.mj, built.data, mujoco.mjtObj.mjOBJ_XBODY, i, six, 0)
        out.append(np.concatenate([six[3:] + np.array(model.gravity), six[:3]]))
    return np.array(out)


def motion(model: Model, times, step: float) -> np.ndarray:
    """States of the bodies at these times, which must be whole numbers of steps."""
    built = Built(model, step)
    counts = np.rint(np.array(times) / step).astype(int)
    if not np.allclose(counts * step, times, rtol=1e-12):
        raise ValueError("the times are not whole numbers of steps")
    size = mujoco.mj_stateSize(built.mj, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    begin = np.empty(size)
    mujoco.mj_getState(built.mj, built.data, begin, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states, _ = rollout.rollout(built.mj, built.data, begin[None], nstep=int(counts[-1]))
    out = []
    for count in counts:
        mujoco.mj_setState(built.mj, built.data, states[0, count - 1], mujoco.mjtState.mjSTATE_FULLPHYSICS)
        out.append(built.bodies())
    return np.array(out)


def opened(model: Model, step: float, end: float) -> float:
    """The largest distance of two points that should be one, after every step."""
    built = Built(model, step)
    largest = 0.0
    for _ in range(round(end / step)):
        mujoco.mj_step(built.mj, built.data)
        rows = built.data.efc_pos[: built.data.ne].reshape(-1, 3)
        largest = max(largest, float(np.max(np.linalg.norm(rows, axis=1), initial=0.0)))
    return largest


def forward_seconds(
    model: Model, step: float = 1e-3, calls: int = 2000, repeats: int = 50
) -> dict[str, float]:
    """Seconds of one mj_forward, the best of many, in several ways.

    "python" is a call from Python; "trivial" one that does nothing, mj_isPyramidal; "net" the difference.
    "rollout" is a step of Euler's method in mujoco.rollout, in C++: mj_forward and the update of the state.
    "C" is a loop over mj_forward in C, where there is gcc. "C, defaults" is the same with MuJoCo's own
    settings: solver tolerance 1e-8, time constant 0.02, impedance from 0.9 to 0.95. "C, hung" has the first
    spherical joint of a free body in the tree, which saves three coordinates and three rows.
    """
    built = Built(model, step)
    built.bodies()

    def best(count, call, *arguments) -> float:
        found = np.inf
        for _ in range(repeats):
            began = time.perf_counter()
            for _ in range(count):
                call(*arguments)
            found = min(found, (time.perf_counter() - began) / count)
        return found

    called = best(calls, mujoco.mj_forward, built.mj, built.data)
    trivial = best(calls, mujoco.mj_isPyramidal, built.mj)
    euler = mujoco.MjModel.from_xml_string(xml(model, step, integrator="Euler"))
    data, steps = Built(model, step).data, 500
    begin = np.empty(mujoco.mj_stateSize(euler, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(euler, data, begin, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    rolled = best(1, lambda: rollout.rollout(euler, data, begin[None], nstep=steps)) / steps
    found = {"python": called, "trivial": trivial, "net": called - trivial, "rollout": rolled}
    if shutil.which("gcc"):
        found["C"] = _in_c(built)
        found["C, defaults"] = _in_c(Built(model, step, defaults=True))
        free = [branch.body.name for branch in tree(model) if branch.joint is None]
        if free:
            found["C, hung"] = _in_c(Built(hung(model, free[0]), step))
            found["C, hung, defaults"] = _in_c(Built(hung(model, free[0]), step, defaults=True))
    return found


def hung(model: Model, body: str) -> Model:
    """The model with the first loop joint to a free body in the tree."""
    first = next(joint for joint in model.joints if joint.loop and joint.second == body)
    joints = tuple(replace(joint, loop=False) if joint is first else joint for joint in model.joints)
    return replace(model, joints=joints)


def _in_c(built: Built) -> float:
    package = Path(mujoco.__file__).parent
    library = next(package.glob("libmujoco.so*"))
    with tempfile.TemporaryDirectory() as folder:
        program, file = Path(folder) / "mj_forward", Path(folder) / "model.mjb"
        source = Path(__file__).parent / "mj_forward.c"
        subprocess.run(
            [
                "gcc",
                "-O2",
                source,
                "-o",
                program,
                f"-I{package / 'include'}",
                library,
                f"-Wl,-rpath,{package}",
            ],
            check=True,
        )
        mujoco.mj_saveModel(built.mj, str(file), None)
        state = " ".join(repr(float(x)) for x in [*built.data.qpos, *built.data.qvel])
        run = subprocess.run([program, file], input=state, check=True, capture_output=True, text=True)
    return float(run.stdout.split()[0])
