"""
Contacts and impacts: a rocking block
=====================================

A tall block stands on two corners, is tilted and let go. It rocks about one corner, then about the other;
each time the other corner strikes the floor it loses energy. Housner (1963) found for a homogeneous block
that does not slip or bounce, with half-diagonal R and slenderness α::

    θ″ = −p² sin(α − θ),   p² = 3 γ / 4R,      θ′⁺ = (1 − 3/2 sin²α) θ′⁻

Nothing of this is told to the program: it knows a rigid body and two corners that may neither enter the floor
nor slip on it, without restitution.

Symbols: place x, y and angle θ of the center; half-width b, half-height h; gravity γ = 9.81.

Printed: the run, the times of the first impacts, and the ratio of the angular velocities against Housner's.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

b, h, gravity = 0.2, 0.8, 9.81


def corner(side, name):
    return hn.Contact(
        gap=lambda q: q[1] + side * b * np.sin(q[2]) - h * np.cos(q[2]),
        slip=lambda q, v: v[0] + v[2] * (h * np.cos(q[2]) - side * b * np.sin(q[2])),
        friction=2.0,
        name=name,
    )


block = hn.System(
    [1.0, 1.0, (b * b + h * h) / 3],
    [0.0, -gravity, 0.0],
    names=["x", "y", "angle"],
    potential=lambda q: gravity * q[1],
    contacts=[corner(1, "right"), corner(-1, "left")],
)
tilt = 0.2
q0 = [b * np.cos(tilt) - h * np.sin(tilt) - b, b * np.sin(tilt) + h * np.cos(tilt), tilt]
sol = hn.solve(block, (0, 8), q0, rtol=1e-8)

times = np.unique(sol.impacts.t)
jumps = np.flatnonzero(np.diff(sol.t) == 0)
ratio = np.abs(sol.v[2, jumps + 1] / sol.v[2, jumps])
housner = 1 - 1.5 * np.sin(np.arctan2(b, h)) ** 2
print(sol)
print("impacts at", times[:4].round(4), "…", len(times), "of them, the last at", times[-1].round(4))
print(f"ratio of angular velocities {ratio[0]:.6f}, Housner {housner:.6f}")
print(f"energy lost in impacts {np.sum(sol.impacts.energy_lost):.6f} of {sol.energy[0] - sol.energy[-1]:.6f}")

fig, (above, below) = plt.subplots(2, sharex=True, layout="constrained")
above.plot(sol.t, sol.q[2])
above.set(ylabel="angle")
for name in ("left", "right"):
    below.plot(sol.t, sol.contact(name).force, label=f"force of the {name} corner")
below.set(xlabel="t", ylim=(0, 20))
below.legend()
plt.show()
