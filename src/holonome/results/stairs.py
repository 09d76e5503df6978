"""What is constant from one time to the next, such as the inputs along a run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from holonome.results.evaluated import Evaluated


class Stairs(NamedTuple):
    """What is constant from one time to the next.

    Attributes
    ----------
    t : (steps,) array
        Where it changes; the first is the beginning of the run.
    values : array
        From there on, the last axis being that of time.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> hn.Stairs(np.array([0.0, 1.0]), np.array([5.0, 7.0])).at([0.5, 1.0])
    array([5., 7.])
    """

    t: np.ndarray
    values: np.ndarray

    def at(self, t: Any) -> Any:
        """Its values at any times; where it jumps, the value after the jump."""
        steps = np.maximum(np.searchsorted(self.t, t, "right") - 1, 0)
        return self.values[..., steps]


def inputs_of(solution: Evaluated) -> dict[str, Stairs]:
    """When inputs changed, and to what, by name."""
    parameters = solution.system.parameters
    trace, layout, begin = solution.trace, parameters.layout_of("u"), parameters.of_inputs.start
    if trace is None:
        trace = np.append(solution.t[:1], parameters.flat[parameters.of_inputs])[np.newaxis]
    if not solution.t.size:
        trace = np.zeros((0, 1 + parameters.size - begin))
    found = {}
    for name, (shape, offset) in layout.items():
        first = 1 + offset - begin
        values = trace[:, first : first + math.prod(shape)].T.reshape(*shape, -1)
        changes = np.any(np.diff(values, axis=-1) != 0, axis=tuple(range(len(shape))))
        kept = np.append(np.ones(min(1, len(trace)), bool), changes)
        found[name] = Stairs(trace[kept, 0], values[..., kept])
    return found
