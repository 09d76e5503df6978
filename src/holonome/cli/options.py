"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from holonome.cli import completion

MODEL = """A model of your own is a Python file that defines a mechanism and a start, for example

    import holonome as hn
    m = hn.Mechanism("pendulum")
    rod = m.body("rod", mass=1, inertia=1/12, points={"A": (-0.5, 0)})
    m.revolute("A", m.ground.at(0, 0), rod["A"])
    start, t_span = {"A": -0.1}, (0, 10)

with speed = {"A": ...} if it does not start at rest. Or it defines an
hn.System with q0, v0 and t_span, or with
start = {"q0": ..., "v0": ..., "t_span": ...}, or an hn.mechanisms.Example.

Begin with: holonome new my_model.py"""

Subject = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A mechanism's name (see: holonome mechanisms), a Python file of yours, or a saved result "
        "(.npz).",
        autocompletion=completion.subjects,
    ),
]
Method = Annotated[
    str, typer.Option(help="Name of a method, see: holonome methods", autocompletion=completion.methods)
]
Rtol = Annotated[float, typer.Option(help="Relative tolerance.")]
Atol = Annotated[
    float | None, typer.Option(help="Absolute tolerance; by default it follows the size of the mechanism.")
]
Until = Annotated[float | None, typer.Option(metavar="T", help="Final time.")]
Start = Annotated[
    list[str] | None,
    typer.Option(
        "--start",
        metavar="NAME=VALUE",
        help="Of an hn.Mechanism: a joint or body at the start, e.g. --start A=0.3 or 'D=near(1.7)'; may be "
        "repeated.",
    ),
]
Speed = Annotated[
    list[str] | None,
    typer.Option(
        "--speed",
        metavar="NAME=VALUE",
        help="Of an hn.Mechanism: the rate of a joint at the start, e.g. --speed A=2; may be repeated.",
    ),
]
Changes = Annotated[
    list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter; may be repeated.")
]
Arguments = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="NAME=VALUE",
        help="Build the mechanism with this argument, e.g. --with links=20; may be repeated.",
    ),
]
Name = Annotated[str | None, typer.Option(metavar="NAME", help="Which system, if the file defines several.")]
Repair = Annotated[
    bool, typer.Option("--repair", help="Start from the nearest consistent values if the given ones are not.")
]
Dark = Annotated[bool, typer.Option("--dark", help="Pictures on dark paper.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
