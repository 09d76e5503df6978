"""What an evaluation of the accelerations costs: mechanisms of bodies and joints against systems written by
hand, Pinocchio and MuJoCo, in one run.

    python benchmarks/bodies/speed.py [--peers PYTHON] [--build FOLDER] [--rounds N] [--out FILE] [--quick]

PYTHON is one that has mujoco and pin; every round asks it and this one in turns, and the best of all rounds
counts. Without it only ours is measured. Run it on an idle machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

HERE = Path(__file__).parent
TESTS = HERE.parents[1] / "tests" / "bodies"
sys.path[:0] = [str(HERE.parent), str(HERE), str(TESTS)]

import by_hand  # noqa: E402
import numpy as np  # noqa: E402
import restated  # noqa: E402
from first_result import TOTAL, first_result  # noqa: E402
from scipy.spatial.transform import Rotation  # noqa: E402

import holonome as hn  # noqa: E402
from foundation import kernel_time  # noqa: E402
from harness.options import Options, long_stamp  # noqa: E402
from harness.tables import write_rows  # noqa: E402

ASKED = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from bodies import models, mujoco_models, pinocchio_models
build = Path(sys.argv[2]) if len(sys.argv) > 2 else None
aba = pinocchio_models.aba_seconds(models.arm())
if build:
    aba["C++"] = pinocchio_models.native_seconds(build)
print(json.dumps({"aba": aba, "mj_forward": mujoco_models.forward_seconds(models.stewart())}))
"""


def state(m: hn.Mechanism, start: dict, speed: dict) -> SimpleNamespace:
    """The mechanism and an assembled start, as `kernel_time` takes them."""
    q, v, s = m.initial(0.0, start, speed)
    assert s is None or not len(s), "angles that are counted over turns"
    return SimpleNamespace(system=m.system, q0=q, v0=v)


def referenced(name: str) -> SimpleNamespace:
    model = restated.REFERENCES[name]["model"]
    return state(restated.mechanism(model), restated.start(model), restated.speed(model))


def arm() -> SimpleNamespace:
    """The arm in the frames of its links, as one would write it, and as Pinocchio has it here."""
    data = json.loads((HERE / "arm.json").read_text())
    m = hn.Mechanism("arm", gravity=(0, 0, -9.81))
    before, start, speed = m.ground, {}, {}
    for k, link in enumerate(data["links"]):
        body = m.body(f"link {k + 1}", link["m"], np.array(link["I"]), center=link["c"])
        socket = before.at(*link["p"], rotation=Rotation.from_matrix(link["R"]))
        joint = m.revolute(f"J{k + 1}", socket, body.at(0, 0, 0))
        m.torque(f"motor {k + 1}", joint, data["tau"][k])
        start[joint.name], speed[joint.name], before = data["q"][k], data["v"][k], body
    found = state(m, start, speed)
    accelerations = hn.solve(m, (0, 1e-3), start=start, speed=speed).a[:, 0]
    np.testing.assert_allclose(accelerations, data["a"], rtol=1e-10)
    return found


def measure(
    names: list[str], peers: str | None, build: str | None, rounds: int
) -> dict[tuple[str, str], float]:
    """Seconds, by model and quantity: the least of all rounds."""
    ours = {"arm": arm(), "stewart": referenced("stewart")}
    pairs = {name: (hn.mechanisms.get(name), state(*by_hand.MECHANISMS[name]())) for name in names}
    best: dict[tuple[str, str], float] = {}

    def keep(model: str, quantity: str, seconds: float) -> None:
        best[model, quantity] = min(seconds, best.get((model, quantity), np.inf))

    for _ in range(rounds):
        for name, example in ours.items():
            keep(name, "accelerations", kernel_time(example))
        for name, (written, made) in pairs.items():
            keep(name, "accelerations, written by hand", kernel_time(written))
            keep(name, "accelerations", kernel_time(made))
        if not peers:
            continue
        command = [peers, "-c", ASKED, str(HERE.parent), *([build] if build else [])]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
        asked = json.loads(run.stdout.strip().split("\n")[-1])
        for model, what in (("arm", "aba"), ("stewart", "mj_forward")):
            for way, seconds in asked[what].items():
                if seconds is not None:
                    keep(model, f"{what} ({way})", seconds)
        time.sleep(0.1)
    return best


def main() -> None:
    parser = Options(__doc__, "bodies.csv")
    parser.add_argument("--peers", help="a Python with mujoco and pin")
    parser.add_argument("--build", help="where peers.py keeps the programs in C++")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.given()
    names, rounds = list(by_hand.MECHANISMS)[: 1 if arguments.quick else None], arguments.rounds
    best = measure(names, arguments.peers, arguments.build, 1 if arguments.quick else rounds)
    rows: list[dict] = []

    def add(model: str, quantity: str, value: float, unit: str, limit: float | None = None) -> None:
        row = {"model": model, "quantity": quantity, "value": f"{value:.4g}", "unit": unit}
        row["limit"] = "" if limit is None else f"{limit:g}"
        row["met"] = "" if limit is None else "yes" if value <= limit else "no"
        rows.append(row | long_stamp())

    for (model, quantity), seconds in best.items():
        add(model, quantity, 1e9 * seconds, "ns")
    for name in names:
        ratio = best[name, "accelerations"] / best[name, "accelerations, written by hand"]
        add(name, "bodies and joints / written by hand", ratio, "", 1.3)
    for model, what, limit in (("arm", "aba", 1 / 3), ("stewart", "mj_forward", 1.0)):
        for (name, quantity), seconds in best.items():
            if name == model and quantity.startswith(what) and "trivial" not in quantity:
                add(model, f"accelerations / {quantity}", best[model, "accelerations"] / seconds, "", limit)
    if not arguments.quick:
        for section, seconds in first_result(3).items():
            add("stewart", section, seconds, "s", 2.0 if section == TOTAL else None)
    write_rows(arguments.out, rows)
    for row in rows:
        figures = f"{row['value']:>9} {row['unit']:3}{row['limit']:>9} {row['met']}"
        print(f"{row['model']:22}{row['quantity']:50}{figures}")


if __name__ == "__main__":
    main()
