"""Every method on every kind of system with every option; the docstring of the package has the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from conformance.kinds import KINDS
from conformance.known import DEFECTS, LIMITS, NOT_RUN, Row, rows_for
from conformance.methods import HAND_MADE, subjects
from conformance.options import OPTIONS, THREADED
from conformance.watching import outcomes

THREADS = "four threads"
KNOWN = [*LIMITS, *DEFECTS]


pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", THREADED)
def test_threads_on_first_use(kind: str, tmp_path, monkeypatch) -> None:
    """With an empty cache of models, so that all of them compile."""
    monkeypatch.setenv("HOLONOME_CACHE", str(tmp_path))
    judge(kind, [(method, THREADS) for method in subjects() if method not in HAND_MADE])


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_and_option(kind: str) -> None:
    cells = [(method, option) for method in subjects() for option in OPTIONS if option != THREADS]
    judge(kind, cells)


def test_exceptions_are_about_something() -> None:
    """Rows of known.py name methods, kinds and options that exist."""
    for row in [*KNOWN, *NOT_RUN]:
        cells = [(method, kind, option) for method in subjects() for kind in KINDS for option in OPTIONS]
        assert any(row.covers(*cell) for cell in cells), row


def judge(kind: str, cells: Sequence[tuple[str, str]]) -> None:
    """Run the cells and compare what became of them with what is known."""
    wanted = [(method, option) for method, option in cells if not rows_for(NOT_RUN, method, kind, option)]
    found = [outcome for outcome in outcomes(kind, wanted) if outcome["result"] != "does not apply"]
    complaints = [complaint for outcome in found if (complaint := about(kind, outcome))]
    complaints += [stale for row in KNOWN if row.sometimes and (stale := about_row(row, kind, found))]
    assert not complaints, f"{len(complaints)} of {len(found)} cells of {kind!r}:\n" + "\n".join(complaints)


def about(kind: str, outcome: dict[str, Any]) -> str:
    """What is wrong with the outcome of a cell; empty if nothing is."""
    method, option, result = outcome["method"], outcome["option"], outcome["result"]
    rows = rows_for(KNOWN, method, kind, option)
    name = f"  {method} / {option}: "
    if result in [row.result for row in rows]:
        return ""
    if result == "passed":
        whys = [row.why for row in rows if row.must_show(option)]
        return f"{name}passes, so its row in known.py must go: {whys[0]}" if whys else ""
    if result in ("refused", "stopped"):
        return f"{name}{result}, which known.py does not list: {outcome['words']}"
    return f"{name}{outcome['words']}"


def about_row(row: Row, kind: str, found: Sequence[dict[str, Any]]) -> str:
    """Whether a row that is true sometimes was true at least once."""
    covered = [outcome for outcome in found if row.covers(outcome["method"], kind, outcome["option"])]
    seen = [outcome for outcome in covered if outcome["result"] == row.result]
    if seen or not covered:
        return ""
    return f"  {row.methods} / {row.options}: no longer {row.result}: {row.why}"
