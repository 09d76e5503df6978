"""What a run says about bodies and joints by name: places, coordinates, reactions, power and work.

The reaction in a joint with rows follows from its multipliers.  In a joint of the tree it is what the bodies
beyond it need: by Newton and Euler, mass times acceleration less all other forces on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from holonome.bodies.contact import Rolling
from holonome.bodies.geometry import Frame, cross
from holonome.bodies.joint import ANGLE, Joint
from holonome.bodies.load import Spring, Wrench
from holonome.bodies.motions import BodyMotion, JointMotion, Reaction, in_space
from holonome.bodies.work import integral
from holonome.errors import ModelError
from holonome.locks import cached_property

if TYPE_CHECKING:
    from holonome.bodies.body_system import BodySystem
    from holonome.results.solution import Solution


def _turning(dimensions: tuple[str, ...], rows: Sequence[np.ndarray], labels: dict[str, Any], flat: bool):
    """Rows of moments or angular velocities for tables: in the plane without axes."""
    if not flat:
        return dimensions, np.array(rows), labels
    return (dimensions[0], "t"), np.array(rows), {dimensions[0]: labels[dimensions[0]]}


class NamedResults:
    """The named results of one solution."""

    def __init__(self, system: BodySystem, solution: Solution) -> None:
        self.system, self.solution = system, solution
        self.equations, self.dimension = system.equations, system.dimension

    def _evaluate(self, key: Any, build: Callable[[], Sequence[ca.SX]]) -> list[np.ndarray]:
        """Expressions at all points, each (rows, points); accelerations and λ only where they are needed."""
        symbols, solution = self.equations.symbols, self.solution
        a, inputs = self.system.acceleration, [symbols.t, symbols.q, symbols.v, symbols.p, symbols.s]

        def make() -> ca.Function:
            values = [ca.densify(value) for value in build()]
            further = [a, symbols.lam, self.system.contact_forces]
            depends = ca.depends_on(ca.veccat(*values), ca.vertcat(*further))
            return ca.Function("named", [*inputs, *further] if depends else inputs, values)

        function = self.system.compiled.once(("named", key), make)
        count = solution.t.size
        if not count:
            return [np.zeros((function.size1_out(k), 0)) for k in range(function.n_out())]
        given = [solution.t[None, :], solution.q, solution.v, solution.parameter_values, solution.s]
        if function.n_in() > len(inputs):
            given += [solution.a, self._multipliers, self._contact_forces]
        return [np.array(value) for value in function.map(count).call(given)]

    @cached_property
    def _multipliers(self) -> np.ndarray:
        """Those that belong to the accelerations, whatever the method has found for its own purposes."""
        pieces = zip(self.solution.parts(solved=True), self.solution.multipliers_of_pieces, strict=True)
        found = [system.own_multipliers(lam) for (system, _, _), lam in pieces]
        return np.concatenate(found, axis=1) if found else np.zeros((self.system.m, 0))

    @cached_property
    def _contact_forces(self) -> np.ndarray:
        """Forces across and along each contact, (rows, points)."""
        found = [self.solution.contact(name) for name in self.system.unilateral]
        rows = [np.vstack([contact.force, contact.friction]) for contact in found]
        return np.vstack([np.zeros((0, self.solution.t.size)), *rows])

    def _second_rate(self, value: ca.SX) -> ca.SX:
        symbols = self.equations.symbols
        return ca.jtimes(value, symbols.q, symbols.v) + ca.jtimes(value, symbols.v, self.system.acceleration)

    def _flat(self, vector: np.ndarray, moment: bool = False) -> np.ndarray:
        """A vector in the form of the mechanism: two components, or the third alone of a moment."""
        if self.dimension == 3:
            return vector
        return vector[2] if moment else vector[:2]

    def joint(self, name: str) -> JointMotion:
        joint = self.system.joint_named(name)
        names = [coordinate.name for coordinate in joint.coordinates]
        kinds = {coordinate.name: coordinate.kind for coordinate in joint.coordinates}
        if not names:
            return JointMotion(name, self.solution.t, {}, {}, {})
        values, rates = self._measured(joint)
        for k, coordinate in enumerate(joint.coordinates):
            if coordinate.kind == ANGLE and name in self.system.wrapped:
                values[k] = self._unrolled(joint, k, values[k])
        by_name, rates_by_name = (dict(zip(names, rows, strict=True)) for rows in (values, rates))
        return JointMotion(name, self.solution.t, by_name, rates_by_name, kinds)

    def _measured(self, joint: Joint) -> list[np.ndarray]:
        """Coordinates of a joint and their rates, (coordinates, points)."""

        def build() -> list[ca.SX]:
            values = ca.vertcat(*self.equations.kinematics.coordinates(joint))
            return [values, self.equations.kinematics.rate(values)]

        return self._evaluate(("joint", joint.name), build)

    def _unrolled(self, joint: Joint, k: int, angle: np.ndarray) -> np.ndarray:
        """An angle that is measured between −π and π, over full turns: the integral of its rate tells how
        many there are between two points.
        """
        turned = integral(self.solution, lambda between: between._by_name._measured(joint)[1][k])
        turns = (angle[:1] + turned - angle) / (2 * np.pi)
        return angle + 2 * np.pi * np.round(np.where(np.isfinite(turns), turns, 0.0))

    def body(self, name: str, frame: str | None = None) -> BodyMotion:
        found = self._body(name)
        return found if frame is None else found.seen_from(self._body(frame))

    def _body(self, name: str) -> BodyMotion:
        body = self.system.body_named(name)

        def build() -> list[ca.SX]:
            frame = self.equations.kinematics.frame(body)
            second = self._second_rate(ca.vertcat(frame.v, frame.w))
            return [ca.vertcat(frame.x, frame.v, frame.w), ca.vec(frame.R.T), frame.angle, second]

        motion, R, angle, second = self._evaluate(("body", name), build)
        flat, dimension = self._flat, self.dimension
        points = {key: self.system.numbers(point.position) for key, point in body.points.items()}
        return BodyMotion(
            name,
            motion[:dimension],
            motion[3 : 3 + dimension],
            second[:dimension],
            R.T.reshape(-1, 3, 3),
            angle[0],
            flat(motion[6:9], True),
            flat(second[3:], True),
            self.system.numbers(body.center),
            points,
        )

    def reaction(self, name: str, frame: str | None = None) -> Reaction:
        found = self._reaction(name)
        if frame is None:
            return found
        R = self._body(frame).matrix
        force, moment = (np.einsum("kji,jk->ik", R, in_space(x)) for x in (found.force, found.moment))
        return replace(found, force=self._flat(force), moment=self._flat(moment, True))

    def data(self) -> dict[str, tuple[tuple[str, ...], np.ndarray, dict[str, list[str]]]]:
        """Joints, bodies and reactions as arrays with names of their dimensions and of the entries."""
        joints = [name for name, joint in self.system.joints.items() if joint.what != "free"]
        bodies = [name for name in self.system.bodies if name != "ground"]
        axes = {"axis": ["x", "y", "z"][: self.dimension]}
        motions = {name: self.joint(name) for name in joints}
        coordinates = [(name, key) for name, motion in motions.items() for key in motion.values]
        labels = {"joint_coordinate": [f"{name} {key}" for name, key in coordinates]}
        found: dict[str, Any] = {}
        if coordinates:
            for what in ("values", "rates"):
                rows = np.array([getattr(motions[name], what)[key] for name, key in coordinates])
                found[f"joint_{what}"] = (("joint_coordinate", "t"), rows, labels)
        flat = self.dimension == 2
        body, joint = ("body", "axis", "t"), ("joint", "axis", "t")
        of_bodies, of_joints = {"body": bodies} | axes, {"joint": joints} | axes
        moved = [self.body(name) for name in bodies]
        for what in ("position", "velocity"):
            found[f"body_{what}"] = (body, np.array([getattr(one, what) for one in moved]), of_bodies)
        found["body_angular_velocity"] = _turning(
            body, [one.angular_velocity for one in moved], of_bodies, flat
        )
        if joints:
            forces = [self.reaction(name) for name in joints]
            found["reaction_force"] = (joint, np.array([one.force for one in forces]), of_joints)
            found["reaction_moment"] = _turning(joint, [one.moment for one in forces], of_joints, flat)
        elements = list(self.system.elements)
        if elements:
            powers = np.array([self.power(name) for name in elements])
            found["power"] = (("element", "t"), powers, {"element": elements})
        return found

    def _reaction(self, name: str) -> Reaction:
        joint = self.system.joint_named(name)
        if joint.what == "free":
            raise ModelError(f"{name}: a body that is free feels no reaction")
        at = self._at(joint)
        if name in self.equations.joints:
            parts = self._evaluate(("rows of", name), lambda: self._flattened(name))
            force, moment = parts[0][:3], parts[0][3:]
        else:
            force, moment = self._transmitted(joint, at)
        tension = None
        if name in self.equations.joints:
            tensions = joint.tensions(self.equations.multipliers(name))
            if tensions is not None:
                found = self._evaluate(("tension", name), lambda: [tensions])[0]
                tension = found if len(found) > 1 else found[0]
        determined = name not in self.undetermined
        return Reaction(
            name, self._flat(force), self._flat(moment, True), self._flat(at), determined, tension
        )

    @cached_property
    def undetermined(self) -> set[str]:
        """Names of joints, drives and gears whose forces redundant rows leave undetermined."""
        return self.system.undetermined(self.solution)

    def _flattened(self, name: str) -> list[ca.SX]:
        wrench = self.equations.row_wrenches(name)[-1]
        return [ca.vertcat(wrench.force, wrench.moment)]

    def _at(self, joint: Joint) -> np.ndarray:
        point = joint.points[-1]
        return self._evaluate(("place", joint.name), lambda: [self.equations.kinematics.at(point).x])[0]

    def _transmitted(self, joint: Joint, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What passes through a joint of the tree to its second body."""
        outer = self.system.beyond(joint)
        force, moment = np.zeros_like(at), np.zeros_like(at)
        for place, F, T in self._needed(outer):
            force += F
            moment += T + np.cross(place - at, F, axis=0)
        for key, wrenches in self.system.wrenches.items():
            if not any(wrench.body.name in outer for wrench in wrenches):
                continue
            for wrench, value in zip(wrenches, self._of_wrenches(key, wrenches), strict=True):
                if wrench.body.name in outer:
                    place, F, T = value[:3], value[3:6], value[6:]
                    force -= F
                    moment -= T + np.cross(place - at, F, axis=0)
        return (force, moment) if joint.bodies[-1].name in outer else (-force, -moment)

    def _of_wrenches(self, key: str, wrenches: Sequence[Wrench]) -> list[np.ndarray]:
        return self._evaluate(
            ("wrenches", key),
            lambda: [ca.vertcat(w.at, w.force, w.moment) for w in wrenches],
        )

    def reaction_at_contact(self, name: str) -> Reaction:
        """The reaction of a joint; of one that rolls, the force where it touches the ground."""
        found, joint = self._reaction(name), self.system.joint_named(name)
        if not isinstance(joint, Rolling):
            return found
        touched = self._evaluate(("contact", name), lambda: [joint.touches(*self._ends(joint))])[0]
        return replace(found, place=self._flat(touched), moment=0 * found.moment)

    def _ends(self, joint: Joint) -> list[Frame]:
        return self.equations.kinematics.ends(joint)

    def applied(self, name: str) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Place, force and moment of what a force, spring or drive does to bodies; once where it acts on two
        of them at one place.
        """
        self.system.element_named(name)
        wrenches = self.system.wrenches[name]
        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for wrench, value in zip(wrenches, self._of_wrenches(name, wrenches), strict=True):
            place, force, moment = value[:3], value[3:6], value[6:]
            again = any(np.allclose(place, other) for other, _, _ in found)
            if not again and not (wrench.body.ground and len(wrenches) > 1):
                found.append((place, force, moment))
        return [(self._flat(x), self._flat(F), np.atleast_2d(self._flat(T, True))) for x, F, T in found]

    def weights(self) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Centre of mass and weight of each body, and no moment."""
        found = []
        for name, body in self.system.bodies.items():
            if body.ground:
                continue

            def build(body=body) -> list[ca.SX]:
                center = self.equations.kinematics.frame(body).at(body.center)
                return [center.x, body.mass * self.system.gravity]

            place, weight = self._evaluate(("weight", name), build)
            found.append((self._flat(place), self._flat(weight), np.zeros((1, self.solution.t.size))))
        return found

    def _needed(self, names: set[str]) -> list[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Of each body its centre of mass, mass times acceleration less weight, and rate of its spin."""
        found = []
        for name in sorted(names):
            body = self.system.body_named(name)

            def build(body=body) -> list[ca.SX]:
                frame = self.equations.kinematics.frame(body)
                center = frame.at(body.center)
                second = self._second_rate(ca.vertcat(center.v, frame.w))
                J = frame.R @ body.inertia @ frame.R.T
                force = body.mass * (second[:3] - self.system.gravity)
                return [center.x, force, J @ second[3:] + cross(frame.w, J @ frame.w)]

            found.append(tuple(self._evaluate(("needed", name), build)))
        return found

    def work(self, name: str) -> np.ndarray:
        """The work that a force, spring or drive has done since the first point."""
        self.system.element_named(name)
        return integral(self.solution, lambda between: between.power(name))

    @cached_property
    def energy_error(self) -> np.ndarray:
        """By how much the energy has changed beyond the work of all that puts some in or takes some out."""
        names = list(self.system.elements)
        put_in = integral(
            self.solution,
            lambda between: (
                sum((between._by_name.dissipated(name) for name in names), 0 * between.t)
                + between.contact_power()
            ),
        )
        energy = self.solution.energy
        put_in = put_in - self._lost_in_impacts
        return put_in if energy is None or not energy.size else energy - energy[0] - put_in

    @property
    def _lost_in_impacts(self) -> np.ndarray:
        """The energy that impacts have taken up to each point."""
        t, impacts = self.solution.t, self.solution.impacts
        if impacts is None or not len(impacts):
            return np.zeros(t.size)
        before = np.append(np.diff(t) == 0, False)  # a point at which the impact is still to come
        return np.where(before, impacts.lost_until(t, "left"), impacts.lost_until(t))

    def effort(self, name: str) -> np.ndarray:
        """What a force, spring or drive exerts, at each point."""
        found = self._evaluate(("effort", name), lambda: [self.system.effort_of(name)])[0]
        return found[0] if len(found) == 1 else found

    def power(self, name: str) -> np.ndarray:
        """The power that a force, spring or drive puts in, at each point."""
        return self._evaluate(("power", name), lambda: [self.system.power_of(name)])[0][0]

    def dissipated(self, name: str) -> np.ndarray:
        """The power that a force puts in beyond what springs store: what changes the energy."""
        load = self.system.element_named(name)
        if not isinstance(load, Spring):
            return self.power(name)

        def build() -> list[ca.SX]:
            rate = self.equations.kinematics.rate(load.deformation(self.equations.scene))
            return [-ca.dot(rate, load.damping @ rate)]

        return self._evaluate(("dissipated", name), build)[0][0]
