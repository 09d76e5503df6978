"""``holonome equilibrium``, ``modes`` and ``response``: where a model stays, how it oscillates there, and how
it answers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holonome.cli import options
from holonome.cli.app import Command, app

if TYPE_CHECKING:
    from holonome.analysis.equilibrium import Equilibrium
    from holonome.mechanisms.example import Example

PICTURES = (".png", ".svg", ".pdf")
FILMS = (".html", ".gif", ".mp4")

Speed = Annotated[
    list[str] | None,
    typer.Option(
        "--speed",
        metavar="NAME=VALUE",
        help="What moves steadily: a coordinate or a joint, e.g. --speed spindle=10; may be repeated.",
    ),
]
Free = Annotated[
    list[str] | None,
    typer.Option("--free", metavar="NAME", help="A parameter or input to be found as well; may be repeated."),
]
Fixed = Annotated[
    list[str] | None,
    typer.Option("--fixed", metavar="NAME", help="A coordinate or joint that stays where it starts."),
]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture (.png, .svg, .pdf).")]


@app.command(cls=Command, epilog=options.MODEL)
def equilibrium(
    model: options.Subject,
    start: options.Start = None,
    speed: Speed = None,
    free: Free = None,
    fixed: Fixed = None,
    follow: Annotated[
        str | None,
        typer.Option(metavar="NAME=FROM,TO", help="Follow it while a parameter changes, e.g. load=0,5."),
    ] = None,
    changes: options.Changes = None,
    arguments: options.Arguments = None,
    name: options.Name = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Picture of the eigenvalues, or with --follow of the branches."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Find where a model stays, at rest or in steady motion, and whether it does so stably."""
    from holonome.cli import printing

    _require_ending(out, PICTURES)
    subject, found = _found(model, start, speed, free, fixed, changes, arguments, name)
    branch = None if follow is None else found.follow(*_range(follow))
    created = printing.create_folders([out] if out else [])
    if out is not None:
        _draw(out, branch.plot if branch is not None else found.linearize().modes().plot)
    if as_json:
        printing.print_json(_as_dict(found, branch))
        return
    console = printing.out()
    console.print(printing.short(subject.title), style="bold")
    print(found if branch is None else branch)
    _told(out, created)


@app.command(cls=Command, epilog=options.MODEL)
def modes(
    model: options.Subject,
    start: options.Start = None,
    speed: Speed = None,
    count: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many modes.")] = None,
    near: Annotated[float, typer.Option(metavar="HZ", help="Those nearest to this frequency.")] = 0.0,
    number: Annotated[
        int, typer.Option("--mode", metavar="K", min=1, help="Which mode --out shows in motion.")
    ] = 1,
    changes: options.Changes = None,
    arguments: options.Arguments = None,
    name: options.Name = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The mode in motion (.html, .gif, .mp4), or a picture of the eigenvalues."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Frequencies, damping and shapes of the oscillations about the equilibrium near the start."""
    from holonome.cli import printing

    _require_ending(out, PICTURES + FILMS)
    subject, found = _found(model, start, speed, None, None, changes, arguments, name)
    all_modes = found.linearize().modes(count, near=near)
    created = printing.create_folders([out] if out else [])
    if out is not None and out.suffix in FILMS:
        if number > len(all_modes):
            raise ValueError(f"--mode: {number}; there are {len(all_modes)}")
        all_modes[number - 1].animate(out)
    elif out is not None:
        _draw(out, all_modes.plot)
    if as_json:
        printing.print_json(
            {
                "neutral": all_modes.neutral,
                "modes": [
                    {
                        "eigenvalue": [mode.eigenvalue.real, mode.eigenvalue.imag],
                        "frequency": mode.frequency,
                        "damping": mode.damping,
                        "shares": mode.shares,
                    }
                    for mode in all_modes
                ],
            }
        )
        return
    printing.out().print(printing.short(subject.title), style="bold")
    print(all_modes)
    _told(out, created)


@app.command(cls=Command, epilog=options.MODEL)
def response(
    model: options.Subject,
    given: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="NAME", help="An input or parameter; by default all inputs."),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option("--output", metavar="NAME", help="What answers, e.g. A.angle or coupler.P."),
    ] = None,
    low: Annotated[float | None, typer.Option("--from", metavar="HZ", help="Lowest frequency.")] = None,
    high: Annotated[float | None, typer.Option("--to", metavar="HZ", help="Highest frequency.")] = None,
    start: options.Start = None,
    speed: Speed = None,
    changes: options.Changes = None,
    arguments: options.Arguments = None,
    name: options.Name = None,
    out: Out = None,
    as_json: options.Json = False,
) -> None:
    """How a model answers harmonic inputs about the equilibrium near the start: a Bode plot."""
    from holonome.cli import printing

    _require_ending(out, PICTURES)
    if (low is None) != (high is None) or (low is not None and high is not None and not 0 < low < high):
        raise ValueError("--from: give --from and --to, two positive frequencies in increasing order")
    subject, found = _found(model, start, speed, None, None, changes, arguments, name)
    lin = found.linearize(inputs=given, outputs=output)
    answer = lin.response(between=None if low is None or high is None else (low, high))
    created = printing.create_folders([out] if out else [])
    if out is not None:
        _draw(out, answer.plot)
    if as_json:
        told = {
            f"{o} by {i}": {"real": answer.of(o, i).real.tolist(), "imag": answer.of(o, i).imag.tolist()}
            for o in answer.outputs
            for i in answer.inputs
        }
        printing.print_json({"frequencies": answer.frequencies.tolist()} | told)
        return
    printing.out().print(printing.short(subject.title), style="bold")
    print(answer)
    _told(out, created)


def _found(
    model: str,
    start: list[str] | None,
    speed: list[str] | None,
    free: list[str] | None,
    fixed: list[str] | None,
    changes: list[str] | None,
    arguments: list[str] | None,
    name: str | None,
) -> tuple[Example, Equilibrium]:
    """The subject, and the equilibrium near its start, or near the last point of a saved result."""
    from holonome.analysis.equilibrium import equilibrium as find_equilibrium
    from holonome.cli.subject import _assignments, find

    saved = Path(model).suffix == ".npz"
    subject = find(model, arguments, changes, name, None if saved else 0.0, start)
    example = subject.mechanism
    guess: Any = subject.saved
    if guess is None:
        guess = example.q0
        s0 = subject.further.get("s0")
        if s0 is not None and example.system.n:
            guess = (example.q0, example.v0, s0)
    speeds = _assignments("--speed", speed) or None
    found = find_equilibrium(example.system, guess, speed=speeds, free=free or (), fixed=fixed or ())
    return example, found


def _range(text: str) -> tuple[str, tuple[float, float]]:
    name, equals, values = text.partition("=")
    try:
        begin, end = (float(part) for part in values.strip("()[] ").split(","))
    except ValueError:
        equals = ""
    if not equals or not name.strip():
        raise ValueError(f"--follow: {text!r} is not of the form NAME=FROM,TO with two numbers")
    return name.strip(), (begin, end)


def _require_ending(out: Path | None, endings: tuple[str, ...]) -> None:
    if out is not None and out.suffix not in endings:
        raise ValueError(f"--out: {str(out)!r} ends in {out.suffix!r}; use {', '.join(endings)}")


def _draw(out: Path, plot: Any) -> None:
    from holonome.plot import house_style

    with house_style():
        plot(file=out)


def _told(out: Path | None, created: set[Path]) -> None:
    from holonome.cli import printing

    if out is not None:
        print(f"  written: {printing.told(out, created)}")


def _as_dict(found: Equilibrium, branch: Any) -> dict[str, Any]:
    system = found.system
    told = {
        "stable": found.stable,
        "verdict": found.verdict,
        "q": dict(zip(system.names, found.q.tolist(), strict=True)),
        "v": dict(zip(system.names, found.v.tolist(), strict=True)),
        "states": dict(zip(system.states, found.s.tolist(), strict=True)),
        "free": {
            name: value if isinstance(value, float) else value.tolist() for name, value in found.free.items()
        },
        "eigenvalues": [[x.real, x.imag] for x in found.eigenvalues],
        "residual": found.residual,
    }
    if branch is not None:
        told["branches"] = [
            {
                "values": part.values.tolist(),
                "q": part.q.tolist(),
                "stable": part.stable.tolist(),
                "folds": [point.value for point in part.folds],
                "branch_points": [point.value for point in part.branch_points],
            }
            for part in branch.everything
        ]
    return told
