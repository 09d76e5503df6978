"""Loops on vectors written down as formulas.

An integrator's loop for W trajectories (:mod:`holonome.ensembles.march`) is a Python function that works
with `Real`, one number in each lane, and `Mask`, one truth value in each lane; what it does with them is
written as LLVM assembly.  With one lane the same function writes the loop of a thread of a graphics card.

    code = Code(lanes)
    h, error = code.cell("h"), …
    with code.loop() as loop:
        loop.leave(~busy.any())
        h[0] = select(error < 1.0, 2.0 * h[0], 0.5 * h[0])

What changes lives in `Cells`, arrays of vectors; LLVM keeps them in registers where it can.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from holonome.machine.elementary import exponential, logarithm
from holonome.machine.lanes import Lanes


class Real:
    """A number in each lane; arithmetic writes instructions."""

    __slots__ = ("lanes", "name")

    def __init__(self, lanes: Lanes, name: str) -> None:
        self.lanes, self.name = lanes, name

    def _of(self, other: Real | float) -> str:
        return other.name if isinstance(other, Real) else self.lanes.number(float(other))

    def _value(self, operation: str, *operands: str) -> Real:
        return Real(self.lanes, self.lanes.value(f"{operation} contract", *operands))

    def __add__(self, other: Real | float) -> Real:
        return self._value("fadd", self.name, self._of(other))

    def __radd__(self, other: float) -> Real:
        return self._value("fadd", self._of(other), self.name)

    def __sub__(self, other: Real | float) -> Real:
        return self._value("fsub", self.name, self._of(other))

    def __rsub__(self, other: float) -> Real:
        return self._value("fsub", self._of(other), self.name)

    def __mul__(self, other: Real | float) -> Real:
        return self._value("fmul", self.name, self._of(other))

    def __rmul__(self, other: float) -> Real:
        return self._value("fmul", self._of(other), self.name)

    def __truediv__(self, other: Real | float) -> Real:
        return Real(self.lanes, self.lanes.quotient(self.name, self._of(other)))

    def __rtruediv__(self, other: float) -> Real:
        return Real(self.lanes, self.lanes.quotient(self._of(other), self.name))

    def __neg__(self) -> Real:
        return self._value("fneg", self.name)

    def __abs__(self) -> Real:
        return Real(self.lanes, self.lanes.fabs(self.name))

    def _compared(self, how: str, other: Real | float) -> Mask:
        return Mask(self.lanes, self.lanes.value(f"fcmp {how}", self.name, self._of(other)))

    def __lt__(self, other: Real | float) -> Mask:
        return self._compared("olt", other)

    def __le__(self, other: Real | float) -> Mask:
        return self._compared("ole", other)

    def __gt__(self, other: Real | float) -> Mask:
        return self._compared("ogt", other)

    def __ge__(self, other: Real | float) -> Mask:
        return self._compared("oge", other)

    def equals(self, other: Real | float) -> Mask:
        return self._compared("oeq", other)

    def sqrt(self) -> Real:
        return Real(self.lanes, self.lanes.instruction("sqrt", self.name))

    def exp(self) -> Real:
        return Real(self.lanes, exponential(self.lanes, self.name))

    def log(self) -> Real:
        return Real(self.lanes, logarithm(self.lanes, self.name))

    def with_sign_of(self, other: Real) -> Real:
        return Real(self.lanes, self.lanes.instruction("copysign", self.name, other.name))

    def is_finite(self) -> Mask:
        return (self - self).equals(0.0)


class Mask:
    """A truth value in each lane."""

    __slots__ = ("lanes", "name")

    def __init__(self, lanes: Lanes, name: str) -> None:
        self.lanes, self.name = lanes, name

    def _value(self, operation: str, other: str) -> Mask:
        text = f"{operation} {self.lanes.bits} {self.name}, {other}"
        return Mask(self.lanes, self.lanes.write.value(text))

    def __and__(self, other: Mask) -> Mask:
        return self._value("and", other.name)

    def __or__(self, other: Mask) -> Mask:
        return self._value("or", other.name)

    def __invert__(self) -> Mask:
        width = self.lanes.width
        return self._value("xor", "true" if width == 1 else "<" + ", ".join(["i1 true"] * width) + ">")

    def any(self) -> str:
        """Whether it holds in some lane: one truth value."""
        return self.lanes.any_true(self.name)

    def as_number(self) -> Real:
        """1 where it holds."""
        return Real(self.lanes, self.lanes.as_number(self.name))


def select(where: Mask, a: Real | float, b: Real | float) -> Real:
    """a where the condition holds, else b."""
    lanes = where.lanes
    first, second = (x.name if isinstance(x, Real) else lanes.number(float(x)) for x in (a, b))
    return Real(lanes, lanes.select(where.name, first, second))


def larger(a: Real, b: Real | float) -> Real:
    """The larger one; a number, where the other is none."""
    return Real(a.lanes, a.lanes.instruction("maxnum", a.name, a._of(b)))


def smaller(a: Real, b: Real | float) -> Real:
    return Real(a.lanes, a.lanes.instruction("minnum", a.name, a._of(b)))


class Cells:
    """An array of vectors in the memory of the function; `at` and `put` reach the number of one lane."""

    def __init__(self, code: Code, base: str, first: int = 0) -> None:
        self.code, self.base, self.first = code, base, first

    def _place(self, index: int) -> int:
        return (self.first + index) * self.code.lanes.width

    def __getitem__(self, index: int) -> Real:
        lanes = self.code.lanes
        return Real(lanes, lanes.load(self.base, self._place(index)))

    def __setitem__(self, index: int, value: Real | float) -> None:
        lanes = self.code.lanes
        name = value.name if isinstance(value, Real) else lanes.number(float(value))
        lanes.store(name, self.base, self._place(index))

    def _of_lane(self, index: int, lane: str) -> str:
        write = self.code.write
        return write.address(write.address(self.base, self._place(index)), lane)

    def at(self, index: int, lane: str) -> Real:
        """The number of one lane."""
        text = f"load double, ptr {self._of_lane(index, lane)}"
        return Real(self.code.one, self.code.write.value(text))

    def put(self, index: int, lane: str, value: Real | float) -> None:
        """Change the number of one lane."""
        name = value.name if isinstance(value, Real) else self.code.one.number(float(value))
        self.code.write.lines.append(f"store double {name}, ptr {self._of_lane(index, lane)}")

    def pointer(self, index: int = 0) -> str:
        """Address of the vectors from one on."""
        return self.code.write.address(self.base, self._place(index))


class Loop:
    """A loop that is being written."""

    def __init__(self, code: Code, end: str) -> None:
        self._code, self._end = code, end

    def leave(self, condition: str) -> None:
        """Leave the loop where this holds."""
        go_on = self._code.label()
        self._code.write.lines += [f"br i1 {condition}, label %{self._end}, label %{go_on}", f"{go_on}:"]


class Code:
    """A function that is being written, on vectors: memory and the flow of control."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes, self.write = lanes, lanes.write
        self.one = replace(lanes, width=1, align=8)
        self._cells: list[str] = []

    def label(self) -> str:
        return f"l{len(self.write.lines)}"

    def cells(self, name: str, count: int = 1) -> Cells:
        """New memory for so many vectors; what is in it is not defined."""
        size = max(count, 1) * self.lanes.width
        self._cells.append(f"%{name} = alloca [{size} x double], align 64")
        return Cells(self, f"%{name}")

    def number(self, value: float) -> Real:
        return Real(self.lanes, self.lanes.number(value))

    def everywhere(self, value: Real) -> Real:
        """The number of one lane in all lanes."""
        return Real(self.lanes, self.lanes.everywhere(value.name))

    def whole(self, operation: str, a: str, b: str | int) -> str:
        """An operation on whole numbers."""
        return self.write.value(f"{operation} i64 {a}, {b}")

    def read(self, base: str, index: str | int) -> Real:
        """A number from memory of the caller."""
        return Real(self.one, self.write.load(base, index))

    def keep(self, value: Real, base: str, index: str | int) -> None:
        """Write a number into memory of the caller."""
        self.write.lines.append(f"store double {value.name}, ptr {self.write.address(base, index)}")

    @contextmanager
    def loop(self) -> Iterator[Loop]:
        """A loop without end, but for `Loop.leave`."""
        label = self.label()
        lines = self.write.lines
        lines += [f"br label %head{label}", f"head{label}:"]
        yield Loop(self, f"end{label}")
        lines += [f"br label %head{label}", f"end{label}:"]

    @contextmanager
    def when(self, condition: str) -> Iterator[None]:
        """What follows happens only if this holds."""
        label = self.label()
        lines = self.write.lines
        lines += [f"br i1 {condition}, label %then{label}, label %go{label}", f"then{label}:"]
        yield
        lines += [f"br label %go{label}", f"go{label}:"]

    @contextmanager
    def each_lane(self, where: Mask) -> Iterator[str]:
        """What follows happens for the lanes in which this holds, one after the other."""
        if self.lanes.width == 1:
            with self.when(where.name):
                yield "0"
            return
        write, label, width = self.write, self.label(), self.lanes.width
        bits = write.value(f"bitcast {self.lanes.bits} {where.name} to i{width}")
        self._cells.append(f"%left{label} = alloca i{width}")
        write.lines.append(f"store i{width} {bits}, ptr %left{label}")
        with self.loop() as loop:
            left = write.value(f"load i{width}, ptr %left{label}")
            loop.leave(write.value(f"icmp eq i{width} {left}, 0"))
            write.declarations.add(f"declare i{width} @llvm.cttz.i{width}(i{width}, i1)")
            place = write.value(f"call i{width} @llvm.cttz.i{width}(i{width} {left}, i1 true)")
            less = write.value(f"sub i{width} {left}, 1")
            write.lines.append(
                f"store i{width} {write.value(f'and i{width} {left}, {less}')}, ptr %left{label}"
            )
            yield write.value(f"zext i{width} {place} to i64")

    def thread(self) -> tuple[Real, Real]:
        """On a card: the number of this thread, and how many there are."""
        found = []
        for register in ("ctaid", "ntid", "tid", "nctaid"):
            name = f"@llvm.nvvm.read.ptx.sreg.{register}.x"
            self.write.declarations.add(f"declare i32 {name}()")
            found.append(self.write.value(f"call i32 {name}()"))
        block, size, own, blocks = found
        first = self.write.value(f"add i32 {self.write.value(f'mul i32 {block}, {size}')}, {own}")
        count = self.write.value(f"mul i32 {blocks}, {size}")
        number, total = (
            Real(self.one, self.write.value(f"uitofp i32 {value} to double")) for value in (first, count)
        )
        return number, total

    def call(self, function: str, t: Real, *pointers: str) -> Real:
        """A part on vectors (:func:`holonome.machine.llvm.part`); the margin that it returns."""
        given = ", ".join(f"ptr {pointer}" for pointer in pointers)
        real = self.lanes.real
        return Real(self.lanes, self.write.value(f"call {real} @{function}({real} {t.name}, {given})"))

    def function(self, head: str) -> str:
        """The whole function, which begins like this and returns nothing."""
        self.write.lines[:0] = ["entry:", *self._cells]
        return self.write.body(head, "void")
