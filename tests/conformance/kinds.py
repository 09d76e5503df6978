"""Kinds of systems: one function each, which makes a new system and says how it starts.

All forces contain ``life(t, p)``, which is zero up to the time p.until and not a number behind it, so that
options can make any system fail without another one being compiled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import holonome as hn


@dataclass(frozen=True, eq=False)
class Problem:
    """A system, its start and its end.

    Attributes
    ----------
    event
        A function that crosses zero once before the end, and not at a grazing angle.
    off_q, off_v
        What added to q0 or v0 violates the constraints by a tenth or so; None where nothing can.
    fails
        Whether ``life`` is part of it.
    steps
        How many there are of constant size.
    size
        Of the terms in the constraints, against which their residuals are measured.
    unique_multipliers
        Whether the multipliers can be compared.
    exact
        The solution as a function of time, by part, where dop853 cannot give it.
    residual
        The constraints as a function of t and x, where the solution does not tell them.
    """

    system: Any
    t_end: float
    q0: Any
    v0: Any = None
    event: Callable = lambda q: q[0] - 0.5
    off_q: Any = None
    off_v: Any = None
    atol: float = 1e-8
    fails: bool = True
    steps: int = 400
    size: float = 1.0
    unique_multipliers: bool = True
    exact: Callable[[float], dict[str, np.ndarray]] | None = None
    residual: Callable[[float, np.ndarray], Any] | None = None

    @property
    def higher_index(self) -> bool:
        return isinstance(self.system, (hn.Index2System, hn.Index3System))


KINDS: dict[str, Callable[[], Problem]] = {}


def kind(make: Callable[[], Problem]) -> Callable[[], Problem]:
    """Enter a function as a kind, under its name."""
    KINDS[make.__name__.replace("_", " ")] = make
    return make


LIFE = {"gravity": 9.81, "until": 1e6, "nought": 0.0}


def life(t, p):
    return p.nought * np.sqrt(p.until - t)


def weight(t, p):
    return np.array([life(t, p), -p.gravity])


def circle(q):
    return q @ q - 1


ON_CIRCLE = {"t_end": 0.8, "q0": [1.0, 0.0], "off_q": [0.1, 0.0], "off_v": [1.0, 0.0]}
"""A pendulum of length 1, released in the horizontal position."""

SHORTER = ON_CIRCLE | {"t_end": 0.25, "event": lambda q: q[1] + 0.2, "steps": 50}
"""The same for functions that are called in Python, which takes long."""


@kind
def pendulum() -> Problem:
    return Problem(hn.System(np.eye(2), weight, circle, parameters=LIFE), **ON_CIRCLE)


@kind
def taut_rope() -> Problem:
    """A pendulum on a rope that stays taut: a contact that is closed throughout."""
    rope = hn.Contact(lambda q: 1 - np.sqrt(q @ q), name="rope")
    system = hn.System(np.eye(2), weight, parameters=LIFE, contacts=rope)
    return Problem(system, t_end=0.8, q0=[1.0, 0.0], v0=[0.0, -3.0], off_v=None)


@kind
def states() -> Problem:
    """A pendulum in air that is set in motion by it, with a delay."""
    system = hn.System(
        np.eye(2),
        lambda t, v, s, p: weight(t, p) - 0.5 * (v - s),
        circle,
        states={"wind x": 0.3, "wind y": 0.0},
        rate=lambda v, s: 2 * (v - s),
        parameters=LIFE,
    )
    return Problem(system, **ON_CIRCLE)


@kind
def unknowns() -> Problem:
    """A pendulum whose constraint is written with its angle, which an equation determines."""
    system = hn.System(
        np.eye(2),
        weight,
        lambda q, w: q[0] * np.sin(w[0]) - q[1] * np.cos(w[0]) - 1,
        unknowns={"angle": 1.5},
        parameters=LIFE,
        equations=lambda q, w: q[0] * np.cos(w[0]) + q[1] * np.sin(w[0]),
    )
    return Problem(system, **ON_CIRCLE)


@kind
def forces_of_lam() -> Problem:
    """A bead on a wire, with friction in proportion to the force of the wire."""

    def force(t, v, lam, p):
        return weight(t, p) - 0.2 * np.sqrt(lam[0] ** 2 + 0.01) * v / np.sqrt(v @ v + 0.01)

    return Problem(hn.System(np.eye(2), force, lambda q: np.sqrt(q @ q) - 1, parameters=LIFE), **ON_CIRCLE)


@kind
def elastic() -> Problem:
    """A pendulum with a spring that is not stiff."""
    spring = hn.Elastic(lambda q: np.sqrt(q[0] ** 2 + (q[1] + 0.5) ** 2) - 0.8, stiffness=20.0, damping=0.1)
    return Problem(hn.System(np.eye(2), weight, circle, elastic=spring, parameters=LIFE), **ON_CIRCLE)


@kind
def redundant_rows() -> Problem:
    """A parallelogram on three bars, of which two suffice."""
    places = np.array([-0.5, 0.0, 0.5])

    def bars(q):
        x, y, angle = q
        return (x + places * np.cos(angle) - places) ** 2 + (y + places * np.sin(angle)) ** 2 - 1

    def force(t, p):
        return np.array([life(t, p), -p.gravity, 0.0])

    q0 = [math.sin(1.2), -math.cos(1.2), 0.0]
    return Problem(
        hn.System([1.0, 1.0, 0.1], force, bars, parameters=LIFE),
        t_end=0.8,
        q0=q0,
        off_q=[0.1, 0.0, 0.0],
        off_v=[1.0, 0.0, 0.0],
        unique_multipliers=False,
    )


@kind
def rheonomic() -> Problem:
    """A pendulum on a pivot that is shaken."""

    def rod(t, q):
        return (q[0] - 0.3 * np.sin(4 * t)) ** 2 + q[1] ** 2 - 1

    return Problem(hn.System(np.eye(2), weight, rod, parameters=LIFE), **(ON_CIRCLE | {"v0": [1.2, 0.0]}))


@kind
def velocity_constraint() -> Problem:
    """A skate on a slope."""
    system = hn.System(
        np.ones(3),
        lambda t, p: np.array([0.3 * p.gravity + life(t, p), 0.0, 0.0]),
        velocity_constraint=lambda q, v: v[0] * np.sin(q[2]) - v[1] * np.cos(q[2]),
        parameters=LIFE,
    )
    return Problem(
        system,
        t_end=1.0,
        q0=[0.0, 0.0, 0.0],
        v0=[0.0, 0.0, 1.7],
        off_v=[0.0, 0.3, 0.0],
        event=lambda q: q[2] - 1.0,
    )


@kind
def both_constraints() -> Problem:
    """A skate on a sphere."""
    system = hn.System(
        np.ones(4),
        lambda t, p: np.array([life(t, p), 0.0, -p.gravity / 10, 0.0]),
        lambda q: q[:3] @ q[:3] - 1,
        parameters=LIFE,
        velocity_constraint=lambda q, v: np.array([np.cos(q[3]), np.sin(q[3]), 0.0]) @ v[:3],
    )
    return Problem(
        system,
        t_end=1.0,
        q0=[1.0, 0.0, 0.0, math.pi / 2],
        v0=[0.0, 0.0, 1.0, 0.3],
        event=lambda q: q[2] - 0.4,
        off_q=[0.1, 0.0, 0.0, 0.0],
        off_v=[0.3, 0.0, 0.0, 0.0],
    )


@kind
def invariant() -> Problem:
    """A pendulum that holds its energy."""
    system = hn.System(
        np.eye(2), weight, circle, parameters=LIFE, invariant=lambda q, v, p: v @ v / 2 + p.gravity * q[1]
    )
    return Problem(system, **ON_CIRCLE)


@kind
def numba_force() -> Problem:
    """A force that cannot be traced, but compiled."""
    system = hn.System(np.eye(2), lambda q: np.array([-0.5 * float(q[0]), -9.81]), circle)
    return Problem(system, fails=False, **ON_CIRCLE)


NOT_FOR_NUMBA = {"length": 1.0, "pull": 0.5}
"""A function that looks something up here can only be called."""


@kind
def python_force() -> Problem:
    def force(t, q, p):
        return weight(t, p) - np.array([NOT_FOR_NUMBA["pull"] * float(q[0]), 0.0])

    return Problem(hn.System(np.eye(2), force, circle, parameters=LIFE), **SHORTER)


@kind
def python_constraint() -> Problem:
    def constraint(q):
        return float(q[0]) ** 2 + float(q[1]) ** 2 - NOT_FOR_NUMBA["length"]

    system = hn.System(np.eye(2), weight, constraint, parameters=LIFE)
    return Problem(system, **(SHORTER | {"t_end": 0.02, "event": lambda q: q[1] + 0.001}))


def rope(beads: int) -> Problem:
    """Point masses on a string, which swings from a slanting start."""

    def lengths(q):
        points = q.reshape(beads, 2)
        rods = np.concatenate([points[:1], points[1:] - points[:-1]])
        return beads * (np.sum(rods**2, axis=1) - 1 / beads**2)

    def force(t, q, p):
        return np.concatenate([weight(t, p)] + [np.array([0.0, -p.gravity])] * (beads - 1))

    q0 = np.outer(np.arange(1, beads + 1) / beads, [0.8, -0.6]).ravel()
    outwards = np.zeros(2 * beads)
    outwards[-2:] = [0.8, -0.6]
    return Problem(
        hn.System(np.ones(2 * beads), force, lengths, parameters=LIFE),
        t_end=0.1,
        q0=q0,
        off_q=0.1 * outwards,
        off_v=outwards,
        event=lambda q: q[-1] + 0.62,
        size=1 / beads,
    )


@kind
def large_rope() -> Problem:
    """More than 60 unknowns of BDF: its elimination is no longer emitted."""
    return rope(11)


@kind
def larger_rope() -> Problem:
    """More than 100 coordinates and constraints: those of the accelerations neither."""
    return rope(34)


@kind
def massless_coordinate() -> Problem:
    """A pendulum with its angle, which has no mass, carried along by two constraints."""
    system = hn.System(
        [1.0, 1.0, 0.0],
        lambda t, p: np.array([life(t, p), -p.gravity, 0.0]),
        lambda q: np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])]),
        parameters=LIFE,
    )
    return Problem(
        system, t_end=0.8, q0=[1.0, 0.0, math.pi / 2], off_q=[0.1, 0.0, 0.0], off_v=[1.0, 0.0, 0.0]
    )


@kind
def no_constraints() -> Problem:
    system = hn.System(np.eye(2), lambda t, q, v, p: weight(t, p) - 30 * q - 0.3 * v, parameters=LIFE)
    return Problem(system, t_end=0.5, q0=[1.0, 0.0], v0=[0.0, 1.0])


@kind
def ode() -> Problem:
    """Prey and predators."""
    system = hn.ODE(
        lambda t, x, p: np.array([x[0] * (1 - x[1]) + life(t, p), -1.5 * x[1] * (1 - x[0])]),
        n=2,
        parameters=LIFE,
    )
    return Problem(system, t_end=2.0, q0=[0.5, 0.7], event=lambda x: x[1] - 0.5)


@kind
def micrometres() -> Problem:
    """A pendulum of one micrometre."""
    system = hn.System(
        1e-15 * np.eye(2), lambda t, p: 1e-15 * weight(t, p), lambda q: q @ q - 1e-12, parameters=LIFE
    )
    return Problem(
        system,
        t_end=0.8e-3,
        q0=[1e-6, 0.0],
        off_q=[1e-7, 0.0],
        off_v=[1e-3, 0.0],
        event=lambda q: q[0] - 0.5e-6,
        atol=1e-14,
        size=1e-12,
    )


@kind
def index_2() -> Problem:
    """Ascher & Lin's example; x = (e^-t, sin t), y = e^t."""

    def constraint(t, x):
        return (x @ x - np.exp(-2 * t) - np.sin(t) ** 2) / 2

    def rate(t, x, p):
        return np.array([1 - np.exp(-t) + life(t, p), np.cos(t) + np.exp(t) * np.sin(t)])

    def exact(t):
        return {"x": np.array([np.exp(-t), np.sin(t)]), "y": np.array([np.exp(t)])}

    return Problem(
        hn.Index2System(rate, lambda x: x, constraint, n=2, parameters=LIFE),
        t_end=0.5,
        q0=[1.0, 0.0],
        off_q=[0.1, 0.0],
        event=lambda x: x[1] - 0.2,
        exact=exact,
        residual=constraint,
    )


@kind
def index_3() -> Problem:
    """A point that is driven around a circle; y is the force that holds it, 1 + sin(t) as given."""

    def constraint(t, x):
        return circle(x) / 2

    def acceleration(t, x, v, p):
        tangent = np.array([-np.sin(t * t), np.cos(t * t)])
        resistance = 0.5 * (v - 2 * t * tangent) - np.array([life(t, p), 0.0])
        return 2 * tangent + (1 + np.sin(t) - 4 * t * t) * x - resistance

    def exact(t):
        x = np.array([np.cos(t * t), np.sin(t * t)])
        return {"x": x, "v": 2 * t * np.array([-x[1], x[0]]), "y": np.array([1 + np.sin(t)])}

    return Problem(
        hn.Index3System(acceleration, lambda x: x, constraint, n=2, parameters=LIFE),
        t_end=0.8,
        q0=[1.0, 0.0],
        v0=[0.0, 0.0],
        off_q=[0.1, 0.0],
        off_v=[1.0, 0.0],
        event=lambda x: x[1] - 0.2,
        exact=exact,
        residual=constraint,
    )


def linkage(coordinates: str, gravity: tuple[float, ...]) -> hn.Mechanism:
    """Crank, coupler and rocker as bodies, with a motor."""
    zero = gravity[2:]
    m = hn.Mechanism("linkage", gravity=gravity, parameters=LIFE, coordinates=coordinates)
    before = m.ground.at(0, 0, *zero)
    for name, length in (("crank", 0.4), ("coupler", 0.9), ("rocker", 0.7)):
        J = length**3 / 12
        body = m.body(
            name,
            length,
            (1e-3, J, J) if zero else J,
            center=(length / 2, 0, *zero),
            points={"A": (0, 0, *zero), "B": (length, 0, *zero)},
        )
        m.revolute(f"{name} pin", before, body["A"])
        before = body["B"]
    m.revolute("D", before, m.ground.at(1, 0, *zero))
    m.torque("motor", "crank pin", lambda t, rate, p: 0.5 - 0.1 * rate + life(t, p))
    return m


def of_linkage(m: hn.Mechanism, **known: Any) -> Problem:
    start = {"crank pin": 1.0, "coupler pin": hn.near(-0.5)}
    q0, v0, _ = m.initial(0.0, start, {"crank pin": 4.0})
    event = m.event("crank pin", 2.0).function
    off = np.zeros(m.system.n)
    off[2] = 0.1
    return Problem(m.system, t_end=0.5, q0=q0, v0=v0, event=event, off_q=off, off_v=10 * off, **known)


@kind
def bodies_and_joints() -> Problem:
    """A four-bar in the plane, by the angles of its joints."""
    return of_linkage(linkage("joint", (0, -9.81)))


@kind
def bodies_of_their_own() -> Problem:
    """The same in space, in absolute coordinates with quaternions, limited to rows that are independent."""
    m = linkage("absolute", (0, -9.81, 0.0))
    m.limit("D", "x", "y")
    return of_linkage(m)
