"""Many runs of one system: studies over parameters, starts and times, on lanes, cores, graphics cards and
clusters.
"""

from holonome.ensembles.along import first_passage as first_passage
from holonome.ensembles.along import maximum as maximum
from holonome.ensembles.along import mean as mean
from holonome.ensembles.along import minimum as minimum
from holonome.ensembles.samplers import latin_hypercube as latin_hypercube
from holonome.ensembles.samplers import random as random
from holonome.ensembles.samplers import sobol as sobol

__all__ = [
    "first_passage",
    "latin_hypercube",
    "maximum",
    "mean",
    "minimum",
    "random",
    "sobol",
]
