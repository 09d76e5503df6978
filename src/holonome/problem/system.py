"""System: the user's mechanical system, from plain NumPy functions to expressions and compiled kernels."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import casadi as ca
import numpy as np

from holonome.arguments import checked, shown
from holonome.equations.model import Model
from holonome.equations.program import Program
from holonome.errors import ModelError
from holonome.locks import expressions
from holonome.machine.compiled import Compiled
from holonome.problem import contact as unilateral
from holonome.problem import elastic as elements
from holonome.problem.checks import (
    asks_for_multipliers,
    check_derivatives,
    count,
    distinct_names,
    require_linear_velocity_constraint,
    require_one_meaning,
    require_symmetric_mass,
    start_values,
)
from holonome.problem.contact import Contact, ContactPlan
from holonome.problem.description import description
from holonome.problem.drawing import Drawing
from holonome.problem.elastic import Elastic
from holonome.problem.inertial import inertial_terms_of
from holonome.problem.model_of import model_of, trace_functions, with_elements, with_written_derivatives
from holonome.problem.parameters import Parameters
from holonome.problem.stated_system import StatedSystem
from holonome.problem.user_function import Expression, UserFunction
from holonome.tracing import Frozen

if TYPE_CHECKING:
    from holonome.dynamics.state import State


class System(StatedSystem):
    """A mechanical system  M(t, q) v′ = f(t, q, v) − c_qᵀ (K c + D c′) − Gᵀ λ,  0 = g(t, q),  A(q) v = b.

    Every function is ordinary NumPy code and names the arguments it wants, any subset of ``t``, ``q``, ``v``,
    ``p``.  Nothing else is asked for: derivatives are exact and automatic.  A system with states or unknowns
    offers them as ``s`` and ``w``, and ``force`` and ``rate`` may ask for the multipliers ``lam``.

    Parameters
    ----------
    mass : array or callable(t, q, p)
        n × n matrix; a vector is its diagonal, a scalar that multiple of the identity.
    force : array or callable(t, q, v, p)
        n applied forces.  May be left out where there are elastic elements.
    constraint : callable(t, q, p), optional
        One or many position constraints g; zero where they hold.
    velocity_constraint : callable(t, q, v, p), optional
        Non-holonomic rows.  With ``v`` among its arguments it returns the residual A(q) v − b, linear in v;
        without, the matrix A(q).
    elastic : Elastic or sequence of Elastic, optional
        Springs and bushings: deformations c(t, q) with stiffness K and damping D, whose forces come on top of
        ``force``.
    contacts : Contact or sequence of Contact, optional
        Distances that must not become negative: stops, floors, ropes, with impacts and dry friction.
    states, rate : dict and callable(t, q, v, s, w, lam, p), optional
        First-order states s by name with their values at the start, and s′.
    unknowns, equations : dict and callable(t, q, w, p), optional
        Unknowns w by name with a guess of their values at the start, and what must vanish: as many equations,
        which determine w.  Contact points, for example.
    invariant : callable(t, q, v, s, w, p), optional
        Quantities that the motion conserves, such as energy or momentum.  Projection keeps them at their
        initial values as well.
    inertial : "derived" or "in force", optional
        Where the mass matrix depends on q, the equations of motion contain the inertial (Coriolis and
        centrifugal) terms −c, c(q, v) = Ṁ v − ½ ∂(vᵀ M v)/∂q.  "derived": they are added to ``force``;
        "in force": ``force`` contains them.  By default they are added if ``force`` is linear in v, and taken
        as contained if its second derivatives by v are those of −c; anything else is refused.  Of a mass that
        changes with time, M(t), nothing is added unless it is asked for; then Ṁ v is all of it.
    potential : callable(t, q, p), optional
        Potential energy of ``force``; that of elastic elements, ½ cᵀ K c, is added.  Only used to report the
        energy; forces are not derived from it.
    parameters : dict, optional
        Numbers and arrays that the functions see as ``p.name``.  They may be changed for a run without
        compiling anything.
    inputs : dict, optional
        The same, but meant to change on the way: what motors and controllers set.  ``force``, ``rate`` and
        events see them as ``u.name``.
    names : sequence of str, optional
        Names of the coordinates.
    n : int, optional
        Number of coordinates, where neither ``names`` nor a mass array gives it.
    constraint_names : sequence of str, optional
        Names of the rows of ``constraint`` and then of ``velocity_constraint``, for messages and plots.
    derivatives : dict, optional
        Hand-written derivatives: ``constraint_q`` (m × n), ``force_q``, ``force_v`` (n × n).  They are
        checked, and used where the function cannot be traced but they can; otherwise differences are taken.
    name : str, optional
        A name for messages and plots.
    drawing : Drawing, optional
        How to draw it in an animation; without, points and rods are looked for in its coordinates and
        constraints.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> pendulum = hn.System(
    ...     mass=np.eye(2),
    ...     force=lambda q, p: np.array([0.0, -p.g]),
    ...     constraint=lambda q, p: q @ q - p.length**2,
    ...     parameters={"g": 9.81, "length": 1.0},
    ...     names=["x", "y"],
    ... )
    >>> pendulum.n, pendulum.m
    (2, 1)
    """

    def __init__(
        self,
        mass: Any,
        force: Any = None,
        constraint: Callable | None = None,
        *,
        velocity_constraint: Callable | None = None,
        elastic: Elastic | Sequence[Elastic] | None = None,
        contacts: Contact | Sequence[Contact] | None = None,
        states: Mapping[str, float] | None = None,
        rate: Callable | None = None,
        unknowns: Mapping[str, float] | None = None,
        equations: Callable | None = None,
        invariant: Callable | None = None,
        inertial: Literal["derived", "in force"] | None = None,
        potential: Any = None,
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        names: Sequence[str] | None = None,
        n: int | None = None,
        constraint_names: Sequence[str] | None = None,
        derivatives: Mapping[str, Callable] | None = None,
        name: str = "system",
        drawing: Drawing | None = None,
    ) -> None:
        if drawing is not None and not isinstance(drawing, Drawing):
            raise ModelError(f"drawing: {shown(drawing)}; give an hn.Drawing")
        self.name = checked("name", name, ModelError)
        self.drawing = drawing
        names, n = checked("names", names, ModelError), checked("n", n, ModelError)
        self.parameters = Parameters(parameters, inputs)
        self.n = 0 if n == 0 and states else count(mass, names, n)
        self.names = distinct_names("names", names, self.n) or [f"q{i}" for i in range(self.n)]
        self.states = start_values("states", states, "rate", rate)
        self.unknowns = start_values("unknowns", unknowns, "equations", equations)
        require_one_meaning(
            {"names": self.names, "states": list(self.states), "unknowns": list(self.unknowns)}
        )
        self.multipliers = None
        self.state_size = 2 * self.n + len(self.states)
        parts = elements.as_elements(elastic)
        if force is None and parts:
            force = np.zeros(self.n)
            potential = 0.0 if potential is None else potential
        given = {
            "mass": mass,
            "force": force,
            "constraint": constraint,
            "velocity_constraint": velocity_constraint,
            "rate": rate,
            "equations": equations,
            "invariant": invariant,
            "potential": potential,
        }
        self._further = self._further_of(given)
        self.functions = {
            role: UserFunction(self.roles.get(role, role), f, self.n, self.parameters, self._further, role)
            for role, f in given.items()
            if f is not None
        } | elements.functions(parts, self.n, self.parameters)
        self._elements = list(parts)
        touching = unilateral.as_contacts(contacts)
        if touching and not self.n:
            raise ModelError("contacts: this system has no coordinates; leave them out")
        self.functions |= unilateral.functions(touching, self.n, self.parameters)
        self._derivatives = checked("derivatives", derivatives, ModelError) or {}
        self.compiled = Compiled()
        inertial = checked("inertial", inertial, ModelError)
        with expressions:
            self._build(inertial)
            self.contacts = unilateral.plan_of(touching, self._expressions, self.symbols["v"])
        if touching and "lam" in self._further:
            raise ModelError(
                "contacts: forces that depend on lam cannot go together with them; give contacts their own "
                "friction, and leave lam out of force"
            )
        self.constraint_names = (
            distinct_names("constraint_names", constraint_names, self.m) or self._default_constraint_names()
        )
        check_derivatives(self._derivatives, self.functions, self._further, self.parameters, self.n)

    def _further_of(self, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Values to try for those of s, w and lam that the system has; the size of lam is not known yet."""
        for role in ("mass", "force"):
            if given[role] is None:
                raise ModelError(f"{role}: missing; give an array or a callable")
        further = {
            name: np.array(list(values.values()))
            for name, values in (("s", self.states), ("w", self.unknowns))
            if values
        }
        if any(asks_for_multipliers(self.roles.get(role, role), given[role]) for role in ("force", "rate")):
            if given["constraint"] is None and given["velocity_constraint"] is None:
                raise ModelError("force: its argument 'lam' is not known; the system has no constraints")
            further["lam"] = np.zeros(0)
        return further

    def _build(self, inertial: str | None) -> None:
        """The model, from the functions, and what can only be checked with it."""
        found = trace_functions(self.functions, self.parameters, self.n, self._further)
        for name in ("w", "lam"):
            if name in self._further:
                found.add_solved(name, self.empty_block(name))
        self.symbols = found.symbols
        self._expressions = found.expressions
        self._supplied = found.supplied
        self._frozen = Frozen((role, f.captured) for role, f in self.functions.items()) or None
        self._solved = found.solved
        model = model_of(found)
        require_symmetric_mass(self._mass_values(model.rows), self.n)
        self.inertial: Literal["derived", "in force"] | None = inertial_terms_of(inertial, model, self)
        self._refuse_inputs(model)
        if self.inertial == "derived":
            model = replace(model, f=model.f - sum(model.inertial))
        model = with_elements(model, self._elements, found.expressions, self.functions)
        if self._derivatives and found.supplied:
            model = with_written_derivatives(model, self._derivatives, self.functions, found)
        self.model = model
        if model.h.numel():
            require_linear_velocity_constraint(model, self.functions["velocity_constraint"])
        self._check_elements()

    def _refuse_inputs(self, model: Model) -> None:
        """Inputs may jump; what depends on them must be allowed to."""
        inputs = self.symbols["p"][self.parameters.of_inputs]
        parts = {
            "mass": model.M,
            "constraint": model.g,
            "velocity_constraint": model.h,
            "equations": model.k,
            "invariant": model.I,
        }
        for role, expression in parts.items():
            if inputs.numel() and ca.depends_on(expression, inputs):
                raise ModelError(
                    f"{role}: it depends on an input, which may jump; only forces and rates may. Use a "
                    "parameter, or make what shall follow the input a first-order state"
                )

    def _mass_values(self, rows: int) -> Callable[[dict[str, Any]], ca.DM]:
        """The mass matrix at a point (t, q, v), with states and unknowns at the start and without λ."""
        mass = self.functions["mass"]
        if mass.supplied is not None:
            return lambda point: ca.DM(mass.evaluate(point))
        matrix = ca.reshape(self._expressions["mass"], self.n, self.n).T
        function = ca.Function("check", list(self.symbols.values()), [matrix])
        states, unknowns = list(self.states.values()), list(self.unknowns.values())

        def values(point: dict[str, Any]) -> ca.DM:
            at = point["t"], point["q"], point["v"]
            return function(*at, self.parameters.flat, states, unknowns, np.zeros(rows))

        return values

    contacts: ContactPlan
    roles: ClassVar[dict[str, str]] = {}
    """What its functions are called in messages, where not by their names here."""

    def released(self, *names: str) -> System:
        """The system without these constraints, for a run in which they are locked later: a latch that is
        open, a clutch that slips.

        A name is that of a row or of a joint; the actions of events release and lock by the same names.

        Examples
        --------
        >>> import holonome as hn
        >>> pendulum = hn.mechanisms.pendulum().system
        >>> pendulum.m, pendulum.released("rod").m
        (1, 0)
        """
        from holonome.dynamics.switched import released

        return released(self, names)

    def at(
        self,
        t: Any,
        q: Any,
        v: Any = None,
        s: Any = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
    ) -> State:
        """The system at a state, or at many: masses, forces, accelerations, multipliers, energy, and their
        derivatives.

        Parameters
        ----------
        t : number, or one for each state
            Time.
        q, v : (n,) arrays, or (n, states)
            Positions and velocities; None: at rest.  Of an ODE, q is its x.
        s : array, optional
            First-order states; by default those that the system was given.
        parameters, inputs : dict, optional
            Values that replace those of the system.

        Examples
        --------
        >>> import holonome as hn
        >>> pendulum = hn.mechanisms.pendulum().system
        >>> pendulum.at(0, [0, -1], [2, 0]).lam.round(9).tolist()
        [6.905]
        """
        from holonome.dynamics.state import State

        system = self
        for argument, given in (("parameters", parameters), ("inputs", inputs)):
            if given is not None:
                system = system.with_parameters(**self.parameters.own(argument, given))
        system.require_unchanged()
        return State(system, t, q, v, s)

    def _default_constraint_names(self) -> list[str]:
        position = [f"constraint[{i}]" for i in range(self.model.position_rows)]
        return position + [f"velocity_constraint[{i}]" for i in range(self.m - len(position))]

    def __getstate__(self) -> dict[str, Any]:
        """Traced functions travel as programs, so systems made of lambdas pickle; functions that cannot be
        traced must pickle themselves. A drawing that cannot stays behind.
        """
        supplied = {f.role for f in self.supplied}
        programs = {
            role: Program.of_expressions(self.symbols, [ca.densify(self._expressions[role])])
            for role in self.functions
            if role not in supplied
        }
        return {
            "name": self.name,
            "parameters": {name: self.parameters[name] for name in self.parameters.layout_of("p")},
            "inputs": {name: self.parameters[name] for name in self.inputs},
            "n": self.n,
            "names": self.names,
            "constraint_names": self.constraint_names,
            "functions": {role: self.functions[role].function for role in supplied},
            "traced": programs,
            "derivatives": self._derivatives if supplied else {},
            "states": self.states or None,
            "unknowns": self.unknowns or None,
            "inertial": self.inertial,
            "drawing": self.drawing if _pickles(self.drawing) else None,
            "contacts": self.contacts or None,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        functions = state["functions"] | {
            role: Expression.of_program(role, program, state["n"])
            for role, program in state["traced"].items()
        }
        parts = {role: functions.pop(role) for role in list(functions) if role.startswith("elastic")}
        touching = {role: functions.pop(role) for role in list(functions) if role.startswith("contacts")}
        System.__init__(
            self,
            **functions,
            elastic=elements.rebuilt(parts),
            contacts=unilateral.rebuilt(touching, state["contacts"]),
            states=state["states"],
            unknowns=state["unknowns"],
            inertial=state["inertial"],
            parameters=state["parameters"],
            inputs=state["inputs"],
            names=state["names"],
            n=state["n"],
            constraint_names=state["constraint_names"] or None,
            derivatives=state["derivatives"],
            name=state["name"],
            drawing=state["drawing"],
        )

    def __repr__(self) -> str:
        return f"System({self.name!r}, n={self.n}, m={self.m})"

    def __str__(self) -> str:
        return description(self)


def _pickles(thing: Any) -> bool:
    try:
        pickle.dumps(thing)
    except Exception:
        return False
    return True
