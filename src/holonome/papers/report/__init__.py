"""One page for all that was computed: ``index.html``, which opens from disk, without a network.

Published and measured values stand side by side, with verdicts, reasons, misprints and pictures. The page is
`page.html`, filled in; its style and its script, which only sorts, hides and darkens, lie beside it. Whatever
comes from an experiment is escaped.
"""

from __future__ import annotations

import io
import math
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from holonome import __version__, papers
from holonome.papers.experiment import (
    DIFFERS,
    FAILS,
    HOLDS,
    NOT_PUBLISHED,
    REPRODUCED,
    Claim,
    Experiment,
    Figure,
    Item,
    Misprint,
    Paper,
    Row,
    spoken,
)
from holonome.plot import COLOURS

__all__ = ["Failure", "write"]

SIGNS = {REPRODUCED: "✓", DIFFERS: "≠", NOT_PUBLISHED: "○", HOLDS: "✓", FAILS: "✗"}
"""A sign beside each colour."""
KINDS = {REPRODUCED: "good", DIFFERS: "off", NOT_PUBLISHED: "beyond", HOLDS: "beyond", FAILS: "bad"}
"""Classes of the style sheet."""
COUNTED = {"good": "reproduced", "off": "differ", "beyond": "beyond the paper", "bad": "failed"}
FILES = {".csv": "numbers (CSV)", ".png": "picture (PNG)", ".gif": "animation (GIF)"}
WIDEST = 4.0
"""The ratio of measured and published values at which the strip of a row ends."""


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
    belongs, else behind all.
    """
    belongs = [i for i, item in enumerate(paper.contents) if name in item.experiments]
    return next(
        (i for i in belongs if paper.contents[i].number == spoken(name)),
        belongs[0] if belongs else len(paper.contents),
    )


# the cover


def _title(chosen: Sequence[Paper]) -> str:
    number = {2: "Two", 3: "Three", 4: "Four"}.get(len(chosen), str(len(chosen)))
    return f"{escape(chosen[0].title) if len(chosen) == 1 else f'{number} papers'}, computed anew"


def _machine() -> str:
    cores = os.cpu_count()
    return (
        f"{platform.system()} on {platform.machine()}, {f'{cores} cores, ' if cores else ''}Python "
        f"{platform.python_version()}"
    )


def _counted(results: Iterable[Result]) -> dict[str, int]:
    """How many rows and statements were reproduced, differ, are ours, and how many experiments failed."""
    counts = dict.fromkeys(COUNTED, 0)
    for result in results:
        if isinstance(result, Failure):
            counts["bad"] += 1
        else:
            for verdict, times in result.verdicts.items():
                counts[KINDS[verdict]] += times
    return counts


def _tiles(results: Sequence[Result], chosen: Sequence[Paper]) -> str:
    total = _counted(results)
    tiles = {
        "published rows and statements reproduced": f"{total['good']} <small>of "
        f"{total['good'] + total['off']}</small>",
        "differ, each with the reason as far as we know it": str(total["off"]),
        "misprints and errors found in the papers": str(sum(len(paper.misprints) for paper in chosen)),
        f"of computing for {len(results)} {'experiment' if len(results) == 1 else 'experiments'}": _time(
            results
        ),
    }
    return "".join(_tag("div", _tag("dt", what), _tag("dd", value)) for what, value in tiles.items())


def _bar(results: Sequence[Result]) -> str:
    count = {kind: times for kind, times in _counted(results).items() if times}
    parts = [_tag("i", str(times), class_=kind, style=f"flex-grow:{times}") for kind, times in count.items()]
    return _tag(
        "span",
        *parts,
        class_="bar",
        role="img",
        aria_label=", ".join(f"{times} {COUNTED[kind]}" for kind, times in count.items()),
    )


def _bar_line(paper: Paper, results: Sequence[Result]) -> str:
    return _tag(
        "a",
        _tag("span", escape(paper.title)),
        _bar(results),
        _tag("span", _time(results), class_="time"),
        class_="line",
        href=f"#{_id(paper.name)}",
    )


def _failures(failed: Sequence[Failure]) -> str:
    lines = [_tag("li", _link(one), f": {escape(one.message)}") for one in failed]
    return (
        _tag("section", "<h2>Could not be computed</h2>", _tag("ul", *lines), class_="failed")
        if failed
        else ""
    )


def _contents(paper: Paper, results: Sequence[Result]) -> str:
    lines = [_tag("li", _link(result)) for result in results]
    return _tag("li", _tag("a", escape(paper.title), href=f"#{_id(paper.name)}"), _tag("ol", *lines))


# a paper


def _chapter(paper: Paper, results: Sequence[Result], folder: Path) -> str:
    head = [
        _tag("h2", escape(paper.title)),
        _tag("p", escape(paper.reference), class_="reference"),
        _tag("p", _prose(paper.summary), class_="summary"),
        _bar(results),
        _tag(
            "p",
            _tag("code", f"holonome reproduce {escape(paper.name)} --out report"),
            _tag("span", _time(results), class_="time"),
            class_="repeat",
        ),
    ]
    articles = [_article(result, folder) for result in results]
    return _tag(
        "section",
        _tag("header", *head),
        _completeness(paper, results),
        _misprints(paper, results),
        *articles,
        class_="chapter",
        id=_id(paper.name),
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
        _tag(
            "tr",
            _tag("th", _prose(item.number), scope="row"),
            _tag("td", _prose(item.what)),
            _tag("td", _where(item, done)),
        )
        for item in (*paper.contents, *ours)
    ]
    table = _plain_table(
        f"Tables, figures, examples and theorems of {escape(paper.title)}",
        ["in the paper", "what it shows", "here"],
        lines,
    )
    return _tag(
        "details",
        "<summary><h3>What the paper contains, and where it is here</h3></summary>",
        table,
        open=True,
        class_="completeness",
    )


def _where(item: Item, done: Mapping[str, Result]) -> str:
    places = [
        _link(done[name])
        if name in done
        else _tag("span", f"{escape(spoken(name))}: not computed this time", class_="absent")
        for name in item.experiments
    ]
    if item.why_not:
        places.append(
            _tag("span", "" if places else "not reproduced: ", _prose(item.why_not), class_="absent")
        )
    return "<br>".join(places)


def _misprints(paper: Paper, results: Sequence[Result]) -> str:
    def line(number: int, one: Misprint) -> str:
        links = ", ".join(
            _tag("a", escape(spoken(result.name)), href=f"#{_id(result.stem)}")
            for result in results
            if result.name in one.seen_in
        )
        why = _prose(one.why) + (_tag("span", f" See {links}.", class_="seen") if links else "")
        cells = [_tag("td", text) for text in (_prose(one.printed), _prose(one.correct), why)]
        return _tag(
            "tr",
            _tag("th", _prose(one.where), scope="row"),
            *cells,
            id=f"{_id(paper.name)}-misprint-{number}",
        )

    lines = [line(number, one) for number, one in enumerate(paper.misprints, 1)]
    table = _plain_table(
        f"{len(lines)} places, what stands there, and what should",
        ["where", "printed", "should be", "why we think so"],
        lines,
    )
    return (
        _tag("section", "<h3>Misprints and errors in the paper</h3>", table, class_="misprints")
        if lines
        else ""
    )


def _plain_table(caption: str, heads: Sequence[str], lines: Sequence[str]) -> str:
    head = _tag("thead", _tag("tr", *(_tag("th", name, scope="col") for name in heads)))
    return _tag(
        "div",
        _tag("table", _tag("caption", caption), head, _tag("tbody", *lines)),
        class_="scroll",
        tabindex="0",
    )


# an experiment


def _article(result: Result, folder: Path) -> str:
    failed = isinstance(result, Failure)
    head = [
        _tag(
            "h3", _tag("span", escape(spoken(result.name)), class_="number"), _prose(_capital(result.title))
        ),
        _chips(result),
    ]
    body = (
        [_tag("p", f"Could not be computed: {escape(result.message)}", class_="message")]
        if isinstance(result, Failure)
        else _body(result)
    )
    links = [
        _tag("a", what, href=result.stem + suffix)
        for suffix, what in FILES.items()
        if (folder / (result.stem + suffix)).exists()
    ]
    foot = [
        _tag("code", f"holonome reproduce {escape(result.paper)} {escape(result.name)}"),
        *links,
        _tag("span", _time([result]), class_="time"),
    ]
    return _tag(
        "article",
        _tag("header", *head),
        *body,
        _tag("footer", *foot, class_="repeat"),
        id=_id(result.stem),
        class_="failed" if failed else None,
    )


def _chips(result: Result) -> str:
    if isinstance(result, Failure):
        return _tag("p", _tag("span", "<b>✗</b> failed", class_="bad"), class_="chips")
    return _tag(
        "p",
        *(_verdict(verdict, before=f"{times} ") for verdict, times in result.verdicts.items()),
        class_="chips",
    )


def _verdict(verdict: str, before: str = "", after: str = "") -> str:
    return _tag("span", before, _tag("b", SIGNS[verdict]), f" {verdict}", after, class_=KINDS[verdict])


def _body(result: Experiment) -> list[str]:
    misprints = [
        _tag("a", _prose(one.where), href=f"#{_id(result.paper)}-misprint-{number}")
        + f", printed: {_prose(one.printed)}; should be: {_prose(one.correct)}."
        for number, one in enumerate(papers.get(result.paper).misprints, 1)
        if result.name in one.seen_in
    ]
    return [
        _tag("p", _prose(result.about), class_="about") if result.about else "",
        *(_table(result) if result.rows else []),
        _picture(result) if isinstance(result, Figure) else "",
        _tag(
            "section",
            "<h4>What is said, and what was found</h4>",
            *map(_claim, result.claims),
            class_="claims",
        )
        if result.claims
        else "",
        _listed("notes", "Assumed, and good to know", [_prose(note) for note in result.notes]),
        _listed("errata", "Misprints that matter here", misprints),
    ]


def _listed(kind: str, heading: str, texts: Sequence[str]) -> str:
    return (
        _tag("section", _tag("h4", heading), _tag("ul", *(_tag("li", text) for text in texts)), class_=kind)
        if texts
        else ""
    )


def _claim(claim: Claim) -> str:
    said, found = (
        _tag("p", _tag("span", escape(by), class_="by"), " ", _prose(_capital(text)))
        for by, text in ((claim.by, claim.statement), ("Here", claim.finding))
    )
    return _tag(
        "div",
        said,
        found,
        _tag("p", _verdict(claim.verdict), class_="verdict"),
        class_=f"claim {KINDS[claim.verdict]}",
    )


def _table(result: Experiment) -> list[str]:
    """The rows: what was run, published and measured values in pairs, their ratios as a strip, the verdict;
    then what the names mean, and why rows differ.
    """
    rows, keys = result.rows, list(result.rows[0].case)
    names = list(dict.fromkeys(name for row in rows for name in (*row.published, *row.measured)))
    paired = [name for name in names if any(name in row.published for row in rows)]
    reasons = list(dict.fromkeys(row.why for row in rows if row.why))

    def line(row: Row) -> str:
        cells = [
            _tag("th", _prose(str(row.case[key])), scope="row", data_value=str(row.case[key])) for key in keys
        ]
        for name in names:
            cells += [_cell(row.published.get(name), "published")] if name in paired else []
            cells += [_cell(row.measured.get(name), "measured")]
        number = reasons.index(row.why) + 1 if row.why else 0
        mark = _tag("sup", _tag("a", str(number), href=f"#{_id(result.stem)}-why-{number}")) if number else ""
        cells += [_tag("td", _strip(row), class_="ratio")] if paired else []
        cells += (
            [_tag("td", _verdict(row.verdict, after=mark), class_="verdict", data_value=row.verdict)]
            if paired or reasons
            else []
        )
        return _tag("tr", *cells, class_=KINDS[row.verdict])

    def head(name: str, **attributes: str | bool) -> str:
        named = (
            _tag("abbr", _prose(name), title=result.symbols[name]) if name in result.symbols else _prose(name)
        )
        return _tag(
            "th",
            named,
            **{"scope": "col", "rowspan": "2" if paired else "1", "data_sort": True, **attributes},
        )

    first = [head(key, class_="case") for key in keys]
    first += [
        head(name, scope="colgroup", colspan="2", rowspan="1", data_sort=False)
        if name in paired
        else head(name)
        for name in names
    ]
    first += [head("measured ÷ published", data_sort=False, class_="ratio")] if paired else []
    first += [head("verdict", class_="verdict")] if paired or reasons else []
    short = {"published": "publ.", "measured": "here"}
    second = [
        _tag(
            "th",
            _tag("abbr", short[side], title=side) if len(paired) > 3 else side,
            scope="col",
            data_sort=True,
        )
        for _ in paired
        for side in short
    ]
    criterion = f"<b>✓ reproduced</b> means: {_prose(result.criterion)}." if result.criterion else ""
    table = _tag(
        "table",
        _tag("caption", _tag("span", f"{escape(result.heading)}.", class_="unseen"), criterion),
        _tag("thead", _tag("tr", *first), _tag("tr", *second) if second else ""),
        _tag("tbody", *map(line, rows)),
        class_="data narrow" if len(paired) > 3 else "data",
    )
    legend = [
        _tag("div", _tag("dt", _prose(name)), _tag("dd", _prose(meaning)))
        for name, meaning in result.symbols.items()
    ]
    why = [
        _tag("li", _prose(reason), id=f"{_id(result.stem)}-why-{number}")
        for number, reason in enumerate(reasons, 1)
    ]
    return [
        _tag("div", table, class_="scroll", tabindex="0"),
        _tag("dl", *legend, class_="legend") if legend else "",
        _tag(
            "section",
            _tag("h4", "Why rows differ" if paired else "Remarks"),
            _tag("ol", *why),
            class_="reasons",
        )
        if why
        else "",
    ]


def _cell(value: float | None, side: str) -> str:
    return (
        _tag("td", class_=side)
        if value is None
        else _tag("td", _number(value), class_=side, data_value=repr(float(value)))
    )


def _number(value: float) -> str:
    """Two or three digits of a float; integers as they are."""
    if not isinstance(value, float) or not math.isfinite(value) or value == 0:
        text = str(value).replace("nan", "NaN")
    elif 1e-2 <= abs(value) < 1e4:
        text = f"{value:#.3g}".removesuffix("0").removesuffix(".") if abs(value) < 100 else f"{value:.0f}"
    else:
        mantissa, _, exponent = f"{value:.2e}".partition("e")
        text = f"{mantissa.removesuffix('0')}e{int(exponent)}"
    return text.replace("-", "−")


def _strip(row: Row) -> str:
    """Measured over published values on a logarithmic strip, a dot for each; what lies outside is an arrow at
    the end.
    """
    width, shapes, told = 92, [], []
    for name, expected in row.published.items():
        ratio = row.measured.get(name, math.nan) / expected if expected else math.nan
        if math.isfinite(ratio) and ratio > 0:
            told.append(f"{name} {ratio:.3g}")
            x = math.log(ratio) / math.log(WIDEST)
            side = math.copysign(1, x)
            shapes.append(
                f'<circle cx="{width / 2 * (1 + 0.9 * x):.1f}" cy="7" r="3"/>'
                if abs(x) <= 1
                else f'<path d="M{width / 2 * (1 + side):g} 7l{-7 * side:g} -4v8z"/>'
            )
    axis = f'<path class="axis" d="M2 7h{width - 4}M{width / 2:g} 1v12"/>'
    return (
        _tag(
            "svg",
            _tag("title", escape(", ".join(told))),
            axis,
            *shapes,
            width=str(width),
            height="14",
            role="img",
        )
        if told
        else ""
    )


def _picture(result: Figure) -> str:
    told = "; ".join(
        f"{panel.title}: {', '.join(curve.label for curve in panel.curves if curve.label)}".strip(": ")
        for panel in result.panels
    )
    return _tag(
        "figure",
        _tag("div", _svg(result), class_="scroll"),
        _tag("figcaption", f"{_prose(result.title)}. {escape(told)}.", class_="unseen"),
    )


THEMED = {
    **{colour.lower(): f"var(--curve-{i})" for i, colour in enumerate(COLOURS)},
    "#ffffff": "var(--card)",
    "#000000": "var(--ink)",
    "#111111": "var(--ink)",
    "#262626": "var(--ink)",
    "#444444": "var(--muted)",
    "#666666": "var(--muted)",
    "#e4e4e4": "var(--grid)",
}
"""Colours of the house style, and what they are on the page, light or dark."""


def _svg(result: Figure) -> str:
    """The picture as SVG for this page: names of its own, colours of the page, text as text."""
    from matplotlib import rc_context

    from holonome import plot

    buffer, key = io.StringIO(), _id(result.stem)
    options: dict[Any, Any] = {
        "figure.facecolor": "white",
        "svg.fonttype": "none",
        "svg.hashsalt": result.stem,
        "path.simplify_threshold": 0.4,
    }
    with rc_context(options), plot.house_style():
        result.picture(titled=False).savefig(
            buffer,
            format="svg",
            transparent=True,
            metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")),
        )
    svg = buffer.getvalue()
    svg = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->",
        "",
        svg[svg.index("<svg") :],
        flags=re.DOTALL,
    )
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{key}-", svg)
    svg = re.sub(
        r"(fill|stroke): (#\w{6})", lambda found: f"{found[1]}: {THEMED.get(found[2].lower(), found[2])}", svg
    )
    svg = re.sub(r'(<text[^>]*style=")(?![^"]*fill)', r"\1fill: var(--ink); ", svg)
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[0])
    inside = re.sub(r">\s+<", "><", svg[svg.index(">") + 1 : svg.rindex("</svg>")])
    return _tag(
        "svg",
        inside,
        viewBox=f"0 0 {width:g} {height:g}",
        style=f"width:{1.05 * width:.0f}px",
        role="img",
        aria_label=result.heading,
    )


# small things


def _tag(name: str, *inside: str, **attributes: str | bool | None) -> str:
    """An element. Attributes are escaped, what is inside is HTML already; `class_` is class, `data_value`
    data-value, True an attribute without a value.
    """
    given = {
        key.rstrip("_").replace("_", "-"): value
        for key, value in attributes.items()
        if value not in (None, False)
    }
    told = "".join(
        f" {key}" if value is True else f' {key}="{escape(str(value))}"' for key, value in given.items()
    )
    return f"<{name}{told}>{''.join(inside)}</{name}>"


def _link(result: Result) -> str:
    """To an experiment, with a sign for it as a whole."""
    counts = _counted([result])
    kind = next((kind for kind in ("bad", "off", "good") if counts[kind]), "beyond")
    sign, word = {
        "bad": ("✗", "failed"),
        "off": ("≠", "something differs"),
        "good": ("✓", "reproduced"),
        "beyond": ("○", "nothing to compare"),
    }[kind]
    return _tag(
        "a",
        _tag("b", sign, class_=f"sign {kind}", title=word, role="img", aria_label=word),
        f" {escape(spoken(result.name))}",
        href=f"#{_id(result.stem)}",
    )


def _prose(text: str) -> str:
    """Escaped text; `names`, x_i, x_{i+1} and x^2 are set as such, 1e-06 becomes 1e−6."""

    def plain(part: str) -> str:
        part = re.sub(r"(?<=\d)e([-+])0?(?=\d)", lambda found: "e" if found[1] == "+" else "e−", part)
        part = re.sub(
            r"(?<=\w)_(?:\{([^}]*)\}|(\w)(?!\w))", lambda found: _tag("sub", found[1] or found[2]), part
        )
        return re.sub(
            r"\^(?:\(([^)]*)\)|([-−]?\d+(?:\.\d+)?))", lambda found: _tag("sup", found[1] or found[2]), part
        )

    return "".join(
        _tag("code", part) if i % 2 else plain(part) for i, part in enumerate(escape(text).split("`"))
    )


def _capital(text: str) -> str:
    """With a capital letter, unless it begins with a symbol."""
    return text[:1].upper() + text[1:] if re.match("[a-z]{2}", text) else text


def _time(results: Iterable[Result]) -> str:
    seconds = sum(result.seconds for result in results)
    if seconds >= 100:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return (
        f"{seconds:.0f} s"
        if seconds >= 9.5
        else f"{seconds:.1f} s"
        if seconds >= 0.95
        else f"{seconds * 1e3:.0f} ms"
    )


def _id(name: str) -> str:
    return re.sub(r"[^\w-]+", "-", name)


def _resource(name: str) -> str:
    return (resources.files(__name__) / name).read_text(encoding="utf-8")
