"""
Conserved quantities: a planet, and predator and prey
=====================================================

A planet on an ellipse for a hundred revolutions, and the populations of Lotka and Volterra::

    q″ = −q/|q|³,   energy v²/2 − 1/|q| and angular momentum x y′ − y x′ stay
    x₁′ = x₁ (1 − x₂),   x₂′ = x₂ (x₁ − 1),   x₁ − ln x₁ + x₂ − ln x₂ stays

Projection keeps them at their initial values; what is not conserved by the equations is refused.

Printed: by how much they vary over the run, and where the planet is after the hundred revolutions, which
began at (0.5, 0).
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

orbit = hn.System(
    np.eye(2),
    lambda q: -q / np.sqrt(q @ q) ** 3,
    names=["x", "y"],
    invariant=lambda q, v: np.array([v @ v / 2 - 1 / np.sqrt(q @ q), q[0] * v[1] - q[1] * v[0]]),
)
year = hn.solve(orbit, (0, 2 * np.pi * 100), [0.5, 0], [0, np.sqrt(3)])
prey = hn.ODE(
    lambda x: np.array([x[0] * (1 - x[1]), x[1] * (x[0] - 1)]),
    invariant=lambda x: x[0] - np.log(x[0]) + x[1] - np.log(x[1]),
    names=["prey", "predator"],
)
cycle = hn.solve(prey, (0, 100), [0.5, 0.7])
print(np.ptp(year.invariant, axis=1), np.ptp(cycle.invariant))  # at rounding level

print(year.q[:, -1])

fig, (sky, field) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
sky.plot(*year.q)
sky.plot(0, 0, "o", color="orange")
sky.set(xlabel="x", ylabel="y", aspect="equal", title="a hundred revolutions, one ellipse")
field.plot(*hn.solve(prey, (0, 10), [0.5, 0.7], t_eval=np.linspace(0, 10, 500)).x)
field.set(xlabel="prey", ylabel="predators", title="a closed cycle")
plt.show()
