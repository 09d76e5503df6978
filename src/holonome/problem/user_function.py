"""One function of the user: its arguments by name, its value in normal shape, and its expression, or the
reason why it has none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import NUMBERS, read, shown, without_mask
from holonome.equations.program import Program
from holonome.errors import ModelError
from holonome.machine.supplied import Supplied
from holonome.problem.parameters import Parameters
from holonome.problem.repetition import require_same_answers
from holonome.tracing import Captured, Namespace, Untraceable, Watched, argument_names, trace, traced

ALLOWED = {
    "mass": ("t", "q", "p"),
    "constraint": ("t", "q", "p"),
    "potential": ("t", "q", "p"),
    "deformation": ("t", "q", "p"),
    "stiffness": ("p",),
    "damping": ("p",),
    "equations": ("t", "q", "p"),
    "gap": ("t", "q", "p"),
} | dict.fromkeys(("restitution", "friction", "static_friction"), ("p",))
"""Which arguments a function may ask for, by role; any other role allows all of t, q, v, p."""
FURTHER = {
    "force": ("s", "w", "lam", "u"),
    "rate": ("s", "w", "lam", "u"),
    "mass": ("w",),
    "constraint": ("w",),
    "velocity_constraint": ("w",),
    "equations": ("w",),
    "potential": ("w",),
    "invariant": ("s", "w"),
    "deformation": (),
    "stiffness": (),
    "damping": (),
} | dict.fromkeys(("gap", "slip", "restitution", "friction", "static_friction"), ())
"""Which of the states s, the unknowns w, the multipliers and the inputs u it may ask for, if the system has
them; any other role, that of an event, allows all of them and the accelerations a.
"""
_EVENT = ("s", "w", "lam", "a", "u")
_CONSTANTS = (
    "mass",
    "force",
    "potential",
    "stiffness",
    "damping",
    "restitution",
    "friction",
    "static_friction",
)
"""Roles in which a number or an array will do."""

TRACED = dict.fromkeys(
    ("deformation", "stiffness", "damping"),
    "which elastic elements need; write it with NumPy functions, or make it part of force",
) | dict.fromkeys(
    ("gap", "slip", "restitution", "friction", "static_friction"),
    "which contacts need; write it with NumPy functions",
)
"""Roles in which a function that cannot be traced is refused, and why, with the remedy."""


def probe_points(n: int) -> list[dict[str, Any]]:
    """Points at which functions are tried out; no particular meaning."""
    random = np.random.default_rng(1)
    return [
        {"t": t, "q": scale * random.uniform(0.2, 0.9, n), "v": random.uniform(-0.5, 0.5, n)}
        for t, scale in ((0.37, 1.0), (0.11, 0.1), (0.0, -1.0), (1.3, 3.0))
    ]


class UserFunction:
    """A callable or constant in a role ("mass", "force", "constraint", "velocity_constraint", "potential",
    "elastic[0].deformation", or the name of an event).

    ``path`` says how it reaches the engine: "constant", "traced", "numba" or "python"; ``reason`` why it is
    not traced; ``shape`` what it returned, where that is known. ``further`` holds values to try for the s, w
    and lam that the system has.
    """

    def __init__(
        self,
        role: str,
        function: Any,
        n: int,
        parameters: Parameters,
        further: Mapping[str, np.ndarray] | None = None,
        kind: str = "",
    ) -> None:
        self.role = role
        self.function = function
        self.n = n
        self.parameters = parameters
        self.further = further or {}
        self.kind = kind or role.rpartition(".")[2]
        self.shape: tuple[int, ...] | None = None
        self.path = "constant"
        self.reason = ""
        self.supplied: Supplied | None = None
        self.captured: tuple[Watched, ...] = ()
        self.arguments: tuple[str, ...] = ()
        if callable(function):
            self.arguments = self._check_arguments()
        elif self.kind not in _CONSTANTS:
            raise ModelError(
                f"{role}: {shown(function)} is not callable; give a function of any of "
                f"{', '.join(self._allowed())}"
            )
        else:
            self.function = read(NUMBERS, role, function, ModelError)

    def _check_arguments(self) -> tuple[str, ...]:
        allowed = self._allowed()
        if isinstance(self.function, Expression):
            return allowed
        names = argument_names(self.function, self.role)
        unknown = [name for name in names if name not in allowed]
        if unknown:
            missing = {
                "s": " (s are the states of a system: give states={...})",
                "w": " (w are the unknowns of a system: give unknowns={...})",
                "lam": " (lam are the multipliers of constraints, which this system does not have)",
                "u": " (u are inputs: give inputs={...}; force, rate and events may ask for them)",
            }
            raise ModelError(
                f"{self.role}: its argument {unknown[0]!r} is not known; arguments go by name and may be any "
                f"of {', '.join(allowed)}"
                + (missing.get(unknown[0], "") if unknown[0] not in self.further else "")
            )
        return names

    def _allowed(self) -> tuple[str, ...]:
        offered = {*self.further, "u"} if self.parameters.inputs else {*self.further}
        further = tuple(name for name in FURTHER.get(self.kind, _EVENT) if name in offered)
        if self.n == 0:
            return ("t", "x", "p", "u") if "u" in further else ("t", "x", "p")
        return ALLOWED.get(self.kind, ("t", "q", "v", "p")) + further

    def _points(self) -> list[dict[str, Any]]:
        """Points at which it is tried out."""
        random = np.random.default_rng(2)
        return [
            point
            | {
                name: np.asarray(value) + 1e-3 * random.uniform(-1, 1, np.shape(value))
                for name, value in self.further.items()
            }
            for point in probe_points(self.n)
        ]

    @property
    def returns_matrix(self) -> bool:
        """Whether this is a velocity constraint given by its matrix A(q)."""
        return self.role == "velocity_constraint" and "v" not in self.arguments

    def evaluate(self, point: Mapping[str, Any], parameters: Parameters | None = None) -> np.ndarray:
        """Its value, in Python, brought to normal shape; ModelError with name, t and q if that fails."""
        if not callable(self.function):
            return self.normalise(self.function)
        where = ", ".join(
            f"{name} = {np.array2string(np.asarray(point[name]), precision=6, threshold=8)}"
            for name in ("t", "q")
        )
        try:
            value = self._call(point, parameters or self.parameters)
        except Exception as error:
            raise ModelError(f"{self.role} raised {type(error).__name__}: {error} (at {where})") from error
        try:
            value = self.normalise(value)
        except ModelError as error:
            raise ModelError(f"{error} (at {where})") from None
        return value @ point["v"] if self.returns_matrix else value

    def _call(self, point: Mapping[str, Any], parameters: Parameters) -> Any:
        given = {
            name: np.copy(value) if isinstance(value, np.ndarray) else value
            for name, value in {**self.further, **point}.items()
        }
        given["p"], given["u"] = (parameters.namespace(parameters.flat, kind) for kind in "pu")
        given["x"] = given.get("s")
        with np.errstate(all="ignore"):
            return self.function(**{name: given[name] for name in self.arguments})

    def normalise(self, value: Any) -> np.ndarray:
        """What the function returned, as an array of the right shape; ModelError otherwise."""
        role, n = self.role, self.n
        try:
            array = np.asarray(without_mask(value))
        except ValueError:
            raise ModelError(f"{role} must return numbers in a regular array, not {value!r}") from None
        if np.iscomplexobj(array):
            raise ModelError(
                f"{role} returned complex numbers; write it with real functions (a square root of a negative "
                "number?)"
            )
        if array.dtype.kind not in "fiub":
            raise ModelError(f"{role} must return numbers, not {type(value).__name__}")
        array = array.astype(float)
        self._check_shape(array.shape)
        if role == "mass":
            return array if array.ndim == 2 else np.diag(np.broadcast_to(array.ravel(), n).astype(float))
        if self.returns_matrix:
            return np.atleast_2d(array)
        return array.ravel()

    def expression(self, symbols: Mapping[str, ca.SX]) -> ca.SX | Supplied:
        """The function as a flat column of expressions, or, where tracing fails, as a supplied function."""
        if not callable(self.function):
            return ca.SX(ca.DM(self.normalise(self.function).ravel()))
        self.path = "traced"
        if isinstance(self.function, Expression):
            return self.function.of(symbols)
        arguments = {
            "t": traced(symbols["t"], ()),
            "q": traced(symbols["q"], (self.n,)),
            "v": traced(symbols["v"], (self.n,)),
            "p": self.parameters.namespace(symbols["p"]),
            "u": self.parameters.namespace(symbols["p"], "u"),
        } | {
            name: traced(symbols[name], (symbols[name].numel(),)) for name in self.further if name in symbols
        }
        if self.n == 0:
            arguments["x"] = arguments["s"]
        captured = Captured(self.function)
        expression = self._traced_or_supplied(arguments, symbols)
        if self.path != "python":
            self.captured = captured.settled()
        return expression

    def _traced_or_supplied(
        self, arguments: Mapping[str, Any], symbols: Mapping[str, ca.SX]
    ) -> ca.SX | Supplied:
        try:
            flat, shape = trace(self.function, {name: arguments[name] for name in self.arguments})
        except Untraceable as reason:
            return self._as_supplied(str(reason))
        except Exception as error:
            return self._as_supplied(f"tracing met {type(error).__name__}: {error}")
        self._check_shape(shape)
        if self._disagrees(flat, symbols):
            return self._as_supplied(
                "traced, it gives other values than when called (does it depend on more than its arguments?)"
            )
        return self._normal_expression(flat, shape, symbols["v"])

    def _normal_expression(self, flat: ca.SX, shape: tuple[int, ...], v: ca.SX) -> ca.SX:
        n = self.n
        if self.role == "mass" and len(shape) < 2:
            full = ca.diag(flat) if flat.numel() == n else ca.SX(ca.DM.eye(n)) * flat
            return ca.reshape(full, n * n, 1)
        if self.returns_matrix:
            return ca.reshape(flat, n, flat.numel() // n).T @ v
        return flat

    def _disagrees(self, flat: ca.SX, symbols: Mapping[str, ca.SX]) -> bool:
        """Whether the trace gives other values than the function itself, where that can be called."""
        function = ca.Function("check", list(symbols.values()), [flat])
        for point in self._points():
            try:
                answer = self._call(point, self.parameters)
                expected = np.asarray(answer, dtype=float).ravel()
            except Exception:
                continue
            if np.ma.is_masked(answer):
                raise ModelError(f"{self.role} returned masked entries, which are no numbers")
            found = np.array(
                function(
                    *(
                        self.parameters.flat if name == "p" else point.get(name, np.zeros(0))
                        for name in symbols
                    )
                )
            ).ravel()
            if np.all(np.isfinite(expected)) and not np.allclose(
                found, expected, rtol=1e-8, atol=1e-10 * (1 + np.max(np.abs(expected), initial=0.0))
            ):
                return True
        return False

    def _as_supplied(self, reason: str) -> Supplied:
        """Call it as it is; if it fails on plain numbers wherever it is tried, or gives different answers to
        the same question, that is an error for the user to correct.
        """
        require_same_answers(self.role, lambda point: self._call(point, self.parameters), self._points())
        if self.kind in TRACED:
            raise ModelError(f"{self.role}: cannot be traced ({reason}), {TRACED[self.kind]}")
        if self.role.startswith("events["):
            asked = [name for name in self.arguments if name not in ("t", "q", "v", "p", "u")]
            if asked:
                raise ModelError(
                    f"{self.role}: cannot be traced ({reason}), which an event that asks for {asked[0]!r} "
                    "must be; write it with NumPy functions"
                )
        elif self.further:
            raise ModelError(
                f"{self.role}: cannot be traced ({reason}), which a system with states, unknowns, "
                "invariants or forces of lam needs; write it with NumPy functions"
            )
        failure = ModelError(f"{self.role}: cannot be evaluated")
        for point in probe_points(self.n):
            try:
                rows = self.evaluate(point).size
            except ModelError as error:
                failure = error
                continue
            call, wanted = self.function, self.arguments
            if self.returns_matrix:
                call, wanted = _MatrixTimesVelocity(self.function, wanted), (*wanted, "v")
            given: dict[str, Any] = dict(point)
            for kind in "pu":
                given[kind] = self.parameters.namespace(self.parameters.flat, kind)
            normalise = np.ravel if self.returns_matrix else self.normalise
            with np.errstate(all="ignore"):
                self.supplied = Supplied(
                    self.role, call, wanted, self.n, rows, normalise, self.parameters, given
                )
            self.path, self.reason = self.supplied.path, reason
            return self.supplied
        raise failure

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        good, expected = self._judged(shape)
        if not good:
            raise ModelError(f"{self.role} has shape {shape}; expected {expected}")

    def _judged(self, shape: tuple[int, ...]) -> tuple[bool, str]:
        """Whether a value may have this shape, and what is expected."""
        n, size = self.n, int(np.prod(shape, dtype=int))
        flat = len(shape) <= 1 or size == max(shape)
        square = len(shape) == 2 and shape[0] == shape[1]
        match self.kind:
            case "mass":
                good = shape in ((n, n), (n,), ()) or (n == 1 and size == 1)
                return good, f"({n}, {n}), its diagonal ({n},), or a scalar"
            case "force":
                return flat and size == n, f"({n},)"
            case "stiffness" | "damping":
                good = size > 0 and (len(shape) <= 1 or square)
                return good, "a number, a vector (a diagonal) or a square matrix"
            case "rate":
                count = self.further["s"].size
                return flat and size == count, f"({count},), one rate for each of the states"
            case "equations":
                count = self.further["w"].size
                return flat and size == count, f"({count},), one equation for each of the unknowns"
            case "constraint" | "deformation" | "invariant":
                return flat and size > 0, "a scalar or a vector, one entry for each row"
            case "slip":
                return flat and size in (1, 2), "one velocity along the contact, in space two"
            case "velocity_constraint" if self.returns_matrix:
                good = (shape[-1:] == (n,) and len(shape) <= 2) or (n == 1 and size == 1)
                return good, f"a matrix with {n} columns (a function without v returns A(q))"
            case "velocity_constraint":
                expected = "a scalar or a vector, one entry for each row"
                return flat and size > 0, f"{expected} (a function with v returns the residual A(q) v - b)"
        return size == 1, "a scalar"


class _MatrixTimesVelocity:
    """A(q) v from a function that returns A(q)."""

    def __init__(self, function: Callable, arguments: Sequence[str]) -> None:
        self.function, self.arguments = function, tuple(arguments)

    def __call__(self, v: np.ndarray, **arguments: Any) -> np.ndarray:
        return (
            np.atleast_2d(
                np.asarray(self.function(**{name: arguments[name] for name in self.arguments}), dtype=float)
            )
            @ v
        )


class Expression:
    """A function that is known as an expression of t, q, v, p, s, w and lam, and behaves like one of the
    user's.
    """

    def __init__(self, role: str, function: ca.Function, n: int) -> None:
        self.role = role
        self.n = n
        self._function = function

    @classmethod
    def of_program(cls, role: str, program: Program, n: int) -> Expression:
        """A traced function that came back from a file or a pickle."""
        if not isinstance(program, Program):
            raise ModelError(f"{role}: not a program; it was saved by an earlier version of holonome")
        return cls(role, program.function("traced"), n)

    def of(self, symbols: Mapping[str, ca.SX]) -> ca.SX:
        given = list(symbols.values())[: self._function.n_in()]
        if any(x.shape != self._function.size_in(i) for i, x in enumerate(given)):
            raise ModelError(
                f"{self.role}: belongs to another system, or was made before parts were added to this one; "
                "make it again"
            )
        return self._function(
            *given,
            *(ca.SX.zeros(*self._function.size_in(i)) for i in range(len(symbols), self._function.n_in())),
        )

    def __call__(
        self, t: float = 0.0, q: Any = None, v: Any = None, p: Namespace | None = None, **further: Any
    ) -> np.ndarray:
        flat = (
            np.concatenate([np.ravel(p[name]) for name in p])
            if p is not None and len(list(p))
            else np.zeros(0)
        )
        if "x" in further:
            further["s"] = further["x"]
        rest = [
            further.get(name, np.zeros(self._function.size_in(i)))
            for i, name in enumerate(("s", "w", "lam"), start=4)
            if i < self._function.n_in()
        ]
        q, v = (np.zeros(self.n) if x is None else x for x in (q, v))
        values = np.array(self._function(t, q, v, flat, *rest)).ravel()
        return values.reshape(self.n, self.n) if self.role == "mass" else values

    @property
    def uses_lam(self) -> bool:
        """Whether it depends on the multipliers."""
        return self._function.n_in() > 6 and self._function.jac_sparsity(0, 6).nnz() > 0

    def __reduce__(self):
        return Expression.of_program, (self.role, Program.of(self._function), self.n)
