"""Whipple bicycle: two wheels that roll without slipping, a rear frame with the rider, and a front frame.

                      ╲ steering axis, tilted by λ          z up, x forward, y to the left; bodies have the
        frame + rider  ╲                                    axes of the ground when the bicycle stands upright
            ▪━━━━━━━━━━━╲                                   with its rear wheel on the origin
         ╱ ╲ ╲     ╱     ╲▪ fork
        ( R )           ( F )                               lean φ, steer δ, forward speed v: three
      ─────────────────────────                             degrees of freedom on the level of velocities
        ◂────── w ──────▸◂c▸

Hands off, it is stable by itself between the weave speed 4.292 m/s and the capsize speed 6.024 m/s.

Data: those of the benchmark of J. P. Meijaard, J. M. Papadopoulos, A. Ruina, A. L. Schwab, "Linearized
dynamics equations for the balance and steer of a bicycle: a benchmark and review", Proc. R. Soc. A 463 (2007)
1955–1982, table 1, whose z points down: w = 1.02, c = 0.08, λ = π/10, radii 0.3 and 0.35, masses 2, 85, 4, 3;
the rest is below. Start: upright and straight ahead with v = 4.6 and the lean rate 0.5, as in the non-linear
benchmark of P. Basu-Mandal, A. Chatterjee, J. M. Papadopoulos, Proc. R. Soc. A 463 (2007) 1983–2003.
"""

import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.mechanism import Mechanism
from holonome.mechanisms.example import Example

FRAME = np.array([[9.2, 0, -2.4], [0, 11, 0], [-2.4, 0, 2.8]])
FORK = np.array([[0.05892, 0, 0.00756], [0, 0.06, 0], [0.00756, 0, 0.00708]])


def whipple_bicycle(
    *,
    speed: float = 4.6,
    lean_rate: float = 0.5,
    wheelbase: float = 1.02,
    trail: float = 0.08,
    tilt: float = np.pi / 10,
    gravity: float = 9.81,
) -> Example:
    """The bicycle of Whipple, with the data of the benchmark.

    Parameters
    ----------
    speed, lean_rate : float
        Forward speed, and the angular velocity with which it falls over to the right, at the start.
    wheelbase, trail, tilt : float
        Distance of the points of contact, how far the steering axis meets the ground before, and
        its angle from the vertical.
    gravity : float
        Acceleration of gravity.
    """
    m = Mechanism("whipple_bicycle", gravity=(0, 0, -gravity))
    w, sin, cos = wheelbase, np.sin(tilt), np.cos(tilt)
    axis, foot = np.array([-sin, 0, cos]), np.array([w + trail, 0, 0])
    head = foot + 0.9 / cos * axis
    rear = m.body("rear wheel", 2, (0.0603, 0.12, 0.0603), points={"hub": (0, 0, 0), "rim": (0, 0, -0.3)})
    front = m.body("front wheel", 3, (0.1405, 0.28, 0.1405), points={"hub": (0, 0, 0), "rim": (0, 0, -0.35)})
    saddle = {"hub": (0, 0, 0.3), "saddle": (0.25, 0, 0.9), "head": head}
    frame = m.body("rear frame", 85, FRAME, center=(0.3, 0, 0.9), points=saddle)
    fork = m.body("fork", 4, FORK, center=(0.9, 0, 0.7), points={"hub": (w, 0, 0.35), "head": head})
    m.revolute("rear axle", frame["hub"], rear["hub"], axis=(0, 1, 0))
    m.revolute("steer", frame["head"], fork["head"], axis=axis)
    m.revolute("front axle", fork["hub"], front["hub"], axis=(0, 1, 0))
    m.rolling("rear contact", m.ground.at(0, 0, 0), rear["hub"], radius=0.3, axis=(0, 1, 0))
    m.rolling("front contact", m.ground.at(0, 0, 0), front["hub"], radius=0.35, axis=(0, 1, 0))
    m.trace(rear["hub"], front["hub"])
    return Example(
        name="whipple_bicycle",
        title="Whipple bicycle, which balances by itself",
        system=m,
        t_span=(0.0, 5.0),
        start={"rear frame": {"position": (0, 0, 0), "rotation": Rotation.identity()}, "steer": 0.0},
        speed={
            "rear frame": {"velocity": (speed, 0, 0), "angular_velocity": (lean_rate, 0, 0)},
            "steer": 0.0,
        },
        source="Meijaard et al., 2007",
    )
