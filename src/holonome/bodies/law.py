"""Laws of forces, drives and guides: functions of the user, traced once, when they are given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import real_array, shown
from holonome.bodies.geometry import symbolic
from holonome.errors import ModelError
from holonome.problem.parameters import Parameters
from holonome.tracing import Captured, Untraceable, Watched, argument_names, trace, traced
from holonome.tracing.values import has_traced


class TracedLaw:
    """A law as an expression of what it asks for.

    Parameters
    ----------
    role
        What messages call it.
    law
        A number, an array, or a function of any of ``arguments``, p and u.
    arguments
        What it may ask for, with shapes.
    size
        How many numbers it returns; None for any number.
    parameters, p
        The parameters of the mechanism, and their symbol.
    """

    def __init__(
        self,
        role: str,
        law: Any,
        arguments: Mapping[str, tuple[int, ...]],
        size: int | None,
        parameters: Parameters,
        p: ca.SX,
    ) -> None:
        self.role, self.captured = role, ()
        self._inputs = {
            name: ca.SX.sym(name, int(np.prod(shape, dtype=int))) for name, shape in arguments.items()
        }
        given: dict[str, Any] = {name: traced(self._inputs[name], shape) for name, shape in arguments.items()}
        given |= {kind: parameters.namespace(p, kind) for kind in _kinds(parameters)}
        value = self._traced(law, given) if callable(law) else self._constant(law)
        if size is not None and value.numel() != size:
            raise ModelError(f"{role}: gives {value.numel()} numbers; it must give {size}")
        self.size = value.numel()
        self._p = p
        self._function = ca.Function("law", [*self._inputs.values(), p], [value])
        if callable(law):
            self._require_same(law, arguments, parameters)

    def _constant(self, law: Any) -> ca.SX:
        if has_traced(law):
            return symbolic(law)
        try:
            values = real_array(law)
            if not np.all(np.isfinite(values)):
                raise ValueError
        except (TypeError, ValueError, OverflowError):
            raise ModelError(
                f"{self.role}: {shown(law)}; give a number or a function of {', '.join([*self._inputs, 'p'])}"
            ) from None
        return ca.SX(ca.DM(values.ravel()))

    def _traced(self, law: Callable, given: Mapping[str, Any]) -> ca.SX:
        self._wanted = argument_names(law, self.role)
        unknown = [name for name in self._wanted if name not in given]
        if unknown:
            raise ModelError(
                f"{self.role}: its argument {unknown[0]!r} is not known; arguments go by name and may be any "
                f"of {', '.join(given)}"
            )
        captured = Captured(law)
        try:
            flat, _ = trace(law, {name: given[name] for name in self._wanted})
        except Untraceable as reason:
            raise ModelError(
                f"{self.role}: cannot be traced ({reason}); write it with NumPy functions of its arguments, "
                "and give tables and random numbers as parameters="
            ) from None
        except Exception as error:
            raise ModelError(f"{self.role} raised {type(error).__name__}: {error}") from error
        self.captured: tuple[Watched, ...] = captured.settled()
        return flat

    def _require_same(self, law: Callable, shapes: Mapping[str, tuple[int, ...]], given: Parameters) -> None:
        """The trace must have the values of the function itself."""
        random = np.random.default_rng(4)
        for scale in (0.3, 1.0, 3.0):
            values = {name: np.asarray(random.uniform(0.1, scale, shape)) for name, shape in shapes.items()}
            plain: dict[str, Any] = {k: float(x) if x.ndim == 0 else x for k, x in values.items()}
            plain |= {kind: given.namespace(given.flat, kind) for kind in _kinds(given)}
            try:
                with np.errstate(all="ignore"):
                    expected = np.asarray(law(**{k: plain[k] for k in self._wanted}), dtype=float).ravel()
            except Exception:
                continue
            found = np.array(self._function(*[x.ravel() for x in values.values()], given.flat)).ravel()
            if np.all(np.isfinite(expected)) and not np.allclose(found, expected, rtol=1e-8, atol=1e-10):
                raise ModelError(
                    f"{self.role}: traced, it gives other values than when called (does it depend on more "
                    "than its arguments?)"
                )

    def __call__(self, given: Mapping[str, Any]) -> ca.SX:
        """Its value for expressions of its arguments."""
        return self._function(*[given[name] for name in self._inputs], self._p)


def _kinds(parameters: Parameters) -> str:
    """Parameters p, and inputs u where there are any."""
    return "pu" if parameters.inputs else "p"
