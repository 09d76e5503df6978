"""hn.compare: errors against exact solutions, costs, drift, failures as rows, and the forms in which it is
told.
"""

import csv
import io
import math
import sys

import numpy as np
import pytest
from rich.console import Console

import holonome as hn


@pytest.fixture(scope="module")
def pendulum() -> hn.mechanisms.Example:
    return hn.mechanisms.get("pendulum")


@pytest.fixture(scope="module")
def found(pendulum) -> hn.Comparison:
    return hn.compare(
        pendulum.system,
        (0, 3),
        pendulum.q0,
        pendulum.v0,
        methods=["dopri5", "bdf", "index1"],
        rtols=[1e-4, 1e-6, 1e-8],
    )


def test_errors_are_those_against_the_exact_solution(pendulum, found):
    exact = hn.compare(
        pendulum.system,
        (0, 3),
        pendulum.q0,
        pendulum.v0,
        methods=["dopri5", "bdf", "index1"],
        rtols=[1e-4, 1e-6, 1e-8],
        reference=pendulum.exact,
    )
    assert exact.reference_error == 0
    assert found.reference_error < 1e-10
    for mine, known in zip(found.rows, exact.rows, strict=True):
        assert mine.error == pytest.approx(known.error, rel=1e-3, abs=1e-11)
        assert mine.velocity_error == pytest.approx(known.velocity_error, rel=1e-3, abs=1e-11)


def test_errors_fall_with_the_tolerance_and_cost_evaluations(found):
    for method in found.methods:
        rows = found.of(method)
        assert [row.rtol for row in rows] == [1e-4, 1e-6, 1e-8]
        assert rows[0].error > rows[1].error > rows[2].error > 0
        assert rows[0].evaluations < rows[1].evaluations < rows[2].evaluations
        assert all(
            0 < row.seconds < 1 and row.success and row.message == "the end was reached" for row in rows
        )


def test_only_the_method_without_projection_drifts(found):
    assert all(
        row.drift < 1e-14 and row.velocity_drift < 1e-13 for row in found.of("dopri5") + found.of("bdf")
    )
    assert all(row.drift > 1e-9 for row in found.of("index1"))
    assert all(row.energy > 0 for row in found.rows)


def test_a_run_that_fails_is_a_row_with_its_message(pendulum):
    found = hn.compare(
        pendulum.system,
        (0, 3),
        pendulum.q0,
        methods=["dop853", "index2"],
        rtols=[1e-8],
        reference=pendulum.exact,
        max_steps=100,
    )
    good, bad = found.rows
    assert good.success
    assert not bad.success
    assert "max_steps" in bad.message
    assert math.isnan(bad.error)
    assert "failed [1]" in str(found)
    assert bad.message[:40] in str(found).replace("\n", " ")


def test_a_method_that_refuses_the_problem_is_a_row_too():
    crossing = hn.System(np.eye(2), [0.0, -1.0], lambda q: q[0] * q[1], names=["x", "y"])
    found = hn.compare(
        crossing,
        (0, 0.1),
        [0, 0],
        methods=["dop853", "cs"],
        rtols=[1e-6],
        reference=lambda t: np.array([0 * t, -(t**2) / 2]),
    )
    assert not found.of("cs")[0].success
    assert "singular" in found.of("cs")[0].message


def test_methods_may_be_objects_and_have_labels(pendulum):
    tuned = hn.Method(hn.GGL(), hn.BDF(max_order=2))
    found = hn.compare(
        pendulum.system,
        (0, 1),
        pendulum.q0,
        methods={"GGL, order 2": tuned, "heun": "heun"},
        rtols=1e-5,
        reference=pendulum.exact,
    )
    assert found.methods == ["GGL, order 2", "heun"]
    assert hn.compare(
        pendulum.system, (0, 1), pendulum.q0, methods=[tuned], rtols=[1e-5], reference=pendulum.exact
    ).methods == ["GGL + BDF"]
    with pytest.raises(ValueError, match="not compared; there are GGL, order 2, heun"):
        found.of("bdf")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["rk99"]}, "choose one of auto, dopri5"),
        ({"methods": ["bdf", "bdf"]}, "'bdf' appears more than once"),
        ({"t_eval": [1.0]}, "t_eval: compare chooses it itself"),
        ({"rtols": [3.0]}, r"rtols: \[3.0\]"),
        ({"reference": 7}, "reference: 7"),
    ],
)
def test_wrong_arguments_are_named(pendulum, options, message):
    with pytest.raises(ValueError, match=message):
        hn.compare(pendulum.system, (0, 1), pendulum.q0, **options)


def test_a_wrong_start_raises(pendulum):
    with pytest.raises(hn.InconsistentStart):
        hn.compare(pendulum.system, (0, 1), [2.0, 0.0])


def test_ordinary_differential_equations_and_time_that_runs_backward():
    circle = hn.ODE(lambda x: np.array([-x[1], x[0]]), n=2)
    found = hn.compare(
        circle,
        (0, -5),
        [1, 0],
        methods=["dop853", "bdf"],
        rtols=[1e-6, 1e-9],
        reference=lambda t: np.array([np.cos(t), np.sin(t)]),
    )
    assert all(
        row.success and 1e-13 < row.error < 1e-3 and math.isnan(row.drift) and math.isnan(row.energy)
        for row in found.rows
    )
    assert "|g|" not in str(found)


@pytest.mark.parametrize("width", [80, 60, 40])
def test_the_table_fits(found, width):
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(found)
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    assert (
        sum(line.strip()[:6].rstrip() in ("dopri5", "bdf", "index1") or "e-0" in line for line in lines) >= 9
    )
    assert "…" not in console.export_text()


def test_rows_are_saved_and_become_a_frame(found, tmp_path):
    with found.save(tmp_path / "found.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["error"]) for row in rows] == [row.error for row in found.rows]
    assert found.to_dict()["rows"][0]["method"] == "dopri5"
    with pytest.raises(ValueError, match=r"use \.csv"):
        found.save(tmp_path / "found.txt")
    pytest.importorskip("pandas", reason="needs pandas: pip install -e '.[test]'")
    frame = found.to_pandas()
    assert list(frame["evaluations"]) == [row.evaluations for row in found.rows]


def test_ctrl_c_ends_the_comparison(pendulum, monkeypatch):
    module = sys.modules["holonome.comparison"]
    real = module.solve

    def interrupted(*arguments, **options):
        solution = real(*arguments, **options)
        return solution.changed(status=-1, outcome="interrupted at t = 0.5")

    monkeypatch.setattr(module, "solve", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hn.compare(pendulum.system, (0, 1), pendulum.q0, reference=pendulum.exact)


def test_progress_is_told(pendulum):
    told = []
    hn.compare(
        pendulum.system,
        (0, 1),
        pendulum.q0,
        methods=["dopri5"],
        rtols=[1e-3, 1e-4],
        progress=lambda fraction, what: told.append((fraction, what)),
    )
    assert [what for _, what in told] == ["reference", "dopri5, rtol 0.001", "dopri5, rtol 0.0001"]
    assert [fraction for fraction, _ in told] == sorted(fraction for fraction, _ in told)


def test_a_stiff_problem_has_a_reference_and_explicit_methods_give_up():
    vdp = hn.ODE(lambda x: np.array([x[1], 1000 * (1 - x[0] ** 2) * x[1] - x[0]]), n=2)
    found = hn.compare(vdp, (0, 100), [2, 0], methods=["bdf", "dopri5"], rtols=[1e-4, 1e-7], max_steps=5000)
    assert found.reference_error < 1e-8
    assert found.of("bdf")[1].error < found.of("bdf")[0].error < 1e-3
    assert not any(row.success for row in found.of("dopri5"))


def test_a_mechanism_is_compared_from_a_start_by_name():
    m = hn.Mechanism("pendulum", parameters={"length": 1.0})
    rod = m.body("rod", 1.0, 1 / 12, center=(0.5, 0), points={"A": (0, 0)})
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    given = {"start": {"A": -0.1}, "speed": {"A": 1.0}}
    found = hn.compare(m, (0, 1), **given, methods=["dopri5", "bdf"], rtols=[1e-6])
    q0, v0, s0 = m.initial(**given)
    again = hn.compare(m.system, (0, 1), q0, v0, methods=["dopri5", "bdf"], rtols=[1e-6])
    assert [row.error for row in found.rows] == [row.error for row in again.rows]
    assert s0 is None
    assert found.name == "pendulum"
    with pytest.raises(ValueError, match="q0 is given as well"):
        hn.compare(m, (0, 1), [0.0], start={"A": 1.0})
    with pytest.raises(ValueError, match="has no joints and bodies by name"):
        hn.compare(m.system, (0, 1), start={"A": 1.0})
    with pytest.raises(ValueError, match="q0: missing"):
        hn.compare(m.system, (0, 1))
