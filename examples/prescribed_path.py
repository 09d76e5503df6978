"""
A force for a given path
========================

Which force on a cart leads a load behind a spring along a given path? The equations of motion and the path,
written down as they are, are a differential-algebraic system of index 5: the path is differentiated four
times.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

REST = np.nan
"""To be found."""


def smooth(t):
    """From 0 to 1 in 4 seconds, with four continuous derivatives."""
    s = t / 4
    return s**5 * (126 - 420 * s + 540 * s**2 - 315 * s**3 + 70 * s**4)


def crane(t, x, ddx, p):
    cart, load, force = x
    spring = p.stiffness * (load - cart)
    return [p.cart * ddx[0] - spring - force, p.load * ddx[1] + spring, load - smooth(t)]


crane_with_load = hn.DAE(
    crane,
    names=["cart", "load", "force"],
    parameters={"stiffness": 5.0, "cart": 1.0, "load": 2.0},
    name="crane",
)
print(crane_with_load)
sol = hn.solve(crane_with_load, (0, 4), [REST, 0, REST], [REST, 0, REST], rtol=1e-8)
print(
    sol.message,
    f"after {sol.steps} steps; the load is off its path by {np.ptp(sol.x[1] - smooth(sol.t)):.1e}",
)

figure, (above, below) = plt.subplots(2, sharex=True, layout="constrained")
above.plot(sol.t, sol.x[0], label="cart")
above.plot(sol.t, sol.x[1], label="load")
above.set_ylabel("position")
above.legend()
below.plot(sol.t, sol.x[2])
below.set(xlabel="t", ylabel="force")
plt.show()
