"""
Rolling without slipping: a disc
================================

An upright disc rolls without slipping; a motor turns it::

    m x″ = −λ₁,   m y″ = −λ₂,   J θ″ = 0,   I φ″ = T + r (λ₁ cos θ + λ₂ sin θ)
    0 = x′ − r φ′ cos θ,   0 = y′ − r φ′ sin θ

Symbols: the point of contact (x, y), the heading θ, the angle of rolling φ; mass m = 2, radius r = 0.4,
moments of inertia J = 0.1 about the vertical and I = 0.2 about the axle, torque T = 0.3. With θ′ = 1 the disc
rolls along a spiral; exactly, φ″ = T / (I + m r²).

Printed: what the solver did, the error of φ at the end, and the difference between the two ways to write the
constraint.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

disc = {
    "mass": [2.0, 2.0, 0.1, 0.2],
    "force": [0.0, 0.0, 0.0, 0.3],
    "parameters": {"r": 0.4},
    "names": ["x", "y", "heading", "roll"],
}
residual = hn.System(
    **disc, velocity_constraint=lambda q, v, p: v[:2] - p.r * v[3] * np.array([np.cos(q[2]), np.sin(q[2])])
)
matrix = hn.System(
    **disc,
    velocity_constraint=lambda q, p: np.array(
        [[1, 0, 0, -p.r * np.cos(q[2])], [0, 1, 0, -p.r * np.sin(q[2])]]
    ),
)
spiral = hn.solve(residual, (0, 10), [0, 0, 0, 0], [0, 0, 1, 0])
same = hn.solve(matrix, (0, 10), [0, 0, 0, 0], [0, 0, 1, 0])

print(spiral)
print(f"angle of rolling: error {abs(spiral.q[3, -1] - 50 * 0.3 / (0.2 + 2 * 0.4**2)):.1e}")
print(f"the two forms differ by {np.max(np.abs(spiral.q[:, -1] - same.q[:, -1])):.1e}")

fig, axes = plt.subplots(layout="constrained")
path = hn.solve(residual, (0, 10), [0, 0, 0, 0], [0, 0, 1, 0], t_eval=np.linspace(0, 10, 400))
axes.plot(path.q[0], path.q[1])
axes.set(xlabel="x", ylabel="y", aspect="equal", title="way of the point of contact")
plt.show()
