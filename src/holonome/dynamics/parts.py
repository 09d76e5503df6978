"""Layout of a projection's result: (rate;  error;  δ;  ρ;  σ), the first three as long as the state."""

from numba import njit

from holonome.machine.calls import shift


def projection_size(size: int, rows: int) -> int:
    """One more than the numbers that a projection writes for a state of this size."""
    return 3 * size + rows + 4


@njit(cache=True, inline="always")
def error_in(out, size):
    """The part of the error vector that is tangential to the manifold."""
    return shift(out, size)


@njit(cache=True, inline="always")
def correction_in(out, size):
    """δ, the step onto the manifold."""
    return shift(out, 2 * size)


@njit(cache=True, inline="always")
def missed_in(out, size):
    """ρ, the residuals of dependent rows on the position and on the velocity level."""
    return shift(out, 3 * size)


@njit(cache=True, inline="always")
def regularity_in(out, size):
    """σ, which shows when the rank is about to drop."""
    return shift(out, 3 * size + 2)
