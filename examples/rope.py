"""
An event and a restart: a rope becomes taut
===========================================

A mass on a slack rope of length 1 falls; when the rope is taut, it swings on::

    q″ = (0, −γ)  while |q| < 1;   then  q″ = (0, −γ) − λ q/|q|,  0 = |q| − 1,  with  v⁺ = v⁻ − (q·v⁻) q

Symbols: position q = (x, y), gravity γ = 9.81, tension λ of the rope; v⁻ and v⁺ are the velocities before and
after the rope is taut.

Printed: both runs, the velocities before and after, the energy that the jerk took, and the smallest tension:
the rope stays taut while it is positive.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

fall = hn.System(np.eye(2), [0.0, -9.81], names=["x", "y"])
swing = hn.System(np.eye(2), [0.0, -9.81], lambda q: np.sqrt(q @ q) - 1, names=["x", "y"])
falling = hn.solve(fall, (0, 5), [0.5, 0], events=hn.Event(lambda q: np.sqrt(q @ q) - 1, terminal=True))
t, q, v = falling.t[-1], falling.q[:, -1], falling.v[:, -1]
swinging = hn.solve(swing, (t, 5), q, v, repair=True)

print(falling)
print(swinging)
print(
    f"velocity {v} becomes {swinging.v[:, 0]}, energy lost "
    f"{(v @ v - swinging.v[:, 0] @ swinging.v[:, 0]) / 2:.4f}"
)
print(f"smallest tension {np.min(swinging.lam):.3f}")

fig, axes = plt.subplots(layout="constrained")
for run, what in ((falling, "slack"), (swinging, "taut")):
    fine = hn.solve(
        run.system,
        (run.t[0], run.t[-1]),
        run.q[:, 0],
        run.v[:, 0],
        t_eval=np.linspace(run.t[0], run.t[-1], 300),
    )
    axes.plot(*fine.q, label=what)
axes.plot(0, 0, "k^")
axes.set(xlabel="x", ylabel="y", aspect="equal")
axes.legend()
plt.show()
