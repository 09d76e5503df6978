"""
Redundant constraints: a beam on three bars
===========================================

A beam hangs on three parallel bars of length 1, of which two would do::

    x″ = −(Gᵀλ)₁,   y″ = −γ − (Gᵀλ)₂,   J φ″ = −(Gᵀλ)₃
    0 = (x + sᵢ cos φ − sᵢ)² + (y + sᵢ sin φ)² − 1,   i = 1, 2, 3

Symbols: the centre (x, y) of the beam and its angle φ; the bars hold it at sᵢ = −1/2, 0, 1/2; J = 0.1, γ =
9.81. G has rank 2.

Printed: the message, which names the redundant bar, the multipliers at the start, and what the solver did.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

at = np.array([-0.5, 0.0, 0.5])  # a beam hangs on three parallel bars; two would do
beam = hn.System(
    [1.0, 1.0, 0.1],
    [0.0, -9.81, 0.0],
    lambda q: (q[0] + at * np.cos(q[2]) - at) ** 2 + (q[1] + at * np.sin(q[2])) ** 2 - 1,
    names=["x", "y", "angle"],
    constraint_names=["left", "middle", "right"],
)
sol = hn.solve(beam, (0, 5), [0.6, -0.8, 0])
print(sol.message, sol.lam[:, 0])  # the end was reached (redundant: right) [1.308 1.308 1.308]

print(sol)

fig, axes = plt.subplots(layout="constrained")
fine = hn.solve(beam, (0, 5), [0.6, -0.8, 0], t_eval=np.linspace(0, 5, 300))
for name, lam, style in zip(beam.constraint_names, fine.lam, ("-", "--", ":"), strict=True):
    axes.plot(fine.t, lam, style, label=name)
axes.set(
    xlabel="time t", ylabel="multiplier λ", title="least-norm forces of three bars, one of them redundant"
)
axes.legend()
plt.show()
