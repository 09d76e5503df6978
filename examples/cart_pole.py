"""
A sampled controller: a cart balances a pole
============================================

A cart on a track carries a pole on a hinge. A hundred times a second a digital controller reads both and sets
the force of a motor, which is held until its next output. It comes half a period late, for that is how long
it computes::

    x ← Φ x + Γ u,   u = −K x,   x = (displacement, angle, their rates)

Φ and Γ are those of the held input about the upright position: their continuous form, x′ = A x + B u, comes
from the exact derivatives of the accelerations at that state, `system.at(...).derivative`. K minimises
Σ xᵀ Q x + u² (LQR).

Printed: the gain, the run, the largest force, and where cart and pole end.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.linalg import expm, solve_discrete_are

import holonome as hn

m = hn.Mechanism("cart-pole", inputs={"push": 0.0})
cart = m.body("cart", 1.0, 0.1)
pole = m.body("pole", 0.2, 0.2 / 12, center=(0, 0.5), points={"foot": (0, 0), "tip": (0, 1)})
m.prismatic("track", m.ground.at(0, 0), cart.at(0, 0))
m.revolute("hinge", cart.at(0, 0), pole["foot"])
m.force("motor", joint="track", law=lambda u: u.push)

every, n = 0.01, 2
upright = m.system.at(0, np.zeros(n), np.zeros(n))
A = np.block(
    [
        [np.zeros((n, n)), np.eye(n)],
        [upright.derivative("a", "q"), upright.derivative("a", "v")],
    ]
)
B = np.concatenate([np.zeros((n, 1)), upright.derivative("a", "u")])
held = expm(every * np.block([[A, B], [np.zeros((1, 2 * n + 1))]]))
Phi, Gamma = held[: 2 * n, : 2 * n], held[: 2 * n, 2 * n :]
P = solve_discrete_are(Phi, Gamma, np.diag([20.0, 10.0, 1.0, 1.0]), np.eye(1))
K = np.linalg.solve(1 + Gamma.T @ P @ Gamma, Gamma.T @ P @ Phi)[0]


def law(q, v):
    return float(-K @ [*q, *v])


controller = hn.Sampled(law, every=every, delay=every / 2)
sol = hn.solve(m, (0, 5), start={"track": 0.0, "hinge": 0.4}, controllers=controller)

print("gain", K.round(2))
print(sol)
print(f"largest force {np.max(np.abs(sol.inputs['push'].values)):.1f} N")
place, angle = sol.joint("track").displacement, sol.joint("hinge").angle
print(f"at the end: cart at {place[-1]:.1e}, pole at {angle[-1]:.1e}")

fig, (above, below) = plt.subplots(2, sharex=True, layout="constrained")
above.plot(sol.t, place, label="cart, m")
above.plot(sol.t, angle, label="pole, rad")
above.legend()
push = sol.inputs["push"]
below.step(push.t, push.values, where="post", label="force, N")
below.set(xlabel="t", ylabel="force, N", xlim=(0, 3))
plt.show()
