"""What is kept of a whole motion instead of points of it: extremes, means, first passages, as values in
``keep``.

They are taken in the loop itself, step by step, so that no motion is stored.  The mean is a further state,
integrated by the same formula under the same tolerance; an extreme is a zero of the rate of the function, and
a passage one of the function, both searched for within the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holonome.arguments import shown
from holonome.problem.event import Event

MAXIMUM, MINIMUM, MEAN, PASSAGE = "maximum", "minimum", "mean", "first_passage"
WHEN = "_time"
"""What the name of the time of an extreme ends with."""


@dataclass(frozen=True)
class AlongTheWay:
    """A function of the motion, and what is kept of it."""

    kind: str
    function: Callable
    direction: float = 0.0

    @property
    def sign(self) -> float:
        """That with which an extreme is a largest value."""
        return -1.0 if self.kind == MINIMUM else 1.0

    @property
    def is_extreme(self) -> bool:
        return self.kind in (MAXIMUM, MINIMUM)

    def names(self, name: str) -> tuple[str, ...]:
        """Of its results, if it is called so."""
        return (name, name + WHEN) if self.is_extreme else (name,)


def _checked(kind: str, function: Any) -> Callable:
    if not callable(function):
        raise TypeError(f"{kind}: {shown(function)}; give a function of any of t, q, v, s, p, a, lam")
    return function


def maximum(function: Callable) -> AlongTheWay:
    """The largest value of a function during a run, for ``keep``; under the name that ends with ``_time``,
    when it is reached, at first.

    Between the ends of steps, too: a step in which the rate of the function changes its sign is made smaller
    until the value is known to a thousandth of ``rtol``, relative to the largest absolute value.  The motion
    itself is known to its tolerance: which of several equal maxima is the first is not.

    Examples
    --------
    A pendulum that falls from the height of its pivot is fastest at the bottom, v² = 2 g:

    >>> import numpy as np, holonome as hn
    >>> e = hn.ensemble(
    ...     hn.mechanisms.pendulum(), (0, 2), over={"gravity": [5.0, 10.0]},
    ...     keep={"speed": hn.ensembles.maximum(lambda v: v @ v)})
    >>> ds = e.run()
    >>> bool(abs(ds.speed - 2 * ds.gravity).max() < 1e-4)
    True
    """
    return AlongTheWay(MAXIMUM, _checked(MAXIMUM, function))


def minimum(function: Callable) -> AlongTheWay:
    """The least value of a function during a run, as :func:`maximum`.

    Examples
    --------
    >>> import holonome as hn
    >>> low = hn.ensembles.minimum(lambda q: q[1])
    >>> ds = hn.ensemble(hn.mechanisms.pendulum(), (0, 2), over={"m": [1.0]}, keep={"low": low}).run()
    >>> round(float(ds.low[0]), 6)
    -1.0
    """
    return AlongTheWay(MINIMUM, _checked(MINIMUM, function))


def mean(function: Callable) -> AlongTheWay:
    """The mean of a function over the time of a run, ∫ f dt / (t₁ − t₀), for ``keep``.

    The integral is one more state: of the order of the method, with its own error estimate, whose scale is
    the largest |f| so far times the time of the run.

    Examples
    --------
    >>> import holonome as hn
    >>> free = hn.System(1.0, [-10.0])
    >>> height = hn.ensembles.mean(lambda q: q[0])
    >>> ds = hn.ensemble(free, (0, 3), [0.0], [0.0], over={"t_end": [3.0]}, keep={"height": height}).run()
    >>> round(float(ds.height[0]), 9)
    -15.0
    """
    return AlongTheWay(MEAN, _checked(MEAN, function))


def first_passage(function: Callable | Event, direction: float | None = None) -> AlongTheWay:
    """When a function is zero for the first time, for ``keep``; NaN for a run in which it never is.  The run
    goes on; ``until`` ends it.

    Parameters
    ----------
    function
        Of any of t, q, v, s, p, a, lam; or an :class:`holonome.Event`.
    direction
        Positive: only where it rises; negative: only where it falls; 0, the default: both.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> passage = hn.ensembles.first_passage(lambda q: q[0] + 5)
    >>> e = hn.ensemble(
    ...     hn.System(1.0, [-10.0]), (0, 3), [0.0], over={"v0": ("case", [[0.0], [10.0], [30.0]])},
    ...     keep={"below": passage})
    >>> e.run().below.values.round(6)
    array([1.      , 2.414214,      nan])
    """
    if isinstance(function, Event):
        if direction is not None:
            raise ValueError("direction: the event has one; leave it out")
        if function.terminal or function.action is not None:
            raise ValueError(
                "function: the event ends the run or has an action, which has no effect here; give it as "
                "until, or leave that out"
            )
        return AlongTheWay(PASSAGE, function.function, function.direction)
    return AlongTheWay(
        PASSAGE, _checked(PASSAGE, function), Event(function, direction=direction or 0.0).direction
    )
