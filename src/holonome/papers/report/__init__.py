"""One page for all that was computed: ``index.html``, which opens from disk, without a network.

Published and measured values stand side by side, with verdicts, reasons, misprints and pictures. The page is
`page.html`, filled in; its style and its script, which only sorts, hides and switches colours, are beside it.
All text that comes from an experiment is escaped.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from holonome import __version__, papers
from holonome.papers.experiment import spoken
from holonome.papers.paper import Paper
from holonome.papers.report.article import article
from holonome.papers.report.html import anchor, prose, tag
from holonome.papers.report.result import COUNTED, Failure, Result, counted, link, time_text
from holonome.papers.verdict import Item, Misprint

__all__ = ["Failure", "write"]


def write(results: Iterable[Result], folder: str | Path) -> Path:
    """Write ``index.html`` about the results into the folder.

    Parameters
    ----------
    results : iterable of Experiment or Failure
        What was computed, and what could not be. Papers are shown in the order of their first result,
        experiments in the order of the paper.
    folder : str or path
        Where the files of ``Experiment.save`` lie; those that are there are linked.

    Returns
    -------
    Path
        The page.
    """
    results, folder = list(results), Path(folder)
    if not results:
        raise ValueError("results: nothing to report")
    folder.mkdir(parents=True, exist_ok=True)
    chapters = _chapters(results)
    chosen = [paper for paper, _ in chapters]
    complete = all(set(paper.experiments) <= {result.name for result in given} for paper, given in chapters)
    page = Template(_resource("page.html")).substitute(
        style=_resource("style.css"),
        script=_resource("script.js"),
        title=_title(chosen),
        lead="Every table and figure" if complete else "Some tables and figures",
        tiles=_tiles(results, chosen),
        untestable=_untestable(chosen),
        bars="".join(_bar_line(paper, given) for paper, given in chapters),
        failures=_failures([result for result in results if isinstance(result, Failure)]),
        contents="".join(_contents(paper, given) for paper, given in chapters),
        chapters="".join(_chapter(paper, given, folder) for paper, given in chapters),
        version=escape(__version__),
        machine=escape(_machine()),
        date=datetime.now().astimezone().strftime("%d %B %Y, %H:%M"),
    )
    file = folder / "index.html"
    file.write_text(page, encoding="utf-8")
    return file


def _chapters(results: Sequence[Result]) -> list[tuple[Paper, list[Result]]]:
    chapters = []
    for name in dict.fromkeys(result.paper for result in results):
        paper = papers.get(name)
        chapters.append(
            (
                paper,
                sorted(
                    (result for result in results if result.paper == name),
                    key=lambda result: _place(result.name, paper),
                ),
            )
        )
    return chapters


def _place(name: str, paper: Paper) -> int:
    """Where an experiment stands in the paper: at the item of its name, else at the first to which it
    belongs, else after all others.
    """
    belongs = [i for i, item in enumerate(paper.contents) if name in item.experiments]
    return next(
        (i for i in belongs if paper.contents[i].number == spoken(name)),
        belongs[0] if belongs else len(paper.contents),
    )


# the cover


def _title(chosen: Sequence[Paper]) -> str:
    number = {2: "Two", 3: "Three", 4: "Four"}.get(len(chosen), str(len(chosen)))
    return f"{escape(chosen[0].title) if len(chosen) == 1 else f'{number} papers'}, recomputed"


def _machine() -> str:
    cores = os.cpu_count()
    return (
        f"{platform.system()} on {platform.machine()}, {f'{cores} cores, ' if cores else ''}Python "
        f"{platform.python_version()}"
    )


def _tiles(results: Sequence[Result], chosen: Sequence[Paper]) -> str:
    total = counted(results)
    tiles = {
        "published rows and statements reproduced": f"{total['good']} <small>of "
        f"{total['good'] + total['fit'] + total['off']}</small>",
        "fitted: they come out on data chosen for it": str(total["fit"]),
        "differ, each with the reason as far as we know it": str(total["off"]),
        "tables, theorems and remarks not testable": str(
            sum(not item.testable for paper in chosen for item in paper.contents)
        ),
        "misprints and errors found in the papers": str(sum(len(paper.misprints) for paper in chosen)),
        f"of computing for {len(results)} {'experiment' if len(results) == 1 else 'experiments'}": time_text(
            results
        ),
    }
    return "".join(tag("div", tag("dt", what), tag("dd", value)) for what, value in tiles.items())


def _bar(results: Sequence[Result]) -> str:
    count = {kind: times for kind, times in counted(results).items() if times}
    parts = [tag("i", str(times), class_=kind, style=f"flex-grow:{times}") for kind, times in count.items()]
    return tag(
        "span",
        *parts,
        class_="bar",
        role="img",
        aria_label=", ".join(f"{times} {COUNTED[kind]}" for kind, times in count.items()),
    )


def _bar_line(paper: Paper, results: Sequence[Result]) -> str:
    return tag(
        "a",
        tag("span", escape(paper.title)),
        _bar(results),
        tag("span", time_text(results), class_="time"),
        class_="line",
        href=f"#{anchor(paper.name)}",
    )


def _untestable(chosen: Sequence[Paper]) -> str:
    """What has a number in the papers and no experiment, and why."""
    lines = [
        tag("li", f"{escape(paper.title)}, {prose(item.number)}: {prose(item.what)}. ", prose(item.why_not))
        for paper in chosen
        for item in paper.contents
        if not item.testable
    ]
    return (
        tag("details", "<summary>What is not testable, and why</summary>", tag("ul", *lines)) if lines else ""
    )


def _failures(failed: Sequence[Failure]) -> str:
    lines = [tag("li", link(one), f": {escape(one.message)}") for one in failed]
    return (
        tag("section", "<h2>Could not be computed</h2>", tag("ul", *lines), class_="failed") if failed else ""
    )


def _contents(paper: Paper, results: Sequence[Result]) -> str:
    lines = [tag("li", link(result)) for result in results]
    return tag("li", tag("a", escape(paper.title), href=f"#{anchor(paper.name)}"), tag("ol", *lines))


# a paper


def _chapter(paper: Paper, results: Sequence[Result], folder: Path) -> str:
    head = [
        tag("h2", escape(paper.title)),
        tag("p", escape(paper.reference), class_="reference"),
        tag("p", prose(paper.summary), class_="summary"),
        _bar(results),
        tag(
            "p",
            tag("code", f"holonome reproduce {escape(paper.name)} --out report"),
            tag("span", time_text(results), class_="time"),
            class_="repeat",
        ),
    ]
    articles = [article(result, folder) for result in results]
    return tag(
        "section",
        tag("header", *head),
        _completeness(paper, results),
        _misprints(paper, results),
        *articles,
        class_="chapter",
        id=anchor(paper.name),
    )


def _completeness(paper: Paper, results: Sequence[Result]) -> str:
    """Everything that has a number in the paper, and where it is here; then what is ours."""
    done = {result.name: result for result in results}
    ours = [
        Item("Ours", paper.titles[name], (name,))
        for name in paper.experiments
        if not any(name in item.experiments for item in paper.contents)
    ]
    lines = [
        tag(
            "tr",
            tag("th", prose(item.number), scope="row"),
            tag("td", prose(item.what)),
            tag("td", _where(item, done)),
        )
        for item in (*paper.contents, *ours)
    ]
    table = _plain_table(
        f"Tables, figures, examples and theorems of {escape(paper.title)}",
        ["in the paper", "what it shows", "here"],
        lines,
    )
    return tag(
        "details",
        "<summary><h3>What the paper contains, and where it is here</h3></summary>",
        table,
        open=True,
        class_="completeness",
    )


def _where(item: Item, done: Mapping[str, Result]) -> str:
    places = [
        link(done[name])
        if name in done
        else tag("span", f"{escape(spoken(name))}: not computed this time", class_="absent")
        for name in item.experiments
    ]
    if item.why_not:
        places.append(tag("span", "" if places else "not reproduced: ", prose(item.why_not), class_="absent"))
    return "<br>".join(places)


def _misprints(paper: Paper, results: Sequence[Result]) -> str:
    def line(number: int, one: Misprint) -> str:
        links = ", ".join(
            tag("a", escape(spoken(result.name)), href=f"#{anchor(result.stem)}")
            for result in results
            if result.name in one.seen_in
        )
        why = prose(one.why) + (tag("span", f" See {links}.", class_="seen") if links else "")
        cells = [tag("td", text) for text in (prose(one.printed), prose(one.correct), why)]
        return tag(
            "tr",
            tag("th", prose(one.where), scope="row"),
            *cells,
            id=f"{anchor(paper.name)}-misprint-{number}",
        )

    lines = [line(number, one) for number, one in enumerate(paper.misprints, 1)]
    table = _plain_table(
        f"{len(lines)} places, what stands there, and what should",
        ["where", "printed", "should be", "why we think so"],
        lines,
    )
    return (
        tag("section", "<h3>Misprints and errors in the paper</h3>", table, class_="misprints")
        if lines
        else ""
    )


def _plain_table(caption: str, heads: Sequence[str], lines: Sequence[str]) -> str:
    head = tag("thead", tag("tr", *(tag("th", name, scope="col") for name in heads)))
    return tag(
        "div",
        tag("table", tag("caption", caption), head, tag("tbody", *lines)),
        class_="scroll",
        tabindex="0",
    )


def _resource(name: str) -> str:
    return (resources.files(__name__) / name).read_text(encoding="utf-8")
