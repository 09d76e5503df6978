"""Driving coordinates d(q) of a system, by name, and the quantities that are measured along with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from holonome.equations.program import Program
from holonome.errors import ModelError
from holonome.problem.system import System


@dataclass(frozen=True, eq=False)
class Driven:
    """A system with driving coordinates d(q)."""

    system: System
    names: tuple[str, ...]
    function: ca.Function  # (t, q, v, p, s) → d, d_q, curvature

    def __reduce__(self) -> tuple:
        return _driven_of, (self.system, self.names, Program.of(self.function))

    def gradient(self, t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        return self.at(t, q, np.zeros(q.size), s)[1]

    def at(
        self, t: float, q: np.ndarray, v: np.ndarray, s: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        d, by_q, curvature = self.function(t, q, v, self.system.parameters.flat, s)
        return np.array(d).ravel(), np.array(by_q).reshape(-1, q.size), np.array(curvature).ravel()

    def measured(
        self, name: str, t: np.ndarray, q: np.ndarray, v: np.ndarray, s: np.ndarray
    ) -> dict[str, np.ndarray]:
        """A quantity by name at many points."""
        found = self.system.measured(name)
        if not found:
            raise ModelError(f"there is no {name!r}; give coordinates, joints or points of bodies by name")
        symbols = self.system.symbols
        inputs = [symbols[key] for key in ("t", "q", "v", "p", "s")]
        function = ca.Function("measured", inputs, [ca.densify(ca.vertcat(*found.values()))])
        p = np.tile(self.system.parameters.flat[:, None], t.size)
        rows = np.array(function.map(t.size)(t[None, :], q, v, p, s))
        labels = [name] if len(found) == 1 else list(found)
        return {
            label: np.unwrap(row) if label.endswith("angle") or _is_angle(self.system, name) else row
            for label, row in zip(labels, rows, strict=True)
        }


def _driven_of(system: System, names: tuple[str, ...], program: Program) -> Driven:
    """Drives from a pickle."""
    return Driven(system, names, program.function("drive"))


def _is_angle(system: Any, name: str) -> bool:
    joint = getattr(system, "joints", {}).get(name)
    return joint is not None and [c.kind for c in joint.coordinates] == ["angle"]


def driven_by(system: System, names: Sequence[str]) -> Driven:
    """A system with these driving coordinates."""
    if system.model.h.numel():
        raise ModelError(
            "kinematics: this system has velocity constraints, under which positions depend on the way; use "
            "hn.solve with a drive"
        )
    parts = []
    for name in names:
        found = system.measured(name)
        if not found or len(found) != 1:
            there = ", ".join(found) if found else "coordinates, joints and points of bodies have names"
            raise ValueError(f"drive: {name!r} is not one coordinate; {there}")
        if ca.depends_on(next(iter(found.values())), system.symbols["v"]):
            raise ValueError(f"drive: {name!r} is a velocity; give what has this rate")
        parts += list(found.values())
    symbols = system.symbols
    d = ca.densify(ca.vertcat(*parts))
    by_q = ca.densify(ca.jacobian(d, symbols["q"]))
    curvature = ca.densify(ca.jtimes(by_q @ symbols["v"], symbols["q"], symbols["v"]))
    inputs = [symbols[name] for name in ("t", "q", "v", "p", "s")]
    return Driven(system, tuple(names), ca.Function("drive", inputs, [d, by_q, curvature]))
