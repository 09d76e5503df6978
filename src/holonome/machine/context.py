"""The context of a run: one array of doubles in which a kernel finds all that stays fixed.

    record        sizes and addresses, by name
    p             the user's parameters, then the blocks of supplied values
    vectors       those of the record: marks, a sparse factorization, work space of the dense kernels

A block belongs to a function that could not be traced (:mod:`holonome.machine.supplied`) or to variables that
are solved for inside an evaluation (:mod:`holonome.machine.inner_newton`); kernels read its values as they
read parameters.

Each run owns its context, so several threads may run one system at the same time.
"""

import numpy as np

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
    usual_rank: Whole  # that of all but singular positions: less than ``rows`` where rows are redundant
    left_out: Vector  # for each row, whether it is known to depend on others and is left out
    sparse: Vector  # memory of a sparse factorization, of large systems
    has_work: Whole  # 0 for very large systems
    work: Vector  # of the dense kernels


class Block(Layout):
    """What a block of supplied values begins with."""

    driver: Whole  # address of the kernel that computes the values; it is called before they are read


named_context = Context.named()

PARAMETERS = Context.words
"""Where p begins."""

LEFT_OUT_SHIFT = 1e30
"""Subtracted from the diagonal entry of a row that is left out, so that its multiplier does not change."""

OK, SINGULAR, RAISED, INTERRUPTED = 0, 1, 2, 3
"""Status of a kernel: fine; a pivot says the matrix is (nearly) singular; a Python function raised an error
or returned something unusable; the user wants to stop.
"""


def write_block(context: np.ndarray, offset: int, block: np.ndarray) -> None:
    """Write a block of supplied values into a context, at an offset behind the beginning of p."""
    begin = PARAMETERS + offset
    context[begin : begin + block.size] = block
