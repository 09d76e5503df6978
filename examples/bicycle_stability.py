"""
A bicycle that balances by itself: eigenvalues over speed
=========================================================

The bicycle of the benchmark of Meijaard, Papadopoulos, Ruina & Schwab (2007), made of bodies and joints. At
each speed, riding straight ahead is a steady motion; the eigenvalues of its linearisation are those of the
weave (an oscillation), the capsize (a slow fall) and the castering (a fast decay).

Printed: the range of speeds in which no deviation grows; published are 4.292 and 6.024 m/s.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import brentq

import holonome as hn

bicycle = hn.mechanisms.whipple_bicycle()


def eigenvalues(speed):
    motion = {"rear frame": {"velocity": (speed, 0, 0), "angular_velocity": (0, 0, 0)}, "steer": 0.0}
    return hn.equilibrium(bicycle, speed=motion).eigenvalues


def growth(speed):
    return np.max(eigenvalues(speed).real)


speeds = np.linspace(0.2, 10, 99)
found = [eigenvalues(speed) for speed in speeds]
weave, capsize = brentq(growth, 4, 5), brentq(growth, 5.5, 7)

print(f"stable between {weave:.6f} and {capsize:.6f} m/s")

fig, axes = plt.subplots(layout="constrained")
for speed, values in zip(speeds, found, strict=True):
    axes.plot(speed + 0 * values.real, values.real, ".", color="#0072B2", markersize=3)
    swings = values[values.imag > 1e-9]
    axes.plot(speed + 0 * swings.real, swings.imag, ".", color="#D55E00", markersize=3)
axes.axvspan(weave, capsize, color="#009E73", alpha=0.15)
axes.axhline(0, color="#444444", linewidth=0.8)
axes.set(xlabel="speed, m/s", ylabel="1/s", ylim=(-10, 10), title="real parts (blue), frequencies (orange)")
plt.show()
