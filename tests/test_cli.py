"""The command line: what it prints and writes, its exit codes, and that errors are one sentence on stderr."""

import csv
import json
import re
import subprocess
import sys
import timeit

import numpy as np
import pytest
from typer.testing import CliRunner

import holonome as hn
from holonome import cli, warmup
from holonome.cli import printing, simulation

NAMES = list(hn.mechanisms.available())


def call(*arguments, code: int = 0):
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments], env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"})
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def fails(*arguments, code: int) -> str:
    """The one sentence on stderr of a command that fails."""
    result = call(*arguments, code=code)
    lines = result.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    assert "Traceback" not in result.output
    return lines[0]


def test_help_lists_the_commands():
    text = call("--help").stdout
    assert all(command in text for command in ("demo", "mechanisms", "methods", "run", "--version", "--traceback"))
    assert all(option in call("run", "--help").stdout for option in ("--method", "--rtol", "--set", "--with", "--out", "--json"))


@pytest.mark.parametrize("command", [[], ["run"], ["demo"], ["mechanisms"]])
def test_flags_take_no_value(command):
    text = call(*command, "--help").stdout
    assert "bool" not in text.lower()
    assert re.search(r"--help +-h +Show this message", text)


def test_version():
    assert call("--version").stdout == f"holonome {hn.__version__}\n"


def test_the_module_runs_as_a_program():
    done = subprocess.run([sys.executable, "-m", "holonome", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"holonome {hn.__version__}\n"


def test_mechanisms_fit_eighty_columns():
    text = call("mechanisms").stdout
    assert max(map(len, text.splitlines())) <= 80
    for name in NAMES:
        mechanism = hn.mechanisms.get(name)
        assert re.search(rf"^ *{name} .* {mechanism.system.n} +{mechanism.system.m} ", text, re.MULTILINE)


def test_methods_are_all_listed():
    text = call("methods").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert all(re.search(rf"^ *{name} ", text, re.MULTILINE) for name in ["auto", *hn.methods()])


@pytest.mark.parametrize("name", NAMES)
def test_every_mechanism_runs(name):
    mechanism = hn.mechanisms.get(name)
    result = call("run", name, "--until", min(mechanism.t_span[1], 1.0))
    assert re.search(r"constraints +hold to \|g\| ≤ \d", result.stdout) or not mechanism.system.m
    assert result.stderr == ""


def test_json_says_what_the_solution_says():
    result = json.loads(call("run", "andrews", "--json", "--method", "dop853", "--rtol", "1e-9").stdout)
    assert result["success"]
    assert result["method"] == "dop853"
    assert result["drift"]["g"] < 1e-14
    assert result["error"]["relative"] < 1e-6
    assert list(result["final"]["q"]) == hn.mechanisms.andrews().system.names
    assert result["final"]["t"] == 0.03


def test_parameters_are_changed_and_the_start_follows():
    result = json.loads(call("run", "pendulum", "--set", "length=2", "--until", "1", "--json").stdout)
    q = result["final"]["q"]
    assert np.hypot(q["x"], q["y"]) == pytest.approx(2, abs=1e-14)
    assert result["error"]["against"] == "the exact solution"


def test_a_changed_system_is_not_compared_with_its_old_solution():
    result = json.loads(call("run", "andrews", "--set", "m3=0.03", "--json").stdout)
    assert result["parameters"]["m3"] == 0.03
    assert result["error"] is None


def test_mechanisms_are_built_with_arguments():
    result = json.loads(call("run", "chain", "--with", "links=3", "--until", "0.1", "--json").stdout)
    assert (result["coordinates"], result["constraints"]) == (9, 6)


def test_steps_are_constant_and_projection_can_be_left_out():
    result = json.loads(call("run", "pendulum", "--step", "0.125", "--until", "1", "--no-projection", "--json").stdout)
    assert result["steps"] == 8
    assert result["drift"]["g"] > 1e-8


def test_files_are_written_by_their_ending(tmp_path):
    folder = tmp_path / "new" / "folder"
    files = [tmp_path / name for name in ("a.png", "a.pdf", "a.npz", "sub/a.csv")]
    options = [part for path in [*files, folder] for part in ("--out", path)]
    text = call("run", "pendulum", "--until", "1", *options).stdout
    assert len(re.findall(r"^ +written ", text, re.MULTILINE)) == len(files) + 2
    assert "".join(text.split()).count("(inanewfolder)") == 3, "sub/a.csv and both files of the new folder"
    assert all(path.stat().st_size > 100 for path in [*files, folder / "pendulum.png", folder / "pendulum.csv"])
    with np.load(tmp_path / "a.npz") as data, (tmp_path / "sub/a.csv").open(encoding="utf-8", newline="") as table:
        rows = list(csv.reader(table))
        assert rows[0] == ["t", "x", "y", "x'", "y'", "lambda rod"]
        assert [float(row[1]) for row in rows[1:]] == data["q"][0].tolist()


def test_netcdf_is_written(tmp_path):
    pytest.importorskip("xarray")
    call("run", "pendulum", "--until", "1", "--out", tmp_path / "a.nc")
    assert (tmp_path / "a.nc").stat().st_size > 1000


@pytest.mark.parametrize(("arguments", "message"), [
    (["run", "pendlum"], "'pendlum' is not a mechanism; did you mean pendulum"),
    (["run", "zzz"], "there are andrews, chain"),
    (["run", "chain", "--with", "lnks=3"], "it takes links, length"),
    (["run", "chain", "--with", "links=0"], "links = 0 must be at least 1"),
    (["run", "chain", "--with", "links='x'"], "chain: "),
    (["run", "pendulum", "--set", "lenght=3"], "'lenght' is not a parameter of pendulum; it has m, length"),
    (["run", "pendulum", "--set", "length"], "NAME=VALUE"),
    (["run", "pendulum", "--set", "length=long"], "NAME=VALUE"),
    (["run", "pendulum", "--method", "rk99"], "choose one of auto, dopri5"),
    (["run", "pendulum", "--rtol", "3"], "rtol: 3.0"),
    (["run", "pendulum", "--until", "0"], "has no length"),
    (["run", "pendulum", "--out", "a.txt"], "ends in '.txt'"),
    (["run", "andrews", "--set", "rr=0.0075"], "--repair"),
])
def test_wrong_arguments_are_one_sentence_and_code_2(arguments, message):
    assert message in fails(*arguments, code=2)


def test_inconsistent_starts_are_repaired_on_request():
    assert "moved onto the constraints" in call("run", "andrews", "--set", "rr=0.0075", "--repair").stdout


def test_unknown_options_and_missing_arguments_are_code_2():
    assert "No such option" in call("run", "pendulum", "--rtoll", "3", code=2).stderr
    assert "Missing argument" in call("run", code=2).stderr


def test_a_run_that_fails_is_code_1(tmp_path):
    message = fails("run", "pendulum", "--step", "0.9", "--out", tmp_path / "far.png", code=1)
    assert "stopped at t = " in message
    assert (tmp_path / "far.png").exists()
    result = call("run", "pendulum", "--step", "0.9", "--json", code=1)
    assert not json.loads(result.stdout)["success"]


def test_a_file_that_cannot_be_written_is_code_1(tmp_path):
    (tmp_path / "file").touch()
    fails("run", "pendulum", "--out", tmp_path / "file" / "a.png", code=1)


def test_traceback_on_request():
    result = CliRunner().invoke(cli.app, ["--traceback", "run", "pendlum"])
    assert isinstance(result.exception, ValueError)


def test_internal_errors_say_how_to_see_more(monkeypatch):
    monkeypatch.setattr(simulation, "simulate", lambda *arguments, **options: 1 / 0)
    assert fails("run", "pendulum", code=1) == "error: ZeroDivisionError: division by zero (--traceback shows where)"


def test_demo_tells_and_draws(tmp_path):
    text = call("demo", "--out", tmp_path / "demo").stdout
    picture = tmp_path / "demo" / "holonome-demo.png"
    head = picture.read_bytes()[:24]
    assert (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) == pytest.approx((1600, 700), abs=5)
    assert picture.stat().st_size < 300_000
    assert picture.name in "".join(text.split())
    assert all(word in text for word in ("Andrews", "rejected", "of computing", "|g| ≤", "energy", "published", "without"))
    assert max(map(len, text.splitlines())) <= 80 + len(str(tmp_path))


def test_demo_refuses_a_file_as_folder(tmp_path):
    (tmp_path / "file").touch()
    assert "is not a folder" in fails("demo", "--out", tmp_path / "file", code=2)


@pytest.fixture
def fresh_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLONOME_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HOLONOME_QUIET", raising=False)
    monkeypatch.setattr(warmup, "_asked", False)
    return tmp_path / "cache"


def test_first_use_is_announced_once(fresh_machine, monkeypatch, capsys):
    warmup.announce_first_use()
    assert re.fullmatch(r"holonome: compiling its engine, once on this machine .*\n", capsys.readouterr().err)
    assert list((fresh_machine / "compiled").iterdir())
    warmup.announce_first_use()
    monkeypatch.setattr(warmup, "_asked", False)
    monkeypatch.setattr(warmup, "_engine_is_cached", lambda: True)
    warmup.announce_first_use()
    assert capsys.readouterr().err == ""


def test_first_use_is_announced_again_after_an_interrupted_compilation(fresh_machine, monkeypatch, capsys):
    warmup.announce_first_use()
    monkeypatch.setattr(warmup, "_asked", False)
    monkeypatch.setattr(warmup, "_engine_is_cached", lambda: False)
    warmup.announce_first_use()
    assert capsys.readouterr().err.count("compiling") == 2


def test_first_use_can_be_silenced(fresh_machine, monkeypatch, capsys):
    monkeypatch.setenv("HOLONOME_QUIET", "1")
    warmup.announce_first_use()
    assert capsys.readouterr().err == ""


def test_first_use_needs_no_writable_cache(fresh_machine, capsys):
    fresh_machine.touch()
    warmup.announce_first_use()
    assert "compiling" in capsys.readouterr().err
    assert not warmup.is_compiled()


def test_later_announcements_cost_nothing(fresh_machine):
    warmup.announce_first_use()
    assert min(timeit.repeat(warmup.announce_first_use, number=1000, repeat=5)) / 1000 < 1e-6


def test_the_engine_is_compiled_once(fresh_machine, monkeypatch):
    runs = []
    monkeypatch.setattr(warmup, "_engine_is_cached", lambda: True)
    assert warmup.ensure_compiled(lambda: runs.append(1))
    assert not warmup.ensure_compiled(lambda: runs.append(2))
    assert runs == [1]


def test_long_work_shows_that_it_is_alive(capsys):
    with printing.alive("working", patience=0.0):
        subprocess.run([sys.executable, "-c", ""], check=True)
    assert capsys.readouterr().err.startswith("working")
    with printing.alive("working", patience=60.0):
        pass
    assert capsys.readouterr().err == ""
