"""
A coordinate without mass: a torsion spring
===========================================

A pendulum with a torsion spring at its pivot: the angle is a coordinate without mass::

    x″ = −λ₁,   y″ = −γ − λ₂,   0 = −k φ + λ₁ cos φ + λ₂ sin φ,   0 = x − sin φ,   0 = y + cos φ

Symbols: the bob (x, y), the angle φ from the downward vertical, stiffness k = 5, gravity γ = 9.81.

Printed: what the solver did, and the residual of the third equation at the end.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

sprung = hn.System(
    mass=[1.0, 1.0, 0.0],
    force=lambda q, p: np.array([0.0, -9.81, -p.k * q[2]]),
    constraint=lambda q: np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])]),
    potential=lambda q, p: 9.81 * q[1] + p.k * q[2] ** 2 / 2,
    parameters={"k": 5.0},
    names=["x", "y", "angle"],
)
sol = hn.solve(sprung, (0, 10), [1, 0, np.pi / 2])

print(sol)
angle, lam = sol.q[2, -1], sol.lam[:, -1]
print(
    "balance of the moments at the massless angle: "
    f"{-5.0 * angle + lam[0] * np.cos(angle) + lam[1] * np.sin(angle):.1e}"
)

sol.plot()
plt.show()
