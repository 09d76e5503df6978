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
from collections.abc import Callable, Iterator, Sequence

from holonome.equations.program import Program
from holonome.machine.context import PARAMETERS, SINGULAR, Block
from holonome.machine.lanes import FLAGS as FLAGS
from holonome.machine.lanes import Lanes
from holonome.machine.sincos import sine_and_cosine, sines_and_cosines

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

    def function(self, name: str, status: str) -> str:
        """The kernel of this name that all lines together make, with its status, a value or a number."""
        head = (
            f"define i32 @{name}(double %t, ptr noalias %y, ptr noalias %z, ptr noalias %context, "
            f"ptr noalias %out)"
        )
        return "\n".join([*sorted(self.declarations), self.body(head, f"i32 {status}")])

    def nonzero(self, value: str) -> str:
        return self.value(f"fcmp une double {value}, 0.0")

    def body(self, head: str, result: str) -> str:
        """All lines as a function that begins like this, without the declarations."""
        return "\n".join([f"{head} {{", *self.lines, f"ret {result}", "}", ""])


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
    values = write_operations(write, program.operations, block, _storing(program, write.lanes(1)))
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


def part(program: Program, name: str, lanes: Lanes, attributes: str = "") -> str:
    """A kernel on vectors as a part of a larger module: ``t`` and the result are vectors, the arrays consist
    of vectors.  The result is the margin by which the system is regular, positive if it is.

    ``lanes`` write into a writer of their own, which afterwards has the declarations that are needed.
    """
    values = write_operations(lanes.write, program.operations, 0, _storing(program, lanes), lanes)
    margins = [values[number] for output in program.outputs[1:] for number in output.operations]
    head = (
        f"define internal {lanes.real} @{name}({lanes.real} %t, ptr noalias %y, ptr noalias %z, "
        f"ptr noalias %p, ptr noalias %out) {attributes}"
    )
    return lanes.write.body(head, f"{lanes.real} {margins[0] if margins else lanes.number(1.0)}")


def _storing(program: Program, lanes: Lanes) -> Callable[[int, str], None]:
    """What stores the value of an operation wherever the first output has it."""
    entries, result = defaultdict[int, list[int]](list), program.outputs[0]
    for position, number in zip(result.positions, result.operations, strict=True):
        entries[number].append(position)

    def store(number: int, value: str) -> None:
        for row in entries.get(number, ()):
            lanes.store(value, "%out", row * lanes.width)

    return store


def write_operations(
    write: Writer,
    operations: Sequence[tuple],
    block: int,
    store: Callable[[int, str], None],
    lanes: Lanes | None = None,
) -> dict[int, str]:
    """All operations, and behind each what ``store`` does with its number and value; returns the values.
    With ``lanes``, on vectors.
    """
    values = dict[int, str]()
    full = len(write.lines) + block
    here = lanes or write.lanes(1)

    def emit(number: int) -> None:
        nonlocal full
        if block and len(write.lines) > full:
            write.lines += [f"br label %block{number}", f"block{number}:"]
            full = len(write.lines) + block
        operation = operations[number]
        name = operation[0]
        if name == "input":
            pointer = _POINTERS[operation[1]]
            values[number] = here.load(pointer, operation[2] * here.width) if pointer else "%t"
        elif name == "const":
            values[number] = here.number(operation[1])
        else:
            values[number] = here.operation(name, [values[i] for i in operation[1:]])

    if not block:  # long code calls the library, which compiles in half the time
        for needed, angles in _angles(operations):
            for number in needed:
                emit(number)
            given = [values[i] for i in angles]
            pairs = (
                [sine_and_cosine(lanes, angle) for angle in given]
                if lanes
                else sines_and_cosines(write, given)
            )
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
