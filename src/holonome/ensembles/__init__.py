"""Many runs of one system: studies over parameters, starts and times, on lanes, cores, graphics cards and
clusters.
"""

from holonome.ensembles.samplers import latin_hypercube as latin_hypercube
from holonome.ensembles.samplers import random as random
from holonome.ensembles.samplers import sobol as sobol

__all__ = ["latin_hypercube", "random", "sobol"]
