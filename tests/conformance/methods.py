"""Methods, and what each promises.

Whatever is registered enters by itself; a new formulation needs a line in PROMISES.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import holonome as hn

RTOL = 1e-5
ROUNDING, TOLERANCE, DRIFTS = "rounding", "tolerance", "drifts"
RESIDUALS = {ROUNDING: 1e-12, TOLERANCE: 300 * RTOL, DRIFTS: 0.05}
"""How large residuals of constraints may be in each case, relative to their terms."""


@dataclass(frozen=True)
class Promise:
    """How well constraints hold on both levels; the largest errors, in units of rtol."""

    position: str
    velocity: str
    error: float = 100.0
    multipliers: float = 1000.0


def _underlying(form: Any) -> Promise:
    return Promise(ROUNDING, ROUNDING) if form.projection else Promise(DRIFTS, DRIFTS)


PROMISES: dict[type, Callable[[Any], Promise]] = {
    hn.UnderlyingODE: _underlying,
    hn.CoordinateProjection: lambda form: Promise(ROUNDING, ROUNDING),
    hn.GGL: lambda form: Promise(TOLERANCE, TOLERANCE),
    hn.CoordinateSplit: lambda form: Promise(TOLERANCE, TOLERANCE),
    hn.Compliant: lambda form: Promise(TOLERANCE, TOLERANCE, error=1000.0),
    hn.Index3: lambda form: Promise(TOLERANCE, DRIFTS, error=1000.0, multipliers=50_000.0),
    hn.Index2: lambda form: Promise(DRIFTS, TOLERANCE),
    hn.Index1: lambda form: Promise(DRIFTS, DRIFTS),
    hn.Hamiltonian: lambda form: Promise(ROUNDING, ROUNDING),
    hn.SRM: lambda form: Promise(TOLERANCE, DRIFTS, error=500.0, multipliers=10_000.0),
}

_EUCLIDEAN = hn.CoordinateProjection(metric="euclidean", relaxed=True)
HAND_MADE = {
    "dopri5, no projection": hn.Method(hn.UnderlyingODE(projection=False), hn.RungeKutta("dopri5")),
    "baumgarte, dopri5": hn.Method(hn.Baumgarte(), hn.RungeKutta("dopri5")),
    "underlying, BDF": hn.Method(hn.UnderlyingODE(), hn.BDF()),
    "underlying, no projection, BDF": hn.Method(hn.UnderlyingODE(projection=False), hn.BDF()),
    "projection, euclidean, relaxed": hn.Method(_EUCLIDEAN, hn.BDF()),
    "ggl, DASSL": hn.Method(hn.GGL(), hn.BDF.dassl()),
    "ggl, order 2": hn.Method(hn.GGL(), hn.BDF(max_order=2)),
    "compliant": hn.Method(hn.Compliant(error_test="qv"), hn.BDF()),
    "cs, bound": hn.Method(hn.CoordinateSplit("CS", error_test="bound"), hn.BDF()),
    "ggl, Radau": hn.Method(hn.GGL(), hn.Radau()),
    "index2, Radau": hn.Method(hn.Index2(), hn.Radau(order=5)),
    "index3, Radau": hn.Method(hn.Index3(), hn.Radau(order=9)),
    "underlying, no projection, Radau": hn.Method(hn.UnderlyingODE(projection=False), hn.Radau(order=13)),
    "srm, dopri5": hn.Method(hn.SRM(), hn.RungeKutta("dopri5")),
    "srm, BDF": hn.Method(hn.SRM(eps=1e-6), hn.BDF()),
    "srm, singular, BDF": hn.Method(hn.SRM(eps=1e-4, variant="singular"), hn.BDF()),
}
"""Combinations without a name, for what the registered ones do not reach."""


@dataclass(frozen=True)
class Subject:
    """A method under test: its name, what tells ``solve`` to take it, and its promise; whether it needs a
    step.
    """

    name: str
    arguments: dict[str, Any]
    promise: Promise
    fixed_step: bool = False


def subjects() -> dict[str, Subject]:
    """All methods by name."""
    known = {name: entry.method for name, entry in hn.methods().items()} | HAND_MADE
    found = [
        Subject("auto", {"method": "auto"}, Promise(ROUNDING, ROUNDING)),
        Subject("smooth", {"motion": "smooth"}, PROMISES[hn.Compliant](None)),
    ]
    for name, method in known.items():
        form = method.formulation
        assert type(form) in PROMISES, f"{name}: say in PROMISES what {form!r} promises"
        promise = PROMISES[type(form)](form)
        given = {"method": method if name in HAND_MADE else name}
        found.append(Subject(name, given, promise, method.integrator.fixed_step))
    return {subject.name: subject for subject in found}
