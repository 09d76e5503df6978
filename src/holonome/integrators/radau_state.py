"""The memory of Radau methods."""

from collections import namedtuple

from numba import njit

from holonome.integrators.loop import OWN, RunState
from holonome.integrators.radau_coefficients import MOST
from holonome.integrators.residual_steps import TESTING, TestingState
from holonome.machine.calls import shift
from holonome.machine.layout import Real, Vector, Whole, taken_apart

TABLE = 3 * MOST * MOST + 4 * MOST + 1
"""Numbers of the coefficients of one method; those of fewer stages leave room."""


class RadauState(TestingState):
    """The integrator's part of the memory."""

    rows: Whole  # numbers of λ
    index3: Whole
    accelerations: Whole  # whether the unknowns after λ are the accelerations
    moving: Whole  # unknowns that are iterated: all, or q, v and s
    by_rate: Whole  # whether y′ = f(t, y) is evaluated instead of F
    prediction: Whole  # of a split of coordinates and its multipliers; 0: there is none
    complex_count: Whole
    complex_room: Whole  # doubles of a complex factorization
    complex_factors_kernel: Whole
    complex_solution: Whole
    complex_matrix: Whole
    rate_kernel: Whole  # y′ of the underlying ODE, and λ
    dense_rate: Whole
    multipliers_kernel: Whole
    dense_multipliers: Whole
    fewest: Whole  # stages
    most: Whole
    stages: Whole
    rtol: Real  # of the error test
    slack: Real  # tolerances of the error test, relative to those given
    bound: Real  # of Newton's method
    h_of_matrix: Real
    stages_of_matrix: Whole
    contraction: Real  # Θ of Newton's method
    factor: Real  # Θ/(1 − Θ), of the last step
    iterations: Whole
    largest: Real  # size up to which the step may grow
    smaller: Real  # by what to multiply the step after Newton's method failed
    first: Whole  # whether the step has none before it
    rejected: Whole  # whether the step before was rejected
    repeated: Whole  # failures of Newton's method one after the other
    error_old: Real
    wait: Whole  # steps before another order is tried
    h_polynomial: Real  # of the last step, and where it begins
    t_polynomial: Real
    stages_polynomial: Whole
    spent: Real  # instructions
    of_residual: Real  # what they cost
    of_solution: Real
    of_factors: Real
    of_complex_solution: Real
    of_complex_factors: Real
    njev: Whole
    nlu: Whole
    newton_failures: Whole
    error_failures: Whole
    tables: Vector
    basis: Vector
    kinds: Vector
    now: Vector
    rate: Vector
    new: Vector
    z: Vector
    z_before: Vector
    f: Vector
    trial: Vector
    complex_factors: Vector
    complex_dense: Vector
    complex_pivots: Vector
    complex_scale: Vector
    complex_right: Vector


Work, parts = taken_apart(
    __name__,
    {"run": (RunState, 0), "s": (RadauState, OWN)},
    TESTING + "moving now z z_before f trial",
)


Table = namedtuple("Table", "nodes inverse transformation back eigenvalues error barycentric")
"""The coefficients of a method."""


@njit(cache=True)
def table_of(w, stages):
    """The coefficients of the method with so many stages."""
    begin = shift(w.s.tables, (stages - 3) // 2 * TABLE)
    square = stages * stages
    return Table(
        begin,
        shift(begin, stages),
        shift(begin, stages + square),
        shift(begin, stages + 2 * square),
        shift(begin, stages + 3 * square),
        shift(begin, 2 * stages + 3 * square),
        shift(begin, 3 * stages + 3 * square),
    )
