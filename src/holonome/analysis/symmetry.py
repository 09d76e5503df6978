"""Steady motion: x(t) = exp(t X) x₀, along which nothing changes but where it is.

X moves coordinates that do not enter the equations at constant rates, q′ = const, and turns unit quaternions
about axes that are fixed in the body (or in space): e′ = e ∘ ω/2, so that e″ = e′ ∘ ē ∘ e′.  Seen in a frame
that moves along, such a motion is an equilibrium, and small deviations ξ obey ξ′ = (∂F/∂x − X) ξ.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.linalg import expm

from holonome.analysis.given import Place
from holonome.dynamics.start import consistent_state
from holonome.errors import HolonomeError
from holonome.problem.system import System

_SAME = 1e-6


def quaternions(system: System) -> list[slice]:
    """Where unit quaternions lie among the coordinates."""
    return list(getattr(system, "quaternions", ()))


def _right(e: np.ndarray) -> np.ndarray:
    """The matrix of x ↦ x ∘ e."""
    w, x, y, z = e
    return np.array([[w, -x, -y, -z], [x, w, z, -y], [y, -z, w, x], [z, y, -x, w]])


def _left(e: np.ndarray) -> np.ndarray:
    """The matrix of x ↦ e ∘ x."""
    w, x, y, z = e
    return np.array([[w, -x, -y, -z], [x, w, -z, y], [y, z, w, -x], [z, -y, x, w]])


_CONJUGATE = np.diag([1.0, -1.0, -1.0, -1.0])


def steady_acceleration(
    system: System, q: np.ndarray, v: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """a = e′ ∘ ē ∘ e′ of each quaternion and zero elsewhere, and its derivatives by q and v."""
    n = system.n
    a, by_q, by_v = np.zeros(n), np.zeros((n, n)), np.zeros((n, n))
    for part in quaternions(system):
        e, rate = q[part], v[part]
        if not np.any(rate):
            continue
        a[part] = _left(rate) @ _right(rate) @ _CONJUGATE @ e
        by_q[part, part] = _left(rate) @ _right(rate) @ _CONJUGATE
        by_v[part, part] = _right(_left(_CONJUGATE @ e) @ rate) + _left(_left(rate) @ _CONJUGATE @ e)
    return a, by_q, by_v


def generator(system: System, here: Place, fixed_in_space: bool = False) -> np.ndarray:
    """The matrix of the linear part of X, for q and for v."""
    X = np.zeros((system.n, system.n))
    for part in quaternions(system):
        e, rate = here.q[part], here.v[part]
        if not np.any(rate):
            continue
        conjugate = _CONJUGATE @ e
        X[part, part] = _left(_left(rate) @ conjugate) if fixed_in_space else _right(_left(conjugate) @ rate)
    return X


def moved(system: System, here: Place, X: np.ndarray, tau: float, by: np.ndarray | None = None) -> Place:
    """exp(τ X) of the state, or of one displaced from it by (δq, δv, δs)."""
    n, turn = system.n, expm(tau * X)
    linear = np.abs(X).sum(axis=1) == 0
    dq, dv, ds = (np.zeros(n), np.zeros(n), np.zeros(here.s.size)) if by is None else np.split(by, [n, 2 * n])
    q = turn @ (here.q + dq) + tau * np.where(linear, here.v, 0.0)
    rates = np.zeros(here.s.size)
    counted = list(getattr(system, "counted_turns", ()))
    if counted:
        rates[counted] = here.at(system).rate[counted]
    return Place(here.t + tau, q, turn @ (here.v + dv), here.s + ds + tau * rates)


def steady(system: System, here: Place) -> np.ndarray | None:
    """The matrix X of a steady motion; None if the state is neither one nor an equilibrium."""
    if not system.n:
        return np.zeros((0, 0)) if _at_rest(system, here) else None
    a, _, _ = steady_acceleration(system, here.q, here.v)
    if not _accelerates_so(system, here, a):
        return None
    for fixed_in_space in (False, True) if quaternions(system) and np.any(a) else (False,):
        X = generator(system, here, fixed_in_space)
        if _invariant(system, here, X):
            return X
    return None


def depends_on_time(system: System) -> bool:
    """Whether time enters the equations."""
    model = system.model
    parts = ca.vertcat(*(ca.vec(part) for part in (model.M, model.f, model.g, model.h, model.r, model.k)))
    return bool(ca.depends_on(parts, model.t))


def _at_rest(system: System, here: Place) -> bool:
    try:
        rate = here.at(system).rate
    except HolonomeError:
        return False
    size = np.max(np.abs(here.at(system).derivative("rate", by="s")), initial=0.0)
    return bool(np.max(np.abs(rate)) <= _SAME * size * max(np.max(np.abs(here.s)), 1e-3) + 1e-300)


def _accelerates_so(system: System, here: Place, a: np.ndarray) -> bool:
    """Whether the accelerations are those of a steady motion, and first-order states stay."""
    try:
        state = here.at(system)
        found, rate = state.a, state.rate
        forces = np.abs(state.f) + np.abs(state.G.T) @ np.abs(state.lam)
        inertia = np.abs(state.M) @ (np.abs(a) + np.abs(found))
        left = np.abs(state.M @ (found - a))
        stiffness = np.abs(state.derivative("f", by="q")) @ np.abs(here.q)
    except HolonomeError:
        return False
    counted = list(getattr(system, "counted_turns", ()))
    rate = np.delete(rate, counted)
    if np.max(left) > 1e-7 * np.max(forces + inertia + stiffness, initial=0.0) + 1e-12 * np.max(
        np.abs(state.M)
    ) * np.max(np.abs(here.q), initial=1e-6):
        return False
    slope = np.abs(state.derivative("rate", by="s")) @ np.abs(here.s) if rate.size else np.zeros(1)
    return not rate.size or bool(np.max(np.abs(rate)) <= 1e-7 * (np.max(slope) + 1e-6))


def _consistent(system: System, here: Place, by: np.ndarray) -> Place:
    """A state on the manifold, near one that is displaced."""
    y = np.concatenate([here.q, here.v, here.s]) + by
    if system.m:
        y = consistent_state(system, y, here.t, repair=True).state
    n = system.n
    return Place(here.t, y[:n], y[n : 2 * n], y[2 * n :])


def _invariant(system: System, here: Place, X: np.ndarray) -> bool:
    """Whether accelerations near the state are the same further along the motion, but moved along."""
    speed = float(np.max(np.abs(here.v), initial=0.0))
    if speed == 0 and not depends_on_time(system):
        return True
    random, n = np.random.default_rng(4), system.n
    counted = list(getattr(system, "counted_turns", ()))
    reach = max(float(np.max(np.abs(here.q), initial=0.0)), 1e-3)
    for tau in (0.37 / max(speed, 1e-300), -0.21 / max(speed, 1e-300)) if speed else (0.7,):
        by = 1e-4 * random.normal(size=2 * n + here.s.size)
        by[:n] *= reach
        by[n : 2 * n] *= max(speed, reach)
        by[2 * n :][counted] = 0.0
        try:
            near = _consistent(system, here, by)
            by = np.concatenate([near.q - here.q, near.v - here.v, near.s - here.s])
            before = near.at(system)
            after = moved(system, here, X, tau, by).at(system)
            a, b = expm(tau * X) @ before.a, after.a
            rates = np.delete(after.rate - before.rate, counted)
        except HolonomeError:
            return False
        if np.max(np.abs(a - b)) > _SAME * (np.max(np.abs(a)) + speed**2 / reach * 1e-3):
            return False
        if rates.size and np.max(np.abs(rates)) > _SAME * np.max(np.abs(before.rate)):
            return False
    return True
