"""The examples run as scripts, and what they compute is right."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_as_a_script(path, tmp_path):
    command = [sys.executable, "-X", "utf8", "-W", "error", "-W", "ignore:FigureCanvasAgg", path]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=tmp_path,
        check=False,
        env=os.environ | {"MPLBACKEND": "agg"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "FAILED" not in done.stdout


@pytest.mark.parametrize(("name", "most"), [("four_bar", 10), ("stewart_platform", 20)])
def test_mechanisms_take_few_lines(name, most):
    code = (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8").split('"""')[2].split("# %%")[0]
    lines = [line for line in code.splitlines() if line.strip()]
    assert len(lines) <= most
    namespace: dict = {}
    exec(code, namespace)
    assert namespace["sol"].success
    assert max(namespace["sol"].drift) < 1e-12


def recipe(name: str) -> dict:
    """What an example computes, without its pictures; pages show parts of it."""
    code = (ROOT / "examples" / name).read_text(encoding="utf-8")
    namespace = {}
    exec(re.split(r"^(?:fig, |sol\.plot)", code, maxsplit=1, flags=re.MULTILINE)[0], namespace)
    return namespace


def test_the_disc_rolls_along_a_spiral():
    """With φ″ = T / (I + m r²) = c and θ = t, x′ = r c t cos t, so x = r c (cos t + t sin t − 1)."""
    found = recipe("rolling_disc.py")
    c, t = 0.3 / (0.2 + 2 * 0.4**2), 10.0
    exact = [
        0.4 * c * (np.cos(t) + t * np.sin(t) - 1),
        0.4 * c * (np.sin(t) - t * np.cos(t)),
        t,
        c * t**2 / 2,
    ]
    for sol in (found["spiral"], found["same"]):
        np.testing.assert_allclose(sol.q[:, -1], exact, atol=1e-5)


def test_the_massless_angle_is_in_balance():
    sol = recipe("massless_coordinate.py")["sol"]
    angle = sol.q[2]
    np.testing.assert_allclose(
        5.0 * angle, sol.lam[0] * np.cos(angle) + sol.lam[1] * np.sin(angle), atol=1e-9
    )


def test_the_rope_stops_what_would_stretch_it():
    found = recipe("rope.py")
    sol, i = found["sol"], found["before"]
    q, before, after = sol.q[:, i], sol.v[:, i], sol.v[:, i + 1]
    np.testing.assert_allclose(after, before - q * (q @ before), atol=1e-9)
    taut = sol.contact("rope")
    assert np.all(taut.force[taut.closed] > 0)


def test_a_rod_under_tension_has_a_positive_multiplier():
    found = recipe("constraint_force.py")
    np.testing.assert_allclose(
        -2 * found["hanging"].q * found["hanging"].lam,
        np.outer([0, 9.81], np.ones(found["hanging"].t.size)),
        atol=1e-12,
    )
    np.testing.assert_allclose(found["tension"].lam, 9.81, atol=1e-12)


def test_the_momentum_is_the_area_under_the_table():
    found = recipe("table_force.py")
    for run in (found["gentle"], found["sudden"]):
        push = run.system.parameters["push"]
        assert 2 * run.v[0, -1] == pytest.approx(0.1 * np.sum(push[1:] + push[:-1]) / 2, abs=1e-6)


def test_the_bars_of_the_linkage_keep_their_lengths_and_its_middle_goes_straight():
    found = recipe("watt_linkage.py")
    sol = found["sol"]
    B, C = sol.q[:2], sol.q[2:]
    for length, end, other in ((1.0, B, np.zeros((2, 1))), (0.5, B, C), (1.0, C, np.array([[2.0], [-0.5]]))):
        np.testing.assert_allclose(np.hypot(*(end - other)), length, atol=1e-14)
    assert np.ptp(sol.energy) < 1e-4
    assert np.max(np.abs(found["x"][: found["first"]] - 1)) < 2e-3 < np.max(np.abs(found["x"] - 1))


def test_the_robot_follows_its_circle_the_better_the_stiffer_it_is_controlled():
    found = recipe("five_bar_robot.py")
    robot, start = found["robot"], found["start"]
    off = []
    for k in (20.0, 200.0):
        sol = found["hn"].solve(
            robot, (0, 2), start.q, t_eval=np.linspace(1, 2, 101), parameters={"k": k, "d": k / 20}
        )
        off.append(np.max(np.hypot(*(sol.q[2:] - found["target"](sol.t)))))
    assert off[1] < off[0] / 5


def test_the_deflection_of_the_rod_is_inversely_proportional_to_its_stiffness():
    found = recipe("flexible_slider_crank.py")
    runs, deflection = found["runs"], found["deflection"]
    size = [E * np.max(np.abs(deflection(run))) for E, run in runs.items()]
    np.testing.assert_allclose(size, size[0], rtol=0.03)
    steps = [run.steps for run in runs.values()]
    assert max(steps) < 1.2 * min(steps)


@pytest.mark.slow
def test_the_driven_cavity_is_that_of_ghia():
    """Re = 100 within 0.004 and Re = 400 within 0.035 of the values on 129 × 129 points; on 32 × 32 cells the
    error is that of the grid.
    """
    found = recipe("driven_cavity.py")
    for Re, close in ((100, 0.004), (400, 0.035)):
        u = found["steady"][Re][0]
        line = np.concatenate([[0.0], u[found["N"] // 2], [1.0]])
        spline = CubicSpline(np.concatenate([[0.0], found["middle"], [1.0]]), line)
        assert np.max(np.abs(spline(found["HEIGHTS"]) - found["GHIA"][Re])) < close
    assert np.max(np.abs(found["divergence"](found["sol"].x[:, -1]))) < 1e-4
