"""From expressions to machine code: compiled kernels, the memory they share, functions that are called
instead.
"""

from holonome.machine import engine_cache

engine_cache.install()
