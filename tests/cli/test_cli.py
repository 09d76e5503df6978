"""The command line: what it prints and writes, its exit codes, and that errors are one sentence on stderr."""

import csv
import json
import re
import signal
import subprocess
import sys
import time
import timeit
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import holonome as hn
from holonome import cli
from holonome.cli import completion, doctor, printing, simulation
from holonome.machine import announcements
from holonome.solving import first_use as warmup

NAMES = list(hn.mechanisms.available())


def call(*arguments, code: int = 0):
    result = CliRunner().invoke(
        cli.app,
        [str(argument) for argument in arguments],
        env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"},
    )
    assert result.exit_code == code, result.output + repr(result.exception)
    return result


def test_a_new_command_is_listed_last(monkeypatch):
    monkeypatch.setattr(cli.app, "registered_commands", list(cli.app.registered_commands))

    @cli.app.command()
    def another():
        """A command of somebody else."""

    names = re.findall(r"^│? *([a-z]+) {2,}", call("--help").stdout, re.MULTILINE)
    assert names[-1] == "another"


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
    assert all(
        command in text for command in ("demo", "mechanisms", "methods", "run", "--version", "--traceback")
    )
    assert all(
        option in call("run", "--help").stdout
        for option in ("--method", "--rtol", "--set", "--with", "--out", "--json")
    )


@pytest.mark.parametrize("command", [[], ["run"], ["demo"], ["mechanisms"]])
def test_flags_take_no_value(command):
    text = call(*command, "--help").stdout
    assert "bool" not in text.lower()
    assert re.search(r"--help +-h +Show this message", text)


def test_version():
    assert call("--version").stdout == f"holonome {hn.__version__}\n"


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "holonome", "--version"], capture_output=True, text=True, check=True
    )
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
    result = json.loads(
        call("run", "pendulum", "--step", "0.125", "--until", "1", "--no-projection", "--json").stdout
    )
    assert result["steps"] == 8
    assert result["drift"]["g"] > 1e-8


def test_files_are_written_by_their_ending(tmp_path):
    folder = tmp_path / "new" / "folder"
    files = [tmp_path / name for name in ("a.png", "a.pdf", "a.npz", "sub/a.csv")]
    options = [part for path in [*files, folder] for part in ("--out", path)]
    text = call("run", "pendulum", "--until", "1", *options).stdout
    assert len(re.findall(r"^ +written ", text, re.MULTILINE)) == len(files) + 2
    assert "".join(text.split()).count("(inanewfolder)") == 3, "sub/a.csv and both files of the new folder"
    assert all(
        path.stat().st_size > 100 for path in [*files, folder / "pendulum.png", folder / "pendulum.csv"]
    )
    with (
        np.load(tmp_path / "a.npz") as data,
        (tmp_path / "sub/a.csv").open(encoding="utf-8", newline="") as table,
    ):
        rows = list(csv.reader(table))
        assert rows[0] == ["t", "x", "y", "x'", "y'", "lambda rod"]
        assert [float(row[1]) for row in rows[1:]] == data["q"][0].tolist()


def test_netcdf_is_written(tmp_path):
    pytest.importorskip("xarray", reason="needs xarray: pip install -e '.[test]'")
    call("run", "pendulum", "--until", "1", "--out", tmp_path / "a.nc")
    assert (tmp_path / "a.nc").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "pendlum"], "'pendlum' is not a mechanism; did you mean pendulum"),
        (["run", "zzz"], "there are andrews, bennett_linkage"),
        (["run", "chain", "--with", "lnks=3"], "it takes links, length"),
        (["run", "chain", "--with", "links=0"], "links = 0 must be at least 1"),
        (["run", "chain", "--with", "links='x'"], "chain: "),
        (
            ["run", "pendulum", "--set", "lenght=3"],
            "'lenght' is not a parameter of pendulum; it has m, length",
        ),
        (["run", "pendulum", "--set", "length"], "NAME=VALUE"),
        (["run", "pendulum", "--set", "length=long"], "NAME=VALUE"),
        (["run", "pendulum", "--method", "rk99"], "choose one of auto, dopri5"),
        (["run", "pendulum", "--rtol", "3"], "rtol: 3.0"),
        (["run", "pendulum", "--until", "0"], "has no length"),
        (["run", "pendulum", "--out", "a.txt"], "ends in '.txt'"),
        (["run", "andrews", "--set", "rr=0.0075"], "--repair"),
    ],
)
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
    assert (
        fails("run", "pendulum", code=1)
        == "error: ZeroDivisionError: division by zero (--traceback shows where)"
    )


def test_demo_tells_and_draws(tmp_path):
    text = call("demo", "--out", tmp_path / "demo").stdout
    picture = tmp_path / "demo" / "holonome-demo.png"
    head = picture.read_bytes()[:24]
    assert (int.from_bytes(head[16:20]), int.from_bytes(head[20:24])) == pytest.approx((1600, 700), abs=5)
    assert picture.stat().st_size < 300_000
    assert picture.name in "".join(text.split())
    page = tmp_path / "demo" / "holonome-demo.html"
    assert "".join(text.split()).endswith(page.as_uri())
    assert page.stat().st_size < 6_000_000
    assert "http://" not in page.read_text(encoding="utf-8")[:2000]
    assert all(
        word in text
        for word in ("Andrews", "rejected", "of computing", "|g| ≤", "energy", "published", "without")
    )
    assert re.search(r"crank +turns \d\.\d+ times", text)
    assert re.search(r"joint C +transmits up to", text)
    assert "from bodies and joints" in page.read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 80 + len(str(tmp_path))


def test_demo_refuses_a_file_as_folder(tmp_path):
    (tmp_path / "file").touch()
    assert "is not a folder" in fails("demo", "--out", tmp_path / "file", code=2)


@pytest.fixture
def fresh_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLONOME_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HOLONOME_QUIET", raising=False)
    _as_in_a_new_process(monkeypatch)
    return tmp_path / "cache"


def _as_in_a_new_process(monkeypatch):
    monkeypatch.setattr(warmup, "_asked", False)
    monkeypatch.setattr(announcements, "_said", set())


@pytest.fixture
def engine(fresh_machine, monkeypatch):
    """An engine that is not compiled yet, and the folder in which it would be kept."""
    fresh_machine.mkdir()
    loop = SimpleNamespace(signatures=[], stats=SimpleNamespace(cache_path=str(fresh_machine)))
    monkeypatch.setattr(warmup, "advance", loop)
    return loop


def test_first_use_is_announced_once(engine, fresh_machine, monkeypatch, capsys):
    warmup.announce_first_use()
    assert re.fullmatch(r"holonome: compiling its engine, once on this machine .*\n", capsys.readouterr().err)
    warmup.announce_first_use()
    _as_in_a_new_process(monkeypatch)
    (fresh_machine / "loop.advance_with_holonome_integrators_runge_kutta_steps-1.py311.nbi").touch()
    warmup.announce_first_use()
    assert capsys.readouterr().err == ""


def test_first_use_is_announced_again_after_an_interrupted_compilation(engine, monkeypatch, capsys):
    warmup.announce_first_use()
    _as_in_a_new_process(monkeypatch)
    warmup.announce_first_use()
    assert capsys.readouterr().err.count("compiling") == 2


def test_first_use_can_be_silenced(engine, monkeypatch, capsys):
    monkeypatch.setenv("HOLONOME_QUIET", "1")
    warmup.announce_first_use()
    assert capsys.readouterr().err == ""


def test_first_use_needs_no_writable_cache(engine, capsys):
    engine.stats.cache_path = None
    warmup.announce_first_use()
    assert "compiling its engine, in every process" in capsys.readouterr().err
    assert not warmup.is_compiled()
    engine.signatures.append("once")
    assert warmup.is_compiled()


def test_later_announcements_cost_nothing(engine):
    warmup.announce_first_use()
    assert min(timeit.repeat(warmup.announce_first_use, number=1000, repeat=5)) / 1000 < 1e-6


def test_the_engine_is_compiled_once(engine):
    runs = []

    def simulate():
        runs.append(1)
        engine.signatures.append("once")

    assert warmup.ensure_compiled(simulate)
    assert not warmup.ensure_compiled(simulate)
    assert runs == [1]


def test_long_work_shows_that_it_is_alive(capsys):
    with printing.alive("working", patience=0.0):
        subprocess.run([sys.executable, "-c", ""], check=True)
    assert capsys.readouterr().err.startswith("working")
    with printing.alive("working", patience=60.0):
        pass
    assert capsys.readouterr().err == ""


MODEL = """
import numpy as np, holonome as hn

rod = hn.System(np.eye(2), lambda p: np.array([0.0, -p.g]), lambda q: q @ q - 1, parameters={"g": 9.81},
                potential=lambda q, p: p.g * q[1], names=["x", "y"])
"""


@pytest.fixture
def model(tmp_path):
    """A function that writes a model file and returns its path."""

    def write(text: str, name: str = "my_model.py"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return tmp_path / name

    return write


def test_a_model_of_ones_own_runs_like_a_mechanism(model, tmp_path):
    file = model(MODEL + "q0, v0, t_span = [1, 0], [0, 0.5], (0, 2)")
    mine = json.loads(call("run", file, "--json", "--rtol", "1e-9").stdout)
    pendulum = hn.mechanisms.get("pendulum")
    expected = hn.solve(
        pendulum.system,
        (0, 2),
        [1, 0],
        [0, 0.5],
        rtol=1e-9,
        parameters={"g": 9.81} if "g" in pendulum.system.parameters else None,
    )
    assert mine["mechanism"] == "my_model"
    assert list(mine["final"]["q"].values()) == pytest.approx(expected.q[:, -1].tolist(), abs=1e-7)
    moon = json.loads(call("run", file, "--json", "--set", "g=1.62", "--until", "1").stdout)
    assert (moon["parameters"]["g"], moon["final"]["t"]) == (1.62, 1.0)


@pytest.mark.parametrize(
    "start",
    [
        "start = {'q0': [1, 0], 't_span': (0, 1)}",
        "q0 = [1, 0]\nt_span = [0, 1]",
        "q0, v0, t_span = (1, 0), None, (0, 1)",
        "start, t_span = hn.consistent(rod, [1, 0]), (0, 1)",
    ],
)
def test_a_start_is_told_by_names_or_in_a_dict(model, start):
    assert json.loads(call("run", model(MODEL + start), "--json").stdout)["success"]


def test_mechanisms_states_and_odes_of_ones_own(model):
    mechanism = (
        MODEL
        + "mine = hn.mechanisms.Example('mine', 'My rod', rod, (0, 1), np.array([1.0, 0.0]), np.zeros(2))"
    )
    assert "My rod" in call("run", model(mechanism)).stdout
    ode = (
        "import holonome as hn\n"
        "decay = hn.ODE(lambda x, p: -p.k * x, names=['x'], parameters={'k': 2.0})\n"
        "x0, t_span = [1.0], (0, 1)"
    )
    assert json.loads(call("run", model(ode), "--json").stdout)["final"]["s"]["x"] == pytest.approx(
        np.exp(-2), rel=1e-5
    )
    heated = (
        "import numpy as np, holonome as hn\n"
        "body = hn.System([1.0], [1.0], states={'s': 0.0}, rate=lambda v: v)\n"
        "start = {'q0': [0], 's0': [3.0], 't_span': (0, 2)}"
    )
    assert json.loads(call("run", model(heated), "--json").stdout)["final"]["s"]["s"] == pytest.approx(5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "defines neither an hn.Mechanism nor an hn.System"),
        ("import numpy as np\n\nx = np.fooo", "my_model.py, line 3: AttributeError"),
        ("def f(:", "my_model.py, line 1: invalid syntax"),
        ("raise SystemExit(3)", "my_model.py, line 1: SystemExit: 3"),
        (MODEL, "defines a system but no start; add q0"),
        (MODEL + "q0 = [1, 0]", "has no t_span; add t_span = (0, 10), or give --until"),
        (MODEL + "q0, t_span = [1, 0], 10", "t_span = 10; give (initial time, final time)"),
        (MODEL + "start = [1, 0]", "start is a list; give a dict"),
        (MODEL + "start = {'q0': [1, 0], 'p0': 1}", "start has the key 'p0'; it may have q0, v0, t_span"),
        (MODEL + "q0, t_span = [2, 0], (0, 1)", "q0 violates the constraints"),
        (
            MODEL + "q0, t_span, other = [1, 0], (0, 1), hn.System([1.0], [0.0])",
            "defines several systems, rod, other; choose one with --name",
        ),
        (MODEL.replace("np.eye(2)", "np.eye(3)"), "my_model.py, line 4: "),
        (
            "import holonome as hn\nimport numpy as np\nx = hn.Index2System(f=lambda t, x: -x, B=lambda x: "
            "np.ones(1), g=lambda t, x: x, n=1)",
            "is a Index2System; run it in Python",
        ),
    ],
)
def test_what_is_wrong_with_a_model_is_one_sentence(model, text, message):
    assert message in fails("run", model(text), code=2)


def test_one_of_several_systems_is_chosen_by_name(model):
    file = model(MODEL + "q0, t_span, other = [1, 0], (0, 1), rod.with_parameters(g=1.0)")
    assert json.loads(call("run", file, "--name", "other", "--json").stdout)["parameters"]["g"] == 1.0
    assert "defines no system 'third'; there is rod, other" in fails("run", file, "--name", "third", code=2)
    assert "--name: chooses among the systems of a Python file" in fails(
        "run", "pendulum", "--name", "x", code=2
    )
    assert "--with: is for built-in mechanisms" in fails("run", file, "--with", "x=1", code=2)
    assert "there is no such file" in fails("run", "missing.py", code=2)


def test_a_new_model_runs_and_is_not_overwritten(tmp_path):
    file = tmp_path / "crane.py"
    assert "crane.py" in "".join(call("new", file).stdout.split())
    result = json.loads(call("run", file, "--json", "--out", tmp_path / "crane.png").stdout)
    assert result["success"]
    assert (result["coordinates"], result["constraints"]) == (3, 2)
    other = json.loads(
        call("run", file, "--json", "--start", "A=1", "--speed", "A=-3", "--until", "1").stdout
    )
    assert other["final"]["t"] == 1.0
    assert other["final"]["q"] != result["final"]["q"]
    subprocess.run([sys.executable, file.name], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "crane.html").exists()
    assert "is there already" in fails("new", file, code=2)
    assert "does not end in .py" in fails("new", tmp_path / "crane.txt", code=2)


LINKAGE = """
import holonome as hn

m = hn.Mechanism("four-bar", parameters={"g": 9.81, "length": 0.9})
crank = m.body("crank", 0.4, 0.006, points={"A": (0, 0), "B": (0.4, 0)}, center=(0.2, 0))
coupler = m.body("coupler", 0.9, 0.06, points={"B": (0, 0), "C": (m.p.length, 0)}, center=(0.45, 0))
rocker = m.body("rocker", 0.7, 0.03, points={"C": (0.7, 0), "D": (0, 0)}, center=(0.35, 0))
m.revolute("A", m.ground.at(0, 0), crank["A"])
m.revolute("B", crank["B"], coupler["B"])
m.revolute("C", coupler["C"], rocker["C"])
m.revolute("D", m.ground.at(1, 0), rocker["D"])
"""


def test_a_mechanism_of_bodies_runs_from_its_file(model, tmp_path):
    file = model(LINKAGE + "start, speed, t_span = {'A': 0.3}, {'A': 2.0}, (0, 1)")
    saved = tmp_path / "run.npz"
    mine = json.loads(call("run", file, "--json", "--out", saved, "--set", "length=0.95").stdout)
    space: dict = {}
    exec(LINKAGE, space)
    expected = hn.solve(space["m"], (0, 1), start={"A": 0.3}, speed={"A": 2.0}, parameters={"length": 0.95})
    assert list(mine["final"]["q"].values()) == expected.q[:, -1].tolist()
    assert (mine["mechanism"], mine["parameters"]["length"]) == ("four-bar", 0.95)
    assert "constraints" in call("run", saved).stdout
    table = json.loads(call("compare", file, "--rtol", "1e-5", "--method", "bdf", "--json").stdout)
    assert table["rows"][0]["success"]


def test_the_start_of_a_mechanism_is_changed_by_name(model):
    file = model(LINKAGE)
    far, close = (
        json.loads(
            call("run", file, "--json", "--until", "1e-9", "--start", "A=0.3", "--start", f"D={D}").stdout
        )
        for D in ("near(-2)", "near(2)")
    )
    angles = [
        run["final"]["q"]["D"] if "D" in run["final"]["q"] else run["final"]["q"]["B"] for run in (far, close)
    ]
    assert abs(angles[0] - angles[1]) > 0.5
    twice = model(LINKAGE + "n = m.system\nstart, t_span = {'A': 0.3}, (0, 1)", "twice.py")
    assert json.loads(call("run", twice, "--json").stdout)["success"]


@pytest.mark.parametrize(
    ("further", "options", "message"),
    [
        ("", [], "has no t_span"),
        ("t_span = (0, 1)", ["--start", "Q=1"], "start: there is no joint or body 'Q'; there are A, B, C, D"),
        ("t_span = (0, 1)", ["--speed", "A=x"], "--speed: 'A=x' is not of the form NAME=VALUE"),
        ("t_span = (0, 1)", ["--set", "k=1"], "'k' is not a parameter of four-bar; it has g, length"),
        ("t_span, start = (0, 1), [0.3]", [], "start is a list; give a dict of joints and bodies by name"),
        ("t_span = (0, 1)", ["--set", "length=9"], "cannot be assembled"),
    ],
)
def test_what_is_wrong_with_a_mechanism_is_one_sentence(model, further, options, message):
    assert message in fails("run", model(LINKAGE + further), *options, code=2)


def test_only_a_mechanism_starts_by_name(model):
    file = model(MODEL + "q0, t_span = [1, 0], (0, 1)")
    for subject in ("pendulum", file):
        assert "no joints and bodies by name" in fails("run", subject, "--start", "A=1", code=2)


def test_saved_results_are_shown_and_drawn(tmp_path):
    saved = tmp_path / "swing.npz"
    first = call("run", "pendulum", "--until", "1", "--out", saved).stdout
    again = call("run", saved, "--out", tmp_path / "swing.png").stdout
    for heading in ("steps", "constraints", "energy"):
        assert (
            re.search(rf"^ +{heading} .*$", first, re.MULTILINE)[0].split()
            == re.search(rf"^ +{heading} .*$", again, re.MULTILINE)[0].split()
        )
    assert "speed" not in again
    assert (tmp_path / "swing.png").stat().st_size > 10_000
    assert json.loads(call("run", saved, "--json").stdout)["seconds"] is None
    (tmp_path / "other.npz").write_text("nothing")
    assert "not a file of NumPy arrays" in fails("run", tmp_path / "other.npz", code=2)
    assert "is a saved result; run its model again" in fails("run", saved, "--until", "3", code=2)
    assert "compare needs its model" in fails("compare", saved, code=2)


def test_options_mirror_solve():
    solution = json.loads(
        call("run", "pendulum", "--until", "1", "--points", "11", "--max-step", "0.01", "--json").stdout
    )
    assert solution["points"] == 11
    assert solution["steps"] >= 100
    low, high = (
        json.loads(
            call("run", "pendulum", "--until", "2", "--method", "bdf", "--max-order", order, "--json").stdout
        )["steps"]
        for order in (1, 5)
    )
    assert low > 3 * high
    assert "stopped at" in fails("run", "pendulum", "--max-steps", "5", code=1)
    assert "use a method with BDF" in fails("run", "pendulum", "--max-order", "2", code=2)
    assert "damped out" in call("run", "stiff_spring", "--motion", "smooth", "--until", "0.001").stdout


def test_methods_are_compared(tmp_path):
    options = ["--method", "dop853", "--method", "index1", "--rtol", "1e-4", "--rtol", "1e-7", "--until", "2"]
    text = call("compare", "pendulum", *options, "--out", tmp_path / "found").stdout
    assert max(map(len, text.splitlines())) <= 80 + len(str(tmp_path))
    assert (tmp_path / "found" / "pendulum-comparison.png").stat().st_size > 10_000
    with (tmp_path / "found" / "pendulum-comparison.csv").open(encoding="utf-8", newline="") as table:
        assert [row["method"] for row in csv.DictReader(table)] == ["dop853", "dop853", "index1", "index1"]
    found = json.loads(call("compare", "pendulum", *options, "--json").stdout)
    assert found["rows"][0]["error"] > found["rows"][1]["error"]
    assert "none of the methods" in call("compare", "pendulum", *options, "--max-steps", "3", code=1).stderr
    assert "--cost: 'euros'" in fails("compare", "pendulum", "--cost", "euros", code=2)


@pytest.mark.parametrize(
    "command",
    [
        ["mechanisms"],
        ["methods"],
        ["reproduce"],
        ["run", "four_bar", "--until", "0.1"],
        ["run", "--help"],
        ["compare", "--help"],
        ["doctor", "--help"],
        ["compare", "pendulum", "--until", "0.5", "--method", "dopri5", "--rtol", "1e-3"],
    ],
)
@pytest.mark.parametrize("columns", [80, 60])
def test_everything_fits_the_terminal(command, columns):
    environment = {"COLUMNS": str(columns), "NO_COLOR": "1", "TERM": "dumb", "TERMINAL_WIDTH": str(columns)}
    result = CliRunner().invoke(cli.app, command, env=environment)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= columns


def test_models_and_saved_results_are_animated(model, tmp_path):
    file = model(MODEL + "q0, t_span = [1, 0], (0, 1)")
    text = call("animate", file, "--out", tmp_path / "rod.html").stdout
    assert "".join(text.split()).endswith((tmp_path / "rod.html").as_uri())
    call("run", file, "--out", tmp_path / "rod.npz", "--out", tmp_path / "same.html")
    call("animate", tmp_path / "rod.npz", "--out", tmp_path / "saved.html")
    call("animate", "pendulum", "--until", "1", "--without-projection", "--out", tmp_path)
    for name in ("rod", "same", "saved", "pendulum"):
        assert (
            (tmp_path / f"{name}.html")
            .read_text(encoding="utf-8")
            .lstrip()
            .lower()
            .startswith("<!doctype html>")
        )
    assert "without projection" in (tmp_path / "pendulum.html").read_text(encoding="utf-8")
    assert "use .html, .gif, .mp4" in fails("animate", "pendulum", "--out", tmp_path / "a.avi", code=2)
    assert "run its model again" in fails("animate", tmp_path / "rod.npz", "--without-projection", code=2)


def test_lists_for_machines():
    assert [entry["name"] for entry in json.loads(call("mechanisms", "--json").stdout)] == NAMES
    assert [entry["name"] for entry in json.loads(call("methods", "--json").stdout)] == list(hn.methods())


def test_exit_codes_and_the_form_of_a_model_are_documented():
    assert re.search(r"0\s+done.*1.*2\s+wrong\s+usage.*130\s+interrupted", call("--help").stdout, re.DOTALL)
    for command in ("run", "compare", "animate"):
        text = call(command, "--help").stdout
        assert 'start, t_span = {"A": -0.1}, (0, 10)' in text
        assert "an hn.System with" in " ".join(text.split())
        example = "\n".join(
            line.strip()
            for line in text.splitlines()
            if re.match(r" +(import|m = |rod = |m.revolute|start, t_span)", line)
        )
        namespace: dict = {}
        exec(example, namespace)
        assert hn.solve(namespace["m"], namespace["t_span"], start=namespace["start"]).success


def test_ctrl_c_is_code_130(model):
    endless = model(MODEL + "q0, t_span = [1, 0], (0, 1e9)")
    for command in ("run", "compare"):
        program = (
            "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from holonome.cli import main; main()"
        )
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                program,
                command,
                str(endless),
                "--max-steps",
                "1000000000",
                *(["--points", "2"] if command == "run" else ["--method", "dopri5"]),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        time.sleep(4.0)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 130, errors
        assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("run pend", "pendulum"),
        ("animate four", "four_bar"),
        ("run pendulum --method gg", "ggl"),
        ("reproduce yen", "yen-petzold"),
        ("reproduce yen-petzold table-5.2 table-5.3", "table-5.3"),
        ("comp", "compare"),
    ],
)
def test_the_shell_completes(words, offered):
    environment = {
        "_HOLONOME_COMPLETE": "complete_bash",
        "COMP_WORDS": f"holonome {words}",
        "COMP_CWORD": str(len(words.split())),
    }
    result = CliRunner().invoke(cli.app, [], env=environment, prog_name="holonome")
    assert offered in result.stdout.split()


def test_files_are_completed_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("pen.py", "pen.npz", "pen.txt"):
        (tmp_path / name).touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "model.py").touch()
    assert completion.subjects("pen") == ["pendulum", "pen.npz", "pen.py"]
    assert completion.subjects("sub") == ["sub/"]
    assert completion.subjects("sub/") == ["sub/model.py"]
    assert completion.mechanism_names() == NAMES


def test_help_loads_neither_numpy_nor_numba():
    program = (
        "import sys; from holonome.cli import app; loaded = "
        "{'numpy', 'numba', 'casadi', 'scipy', 'matplotlib'} & set(sys.modules); assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_doctor_finds_all_well_and_clears(fresh_machine):
    text = call("doctor").stdout
    assert "✗" not in text
    assert all(name in text for name in ("numba", "cache of models", "Andrews, BDF", "self-test"))
    assert list((fresh_machine / "models").rglob("*.o"))
    found = {check["name"]: check for check in json.loads(call("doctor", "--json").stdout)}
    assert float(found["exact pendulum"]["found"].split()[1].rstrip(",")) < 1e-8


def test_the_doctor_says_what_is_wrong_and_the_remedy(fresh_machine, monkeypatch):
    monkeypatch.setattr(doctor, "_writable", lambda folder: folder != fresh_machine)
    monkeypatch.setattr(doctor, "_pendulum", lambda: (False, "error 1.0"))
    result = call("doctor", code=1)
    assert "set HOLONOME_CACHE to a folder that can be written" in " ".join(result.stdout.split())
    assert result.stderr.endswith("error: something is wrong with: cache of models, exact pendulum\n")


def test_caches_are_cleared(tmp_path):
    (tmp_path / "models" / "ab").mkdir(parents=True)
    (tmp_path / "models" / "ab" / "x.o").write_bytes(b"12345")
    (tmp_path / "mine.txt").write_text("keep")
    assert doctor._delete([tmp_path], ("models/*/*.o",)) == 5
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["mine.txt"]


def test_public_functions_hide_the_modules_they_live_in():
    program = (
        "from holonome.coupling.subsolvers import Mesh; import holonome.comparison; import holonome as hn; "
        "assert callable(hn.solve) and callable(hn.compare); "
        "assert set(hn.__all__) <= set(dir(hn)) and all(getattr(hn, name) for name in hn.__all__); from "
        "holonome import *; assert solve is hn.solve"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = hn.nothing
