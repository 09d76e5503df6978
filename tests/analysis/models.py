"""Systems that the tests of this room share."""

import numpy as np

import holonome as hn

G = 9.81


def hoop(w2=5.0):
    """A bead on a hoop of radius 1 that turns with the angular velocity √w2."""
    return hn.System(
        1.0, lambda q, p: (p.w2 * np.cos(q) - G) * np.sin(q), parameters={"w2": w2}, names=["theta"]
    )


def governor():
    """Watt's governor with a free spindle: arms of length l with balls m at the angle θ, spindle inertia J.

    T = ½ (J + 2 m l² sin² θ) φ′² + m l² θ′²,   V = −2 m g l cos θ
    """
    p = {"m": 1.5, "l": 0.4, "J": 0.2, "c": 0.0}

    def mass(q, p):
        return np.array([p.J + 2 * p.m * p.l**2 * np.sin(q[1]) ** 2, 2 * p.m * p.l**2])

    def force(q, v, p):
        return np.array([0.0, -2 * p.m * G * p.l * np.sin(q[1]) - p.c * v[1]])

    return hn.System(mass, force, parameters=p, names=["phi", "theta"], inertial="derived")


def n_pendulum(links):
    """Equal masses on equal strings of length 1, in Cartesian coordinates."""

    def constraint(q):
        points = np.concatenate([np.zeros((1, 2)), q.reshape(-1, 2)])
        d = points[1:] - points[:-1]
        return np.sum(d * d, axis=1) - 1

    weight = np.tile([0.0, -G], links)
    return hn.System(
        np.ones(2 * links),
        weight,
        constraint,
        potential=lambda q: G * np.sum(q[1::2]),
        names=[f"{x}{k}" for k in range(1, links + 1) for x in "xy"],
    )


def hanging(links):
    return np.ravel([[0.0, -float(k)] for k in range(1, links + 1)])


def oscillator(k=8.0, c=0.4, m=2.0):
    return hn.System(
        m,
        lambda q, v, p, u: u.push - p.k * q - p.c * v,
        parameters={"k": k, "c": c},
        inputs={"push": 0.0},
        names=["x"],
    )


def slider_crank(r=0.3, length=1.0, gravity=(0.0, -G)):
    m = hn.Mechanism("slider-crank", gravity=gravity, inputs={"torque": 0.0})
    crank = m.body("crank", 1.0, 0.1, points={"A": (0, 0), "B": (r, 0)})
    rod = m.body("rod", 1.2, 0.08, center=(length / 2, 0), points={"B": (0, 0), "C": (length, 0)})
    piston = m.body("piston", 0.8, 0.1, points={"C": (0, 0)})
    m.revolute("A", m.ground.at(0, 0), crank["A"])
    m.revolute("B", crank["B"], rod["B"])
    m.revolute("C", rod["C"], piston["C"])
    m.prismatic("D", m.ground.at(0, 0), piston["C"], axis=(1, 0))
    m.torque("motor", joint="A", law=lambda u: u.torque)
    return m


def parallelogram(length=1.0, crank=0.5):
    m = hn.Mechanism("parallelogram", gravity=(0, -G))
    a = m.body("a", 1.0, 0.1, points={"A": (0, 0), "B": (crank, 0)})
    b = m.body("b", 1.0, 0.1, points={"B": (0, 0), "C": (length, 0)})
    c = m.body("c", 1.0, 0.1, points={"D": (0, 0), "C": (crank, 0)})
    m.revolute("A", m.ground.at(0, 0), a["A"])
    m.revolute("B", a["B"], b["B"])
    m.revolute("C", b["C"], c["C"])
    m.revolute("D", m.ground.at(length, 0), c["D"])
    return m
