"""The report: what it shows agrees with what was computed, it is well-formed, complete and escaped, and the
papers' own descriptions hold together.
"""

import re
import shutil
import subprocess
import sys
import zipfile
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holonome import cli, papers
from holonome.papers import Claim, Curve, Figure, Panel, Row, Table, report

VOID = {"meta", "br", "link", "img", "input", "hr"}
EVIL = "<script>alert('&')</script>"


class Page(HTMLParser):
    """Checks that elements are closed in order, and collects cells, ids, links and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open, self.ids, self.links, self.cells, self.words, self.counts = [], [], [], [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.ids += [given["id"]] if "id" in given else []
        self.links += [given["href"]] if "href" in given else []
        assert "src" not in given
        if tag == "td" and "data-value" in given:
            self.cells.append((given.get("class"), given["data-value"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.open):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def results():
    rows = [
        Row(
            {"method": "A", "TOL": "1e-3"},
            {"steps": 446, "error": 0.011},
            {"steps": 459, "error": 0.01127},
            "reproduced",
        ),
        Row(
            {"method": EVIL, "TOL": "1e-4"},
            {"steps": 10, "error": 6.69e-9},
            {"steps": 1000, "error": float("nan")},
            "differs",
            f"Because {EVIL}.",
        ),
        Row({"method": "ours", "TOL": "1e-4"}, {}, {"steps": 12, "error": 0.5}, "not published"),
    ]
    table = Table(
        paper="eich",
        name="table-3.1",
        title="errors",
        about="What `pendulum` does, x_{n+1} and 10^-3.",
        rows=rows,
        criterion="close",
        symbols={"steps": "accepted steps"},
        claims=[Claim.of(f"It is {EVIL}.", False, "it is 3e-07.")],
        notes=["A note."],
        seconds=1.5,
    )
    curve = Curve("line", np.linspace(1, 9, 50), np.linspace(1, 9, 50) ** 2, {"color": "#0072B2"})
    figure = Figure(
        paper="eich",
        name="kepler",
        title="orbits",
        panels=[Panel("one", "x", "y", [curve]), Panel("two", "x", "y", [curve], {"xscale": "log"})],
        claims=[Claim.ours("We say so.", True, "so it is.")],
        seconds=0.25,
    )
    return [table, figure, report.Failure("yen-petzold", "table-5.3", f"ZeroDivisionError: {EVIL}", 0.1)]


@pytest.fixture(scope="module")
def html(results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    results[0].save(folder)
    return report.write(results, folder).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
MEASURE = """<script>
const box = element => element.getBoundingClientRect();
document.querySelector("nav ol ol").append(...Array.from({length: 80}, (_, i) => {
  const entry = document.createElement("li"); entry.textContent = `Table ${i}`; return entry; }));
const [list, buttons] = ["nav details", ".switches"].map(name => box(document.querySelector(name)));
const badges = [...document.querySelectorAll(".data td.verdict span")].map(badge =>
  box(badge).right <= box(badge.closest(".scroll")).right + 0.5);
const time = [...document.querySelectorAll(".tiles dd")].at(-1);
time.textContent = "11 min 52 s";
const [tile, line] = [box(time.parentElement), box(time)];
document.title = JSON.stringify({
  badges: badges.length > 0 && badges.every(Boolean), buttons: list.bottom <= buttons.top,
  time: line.height < 1.6 * parseFloat(getComputedStyle(time).fontSize) && time.scrollWidth <= tile.width });
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize("width", [980, 1280])
def test_nothing_is_cut_or_covered(html, tmp_path, width):
    """Badges are whole in a table that must be scrolled, buttons leave room for the contents, a long duration
    stays on one line of its tile.
    """
    wide = html.replace("<style>", "<style>.data td { padding: 0.3rem 4rem !important; }", 1)
    file = tmp_path / "page.html"
    file.write_text(wide.replace("</body>", MEASURE + "</body>"), encoding="utf-8")
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'user'}",
    ]
    done = subprocess.run(
        [*command, f"--window-size={width},800", "--dump-dom", file.as_uri()],
        capture_output=True,
        text=True,
        check=True,
    )
    title = re.search(r"<title>(.*?)</title>", done.stdout)[1]
    assert title == '{"badges":true,"buttons":true,"time":true}'


def test_the_page_is_well_formed_and_stands_alone(page):
    """Every id once, every link within the page to one of them or to a file that is there."""
    assert len(set(page.ids)) == len(page.ids)
    assert {link[1:] for link in page.links if link.startswith("#")} <= set(page.ids)
    assert {link for link in page.links if not link.startswith("#")} == {
        "eich-table-3.1.csv",
        "eich-table-3.1.png",
    }
    assert page.counts["script"] == page.counts["style"] == 1


def test_numbers_are_those_of_the_rows(page, results):
    """Published beside measured, in the order of the rows, exactly in the attribute and to three digits in
    the text.
    """
    expected = []
    for row in results[0].rows:
        for name in ("steps", "error"):
            expected += [
                (side, repr(float(values[name])))
                for side, values in (("published", row.published), ("measured", row.measured))
                if name in values
            ]
    assert [cell for cell in page.cells if cell[0] != "verdict"] == expected
    assert [value for kind, value in page.cells if kind == "verdict"] == [
        "reproduced",
        "differs",
        "not published",
    ]
    for shown in ("446", "459", "0.011", "0.0113", "6.69e−9", "NaN"):
        assert shown in page.text


def test_verdicts_are_counted_by_what_the_papers_say(page):
    """One row reproduced; one row and one statement differ; what is ours counts apart."""
    assert "published rows and statements reproduced 1 of 3" in page.text
    assert "○ not published" in page.text
    assert "✓ holds" in page.text
    assert "≠ differs" in page.text


def test_everything_is_escaped(page, html):
    assert EVIL not in html
    assert page.text.count("alert('&')") >= 4


def test_failures_are_told_with_their_message(page):
    assert "Could not be computed" in page.text
    assert page.text.count("ZeroDivisionError") == 2
    assert "Table 5.3" in page.text


def test_pictures_follow_the_theme(html):
    (picture,) = re.findall(r"<figure>.*?</figure>", html, flags=re.DOTALL)
    assert "var(--curve-0)" in picture
    assert "#0072b2" not in picture.lower()
    assert ">one<" in picture.replace(" ", "")


def test_prose(page, html):
    assert "What <code>pendulum</code> does, x<sub>n+1</sub> and 10<sup>-3</sup>." in html
    assert "It is 3e−7." in page.text


def test_tables_are_accessible(html):
    for table in re.findall(r"<table.*?</table>", html, flags=re.DOTALL):
        assert "<caption>" in table
        assert all("scope=" in head for head in re.findall(r"<th[^e>]*>", table))


@pytest.mark.parametrize("name", papers.available())
def test_contents_and_misprints_name_experiments_that_exist(name):
    """Whatever has a number in a paper is computed, or it is said why not; and nothing is named that does not
    exist.
    """
    paper = papers.get(name)
    assert paper.summary.count(". ") >= 2
    for item in paper.contents:
        assert item.experiments or item.why_not, item.number
        assert set(item.experiments) <= set(paper.experiments), item.number
    for misprint in paper.misprints:
        assert set(misprint.seen_in) <= set(paper.experiments), misprint.where
        assert misprint.why
    for compute in paper.experiments.values():
        assert compute.__doc__, compute


@pytest.mark.parametrize(
    "module", ["ascher_lin_1995", "eich_1993", "wang_hou_modnak_2011", "yen_petzold_1996"]
)
def test_the_documentation_tells_the_same_misprints(module):
    text = (Path(__file__).parents[2] / "docs" / "papers" / f"{module}.md").read_text(encoding="utf-8")
    for misprint in getattr(papers, module).PAPER.misprints:
        line = " | ".join(
            part.replace("|", "\\|")
            for part in (misprint.where, misprint.printed, misprint.correct, misprint.why)
        )
        assert line in text


def test_partial_runs_by_the_command(tmp_path, monkeypatch):
    """Failures are in the page, and what was not asked for is said to be missing."""
    experiments = papers.get("yen-petzold").experiments
    monkeypatch.setitem(experiments, "table-5.3", lambda progress: 1 / 0)
    arguments = ["reproduce", "yen-petzold", "algorithm-2.1", "table-5.3", "--out", str(tmp_path / "report")]
    result = CliRunner().invoke(cli.app, arguments, env={"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"})
    assert result.exit_code == 1
    assert "index.html" in result.stdout
    page = Page((tmp_path / "report" / "index.html").read_text(encoding="utf-8"))
    assert "Yen & Petzold 1996, recomputed" in page.text
    assert "ZeroDivisionError: division by zero" in page.text
    assert "Theorem 3.1: not computed this time" in page.text
    assert {"yen-petzold-algorithm-2.1.csv", "yen-petzold-algorithm-2.1.png"} <= set(page.links)


def test_nothing_is_no_report(tmp_path):
    with pytest.raises(ValueError, match="nothing to report"):
        report.write([], tmp_path)


def test_pages_and_papers_are_in_the_wheel(tmp_path):
    pytest.importorskip("hatchling", reason="needs hatchling: pip install -e '.[test]'")
    root = Path(__file__).parents[2]
    build = (
        f"import os; os.chdir({str(root)!r}); from hatchling.build import build_wheel; "
        f"print(build_wheel({str(tmp_path)!r}))"
    )
    name = subprocess.run(
        [sys.executable, "-c", build], capture_output=True, text=True, check=True
    ).stdout.split()[-1]
    files = zipfile.ZipFile(tmp_path / name).namelist()
    assert {f"holonome/papers/report/{part}" for part in ("page.html", "style.css", "script.js")} <= set(
        files
    )
    assert len([file for file in files if file.endswith("paper.toml")]) == len(papers.available())
