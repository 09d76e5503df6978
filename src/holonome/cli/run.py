"""``holonome run``: simulate a mechanism or your own model, or show a saved result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holonome.cli import options
from holonome.cli.app import Command, app

if TYPE_CHECKING:
    from holonome.cli.simulation import Done
    from holonome.mechanisms.example import Example

_OUT = (
    "Write a picture (.png, .svg, .pdf), data (.csv, .npz, .nc) or an animation (.html, .gif, .mp4); a "
    "folder gets a picture and a table; may be repeated."
)


@app.command(cls=Command, epilog=options.MODEL)
def run(
    model: options.Subject,
    method: options.Method = "auto",
    rtol: options.Rtol = 1e-6,
    atol: options.Atol = None,
    until: options.Until = None,
    start: options.Start = None,
    speed: options.Speed = None,
    motion: Annotated[
        str, typer.Option(help="all: every oscillation is resolved; smooth: only the slow motion.")
    ] = "all",
    step: Annotated[float | None, typer.Option(metavar="H", help="Constant step size.")] = None,
    first_step: Annotated[float | None, typer.Option(metavar="H", help="Initial step size.")] = None,
    max_step: Annotated[float | None, typer.Option(metavar="H", help="Largest step size.")] = None,
    max_steps: Annotated[int | None, typer.Option(metavar="N", help="Give up after so many steps.")] = None,
    max_order: Annotated[
        int | None, typer.Option(metavar="K", min=1, max=5, help="Highest order, of methods with BDF.")
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="Keep N equally spaced points instead of all steps."),
    ] = None,
    changes: options.Changes = None,
    arguments: options.Arguments = None,
    name: options.Name = None,
    out: Annotated[list[Path] | None, typer.Option(metavar="PATH", help=_OUT)] = None,
    no_projection: Annotated[
        bool, typer.Option("--no-projection", help="Let the constraints drift, to see what that does.")
    ] = False,
    repair: options.Repair = False,
    dark: options.Dark = False,
    as_json: options.Json = False,
) -> None:
    """Simulate a mechanism or a model of yours, print what happened and write files.

    Of a saved result (.npz), print what happened and write files.
    """
    from holonome.cli import printing
    from holonome.cli.simulation import (
        DATA,
        PICTURES,
        Done,
        as_dict,
        rows,
        simulate,
        stop_if_failed,
        targets,
        with_order,
    )
    from holonome.cli.subject import find

    subject = find(model, arguments, changes, name, until, start, speed)
    mechanism = subject.mechanism
    files = targets(out or [], mechanism.name, (*PICTURES, *DATA, ".html", ".gif", ".mp4"))
    created = printing.create_folders(files)
    if subject.saved is not None:
        done = Done(mechanism, subject.saved)
    else:
        further: dict[str, Any] = {"first_step": first_step} | {
            key: value
            for key, value in (("max_step", max_step), ("max_steps", max_steps))
            if value is not None
        }
        if points is not None:
            further |= {"t_eval": _equally_spaced(mechanism, points)}
        printing.compile_engine()
        done = simulate(
            subject,
            method=with_order(method, max_order),
            rtol=rtol,
            atol=atol,
            step=step,
            motion=motion,
            repair=repair,
            projection=False if no_projection else None,
            **further,
        )
    for file in files:
        _write(file, done, dark)
    if as_json:
        printing.print_json(as_dict(done, files))
    else:
        printing.print_summary(
            printing.out(),
            printing.short(mechanism.title),
            [*rows(done), *(("written", printing.told(file, created)) for file in files)],
        )
    stop_if_failed(done.solution)


def _equally_spaced(mechanism: Example, points: int) -> Any:
    import numpy as np

    from holonome.solving.arguments import time_span

    return np.linspace(*time_span(mechanism.t_span), points)


def _write(file: Path, done: Done, dark: bool) -> None:
    from holonome.cli.simulation import DATA, PICTURES

    if file.suffix in PICTURES:
        done.solution.plot(file=file, drawing=done.mechanism.drawing, dark=dark or None)
    elif file.suffix in DATA:
        done.solution.save(file)
    else:
        from holonome.cli.animate import write_animation

        write_animation(file, [done])
