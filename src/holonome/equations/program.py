"""Expressions as plain data: a list of scalar operations.

A `Program` stands between the expressions, which CasADi holds, and everything that prints or keeps them: the
writer of machine code (:mod:`holonome.machine.llvm`) and the files of saved results.  It holds names from a
fixed list and numbers, nothing else, so that reading one can execute nothing: CasADi's own serialised
functions may ask for a compiler and hand its command line to a shell.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

_UNARY = (
    "neg",
    "sq",
    "twice",
    "inv",
    "not",
    "sign",
    "sqrt",
    "exp",
    "log",
    "fabs",
    "floor",
    "ceil",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "erf",
    "expm1",
    "log1p",
)
_BINARY = (
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "constpow",
    "fmin",
    "fmax",
    "copysign",
    "atan2",
    "hypot",
    "fmod",
    "remainder",
    "lt",
    "le",
    "eq",
    "ne",
    "and",
    "or",
    "if_else_zero",
)
OPERANDS = dict.fromkeys(_UNARY, 1) | dict.fromkeys(_BINARY, 2)
"""Every operation that computes something, and how many operands it has."""

LARGEST = 10**8
"""No input and no output of a program that is read may claim more entries."""

_CODES = {name: getattr(ca, f"OP_{name.upper()}") for name in OPERANDS}
_NAMES = {code: name for name, code in _CODES.items()}
_INPUT = ca.OP_INPUT
_CONST = ca.OP_CONST
_OUTPUT = ca.OP_OUTPUT
_LARGEST_NUMBER = sys.float_info.max
_SPECIAL = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Output:
    """A matrix of results: ``operations[i]`` gives the entry at ``positions[i]``, counted down the columns,
    in ascending order; entries that are not named are structurally zero.
    """

    rows: int
    columns: int
    positions: Sequence[int]
    operations: tuple[int, ...]

    @property
    def dense(self) -> bool:
        """Whether every entry is there."""
        return len(self.operations) == self.rows * self.columns


@dataclass(frozen=True)
class Program:
    """Operations, each a tuple: ``("input", argument, entry)``, ``("const", value)``, or a name of `OPERANDS`
    with the numbers of earlier operations.  Inputs are columns, given by name and size.
    """

    inputs: tuple[tuple[str, int], ...]
    operations: tuple[tuple, ...]
    outputs: tuple[Output, ...]

    def __len__(self) -> int:
        return len(self.operations)

    @property
    def cost(self) -> int:
        """Length of its machine code in instructions: operations and stores."""
        return len(self.operations) + sum(len(output.operations) for output in self.outputs)

    @classmethod
    def of(cls, function: ca.Function) -> Program:
        """Read CasADi's instructions, with operations in place of registers as operands."""
        operations: list[tuple] = []
        results: list[list[int]] = [[] for _ in range(function.n_out())]
        work: dict[int, int] = {}
        identify = function.instruction_id
        read = function.instruction_input
        write = function.instruction_output
        constant = function.instruction_constant
        for k in range(function.n_instructions()):
            code = identify(k)
            name = _NAMES.get(code)
            if name is not None:
                a, *b = read(k)
                operation = (name, work[a], work[b[0]]) if b else (name, work[a])
            elif code == _INPUT:
                operation = ("input", *read(k))
            elif code == _CONST:
                operation = ("const", constant(k))
            elif code == _OUTPUT:
                results[write(k)[0]].append(work[read(k)[0]])
                continue
            else:
                raise NotImplementedError(f"operation {code} of CasADi is not known")
            work[write(k)[0]] = len(operations)
            operations.append(operation)
        inputs = zip(function.name_in(), map(function.numel_in, range(function.n_in())), strict=True)
        outputs = (_output(function, i, result) for i, result in enumerate(results))
        return cls(tuple(inputs), tuple(operations), tuple(outputs))

    @classmethod
    def of_expressions(cls, inputs: Mapping[str, ca.SX], outputs: Sequence[ca.SX]) -> Program:
        """Read expressions of these symbols."""
        results = [f"out{i}" for i in range(len(outputs))]
        return cls.of(ca.Function("program", list(inputs.values()), list(outputs), list(inputs), results))

    def expressions(self, inputs: Sequence[ca.SX]) -> list[ca.SX]:
        """Its outputs for these inputs, operation by operation."""
        values: list[ca.SX] = []
        unary, binary = ca.SX.unary, ca.SX.binary
        entries = [given.elements() for given in inputs]
        for name, *operands in self.operations:
            if name == "input":
                value = entries[operands[0]][operands[1]]
            elif name == "const":
                value = ca.SX(operands[0])
            elif len(operands) == 1:
                value = unary(_CODES[name], values[operands[0]])
            else:
                value = binary(_CODES[name], values[operands[0]], values[operands[1]])
            values.append(value)
        return [_matrix(output, values) for output in self.outputs]

    def function(self, name: str = "program") -> ca.Function:
        """A CasADi function that computes the same."""
        symbols = [ca.SX.sym(f"x{i}", size) for i, (_, size) in enumerate(self.inputs)]
        return ca.Function(name, symbols, self.expressions(symbols))

    def as_dict(self) -> dict[str, Any]:
        """The program as JSON data; numbers come back exactly."""
        return {
            "inputs": [list(given) for given in self.inputs],
            "operations": [
                [name, _number_as_json(operands[0])] if name == "const" else [name, *operands]
                for name, *operands in self.operations
            ],
            "outputs": [
                {"shape": [output.rows, output.columns], "operations": list(output.operations)}
                | ({} if output.dense else {"positions": list(output.positions)})
                for output in self.outputs
            ],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Program:
        """Read what `as_dict` wrote; ValueError if it is anything else."""
        data = _fields(data, {"inputs", "operations", "outputs"})
        inputs = tuple(_read_input(given) for given in _list(data["inputs"]))
        sizes = [size for _, size in inputs]
        operations = tuple(
            _read_operation(given, number, sizes) for number, given in enumerate(_list(data["operations"]))
        )
        outputs = tuple(_read_output(given, len(operations)) for given in _list(data["outputs"]))
        return cls(inputs, operations, outputs)

    def __reduce__(self) -> tuple:
        """Pickles hold the data, which is checked when they are read."""
        return Program.from_dict, (self.as_dict(),)


def _output(function: ca.Function, index: int, operations: Sequence[int]) -> Output:
    rows, columns = function.size1_out(index), function.size2_out(index)
    dense = len(operations) == rows * columns
    positions = range(len(operations)) if dense else tuple(function.sparsity_out(index).find())
    return Output(rows, columns, positions, tuple(operations))


def _matrix(output: Output, values: Sequence[ca.SX]) -> ca.SX:
    """The entries of an output put into their places."""
    entries = ca.vertcat(*(values[i] for i in output.operations)) if output.operations else ca.SX(0, 1)
    if output.dense:
        return ca.reshape(entries, output.rows, output.columns)
    rows = [position % output.rows for position in output.positions]
    columns = [position // output.rows for position in output.positions]
    return ca.SX(ca.Sparsity.triplet(output.rows, output.columns, rows, columns), entries)


def _number_as_json(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _wrong(what: str) -> ValueError:
    return ValueError(f"program: {what}")


def _fields(data: Any, names: set[str]) -> dict[str, Any]:
    if not isinstance(data, dict) or not names <= set(data):
        raise _wrong(f"expected an object with {', '.join(sorted(names))}")
    return data


def _list(data: Any) -> list:
    if not isinstance(data, list):
        raise _wrong(f"expected a list, not {type(data).__name__}")
    return data


def _whole(data: Any, end: int) -> int:
    """A whole number from 0 up to, but without, ``end``."""
    if type(data) is not int or not 0 <= data < end:
        raise _wrong(f"{str(data)[:40]!r} is not a whole number between 0 and {end - 1}")
    return data


def _read_input(data: Any) -> tuple[str, int]:
    name, size = data if isinstance(data, list) and len(data) == 2 else (None, None)
    if not isinstance(name, str):
        raise _wrong("an input must be a name and a size")
    return name, _whole(size, LARGEST + 1)


def _read_operation(data: Any, number: int, sizes: Sequence[int]) -> tuple:
    """One operation; its operands must be operations before it."""
    if not isinstance(data, list) or not data or not isinstance(data[0], str):
        raise _wrong(f"operation {number} must be a list that begins with a name")
    name, *operands = data
    if len(operands) != {"input": 2, "const": 1}.get(name, OPERANDS.get(name)):
        known = name in OPERANDS or name in ("input", "const")
        raise _wrong(
            f"operation {number}, {name[:40]!r}: {'wrong number of operands' if known else 'unknown'}"
        )
    if name == "const":
        return name, _read_number(operands[0])
    if name == "input":
        argument = _whole(operands[0], len(sizes))
        return name, argument, _whole(operands[1], sizes[argument])
    return name, *[_whole(operand, number) for operand in operands]


def _read_number(data: Any) -> float:
    if isinstance(data, str) and data in _SPECIAL:
        return _SPECIAL[data]
    if isinstance(data, bool) or not isinstance(data, (int, float)) or not abs(data) <= _LARGEST_NUMBER:
        raise _wrong(f"{repr(data)[:40]} is not a number")
    return float(data)


def _read_output(data: Any, operations: int) -> Output:
    data = _fields(data, {"shape", "operations"})
    shape = _list(data["shape"])
    if len(shape) != 2:
        raise _wrong("the shape of an output must be two numbers")
    rows, columns = (_whole(size, LARGEST + 1) for size in shape)
    if rows * columns > LARGEST:
        raise _wrong(f"an output of {rows} × {columns} is too large")
    results = tuple(_whole(number, operations) for number in _list(data["operations"]))
    if "positions" not in data:
        positions: Sequence[int] = range(rows * columns)
    else:
        positions = tuple(_whole(position, rows * columns) for position in _list(data["positions"]))
        if any(b <= a for a, b in itertools.pairwise(positions)):
            raise _wrong("the positions of an output must be in ascending order")
    if len(positions) != len(results):
        raise _wrong(f"an output has {len(results)} values for {len(positions)} positions")
    return Output(
        rows, columns, range(len(results)) if len(results) == rows * columns else positions, results
    )
