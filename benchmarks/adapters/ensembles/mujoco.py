"""MuJoCo's rollout, RK4 with constant steps, whose number follows from the level; the models are those of
benchmarks/adapters/mujoco.py, one for each value of the parameter.
"""

from __future__ import annotations

import sys

sys.path.pop(0)  # this file has the package's name
from pathlib import Path
from types import SimpleNamespace

import mujoco
import numpy as np
from mujoco import rollout

sys.path.insert(0, __file__.rpartition("/")[0])
from talk import run

sys.path.insert(0, str(Path(__file__).parents[2]))
from adapters.mujoco import BUILD, _four_bar_start

STEPS = 6.0
"""In a second at a level of 1."""


def make(task):
    if task["name"] not in BUILD:
        return None
    build, ours = BUILD[task["name"]]
    y0, places = np.array(task["y0"]), task["checked"]
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS

    def problem(value):
        numbers = dict(task["numbers"])
        numbers[list(numbers)[task["place"]]] = value
        return SimpleNamespace(p=SimpleNamespace(**numbers), y0=y0, end=task["end"])

    def solve(level):
        steps = max(10, int(STEPS * task["end"] * level**-0.25))
        given = [problem(task["values"][i]) for i in places]
        models = [build(one, task["end"] / steps) for one in given]
        data = mujoco.MjData(models[0])
        if task["name"] == "pendulum":
            data.qpos[0] = np.arctan2(y0[0], -y0[1])
        else:
            data.qvel[:] = _four_bar_start(given[0])
        start = np.empty(mujoco.mj_stateSize(models[0], kind))
        mujoco.mj_getState(models[0], data, start, kind)
        states, _ = rollout.rollout(models, data, np.tile(start, (len(models), 1)), nstep=steps)
        ends, nq, nv = np.full((len(task["values"]), y0.size), np.inf), models[0].nq, models[0].nv
        for one, i, state in zip(given, places, states[:, -1], strict=True):
            ends[i] = ours(one, state[1 : 1 + nq], state[1 + nq : 1 + nq + nv])
        return ends

    solve.scale = len(task["values"]) / len(places)
    return solve


run(make)
