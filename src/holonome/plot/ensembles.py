"""Pictures of ensembles: bands and densities over time, parallel coordinates, response surfaces, and when an
event came first.

All take the dataset that `Ensemble.run` returns; members that failed are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.plot.style import legend, one, sentence, styled, symbol, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_OWN = {"t", "coordinate", "state"}


@styled
def plot_bands(
    dataset: Any,
    name: str,
    axes: Axes | None = None,
    *,
    coordinate: str | None = None,
    quantiles: Sequence[float] = (0.05, 0.25),
) -> Axes:
    """The median of a quantity over time, and bands between quantiles: by default those that hold nine
    tenths, and a half, of the members.
    """
    axes, times = one(axes), _times(dataset, name)
    values, look = _members(dataset, name, coordinate), theme()
    for i, low in enumerate(sorted(quantiles)):
        below, above = np.nanquantile(values, [low, 1 - low], axis=0)
        label = f"{100 * (1 - 2 * low):.0f} % of members"
        axes.fill_between(times, below, above, color=look.middle, alpha=0.2 + 0.2 * i, lw=0, label=label)
    axes.plot(times, np.nanmedian(values, axis=0), color=look.late, label="median")
    axes.set(xlabel="t", ylabel=_label(name, coordinate), title=f"{sentence(name)} of {len(values)} members")
    legend(axes)
    return axes


@styled
def plot_density(
    dataset: Any, name: str, axes: Axes | None = None, *, coordinate: str | None = None, bins: int = 80
) -> Axes:
    """How many members are where, over time: a histogram for each time of output."""
    axes, times = one(axes), _times(dataset, name)
    values = _members(dataset, name, coordinate)
    edges = np.linspace(np.nanmin(values), np.nanmax(values), bins + 1)
    counts = np.array([np.histogram(column[~np.isnan(column)], edges)[0] for column in values.T])
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.pcolormesh(times, (edges[:-1] + edges[1:]) / 2, shares.T, cmap="viridis", shading="nearest")
    axes.figure.colorbar(image, ax=axes, label="share of members")
    axes.set(xlabel="t", ylabel=_label(name, coordinate), title=f"{sentence(name)} of {len(values)} members")
    axes.grid(visible=False)
    return axes


@styled
def plot_parallel(dataset: Any, names: Sequence[str], axes: Axes | None = None, *, most: int = 500) -> Axes:
    """Parallel coordinates: a line for each member through what varies and what came of it, each on its own
    scale; the colour follows the last one.  Of many members, evenly spaced ones are shown.
    """
    axes = one(axes, 1.6 * max(len(names), 3))
    columns = np.array([_scalar(dataset, name) for name in names])
    columns = columns[:, ~np.isnan(columns).any(axis=0)]
    columns = columns[:, :: max(1, columns.shape[1] // most)]
    low, high = columns.min(axis=1, keepdims=True), columns.max(axis=1, keepdims=True)
    scaled = (columns - low) / np.where(high > low, high - low, 1.0)
    from matplotlib import colormaps

    colours = colormaps["viridis"](scaled[-1])
    for member, colour in zip(scaled.T, colours, strict=True):
        axes.plot(range(len(names)), member, color=colour, alpha=0.4, lw=0.8)
    ticks = [
        f"{name}\n{bottom:.3g} … {top:.3g}"
        for name, bottom, top in zip(names, low.ravel(), high.ravel(), strict=True)
    ]
    axes.set_xticks(range(len(names)), ticks)
    axes.set_yticks([])
    axes.set_title(f"{columns.shape[1]} members")
    return axes


@styled
def plot_response(
    dataset: Any, name: str, axes: Axes | None = None, *, over: Sequence[str] | None = None
) -> Axes:
    """A quantity over two that vary, in colours: as a surface on a grid, as points for samples."""
    axes, varied = one(axes), list(over or _varied(dataset))[:2]
    if len(varied) < 2:
        raise ValueError(f"over: two quantities are needed that vary; the dataset has {', '.join(varied)}")
    x, y = varied
    values = dataset[name]
    if set(values.dims) == {x, y}:
        image = axes.pcolormesh(
            dataset[x], dataset[y], values.transpose(y, x), cmap="viridis", shading="nearest"
        )
    else:
        image = axes.scatter(_scalar(dataset, x), _scalar(dataset, y), c=_scalar(dataset, name), s=8)
    axes.figure.colorbar(image, ax=axes, label=name)
    axes.set(xlabel=x, ylabel=y, title=sentence(name))
    axes.grid(visible=False)
    return axes


@styled
def plot_passage(dataset: Any, axes: Axes | None = None, *, bins: int = 40) -> Axes:
    """When members were ended by an event: a histogram of the times, and how many were not."""
    axes = one(axes)
    if "event" not in dataset:
        raise ValueError("dataset: no event ended its members; give until= to hn.ensemble")
    ended = (dataset.event >= 0).to_numpy().ravel()
    axes.hist(dataset.end.to_numpy().ravel()[ended], bins, color=theme().middle)
    axes.set(xlabel="t", ylabel="members", title=f"{int(ended.sum())} of {ended.size} ended by an event")
    return axes


def _times(dataset: Any, name: str) -> np.ndarray:
    if "t" not in dataset[name].dims:
        raise ValueError(f"name: {name!r} is known at the end alone; give t_eval= to hn.ensemble")
    return dataset["t"].to_numpy()


def _members(dataset: Any, name: str, coordinate: str | None) -> np.ndarray:
    """A quantity by member and time."""
    values = dataset[name]
    for dimension in ("coordinate", "state"):
        if dimension in values.dims:
            known = [str(label) for label in values[dimension].to_numpy()]
            if coordinate is None and len(known) > 1:
                raise ValueError(f"coordinate: {name!r} has several; give one of {', '.join(known)}")
            values = values.sel({dimension: coordinate or known[0]})
    members = [dimension for dimension in values.dims if dimension != "t"]
    values = values.transpose(*members, "t").to_numpy()
    values = values.reshape(-1, values.shape[-1])
    return values[~np.isnan(values).all(axis=1)]


def _scalar(dataset: Any, name: str) -> np.ndarray:
    """A quantity of all members, one after the other."""
    reference = dataset["success"]
    values = dataset[name]
    if not set(values.dims) <= set(reference.dims):
        raise ValueError(f"{name!r} has more than one value for a member: {', '.join(values.dims)}")
    return values.broadcast_like(reference).transpose(*reference.dims).to_numpy().ravel().astype(float)


def _varied(dataset: Any) -> list[str]:
    return [str(name) for name in dataset.coords if name not in _OWN and dataset[name].ndim == 1]


def _label(name: str, coordinate: str | None) -> str:
    return symbol(coordinate) if coordinate else name
