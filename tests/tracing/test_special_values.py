"""Traced functions have NumPy's values also at NaN, infinities, zeros of both signs, ties and kinks: as
expressions, as programs that were saved and loaded, and as machine code.
"""

import ctypes
import itertools
import math
import warnings

import casadi as ca
import numpy as np
import pytest

from holonome.equations.program import Program
from holonome.machine.kernel import kernel
from holonome.tracing import trace, traced
from holonome.tracing.math_functions import MATH_VERSIONS
from holonome.tracing.scalar_rules import SCALAR_RULES

NUMBERS = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0, -3.0]
NUMBERS += [3.7, -3.7, 0.3, 1e-310, 1e300, -1e300, 1e17]

EXPRESSIONS = """
np.sinc(x)
np.round(x)
np.around(x, 1)
np.nan_to_num(x)
np.nan_to_num(x, nan=3.0, posinf=4.0, neginf=5.0)
np.clip(x, -1, 2)
np.array([x, 1.0]).clip(0, 1)
np.fix(x)
x**2
x**-1
2.0**x
x // 2
x // -0.5
3.0 // x
x % 2
x % -2
3.0 % x
divmod(x, 2.0)
-x
abs(x)
x != x
(x == x) * 1.0
1.0 / x
math.copysign(2.0, x)
np.arctan2(x, -1.0)
np.arctan2(-1.0, x)
np.interp(x, [0.0, 1.0, 1.5, 2.0], [0.0, 2.0, 2.0, -1.0])
np.interp(x, [0.0, 1.0, 1.0, 2.0], [0.0, 2.0, 3.0, -1.0], left=7.0, right=8.0)
np.interp(x, np.linspace(-4, 4, 161), np.cos(np.linspace(-4, 4, 161)))
np.where(x > 0, x, 0.0)
np.maximum(x, 0)
np.minimum(0, x)
np.maximum(x, np.nan)
max(x, 0.0)
max(0.0, x)
min(x, 0.0)
min(0.0, x)
np.heaviside(x, 0.5)
np.max([x, 1.0])
np.amin([1.0, x])
np.array([x, 1.0]).max()
np.maximum.reduce([x, 1.0])
np.fmax.reduce([x, 1.0])
np.ptp([x, 1.0])
np.sum([x, 1.0])
np.prod([x, 2.0])
np.mean([x, 1.0])
np.cumsum([x, 1.0])
np.sort([x, 1.0, 0.0])
np.median([x, 1.0, 2.0])
np.nanmax([x, 1.0])
np.nanmin([x, 1.0])
np.nansum([x, 1.0])
np.nanmean([x, 1.0])
np.isclose(x, 1.0) * 1.0
np.isclose(1.0, x) * 1.0
np.isclose(x, x, equal_nan=True) * 1.0
np.isposinf(x) * 1.0
np.select([x > 0, x < 0], [x, 2.0], 3.0)
np.piecewise(x, [x > 0], [lambda z: z, 0.5])
np.linalg.norm([x, 1.0])
np.linalg.norm([x, 1.0], np.inf)
np.linalg.norm([x, 1.0], 1)
np.searchsorted([0.0, 1.0, 2.0], x)
np.searchsorted([0.0, 1.0, 2.0], x, side="right")
np.digitize(x, [0.0, 1.0, 2.0])
np.any([x, 0.0]) * 1.0
np.all([x, 1.0]) * 1.0
1.0 if x else 0.0
1.0 if x > 0.5 else 0.0
round(x)
math.isclose(x, 1.0)
math.hypot(x, 1.0)
math.log(x)
""".strip().splitlines()

NUMPY_DISAGREES_WITH_ITSELF = {("power", -math.inf, 0.5), ("float_power", -math.inf, 0.5)}
"""Where np.power has one value for scalars and another for arrays."""

SIGN_OF_ZERO_LEFT_OPEN = {"sign", "maximum", "minimum", "fmax", "fmin", "heaviside", "remainder", "power"}
SIGN_OF_ZERO_LEFT_OPEN |= {"sin", "floor_divide", "divmod", "float_power", "rint", "modf", "logaddexp"}
"""Functions whose result is a zero of either sign; NumPy's own depends on the processor for some of them."""

X, Y = ca.SX.sym("x"), ca.SX.sym("y")


def with_two_arguments(ufunc):
    return lambda x, y: ufunc(x, y)


def with_one_argument(ufunc):
    return lambda x: ufunc(x)


def functions():
    """All functions that have a rule, by name; math's are taken at one argument or two as they allow."""
    for name in SCALAR_RULES:
        ufunc = getattr(np, name)
        if name != "ldexp" and set("d") <= set("".join(ufunc.types)):
            yield name, (with_one_argument if ufunc.nin == 1 else with_two_arguments)(ufunc), ufunc.nin
    for name in MATH_VERSIONS:
        if name not in ("dist", "fsum", "prod", "sumprod", "fma", "hypot", "isclose", "log"):
            nin = 2 if name in ("pow", "atan2", "fmod", "copysign", "remainder") else 1
            function = getattr(math, name)
            yield f"math.{name}", (with_one_argument if nin == 1 else with_two_arguments)(function), nin
    for text in EXPRESSIONS:
        yield text, eval(f"lambda x: {text}", {"np": np, "math": math}), 1


def native(expression):
    """The expression of x and y as machine code."""
    compiled = kernel(ca.densify(expression), [ca.SX.sym("t"), ca.vertcat(X, Y), ca.SX(0, 1), ca.SX(0, 1)])
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_double, *[ctypes.c_void_p] * 4)(compiled.address)
    unused, out = np.zeros(64), np.zeros(expression.numel())

    def value(x, y):
        state = np.array([x, y])
        addresses = (array.ctypes.data for array in (state, unused, unused, out))
        assert call(0.0, *addresses) == 0
        return out.copy()

    value.kept_alive = compiled
    return value


def expected(function, arguments):
    """What NumPy or Python says; None where it raises."""
    try:
        return np.asarray(function(*map(np.float64, arguments)), dtype=float).ravel()
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def is_same(found, wanted, zeros):
    close = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    with np.errstate(invalid="ignore"):
        close |= np.abs(found - wanted) <= 3e-14 * np.abs(wanted) + 2e-16 * (np.abs(wanted) < 1)
    if zeros:
        close &= (wanted != 0) | (np.signbit(found) == np.signbit(wanted))
    return bool(np.all(close))


@pytest.mark.parametrize(
    ("name", "function", "nin"), list(functions()), ids=[name for name, _, _ in functions()]
)
def test_values_are_numpys(name, function, nin):
    expression, _ = trace(function, dict(zip("xy"[:nin], (traced(X, ()), traced(Y, ())), strict=False)))
    saved = Program.of_expressions({"x": X, "y": Y}, [expression]).as_dict()
    ways = {
        "expression": ca.Function("f", [X, Y], [expression]),
        "program": Program.from_dict(saved).function(),
        "native": native(expression),
    }
    zeros = name in SCALAR_RULES and name not in SIGN_OF_ZERO_LEFT_OPEN
    different = []
    for arguments in itertools.product(NUMBERS, repeat=nin):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            wanted = expected(function, arguments)
        if wanted is None or (name, *arguments) in NUMPY_DISAGREES_WITH_ITSELF:
            continue
        for way, evaluate in ways.items():
            found = np.array(evaluate(arguments[0], arguments[-1])).ravel()
            if not is_same(found, wanted, zeros):
                different.append((way, arguments, found.tolist(), wanted.tolist()))
    assert not different


def test_a_factor_of_zero_removes_a_term():
    """The one deliberate difference: 0·x is 0 whatever x is, which keeps the zeros of matrices."""
    expression, _ = trace(lambda x: 0.0 * x, {"x": traced(X, ())})
    assert expression.is_constant()
