"""Eich 1993: what the paper shows, and Kepler's problem with invariants."""

import numpy as np
import pytest
from matplotlib.figure import Figure as Canvas
from typer.testing import CliRunner

import holonome as hn
from holonome import cli
from holonome.papers import eich_1993 as eich
from holonome.papers.paper import published


@pytest.fixture(scope="module")
def computed(experiments):
    return experiments(eich.PAPER)


def test_published_table_satisfies_the_constraints():
    """Rows with projection lie on the manifold, so Δx = Δy²/2, Δẋ = Δy Δẏ and Δλ = |Δẏ² ± γ Δy| to the two
    digits printed: the scan was read correctly.
    """
    rows = [line for line in published("eich_1993", "table_3_1") if line["projection"] == "yes"]
    assert [line["TOL"] for line in rows] == ["1e-5", "1e-6", "1e-7", "1e-8", "1e-9"]
    for line in rows:
        dx, dy, dvx, dvy, dlambda = (float(line[name]) for name in ("dx", "dy", "dvx", "dvy", "dlambda"))
        assert np.isclose(dx, dy**2 / 2, rtol=0.15)
        assert np.isclose(dvx, dy * dvy, rtol=0.25)
        assert any(np.isclose(dlambda, abs(dvy**2 + sign * eich.GRAVITY * dy), rtol=0.12) for sign in (1, -1))


def test_pendulum_has_a_period_of_two_seconds():
    q, v, lam = hn.mechanisms.pendulum(gravity=eich.GRAVITY).exact(np.array([100.0]))
    assert np.allclose(np.concatenate([q, v, lam]).ravel(), [1, 0, 0, 0, 0], rtol=0, atol=1e-7)


def test_projection_reduces_the_errors():
    """At TOL 1e-9 Δẏ is at least 20 times smaller. Single errors are a matter of chance, so in the mean
    square of a few.
    """
    assert eich.gain(*(eich.scatter(projection, 1e-9, 6) for projection in eich.FORMULATIONS)) > 20


def test_residual_is_at_rounding_level():
    pendulum = hn.mechanisms.pendulum(gravity=eich.GRAVITY)
    solution = hn.solve(
        pendulum.system, (0, 100), pendulum.q0, pendulum.v0, method=eich.method("yes"), rtol=1e-9, atol=1e-9
    )
    assert solution.drift[0] <= 1e-15


@pytest.mark.slow
def test_table_3_1(computed):
    table = computed["table-3.1"]
    assert len(table.rows) == 25
    assert all(row.measured["with"] < row.measured["without"] for row in table.rows)
    assert {row.verdict for row in table.rows if row.case["TOL"] in ("1e-8", "1e-9")} >= {"fitted"}
    assert table.claims[0].verdict == table.claims[1].verdict == "reproduced"


@pytest.mark.parametrize("name", ["linear", "nonlinear"])
@pytest.mark.parametrize("k", range(1, 7))
def test_order_of_the_projected_method(k, name):
    pendulum = hn.mechanisms.pendulum(gravity=eich.GRAVITY)
    problem = (
        (eich.guided(), [0.0, 0.0], [1.0, 0.0])
        if name == "linear"
        else (pendulum.system, pendulum.q0, pendulum.v0)
    )
    assert abs(eich.order(*eich.largest_errors(*problem, k)) - k) < 0.1


def test_plain_projected_method_has_its_order_too():
    exact = np.concatenate(hn.mechanisms.pendulum(gravity=eich.GRAVITY).exact(np.array([0.8]))[:2]).ravel()
    for k in (2, 3, 4):
        errors = [np.linalg.norm(eich.ProjectedBDF(k, 0.8 / n, True).run(n)[-1] - exact) for n in (80, 160)]
        assert abs(np.log2(errors[0] / errors[1]) - k) < 0.2


def test_only_the_tangential_part_of_a_perturbation_is_propagated():
    for at in (60, 85):
        for projects, joint in ((True, False), (True, True), (False, False)):
            bdf = eich.ProjectedBDF(3, 0.01, projects, joint)
            plain = bdf.run(120)
            left = {
                kind: np.linalg.norm(bdf.run(120, at, kind, 1e-4) - plain, axis=1)[at:]
                for kind in ("normal", "tangential")
            }
            assert np.max(left["tangential"]) > 5e-5
            assert np.max(left["normal"]) < 1e-13 if projects else np.max(left["normal"]) > 5e-5


def test_projected_value_is_the_nearest():
    """(2.8): ŷ − y lies in the range of Hᵀ."""
    bdf = eich.ProjectedBDF(2, 0.1, True, joint=True)
    far = np.array([0.7, -0.6, 1.1, 0.9])
    near = bdf.project(far)
    assert np.max(np.abs(bdf.phi(near))) < 1e-15
    assert np.max(np.abs(bdf.tangential(near, far - near))) < 1e-6


@pytest.mark.slow
def test_drift_of_the_wheel_set(computed):
    claims = computed["figures-1.2-and-1.3"].claims
    assert [claim.verdict for claim in claims] == ["reproduced"] * 2
    without, with_ = computed["figures-1.2-and-1.3"].panels[0].curves
    assert np.max(np.abs(with_.y)) < 1e-16 < 1e-6 < np.max(np.abs(without.y))


@pytest.mark.slow
def test_flying_wheel_set(computed):
    assert [claim.verdict for claim in computed["figure-1.4"].claims] == [
        "fitted",
        "differs",
        "reproduced",
    ]
    assert len(computed["figure-1.4"].panels) == 5


@pytest.mark.parametrize("method", ["dop853", "bdf"])
def test_kepler_keeps_its_invariants(method):
    mechanism, revolutions = hn.mechanisms.kepler(), np.array([10, 100, 1000])
    solution = hn.solve(
        mechanism.system,
        (0, 2000 * np.pi),
        mechanism.q0,
        mechanism.v0,
        method=method,
        rtol=1e-8,
        atol=1e-8,
        t_eval=2 * np.pi * revolutions,
    )
    x, y, vx, vy = *solution.q, *solution.v
    assert np.allclose((vx**2 + vy**2) / 2 - 1 / np.hypot(x, y), -0.5, rtol=0, atol=1e-14)
    assert np.allclose(x * vy - y * vx, 0.8, rtol=0, atol=1e-14)
    errors = np.max(np.abs(solution.q - mechanism.exact(solution.t)[0]), axis=0)
    assert np.all(errors[1:] / errors[:-1] < 30)


def test_kepler_over_ten_thousand_revolutions(computed):
    """Invariants to 1e-12, errors that grow linearly with them and quadratically without."""
    assert [claim.verdict for claim in computed["kepler"].claims] == ["holds"] * 2
    with_, without = computed["kepler"].panels[0].curves
    assert with_.x[-1] == 10_000
    late = with_.x >= 1000
    slopes = [np.polyfit(np.log(curve.x[late]), np.log(curve.y[late]), 1)[0] for curve in (with_, without)]
    assert np.allclose(slopes, [1, 2], atol=0.2)


@pytest.mark.parametrize("eccentricity", [-0.1, 1.0, 2.0])
def test_kepler_wants_an_ellipse(eccentricity):
    with pytest.raises(ValueError, match="eccentricity"):
        hn.mechanisms.kepler(eccentricity=eccentricity)


@pytest.mark.parametrize("eccentricity", [0.0, 0.2, 0.9, 0.999])
def test_kepler_equation(eccentricity):
    from holonome.mechanisms.kepler import eccentric_anomaly

    M = np.linspace(-np.pi, np.pi, 1001)
    E = eccentric_anomaly(M, eccentricity)
    assert np.allclose(E - eccentricity * np.sin(E), M, rtol=0, atol=1e-14)


@pytest.mark.slow
def test_all_experiments_draw(computed, tmp_path):
    for experiment in computed.values():
        table, picture, *_ = experiment.save(tmp_path)
        assert table.stat().st_size > 100
        assert picture.stat().st_size > 10_000
        assert str(experiment).startswith(experiment.heading[:40])


@pytest.mark.slow
def test_pictures_with_several_values(computed):
    axes = computed["table-3.1"].draw(Canvas().subplots())
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "without, published",
        "without, measured",
        "with, published",
        "with, measured",
    ]


def test_command():
    result = CliRunner().invoke(
        cli.app,
        ["reproduce", "eich", "error-propagation"],
        env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"},
    )
    assert result.exit_code == 0
    assert "Only those parts of the errors that lie in the manifold" in result.output


@pytest.mark.slow
def test_the_flight_is_animated(tmp_path):
    """Figure 1.4 is saved as numbers, a strip of pictures and an animation, which has as many frames as were
    asked for and moves.
    """
    from PIL import Image

    table, picture, film = eich.figure_1_4().save(tmp_path)
    assert (table.suffix, picture.suffix, film.suffix) == (".csv", ".png", ".gif")
    with Image.open(film) as frames:
        assert frames.n_frames == 51
        first = np.array(frames.convert("L"))
        frames.seek(50)
        assert np.mean(np.abs(first.astype(float) - np.array(frames.convert("L")))) > 0.5
