"""What happened step by step."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from holonome.integrators.loop import CAUSES


@dataclass(frozen=True, eq=False)
class History:
    """What happened step by step.

    Attributes
    ----------
    t, h, error, correction, iterations, order
        For each accepted step: the time at which it began, its size, its estimated error in units of the
        tolerance, the last relative correction of its projection onto the manifold, the number of such
        corrections or of Newton iterations, and the order.
    rejected_t, rejected_h, rejected_error, cause
        The same for each rejected step, and why it was rejected.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> pendulum = hn.mechanisms.pendulum()
    >>> history = hn.solve(pendulum.system, (0, 10), pendulum.q0, pendulum.v0).history
    >>> bool(np.all(history.error <= 1)), bool(np.isclose(history.h.sum(), 10))
    (True, True)
    """

    accepted: np.ndarray = field(repr=False)
    rejected: np.ndarray = field(repr=False)

    t = property(lambda self: self.accepted[:, 0])
    h = property(lambda self: self.accepted[:, 1])
    error = property(lambda self: self.accepted[:, 2])
    correction = property(lambda self: self.accepted[:, 3])
    iterations = property(lambda self: self.accepted[:, 4].astype(int))
    order = property(lambda self: self.accepted[:, 5].astype(int))
    rejected_t = property(lambda self: self.rejected[:, 0])
    rejected_h = property(lambda self: self.rejected[:, 1])
    rejected_error = property(lambda self: self.rejected[:, 2])

    @property
    def cause(self) -> list[str]:
        return [CAUSES[int(code)] for code in self.rejected[:, 3]]
