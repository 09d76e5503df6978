"""RATTLE: order, symplecticity, reversibility, long runs, and what it refuses."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

import holonome as hn
from holonome.integrators.composition import COMPOSITIONS

NAMES = {2: "rattle", 4: "rattle4", 6: "rattle6", 8: "rattle8"}
STEPS = {2: (100, 200), 4: (80, 160), 6: (40, 80), 8: (32, 64)}


def rod(q):
    return q @ q - 1


@functools.cache
def spherical_pendulum() -> hn.System:
    return hn.System(
        np.eye(3),
        lambda: np.array([0.0, 0.0, -9.81]),
        rod,
        potential=lambda q: 9.81 * q[2],
        names=["x", "y", "z"],
    )


def mass_of_angles(q):
    c = np.cos(q[0] - q[1])
    return np.array([[2.0, c], [c, 1.0]])


def weight_on_angles(q):
    return -9.81 * np.array([2 * np.sin(q[0]), np.sin(q[1])])


@functools.cache
def angles() -> hn.System:
    """A double pendulum in angles, so that M depends on q."""
    return hn.System(mass_of_angles, weight_on_angles, n=2, inertial="derived")


@functools.cache
def angles_and_wire() -> hn.System:
    """The same with its end on a vertical wire."""
    return hn.System(
        mass_of_angles,
        weight_on_angles,
        lambda q: np.sin(q[0]) + np.sin(q[1]) - 0.3,
        n=2,
        inertial="derived",
    )


@functools.cache
def rubbing() -> hn.System:
    """Friction on a pendulum whose pivot is driven."""
    return hn.System(
        np.eye(2),
        lambda v: np.array([0.0, -9.81]) - 0.4 * v - 0.1 * v * np.sqrt(v @ v + 1),
        lambda t, q: (q[0] - 0.3 * np.sin(t)) ** 2 + q[1] ** 2 - 1,
    )


@functools.cache
def henon_heiles() -> hn.System:
    return hn.System(
        np.eye(2),
        lambda q: -np.array([q[0] + 2 * q[0] * q[1], q[1] + q[0] ** 2 - q[1] ** 2]),
        potential=lambda q: (q @ q) / 2 + q[0] ** 2 * q[1] - q[1] ** 3 / 3,
    )


def on_wire() -> tuple[np.ndarray, np.ndarray]:
    start = hn.consistent(angles_and_wire(), [0.5, -0.2], [1.0, -1.0], repair=True)
    return start.q, start.v


PROBLEMS: dict[str, Any] = {
    "spherical pendulum": lambda: (spherical_pendulum(), [1.0, 0.0, 0.0], [0.0, 1.0, 0.5]),
    "mass of q": lambda: (angles(), [1.0, -0.5], [0.0, 0.3]),
    "mass of q and a constraint": lambda: (angles_and_wire(), *on_wire()),
    "friction, driven": lambda: (rubbing(), [0.6, -0.8], [0.7, 0.3]),
    "no constraint": lambda: (henon_heiles(), [0.0, 0.1], [0.4, 0.0]),
}


def errors(problem: str, name: str, steps: int, t_end: float = 1.0) -> np.ndarray:
    """Of q, v and λ at the end, against dop853."""
    system, q0, v0 = PROBLEMS[problem]()
    exact = hn.solve(system, (0, t_end), q0, v0, rtol=1e-13, atol=1e-14)
    sol = hn.solve(system, (0, t_end), q0, v0, method=name, step=t_end / steps)
    assert sol.success
    assert sol.steps == steps
    parts = ("q", "v", "lam") if system.m else ("q", "v")
    return np.array([np.max(np.abs(getattr(sol, p)[:, -1] - getattr(exact, p)[:, -1])) for p in parts])


@pytest.mark.parametrize("order", NAMES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_order(problem: str, order: int) -> None:
    """q, v and λ; where rounding comes first the error is small enough as it is."""
    coarse, fine = (errors(problem, NAMES[order], steps) for steps in STEPS[order])
    rounding = fine < 2e-11
    assert np.all(rounding | (np.abs(np.log2(coarse / np.maximum(fine, 1e-300)) - order) < 0.1 + 0.1 * order))


@pytest.mark.parametrize("order", COMPOSITIONS)
def test_order_conditions(order: int) -> None:
    """exp(γ_s h A₁ + (γ_s h)³ A₃ + …) … exp(γ₁ h A₁ + …) = exp(h A₁) up to h^order, for matrices that do not
    commute, as formal power series in h.
    """
    random, gamma = np.random.default_rng(1), COMPOSITIONS[order]
    A = {i: random.normal(size=(5, 5)) / 3 for i in (1, 3, 5, 7)}

    def product(P, Q):
        return [sum(P[j] @ Q[k - j] for j in range(k + 1)) for k in range(order + 1)]

    def exponential(x, generators):
        X = [x**i * generators[i] if i in generators else np.zeros((5, 5)) for i in range(order + 1)]
        term = total = [np.eye(5) * (k == 0) for k in range(order + 1)]
        for k in range(1, order + 1):
            term = [part / k for part in product(term, X)]
            total = [a + b for a, b in zip(total, term, strict=True)]
        return total

    found = exponential(gamma[0], A)
    for x in gamma[1:]:
        found = product(exponential(x, A), found)
    for ours, exact in zip(found, exponential(1.0, {1: A[1]}), strict=True):
        assert np.allclose(ours, exact, rtol=0, atol=1e-14)
    assert np.all((np.cumsum(gamma) > 0) & (np.cumsum(gamma) < 1 + 1e-14))


def test_pendulum_in_closed_form() -> None:
    """sin(φ/2) = k sn(t + K) for a pendulum that is let go at rest."""
    g, k = 9.81, math.sin(0.5)  # from an angle of 1
    system = hn.System(np.eye(2), lambda: np.array([0.0, -g]), rod)
    q0 = [math.sin(1.0), -math.cos(1.0)]
    sol = hn.solve(system, (0, 20), q0, [0.0, 0.0], method="rattle8", step=0.05)
    sn = ellipj(math.sqrt(g) * sol.t + ellipk(k * k), k * k)[0]
    angle = 2 * np.arcsin(k * sn)
    assert np.max(np.abs(sol.q - [np.sin(angle), -np.cos(angle)])) < 1e-9
    assert max(sol.drift) < 1e-13


def flow(system, y: np.ndarray, h: float, steps: int, name: str) -> np.ndarray:
    n = system.n
    sol = hn.solve(
        system, (0, steps * h), y[:n], y[n:], method=name, step=h, atol=1e-14, rtol=1e-13, repair=True
    )
    return np.concatenate([sol.q[:, -1], sol.v[:, -1]])


@pytest.mark.parametrize("name", ["rattle", "rattle8"])
def test_symplectic_without_constraints(name: str) -> None:
    """Φ′ᵀ J Φ′ = J in (q, p), for M that depends on q."""
    system, h, steps = angles(), 0.1, 7
    n, eps = system.n, 1e-5

    def mapped(x):
        q, p = x[:n], x[n:]
        y = flow(system, np.concatenate([q, np.linalg.solve(mass_of_angles(q), p)]), h, steps, name)
        return np.concatenate([y[:n], mass_of_angles(y[:n]) @ y[n:]])

    x = np.array([0.7, -0.4, 0.3, 0.6])
    D = np.array([(mapped(x + eps * e) - mapped(x - eps * e)) / (2 * eps) for e in np.eye(2 * n)]).T
    J = np.block([[np.zeros((n, n)), np.eye(n)], [-np.eye(n), np.zeros((n, n))]])
    assert np.max(np.abs(D.T @ J @ D - J)) < 1e-7


def on_sphere(x: np.ndarray) -> np.ndarray:
    """The state that belongs to two angles and their momenta."""
    (a, b, pa, pb), sin = x, np.sin
    q = np.array([sin(a) * np.cos(b), sin(a) * sin(b), np.cos(a)])
    by_a = np.array([np.cos(a) * np.cos(b), np.cos(a) * sin(b), -sin(a)])
    by_b = np.array([-sin(a) * sin(b), sin(a) * np.cos(b), 0.0])
    return np.concatenate([q, pa * by_a + pb / sin(a) ** 2 * by_b])


def from_sphere(y: np.ndarray) -> np.ndarray:
    q, v = y[:3], y[3:]
    a, b = np.arccos(q[2]), np.arctan2(q[1], q[0])
    by_a = np.array([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), -np.sin(a)])
    by_b = np.array([-np.sin(a) * np.sin(b), np.sin(a) * np.cos(b), 0.0])
    return np.array([a, b, by_a @ v, by_b @ v])


@pytest.mark.parametrize(("name", "symplectic"), [("rattle", True), ("rattle6", True), ("heun", False)])
def test_symplectic_on_the_sphere(name: str, symplectic: bool) -> None:
    """The same on the cotangent bundle of the sphere, for a spherical pendulum."""
    eps, x = 1e-5, np.array([1.9, 0.3, 0.8, 0.7])

    def mapped(x):
        return from_sphere(flow(spherical_pendulum(), on_sphere(x), 0.1, 5, name))

    D = np.array([(mapped(x + eps * e) - mapped(x - eps * e)) / (2 * eps) for e in np.eye(4)]).T
    J = np.block([[np.zeros((2, 2)), np.eye(2)], [-np.eye(2), np.zeros((2, 2))]])
    assert (np.max(np.abs(D.T @ J @ D - J)) < 1e-7) == symplectic


@pytest.mark.parametrize("problem", ["spherical pendulum", "mass of q and a constraint", "no constraint"])
def test_reversible(problem: str) -> None:
    """Forward, and back by a run backward in time: the start, to rounding."""
    system, q0, v0 = PROBLEMS[problem]()
    there = hn.solve(system, (0, 5), q0, v0, method="rattle4", step=0.05)
    back = hn.solve(system, (5, 0), there.q[:, -1], there.v[:, -1], method="rattle4", step=0.05)
    assert np.max(np.abs(back.q[:, -1] - q0)) < 1e-11
    assert np.max(np.abs(back.v[:, -1] - v0)) < 1e-11


def energy_errors(steps: int) -> np.ndarray:
    """The largest in each tenth of a run of a spherical pendulum with so many steps."""
    system, q0, v0 = PROBLEMS["spherical pendulum"]()
    end = 0.01 * steps
    sol = hn.solve(
        system,
        (0, end),
        q0,
        v0,
        method="rattle",
        step=0.01,
        t_eval=np.linspace(0, end, 2001),
        max_steps=2 * steps,
    )
    assert sol.success
    assert max(sol.drift) < 1e-13
    momentum = sol.q[0] * sol.v[1] - sol.q[1] * sol.v[0]  # about the vertical: kept by every step
    assert np.max(np.abs(momentum - momentum[0])) < 1e-15 * steps**0.5 * 30
    error = np.abs(sol.energy - sol.energy[0])[1:]
    return error.reshape(10, -1).max(axis=1)


def test_energy_over_many_steps() -> None:
    errors = energy_errors(100_000)
    assert errors.max() < 5e-3
    assert errors[-1] < 1.2 * errors[0]


def test_energy_over_a_million_steps() -> None:
    errors = energy_errors(1_000_000)
    assert errors.max() < 5e-3
    assert errors[-1] < 1.2 * errors[0]


def test_kepler() -> None:
    """On an ellipse of eccentricity 0.6, angular momentum to rounding, energy bounded, the ellipse turns."""
    system = hn.System(np.eye(2), lambda q: -q / np.sqrt(q @ q) ** 3, potential=lambda q: -1 / np.sqrt(q @ q))
    sol = hn.solve(
        system, (0, 200 * 2 * math.pi), [0.4, 0.0], [0.0, 2.0], method="rattle", step=0.01, max_steps=10**6
    )
    L = sol.q[0] * sol.v[1] - sol.q[1] * sol.v[0]
    assert np.max(np.abs(L - 0.8)) < 1e-13
    error = np.abs(sol.energy - sol.energy[0])
    assert error[-1000:].max() < 1.1 * error[:1000].max() < 1e-2
    runge = np.array(
        [sol.v[1] * L - sol.q[0] / np.hypot(*sol.q), -sol.v[0] * L - sol.q[1] / np.hypot(*sol.q)]
    )
    turned = np.unwrap(np.arctan2(runge[1], runge[0]))
    assert abs(turned[-1]) > 0.05  # a symplectic method shifts the phase instead
    fine = hn.solve(system, (0, 10 * 2 * math.pi), [0.4, 0.0], [0.0, 2.0], method="rattle8", step=0.02)
    assert np.max(np.abs(fine.q[:, -1] - [0.4, 0.0])) < 1e-4


def test_henon_heiles() -> None:
    """At E = 1/12 the motion is regular: no energy is gained or lost in ten thousand periods."""
    q0, v0 = [0.0, 0.1], [math.sqrt(2 * (1 / 12 - (0.01 / 2 - 0.001 / 3))), 0.0]
    sol = hn.solve(
        henon_heiles(),
        (0, 60_000),
        q0,
        v0,
        method="rattle4",
        step=0.5,
        t_eval=np.linspace(0, 6e4, 1001),
        max_steps=10**6,
    )
    assert sol.energy[0] == pytest.approx(1 / 12)
    assert np.max(np.abs(sol.energy - 1 / 12)) < 2e-4
    assert np.max(np.hypot(*sol.q)) < 1.0


@pytest.mark.parametrize("name", ["gyroscope", "four_bar", "double_pendulum"])
def test_mechanisms(name: str) -> None:
    """Order 6 in a spinning top with quaternions, a closed loop and a chaotic pendulum, against dop853."""
    given = getattr(hn.mechanisms, name)()
    span = (0.0, {"gyroscope": 0.05}.get(name, 0.5))
    exact = hn.solve(given.system, span, given.q0, given.v0, rtol=1e-12, atol=1e-13)
    sol = hn.solve(given.system, span, given.q0, given.v0, method="rattle6", step=span[1] / 200)
    assert np.max(np.abs(sol.q[:, -1] - exact.q[:, -1])) < 1e-7
    assert np.max(np.abs(sol.lam[:, -1] - exact.lam[:, -1])) < 1e-5 * np.max(np.abs(exact.lam))
    assert sol.drift[0] < 1e-13


def test_dense_output_and_events() -> None:
    """Of the method's order, on the constraints."""
    system, q0, v0 = PROBLEMS["spherical pendulum"]()
    options = {"method": "rattle8", "step": 0.1, "dense_output": True, "events": lambda q: q[0]}
    sol = hn.solve(system, (0, 3), q0, v0, **options)
    exact = hn.solve(system, (0, 3), q0, v0, rtol=1e-13, atol=1e-13, dense_output=True, events=lambda q: q[0])
    t = np.linspace(0, 3, 101)
    q, v = sol.sol(t)
    assert np.max(np.abs(q - exact.sol(t)[0])) < 1e-6
    assert np.max(np.abs(np.sum(q * q, axis=0) - 1)) < 1e-14
    assert np.max(np.abs(np.sum(q * v, axis=0))) < 1e-13
    assert sol.t_events[0] == pytest.approx(exact.t_events[0], abs=1e-7)
    assert len(sol.t_events[0]) > 1


def test_same_steps_with_output_and_without() -> None:
    system, q0, v0 = PROBLEMS["spherical pendulum"]()
    whole = hn.solve(system, (0, 2), q0, v0, method="rattle", step=0.01)
    wanted = hn.solve(system, (0, 2), q0, v0, method="rattle", step=0.01, t_eval=[0.503, 2.0])
    assert np.max(np.abs(whole.q[:, -1] - wanted.q[:, -1])) < 1e-14


def test_states_that_are_integrals() -> None:
    """The area that a pendulum sweeps is carried along, with the method's order."""
    system = hn.System(
        np.eye(2),
        lambda s: np.array([0.1 * s[0], -9.81]),
        rod,
        states={"area": 0.0},
        rate=lambda q, v: q[0] * v[1] - q[1] * v[0],
    )
    exact = hn.solve(system, (0, 2), [1.0, 0.0], [0.0, 0.0], rtol=1e-13, atol=1e-13)

    def error(steps):
        sol = hn.solve(system, (0, 2), [1.0, 0.0], [0.0, 0.0], method="rattle4", step=2 / steps)
        return max(abs(sol.s[0, -1] - exact.s[0, -1]), abs(sol.q[0, -1] - exact.q[0, -1]))

    assert 14 < error(100) / error(200) < 18


def test_redundant_rows() -> None:
    twice = hn.System(
        np.eye(2), lambda: np.array([0.0, -9.81]), lambda q: np.array([q @ q - 1, 2 * (q @ q) - 2])
    )
    once = hn.System(np.eye(2), lambda: np.array([0.0, -9.81]), rod)
    ends = [hn.solve(s, (0, 3), [1.0, 0.0], method="rattle4", step=0.01).q[:, -1] for s in (twice, once)]
    assert np.max(np.abs(ends[0] - ends[1])) < 1e-12


def test_compare() -> None:
    pendulum = hn.mechanisms.pendulum()
    found = hn.compare(
        pendulum.system, (0, 1), pendulum.q0, pendulum.v0,
        methods=["dop853", hn.Method(hn.Hamiltonian(), hn.Rattle(step=0.01, order=4))], rtols=[1e-6],
    )  # fmt: skip
    assert "Rattle(4)" in str(found)


@pytest.mark.parametrize("name", NAMES.values())
def test_step_is_needed(name: str) -> None:
    pendulum = hn.mechanisms.pendulum()
    with pytest.raises(ValueError, match=r"step: missing; .* Give step="):
        hn.solve(pendulum.system, (0, 1), pendulum.q0, method=name)
    with pytest.raises(ValueError, match=r"max_step: 'rattle.?' takes steps of one size"):
        hn.solve(pendulum.system, (0, 1), pendulum.q0, method=name, step=0.1, max_step=0.2)


@pytest.mark.parametrize("order", [1, 3, 10, 2.0, "2"])
def test_orders(order: Any) -> None:
    with pytest.raises(ValueError, match="order: "):
        hn.Rattle(step=0.1, order=order)


REFUSED: dict[str, Any] = {
    "velocity constraints": {"velocity_constraint": lambda v: v[0]},
    "first-order states": {"states": {"s": 0.0}, "rate": lambda s: -s},
    "invariant": {"invariant": lambda v: v @ v},
}


@pytest.mark.parametrize("why", REFUSED)
def test_refuses(why: str) -> None:
    system = hn.System(np.eye(2), lambda: np.zeros(2), **REFUSED[why])
    with pytest.raises(ValueError, match=f"Rattle .*{why}"):
        hn.solve(system, (0, 1), [0.0, 0.0], [0.0, 1.0], method="rattle", step=0.1)


def test_refuses_black_boxes_of_velocity() -> None:
    table = {"friction": 0.1}
    system = hn.System(np.eye(2), lambda v: -table["friction"] * np.array([float(v[0]), float(v[1])]))
    with pytest.raises(ValueError, match="needs force as an expression where it depends on v"):
        hn.solve(system, (0, 1), [0.0, 0.0], [0.0, 1.0], method="rattle", step=0.1)


def test_too_large_a_step() -> None:
    pendulum = hn.mechanisms.pendulum()
    sol = hn.solve(pendulum.system, (0, 20), pendulum.q0, pendulum.v0, method="rattle", step=2.0)
    assert not sol.success
    assert "the constant step 2 fails" in sol.message
    assert "give a smaller step" in sol.message


def test_not_finite() -> None:
    system = hn.System(np.eye(2), lambda t: np.array([0.0, -np.sqrt(1 - t)]), rod)
    sol = hn.solve(system, (0, 2), [1.0, 0.0], method="rattle", step=0.03)
    assert not sol.success
    assert sol.t[-1] <= 1.0
    assert "not finite" in sol.message


def test_singular_position() -> None:
    """A point between two bars that fold onto each other."""
    system = hn.System(
        np.ones(3),
        lambda: np.array([0.0, 0.0, 0.0]),
        lambda q: np.array([(q[0] - np.cos(q[2])) ** 2 + (q[1] - np.sin(q[2])) ** 2 - 1, q[1]]),
    )
    start = hn.consistent(system, [2 * math.cos(0.5), 0.0, 0.5], [0.0, 0.0, -1.0], repair=True)
    sol = hn.solve(system, (0, 5), start.q, start.v, method="rattle", step=0.01)
    assert sol.success == (sol.status == 0)
    if not sol.success:
        assert "singular" in sol.message or "step" in sol.message
