"""Samples of parameters and starts: each a dict for ``over``, whose values share one dimension, "member".

Random numbers come from counter-based streams (Philox): those of member i do not depend on how many members
there are, nor on who draws them, so that a member can be computed again alone.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from holonome.arguments import checked, real_array, shown

MEMBER = "member"
_BLOCK = 4
"""Numbers of 64 bits that Philox makes of one value of its counter."""


def random(members: int, distributions: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """Independent random samples.

    Parameters
    ----------
    members
        Their number.
    distributions
        For each name (low, high), between which values are uniform, or a distribution with a method ``ppf``,
        such as those of ``scipy.stats``.
    seed
        Another one gives other samples.

    Examples
    --------
    >>> import holonome as hn
    >>> few = hn.ensembles.random(3, {"k": (1.0, 2.0)})
    >>> many = hn.ensembles.random(1000, {"k": (1.0, 2.0)})
    >>> dimension, values = many["k"]
    >>> dimension, bool((values[:3] == few["k"][1]).all())
    ('member', True)
    """
    members, seed = checked("members", members), checked("seed", seed)
    width = -(-max(len(distributions), 1) // _BLOCK) * _BLOCK
    numbers = np.random.Generator(np.random.Philox(key=seed)).random((members, width))
    return _transformed(numbers[:, : len(distributions)], distributions)


def latin_hypercube(members: int, distributions: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """A Latin hypercube: along every axis, one sample in each of ``members`` intervals that are equally
    likely.  The arguments are those of :func:`random`.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> _, k = hn.ensembles.latin_hypercube(10, {"k": (0.0, 1.0)})["k"]
    >>> np.sort((10 * k).astype(int)).tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    from scipy.stats import qmc

    members, seed = checked("members", members), checked("seed", seed)
    sampler = qmc.LatinHypercube(len(distributions), rng=np.random.default_rng(seed))
    return _transformed(sampler.random(members), distributions)


def sobol(members: int, distributions: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """Points of a scrambled Sobol sequence, which fill the box more evenly than random ones; best with a
    power of two of them.  The arguments are those of :func:`random`.

    Examples
    --------
    >>> import holonome as hn
    >>> _, k = hn.ensembles.sobol(256, {"k": (0.0, 1.0)})["k"]
    >>> bool(abs(k.mean() - 0.5) < 1e-3)
    True
    """
    from scipy.stats import qmc

    members, seed = checked("members", members), checked("seed", seed)
    sampler = qmc.Sobol(len(distributions), rng=np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that the number is no power of two
        return _transformed(sampler.random(members), distributions)


def _transformed(numbers: np.ndarray, distributions: Mapping[str, Any]) -> dict[str, Any]:
    """Samples from numbers that are uniform between 0 and 1, one column for each name."""
    if not isinstance(distributions, Mapping):
        raise TypeError(f"distributions: {shown(distributions)}; give a dict of names and distributions")
    return {
        name: (MEMBER, _quantile(name, distribution)(numbers[:, i]))
        for i, (name, distribution) in enumerate(distributions.items())
    }


def _quantile(name: str, distribution: Any) -> Callable[[np.ndarray], np.ndarray]:
    if callable(getattr(distribution, "ppf", None)):
        return distribution.ppf
    try:
        bounds = real_array(distribution)
    except (TypeError, ValueError):
        bounds = np.zeros(0)
    if bounds.shape != (2,) or not np.all(np.isfinite(bounds)) or bounds[0] > bounds[1]:
        raise ValueError(
            f"distributions[{name!r}]: {shown(distribution)}; give (low, high) or a distribution with a "
            "method ppf, such as scipy.stats.norm(5, 0.1)"
        )
    low, high = bounds
    return lambda numbers: low + (high - low) * numbers


def drawn(function: Callable, members: int, seed: int, name: str) -> np.ndarray:
    """What a function makes of a generator of random numbers, for every member its own stream."""
    bits = np.random.Philox(key=seed)
    generator, start = np.random.Generator(bits), bits.state
    digest = int.from_bytes(name.encode()[:7], "little")
    values = []
    for member in range(members):
        start["state"]["counter"][:] = (0, member, digest, 0)
        bits.state = start
        values.append(function(generator))
    return real_array(values)
