"""The examples of index 2, and the methods of section 6."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import holonome as hn
from holonome.papers.paper import load

PAPER = load("ascher_lin_1995")

CLOSE, CLOSE_FOURTH = 0.05, 0.15
"""Allowed relative deviations of an error, in iterations 1 to 3, and in iteration 4, where only the error of
Heun's method is left.
"""

SYMBOLS = {
    "method": "α₁ = 1: not stiff, one iteration; α₁ = 0: iterated; E: the matrix in front of the penalty; "
    "Baumgarte: (2.13)",
    "it.": "iterations s",
    "t": "time",
    "ex": "largest error of the components of x",
    "drift": "largest |g|",
}

CRITERION = (
    f"every value within {100 * CLOSE:.0f} % of the published one, in iteration 4 within "
    f"{100 * CLOSE_FOURTH:.0f} %"
)

Exact = Callable[[Any], np.ndarray]
Problem = tuple[Any, Exact]
"""An `hn.Index2System` and its solution."""


def heun(step: float, **srm: Any) -> hn.Method:
    """The paper's method: y₀ ≡ 0, Heun at constant step."""
    return hn.Method(hn.SRM(y0=0.0, **srm), hn.RungeKutta("heun", step=step))


def baumgarte(step: float) -> hn.Method:
    """(2.13) with α₂ = 1/h."""
    return heun(step, eps=0.0, iterations=1, E="inverse", alpha=(1.0, 1 / step))


def example_3_1_problem() -> Problem:
    """Example 3.1; P depends on the direction in which (0, π) is approached. The first entry of f is printed
    as sin x₁, with which the stated solution is none.
    """

    def f(x):
        return np.array([np.sin(x[1]), 2 * np.sin(x[1]) - np.sin(x[0])]) / (np.sin(x[1]) - np.sin(x[0]))

    system = hn.Index2System(
        f, lambda x: np.sin(x), lambda x: -np.cos(x[0]) - np.cos(x[1]), n=2, name="example 3.1"
    )
    return system, lambda t: np.array([t - np.pi / 2, t + np.pi / 2])


def example_6_1() -> Problem:
    """Example 6.1, without a singularity. f₁ is printed as 1 − eᵗ; the stated solution belongs to 1 − e⁻ᵗ."""
    system = hn.Index2System(
        lambda t: np.array([1 - np.exp(-t), np.cos(t) + np.exp(t) * np.sin(t)]),
        lambda x: x,
        lambda t, x: (x @ x - np.exp(-2 * t) - np.sin(t) ** 2) / 2,
        n=2,
        name="example 6.1",
    )
    return system, lambda t: np.array([np.exp(-t), np.sin(t)])


def example_6_2() -> Problem:
    """Example 6.2: singular at t = 1/2, where y is bounded."""
    system = hn.Index2System(
        lambda t: np.array([1 + (t - 0.5) * np.exp(t), 2 * t + (t**2 - 0.25) * np.exp(t)]),
        lambda x: x,
        lambda t, x: (x @ x - (t - 0.5) ** 2 - (t**2 - 0.25) ** 2) / 2,
        n=2,
        name="example 6.2",
    )
    return system, lambda t: np.array([t - 0.5, t**2 - 0.25])


def example_6_3() -> Problem:
    """Example 6.3: singular at t = 1/2, where y is unbounded."""
    system = hn.Index2System(
        lambda t, x: np.array([-x[0] + x[1] - np.sin(t) - (1 + 2 * t), 0.0]),
        lambda x: np.array([0.0, x[0]]),
        lambda t, x: x[0] ** 2 + x[0] * (x[1] - np.sin(t) - 1 + 2 * t),
        n=2,
        name="example 6.3",
    )
    return system, lambda t: np.array([1 - 2 * t, np.sin(t)])


def errors(
    problem: Problem, method: hn.Method, times: Sequence[float], end: float = 1.0
) -> dict[float, dict[str, float]]:
    """Error and drift at the wanted times; NaN after a failure. The nearest point of the mesh is taken, so
    that a failure at the singular point is seen as the paper shows it.
    """
    system, exact = problem
    sol = hn.solve(system, (0, end), exact(0.0), method=method)
    ex, drift, found = np.max(np.abs(sol.x - exact(sol.t)), axis=0), np.max(np.abs(sol.g), axis=0), {}
    for t in times:
        i = int(np.argmin(np.abs(sol.t - t)))
        near = abs(sol.t[i] - t) < 1e-6
        found[t] = {"ex": float(ex[i]) if near else np.nan, "drift": float(drift[i]) if near else np.nan}
    return found
