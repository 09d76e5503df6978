"""Systems whose contacts are open, closed, stick or slide: each combination, a mode, is a System of its own.

A closed contact is a position constraint, one that sticks has velocity constraints as well, and on one that
slides friction acts, −μ N d with N = −λ of its gap.  What may end a mode is watched by events: a gap that
closes, a force N that would have to pull, friction that is exhausted, a slip that stops.  Of a slip in two
directions the component along that in which the mode began is watched: where it vanishes, the slip has
stopped or turned, and another mode begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from holonome.dynamics.contacts import expressions
from holonome.equations.model import Model
from holonome.errors import ModelError
from holonome.machine.supplied import Supplied
from holonome.problem import elastic as elements
from holonome.problem.event import Event
from holonome.problem.system import System
from holonome.problem.user_function import Expression

OPEN, CLOSED, STICK, SLIDE = "open", "closed", "sticks", "slides"
CLOSES, RELEASES, BREAKS, STOPS = "closes", "releases", "breaks", "stops"

_WATCHED = {CLOSES: "gap", RELEASES: "force", BREAKS: "friction", STOPS: "slip"}

DATA = "contacts"
"""The input with what events and friction of a mode need: tolerances, then the directions of slip."""


class Watch(NamedTuple):
    """An event that may end a mode, of which contact and what."""

    contact: int
    what: str
    event: Event


class ModeEvent(Expression):
    """An event of a mode, which sees all its multipliers; ``quantity`` says in words what it looks at."""

    quantity = ""


class ModeSystem(System):
    """A system in one mode of its contacts."""

    def __init__(self, base: System, statuses: tuple[str, ...]) -> None:
        self.base, self.statuses = base, statuses
        self._base_symbols = list(base.symbols.values())
        self.own_rows, self.normal_rows, self.slip_rows = _rows(base, statuses)
        functions = _functions(base, statuses, self)
        parts = {role: functions.pop(role) for role in list(functions) if role.startswith("elastic")}
        g, contacts = base.model.position_rows, base.contacts
        closed = [contacts.names[i] for i, what in enumerate(statuses) if what != OPEN]
        slips = [
            f"{contacts.names[i]} slip {k}" for i, rows in self.slip_rows.items() for k in range(len(rows))
        ]
        names = base.constraint_names
        super().__init__(
            **functions,
            elastic=elements.rebuilt(parts),
            states=base.states or None,
            unknowns=base.unknowns or None,
            inertial=base.inertial,
            parameters={name: base.parameters[name] for name in base.parameters.layout_of("p")},
            inputs={name: base.parameters[name] for name in base.inputs}
            | {DATA: contact_data(len(statuses))},
            names=base.names or None,
            n=base.n,
            constraint_names=[*names[:g], *closed, *names[g:], *slips] or None,
            name=base.name,
        )
        self.watches = _watches(base, self)

    def _refuse_inputs(self, model: Model) -> None:
        """The system without contacts has been looked at."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        values = {name: self.parameters[name] for name in self.base.parameters}
        return mode_of, (self.base.with_parameters(**values), self.statuses, self.data)

    @property
    def data(self) -> np.ndarray:
        """Tolerances and directions of slip."""
        return np.asarray(self.parameters[DATA])

    def own_multipliers(self, lam: np.ndarray) -> np.ndarray:
        return self.base.own_multipliers(lam[self.own_rows])

    def own_residuals(self, residuals: np.ndarray) -> np.ndarray:
        return self.base.own_residuals(residuals)

    def contact_forces(
        self, contact: int, lam: np.ndarray, slip: np.ndarray, friction: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Force and friction of a contact, (points,) and (directions, points), from multipliers and slip."""
        if self.statuses[contact] == OPEN:
            return np.zeros(slip.shape[1]), np.zeros(slip.shape)
        N = -lam[self.normal_rows[contact]]
        if self.statuses[contact] == STICK:
            return N, -lam[self.slip_rows[contact]]
        if self.statuses[contact] == CLOSED:
            return N, np.zeros(slip.shape)
        data = self.data
        d = data[2 + 2 * contact : 2 + 2 * contact + len(slip), np.newaxis]
        if len(slip) > 1:
            s, kappa = np.sum(slip * d, axis=0), np.sqrt(data[1])
            d = slip + (np.hypot(s, kappa) - s) / 2 * d
            d = d / np.linalg.norm(d, axis=0)
        return N, -friction * N * d

    @property
    def own_count(self) -> int:
        return self.base.own_count

    def own_symbols(self, lam: ca.SX) -> ca.SX:
        return self.base.own_symbols(lam[self.own_rows.tolist()] if self.own_rows.size else ca.SX(0, 1))

    def event_function(self, role: str, function: Any) -> Any:
        found = super().event_function(role, function)
        if isinstance(function, ModeEvent):
            found.further = {**found.further, "lam": np.zeros(self.m)}
        return found

    def event_expression(self, role: str, function: Any, motion: ca.SX, lam: ca.SX) -> ca.SX | Supplied:
        if not isinstance(function, ModeEvent):
            return super().event_expression(role, function, motion, lam)
        symbols = self.symbols | {"lam": lam, "a": motion[self.n : 2 * self.n]}
        return self.event_function(role, function).expression(symbols)


def contact_data(count: int) -> np.ndarray:
    """Room for δ, ε² and a direction of each contact."""
    return np.zeros(2 + 2 * count)


def mode_of(system: System, statuses: tuple[str, ...], data: np.ndarray) -> ModeSystem:
    """The system in this mode, with its parameters; made once for a system and its copies."""
    found = system.compiled.once(("mode", statuses), lambda: ModeSystem(system, statuses))
    changed = found.with_values(np.concatenate([system.parameters.flat, data]))
    if system.unknowns:
        changed = changed.with_unknowns(list(system.unknowns.values()))
    return changed


def _rows(base: System, statuses: tuple[str, ...]) -> tuple[np.ndarray, dict[int, int], dict[int, list[int]]]:
    """Rows of the system's own constraints, of the gaps of closed contacts, and of slips that stick."""
    g, m = base.model.position_rows, base.m
    closed = [i for i, what in enumerate(statuses) if what != OPEN]
    normal = {i: g + k for k, i in enumerate(closed)}
    own = np.concatenate([np.arange(g), np.arange(g, m) + len(closed)]).astype(int)
    slips, row = {}, m + len(closed)
    for i in closed:
        if statuses[i] == STICK:
            slips[i] = list(range(row, row + base.contacts.directions[i]))
            row += len(slips[i])
    return own, normal, slips


def _functions(base: System, statuses: tuple[str, ...], mode: ModeSystem) -> dict[str, Any]:
    """The functions of the system, those that contacts change extended."""
    rows = base.m + len(mode.normal_rows) + sum(map(len, mode.slip_rows.values()))
    symbols = {name: ca.SX.sym(name, symbol.numel()) for name, symbol in base.symbols.items()}
    symbols["p"] = ca.SX.sym("p", base.parameters.size + contact_data(len(statuses)).size)
    symbols["lam"] = ca.SX.sym("lam", rows)
    inner = dict(symbols, p=symbols["p"][: base.parameters.size], lam=ca.SX.zeros(base.m))

    def here(value: ca.SX) -> ca.SX:
        return ca.substitute(
            ca.densify(value),
            ca.vertcat(*mode._base_symbols),
            ca.vertcat(*(inner[name] for name in base.symbols)),
        )

    gaps, slips, laws = expressions(base)
    data = symbols["p"][base.parameters.size :]
    closed = [i for i, what in enumerate(statuses) if what != OPEN]
    added = {
        "constraint": [here(gaps[i]) for i in closed],
        "velocity_constraint": [here(slips[i]) for i in closed if statuses[i] == STICK],
        "force": [],
    }
    for i in [i for i in closed if statuses[i] == SLIDE]:
        slip, normal = here(slips[i]), -symbols["lam"][mode.normal_rows[i]]
        d = _direction(slip, data, i)
        added["force"].append(ca.jacobian(slip, symbols["v"]).T @ (-here(laws[i][1]) * normal * d))
    found: dict[str, Any] = {}
    for role, function in base.functions.items():
        if role.startswith("contacts"):
            continue
        if function.supplied is not None:
            if added.get(role):
                raise ModelError(
                    f"{role}: cannot be traced ({function.reason}), which a system with contacts needs; "
                    "write it with NumPy functions"
                )
            found[role] = function.function
            continue
        value = here(base.traced_functions[role])
        if role in added:
            value = (
                value + sum(added["force"], ca.SX(0)) if role == "force" else ca.vertcat(value, *added[role])
            )
        found[role] = _as_expression(role, symbols, value, base.n)
    for role in ("constraint", "velocity_constraint"):
        if role not in base.functions and added[role]:
            found[role] = _as_expression(role, symbols, ca.vertcat(*added[role]), base.n)
    return found


def _as_expression(
    role: str, symbols: Mapping[str, ca.SX], value: ca.SX, n: int, kind: type[Expression] = Expression
) -> Expression:
    return kind(role, ca.Function("mode", list(symbols.values()), [ca.densify(value)]), n)


def _direction(slip: ca.SX, data: ca.SX, contact: int) -> ca.SX:
    """Where it slides: the given direction d of one slip velocity; of two, that of the slip with its part s
    along d replaced by (s + √(s² + κ²))/2, which stays positive, so that friction does not jump within the
    step in which a slip along d stops.
    """
    given = data[2 + 2 * contact : 2 + 2 * contact + slip.numel()]
    if slip.numel() == 1:
        return given
    s, kappa = ca.dot(slip, given), ca.sqrt(data[1])
    along = slip + (ca.sqrt(s * s + kappa * kappa) - s) / 2 * given
    return along / ca.sqrt(ca.sumsqr(along))


def _watches(base: System, mode: ModeSystem) -> list[Watch]:
    """The events that may end a mode."""
    gaps, slips, laws = expressions(base)
    symbols = dict(mode.symbols)
    symbols["lam"] = ca.SX.sym("lam", mode.m)
    inner = dict(symbols, p=symbols["p"][: base.parameters.size], lam=ca.SX.zeros(base.m))
    data = symbols["p"][base.parameters.size :]

    def here(value: ca.SX) -> ca.SX:
        return ca.substitute(
            ca.densify(value),
            ca.vertcat(*mode._base_symbols),
            ca.vertcat(*(inner[name] for name in base.symbols)),
        )

    def watch(contact: int, what: str, value: ca.SX) -> Watch:
        function = _as_expression(f"contact {what}", symbols, value, base.n, ModeEvent)
        function.quantity = f"the {_WATCHED[what]} of contact {base.contacts.names[contact]!r}"
        return Watch(contact, what, Event(function, True, -1.0))

    found = []
    for i, what in enumerate(mode.statuses):
        if what == OPEN:
            found.append(watch(i, CLOSES, here(gaps[i]) + data[0]))
            continue
        N = -symbols["lam"][mode.normal_rows[i]]
        found.append(watch(i, RELEASES, N))
        if what == STICK:
            F, bound = symbols["lam"][mode.slip_rows[i]], here(laws[i][2]) * N
            found.append(watch(i, BREAKS, bound * bound - ca.sumsqr(F)))
        elif what == SLIDE:
            slip = here(slips[i])
            along = ca.dot(slip, data[2 + 2 * i : 2 + 2 * i + slip.numel()])
            found.append(watch(i, STOPS, along if slip.numel() == 1 else along - ca.sqrt(data[1])))
    return found
