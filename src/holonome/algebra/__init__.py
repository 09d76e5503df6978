"""Linear algebra in compiled loops."""

import holonome.machine  # noqa: F401  before Numba sees a function
