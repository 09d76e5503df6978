"""What a system can be asked in numbers: accelerations, multipliers, the way back to the manifold, a
consistent start.
"""

import holonome.machine  # noqa: F401  before Numba sees a function
