"""``holonome new``: a first model to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holonome.cli.app import Command, app

_TEMPLATE = '''"""A pendulum of length l on a cart, which a spring holds.

Try it:  holonome run {name}
         holonome animate {name}
         holonome compare {name}
"""

import numpy as np

import holonome as hn


def force(q, v, p):                                     # on the cart (x) and on the bob (X, Y)
    return np.array([-p.k * q[0], 0.0, -p.m * p.g])


def rod(q, p):                                          # zero where it holds
    x, X, Y = q
    return (X - x) ** 2 + Y**2 - p.l**2


drawing = hn.Drawing(                                   # without one, it is inferred from the coordinates
    points=lambda q: {{"wall": (-1.5, 0.0), "cart": (q[0], 0.0), "bob": (q[1], q[2])}},
    links=[("cart", "bob")],
    springs=[("wall", "cart")],
    ground=["wall"],
    sliders=["cart"],
    traces=["bob"],
)

system = hn.System(
    mass=lambda p: np.array([p.M, p.m, p.m]),           # a vector is the diagonal of the mass matrix
    force=force,
    constraint=rod,
    potential=lambda q, p: p.k * q[0] ** 2 / 2 + p.m * p.g * q[2],  # only to report the energy
    parameters={{"M": 2.0, "m": 1.0, "k": 50.0, "l": 1.0, "g": 9.81}},
    names=["x", "X", "Y"],
    constraint_names=["rod"],
    name="{stem}",
    drawing=drawing,
)

q0 = [0.0, 1.0, 0.0]                                    # at rest, unless there is a v0 as well
t_span = (0.0, 10.0)
'''


@app.command(cls=Command)
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The Python file to write, e.g. my_model.py.")],
) -> None:
    """Write a small model of your own to begin with."""
    from holonome.cli.printing import create_folders, out, print_summary, told

    if file.suffix != ".py":
        raise ValueError(f"FILE: {str(file)!r} does not end in .py")
    if file.exists():
        raise ValueError(f"FILE: {str(file)!r} is there already")
    created = create_folders([file])
    file.write_text(_TEMPLATE.format(name=file.name, stem=file.stem), encoding="utf-8")
    print_summary(
        out(),
        "",
        [("written", told(file, created)), ("next", f"holonome run {file} --out {file.with_suffix('.png')}")],
    )
