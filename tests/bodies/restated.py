"""The mechanisms of references.json, restated with `hn.Mechanism`.

Their data are seen from the world at the start: every body has its origin in its centre and its axes along
those of the world.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import holonome as hn

REFERENCES: dict[str, dict] = json.loads((Path(__file__).parent / "references.json").read_text())


def mechanism(model: Mapping[str, Any], **options) -> hn.Mechanism:
    """Bodies, joints and drives of one of the models."""
    size = 2 if model["planar"] else 3
    m = hn.Mechanism(model["name"], gravity=tuple(model["gravity"][:size]), **options)
    center = {"ground": np.zeros(3)}
    bodies = {"ground": m.ground}
    for body in model["bodies"]:
        inertia = np.array(body["inertia"])
        name = body["name"]
        bodies[name] = m.body(name, mass=body["mass"], inertia=inertia if size == 3 else inertia[2, 2])
        center[name] = np.array(body["center"])
    for joint in model["joints"]:
        name, kind, sides = joint["name"], joint["kind"], (joint["first"], joint["second"])
        ends = [bodies[side].at(*(np.array(joint["point"]) - center[side])[:size]) for side in sides]
        if kind == "spherical" or (kind == "revolute" and size == 2):
            getattr(m, kind)(name, *ends)
        elif kind == "universal":
            m.universal(name, *ends, axes=(joint["axis"], joint["axis2"]))
        else:
            getattr(m, kind)(name, *ends, axis=tuple(joint["axis"][:size]))
    for body in bodies:
        if body != "ground" and all(joint["second"] != body or joint["loop"] for joint in model["joints"]):
            m.free(body)
    for drive in model["drives"]:
        joint = next(joint for joint in model["joints"] if joint["name"] == drive["joint"])
        constant, damping, stiffness = drive["constant"], drive["rate"], drive["stiffness"]
        if joint["kind"] == "revolute":
            m.torque(f"motor {joint['name']}", joint["name"], _law("angle", constant, damping, stiffness))
        else:
            law = _law("displacement", constant, damping, stiffness)
            m.force(f"motor {joint['name']}", joint["name"], law)
    return m


def _law(coordinate: str, constant: float, damping: float, stiffness: float):
    if coordinate == "angle":
        return lambda angle, rate: constant - damping * rate - stiffness * angle
    return lambda displacement, rate: constant - damping * rate - stiffness * displacement


def start(model: Mapping[str, Any]) -> dict[str, dict]:
    """The places of all bodies at the start."""
    if model["planar"]:
        return {body["name"]: {"position": body["center"][:2], "angle": 0.0} for body in model["bodies"]}
    unturned = Rotation.identity()
    return {body["name"]: {"position": body["center"], "rotation": unturned} for body in model["bodies"]}


def speed(model: Mapping[str, Any]) -> dict[str, dict]:
    """The velocities of all bodies at the start."""
    if model["planar"]:
        return {
            body["name"]: {"velocity": body["velocity"][:2], "angular_velocity": body["angular_velocity"][2]}
            for body in model["bodies"]
        }
    return {
        body["name"]: {"velocity": body["velocity"], "angular_velocity": body["angular_velocity"]}
        for body in model["bodies"]
    }


def states(sol, model: Mapping[str, Any]) -> np.ndarray:
    """By time and body: position, quaternion (w first), velocity, angular velocity."""
    planar, out = model["planar"], []
    for body in model["bodies"]:
        found = sol.body(body["name"])
        n = found.position.shape[1]
        quaternion = found.rotation.as_quat()[:, [3, 0, 1, 2]]
        position, velocity, turning = found.position.T, found.velocity.T, found.angular_velocity.T
        if planar:
            zero = np.zeros((n, 1))
            position, velocity = np.hstack([position, zero]), np.hstack([velocity, zero])
            turning = np.hstack([zero, zero, np.reshape(turning, (n, 1))])
        out.append(np.hstack([position, quaternion, velocity, turning]))
    return np.stack(out, axis=1)


def distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference; a quaternion and its negative are the same rotation."""
    ours = ours.copy()
    ours[..., 3:7] *= np.sign(np.sum(ours[..., 3:7] * theirs[..., 3:7], axis=-1, keepdims=True))
    return float(np.max(np.abs(ours - theirs)))


def accelerations(sol, model: Mapping[str, Any]) -> np.ndarray:
    """At the first point: acceleration of the centre and angular acceleration of each body."""
    out = []
    for body in model["bodies"]:
        found = sol.body(body["name"])
        linear, angular = found.acceleration[..., 0], np.asarray(found.angular_acceleration)[..., 0]
        if model["planar"]:
            linear, angular = np.append(linear, 0.0), np.array([0.0, 0.0, float(angular)])
        out.append(np.concatenate([linear, angular]))
    return np.array(out)
