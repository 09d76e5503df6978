"""Methods: a formulation and an integrator, and the names under which they are known."""

from __future__ import annotations

from dataclasses import dataclass

from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.integrators.runge_kutta import RungeKutta


@dataclass(frozen=True)
class Method:
    """A formulation and the integrator that advances it.

    Parameters
    ----------
    formulation
        What is solved: :class:`UnderlyingODE`.
    integrator
        How: :class:`RungeKutta`.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.Method(hn.UnderlyingODE(projection=False), hn.RungeKutta("heun", step=1e-3))
    Method(formulation=UnderlyingODE(projection=False), integrator=RungeKutta(name='heun', step=0.001))
    """

    formulation: UnderlyingODE
    integrator: RungeKutta

    def __post_init__(self) -> None:
        if not isinstance(self.formulation, UnderlyingODE):
            raise TypeError(f"Method: {self.formulation!r} is not a formulation; with {self.integrator!r} use UnderlyingODE()")
        if not isinstance(self.integrator, RungeKutta):
            raise TypeError(f"Method: {self.integrator!r} is not an integrator; with {self.formulation!r} use RungeKutta('dopri5')")


@dataclass(frozen=True)
class Entry:
    """A method with a name: what it is and where it comes from."""

    method: Method
    summary: str
    reference: str


_HAIRER = "Hairer, Nørsett & Wanner, Solving Ordinary Differential Equations I (1993)"
_EICH = "Eich, SIAM J. Numer. Anal. 30 (1993)"
_REGISTRY = {
    "dopri5": Entry(Method(UnderlyingODE(), RungeKutta("dopri5")), "Dormand–Prince 5(4) with projection: for loose tolerances and rough forces", f"{_HAIRER}; {_EICH}"),
    "dop853": Entry(Method(UnderlyingODE(), RungeKutta("dop853")), "Dormand–Prince 8(5,3) with projection: the fastest for tolerances below 1e-5", f"{_HAIRER}; {_EICH}"),
    "heun": Entry(Method(UnderlyingODE(), RungeKutta("heun")), "Heun's method of order 2 with projection: for order studies and rough forces", f"{_HAIRER}; {_EICH}"),
}
AUTO = "auto"
FINE = 1e-5
"""Tolerance below which "auto" takes the method of order 8."""


def methods() -> dict[str, Entry]:
    """All methods by name, with what they are for and their references."""
    return dict(_REGISTRY)


def resolve(method: str | Method, rtol: float) -> tuple[str, Method]:
    """Name and method from what the user gave."""
    if isinstance(method, Method):
        return method.integrator.name, method
    if method == AUTO:
        method = "dop853" if rtol < FINE else "dopri5"
    entry = _REGISTRY.get(method) if isinstance(method, str) else None
    if entry is None:
        raise ValueError(f"method: {method!r} is not known; choose one of {', '.join([AUTO, *_REGISTRY])}, or give a Method")
    return str(method), entry.method
