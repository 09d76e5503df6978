"""
Two programs, one mechanism: local iteration
============================================

A rod hangs from a cart with a spring. The mechanism is cut at the pivot, and each half is simulated by a
program of its own; that of the cart hides its equations::

    2 x″ = −8 x + λ₁,      r″ = (0, −γ) − λ,      φ″/12 = ½ (λ₁ cos φ + λ₂ sin φ),
    0 = r − (x, 0) − ½ (sin φ, −cos φ)

Symbols: position x of the cart, centre r and angle φ of the rod (mass and length 1), gravity γ = 9.81, force
λ in the pivot.

Printed: the end of the motion in pieces, with a black box, and in one piece; what the two iterations did; and
how far they are from the run in one piece.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

cart = hn.System(2.0, lambda q: -8.0 * q, names=["x"])
rod = hn.System([1.0, 1.0, 1 / 12], [0.0, -9.81, 0.0], names=["x", "y", "angle"])


def pivot(cart, rod):  # arguments are the names of the pieces
    return rod[:2] - np.array([cart[0], 0.0]) - np.array([np.sin(rod[2]), -np.cos(rod[2])]) / 2


crane = hn.CoupledSystem({"cart": cart, "rod": rod}, pivot)
start = {"cart": [0.0], "rod": [0.5, 0.0, np.pi / 2]}
pieces = hn.solve_coupled(
    crane, (0, 5), start, method=hn.LocalIteration(window=0.05, solvers={"cart": "bdf", "rod": "dop853"})
)
whole = hn.solve(crane.whole(), (0, 5), [0.0, 0.5, 0.0, np.pi / 2], rtol=1e-10)


def program(t, q, v, force):  # moves the cart under a force that is given in time, and reports nothing else
    from scipy.integrate import solve_ivp

    run = solve_ivp(
        lambda t, y: [y[1], (force(t)[0] - 8 * y[0]) / 2],
        (t[0], t[-1]),
        [q[0], v[0]],
        t_eval=t,
        rtol=1e-9,
        atol=1e-9,
    )
    return run.y[:1], run.y[1:]


boxed = hn.CoupledSystem({"cart": hn.BlackBox(program, names=["x"]), "rod": rod}, pivot)
hidden = hn.solve_coupled(
    boxed, (0, 5), start, method=hn.LocalIteration(window=0.05, solvers={"rod": "dop853"}, rtol=1e-7)
)
print(pieces.q["rod"][:, -1], hidden.q["rod"][:, -1], whole.q[1:, -1])

print(pieces)
print(hidden)
print(
    f"cut: {np.max(np.abs(pieces.states[-1] - whole.y[:, -1])):.1e}, with a black box: "
    f"{np.max(np.abs(hidden.states[-1] - whole.y[:, -1])):.1e} from the run in one piece"
)

fig, axes = plt.subplots(layout="constrained")
axes.plot(pieces.t, pieces.q["cart"][0], label="in two pieces")
axes.plot(hidden.t, hidden.q["cart"][0], "--", label="with a black box")
axes.plot(whole.t, whole.q[0], ".", markersize=3, label="in one piece")
axes.set(xlabel="time t", ylabel="position of the cart")
axes.legend()
plt.show()
