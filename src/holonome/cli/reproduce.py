"""``holonome reproduce``: tables and figures of the papers, recomputed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holonome.cli import completion, options
from holonome.cli.app import FAILED, Command, app, fail

if TYPE_CHECKING:
    from rich.console import Console

    from holonome.papers import Experiment


@app.command(cls=Command)
def reproduce(
    ctx: typer.Context,
    paper: Annotated[
        str | None,
        typer.Argument(
            help="Name of a paper, or all; without it the papers are listed.",
            autocompletion=completion.papers,
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Tables and figures, e.g. table-5.2 figure-5.3; all of them without it.",
            autocompletion=completion.experiments,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write a report (index.html), numbers (.csv) and pictures (.png) there."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Recompute tables and figures of the papers, beside what was published.

    Whether they agree does not change the exit code; it is 1 only if something could not be computed.
    """
    from holonome.cli import printing
    from holonome.papers import report

    console = printing.out()
    if paper is None:
        _list_papers(console)
        return
    chosen = _experiments(paper, names or [])
    printing.require_folder("--out", out)
    printing.compile_engine()
    created = set() if out is None else printing.create_folders([out / "any"])
    results, failed, reported = [], [], []
    since = time.perf_counter()
    for number, (of, name, compute) in enumerate(chosen):
        begin = time.perf_counter()
        try:
            with (
                printing.stopping(),
                printing.working(f"{of} {name}", part=(number, len(chosen), since)) as progress,
            ):
                result = compute(progress=progress)
            files = [] if out is None else result.save(out)
        except Exception as error:
            if ctx.find_root().params.get("traceback"):
                raise
            message = f"{type(error).__name__}: {error}"
            failed.append(f"{f'{of} {name}' if paper == 'all' else name} ({message})")
            reported.append(report.Failure(of, name, message, time.perf_counter() - begin))
            continue
        reported.append(result)
        results.append({**result.to_dict(), "files": [str(file) for file in files]})
        if not as_json:
            written = [("written", printing.told(file, created)) for file in files]
            console.print(result)
            printing.print_summary(console, "", [("time", printing.duration(result.seconds)), *written])
            console.print()
    if as_json:
        printing.print_json(results)
    elif len(results) > 1:
        total: Counter[str] = Counter()
        for result in results:
            total.update(result["verdicts"])
        counts = [(verdict, str(times)) for verdict, times in total.items()]
        printing.print_summary(console, "Rows and statements together", counts)
    if out is not None:
        with printing.working("writing the report"):
            page = report.write(reported, out)
        if not as_json:
            printing.print_summary(
                console, "", [("report", printing.told(page, created)), ("open", page.resolve().as_uri())]
            )
    if failed:
        fail(f"could not be computed: {'; '.join(failed)}", FAILED)


def _list_papers(console: Console) -> None:
    from rich.text import Text

    from holonome import papers
    from holonome.cli.printing import print_summary

    for name, paper in papers.available().items():
        console.print(Text(name, style="bold") + Text(f"  {paper.title}"))
        console.print(Text(paper.reference, style="dim"))
        print_summary(console, "", list(paper.titles.items()))
        console.print()
    console.print("Compute one: [bold]holonome reproduce yen-petzold table-5.2 --out report[/]")


def _experiments(name: str, names: list[str]) -> list[tuple[str, str, Callable[..., Experiment]]]:
    """The requested functions, each with its paper and its name."""
    from holonome import papers

    if name == "all":
        if names:
            raise ValueError(f"{names[0]!r} of all papers; name the paper")
        return [
            (paper.name, title, compute)
            for paper in papers.available().values()
            for title, compute in paper.experiments.items()
        ]
    known = papers.get(name).experiments
    for wanted in names:
        if wanted not in known:
            raise ValueError(
                f"{wanted!r} is not a table or figure of {name}; {papers.nearest(wanted, known)}"
            )
    return [(name, wanted, known[wanted]) for wanted in names or known]
