"""The generalised-α method: order from the first step on, damping, constraints, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import holonome as hn
from holonome.integrators.generalized_alpha import GeneralizedAlpha

RHO = (0.0, 0.5, 0.9, 1.0)
FORMS: dict[str, Any] = {"index 3": hn.Index3(), "ggl": hn.GGL()}


def method(form: str, rho: float = 0.8, step: float | None = None) -> hn.Method:
    return hn.Method(FORMS[form], GeneralizedAlpha(rho, step=step))


def spherical_pendulum() -> tuple[hn.System, list, list]:
    system = hn.System(np.eye(3), lambda v: np.array([0.0, 0.0, -9.81]) - 0.1 * v, lambda q: q @ q - 1)
    return system, [1.0, 0.0, 0.0], [0.0, 1.0, 0.5]


def rheonomic() -> tuple[hn.System, list, list]:
    system = hn.System(
        np.eye(2), lambda: np.array([0.0, -9.81]), lambda t, q: (q[0] - 0.3 * np.sin(t)) ** 2 + q[1] ** 2 - 1
    )
    return system, [0.6, -0.8], [0.7, 0.3]


def skate() -> tuple[hn.System, list, list]:
    system = hn.System(
        np.ones(3),
        lambda: np.array([3.0, 0.0, 0.0]),
        velocity_constraint=lambda q, v: v[0] * np.sin(q[2]) - v[1] * np.cos(q[2]),
    )
    return system, [0.0, 0.0, 0.2], [math.cos(0.2), math.sin(0.2), 1.7]


def skate_on_sphere() -> tuple[hn.System, list, list]:
    """Both kinds of constraints."""
    system = hn.System(
        np.ones(4),
        lambda: np.array([0.0, 0.0, -0.981, 0.0]),
        lambda q: q[:3] @ q[:3] - 1,
        velocity_constraint=lambda q, v: np.array([np.cos(q[3]), np.sin(q[3]), 0.0]) @ v[:3],
    )
    return system, [1.0, 0.0, 0.0, math.pi / 2], [0.0, 0.0, 1.0, 0.3]


def four_bar() -> tuple[hn.System, Any, Any]:
    given = hn.mechanisms.four_bar()
    return given.system, given.q0, given.v0


PROBLEMS = {f.__name__: f for f in (spherical_pendulum, rheonomic, skate, skate_on_sphere, four_bar)}


def errors(problem: str, chosen: hn.Method, skip: int = 1) -> np.ndarray:
    """The largest of q, v and λ at all points of half a second but the first."""
    system, q0, v0 = PROBLEMS[problem]()
    sol = hn.solve(system, (0, 0.5), q0, v0, method=chosen)
    assert sol.success
    exact = hn.solve(system, (0, 0.5), q0, v0, rtol=1e-12, atol=1e-13, t_eval=sol.t)
    parts = ("q", "v", "lam")
    return np.array([np.max(np.abs(getattr(sol, p) - getattr(exact, p))[:, skip:]) for p in parts])


@pytest.mark.parametrize("rho", RHO)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_order(problem: str, form: str, rho: float) -> None:
    """Two for q, v and λ, from the first step on: no oscillation of first order after the start."""
    coarse, fine = (errors(problem, method(form, rho, step)) for step in (0.005, 0.0025))
    assert np.all(np.abs(np.log2(coarse / fine) - 2) < 0.25)


def test_start_up_oscillations() -> None:
    """Without the start moved, λ oscillates with an amplitude of first order; with it none of it is left."""
    system, q0, v0 = spherical_pendulum()
    sol = hn.solve(system, (0, 1), q0, v0, method=method("index 3", 0.95, 0.01))
    second = np.abs(np.diff(sol.lam[0], 2))
    assert np.max(second[:10]) < 2 * np.max(second[-80:])


def test_last_step_is_shorter() -> None:
    """v and a are moved to another step, so λ does not notice."""
    system, q0, v0 = spherical_pendulum()
    sol = hn.solve(system, (0, 0.995), q0, v0, method=method("index 3", 0.9, 0.01))
    exact = hn.solve(system, (0, 0.995), q0, v0, rtol=1e-12, t_eval=sol.t)
    wrong = np.abs(sol.lam - exact.lam)[0]
    assert wrong[-1] < 1.5 * np.max(wrong[:-1])


@pytest.mark.parametrize("form", FORMS)
def test_variable_steps(form: str) -> None:
    """The error follows the tolerance, that of λ too."""
    system, q0, v0 = spherical_pendulum()
    found = []
    for rtol in (1e-5, 1e-7):
        chosen = hn.Method(hn.Index3("qv") if form == "index 3" else hn.GGL(), GeneralizedAlpha(0.8))
        sol = hn.solve(system, (0, 2), q0, v0, method=chosen, rtol=rtol, atol=rtol)
        exact = hn.solve(system, (0, 2), q0, v0, rtol=1e-12, t_eval=sol.t)
        assert np.max(np.abs(sol.q - exact.q)) < 5 * rtol ** (2 / 3)
        found.append(np.max(np.abs(sol.lam - exact.lam)))
    assert found[1] < 0.2 * found[0]
    assert found[0] < 0.1


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.5, 0.9, 1.0])
def test_damping(rho: float) -> None:
    """Of oscillations far above the step all roots are −ρ∞: three of them, as in (x + ρ∞)³."""
    h = 0.1
    system = hn.System([1.0], lambda q: -(1e4**2) / 0.1**2 * q, n=1)
    q = hn.solve(system, (0, 30 * h), [1.0], [0.0], method=method("index 3", rho, h)).q[0]
    left = q[3:] + 3 * rho * q[2:-1] + 3 * rho**2 * q[1:-2] + rho**3 * q[:-3]
    assert np.max(np.abs(left[5:])) < 1e-6 * max(np.max(np.abs(q[8:])), 1e-300) + 1e-12
    slow = hn.System([1.0], lambda q: -q, n=1)
    sol = hn.solve(slow, (0, 3), [1.0], [0.0], method=method("index 3", rho, 0.01))
    assert np.max(np.abs(sol.q[0] - np.cos(sol.t))) < 2e-4


def test_constraints() -> None:
    """Positions to rounding in both forms, velocities in the stabilised one, and both between steps."""
    system, q0, v0 = spherical_pendulum()
    for form in FORMS:
        sol = hn.solve(system, (0, 2), q0, v0, method=method(form, 0.9, 0.01), dense_output=True)
        assert sol.drift[0] < 1e-14
        assert (sol.drift[1] < 1e-13) == (form == "ggl")
        q, v = sol.sol(np.linspace(0.005, 1.995, 50))
        assert np.max(np.abs(np.sum(q * q, axis=0) - 1)) < 1e-14
        assert np.max(np.abs(np.sum(q * v, axis=0))) < 1e-13


def test_states() -> None:
    """A first-order law that pulls at a pendulum, of order 2 as well."""
    system = hn.System(
        np.eye(2),
        lambda s: np.array([s[0], -9.81]),
        lambda q: q @ q - 1,
        states={"pull": 1.0},
        rate=lambda s, v: -2 * s[0] + v[0],
    )

    def error(step: float) -> np.ndarray:
        sol = hn.solve(system, (0, 1), [1.0, 0.0], [0.0, 0.0], method=method("ggl", 0.7, step))
        exact = hn.solve(system, (0, 1), [1.0, 0.0], [0.0, 0.0], rtol=1e-12, t_eval=sol.t)
        return np.array(
            [np.max(np.abs(getattr(sol, p) - getattr(exact, p))[:, 1:]) for p in ("q", "s", "lam")]
        )

    assert np.all(np.abs(np.log2(error(0.01) / error(0.005)) - 2) < 0.2)


def test_backward_in_time() -> None:
    system, q0, v0 = rheonomic()
    there = hn.solve(system, (0, 1), q0, v0, rtol=1e-11)
    back = hn.solve(system, (1, 0), there.q[:, -1], there.v[:, -1], method=method("ggl", 1.0, 0.001))
    assert np.max(np.abs(back.q[:, -1] - q0)) < 1e-4


def test_redundant_rows() -> None:
    twice = hn.System(
        np.eye(2), lambda: np.array([0.0, -9.81]), lambda q: np.array([q @ q - 1, 2 * (q @ q) - 2])
    )
    once = hn.System(np.eye(2), lambda: np.array([0.0, -9.81]), lambda q: q @ q - 1)
    for form in FORMS:
        ends = [
            hn.solve(s, (0, 2), [1.0, 0.0], method=method(form, 0.9, 0.01)).q[:, -1] for s in (twice, once)
        ]
        assert np.max(np.abs(ends[0] - ends[1])) < 1e-11


def test_switch_in_time() -> None:
    """Accelerations jump; no step crosses that, and λ is right at once behind it."""
    system = hn.System(
        np.eye(2), lambda t: np.array([np.where(t > 0.3, 5.0, 0.0), -9.81]), lambda q: q @ q - 1
    )
    sol = hn.solve(system, (0, 1), [0.0, -1.0], [0.0, 0.0], method=method("index 3", 0.8, 0.01))
    exact = hn.solve(system, (0, 1), [0.0, -1.0], [0.0, 0.0], rtol=1e-12, t_eval=sol.t)
    assert np.max(np.abs(sol.lam - exact.lam)[0][2:]) < 1e-2


@pytest.mark.parametrize("rho", [-0.1, 1.1, math.nan, "half", None])
def test_rho_is_checked(rho: Any) -> None:
    with pytest.raises(ValueError, match=r"rho_inf: .*; give a number from 0 to 1"):
        GeneralizedAlpha(rho)


@pytest.mark.parametrize(
    "form", [hn.CoordinateProjection(), hn.CoordinateSplit(), hn.SRM(), hn.Hamiltonian()]
)
def test_forms_that_do_not_fit(form: Any) -> None:
    with pytest.raises(TypeError, match=r"With GeneralizedAlpha\(0.9\) use GGL\(\), Index3\(\)"):
        hn.Method(form, GeneralizedAlpha())


def test_too_large_a_step() -> None:
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(pendulum.system, (0, 50), pendulum.q0, pendulum.v0, method=method("index 3", 0.9, 5.0))
    assert not sol.success
    assert "the constant step 5 fails" in sol.message


def test_not_finite() -> None:
    system = hn.System(np.eye(2), lambda t: np.array([0.0, -np.sqrt(1 - t)]), lambda q: q @ q - 1)
    sol = hn.solve(system, (0, 2), [1.0, 0.0], method=method("ggl"))
    assert not sol.success
    assert "not finite" in sol.message
