"""Jansen's linkage: a crank moves a leg whose foot goes straight along the ground and lifts on its way back.

                  Y                    ZY = b = 41.5   XY = j = 50      two triangles  ZYV  and  UWP
            e  ╱╱ │ ╲ j                ZV = d = 40.1   YV = e = 55.8
             ╱╱ b │   ╲                ZW = c = 39.3   XW = k = 61.9    crank  OX = m = 15
            V──d──Z     X─m─O          VU = f = 39.4   UW = g = 36.7    Z = (−a, −l) = (−38, −7.8) from O
            │f    │c  ╱k               UP = h = 65.7   WP = i = 49
            U──g──W ╱
              ╲h  │i
                 ╲P

Two legs, mirror images of each other, share the crank. Seven bodies and ten hinges for each leg leave one
degree of freedom.

Data: Jansen's "eleven holy numbers" a … k with l and m, in centimetres (here metres: a hundredth of them);
bars of 1 kg per metre, triangles of the mass of their three sides with the moment of three bars; the crank is
a disc of 1 kg with a motor T = k (ω − φ′), k = 2, ω = −4. Start: φ = 0, φ′ = ω. Source: T. Jansen, The Great
Pretender, 010 Publishers, 2007.
"""

from typing import Any

import numpy as np

from holonome.bodies.assembly import near
from holonome.bodies.body import Body
from holonome.bodies.mechanism import Mechanism
from holonome.mechanisms.example import Example

NUMBERS = {"a": 38.0, "b": 41.5, "c": 39.3, "d": 40.1, "e": 55.8, "f": 39.4, "g": 36.7, "h": 65.7, "i": 49.0}
NUMBERS |= {"j": 50.0, "k": 61.9, "l": 7.8, "m": 15.0}


def meet(first: complex, radius: float, second: complex, other: float) -> complex:
    """Where two circles meet, on the left of the way from the first centre to the second."""
    way = second - first
    along = (abs(way) ** 2 + radius**2 - other**2) / (2 * abs(way))
    return first + (along + 1j * np.sqrt(radius**2 - along**2)) * way / abs(way)


def leg(angle: float) -> dict[str, complex]:
    """The joints of the left leg at an angle of the crank, in metres, as complex numbers."""
    n = {name: value / 100 for name, value in NUMBERS.items()}
    Z, X = -n["a"] - 1j * n["l"], n["m"] * np.exp(1j * angle)
    Y = meet(Z, n["b"], X, n["j"])
    V, W = meet(Z, n["d"], Y, n["e"]), meet(X, n["k"], Z, n["c"])
    U = meet(W, n["g"], V, n["f"])
    return {"Z": Z, "X": X, "Y": Y, "V": V, "W": W, "U": U, "P": meet(W, n["i"], U, n["h"])}


def rigid(m: Mechanism, name: str, corners: dict[str, complex]) -> Body:
    """A bar between two points, or a triangle of three bars; axes and places as in the drawing."""
    ends = list(corners.values())
    sides = [(ends[k - 1], end) for k, end in enumerate(ends)][: 3 if len(ends) == 3 else 1]
    masses = np.array([abs(b - a) for a, b in sides])
    middles = np.array([(a + b) / 2 for a, b in sides])
    center = complex(masses @ middles / masses.sum())
    inertia = float(masses**3 @ np.ones(len(sides)) / 12 + masses @ np.abs(middles - center) ** 2)
    points = {key: (z.real, z.imag) for key, z in corners.items()}
    return m.body(name, float(masses.sum()), inertia, center=(center.real, center.imag), points=points)


def add_leg(m: Mechanism, crank: Body, side: str, places: dict[str, complex]) -> None:
    """The bodies and joints of one leg; bodies have the axes of the ground at the start."""

    def part(names: str) -> Body:
        return rigid(m, f"{side} {names}", {name: places[name] for name in names})

    thigh, shin = part("ZYV"), part("UWP")
    upper, lower, hip, calf = part("XY"), part("XW"), part("ZW"), part("VU")
    X = crank.at(places["X"].real, places["X"].imag)
    Z = m.ground.at(places["Z"].real, places["Z"].imag)
    joints: dict[str, tuple[Any, Any]] = {
        "Z": (Z, thigh["Z"]),
        "Z'": (Z, hip["Z"]),
        "X": (X, upper["X"]),
        "X'": (X, lower["X"]),
        "Y": (upper["Y"], thigh["Y"]),
        "V": (thigh["V"], calf["V"]),
        "W": (hip["W"], shin["W"]),
        "W'": (lower["W"], hip["W"]),
        "U": (calf["U"], shin["U"]),
    }
    for name, (a, b) in joints.items():
        m.revolute(f"{side} {name}", a, b)
    m.trace(shin["P"])


def jansen_linkage(*, rate: float = -4.0, gain: float = 2.0, legs: int = 2, gravity: float = 9.81) -> Example:
    """Jansen's walking linkage.

    Parameters
    ----------
    rate, gain : float
        The angular velocity of the crank that its motor holds, and torque per deviation from it.
    legs : int
        One, or two that mirror each other.
    gravity : float
        Acceleration of gravity.
    """
    if legs not in (1, 2):
        raise ValueError(f"legs = {legs}: give 1 or 2")
    m = Mechanism("jansen_linkage", gravity=(0, -gravity), parameters={"rate": rate, "gain": gain})
    crank = m.body("crank", 1.0, 0.5 * 0.15**2, points={"O": (0, 0), "X": (0.15, 0)})
    m.revolute("O", m.ground.at(0, 0), crank["O"])
    m.torque("motor", "O", law=lambda rate, p: p.gain * (p.rate - rate))
    add_leg(m, crank, "left", leg(0.0))
    if legs == 2:
        mirrored = {name: -z.conjugate() for name, z in leg(np.pi).items()}
        add_leg(m, crank, "right", mirrored)
    others = {name: near(0.0) for name in m.joints if name != "O"}
    return Example(
        name="jansen_linkage",
        title="Jansen's walking linkage",
        system=m,
        t_span=(0.0, 5.0),
        start={"O": 0.0, **others},
        speed={"O": rate},
        source="Jansen, 2007",
    )
