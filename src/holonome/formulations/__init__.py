"""Formulations: what is solved in place of the constrained equations.  One file each."""

import holonome.machine  # noqa: F401  before Numba sees a function
