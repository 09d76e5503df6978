"""Wang, Hou & Modnak 2011: an iterative method for constrained dynamic problems.

The model problem (16)–(18), two structures that are joined by x₂ = 2 y₁, at rest in the beginning:

    | 4 1 | x″ = | 2 1 | x + | 6 | − | 0 |          | 5 2 | y″ = | 1 2 | y + | 10 | + | 2λ |
    | 1 3 |      | 1 2 |     | 7 |   | λ |          | 2 4 |      | 0 2 |     |  4 |   |  0 |

is solved for 0 ≤ t ≤ 10 by the splitting (3)–(4), which imposes the constraint on y, in windows Δt of M
sub-steps; here that is ``LocalIteration(update="y", projection=False)``.

References
----------
J. Wang, G. Hou and C. Modnak, An iterative method for constrained dynamic problems – a case study, 2011.
"""

from holonome.papers.wang_hou_modnak_2011.convergence import (
    beta_of,
    bound,
    constants,
    contraction,
    convergence,
    mass_ratios,
)
from holonome.papers.wang_hou_modnak_2011.runs import PAPER, PAPER_DATA, model, richardson, simulate
from holonome.papers.wang_hou_modnak_2011.statements import bounds, iteration_error, weights
from holonome.papers.wang_hou_modnak_2011.tables import (
    iterations,
    mixed_solvers,
    table_1,
    table_2,
    table_3,
    table_4,
)

__all__ = [
    "PAPER",
    "PAPER_DATA",
    "beta_of",
    "bound",
    "bounds",
    "constants",
    "contraction",
    "convergence",
    "iteration_error",
    "iterations",
    "mass_ratios",
    "mixed_solvers",
    "model",
    "richardson",
    "simulate",
    "table_1",
    "table_2",
    "table_3",
    "table_4",
    "weights",
]
