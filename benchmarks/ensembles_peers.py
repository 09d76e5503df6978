"""Ensembles against heyoka's batch mode, diffrax's vmap, SciPy's solve_ivp and MuJoCo's rollout: members a
second of one core, at an error of 1e-6.

    python benchmarks/ensembles_peers.py --peers PYTHON [--members N] [--out FILE] [--quick]

PYTHON is one that has heyoka, diffrax, SciPy with Numba, and MuJoCo; those that it lacks are left out.
Members differ in one parameter by a percent.  The equations are ours on all sides: the straight-line program
of our accelerations, with the multipliers eliminated, as expressions of heyoka, operations of JAX, or Python
that Numba compiles.  MuJoCo has bodies of its own: hinges, and a soft connection that closes the four-bar; a
slider without mass it cannot state, and for Andrews' mechanism no model was written.  Only ours holds the
constraints.

Each code is tried from loose to tight tolerances (MuJoCo: numbers of steps), until the largest error of eight
members over positions and velocities, |y − y_ref| / (1 + |y_ref|), is below 1e-6; the reference is solve at
1e-13.  Compilation is not counted, the faster of two runs is.  solve_ivp runs in one process of a pool; more
of them share more cores, as those of all others would.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import casadi as ca
import numpy as np

import holonome as hn
from harness.options import Options, stamp
from harness.tables import write_rows
from holonome.dynamics.kernels import kernels
from holonome.equations.program import Program

PROBLEMS = {
    "pendulum": ("gravity", 10.0, 1.0),
    "slider_crank": ("gravity", 10.0, 0.25),
    "four_bar": ("gravity", 10.0, 0.1),
    "andrews": ("mom", 0.03, 0.25),
}
"""What varies, the final time, and the part of the members that is computed."""

PEERS = ("heyoka", "scipy", "mujoco", "diffrax")
TOLERANCES = [10.0 ** (-k / 2) for k in range(10, 27)]
WANTED, CHECKED = 1e-6, 8


class Problem:
    """A mechanism, values of its parameter, and exact ends of a few members."""

    def __init__(self, name: str, members: int) -> None:
        self.name, (self.parameter, self.end, part) = name, PROBLEMS[name]
        self.made: Any = getattr(hn.mechanisms, name)()
        self.system: Any = self.made.system
        count = max(CHECKED, int(part * members))
        self.values = self.system.parameters[self.parameter] * np.linspace(1.0, 1.01, count)
        self.checked = np.linspace(0, count - 1, CHECKED).astype(int)
        self.exact = np.array([self._reference(float(value)) for value in self.values[self.checked]])

    def _reference(self, value: float) -> np.ndarray:
        sol = hn.solve(
            self.system,
            (0, self.end),
            self.made.q0,
            self.made.v0,
            parameters={self.parameter: value},
            method="dop853",
            rtol=1e-13,
            atol=1e-14,
        )
        return np.concatenate([sol.q[:, -1], sol.v[:, -1]])

    def error(self, ends: np.ndarray) -> float:
        """The largest one, of the members that are checked."""
        error = np.abs(ends - self.exact) / (1 + np.abs(self.exact))
        return float(np.max(np.where(np.isfinite(error), error, np.inf)))

    def task(self) -> dict[str, Any]:
        """What the peers are told."""
        model = self.system.model
        y, z, out, _ = kernels(self.system).motion
        function = ca.Function("f", [model.t, y, z, model.p], [out], {"cse": True})
        parameters = self.system.parameters
        return {
            "name": self.name,
            "program": Program.of(function).as_dict(),
            "p": parameters.flat.tolist(),
            "numbers": {
                name: float(parameters[name]) for name in parameters if np.ndim(parameters[name]) == 0
            },
            "place": parameters.place(self.parameter).start,
            "values": self.values.tolist(),
            "checked": self.checked.tolist(),
            "y0": np.concatenate([self.made.q0, self.made.v0]).tolist(),
            "end": self.end,
        }


class Peer:
    """A process that computes all members at a tolerance, as often as it is asked."""

    def __init__(self, python: str, name: str, problem: Problem) -> None:
        script = Path(__file__).parent / "adapters" / "ensembles" / f"{name}.py"
        self.process = subprocess.Popen(
            [python, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ask(problem.task())

    def ask(self, what: Any) -> Any:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(what) + "\n")
        stdin.flush()
        return json.loads(stdout.readline() or "null")

    def __call__(self, tolerance: float) -> tuple[float, np.ndarray] | None:
        answer = self.ask(tolerance)
        return None if answer is None else (answer["seconds"], np.array(answer["ends"], float))

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


class Ours:
    """The same with an ensemble."""

    def __init__(self, problem: Problem, method: str) -> None:
        self.problem, self.method = problem, method

    def __call__(self, tolerance: float) -> tuple[float, np.ndarray]:
        problem = self.problem
        e = hn.ensemble(
            problem.system,
            (0, problem.end),
            problem.made.q0,
            problem.made.v0,
            over={problem.parameter: problem.values},
            threads=1,
            method=self.method,
            rtol=tolerance,
        )
        e.run() if tolerance == TOLERANCES[0] else None
        begin = time.perf_counter()
        ds = e.run()
        took = time.perf_counter() - begin
        return took, np.concatenate([ds.q.values, ds.v.values], axis=1)[problem.checked]

    def close(self) -> None:
        """Nothing is open."""


def cheapest(code: Any, problem: Problem) -> tuple[float, float, float] | None:
    """Seconds, error and tolerance of the first run with an error that is wanted."""
    for tolerance in TOLERANCES:
        found = code(tolerance)
        if found is None:
            return None
        seconds, ends = found
        error = problem.error(ends)
        if error <= WANTED:
            return min(seconds, code(tolerance)[0]), error, tolerance
        if seconds > 600:
            return None
    return None


def main() -> None:
    parser = Options(__doc__, "ensembles_peers.csv")
    parser.add_argument("--peers", help="a Python with the peers")
    parser.add_argument("--members", type=int, default=4000)
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    options = parser.given()
    if options.quick:
        options.members, options.problem = 16, ["pendulum"]
    rows = []
    for name in options.problem or PROBLEMS:
        problem = Problem(name, options.members)
        codes: dict[str, Any] = {"holonome": lambda p=problem: Ours(p, "auto")}
        if options.peers:
            codes |= {peer: lambda p=problem, n=peer: Peer(options.peers, n, p) for peer in PEERS}
        for code, make in codes.items():
            made = make()
            try:
                found = cheapest(made, problem)
            finally:
                made.close()
            row = {"problem": name, "code": code, "members": problem.values.size}
            if found is not None:
                row |= {
                    "members/s": f"{problem.values.size / found[0]:.4g}",
                    "error": f"{found[1]:.1e}",
                    "level": f"{found[2]:.1e}",
                }
            rows.append({"members/s": "", "error": "", "level": ""} | row | stamp())
            print(*rows[-1].values(), sep="\t", flush=True)
            write_rows(options.out, [{key: row[key] for key in rows[0]} for row in rows])


if __name__ == "__main__":
    main()
