"""
Boundary values: an aimed pendulum
==================================

A pendulum is to swing from one place to another in a given time: with which velocity must it start? ::

    x″ = −2λ x,   y″ = −γ − 2λ y,   0 = x² + y² − 1,     x(0) = 0.6,   x(0.8) = −0.9

Symbols: the bob (x, y), hanging below the pivot; multiplier λ; γ = 9.81.

Printed: the initial velocity, how the boundary value problem was solved, and where a run with that velocity
ends.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

bob = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1, names=["x", "y"])
aimed = hn.solve_bvp(
    bob,
    lambda qa, qb, va, vb: [qa[0] - 0.6, qb[0] + 0.9],
    np.linspace(0, 0.8, 20),
    lambda t: [0.6 - 1.9 * t, -0.8, -1.9, 0.0],
)
flown = hn.solve(bob, (0, 0.8), aimed.x[:, 0], aimed.v[:, 0])
print(aimed.v[:, 0], flown.q[0, -1])  # the velocity to start with, and -0.9

print(aimed)

fig, axes = plt.subplots(layout="constrained")
axes.plot(*flown.q, label="the way of the bob")
axes.plot([0.6, -0.9], [-0.8, -np.sqrt(1 - 0.9**2)], "o", label="from here to there")
axes.set(xlabel="x", ylabel="y", aspect="equal")
axes.legend()
plt.show()
