"""A paper: its experiments by name, and what its data files say about it."""

from __future__ import annotations

import csv
import functools
import inspect
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any, TypeVar

from holonome.mechanisms import Example
from holonome.papers.experiment import Experiment
from holonome.papers.verdict import Item, Misprint
from holonome.results.solution import Solution
from holonome.solving.solve import solve

Progress = Callable[[float, str], None]
"""Called with the fraction done and what comes next."""

Reproduction = TypeVar("Reproduction", bound=Experiment)


@dataclass(frozen=True)
class Paper:
    """A paper and its experiments.

    Attributes
    ----------
    name, title, reference, summary : str
        The name on the command line, authors and year, the full reference, and what the paper does.
    contents : sequence of Item
        All numbered tables, figures, examples and theorems.
    misprints : sequence of Misprint
        What is wrong in the paper.
    experiments : dict
        Functions by name, each of which takes ``progress`` and returns an `Experiment`.
    """

    name: str
    title: str
    reference: str
    summary: str = ""
    contents: Sequence[Item] = field(default=(), repr=False)
    misprints: Sequence[Misprint] = field(default=(), repr=False)
    experiments: dict[str, Callable[..., Experiment]] = field(default_factory=dict, repr=False)
    titles: dict[str, str] = field(default_factory=dict, repr=False)

    def experiment(
        self, name: str, title: str
    ) -> Callable[[Callable[..., Reproduction]], Callable[..., Reproduction]]:
        """Decorate a function: it is registered under this name, and its result carries the title, the
        description (the docstring) and the time it took.
        """

        def decorate(function: Callable[..., Reproduction]) -> Callable[..., Reproduction]:
            @functools.wraps(function)
            def run(progress: Progress = silent) -> Reproduction:
                begin = time.perf_counter()
                result = function(progress)
                return replace(
                    result,
                    paper=self.name,
                    name=name,
                    title=title,
                    about=" ".join((inspect.getdoc(function) or "").split()),
                    misprints=[misprint for misprint in self.misprints if name in misprint.seen_in],
                    seconds=time.perf_counter() - begin,
                )

            self.experiments[name], self.titles[name] = run, title
            return run

        return decorate


def run_of(mechanism: Example, t_span: tuple[float, float] | None = None, **options: Any) -> Solution:
    """A run of a mechanism, over its own interval unless another is given."""
    return solve(mechanism.system, t_span or mechanism.t_span, mechanism.q0, mechanism.v0, **options)


def silent(fraction: float, what: str) -> None:
    """Show no progress."""


def load(paper: str) -> Paper:
    """The paper of a module, as its ``paper.toml`` in the data files describes it."""
    told = tomllib.loads((_data(paper) / "paper.toml").read_text(encoding="utf-8"))
    contents = [
        Item(item["number"], item["what"], tuple(item.get("experiments", ())), item.get("why_not", ""))
        for item in told.pop("contents", ())
    ]
    misprints = [
        Misprint(item["where"], item["printed"], item["correct"], item["why"], tuple(item.get("seen_in", ())))
        for item in told.pop("misprints", ())
    ]
    return Paper(**told, contents=contents, misprints=misprints)


def published(paper: str, table: str) -> list[dict[str, str]]:
    """A published table, from the data files of this package."""
    return list(csv.DictReader((_data(paper) / f"{table}.csv").read_text(encoding="utf-8").splitlines()))


def _data(paper: str) -> Traversable:
    return resources.files("holonome.papers") / "data" / paper
