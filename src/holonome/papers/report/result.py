"""What is reported: experiments, failed ones too, with verdicts, computing time and a link to each."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from holonome import papers
from holonome.papers.experiment import Experiment, spoken
from holonome.papers.report.html import anchor, tag
from holonome.papers.verdict import DIFFERS, FAILS, FITTED, HOLDS, NOT_PUBLISHED, REPRODUCED

KINDS = {
    REPRODUCED: "good",
    FITTED: "fit",
    DIFFERS: "off",
    NOT_PUBLISHED: "beyond",
    HOLDS: "beyond",
    FAILS: "bad",
}
"""Classes of the style sheet."""
COUNTED = {
    "good": "reproduced",
    "fit": "fitted",
    "off": "differ",
    "beyond": "beyond the paper",
    "bad": "failed",
}


@dataclass(frozen=True)
class Failure:
    """An experiment that could not be computed, and the message."""

    paper: str
    name: str
    message: str
    seconds: float = 0.0

    @property
    def title(self) -> str:
        return papers.get(self.paper).titles[self.name]

    @property
    def stem(self) -> str:
        return f"{self.paper}-{self.name}"


Result = Experiment | Failure


def counted(results: Iterable[Result]) -> dict[str, int]:
    """How many rows and statements were reproduced, differ, are ours, and how many experiments failed."""
    counts = dict.fromkeys(COUNTED, 0)
    for result in results:
        if isinstance(result, Failure):
            counts["bad"] += 1
        else:
            for verdict, times in result.verdicts.items():
                counts[KINDS[verdict]] += times
    return counts


def link(result: Result) -> str:
    """To an experiment, with a sign for it as a whole."""
    counts = counted([result])
    kind = next((kind for kind in ("bad", "off", "fit", "good") if counts[kind]), "beyond")
    sign, word = {
        "bad": ("✗", "failed"),
        "off": ("≠", "something differs"),
        "fit": ("≈", "fitted"),
        "good": ("✓", "reproduced"),
        "beyond": ("○", "nothing to compare"),
    }[kind]
    return tag(
        "a",
        tag("b", sign, class_=f"sign {kind}", title=word, role="img", aria_label=word),
        f" {escape(spoken(result.name))}",
        href=f"#{anchor(result.stem)}",
    )


def time_text(results: Iterable[Result]) -> str:
    """The time that the results took together, in two digits or so."""
    seconds = sum(result.seconds for result in results)
    if seconds >= 100:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    if seconds >= 0.95:
        return f"{seconds:.{0 if seconds >= 9.5 else 1}f} s"
    return f"{seconds * 1e3:.0f} ms"
