"""A random system as holonome sees it, in units of its own, and what is known about its motion."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import holonome as hn
from random_systems import general, mechanisms
from random_systems.reference import Motion, NoReference, Reference, reference_of
from random_systems.structures import GENERAL, Structure, draw

NOT_TRACED = {"one": 1.0}
"""A function that looks something up here can only be called."""

LIMIT = 20.0
"""Seconds that a reference may take."""


def written(names: str, body: str, **captured: Any) -> Any:
    """A function with these arguments, as a user would write it for this one system."""
    return eval(f"lambda {names}: {body}", {"np": np, "float": float, "NOT_TRACED": NOT_TRACED, **captured})


def called(q: str) -> str:
    """The text of q such that it cannot be traced."""
    return f"NOT_TRACED['one'] * np.array([float(x) for x in {q}])"


class Case:
    """The system with this seed."""

    def __new__(cls, seed: int):
        random = np.random.default_rng(seed)
        structure = draw(random)
        kind = general.GeneralCase if structure.bodies in GENERAL else MechanicalCase
        return kind(structure, random)


class MechanicalCase:
    """A mechanism with units of length, time, mass and of its constraints."""

    def __init__(self, structure: Structure, random: np.random.Generator) -> None:
        self.structure, self.random = structure, random
        self.part = mechanisms.make(random, structure)
        powers = random.uniform(-6, 6, 4) if structure.scaled else np.zeros(4)
        self.length, self.time, self.mass, self.row = 10.0**powers
        self.time **= 0.5
        inertial = structure.mass == "of q" or structure.inertial == "derived"
        self.motion = Motion(self.part, inertial, LIMIT)
        self.q0, self.v0 = self.motion.consistent(self.part.q0, self.part.v0)
        C = self.motion.levels(0.0, self.q0, self.v0)[0]
        if C.shape[0] and np.linalg.matrix_rank(C) >= self.part.n:
            raise NoReference("nothing can move")
        self.t_end = self.part.t_end

    @property
    def multiplier(self) -> float:
        """The unit of λ of position constraints."""
        return self.mass * self.length / self.time**2 * self.length / self.row

    def multipliers_of(self, sol) -> np.ndarray:
        """λ at the end in our units; those of velocity constraints act on v."""
        lam = sol.lam[:, -1] / self.multiplier
        if self.part.velocity is not None:
            lam[-1] *= self.time
        return lam

    def system(self) -> hn.System:
        part, structure = self.part, self.structure
        L, T, unit = self.length, self.time, self.mass * self.length / self.time**2
        scale = {"L": L, "T": T, "unit": unit, "row": self.row, "lam_unit": self.multiplier}
        position = called("q / L") if structure.called == "force" else "q / L"
        s, w = ("s" if part.states else "()"), ("w" if part.unknowns else "()")
        lam = "lam / lam_unit" if structure.friction else "()"
        strength = "p.strength * " if structure.parameters else ""
        names = ["t", "q", "v", *(["s"] if part.states else []), *(["w"] if part.unknowns else [])]
        names += (["lam"] if structure.friction else []) + (["p"] if structure.parameters else [])
        text = f"{strength}unit * f(t / T, {position}, v * T / L, {s}, {w}, {lam})"
        if structure.inertial in ("in force", "found in force"):
            text += " - unit * c(q / L, v * T / L)"
        arguments: dict[str, Any] = {
            "force": written(", ".join(names), text, f=part.force, c=part.inertial, **scale),
            "mass": self._mass(),
            "n": part.n,
        }
        if structure.inertial in ("derived", "in force"):
            arguments["inertial"] = structure.inertial
        if structure.parameters:
            arguments["parameters"] = {"strength": 2.0, "shift": np.array([0.1, 0.2])}
        self._add_rows(arguments, scale)
        self._add_rest(arguments, scale)
        return hn.System(**arguments)

    def _mass(self) -> Any:
        part, scale = self.part, {"L": self.length, "T": self.time, "unit": self.mass}
        match self.structure.mass:
            case "of q":
                return written("q", "unit * M(0.0, q / L)", M=part.mass, **scale)
            case "of t":
                q0 = self.q0
                return written("t", "unit * M(t / T, q0)", M=part.mass, q0=q0, **scale)
        constant = self.mass * part.mass(0.0, self.q0)
        return np.diag(constant).copy() if self.structure.mass == "constant" else constant

    def _add_rows(self, arguments, scale) -> None:
        part, structure = self.part, self.structure
        if part.constraint is not None:
            position = called("q / L") if structure.called == "constraint" else "q / L"
            names = ["t", "q", *(["w"] if part.unknowns else []), *(["p"] if structure.parameters else [])]
            shift = " + row * p.shift[1]" if structure.parameters else ""
            text = f"row * g(t / T, {position}, {'w' if part.unknowns else '()'}){shift}"
            arguments["constraint"] = written(", ".join(names), text, g=part.constraint, **scale)
        if part.velocity is not None:
            text = "row * a(t / T, q / L, v * T / L)"
            arguments["velocity_constraint"] = written("t, q, v", text, a=part.velocity, **scale)
        if part.elastic is not None:
            c, K, D = part.elastic
            deformation = written("t, q", "L * c(t / T, q / L)", c=c, **scale)
            arguments["elastic"] = hn.Elastic(
                deformation, K * self.mass / self.time**2, D * self.mass / self.time
            )

    def _add_rest(self, arguments, scale) -> None:
        part = self.part
        if part.states:
            arguments["states"] = {f"s{i}": value for i, value in enumerate(part.states)}
            arguments["rate"] = written(
                "t, q, v, s", "r(t / T, q / L, v * T / L, s) / T", r=part.rate, **scale
            )
        if part.unknowns:
            arguments["unknowns"] = {"w": float(self.q0[0])}
            arguments["equations"] = written("q, w", "e(q / L, w)", e=part.equations, **scale)
        if self.structure.invariant:
            E = "unit * L * (0.5 * (v * T / L) @ M(0.0, q / L) @ (v * T / L) + V(q / L))"
            arguments["invariant"] = written("q, v", E, M=part.mass, V=part.potential, **scale)

    def arguments(self, rtol: float) -> dict[str, Any]:
        """What ``solve`` is given besides system and method."""
        L, T = self.length, self.time
        given = {"t_span": (0.0, self.t_end * T), "q0": self.q0 * L, "v0": self.v0 * L / T, "rtol": rtol}
        if self.structure.parameters:
            given["parameters"] = {"strength": 1.0, "shift": np.zeros(2)}
        return given

    def points(self, sol) -> np.ndarray:
        """(q, v, s) by column in our units."""
        scale = self.length / self.time
        return np.vstack(
            [sol.q / self.length, sol.v / scale, sol.s if self.part.states else np.zeros((0, sol.t.size))]
        )

    def residuals(self, sol) -> tuple[float, float]:
        """The largest violations at some of the points."""
        y, n = self.points(sol), self.part.n
        some = np.unique(np.linspace(0, sol.t.size - 1, 12).astype(int))
        found = [self.motion.residuals(sol.t[i] / self.time, y[:n, i], y[n : 2 * n, i]) for i in some]
        return max(g for g, _ in found), max(gv for _, gv in found)

    def reference(self, times: np.ndarray) -> Reference:
        n, m = self.part.n, len(self.part.states)

        def start(size):
            noise = size * self.random.normal(size=2 * n) if size else np.zeros(2 * n)
            q, v = self.motion.consistent(self.q0 + noise[:n], self.v0 + noise[n:])
            return np.concatenate([q, v, self.part.states])

        compiled = self.motion.compiled()
        blocks = [slice(0, n), slice(n, 2 * n), slice(2 * n, 2 * n + m)]
        found = reference_of(
            partial(self.motion.rate, terms=compiled), start, times, self.part.breaks, blocks
        )
        self.motion.check(compiled, found)
        drift = max(self.motion.residuals(times[-1], *np.split(found.y[: 2 * n, -1], 2)))
        if drift > 1e-8:
            raise NoReference(f"the reference drifts by {drift:.0e}")
        return found

    def multipliers(self, reference: Reference) -> np.ndarray | None:
        """λ at the end in our units; None where they are not unique."""
        n = self.part.n
        y = reference.y[:, -1]
        if not (self.part.constraint or self.part.velocity):
            return None
        _, lam = self.motion.accelerations(reference.times[-1], y[:n], y[n : 2 * n], y[2 * n :])
        return None if self.motion.redundant else lam
