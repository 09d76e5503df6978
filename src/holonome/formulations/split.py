"""The split of coordinates into dependent and independent ones, section 2 of Yen & Petzold 1996: Gaussian
elimination with row pivoting on Cᵀ (2.2), and what is computed with its factors.
"""

from numba import njit

from holonome.machine.calls import shift
from holonome.machine.context import LEFT_OUT_SHIFT
from holonome.machine.layout import Layout, Real, Vector, Whole

_DEPENDENT = 1e-9
"""A column of Gᵀ that elimination leaves with less than this of its size depends on those before it."""


class Split(Layout):
    """The formulation's own memory: which iteration, and what is known of the split."""

    coordinates: Whole
    states: Whole  # first-order states
    rows: Whole
    position_rows: Whole
    current_p: Whole  # CS: P follows the iterate
    frozen_p: Whole  # CM as printed: P is kept as long as the matrix
    with_velocities: Whole  # what the error test sees
    times_kappa: Whole
    over_all: Whole  # its mean is over all coordinates
    equations: Whole  # address of the GGL residual
    jacobian: Whole  # address of C
    chosen: Real  # largest entry of Q when the split was chosen; 0: there is none
    rank: Whole
    position_rank: Whole
    kappa: Real
    largest: Real  # entry of Q
    changes: Whole  # how often the split was changed
    mask: Vector  # weights of the error test
    row_shift: Vector  # e, which marks the rows that are left out
    T: Vector  # Cᵀ, eliminated; n × m, by rows
    T_end: Vector  # the same at the end of a step
    order: Vector  # pivot rows, so the dependent coordinates
    columns: Vector  # the column of each
    place: Vector  # of each coordinate among the pivots; n: independent
    scale: Vector  # largest entry of each column
    work: Vector


@njit(cache=True)
def _eliminate(b, T, k):
    """Step k of (2.2): multipliers below the pivot, in the rows that are not pivots yet, and the update of
    the columns that follow.
    """
    m, place, pivot, column = b.rows, b.place, int(b.order[k]), int(b.columns[k])
    for i in range(b.coordinates):
        if place[i] > k:
            factor = T[i * m + column] / T[pivot * m + column]
            T[i * m + column] = factor
            if factor != 0.0:
                for j in range(column + 1, m):
                    T[i * m + j] -= factor * T[pivot * m + j]


@njit(cache=True)
def _largest_free(b, T, j):
    """The row of the largest entry of a column among those that are not pivots; −1 if the column depends on
    others.
    """
    best, size = -1, _DEPENDENT * b.scale[j]
    for i in range(b.coordinates):
        if b.place[i] == b.coordinates and abs(T[i * b.rows + j]) > size:
            best, size = i, abs(T[i * b.rows + j])
    return best


@njit(cache=True)
def choose(b, T):
    """Pivot rows, the dependent coordinates Y, by the largest entry; columns without one depend on those
    before.

    Sets e and the ranks; True if e changed.
    """
    n, m, mg, changed = b.coordinates, b.rows, b.position_rows, False
    b.rank = 0
    b.position_rank = 0
    for i in range(n):
        b.place[i] = n
    for j in range(m):
        b.scale[j] = 0.0
        for i in range(n):
            b.scale[j] = max(b.scale[j], abs(T[i * m + j]))
    for j in range(m):
        best = _largest_free(b, T, j)
        e = LEFT_OUT_SHIFT if best < 0 else 0.0
        changed = changed or b.row_shift[j] != e
        b.row_shift[j] = e
        if j < mg:
            b.row_shift[m + j] = e
        if best < 0:
            continue
        b.order[b.rank] = best
        b.columns[b.rank] = j
        b.place[best] = b.rank
        _eliminate(b, T, b.rank)
        b.rank += 1
        if j < mg:
            b.position_rank = b.rank
    return changed


@njit(cache=True)
def factor(b, T):
    """(2.2) with the pivots that are in use; False if one of them has lost its digits."""
    for k in range(b.rank):
        column = int(b.columns[k])
        if not abs(T[int(b.order[k]) * b.rows + column]) > _DEPENDENT * b.scale[column]:
            return False
        _eliminate(b, T, k)
    return True


@njit(cache=True)
def measure(b, T):
    """Largest entry of Q and its norm κ, from Qᵀ = L_x L⁻¹."""
    n, m, rank, largest, order, columns, work = b.coordinates, b.rows, b.rank, 0.0, b.order, b.columns, b.work
    for k in range(rank):
        work[rank + k] = 0.0
    for i in range(n):
        if b.place[i] < n:
            continue
        for k in range(rank - 1, -1, -1):
            z = T[i * m + int(columns[k])]
            for l in range(k + 1, rank):
                z -= work[l] * T[int(order[l]) * m + int(columns[k])]
            work[k] = z
            work[rank + k] += abs(z)
            largest = max(largest, abs(z))
    b.largest = largest
    b.kappa = 0.0
    for k in range(rank):
        b.kappa = max(b.kappa, work[rank + k])


@njit(cache=True)
def project(b, T, r, rank):
    """Replace r by X P r: L⁻¹ Yᵀ r, then Xᵀ r − L_x L⁻¹ Yᵀ r, and zero for the dependent coordinates."""
    m, order, columns, place = b.rows, b.order, b.columns, b.place
    for k in range(rank):
        y = r[int(order[k])]
        if y != 0.0:
            for i in range(b.coordinates):
                if place[i] > k:
                    r[i] -= T[i * m + int(columns[k])] * y
    for k in range(rank):
        r[int(order[k])] = 0.0


@njit(cache=True)
def _multiplier(b, T, r, rank, out, rows):
    """Solve s = −(G Y)⁻ᵀ Yᵀ r = −U⁻¹ L⁻¹ Yᵀ r; zero for rows that are left out.  Overwrites Yᵀ r."""
    m, order, columns = b.rows, b.order, b.columns
    for j in range(rows):
        out[j] = 0.0
    for k in range(rank):
        y = r[int(order[k])]
        for l in range(k + 1, rank):
            r[int(order[l])] -= T[int(order[l]) * m + int(columns[k])] * y
    for k in range(rank - 1, -1, -1):
        s = r[int(order[k])]
        for l in range(k + 1, rank):
            s += T[int(order[k]) * m + int(columns[l])] * out[int(columns[l])]
        out[int(columns[k])] = -s / T[int(order[k]) * m + int(columns[k])]


@njit(cache=True)
def multipliers(b, T, r, out):
    """λ = s₂ and μ = s₁ from the residuals r₁ and r₂."""
    _multiplier(b, T, shift(r, b.coordinates), b.rank, out, b.rows)
    _multiplier(b, T, r, b.position_rank, shift(out, b.rows), b.position_rows)
