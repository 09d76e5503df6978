"""
A suspension: modes and frequency response
==========================================

A quarter of a car: the body on its suspension, the wheel on its tyre, and a road that moves up and down below
it as an input. How much of the road reaches the passenger, and how much does the force of the tyre change?

Printed: the modes, and the largest accelerations and tyre forces per metre of road.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

parameters = {"body": 400.0, "wheel": 40.0, "spring": 2e4, "damper": 1500.0, "tyre": 2e5, "g": 9.81}


def force(q, v, p, u):
    suspension = p.spring * (q[0] - q[1]) + p.damper * (v[0] - v[1])
    return np.array([-suspension - p.body * p.g, suspension - p.tyre * (q[1] - u.road) - p.wheel * p.g])


car = hn.System(
    lambda p: np.array([p.body, p.wheel]),
    force,
    parameters=parameters,
    inputs={"road": 0.0},
    names=["body", "wheel"],
)


def acceleration(a):
    return a[0]


def tyre_force(q, p, u):
    return p.tyre * (q[1] - u.road)


rest = hn.equilibrium(car, [0.0, 0.0])
lin = hn.linearize(car, rest, inputs=["road"], outputs=[acceleration, tyre_force])
response = lin.response(np.geomspace(0.1, 50, 400))

print(rest)
print(lin.modes())
print(response)

fig, axes = plt.subplots(2, 1, sharex=True, layout="constrained")
for damper, style in ((500.0, ":"), (1500.0, "-"), (4000.0, "--")):
    other = hn.equilibrium(car, rest, parameters={"damper": damper})
    curves = other.linearize(inputs=["road"], outputs=[acceleration, tyre_force]).response(
        response.frequencies
    )
    for panel, name in zip(axes, curves.outputs, strict=True):
        panel.loglog(curves.frequencies, np.abs(curves.of(name)), style, label=f"damper {damper:g}")
axes[0].set(ylabel="acceleration, m/s² per m", title="from the road to the passenger and to the tyre")
axes[1].set(ylabel="tyre force, N per m", xlabel="frequency, Hz")
axes[0].legend()
plt.show()
