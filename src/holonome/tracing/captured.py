"""What a function reads besides its arguments, and whether it has changed since.

A traced function is never called again, so what it took from its closure, its module, its defaults and the
objects bound to it is frozen.  `Captured` notes these values, by the rules by which `copies` finds them, and
says which of them is another one now.
"""

from __future__ import annotations

import dis
import functools
import inspect
import operator
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from holonome.tracing.copies import attributes_of, global_names, is_copied
from holonome.tracing.origin import is_dispatcher, is_library

_LONGEST_CONTAINER = 1000
_DEEPEST_CONTAINER = 3
_THIS_PACKAGE = __name__.partition(".")[0] + "."
_contents = operator.attrgetter("cell_contents")


class Watched(NamedTuple):
    """A value and where it was found: ``get(key)``, or nowhere if only its contents can change."""

    get: Callable[[Any], Any] | None
    key: Any
    value: Any
    same: Callable[[Any], bool] | None  # whether the contents are those of then; None for what has none
    name: str
    then: str


class Change(NamedTuple):
    """What has changed, from what to what, and for which function."""

    name: str
    then: str
    now: str
    role: str = ""


class Captured:
    """The values that a function has captured, and the functions and modules that it reaches."""

    def __init__(self, function: Callable) -> None:
        self.watched: list[Watched] = []
        self.functions: list[types.FunctionType] = []
        self.modules: list[tuple[str, str]] = []
        self._known: dict[int, Any] = {}
        self._names: set[str] = set()
        self._holders: list[tuple[Any, str]] = []
        self._visit(function, getattr(function, "__name__", "function"))
        read: set[tuple[int, str]] = set()
        while fresh := [
            (holder, label, name)
            for holder, label in self._holders
            for name in sorted(self._names)
            if (id(holder), name) not in read
        ]:
            for holder, label, name in fresh:
                read.add((id(holder), name))
                self._read_attribute(holder, label, name)

    def settled(self) -> tuple[Watched, ...]:
        """The values without those that calling the function has changed, which are its own memory."""
        return tuple(item for item in self.watched if _change(item) is None)

    def _watch(self, get: Callable[[Any], Any] | None, key: Any, value: Any, name: str) -> None:
        self.watched.append(Watched(get, key, value, _comparison(value), name, _text(value)))

    def _visit(self, value: Any, label: str, depth: int = 0) -> None:
        """Look for what a value brings with it."""
        if id(value) in self._known or value is None or isinstance(value, (str, bytes, float, int, complex)):
            return
        self._known[id(value)] = value
        if isinstance(value, types.FunctionType):
            if not is_library(value.__globals__.get("__name__")):
                self._visit_function(value)
        elif isinstance(value, types.MethodType):
            self._visit(value.__func__, label)
            self._visit(value.__self__, "self")
        elif isinstance(value, functools.partial):
            for part in (value.func, *value.args, *value.keywords.values()):
                self._visit_content(part, label, depth)
        elif type(value) in (list, tuple, dict) and depth < _DEEPEST_CONTAINER:
            if len(value) <= _LONGEST_CONTAINER:
                for part in value.values() if type(value) is dict else value:
                    self._visit_content(part, label, depth + 1)
        elif is_dispatcher(value):
            self._visit(value.py_func, label)
        elif isinstance(value, functools._lru_cache_wrapper):
            self._visit(value.__wrapped__, label)
        elif type(value) is np.vectorize:
            self._visit(value.pyfunc, label)
        elif _has_attributes(value):
            self._holders.append((value, label))
            self._visit(inspect.getattr_static(type(value), "__call__", None), label)

    def _visit_content(self, part: Any, label: str, depth: int) -> None:
        if _comparison(part) is not None:
            self._watch(None, None, part, label)
        self._visit(part, label, depth)

    def _visit_function(self, function: types.FunctionType) -> None:
        self.functions.append(function)
        self._names |= global_names(function.__code__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            self._found(_contents, cell, value, name)
        own = str(function.__globals__.get("__name__")).startswith(_THIS_PACKAGE)
        for name in () if own else _globals_read(function.__code__):
            if name in function.__globals__:
                self._found(function.__globals__.get, name, function.__globals__[name], name)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        defaults = function.__defaults__ or ()
        for name, value in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            self._visit_content(value, name, 0)
        keywords = function.__kwdefaults__ or {}
        for name, value in keywords.items():
            self._found(keywords.get, name, value, name)

    def _found(self, get: Callable[[Any], Any], key: Any, value: Any, name: str) -> None:
        if isinstance(value, types.ModuleType):
            self.modules.append((name, value.__name__))
            self._visit(value, name)
            return
        self._watch(get, key, value, name)
        self._visit(value, name)

    def _read_attribute(self, holder: Any, label: str, name: str) -> None:
        """Enter an attribute that some function reads, or visit the method of that name."""
        if isinstance(holder, types.ModuleType):
            if name in vars(holder):
                self._found(vars(holder).get, name, vars(holder)[name], f"{label}.{name}")
            return
        if not isinstance(holder, type):
            stored = attributes_of(holder)
            if name in stored:
                in_dict = name in getattr(holder, "__dict__", {})
                place = (vars(holder).get, name) if in_dict else (operator.attrgetter(name), holder)
                self._found(*place, stored[name], f"{label}.{name}")
                return
        kind = holder if isinstance(holder, type) else type(holder)
        member = inspect.getattr_static(kind, name, None)
        if isinstance(member, property):
            self._visit(member.fget, label)
        elif isinstance(member, (staticmethod, classmethod)):
            self._visit(member.__func__, label)
        elif isinstance(member, types.FunctionType):
            self._visit(member, label)
        elif member is not None and not hasattr(type(member), "__get__"):
            self._found(operator.attrgetter(name), kind, member, f"{label}.{name}")


class Frozen:
    """Values that shall not change, by the roles of the functions that have captured them."""

    def __init__(self, captured: Iterable[tuple[str, Sequence[Watched]]]) -> None:
        self._items = [(role, item) for role, watched in captured for item in watched]
        places = {
            (id(getattr(item.get, "__self__", item.get)), id(item.key)): (item.get, item.key, item.value)
            for _, item in self._items
            if item.get is not None
        }
        contents = {
            id(item.value): (item.same, item.value) for _, item in self._items if item.same is not None
        }
        self._places, self._contents = tuple(places.values()), tuple(contents.values())

    def __bool__(self) -> bool:
        return bool(self._items)

    def first_change(self) -> Change | None:
        """The first value that is another one now."""
        try:
            for get, key, value in self._places:
                if get(key) is not value:
                    return self._looked_for()
            for same, value in self._contents:
                if not same(value):
                    return self._looked_for()
        except (ValueError, AttributeError):
            return self._looked_for()
        return None

    def _looked_for(self) -> Change | None:
        for role, item in self._items:
            change = _change(item)
            if change is not None:
                return change._replace(role=role)
        return None


def _change(item: Watched) -> Change | None:
    """How a value has changed; another object that means the same is no change."""
    try:
        now = item.value if item.get is None else item.get(item.key)
    except (ValueError, AttributeError):
        return Change(item.name, item.then, "nothing")
    if item.same is not None:
        unchanged = type(now) is type(item.value) and item.same(now)
    else:
        unchanged = now is item.value or _means_the_same(now, item.value)
    return None if unchanged else Change(item.name, item.then, _text(now))


def _means_the_same(now: Any, then: Any) -> bool:
    if isinstance(then, types.FunctionType):
        return isinstance(now, types.FunctionType) and now.__code__ == then.__code__
    if isinstance(then, types.MethodType):
        return isinstance(now, types.MethodType) and _means_the_same(now.__func__, then.__func__)
    try:
        return bool(now == then) or bool(now != now and then != then)
    except Exception:
        return False


def _comparison(value: Any) -> Callable[[Any], bool] | None:
    """Whether what has contents still has those of now."""
    if isinstance(value, np.ndarray):
        shape, bits = value.shape, _bits(value)
        return lambda now: now.shape == shape and _bits(now) == bits
    if type(value) is list and len(value) <= _LONGEST_CONTAINER:
        parts = tuple(value)
        return lambda now: _same_parts(tuple(now), parts)
    if type(value) is dict and len(value) <= _LONGEST_CONTAINER:
        keys, values = tuple(value), tuple(value.values())
        return lambda now: tuple(now) == keys and _same_parts(tuple(now.values()), values)
    return None


def _bits(array: np.ndarray) -> bytes:
    """A copy, which is compared faster than a hash is computed."""
    return b"" if array.dtype.hasobject else array.tobytes()


def _same_parts(now: tuple, then: tuple) -> bool:
    """Identical ones are the same; arrays among them are watched apart."""
    try:
        if now == then:
            return True
    except ValueError:
        pass
    return len(now) == len(then) and all(
        a is b or (not isinstance(b, np.ndarray) and _means_the_same(a, b))
        for a, b in zip(now, then, strict=True)
    )


def _has_attributes(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return not is_library(value.__name__)
    return is_copied(value if isinstance(value, type) else type(value))


@functools.lru_cache(maxsize=1000)
def _globals_read(code: types.CodeType) -> tuple[str, ...]:
    """Names that a function, and those defined in it, look up in its module."""
    names = {
        str(instruction.argval)
        for instruction in dis.get_instructions(code)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME")
    }
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= set(_globals_read(constant))
    return tuple(sorted(names))


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=6, threshold=6)
    if isinstance(value, (types.FunctionType, types.MethodType)):
        return "another function" if value.__name__ == "<lambda>" else f"the function {value.__name__}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
