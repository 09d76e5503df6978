"""
Bodies that bend: a flexible slider-crank
=========================================

A slider-crank whose connecting rod bends, by two shapes in a frame that moves with it::

      B ──────────╮             deflection from the line BC:  w(x, t) = Σ a_i(t) sin(i π x / L),   i = 1, 2
     ╱             ╰────── C    elastic forces:               K_ii = ½ E I (i π / L)⁴ L
    A                   ══════

Symbols: x the distance from B, L the length of the rod, a_i its amplitudes, E Young's modulus and I the
second moment of area of its section.  The flywheel on the crank starts with 20 rad/s and keeps the mechanism
going.

Printed: the steps that ``motion="smooth"`` takes for three values of E, which do not depend on it, and the
largest deflection in the middle of the rod, which is inversely proportional to it.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

m = hn.Mechanism("flexible slider-crank", gravity=(0, -9.81), parameters={"E": 7e10})
bar = hn.bodies.Section.rectangle(width=0.02, height=0.02)
crank = m.body("crank", mass=2.0, inertia=0.02, points={"A": (0, 0), "B": (0.15, 0)})
rod = m.beam(
    "rod",
    0.4,
    modes=2,
    ends="pinned-pinned",
    section=bar,
    E=m.p.E,
    density=2700,
    points={"middle": 0.2},
)
slider = m.body("slider", mass=0.3, inertia=1e-3, points={"C": (0, 0)})
m.revolute("A", m.ground.at(0, 0), crank["A"])
m.revolute("B", crank["B"], rod["left"])
m.revolute("C", rod["right"], slider["C"])
m.prismatic("D", m.ground.at(0, 0), slider["C"])


def deflection(run):
    """How far the middle of the rod is from the line between its ends."""
    a, b, middle = (rod.path(run, name) for name in ("left", "right", "middle"))
    along = (b - a) / np.linalg.norm(b - a, axis=0)
    return along[0] * (middle - a)[1] - along[1] * (middle - a)[0]


start = {"start": {"A": 0.5, "D": hn.near(0.5)}, "speed": {"A": 20.0}}
runs = {
    E: hn.solve(m, (0, 1), **start, motion="smooth", rtol=1e-4, parameters={"E": E})
    for E in (7e10, 7e11, 7e12)
}
for E, run in runs.items():
    print(f"E = {E:.0e}: {run.steps} steps, deflection up to {np.max(np.abs(deflection(run))):.2e}")
real = hn.solve(m, (0, 1), **start, rtol=1e-6)  # with its vibrations
print(f"all vibrations: {real.steps} steps")

fig, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(9, 3.6))
run = runs[7e10]
left.plot(real.t, deflection(real) * 1e6, lw=0.6, color="0.6", label="with vibrations")
left.plot(run.t, deflection(run) * 1e6, label="smooth motion")
left.set(xlabel="time t", ylabel="deflection, µm", xlim=(0, 0.5))
left.legend()
stations = np.array([run.body(point.body.name).position for point in rod.line])  # from B to C
for k in np.searchsorted(run.t, np.linspace(0.02, 0.3, 7)):
    B, C = stations[0, :, k], stations[-1, :, k]
    share = (stations[:, :, k] - B) @ (C - B) / ((C - B) @ (C - B))
    straight = B + share[:, None] * (C - B)
    right.plot(*np.array([[0, 0], B]).T, "0.7")
    right.plot(*(straight + 1000 * (stations[:, :, k] - straight)).T, "C0")
right.set(xlabel="x", ylabel="y", aspect="equal", title="the rod, its deflection 1000-fold")
plt.show()
