"""What a step of hn.Simulator costs: a robot under control, and a Stewart platform against MuJoCo's mj_step,
in one run.

    python benchmarks/stepping.py [--peers PYTHON] [--rounds N] [--out FILE] [--quick]

PYTHON is one that has mujoco; without it only ours is measured.  Both codes are asked in turns, and the best
of all rounds counts.  Every step is one millisecond.  The five-bar robot is that of
examples/five_bar_robot.py with the torques of its motors as inputs: "anew" sets them at each step, so the
method begins anew, "goes on" leaves them.  The platform is that of benchmarks/bodies; MuJoCo takes it with
its own settings and with stiff loops.  Run it on an idle machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests" / "bodies")]

import numpy as np  # noqa: E402
import restated  # noqa: E402

import holonome as hn  # noqa: E402
from harness.options import Options, long_stamp  # noqa: E402
from harness.tables import write_rows  # noqa: E402

STEP, STEPS = 1e-3, 300
Measured = dict[tuple[str, str], Callable[[], float]]
"""What takes how many seconds, by model and method."""
PLATFORM = {
    "auto": {},
    "dopri5": {"method": "dopri5"},
    "heun, step 1 ms": {"method": "heun", "step": STEP},
    "bdf, step 1 ms": {"method": "bdf", "step": STEP},
    "ggl, step 1 ms": {"method": "ggl", "step": STEP, "rtol": 1e-8},
}
MUJOCO = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import mujoco
from bodies import models, mujoco_models
step, steps = float(sys.argv[2]), int(sys.argv[3])
model, found = models.stewart(), {}
for name, options in {
    "Euler": {"integrator": "Euler", "defaults": True},
    "Euler, stiff loops": {"integrator": "Euler"},
    "RK4, stiff loops": {"integrator": "RK4"},
}.items():
    built = mujoco_models.Built(model, step)
    mj = mujoco.MjModel.from_xml_string(mujoco_models.xml(model, step, **options))
    data, best, opened = mujoco.MjData(mj), float("inf"), 0.0
    for _ in range(5):
        mujoco.mj_resetData(mj, data)
        data.qvel[:] = built.data.qvel
        began = time.perf_counter()
        for _ in range(steps):
            mujoco.mj_step(mj, data)
        best = min(best, (time.perf_counter() - began) / steps)
    opened = abs(data.efc_pos[: data.ne]).max()
    found[name] = [best, float(opened)]
print(json.dumps(found))
"""


def robot() -> tuple[hn.System, np.ndarray]:
    """The robot with its torques as inputs, and where it begins."""
    a, b, motors, sides = 0.5, 0.7, np.array([-0.15, 0.15]), np.array([1.0, -1.0])

    def constraint(q):
        ex, ey = motors + a * np.cos(q[:2]), a * np.sin(q[:2])
        return (q[2] - ex) ** 2 + (q[3] - ey) ** 2 - b**2

    system = hn.System(
        [0.02, 0.02, 0.3, 0.3],
        lambda u: np.array([u.left, u.right, 0.0, -0.3 * 9.81]),
        constraint,
        inputs={"left": 0.0, "right": 0.0},
        names=["theta1", "theta2", "x", "y"],
        name="five-bar robot",
    )
    x, y = 0.2, 0.75
    distance = np.sqrt((x - motors) ** 2 + y**2)
    angles = np.arctan2(y, x - motors) + sides * np.arccos((a**2 + distance**2 - b**2) / (2 * a * distance))
    return system, np.array([*angles, x, y])


def seconds(sim: hn.Simulator, step: Callable[[], None], steps: int) -> float:
    """Of one step, the best of a few series."""
    best = np.inf
    for _ in range(5):
        sim.reset()
        sim.step(STEP)
        began = time.perf_counter()
        for _ in range(steps):
            step()
        best = min(best, (time.perf_counter() - began) / steps)
    return best


def robots(steps: int) -> Measured:
    system, q0 = robot()
    found: Measured = {}
    for method in ("auto", "dopri5", "bdf"):
        sim = hn.Simulator(system, q0, method=method)
        found["five-bar robot", f"{method}, anew"] = lambda sim=sim: seconds(
            sim, lambda: sim.step(STEP, left=1.0, right=-1.0), steps
        )
        found["five-bar robot", f"{method}, goes on"] = lambda sim=sim: seconds(
            sim, lambda: sim.step(STEP), steps
        )
    return found


def platforms(steps: int, quick: bool) -> tuple[Measured, dict[tuple[str, str], float]]:
    """Steps, and how far loops are open behind them."""
    model, found, opened = restated.REFERENCES["stewart"]["model"], {}, {}
    for coordinates in ("auto",) if quick else ("auto", "absolute"):
        m = restated.mechanism(model, coordinates=coordinates)
        name = f"Stewart platform, {m.system.n} coordinates"
        for method, options in list(PLATFORM.items())[: 1 if quick else None]:
            sim = hn.Simulator(m, start=restated.start(model), speed=restated.speed(model), **options)
            found[name, method] = lambda sim=sim: seconds(sim, lambda: sim.step(STEP), steps)
            for _ in range(steps):
                sim.step(STEP)
            opened[name, method] = float(np.max(np.abs(sim.state.g)))
    return found, opened


def mujoco(python: str, steps: int) -> dict[str, list[float]]:
    """Seconds of a step of MuJoCo, and how far its loops are open, by integrator."""
    command = [python, "-c", MUJOCO, str(HERE), repr(STEP), str(steps)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout.strip().split("\n")[-1])


def main() -> None:
    parser = Options(__doc__, "stepping.csv")
    parser.add_argument("--peers", help="a Python with mujoco")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.given()
    steps, rounds = (3, 1) if arguments.quick else (STEPS, arguments.rounds)
    ours, opened = platforms(steps, arguments.quick)
    ours = robots(steps) | ours
    best = dict.fromkeys(ours, np.inf)
    theirs: dict[str, list[float]] = {}
    for _ in range(rounds):
        for key, measure in ours.items():
            best[key] = min(best[key], measure())
        if arguments.peers:
            for name, (taken, gap) in mujoco(arguments.peers, steps).items():
                theirs[name] = [min(taken, theirs.get(name, [np.inf])[0]), gap]
    rows = [row | long_stamp() for row in found(best, opened, theirs)]
    write_rows(arguments.out, rows)
    for row in rows:
        print(
            f"{row['model']:36}{row['step of 1 ms']:22}{row['us']:>9} µs {row['loops']:>8} "
            f"{row['to MuJoCo']:>7} {row['met']}"
        )


def found(
    best: dict[tuple[str, str], float],
    opened: dict[tuple[str, str], float],
    theirs: dict[str, list[float]],
) -> Iterator[dict[str, str]]:
    """Rows of the table: all of ours, then MuJoCo's."""
    peer = theirs["Euler"][0] if theirs else np.nan
    for (model, what), taken in best.items():
        row = {"model": model, "step of 1 ms": what, "us": f"{1e6 * taken:.2f}", "loops": "", "to MuJoCo": ""}
        limit = 10e-6
        if model.startswith("Stewart"):
            row |= {"loops": f"{opened[model, what]:.1e}", "to MuJoCo": f"{taken / peer:.2f}"}
            limit = 3 * peer
        yield row | {"met": "" if np.isnan(limit) else "yes" if taken <= limit else "NO"}
    for name, (taken, gap) in theirs.items():
        row = {"model": "Stewart platform in MuJoCo", "step of 1 ms": name, "us": f"{1e6 * taken:.2f}"}
        yield row | {"loops": f"{gap:.1e}", "to MuJoCo": "", "met": ""}


if __name__ == "__main__":
    main()
