"""
Stiff bushings: only the slow motion
====================================

A swinging rod whose end is held by a stiff rubber bushing: the slow motion, in as many steps as a rigid joint
takes::

    M q″ = (0, −m γ, 0) − c_qᵀ (K c + D c′),     c = (x − ½ sin φ, y + ½ cos φ),     K = diag(k, k/10)

Symbols: the rod's centre (x, y) and angle φ from the downward vertical; mass 1, length 1, moment of inertia
1/12, gravity γ = 9.81; c the displacement of its end in the bushing, stiffness K, damping D.

Printed: steps for three stiffnesses, and for the rigid joint c = 0.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn


def end(q):  # of a rod, in its bushing
    return np.array([q[0] - np.sin(q[2]) / 2, q[1] + np.cos(q[2]) / 2])


rod = hn.System(
    [1.0, 1.0, 1 / 12],
    [0.0, -9.81, 0.0],
    elastic=hn.Elastic(end, stiffness=lambda p: p.k, damping=10.0),
    potential=lambda q: 9.81 * q[1],
    parameters={"k": np.array([1e8, 1e7])},
    names=["x", "y", "angle"],
)
soft, stiff, stiffer = [
    hn.solve(
        rod, (0, 5), [0.5, 0, np.pi / 2], motion="smooth", rtol=1e-4, parameters={"k": k * np.array([1, 0.1])}
    )
    for k in (1e8, 1e12, 1e20)
]
print(soft.steps, stiff.steps, stiffer.steps)  # about 700 each

rigid = hn.System([1.0, 1.0, 1 / 12], [0.0, -9.81, 0.0], end, names=["x", "y", "angle"])
joint = hn.solve(rigid, (0, 5), [0.5, 0, np.pi / 2], motion="smooth", rtol=1e-4)
print("and with a rigid joint", joint.steps)
print(stiff.message)

fig, axes = plt.subplots(layout="constrained")
for run, what in ((soft, "1e8"), (stiffer, "1e20"), (joint, "rigid")):
    axes.semilogy(run.t[1:], np.diff(run.t), label=f"stiffness {what}: {run.steps} steps")
axes.set(xlabel="time t", ylabel="step size")
axes.legend()
plt.show()
