"""Symmetric compositions of a symmetric method of order 2: steps γ₁ h, …, γ_s h, one after the other, with
γ_i = γ_{s+1−i}.

The partial sums of all of them lie between 0 and 1, so no function is evaluated outside of the step.

References
----------
M. Suzuki, Fractal decomposition of exponential operators, Phys. Lett. A 146 (1990): order 4.
W. Kahan, R.-C. Li, Composition constants for raising the orders of unconventional schemes for ordinary
differential equations, Math. Comp. 66 (1997): orders 6 and 8.
"""

from __future__ import annotations

from collections.abc import Mapping


def _symmetric(*half: float) -> tuple[float, ...]:
    """All γ from the first half of them; the one in the middle makes their sum one."""
    return (*half, 1.0 - 2.0 * sum(half), *half[::-1])


_SUZUKI = 1.0 / (4.0 - 4.0 ** (1.0 / 3.0))

COMPOSITIONS: Mapping[int, tuple[float, ...]] = {
    2: (1.0,),
    4: _symmetric(_SUZUKI, _SUZUKI),
    6: _symmetric(
        0.39216144400731413928,
        0.33259913678935943860,
        -0.70624617255763935981,
        0.08221359629355080023,
    ),
    8: _symmetric(
        0.13020248308889008088,
        0.56116298177510838456,
        -0.38947496264484728641,
        0.15884190655515560090,
        -0.39590389413323757734,
        0.18453964097831570709,
        0.25837438768632204729,
        0.29501172360931029887,
    ),
}
"""γ₁ … γ_s by order."""
