"""Cross-sections and materials of beams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import real_number, shown
from holonome.bodies.parts import Parts
from holonome.errors import ModelError
from holonome.tracing.values import has_traced


@dataclass(frozen=True)
class Section:
    """The cross-section of a beam along x.

    Parameters
    ----------
    area : number
        Its area.
    inertia : number or two numbers
        Second moment of area for bending in the x-y plane; in space those for bending in the x-y and in the
        x-z plane, one number if they are equal.
    torsion : number, optional
        Torsion constant; the sum of both second moments by default, which holds for round sections.

    Examples
    --------
    >>> from holonome.bodies import Section
    >>> Section.rectangle(width=0.02, height=0.01).area
    0.0002
    """

    area: Any
    inertia: Any
    torsion: Any = None

    @classmethod
    def rectangle(cls, width: float, height: float) -> Section:
        """``height`` is measured along y, ``width`` along z."""
        w, h = _positive("width", width), _positive("height", height)
        a, b = max(w, h), min(w, h)
        torsion = a * b**3 * (1 / 3 - 0.21 * b / a * (1 - b**4 / (12 * a**4)))
        return cls(w * h, (w * h**3 / 12, h * w**3 / 12), torsion)

    @classmethod
    def circle(cls, diameter: float, inner: float = 0.0) -> Section:
        """A rod, or a tube with an inner diameter."""
        d, d_i = _positive("diameter", diameter), real_number(inner)
        if not 0 <= d_i < d:
            raise ModelError(f"inner: {inner!r}; give a number from 0 to the diameter {d:g}")
        return cls(np.pi / 4 * (d**2 - d_i**2), np.pi / 64 * (d**4 - d_i**4))


def _positive(argument: str, value: Any) -> float:
    try:
        number = real_number(value)
        if not 0 < number < np.inf:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"{argument}: {shown(value)}; give a positive number") from None
    return number


def positive_length(name: str, length: Any) -> float:
    if has_traced(length):
        raise ModelError(f"{name}.length: a beam's length cannot be a parameter; give a number")
    return _positive(f"{name}.length", length)


@dataclass(frozen=True, eq=False)
class Rigidity:
    """What a beam with its section and material resists with, and how heavy it is, per length.

    Attributes
    ----------
    EA, EI, GJ
        Against stretching; against bending in the x-y and the x-z plane; against twisting.
    mass
        Mass by length.
    twisting
        Moment of inertia about x by length.
    damping
        The time τ in stress = E (strain + τ · rate of strain).
    """

    EA: ca.SX
    EI: tuple[ca.SX, ca.SX]
    GJ: ca.SX
    mass: ca.SX
    twisting: ca.SX
    damping: ca.SX


def section_of(name: str, section: Any, area: Any, inertia: Any, torsion: Any) -> Section:
    """A section from what the user gave: a Section, or its numbers."""
    if section is not None:
        if not isinstance(section, Section):
            raise ModelError(
                f"{name}.section: {shown(section)}; give an hn.bodies.Section, such as "
                "hn.bodies.Section.rectangle(width, height), or area= and inertia="
            )
        if area is not None or inertia is not None:
            raise ModelError(f"{name}.section: it takes the place of area and inertia; leave those out")
        return section
    for argument, value in (("area", area), ("inertia", inertia)):
        if value is None:
            raise ModelError(
                f"{name}.{argument}: missing; give section=, or area= and inertia= (second moment of area)"
            )
    return Section(area, inertia, torsion)


def rigidity(parts: Parts, name: str, section: Section, material: Mapping[str, Any]) -> Rigidity:
    """From a section and ``E``, ``density``, ``poisson`` and ``damping``."""

    def number(argument: str, value: Any, zero: bool = False) -> ca.SX:
        if value is None:
            raise ModelError(f"{name}.{argument}: missing; give a number")
        found = parts._scalar(f"{name}.{argument}", value)
        if found.is_constant() and not (float(found) > 0 or (zero and float(found) == 0)):
            remedy = "that is not negative" if zero else "greater than 0"
            raise ModelError(f"{name}.{argument}: {float(found):g}; give a number {remedy}")
        return found

    area = number("area", section.area)
    both = section.inertia
    pair = both if np.ndim(np.asarray(both, dtype=object)) == 1 else (both, both)
    if len(pair) != 2:
        raise ModelError(f"{name}.inertia: {shown(both)}; give one or two second moments of area")
    I_y, I_z = (number("inertia", value) for value in pair)
    E, density = number("E", material["E"]), number("density", material["density"])
    G = E / (2 * (1 + number("poisson", material["poisson"], zero=True)))
    J = I_y + I_z if section.torsion is None else number("torsion", section.torsion)
    damping = number("damping", material["damping"], zero=True)
    return Rigidity(E * area, (E * I_y, E * I_z), G * J, density * area, density * (I_y + I_z), damping)
