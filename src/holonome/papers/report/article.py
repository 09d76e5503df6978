"""One experiment on the page: what it is about, its table, its picture, its claims, and its files."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from holonome import papers
from holonome.papers.experiment import Experiment, spoken
from holonome.papers.figure import Figure
from holonome.papers.report.html import anchor, capital, number_text, prose, tag
from holonome.papers.report.result import KINDS, Failure, Result, time_text
from holonome.papers.verdict import DIFFERS, FAILS, FITTED, HOLDS, NOT_PUBLISHED, REPRODUCED, Claim, Row
from holonome.plot import COLOURS

SIGNS = {REPRODUCED: "✓", FITTED: "≈", DIFFERS: "≠", NOT_PUBLISHED: "○", HOLDS: "✓", FAILS: "✗"}
"""A sign beside each colour."""
FILES = {".csv": "numbers (CSV)", ".png": "picture (PNG)", ".gif": "animation (GIF)"}
WIDEST = 4.0
"""The ratio of measured and published values at which the strip of a row ends."""


def article(result: Result, folder: Path) -> str:
    """The part of the page about one experiment; links to the files of it that are in the folder."""
    failed = isinstance(result, Failure)
    head = [
        tag("h3", tag("span", escape(spoken(result.name)), class_="number"), prose(capital(result.title))),
        _chips(result),
    ]
    body = (
        [tag("p", f"Could not be computed: {escape(result.message)}", class_="message")]
        if isinstance(result, Failure)
        else _body(result)
    )
    links = [
        tag("a", what, href=result.stem + suffix)
        for suffix, what in FILES.items()
        if (folder / (result.stem + suffix)).exists()
    ]
    foot = [
        tag("code", f"holonome reproduce {escape(result.paper)} {escape(result.name)}"),
        *links,
        tag("span", time_text([result]), class_="time"),
    ]
    return tag(
        "article",
        tag("header", *head),
        *body,
        tag("footer", *foot, class_="repeat"),
        id=anchor(result.stem),
        class_="failed" if failed else None,
    )


def _chips(result: Result) -> str:
    if isinstance(result, Failure):
        return tag("p", tag("span", "<b>✗</b> failed", class_="bad"), class_="chips")
    return tag(
        "p",
        *(_verdict(verdict, before=f"{times} ") for verdict, times in result.verdicts.items()),
        class_="chips",
    )


def _verdict(verdict: str, before: str = "", after: str = "") -> str:
    return tag("span", before, tag("b", SIGNS[verdict]), f" {verdict}", after, class_=KINDS[verdict])


def _body(result: Experiment) -> list[str]:
    misprints = [
        tag("a", prose(one.where), href=f"#{anchor(result.paper)}-misprint-{number}")
        + f", printed: {prose(one.printed)}; should be: {prose(one.correct)}."
        for number, one in enumerate(papers.get(result.paper).misprints, 1)
        if result.name in one.seen_in
    ]
    return [
        tag("p", prose(result.about), class_="about") if result.about else "",
        *(_table(result) if result.rows else []),
        _picture(result) if isinstance(result, Figure) else "",
        tag(
            "section",
            "<h4>What is said, and what was found</h4>",
            *map(_claim, result.claims),
            class_="claims",
        )
        if result.claims
        else "",
        _listed("notes", "Assumed, and good to know", [prose(note) for note in result.notes]),
        _listed("errata", "Misprints that matter here", misprints),
    ]


def _listed(kind: str, heading: str, texts: Sequence[str]) -> str:
    return (
        tag("section", tag("h4", heading), tag("ul", *(tag("li", text) for text in texts)), class_=kind)
        if texts
        else ""
    )


def _claim(claim: Claim) -> str:
    said, found = (
        tag("p", tag("span", escape(by), class_="by"), " ", prose(capital(text)))
        for by, text in ((claim.by, claim.statement), ("Here", claim.finding))
    )
    return tag(
        "div",
        said,
        found,
        tag("p", _verdict(claim.verdict), class_="verdict"),
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
            tag("th", prose(str(row.case[key])), scope="row", data_value=str(row.case[key])) for key in keys
        ]
        for name in names:
            cells += [_cell(row.published.get(name), "published")] if name in paired else []
            cells += [_cell(row.measured.get(name), "measured")]
        number = reasons.index(row.why) + 1 if row.why else 0
        mark = (
            tag("sup", tag("a", str(number), href=f"#{anchor(result.stem)}-why-{number}")) if number else ""
        )
        cells += [tag("td", _strip(row), class_="ratio")] if paired else []
        cells += (
            [tag("td", _verdict(row.verdict, after=mark), class_="verdict", data_value=row.verdict)]
            if paired or reasons
            else []
        )
        return tag("tr", *cells, class_=KINDS[row.verdict])

    def head(name: str, **attributes: str | bool) -> str:
        named = (
            tag("abbr", prose(name), title=result.symbols[name]) if name in result.symbols else prose(name)
        )
        return tag(
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
        tag(
            "th",
            tag("abbr", short[side], title=side) if len(paired) > 3 else side,
            scope="col",
            data_sort=True,
        )
        for _ in paired
        for side in short
    ]
    criterion = f"<b>✓ reproduced</b> means: {prose(result.criterion)}." if result.criterion else ""
    table = tag(
        "table",
        tag("caption", tag("span", f"{escape(result.heading)}.", class_="unseen"), criterion),
        tag("thead", tag("tr", *first), tag("tr", *second) if second else ""),
        tag("tbody", *map(line, rows)),
        class_="data narrow" if len(paired) > 3 else "data",
    )
    legend = [
        tag("div", tag("dt", prose(name)), tag("dd", prose(meaning)))
        for name, meaning in result.symbols.items()
    ]
    why = [
        tag("li", prose(reason), id=f"{anchor(result.stem)}-why-{number}")
        for number, reason in enumerate(reasons, 1)
    ]
    return [
        tag("div", table, class_="scroll", tabindex="0"),
        tag("dl", *legend, class_="legend") if legend else "",
        tag(
            "section",
            tag("h4", "Why rows differ, or what was fitted" if paired else "Remarks"),
            tag("ol", *why),
            class_="reasons",
        )
        if why
        else "",
    ]


def _cell(value: float | None, side: str) -> str:
    return (
        tag("td", class_=side)
        if value is None
        else tag("td", number_text(value), class_=side, data_value=repr(float(value)))
    )


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
        tag(
            "svg",
            tag("title", escape(", ".join(told))),
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
    return tag(
        "figure",
        tag("div", _svg(result), class_="scroll"),
        tag("figcaption", f"{prose(result.title)}. {escape(told)}.", class_="unseen"),
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
    """The picture as SVG for this page: with unique names, the colours of the page, and text as text."""
    from matplotlib import rc_context

    from holonome import plot

    buffer, key = io.StringIO(), anchor(result.stem)
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
    return tag(
        "svg",
        inside,
        viewBox=f"0 0 {width:g} {height:g}",
        style=f"width:{1.05 * width:.0f}px",
        role="img",
        aria_label=result.heading,
    )
