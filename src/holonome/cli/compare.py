"""``holonome compare``: what several methods cost, and how accurate they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holonome.cli import completion, options
from holonome.cli.app import FAILED, Command, app, fail

_METHOD = (
    "Name of a method, see: holonome methods; may be repeated. Without it: dopri5, dop853, bdf, ggl, cm."
)
_OUT = "Write the table (.csv) or the picture (.png, .svg, .pdf); a folder gets both; may be repeated."


@app.command(cls=Command, epilog=options.MODEL)
def compare(
    model: options.Subject,
    method: Annotated[list[str] | None, typer.Option(help=_METHOD, autocompletion=completion.methods)] = None,
    rtol: Annotated[
        list[float] | None,
        typer.Option(help="Relative tolerance; may be repeated. Without it: 1e-3, 1e-5, 1e-7, 1e-9."),
    ] = None,
    atol: Annotated[
        float | None, typer.Option(help="Absolute tolerance; without it, a thousandth of rtol.")
    ] = None,
    until: options.Until = None,
    start: options.Start = None,
    speed: options.Speed = None,
    max_steps: Annotated[
        int, typer.Option(metavar="N", help="A run that needs more steps counts as failed.")
    ] = 1_000_000,
    changes: options.Changes = None,
    arguments: options.Arguments = None,
    name: options.Name = None,
    cost: Annotated[
        str, typer.Option(help="What the picture shows: seconds, evaluations or steps.")
    ] = "seconds",
    out: Annotated[list[Path] | None, typer.Option(metavar="PATH", help=_OUT)] = None,
    repair: options.Repair = False,
    dark: options.Dark = False,
    as_json: options.Json = False,
) -> None:
    """Solve one problem by several methods at several tolerances: error, cost, drift.

    Errors are measured against the exact solution where it is known, else against a run at rtol 1e-13.
    """
    from holonome import plot
    from holonome.cli import printing
    from holonome.cli.simulation import PICTURES, targets
    from holonome.cli.subject import find
    from holonome.comparison import METHODS, RTOLS
    from holonome.comparison import compare as measure

    if cost not in ("seconds", "evaluations", "steps"):
        raise ValueError(f"--cost: {cost!r} is not known; choose seconds, evaluations or steps")
    subject = find(model, arguments, changes, name, until, start, speed)
    if subject.saved is not None:
        raise ValueError(f"{model!r} is a saved result; compare needs its model")
    mechanism = subject.mechanism
    files = targets(out or [], f"{mechanism.name}-comparison", (*PICTURES, ".csv"))
    created = printing.create_folders(files)
    printing.compile_engine()
    with printing.stopping(), printing.working("comparing") as progress:
        found = measure(
            mechanism.system,
            mechanism.t_span,
            mechanism.q0,
            mechanism.v0,
            methods=method or METHODS,
            rtols=rtol or RTOLS,
            atol=atol,
            reference=mechanism.exact,
            max_steps=max_steps,
            progress=progress,
            repair=repair,
            **subject.further,
        )
    for file in files:
        if file.suffix == ".csv":
            found.save(file)
        else:
            with plot.house_style(dark or None):
                found.plot(file=file, cost=cost)
    if as_json:
        printing.print_json(found.to_dict() | {"files": [str(file) for file in files]})
    else:
        printing.out().print(found)
        if files:
            printing.print_summary(
                printing.out(), "", [("written", printing.told(file, created)) for file in files]
            )
    if not any(row.success for row in found.rows):
        fail("none of the methods came to the end", FAILED)
