"""Yen & Petzold 1996: coordinate splitting, and Newton iterations for highly oscillatory constrained systems.

The methods, all on BDF of order 1 and 2 with DASSL's step control:

GGL     stabilised index 2, (1.3)
GGL*    the same, with the multipliers left out of the convergence test; in section 5.2 they are predicted
        from the motion, and the error is tested in the independent coordinates
CS      coordinate splitting, (2.12)
CM      its modification, in which P(q̂) is kept until the Jacobian is renewed, even over several steps, as in
        the paper
CMp     CM with P at the predictor of each step: not in the paper, but a correction of CM, which does not
        converge to the solution as the tolerance falls

References
----------
J. Yen and L. Petzold, An efficient Newton-type iteration for the numerical solution of highly oscillatory
constrained multibody dynamic systems, SIAM J. Sci. Comput. 19 (1998) 1513-1534. The technical report of 1996
is quoted.
"""

from holonome.papers.yen_petzold_1996.convergence import algorithm_2_1, theorem_3_1, theorem_4_1, theorem_4_2
from holonome.papers.yen_petzold_1996.figures import figure_5_1, figure_5_3, figure_5_4, figure_5_6
from holonome.papers.yen_petzold_1996.lemmas import lemma_2_2, lemma_3_1, lemma_4_1
from holonome.papers.yen_petzold_1996.partitioning import equation_1_5
from holonome.papers.yen_petzold_1996.runs import PAPER, counts, methods, simulate
from holonome.papers.yen_petzold_1996.stages import radau
from holonome.papers.yen_petzold_1996.statements import (
    bound_2_27,
    cost,
    linear_constraints,
    step_conditions,
    superlinear,
    untested_multipliers,
)
from holonome.papers.yen_petzold_1996.step import Step, off_the_manifold, swinging
from holonome.papers.yen_petzold_1996.tables import driven_problem, table_5_1, table_5_2, table_5_3, table_5_4
from holonome.papers.yen_petzold_1996.tangents import remark_2_2

__all__ = [
    "PAPER",
    "Step",
    "algorithm_2_1",
    "bound_2_27",
    "cost",
    "counts",
    "driven_problem",
    "equation_1_5",
    "figure_5_1",
    "figure_5_3",
    "figure_5_4",
    "figure_5_6",
    "lemma_2_2",
    "lemma_3_1",
    "lemma_4_1",
    "linear_constraints",
    "methods",
    "off_the_manifold",
    "radau",
    "remark_2_2",
    "simulate",
    "step_conditions",
    "superlinear",
    "swinging",
    "table_5_1",
    "table_5_2",
    "table_5_3",
    "table_5_4",
    "theorem_3_1",
    "theorem_4_1",
    "theorem_4_2",
    "untested_multipliers",
]
