"""MuJoCo: bodies joined by hinges, which are its coordinates; loops closed by equality constraints, which are
soft.

RK4 with constant steps, whose number is the level. Contacts are off. Equality constraints are as stiff as
MuJoCo recommends at most, a time constant of two steps, with impedance 0.9999; Newton's solver at tolerance
1e-12. The loop over the steps is that of mujoco.rollout, in C++; what is timed is that call.
"""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco import rollout

from harness.protocol import STEPS, CannotState, Code, Outcome, Problem, timed

LARGEST = 100
"""Bars of the longest chain: the mass matrix of a chain in joint angles is full, and rollout returns the
state after every step.
"""
REASONS = {
    "wheelset": "no contact of profiled wheels with rails and creep forces",
    "kepler": "no central force",
    "driven": "no spring to a point that moves in time",
    "duplicated": "a hinge is a coordinate; there is no constraint to state twice",
    "slider_crank_unequal": "no point on a line without a carriage that has mass",
    "slider_crank": "no point on a line without a carriage that has mass",
    "spring": "no model was written",
    "andrews": "no model was written",
    "two_body_bushing": "no model was written",
}


def version() -> str:
    return mujoco.__version__


def _bar(name: str, m: float, length: float, inside: str, *, at: float, angle: float) -> str:
    """A bar from its hinge, ``at`` along the bar before, under the angle to that bar."""
    J = m * length**2 / 12
    return (
        f'<body name="{name}" pos="{at!r} 0 0" euler="0 0 {angle!r}"><joint type="hinge" axis="0 0 1"/>'
        f'<inertial pos="{length / 2!r} 0 0" mass="{m!r}" diaginertia="{J!r} {J!r} {J!r}"/>{inside}</body>'
    )


def _model(bodies: str, gravity: float, step: float, equality: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian" autolimits="false"/>'
        f'<option timestep="{step!r}" integrator="RK4" gravity="0 {-gravity!r} 0" solver="Newton" '
        'tolerance="1e-12" iterations="100"><flag contact="disable"/></option>'
        f"<worldbody>{bodies}</worldbody><equality>{equality}</equality></mujoco>"
    )


def _pendulum(problem: Problem, step: float) -> mujoco.MjModel:
    p = problem.p
    mass = (
        f'<body euler="0 0 {-np.pi / 2!r}"><joint type="hinge" axis="0 0 1"/>'
        f'<inertial pos="{p.length!r} 0 0" mass="{p.m!r}" diaginertia="1e-12 1e-12 1e-12"/></body>'
    )
    return _model(mass, p.gravity, step)


def _pendulum_state(problem: Problem, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    return problem.p.length * np.array(
        [np.sin(q[0]), -np.cos(q[0]), np.cos(q[0]) * v[0], np.sin(q[0]) * v[0]]
    )


def _bars(problem: Problem, lengths, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centres and angles, and their rates, of bars hinged to each other, from the angles and their rates."""
    along, rate = lengths * np.exp(1j * q), 1j * v * lengths * np.exp(1j * q)
    r, w = np.cumsum(along) - along / 2, np.cumsum(rate) - rate / 2
    return np.stack([r.real, r.imag, q], axis=1).ravel(), np.stack([w.real, w.imag, v], axis=1).ravel()


def _chain(problem: Problem, step: float) -> mujoco.MjModel:
    bar, m, inside = problem.p.length / problem.links, problem.p.m / problem.links, ""
    for i in reversed(range(problem.links)):
        inside = _bar(f"bar{i}", m, bar, inside, at=bar if i else 0.0, angle=0.0)
    return _model(inside, problem.p.gravity, step)


def _chain_state(problem: Problem, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    bar = problem.p.length / problem.links
    return np.concatenate(_bars(problem, np.full(problem.links, bar), np.cumsum(q), np.cumsum(v)))


def _four_bar(problem: Problem, step: float) -> mujoco.MjModel:
    p, (a, b, c) = problem.p, problem.y0[2:9:3]
    crank = _bar(
        "a",
        p.density * p.a,
        p.a,
        _bar("b", p.density * p.b, p.b, "", at=p.a, angle=float(b - a)),
        at=0.0,
        angle=float(a),
    )
    rocker = _bar("c", p.density * p.c, p.c, "", at=p.d, angle=float(c))
    loop = (
        f'<connect body1="b" body2="c" anchor="{p.b!r} 0 0" solref="{2 * step!r} 1" '
        'solimp="0.9999 0.9999 0.001 0.5 2"/>'
    )
    return _model(crank + rocker, p.gravity, step, loop)


def _four_bar_state(problem: Problem, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    p, (a, b, c) = problem.p, problem.y0[2:9:3]
    chain = _bars(
        problem, np.array([p.a, p.b]), np.array([a + q[0], b + q[0] + q[1]]), np.array([v[0], v[0] + v[1]])
    )
    rocker = _bars(problem, np.array([p.c]), np.array([c + q[2]]), v[2:])
    return np.concatenate([chain[0], rocker[0] + [p.d, 0, 0], chain[1], rocker[1]])


def _four_bar_start(problem: Problem) -> np.ndarray:
    a, b, c = problem.y0[11::3]
    return np.array([a, b - a, c])


BUILD = {
    "pendulum": (_pendulum, _pendulum_state),
    "chain": (_chain, _chain_state),
    "four_bar": (_four_bar, _four_bar_state),
}


def codes(problem: Problem) -> dict[str, Code]:
    if problem.name not in BUILD:
        raise CannotState(REASONS[problem.name])
    if problem.links > LARGEST:
        raise CannotState(f"not run for more than {LARGEST} bars: the mass matrix in joint angles is full")
    build, ours = BUILD[problem.name]

    def run(steps: float):
        model = build(problem, problem.end / int(steps))
        data = mujoco.MjData(model)
        if problem.name == "pendulum":
            data.qpos[0] = np.arctan2(problem.y0[0], -problem.y0[1])
        if problem.name == "four_bar":
            data.qvel[:] = _four_bar_start(problem)
        start = np.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
        mujoco.mj_getState(model, data, start, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        (states, _), seconds = timed(lambda: rollout.rollout(model, data, start[None], nstep=int(steps)))
        position = 1  # behind the time
        return (
            states[0, :, position : position + model.nq],
            states[0, :, position + model.nq : position + model.nq + model.nv],
            seconds,
        )

    def solve(steps: float) -> Outcome:
        q, v, seconds = run(steps)
        state = ours(problem, q[-1], v[-1])
        good = bool(np.all(np.isfinite(state)))
        return Outcome(
            state if good else None, seconds, int(steps), 4 * int(steps), "" if good else "not finite"
        )

    def states(steps: float, times) -> np.ndarray:
        q, v, _ = run(steps)
        return np.array([ours(problem, *pair) for pair in zip(q, v, strict=True)])

    return {"RK4": Code(solve, states, levels=STEPS, interpolates=False)}
