"""Systems that are coupled by constraints and solved each by its own solver."""

import holonome.machine  # noqa: F401  before Numba sees a function
