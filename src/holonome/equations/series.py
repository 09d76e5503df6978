"""Taylor series of a program: what its operations do to the coefficients of a series.

The inputs t and y of a program become series in time, and with them most operations.  Above order 0 each of
them is *affine*: the k-th coefficient of its result c follows from those of its operands a,

    c_k = Σ α a_k + Σ β S_k + Σ β′ S_k / k,     S_k = Σ_{0<j<k} x_j y_{k−j},

with factors α, β that do not depend on k, and convolutions S of coefficients below k alone, where x_j may
carry the weight j.  Division, for instance, comes from a = b c:

    c_k = a_k / b₀ − (c₀ / b₀) b_k − S_k / b₀     with x = c, y = b.

Functions that solve a differential equation follow from it: c′ = w a′ (sin, exp, tan, …) or w c′ = a′ (log,
asin, …), with an auxiliary series w.  So all convolutions of an order can be computed together, before the
rest of that order, which takes hardly longer than the program itself; and neither is different from order to
order (:mod:`holonome.machine.series` writes both).  Piecewise functions keep, in a series, the piece to which
its beginning belongs.

The recurrences are old: R. E. Moore, Interval Analysis, 1966; À. Jorba and M. Zou, A software package for the
numerical integration of ODEs by means of high-order Taylor methods, Experimental Mathematics 14 (2005).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from holonome.equations.program import Program

Term = tuple[int, int | None]
"""The number of an operation or a convolution, and of its factor; None is a factor of one."""

_PIECEWISE = ("sign", "floor", "ceil", "not", "lt", "le", "eq", "ne", "and", "or")
_BENT = ("fabs", "fmin", "fmax", "copysign", "fmod", "remainder", "if_else_zero")
_LARGEST_POWER = 32
"""Whole exponents up to this size become products, which need no logarithm where the base vanishes."""


class Convolution(NamedTuple):
    """Σ_{0<j<k} x_j y_{k−j}, or Σ j x_j y_{k−j}, of two operations."""

    x: int
    y: int
    weighted: bool = False


@dataclass(frozen=True)
class Row:
    """How the k-th coefficient of an operation is computed."""

    terms: tuple[Term, ...] = ()
    convolutions: tuple[Term, ...] = ()
    divided: tuple[Term, ...] = ()  # convolutions divided by k
    condition: int | None = None  # the coefficient is zero unless this value is not


@dataclass
class Series:
    """The series of a program: ``operations`` are those of the program and others for factors and auxiliary
    series; all are evaluated at order 0, those with a row in ``rows`` at every order.
    """

    program: Program
    operations: list[tuple] = field(default_factory=list)
    rows: dict[int, Row] = field(default_factory=dict)
    convolutions: list[Convolution] = field(default_factory=list)
    outputs: tuple[int, ...] = ()
    margin: tuple[int, ...] = ()
    piecewise: bool = False

    @classmethod
    def of(cls, program: Program) -> Series:
        """The series of the first output of a program with inputs t, y, z, p; z and p are constant."""
        return _Builder(program).series

    @property
    def cost(self) -> int:
        """Instructions of one order without its convolutions."""
        return len(self.rows) + 4 * len(self.convolutions)


class _Builder:
    """Walks once through a program; ``place`` leads from its operations to those of the series."""

    def __init__(self, program: Program) -> None:
        self.series = Series(program)
        self._known: dict[tuple, int] = {}
        self._convolved: dict[Convolution, int] = {}
        self._place: list[int] = []
        needed = _needed(program, program.outputs[0].operations)
        for number, (name, *operands) in enumerate(program.operations):
            if name in ("input", "const"):
                self._place.append(self._leaf(name, operands))
            else:
                given = [self._place[i] for i in operands]
                self._place.append(self._operation(name, given, needed[number]))
        self.series.outputs = tuple(self._place[i] for i in program.outputs[0].operations)
        self.series.margin = tuple(self._place[i] for out in program.outputs[1:] for i in out.operations)

    # Operations

    def value(self, name: str, *operands: float) -> int:
        """The number of an operation at order 0 alone, new or known."""
        key = (name, *operands)
        if key not in self._known:
            self._known[key] = len(self.series.operations)
            self.series.operations.append(key)
        return self._known[key]

    def number(self, value: float) -> int:
        return self.value("const", float(value))

    def is_series(self, number: int) -> bool:
        return number in self.series.rows

    def _leaf(self, name: str, operands: list) -> int:
        number = self.value(name, *operands)
        if name == "input" and operands[0] < 2:
            self.series.rows[number] = Row()
        return number

    def _operation(self, name: str, a: list[int], needed: bool) -> int:
        """An operation of the program; where no series depends on it, its value alone."""
        if not needed or not any(map(self.is_series, a)):
            return self.value(name, *a)
        return self.apply(name, *a)

    def apply(self, name: str, *a: int) -> int:
        """The number of an operation on series, new or known."""
        if not any(map(self.is_series, a)):
            return self.value(name, *a)
        if name in _PIECEWISE:
            self.series.piecewise = True
            return self.value(name, *a)
        if name in _BENT:
            self.series.piecewise = True
        if name in ("pow", "constpow"):
            return self._power(*a)
        if name in ("fmin", "fmax"):
            return self._least(name, *a)
        number = self.value(name, *a)
        if number not in self.series.rows:
            self.series.rows[number] = Row()  # reserved: auxiliary series may refer to it
            self.series.rows[number] = getattr(self, f"_{name}", self._of_function(name))(number, *a)
        return number

    # Rows

    def convolution(self, x: int, y: int, weighted: bool = False) -> int:
        if not weighted and x > y:
            x, y = y, x
        wanted = Convolution(x, y, weighted)
        if wanted not in self._convolved:
            self._convolved[wanted] = len(self.series.convolutions)
            self.series.convolutions.append(wanted)
        return self._convolved[wanted]

    def terms(self, *terms: Term) -> tuple[Term, ...]:
        """Those of operands that are series."""
        return tuple(term for term in terms if self.is_series(term[0]))

    def negative(self, number: int) -> int:
        return self.value("neg", number)

    def _add(self, c: int, a: int, b: int) -> Row:
        return Row(self.terms((a, None), (b, None)))

    def _sub(self, c: int, a: int, b: int) -> Row:
        return Row(self.terms((a, None), (b, self.number(-1.0))))

    def _neg(self, c: int, a: int) -> Row:
        return Row(((a, self.number(-1.0)),))

    def _twice(self, c: int, a: int) -> Row:
        return Row(((a, self.number(2.0)),))

    def _mul(self, c: int, a: int, b: int) -> Row:
        if a == b:
            return self._sq(c, a)
        if self.is_series(a) and self.is_series(b):
            return Row(((a, b), (b, a)), ((self.convolution(a, b), None),))
        return Row(self.terms((a, b), (b, a)))

    def _sq(self, c: int, a: int) -> Row:
        return Row(((a, self.value("twice", a)),), ((self.convolution(a, a), None),))

    def _div(self, c: int, a: int, b: int) -> Row:
        inverse = self.value("inv", b)
        if not self.is_series(b):
            return Row(((a, inverse),))
        factor = self.negative(self.value("mul", c, inverse))
        convolved = (self.convolution(c, b), self.negative(inverse))
        return Row(self.terms((a, inverse), (b, factor)), (convolved,))

    def _inv(self, c: int, a: int) -> Row:
        minus = self.negative(c)
        return Row(((a, self.value("mul", c, minus)),), ((self.convolution(c, a), minus),))

    def _sqrt(self, c: int, a: int) -> Row:
        half = self.value("inv", self.value("twice", c))
        return Row(((a, half),), ((self.convolution(c, c), self.negative(half)),))

    def _hypot(self, c: int, a: int, b: int) -> Row:
        inverse = self.value("inv", c)
        half = self.value("mul", inverse, self.number(0.5))
        given = [i for i in (a, b) if self.is_series(i)]
        convolved = [(self.convolution(i, i), half) for i in given]
        convolved.append((self.convolution(c, c), self.negative(half)))
        return Row(tuple((i, self.value("mul", i, inverse)) for i in given), tuple(convolved))

    def integral(self, a: int, w: int, sign: float = 1.0) -> Row:
        """Of c with c′ = ± w a′."""
        if not self.is_series(w):
            return Row(((a, w if sign > 0 else self.negative(w)),))
        factor = None if sign > 0 else self.number(-1.0)
        return Row(((a, w if sign > 0 else self.negative(w)),), (), ((self.convolution(a, w, True), factor),))

    def quotient(self, c: int, a: int, w: int, sign: float = 1.0) -> Row:
        """Of c with w c′ = ± a′."""
        inverse = self.value("inv", w)
        factor = inverse if sign > 0 else self.negative(inverse)
        return Row(((a, factor),), (), ((self.convolution(c, w, True), self.negative(inverse)),))

    def _of_function(self, name: str) -> Callable[[int, int], Row]:
        """The row of a function of one operand from its differential equation."""

        def row(c: int, a: int) -> Row:
            kind, sign, w = self._differential(name, c, a)
            return self.integral(a, w, sign) if kind == "integral" else self.quotient(c, a, w, sign)

        return row

    def _differential(self, name: str, c: int, a: int) -> tuple[str, float, int]:
        """c′ = ± w a′ or w c′ = ± a′ for c = f(a): which of them, the sign, and w."""
        one, apply = self.number(1.0), self.apply
        match name:
            case "sin" | "sinh":
                return "integral", 1.0, apply("cos" if name == "sin" else "cosh", a)
            case "cos" | "cosh":
                return (
                    "integral",
                    -1.0 if name == "cos" else 1.0,
                    apply("sin" if name == "cos" else "sinh", a),
                )
            case "tan":
                return "integral", 1.0, apply("add", one, apply("sq", c))
            case "tanh":
                return "integral", 1.0, apply("sub", one, apply("sq", c))
            case "exp":
                return "integral", 1.0, c
            case "expm1":
                return "integral", 1.0, apply("add", one, c)
            case "erf":
                bell = apply("exp", apply("neg", apply("sq", a)))
                return "integral", 1.0, apply("mul", self.number(2 / math.sqrt(math.pi)), bell)
            case "log":
                return "quotient", 1.0, a
            case "log1p":
                return "quotient", 1.0, apply("add", one, a)
            case "atan":
                return "quotient", 1.0, apply("add", one, apply("sq", a))
            case "atanh":
                return "quotient", 1.0, self._one_minus_square(a)
            case "asin" | "acos":
                sign = 1.0 if name == "asin" else -1.0
                return "quotient", sign, apply("sqrt", self._one_minus_square(a))
            case "asinh":
                return "quotient", 1.0, apply("sqrt", apply("add", one, apply("sq", a)))
            case "acosh":
                return "quotient", 1.0, apply("sqrt", apply("neg", self._one_minus_square(a)))
        raise NotImplementedError(f"the Taylor series of {name} is not known")

    def _one_minus_square(self, a: int) -> int:
        """(1 − a)(1 + a), which keeps its digits near 1."""
        one = self.number(1.0)
        return self.apply("mul", self.apply("sub", one, a), self.apply("add", one, a))

    def _atan2(self, c: int, y: int, x: int) -> Row:
        """From r c′ = x y′ − y x′ with r = x² + y²."""
        r = self.apply("add", self.apply("sq", x), self.apply("sq", y))
        inverse = self.value("inv", r)
        minus = self.negative(inverse)
        divided = [(self.convolution(c, r, True), minus)]
        if self.is_series(x) and self.is_series(y):
            divided += [(self.convolution(y, x, True), inverse), (self.convolution(x, y, True), minus)]
        terms = self.terms((y, self.value("mul", x, inverse)), (x, self.value("mul", y, minus)))
        return Row(terms, (), tuple(divided))

    # Powers

    def _power(self, a: int, b: int) -> int:
        """a^b: products for whole b, else c′ a = b c a′, or exp(b log a) where b is a series."""
        exponent = self._whole_number(b)
        if exponent is not None:
            return self._whole_power(a, exponent)
        angle = self.apply("mul", b, self.apply("log", a)) if self.is_series(b) else None
        number = self.value("pow", a, b)
        if number in self.series.rows:
            return number
        self.series.rows[number] = Row()
        if angle is not None:
            self.series.rows[number] = self.integral(angle, number)
            return number
        inverse = self.value("inv", a)
        factor = self.value("mul", self.value("mul", b, number), inverse)
        self.series.rows[number] = Row(
            ((a, factor),),
            (),
            (
                (self.convolution(a, number, True), self.value("mul", b, inverse)),
                (self.convolution(number, a, True), self.negative(inverse)),
            ),
        )
        return number

    def _whole_number(self, b: int) -> int | None:
        """The value of a constant if it is a whole number, and not too large."""
        name, *value = self.series.operations[b]
        if name == "const" and abs(value[0]) <= _LARGEST_POWER and value[0] == int(value[0]):
            return int(value[0])
        return None

    def _whole_power(self, a: int, exponent: int) -> int:
        if exponent == 0:
            return self.number(1.0)
        if exponent < 0:
            return self.apply("inv", self._whole_power(a, -exponent))
        if exponent == 1:
            return a
        half = self.apply("sq", self._whole_power(a, exponent // 2))
        return self.apply("mul", half, a) if exponent % 2 else half

    # Pieces

    def _fabs(self, c: int, a: int) -> Row:
        return Row(((a, self.value("sign", a)),))

    def _copysign(self, c: int, a: int, b: int) -> Row:
        sign = self.value("mul", self.value("sign", a), self.value("copysign", self.number(1.0), b))
        return Row(self.terms((a, sign)))

    def _least(self, name: str, a: int, b: int) -> int:
        """fmin and fmax, as the operand that it is at the beginning."""
        first = self.value("lt", a, b) if name == "fmin" else self.value("lt", b, a)
        kept = self.apply("if_else_zero", first, a)
        return self.apply("add", kept, self.apply("if_else_zero", self.value("not", first), b))

    def _if_else_zero(self, c: int, condition: int, a: int) -> Row:
        return Row(self.terms((a, None)), condition=condition)

    def _fmod(self, c: int, a: int, b: int) -> Row:
        """a − n b with a whole n that stays."""
        turns = self.value("div", self.value("sub", c, a), b)
        return Row(self.terms((a, None), (b, turns)))

    _remainder = _fmod


def _needed(program: Program, outputs: tuple[int, ...]) -> list[bool]:
    """For each operation, whether one of these outputs depends on it."""
    needed = [False] * len(program.operations)
    for number in outputs:
        needed[number] = True
    for number in range(len(needed) - 1, -1, -1):
        name, *operands = program.operations[number]
        if needed[number] and name not in ("input", "const"):
            for operand in operands:
                needed[operand] = True
    return needed
