"""ODE: ordinary differential equations, a system of first-order states alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from holonome.errors import ModelError
from holonome.problem.checks import names_or_number
from holonome.problem.description import shortened
from holonome.problem.system import System
from holonome.problem.vectors import vector


class ODE(System):
    """Ordinary differential equations x′ = f(t, x), with quantities that they conserve.

    Parameters
    ----------
    f : callable(t, x, p, u)
        The rates x′.
    invariant : callable(t, x, p), optional
        Conserved quantities, one or many; projection keeps them at their initial values.
    names, n
        Names of the components, or their number.
    parameters : dict, optional
        Numbers and arrays that the functions see as ``p.name``.
    inputs : dict, optional
        The same, but meant to change on the way; ``f`` sees them as ``u.name``.
    name : str, optional
        A name for messages and plots.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> circle = hn.ODE(lambda x: np.array([-x[1], x[0]]), invariant=lambda x: x @ x, n=2)
    >>> sol = hn.solve(circle, (0, 100), [1, 0])
    >>> bool(np.max(np.abs(np.hypot(*sol.x) - 1)) < 1e-14)
    True
    """

    roles: ClassVar[dict[str, str]] = {"rate": "f"}

    def __init__(
        self,
        f: Callable,
        invariant: Callable | None = None,
        *,
        names: Sequence[str] | None = None,
        n: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Any] | None = None,
        name: str = "ode",
    ) -> None:
        if f is None:
            raise ModelError("f: missing; give a function of any of t, x, p")
        names = names_or_number(names, n, "components")
        super().__init__(
            np.zeros((0, 0)),
            np.zeros(0),
            n=0,
            states=dict.fromkeys(names, 0.0),
            rate=f,
            invariant=invariant,
            parameters=parameters,
            inputs=inputs,
            name=name,
        )

    def full_state(self, q0: Any, v0: Any = None, s0: Any = None) -> np.ndarray:
        if v0 is not None or s0 is not None:
            raise ValueError(
                f"{'v0' if v0 is not None else 's0'}: an ODE has initial values q0 alone; leave it out"
            )
        return vector("q0", q0, len(self.states), "components").copy()

    def __repr__(self) -> str:
        return f"ODE({self.name!r}, n={len(self.states)})"

    def __str__(self) -> str:
        _, *rest = super().__str__().split("\n")
        names = ", ".join(shortened(list(self.states)))
        lines = [f"ODE {self.name!r}: {len(self.states)} components ({names})"]
        lines += [line for line in rest if not line.startswith(("  mass ", "  force "))]
        return "\n".join(lines)
