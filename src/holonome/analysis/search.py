"""The search for an equilibrium: Newton's method, relaxation where that fails, and why there is none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from holonome.analysis.asked import first_multipliers
from holonome.analysis.newton import Found, least_norm, newton, relative
from holonome.analysis.problem import Problem
from holonome.analysis.words import listed
from holonome.dynamics.start import consistent_state
from holonome.errors import HolonomeError, NoEquilibrium

_RELAXATIONS, _REACH, _SLOWEST = 300, 0.1, 1e4
_REMEDY = "begin elsewhere, free a parameter or an input with free=…, or say with speed=… what moves"


def solved(problem: Problem, x: np.ndarray) -> Found:
    """Newton's method; where that fails at rest, the system is let relax first."""
    found = _newton(problem, x)
    if not found.converged and not problem.moving and problem.system.n:
        relaxed = _relaxed(problem, x)
        second = _newton(problem, relaxed)
        found = second if second.converged or second.residual < found.residual else found
    if not found.converged:
        raise NoEquilibrium(_why_none(problem, found))
    return found


def _newton(problem: Problem, x: np.ndarray) -> Found:
    return newton(problem, x, problem.units(x), problem.scaled, forces=problem.system.n)


def _relaxed(problem: Problem, x: np.ndarray) -> np.ndarray:
    """Follow the motion of a system that is damped so strongly that it hardly has speed, (M/τ) q′ = forces,
    in longer and longer steps of the implicit Euler method; the best position on the way.
    """
    at, n = problem.layout, problem.system.n
    tau, best, reach = 0.0, (np.inf, x), float(np.max(problem.units(x)[at["q"]]))
    for _ in range(_RELAXATIONS):
        limit = _REACH * max(float(np.max(np.abs(x[at["q"]]))), reach)
        try:
            R, J = problem(x)
            M = problem.derivatives(x).block("balance", "a")
            tau = tau or _first_step(problem, x, limit)
        except HolonomeError:
            return best[1]
        left = relative(R, J, x, problem.units(x))
        best = min(best, (left, x), key=lambda pair: pair[0])
        if left < 1e-6:
            break
        M = M if sp.issparse(J) else M.toarray()
        while tau > 1e-300:
            damped = J.tolil() if sp.issparse(J) else J.copy()
            damped[:n, at["q"]] = damped[:n, at["q"]] + M / tau
            matrix = damped.tocsc() if sp.issparse(J) else damped
            step = least_norm(matrix, R, problem.units(x), problem.scaled)
            moved = float(np.max(np.abs(step[at["q"]])))
            if np.isfinite(moved) and moved <= limit:
                break
            tau *= max(0.5 * limit / moved, 1e-3) if np.isfinite(moved) else 0.1
        else:
            break
        x, tau = x + step, min(2 * tau, _SLOWEST * _first_step(problem, x, limit))
    return best[1]


def _first_step(problem: Problem, x: np.ndarray, limit: float) -> float:
    """The τ in which the accelerations move the system by a tenth of a step."""
    state = problem.place(x).at(problem.system_at(x))
    return 0.1 * limit / max(float(np.max(np.abs(state.a))), 1e-300)


def _why_none(problem: Problem, found: Found) -> str:
    """Which equations stay open, in words."""
    what = "steady motion" if problem.moving else "equilibrium"
    x = _closed(problem, found.x)
    system, here = problem.system_at(x), problem.place(x)
    try:
        derivatives = problem.derivatives(x)
        g, balance, r = derivatives.of("g"), derivatives.of("balance"), derivatives.of("r")
    except HolonomeError as error:
        return f"no {what} was found: {error}"
    reach = max(np.max(np.abs(here.q), initial=0.0), 1e-3)
    if g.size and np.max(np.abs(g)) > 1e-6 * reach * max(abs(derivatives.block("g", "q")).max(), 1e-300):
        worst = system.constraint_names[int(np.argmax(np.abs(g)))]
        return f"no {what} was found near the guess: {worst} stays open by {np.max(np.abs(g)):.3g}; {_REMEDY}"
    if balance.size:
        worst = int(np.argmax(np.abs(balance)))
        if abs(balance[worst]) > 0:
            return (
                f"no {what} was found near the guess: nothing balances the force {-balance[worst]:.4g} along "
                f"{system.names[worst]!r} in the best position found ({listed(system.names, here.q)}); "
                f"{_REMEDY}"
            )
    worst = int(np.argmax(np.abs(r))) if r.size else 0
    name = list(system.states)[worst] if r.size else "a held position"
    return f"no {what} was found near the guess: {name!r} does not stay; {_REMEDY}"


def _closed(problem: Problem, x: np.ndarray) -> np.ndarray:
    """The nearest position in which constraints hold, with the multipliers that come closest to balance."""
    here, system = problem.place(x), problem.system_at(x)
    if not system.m:
        return x
    try:
        y = consistent_state(system, np.concatenate([here.q, here.v, here.s]), here.t, repair=True).state
        there = replace(here, q=y[: system.n])
        found = problem.with_values(problem.values(x))
        return found.unknowns(there, first_multipliers(found, there))
    except (HolonomeError, np.linalg.LinAlgError):
        return x
