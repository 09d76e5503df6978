"""The forces that a mechanism can be given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import shown
from holonome.bodies.body import Numbers, vector
from holonome.bodies.joint import ANGLE, DISPLACEMENT
from holonome.bodies.load import (
    Between,
    BodyTorque,
    Bushing,
    Contact,
    Friction,
    JointForce,
    JointSpring,
    Load,
    PointForce,
    PointSpring,
    stiffness_matrix,
)
from holonome.bodies.parts import Parts
from holonome.errors import ModelError


class AddingForces(Parts):
    """The methods of a mechanism that add forces."""

    def torque(
        self,
        name: str,
        joint: Any = None,
        law: Any = None,
        *,
        body: Any = None,
        coordinate: str | None = None,
    ) -> Load:
        """A motor: a torque about a turning joint, or on a body.

        Parameters
        ----------
        name : str
            What it is called.
        joint : Joint or name
            Positive torque turns its second body forward against its first.
        law : number or callable
            Of any of t, angle, rate, p at a joint; of t, w, p on a body, where w is its angular velocity and
            the torque is given in the axes of the ground.
        body : Body or name
            Instead of a joint.
        coordinate : str
            Of a joint with several angles, which.
        """
        if (joint is None) == (body is None):
            raise ModelError(f"{name}: give joint= or body=, one of them")
        if joint is not None:
            return self._joint_force(name, joint, law, coordinate, ANGLE, "torque")
        self._leave_out(name, "body=", coordinate=coordinate)
        shape, found = () if self.dimension == 2 else (3,), self._body(name, body)
        if not found.rotates:
            raise ModelError(f"{name}.body: {found.name!r} is a point mass, which cannot turn; use m.force")
        value = self._law(f"{name}.law", law, {"t": (), "w": shape}, 1 if self.dimension == 2 else 3)
        return self._add_force(BodyTorque(name, found, value))

    def force(
        self,
        name: str,
        joint: Any = None,
        law: Any = None,
        *,
        at: Any = None,
        between: Sequence[Any] | None = None,
        coordinate: str | None = None,
    ) -> Load:
        """A force along a sliding joint, at points, or between two points.

        Parameters
        ----------
        name : str
            What it is called.
        joint : Joint or name
            A joint that slides; its law may ask for t, displacement, rate, p.
        at : Point or list of points
            The law may ask for t, p, the position x and the velocity v of the point, and gives a force in the
            axes of the ground; for a list, x, v and the forces are arrays with a row for each point.
        between : two points
            The law may ask for t, distance, rate, p; a positive force pulls the points together.
        law : number, array or callable
            The force.
        coordinate : str
            Of a joint with several displacements, which.
        """
        if sum(place is not None for place in (joint, at, between)) != 1:
            raise ModelError(f"{name}: give joint=, at= or between=, one of them")
        role = f"{name}.law"
        if joint is not None:
            return self._joint_force(name, joint, law, coordinate, DISPLACEMENT, "force")
        self._leave_out(name, "at= and between=", coordinate=coordinate)
        if between is not None:
            if not isinstance(between, (list, tuple)):
                raise ModelError(f"{name}.between: {shown(between)}; give two points")
            if len(between) != 2:
                raise ModelError(f"{name}.between: {len(between)} points; give two")
            value = self._law(role, law, {"t": (), "distance": (), "rate": ()}, 1)
            return self._add_force(Between(name, self._ends(name, *between), value))
        several = isinstance(at, (list, tuple))
        points = tuple(self._point(name, point) for point in (at if several else [at]))
        if not points:
            raise ModelError(f"{name}.at: no points; give one or more")
        shape = (len(points), self.dimension) if several else (self.dimension,)
        value = self._law(role, law, {"t": (), "x": shape, "v": shape}, len(points) * self.dimension)
        return self._add_force(PointForce(name, points, value))

    def spring(
        self,
        name: str,
        a: Any = None,
        b: Any = None,
        *,
        joint: Any = None,
        stiffness: Numbers = 0.0,
        damping: Numbers = 0.0,
        length: Numbers | None = None,
        rest: Numbers | None = None,
        coordinate: str | None = None,
    ) -> Load:
        """A spring and damper, between two points or on a joint.

        Parameters
        ----------
        name : str
            What it is called.
        a, b : Point
            Its ends, or
        joint : Joint or name
            the joint whose angle or displacement it resists.
        stiffness, damping : number
            Force by length and by speed; torque by angle and angular velocity.
        length : number
            Of a spring between points: its length without load; 0 makes it elastic in all directions.
        rest : number
            Of a spring on a joint: the coordinate without load, 0 by default.
        """
        k = self._not_negative(f"{name}.stiffness", stiffness)
        d = self._not_negative(f"{name}.damping", damping)
        if k.is_zero() and d.is_zero():
            raise ModelError(f"{name}: neither stiffness nor damping is given; give one of them, or both")
        if joint is not None:
            if a is not None or b is not None or length is not None:
                raise ModelError(f"{name}: give two points and a length, or a joint and rest")
            found, which = self._coordinate(name, joint, coordinate)
            unloaded = self._scalar(f"{name}.rest", 0.0 if rest is None else rest)
            return self._add_force(JointSpring(name, found, which, k, d, unloaded))
        self._leave_out(name, "two points", rest=rest, coordinate=coordinate)
        if a is None or b is None:
            raise ModelError(f"{name}: give two points, or joint=")
        if length is None:
            raise ModelError(f"{name}.length: missing; give the length without load")
        length = self._not_negative(f"{name}.length", length)
        return self._add_force(PointSpring(name, *self._ends(name, a, b), k, d, length))

    def bushing(self, name: str, a: Any, b: Any, stiffness: Any, damping: Any = 0.0) -> Load:
        """An elastic bearing between two points, in displacement and angle, as the axes of a see them.

        Parameters
        ----------
        name : str
            What it is called.
        a, b : Point
            Where it sits on both bodies.
        stiffness, damping : numbers
            For (x, y, angle) in the plane, for three displacements and three angles in space; one for all, a
            diagonal, or a matrix.
        """
        rows = 3 if self.dimension == 2 else 6
        K, D = (
            self._spring_matrix(f"{name}.{what}", value, rows)
            for what, value in (("stiffness", stiffness), ("damping", damping))
        )
        return self._add_force(Bushing(name, *self._ends(name, a, b), K, D))

    def friction(
        self,
        name: str,
        joint: Any,
        coefficient: Numbers,
        radius: Numbers | None = None,
        speed: Numbers = 1e-3,
        coordinate: str | None = None,
    ) -> Load:
        """Coulomb friction in a joint, proportional to the force that it transmits.

        Parameters
        ----------
        name : str
            What it is called.
        joint : Joint or name
            A joint that turns or slides.
        coefficient : number
            The coefficient of friction μ.
        radius : number
            Of a turning joint: the radius of its pin.
        speed : number
            Below this relative speed (angular, in a turning joint) the force falls smoothly to zero.
        """
        found, which = self._coordinate(name, joint, coordinate)
        if found.coordinates[which].kind == ANGLE and radius is None:
            raise ModelError(f"{name}.radius: missing; give the radius of the pin")
        if found.coordinates[which].kind == DISPLACEMENT:
            self._leave_out(name, "a displacement", radius=radius)
        mu = self._not_negative(f"{name}.coefficient", coefficient)
        arm = self._positive(f"{name}.radius", 1.0 if radius is None else radius)
        return self._add_force(Friction(name, found, which, mu, arm, self._positive(f"{name}.speed", speed)))

    def contact(
        self,
        name: str,
        a: Any,
        b: Any,
        stiffness: Numbers,
        *,
        radius: Numbers = 0.0,
        damping: Numbers = 0.0,
        exponent: float = 1.5,
        friction: Numbers = 0.0,
        speed: Numbers = 1e-3,
    ) -> Load:
        """A point or ball b that is pushed back where it enters the ground of a, by a stiff spring.

        Parameters
        ----------
        name : str
            What it is called.
        a : Point
            A point of the line (its x-axis) or plane (its x-y-plane).
        b : Point
            The point, or the centre of the ball.
        stiffness, exponent : number
            Normal force = stiffness · depth^exponent · (1 + damping · rate of depth).
        radius : number
            Of the ball; 0 for a point.
        friction, speed : number
            Coefficient of friction; below this speed it falls smoothly to zero.
        """
        if not isinstance(exponent, (int, float)) or not 1 <= exponent < np.inf:
            raise ModelError(f"{name}.exponent: {shown(exponent)}; give a number of at least 1")
        k, v0 = self._positive(f"{name}.stiffness", stiffness), self._positive(f"{name}.speed", speed)
        names, values = ("radius", "damping", "friction"), (radius, damping, friction)
        r, d, mu = (self._not_negative(f"{name}.{n}", x) for n, x in zip(names, values, strict=True))
        return self._add_force(Contact(name, *self._ends(name, a, b), r, k, float(exponent), d, mu, v0))

    def drag(self, name: str, at: Any, coefficient: Numbers, wind: Numbers | None = None) -> Load:
        """Resistance of the air at a point: −c |v − wind| (v − wind), with c = ½ ρ c_w A."""
        c = self._not_negative(f"{name}.coefficient", coefficient)
        blowing = vector(f"{name}.wind", (0.0,) * self.dimension if wind is None else wind, self.dimension)
        flow = blowing[: self.dimension]

        def law(given: Mapping[str, Any]) -> ca.SX:
            relative = given["v"] - flow
            return -c * ca.sqrt(ca.dot(relative, relative) + 1e-300) * relative

        return self._add_force(PointForce(name, (self._point(name, at),), law, "drag"))

    def add(self, load: Load) -> Load:
        """Add a force of one's own, a subclass of :class:`holonome.bodies.Load`."""
        if not isinstance(load, Load):
            raise ModelError(f"load: {shown(load)}; give an object of a subclass of hn.bodies.Load")
        return self._add_force(load)

    def _leave_out(self, name: str, beside: str, **given: Any) -> None:
        """ModelError for arguments that would have no effect."""
        for argument, value in given.items():
            if value is not None:
                raise ModelError(f"{name}.{argument}: it has no meaning for {beside}; leave it out")

    def _spring_matrix(self, role: str, value: Any, rows: int) -> ca.SX:
        """A symmetric matrix without negative eigenvalues, if it has parameters with their first values."""
        K = stiffness_matrix(role, value, rows)
        numbers = np.array(ca.Function("K", [self._p], [ca.densify(K)])(self.parameters.flat))
        size = np.max(np.abs(numbers), initial=0.0)
        if not np.isfinite(size):
            raise ModelError(f"{role}: {shown(value)}; give finite numbers")
        if np.max(np.abs(numbers - numbers.T)) > 1e-12 * size:
            raise ModelError(f"{role}: {shown(value)}; a matrix must be symmetric")
        if np.linalg.eigvalsh(numbers)[0] < -1e-12 * size:
            raise ModelError(f"{role}: {shown(value)}; it must have no negative eigenvalue")
        return K

    def _add_force(self, load: Load) -> Load:
        self._new(load.name)
        self.forces[load.name] = load
        return load

    def _joint_force(
        self, name: str, joint: Any, law: Any, coordinate: str | None, kind: str, what: str
    ) -> Load:
        found = self._joint(name, joint)
        names = [c.name for c in found.coordinates if c.kind == kind]
        if coordinate is None and len(names) == 1:
            coordinate = names[0]
        if coordinate not in names:
            has = f"has {', '.join(names)}; say coordinate=" if names else f"has no {kind}"
            raise ModelError(f"{name}: joint {found.name!r} {has}")
        which = [c.name for c in found.coordinates].index(coordinate)
        value = self._law(f"{name}.law", law, {"t": (), kind: (), "rate": ()}, 1)
        return self._add_force(JointForce(name, found, which, value, what))
