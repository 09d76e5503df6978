"""
A contact: a rope becomes taut
==============================

A mass on a slack rope of length 1 falls; when the rope is taut, it swings on, and would go slack again where
the rope had to push::

    q″ = (0, −γ) − λ q/|q|,   0 ≤ 1 − |q|,   0 ≤ λ,   0 = λ (1 − |q|)
    v⁺ = v⁻ − (q·v⁻) q  where it becomes taut

Symbols: position q = (x, y), gravity γ = 9.81, tension λ of the rope; v⁻ and v⁺ are the velocities before and
after the rope is taut.

Printed: the run, the velocities before and after, the energy that the jerk took, and the smallest tension
from there on: the rope stays taut.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

rope = hn.Contact(lambda q: 1 - np.sqrt(q @ q), name="rope")
mass = hn.System(np.eye(2), [0.0, -9.81], names=["x", "y"], contacts=rope)
sol = hn.solve(mass, (0, 5), [0.5, 0], rtol=1e-8)

before = int(np.flatnonzero(np.diff(sol.t) == 0)[0])
taut = sol.contact("rope")
print(sol)
print(f"velocity {sol.v[:, before]} becomes {sol.v[:, before + 1]}")
print(f"energy lost {sol.impacts.energy_lost[0]:.4f} at t = {sol.impacts.t[0]:.4f}")
print(f"smallest tension {np.min(taut.force[taut.closed]):.3f}")

fine = hn.solve(mass, (0, 5), [0.5, 0], rtol=1e-8, t_eval=np.linspace(0, 5, 1000))
fig, axes = plt.subplots(layout="constrained")
for what, part in (("slack", ~fine.contact("rope").closed), ("taut", fine.contact("rope").closed)):
    axes.plot(*fine.q[:, part], label=what)
axes.plot(0, 0, "k^")
axes.set(xlabel="x", ylabel="y", aspect="equal")
axes.legend()
plt.show()
