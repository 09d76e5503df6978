"""Integrators: how a formulation is advanced in time.  One file each."""

import holonome.machine  # noqa: F401  before Numba sees a function
