"""from_sympy: mass matrix, forces and constraints of SymPy models against formulas derived by hand, and
accelerations against SymPy's own.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

from holonome.errors import ModelError
from holonome.problem.from_sympy import from_sympy

sp = pytest.importorskip("sympy", reason="needs SymPy: pip install -e '.[test]'")
me = pytest.importorskip("sympy.physics.mechanics", reason="needs SymPy: pip install -e '.[test]'")

dynamicsymbols = me.dynamicsymbols
t = dynamicsymbols._t
random = np.random.default_rng(4)


def at(system, q, v, time=0.0):
    """M, f, g, the rows C of all constraints on the velocity level, h = A v - b and the potential."""
    model = system.model
    assert set(system.paths.values()) <= {"traced", "constant"}
    gamma = ca.jtimes(model.w, model.q, model.v) + ca.jacobian(model.w, model.t) if system.m else ca.SX(0, 1)
    potential = ca.SX(0) if model.V is None else model.V
    expressions = {
        "M": model.M,
        "f": model.f,
        "g": model.g,
        "C": model.C,
        "h": model.h,
        "V": potential,
        "gamma": gamma,
    }
    function = ca.Function(
        "all", [model.t, model.q, model.v, system.symbols["p"]], list(expressions.values())
    )
    values = [np.array(x) for x in function(time, q, v, system.parameters.flat)]
    return SimpleNamespace(
        **{name: x if name in "MC" else x.ravel() for name, x in zip(expressions, values, strict=True)}
    )


def acceleration(system, q, v, time=0.0):
    """Solve M v' = f - C^T lam, C v' + gamma = 0 for v'."""
    e = at(system, q, v, time)
    m = len(e.gamma)
    return np.linalg.solve(
        np.block([[e.M, e.C.T], [e.C, np.zeros((m, m))]]), np.concatenate([e.f, -e.gamma])
    )[: len(q)]


def tangent(system, q, v, time=0.0):
    """The velocity nearest to v that satisfies the constraints (scleronomic ones)."""
    C = at(system, q, v, time).C
    return v - np.linalg.pinv(C) @ C @ v


def numbers(expressions, values):
    return np.array(sp.Matrix(expressions).subs(values).evalf(), dtype=float)


def test_expressions_with_speeds_and_with_derivatives():
    x, y, u, w = dynamicsymbols("x y u w")
    m, g, l, c = sp.symbols(r"m g l_{0} \gamma", positive=True)
    system = from_sympy(
        mass=m * sp.eye(2),
        force=[-c * u, -m * g - c * y.diff(t)],
        constraint=sp.Eq(x**2 + y**2, l**2),
        potential=m * g * y,
        coordinates=[x, y],
        speeds=[u, w],
        parameters={m: 2, "g": 9.81, l: sp.Rational(1, 2), "gamma": 0.3},
        name="pendulum",
    )
    assert system.names == ["x", "y"]
    assert system.name == "pendulum"
    assert dict(system.parameters) == {"gamma": 0.3, "g": 9.81, "l_0": 0.5, "m": 2.0}
    e = at(system, [0.3, -0.4], [1.0, 2.0])
    np.testing.assert_allclose(e.M, 2 * np.eye(2))
    np.testing.assert_allclose(e.f, [-0.3, -2 * 9.81 - 0.6])
    np.testing.assert_allclose(e.g, [0.0], atol=1e-15)
    np.testing.assert_allclose(e.C, [[0.6, -0.8]])
    np.testing.assert_allclose(e.V, [-0.8 * 9.81])


def test_plain_symbols_may_be_coordinates():
    x, u, k = sp.symbols("x u k")
    e = at(
        from_sympy(mass=2, force=-k * x - u, coordinates=[x], speeds=[u], parameters={k: 3.0}), [0.5], [0.25]
    )
    np.testing.assert_allclose([e.M[0, 0], e.f[0]], [2.0, -1.75])


def test_time_and_prescribed_functions():
    x, drive = dynamicsymbols("x drive")
    omega = sp.Symbol("omega")
    system = from_sympy(
        mass=[[1]],
        force=[drive.diff(t) + t],
        constraint=[x - drive],
        coordinates=[x],
        parameters={drive: sp.sin(omega * t), omega: 2.0},
    )
    e = at(system, [0.7], [0.1], time=0.4)
    np.testing.assert_allclose(e.f, [2 * np.cos(0.8) + 0.4])
    np.testing.assert_allclose(e.g, [0.7 - np.sin(0.8)])
    np.testing.assert_allclose(e.gamma, [4 * np.sin(0.8)])


def test_choices_are_traced():
    x, y = dynamicsymbols("x y")
    xd, yd = x.diff(t), y.diff(t)
    force = [
        sp.Piecewise((x**2, x < 0), (sp.sin(x), (x < 1) & (y > 0)), (1 / (1 + x), True))
        + sp.Abs(y)
        - sp.sign(xd),
        sp.Max(x, y, 0) * sp.Min(xd, yd)
        + sp.atan2(y, 2 + x)
        + sp.Heaviside(y)
        + x**-2
        + 1 / sp.sqrt(1 + y**2)
        + sp.sec(x)
        + sp.pi,
    ]
    system = from_sympy(mass=sp.eye(2), force=force, coordinates=[x, y])
    for _ in range(20):
        q, v = random.uniform(-1.5, 1.5, 2), random.normal(size=2)
        expected = numbers(sp.Matrix(force).subs({xd: v[0], yd: v[1]}), {x: q[0], y: q[1]})
        np.testing.assert_allclose(at(system, q, v).f, expected.ravel(), rtol=1e-12)


def test_lagrange_pendulum_in_cartesian_coordinates():
    x, y = dynamicsymbols("x y")
    m, g, l = sp.symbols("m g l")
    lagrangian = m * (x.diff(t) ** 2 + y.diff(t) ** 2) / 2 - m * g * y
    model = me.LagrangesMethod(lagrangian, [x, y], hol_coneqs=[x**2 + y**2 - l**2])
    system = from_sympy(model, parameters={m: 2.0, g: 9.81, l: 0.5})
    e = at(system, [0.3, -0.4], [4.0, 3.0])
    np.testing.assert_allclose(e.M, 2 * np.eye(2))
    np.testing.assert_allclose(e.f, [0.0, -2 * 9.81])
    np.testing.assert_allclose(e.C, [[0.6, -0.8]])
    np.testing.assert_allclose(e.V, [-0.8 * 9.81])
    assert system.m == 1


def test_lagrange_knife_edge_with_a_load():
    x, y, phi = dynamicsymbols("x y phi")
    m, J, F = sp.symbols("m J F")
    N = me.ReferenceFrame("N")
    blade = N.orientnew("B", "Axis", [phi, N.z])
    centre = me.Point("C")
    centre.set_vel(N, x.diff(t) * N.x + y.diff(t) * N.y)
    body = me.RigidBody("knife", centre, blade, m, (me.inertia(blade, 0, 0, J), centre))
    model = me.LagrangesMethod(
        me.Lagrangian(N, body),
        [x, y, phi],
        forcelist=[(centre, F * blade.x)],
        bodies=[body],
        frame=N,
        nonhol_coneqs=[x.diff(t) * sp.sin(phi) - y.diff(t) * sp.cos(phi)],
    )
    system = from_sympy(model, parameters={"m": 2.0, "J": 0.3, "F": 1.5})
    e = at(system, [0.0, 0.0, 0.7], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(e.M, np.diag([2.0, 2.0, 0.3]), atol=1e-15)
    np.testing.assert_allclose(e.f, [1.5 * np.cos(0.7), 1.5 * np.sin(0.7), 0.0], atol=1e-15)
    np.testing.assert_allclose(e.C, [[np.sin(0.7), -np.cos(0.7), 0.0]])
    np.testing.assert_allclose(e.h, [np.sin(0.7) - 2 * np.cos(0.7)])


def test_lagrange_in_a_rotating_frame_keeps_the_energy_integral():
    (r,) = dynamicsymbols("r,")
    m, omega, k = sp.symbols("m omega k")
    lagrangian = m * (r.diff(t) ** 2 + omega**2 * r**2) / 2 - k * r**2 / 2
    e = at(
        from_sympy(me.LagrangesMethod(lagrangian, [r]), parameters={m: 2.0, omega: 3.0, k: 5.0}), [0.5], [0.1]
    )
    np.testing.assert_allclose(e.f, [(2 * 9 - 5) * 0.5])
    np.testing.assert_allclose(e.V, [(5 - 2 * 9) * 0.25 / 2])


def knife_edge_by_kane():
    """Speeds along and across the blade: not the derivatives of coordinates."""
    x, y, phi, along, across, omega = dynamicsymbols("x y phi along across omega")
    m, J, g = sp.symbols("m J g")
    N = me.ReferenceFrame("N")
    blade = N.orientnew("B", "Axis", [phi, N.z])
    blade.set_ang_vel(N, omega * N.z)
    centre = me.Point("C")
    centre.set_vel(N, along * blade.x + across * blade.y)
    body = me.RigidBody("knife", centre, blade, m, (me.inertia(blade, 0, 0, J), centre))
    velocity = x.diff(t) * N.x + y.diff(t) * N.y
    kinematics = [along - velocity.dot(blade.x), across - velocity.dot(blade.y), omega - phi.diff(t)]
    model = me.KanesMethod(
        N, [x, y, phi], [along, omega], kd_eqs=kinematics, u_dependent=[across], velocity_constraints=[across]
    )
    model.kanes_equations([body], [(centre, m * g * N.x)])
    return model


def test_kane_with_quasi_velocities():
    system = from_sympy(knife_edge_by_kane(), parameters={"m": 2.0, "J": 0.3, "g": 9.81})
    q, v = np.array([0.1, 0.2, 0.7]), np.array([1.0, 2.0, 3.0])
    e = at(system, q, v)
    np.testing.assert_allclose(e.M, np.diag([2.0, 2.0, 0.3]), atol=1e-14)
    np.testing.assert_allclose(e.f, [2.0 * 9.81, 0.0, 0.0], atol=1e-13)
    np.testing.assert_allclose(e.C, [[-np.sin(0.7), np.cos(0.7), 0.0]], atol=1e-14)


def test_kane_rolling_disc_whose_contact_speeds_have_no_coordinates():
    """The disc of the SymPy documentation; its accelerations follow from Kane's equations."""
    q = dynamicsymbols("q1:4")
    u = dynamicsymbols("u1:7")
    m, g, r = sp.symbols("m g r")
    N = me.ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q[0], N.z])
    L = Y.orientnew("L", "Axis", [q[1], Y.x])
    R = L.orientnew("R", "Axis", [q[2], L.y])
    kinematics = [
        (q[0].diff(t) * N.z + q[1].diff(t) * Y.x + q[2].diff(t) * L.y).dot(axis) - u[i]
        for i, axis in enumerate(L)
    ]
    R.set_ang_vel(N, u[0] * L.x + u[1] * L.y + u[2] * L.z)
    contact = me.Point("C")
    contact.set_vel(N, u[3] * L.x + u[4] * Y.z.cross(L.x) + u[5] * Y.z)
    centre = contact.locatenew("Dmc", r * L.z)
    centre.v2pt_theory(contact, N, R)
    disc = me.RigidBody(
        "disc", centre, R, m, (me.inertia(L, m / 4 * r**2, m / 2 * r**2, m / 4 * r**2), centre)
    )
    model = me.KanesMethod(N, q, u[:3], kd_eqs=kinematics, u_dependent=u[3:], velocity_constraints=u[3:])
    model.kanes_equations([disc], [(centre, -m * g * Y.z)])
    system = from_sympy(model, parameters={"m": 1.5, "g": 9.81, "r": 0.4})
    assert (system.n, system.m) == (6, 3)

    position, velocity = np.array([0.3, 0.4, 0.5, 0.0, 0.0, 0.0]), np.array([0.7, -0.2, 1.1, 0.0, 0.0, 0.0])
    found = acceleration(system, position, velocity)
    lean, yaw_rate, lean_rate, spin = position[1], *velocity[:3]
    omega = [lean_rate, spin + yaw_rate * np.sin(lean), yaw_rate * np.cos(lean)]
    constants = {m: 1.5, g: 9.81, r: 0.4, **dict(zip(q, position, strict=False))}
    u_dot = numbers(model.rhs()[3:6], {**constants, **dict(zip(u, [*omega, 0, 0, 0], strict=True))}).ravel()
    expected = [
        found[1],
        found[2] + found[0] * np.sin(lean) + yaw_rate * lean_rate * np.cos(lean),
        found[0] * np.cos(lean) - yaw_rate * lean_rate * np.sin(lean),
    ]
    np.testing.assert_allclose(expected, u_dot, rtol=1e-10)


def test_kane_rigid_body_with_angular_velocity_as_speeds():
    """From ω = B(q) q' follows M = Bᵀ I B; without loads the kinetic energy is constant, so v·f + v·M' v / 2
    = 0.
    """
    q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
    I = sp.symbols("I1:4")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_body_fixed(N, q, "xyz")
    omega = B.ang_vel_in(N)
    kinematics = [u[i] - omega.dot(axis) for i, axis in enumerate(B)]
    B.set_ang_vel(N, sum((u[i] * axis for i, axis in enumerate(B)), me.Vector(0)))
    centre = me.Point("C")
    centre.set_vel(N, 0)
    body = me.RigidBody("body", centre, B, 1, (me.inertia(B, *I), centre))
    model = me.KanesMethod(N, q, u, kd_eqs=kinematics, bodies=[body])
    system = from_sympy(model, parameters=dict(zip(I, [1.0, 2.0, 3.5], strict=True)))

    position, velocity = random.uniform(-0.6, 0.6, 3), random.normal(size=3)
    _, c2, c3 = np.cos(position)
    _, s2, s3 = np.sin(position)
    b = np.array([[c2 * c3, s3, 0], [-c2 * s3, c3, 0], [s2, 0, 1]])
    np.testing.assert_allclose(
        at(system, position, velocity).M, b.T @ np.diag([1.0, 2.0, 3.5]) @ b, atol=1e-13
    )
    h = 1e-5
    M_dot = (
        at(system, position + h * velocity, velocity).M - at(system, position - h * velocity, velocity).M
    ) / (2 * h)
    power = velocity @ at(system, position, velocity).f + velocity @ M_dot @ velocity / 2
    np.testing.assert_allclose(power, 0.0, atol=1e-8)


def four_bar(frame_of_velocity_constraints):
    """Four uniform rods as in the SymPy documentation: relative angles, loop closed at P4."""
    q, u = dynamicsymbols("q1:4"), dynamicsymbols("u1:4")
    l = sp.symbols("l1:5")
    m, g = sp.symbols("m g")
    N = me.ReferenceFrame("N")
    frames, points, bodies, loads = [N], [me.Point("P1")], [], []
    points[0].set_vel(N, 0)
    for i in range(3):
        frame = frames[-1].orientnew(f"B{i}", "Axis", [q[i], N.z])
        frame.set_ang_vel(frames[-1], u[i] * N.z)
        end = points[-1].locatenew(f"P{i + 2}", l[i] * frame.x)
        end.v2pt_theory(points[-1], N, frame)
        centre = points[-1].locatenew(f"C{i}", l[i] / 2 * frame.x)
        centre.v2pt_theory(points[-1], N, frame)
        bodies.append(
            me.RigidBody(f"rod{i}", centre, frame, m, (me.inertia(frame, 0, 0, m * l[i] ** 2 / 12), centre))
        )
        loads.append((centre, -m * g * N.y))
        frames.append(frame)
        points.append(end)
    loop = points[-1].pos_from(points[0]) - l[3] * N.x
    axes = frames[frame_of_velocity_constraints]
    kinematics = [q[i].diff(t) - u[i] for i in range(3)]
    velocity_constraints = [
        loop.dt(N).dot(axis).subs({q[i].diff(t): u[i] for i in range(3)}) for axis in (axes.x, axes.y)
    ]
    model = me.KanesMethod(
        N,
        q[:1],
        u[:1],
        kd_eqs=kinematics,
        q_dependent=q[1:],
        configuration_constraints=[loop.dot(N.x), loop.dot(N.y)],
        u_dependent=u[1:],
        velocity_constraints=velocity_constraints,
    )
    model.kanes_equations(bodies, loads)
    return model


LENGTHS = np.array([1.0, 2.0, 1.5, 2.2])


@pytest.mark.parametrize("frame", [0, 2], ids=["inertial", "moving"])
def test_kane_four_bar_keeps_only_the_position_constraints(frame):
    model = four_bar(frame)
    system = from_sympy(
        model, parameters={"m": 0.8, "g": 9.81} | {f"l{i + 1}": l for i, l in enumerate(LENGTHS)}
    )
    assert system.model.position_rows == 2
    assert system.m == 2

    def links(q):
        angles = np.cumsum(q)
        return LENGTHS[:3] * np.array([np.cos(angles), np.sin(angles)])

    q = np.array([1.2, -0.9, -1.4])
    for _ in range(50):
        e = at(system, q, np.zeros(3))
        q = q - np.linalg.pinv(e.C) @ e.g
    np.testing.assert_allclose(links(q).sum(axis=1), [LENGTHS[3], 0.0], atol=1e-12)

    # Partial velocities: joint j turns everything beyond it about its hinge.
    along = links(q)
    hinges = np.concatenate([np.zeros((2, 1)), np.cumsum(along, axis=1)], axis=1)
    M = np.zeros((3, 3))
    weight = np.zeros(3)
    for i in range(3):
        centre = hinges[:, i] + along[:, i] / 2
        partial = np.array(
            [
                [-(centre - hinges[:, j])[1], (centre - hinges[:, j])[0]] if j <= i else [0.0, 0.0]
                for j in range(3)
            ]
        )
        spin = (np.arange(3) <= i).astype(float)
        M += 0.8 * partial @ partial.T + 0.8 * LENGTHS[i] ** 2 / 12 * np.outer(spin, spin)
        weight -= 0.8 * 9.81 * partial[:, 1]
    tip = hinges[:, 3]
    G = np.array([[-(tip - hinges[:, j])[1] for j in range(3)], [(tip - hinges[:, j])[0] for j in range(3)]])
    e = at(system, q, np.zeros(3))
    np.testing.assert_allclose(e.M, M, rtol=1e-12)
    np.testing.assert_allclose(e.f, weight, rtol=1e-12)
    np.testing.assert_allclose(e.C, G, atol=1e-12)

    v = tangent(system, q, np.array([1.0, 0.5, -0.3]))
    values = dict(zip([*model.q, *model.u], [*q, *v], strict=True)) | {
        sp.Symbol("m"): 0.8,
        sp.Symbol("g"): 9.81,
    }
    values |= {sp.Symbol(f"l{i + 1}"): l for i, l in enumerate(LENGTHS)}
    u_dot = np.linalg.solve(numbers(model.mass_matrix, values), numbers(model.forcing, values)).ravel()
    np.testing.assert_allclose(acceleration(system, q, v), u_dot, rtol=1e-9)


def particle(**options):
    """A point with coordinates x, y, z and their derivatives as speeds; gravity along -z, and an auxiliary
    speed.
    """
    q, u, lift = dynamicsymbols("x y z"), dynamicsymbols("u1:4"), dynamicsymbols("lift")
    m, g = sp.symbols("m g")
    N, point = me.ReferenceFrame("N"), me.Point("P")
    point.set_vel(N, u[0] * N.x + u[1] * N.y + (u[2] + lift) * N.z)
    options = {key: value(q, u) for key, value in options.items()}
    independent = {
        "q_ind": q[: 3 - len(options.get("q_dependent", []))],
        "u_ind": u[: 3 - len(options.get("u_dependent", []))],
    }
    return me.KanesMethod(
        N,
        **independent,
        kd_eqs=[q_i.diff(t) - u_i for q_i, u_i in zip(q, u, strict=True)],
        u_auxiliary=[lift],
        **options,
        bodies=[me.Particle("P", point, m)],
        forcelist=[(point, -m * g * N.z)],
    )


def test_kane_keeps_the_velocity_constraints_that_do_not_follow_from_position():
    """The constraints are z = x² + t and y' = x z'; the derivative of the first is stated as well, in a form
    that holds only where z = x² + t.
    """
    model = particle(
        q_dependent=lambda q, u: q[2:],
        configuration_constraints=lambda q, u: [q[2] - q[0] ** 2 - t],
        u_dependent=lambda q, u: u[1:],
        velocity_constraints=lambda q, u: [u[2] - 2 * (q[2] - t) / q[0] * u[0] - 1, u[1] - q[0] * u[2]],
    )
    system = from_sympy(model, parameters={"m": 2.0, "g": 9.81})
    assert (system.model.position_rows, system.m) == (1, 2)
    e = at(system, [0.5, 0.3, 0.2], [1.0, 2.0, 3.0], time=0.1)
    np.testing.assert_allclose(e.M, 2 * np.eye(3))
    np.testing.assert_allclose(e.f, [0.0, 0.0, -2 * 9.81])
    np.testing.assert_allclose(e.g, [0.2 - 0.25 - 0.1])
    np.testing.assert_allclose(e.C, [[-1.0, 0.0, 1.0], [0.0, 1.0, -0.5]])
    np.testing.assert_allclose(e.h, [0.5])


def joints(speeds_are_derivatives=False):
    """Two rods on pins, the tip guided along the x axis."""
    q = dynamicsymbols("q1:3")
    u = [angle.diff(t) for angle in q] if speeds_are_derivatives else dynamicsymbols("u1:3")
    m, l, g = sp.symbols("m l g")
    wall = me.RigidBody("wall")
    rods = [me.RigidBody(f"rod{i}", mass=m) for i in range(2)]
    for rod in rods:
        rod.central_inertia = me.inertia(rod.frame, 0, 0, m * l**2 / 12)
    system = me.System.from_newtonian(wall)
    system.add_joints(
        me.PinJoint("pin1", wall, rods[0], q[0], u[0], child_point=-l / 2 * rods[0].x, joint_axis=wall.z),
        me.PinJoint(
            "pin2",
            rods[0],
            rods[1],
            q[1],
            u[1],
            parent_point=l / 2 * rods[0].x,
            child_point=-l / 2 * rods[1].x,
            joint_axis=rods[0].z,
        ),
    )
    tip = rods[1].masscenter.locatenew("tip", l / 2 * rods[1].x)
    system.add_holonomic_constraints(tip.pos_from(system.fixed_point).dot(wall.y))
    if speeds_are_derivatives:
        for rod in rods:
            rod.potential_energy = m * g * rod.masscenter.pos_from(system.fixed_point).dot(wall.y)
    else:
        system.apply_uniform_gravity(-g * wall.y)
        system.q_ind, system.q_dep = q[:1], q[1:]
        system.u_ind, system.u_dep = u[:1], u[1:]
    return system


@pytest.mark.parametrize("by_lagrange", [False, True])
def test_mechanics_system_with_joints(by_lagrange):
    model = joints(by_lagrange)
    system = from_sympy(model, parameters={"m": 0.7, "l": 1.2, "g": 9.81})
    assert (system.n, system.m) == (2, 1)
    m, l, g = 0.7, 1.2, 9.81
    q, v = np.array([0.8, -0.5]), np.array([0.6, -1.1])
    c, s = np.cos(q[1]), np.sin(q[1])
    e = at(system, q, v)
    k = m * l**2
    np.testing.assert_allclose(
        e.M, [[k * (5 / 3 + c), k * (1 / 3 + c / 2)], [k * (1 / 3 + c / 2), k / 3]], rtol=1e-12
    )
    cross = k * s / 2 * np.array([v[1] * (2 * v[0] + v[1]), -(v[0] ** 2)])
    far = m * g * l / 2 * np.cos(q.sum())
    np.testing.assert_allclose(e.f, cross - [1.5 * m * g * l * np.cos(q[0]) + far, far], rtol=1e-12)
    np.testing.assert_allclose(e.g, [l * (np.sin(q[0]) + np.sin(q.sum()))])
    np.testing.assert_allclose(e.C, [[l * (np.cos(q[0]) + np.cos(q.sum())), l * np.cos(q.sum())]])
    if by_lagrange:
        np.testing.assert_allclose(e.V, [m * g * l * (1.5 * np.sin(q[0]) + 0.5 * np.sin(q.sum()))])


def test_mechanics_system_after_its_equations_were_formed():
    model = joints()
    before = at(from_sympy(model, parameters={"m": 0.7, "l": 1.2, "g": 9.81}), [0.8, -0.5], [0.6, -1.1])
    model.form_eoms()
    after = at(from_sympy(model, parameters={"m": 0.7, "l": 1.2, "g": 9.81}), [0.8, -0.5], [0.6, -1.1])
    np.testing.assert_array_equal(before.M, after.M)
    np.testing.assert_array_equal(before.f, after.f)


def test_pickle():
    system = from_sympy(knife_edge_by_kane(), parameters={"m": 2.0, "J": 0.3, "g": 9.81})
    copy = pickle.loads(pickle.dumps(system))
    q, v = random.normal(size=3), random.normal(size=3)
    for name, value in vars(at(system, q, v)).items():
        np.testing.assert_allclose(getattr(at(copy, q, v), name), value)


x, y, u, unknown = dynamicsymbols("x y u unknown")
k = sp.Symbol("k")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"force": [-k * x, -sp.Symbol("c") * y]}, "no value for c, k"),
        (
            {"force": [-k * x, 0], "parameters": {"K": 1.0}},
            r"no value for k \(given, but not in the model: K\)",
        ),
        (
            {"force": [-k * x, 0], "parameters": {k: 1.0, "K": 1.0}},
            "parameters: the model does not contain K; its symbols are k",
        ),
        (
            {"parameters": {"g": 9.81}},
            "parameters: the model does not contain g; it has no symbols but its coordinates",
        ),
        (
            {"force": [-k * x, 0], "parameters": {k: 1.0, unknown: sp.sin(t)}},
            r"does not contain unknown\(t\); its symbols are k",
        ),
        ({"force": [unknown, 0]}, r"force contains unknown\(t\), which is neither a coordinate nor a speed"),
        ({"force": [unknown.diff(t), 0]}, "which is no velocity"),
        ({"force": [x.diff(t, 2), 0]}, "force contains the acceleration"),
        ({"force": [0]}, "force has 1 entries; there are 2 coordinates"),
        ({"mass": sp.eye(3)}, "mass is 3 x 3"),
        ({"mass": sp.diag(1, y.diff(t))}, "mass depends on the velocity of y"),
        (
            {"constraint": [x.diff(t) + y]},
            "constraint depends on the velocity of x; put it into velocity_constraint",
        ),
        ({"constraint": [x - y, t - 1]}, "constraint 1 does not contain any coordinate"),
        ({"velocity_constraint": [x.diff(t) * y.diff(t)]}, "velocity_constraint 0 is not linear"),
        ({"velocity_constraint": [x - y]}, "velocity_constraint 0 does not contain any velocity"),
        ({"speeds": [u]}, "speeds has 1 entries, coordinates has 2"),
        ({"force": [sp.zeta(x), 0]}, "no counterpart in NumPy"),
    ],
)
def test_errors_of_expressions(arguments, message):
    with pytest.raises(ModelError, match=message):
        from_sympy(**({"mass": sp.eye(2), "force": [0, 0], "coordinates": [x, y]} | arguments))


def test_constants_that_drop_out_may_be_given():
    """The moment of inertia of a body that does not turn is part of the model, not of its equations."""
    m, J = sp.symbols("m J")
    frame, origin = me.ReferenceFrame("N"), me.Point("O")
    centre = origin.locatenew("C", x * frame.x)
    origin.set_vel(frame, 0)
    centre.set_vel(frame, x.diff(t) * frame.x)
    body = me.RigidBody("block", centre, frame, m, (me.inertia(frame, J, J, J), centre))
    model = me.LagrangesMethod(me.Lagrangian(frame, body), [x], bodies=[body], frame=frame)
    assert dict(from_sympy(model, parameters={m: 2.0, J: 1.0}).parameters) == {"m": 2.0}
    with pytest.raises(ModelError, match="does not contain j; its symbols are J, m"):
        from_sympy(model, parameters={m: 2.0, "j": 1.0})


def test_wrong_calls():
    with pytest.raises(TypeError, match="missing: coordinates, force"):
        from_sympy(mass=sp.eye(2))
    with pytest.raises(TypeError, match="states its own mass"):
        from_sympy(knife_edge_by_kane(), mass=sp.eye(3))
    with pytest.raises(TypeError, match="model is a int; from_sympy reads KanesMethod"):
        from_sympy(3)
    with pytest.raises(TypeError, match=r"parameters\['k'\] is 'stiff'"):
        from_sympy(mass=[[1]], force=[-k * x], coordinates=[x], parameters={k: "stiff"})


def test_quaternions_are_refused():
    q, w = dynamicsymbols("e0:4"), dynamicsymbols("w1:4")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient_quaternion(N, q)
    B.set_ang_vel(N, sum((w[i] * axis for i, axis in enumerate(B)), me.Vector(0)))
    centre = me.Point("C")
    centre.set_vel(N, 0)
    body = me.RigidBody("body", centre, B, 1, (me.inertia(B, 1, 2, 3), centre))
    rates = (
        sp.Matrix([[-q[1], -q[2], -q[3]], [q[0], -q[3], q[2]], [q[3], q[0], -q[1]], [-q[2], q[1], q[0]]])
        * sp.Matrix(w)
        / 2
    )
    model = me.KanesMethod(N, q, w, kd_eqs=list(sp.Matrix(q).diff(t) - rates), bodies=[body])
    with pytest.raises(ModelError, match=r"4 coordinates .* and 3 speeds .*angles in place of quaternions"):
        from_sympy(model)


def test_sympy_is_imported_only_when_used(monkeypatch):
    code = "import sys, holonome.problem.from_sympy; sys.exit('sympy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    monkeypatch.setitem(sys.modules, "sympy.physics.mechanics", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'holonome\[sympy\]'"):
        from_sympy(mass=1, force=0, coordinates=[x])
