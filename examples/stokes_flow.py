"""
Stokes flow in a cavity
=======================

A viscous fluid in a square cavity, set in motion by its lid: Ascher & Lin's example of a large problem of
index 2.  On a staggered grid of 32 × 32 cells it has 1984 velocities and 1023 constraints::

    u′ = Δu − ∇p,   0 = div u

Symbols: velocity u = (u, v), pressure p, which is known up to a constant and zero in the last cell.  The lid
moves with velocity 1 from the start.  Sequential regularization never forms div grad: with E = identity each
iteration is a diffusion equation with a large bulk viscosity 1/ε.

Printed: the least horizontal velocity on the vertical line through the centre (−0.2075 for infinitely many
cells), and what is left of the divergence.
"""

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn

N = 32
h, half = 1 / N, N * (N - 1)
WALL, LID = np.zeros((1, N)), 1.0


def with_walls(x):
    """Horizontal velocities between the side walls, vertical ones between floor and lid; across the axes."""
    u, v = x[:half].reshape(N - 1, N), x[half:].reshape(N, N - 1)
    return np.concatenate([WALL, u, WALL]), np.concatenate([WALL.T, v, WALL.T], axis=1)


def laplacian(w):
    centre, across, along = w[1:-1, 1:-1], w[2:, 1:-1] + w[:-2, 1:-1], w[1:-1, 2:] + w[1:-1, :-2]
    return ((across + along - 4 * centre) / h**2).ravel()


def friction(x):
    """Values beyond a wall are such that the mean on the wall is that of the wall."""
    u, v = with_walls(x)
    u = np.concatenate([-u[:, :1], u, 2 * LID - u[:, -1:]], axis=1)
    v = np.concatenate([-v[:1], v, -v[-1:]])
    return np.concatenate([laplacian(u), laplacian(v)])


def divergence(x):
    u, v = with_walls(x)
    return ((u[1:] - u[:-1] + v[:, 1:] - v[:, :-1]) / h).ravel()[:-1]


minus_gradient = np.array([divergence(e) for e in np.eye(2 * half)])
flow = hn.Index2System(friction, minus_gradient, divergence, n=2 * half, name="Stokes flow")
method = hn.Method(hn.SRM(eps=1e-4, iterations=3), hn.BDF())
sol = hn.solve(flow, (0, 0.5), np.zeros(2 * half), method=method, rtol=1e-4, atol=1e-6)
u, v = with_walls(sol.x[:, -1])
print(sol.message)
print(u[N // 2].min(), abs(divergence(sol.x[:, -1])).max())

fig, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
middle = (np.arange(N) + 0.5) * h
speed = np.hypot((u[1:] + u[:-1]) / 2, (v[:, 1:] + v[:, :-1]) / 2)
axes[0].streamplot(
    middle, middle, (u[1:] + u[:-1]).T / 2, (v[:, 1:] + v[:, :-1]).T / 2, color=speed.T, density=1.4
)
axes[0].set(xlabel="x", ylabel="y", title="streamlines at the end", xlim=(0, 1), ylim=(0, 1), aspect="equal")
for time in (0.002, 0.01, 0.05, 0.5):
    i = int(np.searchsorted(sol.t, time))
    axes[1].plot(with_walls(sol.x[:, i])[0][N // 2], middle, label=f"t = {sol.t[i]:.2g}")
axes[1].set(xlabel="horizontal velocity", ylabel="y", title="on the line x = 1/2")
axes[1].legend()
plt.show()
