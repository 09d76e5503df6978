"""Methods: a formulation and an integrator, and the names under which they are known."""

from __future__ import annotations

from dataclasses import dataclass

from holonome.formulations.compliant import Compliant
from holonome.formulations.coordinate_projection import CoordinateProjection
from holonome.formulations.coordinate_split import CoordinateSplit
from holonome.formulations.ggl import GGL
from holonome.formulations.index1 import Baumgarte, Index1
from holonome.formulations.index2 import Index2
from holonome.formulations.index3 import Index3
from holonome.formulations.sequential_regularization import SRM
from holonome.formulations.underlying_ode import UnderlyingODE
from holonome.integrators.bdf import BDF
from holonome.integrators.runge_kutta import RungeKutta

Formulation = (
    UnderlyingODE | Index1 | Index2 | Index3 | GGL | CoordinateProjection | CoordinateSplit | Compliant | SRM
)
Integrator = RungeKutta | BDF


@dataclass(frozen=True)
class Method:
    """A formulation and the integrator that advances it.

    Parameters
    ----------
    formulation
        What is solved: :class:`UnderlyingODE`, :class:`Index1`, :class:`Index2`, :class:`Index3`,
        :class:`GGL`, :class:`CoordinateProjection`,
        :class:`CoordinateSplit`, :class:`Compliant`, :class:`SRM`.
    integrator
        How: :class:`BDF` for all of them, :class:`RungeKutta` for the underlying ODE, index 1 and sequential
        regularization.

    Examples
    --------
    >>> import holonome as hn
    >>> hn.Method(hn.UnderlyingODE(projection=False), hn.RungeKutta("heun", step=1e-3))
    Method(formulation=UnderlyingODE(projection=False), integrator=RungeKutta(name='heun', step=0.001))
    """

    formulation: Formulation
    integrator: Integrator

    def __post_init__(self) -> None:
        if not isinstance(self.formulation, Formulation):
            raise TypeError(
                f"Method: {self.formulation!r} is not a formulation; with {self.integrator!r} use "
                "UnderlyingODE() or GGL()"
            )
        if not isinstance(self.integrator, Integrator):
            raise TypeError(
                f"Method: {self.integrator!r} is not an integrator; use RungeKutta('dopri5') or BDF()"
            )
        if isinstance(self.integrator, RungeKutta) and not isinstance(
            self.formulation, (UnderlyingODE, Index1, SRM)
        ):
            raise TypeError(
                f"Method: {self.integrator!r} is explicit and cannot advance {self.formulation!r}; the "
                "nearest sensible choices are BDF() for this formulation "
                "or UnderlyingODE() for this integrator"
            )


@dataclass(frozen=True)
class Entry:
    """A method with a name: what it is and where it comes from."""

    method: Method
    summary: str
    reference: str


_HAIRER = "Hairer, Nørsett & Wanner, Solving Ordinary Differential Equations I (1993)"
_EICH = "Eich, SIAM J. Numer. Anal. 30 (1993)"
_DASSL = "Brenan, Campbell & Petzold, Numerical Solution of Initial-Value Problems in DAEs (1996)"
_GGL = "Gear, Leimkuhler & Gupta, J. Comput. Appl. Math. 12 (1985)"
_YEN = "Yen & Petzold, SIAM J. Sci. Comput. 19 (1998)"
_ASCHER = "Ascher & Lin, SIAM J. Sci. Comput. 18 (1997)"
_REGISTRY = {
    "dopri5": Entry(
        Method(UnderlyingODE(), RungeKutta("dopri5")),
        "Dormand–Prince 5(4) with projection: for rough forces",
        f"{_HAIRER}; {_EICH}",
    ),
    "dop853": Entry(
        Method(UnderlyingODE(), RungeKutta("dop853")),
        "Dormand–Prince 8(5,3) with projection: the fastest unless forces are rough or stiff",
        f"{_HAIRER}; {_EICH}",
    ),
    "heun": Entry(
        Method(UnderlyingODE(), RungeKutta("heun")),
        "Heun's method of order 2 with projection: for order studies and rough forces",
        f"{_HAIRER}; {_EICH}",
    ),
    "bdf": Entry(
        Method(CoordinateProjection(), BDF()),
        "BDF on index 1 with coordinate projection: the robust choice among the implicit methods",
        f"{_EICH}; {_DASSL}",
    ),
    "ggl": Entry(
        Method(GGL(), BDF()),
        "BDF on the stabilised index-2 form of Gear, Gupta & Leimkuhler",
        f"{_GGL}; {_DASSL}",
    ),
    "ggl*": Entry(
        Method(GGL(predict_multipliers=True), BDF.dassl()),
        "GGL* of Yen & Petzold: DASSL's convergence test without multipliers, which are predicted from the "
        "motion",
        f"{_YEN}; {_DASSL}",
    ),
    "cs": Entry(
        Method(CoordinateSplit("CS"), BDF()),
        "BDF with coordinate splitting, Newton's method without multipliers",
        f"{_YEN}; {_DASSL}",
    ),
    "cm": Entry(
        Method(CoordinateSplit("CM"), BDF()),
        "BDF with coordinate splitting, the modified iteration for highly oscillatory systems",
        f"{_YEN}; {_DASSL}",
    ),
    "srm": Entry(
        Method(SRM(variant="singular"), RungeKutta("dop853")),
        "sequential regularization, iterations advanced together; passes singular positions",
        _ASCHER,
    ),
    "index3": Entry(Method(Index3(), BDF()), "BDF on the equations as they stand", _DASSL),
    "index2": Entry(
        Method(Index2(), BDF()), "BDF with the constraints on the velocity level; positions drift", _DASSL
    ),
    "index1": Entry(
        Method(Index1(), BDF()), "BDF with the constraints on the acceleration level; drifts", _EICH
    ),
    "baumgarte": Entry(
        Method(Baumgarte(), BDF()),
        "BDF with Baumgarte's stabilisation of index 1",
        "Baumgarte, Comput. Methods Appl. Mech. Eng. 1 (1972)",
    ),
}
AUTO, SMOOTH = "auto", "smooth"
_SMOOTH_METHOD = Method(Compliant(), BDF(max_order=2))
"""A-stable orders only, and an error test that does not see the velocities: that is what lets the step grow
over the oscillations.  Without elastic elements the form is GGL.
"""

STIFF_METHOD = "bdf", _REGISTRY["bdf"].method
"""What "auto" takes where stiffness limits the explicit methods."""

_AUTO_METHOD = "dop853"
"""What "auto" begins with: for the same error it takes less time than order 5, already for two digits
(docs/which_method.md).
"""


def methods() -> dict[str, Entry]:
    """All methods by name, with what they are for and their references.

    Examples
    --------
    >>> import holonome as hn
    >>> list(hn.methods())[:4]
    ['dopri5', 'dop853', 'heun', 'bdf']
    >>> hn.methods()["ggl"].summary
    'BDF on the stabilised index-2 form of Gear, Gupta & Leimkuhler'
    """
    return dict(_REGISTRY)


def label(method: Method) -> str:
    """A name for a method that was put together."""
    integrator = method.integrator
    if isinstance(method.formulation, SRM):
        return f"SRM + {integrator.name if isinstance(integrator, RungeKutta) else 'BDF'}"
    return (
        integrator.name
        if isinstance(integrator, RungeKutta)
        else f"{type(method.formulation).__name__} + BDF"
    )


def resolve(method: str | Method, motion: str = "all") -> tuple[str, Method]:
    """Name and method from what the user gave."""
    if motion not in ("all", SMOOTH):
        raise ValueError(f"motion: {motion!r} is not known; choose 'all' or 'smooth'")
    if motion == SMOOTH:
        if method != AUTO:
            raise ValueError(
                f"method: {method!r} together with motion='smooth', which chooses the method itself; leave "
                "one of them out"
            )
        return "smooth", _SMOOTH_METHOD
    if isinstance(method, Method):
        return label(method), method
    if method == AUTO:
        method = _AUTO_METHOD
    entry = _REGISTRY.get(method) if isinstance(method, str) else None
    if entry is None:
        raise ValueError(
            f"method: {method!r} is not known; choose one of {', '.join([AUTO, *_REGISTRY])}, or give a "
            "Method"
        )
    return str(method), entry.method
