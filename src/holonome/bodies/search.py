"""Newton's method for closed positions, from one place or from many around it, in typical changes of all
coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from holonome.bodies.body import Body
from holonome.bodies.equations import Equations
from holonome.bodies.joint import BALL, SLIDE, TURN, Joint, typical_length
from holonome.locks import cached_property

CLOSED = 1e-11
SEEDS = 24
STEPS = 60
CLOSE = 0.3
"""A first find that misses what was wished for by more is compared with others."""


class Search:
    """Positions of a tree of joints in which rows vanish.

    Parameters
    ----------
    equations
        The mechanism in joint coordinates.
    joints, bodies
        By name, all joints and bodies.
    parameters
        The values of its parameters.
    t
        The time.
    """

    def __init__(
        self,
        equations: Equations,
        joints: Mapping[str, Joint],
        bodies: Mapping[str, Body],
        parameters: np.ndarray,
        t: float,
    ) -> None:
        self.equations, self.joints, self.bodies = equations, joints, bodies
        self.p, self.t = parameters, t
        symbols = equations.symbols
        self._q, self._v = symbols.q, symbols.v
        self._inputs = [symbols.t, symbols.q, symbols.v, symbols.p, symbols.s]
        self._s = np.zeros(symbols.s.numel())
        self.rows = list(equations.constraints.g)
        self.names = list(equations.constraints.g_names)

    def function(self, *values: ca.SX) -> Any:
        """Expressions as a function of q and v."""
        compiled = ca.Function("value", self._inputs, [ca.densify(value) for value in values])

        def call(q: np.ndarray, v: np.ndarray | None = None) -> list[np.ndarray]:
            v = np.zeros(q.size) if v is None else v
            found = compiled.call([self.t, q, v, self.p, self._s])
            return [np.array(value) for value in found]

        return call

    def _closing(self, rows: ca.SX, guess: np.ndarray) -> Any:
        """Rows and their derivatives as a function of q, in units in which typical changes are one: rows are
        divided by how much they change around the guess where all coordinates do so by such a change.
        """
        raw = self.function(rows, ca.jacobian(rows, self._q))
        random, size = np.random.default_rng(9), self._size
        places = [self._displaced(guess, seed, random, size) for seed in range(4)]
        changes = np.array([np.linalg.norm(raw(q)[1] * self._units, axis=1) for q in places])
        units = np.max(np.where(np.isfinite(changes), changes, 0.0), axis=0, initial=0.0)[:, None]
        units[units == 0] = 1.0

        def evaluate(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            value, jacobian = raw(q)
            return value / units, jacobian * self._units / units

        return evaluate

    def _search(
        self, evaluate: Any, guess: np.ndarray, seeds: int | None, missed: Any
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Newton's method from the guess and from places around it: so many, or until one will do."""
        random, found, best = np.random.default_rng(7), [], (np.inf, guess)
        for seed in range(seeds or SEEDS):
            q, gap = self._newton(evaluate, self._displaced(guess, seed, random, self._size))
            if gap < best[0]:
                best = gap, q
            if gap > CLOSED or any(self._distance(q, other) < 1e-6 for other in found):
                continue
            found.append(q)
            if seed == 0 and not seeds and missed(q) < CLOSE and self._regular(evaluate, q):
                break
        return found, best[1]

    def _newton(self, evaluate: Any, q: np.ndarray) -> tuple[np.ndarray, float]:
        """Gauss–Newton steps of least norm, shortened where the gap grows."""
        value, jacobian = evaluate(q)
        gap, last = _gap(value, jacobian), 0.0
        for _ in range(STEPS):
            if gap == 0 or not np.isfinite(gap):
                break
            step = -np.linalg.lstsq(jacobian, value.ravel(), rcond=1e-10)[0]
            step *= self._units * min(1.0, 1.5 / max(np.max(np.abs(step)), 1e-300))
            for share in (1.0, 0.5, 0.25, 0.1, 0.02):
                trial, trial_jacobian = evaluate(q + share * step)
                size = _gap(trial, trial_jacobian)
                if size < gap:
                    break
            else:
                break
            q, value, jacobian, last, gap = q + share * step, trial, trial_jacobian, gap, size
            if gap < 1e-15 or (gap < 1e-12 and gap > 0.5 * last):
                break
        return q, gap

    def _regular(self, evaluate: Any, q: np.ndarray) -> bool:
        """Whether no other branch passes here, so that the first find can be taken."""
        _, jacobian = evaluate(q)
        if not jacobian.size:
            return True
        values = np.linalg.svd(jacobian, compute_uv=False)
        return bool(np.all((values > 1e-6 * values[0]) | (values < 1e-12 * values[0])))

    def _displaced(self, guess: np.ndarray, seed: int, random: Any, size: float) -> np.ndarray:
        """The first guess, then places further and further from it."""
        q = guess.copy()
        if seed == 0:
            return q
        reach = min(1.0, 0.15 * seed)
        for link in self.equations.tree.links:
            if link.motion.of is not None:
                continue
            part = slice(link.first, link.first + link.motion.size)
            scale = size if link.motion.kind == SLIDE else 1.0 if link.motion.kind == BALL else np.pi
            q[part] += reach * scale * random.uniform(-1, 1, link.motion.size)
        return q

    def _distance(self, q: np.ndarray, other: np.ndarray) -> float:
        """How far two positions are from each other, in typical changes; full turns do not count."""
        return float(np.linalg.norm(self._difference(q, other)))

    def _difference(self, q: np.ndarray, other: np.ndarray) -> np.ndarray:
        d = (q - other) / self._units
        for link in self.equations.tree.links:
            if link.motion.kind == TURN and link.motion.of is None:
                d[link.first] = (d[link.first] + np.pi) % (2 * np.pi) - np.pi
            if link.motion.kind == BALL:
                part = slice(link.first, link.first + 4)
                d[part] = min(q[part] - other[part], -q[part] - other[part], key=np.linalg.norm)
        return d

    @cached_property
    def _units(self) -> np.ndarray:
        """Typical changes of the coordinates: a length of the mechanism where something slides, else one."""
        found = np.ones(self._q.numel())
        for link in self.equations.tree.links:
            if link.motion.kind == SLIDE and link.motion.of is None:
                found[link.first] = self._size
        return found

    @cached_property
    def _size(self) -> float:
        """A length that is typical of the mechanism."""
        return typical_length(self.joints.values(), lambda value: self._numbers(value).ravel())

    def _numbers(self, value: ca.SX) -> np.ndarray:
        """An expression of the parameters in numbers."""
        return np.array(ca.evalf(ca.substitute(value, self.equations.symbols.p, self.p)))


def _gap(value: np.ndarray, jacobian: np.ndarray) -> float:
    """The largest residual; infinite where rows have no value or no derivative, as where two points of a rope
    coincide.
    """
    finite = np.all(np.isfinite(value)) and np.all(np.isfinite(jacobian))
    return float(np.max(np.abs(value), initial=0.0)) if finite else np.inf
