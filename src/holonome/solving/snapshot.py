"""What a simulator remembers at an instant."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from holonome.solving.forward_pieces import Place


@dataclass(frozen=True, eq=False)
class Snapshot:
    """All that a :class:`Simulator` remembers at an instant: ``sim.restore(snapshot)`` goes on from there, to
    the same digits.  It pickles, and may be restored by another simulator of the same system and settings.

    Attributes
    ----------
    t
        The time.

    Examples
    --------
    >>> import holonome as hn
    >>> sim = hn.Simulator(hn.mechanisms.pendulum().system, [1, 0])
    >>> before = sim.snapshot()
    >>> sim.step(0.5)
    >>> sim.restore(before)
    >>> sim.t, before.t
    (0.0, 0.0)
    """

    t: float
    of: tuple = field(repr=False)
    flat: np.ndarray = field(repr=False)
    y: np.ndarray = field(repr=False)
    clock: tuple = field(repr=False)
    anew: bool = field(repr=False)
    trusted: tuple | None = field(repr=False)
    fired: tuple = field(repr=False)
    size: int = field(repr=False)
    changes: tuple = field(repr=False)
    place: Place | None = field(repr=False)
