"""Pictures: all functions draw into given or new axes, show what the solution says, and need no display."""

import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import holonome as hn
from holonome import plot
from holonome.plot.over_time import saddle_point


def simulated(name: str, **options) -> tuple[hn.mechanisms.Example, hn.Solution]:
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
    assert all(panel.get_title(loc="left") and panel.get_xlabel() for panel in axes)
    assert all(panel.get_ylabel() for panel in axes[getattr(mechanism.system, "dimension", 2) == 3 :])


def test_without_a_drawing_positions_and_velocities_are_shown():
    rod = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1, names=["x", "y"])
    solution = hn.solve(rod, (0, 1), [1, 0])
    positions, velocities, _ = plot.plot_solution(solution)
    assert positions.get_ylabel() == "positions"
    assert velocities.get_ylabel() == "velocities"
    assert velocities.lines[0].get_ydata()[-1] == pytest.approx(solution.v[0, -1])


def test_systems_bring_their_drawing():
    mechanism, solution = simulated("pendulum")
    assert solution.system.drawing is mechanism.drawing
    assert plot.plot_solution(solution)[0].get_title(loc="left").startswith("Pendulum, t = 0")
    with pytest.raises(ValueError, match=r"give an hn\.Drawing"):
        plot.plot_motion(hn.solve(hn.System([1.0], [0.0]), (0, 1), [0.0]))


def test_given_axes_are_used(tmp_path):
    figure = Figure()
    given = list(figure.subplots(1, 3))
    _, solution = simulated("pendulum")
    assert list(solution.plot(axes=given, file=tmp_path / "given.svg")) == given
    assert (tmp_path / "given.svg").read_text(encoding="utf-8").startswith("<?xml")
    with pytest.raises(ValueError, match="three panels"):
        solution.plot(axes=given[:2])


@pytest.mark.parametrize(
    "function",
    [plot.plot_positions, plot.plot_velocities, plot.plot_drift, plot.plot_energy, plot.plot_steps],
)
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
    bars = [
        np.hypot(*np.diff(line.get_xydata(), axis=0)[0]) for line in axes.lines if len(line.get_xydata()) == 2
    ]
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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("beta", r"$\beta$"),
        ("phi1", r"$\varphi_{1}$"),
        ("phi_a", r"$\varphi_{a}$"),
        ("x", "$x$"),
        ("x12", "$x_{12}$"),
        ("speed", "speed"),
        ("a b", "a b"),
        ("$", r"\$"),
    ],
)
def test_names_become_symbols(name, shown):
    assert plot.symbol(name) == shown


def test_neither_import_nor_picture_needs_pyplot(tmp_path):
    program = f"""
import sys, holonome as hn
assert "matplotlib" not in sys.modules
pendulum = hn.mechanisms.pendulum()
sol = hn.solve(pendulum.system, (0, 1), pendulum.q0)
sol.plot(file={str(tmp_path / "alone.png")!r}, drawing=pendulum.drawing)
assert "matplotlib.pyplot" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert png_size(tmp_path / "alone.png")


def test_paths_are_those_of_the_points(tmp_path):
    two = hn.System(
        np.ones(4),
        [0.0, -9.81] * 2,
        lambda q: np.array([q[:2] @ q[:2] - 1, (q[2:] - q[:2]) @ (q[2:] - q[:2]) - 1]),
        names=["x1", "y1", "x2", "y2"],
    )
    solution = hn.solve(two, (0, 1), [1, 0, 2, 0])
    by_name = plot.plot_path(solution)
    assert [text.get_text() for text in by_name.get_legend().get_texts()] == [
        "($x_{1}$, $y_{1}$)",
        "($x_{2}$, $y_{2}$)",
    ]
    x, y = by_name.lines[0].get_data()
    np.testing.assert_allclose(np.hypot(x, y), 1, atol=1e-3)
    one = drawn(plot.plot_path(solution, points=[("x2", "y2")]))
    assert one.lines[0].get_xydata()[-1] == pytest.approx(solution.q[2:, -1])
    _, drawn_by_system = simulated("four_bar")
    assert [text.get_text() for text in drawn(plot.plot_path(drawn_by_system)).get_legend().get_texts()] == [
        "B",
        "C",
        "coupler",
    ]
    for points, message in (
        (["nobody"], "'nobody' is not a point of the drawing"),
        ([("x1", "z")], "'z' is not one of x1"),
        ([("x1",)], "two or three"),
    ):
        with pytest.raises(ValueError, match=message):
            plot.plot_path(solution, points=points)


def test_paths_in_space():
    spherical = hn.System(np.eye(3), [0, 0, -9.81], lambda q: q @ q - 1, names=["bob_x", "bob_y", "bob_z"])
    axes = drawn(plot.plot_path(hn.solve(spherical, (0, 1), [0.6, 0, -0.8], [0, 1.5, 0])))
    assert axes.name == "3d"
    np.testing.assert_allclose(np.linalg.norm(np.array(axes.lines[0].get_data_3d()), axis=0), 1, atol=1e-3)
    with pytest.raises(ValueError, match="no coordinates of 'system' are called x and y"):
        plot.plot_path(hn.solve(hn.System(np.ones(2), np.zeros(2), names=["a", "b"]), (0, 1), [0, 0]))


def test_phase_plots_show_the_coordinate_that_swings():
    _, solution = simulated("pendulum", t_span=(0.0, 5.0))
    axes = drawn(plot.plot_phase(solution))
    x, v = axes.lines[0].get_data()
    assert axes.get_xlabel() == "position $x$"
    assert (x[0], v[0]) == (solution.q[0, 0], solution.v[0, 0])
    assert len(plot.plot_phase(solution, coordinates=["x", "y"]).get_legend().get_texts()) == 2
    prey = hn.ODE(
        lambda x: np.array([x[0] * (1 - x[1]), x[1] * (x[0] - 1), 0 * x[0]]),
        names=["prey", "predator", "rest"],
    )
    axes = drawn(plot.plot_phase(hn.solve(prey, (0, 5), [0.5, 0.7, 1]), coordinates=["predator", "rest"]))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("predator", "rest")
    with pytest.raises(ValueError, match="two components"):
        plot.plot_phase(hn.solve(prey, (0, 1), [0.5, 0.7, 1]), coordinates=["prey"])


def test_multipliers_and_joint_forces_balance_inertia():
    mechanism, solution = simulated("four_bar")
    lam = drawn(plot.plot_multipliers(solution, constraints=["A x", "D y"]))
    np.testing.assert_array_equal(
        lam.lines[0].get_ydata(), solution.lam[mechanism.system.constraint_names.index("A x")]
    )
    forces = drawn(plot.plot_joint_forces(solution, coordinates=["yb"]))
    row = mechanism.system.names.index("yb")
    p = mechanism.system.parameters
    assert len(forces.lines) == 2, "one force for each joint of the bar"
    np.testing.assert_allclose(
        sum(line.get_ydata() for line in forces.lines),
        p["density"] * p["b"] * (solution.a[row] + p["gravity"]),
        rtol=1e-8,
        atol=1e-8,
    )


def test_each_joint_has_its_own_force():
    mechanism, solution = simulated("four_bar")
    system = mechanism.system
    alone = drawn(plot.plot_joint_forces(solution, constraints=["A x"]))
    k = system.constraint_names.index("A x")
    pieces = [saddle_point(system, t, y)[1][k] for t, y in zip(solution.t, solution.states, strict=True)]
    expected = -(np.array(pieces) * solution.lam[k][:, None]).T
    np.testing.assert_allclose(
        [line.get_ydata() for line in alone.lines], expected[np.any(expected != 0, axis=1)], atol=1e-12
    )
    with pytest.raises(ValueError, match="constraints: 'E' is not one of"):
        plot.plot_joint_forces(solution, constraints=["E"])


def test_axes_of_a_projected_view_are_not_called_x_and_y():
    _, solution = simulated("wheelset", t_span=(0.0, 0.1))
    axes = drawn(plot.plot_motion(solution))
    assert "seen from azimuth" in axes.get_xlabel()
    assert axes.get_ylabel() == ""
    path = drawn(plot.plot_path(simulated("four_bar")[1], points=[("xb", "phi_b")]))
    assert (path.get_xlabel(), path.get_ylabel()) != ("x", "y")


def test_what_a_system_lacks_cannot_be_drawn():
    free = hn.solve(hn.System(np.ones(2), np.zeros(2)), (0, 1), [0, 0], [1, 1])
    for function, message in (
        (plot.plot_multipliers, "no multipliers"),
        (plot.plot_joint_forces, "no forces of joints"),
        (plot.plot_states, "no first-order states"),
    ):
        with pytest.raises(ValueError, match=message):
            function(free)


def test_orders_and_causes_of_rejection_are_drawn():
    _, solution = simulated("andrews", t_span=(0.0, 0.03), method="bdf")
    axes = drawn(plot.plot_steps(solution))
    right = [other for other in axes.get_figure().axes if other is not axes]
    assert right[0].get_ylabel() == "order"
    assert set(right[0].lines[0].get_ydata()) == set(solution.history.order) > {1, 2}
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sum(int(label.rpartition("(")[2][:-1]) for label in labels[1:]) == solution.rejections > 0
    _, explicit = simulated("pendulum")
    assert len(drawn(plot.plot_steps(explicit)).get_figure().axes) == 1


def test_failures_of_newtons_method_are_told_from_those_of_the_error_test():
    stiff = hn.System(
        np.eye(1), lambda q, v: np.array([-1e4 * np.tanh(1e3 * (v[0] - 1)) - q[0]]), names=["x"]
    )
    solution = hn.solve(stiff, (0, 1), [0.0], [0.0], method="bdf", first_step=0.1, rtol=1e-4)
    causes = set(solution.history.cause)
    assert {"Newton"} <= causes <= {"Newton", "error test"}
    labels = " ".join(text.get_text() for text in drawn(plot.plot_steps(solution)).get_legend().get_texts())
    assert f"Newton ({solution.history.cause.count('Newton')})" in labels


def test_energy_is_a_deviation_only_where_it_is_conserved():
    from holonome.plot.over_time import conserves_energy

    for name, conserves in (
        ("pendulum", True),
        ("four_bar", True),
        ("double_pendulum", True),
        ("chain", True),
    ):
        assert conserves_energy(simulated(name)[1]) is conserves
    damped = hn.System(
        np.eye(2),
        lambda v: np.array([0.0, -9.81]) - 0.1 * v,
        lambda q: q @ q - 1,
        potential=lambda q: 9.81 * q[1],
    )
    pushed = hn.System(
        np.eye(2),
        lambda t: np.array([np.sin(t), -9.81]),
        lambda q: q @ q - 1,
        potential=lambda q: 9.81 * q[1],
    )
    for system in (damped, pushed):
        solution = hn.solve(system, (0, 3), [1, 0])
        assert not conserves_energy(solution)
        assert not any(
            "energy" in text.get_text() for text in drawn(plot.plot_drift(solution)).get_legend().get_texts()
        )
        assert plot.plot_energy(solution).lines[0].get_ydata()[0] == solution.energy[0]
    _, loose = simulated("pendulum", projection=False, rtol=1e-3, t_span=(0.0, 20.0))
    assert conserves_energy(loose), "an error of the method is a deviation"


def titles(axes) -> list[str]:
    return [panel.get_title(loc="left") for panel in axes]


def test_the_overview_shows_what_tells_most():
    vdp = hn.ODE(lambda x: np.array([x[1], 1000 * (1 - x[0] ** 2) * x[1] - x[0]]), n=2)
    assert titles(hn.solve(vdp, (0, 900), [2, 0]).plot())[2].startswith("auto: dop853 → bdf")
    heated = hn.System(
        np.eye(1),
        lambda q, v: -q - 0.1 * v,
        states={"heat": 0.0},
        rate=lambda v: np.array([0.1 * v[0] ** 2]),
        names=["x"],
        potential=lambda q: q[0] ** 2 / 2,
    )
    w, decay = np.sqrt(1 - 0.05**2), np.exp(-0.05 * 5)
    end = decay**2 * ((np.cos(5 * w) + 0.05 / w * np.sin(5 * w)) ** 2 + np.sin(5 * w) ** 2 / w**2) / 2
    assert titles(hn.solve(heated, (0, 5), [1.0]).plot()) == [
        "Positions",
        "States",
        f"Energy, 0.5 → {end:.4g}",
    ]
    mechanism, smooth = simulated("stiff_spring", motion="smooth", rtol=1e-3, t_span=(0.0, 0.01))
    assert titles(smooth.plot(drawing=mechanism.drawing))[1].startswith("smooth")
    free = hn.solve(hn.System(np.ones(2), np.zeros(2)), (0, 1), [0, 0], [1, 1])
    assert titles(free.plot())[2].startswith("dop853: ")


def test_the_sparsity_of_a_chain_is_its_pattern():
    chain = hn.mechanisms.get("chain", links=3).system
    axes = drawn(plot.plot_sparsity(chain))
    picture = np.asarray(axes.images[0].get_array())
    assert picture.shape == (15, 15)
    np.testing.assert_array_equal(picture, picture.T)
    assert not picture[9:, 9:].any()
    assert np.count_nonzero(picture[:9, :9]) == 9
    assert f"{np.count_nonzero(picture)} of 15²" in axes.get_title(loc="left")
    drawn(plot.plot_sparsity(hn.mechanisms.get("chain", links=100).system))


def test_the_condition_peaks_at_singular_positions():
    _, solution = simulated("slider_crank", t_span=(0.0, 1.2))
    axes = drawn(plot.plot_condition(solution))
    t, condition = axes.lines[0].get_data()
    assert t[np.argmax(condition)] == pytest.approx(solution.singular_times[0], abs=0.01)
    assert np.max(condition) > 1e3 * np.min(condition)
    masses = plot.plot_condition(hn.solve(hn.System([1.0, 4.0], np.zeros(2)), (0, 1), [0, 0], [1, 1]))
    assert masses.lines[0].get_ydata() == pytest.approx(4.0)


def test_work_and_precision_of_solutions_and_comparisons(tmp_path):
    pendulum = hn.mechanisms.get("pendulum")
    problem = pendulum.system, (0, 2), pendulum.q0
    found = hn.compare(*problem, methods=["dopri5", "index2"], rtols=[1e-4, 1e-6], reference=pendulum.exact)
    axes = found.plot(file=tmp_path / "work.png", cost="evaluations")
    assert axes.xaxis_inverted()
    np.testing.assert_array_equal(
        axes.lines[0].get_xydata(), [(row.error, row.evaluations) for row in found.of("dopri5")]
    )
    assert png_size(tmp_path / "work.png")
    runs = {
        method: [hn.solve(*problem, method=method, rtol=rtol) for rtol in (1e-4, 1e-6)]
        for method in ("dopri5", "ggl")
    }
    axes = drawn(plot.work_precision(runs, cost="steps", reference=pendulum.exact(np.array([2.0]))[0][:, 0]))
    assert list(axes.lines[1].get_ydata()) == [run.steps for run in runs["ggl"]]
    assert (
        len(
            plot.work_precision(
                [*runs["dopri5"], *runs["ggl"]], cost="steps", reference=runs["dopri5"][1]
            ).lines
        )
        == 2
    )
    for options, message in (
        ({"cost": "seconds"}, "do not know their time"),
        ({"cost": "steps"}, "reference: missing"),
        ({"cost": "euros"}, "choose seconds"),
    ):
        with pytest.raises(ValueError, match=message):
            plot.work_precision(runs, **options)


def test_methods_are_compared_over_time():
    runs = {method: simulated("pendulum", method=method)[1] for method in ("dop853", "index1")}
    for what in ("drift", "velocity drift", "energy", "steps", "order", "x"):
        axes = drawn(plot.plot_comparison(runs, what=what))
        assert [text.get_text() for text in axes.get_legend().get_texts()] == list(runs)
    assert np.max(plot.plot_comparison(runs).lines[1].get_ydata()) == pytest.approx(runs["index1"].drift[0])
    with pytest.raises(ValueError, match="'speed' is not known; choose one of drift"):
        plot.plot_comparison(runs, what="speed")
    with pytest.raises(ValueError, match="same method"):
        plot.plot_comparison([runs["dop853"], runs["dop853"]])


def test_many_points_of_drift_are_drawn_as_their_largest():
    _, solution = simulated("stiff_spring", t_span=(0.0, 0.5))
    assert solution.t.size > 1500
    axes = plot.plot_drift(solution)
    assert axes.lines[0].get_xdata().size <= 600
    assert np.max(axes.lines[1].get_ydata()) == solution.drift[1]


def luminance(colour) -> float:
    from matplotlib.colors import to_rgb

    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True])
def test_lines_stand_out_from_the_paper(dark):
    with plot.house_style(dark):
        look = plot.theme()
        paper = luminance(look.paper)
        for colour in (*look.colours, look.ink, look.frame, look.trace):
            low, high = sorted((luminance(colour), paper))
            assert (high + 0.05) / (low + 0.05) > 2.1, colour
    assert plot.theme() is not None


def test_dark_pictures_are_dark_however_they_are_asked_for(tmp_path):
    from matplotlib import rc_context

    mechanism, solution = simulated("pendulum")
    panels = [solution.plot(drawing=mechanism.drawing, dark=True)[0]]
    with plot.house_style(dark=True):
        panels.append(plot.plot_steps(solution))
    with rc_context({"figure.facecolor": "black"}):
        panels.append(plot.plot_positions(solution))
        light = solution.plot(dark=False)[0]
    assert all(luminance(panel.get_figure(root=True).get_facecolor()) < 0.05 for panel in panels)
    assert luminance(light.get_figure(root=True).get_facecolor()) == pytest.approx(1)
    assert luminance(plot.plot_steps(solution).get_figure(root=True).get_facecolor()) == pytest.approx(1)
