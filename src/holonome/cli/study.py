"""``holonome study``: many runs of a mechanism or of your own model, over values of its parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from holonome.cli import options
from holonome.cli.app import Command, app

_OVER = (
    "What varies: a parameter, t_end, or start.JOINT, with values 1,2,5 or FROM:TO:NUMBER; several make a "
    "grid; may be repeated."
)
_RANDOM = "A parameter that is uniform between two values, for --samples members; may be repeated."
_OUT = "Write data (.nc, .csv) or a picture (.png, .svg, .pdf) of positions over time; may be repeated."
_DATA, _PICTURES = (".nc", ".csv"), (".png", ".svg", ".pdf")


@app.command(cls=Command, epilog=options.MODEL)
def study(
    model: options.Subject,
    over: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUES", help=_OVER)] = None,
    random: Annotated[list[str] | None, typer.Option(metavar="NAME=LOW:HIGH", help=_RANDOM)] = None,
    samples: Annotated[int, typer.Option(metavar="N", min=1, help="Members of --random.")] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Another one draws other members.")] = 0,
    method: options.Method = "auto",
    rtol: options.Rtol = 1e-6,
    until: options.Until = None,
    points: Annotated[
        int | None, typer.Option(metavar="N", min=2, help="Keep N equally spaced times, not the end alone.")
    ] = None,
    changes: options.Changes = None,
    arguments: options.Arguments = None,
    name: options.Name = None,
    store: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Keep results as zarr, and go on from there.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    out: Annotated[list[Path] | None, typer.Option(metavar="FILE", help=_OUT)] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say what would be done, and stop.")] = False,
) -> None:
    """Simulate many members that differ in parameters, times or starts, on all cores."""
    import numpy as np

    from holonome.cli import printing
    from holonome.cli.simulation import targets
    from holonome.cli.subject import find
    from holonome.ensembles.ensemble import ensemble

    subject = find(model, arguments, changes, name, until)
    if subject.saved is not None:
        raise ValueError(f"MODEL: {model!r} is a saved result; give a model")
    made = subject.mechanism
    files = targets(out or [], made.name, (*_DATA, *_PICTURES))
    varied = _over(over or [], random or [], samples, seed)
    if not varied:
        raise ValueError("--over: nothing varies; give --over NAME=VALUES or --random NAME=LOW:HIGH")
    pictured = any(file.suffix in _PICTURES for file in files)
    count = points or (200 if pictured else None)
    e = ensemble(
        made,
        made.t_span,
        over=varied,
        t_eval=None if count is None else np.linspace(*made.t_span, count),
        method=method,
        rtol=rtol,
        store=store,
        device=device,
        **subject.further,
    )
    typer.echo(e.explain())
    if explain:
        return
    created = printing.create_folders(files)
    dataset = e.run(progress=True)
    failed = int((~dataset.success).sum())
    typer.echo(f"{e.members - failed} of {e.members} members reached their end")
    for message, number in _causes(dataset).items():
        typer.echo(f"  {number}: {message}")
    for file in files:
        _write(dataset, file)
        typer.echo(f"wrote {printing.told(file, created)}")


def _over(over: list[str], random: list[str], samples: int, seed: int) -> dict[str, Any]:
    """What varies, from NAME=VALUES."""
    import numpy as np

    from holonome.ensembles.samplers import random as sampled

    varied: dict[str, Any] = {}
    for text in over:
        name, values = _assignment("--over", text)
        parts = values.split(":")
        try:
            if len(parts) == 3:
                varied[name] = np.linspace(float(parts[0]), float(parts[1]), int(parts[2]))
            else:
                varied[name] = [float(value) for value in values.split(",")]
        except ValueError:
            raise ValueError(f"--over: {text!r}; give NAME=1,2,5 or NAME=FROM:TO:NUMBER") from None
    bounds = {}
    for text in random:
        name, values = _assignment("--random", text)
        try:
            low, high = map(float, values.split(":"))
        except ValueError:
            raise ValueError(f"--random: {text!r}; give NAME=LOW:HIGH") from None
        bounds[name] = (low, high)
    return varied | (sampled(samples, bounds, seed) if bounds else {})


def _assignment(option: str, text: str) -> tuple[str, str]:
    name, equals, values = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{option}: {text!r} is not of the form NAME=VALUES")
    return name.strip(), values.strip()


def _causes(dataset: Any) -> dict[str, int]:
    """Messages of failures, the most frequent first."""
    from collections import Counter

    messages = Counter(str(message) for message in dataset.message.to_numpy().ravel())
    return {message: number for message, number in messages.most_common(6) if message}


def _write(dataset: Any, file: Path) -> None:
    """Data or a picture."""
    if file.suffix == ".nc":
        dataset.to_netcdf(file, engine="scipy")
    elif file.suffix == ".csv":
        dataset.to_dataframe().to_csv(file)
    else:
        from holonome.plot.ensembles import plot_bands
        from holonome.plot.style import house_style, new_figure

        part = "q" if "q" in dataset else "x"
        names = [str(label) for label in dataset["coordinate" if part == "q" else "state"].to_numpy()][:6]
        with house_style():
            figure = new_figure(6.4, 2.6 * len(names), shown=False)
            for axes, label in zip(figure.subplots(len(names), squeeze=False).ravel(), names, strict=True):
                plot_bands(dataset, part, axes, coordinate=label)
            figure.savefig(file)
