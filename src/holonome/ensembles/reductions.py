"""Statistics over members, taken chunk by chunk, so that the members need not be kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holonome.arguments import real_array, shown
from holonome.ensembles.observed import Observed


@dataclass(frozen=True, eq=False)
class Reduction:
    """What is kept instead of members: edges of histograms by name, besides mean, deviation and extremes."""

    edges: dict[str, np.ndarray] = field(default_factory=dict)


class Statistics:
    """Count, mean, standard deviation, extremes and histogram of one quantity; members with NaN, which failed
    or had ended, are left out.

    Chunks are joined by the formulas of Chan, Golub & LeVeque (1983), which do not cancel.
    """

    def __init__(self, shape: tuple[int, ...], edges: np.ndarray | None) -> None:
        self.count, self.mean, self.squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.least, self.largest = np.full(shape, np.inf), np.full(shape, -np.inf)
        self.edges = edges
        self.histogram = None if edges is None else np.zeros((*shape, edges.size - 1), np.int64)

    def add(self, values: np.ndarray) -> None:
        """Take in some members, along the first axis."""
        known = ~np.isnan(values)
        count = known.sum(axis=0)
        some = np.maximum(count, 1)
        mean = np.where(known, values, 0.0).sum(axis=0) / some
        squares = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0)
        total = np.maximum(self.count + count, 1)
        difference = mean - self.mean
        self.squares += squares + difference**2 * self.count * count / total
        self.mean += difference * count / total
        self.count += count
        self.least = np.fmin(self.least, np.where(known, values, np.inf).min(axis=0, initial=np.inf))
        self.largest = np.fmax(self.largest, np.where(known, values, -np.inf).max(axis=0, initial=-np.inf))
        if self.edges is not None and self.histogram is not None:
            for place in np.ndindex(self.count.shape):
                column = values[(slice(None), *place)]
                self.histogram[place] += np.histogram(column[known[(slice(None), *place)]], self.edges)[0]

    def variables(self, name: str, dimensions: tuple[str, ...], coords: dict[str, Any]) -> dict[str, Any]:
        """For a dataset; the middles of the bins become a coordinate."""
        nothing = self.count == 0
        deviation = np.sqrt(self.squares / np.maximum(self.count - 1, 1))
        parts = {"mean": self.mean, "std": deviation, "min": self.least, "max": self.largest}
        found: dict[str, Any] = {
            f"{name}_{part}": (dimensions, np.where(nothing, np.nan, values))
            for part, values in parts.items()
        }
        found[f"{name}_count"] = (dimensions, self.count.astype(np.int64))
        if self.edges is not None:
            found[f"{name}_histogram"] = ((*dimensions, f"{name}_bin"), self.histogram)
            coords[f"{name}_bin"] = (self.edges[:-1] + self.edges[1:]) / 2
        return found


def read_reduction(given: Any, observed: Observed, store: Any) -> Reduction | None:
    """What the user gave as ``reduce``."""
    if given is None or given is False:
        return None
    if store is not None:
        raise ValueError("reduce: a store keeps all members; leave one of them out")
    if given is True:
        return Reduction()
    names = [kept.name for kept in observed.kept(False)]
    if not isinstance(given, Mapping) or not set(given) <= set(names):
        raise ValueError(
            f"reduce: {shown(given)}; give True, or a dict with edges of histograms for {', '.join(names)}"
        )
    edges = {}
    for name, values in given.items():
        try:
            edges[name] = real_array(values)
        except (TypeError, ValueError):
            edges[name] = np.zeros(0)
        if edges[name].ndim != 1 or edges[name].size < 2 or not np.all(np.diff(edges[name]) > 0):
            raise ValueError(f"reduce[{name!r}]: {shown(values)}; give at least two edges in ascending order")
    return Reduction(edges)
