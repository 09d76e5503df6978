"""
A four-bar linkage in ten lines
===============================

A crank AB turns about A, a coupler BC joins it to a rocker CD, and the point P of the coupler draws a curve.
The loop is closed by the fourth hinge, which is a joint like the others.

Printed: the mechanism; a check of the loop, C is 0.7 away from D at all times; and Freudenstein's relation
between the angles α of the crank and δ of the rocker, with the lengths a = 0.4, b = 0.9, c = 0.7, d = 1::

    (d² + a² + c² − b²) / (2 a c) + (d / a) cos δ − (d / c) cos α = cos (α − δ)
"""

import holonome as hn

m = hn.Mechanism("four-bar", gravity=(0, -9.81))
crank = m.body("crank", 0.4, 0.0053, center=(0.2, 0), points={"A": (0, 0), "B": (0.4, 0)})
coupler = m.body("coupler", 0.9, 0.061, center=(0.45, 0), points={"B": (0, 0), "C": (0.9, 0), "P": (0.5, 1)})
rocker = m.body("rocker", 0.7, 0.0286, center=(0.35, 0), points={"C": (0.7, 0), "D": (0, 0)})
m.revolute("A", m.ground.at(0, 0), crank["A"])
m.revolute("B", crank["B"], coupler["B"])
m.revolute("C", coupler["C"], rocker["C"])
m.revolute("D", m.ground.at(1, 0), rocker["D"])
sol = hn.solve(m, (0, 5), start={"A": 0.3, "D": hn.near(2)}, speed={"A": 8})

# %%
# Everything that moves or bears a load has a name.

import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402

print(m)
length = np.hypot(*(sol.body("coupler").point("C") - np.array([[1.0], [0.0]])))
alpha, delta = sol.joint("A").angle, sol.joint("D").angle
a, b, c, d = 0.4, 0.9, 0.7, 1.0
freudenstein = (d**2 + a**2 + c**2 - b**2) / (2 * a * c) + d / a * np.cos(delta) - d / c * np.cos(alpha)
print(f"the rocker is 0.7 long, to {np.max(np.abs(length - 0.7)):.0e}")
print(f"Freudenstein's relation holds to {np.max(np.abs(freudenstein - np.cos(alpha - delta))):.0e}")
print(f"joint C bears up to {np.max(np.hypot(*sol.reaction('C').force)):.0f} N")

# %%
# The path of P, and the force in joint C.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot(*sol.body("coupler").point("P"))
left.set(title="The path of P", aspect="equal", xlabel="x", ylabel="y")
right.plot(sol.t, sol.reaction("C").force.T, label=["along x", "along y"])
right.set(title="The force in joint C", xlabel="time", ylabel="N")
right.legend()
plt.show()
