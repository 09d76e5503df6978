"""Flexible bodies by modes: beams whose deflection from a frame is a sum of shapes times amplitudes.

The frame is a body without mass.  The mass sits in *stations*, at the points of a Gauss quadrature along the
beam, so that the mass integrals are those of the shapes to many digits.  A station of the distance x from the
left end is displaced and turned in the frame by

    u_y = Σ φ_i(x) a_i        θ_z = Σ φ_i′(x) a_i        and alike for z,
    u_x = Σ ψ_k(x) b_k − ½ ∫₀ˣ (u_y′² + u_z′²) dx        θ_x = Σ χ_k(x) c_k

The integral is the shortening of the chord by bending.  Without it a spinning beam becomes soft where it
must become stiff: T. R. Kane, R. R. Ryan and A. K. Banerjee, "Dynamics of a cantilever beam attached to a
moving base", J. Guid. Control Dyn. 10 (1987) 139-151.  All stations share the amplitudes, whose strain energy
is that of the shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
from numpy.polynomial import Chebyshev

from holonome.arguments import shown
from holonome.bodies.body import Body, Point
from holonome.bodies.geometry import ZERO
from holonome.bodies.joint import DISPLACEMENT, SLIDE, TURN, Coordinate, LowerPair, Motion
from holonome.bodies.load import Scene, Spring, Wrench
from holonome.bodies.section import Rigidity
from holonome.bodies.segments import Beam
from holonome.errors import ModelError

_DEGREE = 40
ENDS = ("clamped-free", "pinned-pinned")


def bending_shapes(name: str, given: Any, ends: str, length: float) -> list[Chebyshev]:
    """Shapes of a beam with these ends, or the user's own."""
    makers = {"clamped-free": _clamped_free, "pinned-pinned": lambda k: partial(_sine, k * np.pi)}
    return _shapes(f"{name}.modes", given, makers[ends], length)


def rod_shapes(argument: str, given: Any, length: float) -> list[Chebyshev]:
    """Shapes of axial displacement or twist, fixed on the left and free on the right, or the user's own."""
    return _shapes(argument, given, lambda k: partial(_sine, (k - 0.5) * np.pi), length)


def _shapes(argument: str, given: Any, make: Callable, length: float) -> list[Chebyshev]:
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool) and 0 <= given <= 12:
        functions: list[Callable] = [partial(_scaled, make(k + 1), length) for k in range(int(given))]
    elif isinstance(given, (list, tuple)) and all(callable(shape) for shape in given):
        functions = list(given)
    else:
        raise ModelError(
            f"{argument}: {shown(given)}; give a number of shapes, at most 12, or a list of functions of x"
        )
    return [_interpolated(f"{argument}[{k}]", shape, length) for k, shape in enumerate(functions)]


def _interpolated(argument: str, shape: Callable, length: float) -> Chebyshev:
    try:
        found = Chebyshev.interpolate(
            lambda x: np.array([float(shape(one)) for one in x]), _DEGREE, domain=[0.0, length]
        )
    except Exception as error:
        raise ModelError(
            f"{argument}: {error}; give a function of the distance x from the left end"
        ) from error
    size = np.max(np.abs(found.coef), initial=0.0)
    if not 0 < size < np.inf or np.max(np.abs(found.coef[-4:])) > 1e-8 * size:
        raise ModelError(
            f"{argument}: a shape must be finite, smooth and not zero from 0 to {length:g}; it has kinks, or "
            "too many waves"
        )
    return found.trim(1e-15 * size)


def _scaled(shape: Callable, length: float, x: float) -> float:
    return shape(x / length)


def _sine(wave: float, x: np.ndarray) -> np.ndarray:
    return np.sin(wave * x)


def _clamped_free(k: int) -> Callable:
    """The k-th shape of a cantilever of length 1, with cosh and sinh combined so that nothing cancels."""
    from scipy.optimize import brentq

    centre = (k - 0.5) * np.pi
    beta: Any = brentq(lambda b: np.cos(b) + 1 / np.cosh(b), centre - 0.5, centre + 0.5, xtol=1e-15)
    divisor = np.sinh(beta) + np.sin(beta)
    rest = (np.sin(beta) - np.cos(beta) - np.exp(-beta)) / divisor  # 1 − σ
    sigma = 1 - rest

    def shape(x: np.ndarray) -> np.ndarray:
        growing = (rest * np.exp(beta * x) + (1 + sigma) * np.exp(-beta * x)) / 2
        return (growing - np.cos(beta * x) + sigma * np.sin(beta * x)) / 2

    return shape


@dataclass(frozen=True, eq=False)
class Shapes:
    """All shapes of a beam, in the order of their amplitudes.

    Attributes
    ----------
    bending
        For displacements along y, and in space along z.
    axial, twist
        For displacements along x and turns about x.
    stiffening
        Whether bending shortens the chord.
    """

    bending: list[list[Chebyshev]]
    axial: list[Chebyshev]
    twist: list[Chebyshev]
    stiffening: bool
    slopes: list[list[Chebyshev]] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "slopes", [[phi.deriv() for phi in plane] for plane in self.bending])

    @property
    def names(self) -> list[str]:
        planes = ["bending"] if len(self.bending) == 1 else ["bending y", "bending z"]
        kinds = [*zip(planes, self.bending, strict=True), ("axial", self.axial), ("twist", self.twist)]
        return [f"{kind} {k + 1}" for kind, shapes in kinds for k in range(len(shapes))]

    @property
    def count(self) -> int:
        return sum(map(len, self.bending)) + len(self.axial) + len(self.twist)

    def parts(self, amplitudes: ca.SX) -> list[ca.SX]:
        """The amplitudes of each plane of bending, axial ones, and those of twist."""
        sizes = [*map(len, self.bending), len(self.axial), len(self.twist)]
        return list(ca.vertsplit(amplitudes, np.cumsum([0, *sizes]).tolist()))

    def motions(self, x: float) -> tuple[Motion, ...]:
        """How a station moves in the frame; what does not move it is left out."""
        planes = range(len(self.bending))
        functions = [(SLIDE, 0, self._along(x))]
        functions += [(SLIDE, 1 + k, self._sum(k, _values(self.bending[k], x))) for k in planes]
        functions += [(TURN, 2 - k, self._sum(k, (1 - 2 * k) * _values(self.slopes[k], x))) for k in planes]
        functions.append((TURN, 0, self._sum(-1, _values(self.twist, x))))
        return tuple(
            Motion(kind, axis, of=f, count=self.count) for kind, axis, f in functions if f is not None
        )

    def _sum(self, part: int, row: np.ndarray) -> Callable | None:
        if not np.any(row):
            return None
        return lambda amplitudes: ca.dot(ca.SX(ca.DM(row)), self.parts(amplitudes)[part])

    def _along(self, x: float) -> Callable | None:
        """The displacement along x: axial shapes, less what bending takes."""
        row = _values(self.axial, x)
        matrices = [self.shortening(k, x) for k in range(len(self.bending))] if self.stiffening and x else []
        if not np.any(row) and not matrices:
            return None

        def of(amplitudes: ca.SX) -> ca.SX:
            *bending, axial, _ = self.parts(amplitudes)
            found = ca.dot(ca.SX(ca.DM(row)), axial) if row.size else ca.SX(0)
            for matrix, a in zip(matrices, bending, strict=False):
                found -= ca.bilin(ca.SX(ca.DM(matrix)), a, a) / 2
            return found

        return of

    def shortening(self, plane: int, x: float) -> np.ndarray:
        """∫₀ˣ φ_i′ φ_j′ dx."""
        slopes = self.slopes[plane]
        found = np.array([[(f * g).integ(lbnd=0.0)(x) for g in slopes] for f in slopes])
        return (found + found.T) / 2

    def stiffness(self, rigidity: Rigidity) -> ca.SX:
        """Of all amplitudes, by the strain energy of the shapes."""
        blocks = [EI * _gram(plane, 2) for EI, plane in zip(rigidity.EI, self.bending, strict=False)]
        blocks += [rigidity.EA * _gram(self.axial, 1), rigidity.GJ * _gram(self.twist, 1)]
        return ca.diagcat(*[block for block in blocks if block.numel()])


def _values(shapes: Sequence[Chebyshev], x: float) -> np.ndarray:
    """Of shapes at x; what is there but for rounding is zero."""
    found = np.array([shape(x) for shape in shapes])
    sizes = np.array([np.sum(np.abs(shape.coef)) for shape in shapes])
    return np.where(np.abs(found) < 1e-10 * sizes, 0.0, found)


def _gram(shapes: Sequence[Chebyshev], order: int) -> ca.SX:
    """∫ of products of derivatives; what vanishes but for rounding is zero."""
    found = np.zeros((len(shapes), len(shapes)))
    derivatives = [shape.deriv(order) for shape in shapes]
    for i, f in enumerate(derivatives):
        for j, g in enumerate(derivatives[: i + 1]):
            begin, end = f.domain
            found[i, j] = found[j, i] = (f * g).integ(lbnd=begin)(end)
    size = np.sqrt(np.diag(found))
    return ca.sparsify(ca.SX(ca.DM(np.where(np.abs(found) < 1e-9 * np.outer(size, size), 0.0, found))))


class Deflection(LowerPair):
    """Holds a station in the frame of a flexible body, where its amplitudes say."""

    def __init__(self, name: str, beam: str, a: Point, b: Point, shapes: Shapes, x: float) -> None:
        super().__init__(name, "fixed", a, b)
        self.what, self.amplitudes = "deflection", beam
        self.motions = shapes.motions(x)
        self.coordinates = tuple(Coordinate(mode, DISPLACEMENT) for mode in shapes.names)


class ModalSpring(Spring):
    """The elasticity of a flexible body: a stiffness of its amplitudes.  It acts within the body alone."""

    what = "beam"

    def __init__(self, name: str, joint: Deflection, stiffness: ca.SX, damping: ca.SX) -> None:
        self.name, self.joint = name, joint
        self.stiffness, self.damping = stiffness, damping * stiffness

    def deformation(self, scene: Scene) -> ca.SX:
        assert self.joint is not None
        return ca.vertcat(*scene.kinematics.coordinates(self.joint))

    def wrenches(self, scene: Scene) -> list[Wrench]:
        return []


class ModalBeam(Beam):
    """A beam by modes.

    Attributes
    ----------
    frame : Body
        The frame, along the beam without load.
    modes : str
        The joint whose coordinates are the amplitudes, for ``start`` and ``sol.joint``.
    """

    def __init__(
        self,
        name: str,
        length: float,
        shapes: Shapes,
        stations: int,
        rigidity: Rigidity,
        dimension: int,
        points: Any,
        add: Callable[[Body, Deflection | None], None],
    ) -> None:
        self.name, self.length, self.shapes, self._add = name, length, shapes, add
        self.frame = Body(name, dimension, ca.SX(0), ca.SX(3, 3), ZERO)
        self.modes = f"{name} modes"
        self.bodies, self._made = [], {}
        self.points = self._named(points)
        add(self.frame, None)
        nodes, weights = np.polynomial.legendre.leggauss(stations)
        for k, (node, weight) in enumerate(zip(nodes, weights, strict=True)):
            self._station(f"{name} {k + 1}", length * (node + 1) / 2, float(length * weight / 2), rigidity)
        for x in self.points.values():
            self.at(x)
        self.spring = ModalSpring(
            f"{name} elasticity", self.deflection, shapes.stiffness(rigidity), rigidity.damping
        )

    def _made_of(self) -> str:
        return f"{self.shapes.count} modes: {', '.join(self.shapes.names)}"

    def _station(self, name: str, x: float, share: float, rigidity: Rigidity | None) -> Point:
        inertia, mass = ca.SX(3, 3), ca.SX(0)
        if rigidity is not None:
            mass = rigidity.mass * share
            if self.frame.dimension == 3:
                inertia[0, 0] = rigidity.twisting * share
        points: dict[str, Point] = {}
        body = Body(name, self.frame.dimension, mass, inertia, ZERO, points)
        points["origin"] = Point(body, "origin", ZERO)
        place = Point(self.frame, f"{x:g}", ca.SX(ca.DM([x, 0, 0])))
        label = self.modes if not self.bodies else f"{name} deflection"
        joint = Deflection(label, self.name, place, points["origin"], self.shapes, x)
        if not self.bodies:
            self.deflection = joint
        self.bodies.append(body)
        self._made[x] = points["origin"]
        self._add(body, joint)
        return points["origin"]

    def at(self, x: float) -> Point:
        """The point at a distance x from the left end, displaced and turned with the beam."""
        x = self._distance(x)
        if not self.shapes.motions(x):
            return Point(self.frame, f"{x:g}", ca.SX(ca.DM([x, 0, 0])))
        if x not in self._made:
            label = next((name for name, place in self.points.items() if place == x), f"at {x:g}")
            self._station(f"{self.name} {label}", x, 0.0, None)
        return self._made[x]

    @property
    def line(self) -> list[Point]:
        places = sorted({0.0, self.length, *self._made})
        return [self.at(x) for x in places]
