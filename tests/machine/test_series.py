"""Taylor coefficients of every operation, against mpmath's."""

import casadi as ca
import mpmath
import numpy as np
import pytest

from holonome.equations.program import OPERANDS, Program
from holonome.equations.series import Series
from holonome.machine.calls import run_kernel
from holonome.machine.context import PARAMETERS, SINGULAR
from holonome.machine.kernel import compiled
from holonome.machine.layout import padded
from holonome.machine.series import ORDER, UNIT, series_assembly

_ORDER, _T0, _UNIT = 11, 0.3, 0.5


def coefficients(rates, y0, p=(), straight=True, order=_ORDER, margin=None, t0=_T0):
    """Those of y with y′ = rates(t, y, p), for time in units of one; and the status."""
    t, y, parameters = ca.SX.sym("t"), ca.SX.sym("y", len(y0)), ca.SX.sym("p", len(p))
    outputs = [ca.densify(ca.vertcat(*rates(t, y, parameters)))]
    outputs += [] if margin is None else [margin(y)]
    inputs = {"t": t, "y": y, "z": ca.SX(0, 1), "p": parameters}
    series = Series.of(Program.of_expressions(inputs, outputs))
    code = series_assembly(series, "series", order, straight=straight)
    kernel = compiled(code.text, "series", 1)
    work, out = np.zeros(code.work), np.zeros((order + 1) * padded(len(y0)))
    work[ORDER], work[UNIT] = order, _UNIT
    context = np.concatenate([np.zeros(PARAMETERS), p, [0.0]])
    status = run_kernel(kernel.address, t0, np.array(y0, dtype=float), work, context, out)
    rows = out.reshape(order + 1, -1)[:, : len(y0)]
    return rows / _UNIT ** np.arange(order + 1)[:, np.newaxis], status


def of_function(f, x0, straight):
    """Coefficients of f(x(t), t) with x′ = 1 + x/2, x(0) = x0, as part of an ODE."""
    found, _ = coefficients(lambda t, y, p: [1 + y[0] / 2, f(y[0], t)], (x0, 0.0), straight=straight)
    return found[1:, 1] * np.arange(1, _ORDER + 1)


def exact(f, x0):
    with mpmath.workdps(60):
        path = lambda s: (mpmath.mpf(x0) + 2) * mpmath.exp(s / 2) - 2  # noqa: E731
        return np.array(mpmath.taylor(lambda s: f(path(s), s + mpmath.mpf(_T0)), 0, _ORDER - 1), dtype=float)


mp = mpmath
FUNCTIONS = {
    "neg": (lambda x, t: -x, lambda x, t: -x, 0.4),
    "sq": (lambda x, t: x**2, lambda x, t: x**2, 0.4),
    "twice": (lambda x, t: x + x, lambda x, t: 2 * x, 0.4),
    "inv": (lambda x, t: 1 / x, lambda x, t: 1 / x, -0.7),
    "sqrt": (lambda x, t: ca.sqrt(x), lambda x, t: mp.sqrt(x), 0.9),
    "exp": (lambda x, t: ca.exp(x), lambda x, t: mp.exp(x), 0.4),
    "log": (lambda x, t: ca.log(x), lambda x, t: mp.log(x), 0.8),
    "fabs": (lambda x, t: ca.fabs(x), lambda x, t: -x, -0.7),
    "sin": (lambda x, t: ca.sin(x), lambda x, t: mp.sin(x), 0.4),
    "cos": (lambda x, t: ca.cos(3 * x), lambda x, t: mp.cos(3 * x), 0.4),
    "tan": (lambda x, t: ca.tan(x), lambda x, t: mp.tan(x), 0.4),
    "asin": (lambda x, t: ca.asin(x / 2), lambda x, t: mp.asin(x / 2), 0.4),
    "acos": (lambda x, t: ca.acos(x / 2), lambda x, t: mp.acos(x / 2), 0.4),
    "atan": (lambda x, t: ca.atan(x), lambda x, t: mp.atan(x), -0.6),
    "sinh": (lambda x, t: ca.sinh(x), lambda x, t: mp.sinh(x), 0.4),
    "cosh": (lambda x, t: ca.cosh(x), lambda x, t: mp.cosh(x), 0.4),
    "tanh": (lambda x, t: ca.tanh(x), lambda x, t: mp.tanh(x), 0.4),
    "asinh": (lambda x, t: ca.asinh(x), lambda x, t: mp.asinh(x), 0.4),
    "acosh": (lambda x, t: ca.acosh(x + 2), lambda x, t: mp.acosh(x + 2), 0.4),
    "atanh": (lambda x, t: ca.atanh(x / 2), lambda x, t: mp.atanh(x / 2), 0.4),
    "erf": (lambda x, t: ca.erf(x), lambda x, t: mp.erf(x), 0.4),
    "expm1": (lambda x, t: ca.expm1(x), lambda x, t: mp.expm1(x), 1e-3),
    "log1p": (lambda x, t: ca.log1p(x), lambda x, t: mp.log1p(x), 1e-3),
    "add": (lambda x, t: x + t, lambda x, t: x + t, 0.4),
    "sub": (lambda x, t: t - x, lambda x, t: t - x, 0.4),
    "mul": (lambda x, t: x * ca.sin(t), lambda x, t: x * mp.sin(t), 0.4),
    "div": (lambda x, t: ca.cos(t) / (1 + x), lambda x, t: mp.cos(t) / (1 + x), 0.4),
    "number/x": (lambda x, t: 3 / x, lambda x, t: 3 / x, 1.4),
    "x/number": (lambda x, t: x / 3, lambda x, t: x / 3, 1.4),
    "pow": (lambda x, t: x**t, lambda x, t: x**t, 1.4),
    "number^x": (lambda x, t: 2**x, lambda x, t: mp.mpf(2) ** x, 1.4),
    "constpow": (lambda x, t: x**2.7, lambda x, t: x ** mp.mpf(2.7), 1.4),
    "cube at 0": (lambda x, t: x**3, lambda x, t: x**3, 0.0),
    "7th power": (lambda x, t: x**7, lambda x, t: x**7, -1.2),
    "power -3": (lambda x, t: x**-3, lambda x, t: x**-3, -1.2),
    "power 3/2": (lambda x, t: x**1.5, lambda x, t: x ** mp.mpf(1.5), 1.2),
    "power -1/2": (lambda x, t: x**-0.5, lambda x, t: x ** mp.mpf(-0.5), 1.2),
    "fmin": (lambda x, t: ca.fmin(x**2, t), lambda x, t: x**2, 0.4),
    "fmax": (lambda x, t: ca.fmax(x**2, t), lambda x, t: t, 0.4),
    "copysign": (lambda x, t: ca.copysign(x, -t), lambda x, t: -x, 0.4),
    "hypot": (lambda x, t: ca.hypot(x, t), lambda x, t: mp.sqrt(x**2 + t**2), -0.4),
    "fmod": (lambda x, t: ca.fmod(x, t), lambda x, t: x - 2 * t, 0.7),
    "remainder": (lambda x, t: ca.remainder(x, t), lambda x, t: x - 3 * t, 0.8),
    "if_else_zero": (
        lambda x, t: ca.if_else(x > 0, ca.sqrt(x), ca.sqrt(-x)),
        lambda x, t: mp.sqrt(-x),
        -0.7,
    ),
    "sign": (lambda x, t: ca.sign(x) * x + ca.floor(x) + ca.ceil(x), lambda x, t: -x - 1, -0.7),
    "lt": (
        lambda x, t: (x < t) * x + (x <= t) * x + ca.eq(x, t) + ca.ne(x, t) * x,
        lambda x, t: 3 * x,
        0.1,
    ),
    "and": (
        lambda x, t: ca.logic_and(x < t, t > 0) * x + ca.logic_or(x > t, t > 0) + ca.logic_not(x > t) * x,
        lambda x, t: 1 + 2 * x,
        0.1,
    ),
} | {
    f"atan2, quadrant {i}": (
        lambda x, t, a=a, b=b: ca.atan2(a * (1 + x), b + t),
        lambda x, t, a=a, b=b: mp.atan2(a * (1 + x), b + t),
        0.4,
    )
    for i, (a, b) in enumerate([(1, 1), (1, -2), (-1, -2), (-1, 1), (1e-3, 0), (1, -0.3)])
}


@pytest.mark.parametrize("straight", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_coefficients_are_those_of_the_function(name, straight):
    f, known, x0 = FUNCTIONS[name]
    wanted = exact(known, x0)
    error = np.abs(of_function(f, x0, straight) - wanted)
    ratio = np.max(np.abs(wanted) ** (1 / np.maximum(np.arange(_ORDER), 1)))
    assert np.all(error <= 2e-14 * np.maximum(1.0, ratio) ** np.arange(_ORDER) * max(1.0, abs(wanted[0])))


def test_every_operation_is_known():
    x, t = ca.SX.sym("x"), ca.SX.sym("t")
    unknown = []
    for name, count in OPERANDS.items():
        code = getattr(ca, f"OP_{name.upper()}")
        value = ca.SX.unary(code, x) if count == 1 else ca.SX.binary(code, x, t)
        inputs = {"t": t, "y": x, "z": ca.SX(0, 1), "p": ca.SX(0, 1)}
        try:
            Series.of(Program.of_expressions(inputs, [value + x]))
        except NotImplementedError:
            unknown.append(name)
    assert not unknown


def test_cosine_without_sine_and_a_constant_operand():
    for straight in (True, False):
        found, _ = coefficients(
            lambda t, y, p: [ca.cos(y[0]) * p[0], p[1], p[0] / p[1]], (0.2, 1.0, 2.0), (0.5, 4.0), straight
        )
        assert np.all(found[2:, 1:] == 0)
        assert found[1, 1:] == pytest.approx([4.0, 0.125])
        with mpmath.workdps(40):
            # y' = cos(y)/2: sin y = tanh(t/2 + c)
            c = mpmath.atanh(mpmath.sin(mpmath.mpf(0.2)))
            known = mpmath.taylor(lambda s: mpmath.asin(mpmath.tanh(s / 2 + c)), 0, _ORDER)
        assert found[:, 0] == pytest.approx(np.array(known, dtype=float), rel=1e-12, abs=1e-16)


@pytest.mark.parametrize("straight", [True, False])
@pytest.mark.parametrize("order", [2, 3, 4, 5, 6, 32])
def test_every_length(order, straight):
    """x′ = x², whose series is geometric."""
    found, _ = coefficients(lambda t, y, p: [y[0] ** 2], (0.5,), straight=straight, order=order)
    assert found[:, 0] == pytest.approx(0.5 ** np.arange(1, order + 2), rel=1e-13)


def test_many_convolutions_share_columns():
    """Forty copies of one equation, more than a loop sums together."""
    found, _ = coefficients(
        lambda t, y, p: [y[i] * y[i] * (1 + i) for i in range(40)], 1 / np.arange(1.0, 41.0), straight=False
    )
    assert found * np.arange(1, 41) == pytest.approx(np.ones((_ORDER + 1, 40)), rel=1e-13)


def test_the_margin_decides_on_the_status():
    for value, wanted in ((1.0, 0), (-1.0, SINGULAR)):
        _, status = coefficients(lambda t, y, p: [y[0]], (value,), margin=lambda y: y[0])
        assert status == wanted


def test_a_power_with_an_exponent_that_is_a_parameter():
    found, _ = coefficients(lambda t, y, p: [y[0] ** p[0]], (0.5,), (2.0,))
    assert found[:, 0] == pytest.approx(0.5 ** np.arange(1, _ORDER + 2), rel=1e-13)


def test_a_branch_that_is_not_taken_may_be_undefined():
    found, _ = coefficients(lambda t, y, p: [ca.if_else(y[0] > 0, 1.0, ca.log(y[0]) ** 2)], (0.5,))
    assert np.array_equal(found[:2, 0], [0.5, 1.0])
    assert not np.any(found[2:])
