"""Formulations and integrators that do not fit together: the message says why, and what fits."""

import re
from itertools import product

import pytest

import holonome as hn

FORMULATIONS = [
    hn.UnderlyingODE(),
    hn.UnderlyingODE(projection=False),
    hn.Index1(),
    hn.Baumgarte(),
    hn.Index2(),
    hn.Index3(),
    hn.GGL(),
    hn.GGL(predict_multipliers=True),
    hn.CoordinateProjection(),
    hn.CoordinateSplit(),
    hn.Compliant(),
    hn.SRM(),
    hn.Hamiltonian(),
]
INTEGRATORS = [
    hn.RungeKutta(),
    hn.Taylor(),
    hn.BDF(),
    hn.Radau(),
    hn.GeneralizedAlpha(),
    hn.Rattle(step=0.01),
]


@pytest.mark.parametrize(("formulation", "integrator"), list(product(FORMULATIONS, INTEGRATORS)))
def test_what_does_not_fit_names_what_fits(formulation, integrator):
    try:
        hn.Method(formulation, integrator)
    except TypeError as error:
        message = str(error)
        reason, _, remedies = message.partition(". With ")
        assert reason.startswith(f"Method: {integrator.label} ")
        for_integrator, for_formulation = remedies.split("; with ")
        for name in re.findall(r"(\w+)\(\)", for_integrator.split(" use ")[1]):
            hn.Method(getattr(hn, name)(), integrator)
        for name in re.findall(r"(\w+)\(\)", for_formulation.split(" use ")[1]):
            hn.Method(formulation, getattr(hn, name)())


@pytest.mark.parametrize(
    ("formulation", "integrator", "reason"),
    [
        (hn.CoordinateProjection(), hn.GeneralizedAlpha(), "do not end with a projection"),
        (hn.GGL(predict_multipliers=True), hn.GeneralizedAlpha(), "takes no steps of BDF"),
        (hn.GGL(), hn.Taylor(), "needs the form 'series', and GGL offers 'residual'"),
    ],
)
def test_the_reason_is_what_does_not_fit(formulation, integrator, reason):
    with pytest.raises(TypeError, match=reason):
        hn.Method(formulation, integrator)
