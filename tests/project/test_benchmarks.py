"""The logic of the benchmark against peers: reading times off at an error, goals, and a page from a small
file, without any peer.  And every script at its smallest size, since what nobody runs breaks.
"""

import csv
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SUNDIALS = Path(os.environ.get("SUNDIALS_DIR") or "/usr") / "include" / "sundials" / "sundials_config.h"


@pytest.fixture(scope="module")
def report():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import harness.report as module

        yield module
    finally:
        sys.path.remove(str(BENCHMARKS))


def curve(report, order: float = 5.0):
    """A method of this order: error = (time / 1 ms)^-order."""
    times = np.geomspace(100.0, 1e5, 13)
    return report.Curve((times / 1e3) ** -order, times, 0.9 * times, 1.1 * times)


def test_time_at_an_error_follows_the_power_law(report):
    time, low, high = curve(report).at(1e-5)
    assert [time, low, high] == pytest.approx([1e4, 0.9e4, 1.1e4], rel=1e-9)


def test_an_error_that_no_run_reached_has_no_time(report):
    found = curve(report)
    assert found.at(np.min(found.errors) / 2) is None
    assert report.Curve(*np.zeros((4, 0))).at(1e-3) is None


def test_a_single_good_run_counts_as_it_is(report):
    alone = report.Curve(np.array([1e-9]), np.array([50.0]), np.array([40.0]), np.array([60.0]))
    assert alone.at(1e-4) == (50.0, 40.0, 60.0)


def rows(peer: str, code: str, factor: float, problem: str = "pendulum"):
    for tolerance in (1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        time = factor * tolerance**-0.2
        yield {
            "kind": "run",
            "problem": problem,
            "peer": peer,
            "code": code,
            "level": tolerance,
            "error": tolerance,
            "median_us": time,
            "low_us": time / 2,
            "high_us": 2 * time,
            "steps": 10,
            "evaluations": 60,
            "kernel_ns": 20,
        }


@pytest.fixture
def source(report, tmp_path):
    columns = [
        "kind",
        "problem",
        "peer",
        "code",
        "runs",
        "message",
        "version",
        "date",
        "machine",
        "python",
        *report.NUMBERS,
    ]
    found = [
        *rows("holonome", "auto", 1.0),
        *rows("sundials", "CVODE BDF, projected", 50.0),
        *rows("diffrax", "Tsit5", 2.0),
        {
            "kind": "run",
            "problem": "pendulum",
            "peer": "sundials",
            "code": "IDA GGL",
            "level": 0.001,
            "error": "nan",
            "median_us": 5,
            "message": "the corrector failed",
        },
        {"kind": "refused", "problem": "pendulum", "peer": "mujoco", "message": "no such joint"},
        {"kind": "version", "peer": "holonome", "version": "1"},
    ]
    file = tmp_path / "peers.csv"
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, restval="")
        writer.writeheader()
        writer.writerows(found)
    return file


def test_goals_compare_ratios_with_their_spread(report, source):
    verdicts = {verdict.what: verdict for verdict in report.goals(report.Results.load(source))}
    projected = verdicts["pendulum: CVODE with projection, error 1e-04"]
    assert (projected.ratio, projected.low, projected.high) == pytest.approx((0.02, 0.005, 0.08))
    assert projected.met == "yes"
    assert verdicts["pendulum: diffrax Tsit5, which drifts, error 1e-06"].met == "**no**"
    assert verdicts["andrews: CVODE with projection, error 1e-04"].met == "not measured"


def test_page_shows_what_failed_and_what_cannot_be_stated(report, source, tmp_path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    report.write(source, tmp_path / "docs" / "benchmarks.md", readme)
    text = (tmp_path / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert "sundials: IDA GGL: the corrector failed" in text
    assert "mujoco: no such joint" in text
    quoted = readme.read_text(encoding="utf-8")
    assert quoted.startswith("before")
    assert quoted.endswith("after\n")
    assert "old" not in quoted
    assert "| default, against CVODE's BDF with projection | 0.02 / 0.02 |" in quoted
    assert (tmp_path / "docs" / "images" / "peers_mechanisms.png").stat().st_size > 10_000


def test_levels_that_keep_failing_end_a_code():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from harness.measure import _hopeless
    finally:
        sys.path.remove(str(BENCHMARKS))
    assert _hopeless([{"error": np.nan}] * 4)
    assert not _hopeless([{"error": np.nan}] * 3 + [{"error": 1e-3}])


# Every script, at its smallest size

QUICK = {
    "bodies/first_result.py": ["--rounds", "1"],
    "bodies/speed.py": ["--quick", "--out", "OUT"],
    "chain.py": ["--quick", "--out", "OUT"],
    "dense.py": ["--quick"],
    "digits.py": ["record", "OUT", "--only", "pendulum / auto / points"],
    "ensembles.py": ["--quick", "--out", "OUT"],
    "ensembles_peers.py": ["--quick", "--out", "OUT"],
    "ensembles_store.py": ["--quick", "--out", "OUT"],
    "ensembles_gpu.py": ["prepare", "--quick", "FOLDER"],
    "first_use.py": ["--quick", "--out", "OUT"],
    "fixed_steps.py": ["--quick", "--out", "OUT"],
    "foundation.py": ["--quick", "--out", "OUT"],
    "heavy_top.py": ["--quick", "--out", "OUT"],
    "methods.py": ["--quick", "--out", "OUT"],
    "peers.py": [
        *("run", "--quick", "--no-first", "--problem", "pendulum", "--out", "OUT"),
        *("--peer", "holonome", "--peer", "sundials", "--peer", "scipy"),
    ],
    "projection.py": ["--quick", "--out", "OUT"],
    "smooth_motion.py": ["--quick", "--out", "OUT"],
    "stepping.py": ["--quick", "--out", "OUT"],
    "stiff.py": ["--quick", "--out", "OUT"],
    "tables.py": ["--check"],
    "taylor.py": ["--quick", "--out", "OUT"],
    "test_set.py": ["--quick", "--out", "OUT"],
    "time_split.py": ["--quick", "--out", "OUT"],
    "trusted.py": ["--quick", "--out", "OUT"],
}
ONLY_HELP = {"bodies/peers.py": "a Python with Pinocchio, MuJoCo, Exudyn and Drake"}
"""Scripts that need other programs, and which."""

IN_C = {"chain.py", "peers.py"}
"""Those that compile a driver of SUNDIALS."""


def scripts() -> list[str]:
    """The programs among the files of benchmarks/."""
    files = [*BENCHMARKS.glob("*.py"), *(BENCHMARKS / "bodies").glob("*.py")]
    programs = [file for file in files if '__name__ == "__main__"' in file.read_text(encoding="utf-8")]
    return sorted(file.relative_to(BENCHMARKS).as_posix() for file in programs)


@pytest.fixture
def copied(tmp_path):
    """A copy of the scripts beside what they read, so that a run leaves nothing behind."""
    left_out = shutil.ignore_patterns(".peers", "__pycache__")
    shutil.copytree(BENCHMARKS, tmp_path / "benchmarks", ignore=left_out)
    for name in ("tests", "docs", "README.md"):
        (tmp_path / name).symlink_to(BENCHMARKS.parent / name)
    return tmp_path


def run(copied: Path, script: str, arguments: list[str]) -> str:
    places = {"OUT": str(copied / "out.csv"), "FOLDER": str(copied / "folder")}
    command = [sys.executable, f"benchmarks/{script}", *(places.get(word, word) for word in arguments)]
    done = subprocess.run(command, cwd=copied, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def own_python(copied: Path) -> None:
    """An environment of the peers that is this one: those that are missing here are left out by the run."""
    python = copied / "benchmarks" / ".peers" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)


def test_every_script_is_tried():
    assert scripts() == sorted([*QUICK, *ONLY_HELP])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="scripts and peers run on Linux and macOS")
@pytest.mark.parametrize("script", QUICK)
def test_script_runs_at_its_smallest_size(script, copied):
    if script in IN_C and not (shutil.which("gcc") and SUNDIALS.exists()):
        pytest.skip("needs gcc and SUNDIALS: install libsundials-dev")
    if script == "peers.py":
        own_python(copied)
    run(copied, script, QUICK[script])
    if "OUT" in QUICK[script]:
        assert (copied / "out.csv").stat().st_size > 100
    if script == "peers.py":
        found = (copied / "out.csv").read_text(encoding="utf-8")
        assert all(
            name in found for name in ("holonome,auto", "sundials,IDA GGL", "scipy,solve_ivp DOP853")
        ), found
        run(copied, script, ["report", "--results", "OUT", "--page", str(copied / "page" / "page.md")])
    if script == "digits.py":
        assert "2 identical" in run(copied, script, ["compare", *QUICK[script][1:]])


@pytest.mark.slow
@pytest.mark.parametrize("script", ONLY_HELP)
def test_script_that_needs_others_can_be_read(script, copied):
    assert "usage" in run(copied, script, ["--help"]), f"needs {ONLY_HELP[script]}"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pendulum", "andrews", "wheelset", "bushing_pendulum"])
def test_forms_for_peers_hold_at_the_start(report, name):
    """F(t, Y, Y′) = 0 and 𝓜 Y′ = F(t, Y), with states, unknowns, and mass matrices that depend on q."""
    from harness import export, implicit, problems

    problem = problems.get(name)
    model, numbers = problem.system.model, problem.system.parameters.flat
    y, dy, lam, u = export._start(problem)
    for form in implicit.FORMS:
        extra = np.zeros(model.position_rows if form == "ggl" else 0)
        Y, dY = np.concatenate([y, u, lam, extra]), np.concatenate([dy, 0 * u, 0 * lam, extra])
        residual, matrix = implicit.residual_and_matrix(model, numbers, form)
        scale = 1 + np.max(np.abs(dY))
        assert np.max(np.abs(np.array(residual(0, Y, dY)))) < 1e-9 * scale
        assert matrix.size_out(0) == (Y.size, Y.size)
        assert sum(implicit.indices(model, form, 0)) == Y.size
        given = y, dy[model.n : 2 * model.n], lam, u
        described, (right, jacobian, mass) = implicit.with_mass_matrix(model, numbers, form, *given)
        size, skipped = len(described["Y0"]), described["second_order"]
        M = np.array(mass()["o0"])
        M = np.diag(M.ravel()) if described["diagonal"] else M
        rates = np.concatenate([dy, np.zeros(size - dy.size)])[skipped:]
        assert np.max(np.abs(M @ rates - np.array(right(0, described["Y0"])).ravel())) < 1e-9 * scale
        assert jacobian.size_out(0) == (size - skipped, size)
        assert sum(described["index"]) == size
