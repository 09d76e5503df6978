"""Mechanism: bodies, joints and forces by name, from which a System is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal

import casadi as ca
import numpy as np

from holonome.arguments import checked, real_number, shown
from holonome.bodies.adding_beams import AddingBeams
from holonome.bodies.adding_bodies import AddingBodies
from holonome.bodies.adding_contacts import AddingContacts
from holonome.bodies.assembly import Assembly
from holonome.bodies.body import (
    Numbers,
    Point,
)
from holonome.bodies.body_system import BodySystem
from holonome.bodies.choice import chosen, of_the_best_tree
from holonome.bodies.description import description
from holonome.bodies.equations import Equations
from holonome.bodies.joint import ANGLE
from holonome.bodies.picture import picture
from holonome.bodies.redundancy import LARGEST, rows_to_leave_out
from holonome.bodies.tree import Tree, grown
from holonome.bodies.unilateral import SlackRope
from holonome.errors import InconsistentStart, ModelError
from holonome.locks import collector_waits, expressions
from holonome.problem.drawing import Drawing
from holonome.problem.event import Event
from holonome.problem.frozen_values import require_unchanged
from holonome.problem.user_function import Expression
from holonome.tracing import Frozen


class Mechanism(AddingBeams, AddingBodies, AddingContacts):
    """Rigid bodies connected by joints, in the plane or in space.

    Parts are added by name; joints that close a loop are joints like all others.  Where bodies, joints and
    forces are asked for, names will do.  Units are those of the numbers given, angles are radians.

    Parameters
    ----------
    name : str
        A name for messages and pictures.
    gravity : two or three numbers
        The acceleration of gravity.  Two numbers make a mechanism in the plane, three one in space.
    parameters : dict, optional
        Numbers that laws and dimensions see as ``p.name`` and ``m.p.name``; runs may change them without
        compiling anything.
    inputs : dict, optional
        The same, but meant to change on the way; laws of forces see them as ``u.name`` and ``m.u.name``.
    coordinates : "auto", "joint" or "absolute"
        Joint coordinates along a tree, with loops closed by constraints; or coordinates of their own for all
        bodies, with a constraint for each joint.  "auto" takes what needs fewer instructions.

    Examples
    --------
    >>> import holonome as hn
    >>> m = hn.Mechanism("pendulum", gravity=(0, -9.81))
    >>> rod = m.body("rod", mass=1.0, inertia=1 / 12, center=(0.5, 0), points={"A": (0, 0), "tip": (1, 0)})
    >>> _ = m.revolute("A", m.ground.at(0, 0), rod["A"])
    >>> sol = hn.solve(m, (0, 1), start={"A": -0.1})
    >>> sol.success, sol.joint("A").angle[0].item()
    (True, -0.1)
    """

    def __init__(
        self,
        name: str = "mechanism",
        *,
        gravity: Numbers = (0.0, -9.81),
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        coordinates: Literal["auto", "joint", "absolute"] = "auto",
    ) -> None:
        super().__init__(name, gravity, parameters, inputs)
        self._coordinates = checked("coordinates", coordinates, ModelError)
        self.drawing: Drawing | None = None
        self._traces: list[Point] = []
        self._followed: list[str] = []  # joints whose angles events ask for

    def trace(self, *points: Any) -> None:
        """Draw the paths of these points in animations."""
        self._traces += [self._point("trace", point) for point in points]
        self._made.clear()

    @property
    def system(self) -> BodySystem:
        """The equations of motion as a System; made anew after a part was added."""
        if "system" not in self._made:
            with expressions, collector_waits():
                self._made["system"] = self._new_system()
        return self._made["system"]

    def equations(self, absolute: bool) -> Equations:
        """The equations in one choice of coordinates."""
        key = "absolute" if absolute else "joint"
        if key not in self._made:
            self._require_complete()
            self._made[key] = self._new_equations(True) if absolute else self._in_joints()
        return self._made[key]

    def _in_joints(self) -> Equations:
        return of_the_best_tree(self.joints.values(), lambda cut: self._new_equations(False, cut))

    def _new_equations(self, absolute: bool, cut: Sequence[str] = ()) -> Equations:
        stopped = [contact.joint.name for contact in self.contacts.values() if contact.joint is not None]
        wanted = [*self._joints_measured(), *stopped]
        loops = [load.joint.name for load in self.forces.values() if load.needs_multipliers and load.joint]
        loops += [joint.name for joint in self.joints.values() if joint.only is not None]
        joints = list(self.joints.values())
        tree = grown(self.bodies.values(), joints, absolute, wanted, [*loops, *cut])
        return self._equations_of(tree)

    def _equations_of(self, tree: Tree, left_out: Sequence[str] = ()) -> Equations:
        loads, couplings = list(self.forces.values()), list(self.couplings.values())
        wanted, t = self._joints_measured(), ca.SX.sym("t")
        return Equations(tree, self.gravity, loads, couplings, t, self._p, self.p, wanted, left_out)

    def _require_complete(self) -> None:
        if len(self.bodies) == 1:
            raise ModelError("this mechanism has no bodies; add some with m.body or m.point_mass")

    def _joints_measured(self) -> list[str]:
        """Names of joints whose coordinates forces or drives ask for."""
        names = self._followed + [load.joint.name for load in self.forces.values() if load.joint is not None]
        return names + [joint.name for c in self.couplings.values() for joint, _, _ in c.terms]

    def _without_redundant_rows(self, equations: Equations) -> Equations:
        """The same equations without rows that follow from others; all rows where no start is found."""
        absolute = equations is not self.equations(False)
        keep_all = "all rows" in self._made or equations.symbols.lam.numel() > LARGEST
        if not equations.tree.closing or keep_all:
            return equations
        try:
            assembly = self._assembly(0.0, None)
            places = assembly.walk(assembly.generic())
        except InconsistentStart:
            return equations
        if absolute:
            places = [equations.from_frames(assembly, q, np.zeros(q.size))[0] for q in places]
        places += self._made.get("starts", [])
        symbols = equations.symbols
        C = ca.Function("C", symbols.inputs, [ca.densify(equations.velocity_jacobian)])
        v, s = np.zeros(symbols.v.numel()), np.zeros(symbols.s.numel())
        p, lam = self.parameters.flat, np.zeros(symbols.lam.numel())
        rows = rows_to_leave_out([np.array(C(0.0, q, v, p, s, [], lam)) * equations.units for q in places])
        if not rows:
            return equations
        return self._equations_of(equations.tree, [equations.row_names[row] for row in rows])

    def _new_system(self) -> BodySystem:
        found = self._chosen()
        if not found.tree.size:
            raise ModelError("nothing in this mechanism can move: joints fix all its bodies to the ground")
        equations = self._without_redundant_rows(found)
        parts = dict(self.bodies), dict(self.joints), dict(self.forces), dict(self.couplings)
        lines = [beam.line for beam in self.beams.values()]
        lines += [list(rope.points) for rope in self.contacts.values() if isinstance(rope, SlackRope)]
        given = self.drawing, [*self._traces], self.parameters.flat

        def drawing() -> Drawing | None:
            drawn, traces, flat = given
            return drawn or picture(equations, *parts, traces, flat, lines)

        return BodySystem(
            self.name,
            equations,
            dict(self.bodies),
            dict(self.joints),
            self.gravity,
            self.parameters,
            drawing,
            Frozen(self._captured) or None,
            dict(self.contacts),
        )

    def _chosen(self) -> Equations:
        if self._coordinates != "auto":
            return self.equations(self._coordinates == "absolute")
        return chosen(self.equations(False), lambda: self.equations(True))

    def event(
        self,
        joint: Any = None,
        value: float = 0.0,
        *,
        point: Any = None,
        axis: str | None = None,
        coordinate: str | None = None,
        direction: float = 0.0,
        terminal: bool | int = False,
    ) -> Event:
        """The event that an angle or displacement of a joint, or a coordinate of a point, passes a value.
        Angles go on over full turns.

        Parameters
        ----------
        joint : Joint or name
            The joint, or
        point : Point
            a point, whose coordinate along ``axis`` ("x", "y" or "z") of the ground is meant.
        axis : str
            Of a point, "x" unless it is given.
        value : number
            The value that is passed.
        coordinate : str
            Of a joint with several coordinates, which.
        direction, terminal
            As of :class:`holonome.Event`.
        """
        if (joint is None) == (point is None):
            raise ModelError("event: give joint= or point=, one of them")
        if joint is not None:
            self._leave_out("event", "a joint", axis=axis)
            found, which = self._coordinate("event", joint, coordinate)
            if found.name not in self._followed:
                self._followed.append(found.name)
                self._made.clear()
            measured = self.system.equations.kinematics.coordinates(found)[which]
        else:
            self._leave_out("event", "a point", coordinate=coordinate)
            measured = self._place("event", point, "x" if axis is None else axis)
        equations = self.system.equations
        try:
            residual = measured - real_number(value)
        except (TypeError, ValueError, OverflowError):
            raise ModelError(f"event.value: {shown(value)}; give a number") from None
        function = ca.Function("event", equations.symbols.inputs[:5], [residual])
        return Event(Expression("event", function, self.system.n), terminal, direction)

    def _place(self, name: str, point: Any, axis: str) -> ca.SX:
        """A coordinate of a point, in the axes of the ground."""
        axes = "xyz"[: self.dimension]
        if not isinstance(axis, str) or len(axis) != 1 or axis not in axes:
            raise ModelError(f"{name}.axis: {shown(axis)}; give one of {', '.join(map(repr, axes))}")
        return self.system.equations.kinematics.at(self._point(name, point)).x[axes.index(axis)]

    def initial(
        self,
        t0: float = 0.0,
        start: Mapping[str, Any] | None = None,
        speed: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Coordinates, velocities and states of an assembled start; see :meth:`assemble`."""
        assembly = self._assembly(t0, parameters)
        q = assembly.positions(start)[0]
        made = self._in_system(assembly, q, assembly.velocities(q, speed))
        self.begin_at(made[0], t0, parameters)
        return made

    def begin_at(self, q: Any, t0: float, parameters: Mapping[str, Any] | None = None) -> None:
        """Make sure that no row has been left out that a run from here needs: what follows from other rows in
        one assembly may not do so in another.
        """
        with expressions:
            system, starts = self.system, self._made.setdefault("starts", [])
            flat = self.parameters.changed(dict(parameters or {})).flat
            self.require_sense(flat)
            for _ in range(2):
                if system.keeps_rank(t0, q, flat):
                    return
                self._made["starts"] = starts = [*starts, np.array(q, dtype=float)]
                self._made.pop("system")
                system = self.system
            self._made["all rows"] = True
            self._made.pop("system")

    def assemble(
        self,
        start: Mapping[str, Any] | None = None,
        t0: float = 0.0,
        parameters: Mapping[str, Any] | None = None,
    ) -> list[np.ndarray]:
        """All positions found in which the loops close, the nearest to the drawing first, as coordinates q.

        Parameters
        ----------
        start : dict, optional
            Values of joints and bodies by name: a number for an angle or a displacement, a dict where there
            are several, a ``Rotation`` for a ball joint; for a body ``{"position": …, "angle": …}``, in space
            ``"rotation"``.  ``hn.near(value)`` is where the search begins rather than what must hold.
        t0 : float
            The time, for drives.
        parameters : dict, optional
            Other values of parameters.
        """
        assembly = self._assembly(t0, parameters)
        found = assembly.positions(start, every=True)
        return [self._in_system(assembly, q, np.zeros(q.size))[0] for q in found]

    def _assembly(self, t0: float, parameters: Mapping[str, Any] | None) -> Assembly:
        t0 = checked("t0", t0)
        flat = self.parameters.changed(dict(checked("parameters", parameters) or {})).flat
        self.require_sense(flat)
        bodies = {name: body for name, body in self.bodies.items() if not body.ground}
        joints = {name: joint for name, joint in self.joints.items() if joint.what != "free"}
        return Assembly(self.equations(False), joints, bodies, flat, t0)

    def _in_system(
        self, assembly: Assembly, q: np.ndarray, v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """A position of the tree of joints in the coordinates of the system."""
        system = self.system
        s = None
        if system.states:
            names = system.equations.windings
            kinematics = assembly.equations.kinematics
            values = []
            for name in names:
                joint = self.joints[name]
                measured = kinematics.coordinates(joint)
                values += [x for x, c in zip(measured, joint.coordinates, strict=True) if c.kind == ANGLE]
            s = assembly.function(ca.vertcat(*values))(q)[0].ravel()
        if system.equations.tree is assembly.equations.tree:
            return q, v, s
        return *system.equations.from_frames(assembly, q, v), s

    def degrees_of_freedom(self, start: Mapping[str, Any] | None = None) -> int:
        """How many motions the joints leave free, by the rank of their constraints at an assembled start."""
        assembly = self._assembly(0.0, None)
        return assembly.freedom(self._position(assembly, start))[0]

    def redundant(self, start: Mapping[str, Any] | None = None) -> list[str]:
        """Names of constraint rows that follow from the others, at an assembled start."""
        assembly = self._assembly(0.0, None)
        return assembly.freedom(self._position(assembly, start))[1]

    def _position(self, assembly: Assembly, start: Mapping[str, Any] | None) -> np.ndarray:
        return assembly.generic() if start is None else assembly.positions(start)[0]

    def require_unchanged(self) -> None:
        """ModelError if a value that a law has captured is no longer what it was."""
        frozen = Frozen(self._captured)
        if frozen:
            require_unchanged(frozen)

    def __deepcopy__(self, memo: dict[int, Any]) -> Mechanism:
        """A mechanism of its own, to be changed further; it makes its equations anew."""
        found = memo[id(self)] = object.__new__(Mechanism)
        parts = {name: value for name, value in self.__dict__.items() if name != "_made"}
        found.__dict__.update(deepcopy(parts, memo), _made={})
        return found

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise TypeError(
            f"the mechanism {self.name!r} cannot be pickled; make it where it is needed, by a function, or "
            "pickle m.system, which has its equations without the names of bodies (copy.deepcopy copies it)"
        )

    def __str__(self) -> str:
        return description(self)

    def __repr__(self) -> str:
        return f"Mechanism({self.name!r}, {len(self.bodies) - 1} bodies, {len(self.joints)} joints)"
