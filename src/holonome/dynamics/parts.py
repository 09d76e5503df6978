"""Where the parts of a projection's result stand: (rate;  error;  δ;  ρ;  σ), the first three as long as the state."""

from numba import njit

from holonome.machine.calls import shift


def projection_size(size: int, rows: int) -> int:
    """Numbers that a projection writes, and one more, for a state of this size."""
    return 3 * size + rows + 4


@njit(cache=True, inline="always")
def error_in(out, size):
    """The error vector without its part normal to the manifold."""
    return shift(out, size)


@njit(cache=True, inline="always")
def correction_in(out, size):
    """δ, the step to the manifold."""
    return shift(out, 2 * size)


@njit(cache=True, inline="always")
def missed_in(out, size):
    """ρ, by which dependent rows miss their equations, on the position and on the velocity level."""
    return shift(out, 3 * size)


@njit(cache=True, inline="always")
def regularity_in(out, size):
    """σ, which tells when the rank is about to fall."""
    return shift(out, 3 * size + 2)
