"""``holonome equilibrium``, ``modes`` and ``response`` on mechanisms, files and results."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import holonome as hn
from holonome import cli

MODEL = """
import holonome as hn
m = hn.Mechanism("door", gravity=(0, -9.81), parameters={"k": 20.0}, inputs={"torque": 0.0})
rod = m.body("rod", 2.0, 1 / 6, center=(0.5, 0), points={"A": (0, 0), "tip": (1, 0)})
m.revolute("A", m.ground.at(0, 0), rod["A"])
m.torque("motor", joint="A", law=lambda u, rate: u.torque - 0.1 * rate)
start = {"A": -0.9}
"""


def call(*arguments, code=0):
    words = [str(argument) for argument in arguments]
    result = CliRunner().invoke(cli.app, words, env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "door.py"
    file.write_text(MODEL, encoding="utf-8")
    return file


def test_equilibrium_of_a_mechanism():
    text = call("equilibrium", "pendulum").stdout
    assert "equilibrium of pendulum: stable" in text


def test_equilibrium_of_a_file_with_a_free_input(model):
    text = call("equilibrium", model, "--start", "A=0.5", "--free", "torque", "--fixed", "A").stdout
    assert "torque = 8.609085" in text
    found = json.loads(call("equilibrium", model, "--json").stdout)
    assert found["stable"] is True
    assert found["q"]["A"] == pytest.approx(-np.pi / 2)


def test_equilibrium_is_followed_and_drawn(model, tmp_path):
    out = tmp_path / "branches.png"
    text = call("equilibrium", model, "--follow", "torque=0,12", "--out", out).stdout
    assert "fold at torque = 9.81" in text
    assert out.stat().st_size > 5000


def test_equilibrium_near_a_saved_result(tmp_path):
    example = hn.mechanisms.pendulum()
    file = tmp_path / "run.npz"
    hn.solve(example, (0, 0.5)).save(file)
    assert "stable" in call("equilibrium", file).stdout
    assert "0.498488" in call("modes", file).stdout


def test_modes_are_listed_and_shown(model, tmp_path):
    assert "0.921086" in call("modes", "double_pendulum").stdout
    out = tmp_path / "mode.html"
    text = call("modes", model, "--out", out).stdout
    assert "rod 100%; joints A" in text
    assert out.stat().st_size > 1e5
    found = json.loads(call("modes", model, "--json").stdout)
    assert found["modes"][0]["shares"] == {"rod": 1.0}


def test_response_is_told_and_drawn(model, tmp_path):
    out = tmp_path / "bode.png"
    text = call("response", model, "--output", "A.angle", "--from", "0.1", "--to", "5", "--out", out).stdout
    assert "A.angle by torque" in text
    assert out.stat().st_size > 5000
    found = json.loads(call("response", model, "--output", "A.angle", "--json").stdout)
    assert found["A.angle by torque"]["real"][0] == pytest.approx(1 / 9.81, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["equilibrium", "pendulum", "--out", "x.txt"], "--out: 'x.txt' ends in '.txt'"),
        (["equilibrium", "pendulum", "--follow", "g"], "--follow: 'g' is not of the form"),
        (["equilibrium", "pendulum", "--follow", "nonsense=0,1"], "name: 'nonsense' is no parameter"),
        (["modes", "pendulum", "--mode", "5", "--out", "x.html"], "--mode: 5; there are 1"),
        (["response", "pendulum"], "inputs: there are none"),
        (["response", "pendulum", "--from", "1"], "--from: give --from and --to"),
        (["modes", "driven_circle", "--speed", "nonsense=1"], "speed: there is no 'nonsense'"),
    ],
)
def test_wrong_arguments_are_one_sentence(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = call(*arguments, code=2)
    assert result.stderr.startswith(f"error: {message}"), result.stderr
    assert len(result.stderr.splitlines()) == 1
