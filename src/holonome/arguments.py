"""What the arguments of the public functions may be: one table, and the one place where they are checked.

An argument has a *kind*, which says in words what is expected and reads a value into its normal form.
`ARGUMENTS` gives the kind of each argument by its name, which means the same wherever it occurs; where it
does not, the name of the function or class stands before it.  `checked` reads one argument, `check_fields`
all fields of a dataclass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from numbers import Integral, Real
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

_LARGEST_WHOLE = 2**62
_LONGEST = 120


class Kind(NamedTuple):
    """What is expected, in words that follow "give", and how a value is read; TypeError, ValueError or
    OverflowError if it is not of this kind.
    """

    expected: str
    read: Callable[[Any], Any]


def shown(value: Any) -> str:
    """A value for a message, in one line and not too long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def real_number(value: Any) -> float:
    """A real number, not a truth value; also an array of no dimension."""
    if type(value) is float:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError
    return float(value)


def without_mask(value: Any) -> Any:
    """The same value; of a masked array with masked entries, an array with NaN in their place."""
    return value.astype(float).filled(np.nan) if np.ma.is_masked(value) else value


def real_array(value: Any) -> np.ndarray:
    """An array of real numbers, of any shape; what is masked is no number, NaN."""
    array = np.array(without_mask(value))
    if array.dtype.kind in "fiu":
        return array if array.dtype == float else array.astype(float)
    if array.dtype.kind != "O":
        raise TypeError
    return np.array([real_number(entry) for entry in array.flat]).reshape(array.shape)


def number(expected: str, fits: Callable[[float], bool]) -> Kind:
    """A real number with a property."""

    def read(value: Any) -> float:
        found = real_number(value)
        if not fits(found):
            raise ValueError
        return found

    return Kind(expected, read)


def whole(least: int, most: int = _LARGEST_WHOLE) -> Kind:
    """A whole number within bounds."""

    def read(value: Any) -> int:
        if type(value) is not int and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise TypeError
        if not least <= int(value) <= most:
            raise ValueError
        return int(value)

    if most < _LARGEST_WHOLE:
        return Kind(f"a whole number from {least} to {most}", read)
    return Kind("a positive whole number" if least == 1 else f"a whole number of at least {least}", read)


def one_of(*choices: str) -> Kind:
    """One of a few words."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in choices:
            raise ValueError
        return str(value)

    *others, last = map(repr, choices)
    return Kind(f"{', '.join(others)} or {last}" if others else last, read)


def of_type(expected: str, *types: type) -> Kind:
    """An object of one of some types, as it is."""

    def read(value: Any) -> Any:
        if not isinstance(value, types):
            raise TypeError
        return value

    return Kind(expected, read)


def numbers(expected: str, fits: Callable[[np.ndarray], bool] = lambda array: True) -> Kind:
    """An array of finite real numbers with a property."""

    def read(value: Any) -> np.ndarray:
        array = real_array(value)
        if not np.all(np.isfinite(array)) or not fits(array):
            raise ValueError
        return array

    return Kind(expected, read)


def optional(kind: Kind) -> Kind:
    return Kind(f"{kind.expected}, or None", lambda value: None if value is None else kind.read(value))


def either(*kinds: Kind) -> Kind:
    """Of the first kind that fits."""

    def read(value: Any) -> Any:
        for kind in kinds:
            try:
                return kind.read(value)
            except (TypeError, ValueError, OverflowError):
                pass
        raise ValueError

    return Kind(" or ".join(kind.expected for kind in kinds), read)


def each(kind: Kind, expected: str, least: int = 0, most: float = math.inf) -> Kind:
    """A list with entries of one kind."""

    def read(value: Any) -> list:
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise TypeError
        found = [kind.read(entry) for entry in value]
        if not least <= len(found) <= most:
            raise ValueError
        return found

    return Kind(expected, read)


def by_name(kind: Kind, expected: str) -> Kind:
    """A dict with strings as keys."""

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            raise TypeError
        return {str(name): kind.read(entry) for name, entry in value.items()}

    return Kind(expected, read)


def _callable(value: Any) -> Any:
    if not callable(value):
        raise TypeError
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _radau_order(value: Any) -> int:
    order = whole(5, 13).read(value)
    if order not in (5, 9, 13):
        raise ValueError
    return order


ANYTHING = Kind("anything", lambda value: value)
FUNCTION = Kind("a function", _callable)
TRUTH = Kind("True or False", _truth)
TEXT = of_type("a string", str)
FINITE = number("a finite number", math.isfinite)
POSITIVE = number("a positive number", lambda x: 0 < x < math.inf)
POSITIVE_OR_INFINITE = number("a positive number", lambda x: x > 0)
NOT_NEGATIVE = number("a number that is not negative", lambda x: 0 <= x < math.inf)
NAMES = each(TEXT, "a list of names")
NUMBERS = numbers("a finite real number or an array of them")
PATH = of_type("a path", str, PathLike)
TIMES = numbers("a one-dimensional array of times", lambda times: times.ndim == 1)

ARGUMENTS: dict[str, Kind] = {
    # solve and its relatives
    "t_span": numbers("(initial time, final time), both finite", lambda t: t.shape == (2,)),
    "t0": FINITE,
    "t_eval": optional(TIMES),
    "reference": numbers("a Solution, or a function that returns positions (and velocities) at given times"),
    "rtol": number("a number between 0 and 1", lambda x: 0 <= x < 1),
    "atol": numbers("a positive number, or an array of them", lambda atol: bool(np.all(atol > 0))),
    "rtols": each(number("", lambda x: 0 < x < 1), "a list of numbers between 0 and 1", least=1),
    "dense_output": TRUTH,
    "first_step": optional(POSITIVE_OR_INFINITE),
    "max_step": POSITIVE_OR_INFINITE,
    "step": optional(POSITIVE),
    "projection": optional(TRUTH),
    "motion": one_of("all", "smooth"),
    "repair": TRUTH,
    "keep_steps": optional(TRUTH),
    "max_steps": whole(1),
    "progress": either(TRUTH, Kind("a function that is told the fraction done", _callable)),
    "guess": numbers("an array of finite numbers, or a function of t that returns such a column"),
    "fixed": either(
        TEXT,
        whole(-_LARGEST_WHOLE),
        each(either(TEXT, whole(-_LARGEST_WHOLE)), "names or numbers of coordinates"),
    ),
    "metric": one_of("mass", "euclidean"),
    "tol": number("a number between 0 and 1", lambda x: 0 < x < 1),
    "max_nodes": whole(2),
    "boundary": FUNCTION,
    "mesh": numbers(
        "at least two times in increasing order",
        lambda t: t.ndim == 1 and t.size > 1 and bool(np.all(np.diff(t) > 0)),
    ),
    # systems
    "name": TEXT,
    "names": optional(NAMES),
    "constraint_names": optional(NAMES),
    "n": optional(whole(0)),
    "parameters": optional(by_name(ANYTHING, "a dict of names and values")),
    "inputs": optional(by_name(ANYTHING, "a dict of names and values")),
    "states": optional(by_name(FINITE, "a dict of names and finite values")),
    "unknowns": optional(by_name(FINITE, "a dict of names and finite values")),
    "derivatives": optional(by_name(FUNCTION, "a dict of names and functions")),
    "inertial": optional(one_of("derived", "in force")),
    "coordinates": one_of("auto", "joint", "absolute"),
    # integrators
    "Taylor.order": optional(whole(2, 32)),
    "BDF.max_order": whole(1, 6),
    "BDF.order": optional(whole(1, 6)),
    "BDF.newton_tolerance": POSITIVE,
    "rho_inf": number("a number from 0 to 1", lambda x: 0 <= x <= 1),
    "Rattle.order": whole(2, 8),
    "BDF.rate_floor": number("a number from 0 to 1", lambda x: 0 <= x <= 1),
    "Radau.order": either(one_of("adaptive"), Kind("5, 9 or 13", _radau_order)),
    "Radau.newton_tolerance": optional(POSITIVE),
    # formulations
    "error_test": one_of("q", "qv", "all"),
    "newton_test": one_of("q", "qv", "all"),
    "dependent": either(
        TEXT, each(either(TEXT, whole(-_LARGEST_WHOLE)), "names or numbers of coordinates", least=1)
    ),
    "GGL.error_test": one_of("q", "qv", "all", "x", "xw"),
    "CoordinateSplit.error_test": one_of("x", "xw", "bound"),
    "iteration": one_of("CS", "CM"),
    "refresh": one_of("step", "jacobian"),
    "CoordinateSplit.mean": one_of("independent", "all"),
    "predict_multipliers": TRUTH,
    "relaxed": TRUTH,
    "projects_error": TRUTH,
    "UnderlyingODE.projection": TRUTH,
    "alpha": optional(FINITE),
    "beta": optional(NOT_NEGATIVE),
    "Baumgarte.alpha": optional(NOT_NEGATIVE),
    "slack": number("a number from 0 to 1, in units of the tolerance", lambda x: 0 <= x < 1),
    "SRM.eps": optional(
        numbers(
            "a positive number, or one for each iteration", lambda e: e.ndim <= 1 and bool(np.all(e >= 0))
        )
    ),
    "SRM.iterations": optional(whole(1, 50)),
    "SRM.variant": one_of("invariant", "baumgarte", "underlying", "singular"),
    "SRM.E": either(
        one_of("identity", "inverse", "transpose"), Kind("a function that returns the matrix", _callable)
    ),
    "SRM.alpha": optional(
        each(NOT_NEGATIVE, "(α₁, α₂) for index 2 or (α₁, α₂, α₃) for index 3, none negative", least=2)
    ),
    "SRM.y0": either(one_of("consistent"), numbers("numbers, 0 as in the paper", lambda y: y.ndim <= 1)),
    "SRM.post_stabilization": whole(0),
    # coupled systems
    "window": POSITIVE,
    "substeps": either(whole(1), by_name(whole(1), "a dict of such numbers")),
    "nodes": optional(whole(2)),
    "update": optional(either(TEXT, by_name(FINITE, "a dict of weights"))),
    "LocalIteration.rtol": NOT_NEGATIVE,
    "LocalIteration.atol": NOT_NEGATIVE,
    "LocalIteration.projection": TRUTH,
    "LocalIteration.iterations": optional(whole(1)),
    "max_iterations": whole(2),
    "threads": TRUTH,
    "check": TRUTH,
    # ensembles
    "members": whole(0),
    "seed": whole(0),
    "chunk": whole(1),
    "ensemble.threads": whole(1),
    # drawings and events
    "links": each(each(TEXT, "", least=2, most=2), "pairs of names"),
    "springs": each(each(TEXT, "", least=2, most=2), "pairs of names"),
    "bodies": each(each(TEXT, "", least=3), "sequences of at least three names"),
    "lines": each(each(TEXT, "", least=2, most=2), "pairs of names"),
    "circles": each(each(TEXT, "", least=2, most=4), "a centre and one to three points of a rim, by name"),
    "symbols": each(each(TEXT, "", least=2, most=4), "sequences of a kind, a point and directions"),
    "tracks": each(each(TEXT, "", least=2, most=3), "pairs of names, or triples in space"),
    "arrows": each(each(TEXT, "", least=2, most=2), "pairs of names"),
    "ground": NAMES,
    "sliders": NAMES,
    "traces": NAMES,
    "camera": numbers("two angles in degrees", lambda angles: angles.shape == (2,)),
    "direction": number("a positive or negative number, or 0 for both", lambda x: not math.isnan(x)),
    "stop": TRUTH,
    "hypothesis": one_of("newton", "poisson"),
    # equilibria, modes, kinematics
    "count": whole(1),
    "near": NOT_NEGATIVE,
    "cycles": whole(1, 1000),
    "amplitude": FINITE,
    "switch": TRUTH,
    "max_points": whole(3),
    "fraction": number("a number between 0 and 1", lambda x: 0 < x < 1),
    "Sampled.law": FUNCTION,
    "dt": POSITIVE,
    "every": POSITIVE,
    "time_limit": optional(POSITIVE),
    "Sampled.delay": NOT_NEGATIVE,
    "Sampled.offset": NOT_NEGATIVE,
    "Sampled.inputs": optional(either(TEXT, NAMES)),
    "terminal": optional(either(TRUTH, Kind("a number of occurrences", whole(0).read))),
}
"""The kinds of all arguments whose check needs nothing but their value."""


def kind_of(argument: str, owner: type | None = None) -> Kind | None:
    """The kind of an argument, or of a field of a class; None if it is not in the table."""
    for base in () if owner is None else owner.__mro__:
        if f"{base.__name__}.{argument}" in ARGUMENTS:
            return ARGUMENTS[f"{base.__name__}.{argument}"]
    return ARGUMENTS.get(argument)


def checked(argument: str, value: Any, error: type[ValueError] = ValueError) -> Any:
    """The value of an argument in its normal form; an error that names the argument and what to give if it is
    not of its kind.
    """
    return read(ARGUMENTS[argument], argument, value, error)


def read(kind: Kind, argument: str, value: Any, error: type[ValueError] = ValueError) -> Any:
    """As `checked`, for a kind."""
    try:
        return kind.read(value)
    except (TypeError, ValueError, OverflowError):
        raise error(f"{argument}: {shown(value)}; give {kind.expected}") from None


def check_fields(thing: Any, error: type[ValueError] = ValueError) -> None:
    """Read all fields of a frozen dataclass that stand in the table; lists and arrays become tuples."""
    for field in fields(thing):
        kind = kind_of(field.name, type(thing))
        if kind is not None:
            value = read(kind, field.name, getattr(thing, field.name), error)
            object.__setattr__(thing, field.name, _fixed(value))


def _fixed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(_fixed, value)) if isinstance(value, list) else value
