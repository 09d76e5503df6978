"""The memory of the generalised-α method."""

from __future__ import annotations

from holonome.integrators.loop import OWN, RunState
from holonome.integrators.residual_steps import NEWTON, ResidualState
from holonome.machine.layout import Real, Vector, Whole, taken_apart


class GeneralizedAlphaState(ResidualState):
    """The integrator's part of the memory."""

    derivative: Whole
    dense_derivative: Whole
    normal_part: Whole  # of the jerk; 0: not needed
    dense_normal_part: Whole
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
    rate: Vector
    point: Vector
    z: Vector
    out: Vector  # result of a kernel
    f_old: Vector  # slopes at both ends
    f: Vector


Work, parts = taken_apart(
    __name__,
    {"run": (RunState, 0), "s": (GeneralizedAlphaState, OWN)},
    NEWTON,
)
