"""
Constraint forces: what the multipliers mean
============================================

A mass hangs at rest on a rod of length 2, whose constraint is written in two ways::

    q″ = (0, −γ) − Gᵀ λ;   g = q·q − 4, G = 2 qᵀ   or   g = |q| − 2, G = qᵀ/|q|

Symbols: position q = (x, y), gravity γ = 9.81. The force of the rod is −Gᵀ λ = (0, γ) in both cases.

Printed: that force from the first form, the multiplier of the second, which is the tension, and the same
force from it. Drawn: the tension while the mass swings.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

squared = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 4)  # G = 2 q
length = hn.System(np.eye(2), [0.0, -9.81], lambda q: np.sqrt(q @ q) - 2)  # G = q / |q|
hanging = hn.solve(squared, (0, 1), [0, -2])
tension = hn.solve(length, (0, 1), [0, -2])
print(-2 * hanging.q[:, 0] * hanging.lam[0, 0])  # 0 and 9.81: the rod pulls upwards
print(tension.lam[0, 0])  # 9.81: positive in tension, negative in compression

print(-tension.q[:, 0] / 2 * tension.lam[0, 0])

swinging = hn.solve(length, (0, 5), [2, 0], t_eval=np.linspace(0, 5, 300))
fig, axes = plt.subplots(layout="constrained")
axes.plot(swinging.t, swinging.lam[0])
axes.axhline(
    3 * 9.81, color="gray", linewidth=0.8
)  # three times the weight in the lowest point, for any length
axes.set(xlabel="time t", ylabel="tension λ of the rod", title="a release from the horizontal")
plt.show()
