"""
A five-bar robot under control
==============================

Two motors on the ground turn an arm each; two rods join the arms in the tool P, which is to draw a circle::

              P                  J θᵢ″ = uᵢ − (Gᵀλ)ᵢ,   m r″ = (0, −m γ) − (Gᵀλ)ₓᵧ
            ╱   ╲                0 = |r − Eᵢ|² − b²,   Eᵢ = Aᵢ + a (cos θᵢ, sin θᵢ),   i = 1, 2
         E₁       E₂
          ╲       ╱              uᵢ = −k (θᵢ − θᵢ*(t)) − d (θᵢ′ − θᵢ*′(t))
           A₁   A₂

Symbols: q = (θ₁, θ₂, x, y), angles of the arms and position r = (x, y) of the tool; arms a = 0.5 with inertia
J = 0.02, rods b = 0.7, mass m = 0.3, motors in (∓0.15, 0), gravity γ = 9.81. The angles θᵢ* that would put
the tool where it belongs follow from the triangle A E P; the controller with stiffness k and damping d
follows them.

Printed: how far the tool is from its circle with a weak and with a strong controller, and the largest torque
of the motors.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

a, b, motors, sides = 0.5, 0.7, np.array([-0.15, 0.15]), np.array([1.0, -1.0])


def elbows(theta):
    return motors + a * np.cos(theta), a * np.sin(theta)


def target(t):
    return 0.2 * np.cos(2 * np.pi * t), 0.75 + 0.2 * np.sin(2 * np.pi * t)


def wanted_angles(t):
    x, y = target(t)
    distance = np.sqrt((x - motors) ** 2 + y**2)
    return np.arctan2(y, x - motors) + sides * np.arccos((a**2 + distance**2 - b**2) / (2 * a * distance))


def torques(t, q, v, p):
    ahead = 1e-6
    rate = (wanted_angles(t + ahead) - wanted_angles(t - ahead)) / (2 * ahead)
    return -p.k * (q[:2] - wanted_angles(t)) - p.d * (v[:2] - rate)


def constraint(q):
    ex, ey = elbows(q[:2])
    return (q[2] - ex) ** 2 + (q[3] - ey) ** 2 - b**2


def points(q, p):
    e1, e2 = ((m + a * np.cos(theta), a * np.sin(theta)) for m, theta in zip(motors, q[:2], strict=True))
    return {"A1": (motors[0], 0.0), "A2": (motors[1], 0.0), "E1": e1, "E2": e2, "P": (q[2], q[3])}


robot = hn.System(
    [0.02, 0.02, 0.3, 0.3],
    force=lambda t, q, v, p: np.concatenate([torques(t, q, v, p), np.array([0.0, -0.3 * 9.81])]),
    constraint=constraint,
    parameters={"k": 20.0, "d": 1.0},
    names=["theta1", "theta2", "x", "y"],
    constraint_names=["left rod", "right rod"],
    name="five-bar robot",
    drawing=hn.Drawing(
        points,
        links=[("A1", "E1"), ("E1", "P"), ("P", "E2"), ("E2", "A2")],
        ground=["A1", "A2"],
        traces=["P"],
    ),
)
start = hn.consistent(robot, [*wanted_angles(0.0), *target(0.0)])

# %%
# Another stiffness of the controller is another parameter, and compiles nothing.

fig, axes = plt.subplots(layout="constrained")
for k in (20.0, 200.0):
    sol = hn.solve(robot, (0, 2), start.q, t_eval=np.linspace(0, 2, 401), parameters={"k": k, "d": k / 20})
    off = np.hypot(*(sol.q[2:] - target(sol.t)))
    torque = max(
        np.max(np.abs(torques(t, q, v, sol.system.p)))
        for t, q, v in zip(sol.t, sol.q.T, sol.v.T, strict=True)
    )
    print(
        f"k = {k:g}: the tool is up to {1000 * np.max(off[sol.t > 1]):.1f} mm off, the motors give up to "
        f"{torque:.1f} Nm; {sol.steps} steps, |g| ≤ {sol.drift[0]:.0e}"
    )
    axes.plot(*sol.q[2:], label=f"k = {k:g}")
axes.plot(*target(sol.t), ":", color="black", label="wanted")
axes.set(xlabel="x", ylabel="y", aspect="equal", title="way of the tool")
axes.legend()

# %%
# The robot at a few instants of its last run.

sol.plot()
plt.show()
