"""Two shafts that a universal joint connects at an angle: the second one turns unevenly.

                        ╱ output                tan φ₁ cos β = tan φ₂
      input      ╱╲   ╱   β                     φ₂′ / φ₁′ = cos β / (1 − sin²β sin²φ₁)
     ═══════════╳══╳
                 ╲╱                             between cos β and 1 / cos β, twice in each turn

Both shafts have bearings, so that three of the constraints follow from the others. At φ₁ = 0 the arm of the
cross that the input shaft carries is normal to the plane of both shafts.

Data: bend β = 40°; the input shaft carries a large flywheel, J = 0.5, the output shaft a small one, J = 0.02,
and a brake T = −c φ₂′, c = 0.01; start with φ₁ = 0, φ₁′ = 10. The ratio is in every textbook, as in J. J.
Uicker, G. R. Pennock, J. E. Shigley, Theory of Machines and Mechanisms.
"""

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from holonome.bodies.body import Body
from holonome.bodies.mechanism import Mechanism
from holonome.bodies.shapes import Cylinder, Rod
from holonome.mechanisms.example import Example


def shaft(m: Mechanism, name: str, end: float, mass: float, moment: Any, radius: float) -> Body:
    """A shaft along x from the cross to its bearing, with a flywheel that is drawn as a disc; its mass is in
    that of the shaft.
    """
    points = {"cross": (0, 0, 0), "bearing": (end, 0, 0), "rim": (0.8 * end, 0, radius)}
    inertia = np.array([2, 1, 1]) * moment / 2
    body = m.body(name, mass, inertia, points=points, shape=Rod((0, 0, 0), (end, 0, 0), 0.015))
    disc = m.body(f"{name} flywheel", 0.0, (0, 0, 0), shape=Cylinder(radius, 0.03, "x"))
    m.fixed(f"{name} hub", body.at(0.8 * end, 0, 0), disc.at(0, 0, 0))
    return body


def universal_joint_shaft(
    *,
    bend: float = np.radians(40.0),
    flywheel: float = 0.5,
    load: float = 0.02,
    brake: float = 0.01,
    omega: float = 10.0,
) -> Example:
    """Two shafts with a universal joint.

    Parameters
    ----------
    bend : float
        The angle between the shafts, below π/2.
    flywheel, load : float
        Moments of inertia of the input and of the output shaft about their axes.
    brake : float
        Torque on the output shaft per angular velocity.
    omega : float
        Angular velocity of the input shaft at the start.
    """
    parameters = {"flywheel": flywheel, "load": load, "brake": brake}
    m = Mechanism("universal_joint_shaft", gravity=(0, 0, -9.81), parameters=parameters)
    inlet = shaft(m, "input", -0.3, 8.0, m.p.flywheel, radius=0.2)
    outlet = shaft(m, "output", 0.3, 2.0, m.p.load, radius=0.1)
    turn = Rotation.from_rotvec([0, 0, bend])
    end = 0.3 * np.array([np.cos(bend), np.sin(bend), 0])
    m.revolute("input bearing", m.ground.at(-0.3, 0, 0), inlet["bearing"], axis=(1, 0, 0))
    m.universal("cross", inlet["cross"], outlet["cross"], axes=((0, 0, 1), (0, 1, 0)))
    m.revolute("output bearing", m.ground.at(*end, rotation=turn), outlet["bearing"], axis=(1, 0, 0))
    m.torque("brake", "output bearing", law=lambda rate, p: -p.brake * rate)
    m.trace(inlet["rim"], outlet["rim"])
    return Example(
        name="universal_joint_shaft",
        title="Two shafts with a universal joint",
        system=m,
        t_span=(0.0, 4.0),
        start={"input bearing": 0.0, "output bearing": 0.0},
        speed={"input bearing": omega},
        source="classical; Cardano, Hooke",
    )
