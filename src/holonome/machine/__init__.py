"""From expressions to machine code: compiled kernels, the memory they share, functions that are called
instead.
"""

from llvmlite.binding.ffi import lib
from numba.core.compiler_lock import global_compiler_lock

from holonome.locks import hold_over_fork
from holonome.machine import engine_cache

engine_cache.install()
hold_over_fork([global_compiler_lock._lock, lib._lock._lock])
