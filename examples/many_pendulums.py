"""
Ten thousand pendulums: how long does a clock keep time?
========================================================

Clocks with pendulums whose lengths differ by a thousandth begin together; after some minutes they show every
position there is.  Each is a point mass in Cartesian coordinates on a rod, g(q) = x² + y² − length² = 0, and
all ten thousand are computed together, eight or sixteen in each instruction of the processor.

Printed: how many reached their end, and by how much the farthest of them is off its rod.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

rng = np.random.default_rng(1)
lengths = rng.normal(1.0, 1e-3, 10_000)
starts = np.c_[0.5 * lengths, -np.sqrt(0.75) * lengths]
e = hn.ensemble(
    hn.mechanisms.pendulum(),
    (0, 200),
    over={"length": ("clock", lengths), "q0": ("clock", starts)},
    t_eval=np.linspace(0, 200, 401),
    keep={"x": lambda q: q[0], "off": lambda q, p: q @ q - p.length**2},
)
ds = e.run()
print(int(ds.success.sum()), float(abs(ds.off).max()))

fig, (above, below) = plt.subplots(2, figsize=(9, 6), layout="constrained", sharex=True)
hn.plot.plot_bands(ds, "x", above)
hn.plot.plot_density(ds, "x", below)
plt.show()
