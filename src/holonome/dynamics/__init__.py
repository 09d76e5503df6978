"""Numerical evaluation of a system: accelerations, multipliers, projection onto the manifold, consistent
initial values.
"""

import holonome.machine  # noqa: F401  before Numba sees a function
