"""The System of a mechanism: its equations as functions of a System, and what can be asked of it by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np
from scipy import sparse

from holonome.bodies import measures
from holonome.bodies.body import Body
from holonome.bodies.coupling import Coupling
from holonome.bodies.equations import Equations
from holonome.bodies.joint import Joint
from holonome.bodies.kinematics import winds
from holonome.bodies.load import Load, Spring, Wrench
from holonome.bodies.named_results import NamedResults
from holonome.bodies.redundancy import in_dependences, same_rank
from holonome.bodies.unilateral import Unilateral
from holonome.errors import ModelError
from holonome.locks import cached_property, expressions
from holonome.problem.contact import Contact
from holonome.problem.drawing import Drawing
from holonome.problem.elastic import Elastic
from holonome.problem.parameters import Parameters
from holonome.problem.system import System
from holonome.problem.user_function import Expression
from holonome.tracing import Frozen


class BodySystem(System):
    """A System made of bodies and joints; :class:`Mechanism` makes it."""

    def __init__(
        self,
        name: str,
        equations: Equations,
        bodies: Mapping[str, Body],
        joints: Mapping[str, Joint],
        gravity: ca.SX,
        parameters: Parameters,
        drawing: Callable[[], Drawing | None],
        frozen: Frozen | None,
        unilateral: Mapping[str, Unilateral] | None = None,
    ) -> None:
        self.unilateral = dict(unilateral or {})
        self.equations, self.bodies, self.joints, self.gravity = equations, bodies, joints, gravity
        self.dimension, self._draw = bodies["ground"].dimension, drawing
        symbols, constraints, n = equations.symbols, equations.constraints, equations.tree.size

        def formula(role: str, value: ca.SX) -> Expression:
            return Expression(role, ca.Function("formula", symbols.inputs, [value]), n)

        def elastic(k: int, spring: Spring) -> Elastic:
            of = f"elastic[{k}]"
            return Elastic(
                formula(f"{of}.deformation", spring.deformation(equations.scene)),
                formula(f"{of}.stiffness", _packed(spring.stiffness)),
                formula(f"{of}.damping", _packed(spring.damping)),
            )

        def contact(k: int, one: Unilateral) -> Contact:
            names = ("gap", "slip", "restitution", "friction", "static_friction")
            scene = equations.scene
            values = one.gap(scene), one.slip(scene), one.restitution, one.friction, one.static_friction
            given = {
                part: formula(f"contacts[{k}].{part}", ca.densify(ca.SX(value)))
                for part, value in zip(names, values, strict=True)
                if one.directions or part in ("gap", "restitution")
            }
            return Contact(**given, hypothesis=one.hypothesis, name=one.name)

        rows = {"constraint": constraints.g, "velocity_constraint": constraints.h}
        given: dict[str, Any] = {
            role: formula(role, ca.densify(ca.vertcat(*values))) for role, values in rows.items() if values
        }
        angles = [angle for names in equations.windings.values() for angle in names]
        if angles:
            given["states"] = dict.fromkeys(angles, 0.0)
            given["rate"] = formula("rate", ca.densify(equations.winding_rates))
        super().__init__(
            formula("mass", ca.vec(equations.M.T)),
            formula("force", ca.densify(equations.f)),
            potential=formula("potential", equations.V),
            elastic=[elastic(k, spring) for k, spring in enumerate(equations.springs)] or None,
            contacts=[contact(k, one) for k, one in enumerate(self.unilateral.values())] or None,
            inertial="in force",
            parameters={name: parameters[name] for name in parameters.layout_of("p")},
            inputs={name: parameters[name] for name in parameters.inputs},
            names=equations.tree.names,
            constraint_names=[*constraints.g_names, *constraints.h_names] or None,
            name=name,
            **given,
        )
        self._frozen = frozen

    @property
    def drawing(self) -> Drawing | None:
        """Made when it is first asked for: many mechanisms are never drawn."""
        if self._drawing is not None:
            return self._drawing
        return self.compiled.once("drawing", self._drawn)

    @drawing.setter
    def drawing(self, drawing: Drawing | None) -> None:
        self._drawing = drawing

    def _drawn(self) -> Drawing | None:
        with expressions:
            return self._draw()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickles and saved files hold the equations, not the parts."""
        return _plain, (self.__getstate__(),)

    @cached_property
    def acceleration(self) -> ca.SX:
        """Symbols of the accelerations, for named results."""
        return ca.SX.sym("a", self.n)

    @cached_property
    def elements(self) -> dict[str, Load | Coupling]:
        """Forces, springs, drives and gears by name."""
        return {element.name: element for element in (*self.equations.loads, *self.equations.couplings)}

    @cached_property
    def wrenches(self) -> dict[str, list[Wrench]]:
        """What acts on bodies, by the names of forces, drives and joints with rows."""
        found, forces = self.equations.wrenches(), iter(ca.vertsplit(self.contact_forces))
        for name, one in self.unilateral.items():
            normal, along = next(forces), [next(forces) for _ in range(one.directions)]
            found[name] = one.wrenches(self.equations.scene, normal, ca.vertcat(*along))
        return found

    @cached_property
    def contact_forces(self) -> ca.SX:
        """Symbols of the forces of contacts, across and along each, for named results."""
        return ca.SX.sym("contact", len(self.unilateral) + sum(self.contacts.directions))

    @cached_property
    def wrapped(self) -> set[str]:
        """Joints in loops whose angles are measured between −π and π and unrolled for results."""
        followed = set(self.equations.windings)
        return {
            name for name, joint in self.equations.joints.items() if winds(joint, self.equations.tree)
        } - followed

    def joint_named(self, name: str) -> Joint:
        return _found(self.joints, "joint", name)

    def body_named(self, name: str) -> Body:
        return _found(self.bodies, "body", name)

    def element_named(self, name: str) -> Load | Coupling:
        return _found(self.elements, "force, spring or drive", name)

    @cached_property
    def quaternions(self) -> list[slice]:
        """Where unit quaternions lie among the coordinates."""
        return measures.quaternions(self)

    @cached_property
    def counted_turns(self) -> list[int]:
        """Numbers of the first-order states that only count turns."""
        return measures.counted_turns(self)

    def measured(self, name: str) -> dict[str, ca.SX] | None:
        """Expressions of the state by name, for outputs and drives."""
        found = measures.measured(self, name)
        return super().measured(name) if found is None else found

    def held(self, argument: str, values: Mapping[str, Any], t: float) -> list[tuple[str, ca.SX]]:
        """What vanishes where joints and bodies have these positions or velocities."""
        return measures.held(self, argument, values, t)

    def shares(self, t: float, q: np.ndarray, s: np.ndarray, dq: np.ndarray) -> dict[str, float]:
        """Shares of the bodies in the kinetic energy of a small motion."""
        return measures.shares(self, t, q, s, dq)

    def turning(self, t: float, q: np.ndarray, s: np.ndarray, dq: np.ndarray) -> dict[str, complex]:
        """Changes of the coordinates of joints in a small motion."""
        return measures.turning(self, t, q, s, dq)

    def numbers(self, value: ca.SX) -> np.ndarray:
        """An expression of the parameters in numbers, as a vector."""
        function = ca.Function("numbers", [self.equations.symbols.p], [ca.densify(value)])
        return np.array(function(self.parameters.flat)).ravel()

    def named_results(self, solution: Any) -> NamedResults:
        return NamedResults(self, solution)

    def named_data(self, solution: Any) -> dict[str, Any]:
        return self.named_results(solution).data()

    def keeps_rank(self, t: float, given: Any, p: np.ndarray) -> bool:
        """Whether the rows that are left out follow from the others in a position; if it is none, yes."""
        if not self.equations.constraints.implied:
            return True
        try:
            q = np.asarray(given, dtype=float)
        except (TypeError, ValueError):
            return True
        if q.shape != (self.n,) or not np.all(np.isfinite(q)):
            return True
        kept, further = self._row_derivatives(t, q, np.zeros(self.n), p, np.zeros(len(self.states)))
        units = self.equations.units
        return same_rank(kept.toarray() * units, further.toarray() * units)

    def _row_derivatives(self, t: float, q: Any, v: Any, p: Any, s: Any) -> list[Any]:
        """Derivatives of the rows that are kept and of those that follow from them, sparse."""
        equations, symbols = self.equations, self.equations.symbols

        def make() -> ca.Function:
            implied = [
                ca.jacobian(row, symbols.v if ca.depends_on(row, symbols.v) else symbols.q)
                for row in equations.constraints.implied.values()
            ]
            parts = [equations.velocity_jacobian, ca.vertcat(ca.SX(0, self.n), *implied)]
            return ca.Function("C", symbols.inputs, parts)

        C = self.compiled.once("rows", make)
        return [part.sparse() for part in C(t, q, v, p, s, [], np.zeros(self.m))]

    def objection(self, solution: Any) -> str:
        """Why a run that reached its end is not a motion: rows that should follow from the others do not."""
        implied, symbols = self.equations.constraints.implied, self.equations.symbols
        if not implied or not solution.t.size:
            return ""
        inputs = [symbols.t, symbols.q, symbols.v, symbols.p, symbols.s]
        rows = ca.Function("implied", inputs, [ca.densify(ca.vertcat(*implied.values()))])
        given = [solution.t[None, :], solution.q, solution.v, solution.parameter_values, solution.s]
        values = np.abs(np.array(rows.map(solution.t.size).call(given)[0]))
        state = solution.q[:, 0], solution.v[:, 0], solution.parameter_values[:, 0], solution.s[:, 0]
        _, derivatives = self._row_derivatives(solution.t[0], *state)
        units = self.equations.units[:, None]
        changes = np.linalg.norm(
            derivatives.toarray() * units.T, axis=1
        )  # by typical changes of all coordinates
        reach = max(1.0, float(np.max(np.abs(solution.q / units), initial=0.0)))
        allowed = (1e-6 * reach * changes + 1e3 * max(solution.drift))[:, None]
        if np.all(values <= allowed):
            return ""
        row, point = np.unravel_index(np.argmax(values - allowed), values.shape)
        return (
            f"the mechanism has left its assembly: {list(implied)[row]!r}, which follows from the other rows "
            f"where it began, is off by {values[row, point]:.3g} at t = {solution.t[point]:.6g}; it passed a "
            "singular position on the way"
        )

    def effort_of(self, name: str) -> ca.SX:
        """What a force, spring or drive exerts, one entry for each direction in which it works: of a drive,
        gear or belt on the coordinates that it couples, of a spring its tension.
        """
        element, equations = self.element_named(name), self.equations
        if isinstance(element, Coupling):
            places = equations.constraints.rows[name][0]
            multiplier = equations.symbols.lam[places[0]] if places else ca.SX(0)
            return ca.vertcat(*(value for _, _, value in element.efforts(multiplier)))
        if isinstance(element, Spring):
            return element.tension(equations.scene)
        velocity, force = (ca.vertcat(*parts) for parts in zip(*equations.efforts[name], strict=True))
        works = [not v.is_zero() for v in ca.vertsplit(velocity)]
        return ca.vertcat(*(f for f, kept in zip(ca.vertsplit(force), works, strict=True) if kept))

    def power_of(self, name: str) -> ca.SX:
        """The power of a force, spring or drive, as an expression."""
        element, equations = self.element_named(name), self.equations
        rate = equations.kinematics.rate
        if isinstance(element, Coupling):
            moved = [
                rate(equations.kinematics.coordinates(joint)[which]) for joint, which, _ in element.terms
            ]
            return ca.dot(self.effort_of(name), ca.vertcat(*moved))
        if isinstance(element, Spring):
            return -ca.dot(rate(element.deformation(equations.scene)), self.effort_of(name))
        return sum((ca.dot(e.velocity, e.force) for e in equations.efforts[name]), ca.SX(0))

    def beyond(self, joint: Joint) -> set[str]:
        """Names of the bodies that a joint of the tree separates from the ground."""
        tree = self.equations.tree
        others = [(a.name, b.name) for a, b in tree.connections(but=joint.name)]
        reached, grew = {"ground"}, True
        while grew:
            grew = False
            for a, b in others:
                if (a in reached) != (b in reached):
                    reached |= {a, b}
                    grew = True
        return {name for name in self.bodies if name not in reached}

    def undetermined(self, solution: Any) -> set[str]:
        """Names of joints, drives and gears whose forces redundant rows leave undetermined."""
        rows = self.equations.constraints.vanishing + self._dependent_rows(solution)
        owners = {self.equations.constraints.owner[row] for row in rows}
        found = owners & {*self.equations.joints, *(c.name for c in self.equations.couplings)}
        for name in owners & set(self.equations.joints):
            found |= self._around(self.joints[name])
        return found

    def _dependent_rows(self, solution: Any) -> list[str]:
        """Names of the rows that take part in a dependence at the first point."""
        if not solution.t.size:
            return []
        state = solution.q[:, 0], solution.v[:, 0], self.parameters.flat, solution.s[:, 0]
        matrix = sparse.vstack(self._row_derivatives(solution.t[0], *state))
        names = [*self.equations.row_names, *self.equations.constraints.implied]
        return [names[row] for row in in_dependences(matrix)] if names else []

    def _around(self, joint: Joint) -> set[str]:
        """The joints of the tree in the loop that a joint closes."""
        tree = self.equations.tree
        names = [name for name in (*tree.edges, *(fixed.name for fixed in tree.fixed)) if name in self.joints]
        ends = {body.name for body in joint.bodies}
        return {name for name in names if len(ends & self.beyond(self.joints[name])) == 1}


def _packed(matrix: ca.SX) -> ca.SX:
    """A stiffness or damping by rows, or its diagonal where it has nothing else."""
    if matrix.shape[0] > 1 and ca.triu(matrix, False).nnz() == ca.tril(matrix, False).nnz() == 0:
        return ca.densify(ca.diag(matrix))
    return ca.densify(ca.vec(matrix.T))


def _found(there: Mapping[str, Any], what: str, name: str) -> Any:
    if name not in there:
        names = ", ".join(key for key in there if key != "ground") or "none"
        raise ModelError(f"there is no {what} {name!r}; there are {names}")
    return there[name]


def _plain(state: dict[str, Any]) -> System:
    system = object.__new__(System)
    system.__setstate__(state)
    return system
