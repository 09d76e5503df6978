"""The examples run as scripts, the README's code runs from top to bottom, and its recipes are the examples."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
RECIPES = re.findall(r"\(examples/(\w+\.py)\)\)\n\n```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs_as_a_script(path, tmp_path):
    done = subprocess.run([sys.executable, "-X", "utf8", "-W", "error", path], capture_output=True, text=True, encoding="utf-8", cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "FAILED" not in done.stdout


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch):
    """One block after the other, as in a notebook; a line with {...} stands for a model of the reader's."""
    monkeypatch.chdir(tmp_path)
    namespace = {}
    for block in BLOCKS:
        exec("\n".join(line for line in block.splitlines() if "{...}" not in line), namespace)
    assert {path.name for path in tmp_path.iterdir()} == {"pendulum.png", "pendulum.npz"}


def test_the_recipes_of_the_readme_are_the_examples():
    assert sorted(name for name, _ in RECIPES) == [path.name for path in EXAMPLES]
    for name, code in RECIPES:
        assert code in (ROOT / "examples" / name).read_text(encoding="utf-8"), name


def recipe(name: str) -> dict:
    namespace = {}
    exec("import numpy as np, holonome as hn\n" + dict(RECIPES)[name], namespace)
    return namespace


def test_the_disc_rolls_along_a_spiral():
    """With φ″ = T / (I + m r²) = c and θ = t, x′ = r c t cos t, so x = r c (cos t + t sin t − 1)."""
    found = recipe("rolling_disc.py")
    c, t = 0.3 / (0.2 + 2 * 0.4**2), 10.0
    exact = [0.4 * c * (np.cos(t) + t * np.sin(t) - 1), 0.4 * c * (np.sin(t) - t * np.cos(t)), t, c * t**2 / 2]
    for sol in (found["spiral"], found["same"]):
        np.testing.assert_allclose(sol.q[:, -1], exact, atol=1e-5)


def test_the_massless_angle_is_in_balance():
    sol = recipe("massless_coordinate.py")["sol"]
    angle = sol.q[2]
    np.testing.assert_allclose(5.0 * angle, sol.lam[0] * np.cos(angle) + sol.lam[1] * np.sin(angle), atol=1e-9)


def test_the_rope_stops_what_would_stretch_it():
    found = recipe("rope.py")
    q, before, after = found["q"], found["v"], found["swinging"].v[:, 0]
    np.testing.assert_allclose(after, before - q * (q @ before), atol=1e-9)
    assert np.all(found["swinging"].lam > 0)


def test_a_rod_under_tension_has_a_positive_multiplier():
    found = recipe("constraint_force.py")
    np.testing.assert_allclose(-2 * found["hanging"].q * found["hanging"].lam, np.outer([0, 9.81], np.ones(found["hanging"].t.size)), atol=1e-12)
    np.testing.assert_allclose(found["tension"].lam, 9.81, atol=1e-12)


def test_the_momentum_is_the_area_under_the_table():
    found = recipe("table_force.py")
    for run in (found["gentle"], found["sudden"]):
        push = run.system.parameters["push"]
        assert 2 * run.v[0, -1] == pytest.approx(0.1 * np.sum(push[1:] + push[:-1]) / 2, abs=1e-6)
