"""From expressions to machine code: compiled kernels, the memory they share, functions that are called
instead.
"""
