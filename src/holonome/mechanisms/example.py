"""A ready-made mechanism: a system, a start and a time span, a drawing and, where known, the solution."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from holonome.problem.drawing import Drawing
from holonome.problem.system import System

Solution = tuple[np.ndarray, np.ndarray, np.ndarray]


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
        M(q) v′ = f − Gᵀλ, g(q) = 0.
    t_span : (float, float)
        A time interval that shows its characteristic motion.
    q0, v0 : array
        A start that satisfies g = 0 and G v = 0 to rounding.
    exact : callable(t), optional
        The exact q, v and λ, arrays of shape (n, times).
    reference : Reference, optional
        The solution at one time. Present only for the parameters it was computed with.
    source : str
        Where the problem comes from.
    drawing : Drawing, optional
        How to draw it; passed on to its system, unless that has one already.

    Examples
    --------
    >>> import holonome as hn
    >>> four_bar = hn.mechanisms.four_bar()
    >>> four_bar.system.n, four_bar.system.m, four_bar.t_span
    (9, 8, (0.0, 10.0))
    """

    name: str
    title: str
    system: System = field(repr=False)
    t_span: tuple[float, float]
    q0: np.ndarray = field(repr=False)
    v0: np.ndarray = field(repr=False)
    exact: Callable[[np.ndarray], Solution] | None = field(default=None, repr=False)
    reference: Reference | None = field(default=None, repr=False)
    source: str = ""
    drawing: Drawing | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.system.drawing is None:
            self.system.drawing = self.drawing


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
