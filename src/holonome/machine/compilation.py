"""CasADi functions to machine code, and the cache that keeps it.

CasADi's list of scalar instructions is written down as LLVM assembly, one line an instruction, and compiled
by the LLVM that Numba carries.  No Python is generated and no types are inferred, so a model of a few hundred
instructions compiles in milliseconds.

Every compiled function is a *kernel* with one C signature:

    status = kernel(t, y, z, context, out)

``t`` is a double, the others point to doubles that do not overlap.  ``y`` is the state, ``z`` a further input
that depends on the kernel, ``context`` holds everything that stays fixed in a run (see
:mod:`holonome.machine.context`), ``out`` receives the result.  Status 0 means success.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import casadi as ca
import llvmlite.binding as llvm
import platformdirs

from holonome.machine.context import PARAMETERS, SINGULAR
from holonome.machine.sincos import sines_and_cosines

ARGUMENTS = ("t", "y", "z", "p")
"""Names of a kernel's CasADi inputs; ``p`` becomes the part of the context behind its header."""

OPTIMISED_UP_TO = 20_000
"""Instructions.  Optimising takes about 70 µs an instruction and makes code 1.7 times faster; beyond this
size it is skipped (7 µs an instruction).
"""

OPTIMISED_RESULTS = 500
"""Results.  For each the optimiser looks at all the others: 4500 of them take 5 s, without it 0.05 s."""

BLOCK = 1000
"""Lines after which code that is not optimised begins a new basic block: LLVM's time for one grows faster
than its length (74 000 instructions: 0.4 s instead of 5 s).
"""

_OPERATIONS = {
    value: name for name, value in vars(ca).items() if name.startswith("OP_") and isinstance(value, int)
}
_FLAGS = "contract arcp"
_BINARY = {"OP_ADD": "fadd", "OP_SUB": "fsub", "OP_MUL": "fmul", "OP_DIV": "fdiv"}
_COMPARISONS = {"OP_LT": "olt", "OP_LE": "ole", "OP_EQ": "oeq", "OP_NE": "une"}
_INTRINSICS = {
    "OP_SQRT": "sqrt",
    "OP_EXP": "exp",
    "OP_LOG": "log",
    "OP_FABS": "fabs",
    "OP_FLOOR": "floor",
    "OP_CEIL": "ceil",
    "OP_POW": "pow",
    "OP_CONSTPOW": "pow",
    "OP_FMIN": "minnum",
    "OP_FMAX": "maxnum",
    "OP_COPYSIGN": "copysign",
    "OP_FMA": "fma",
}
_TRIGONOMETRIC = ("OP_SIN", "OP_COS")
_LIBRARY = {
    "OP_SIN": "sin",
    "OP_COS": "cos",
    "OP_TAN": "tan",
    "OP_ASIN": "asin",
    "OP_ACOS": "acos",
    "OP_ATAN": "atan",
    "OP_SINH": "sinh",
    "OP_COSH": "cosh",
    "OP_TANH": "tanh",
    "OP_ASINH": "asinh",
    "OP_ACOSH": "acosh",
    "OP_ATANH": "atanh",
    "OP_ATAN2": "atan2",
    "OP_ERF": "erf",
    "OP_EXPM1": "expm1",
    "OP_LOG1P": "log1p",
    "OP_HYPOT": "hypot",
    "OP_FMOD": "fmod",
    "OP_REMAINDER": "remainder",
}


class _Writer:
    """Collects LLVM assembly; every method adds lines and returns the name of the value."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.declarations: set[str] = set()

    def value(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name

    def address(self, base: str, index: int) -> str:
        return self.value(f"getelementptr double, ptr {base}, i64 {index}")

    def load(self, base: str, index: int) -> str:
        return self.value(f"load double, ptr {self.address(base, index)}")

    def store(self, value: str, base: str, index: int) -> None:
        self.lines.append(f"store double {value}, ptr {self.address(base, index)}")

    def call(self, function: str, arguments: Sequence[str]) -> str:
        self.declarations.add(f"declare double @{function}({', '.join(['double'] * len(arguments))})")
        return self.value(f"call {_FLAGS} double @{function}({', '.join(f'double {a}' for a in arguments)})")

    def constant(self, value: float) -> str:
        return "0x" + struct.pack(">d", value).hex()

    def as_double(self, condition: str) -> str:
        return self.value(f"uitofp i1 {condition} to double")

    def nonzero(self, value: str) -> str:
        return self.value(f"fcmp une double {value}, 0.0")

    def operation(self, name: str, a: Sequence[str]) -> str:
        """One scalar operation of CasADi."""
        if name in _BINARY:
            return self.value(f"{_BINARY[name]} {_FLAGS} double {a[0]}, {a[1]}")
        if name in _INTRINSICS:
            return self.call(f"llvm.{_INTRINSICS[name]}.f64", a)
        if name in _LIBRARY:
            return self.call(_LIBRARY[name], a)
        if name in _COMPARISONS:
            return self.as_double(self.value(f"fcmp {_COMPARISONS[name]} double {a[0]}, {a[1]}"))
        match name:
            case "OP_NEG":
                return self.value(f"fneg double {a[0]}")
            case "OP_SQ":
                return self.value(f"fmul {_FLAGS} double {a[0]}, {a[0]}")
            case "OP_TWICE":
                return self.value(f"fadd {_FLAGS} double {a[0]}, {a[0]}")
            case "OP_INV":
                return self.value(f"fdiv {_FLAGS} double 1.0, {a[0]}")
            case "OP_NOT":
                return self.as_double(self.value(f"fcmp oeq double {a[0]}, 0.0"))
            case "OP_AND" | "OP_OR":
                both = [self.nonzero(x) for x in a]
                return self.as_double(self.value(f"{name[3:].lower()} i1 {both[0]}, {both[1]}"))
            case "OP_IF_ELSE_ZERO":
                return self.value(f"select i1 {self.nonzero(a[0])}, double {a[1]}, double 0.0")
            case "OP_SIGN":
                up, down = (
                    self.value(f"fcmp ogt double {a[0]}, 0.0"),
                    self.value(f"fcmp olt double {a[0]}, 0.0"),
                )
                negative = self.value(f"select i1 {down}, double -1.0, double {a[0]}")
                return self.value(f"select i1 {up}, double 1.0, double {negative}")
        raise NotImplementedError(f"{name} has no machine code")


def assembly(function: ca.Function, name: str, suppliers: Sequence[int] = (), block: int = 0) -> str:
    """LLVM assembly of a kernel.

    Parameters
    ----------
    function
        Inputs t, y, z, p.  First output: the result, a column of which only entries that are not structurally
        zero are written.  An optional second output, a scalar, is the margin by which the system is regular:
        the kernel's status is ``SINGULAR`` unless it is positive.
    name
        The symbol.
    suppliers
        Offsets, in ``p``, of the blocks of functions that could not be traced
        (:mod:`holonome.machine.supplied`).  Each is called first, with its own block, and writes its values
        there.
    block
        Lines in a basic block; 0 puts all into one.
    """
    write = _Writer()
    source = {0: None, 1: "%y", 2: "%z", 3: "%p"}
    write.lines.append(f"%p = getelementptr double, ptr %context, i64 {PARAMETERS}")
    for number, offset in enumerate(suppliers):
        memory = write.address("%p", offset)
        number_of_address = write.value(f"fptosi double {write.load('%p', offset)} to i64")
        target = write.value(f"inttoptr i64 {number_of_address} to ptr")
        status = write.value(
            f"call i32 {target}(double %t, ptr %y, ptr {memory}, ptr %context, ptr {memory})"
        )
        write.lines += [
            f"%failed{number} = icmp ne i32 {status}, 0",
            f"br i1 %failed{number}, label %stop{number}, label %go{number}",
            f"stop{number}:",
            f"ret i32 {status}",
            f"go{number}:",
        ]
    rows = function.sparsity_out(0).row()
    operations, outputs = _operations(function)
    values: dict[int, str] = {}
    full = len(write.lines) + block

    def emit(number: int) -> None:
        nonlocal full
        if block and len(write.lines) > full:
            write.lines += [f"br label %block{number}", f"block{number}:"]
            full = len(write.lines) + block
        operation, operands = operations[number]
        if operation == "OP_INPUT":
            pointer = source[operands[0]]
            values[number] = "%t" if pointer is None else write.load(pointer, operands[1])
        elif operation == "OP_CONST":
            values[number] = write.constant(operands[0])
        else:
            values[number] = write.operation(operation, [values[i] for i in operands])

    for needed, angles in (
        () if block else _angles(operations)
    ):  # long code calls the library, which compiles in half the time
        for number in needed:
            emit(number)
        for users, pair in zip(
            angles.values(), sines_and_cosines(write, [values[i] for i in angles]), strict=True
        ):
            values |= {number: pair[operations[number][0] == "OP_COS"] for number in users}
    entries = defaultdict[int, list[int]](list)
    for number, output, entry in outputs:
        if output == 0:
            entries[number].append(rows[entry])
    for number in range(len(operations)):
        if number not in values:
            emit(number)
        for row in entries.get(number, ()):
            write.store(values[number], "%out", row)
    margin = next((values[number] for number, output, _ in outputs if output == 1), "1.0")
    regular = write.value(f"fcmp ogt double {margin}, 0.0")
    status = write.value(f"select i1 {regular}, i32 0, i32 {SINGULAR}")
    head = f"define i32 @{name}(double %t, ptr noalias %y, ptr noalias %z, ptr noalias %context, ptr noalias %out) {{"
    return "\n".join([*sorted(write.declarations), head, *write.lines, f"ret i32 {status}", "}", ""])


def _operations(function: ca.Function) -> tuple[list[tuple[str, list]], list[tuple[int, int, int]]]:
    """CasADi's instructions with operations in place of registers as operands, and the outputs: (operation,
    output, entry).
    """
    operations, outputs, work = [], [], {}
    for k in range(function.n_instructions()):
        operation, target, operands = (
            _OPERATIONS[function.instruction_id(k)],
            function.instruction_output(k),
            function.instruction_input(k),
        )
        if operation == "OP_OUTPUT":
            outputs.append((work[operands[0]], *target))
            continue
        if operation == "OP_CONST":
            operands = [function.instruction_constant(k)]
        elif operation != "OP_INPUT":
            operands = [work[i] for i in operands]
        work[target[0]] = len(operations)
        operations.append((operation, operands))
    return operations, outputs


def _angles(operations: list[tuple[str, list]]) -> Iterator[tuple[list[int], dict[int, list[int]]]]:
    """Angles that are known at the same time: the operations that must come before, and for each angle its
    sines and cosines.
    """
    depth, groups = [0] * len(operations), defaultdict[int, dict[int, list[int]]](dict)
    for number, (operation, operands) in enumerate(operations):
        if operation in ("OP_INPUT", "OP_CONST"):
            continue
        depth[number] = max(depth[i] for i in operands)
        if operation in _TRIGONOMETRIC:
            groups[depth[number]].setdefault(operands[0], []).append(number)
            depth[number] += 1
    done = {number for number, (operation, _) in enumerate(operations) if operation in _TRIGONOMETRIC}
    for _, angles in sorted(groups.items()):
        needed, open_ends = set(), [i for i in angles if i not in done]
        while open_ends:
            number = open_ends.pop()
            if number not in done:
                done.add(number)
                needed.add(number)
                open_ends += (
                    [] if operations[number][0] in ("OP_INPUT", "OP_CONST") else operations[number][1]
                )
        yield sorted(needed), angles


@cache
def _host() -> tuple[str, str]:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _machine(level: int) -> llvm.TargetMachine:
    cpu, features = _host()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=level, jit=True
    )


def _compile(text: str, level: int) -> bytes:
    machine = _machine(level)
    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    return machine.emit_object(module)


class Kernel:
    """Machine code in memory; ``address`` is valid as long as the object lives."""

    def __init__(self, code: bytes, name: str, instructions: int = 0) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(0))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self.address, self.instructions = self.address_of(name), instructions

    def address_of(self, name: str) -> int:
        """Address of one of its functions."""
        address = self._engine.get_function_address(name)
        if not address:
            raise ValueError(f"the compiled code holds no function {name}")
        return address


def cache_folder() -> Path:
    """Where compiled models are kept: ``HOLONOME_CACHE``, or the user's cache folder."""
    return Path(os.environ.get("HOLONOME_CACHE") or platformdirs.user_cache_dir("holonome"))


def _read(path: Path) -> bytes | None:
    """Code from the cache; None where there is none, it cannot be read, or it is damaged."""
    with contextlib.suppress(OSError):
        stored = path.read_bytes()
        digest, code = stored[:32], stored[32:]
        if hashlib.sha256(code).digest() == digest:
            return code
    return None


def _write(path: Path, code: bytes) -> None:
    """Write in one move, so that no reader ever sees half a file; a cache that cannot be written is done
    without.
    """
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(file.name, path)


def kernel(
    expression: ca.SX, inputs: Sequence[ca.SX], *, margin: ca.SX | None = None, suppliers: Sequence[int] = ()
) -> Kernel:
    """Compile a column of expressions of (t, y, z, p), or take it from the cache."""
    outputs = [expression] + ([] if margin is None else [margin])
    function = ca.Function(
        "kernel", list(inputs), outputs, list(ARGUMENTS), ["out", "margin"][: len(outputs)], {"cse": True}
    )
    optimised = function.n_instructions() <= OPTIMISED_UP_TO and function.nnz_out(0) <= OPTIMISED_RESULTS
    level, text = (
        (2, assembly(function, "kernel", suppliers))
        if optimised
        else (0, assembly(function, "kernel", suppliers, BLOCK))
    )
    return compiled(text, "kernel", level, function.n_instructions())


def compiled(text: str, name: str, level: int = 2, instructions: int = 0) -> Kernel:
    """Machine code of LLVM assembly, from the cache if it is there."""
    key = hashlib.sha256(
        "\0".join([text, str(level), *_host(), ".".join(map(str, llvm.llvm_version_info))]).encode()
    ).hexdigest()
    path = cache_folder() / "models" / key[:2] / f"{key}.o"
    stored = _read(path)
    if stored is not None:
        with contextlib.suppress(Exception):
            return Kernel(stored, name, instructions)
    code = _compile(text, level)
    _write(path, code)
    return Kernel(code, name, instructions)
