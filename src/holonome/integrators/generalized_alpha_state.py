"""The memory of the generalised-α method."""

from __future__ import annotations

from collections import namedtuple

from numba import njit

from holonome.integrators.loop import OWN, run_state
from holonome.machine.calls import shift
from holonome.machine.layout import Layout, Real, Vector, Whole


class GeneralizedAlphaState(Layout):
    """The integrator's part of the memory."""

    unknowns: Whole
    coordinates: Whole
    state: Whole  # numbers of q, v and s
    rows: Whole  # multipliers that are shown
    multipliers: Whole  # unknowns after them whose rows are constraints
    factor_count: Whole
    residual: Whole  # addresses
    factors_kernel: Whole
    solution: Whole
    matrix: Whole
    derivative: Whole
    dense_derivative: Whole
    projection: Whole  # for the normal part of the jerk; 0: not needed
    dense_projection: Whole
    between: Whole  # the same where the solution between steps is projected; 0: it is not
    alpha_m: Real
    alpha_f: Real
    beta_q: Real
    gamma: Real
    kappa: Real
    shift: Real  # Δ
    constant_q: Real  # C of the error of q
    constant_v: Real
    exponent: Real  # of the choice of steps
    beta: Real
    log_error: Real
    after_rejection: Whole
    scale_q: Real  # the largest position and velocity so far
    scale_v: Real
    h_base: Real  # the step to which a and v belong; 0 at the start
    jerk_known: Whole
    started: Whole  # whether there is a step before
    njev: Whole
    yy: Vector  # Y and Y′, those of v and s divided by κ
    now: Vector  # the same at the beginning of a step
    a: Vector  # the auxiliary accelerations, and rates of s
    a_used: Vector  # moved to the size of the step
    a_new: Vector
    v_used: Vector
    jerk: Vector  # and s″
    normal: Vector  # the normal part of the jerk
    back: Vector  # what brings v_n onto the constraints
    slope: Vector  # (a_n − a_{n−1}) / h
    before: Vector  # v′, s′ and what is algebraic, a step before
    error_mask: Vector
    block: Vector
    scratch: Vector
    delta: Vector
    factors: Vector
    dense: Vector
    pivots: Vector
    row_scale: Vector
    row_shift: Vector
    row_powers: Vector
    column_powers: Vector
    rate: Vector
    point: Vector
    z: Vector
    projected: Vector
    f_old: Vector  # slopes at both ends
    f: Vector
    no_error: Vector
    moved: Vector
    projector_z: Vector
    projector_out: Vector
    kept: Vector


named = GeneralizedAlphaState.named()


Work = namedtuple(
    "Work",
    "memory run s size n state residual_kernel factors_kernel solution_kernel matrix_kernel factor_count "
    "multipliers tolerances y block scratch delta factors dense pivots row_scale row_shift row_powers "
    "column_powers",
)
"""The memory taken apart once."""


@njit(cache=True)
def parts(memory):
    run, s = run_state(memory), named(shift(memory, OWN))
    return Work(
        memory,
        run,
        s,
        s.unknowns,
        s.coordinates,
        s.state,
        s.residual,
        s.factors_kernel,
        s.solution,
        s.matrix,
        s.factor_count,
        s.multipliers,
        0,
        s.yy,
        s.block,
        s.scratch,
        s.delta,
        s.factors,
        s.dense,
        s.pivots,
        s.row_scale,
        s.row_shift,
        s.row_powers,
        s.column_powers,
    )
