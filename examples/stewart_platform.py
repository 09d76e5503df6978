"""
A Stewart platform in twenty lines
==================================

Six legs carry a plate. Each is a universal joint on the ground, a slide that a motor drives, and a ball joint
under the plate. The lengths of the legs are prescribed as functions of time; the pose of the plate, and the
forces that the motors need, follow.

Printed: the mechanism; how closely the lengths, measured between the ends of the legs, are what was asked
for; and whether the motors put in what the energy gains.
"""

import numpy as np

import holonome as hn

m = hn.Mechanism("Stewart platform", gravity=(0, 0, -9.81))
plate = m.body("plate", mass=10, inertia=(1, 1, 2))
turn = np.repeat([0, 120, 240], 2)
below, above = np.radians(turn + [-10, 10] * 3), np.radians(turn + [-50, 50] * 3)
for k in range(6):
    foot = m.ground.at(np.cos(below[k]), np.sin(below[k]), 0)
    head = plate.at(0.6 * np.cos(above[k]), 0.6 * np.sin(above[k]), 0)
    lower = m.body(f"lower {k}", mass=1, inertia=(0.02, 0.02, 0.001), center=(0, 0, 0.3))
    upper = m.body(f"upper {k}", mass=0.5, inertia=(0.01, 0.01, 0.001), center=(0, 0, -0.3))
    m.universal(f"U{k}", foot, lower)
    m.prismatic(f"L{k}", lower, upper)
    m.spherical(f"S{k}", upper, head)
    m.drive(f"motor {k}", f"L{k}", law=lambda t, k=k: 1.2 + 0.1 * np.sin(3 * t) * np.cos(k))
sol = hn.solve(m, (0, 4), start={"plate": hn.near({"position": (0, 0, 1.1)})}, t_eval=np.linspace(0, 4, 201))

# %%
# There is nothing to solve for but the pose, and the forces come with it.

import matplotlib.pyplot as plt  # noqa: E402

print(m)
body, off = sol.body("plate"), 0.0
for k in range(6):
    head = body.point((0.6 * np.cos(above[k]), 0.6 * np.sin(above[k]), 0.0))
    foot = np.array([[np.cos(below[k])], [np.sin(below[k])], [0.0]])
    wanted = 1.2 + 0.1 * np.sin(3 * sol.t) * np.cos(k)
    off = max(off, np.max(np.abs(np.linalg.norm(head - foot, axis=0) - wanted)))
work = sum(sol.work(f"motor {k}") for k in range(6))
print(f"the legs are as long as they should be, to {off:.0e}")
print(f"work of the motors less gain of energy: at most {np.max(np.abs(sol.energy_error)):.0e} J of", end=" ")
print(f"{np.ptp(work):.1f} J")

# %%
# Where the plate goes, and what its motors must push with.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot(sol.t, body.position.T, label=["x", "y", "z"])
left.set(title="The centre of the plate", xlabel="time", ylabel="m")
left.legend()
for k in range(6):
    right.plot(sol.t, sol.effort(f"motor {k}"))
right.set(title="The forces of the six motors", xlabel="time", ylabel="N")
plt.show()
