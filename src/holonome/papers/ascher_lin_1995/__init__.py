"""Ascher & Lin 1995: sequential regularization methods for nonlinear higher index DAEs.

All runs of section 6 take Heun's method at constant step and y₀ ≡ 0, with y_{s−1} carried as mesh values;
"Baumgarte" is α₁ = 1, ε = 0 with α₂ = 1/h. Errors are largest over the components; drift is the largest |g|.

References
----------
U. Ascher and P. Lin, Sequential regularization methods for nonlinear higher index DAEs, SIAM J. Sci. Comput.
18 (1997) 160-181. The technical report of 1995 is quoted.
"""

from holonome.papers.ascher_lin_1995.orders import (
    example_3_1,
    index_2_error,
    index_3_error,
    remark_4_1,
    theorem_2_1,
    theorem_2_2,
    theorem_4_1,
)
from holonome.papers.ascher_lin_1995.practice import random_starts
from holonome.papers.ascher_lin_1995.runs import (
    PAPER,
    baumgarte,
    errors,
    example_3_1_problem,
    example_6_1,
    example_6_2,
    example_6_3,
    heun,
)
from holonome.papers.ascher_lin_1995.slider_crank import crank, figure_5_1, figure_6_1, figure_6_2, table_6_5
from holonome.papers.ascher_lin_1995.statements import (
    boundary_values,
    equation_4_12,
    equation_5_2,
    example_6_4,
    initial_layer,
    turning_point,
    velocity_level,
)
from holonome.papers.ascher_lin_1995.tables import table_6_1, table_6_2, table_6_3, table_6_4

__all__ = [
    "PAPER",
    "baumgarte",
    "boundary_values",
    "crank",
    "equation_4_12",
    "equation_5_2",
    "errors",
    "example_3_1",
    "example_3_1_problem",
    "example_6_1",
    "example_6_2",
    "example_6_3",
    "example_6_4",
    "figure_5_1",
    "figure_6_1",
    "figure_6_2",
    "heun",
    "index_2_error",
    "index_3_error",
    "initial_layer",
    "random_starts",
    "remark_4_1",
    "table_6_1",
    "table_6_2",
    "table_6_3",
    "table_6_4",
    "table_6_5",
    "theorem_2_1",
    "theorem_2_2",
    "theorem_4_1",
    "turning_point",
    "velocity_level",
]
