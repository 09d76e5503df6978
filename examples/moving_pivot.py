"""
Prescribed motion: a shaken pivot
=================================

A pendulum of length 1 whose pivot is shaken sideways: a rheonomic constraint::

    x″ = −2 (x − a sin ωt) λ,   y″ = −γ − 2 y λ,   0 = (x − a sin ωt)² + y² − 1

Symbols: the bob (x, y), amplitude a = 0.2 and frequency ω = 5 of the pivot, gravity γ = 9.81.

Printed: what the solver did, and how far the rod swings out, in degrees.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

shaken = hn.System(
    np.eye(2),
    [0.0, -9.81],
    lambda t, q, p: (q[0] - p.a * np.sin(p.omega * t)) ** 2 + q[1] ** 2 - 1,
    parameters={"a": 0.2, "omega": 5.0},
    names=["x", "y"],
)
start = hn.consistent(shaken, [0.6, -0.8], repair=True)  # the velocity that the moving pivot asks for
sol = hn.solve(shaken, (0, 10), start.q, start.v)

print(sol)
print(
    f"largest angle: {np.degrees(np.max(np.abs(np.arcsin(sol.q[0] - 0.2 * np.sin(5.0 * sol.t))))):.1f} "
    "degrees"
)

fig, axes = plt.subplots(layout="constrained")
t = np.linspace(0, 10, 1000)
fine = hn.solve(shaken, (0, 10), start.q, start.v, t_eval=t)
axes.plot(t, fine.q[0], label="bob, x")
axes.plot(t, 0.2 * np.sin(5.0 * t), label="pivot")
axes.set(xlabel="time t", ylabel="x")
axes.legend()
plt.show()
