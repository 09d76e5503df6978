"""Linear algebra: every elimination of the package, except those done by CasADi and NumPy.

===============  =========================================  ==================================================
`dense`          LU, row pivoting, scaled rows; loops      Newton matrices where emitted code finds no pivots
`saddle_point`   QR, column pivoting, rank; loops          M and C where they are singular or dependent
`sparse`         LU, pivots kept while they hold; loops    large Newton matrices and saddle-point problems
`least_squares`  LU, singular values if that fails         contacts
`elimination`    LU without pivoting, of symbols; emitted  Newton matrices of up to 60 unknowns
`ordering`       orders with little fill                   for the two above
===============  =========================================  ==================================================

Elsewhere: CasADi's LDLᵀ of M and C M⁻¹ Cᵀ, symmetric and emitted (:mod:`holonome.dynamics.manifold`), and the
elimination of the rectangular Gᵀ that splits coordinates, whose pivot rows are its result
(:mod:`holonome.formulations.split`).
"""

import holonome.machine  # noqa: F401  before Numba sees a function
