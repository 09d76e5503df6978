"""SymPy models and expressions become equations of motion in q and v = q'.

Kane's method works with speeds u that need not be q'. SymPy's KanesMethod moreover eliminates the dependent
ones, which fails in singular positions. So Kane's equations are formed anew with all speeds independent,
M_u u' = f_u, and the kinematic equations, solved for u = Y(q) v + y(q), change the variables:

    M = Y^T M_u Y,    f = Y^T (f_u - M_u (Y' v + y')).

The constraints are kept as they were stated.

References
----------
T. R. Kane, D. A. Levinson, Dynamics: Theory and Applications, McGraw-Hill, 1985.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holonome.errors import ModelError

if TYPE_CHECKING:
    import sympy as sp


@dataclass(frozen=True)
class Equations:
    """Expressions in the coordinates and velocities of SymPy. `velocities` maps each symbol of a velocity to
    the place of its coordinate.
    """

    time: sp.Symbol
    coordinates: tuple[sp.Expr, ...]
    velocities: Mapping[sp.Expr, int]
    mass: sp.Matrix
    force: sp.Matrix
    constraint: sp.Matrix
    velocity_constraint: sp.Matrix
    potential: sp.Expr | None = None
    derived_velocity_constraint: bool = False
    mentioned: frozenset[sp.Symbol] = frozenset()
    """Symbols of the model, also those that its equations no longer contain."""


def column(expressions: Any) -> sp.Matrix:
    """A column of expressions; an equation a = b becomes a - b."""
    import sympy as sp

    entries: list[Any]
    if expressions is None:
        entries = []
    elif isinstance(expressions, sp.MatrixBase):
        entries = expressions.flat()
    elif isinstance(expressions, Iterable):
        entries = [sp.sympify(e) for e in expressions]
    else:
        entries = [sp.sympify(expressions)]
    return sp.Matrix(len(entries), 1, [e.lhs - e.rhs if e.is_Equality else e for e in entries])


def _rates(coordinates: Iterable[sp.Expr], time: sp.Symbol) -> dict[sp.Expr, int]:
    return {q.diff(time): i for i, q in enumerate(coordinates) if not q.is_Symbol}


def from_expressions(
    *,
    coordinates: Any,
    speeds: Any,
    mass: Any,
    force: Any,
    constraint: Any,
    velocity_constraint: Any,
    time: sp.Symbol,
) -> Equations:
    import sympy as sp

    q, u = column(coordinates).flat(), column(speeds).flat()
    if u and len(u) != len(q):
        raise ModelError(
            f"speeds has {len(u)} entries, coordinates has {len(q)}: speeds names the derivative of each "
            "coordinate, in the same order"
        )
    return Equations(
        time=time,
        coordinates=tuple(q),
        velocities={**_rates(q, time), **{u_i: i for i, u_i in enumerate(u)}},
        mass=sp.Matrix(mass) if isinstance(mass, Iterable) else sp.Matrix([[mass]]),
        force=column(force),
        constraint=column(constraint),
        velocity_constraint=column(velocity_constraint),
    )


def from_model(model: Any) -> Equations:
    from sympy.physics import mechanics as me

    if isinstance(model, me.LagrangesMethod):
        return _from_lagrange(model)
    if isinstance(model, me.KanesMethod):
        velocity_constraint = model._k_nh * model.u + model._f_nh if model._k_nh else None
        kinematics = (
            model._k_kqdot_implicit * model.q.diff(me.dynamicsymbols._t)
            + model._k_ku_implicit * model.u
            + model._f_k_implicit
        )
        return _from_kane(
            frame=model._inertial,
            coordinates=model.q,
            speeds=model.u,
            kinematics=kinematics,
            auxiliary=model._uaux,
            bodies=model.bodies,
            loads=model.loads,
            constraint=model._f_h,
            velocity_constraint=velocity_constraint,
        )
    if isinstance(model, me.System):
        return _from_mechanics_system(model)
    raise TypeError(
        f"model is a {type(model).__name__}; from_sympy reads KanesMethod, LagrangesMethod and System of "
        "sympy.physics.mechanics"
    )


def _from_mechanics_system(system: Any) -> Equations:
    """Follow the method by which the equations were formed; before that, SymPy's default, Kane, unless the
    speeds are written q'.
    """
    from sympy.physics import mechanics as me

    loads = [*system.loads, *(load for actuator in system.actuators for load in actuator.to_loads())]
    rates = set(system.q.diff(me.dynamicsymbols._t))
    if isinstance(system.eom_method, me.LagrangesMethod) or (
        system.eom_method is None and rates & set(system.u)
    ):
        return _from_lagrange(
            me.LagrangesMethod(
                me.Lagrangian(system.frame, *system.bodies),
                system.q,
                forcelist=loads,
                bodies=system.bodies,
                frame=system.frame,
                hol_coneqs=list(system.holonomic_constraints),
                nonhol_coneqs=list(system.nonholonomic_constraints),
            )
        )
    return _from_kane(
        frame=system.frame,
        coordinates=system.q,
        speeds=system.u,
        kinematics=system.kdes,
        auxiliary=system.u_aux,
        bodies=system.bodies,
        loads=loads,
        constraint=system.holonomic_constraints,
        velocity_constraint=system.velocity_constraints,
    )


def _from_lagrange(model: Any) -> Equations:
    """Lagrange's equations of the unconstrained bodies.

    The potential is -L(q, v = 0), so that v^T M v / 2 plus it is the energy integral, also in a moving frame.
    """
    from sympy.physics import mechanics as me

    t = me.dynamicsymbols._t
    lagrangian = model._L[0]
    unconstrained = me.LagrangesMethod(
        lagrangian, model.q, forcelist=model.forcelist, bodies=model.bodies, frame=model.inertial
    )
    unconstrained.form_lagranges_equations()
    rates = _rates(model.q.flat(), t)
    return Equations(
        time=t,
        coordinates=tuple(model.q.flat()),
        velocities=rates,
        mass=unconstrained.mass_matrix,
        force=unconstrained.forcing,
        constraint=column(model._hol_coneqs),
        velocity_constraint=column(model.coneqs[len(model._hol_coneqs) :]),
        potential=-lagrangian.xreplace(dict.fromkeys(rates, 0)),
        mentioned=frozenset(lagrangian.free_symbols)
        | _symbols_of_bodies(model.inertial, model.bodies, model.forcelist),
    )


def _from_kane(
    *,
    frame: Any,
    coordinates: Any,
    speeds: Any,
    kinematics: Any,
    auxiliary: Any,
    bodies: Any,
    loads: Any,
    constraint: Any,
    velocity_constraint: Any,
) -> Equations:
    """Kane's equations with all speeds independent, transformed from u to v = q'."""
    import sympy as sp
    from sympy.physics import mechanics as me

    if not bodies:
        raise ModelError(
            "this model has no bodies: give KanesMethod its bodies= and forcelist=, or call its "
            "kanes_equations(bodies, loads) first"
        )
    t = me.dynamicsymbols._t
    u = sp.Matrix(speeds)
    q, kinematics = _complete_coordinates(sp.Matrix(coordinates), u, sp.Matrix(kinematics), t)
    v = sp.Matrix([q_i.diff(t) for q_i in q.flat()])

    kane = me.KanesMethod(
        frame, q.flat(), u.flat(), kd_eqs=kinematics.flat(), u_auxiliary=list(auxiliary) or None
    )
    kane.kanes_equations(list(bodies), list(loads) if loads else None)
    M_u, f_u = kane.mass_matrix, kane.forcing

    Y, y = _speeds_of_velocities(kinematics, u, v)
    to_velocities = dict(zip(u.flat(), (Y * v + y).flat(), strict=True)) | {
        w: sp.S.Zero for a in auxiliary for w in (a, a.diff(t))
    }
    M_u, f_u = M_u.xreplace(to_velocities), f_u.xreplace(to_velocities)
    return Equations(
        time=t,
        coordinates=tuple(q.flat()),
        velocities=_rates(q.flat(), t),
        mass=Y.T * M_u * Y,
        force=Y.T * (f_u - M_u * (Y.diff(t) * v + y.diff(t))),
        constraint=column(constraint),
        velocity_constraint=column(velocity_constraint).xreplace(to_velocities),
        derived_velocity_constraint=True,
        mentioned=frozenset(kinematics.free_symbols) | _symbols_of_bodies(frame, bodies, loads),
    )


def _symbols_of_bodies(frame: Any, bodies: Any, loads: Any) -> frozenset[sp.Symbol]:
    """Symbols of masses, inertias, energies and loads, whether or not they matter for the motion."""
    bodies = list(bodies or ())
    quantities = [
        quantity
        for body in bodies
        for quantity in (body.mass, body.kinetic_energy(frame), body.potential_energy)
    ]
    quantities += [
        body.central_inertia.to_matrix(body.frame) for body in bodies if hasattr(body, "central_inertia")
    ]
    return frozenset().union(
        *(quantity.free_symbols for quantity in quantities),
        *(vector.free_symbols(frame) for _, vector in loads or ()),
    )


def _complete_coordinates(
    q: sp.Matrix, u: sp.Matrix, kinematics: sp.Matrix, t: sp.Symbol
) -> tuple[sp.Matrix, sp.Matrix]:
    """Give each speed that occurs in no kinematic equation a coordinate of its own, its integral."""
    import sympy as sp
    from sympy.physics.mechanics import dynamicsymbols

    without_coordinate = [u_i for u_i in u.flat() if not kinematics.has(u_i)]
    if len(q) + len(without_coordinate) != len(u):
        raise ModelError(
            f"the model has {len(q)} coordinates ({_listed(q)}) and {len(u)} speeds ({_listed(u)}), and its "
            "kinematic equations cannot be solved for the speeds. A System has one velocity for each "
            "coordinate: describe rotations by angles in place of quaternions, and give each speed a "
            "kinematic equation"
        )
    for u_i in without_coordinate:
        integral = dynamicsymbols(f"integral_of_{u_i.func.__name__}")
        q = q.col_join(sp.Matrix([integral]))
        kinematics = kinematics.col_join(sp.Matrix([integral.diff(t) - u_i]))
    return q, kinematics


def _speeds_of_velocities(kinematics: sp.Matrix, u: sp.Matrix, v: sp.Matrix) -> tuple[sp.Matrix, sp.Matrix]:
    """Y and y of u = Y v + y, from kinematic equations that are linear in u and v."""
    import sympy as sp

    K_u, K_v = kinematics.jacobian(u), kinematics.jacobian(v)
    rest = kinematics.xreplace(dict.fromkeys(u.flat() + v.flat(), sp.S.Zero))
    try:
        solution = K_u.LUsolve(-K_v.row_join(rest))
    except sp.matrices.exceptions.NonInvertibleMatrixError as error:
        raise ModelError(
            f"the kinematic equations cannot be solved for the speeds {_listed(u)}: their coefficients are "
            "singular"
        ) from error
    return solution[:, :-1], solution[:, -1]


def _listed(symbols: sp.Matrix) -> str:
    return ", ".join(map(str, symbols.flat()))
