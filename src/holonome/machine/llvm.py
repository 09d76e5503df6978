"""The writer of LLVM assembly, for programs, sines and cosines, and the sums of a Runge–Kutta step.

A program's operations are written down one line an operation.  No Python is generated and no types are
inferred, so a model of a few hundred operations becomes machine code in milliseconds.

Every function that is written is a *kernel* with one C signature:

    status = kernel(t, y, z, context, out)

``t`` is a double, the others point to doubles that do not overlap.  ``y`` is the state, ``z`` a further input
that depends on the kernel, ``context`` holds everything that stays fixed in a run (see
:mod:`holonome.machine.context`), ``out`` receives the result.  Status 0 means success.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from holonome.equations.program import Program
from holonome.machine.context import PARAMETERS, SINGULAR, Block
from holonome.machine.sincos import sines_and_cosines

FLAGS = "contract arcp"
_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_COMPARISONS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}
_INTRINSICS = {
    "sqrt": "sqrt",
    "exp": "exp",
    "log": "log",
    "fabs": "fabs",
    "floor": "floor",
    "ceil": "ceil",
    "pow": "pow",
    "constpow": "pow",
    "fmin": "minnum",
    "fmax": "maxnum",
    "copysign": "copysign",
}
_TRIGONOMETRIC = ("sin", "cos")
_LEAVES = ("input", "const")
_POINTERS = ("", "%y", "%z", "%p")
"""Where the inputs t, y, z, p of a program lie; t is a value itself."""


class Writer:
    """Collects LLVM assembly; methods add lines and return the name of a value."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()

    def value(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def lanes(self, width: int) -> Lanes:
        """Vectors of this many doubles."""
        return Lanes(self, width)

    def address(self, base: str, index: int | str) -> str:
        return self.value(f"getelementptr double, ptr {base}, i64 {index}")

    def load(self, base: str, index: int | str, how: str = "") -> str:
        return self.value(f"load {how}double, ptr {self.address(base, index)}")

    def store(self, value: str, base: str, index: int) -> None:
        self.lines.append(f"store double {value}, ptr {self.address(base, index)}")

    def call(self, function: str, arguments: Sequence[str]) -> str:
        self.declarations.add(f"declare double @{function}({', '.join(['double'] * len(arguments))})")
        return self.value(f"call {FLAGS} double @{function}({', '.join(f'double {a}' for a in arguments)})")

    def constant(self, value: float) -> str:
        return "0x" + struct.pack(">d", value).hex()

    def as_double(self, condition: str) -> str:
        return self.value(f"uitofp i1 {condition} to double")

    def nonzero(self, value: str) -> str:
        return self.value(f"fcmp une double {value}, 0.0")

    def operation(self, name: str, a: Sequence[str]) -> str:
        """One operation of a program; those without an instruction call the mathematical library of C, which
        has them under the same name.
        """
        if name in _BINARY:
            return self.value(f"{_BINARY[name]} {FLAGS} double {a[0]}, {a[1]}")
        if name in _INTRINSICS:
            return self.call(f"llvm.{_INTRINSICS[name]}.f64", a)
        if name in _COMPARISONS:
            return self.as_double(self.value(f"fcmp {_COMPARISONS[name]} double {a[0]}, {a[1]}"))
        match name:
            case "neg":
                return self.value(f"fneg double {a[0]}")
            case "sq":
                return self.value(f"fmul {FLAGS} double {a[0]}, {a[0]}")
            case "twice":
                return self.value(f"fadd {FLAGS} double {a[0]}, {a[0]}")
            case "inv":
                return self.value(f"fdiv {FLAGS} double 1.0, {a[0]}")
            case "not":
                return self.as_double(self.value(f"fcmp oeq double {a[0]}, 0.0"))
            case "and" | "or":
                both = [self.nonzero(x) for x in a]
                return self.as_double(self.value(f"{name} i1 {both[0]}, {both[1]}"))
            case "if_else_zero":
                return self.value(f"select i1 {self.nonzero(a[0])}, double {a[1]}, double 0.0")
            case "sign":
                up = self.value(f"fcmp ogt double {a[0]}, 0.0")
                down = self.value(f"fcmp olt double {a[0]}, 0.0")
                negative = self.value(f"select i1 {down}, double -1.0, double {a[0]}")
                return self.value(f"select i1 {up}, double 1.0, double {negative}")
        return self.call(name, a)

    def function(self, name: str, status: str) -> str:
        """The kernel of this name that all lines together make, with its status, a value or a number."""
        head = (
            f"define i32 @{name}(double %t, ptr noalias %y, ptr noalias %z, ptr noalias %context, "
            f"ptr noalias %out) {{"
        )
        return "\n".join([*sorted(self.declarations), head, *self.lines, f"ret i32 {status}", "}", ""])


class Lanes:
    """Vectors of ``width`` doubles, or plain doubles for a width of one; methods write one instruction."""

    def __init__(self, write: Writer, width: int) -> None:
        self.write, self.width = write, width
        self.real, self.whole, self.bits = (
            kind if width == 1 else f"<{width} x {kind}>" for kind in ("double", "i64", "i1")
        )
        self._suffix = "f64" if width == 1 else f"v{width}f64"

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

    def fabs(self, a: str) -> str:
        self.write.declarations.add(f"declare {self.real} @llvm.fabs.{self._suffix}({self.real})")
        return self.write.value(f"call {self.real} @llvm.fabs.{self._suffix}({self.real} {a})")

    def fma(self, a: str, b: str, c: str) -> str:
        """The product a b plus c, rounded once."""
        real, name = self.real, f"@llvm.fma.{self._suffix}"
        self.write.declarations.add(f"declare {real} {name}({real}, {real}, {real})")
        return self.write.value(f"call {real} {name}({real} {a}, {real} {b}, {real} {c})")

    def as_whole(self, vector: str) -> str:
        """The bits of doubles as whole numbers."""
        return self.write.value(f"bitcast {self.real} {vector} to {self.whole}")

    def as_real(self, vector: str) -> str:
        """Whole numbers as the bits of doubles."""
        return self.write.value(f"bitcast {self.whole} {vector} to {self.real}")

    def all_true(self, vector: str) -> str:
        """Whether a condition holds in all lanes."""
        if self.width == 1:
            return vector
        bits = self.write.value(f"bitcast {self.bits} {vector} to i{self.width}")
        return self.write.value(f"icmp eq i{self.width} {bits}, -1")

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
        return self.write.value(f"load {self.real}, ptr {self.write.address(base, index)}, align 8")

    def store(self, vector: str, base: str, index: int | str) -> None:
        self.write.lines.append(f"store {self.real} {vector}, ptr {self.write.address(base, index)}, align 8")


def assembly(program: Program, name: str, suppliers: Sequence[int] = (), block: int = 0) -> str:
    """LLVM assembly of a kernel.

    Parameters
    ----------
    program
        Inputs t, y, z, p.  First output: the result, a column of which only entries that are not structurally
        zero are written.  An optional second output, a scalar, is the margin by which the system is regular:
        the kernel's status is ``SINGULAR`` unless it is positive.
    name
        The symbol.
    suppliers
        Offsets, in ``p``, of the blocks of supplied values (:mod:`holonome.machine.context`).  The driver of
        each is called first, with its own block, and writes the values there.
    block
        Lines in a basic block; 0 puts all into one.
    """
    write = Writer()
    write.lines.append(f"%p = getelementptr double, ptr %context, i64 {PARAMETERS}")
    for number, offset in enumerate(suppliers):
        _call_supplier(write, number, offset)
    entries, result = defaultdict[int, list[int]](list), program.outputs[0]
    for position, number in zip(result.positions, result.operations, strict=True):
        entries[number].append(position)

    def store(number: int, value: str) -> None:
        for row in entries.get(number, ()):
            write.store(value, "%out", row)

    values = write_operations(write, program.operations, block, store)
    margins = [values[number] for output in program.outputs[1:] for number in output.operations]
    regular = write.value(f"fcmp ogt double {margins[0] if margins else '1.0'}, 0.0")
    return write.function(name, write.value(f"select i1 {regular}, i32 0, i32 {SINGULAR}"))


def _call_supplier(write: Writer, number: int, offset: int) -> None:
    """Have a block's values computed; if that fails, the kernel ends with the status of its driver."""
    block = write.address("%p", offset)
    driver = write.value(f"load ptr, ptr {write.address(block, Block.places.driver)}")
    status = write.value(f"call i32 {driver}(double %t, ptr %y, ptr {block}, ptr %context, ptr {block})")
    write.lines += [
        f"%failed{number} = icmp ne i32 {status}, 0",
        f"br i1 %failed{number}, label %stop{number}, label %go{number}",
        f"stop{number}:",
        f"ret i32 {status}",
        f"go{number}:",
    ]


def write_operations(
    write: Writer, operations: Sequence[tuple], block: int, store: Callable[[int, str], None]
) -> dict[int, str]:
    """All operations, and behind each what ``store`` does with its number and value; returns the values."""
    values = dict[int, str]()
    full = len(write.lines) + block

    def emit(number: int) -> None:
        nonlocal full
        if block and len(write.lines) > full:
            write.lines += [f"br label %block{number}", f"block{number}:"]
            full = len(write.lines) + block
        operation = operations[number]
        name = operation[0]
        if name == "input":
            pointer = _POINTERS[operation[1]]
            values[number] = write.load(pointer, operation[2]) if pointer else "%t"
        elif name == "const":
            values[number] = write.constant(operation[1])
        else:
            values[number] = write.operation(name, [values[i] for i in operation[1:]])

    if not block:  # long code calls the library, which compiles in half the time
        for needed, angles in _angles(operations):
            for number in needed:
                emit(number)
            pairs = sines_and_cosines(write, [values[i] for i in angles])
            for users, pair in zip(angles.values(), pairs, strict=True):
                values |= {number: pair[operations[number][0] == "cos"] for number in users}
    for number in range(len(operations)):
        if number not in values:
            emit(number)
        store(number, values[number])
    return values


def _angles(operations: Sequence[tuple]) -> Iterator[tuple[list[int], dict[int, list[int]]]]:
    """Angles that are known at the same time: the operations that must come before, and for each angle its
    sines and cosines.
    """
    depth, groups = [0] * len(operations), defaultdict[int, dict[int, list[int]]](dict)
    done = set[int]()
    for number, operation in enumerate(operations):
        if operation[0] in _LEAVES:
            continue
        depth[number] = max([depth[i] for i in operation[1:]])
        if operation[0] in _TRIGONOMETRIC:
            groups[depth[number]].setdefault(operation[1], []).append(number)
            depth[number] += 1
            done.add(number)
    for _, angles in sorted(groups.items()):
        needed, open_ends = set(), [i for i in angles if i not in done]
        while open_ends:
            number = open_ends.pop()
            if number not in done:
                done.add(number)
                needed.add(number)
                name, *operands = operations[number]
                open_ends += [] if name in _LEAVES else operands
        yield sorted(needed), angles
