"""What the families on a residual share of a step: the beginning of their records, tolerances, size, the
projection at the end of a step and between the ends, and what becomes of it.

``w`` is the memory of a family taken apart, ``w.s`` its record.
"""

from numba import njit

from holonome.dynamics.projection import Projector, project
from holonome.integrators import loop
from holonome.integrators.loop import leave, target
from holonome.machine.context import INTERRUPTED, OK, RAISED
from holonome.machine.layout import Layout, Real, Vector, Whole


class ResidualState(Layout):
    """What the record of every family on a residual begins with; its stepper's `residual_fields` fill it."""

    unknowns: Whole
    coordinates: Whole
    state: Whole  # numbers of q, v and s
    multipliers: Whole  # unknowns after them whose rows are constraints
    tolerances: Whole  # how many tolerances of q the kernels get
    factor_count: Whole  # numbers of an emitted factorization
    residual: Whole  # addresses
    factors_kernel: Whole
    solution: Whole
    matrix: Whole
    dense_projection: Whole  # 0: the solution between steps is not projected
    projection: Whole
    projection_factors: Whole
    projection_repeated: Whole
    projection_size: Whole  # numbers of a kept factorization
    yy: Vector  # Y and Y′; at first those of the start
    delta: Vector
    scratch: Vector
    factors: Vector
    dense: Vector
    pivots: Vector
    row_scale: Vector
    error_mask: Vector
    row_powers: Vector
    column_powers: Vector
    row_shift: Vector
    block: Vector
    scratch_of_state: Vector
    moved: Vector
    projector_z: Vector
    projected: Vector
    dense_projected: Vector
    kept: Vector


NEWTON = (
    "size=unknowns n=coordinates state residual_kernel=residual factors_kernel solution_kernel=solution "
    "matrix_kernel=matrix factor_count multipliers tolerances y=yy delta scratch factors dense pivots "
    "row_scale row_powers column_powers row_shift block "
)
"""What Newton's method goes on using (:mod:`holonome.integrators.newton`)."""


class TestingState(ResidualState):
    """The same with tests of the error and of Newton's method that see only some of the unknowns; its
    stepper's `tests` fill it.
    """

    error_count: Real  # unknowns that the error test sees, and that of Newton's method
    newton_count: Real
    project: Whole  # whether steps end on the manifold
    max_iterations: Whole
    newton_tolerance: Real
    have_matrix: Whole
    kind: Whole  # which factorization is in place
    converged: Whole
    h_old: Real  # of the last accepted step
    error_weights: Vector
    newton_weights: Vector
    newton_mask: Vector
    e: Vector
    atol: Vector


TESTING = NEWTON + "error_count newton_count error_weights newton_weights e "
"""And what the tests do."""


@njit(cache=True, error_model="numpy")
def enter_tolerances(w):
    """Absolute tolerances of all unknowns; what is algebraic has the largest."""
    largest, given, atol = 0.0, w.run.atol, w.s.atol
    for i in range(w.state):
        atol[i] = given[i]
        largest = max(largest, given[i])
    for i in range(w.state, w.size):
        atol[i] = largest


@njit(cache=True, error_model="numpy")
def propose(w):
    """The step to try: shortened or stretched a little to end exactly at the target."""
    run = w.run
    h, left = run.h, target(run) - run.t
    if run.constant > 0.0:
        return h if abs(left) > abs(h) * (1.0 + 1e-9) else left
    if abs(h) > run.h_max:
        h = run.direction * run.h_max
    return left if abs(h) * (1.0 + 1e-10) >= abs(left) else h


@njit(cache=True, error_model="numpy")
def may_try(w, t, h, failures):
    """Whether a run goes on with the step that was chosen after one of size h has failed."""
    run = w.run
    run.t_failed = t + h
    too_small = abs(run.h) <= 1e-15 * max(abs(t), abs(t + h)) or failures > 30
    return not (run.constant > 0.0 or too_small)


@njit(cache=True, error_model="numpy")
def outcome_of(w, status, error):
    """The outcome of an attempt from the status of its kernels and its error."""
    w.run.error = error
    if status == INTERRUPTED:
        return leave(w, loop.STOPPED)
    if w.s.converged:
        accepted = error <= 1.0 or (w.run.constant > 0.0 and error - error == 0.0)
        return loop.ACCEPTED if accepted else loop.ERROR_TEST
    if status == RAISED:
        return loop.FUNCTION_RAISED
    return loop.SINGULAR_MATRIX if status != OK else loop.NEWTON


@njit(cache=True, error_model="numpy")
def projector(w):
    """The projection that ends a step."""
    s = w.s
    return Projector(
        w.n,
        w.state,
        abs(w.run.t_end - w.run.t_start),
        s.projection,
        s.projection_factors,
        s.projection_repeated,
        s.dense_projection,
        s.projection_size,
        s.projector_z,
        s.projected,
        s.dense_projected,
        s.kept,
    )


@njit(cache=True, error_model="numpy")
def onto_manifold(w, context, t, out):
    """Bring positions and velocities of a state between the steps onto the manifold, unless they drift."""
    if w.s.dense_projection == 0:
        return OK
    no_error = w.s.scratch_of_state
    for i in range(w.state):
        no_error[i] = 0.0
    w.s.kept[0] = 0.0  # a factorization for the end of a step
    return project(projector(w), context, t, out, no_error, w.s.moved)
