"""Methods: a formulation and an integrator, and the names under which they are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from holonome import integrators
from holonome.arguments import shown
from holonome.formulations.compliant import Compliant
from holonome.formulations.contract import Formulation
from holonome.integrators.bdf import BDF
from holonome.integrators.contract import Integrator


@dataclass(frozen=True)
class Method:
    """A formulation and the integrator that advances it.

    Parameters
    ----------
    formulation
        What is solved: :class:`UnderlyingODE`, :class:`Index1`, :class:`Index2`, :class:`Index3`,
        :class:`GGL`,
        :class:`CoordinateProjection`, :class:`CoordinateSplit`, :class:`Compliant`, :class:`SRM`, or a
        :class:`Formulation` of your own.
    integrator
        How: :class:`BDF` for most of them, :class:`Radau` for those that give a residual without looking into
        the steps of BDF, :class:`RungeKutta` for the underlying ODE, index 1 and sequential regularization,
        :class:`GeneralizedAlpha` for index 3 and GGL, :class:`Rattle` for :class:`Hamiltonian`, or an
        :class:`Integrator` of your own.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.Method(hn.UnderlyingODE(projection=False), hn.RungeKutta("heun", step=1e-3))
    Method(formulation=UnderlyingODE(projection=False), integrator=RungeKutta(name='heun', step=0.001))
    """

    formulation: Formulation
    integrator: Integrator

    def __post_init__(self) -> None:
        formulation, integrator = self.formulation, self.integrator
        if not isinstance(formulation, Formulation):
            raise TypeError(
                f"formulation: {shown(formulation)} is not a formulation; with {shown(integrator)} use "
                "UnderlyingODE() or GGL()"
            )
        if not isinstance(integrator, Integrator):
            raise TypeError(
                f"integrator: {shown(integrator)} is not an integrator; use RungeKutta('dopri5') or BDF()"
            )
        reason = integrator.refuses(formulation)
        if reason is not None:
            raise TypeError(f"Method: {integrator.label} {reason}. {_what_fits(formulation, integrator)}")

    @property
    def label(self) -> str:
        """A name for a method that was put together."""
        form, what = self.integrator.form(self.formulation), type(self.formulation).__name__
        return self.integrator.label if form in ("rate", "series") else f"{what} + {self.integrator.label}"


def _what_fits(formulation: Formulation, integrator: Integrator) -> str:
    """What each of two that do not fit together goes with, of what methods with a name are made of, without
    arguments.
    """
    known = [entry.method for entry in registry().values()]
    formulations = {
        type(method.formulation).__name__: None
        for method in known
        if integrator.refuses(type(method.formulation)()) is None
    }
    integrators = {
        type(method.integrator).__name__: None
        for method in known
        if method.integrator.refuses(formulation) is None
    }
    names = (integrator.label, formulations), (type(formulation).__name__, integrators)
    fitting = [f"with {name} use {_one_of(list(found))}" for name, found in names if found]
    text = "; ".join(fitting)
    return text[:1].upper() + text[1:]


def _one_of(names: list[str]) -> str:
    """A choice of a few."""
    *others, last = (f"{name}()" for name in names[:4])
    return f"{', '.join(others)} or {last}" if others else last


@dataclass(frozen=True)
class Entry:
    """A method with a name: what it is and where it comes from."""

    method: Method
    summary: str
    reference: str

    @property
    def fixed_step(self) -> bool:
        """Whether its steps are never chosen by the tolerances, so that a step must be given."""
        return self.method.integrator.fixed_step


AUTO, ALL, SMOOTH = "auto", "all", "smooth"
SMOOTH_METHOD = Method(Compliant(), BDF(max_order=2))
"""A-stable orders only, and an error test that does not see the velocities: that is what lets the step grow
over the oscillations.  Without elastic elements the form is GGL.
"""

STIFF_METHOD = "bdf"
"""What "auto" takes where stiffness limits the explicit methods."""

JUMPING_METHOD = "radau"
"""What it tries as well where forces jump at known times: it does not begin again at order 1 after them."""

AUTO_METHOD = "dop853"
"""What "auto" begins with: for the same error it takes less time than order 5, already for two digits
(docs/which_method.md).
"""


@cache
def registry() -> dict[str, Entry]:
    """All named methods, from the tables ``METHODS`` of the modules in :mod:`holonome.integrators`."""
    found: dict[str, Any] = {}
    for module in iter_modules(integrators.__path__):
        found |= getattr(import_module(f"{integrators.__name__}.{module.name}"), "METHODS", {})
    explicit = {"rate", "series"}
    rows = sorted(found.items(), key=lambda row: explicit.isdisjoint(row[1][1].needs))  # explicit ones first
    return {name: Entry(Method(*row[:2]), *row[2:]) for name, row in rows}


def methods() -> dict[str, Entry]:
    """All methods by name, with what they are for and their references.

    Examples
    --------
    >>> import holonome as hn
    >>> list(hn.methods())[:4]
    ['dopri5', 'dop853', 'heun', 'srm']
    >>> hn.methods()["ggl"].summary
    'BDF on the stabilised index-2 form of Gear, Gupta & Leimkuhler'
    """
    return dict(registry())


def resolve(method: str | Method, motion: str = ALL, system: Any = None) -> tuple[str, Method]:
    """Name and method from what the user gave."""
    if motion == SMOOTH and not (isinstance(method, str) and method == AUTO):
        raise ValueError(
            f"method: {shown(method)} together with motion='smooth', which chooses the method itself; leave "
            "one of them out"
        )
    if motion == SMOOTH:
        return SMOOTH, SMOOTH_METHOD
    if isinstance(method, Method):
        return method.label, method
    if isinstance(method, str):
        if method == AUTO:
            method = AUTO_METHOD if system is None or system.mechanical else "srm"
        entry = registry().get(method)
        if entry is not None:
            return str(method), entry.method
    raise ValueError(
        f"method: {shown(method)} is not known; choose one of {', '.join([AUTO, *registry()])}, or give a "
        "Method"
    )
