"""Mechanisms of bodies and joints in other codes: accelerations, motions as the step goes to zero, and
seconds.

    python benchmarks/bodies/peers.py [--model NAME ...] [--build FOLDER] [--no-times]

Run it with a Python that has mujoco, exudyn, drake and pin (with cmeel-eigen, for the loop in C++), on an
idle machine. It writes benchmarks/results/bodies_peers.csv, and tests/bodies/references.json: the models, and
their motions by Pinocchio, extrapolated, with the distance from what Newton's and Euler's equations give by
hand. With --model only these are done anew, and the rest of both files is kept.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib
import json
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402

from bodies import newton_euler  # noqa: E402
from bodies.models import MODELS, Model  # noqa: E402

RESULTS = HERE.parent / "results" / "bodies_peers.csv"
REFERENCES = HERE.parents[1] / "tests" / "bodies" / "references.json"
COLUMNS = ("model", "peer", "version", "quantity", "step", "value", "unit", "date", "machine", "python")
PEERS = {
    "pinocchio": ("pinocchio_models", {}),
    "mujoco": ("mujoco_models", {}),
    "exudyn (index 2)": ("exudyn_models", {"kind": "index 2"}),
    "exudyn (index 3)": ("exudyn_models", {"kind": "index 3"}),
    "drake": ("drake_models", {}),
}
STEPS = (400, 800, 1600, 3200)
"""Numbers of steps of a motion."""
FINE = (3200, 6400, 12800)
"""Those of Pinocchio for the reference."""
ORDER = 4
"""That of the method by which its accelerations are integrated."""


def distance(first: np.ndarray, second: np.ndarray) -> float:
    """The largest difference of two motions; a quaternion and its negative are the same rotation."""
    return float(np.max(np.abs(_same_side(first, second) - second)))


def _same_side(states: np.ndarray, other: np.ndarray) -> np.ndarray:
    states = states.copy()
    states[..., 3:7] *= np.sign(np.sum(states[..., 3:7] * other[..., 3:7], axis=-1, keepdims=True))
    return states


def motions(peer, model: Model, numbers, **options) -> list[np.ndarray]:
    return [peer.motion(model, model.times, model.times[-1] / n, **options) for n in numbers]


def reference(model: Model) -> dict:
    """Pinocchio's motion, extrapolated from its two finest steps, with what speaks for its error."""
    from bodies import pinocchio_models

    coarse, middle, fine = motions(pinocchio_models, model, FINE)
    coarse, middle = _same_side(coarse, fine), _same_side(middle, fine)
    states = fine + (fine - middle) / (2**ORDER - 1)
    before = middle + (middle - coarse) / (2**ORDER - 1)
    reactions = newton_euler.reactions(model)
    steps = 200 if len(model.bodies) > 10 else 800
    by_hand = newton_euler.motion(model, model.times, model.times[-1] / steps)
    return {
        "model": model.plain(),
        "times": list(model.times),
        "accelerations": newton_euler.accelerations(model).tolist(),
        "reactions": reactions and {joint: wrench.tolist() for joint, wrench in reactions.items()},
        "states": states.tolist(),
        "change by the last extrapolation": distance(before, states),
        "distance from the motion by hand": distance(by_hand, states),
        "opened by hand": newton_euler.opened(model, by_hand[-1]),
    }


def compared(model: Model, found: dict) -> Iterator[tuple]:
    """Rows of the table: peer, version, quantity, step, value, unit."""
    states = np.array(found["states"])
    accelerations = np.array(found["accelerations"])
    yield "by hand", "", "distance of the motions", "", found["distance from the motion by hand"], ""
    yield "by hand", "", "change by the last extrapolation", "", found["change by the last extrapolation"], ""
    yield "by hand", "", "largest acceleration", "", float(np.max(np.abs(accelerations))), ""
    for name, (module, options) in PEERS.items():
        peer = importlib.import_module(f"bodies.{module}")
        version = peer.version()
        if name != "exudyn (index 3)":
            try:
                difference = float(np.max(np.abs(peer.accelerations(model) - accelerations)))
                yield name, version, "error of the accelerations", "", difference, ""
            except NotImplementedError as error:
                yield name, version, "no accelerations", "", str(error), ""
        runs = []
        for n in STEPS:
            try:
                runs += motions(peer, model, [n], **options)
            except Exception as error:
                message = str(error).strip().split("\n")[0] or type(error).__name__
                yield name, version, "no motion", model.times[-1] / n, message, ""
                break
            yield name, version, "error of the motion", model.times[-1] / n, distance(runs[-1], states), ""
        if len(runs) == len(STEPS):
            last, one, two = (distance(a, b) for a, b in zip(runs[-2::-1], runs[:0:-1], strict=True))
            for step, ratio in ((STEPS[-2], two / one), (STEPS[-1], one / last)):
                yield name, version, "order by Richardson", model.times[-1] / step, float(np.log2(ratio)), ""
            order = max(1, round(np.log2(one / last)))
            extrapolated = runs[-1] + (runs[-1] - _same_side(runs[-2], runs[-1])) / (2**order - 1)
            error = distance(extrapolated, states)
            yield name, version, "error of the extrapolated motion", model.times[-1] / STEPS[-1], error, ""
    if any(joint.loop for joint in model.joints):
        from bodies import mujoco_models

        for n in STEPS:
            step = model.times[-1] / n
            opened = mujoco_models.opened(model, step, model.times[-1])
            yield "mujoco", mujoco_models.version(), "largest opening of a loop", step, opened, "m"
    else:
        from bodies import pinocchio_models

        theirs = pinocchio_models.reactions(model)
        error = max(float(np.max(np.abs(theirs[name] - found["reactions"][name]))) for name in theirs)
        yield "pinocchio", pinocchio_models.version(), "error of the reactions", "", error, ""


def seconds(model: Model, build: Path | None) -> Iterator[tuple]:
    """What an evaluation of the accelerations costs."""
    from bodies import mujoco_models, pinocchio_models

    for way, value in mujoco_models.forward_seconds(model).items():
        yield "mujoco", mujoco_models.version(), f"mj_forward ({way})", "", 1e9 * value, "ns"
    if model.name == "arm":
        version = pinocchio_models.version()
        for way, value in pinocchio_models.aba_seconds(model).items():
            yield "pinocchio", version, f"aba ({way})", "", 1e9 * value, "ns"
        for native, way in ((False, "C++"), (True, "C++, -march=native")) if build else ():
            value = pinocchio_models.native_seconds(build, native=native)
            if value is not None:
                yield "pinocchio", version, f"aba ({way})", "", 1e9 * value, "ns"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--model", nargs="*", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--build", type=Path, help="where the programs in C++ are compiled and kept")
    parser.add_argument("--no-times", action="store_true", help="measure no seconds")
    arguments = parser.parse_args()
    rows = list(csv.DictReader(RESULTS.open(encoding="utf-8"))) if RESULTS.exists() else []
    found = json.loads(REFERENCES.read_text(encoding="utf-8")) if REFERENCES.exists() else {}
    stamp = (
        datetime.date.today().isoformat(),
        f"{platform.machine()}, {os.cpu_count()} cores",
        platform.python_version(),
    )
    for name in arguments.model:
        model = MODELS[name]()
        print(name, flush=True)
        found[name] = reference(model)
        new = list(compared(model, found[name]))
        timed = [] if arguments.no_times else list(seconds(model, arguments.build))
        kept = [row for row in rows if row["model"] != name or (arguments.no_times and row["unit"] == "ns")]
        rows = kept + [
            dict(
                zip(
                    COLUMNS,
                    (
                        name,
                        *row[:4],
                        f"{row[4]:.4g}" if isinstance(row[4], float) else row[4],
                        row[5],
                        *stamp,
                    ),
                    strict=True,
                )
            )
            for row in new + timed
        ]
        write(rows, found)


def write(rows: list[dict], found: dict) -> None:
    order = {name: i for i, name in enumerate(MODELS)}
    rows.sort(key=lambda row: order[row["model"]])
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    REFERENCES.parent.mkdir(exist_ok=True)
    models = [f"{json.dumps(name)}: {_compact(found[name])}" for name in MODELS if name in found]
    REFERENCES.write_text("{\n" + ",\n".join(models) + "\n}\n", encoding="utf-8")


def _compact(entry: dict) -> str:
    """One line for each body, joint, time and figure."""

    def line(value) -> str:
        return json.dumps(_rounded(value))

    model, parts = dict(entry["model"]), []
    for key in ("bodies", "joints", "drives"):
        lines = ",\n   ".join(json.dumps(item) for item in model.pop(key))
        parts.append(f'  "{key}": [\n   {lines}]')
    model.pop("times", None)
    inner = ",\n".join([f'  "{key}": {json.dumps(value)}' for key, value in model.items()] + parts)
    lines = [f' "model": {{\n{inner}}}', f' "times": {line(entry["times"])}']
    lines.append(f' "accelerations": {line(entry["accelerations"])}')
    lines.append(f' "reactions": {line(entry["reactions"])}')
    states = ",\n  ".join(line(state) for state in entry["states"])
    lines.append(f' "states": [\n  {states}]')
    for key, value in entry.items():
        if isinstance(value, float):
            lines.append(f' "{key}": {value:.1e}')
    return "{\n" + ",\n".join(lines) + "}"


def _rounded(value):
    """Fifteen digits."""
    if isinstance(value, float):
        return float(f"{value:.15g}") + 0.0
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


if __name__ == "__main__":
    main()
