"""Mathematical functions in line, for loops on vectors and for graphics cards, which have no library.

    exp x = 2ᵏ eʳ,              x = k ln 2 + r,  |r| ≤ ln 2 / 2,  a Taylor polynomial of degree 13
    log x = k ln 2 + log m,     m between √½ and √2,  log m by the series of artanh (m − 1)/(m + 1)
    atan x                      reduced to |x| ≤ tan π/8 by two addition theorems, then its Taylor series

The others follow from these, sines and cosines (:mod:`holonome.machine.sincos`) and roots.  exp, log and
atan are within two units in the last place; xʸ = exp(y log x) loses as many digits as y log x has before its
point.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from holonome.machine.lanes import FLAGS, Lanes
from holonome.machine.sincos import ROUND, sine_and_cosine

_LN2 = (0.6931471803691238, 1.9082149292705877e-10)
"""ln 2 in two parts; the first ends in zeros, so that its product with k is exact."""
_EXPONENTIAL = tuple(1 / math.factorial(i) for i in range(14))
_ARTANH = tuple(2 / (2 * i + 3) for i in range(11))
_ARCTANGENT = tuple((-1) ** i / (2 * i + 1) for i in range(1, 22))
_MANTISSA, _ONE, _ROOT_HALF = 0x000FFFFFFFFFFFFF, 0x3FF0000000000000, 0x3FE6A09E667F3BCD
_SMALLEST = 2.2250738585072014e-308


def polynomial(lanes: Lanes, coefficients: Sequence[float], x: str) -> str:
    """Σ c_i xⁱ by Horner's rule."""
    result = lanes.number(coefficients[-1])
    for c in coefficients[-2::-1]:
        result = lanes.fma(result, x, lanes.number(c))
    return result


def exponential(lanes: Lanes, x: str) -> str:
    value, number = lanes.value, lanes.number
    bounded = lanes.instruction("maxnum", lanes.instruction("minnum", x, number(750.0)), number(-750.0))
    shifted = lanes.fma(bounded, number(1 / math.log(2)), number(ROUND))
    k = value("fsub", shifted, number(ROUND))
    r = lanes.fma(value("fneg", k), number(_LN2[0]), bounded)
    r = lanes.fma(value("fneg", k), number(_LN2[1]), r)
    whole = lanes.rounded_down(k)
    half = value("ashr", whole, lanes.integer(1))
    result = polynomial(lanes, _EXPONENTIAL, r)
    for power in (half, value("sub", whole, half)):
        result = value("fmul", result, _power_of_two(lanes, power))
    return lanes.select(value("fcmp uno", x, x), x, result)


def _power_of_two(lanes: Lanes, k: str) -> str:
    return lanes.as_real(lanes.value("shl", lanes.value("add", k, lanes.integer(1023)), lanes.integer(52)))


def logarithm(lanes: Lanes, x: str) -> str:
    value, number, integer = lanes.value, lanes.number, lanes.integer
    tiny = value("fcmp olt", x, number(_SMALLEST))
    scaled = lanes.select(tiny, value("fmul", x, number(2.0**54)), x)
    bits = value("sub", lanes.as_whole(scaled), integer(_ROOT_HALF))
    k = value("ashr", bits, integer(52))
    fraction = value("add", value("and", bits, integer(_MANTISSA)), integer(_ROOT_HALF))
    f = value("fsub", lanes.as_real(fraction), number(1.0))
    s = value("fdiv", f, value("fadd", number(2.0), f))
    z = value("fmul", s, s)
    half = value("fmul", value("fmul", number(0.5), f), f)
    rest = value("fmul", z, polynomial(lanes, _ARTANH, z))
    k = value("fsub", lanes.as_doubles(k), lanes.select(tiny, number(54.0), number(0.0)))
    small = lanes.fma(s, value("fadd", half, rest), value("fmul", k, number(_LN2[1])))
    result = lanes.fma(k, number(_LN2[0]), value("fsub", f, value("fsub", half, small)))
    result = lanes.select(value("fcmp oeq", x, number(math.inf)), x, result)
    result = lanes.select(value("fcmp oeq", x, number(0.0)), number(-math.inf), result)
    return lanes.select(value("fcmp oge", x, number(0.0)), result, number(math.nan))


def power(lanes: Lanes, x: str, y: str) -> str:
    """xʸ; a negative x needs a whole y."""
    value, number = lanes.value, lanes.number
    size = exponential(lanes, value("fmul", y, logarithm(lanes, lanes.fabs(x))))
    whole = value("fcmp oeq", lanes.instruction("floor", y), y)
    half = value("fmul", y, number(0.5))
    odd = value("fcmp une", lanes.instruction("floor", half), half)
    signed = lanes.select(whole, lanes.select(odd, value("fneg", size), size), number(math.nan))
    result = lanes.select(value("fcmp olt", x, number(0.0)), signed, size)
    return lanes.select(value("fcmp oeq", y, number(0.0)), number(1.0), result)


def tangent(lanes: Lanes, x: str) -> str:
    sine, cosine = sine_and_cosine(lanes, x)
    return lanes.value("fdiv", sine, cosine)


def arctangent(lanes: Lanes, x: str) -> str:
    value, number = lanes.value, lanes.number
    size = lanes.fabs(x)
    steep = value("fcmp ogt", size, number(1.0))
    a = lanes.select(steep, value("fdiv", number(1.0), size), size)
    root = math.tan(math.pi / 8)
    high = value("fcmp ogt", a, number(root))
    turned = value("fdiv", value("fsub", a, number(1.0)), value("fadd", a, number(1.0)))
    b = lanes.select(high, turned, a)
    z = value("fmul", b, b)
    series = lanes.fma(value("fmul", b, z), polynomial(lanes, _ARCTANGENT, z), b)
    angle = lanes.select(high, value("fadd", series, number(math.pi / 4)), series)
    angle = lanes.select(steep, value("fsub", number(math.pi / 2), angle), angle)
    return lanes.instruction("copysign", angle, x)


def arctangent_of_two(lanes: Lanes, y: str, x: str) -> str:
    """The angle of the point (x, y)."""
    value, number = lanes.value, lanes.number
    zero = number(0.0)
    angle = arctangent(lanes, value("fdiv", lanes.fabs(y), lanes.fabs(x)))
    both = lanes.write.value(f"and {lanes.bits} {value('fcmp oeq', x, zero)}, {value('fcmp oeq', y, zero)}")
    angle = lanes.select(both, zero, angle)
    behind = value("fcmp olt", lanes.instruction("copysign", number(1.0), x), zero)
    angle = lanes.select(behind, value("fsub", number(math.pi), angle), angle)
    return lanes.instruction("copysign", angle, y)


def _cathetus(lanes: Lanes, x: str) -> str:
    """√(1 − x²)."""
    value, one = lanes.value, lanes.number(1.0)
    return lanes.instruction("sqrt", value("fmul", value("fsub", one, x), value("fadd", one, x)))


def arcsine(lanes: Lanes, x: str) -> str:
    return arctangent_of_two(lanes, x, _cathetus(lanes, x))


def arccosine(lanes: Lanes, x: str) -> str:
    return arctangent_of_two(lanes, _cathetus(lanes, x), x)


def hypotenuse(lanes: Lanes, x: str, y: str) -> str:
    value = lanes.value
    return lanes.instruction("sqrt", value(f"fadd {FLAGS}", value("fmul", x, x), value("fmul", y, y)))


def exponential_less_one(lanes: Lanes, x: str) -> str:
    value, number = lanes.value, lanes.number
    near = value("fcmp olt", lanes.fabs(x), number(0.3))
    series = value("fmul", x, polynomial(lanes, [1 / math.factorial(i + 1) for i in range(14)], x))
    return lanes.select(near, series, value("fsub", exponential(lanes, x), number(1.0)))


def hyperbolic_sine(lanes: Lanes, x: str) -> str:
    """(e − 1 + (e − 1)/e) / 2 with e = exp |x|, and the sign of x."""
    value, number = lanes.value, lanes.number
    less = exponential_less_one(lanes, lanes.fabs(x))
    whole = value("fadd", less, number(1.0))
    total = value(
        "fadd",
        less,
        lanes.select(value("fcmp olt", whole, number(math.inf)), value("fdiv", less, whole), number(0.0)),
    )
    return lanes.instruction("copysign", value("fmul", number(0.5), total), x)


def hyperbolic_cosine(lanes: Lanes, x: str) -> str:
    value, number = lanes.value, lanes.number
    e = exponential(lanes, lanes.fabs(x))
    return value("fmul", number(0.5), value("fadd", e, value("fdiv", number(1.0), e)))


def hyperbolic_tangent(lanes: Lanes, x: str) -> str:
    """(e − 1)/(e + 1) with e = exp 2|x|, and the sign of x."""
    value, number = lanes.value, lanes.number
    bounded = lanes.instruction("minnum", lanes.fabs(x), number(30.0))
    less = exponential_less_one(lanes, value("fmul", number(2.0), bounded))
    result = lanes.instruction("copysign", value("fdiv", less, value("fadd", less, number(2.0))), x)
    return lanes.select(value("fcmp uno", x, x), x, result)


FUNCTIONS: dict[str, Callable[..., str]] = {
    "exp": exponential,
    "log": logarithm,
    "pow": power,
    "constpow": power,
    "tan": tangent,
    "asin": arcsine,
    "acos": arccosine,
    "atan": arctangent,
    "atan2": arctangent_of_two,
    "hypot": hypotenuse,
    "expm1": exponential_less_one,
    "sinh": hyperbolic_sine,
    "cosh": hyperbolic_cosine,
    "tanh": hyperbolic_tangent,
}
"""By the names of a program's operations."""
