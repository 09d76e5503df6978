"""Turns ordinary NumPy functions into CasADi expressions by running them once with symbolic arguments.

A `Traced` scalar records what is done to it in a 1x1 `casadi.SX`; a `TracedArray` is an object array of such
scalars and plain floats. NumPy's protocols (``__array_ufunc__``, ``__array_function__``) bring most of NumPy
to them, but not what never sees a traced argument: ``np.zeros`` makes an array of floats that cannot hold a
traced value, ``np.array`` makes an array that NumPy's functions cannot work on, ``math.sin`` wants a float.
Therefore the function runs as a *copy* that refers to look-alikes of numpy and math (`copies`). The modules
themselves are never touched: compiled code that allocates an array through them, as that of numpy.random
does, gets the array of doubles that it writes into. A branch on a traced value is decided by a script: the
function is run once per path and the results are joined (`tracer`).

From the bottom up, each module importing only from those before it:

=================== ===============================================================================
`origin`            whether code is the user's or a library's
`session`           the trace under way: its decisions, and refusing what cannot be traced
`values`            `Traced` and `TracedArray`, and conversion from and to ordinary numbers and arrays
`scalar_rules`      what elementary functions do to traced scalars
`ufuncs`            what NumPy's ufuncs do to traced values
`linear_algebra`    what numpy.linalg and np.cross do to them
`array_functions`   what NumPy's other functions do to them
`math_functions`    what the module math and some builtins do to them
`look_alikes`       numpy and math as the copy of a function sees them
`copies`            copies of the user's functions, classes and objects that refer to look-alikes
`captured`          what a function has captured, and whether it has changed since
`arguments`         what a function asks for and is given
`explanations`      whether an error is the user's or comes from tracing
`tracer`            `trace` itself: all paths through a function, joined
=================== ===============================================================================
"""

from holonome.tracing.arguments import Namespace, argument_names
from holonome.tracing.captured import Captured, Frozen, Watched
from holonome.tracing.session import Untraceable
from holonome.tracing.tracer import trace
from holonome.tracing.values import Traced, TracedArray, traced

__all__ = [
    "Captured",
    "Frozen",
    "Namespace",
    "Traced",
    "TracedArray",
    "Untraceable",
    "Watched",
    "argument_names",
    "trace",
    "traced",
]
