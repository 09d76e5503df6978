"""Gyroscope: a heavy symmetric top with one point fixed, which precesses and nutates.

                   ║ disc              Euler's angles ψ, ϑ, φ:  steady precession Ω = ψ′ at the angle ϑ, where
          O ───────╫──                 I Ω² cos ϑ − J ω Ω + m γ ℓ = 0
                   ║
          ◂── ℓ ──▸                    I about O across the axis, J and ω about the axis

Besides the energy, the moments of momentum about the vertical and about the axis are constant.

Data: m = 15, ℓ = 1, J = 0.46875, moments 0.234375 across the axis and about the centre, so that I =
15.234375; the axis is horizontal at the start, ω = 150 and Ω = 4.61538 upside down (−4.61538 about the
vertical), which is not steady: the top nods. This is the heavy top of M. Géradin, A. Cardona, Flexible
Multibody Dynamics, Wiley, 2001, with which integrators on Lie groups are compared, as in M. Arnold, O. Brüls,
A. Cardona, "Error analysis of generalized-α Lie group time integration methods", Numer. Math. 129 (2015)
149–179.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.mechanism import Mechanism
from holonome.bodies.shapes import Cylinder
from holonome.mechanisms.example import Example


def gyroscope(
    *,
    mass: float = 15.0,
    length: float = 1.0,
    about: float = 0.46875,
    across: float = 0.234375,
    tilt: float = np.pi / 2,
    spin: float = 150.0,
    precession: float = -4.61538,
    gravity: float = 9.81,
) -> Example:
    """Heavy symmetric top.

    Parameters
    ----------
    mass, length : float
        Its mass, and how far its centre is from the fixed point.
    about, across : float
        Moments of inertia about the axis, and across it about the centre.
    tilt : float
        The angle of its axis from the vertical at the start.
    spin, precession : float
        The angular velocity about the axis, all of it, and the rate at which the axis turns about the
        vertical, at the start.
    gravity : float
        Acceleration of gravity.
    """
    m = Mechanism(
        "gyroscope",
        gravity=(0, 0, -gravity),
        parameters={"mass": mass, "length": length, "about": about, "across": across},
    )
    p = m.p
    top = m.body(
        "top",
        p.mass,
        (p.across, p.across, p.about),
        center=(0, 0, p.length),
        points={"O": (0, 0, 0), "centre": (0, 0, p.length), "tip": (0, 0, 1.2 * p.length)},
    )
    radius = np.sqrt(2 * about / mass)
    disc = m.body("disc", 0.0, (0, 0, 0), shape=Cylinder(radius, 0.05 * length))
    m.spherical("O", m.ground.at(0, 0, 0), top["O"])
    m.fixed("hub", top["centre"], disc.at(0, 0, 0))
    m.trace(top["tip"])
    axis, vertical = np.array([0, np.sin(tilt), np.cos(tilt)]), np.array([0, 0, 1])
    across_the_axis = vertical - (vertical @ axis) * axis
    return Example(
        name="gyroscope",
        title="Gyroscope: heavy symmetric top",
        system=m,
        t_span=(0.0, 2.0),
        start={"O": Rotation.from_rotvec([-tilt, 0, 0])},
        speed={"top": {"angular_velocity": spin * axis + precession * across_the_axis}},
        source="Géradin and Cardona, 2001",
    )
