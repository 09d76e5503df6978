"""Copies of the user's functions, classes and objects that refer to tracing versions of what they use.

The function runs as a copy whose globals, closure and defaults refer to tracing versions: the modules numpy
and math to look-alikes, functions imported from them to their versions, other user functions (also methods,
partials, Numba's dispatchers and user modules) to copies of their own, made when first called, classes to
subclasses whose methods are copies, and objects of user classes to stand-ins: instances of such a subclass
with a shallow copy of the attributes. Imports inside the function find the same. The user's own functions,
classes and objects are never changed, and what the function stores on them while it is traced is forgotten.
Functions of libraries are not copied.
"""

from __future__ import annotations

import abc
import builtins
import copy
import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from holonome.tracing.look_alikes import LOOK_ALIKES, VERSIONS
from holonome.tracing.math_functions import BUILTIN_VERSIONS, ORIGINAL_CLASS
from holonome.tracing.origin import is_dispatcher, is_library
from holonome.tracing.values import Traced, TracedArray, lift

_LARGEST_CONSTANT = 10_000
_DEEPEST_CONTAINER = 3
_NOT_COPIED = frozenset(
    {
        "__new__",
        "__init_subclass__",
        "__class_getitem__",
        "__getattribute__",
        "__getattr__",
        "__setattr__",
        "__delattr__",
        "__eq__",
        "__hash__",
    }
)


class Copies:
    """Replaces what a function refers to by versions for tracing; one instance serves one run."""

    def __init__(self) -> None:
        self._replacements: dict[int, tuple[Any, Any]] = {}
        self._functions: dict[int, tuple[types.FunctionType, types.FunctionType]] = {}
        self._builtins = vars(builtins) | BUILTIN_VERSIONS | {"__import__": self._import}

    def replace(self, value: Any, depth: int = 0) -> Any:
        """Return the version of any object for tracing: itself where nothing needs to change."""
        if value is None or type(value) in (float, int, str, bool, Traced, TracedArray):
            return value
        known = VERSIONS.get(id(value)) or self._replacements.get(id(value))
        if known is not None:
            return known[1]
        replacement = self._make(value, depth)
        self._replacements[id(value)] = (value, replacement)
        self._replacements[id(replacement)] = (replacement, replacement)
        return replacement

    def _make(self, value: Any, depth: int) -> Any:
        if isinstance(value, types.ModuleType):
            return self._module(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, types.FunctionType):
            return value if is_library(value.__globals__.get("__name__")) else self._deferred(value)
        if isinstance(value, types.MethodType):
            return types.MethodType(self.replace(value.__func__), self.replace(value.__self__))
        if isinstance(value, functools.partial):
            return functools.partial(
                self.replace(value.func), *map(self.replace, value.args), **self._values(value.keywords)
            )
        if isinstance(value, functools._lru_cache_wrapper):
            return self.replace(value.__wrapped__)
        if is_dispatcher(value):
            return self.replace(value.py_func)
        if type(value) is np.vectorize:
            version = copy.copy(value)
            version.pyfunc = self.replace(value.pyfunc)
            return version
        if isinstance(value, np.ndarray):
            return lift(value) if value.size <= _LARGEST_CONSTANT else value
        if type(value) in (list, tuple, dict):
            return (
                self._container(value, depth)
                if depth < _DEEPEST_CONTAINER and len(value) <= _LARGEST_CONSTANT
                else value
            )
        return self._stand_in(value)

    def _values(self, mapping: Mapping[str, Any] | None) -> dict[str, Any]:
        return {name: self.replace(value) for name, value in (mapping or {}).items()}

    def _module(self, module: types.ModuleType) -> types.ModuleType:
        if module in LOOK_ALIKES:
            return LOOK_ALIKES[module]
        return (
            module
            if is_library(module.__name__) or isinstance(module, _ModuleView)
            else _ModuleView(module, self)
        )

    def _container(self, container: Any, depth: int) -> Any:
        if type(container) is dict:
            return {key: self.replace(value, depth + 1) for key, value in container.items()}
        return type(container)(self.replace(value, depth + 1) for value in container)

    def _deferred(self, function: types.FunctionType) -> Callable:
        """Return a function that makes the copy when it is called."""

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            return self._copy(function)(*args, **options)

        return call

    def _copy(self, function: types.FunctionType) -> types.FunctionType:
        if id(function) not in self._functions:
            namespace = {
                name: function.__globals__[name]
                for name in ("__name__", "__package__")
                if name in function.__globals__
            } | {"__builtins__": self._builtins}
            cells = tuple(map(self._cell, function.__closure__ or ()))
            defaults = tuple(map(self.replace, function.__defaults__ or ()))
            version = types.FunctionType(function.__code__, namespace, function.__name__, defaults, cells)
            version.__kwdefaults__ = self._values(function.__kwdefaults__)
            version.__dict__.update(function.__dict__)
            self._functions[id(function)] = (function, version)
            for name in global_names(function.__code__):
                if name in function.__globals__:
                    namespace[name] = self.replace(function.__globals__[name])
        return self._functions[id(function)][1]

    def _import(self, *args: Any, **options: Any) -> Any:
        return self.replace(builtins.__import__(*args, **options))

    def _cell(self, cell: types.CellType) -> types.CellType:
        try:
            return types.CellType(self.replace(cell.cell_contents))
        except ValueError:
            return cell

    def _class(self, kind: type) -> type:
        """A subclass of a user's class and of the copies of its bases, whose methods are copies.

        So it finds copies first wherever a method is looked up, also by ``super()``; a class that allows none
        stays as it is.
        """
        if not is_copied(kind):
            return kind
        bases = tuple(self.replace(base) for base in kind.__bases__ if is_copied(base))
        members = {"__module__": kind.__module__, "__del__": lambda instance: None, ORIGINAL_CLASS: kind}
        for name, member in vars(kind).items():
            members.update(self._class_member(name, member))
        try:
            return type(kind)(kind.__name__, (*(bases or (_NoSubclassHook,)), kind), members)
        except TypeError:
            return kind

    def _class_member(self, name: str, member: Any) -> dict[str, Any]:
        if name in _NOT_COPIED:
            return {}
        if isinstance(member, types.FunctionType):
            return {name: self.replace(member)}
        if isinstance(member, property):
            return {name: property(*map(self.replace, (member.fget, member.fset, member.fdel)))}
        if isinstance(member, (staticmethod, classmethod)):
            return {name: type(member)(self.replace(member.__func__))}
        if name.startswith("__") or hasattr(type(member), "__get__"):
            return {}
        return {name: self.replace(member)}

    def _stand_in(self, value: Any) -> Any:
        """An instance of the copy of its class, with a shallow copy of the attributes."""
        kind = type(value)
        version = self.replace(kind) if is_copied(kind) else kind
        if version is kind:
            return value

        def read(stand_in: Any, name: str) -> Any:
            found = object.__getattribute__(stand_in, name)
            return (
                found if name.startswith("__") or isinstance(found, types.MethodType) else self.replace(found)
            )

        members = {"__getattribute__": read, "__module__": kind.__module__}
        try:
            stand_in = object.__new__(type(version)(kind.__name__, (version,), members))  # type: ignore
        except TypeError:
            return value
        for name, attribute in attributes_of(value).items():
            object.__setattr__(stand_in, name, attribute)
        return stand_in


class _ModuleView(types.ModuleType):
    """A user's module whose functions are copies for tracing."""

    def __init__(self, module: types.ModuleType, copies: Copies) -> None:
        super().__init__(module.__name__)
        self._original = module
        self._copies = copies

    def __getattr__(self, name: str) -> Any:
        return self._copies.replace(getattr(self._original, name))


class _NoSubclassHook:
    """Keeps the stand-in of a class from being announced to the class's own ``__init_subclass__``."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        pass


def is_copied(kind: type) -> bool:
    """Whether it is a user's class that can be copied."""
    return not (
        is_library(kind.__module__)
        or type(kind) not in (type, abc.ABCMeta)
        or kind.__getattribute__ is not object.__getattribute__
        or issubclass(kind, BaseException)
    )


def global_names(code: types.CodeType) -> set[str]:
    """Names that a function, and those defined in it, may look up in its module."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= global_names(constant)
    return names


def attributes_of(value: Any) -> dict[str, Any]:
    """Return what is stored on an object, in slots or in its dictionary."""
    members = (item for base in type(value).__mro__ for item in vars(base).items())
    slots = [name for name, member in members if isinstance(member, types.MemberDescriptorType)]
    return {name: getattr(value, name) for name in slots if hasattr(value, name)} | getattr(
        value, "__dict__", {}
    )
