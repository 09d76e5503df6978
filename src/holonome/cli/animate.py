"""``holonome animate``: animations of mechanisms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from holonome.cli import options
from holonome.cli.app import Command, app

if TYPE_CHECKING:
    from holonome.cli.simulation import Done

ENDINGS = (".html", ".gif", ".mp4")


@app.command(cls=Command, epilog=options.MODEL)
def animate(
    model: options.Subject,
    method: options.Method = "auto",
    rtol: options.Rtol = 1e-6,
    atol: options.Atol = None,
    until: options.Until = None,
    start: options.Start = None,
    speed: options.Speed = None,
    changes: options.Changes = None,
    arguments: options.Arguments = None,
    name: options.Name = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A page (.html) or a film (.gif, .mp4). Without it, MODEL.html."),
    ] = None,
    beside: Annotated[
        bool, typer.Option("--without-projection", help="Show beside it what happens without projection.")
    ] = False,
    repair: options.Repair = False,
) -> None:
    """Show a mechanism, a model of yours or a saved result in motion, in one page that needs no network."""
    from holonome.cli import printing
    from holonome.cli.simulation import Done, rows, simulate, stop_if_failed
    from holonome.cli.subject import find

    subject = find(model, arguments, changes, name, until, start, speed)
    file = out or Path()
    if file.is_dir():
        file /= f"{subject.mechanism.name}.html"
    if file.suffix not in ENDINGS:
        raise ValueError(f"--out: {str(file)!r} ends in {file.suffix!r}; use {', '.join(ENDINGS)}")
    if beside and subject.saved is not None:
        raise ValueError(f"--without-projection: {model!r} is a saved result; run its model again")
    created = printing.create_folders([file])
    if subject.saved is not None:
        runs = [Done(subject.mechanism, subject.saved)]
    else:
        printing.compile_engine()
        chosen = {"method": method, "rtol": rtol, "atol": atol, "repair": repair}
        runs = [
            simulate(subject, **chosen, **further)
            for further in ([{}, {"projection": False}] if beside else [{}])
        ]
    with printing.alive(f"writing {file}"):
        write_animation(file, runs)
    printing.print_summary(
        printing.out(),
        printing.short(subject.mechanism.title),
        [*rows(runs[0]), ("written", printing.told(file, created)), ("open", file.resolve().as_uri())],
    )
    stop_if_failed(runs[0].solution)


def write_animation(file: Path, runs: list[Done], title: str | None = None) -> None:
    """Animate the runs, side by side if there are several."""
    from holonome.animation import animate

    titles = None if len(runs) == 1 else ["with projection", "without projection"]
    animate([done.solution for done in runs], file, titles=titles, title=title)
