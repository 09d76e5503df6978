"""Systems some of whose constraints do not hold at present: a latch that is open, a clutch that slips, a rod
that has broken.

Each choice of rows that hold is a System of its own, made once.  A position constraint that is locked holds
what it finds: g(t, q) keeps the value c that it had then, so that a clutch may close at any angle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from holonome.dynamics.contacts import constrained
from holonome.dynamics.kernels import kernels
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.problem import contact as unilateral
from holonome.problem import elastic as elements
from holonome.problem.system import System
from holonome.problem.user_function import Expression

HELD_AT = "held at"
"""The input with c, of all position constraints."""

_ROUNDING = 1e-10
"""A part of the positions up to which a constraint that is locked counts as met."""


class SwitchedSystem(System):
    """A system without some of its constraints."""

    def __init__(self, base: System, released: tuple[int, ...]) -> None:
        self.base, self.released_rows = base, released
        self.rows_held = np.array([row for row in range(base.m) if row not in released], dtype=int)
        functions = _functions(base, self.rows_held)
        parts = {role: functions.pop(role) for role in list(functions) if role.startswith("elastic")}
        touching = {role: functions.pop(role) for role in list(functions) if role.startswith("contacts")}
        super().__init__(
            **functions,
            elastic=elements.rebuilt(parts),
            contacts=unilateral.rebuilt(touching, base.contacts or None),
            states=base.states or None,
            unknowns=base.unknowns or None,
            inertial=base.inertial,
            parameters={name: base.parameters[name] for name in base.parameters.layout_of("p")},
            inputs={name: base.parameters[name] for name in base.inputs}
            | {HELD_AT: np.zeros(base.model.position_rows)},
            names=base.names or None,
            n=base.n,
            constraint_names=[base.constraint_names[row] for row in self.rows_held] or None,
            name=base.name,
        )

    def _refuse_inputs(self, model: Model) -> None:
        """The system itself has been looked at, and c changes only where a run begins anew."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return switched, (base_of(self), self.released_rows, self.held_at)

    @property
    def held_at(self) -> np.ndarray:
        """c of all position constraints."""
        return np.asarray(self.parameters[HELD_AT])

    @property
    def counted_turns(self) -> Sequence[int]:
        """States that only count turns, of a mechanism."""
        return getattr(self.base, "counted_turns", ())

    @property
    def quaternions(self) -> Sequence[Any]:
        return getattr(self.base, "quaternions", ())

    def measured(self, name: str) -> dict[str, ca.SX] | None:
        found = self.base.measured(name)
        return found and {label: self.in_own_symbols(value) for label, value in found.items()}

    def in_own_symbols(self, value: ca.SX) -> ca.SX:
        """An expression of the state of the system with all constraints."""
        own = {name: self.symbols[name] for name in ("t", "q", "v", "s")}
        own["p"] = self.symbols["p"][: self.base.parameters.size]
        theirs = ca.vertcat(*(self.base.symbols[name] for name in own))
        return ca.substitute(value, theirs, ca.vertcat(*own.values()))

    def own_multipliers(self, lam: np.ndarray) -> np.ndarray:
        out = np.zeros((self.base.m, *lam.shape[1:]))
        out[self.rows_held] = lam
        return out

    @property
    def own_count(self) -> int:
        return self.base.m

    def own_symbols(self, lam: ca.SX) -> ca.SX:
        out = ca.SX.zeros(self.base.m)
        for k, row in enumerate(self.rows_held.tolist()):
            out[row] = lam[k]
        return out

    def own_residuals(self, residuals: np.ndarray) -> np.ndarray:
        g = self.base.model.position_rows
        out, released = residuals.copy(), np.array(self.released_rows, dtype=int)
        out[:g] -= self.held_at.reshape(-1, *[1] * (residuals.ndim - 1))
        out[released[released < g]] = out[g + released] = np.nan
        return out


def switched(base: System, released: Iterable[int], held_at: np.ndarray | None = None) -> System:
    """The system without these rows, the others held at c; made once for a system and its copies."""
    rows, g = tuple(sorted(set(released))), base.model.position_rows
    c = np.zeros(g) if held_at is None else np.array(held_at, dtype=float)
    c[[row for row in rows if row < g]] = 0.0
    if not rows and not c.any():
        return base
    found = base.compiled.once(("switched", rows), lambda: SwitchedSystem(base, rows))
    changed = found.with_values(np.concatenate([base.parameters.flat, c]))
    return changed.with_unknowns(list(base.unknowns.values())) if base.unknowns else changed


def released(system: System, names: Sequence[Any]) -> System:
    """The system without the constraints of these names, and without those that it lacks already."""
    before = system.released_rows if isinstance(system, SwitchedSystem) else ()
    rows = [row for name in names for row in rows_named(system, name)]
    held_at = system.held_at if isinstance(system, SwitchedSystem) else None
    return switched(base_of(system), {*before, *rows}, held_at)


def base_of(system: System) -> System:
    """The system with all constraints, and the parameters and inputs of now."""
    if not isinstance(system, SwitchedSystem):
        return system
    base = system.base
    changed = base.with_values(system.parameters.flat[: base.parameters.size])
    return changed.with_unknowns(list(system.unknowns.values())) if base.unknowns else changed


def rows_named(system: System, name: Any) -> list[int]:
    """The rows of this name, or those of a joint of this name: "B" is both "B x" and "B y"."""
    names = base_of(system).constraint_names
    rows = [row for row, known in enumerate(names) if known == name]
    rows = rows or [row for row, known in enumerate(names) if known.startswith(f"{name} ")]
    if not isinstance(name, str) or not rows:
        raise ValueError(
            f"there is no constraint {name!r}; the constraints are {', '.join(names) or 'none'}. A joint "
            "without rows is part of the tree; coordinates='absolute' gives rows to all joints"
        )
    return rows


class Locked(NamedTuple):
    """What becomes of a state where constraints are released and locked."""

    system: System
    v: np.ndarray
    before: np.ndarray
    """Rates of the rows that are locked."""
    impulse: np.ndarray
    """Along these rows."""
    lost: float
    """Energy, by the impact of locking."""
    rows: Sequence[int]


def relocked(system: System, t: float, y: np.ndarray, release: Iterable[int], lock: Iterable[int]) -> Locked:
    """The system with other rows that hold, and the velocities behind the impact of locking."""
    base, n = base_of(system), system.n
    before = set(system.released_rows) if isinstance(system, SwitchedSystem) else set()
    c = system.held_at.copy() if isinstance(system, SwitchedSystem) else np.zeros(base.model.position_rows)
    rows = sorted(set(lock) & before)
    if any(row < c.size for row in rows):
        here, size = _pieces(base, t, y)["g"], float(np.max(np.abs(y[:n]), initial=0.0))
        for row in [row for row in rows if row < c.size]:
            c[row] = here[row] if abs(here[row]) > _ROUNDING * size else 0.0
    after = switched(base, (before - set(rows)) | set(release), c)
    v, rates, impulse, lost = y[n : 2 * n].copy(), np.zeros(0), np.zeros(0), 0.0
    if rows:
        found = _pieces(after, t, y)
        held = after.rows_held.tolist() if isinstance(after, SwitchedSystem) else list(range(base.m))
        places = [held.index(row) for row in rows]
        M, C, w = found["M"], found["C"], found["w"]
        change = constrained(M, C, np.zeros((n, 1)), -w)[:, 0]
        rates, impulse = w[places], np.linalg.lstsq(C.T, M @ change, rcond=1e-13)[0][places]
        lost, v = -float(change @ M @ (v + change / 2)), v + change
    return Locked(after, v, rates, impulse, lost, rows)


def _pieces(system: System, t: float, y: np.ndarray) -> dict[str, np.ndarray]:
    compiled = kernels(system)
    found = compiled.evaluate_pieces(compiled.context(system), t, y)
    if found is None:
        raise ModelError(f"the system cannot be evaluated at t = {t:.9g}")
    return found


def _functions(base: System, held: np.ndarray) -> dict[str, Any]:
    """The functions of the system, constraints reduced to the rows that hold."""
    g = base.model.position_rows
    symbols = {name: ca.SX.sym(name, symbol.numel()) for name, symbol in base.symbols.items()}
    symbols["p"] = ca.SX.sym("p", base.parameters.size + g)
    symbols["lam"] = ca.SX.sym("lam", held.size)
    lam = ca.SX.zeros(base.m)
    for k, row in enumerate(held.tolist()):
        lam[row] = symbols["lam"][k]
    size, found = base.parameters.size, {}
    own, c = ca.vertsplit(symbols["p"], [0, size, size + g])
    inner = dict(symbols, p=own, lam=lam)
    kept = {
        "constraint": held[held < g].tolist(),
        "velocity_constraint": (held[held >= g] - g).tolist(),
    }
    for role, function in base.functions.items():
        if function.supplied is not None:
            if role in kept:
                raise ModelError(
                    f"{role}: cannot be traced ({function.reason}), so its rows cannot be released one by "
                    "one; write it with NumPy functions"
                )
            found[role] = function.function
            continue
        value = _with(base, ca.densify(base.traced_functions[role]), inner)
        if role in kept:
            value = (value - c if role == "constraint" else value)[kept[role]]
        if role not in kept or kept[role]:
            names, whole = list(symbols.values()), ca.densify(value)
            found[role] = Expression(role, ca.Function("switched", names, [whole]), base.n)
    return found


def _with(base: System, value: ca.SX, inner: Mapping[str, ca.SX]) -> ca.SX:
    return ca.substitute(
        value,
        ca.vertcat(*base.symbols.values()),
        ca.vertcat(*(inner[name] for name in base.symbols)),
    )
