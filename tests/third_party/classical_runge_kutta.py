"""The classical Runge–Kutta method of order four, as someone outside the package would add it: a tableau.

The error is estimated by an embedded method that replaces the last stage by the derivative at the end of the
step.
"""

import numpy as np

import holonome as hn

CLASSICAL = hn.Tableau(
    name="rk4",
    title="the classical Runge–Kutta method",
    a=np.array([[0, 0, 0, 0], [1 / 2, 0, 0, 0], [0, 1 / 2, 0, 0], [0, 0, 1, 0]]),
    b=np.array([1 / 6, 1 / 3, 1 / 3, 1 / 6]),
    c=np.array([0, 1 / 2, 1 / 2, 1]),
    errors=(np.array([0, 0, 0, 1 / 6, -1 / 6]),),
    order=4,
    error_order=3,
    stable=2.78,
)
METHOD = hn.Method(hn.UnderlyingODE(), hn.RungeKutta(CLASSICAL))
