"""Instructions on vectors of W doubles, one in each *lane*: what a program does for one trajectory, the same
instructions do for W of them.

For a width of one these are plain doubles, so that one source writes both.  A graphics card runs the same
code with one lane a thread; there is no library of mathematical functions there, so that they are written
out (:mod:`holonome.machine.elementary`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holonome.machine.llvm import Writer

FLAGS = "contract arcp"
_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul"}
_COMPARISONS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_INSTRUCTIONS = {
    "sqrt": "sqrt",
    "fabs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "fmin": "minnum",
    "fmax": "maxnum",
    "copysign": "copysign",
}
_LIBRARY = {"exp": "llvm.exp.f64", "log": "llvm.log.f64", "pow": "llvm.pow.f64", "constpow": "llvm.pow.f64"}


@dataclass(frozen=True)
class Lanes:
    """Vectors of ``width`` doubles, or plain doubles for a width of one; methods write one instruction.

    ``functions`` are written in line instead of calls of the mathematical library of C, by name; where there
    is no library it must have them all.  ``align`` is what is known of addresses, ``card`` says that the code
    is for a graphics card.
    """

    write: Writer
    width: int
    align: int = 8
    functions: dict[str, Callable[..., str]] = field(default_factory=dict)
    library: bool = True
    card: bool = False

    @property
    def real(self) -> str:
        return self._kind("double")

    @property
    def whole(self) -> str:
        return self._kind("i64")

    @property
    def bits(self) -> str:
        return self._kind("i1")

    def _kind(self, kind: str) -> str:
        return kind if self.width == 1 else f"<{self.width} x {kind}>"

    @property
    def suffix(self) -> str:
        """How LLVM names its functions on these vectors."""
        return "f64" if self.width == 1 else f"v{self.width}f64"

    def number(self, value: float) -> str:
        """The same number in all lanes."""
        return self._all_of("double", self.write.constant(value))

    def integer(self, value: int) -> str:
        """The same whole number in all lanes."""
        return self._all_of("i64", str(value))

    def _all_of(self, kind: str, value: str) -> str:
        return value if self.width == 1 else "<" + ", ".join([f"{kind} {value}"] * self.width) + ">"

    def value(self, operation: str, *operands: str) -> str:
        """An operation on doubles (its name begins with f) or on whole numbers."""
        return self.write.value(
            f"{operation} {self.real if operation[0] == 'f' else self.whole} {', '.join(operands)}"
        )

    def instruction(self, name: str, *operands: str) -> str:
        """A function of LLVM that is an instruction of every processor."""
        full, kinds = f"@llvm.{name}.{self.suffix}", [self.real] * len(operands)
        self.write.declarations.add(f"declare {self.real} {full}({', '.join(kinds)})")
        given = ", ".join(f"{self.real} {operand}" for operand in operands)
        return self.write.value(f"call {FLAGS} {self.real} {full}({given})")

    def fabs(self, a: str) -> str:
        return self.instruction("fabs", a)

    def fma(self, a: str, b: str, c: str) -> str:
        """The product a b plus c, rounded once."""
        return self.instruction("fma", a, b, c)

    def quotient(self, a: str, b: str) -> str:
        """a / b.  On a card, which has no instruction for it, a times the reciprocal, from an approximate one
        by Newton's method; within two units in the last place, and no number where b is 0 or not finite.
        """
        if not self.card or b.startswith("0x"):
            return self.value(f"fdiv {FLAGS}", a, b)
        name, one = "@llvm.nvvm.rcp.approx.ftz.d", self.number(1.0)
        self.write.declarations.add(f"declare double {name}(double)")
        inverse, less = self.write.value(f"call double {name}(double {b})"), self.value("fneg", b)
        for _ in range(2):
            inverse = self.fma(inverse, self.fma(less, inverse, one), inverse)
        return inverse if a == one else self.value(f"fmul {FLAGS}", a, inverse)

    def call(self, name: str, operands: Sequence[str]) -> str:
        """A function of the mathematical library of C, lane by lane."""
        given = [self.scattered(operand, self.width) for operand in operands]
        return self.gathered(self.write.call(name, lane) for lane in zip(*given, strict=True))

    def as_number(self, condition: str) -> str:
        """1 where a condition holds, 0 elsewhere."""
        return self.write.value(f"uitofp {self.bits} {condition} to {self.real}")

    def nonzero(self, a: str) -> str:
        return self.value("fcmp une", a, self.number(0.0))

    def operation(self, name: str, a: Sequence[str]) -> str:
        """One operation of a program; those without an instruction call the mathematical library of C, which
        has them under the same name, unless they are written out.
        """
        if name == "div":
            return self.quotient(*a)
        if name in _BINARY:
            return self.value(f"{_BINARY[name]} {FLAGS}", *a)
        if name in _INSTRUCTIONS:
            return self.instruction(_INSTRUCTIONS[name], *a)
        if name in _COMPARISONS:
            return self.as_number(self.value(f"fcmp {_COMPARISONS[name]}", *a))
        match name:
            case "neg":
                return self.value("fneg", *a)
            case "sq":
                return self.value(f"fmul {FLAGS}", a[0], a[0])
            case "twice":
                return self.value(f"fadd {FLAGS}", a[0], a[0])
            case "inv":
                return self.quotient(self.number(1.0), a[0])
            case "not":
                return self.as_number(self.value("fcmp oeq", a[0], self.number(0.0)))
            case "and" | "or":
                both = [self.nonzero(x) for x in a]
                return self.as_number(self.write.value(f"{name} {self.bits} {both[0]}, {both[1]}"))
            case "if_else_zero":
                return self.select(self.nonzero(a[0]), a[1], self.number(0.0))
            case "sign":
                negative = self.select(
                    self.value("fcmp olt", a[0], self.number(0.0)), self.number(-1.0), a[0]
                )
                return self.select(self.value("fcmp ogt", a[0], self.number(0.0)), self.number(1.0), negative)
        if name in self.functions:
            return self.functions[name](self, *a)
        if not self.library:
            raise NotImplementedError(f"{name} is not written out")
        return self.call(_LIBRARY.get(name, name), a)

    def as_whole(self, vector: str) -> str:
        """The bits of doubles as whole numbers."""
        return self.write.value(f"bitcast {self.real} {vector} to {self.whole}")

    def as_real(self, vector: str) -> str:
        """Whole numbers as the bits of doubles."""
        return self.write.value(f"bitcast {self.whole} {vector} to {self.real}")

    def rounded_down(self, vector: str) -> str:
        """Doubles that are whole, as whole numbers."""
        return self.write.value(f"fptosi {self.real} {vector} to {self.whole}")

    def as_doubles(self, vector: str) -> str:
        """The values of whole numbers as doubles."""
        return self.write.value(f"sitofp {self.whole} {vector} to {self.real}")

    def all_true(self, vector: str) -> str:
        """Whether a condition holds in all lanes."""
        if self.width == 1:
            return vector
        bits = self.write.value(f"bitcast {self.bits} {vector} to i{self.width}")
        return self.write.value(f"icmp eq i{self.width} {bits}, -1")

    def any_true(self, vector: str) -> str:
        """Whether a condition holds in some lane."""
        if self.width == 1:
            return vector
        bits = self.write.value(f"bitcast {self.bits} {vector} to i{self.width}")
        return self.write.value(f"icmp ne i{self.width} {bits}, 0")

    def select(self, condition: str, a: str, b: str) -> str:
        return self.write.value(f"select {self.bits} {condition}, {self.real} {a}, {self.real} {b}")

    def insert(self, vector: str, value: str, lane: int) -> str:
        return self.write.value(f"insertelement {self.real} {vector}, double {value}, i64 {lane}")

    def gathered(self, values: Iterable[str]) -> str:
        """A vector of these values."""
        vector = "poison"
        for lane, value in enumerate(values):
            if self.width == 1:
                return value
            vector = self.insert(vector, value, lane)
        return vector

    def everywhere(self, value: str) -> str:
        """A vector with this value in all lanes."""
        if self.width == 1:
            return value
        first = self.insert("poison", value, 0)
        return self.write.value(
            f"shufflevector {self.real} {first}, {self.real} poison, <{self.width} x i32> zeroinitializer"
        )

    def scattered(self, vector: str, count: int) -> list[str]:
        """The values in the first lanes."""
        if self.width == 1:
            return [vector]
        return [self.write.value(f"extractelement {self.real} {vector}, i64 {i}") for i in range(count)]

    def load(self, base: str, index: int | str) -> str:
        """The vector that begins at ``base[index]``."""
        return self.write.value(
            f"load {self.real}, ptr {self.write.address(base, index)}, align {self.align}"
        )

    def store(self, vector: str, base: str, index: int | str) -> None:
        """Store a vector from ``base[index]`` on."""
        place = self.write.address(base, index)
        self.write.lines.append(f"store {self.real} {vector}, ptr {place}, align {self.align}")
