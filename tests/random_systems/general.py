"""Ordinary differential equations and general problems of index 2 and 3: x⁽ᵛ⁾ = f − B y, 0 = g."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import holonome as hn
from random_systems.reference import NoReference, Reference, along, jacobian, reference_of
from random_systems.structures import Structure


class GeneralCase:
    """x of unit ``length``, and a unit of time."""

    def __init__(self, structure: Structure, random: np.random.Generator) -> None:
        self.structure, self.random = structure, random
        n = self.n = structure.size
        powers = random.uniform(-3, 3, 2) if structure.scaled else np.zeros(2)
        self.length, self.time = 10.0**powers
        self.order = 2 if structure.bodies == "index 3" else 1
        self.m = 0 if structure.bodies == "ode" else int(random.integers(1, max(2, n // 2)))
        self.t_end = float(random.uniform(0.4, 1.5))
        self.x0, self.v0 = random.uniform(-1, 1, n), random.normal(size=n)
        self._functions()
        if self.m:
            self._consistent()

    def _functions(self) -> None:
        random, n, m = self.random, self.n, self.m
        A, push = random.normal(size=(n, n)) / np.sqrt(n), random.normal(size=n)
        linear, waves = random.normal(size=(m, n)), 0.5 * random.normal(size=(m, n))
        stiff = 1e3 * (self.structure.spring == "stiff")
        jump, knots, table = 0.3, np.linspace(0, 2, 12), random.normal(size=12)
        drive, in_time, offset = 0.3 * self.structure.moving, self.structure.in_time, linear @ self.x0
        skew = 0.1 * random.normal(size=(n, m))
        self.breaks = {"jump": [jump], "table": list(knots)}.get(in_time, [])

        def f(t, x, v):
            rate = A @ x - x**3 + drive * np.sin(3 * t) * push - 0.3 * v
            if stiff:
                rate = rate - stiff * np.append(x[0] - np.cos(t), np.zeros(n - 1))
            if in_time == "jump":
                rate = rate + np.where(t > jump, 1.0, -1.0) * push
            if in_time == "table":
                rate = rate + np.interp(t, knots, table) * push
            return rate

        self.f = f
        self.g = lambda t, x: linear @ x + np.sin(waves @ x) - offset - drive * np.sin(2 * t)
        self.B = lambda t, x: (linear + np.cos(waves @ x)[:, np.newaxis] * waves).T + skew

    def _consistent(self) -> None:
        for _ in range(30):
            G, g = jacobian(lambda x: self.g(0.0, x), self.x0), self.g(0.0, self.x0)
            self.x0 = self.x0 - np.linalg.lstsq(G, g, rcond=None)[0]
        if not np.max(np.abs(self.g(0.0, self.x0))) < 1e-13:
            raise NoReference("no consistent start")
        for _ in range(2):
            residual = along(self.g, 0.0, self.x0, self.v0)[0]
            self.v0 = self.v0 - np.linalg.lstsq(G, residual, rcond=None)[0]

    def system(self) -> Any:
        L, T, f, g, B = self.length, self.time, self.f, self.g, self.B
        unit = L / T**self.order
        given: dict[str, Any] = {"n": self.n}
        if self.structure.parameters:
            given["parameters"] = {"strength": 2.0}
        match self.structure.bodies, self.structure.parameters:
            case "ode", True:
                return hn.ODE(lambda t, x, p: p.strength * unit * f(t / T, x / L, 0.0), **given)
            case "ode", False:
                return hn.ODE(lambda t, x: unit * f(t / T, x / L, 0.0), **given)
            case "index 2", True:
                rate = lambda t, x, p: p.strength * unit * f(t / T, x / L, 0.0)  # noqa: E731
            case "index 2", False:
                rate = lambda t, x: unit * f(t / T, x / L, 0.0)  # noqa: E731
            case _, True:
                rate = lambda t, x, v, p: p.strength * unit * f(t / T, x / L, v * T / L)  # noqa: E731
            case _:
                rate = lambda t, x, v: unit * f(t / T, x / L, v * T / L)  # noqa: E731
        kind = hn.Index2System if self.order == 1 else hn.Index3System
        return kind(rate, lambda t, x: B(t / T, x / L), lambda t, x: L * g(t / T, x / L), **given)

    def arguments(self, rtol: float) -> dict[str, Any]:
        L, T = self.length, self.time
        given: dict[str, Any] = {"t_span": (0.0, self.t_end * T), "q0": self.x0 * L, "rtol": rtol}
        if self.order == 2:
            given["v0"] = self.v0 * L / T
        if self.structure.parameters:
            given["parameters"] = {"strength": 1.0}
        return given

    def points(self, sol) -> np.ndarray:
        x = sol.x / self.length
        return x if self.order == 1 else np.vstack([x, sol.v * self.time / self.length])

    def residuals(self, sol) -> tuple[float, float]:
        if not self.m:
            return 0.0, 0.0
        rows = [np.abs(self.g(t / self.time, x / self.length)) for t, x in zip(sol.t, sol.x.T, strict=True)]
        return float(np.max(rows)), 0.0

    def rate(self, t, y):
        if time.perf_counter() > self.deadline:
            raise NoReference("the reference takes too long")
        x, v = y[: self.n], y[self.n :]
        f = self.f(t, x, v if self.order == 2 else 0.0)
        if self.m:
            G, B = jacobian(lambda x: self.g(t, x), x), self.B(t, x)
            first, second = along(self.g, t, x, v if self.order == 2 else np.zeros(self.n))
            f = f - B @ np.linalg.solve(G @ B, G @ f + (second if self.order == 2 else first))
        return np.concatenate([v, f]) if self.order == 2 else f

    def reference(self, times: np.ndarray) -> Reference:
        self.deadline = time.perf_counter() + 60
        n = self.n

        def start(size):
            x0, v0 = self.x0, self.v0
            if size:
                self.x0, self.v0 = (
                    x0 + size * self.random.normal(size=n),
                    v0 + size * self.random.normal(size=n),
                )
                if self.m:
                    self._consistent()
            moved, (self.x0, self.v0) = (self.x0, self.v0), (x0, v0)
            return np.concatenate(moved) if self.order == 2 else moved[0]

        blocks = [slice(0, n), slice(n, 2 * n)][: self.order]
        return reference_of(self.rate, start, times, self.breaks, blocks)

    def multipliers(self, reference) -> None:
        return None
