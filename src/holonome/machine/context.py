"""The context of a run: one array of doubles behind which a kernel finds all that stays fixed.

    record        sizes and addresses, by name
    p             the user's parameters, then the blocks of functions that could not be traced
    vectors       those of the record: marks, a sparse factorization, work space of the dense kernels

Each run owns its context, so runs of one system may go on in several threads at once.
"""

from holonome.machine.layout import Layout, Vector, Whole


class Context(Layout):
    """The record, of a mechanical system."""

    coordinates: Whole
    states: Whole  # first-order states
    position_rows: Whole  # rows of g
    rows: Whole  # rows of g and of the velocity constraints together
    pieces: Whole  # address of the kernel `pieces`
    dense_calls: Whole  # how often a dense kernel stepped in
    rank: Whole  # the smallest rank that it met
    left_out: Vector  # for each row, whether it is known to depend on others and is left out
    sparse: Vector  # memory of a sparse factorization, of large systems
    has_work: Whole  # 0 for very large systems
    work: Vector  # of the dense kernels


named_context = Context.named()

PARAMETERS = Context.words
"""Where p begins."""

SPARE = 1e30
"""What is subtracted from the diagonal of a row that is left out: it then says that its multiplier does not change."""

OK, SINGULAR, RAISED, INTERRUPTED = 0, 1, 2, 3
"""Status of a kernel: fine; a pivot says the matrix is (nearly) singular; a Python function raised or returned
nonsense; the user wants to stop.
"""
