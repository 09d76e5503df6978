"""Events that are found again because the state was moved onto the constraints behind them."""

from __future__ import annotations

import math
from collections.abc import Sequence

_MANY = 10.0
"""Times in which the motion goes as far as the state was moved."""


class Echoes:
    """Remembers up to when events that have happened are found again."""

    def __init__(self, direction: int = 1) -> None:
        self.direction, self.until = direction, {}

    def expect(self, numbers: Sequence[int], t: float, repaired: float) -> None:
        """These events were at t, where the state was moved as far as the motion goes in the time given."""
        if repaired > 0:
            self.until |= dict.fromkeys(numbers, self.direction * t + _MANY * repaired)

    def among(self, numbers: Sequence[int], t: float) -> list[int]:
        """Which of these events, found at t, are only found again."""
        return [number for number in numbers if self.direction * t <= self.until.get(number, -math.inf)]
