"""Write the numbers on the pages about the papers: verdicts, statements, tables and misprints.

    python docs/papers/write.py [results.json]

The results are those of ``holonome reproduce all --json``; without them everything is computed, which takes
two to three minutes. What stands between ``<!-- written: … -->`` and ``<!-- end -->`` is replaced.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path

from holonome import papers
from holonome.papers.experiment import spoken

HERE = Path(__file__).parent
BLOCK = re.compile(r"(<!-- written: ([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
VERDICTS = ("reproduced", "fitted", "differs")
SIGNS = {"reproduced": "✓", "fitted": "≈", "differs": "≠", "holds": "✓", "fails": "✗", "not published": "○"}


def computed() -> list[dict]:
    """Everything anew."""
    return [
        compute().to_dict() for paper in papers.available().values() for compute in paper.experiments.values()
    ]


def cell(text: object) -> str:
    return str(text).replace("|", "\\|").replace("\n", " ")


def number(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    if value != value:
        return "NaN"
    return f"{value:.3g}" if 1e-2 <= abs(value) < 1e4 or value == 0 else f"{value:.1e}"


def grid(head: list[str], rows: list[list[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(cell, line)) + " |" for line in lines) + "\n"


class Pages:
    """Blocks of text from results."""

    def __init__(self, results: list[dict]) -> None:
        self.results = {(result["paper"], result["name"]): result for result in results}

    def of(self, paper: str) -> list[dict]:
        return [self.results[paper, name] for name in papers.get(paper).experiments]

    def counted(self, paper: str) -> tuple[Counter, Counter, Counter]:
        """Verdicts on rows, on statements of the paper, and on ours."""
        rows, theirs, ours = Counter(), Counter(), Counter()
        for result in self.of(paper):
            rows.update(row["verdict"] for row in result["rows"])
            for claim in result["claims"]:
                (theirs if claim["by"] == "The paper" else ours)[claim["verdict"]] += 1
        return rows, theirs, ours

    def totals(self) -> str:
        lines, total = [], Counter()
        for name, paper in papers.available().items():
            rows, theirs, ours = self.counted(name)
            untestable = sum(not item.testable for item in paper.contents)
            counts = {
                **{f"s {verdict}": theirs[verdict] for verdict in VERDICTS},
                **{f"r {verdict}": rows[verdict] for verdict in VERDICTS},
                "ours": ours["holds"],
                "untestable": untestable,
                "misprints": len(paper.misprints),
            }
            total.update(counts)
            lines.append([paper.title, *counts.values()])
        lines.append(["**together**", *(f"**{value}**" for value in total.values())])
        head = [
            "",
            "statements reproduced",
            "fitted",
            "refuted or different",
            "rows reproduced",
            "fitted",
            "differ",
        ]
        return grid([*head, "statements of ours that hold", "not testable", "misprints and errors"], lines)

    def summary(self, paper: str) -> str:
        rows, theirs, ours = self.counted(paper)
        of = papers.get(paper)
        left_out = [item for item in of.contents if not item.testable]
        text = (
            f"Of {sum(theirs.values())} statements that the paper makes in words or formulas "
            f"{theirs['reproduced']} "
            f"are reproduced, {theirs['fitted']} only on data that were fitted, and {theirs['differs']} are "
            f"refuted, or come out differently. Of {sum(rows[verdict] for verdict in VERDICTS)} "
            "published rows "
            f"{rows['reproduced']} are "
            f"reproduced, {rows['fitted']} fitted, and {rows['differs']} differ. {ours['holds']} "
            "statements of "
            f"our own were checked as well. {len(left_out)} numbered items are not testable"
        )
        reasons = "".join(f"\n- {item.number}, {item.what}: {item.why_not}" for item in left_out)
        return text + (":\n" + reasons + "\n" if reasons else ".\n")

    def claims(self, paper: str) -> str:
        lines = [
            [
                f"{spoken(result['name'])}",
                ("" if claim["by"] == "The paper" else "*Ours:* ") + claim["statement"],
                claim["finding"],
                f"{SIGNS[claim['verdict']]} {claim['verdict']}",
            ]
            for result in self.of(paper)
            for claim in result["claims"]
        ]
        return grid(["", "statement", "here", "verdict"], lines)

    def rows(self, paper: str, name: str) -> str:
        rows = self.results[paper, name]["rows"]
        names = list(dict.fromkeys(key for row in rows for key in (*row["published"], *row["measured"])))
        both = [key for key in names if any(key in row["published"] for row in rows)]
        head = [*rows[0]["case"]]
        for key in names:
            head += [f"{key}, published", "here"] if key in both else [key]
        lines = []
        for row in rows:
            line = [*row["case"].values()]
            for key in names:
                line += [number(row["published"].get(key, "–"))] if key in both else []
                line += [number(row["measured"].get(key, "–"))]
            lines.append([*line, SIGNS[row["verdict"]]] if both else line)
        reasons = list(dict.fromkeys(row["why"] for row in rows if row["why"]))
        criterion = self.results[paper, name]["criterion"]
        told = f"\n✓ means: {criterion}.\n" if criterion else ""
        return (
            grid([*head, ""] if both else head, lines)
            + told
            + "".join(f"\n- {why}" for why in reasons)
            + ("\n" if reasons else "")
        )

    def misprints(self, paper: str) -> str:
        lines = [[one.where, one.printed, one.correct, one.why] for one in papers.get(paper).misprints]
        return grid(["where", "printed", "should be", "why we think so"], lines)

    def finding(self, paper: str, name: str, number: str) -> str:
        """What was found for one statement, as a sentence."""
        claim = self.results[paper, name]["claims"][int(number) - 1]
        by = "" if claim["by"] == "The paper" else "ours: "
        return f"> {claim['statement']} — {claim['finding']} ({by}{claim['verdict']})\n"

    def written(self, text: str) -> str:
        def block(found: re.Match) -> str:
            kind, *arguments = found[2].split()
            return found[1] + getattr(self, kind)(*arguments) + found[3]

        return BLOCK.sub(block, text)


def main(arguments: list[str]) -> None:
    given = json.loads(Path(arguments[0]).read_text(encoding="utf-8")) if arguments else computed()
    pages = Pages(given)
    for page in sorted(HERE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        new = pages.written(text)
        if new != text:
            page.write_text(new, encoding="utf-8")
            print("written", page.name)


if __name__ == "__main__":
    main(sys.argv[1:])
