"""
Friction: a bead on a ring
==========================

A bead slides on a ring with friction: the force of the ring, λ, enters the forces, and the heat is a
first-order state::

    q″ = (0, −γ) − μ |λ| v/|v| − Gᵀ λ,   0 = |q| − 1,   h′ = μ |λ| |v|

Symbols: position q = (x, y), velocity v, gravity γ = 9.81, coefficient of friction μ = 0.1, heat h. The speed
is rounded off at 1e-3, where friction changes its sign.

Printed: energy and heat together at the end, which were zero at the start; the same for μ = 0.3.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

bead = hn.System(
    np.eye(2),
    lambda q, v, s, lam, p: np.array([0, -9.81]) - p.mu * np.abs(lam[0]) * v / np.sqrt(v @ v + 1e-6),
    lambda q: np.sqrt(q @ q) - 1,
    states={"heat": 0.0},
    rate=lambda v, lam, p: p.mu * np.abs(lam[0]) * (v @ v) / np.sqrt(v @ v + 1e-6),
    potential=lambda q: 9.81 * q[1],
    parameters={"mu": 0.1},
    names=["x", "y"],
)
slide = hn.solve(bead, (0, 3), [1, 0])
print(slide.energy[-1] + slide.s[0, -1])  # 0: what the motion loses is heat

rough = hn.solve(bead, (0, 3), [1, 0], parameters={"mu": 0.3})
print(rough.energy[-1] + rough.s[0, -1])

fig, axes = plt.subplots(layout="constrained")
for run in (slide, rough):
    axes.plot(run.t, run.energy, label=f"energy, μ = {run.system.parameters['mu']:g}")
    axes.plot(run.t, run.s[0], "--", label=f"heat, μ = {run.system.parameters['mu']:g}")
axes.set(xlabel="time t", ylabel="energy, heat")
axes.legend()
plt.show()
