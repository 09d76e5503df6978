"""``holonome new``: a first model to start from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holonome.cli.app import Command, app

_TEMPLATE = '''"""A crank and rocker with a motor and a spring, from bodies and joints.

Try it:  holonome run {name}
         holonome animate {name} --speed A=-3
         holonome compare {name}
"""

import holonome as hn

m = hn.Mechanism("{stem}", gravity=(0, -9.81), parameters={{"T0": 1.0, "k": 0.1, "stiffness": 10.0}})

# A body has axes of its own, in which points and its centre of mass are given; inertia is about the latter.
crank = m.body("crank", mass=0.4, inertia=0.006, center=(0.2, 0), points={{"A": (0, 0), "B": (0.4, 0)}})
coupler = m.body(
    "coupler",
    mass=0.9,
    inertia=0.06,
    center=(0.45, 0),
    points={{"B": (0, 0), "C": (0.9, 0), "P": (0.45, 0.3)}},
)
rocker = m.body("rocker", mass=0.7, inertia=0.03, center=(0.35, 0), points={{"C": (0.7, 0), "D": (0, 0)}})

m.revolute("A", m.ground.at(0, 0), crank["A"])          # the angle of crank against the ground
m.revolute("B", crank["B"], coupler["B"])
m.revolute("C", coupler["C"], rocker["C"])
m.revolute("D", m.ground.at(1, 0), rocker["D"])         # closes the loop; a joint like all others

m.torque("motor", joint="A", law=lambda rate, p: p.T0 - p.k * rate)  # of any of t, angle, rate, p
m.spring("spring", rocker["C"], m.ground.at(1.5, 0.5), stiffness=m.p.stiffness, length=0.3)
m.trace(coupler["P"])                                   # draw its path

start = {{"A": 0.3, "D": hn.near(1.8)}}                   # the rest follows; near chooses one of two ways
speed = {{"A": 6.0}}
t_span = (0.0, 5.0)

if __name__ == "__main__":                               # python {name}
    print(m)
    sol = hn.solve(m, t_span, start=start, speed=speed)
    print(sol)
    print("angle of the crank", sol.joint("A").angle[-1], "force in C", sol.reaction("C").force[:, -1])
    sol.animate("{stem}.html")
'''


@app.command(cls=Command)
def new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The Python file to write, e.g. my_model.py.")],
) -> None:
    """Write a small mechanism of your own to begin with."""
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
