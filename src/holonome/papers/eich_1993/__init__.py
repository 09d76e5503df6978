"""Eich 1993: coordinate projection. Convergence, and propagation of errors; the flying wheel set.

The method: BDF on the equations of index 1, (1.5), with and without the projection (2.5) of every step onto g
= 0 and G v = 0, in the Euclidean metric as in the paper.

References
----------
E. Eich, Convergence results for a coordinate projection method applied to mechanical systems with algebraic
constraints, SIAM J. Numer. Anal. 30 (1993) 1467-1482.
"""

from holonome.papers.eich_1993.invariants import higher_index
from holonome.papers.eich_1993.orders import guided, largest_errors, order, theorems_3_1_and_3_2
from holonome.papers.eich_1993.pendulum import table_3_1
from holonome.papers.eich_1993.propagation import ProjectedBDF, error_propagation, kepler, remark_2_2
from holonome.papers.eich_1993.runs import FORMULATIONS, GRAVITY, PAPER, fifty_periods, gain, method, scatter
from holonome.papers.eich_1993.statements import gauss_newton, projected_error
from holonome.papers.eich_1993.wheel_set import figure_1_4, figures_1_2_and_1_3

__all__ = [
    "FORMULATIONS",
    "GRAVITY",
    "PAPER",
    "ProjectedBDF",
    "error_propagation",
    "fifty_periods",
    "figure_1_4",
    "figures_1_2_and_1_3",
    "gain",
    "gauss_newton",
    "guided",
    "higher_index",
    "kepler",
    "largest_errors",
    "method",
    "order",
    "projected_error",
    "remark_2_2",
    "scatter",
    "table_3_1",
    "theorems_3_1_and_3_2",
]
