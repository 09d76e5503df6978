"""Assembly: positions and velocities in which all loops close, from those of some joints and bodies."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.body import Body
from holonome.bodies.geometry import rotation, turned
from holonome.bodies.joint import ANGLE, BALL, QUATERNION, Joint
from holonome.bodies.kinematics import _nearest
from holonome.bodies.search import CLOSE, CLOSED, SEEDS, STEPS, Search
from holonome.bodies.starting_values import by_name, motion_of, named_values, place_of, triple, turned_from
from holonome.errors import InconsistentStart
from holonome.locks import cached_property

_MANY_SEEDS = 96
_LARGEST_SEARCHED = 60
"""Coordinates up to which a position is looked for that is not special."""


@dataclass(frozen=True)
class Near:
    """A value to begin the search for a closed position with, rather than one that must hold."""

    value: Any


def near(value: Any) -> Near:
    """A value that an assembly need not have, but shall be close to: it chooses a branch.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.near(1.2)
    Near(value=1.2)
    """
    return Near(value)


@dataclass(frozen=True, eq=False)
class Held:
    """Something that has a given value: an expression that vanishes, and what messages call it."""

    name: str
    residual: ca.SX


class Assembly(Search):
    """Finds closed positions and velocities of a mechanism, in the coordinates of its tree of joints."""

    def positions(self, start: Mapping[str, Any] | None, every: bool = False) -> list[np.ndarray]:
        """Closed positions, the nearest to where the search begins first; InconsistentStart if none is
        found.
        """
        guess, held, wished = self._first_guess(), [], []
        for name, value in by_name("start", start).items():
            guess, found = self._read(name, value, guess)
            (wished if isinstance(value, Near) else held).extend(found)
        if not (held or wished or self.equations.tree.closing or self.equations.couplings):
            return [guess]
        rows = ca.vertcat(*self.rows, *[item.residual for item in held])
        names = self.names + [item.name for item in held]
        evaluate = self._closing(rows, guess)
        missed: Any = lambda q: 0.0  # noqa: E731
        if wished:
            wishes = ca.vertcat(*[item.residual for item in wished])
            away = self._closing(wishes, guess)
            missed = lambda q: round(float(np.linalg.norm(away(q)[0])), 6)  # noqa: E731
            guess = self._wished(ca.vertcat(rows, wishes), guess, missed)
        seeds = _MANY_SEEDS if every else None
        found = self._straight(rows, start, guess, seeds, missed)
        if not found:
            found, best = self._search(evaluate, guess, seeds, missed)
        if not found:
            self._refuse(names, evaluate, self.function(rows), best)
        if every:
            found = self._branches(evaluate, found, guess)
        return sorted(found, key=lambda q: (missed(q), self._distance(q, guess)))

    def _branches(self, evaluate: Any, found: list[np.ndarray], guess: np.ndarray) -> list[np.ndarray]:
        """Where something is free to move, of each branch the position that is nearest to the guess."""
        if not _null_space(evaluate(found[0])[1]).shape[1]:
            return found
        kept: list[np.ndarray] = []
        for q in found:
            q = self._drawn_near(evaluate, q, guess)
            if all(self._distance(q, other) > 1e-3 for other in kept):
                kept.append(q)
        return kept

    def _drawn_near(self, evaluate: Any, q: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """Moved through closed positions as near to a place as they come without a detour."""
        for _ in range(STEPS):
            null = _null_space(evaluate(q)[1])
            pull = null @ (null.T @ self._difference(guess, q))
            length = float(np.linalg.norm(pull))
            if length < 1e-7:
                break
            trial, gap = self._newton(evaluate, q + self._units * pull * min(1.0, 0.5 / length))
            if gap > CLOSED or self._distance(trial, guess) >= self._distance(q, guess):
                break
            q = trial
        return q

    def _wished(self, rows: ca.SX, guess: np.ndarray, missed: Any) -> np.ndarray:
        """Where to begin so that wishes come true, as far as they can beside the rows; from places around it
        where none is near that.
        """
        evaluate, random = self._closing(rows, guess), np.random.default_rng(7)
        found = []
        for seed in range(4):
            found.append(self._newton(evaluate, self._displaced(guess, seed, random, self._size))[0])
            if missed(found[-1]) < CLOSE:
                break
        return min(found, key=missed)

    def _straight(
        self, rows: ca.SX, start: Mapping[str, Any] | None, guess: np.ndarray, seeds: int | None, missed: Any
    ) -> list[np.ndarray]:
        """Positions in which no beam is deformed."""
        deformations = self._deformations(start)
        if not deformations.numel():
            return []
        both = ca.vertcat(rows, deformations)
        return self._search(self._closing(both, guess), guess, seeds, missed)[0]

    def _deformations(self, given: Mapping[str, Any] | None) -> ca.SX:
        """Deformations of beams, which start without them if they can and if none is given."""
        names = [name for name in given or {} if name in self.joints]
        if any(self.joints[name].what in ("bend", "deflection") for name in names):
            return ca.SX(0, 1)
        beams = [spring for spring in self.equations.springs if spring.what == "beam"]
        return ca.vertcat(ca.SX(0, 1), *[spring.deformation(self.equations.scene) for spring in beams])

    def _first_guess(self) -> np.ndarray:
        guess = np.zeros(self._q.numel())
        for link in self.equations.tree.links:
            if link.motion.kind == BALL:
                guess[link.first] = 1.0
        for name in self._free:
            self._put(guess, name, np.zeros(self.bodies[name].dimension))
        return guess

    @cached_property
    def _free(self) -> dict[str, Joint]:
        """What places the bodies that have coordinates of their own, by their names."""
        joints = [link.joint for link in self.equations.tree.links if link.joint.what == "free"]
        return {joint.points[-1].body.name: joint for joint in joints}

    def _put(self, guess: np.ndarray, name: str, position: np.ndarray) -> None:
        """Put the origin of a body with coordinates of its own, which may be those of its centre of mass,
        somewhere; its rotation is that of the guess.
        """
        size, places = position.size, self.equations.tree.places[self._free[name].name]
        if len(places) == size:
            guess[places] = position
            return
        arm = self._numbers(self._free[name].points[-1].position).ravel()
        turn = guess[places[size:]]
        R = rotation(ca.SX(turn)) if size == 3 else turned(2, ca.SX(turn[0]))
        guess[places[:size]] = position + np.array(ca.evalf(R @ arm)).ravel()[:size]

    def _refuse(self, names: list[str], evaluate: Any, gaps: Any, q: np.ndarray) -> None:
        value, gap = np.abs(evaluate(q)[0].ravel()), np.abs(gaps(q)[0].ravel())
        worst = int(np.argmax(value))
        others = self._owners(names, value, but=names[worst])
        drives = {coupling.name for coupling in self.equations.couplings if coupling.what == "drive"}
        against, loop = "", "the lengths and axes of its loop"
        if drives & {names[worst], *others} and others:
            against, loop = f" against {', '.join(others)}", "what drives prescribe at this time"
        raise InconsistentStart(
            f"start: the mechanism cannot be assembled so: {names[worst]!r} stays open by {gap[worst]:.3g}"
            f"{against} in the best position found; look at {loop}, or give other values in start, with "
            "hn.near(...) for those that need only be close"
        )

    def _owners(self, names: list[str], residuals: np.ndarray, but: str = "") -> list[str]:
        """What the rows belong to that a least-squares solution cannot satisfy together."""
        rows = np.flatnonzero(residuals > 1e-3 * np.max(residuals))
        owner = self.equations.constraints.owner
        found = dict.fromkeys(owner.get(names[row], names[row]) for row in rows)
        return [name for name in found if name != owner.get(but, but)]

    def velocities(self, q: np.ndarray, speed: Mapping[str, Any] | None) -> np.ndarray:
        """Velocities that all rows allow, with the given ones; of these the one of least kinetic energy."""
        symbols, constraints = self.equations.symbols, self.equations.constraints
        g, h = ca.vertcat(*constraints.g), ca.vertcat(*constraints.h)
        w = ca.vertcat(ca.jtimes(g, self._q, self._v) + ca.jacobian(g, symbols.t), h)
        given = by_name("speed", speed)
        held = [item for name, value in given.items() for item in self._read_speed(name, value)]
        rows = ca.vertcat(w, *[item.residual for item in held])
        C, b = self.function(ca.jacobian(rows, self._v), rows)(q)
        if not np.any(b):
            return np.zeros(q.size)
        C, units = self._in_units(C)
        b = b.ravel() / units
        v = np.linalg.lstsq(C, -b, rcond=1e-9)[0]
        left = np.abs(C @ v + b)
        scale = np.max(np.abs(b), initial=0.0) + np.max(np.abs(v), initial=0.0)
        if np.any(left > 1e-8 * scale):
            left *= units
            names = [*constraints.g_names, *constraints.h_names, *[item.name for item in held]]
            worst = int(np.argmax(left))
            if not held:
                raise InconsistentStart(
                    f"{', '.join(self._owners(names, left))}: no velocity satisfies all of them, "
                    f"{names[worst]!r} is off by {left[worst]:.3g}; drives that contradict each other must "
                    "have laws that agree, or one of them must go"
                )
            raise InconsistentStart(
                f"speed: these velocities contradict each other or the constraints: {names[worst]!r} is off "
                f"by {left[worst]:.3g}; give fewer of them"
            )
        null = _null_space(C)
        bending = self._deformations(speed)
        if bending.numel() and null.shape[1]:
            J = self.function(ca.jacobian(bending, self._q))(q)[0] * self._units
            v = v - null @ np.linalg.lstsq(J @ null, J @ v, rcond=1e-9)[0]
            null = null @ _null_space(J @ null)
        (M,) = self.function(self.equations.M)(q)
        M *= self._units[:, None] * self._units
        inner = null.T @ M @ null
        return self._units * (v - null @ np.linalg.lstsq(inner, null.T @ M @ v, rcond=1e-12)[0])

    def _in_units(self, C: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows for velocities in typical changes, and how long these rows have been."""
        C = C * self._units
        if not np.all(np.isfinite(C)):
            raise InconsistentStart(
                "start: constraints have no derivatives in this position, as where two points of a rope "
                "coincide; give another one"
            )
        units = np.linalg.norm(C, axis=1)
        units[units == 0] = 1.0
        return C / units[:, None], units

    def walk(self, q: np.ndarray, steps: int = 12) -> list[np.ndarray]:
        """Closed positions around one, on both sides of it."""
        rows = ca.vertcat(*self.rows)
        evaluate, found = self._closing(rows, q), [q]
        random = np.random.default_rng(8)
        for sign in (1.0, -1.0):
            here, ahead = q, np.zeros(q.size)
            for _ in range(steps):
                null = _null_space(evaluate(here)[1])
                if not null.shape[1]:
                    return found
                direction = null @ (null.T @ (ahead if np.any(ahead) else sign * random.normal(size=q.size)))
                ahead = direction / max(np.linalg.norm(direction), 1e-300)
                here, gap = self._newton(evaluate, here + 0.35 * ahead * self._units)
                if gap > CLOSED:
                    break
                found.append(here)
            random = np.random.default_rng(8)
        return found

    def generic(self) -> np.ndarray:
        """A closed position that is not special: of those found in which the mechanism can move, but for what
        drives prescribe, one of the fewest freedoms.  In the first position of all, bars may lie on top of
        each other and do what they cannot elsewhere.
        """
        first, constraints = self.positions(None)[0], self.equations.constraints
        rows = len(constraints.g) + len(constraints.h)
        drives = {coupling.name for coupling in self.equations.couplings if coupling.what == "drive"}
        if not rows or first.size > _LARGEST_SEARCHED:
            return first
        if first.size + len(drives) > rows == self._rank(first, but=set()):
            return first
        closing = ca.vertcat(*constraints.g)
        others, _ = self._search(self._closing(closing, first), first, SEEDS, lambda q: 0.0)

        def special(q: np.ndarray) -> tuple[bool, int]:
            free = q.size - self._rank(q, but=drives)
            return free == 0, free

        return min([first, *others], key=special)

    def freedom(self, q: np.ndarray) -> tuple[int, list[str]]:
        """Degrees of freedom, and the names of the rows that follow from others, at a position."""
        from holonome.dynamics.rank import dependent_rows

        constraints = self.equations.constraints
        rank, dependent = dependent_rows(self._rates(q))
        names = [*constraints.g_names, *constraints.h_names]
        return q.size - rank, [*constraints.vanishing, *[names[k] for k in dependent]]

    def _rank(self, q: np.ndarray, but: Set[str]) -> int:
        """The rank of all rows but some, by their names."""
        from holonome.dynamics.rank import dependent_rows

        constraints = self.equations.constraints
        names = [*constraints.g_names, *constraints.h_names]
        return dependent_rows(self._rates(q)[[name not in but for name in names]])[0]

    def _rates(self, q: np.ndarray) -> np.ndarray:
        """The rows that velocities satisfy, in typical changes."""
        constraints = self.equations.constraints
        rows = ca.vertcat(ca.jtimes(ca.vertcat(*constraints.g), self._q, self._v), *constraints.h)
        (C,) = self.function(ca.jacobian(rows, self._v))(q)
        return self._in_units(C)[0]

    def _read(self, name: str, value: Any, guess: np.ndarray) -> tuple[np.ndarray, list[Held]]:
        """A value of ``start``: what vanishes then, and a guess that has it where that is simple."""
        wished = isinstance(value, Near)
        value = value.value if wished else value
        if name in self.joints:
            pairs = self._of_joint("start", self.joints[name], value, wished)
            guess = self._with_guess(guess, self.joints[name], pairs)
        elif name in self.bodies:
            pairs = self._of_body(self.bodies[name], value)
            guess = self._with_body_guess(guess, name, value)
        else:
            raise self._unknown("start", name)
        return guess, [Held(name, residual) for _, residual in pairs]

    def _unknown(self, argument: str, name: str) -> InconsistentStart:
        there = ", ".join([*self.joints, *self.bodies])
        return InconsistentStart(f"{argument}: there is no joint or body {name!r}; there are {there}")

    def _of_joint(
        self, argument: str, joint: Joint, value: Any, wished: bool
    ) -> list[tuple[tuple[int, Any], ca.SX]]:
        """Pairs of (number of the coordinate, value) and residual; full turns do not count in wishes."""
        values = self.equations.kinematics.coordinates(joint)
        if isinstance(value, Rotation) and joint.what == "spherical" and value.single:
            R = self._relative_rotation(joint)
            return [((-1, value), x) for x in ca.vertsplit(turned_from(R, value))]
        wanted = named_values(argument, joint, value)
        tree = joint.name in self.equations.tree.places
        plane = joint.points[0].body.dimension == 2
        found = []
        for k, number in wanted.items():
            angle = joint.coordinates[k].kind == ANGLE and (wished or not (tree or plane))
            residual = values[k] - number
            found.append(((k, number), _nearest(residual, ca.SX(0)) if angle else residual))
        return found

    def _relative_rotation(self, joint: Joint) -> ca.SX:
        a, b = self.equations.kinematics.ends(joint)
        return a.R.T @ b.R

    def _with_guess(self, guess: np.ndarray, joint: Joint, pairs: list) -> np.ndarray:
        tree, guess = self.equations.tree, guess.copy()
        if joint.name not in tree.places:
            return guess
        places, back = tree.places[joint.name], tree.edges[joint.name]
        for (k, value), _ in pairs:
            if k >= 0:
                guess[places[k]] = value
            else:
                x, y, z, w = (value.inv() if back else value).as_quat()
                guess[places[-4:]] = w, x, y, z
        return guess

    def _with_body_guess(self, guess: np.ndarray, name: str, value: Any) -> np.ndarray:
        """Of a body with coordinates of its own its position and rotation."""
        guess = guess.copy()
        if name not in self._free:
            return guess
        places = self.equations.tree.places[self._free[name].name]
        position, turn = place_of(name, value, self.bodies[name].dimension)
        if isinstance(turn, Rotation) and len(places) > 4:
            x, y, z, w = turn.as_quat()
            guess[places[3:]] = w, x, y, z
        elif turn is not None and len(places) == 3:
            guess[places[2]] = turn
        if position is not None:
            self._put(guess, name, position)
        return guess

    def _of_body(self, body: Body, value: Any) -> list[tuple[None, ca.SX]]:
        frame, (position, turn) = (
            self.equations.kinematics.frame(body),
            place_of(body.name, value, body.dimension),
        )
        rows = []
        if position is not None:
            rows += ca.vertsplit(frame.x[: body.dimension] - position)
        if isinstance(turn, Rotation):
            rows += ca.vertsplit(turned_from(frame.R, turn))
        elif turn is not None:
            rows.append(frame.angle - turn)
        return [(None, row) for row in rows]

    def _read_speed(self, name: str, value: Any) -> list[Held]:
        kinematics = self.equations.kinematics
        if name in self.joints:
            joint = self.joints[name]
            if any(c.kind == QUATERNION for c in joint.coordinates) and not isinstance(value, Mapping):
                a, b = kinematics.ends(joint)
                relative = a.R.T @ (b.w - a.w)
                return [Held(name, row) for row in ca.vertsplit(relative - triple("speed", name, value))]
            values = kinematics.coordinates(joint)
            wanted = named_values("speed", joint, value)
            return [Held(name, kinematics.rate(values[k]) - rate) for k, rate in wanted.items()]
        if name not in self.bodies:
            raise self._unknown("speed", name)
        body = self.bodies[name]
        velocity, w = motion_of(name, value, body.dimension)
        frame, rows = kinematics.frame(body), []
        if velocity is not None:
            rows += ca.vertsplit(frame.v[: body.dimension] - velocity)
        if w is not None:
            rows += ca.vertsplit(frame.w - w) if body.dimension == 3 else [frame.w[2] - w]
        return [Held(name, row) for row in rows]


def _null_space(C: np.ndarray) -> np.ndarray:
    if not C.size:
        return np.eye(C.shape[1])
    _, values, rows = np.linalg.svd(C)
    rank = int(np.sum(values > 1e-9 * max(values[0], 1e-300)))
    return rows[rank:].T
