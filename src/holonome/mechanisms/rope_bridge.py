"""Rope bridge: planks in a row, hinged to each other and to both banks, and someone who walks across.

       ●━━━●━                         ━●━━━●     balance of plank k = 1 … N at rest, with the angle βₖ:
             ━●━━━●━           ━●━━━●━
                    ━●━━━●━━━●━                  tan βₖ = w (k − ½ (N + 1)) / H,    Σ ℓ cos βₖ = L

       w weight of a plank, H the horizontal force, which is the same in all hinges

A chain of many short planks hangs as a catenary. The walker is a weight W that moves to the right at constant
speed, shared by the middles of two neighbouring planks: that of the middle a distance s from the walker,
counted in planks, carries the share 1 − |s|.

Data: L = 10, N = 16 planks of the length ℓ = 1.05 L / N and of 20 kg as slender bars; each hinge has a
damper, 30; W = 700, 1.4 m/s. Start: at rest in balance; the walker arrives after 0.5 s. Source: the balance
is in every textbook on statics; the data are this project's.
"""

import numpy as np
from scipy.optimize import root_scalar

from holonome.bodies.mechanism import Mechanism
from holonome.mechanisms.example import Example


def balance(planks: int, length: float, span: float, weight: float) -> tuple[np.ndarray, float]:
    """The angles of planks that hang at rest, and the horizontal force."""
    loads = weight * (np.arange(1, planks + 1) - (planks + 1) / 2)

    def gap(log_force: float) -> float:
        return float(np.sum(length / np.hypot(1, loads / np.exp(log_force))) - span)

    bracket = np.log(1e-6 * weight), np.log(1e9 * weight)
    force = np.exp(root_scalar(gap, bracket=bracket, xtol=1e-15, rtol=1e-15).root)
    return np.arctan2(loads, force), float(force)


def rope_bridge(
    *,
    planks: int = 16,
    span: float = 10.0,
    slack: float = 0.05,
    mass: float = 20.0,
    damping: float = 30.0,
    walker: float = 700.0,
    pace: float = 1.4,
    gravity: float = 9.81,
) -> Example:
    """Rope bridge with a walker.

    Parameters
    ----------
    planks : int
        How many.
    span, slack : float
        From bank to bank, and how much longer the planks are together, as a share of it.
    mass : float
        Of a plank.
    damping : float
        Torque per angular velocity in each hinge.
    walker, pace : float
        Weight and speed of the walker.
    gravity : float
        Acceleration of gravity.
    """
    if not (planks >= 2 and slack > 0):
        raise ValueError(f"planks = {planks}, slack = {slack}: give at least two planks and a positive slack")
    length = span * (1 + slack) / planks
    m = Mechanism("rope_bridge", gravity=(0, -gravity), parameters={"walker": walker, "pace": pace})
    angles, _ = balance(planks, length, span, mass * gravity)
    end, middles = m.ground.at(0, 0), []
    for k in range(planks):
        points = {"left": (0, 0), "right": (length, 0), "middle": (length / 2, 0)}
        inertia = mass * length**2 / 12
        plank = m.body(f"plank {k + 1}", mass, inertia, center=(length / 2, 0), points=points)
        m.revolute(f"hinge {k}", end, plank["left"])
        m.spring(f"damper {k}", joint=f"hinge {k}", damping=damping)
        end = plank["right"]
        middles.append(plank["middle"])
    m.revolute(f"hinge {planks}", end, m.ground.at(span, 0))

    def tread(t, p):
        along = p.pace * (t - 0.5) / length - 0.5
        shares = [np.maximum(1 - abs(along - k), 0.0) for k in range(planks)]
        return np.array([[0.0, -p.walker * share] for share in shares])

    m.force("walker", at=middles, law=tread)
    m.trace(middles[planks // 2])
    turns = np.diff(angles, prepend=0.0)
    return Example(
        name="rope_bridge",
        title="Rope bridge with a walker",
        system=m,
        t_span=(0.0, 10.0),
        start={f"hinge {k}": turn for k, turn in enumerate(turns.tolist())},
        source="classical; data of this project",
    )
