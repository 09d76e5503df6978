"""Pictures: every function draws into given or new axes, shows what the solution says, and needs no display."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import holonome as hn
from holonome import plot


def simulated(name: str, **options) -> tuple[hn.mechanisms.Mechanism, hn.Solution]:
    mechanism = hn.mechanisms.get(name)
    t_span = options.pop("t_span", (0.0, min(mechanism.t_span[1], 1.0)))
    return mechanism, hn.solve(mechanism.system, t_span, mechanism.q0, mechanism.v0, **options)


def png_size(path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(head[16:20]), int.from_bytes(head[20:24])


def drawn(axes: Axes) -> Axes:
    """Draw for real, so that warnings about fonts, limits and layouts come up."""
    axes.get_figure(root=True).canvas.draw()
    return axes


@pytest.mark.parametrize("name", list(hn.mechanisms.available()))
def test_every_mechanism_gets_its_picture(name, tmp_path):
    mechanism, solution = simulated(name)
    axes = solution.plot(file=tmp_path / "picture.png", drawing=mechanism.drawing)
    width, height = png_size(tmp_path / "picture.png")
    assert len(axes) == 3
    assert width > 1000 < 3 * height
    assert all(panel.get_title(loc="left") and panel.get_xlabel() and panel.get_ylabel() for panel in axes)


def test_without_a_drawing_positions_and_velocities_are_shown():
    _, solution = simulated("pendulum")
    positions, velocities, _ = plot.plot_solution(solution)
    assert positions.get_ylabel() == "positions"
    assert velocities.get_ylabel() == "velocities"
    assert velocities.lines[0].get_ydata()[-1] == pytest.approx(solution.v[0, -1])


def test_given_axes_are_used(tmp_path):
    figure = Figure()
    given = list(figure.subplots(1, 3))
    _, solution = simulated("pendulum")
    assert list(solution.plot(axes=given, file=tmp_path / "given.svg")) == given
    assert (tmp_path / "given.svg").read_text(encoding="utf-8").startswith("<?xml")
    with pytest.raises(ValueError, match="three panels"):
        solution.plot(axes=given[:2])


@pytest.mark.parametrize("function", [plot.plot_positions, plot.plot_velocities, plot.plot_drift, plot.plot_energy, plot.plot_steps])
def test_single_panels_return_their_axes(function):
    _, solution = simulated("andrews", t_span=(0.0, 0.03))
    axes = function(solution)
    assert isinstance(drawn(axes), Axes)
    assert function(solution, axes) is axes


def test_curves_pass_through_the_solution():
    _, solution = simulated("double_pendulum")
    for line, values in zip(plot.plot_positions(solution).lines, solution.q, strict=True):
        t, x = line.get_data()
        np.testing.assert_allclose(x[np.isin(t, solution.t)], values, rtol=0, atol=1e-12)
        assert t.size > solution.t.size


def test_a_mechanism_is_drawn_on_its_bars():
    mechanism, solution = simulated("four_bar")
    axes = drawn(plot.plot_motion(solution, mechanism.drawing, instants=5))
    bars = [np.hypot(*np.diff(line.get_xydata(), axis=0)[0]) for line in axes.lines if len(line.get_xydata()) == 2]
    p = mechanism.system.parameters
    assert len(bars) >= 5 * 3
    assert all(np.min(np.abs(length - np.array([p["a"], p["b"], p["c"]]))) < 1e-3 for length in bars)


def test_many_coordinates_are_reduced_to_few_and_named_ones_are_shown():
    _, solution = simulated("chain", t_span=(0.0, 0.2))
    assert len(drawn(plot.plot_positions(solution)).lines) < 10
    axes = plot.plot_positions(solution, coordinates=["phi1", "x10"])
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [r"$\varphi_{1}$", "$x_{10}$"]
    with pytest.raises(ValueError, match="'phi11' is not one of"):
        plot.plot_positions(solution, coordinates=["phi11"])


def test_drift_is_drawn_where_it_is_zero():
    _, solution = simulated("two_link_arm")
    axes = drawn(plot.plot_drift(solution))
    assert axes.get_yscale() == "log"
    assert all(np.min(line.get_ydata()) >= plot.SMALLEST for line in axes.lines)


def test_rejected_steps_are_counted_by_cause():
    _, solution = simulated("pendulum", first_step=1.0)
    assert solution.rejections > 0
    labels = [text.get_text() for text in drawn(plot.plot_steps(solution)).get_legend().get_texts()]
    assert labels[0] == f"accepted ({solution.steps})"
    assert sum(int(label.rpartition("(")[2][:-1]) for label in labels[1:]) == solution.rejections


def test_what_is_not_known_cannot_be_drawn():
    _, solution = simulated("two_link_arm", t_eval=[0.0, 0.5, 1.0])
    with pytest.raises(ValueError, match="keep_steps=True"):
        plot.plot_steps(solution)
    with pytest.raises(ValueError, match="potential"):
        plot.plot_energy(solution)


def test_short_backward_and_free_runs_are_drawn_too(tmp_path):
    free = hn.System(mass=np.ones(2), force=np.zeros(2), names=["a b", "cost_$"])
    for options in ({"t_eval": [1.0]}, {"t_eval": []}, {}):
        hn.solve(free, (0, 1), [0, 0], [1, 2], **options).plot(file=tmp_path / "free.png")
    mechanism, solution = simulated("pendulum", t_span=(1.0, 0.0))
    solution.plot(file=tmp_path / "backward.png", drawing=mechanism.drawing)
    mechanism, solution = simulated("pendulum", t_eval=[0.5])
    solution.plot(file=tmp_path / "point.png", drawing=mechanism.drawing)
    mechanism, solution = simulated("pendulum", t_eval=[])
    solution.plot(file=tmp_path / "nothing.png", drawing=mechanism.drawing)


@pytest.mark.parametrize(("name", "shown"), [("beta", r"$\beta$"), ("phi1", r"$\varphi_{1}$"), ("phi_a", r"$\varphi_{a}$"), ("x", "$x$"),
                                             ("x12", "$x_{12}$"), ("speed", "speed"), ("a b", "a b"), ("$", r"\$")])
def test_names_become_symbols(name, shown):
    assert plot.symbol(name) == shown


def test_neither_import_nor_picture_needs_pyplot(tmp_path):
    program = f"""
import sys, holonome as hn
assert "matplotlib" not in sys.modules
pendulum = hn.mechanisms.pendulum()
hn.solve(pendulum.system, (0, 1), pendulum.q0).plot(file={str(tmp_path / "alone.png")!r}, drawing=pendulum.drawing)
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert png_size(tmp_path / "alone.png")
