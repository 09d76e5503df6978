"""Every mechanism: a consistent start, forces that fit the energy, exact and published solutions, a picture
that fits the bars.

Nothing here uses derivatives or integrators of the library. The plain functions of each mechanism (`mass`,
`force`, `constraint`, `potential` of its module) are traced by the class `Scalar` below, differentiated by
CasADi and integrated by SciPy's DOP853 on the underlying ODE.
"""

import importlib
import inspect
from types import SimpleNamespace

import casadi as ca
import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from holonome import mechanisms

EPS = np.finfo(float).eps
NAMES = list(mechanisms.available())
WRITTEN = [name for name, make in mechanisms.available().items() if make().mechanism is None]
"""Those whose equations are written by hand; those of bodies and joints are in test_spatial_mechanisms.py."""
CASES = [
    *((name, {}) for name in WRITTEN),
    ("pendulum", {"theta0": -2.5, "length": 0.7, "m": 3.0, "gravity": 1.6}),
    ("double_pendulum", {"theta1": 0.3, "theta2": 2.0, "length2": 0.4, "m2": 5.0}),
    ("slider_crank", {"phi1": np.pi / 4, "omega1": 2 * np.sqrt(2)}),
    ("slider_crank", {"phi1": np.pi / 2 - 1e-6, "omega1": 3.0}),
    ("slider_crank", {"phi1": 3.0, "omega1": 1.0, "length2": 0.6}),
    ("slider_crank_unequal", {"phi1": 2.5, "omega1": -3.0, "length2": 1.3}),
    ("two_link_arm", {"m1": 1.0, "m2": 0.5, "length": 2.0}),
    ("four_bar", {"phi_a": -2.0, "omega_a": -5.0, "b": 1.1}),
    ("chain", {"links": 3, "length": 2.0, "m": 4.0}),
    ("stiff_spring", {"height": 0.5, "eps": 1e-2, "anchor": (0.3, -0.2)}),
    ("andrews", {"mom": 0.02, "c0": 4000.0, "l0": 0.07}),
    ("oscillator_on_circle", {"eps": 0.2, "angle": -1.0, "gravity": 9.81}),
    ("oscillator_on_circle", {"eps": 1e-2, "powers": (1, 2), "angle": 0.0, "speed": 1.0}),
    ("driven_circle", {"eps": 1e-1}),
    ("kepler", {"eccentricity": 0.0, "mu": 3.0, "a": 2.0}),
    ("kepler", {"eccentricity": 0.3}),
    ("wheelset", {"x": -2e-3, "theta": 1e-3, "V": 20.0, "mu": 0.3, "delta0": 0.05, "a": 0.2}),
    ("two_body_bushing", {"damping": (0.0, 0.0, 0.0)}),
    (
        "two_body_bushing",
        {
            "damping": (0.0, 0.0, 0.0),
            "stiffness": (3.0, 1.0, 2.0),
            "frame": 0.4,
            "a": (0.1, 0.2),
            "b": (-0.3, 0.1),
            "theta": 0.5,
            "length": 2.0,
            "m2": 3.0,
        },
    ),
]


def label(case) -> str:
    return (
        case
        if isinstance(case, str)
        else ",".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in case.items())
    )


class Scalar:
    """A CasADi expression that may live in NumPy's object arrays."""

    def __init__(self, e):
        self.e = e.e if isinstance(e, Scalar) else ca.SX(e)

    def __add__(self, other):
        return self._binary(other, lambda a, b: a + b)

    def __sub__(self, other):
        return self._binary(other, lambda a, b: a - b)

    def __mul__(self, other):
        return self._binary(other, lambda a, b: a * b)

    def __truediv__(self, other):
        return self._binary(other, lambda a, b: a / b)

    def __pow__(self, other):
        return self._binary(other, lambda a, b: a**b)

    def __rsub__(self, other):
        return Scalar(other) - self

    def __rtruediv__(self, other):
        return Scalar(other) / self

    def __neg__(self):
        return Scalar(-self.e)

    def sin(self):
        return Scalar(ca.sin(self.e))

    def cos(self):
        return Scalar(ca.cos(self.e))

    def tan(self):
        return Scalar(ca.tan(self.e))

    def arctan(self):
        return Scalar(ca.atan(self.e))

    def tanh(self):
        return Scalar(ca.tanh(self.e))

    def sqrt(self):
        return Scalar(ca.sqrt(self.e))

    def __abs__(self):
        return Scalar(ca.fabs(self.e))

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        """As among object arrays, apart from the maximum, which would ask for a truth value."""
        if ufunc is np.maximum:
            return Scalar(ca.fmax(*(Scalar(x).e for x in inputs)))
        return getattr(ufunc, method)(*(boxed(x) if isinstance(x, Scalar) else x for x in inputs), **options)

    def _binary(self, other, operation):
        return NotImplemented if isinstance(other, np.ndarray) else Scalar(operation(self.e, Scalar(other).e))

    __radd__, __rmul__ = __add__, __mul__


def boxed(x: Scalar) -> np.ndarray:
    array = np.empty((), object)
    array[()] = x
    return array


def scalars(x: ca.SX) -> np.ndarray:
    array = np.empty(x.numel(), object)
    array[:] = [Scalar(x[i]) for i in range(x.numel())]
    return array


def expression(function, **arguments) -> ca.SX:
    """What `function` computes from those of the arguments that it names."""
    value = (
        function(**{name: arguments[name] for name in inspect.signature(function).parameters})
        if callable(function)
        else function
    )
    rows = np.atleast_1d(np.asarray(value, object))
    flat = ca.vertcat(*[Scalar(entry).e for entry in rows.ravel()])
    return flat if rows.ndim == 1 else ca.reshape(flat, *rows.shape).T


class Plain:
    """The equations of a mechanism, M v′ = f − Gᵀλ, as functions of (t, q, v); G and γ = g_qq(v, v) by
    CasADi.

    Unknowns w, and λ where forces depend on it, are found by Newton's method in every evaluation; derivatives
    of g take w as a function of q. States s are at their initial values unless they are given.
    """

    def __init__(self, mechanism):
        module, system = importlib.import_module(f"holonome.mechanisms.{mechanism.name}"), mechanism.system
        n = len(mechanism.q0)
        t, q, v, s, w, lam = (
            ca.SX.sym(name, size)
            for name, size in zip(
                "tqvswl", (1, n, n, len(system.states), len(system.unknowns), system.m), strict=True
            )
        )
        arguments = {
            "t": Scalar(t),
            "q": scalars(q),
            "v": scalars(v),
            "s": scalars(s),
            "w": scalars(w),
            "lam": scalars(lam),
            "p": parameters(mechanism),
        }
        none = ca.SX(0, 1)
        M, f, g, k, rate = (
            expression(getattr(module, role), **arguments) if hasattr(module, role) else none
            for role in ("mass", "force", "constraint", "equations", "rate")
        )
        M = ca.diag(M) if M.is_column() else M
        w_q = -ca.solve(ca.jacobian(k, w), ca.jacobian(k, q)) if w.numel() else ca.SX(0, n)
        G = ca.jacobian(g, q) + ca.jacobian(g, w) @ w_q
        gamma = ca.jtimes(G @ v, q, v) + ca.jacobian(G @ v, w) @ (w_q @ v)
        x, y = ca.vertcat(w, lam), [t, q, v, s]
        self.equations = ca.Function("equations", [x, *y], [ca.densify(e) for e in (M, f, g, G, gamma, rate)])
        self.start, self.states = (
            np.concatenate([list(system.unknowns.values()), np.zeros(system.m)]),
            np.array(list(system.states.values())),
        )
        residual = ca.vertcat(k, G @ ca.solve(M, f - G.T @ lam) + gamma)
        self.newton = (
            ca.Function("newton", [x, *y], [residual, ca.jacobian(residual, x)]) if w.numel() else None
        )
        self.has_potential = hasattr(module, "potential")
        if self.has_potential:
            V, momentum = expression(module.potential, **arguments), M @ v
            T = ca.dot(v, momentum) / 2
            applied = ca.gradient(T - V, q) - ca.jtimes(momentum, q, v)  # Lagrange: d/dt ∂T/∂v = ∂(T − V)/∂q
            self.energy = ca.Function("energy", [q, v], [T + V])
            self.lagrange = ca.Function("lagrange", [q, v], [ca.densify(applied)])

    def unknowns(self, t, q, v, s=None):
        """(w, λ), from the values found last."""
        if self.newton is not None:
            for _ in range(20):
                residual, jacobian = (
                    np.array(value)
                    for value in self.newton(self.start, t, q, v, self.states if s is None else s)
                )
                step = np.linalg.solve(jacobian, residual).ravel()
                self.start = self.start - step
                if np.max(np.abs(step)) < 1e-9 * np.max(np.abs(self.start)):
                    break
            else:
                raise ArithmeticError("Newton's method did not converge")
        return self.start

    def evaluate(self, t, q, v, s=None):
        M, f, g, G, gamma, rate = (
            np.array(value)
            for value in self.equations(self.unknowns(t, q, v, s), t, q, v, self.states if s is None else s)
        )
        return M, f.ravel(), g.ravel(), G, gamma.ravel(), rate.ravel()

    def __call__(self, t, q, v):
        return self.evaluate(t, q, v)[:5]

    def acceleration(self, t, q, v, s=None):
        """Accelerations and multipliers, from M v′ + Gᵀλ = f and G v′ = −γ."""
        M, f, g, G, gamma, _ = self.evaluate(t, q, v, s)
        n, m = len(q), len(g)
        saddle = np.linalg.solve(np.block([[M, G.T], [G, np.zeros((m, m))]]), np.concatenate([f, -gamma]))
        return saddle[:n], saddle[n:]

    def integrate(self, mechanism, times, rtol=1e-13, atol=1e-13):
        """The solution of the underlying ODE, q and v at the times."""
        n = len(mechanism.q0)
        y0 = np.concatenate([mechanism.q0, mechanism.v0, self.states])
        times = np.atleast_1d(times)

        def derivative(t, y):
            q, v, s = y[:n], y[n : 2 * n], y[2 * n :]
            rate = self.evaluate(t, q, v, s)[5] if s.size else s
            return np.concatenate([v, self.acceleration(t, q, v, s)[0], rate])

        solution = solve_ivp(derivative, (0, times[-1]), y0, "DOP853", times, rtol=rtol, atol=atol)
        assert solution.success
        return solution.y[:n], solution.y[n : 2 * n]


def parameters(mechanism) -> SimpleNamespace:
    return SimpleNamespace(**mechanism.system.parameters)


def test_registry_knows_every_mechanism():
    written = (
        "andrews chain double_pendulum driven_circle four_bar kepler oscillator_on_circle pendulum "
        "slider_crank slider_crank_unequal stiff_spring"
    )
    written += " two_body_bushing two_link_arm wheelset"
    assert set(written.split()) <= set(NAMES)
    assert mechanisms.pendulum is mechanisms.available()["pendulum"]
    with pytest.raises(ValueError, match="did you mean 'pendulum'"):
        mechanisms.get("pendulm")


@pytest.mark.parametrize("name", NAMES)
def test_mechanism_is_complete(name):
    mechanism = mechanisms.get(name)
    assert mechanism.name == name
    assert mechanism.title
    assert mechanism.source
    assert mechanism.drawing is not None
    assert mechanism.t_span[0] == 0 < mechanism.t_span[1]
    assert mechanism.system.n == len(mechanism.q0) == len(mechanism.v0)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_is_traced(name):
    assert not mechanisms.get(name).system.supplied


@pytest.mark.parametrize(("name", "changes"), CASES, ids=label)
def test_start_satisfies_the_constraints_to_rounding(name, changes):
    mechanism = mechanisms.get(name, **changes)
    q, v = mechanism.q0, mechanism.v0
    M, _, g, G, _ = Plain(mechanism)(0.0, q, v)
    lengths = np.concatenate([q, list(mechanism.system.unknowns.values())])
    assert np.max(np.abs(g), initial=0.0) <= 4 * EPS * np.max(np.abs(lengths))
    assert np.max(np.abs(G @ v), initial=0.0) <= 8 * EPS * max(
        np.max(np.abs(G) @ np.abs(v), initial=0.0), 1.0
    )
    assert np.allclose(M, M.T, rtol=0, atol=0)
    assert np.all(np.linalg.eigvalsh(M) > 0)
    assert np.linalg.matrix_rank(G, tol=1e-9) == mechanism.system.m


WITHOUT_ENERGY = [
    *(case for case in CASES if case[0] in ("two_link_arm", "driven_circle", "wheelset")),
    ("two_body_bushing", {}),
]
"""A force that is made up, springs whose ends are moved, a damper, and creep."""


@pytest.mark.parametrize(
    ("name", "changes"), [case for case in CASES if case not in WITHOUT_ENERGY], ids=label
)
def test_force_follows_from_the_energy(name, changes):
    """F = ∂(T − V)/∂q − Ṁ v, away from the start."""
    mechanism = mechanisms.get(name, **changes)
    plain, random = Plain(mechanism), np.random.default_rng(0)
    for _ in range(3):
        q = mechanism.q0 + random.uniform(-0.3, 0.3, len(mechanism.q0))
        v = random.uniform(-2, 2, len(q))
        _, force, _, _, _ = plain(0.0, q, v)
        assert np.allclose(
            np.array(plain.lagrange(q, v)).ravel(), force, rtol=1e-12, atol=1e-13 * np.max(np.abs(force))
        )


@pytest.mark.parametrize(("name", "changes"), CASES, ids=label)
def test_picture_moves_like_the_mechanism(name, changes):
    """Along the motion bars keep their lengths, the ground stands still and sliders stay on the axis."""
    mechanism = mechanisms.get(name, **changes)
    drawing, p = mechanism.drawing, parameters(mechanism)
    q, _ = Plain(mechanism).integrate(
        mechanism, np.linspace(0, mechanism.t_span[1] / 100, 5), rtol=1e-10, atol=1e-12
    )
    points, start = drawing.at(q, p), drawing.at(mechanism.q0, p)
    named = {
        *drawing.ground,
        *drawing.sliders,
        *drawing.traces,
        *(name for group in [*drawing.links, *drawing.springs, *drawing.bodies] for name in group),
    }
    assert named <= set(points)
    assert all(xy.shape == (2, 5) for xy in points.values())
    assert all(np.array_equal(points[name][:, 0], start[name]) for name in points)
    size = max(np.max(np.abs(xy)) for xy in points.values())
    for a, b in drawing.links:
        length = np.linalg.norm(points[a] - points[b], axis=0)
        assert np.ptp(length) < 1e-9 * size
        assert length[0] > 1e-3 * size
    for body in drawing.bodies:
        outline = np.stack([points[name] for name in body])
        assert np.max(np.ptp(np.linalg.norm(outline[:, None] - outline, axis=2), axis=2)) < 1e-9 * size
    assert all(np.ptp(points[name], axis=1).max() == 0 for name in drawing.ground)
    assert all(np.abs(points[name][1]).max() < 1e-9 * size for name in drawing.sliders)


STIFF = ["oscillator_on_circle", "driven_circle"]
"""Their solutions are checked with a larger ε, for which five seconds are not thousands of oscillations."""
EXACT = [
    (name, changes)
    for name, changes in CASES
    if mechanisms.get(name, **changes).exact and not (name in STIFF and not changes)
]


@pytest.mark.parametrize(("name", "changes"), EXACT, ids=label)
def test_exact_solution_satisfies_the_equations(name, changes):
    """The position and velocity constraints hold, the multipliers are those of the saddle-point system, and
    its accelerations are v′.
    """
    mechanism = mechanisms.get(name, **changes)
    plain, times = Plain(mechanism), np.linspace(0, 5, 101)
    q, v, lam = mechanism.exact(times)
    assert q.shape == v.shape == (len(mechanism.q0), 101)
    assert lam.shape == (mechanism.system.m, 101)
    assert np.allclose(q[:, 0], mechanism.q0, rtol=0, atol=4 * EPS)
    assert np.allclose(v[:, 0], mechanism.v0, rtol=0, atol=4 * EPS)
    scale = 1e-13 * max(1, np.max(np.abs(lam), initial=0.0), np.max(np.abs(v)))
    h, weights = 1e-3, {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}
    difference = (
        sum(
            w * (mechanism.exact(times + k * h)[1] - mechanism.exact(times - k * h)[1])
            for k, w in weights.items()
        )
        / h
    )
    for i, t in enumerate(times):
        _, _, g, G, _ = plain(t, q[:, i], v[:, i])
        assert np.max(np.abs(g), initial=0.0) < scale
        assert np.max(np.abs(G @ v[:, i]), initial=0.0) < 4 * scale
        acceleration, multipliers = plain.acceleration(t, q[:, i], v[:, i])
        assert np.allclose(multipliers, lam[:, i], rtol=0, atol=4 * scale)
        assert np.allclose(
            acceleration, difference[:, i], rtol=0, atol=3e-10 * max(1, np.max(np.abs(difference)))
        )


@pytest.mark.parametrize(("name", "changes"), EXACT, ids=label)
def test_exact_solution_is_the_solution(name, changes):
    mechanism = mechanisms.get(name, **changes)
    times = np.linspace(0, 5, 11)
    q, v = Plain(mechanism).integrate(mechanism, times)
    exact_q, exact_v, _ = mechanism.exact(times)
    assert np.allclose(q, exact_q, rtol=0, atol=1e-10)
    assert np.allclose(v, exact_v, rtol=0, atol=1e-10)


@pytest.mark.parametrize("theta0", [0.01, 1.0, np.pi / 2, -2.5, 2.8])
def test_pendulum_agrees_with_the_equation_of_its_angle(theta0):
    """θ″ = −(γ/ℓ) sin θ, without any constraint."""
    mechanism = mechanisms.get("pendulum", theta0=theta0, length=0.8)
    times = np.linspace(0, 5, 21)
    angle = solve_ivp(
        lambda t, y: [y[1], -9.81 / 0.8 * np.sin(y[0])],
        (0, 5),
        [theta0, 0.0],
        "DOP853",
        times,
        rtol=1e-13,
        atol=1e-14,
    )
    theta, rate = angle.y
    q, v, _ = mechanism.exact(times)
    assert np.allclose(q, 0.8 * np.array([np.sin(theta), -np.cos(theta)]), rtol=0, atol=2e-11)
    assert np.allclose(v, 0.8 * rate * np.array([np.cos(theta), np.sin(theta)]), rtol=0, atol=2e-11)


WIDE = "needs a long double wider than a double: run it on Linux on x86-64"


@pytest.mark.skipif(np.finfo(np.longdouble).eps == EPS, reason=WIDE)
@pytest.mark.parametrize("theta0", [0.5, np.pi / 2, -2.5])
@pytest.mark.parametrize("t", [0.1, 97.3, 1234.5, 4000.0])
def test_pendulum_is_exact_at_late_times(theta0, t):
    """Against the elliptic functions of mpmath in 40 digits."""
    q, v, lam = mechanisms.get("pendulum", theta0=theta0).exact(np.array([t]))
    with mpmath.workdps(40):
        gravity, angle = mpmath.mpf(9.81), mpmath.mpf(theta0)
        omega, k, k1 = mpmath.sqrt(gravity), mpmath.sin(angle / 2), mpmath.cos(angle / 2)
        sn, cn, dn = (mpmath.ellipfun(kind, omega * mpmath.mpf(t), m=k**2) for kind in ("sn", "cn", "dn"))
        sine, cosine, rate = k * cn / dn, k1 / dn, -2 * k * k1 * omega * sn / dn
        x, y = 2 * sine * cosine, 2 * sine**2 - 1
        expected = [float(z) for z in (x, y, -rate * y, rate * x, (rate**2 - gravity * y) / 2)]
    assert np.allclose(np.concatenate([q, v, lam]).ravel(), expected, rtol=0, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [name for name in NAMES if mechanisms.get(name).reference and name not in ("slider_crank", "wheelset")],
)
def test_reference_is_reproduced(name):
    """To the digits that it claims, relative to the largest entry of each vector; that of the wheel set has a
    test of its own, where it costs less.
    """
    mechanism = mechanisms.get(name)
    plain, reference = Plain(mechanism), mechanism.reference
    q, v = (x[:, 0] for x in plain.integrate(mechanism, reference.t))
    _, lam = plain.acceleration(reference.t, q, v)
    for found, published in ((q, reference.q), (v, reference.v), (lam, reference.lam)):
        assert published is None or np.max(np.abs(found - published)) < 10.0**-reference.digits * np.max(
            np.abs(published)
        )


def test_slider_crank_reference_follows_from_the_angle_of_one_bar():
    """The underlying ODE is singular on the way, the equation of φ₁ alone is not; its λ follows at the end,
    where G has full rank.
    """
    mechanism = mechanisms.get("slider_crank")
    reference = mechanism.reference

    def equation(t, y):
        sin, cos = np.sin(y[0]), np.cos(y[0])
        return [y[1], -(9.81 * cos + 2 * sin * cos * y[1] ** 2) / (2 / 3 + 2 * sin**2)]

    angle = solve_ivp(equation, (0, reference.t), [7 * np.pi / 4, 0.0], "DOP853", rtol=1e-13, atol=1e-13)
    phi, rate = angle.y[:, -1]
    q = np.array(
        [np.cos(phi) / 2, np.sin(phi) / 2, phi, 3 * np.cos(phi) / 2, np.sin(phi) / 2, 2 * np.pi - phi]
    )
    v = rate * np.array([-np.sin(phi) / 2, np.cos(phi) / 2, 1, -3 * np.sin(phi) / 2, np.cos(phi) / 2, -1])
    _, lam = Plain(mechanism).acceleration(reference.t, q, v)
    for found, expected in ((q, reference.q), (v, reference.v), (lam, reference.lam)):
        assert np.max(np.abs(found - expected)) < 10.0**-reference.digits * np.max(np.abs(expected))


def test_references_belong_to_the_defaults():
    assert mechanisms.get("double_pendulum", m1=1.0).reference is not None
    assert mechanisms.get("double_pendulum", m1=2.0).reference is None
    assert mechanisms.get("stiff_spring", anchor=[0.0, -0.5]).reference is not None
    assert mechanisms.get("chain", links=11).reference is None


def test_published_solution_of_andrews():
    """How much of it is right: 10 digits of q, 9 of v and 7 of λ, as the energy and the velocity constraint
    of the two solutions confirm.
    """
    module, mechanism = importlib.import_module("holonome.mechanisms.andrews"), mechanisms.get("andrews")
    plain, published, reference = Plain(mechanism), module.PUBLISHED, module.REFERENCE
    for role, digits in (("q", 10), ("v", 9), ("lam", 7)):
        found, expected = getattr(published, role), getattr(reference, role)
        assert np.max(np.abs(found - expected)) < 10.0**-digits * np.max(np.abs(expected))
    start = float(plain.energy(mechanism.q0, mechanism.v0))
    assert (
        abs(plain.energy(reference.q, reference.v) - start)
        < 1e-12
        < 1e-10
        < abs(plain.energy(published.q, published.v) - start)
    )


def test_andrews_is_derived_from_its_seven_bodies():
    """M, f and g from positions, masses and inertias of the bodies alone, and the published initial
    accelerations and multipliers.
    """
    mechanism = mechanisms.get("andrews")
    p, plain = parameters(mechanism), Plain(mechanism)
    q, v = ca.SX.sym("q", 7), ca.SX.sym("v", 7)
    beta, theta, gamma, phi, delta, omega, epsilon = ca.vertsplit(q)

    def turned(x, y, angle):
        return ca.vertcat(x * ca.cos(angle) - y * ca.sin(angle), x * ca.sin(angle) + y * ca.cos(angle))

    A, B, C = ca.DM([p.xa, p.ya]), ca.DM([p.xb, p.yb]), ca.DM([p.xc, p.yc])
    F, G, H = turned(p.rr, 0, beta), A + turned(p.zt, 0, delta), A + turned(0, -p.u, epsilon)
    E = F - turned(p.d, 0, beta + theta)
    bodies = [  # mass, inertia, centre, angle
        (p.m1, p.i1, turned(p.ra, 0, beta), beta),
        (p.m2, p.i2, F - turned(p.da, 0, beta + theta), beta + theta),
        (p.m3, p.i3, B + turned(p.sb, -p.sa, gamma), gamma),
        (p.m4, p.i4, G + turned(0, -(p.e - p.ea), phi + delta), phi + delta),
        (p.m5, p.i5, A + turned(p.ta, p.tb, delta), delta),
        (p.m6, p.i6, H + turned(p.zf - p.fa, 0, omega + epsilon), omega + epsilon),
        (p.m7, p.i7, A + turned(p.ua, -p.ub, epsilon), epsilon),
    ]
    T = sum(
        m * ca.sumsqr(ca.jtimes(centre, q, v)) / 2 + i * ca.jtimes(angle, q, v) ** 2 / 2
        for m, i, centre, angle in bodies
    )
    V = p.c0 * (ca.norm_2(B + turned(p.sd, -p.sc, gamma) - C) - p.l0) ** 2 / 2 - p.mom * beta
    momentum = ca.gradient(T, v)
    M, f = ca.jacobian(momentum, v), ca.gradient(T - V, q) - ca.jtimes(momentum, q, v)
    g = ca.vertcat(
        E - B - turned(0, -p.ss, gamma),
        E - G - turned(0, -p.e, phi + delta),
        E - H - turned(p.zf, 0, omega + epsilon),
    )
    derived = ca.Function("derived", [q, v], [M, f, g])
    random = np.random.default_rng(0)
    for _ in range(5):
        angles, rates = random.uniform(-2, 2, 7), random.uniform(-100, 100, 7)
        for found, expected in zip(plain(0.0, angles, rates), derived(angles, rates), strict=False):
            expected = np.array(expected).reshape(found.shape)
            assert np.allclose(found, expected, rtol=0, atol=1e-12 * np.max(np.abs(expected)))
    acceleration, lam = plain.acceleration(0.0, mechanism.q0, mechanism.v0)
    assert np.allclose(
        acceleration,
        [14222.4439199541138705911625887, -10666.8329399655854029433719415, 0, 0, 0, 0, 0],
        rtol=0,
        atol=1e-6,
    )
    assert np.allclose(
        lam,
        [98.5668703962410896057654982170, -6.12268834425566265503114393122, 0, 0, 0, 0],
        rtol=0,
        atol=1e-9,
    )


def test_slider_crank_loses_rank_where_the_bars_stand_upright():
    mechanism = mechanisms.get("slider_crank")
    for angle, joint in ((np.pi / 2, 1.0), (3 * np.pi / 2, -1.0)):
        q = np.array([0.0, joint / 2, angle, 0.0, joint / 2, 2 * np.pi - angle])
        _, _, g, G, _ = Plain(mechanism)(0.0, q, np.zeros(6))
        assert np.max(np.abs(g)) < 1e-15
        assert np.max(np.abs(G[-1])) < 1e-15


def test_printed_force_of_the_two_link_arm():
    """With the paper's data the general force is the printed one."""
    module = importlib.import_module("holonome.mechanisms.two_link_arm")
    p = parameters(mechanisms.get("two_link_arm"))
    for t, a, b in np.random.default_rng(0).uniform(-3, 3, (5, 3)):
        printed = [
            (np.cos(a) + np.cos(a + b)) * np.cos(t) - 3 * np.sin(t),
            np.cos(a + b) * np.cos(t) + (1 - 3 / 2 * np.cos(b)) * np.sin(t),
        ]
        assert np.allclose(module.force(t, np.array([a, b]), p), printed, rtol=1e-14, atol=1e-14)


def test_chain_of_one_bar_is_a_physical_pendulum():
    """φ″ = −(3γ/2L) cos φ."""
    mechanism = mechanisms.get("chain", links=1, length=2.0)
    times = np.linspace(0, 1, 5)
    q, _ = Plain(mechanism).integrate(mechanism, times)
    angle = solve_ivp(
        lambda t, y: [y[1], -3 * 9.81 / 4 * np.cos(y[0])],
        (0, 1),
        [0.0, 0.0],
        "DOP853",
        times,
        rtol=1e-13,
        atol=1e-13,
    )
    assert np.allclose(q[2], angle.y[0], rtol=0, atol=1e-11)


def test_long_chain_starts_in_order():
    """The plain functions of a thousand bars, without tracing."""
    module, links = importlib.import_module("holonome.mechanisms.chain"), 1000
    p = SimpleNamespace(length=1.0, m=1.0, gravity=9.81)
    q = module.assemble(np.full(links, 1 / links), np.zeros(links))
    assert module.constraint(q, p).shape == (2 * links,)
    assert np.max(np.abs(module.constraint(q, p))) < 4 * EPS
    assert np.isclose(module.force(q, p).sum(), -9.81)
