"""Ensembles on a graphics card: throughput, errors and drift of the loop in PTX.

Where holonome is installed:        python benchmarks/ensembles_gpu.py prepare FOLDER [--quick]
Where the card is:    PYTHONPATH=src python benchmarks/ensembles_gpu.py run FOLDER [--members N] [--out FILE]

The second needs NumPy and the driver alone, neither CasADi nor Numba nor a toolkit, and takes a minute or
two.  `prepare` writes the PTX of every model and method, and what the runs need: 10 s of the pendulum and of
the slider-crank, one parameter different in each member, rtol = atol.  Each line that `run` prints is JSON:
the tolerance, trajectories a second on the card alone, seconds to load the PTX and to copy results, the error
of the first member, |y − y_ref| / (1 + |y_ref|), against a run at a tolerance of 1e-13, and the largest
distance of the pendulums from their circle.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ARCHITECTURE = "sm_80"
END = 10.0
MODELS = ("pendulum", "slider_crank")
METHODS = {"dop853": (1e-6, 1e-7, 3e-8), "dopri5": (1e-7, 1e-8, 3e-9)}
BLOCKS = (32, 64, 128, 256)


def prepare(folder: Path, models: tuple[str, ...]) -> None:
    import holonome as hn
    from holonome.ensembles.lane import LAST
    from holonome.machine.ptx import ptx

    folder.mkdir(parents=True, exist_ok=True)
    about: dict[str, Any] = {}
    for name in models:
        made = getattr(hn.mechanisms, name)()
        system = made.system
        exact = hn.solve(system, (0, END), made.q0, made.v0, rtol=1e-13, t_eval=[END])
        about[name] = {
            "first": LAST,
            "y0": system.full_state(made.q0, made.v0).tolist(),
            "p": system.parameters.flat.tolist(),
            "exact": [*exact.q[:, -1].tolist(), *exact.v[:, -1].tolist()],
        }
        for method in METHODS:
            study = hn.ensemble(made, (0, END), over={"gravity": [9.81]}, method=method).study
            begin = time.perf_counter()
            source = ptx(study.plan().assembly(1, card=True), ARCHITECTURE)
            about[name][f"{method}_seconds"] = time.perf_counter() - begin
            (folder / f"{name}_{method}.ptx").write_text(source)
    (folder / "about.json").write_text(json.dumps(about))


def job(known: dict[str, Any], members: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs of the members: the last parameter grows by two percent."""
    base = np.concatenate([[0.0, END], known["y0"], known["p"]])
    total = base.size
    varied = base[-1] * np.linspace(1.0, 1.02, members)
    begin, stride = np.arange(total, dtype=np.int64), np.zeros(total, dtype=np.int64)
    begin[-1], stride[-1] = total, 1
    return np.concatenate([base, varied]), begin, stride


def driver_alone() -> None:
    """Let holonome.machine.cuda be imported without what the rest of its room needs."""
    import types

    import holonome

    room = types.ModuleType("holonome.machine")
    room.__path__ = [str(Path(str(holonome.__file__)).parent / "machine")]
    sys.modules["holonome.machine"] = room


def measure(program: Any, known: dict[str, Any], rtol: float, block: int, members: int) -> dict[str, Any]:
    from holonome.machine.cuda import CardArray, card

    size, first, found = len(known["y0"]), known["first"], card()
    inputs = [CardArray.of(array) for array in job(known, members)]
    settings = CardArray.of(np.array([rtol, np.inf, 0.0, 1e5] + [rtol] * size))
    none, last = CardArray(8), np.empty((members, first + size))
    out = CardArray(last.nbytes)
    resident, best = program.resident(block), np.inf
    for _ in range(2):
        counter = CardArray.of(np.zeros(1, np.int64))
        found.wait()
        begin = time.perf_counter()
        blocks = min(resident * found.processors, -(-members // block))
        program.launch(blocks, block, *inputs, members, counter, settings, none, 0, none, out)
        found.wait()
        best = min(best, time.perf_counter() - begin)
    begin = time.perf_counter()
    out.read(last)
    copied = time.perf_counter() - begin
    radius = np.hypot(last[:, first], last[:, first + 1])
    return {
        "rtol": rtol,
        "block": block,
        "resident": resident,
        "members": members,
        "seconds": best,
        "a_second": members / best,
        "copied_in": copied,
        "done": int(np.sum(last[:, 0] == 1)),
        "steps": float(np.mean(last[:, 2])),
        "most_steps": float(np.max(last[:, 2])),
        "error": float(np.max(np.abs(last[0, first:] - known["exact"]) / (1 + np.abs(known["exact"])))),
        "off_the_circle": float(np.max(np.abs(radius**2 - 1))) if size == 4 else None,
    }


def run(folder: Path, members: int, out: Path | None) -> None:
    driver_alone()
    from holonome.machine.cuda import CardProgram, card

    about, rows = json.loads((folder / "about.json").read_text()), []
    for name in filter(about.__contains__, MODELS):
        for method, tolerances in METHODS.items():
            begin = time.perf_counter()
            program = CardProgram((folder / f"{name}_{method}.ptx").read_text(), "march")
            loaded = time.perf_counter() - begin
            head = {"card": card().name, "model": name, "method": method, "loaded_in": loaded}
            head["ptx_in"] = about[name][f"{method}_seconds"]
            for rtol in tolerances:
                for block in BLOCKS if rtol == tolerances[1] else BLOCKS[1:2]:
                    count = members if name == "pendulum" else members // 4
                    rows.append(head | measure(program, about[name], rtol, block, count))
                    print(json.dumps(rows[-1]), flush=True)
    if out is not None:
        out.write_text(json.dumps(rows, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=("prepare", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--members", type=int, default=1 << 22)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true", help="prepare one model, to see that it works")
    options = parser.parse_args()
    if options.what == "prepare":
        prepare(options.folder, MODELS[:1] if options.quick else MODELS)
    else:
        run(options.folder, options.members, options.out)


if __name__ == "__main__":
    sys.exit(main())
