"""
A closed loop: Watt's linkage
=============================

Two arms and a coupler guide the middle P of the coupler on a nearly straight line; so James Watt guided the
rod of his steam engine. Gravity moves it::

      A ───────── B              M v′ = f − Gᵀλ,   0 = (|B − A|² − a²,  |C − B|² − b²,  |C − D|² − a²)
                  │ P
                  C ───────── D  M = ⅓ | m_a + m_b     m_b/2  | for the x and for the y of the joints B and C:
                                       |   m_b/2    m_a + m_b |

uniform bars whose ends are the coordinates need no angles. Symbols: q = (x_B, y_B, x_C, y_C); arms of length
a = 1, coupler of length b = 0.5, mass ϱ per unit of length, A = (0, 0), D = (2, −0.5); gravity γ = 9.81.

Printed: what the solver did, how far P leaves the vertical line at first, where the page lies that shows the
linkage in motion, and what the methods cost on this linkage.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import holonome as hn


def mass(p):
    a, b = p.density * p.arm, p.density * p.coupler
    return np.kron(np.array([[a + b, b / 2], [b / 2, a + b]]) / 3, np.eye(2))


def weight(p):
    return p.density * (p.arm + p.coupler) / 2 * 9.81


def constraint(q, p):
    B, C = q[:2], q[2:]
    return np.array([B @ B - p.arm**2, (C - B) @ (C - B) - p.coupler**2, (C - p.D) @ (C - p.D) - p.arm**2])


def points(q, p):
    return {
        "A": (0.0, 0.0),
        "B": (q[0], q[1]),
        "C": (q[2], q[3]),
        "D": (p.D[0], p.D[1]),
        "P": ((q[0] + q[2]) / 2, (q[1] + q[3]) / 2),
    }


watt = hn.System(
    mass,
    force=lambda p: -weight(p) * np.array([0.0, 1.0, 0.0, 1.0]),
    constraint=constraint,
    potential=lambda q, p: weight(p) * (q[1] + q[3]),
    parameters={"arm": 1.0, "coupler": 0.5, "density": 1.0, "D": np.array([2.0, -0.5])},
    names=["xB", "yB", "xC", "yC"],
    constraint_names=["arm AB", "coupler BC", "arm CD"],
    name="Watt's linkage",
    drawing=hn.Drawing(points, links=[("A", "B"), ("B", "C"), ("C", "D")], ground=["A", "D"], traces=["P"]),
)

start = hn.consistent(watt, [1, 0, 1, -0.5], [0, 3, 0, 3])
sol = hn.solve(watt, (0, 5), start.q, start.v)
print(sol)

# %%
# P moves on a curve in the shape of an eight, of which the middle is almost straight.

x, y = (sol.q[:2] + sol.q[2:]) / 2
first = np.argmax(np.abs(y - y[0]) > 0.3)
print(f"P leaves the line by {np.max(np.abs(x[:first] - 1)):.1e} on its first {abs(y[first - 1] - y[0]):.2f}")
sol.plot()

out = Path("out")
out.mkdir(exist_ok=True)
page = sol.animate(out / "watt_linkage.html").file
print(f"the linkage in motion: {page}")

# %%
# The same motion by other methods: explicit ones need the fewest evaluations, as nothing is stiff, and those
# without projection lose the constraints.

table = hn.compare(watt, (0, 5), start.q, start.v, methods=["auto", "dopri5", "bdf", "ggl", "cm", "index1"])
print(table)
table.plot()
plt.show()
