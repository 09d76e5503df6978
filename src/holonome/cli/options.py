"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from holonome.cli import completion

MODEL = """A model of your own is a Python file that defines a system and a start, for example

    import numpy as np, holonome as hn
    rod = hn.System(np.eye(2), [0.0, -9.81], lambda q: q @ q - 1)
    q0, t_span = [1, 0], (0, 10)

with v0 if it does not start at rest. Instead of q0, v0 and t_span you can define
start = {"q0": ..., "v0": ..., "t_span": ...} or an hn.mechanisms.Example.

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
