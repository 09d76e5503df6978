"""A ready-made mechanism: its equations or bodies, a start, a drawing and, where known, the solution."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.bodies.assembly import Near
from holonome.bodies.mechanism import Mechanism
from holonome.locks import cached_property
from holonome.problem.drawing import Drawing
from holonome.problem.system import System

Solution = tuple[np.ndarray, np.ndarray, np.ndarray]

_MADE_WHEN_NEEDED = ("system", "q0", "v0", "drawing")


def _none() -> Any:
    """The default of fields that must have none on the class, so that they can be made when needed."""
    return None


@dataclass(frozen=True, eq=False)
class Reference:
    """A solution at one time, published or computed with great care.

    Attributes
    ----------
    t : float
        The time.
    q, v, lam : array or None
        Coordinates, velocities and multipliers at that time; None where they are not known.
    s, w : array or None
        First-order states and unknowns, of systems that have them.
    digits : int
        Number of significant digits of the largest entry of each vector that are reliable.
    source : str
        Where the digits come from.

    Examples
    --------
    >>> import holonome as hn
    >>> reference = hn.mechanisms.andrews().reference
    >>> reference.t, reference.digits > 6
    (0.03, True)
    """

    t: float
    q: np.ndarray | None = None
    v: np.ndarray | None = None
    lam: np.ndarray | None = None
    digits: int = 0
    source: str = ""
    s: np.ndarray | None = None
    w: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Example:
    """A ready-made mechanism: a constrained mechanical system together with a problem to solve.

    Attributes
    ----------
    name, title : str
        The name in the registry, and one line that says what it is.
    system : System
        M(q) v′ = f − Gᵀλ, g(q) = 0.  An :class:`holonome.Mechanism` may be given in its place; its system is
        made when it is needed.
    t_span : (float, float)
        A time interval that shows its characteristic motion.
    q0, v0 : array
        A start that satisfies g = 0 and G v = 0 to rounding; that of a mechanism is assembled from ``start``
        and ``speed``.
    exact : callable(t), optional
        The exact q, v and λ, arrays of shape (n, times).
    reference : Reference, optional
        The solution at one time. Present only for the parameters it was computed with.
    source : str
        Where the problem comes from.
    drawing : Drawing, optional
        How to draw it; passed on to its system, unless that has one already.
    mechanism : Mechanism, optional
        The bodies, joints and forces that it is made of, if it is made of these.
    start, speed : dict, optional
        Its start, as coordinates of joints and bodies by name.

    Examples
    --------
    >>> import holonome as hn
    >>> four_bar = hn.mechanisms.four_bar()
    >>> four_bar.system.n, four_bar.system.m, four_bar.t_span
    (9, 8, (0.0, 10.0))

    One of bodies and joints can be started elsewhere, by name:

    >>> crank = hn.mechanisms.spatial_slider_crank()
    >>> sol = hn.solve(crank, (0, 1), start={"A": 0.5}, speed={"A": 3.0})
    >>> sol.joint("A").angle[0].item()
    0.5
    """

    name: str
    title: str
    system: System = field(repr=False)
    t_span: tuple[float, float]
    q0: np.ndarray = field(default_factory=_none, repr=False)
    v0: np.ndarray = field(default_factory=_none, repr=False)
    exact: Callable[[np.ndarray], Solution] | None = field(default=None, repr=False)
    reference: Reference | None = field(default=None, repr=False)
    source: str = ""
    drawing: Drawing | None = field(default_factory=_none, repr=False)
    mechanism: Mechanism | None = field(default=None, repr=False)
    start: Mapping[str, Any] | None = field(default=None, repr=False)
    speed: Mapping[str, Any] | None = field(default=None, repr=False)

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            title: str,
            system: System | Mechanism,
            t_span: tuple[float, float],
            q0: np.ndarray | None = None,
            v0: np.ndarray | None = None,
            exact: Callable[[np.ndarray], Solution] | None = None,
            reference: Reference | None = None,
            source: str = "",
            drawing: Drawing | None = None,
            mechanism: Mechanism | None = None,
            start: Mapping[str, Any] | None = None,
            speed: Mapping[str, Any] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.system, Mechanism):
            if self.system.drawing is None:
                self.system.drawing = self.drawing
            return
        object.__setattr__(self, "mechanism", self.system)
        for name in _MADE_WHEN_NEEDED:
            object.__delattr__(self, name)

    def __getattr__(self, name: str) -> Any:
        """What follows from the mechanism; called only for what has not been given."""
        if name not in _MADE_WHEN_NEEDED or self.__dict__.get("mechanism") is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        if name in ("q0", "v0"):
            return self._assembled[("q0", "v0").index(name)]
        system = self.__dict__["mechanism"].system
        return system if name == "system" else system.drawing

    @cached_property
    def _assembled(self) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        return self.__dict__["mechanism"].initial(self.t_span[0], self.start, self.speed)

    def initial(
        self,
        t0: float,
        start: Mapping[str, Any] | None = None,
        speed: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Its start, for :func:`holonome.solve`.

        Of a mechanism of bodies and joints other starts may be given by name.  What its own one names besides
        is then where the search for a closed position begins; its own speeds hold unless others are given.
        """
        if self.mechanism is None:
            if start is not None or speed is not None:
                raise ValueError(
                    f"start: {self.name} begins at its own q0 and v0; give others of these, or none"
                )
            return self.q0, self.v0, None
        if start is None and speed is None and parameters is None and t0 == self.t_span[0]:
            return self.q0, self.v0, self._assembled[2]
        own = dict(self.start or {})
        if isinstance(start, Mapping):
            near = {name: value if isinstance(value, Near) else Near(value) for name, value in own.items()}
            start = near | dict(start)
        return self.mechanism.initial(
            t0, own if start is None else start, self.speed if speed is None else speed, parameters
        )


def with_reference(reference: Reference) -> Callable[[Callable[..., Example]], Callable[..., Example]]:
    """Decorate the function of a mechanism: its result carries `reference` as long as every argument has its
    default value.
    """

    def decorate(factory: Callable[..., Example]) -> Callable[..., Example]:
        defaults = {
            name: parameter.default for name, parameter in inspect.signature(factory).parameters.items()
        }

        @functools.wraps(factory)
        def make(**arguments) -> Example:
            mechanism = factory(**arguments)
            is_default = all(np.array_equal(value, defaults[name]) for name, value in arguments.items())
            return replace(mechanism, reference=reference) if is_default else mechanism

        return make

    return decorate
