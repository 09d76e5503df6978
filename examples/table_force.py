"""
A force from a table
====================

A cart is pushed by a force that was measured at eleven times::

    m x″ = F(t),   F linear between the points of a table

Symbols: position x, mass m = 2. The exact momentum is the area under the table, by the trapezoidal rule.

Printed: what the solver did, and the error of the final momentum for two tables.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

times = np.linspace(0, 1, 11)
cart = hn.System(
    mass=2.0,
    force=lambda t, p: np.array([np.interp(t, times, p.push)]),
    parameters={"push": np.sin(np.pi * times)},
    names=["x"],
)
gentle = hn.solve(cart, (0, 1), [0])
sudden = hn.solve(cart, (0, 1), [0], parameters={"push": np.where(times < 0.45, 1.0, 0.0)})

print(gentle)
for run in (gentle, sudden):
    push = run.system.parameters["push"]
    print(f"momentum: error {abs(2.0 * run.v[0, -1] - 0.1 * np.sum(push[1:] + push[:-1]) / 2):.1e}")

fig, axes = plt.subplots(layout="constrained")
for run, what in ((gentle, "gentle"), (sudden, "sudden")):
    (line,) = axes.plot(run.t, run.v[0], label=f"velocity, {what}")
    axes.plot(times, run.system.parameters["push"], "--", color=line.get_color(), label=f"force, {what}")
axes.set(xlabel="time t")
axes.legend()
plt.show()
