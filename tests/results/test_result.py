"""What a result, a system and the list of mechanisms say when they are printed, and what they ask for when a
package is missing.
"""

import inspect
import sys

import numpy as np
import pytest

import holonome as hn

GRAVITY = np.array([0.0, -9.81])


def rod(**options) -> hn.System:
    return hn.System(np.eye(2), GRAVITY, lambda q: q @ q - 1, names=["x", "y"], name="rod", **options)


def test_a_result_is_one_line_at_the_prompt():
    sol = hn.solve(rod(), (0, 1), [1, 0])
    assert repr(sol) == f"Solution(system='rod', method='dop853', points={sol.t.size}, success=True)"


def test_only_the_constraints_there_are_are_reported():
    skate = hn.System(
        np.ones(3), np.zeros(3), velocity_constraint=lambda q, v: v[0] * np.sin(q[2]) - v[1] * np.cos(q[2])
    )
    assert "hold to |Gv| ≤" in str(hn.solve(skate, (0, 1), [0, 0, 0], [1, 0, 1]))
    assert "hold to |g| ≤" in str(hn.solve(rod(), (0, 1), [1, 0]))
    assert "hold to" not in str(hn.solve(hn.System(1.0, [0.0]), (0, 1), [0], [1]))


def test_events_are_listed_with_their_first_times():
    events = [lambda q: q[0], lambda q: q[0] - 5]
    sol = hn.solve(rod(), (0, 10), [1, 0], events=events)
    times = ", ".join(f"{t:.6g}" for t in sol.t_events[0][:3])
    assert f"events[0]: {len(sol.t_events[0])} found, t = {times}, …" in str(sol)
    assert "events[1]: none found" in str(sol)
    assert "events" not in str(hn.solve(rod(), (0, 10), [1, 0]))


def test_redundant_rows_and_massless_coordinates_are_told_in_plain_words():
    twice = hn.System(np.eye(2), GRAVITY, lambda q: np.array([q @ q - 1, q @ q - 1]))
    assert "constraints of rank 1: redundant rows or a singular position, handled (" in str(
        hn.solve(twice, (0, 1), [1, 0])
    )
    massless = hn.System(
        [1.0, 1.0, 0.0], [*GRAVITY, 0.0], lambda q: np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])])
    )
    assert "handled with pivoting (" in str(hn.solve(massless, (0, 1), [0, -1, 0], [1, 0, 1]))


@pytest.mark.parametrize(
    ("system", "text"),
    [
        (hn.System(1.0, [0.0]), "1 coordinate (q0), no constraints"),
        (rod(), "2 coordinates (x, y), 1 position constraint row\n"),
        (hn.System(np.eye(2), GRAVITY, lambda q: q), "2 position constraint rows\n"),
        (hn.System(np.eye(2), GRAVITY, velocity_constraint=lambda v: v[0]), "1 velocity constraint row\n"),
        (rod(velocity_constraint=lambda v: v[0]), "1 position + 1 velocity constraint rows\n"),
    ],
)
def test_a_system_counts_its_constraints(system, text):
    assert text in str(system)


def test_the_list_of_mechanisms_prints_their_names():
    available = hn.mechanisms.available()
    assert repr(available) == f"<mechanisms: {', '.join(available)}>"
    assert "pendulum" in available


@pytest.mark.parametrize(
    ("package", "use"),
    [
        ("pandas", lambda sol, folder: sol.to_pandas()),
        ("xarray", lambda sol, folder: sol.to_xarray()),
        ("xarray", lambda sol, folder: sol.save(folder / "a.nc")),
    ],
)
def test_a_missing_package_is_asked_for(package, use, monkeypatch, tmp_path):
    sol = hn.solve(rod(), (0, 1), [1, 0])
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install 'holonome\[{package}\]'"):
        use(sol, tmp_path)


def test_a_table_has_the_multipliers():
    sol = hn.solve(rod(), (0, 1), [1, 0])
    table = sol.to_pandas()
    assert table.columns.tolist()[-1] == f"lambda {sol.system.constraint_names[-1]}"
    np.testing.assert_array_equal(table.to_numpy()[:, -1], sol.lam[-1])


def test_the_signature_of_plot_says_what_it_takes():
    assert list(inspect.signature(hn.Solution.plot).parameters) == ["self", "axes", "file", "drawing", "dark"]


def test_a_mechanism_of_ones_own_is_drawn(tmp_path):
    drawing = hn.mechanisms.Drawing(
        lambda q, p: {"pivot": (0.0, 0.0), "bob": (q[0], q[1])}, links=[("pivot", "bob")], ground=["pivot"]
    )
    axes = hn.solve(rod(), (0, 1), [1, 0]).plot(file=tmp_path / "rod.png", drawing=drawing)
    assert axes[0].get_title(loc="left").startswith("Rod")
