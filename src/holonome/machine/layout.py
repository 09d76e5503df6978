"""Memory with names: every block of doubles that compiled code works on is declared once.

    class Falling(Layout):
        t: Real              # time
        steps: Whole         # how many were taken
        y: Vector            # position and velocity

    memory = Falling.memory(t=0.0, steps=0, y=2)        # numbers by value, vectors by length or by values
    Falling.of(memory)["t"] = 1.0                       # in Python
    memory[Falling.places.t] = 1.0                      # the same, five times as fast, for what is real

    falling = Falling.named()                           # in compiled code, for a pointer to the memory:
    s = falling(memory);  s.t += h;  s.steps += 1;  s.y[0] += h * s.y[1]

    Work, parts = taken_apart(__name__, {"s": (Falling, 0)}, "y taken=steps")   # what loops go on using,
    w = parts(memory);  w.y[0] += h * w.y[1];  w.s.steps = w.taken + 1          # read once

A layout is a record of numbers, eight bytes each, followed by its vectors; the record says where each vector
begins.  A layout may extend another, whose fields then come first.  Several layouts may follow one another in
one memory (`lay_out`), as those of a run and of its integrator do.  Nothing else knows where a field lies: no
field can overlap another, be forgotten, or have two names.

A vector begins at a multiple of four doubles, for vector registers, and the double before it holds its
length.  In a checked build (environment variable ``HOLONOME_CHECKED=1``) a vector is an array of that length,
every index is checked, and what follows each vector must still be there after a run (`require_intact`), also
where memories lie in one another, as in the context of a run (`Guards`).
"""

from __future__ import annotations

import inspect
import os
from collections import namedtuple
from collections.abc import Callable, Mapping
from struct import Struct
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.core.datamodel.models import PrimitiveModel
from numba.core.imputils import lower_getattr_generic, lower_setattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, register_model

CHECKED = os.environ.get("HOLONOME_CHECKED", "") not in ("", "0")
"""Whether this process runs the checked build of the engine."""

if CHECKED:
    config.BOUNDSCHECK = 1

Real = float
"""A double."""

Whole = int
"""A whole number, an address, or a flag."""


class Vector:
    """Doubles, as many as the memory was made for."""


WIDTH = 4
"""Doubles in a vector register."""

_WHOLE = Struct("q")
_GUARD = -6.02214076e23
_GUARDS = 4 if CHECKED else 0

Doubles = types.CPointer(types.float64)
Array = types.Array(types.float64, 1, "C")


def padded(size: int) -> int:
    """Rounded up to whole vector registers."""
    return (size + WIDTH - 1) // WIDTH * WIDTH


class NamedMemory(types.Type):
    """Numba's type of a memory whose record has these fields; in machine code, a pointer to doubles."""

    def __init__(self, name: str, fields: tuple[tuple[str, str], ...]) -> None:
        self.fields = fields
        super().__init__(f"NamedMemory({name})")

    @property
    def key(self) -> Any:
        return self.name, self.fields

    def place(self, field: str) -> tuple[int, str]:
        """Number and kind of a field."""
        for number, (name, kind) in enumerate(self.fields):
            if name == field:
                return number, kind
        raise AttributeError(f"{self.name} has no field {field!r}")


_TYPES = {"Real": types.float64, "Whole": types.int64, "Vector": Array if CHECKED else Doubles}


@register_model(NamedMemory)
class _Pointer(PrimitiveModel):
    def __init__(self, manager: Any, kind: NamedMemory) -> None:
        super().__init__(manager, kind, ir.DoubleType().as_pointer())


@infer_getattr
class _Attributes(AttributeTemplate):
    key = NamedMemory

    def generic_resolve(self, kind: NamedMemory, field: str) -> Any:
        return _TYPES[dict(kind.fields)[field]] if field in dict(kind.fields) else None


def _number_at(builder: Any, memory: Any, number: Any, whole: bool) -> Any:
    place = builder.gep(memory, [number])
    return builder.bitcast(place, ir.IntType(64).as_pointer()) if whole else place


@lower_getattr_generic(NamedMemory)
def _get(context: Any, builder: Any, kind: NamedMemory, memory: Any, field: str) -> Any:
    number, what = kind.place(field)
    value = builder.load(_number_at(builder, memory, ir.Constant(ir.IntType(64), number), what != "Real"))
    if what != "Vector":
        return value
    begin = builder.gep(memory, [value])
    if not CHECKED:
        return begin
    length = builder.fptosi(
        builder.load(builder.gep(begin, [ir.Constant(ir.IntType(64), -1)])), ir.IntType(64)
    )
    return _as_array(context, builder, begin, length)


@lower_setattr_generic(NamedMemory)
def _set(context: Any, builder: Any, signature: Any, arguments: Any, field: str) -> None:
    memory, value = arguments
    number, what = signature.args[0].place(field)
    if what == "Vector":
        raise AttributeError(f"{field}: a vector cannot be moved; assign its entries")
    builder.store(value, _number_at(builder, memory, ir.Constant(ir.IntType(64), number), what == "Whole"))


def _as_array(context: Any, builder: Any, data: Any, length: Any) -> Any:
    """A one-dimensional array of doubles over memory that somebody else owns."""
    array = context.make_array(Array)(context, builder)
    size = ir.Constant(ir.IntType(64), 8)
    context.populate_array(array, data=data, shape=[length], strides=[size], itemsize=size, meminfo=None)
    return array._getvalue()


class Record:
    """The numbers of a record in Python, by name."""

    __slots__ = ("_at", "_fields", "_places", "_real", "_whole")

    def __init__(self, layout: type[Layout], memory: np.ndarray, at: int) -> None:
        self._fields = layout.fields
        self._places = vars(layout.places)
        self._at = at
        self._real = memory
        self._whole = memory.view(np.int64)

    def __getitem__(self, name: str) -> float | int:
        values = self._real if self._fields[name] == "Real" else self._whole
        return values[self._at + self._places[name]].item()

    def __setitem__(self, name: str, value: float | int) -> None:
        values = self._real if self._fields[name] == "Real" else self._whole
        values[self._at + self._places[name]] = value

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name}: {self[name]}" for name in self._fields) + "}"


class Layout:
    """Base class: a subclass declares its fields as annotations ``Real``, ``Whole`` or ``Vector``."""

    fields: ClassVar[dict[str, str]]
    places: ClassVar[Any]
    words: ClassVar[int]

    def __init_subclass__(cls) -> None:
        own = {name: getattr(kind, "__name__", kind) for name, kind in inspect.get_annotations(cls).items()}
        names = {"float": "Real", "int": "Whole"}
        inherited = getattr(cls, "fields", {})
        cls.fields = inherited | {name: names.get(kind, kind) for name, kind in own.items()}
        cls.places = SimpleNamespace(**{name: number for number, name in enumerate(cls.fields)})
        cls.words = padded(len(cls.fields))

    @classmethod
    def kind(cls) -> NamedMemory:
        """Numba's type of a memory with these names."""
        return NamedMemory(cls.__name__, tuple(cls.fields.items()))

    @classmethod
    def named(cls) -> Any:
        """For compiled code: from a pointer to the memory to the memory with names."""
        kind = cls.kind()

        @intrinsic
        def named(typingctx, memory):
            def codegen(context, builder, signature, arguments):
                if isinstance(memory, types.Array):
                    return context.make_array(memory)(context, builder, arguments[0]).data
                return arguments[0]

            return kind(memory), codegen

        return named

    @classmethod
    def of(cls, memory: np.ndarray, at: int = 0) -> Record:
        """The record that begins there, by name."""
        return Record(cls, memory, at)

    @classmethod
    def span(cls, memory: np.ndarray, name: str, at: int = 0) -> slice:
        """Where one of the vectors of the record that begins there lies in the memory."""
        (offset,) = _WHOLE.unpack_from(memory, 8 * (at + getattr(cls.places, name)))  # type: ignore
        return slice(at + offset, at + offset + int(memory[at + offset - 1]))

    @classmethod
    def vector(cls, memory: np.ndarray, name: str, at: int = 0) -> np.ndarray:
        """One of the vectors of the record that begins there."""
        return memory[cls.span(memory, name, at)]

    @classmethod
    def set(cls, memory: np.ndarray, at: int = 0, **values: Any) -> None:
        """Assign numbers of the record that begins there."""
        record = Record(cls, memory, at)
        for name, value in values.items():
            record[name] = value

    @classmethod
    def stretch(cls, first: str, last: str, at: int = 0) -> tuple[Callable[..., tuple], Callable[..., None]]:
        """``read(memory)`` and ``write(memory, *values)``: all numbers from one field to another at once, of
        the record that begins there; faster than one by one.
        """
        names = list(cls.fields)
        fields = names[names.index(first) : names.index(last) + 1]
        form = Struct("".join("d" if cls.fields[name] == "Real" else "q" for name in fields))
        begin = 8 * (at + names.index(first))
        return lambda memory: form.unpack_from(memory, begin), lambda memory, *values: form.pack_into(
            memory, begin, *values
        )

    @classmethod
    def refuse_unknown(cls, values: Mapping[str, Any]) -> None:
        unknown = sorted(set(values) - set(cls.fields))
        if unknown:
            raise KeyError(f"{cls.__name__} has no field {', '.join(unknown)}")

    @classmethod
    def memory(cls, **values: Any) -> np.ndarray:
        """A memory of this layout alone."""
        return lay_out((cls, values))


def taken_apart(module: str, records: Mapping[str, tuple[type[Layout], int]], fields: str) -> tuple[Any, Any]:
    """For compiled code: the named tuple ``Work`` of a module, and ``parts(memory)``, which makes one.

    It holds the memory, the records, each of which begins at a place of its own, and ``fields`` of these:
    "y", of the last record, "run.y", of another, and "count=steps", under another name.
    """
    chosen = []
    for text in fields.split():
        name, _, place = text.rpartition("=")
        record, _, field = place.rpartition(".")
        chosen.append((name or field, record or list(records)[-1], field))
    Work = namedtuple("Work", ["memory", *records, *(name for name, _, _ in chosen)], module=module)
    kinds = {record: layout.kind() for record, (layout, _) in records.items()}
    found = [_TYPES[records[record][0].fields[field]] for _, record, field in chosen]

    @intrinsic
    def parts(typingctx, memory):
        whole = types.NamedTuple([memory, *kinds.values(), *found], Work)

        def codegen(context, builder, signature, arguments):
            (begin,) = arguments
            at = {
                record: builder.gep(begin, [ir.Constant(ir.IntType(64), place)])
                for record, (_, place) in records.items()
            }
            values = [_get(context, builder, kinds[record], at[record], field) for _, record, field in chosen]
            return context.make_tuple(builder, whole, [begin, *at.values(), *values])

        return whole(memory), codegen

    return Work, parts


@intrinsic
def _replaced(typingctx, whole, changes):
    """A named tuple with the entries of another in place of its own of the same names."""
    places = [whole.fields.index(name) for name in changes.fields]

    def codegen(context, builder, signature, arguments):
        result, new = arguments
        for number, place in enumerate(places):
            entry = builder.extract_value(new, number)
            entry = context.cast(builder, entry, changes.types[number], whole.types[place])
            result = builder.insert_value(result, entry, place)
        return result

    return whole(whole, changes), codegen


replaced: Any = _replaced


def lay_out(*parts: tuple[type[Layout], Mapping[str, Any]]) -> np.ndarray:
    """Memory for layouts that follow one another.

    Each comes with the values of its numbers and, for its vectors, lengths or values; a number that is left
    out is zero, a vector empty.  Where a vector begins is counted from the beginning of its own record.
    """
    for layout, values in parts:
        layout.refuse_unknown(values)
    vectors = [
        values.get(name, 0)
        for layout, values in parts
        for name, kind in layout.fields.items()
        if kind == "Vector"
    ]
    begin, end = 0, sum(layout.words for layout, _ in parts)
    memory = np.zeros(end + sum(_room(_size(entries)) for entries in vectors))
    vector = iter(vectors)
    for layout, values in parts:
        fields = layout.of(memory, begin)
        for name, kind in layout.fields.items():
            if kind == "Vector":
                entries = next(vector)
                fields[name] = end + WIDTH - begin
                _fill(memory[end : end + _room(_size(entries))], entries)
                end += _room(_size(entries))
            elif name in values:
                fields[name] = values[name]
        begin += layout.words
    return memory


def _size(entries: Any) -> int:
    """How many numbers a vector has, of which the length or the values are given."""
    return int(entries) if np.ndim(entries) == 0 else np.size(entries)


def _room(size: int) -> int:
    """A vector's place in memory: its length in front, padding behind, and guards in a checked build."""
    return WIDTH + padded(size) + _GUARDS


def _fill(room: np.ndarray, entries: Any) -> None:
    """Write a vector into its place, which is zero.  Zeros are not written: memory that nobody has touched
    costs nothing.
    """
    size = _size(entries)
    room[WIDTH - 1] = size
    if CHECKED:
        room[WIDTH + size :] = _GUARD
    if np.ndim(entries):
        room[WIDTH : WIDTH + size] = entries


def appended(memory: np.ndarray, layout: type[Layout], at: int, **vectors: np.ndarray) -> np.ndarray:
    """The memory with the vectors of these names, of the layout that begins there, moved to its end."""
    for name, values in vectors.items():
        begin = padded(memory.size)
        layout.of(memory, at)[name] = begin + WIDTH - at
        longer = np.zeros(begin + _room(values.size))
        longer[: memory.size] = memory
        _fill(longer[begin:], values)
        memory = longer
    return memory


def require_intact(memory: np.ndarray, at: int, layout: type[Layout]) -> None:
    """In a checked build: raise if something wrote behind one of the vectors."""
    for name, kind in layout.fields.items():
        if kind == "Vector":
            span = layout.span(memory, name, at)
            length = span.stop - span.start
            behind = memory[span.stop : span.start + padded(length) + _GUARDS]
            if not np.all(behind == _GUARD):
                raise MemoryError(
                    f"{layout.__name__}.{name}: something was written behind its {length} numbers"
                )


class Guards:
    """In a checked build: what follows each vector of a memory, of whatever lies in it."""

    def __init__(self, memory: np.ndarray) -> None:
        self.places = np.flatnonzero(memory == _GUARD) if CHECKED else np.zeros(0, int)

    def require_intact(self, memory: np.ndarray, what: str) -> None:
        """Raise if something wrote behind a vector since then."""
        overwritten = self.places[memory[self.places] != _GUARD]
        if overwritten.size:
            raise MemoryError(f"{what}: something was written behind a vector, at {overwritten.tolist()}")
