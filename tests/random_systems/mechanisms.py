"""The functions of a random system, in units in which all is of order one.

They are analytic in q and t where derivatives are wanted (mass, constraint, deformation), so that the
reference can differentiate them in the complex plane; holonome traces the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from random_systems.structures import Structure

CALLED_PART = 0.2
"""Of the interval, where constraints are called in Python: a millisecond for each evaluation."""


@dataclass(eq=False)
class Mechanism:
    """M(t, q) v′ = f − c − Gᵀλ with g = 0 and A v = b, and a start that may be off the constraints.

    ``inertial`` is c(q, v) as a formula, for those who write it into their force; ``breaks`` are the times at
    which forces have kinks or jump.
    """

    n: int
    q0: np.ndarray
    v0: np.ndarray
    mass: Callable
    force: Callable
    constraint: Callable | None = None
    velocity: Callable | None = None
    inertial: Callable | None = None
    elastic: tuple[Callable, float, float] | None = None
    rate: Callable | None = None
    states: list[float] = field(default_factory=list)
    equations: Callable | None = None
    unknowns: list[float] = field(default_factory=list)
    potential: Callable | None = None
    breaks: list[float] = field(default_factory=list)
    friction: bool = False
    t_end: float = 1.0


def chain(random, k, moving):
    """Points in the plane on rods, from a pivot that may move."""
    lengths, shake = random.uniform(0.5, 1.5, k), 0.2 * moving

    def constraint(t, q):
        points = q.reshape(k, 2)
        first = points[0] - np.array([shake * np.sin(3 * t), 0.0])
        rods = [first] + [points[i + 1] - points[i] for i in range(k - 1)]
        return np.array([rod @ rod for rod in rods]) - lengths**2

    angles = random.uniform(-np.pi, np.pi, k)
    return np.cumsum(
        lengths[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1), axis=0
    ).ravel(), constraint


def loop(random, k, moving):
    """The same with its end on another rod: a loop, with k − 1 ways to move."""
    q0, open_rows = chain(random, k, moving)
    anchor = np.array([1.5, 0.3])
    length = q0[-2:] - anchor @ np.eye(2)
    square = length @ length
    return q0, lambda t, q: np.append(open_rows(t, q), (q[-2:] - anchor) @ (q[-2:] - anchor) - square)


def rigid_bodies(random, k, moving):
    """Bodies (x, y, φ) in a row, hinged to each other."""
    half, shake = random.uniform(0.3, 0.8, k), 0.2 * moving

    def constraint(t, q):
        x, y, angle = q[0::3], q[1::3], q[2::3]
        end_x = np.append(shake * np.sin(2 * t), (x + half * np.cos(angle))[:-1])
        end_y = np.append(0.0, (y + half * np.sin(angle))[:-1])
        return np.append(x - half * np.cos(angle) - end_x, y - half * np.sin(angle) - end_y)

    angles = random.uniform(-np.pi, np.pi, k)
    ends = np.cumsum(2 * half[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1), axis=0)
    centres = ends - half[:, None] * np.stack([np.cos(angles), np.sin(angles)], 1)
    return np.column_stack([centres, angles]).ravel(), constraint


def surface(random, k, moving):
    """Points in space, each on an ellipsoid or on a hilly ground, with rods between them."""
    axes, hilly, breathing = random.uniform(0.5, 2, (k, 3)), random.random(k) < 0.5, 0.1 * moving
    q0 = random.normal(size=(k, 3))
    q0 /= np.sqrt(np.sum(axes * q0**2, axis=1))[:, None]
    q0[hilly, 2] = 0.3 * np.sin(q0[hilly, 0]) * np.cos(q0[hilly, 1])
    squares = np.sum(np.diff(q0, axis=0) ** 2, axis=1)

    def row(i, t, x):
        lift = breathing * np.sin(2 * t)
        if hilly[i]:
            return x[2] - 0.3 * np.sin(x[0]) * np.cos(x[1]) - lift
        return axes[i] @ x**2 - 1 - lift

    def constraint(t, q):
        x = q.reshape(k, 3)
        rods = [(x[i + 1] - x[i]) @ (x[i + 1] - x[i]) - squares[i] for i in range(k - 1)]
        return np.array([row(i, t, x[i]) for i in range(k)] + rods)

    return q0.ravel(), constraint


def rows(random, n, moving):
    """Any smooth rows."""
    m = int(random.integers(1, max(2, n // 2 + 1)))
    linear, waves, phases = random.normal(size=(m, n)), random.normal(size=(m, n)), random.normal(size=m)
    q0, shake = random.uniform(-1, 1, n), 0.3 * moving
    offset = linear @ q0 + np.sin(waves @ q0 + phases)
    return q0, lambda t, q: linear @ q + np.sin(waves @ q + phases) - offset - shake * np.sin(3 * t)


def free(random, n, moving):
    return random.uniform(-1, 1, n), None


BODIES = {
    "chain": chain,
    "loop": loop,
    "rigid bodies": rigid_bodies,
    "surface": surface,
    "rows": rows,
    "angles": free,
    "coordinates": free,
}


def waving_mass(constant, waves):
    """M(q) = constant + Σ B sin(w q + φ), and its c(q, v) by formula."""

    def mass(t, q):
        return constant + sum(B * np.sin(w @ q + phase) for B, w, phase in waves)

    def inertial(q, v):
        parts = [np.cos(w @ q + phase) * ((w @ v) * (B @ v) - 0.5 * (v @ B @ v) * w) for B, w, phase in waves]
        return sum(parts)

    return mass, inertial


def pendulum_mass(k):
    """Of a multiple pendulum in angles, with some inertia at the joints."""
    waves = []
    for i in range(k):
        for j in range(i):
            B = np.zeros((k, k))
            B[i, j] = B[j, i] = (k - i) / k
            waves.append((B, np.eye(k)[i] - np.eye(k)[j], np.pi / 2))
    return waving_mass(np.diag((k - np.arange(k)) / k) + 0.2 * np.eye(k), waves)


def masses(random, structure: Structure, n):
    if structure.bodies == "angles":
        return pendulum_mass(n)
    diagonal = np.diag(random.uniform(0.5, 2, n))
    root = random.normal(size=(n, n)) / np.sqrt(n)
    match structure.mass:
        case "full":
            diagonal = diagonal + root.T @ root
        case "of t":
            return (lambda t, q: (1 + 0.4 * np.sin(2 * t)) * diagonal), None
        case "of q":
            shapes = random.normal(size=(2, n))
            waves = [(0.4 * np.outer(b, b) / (b @ b), random.normal(size=n), random.normal()) for b in shapes]
            return waving_mass(diagonal + np.eye(n), waves)
    return (lambda t, q: diagonal), None


def forces(random, structure: Structure, n, q0):
    """f(t, q, v), the potential of its conservative part, and the times of its kinks."""
    weight, push = random.normal(size=n), random.normal(size=n)
    k = {"": 0.0, "soft": random.uniform(1, 20), "stiff": 10 ** random.uniform(3, 4.5)}[structure.spring]
    rest = q0 + 0.1 * random.normal(size=n) / (100 if structure.spring == "stiff" else 1)
    c = random.uniform(0.1, 2)
    jump, knots = random.uniform(0.2, 0.6), np.linspace(0, 2, 12)
    table, level = random.normal(size=12), q0[0] + 0.05

    def force(t, q, v):
        f = weight - k * (q - rest)
        if structure.damping == "linear":
            f = f - c * v
        if structure.damping == "drag":
            f = f - c * np.abs(v) * v
        if structure.in_time == "jump":
            f = f + np.where(t > jump, 2.0, -1.0) * push
        if structure.in_time == "table":
            f = f + np.interp(t, knots, table) * push
        if structure.in_time == "sine":
            f = f + np.sin(7 * t) * push
        if structure.in_space == "where":
            f = f + np.where(q[0] > level, 0.5, -0.5) * push
        if structure.in_space == "abs":
            f = f - np.abs(q - level) * push
        return f

    breaks = {"jump": [jump], "table": list(knots)}.get(structure.in_time, [])
    return force, (lambda q: -(weight @ q) + 0.5 * k * (q - rest) @ (q - rest)), breaks


def with_massless(random, part: Mechanism) -> Mechanism:
    """One more coordinate u without mass, u = h(q), on which a spring acts."""
    n, inner_mass, inner_force, rows = part.n, part.mass, part.force, part.constraint
    arms = random.normal(size=n) / np.sqrt(n)

    def mass(t, q):
        M = inner_mass(t, q[:n])
        return np.concatenate([np.concatenate([M, np.zeros((n, 1))], axis=1), np.zeros((1, n + 1))])

    def force(t, q, v, s, w, lam):
        return np.append(inner_force(t, q[:n], v[:n], s, w, lam), -3.0 * q[n])

    part.constraint = lambda t, q, w: np.append(rows(t, q[:n], w), q[n] - np.sin(arms @ q[:n]))
    part.mass, part.force = mass, force
    part.q0, part.v0, part.n = np.append(part.q0, np.sin(arms @ part.q0)), np.append(part.v0, 0.0), n + 1
    if part.inertial is not None:
        inner = part.inertial
        part.inertial = lambda q, v: np.append(inner(q[:n], v[:n]), 0.0)
    if part.velocity is not None:
        row = part.velocity
        part.velocity = lambda t, q, v: row(t, q[:n], v[:n])
    return part


def make(random: np.random.Generator, structure: Structure) -> Mechanism:
    """A mechanism of this structure."""
    q0, rows = BODIES[structure.bodies](random, structure.size, structure.moving)
    n = q0.size
    mass, inertial = masses(random, structure, n)
    applied, potential, breaks = forces(random, structure, n, q0)
    part = Mechanism(n, q0, random.normal(size=n), mass, applied, inertial=inertial, breaks=breaks)
    part.t_end = float(random.uniform(0.4, 1.5)) * (CALLED_PART if structure.called == "constraint" else 1.0)
    part.potential, part.friction = potential, structure.friction
    along, mu = random.normal(size=n), random.uniform(0.05, 0.3)
    drive = 0.2 * structure.moving
    if structure.states:
        part.states = [0.3, -0.2]
        part.rate = lambda t, q, v, s: np.array([v[0] - 2 * s[0], s[0] - s[1] + np.sin(q[-1])])
    if structure.unknowns:
        part.unknowns = [0.0]
        part.equations = lambda q, w: w[0] + 0.3 * np.sin(w[0]) - q[0]
    in_rows = 0.1 * (structure.unknowns == "constraint")

    def force(t, q, v, s, w, lam):
        f = applied(t, q, v)
        if structure.states:
            f = f + s[1] * along
        if structure.unknowns:
            f = f - 0.5 * w[0] * along
        if structure.friction:
            f = f - mu * np.sqrt(lam[0] ** 2 + 0.01) * v / np.sqrt(v @ v + 0.01)
        return f

    def constraint(t, q, w):
        g = rows(t, q)
        if in_rows:
            g = g + in_rows * np.append(w[0], np.zeros(g.shape[0] - 1))
        return np.append(g, 2 * g[0] - g[-1]) if structure.redundant else g

    part.force = force
    part.constraint = constraint if rows is not None else None
    if structure.velocity_constraint:
        arms = random.normal(size=(n, n)) / np.sqrt(n)
        part.velocity = lambda t, q, v: (along + np.sin(arms @ q)) @ v - drive * np.sin(t)
    if structure.elastic:
        middle = random.normal(size=n)
        place = middle @ q0
        K, D = (10.0, 0.3) if structure.elastic == "soft" else (3e3, 10.0)
        part.elastic = (lambda t, q: np.sin(0.5 * (middle @ q[:n] - place)) + 0.01 * np.sin(3 * t), K, D)
    return with_massless(random, part) if structure.massless else part
