"""The context of a run: one array of doubles behind which a kernel finds all that stays fixed.

    0 … 15        header: sizes and addresses, as below (an address fits a double exactly: it has at most 48 bits)
    16 …          p: the user's parameters, then the blocks of functions that could not be traced
    … end         work space of the sparse and the dense kernels

Each run owns its context, so runs of one system may go on in several threads at once.
"""

COORDINATES, POSITION_ROWS, ROWS, PIECES, WORK, DENSE_CALLS, RANK, LEFT_OUT, SPARSE = range(9)
"""Indices in the header: n, rows of g, rows of g and the velocity constraints together, address of the kernel
`pieces`, offset of the work space, how often a dense kernel stepped in, the smallest rank it met, the offset
of a mark for each row that is known to depend on others and is left out, and the offset of a sparse
factorization, for large systems.
"""

SPARE = 1e30
"""What is subtracted from the diagonal of a row that is left out: it then says that its multiplier does not
change.
"""

PARAMETERS = 16
"""Where p begins."""

OK, SINGULAR, RAISED, INTERRUPTED = 0, 1, 2, 3
"""Status of a kernel: fine; a pivot says the matrix is (nearly) singular; a Python function raised or
returned nonsense; the user wants to stop.
"""
