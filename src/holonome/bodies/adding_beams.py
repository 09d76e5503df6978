"""The beams and cables that a mechanism can be given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import casadi as ca
import numpy as np

from holonome.arguments import shown
from holonome.bodies.adding_forces import AddingForces
from holonome.bodies.adding_joints import AddingJoints
from holonome.bodies.body import Body, Numbers, Point
from holonome.bodies.geometry import ZERO
from holonome.bodies.joint import Joint
from holonome.bodies.load import Between
from holonome.bodies.modes import ENDS, ModalBeam, Shapes, bending_shapes, rod_shapes
from holonome.bodies.section import Rigidity, Section, positive_length, rigidity, section_of
from holonome.bodies.segments import Beam, Cable, SegmentBeam
from holonome.errors import ModelError


class AddingBeams(AddingJoints, AddingForces):
    """The methods of a mechanism that add beams and cables."""

    def __init__(
        self,
        name: str,
        gravity: Numbers,
        parameters: Mapping[str, Any] | None,
        inputs: Mapping[str, Any] | None,
    ) -> None:
        super().__init__(name, gravity, parameters, inputs)
        self.beams: dict[str, Beam] = {}

    def beam(
        self,
        name: str,
        length: float,
        *,
        segments: int | None = None,
        modes: int | Sequence[Callable] | None = None,
        section: Section | None = None,
        area: Numbers | None = None,
        inertia: Numbers | None = None,
        torsion: Numbers | None = None,
        E: Numbers | None = None,
        density: Numbers | None = None,
        poisson: Numbers = 0.3,
        damping: Numbers = 0.0,
        points: Mapping[str, float] | None = None,
        axial: int | Sequence[Callable] = 0,
        twist: int | Sequence[Callable] = 0,
        ends: Literal["clamped-free", "pinned-pinned"] = "clamped-free",
        stiffening: bool = True,
        stations: int | None = None,
    ) -> SegmentBeam | ModalBeam:
        """Add an Euler–Bernoulli beam along x, of segments for any bending, or by modes for a small one.

        Parameters
        ----------
        name : str
            What it is called; its bodies are called ``"name 1"``, ``"name 2"``, …
        length : float
            Its length.
        segments : int
            Make it of so many rigid pieces with elastic joints between them; the first and the last are half
            as long as the others.
        modes : int or list of functions
            Make it a frame with so many shapes of bending in each plane; or with these, as functions of the
            distance x from the left end.
        section : Section
            Its cross-section, such as ``hn.bodies.Section.rectangle(width, height)``; or
        area, inertia, torsion : numbers
            area, second moment of area (in space one for bending in the x-y and one in the x-z plane), and
            torsion constant.
        E, density, poisson : number
            Young's modulus, mass by volume, and Poisson's ratio.
        damping : number
            A time τ: stress is E (strain + τ · rate of strain).
        points : dict, optional
            Names of points and their distances from the left end; "left" and "right" are there.
        axial, twist : int or list of functions
            By modes: how many shapes of axial displacement, and in space of twist.  Of segments: whether it
            can be stretched; it always twists.
        ends : "clamped-free" or "pinned-pinned"
            By modes: what the shapes of bending vanish at.  The frame lies along the tangent at the left end,
            or along the chord.
        stiffening : bool
            By modes: whether bending shortens the chord, from which follows that a beam becomes stiffer when
            it is spun or pulled.
        stations : int, optional
            By modes: at how many points along the beam its mass is taken.

        Returns
        -------
        Beam
            ``beam["left"]``, ``beam["right"]``, ``beam["name"]`` and ``beam.at(x)`` are points for joints and
            forces.

        Examples
        --------
        >>> import holonome as hn
        >>> m = hn.Mechanism("diving board", gravity=(0, -9.81))
        >>> bar = hn.bodies.Section.rectangle(width=0.5, height=0.03)
        >>> board = m.beam("board", 3.0, modes=2, section=bar, E=7e10, density=2700)
        >>> _ = m.fixed("clamp", m.ground.at(0, 0), board["left"])
        >>> sol = hn.solve(m, (0, 0.1))
        >>> bool(sol.body("board right").position[1, -1] < 0)
        True
        """
        length = positive_length(name, length)
        if (segments is None) == (modes is None):
            raise ModelError(f"{name}: give segments= or modes=, one of them")
        found = section_of(name, section, area, inertia, torsion)
        material = {"E": E, "density": density, "poisson": poisson, "damping": damping}
        resists = rigidity(self, name, found, material)
        if segments is not None:
            count = _count(f"{name}.segments", segments, 2)
            beam = SegmentBeam(name, length, count, resists, self.dimension, points, bool(axial))
            return self._add_segments(beam)
        shapes = self._shapes(name, length, modes, axial, twist, ends, stiffening)
        return self._add_modes(name, length, shapes, stations, resists, points)

    def cable(
        self,
        name: str,
        length: float,
        *,
        segments: int,
        mass: Numbers,
        EA: Numbers | None = None,
        damping: Numbers = 0.0,
        tension_only: bool = True,
    ) -> Cable:
        """Add a cable, which does not resist bending: point masses with links between them.

        Parameters
        ----------
        name : str
            What it is called; its point masses are called ``"name 1"``, ``"name 2"``, …
        length : float
            Its length without load.
        segments : int
            How many links it has.
        mass : number
            Its mass; half a link's is at each end.
        EA : number, optional
            Young's modulus times area; without it, the cable cannot be stretched.
        damping : number
            Of an elastic cable: a time τ, force = EA (strain + τ · rate of strain).
        tension_only : bool
            Of an elastic cable: its links give way to compression.  Without this they are springs, whose
            stiffness ``motion="smooth"`` knows.

        Returns
        -------
        Cable
            ``cable["left"]``, ``cable["right"]`` and ``cable.at(x)`` are points for joints and forces, and
            ``cable.hanging(a, b)`` is a start.

        Examples
        --------
        >>> import holonome as hn
        >>> m = hn.Mechanism("swing", gravity=(0, -9.81))
        >>> rope = m.cable("rope", 3.0, segments=6, mass=1.2)
        >>> _ = m.revolute("A", m.ground.at(0, 0), rope["left"])
        >>> _ = m.revolute("B", m.ground.at(2, 0), rope["right"])
        >>> sol = hn.solve(m, (0, 0.5), start=rope.hanging((0, 0), (2, 0)))
        >>> bool(sol.success)
        True
        """
        length = positive_length(name, length)
        count = _count(f"{name}.segments", segments, 1)
        values = {"mass": mass, "damping": damping} | ({} if EA is None else {"EA": EA})
        numbers = {key: self._scalar(f"{name}.{key}", value) for key, value in values.items()}
        for key, value in numbers.items():
            if value.is_constant() and not (float(value) > 0 or (key == "damping" and float(value) == 0)):
                raise ModelError(f"{name}.{key}: {float(value):g}; give a positive number")
        each = numbers["mass"] / count
        masses = [
            self._lump(f"{name} {k + 1}", each if 0 < k < count else each / 2) for k in range(count + 1)
        ]
        cable = Cable(name, length, masses, self._down)
        self._link(cable, length / count, numbers, tension_only)
        self.beams[name] = cable
        return cable

    def _lump(self, name: str, mass: ca.SX) -> Body:
        self._new(name)
        points: dict[str, Point] = {}
        body = Body(name, self.dimension, mass, ca.SX(3, 3), ZERO, points, rotates=False)
        points[name] = Point(body, name, ZERO)
        self.bodies[name] = body
        return body

    def _link(self, cable: Cable, h: float, numbers: Mapping[str, ca.SX], tension_only: bool) -> None:
        """The links from each point mass to the next."""
        elastic = "EA" in numbers
        if elastic:
            for body in cable.bodies:
                self.free(body)
        for k, (a, b) in enumerate(zip(cable.line, cable.line[1:], strict=False)):
            name = f"{cable.name} link {k + 1}"
            if not elastic:
                self.distance(name, a, b, h)
                continue
            stiffness, damping = numbers["EA"] / h, numbers["EA"] / h * numbers["damping"]
            if tension_only:
                self._add_force(Between(name, (a, b), _pull(h, stiffness, damping)))
            else:
                self.spring(name, a, b, stiffness=stiffness, damping=damping, length=h)

    def _down(self) -> np.ndarray:
        """Where cables hang: along gravity if it is a number other than zero, else along −y or −z."""
        down = -np.eye(self.dimension)[self.dimension - 1]
        if self.gravity.is_constant() and np.any(np.array(ca.DM(self.gravity))):
            return np.array(ca.DM(self.gravity)).ravel()[: self.dimension]
        return down

    def _shapes(
        self, name: str, length: float, modes: Any, axial: Any, twist: Any, ends: Any, stiffening: bool
    ) -> Shapes:
        if ends not in ENDS:
            raise ModelError(f"{name}.ends: {shown(ends)}; give {' or '.join(map(repr, ENDS))}")
        if self.dimension == 2 and twist:
            raise ModelError(f"{name}.twist: beams twist in space alone; leave it out in the plane")
        bending = bending_shapes(name, modes, ends, length)
        planes = [bending] * (self.dimension - 1)
        along, about = rod_shapes(f"{name}.axial", axial, length), rod_shapes(f"{name}.twist", twist, length)
        shapes = Shapes(planes, along, about, bool(stiffening))
        if not shapes.count:
            raise ModelError(f"{name}.modes: 0; give at least one shape, or use m.body for a rigid one")
        return shapes

    def _add_segments(self, beam: SegmentBeam) -> SegmentBeam:
        for body in beam.bodies:
            self._new(body.name)
            self.bodies[body.name] = body
        for bend in beam.bends:
            self._add_joint(bend)
        self._add_force(beam.spring)
        self.beams[beam.name] = beam
        return beam

    def _add_modes(
        self, name: str, length: float, shapes: Shapes, stations: Any, resists: Rigidity, points: Any
    ) -> ModalBeam:
        most = max(len(shapes.bending[0]), len(shapes.axial), len(shapes.twist))
        count = _count(f"{name}.stations", 2 * most + 4 if stations is None else stations, 2)

        def add(body: Body, joint: Joint | None) -> None:
            self._new(body.name)
            self.bodies[body.name] = body
            if joint is not None:
                self._add_joint(joint)

        beam = ModalBeam(name, length, shapes, count, resists, self.dimension, points, add)
        self._add_force(beam.spring)
        self.beams[name] = beam
        return beam


def _pull(h: float, stiffness: ca.SX, damping: ca.SX) -> Callable[[dict[str, Any]], ca.SX]:
    """The force in a link that gives way to compression."""

    def law(given: dict[str, Any]) -> ca.SX:
        force = stiffness * (given["distance"] - h) + damping * given["rate"]
        return ca.if_else(given["distance"] > h, ca.fmax(force, 0), 0)

    return law


def _count(argument: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ModelError(f"{argument}: {shown(value)}; give a whole number of at least {least}")
    return int(value)
