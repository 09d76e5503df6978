"""
Navier–Stokes in a driven cavity
================================

The flow in a square cavity whose lid moves, at Reynolds numbers 100 and 400, by sequential regularization on
a staggered (MAC) grid of 32 × 32 cells: a problem of index 2 with 1984 velocities and 1023 constraints::

    u′ = Δu/Re − div(u uᵀ) − ∇p,   0 = div u

Symbols: velocity u = (u, v), pressure p, which is known up to a constant and zero in the last cell.  The lid
moves with velocity 1 from the start; the flow is followed until it is steady.  With E = identity, the
default, div grad is never formed.

Printed: the largest distance of the horizontal velocity on the line x = 1/2 from the values that Ghia, Ghia
and Shin (J. Comput. Phys. 48, 1982) computed on 129 × 129 points, and what is left of the divergence.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import CubicSpline

import holonome as hn

N = 32
h, half = 1 / N, N * (N - 1)
WALL, LID = np.zeros((1, N)), 1.0
HEIGHTS = np.array(
    [0.0547, 0.0625, 0.0703, 0.1016, 0.1719, 0.2813, 0.4531, 0.5, 0.6172, 0.7344, 0.8516, 0.9531, 0.9609]
)
GHIA = {
    100: [-0.03717, -0.04192, -0.04775, -0.06434, -0.10150, -0.15662, -0.21090, -0.20581, -0.13641, 0.00332,
          0.23151, 0.68717, 0.73722],
    400: [-0.08186, -0.09266, -0.10338, -0.14612, -0.24299, -0.32726, -0.17119, -0.11477, 0.02135, 0.16256,
          0.29093, 0.55892, 0.61756],
}  # fmt: skip


def with_walls(x):
    """Horizontal velocities between the side walls, vertical ones between floor and lid; across the axes."""
    u, v = x[:half].reshape(N - 1, N), x[half:].reshape(N, N - 1)
    return np.concatenate([WALL, u, WALL]), np.concatenate([WALL.T, v, WALL.T], axis=1)


def laplacian(w):
    centre, across, along = w[1:-1, 1:-1], w[2:, 1:-1] + w[:-2, 1:-1], w[1:-1, 2:] + w[1:-1, :-2]
    return (across + along - 4 * centre) / h**2


def force(x, p):
    """Friction and convection; the mean of a value beyond a wall and its neighbour is that of the wall."""
    u, v = with_walls(x)
    beyond_u = np.concatenate([-u[:, :1], u, 2 * LID - u[:, -1:]], axis=1)
    beyond_v = np.concatenate([-v[:1], v, -v[-1:]])
    u_centre, v_centre = (u[1:] + u[:-1]) / 2, (v[:, 1:] + v[:, :-1]) / 2
    corner = (beyond_u[:, 1:] + beyond_u[:, :-1]) / 2 * (beyond_v[1:] + beyond_v[:-1]) / 2
    along_x = (u_centre[1:] ** 2 - u_centre[:-1] ** 2 + corner[1:-1, 1:] - corner[1:-1, :-1]) / h
    along_y = (v_centre[:, 1:] ** 2 - v_centre[:, :-1] ** 2 + corner[1:, 1:-1] - corner[:-1, 1:-1]) / h
    return np.concatenate(
        [
            (laplacian(beyond_u) / p.Re - along_x).ravel(),
            (laplacian(beyond_v) / p.Re - along_y).ravel(),
        ]
    )


def divergence(x):
    u, v = with_walls(x)
    return ((u[1:] - u[:-1] + v[:, 1:] - v[:, :-1]) / h).ravel()[:-1]


minus_gradient = np.array([divergence(e) for e in np.eye(2 * half)])
flow = hn.Index2System(
    force, minus_gradient, divergence, n=2 * half, parameters={"Re": 100.0}, name="driven cavity"
)
method, middle, steady = hn.Method(hn.SRM(eps=1e-3, iterations=2), hn.BDF()), (np.arange(N) + 0.5) * h, {}
for Re, end in ((100, 15), (400, 40)):
    sol = hn.solve(
        flow, (0, end), np.zeros(2 * half), method=method, rtol=1e-3, atol=1e-5, parameters={"Re": Re}
    )
    steady[Re] = with_walls(sol.x[:, -1])
    line = np.concatenate([[0.0], steady[Re][0][N // 2], [LID]])
    spline = CubicSpline(np.concatenate([[0.0], middle, [1.0]]), line)
    print(Re, abs(spline(HEIGHTS) - GHIA[Re]).max(), abs(divergence(sol.x[:, -1])).max())

fig, axes = plt.subplots(1, 3, figsize=(14, 4.6), layout="constrained")
for Re, one in zip(steady, axes, strict=False):
    u, v = steady[Re]
    across, up = (u[1:] + u[:-1]).T / 2, (v[:, 1:] + v[:, :-1]).T / 2
    one.streamplot(middle, middle, across, up, color=np.hypot(across, up), density=1.4)
    one.set(xlabel="x", ylabel="y", title=f"Re = {Re}", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes[2].plot(u[N // 2], middle, label=f"Re = {Re}")
    axes[2].plot(GHIA[Re], HEIGHTS, "o", mfc="none", color=axes[2].lines[-1].get_color())
axes[2].set(xlabel="horizontal velocity", ylabel="y", title="on the line x = 1/2; o: Ghia et al.")
axes[2].legend()
plt.show()
