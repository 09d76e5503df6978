"""
Index 2 beyond mechanics: through a singular point
==================================================

A problem of index 2 that is not mechanical, through a point where G B is singular; Example 6.3 of Ascher &
Lin 1995::

    x₁′ = −x₁ + x₂ − sin t − (1 + 2t),   x₂′ = −x₁ y
    0 = x₁² + x₁ (x₂ − sin t − 1 + 2t)

Exact: x = (1 − 2t, sin t), y = −cos t / (1 − 2t), unbounded at t = 1/2 while B y = (0, −cos t) stays smooth.

Printed: what sequential regularization did, and its error.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

singular = hn.Index2System(
    f=lambda t, x: np.array([-x[0] + x[1] - np.sin(t) - (1 + 2 * t), 0.0]),
    B=lambda x: np.array([0.0, x[0]]),
    g=lambda t, x: x[0] ** 2 + x[0] * (x[1] - np.sin(t) - 1 + 2 * t),
    n=2,
)
through = hn.solve(singular, (0, 1), [1, 0], rtol=1e-8)
print(np.max(np.abs(through.x - [1 - 2 * through.t, np.sin(through.t)])), through.message)

print(through)

fig, axes = plt.subplots(layout="constrained")
axes.plot(through.t, through.x[0], label="x₁")
axes.plot(through.t, through.x[1], label="x₂")
axes.axvline(0.5, color="gray", linestyle=":", label="singular point")
axes.set(xlabel="time t")
axes.legend()
plt.show()
