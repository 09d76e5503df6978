"""``holonome mechanisms`` and ``holonome methods``: lists of what is available."""

from __future__ import annotations

from holonome.cli import options
from holonome.cli.app import Command, app

_WIDE = 76
"""Columns that the whole table needs."""


@app.command("mechanisms", cls=Command)
def list_mechanisms(as_json: options.Json = False) -> None:
    """List the built-in mechanisms."""
    from rich.text import Text

    from holonome import mechanisms
    from holonome.cli.printing import out, plain_table, print_json, short

    made = {name: make() for name, make in mechanisms.available().items()}
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "title": mechanism.title,
                    "source": mechanism.source,
                    "coordinates": mechanism.system.n,
                    "constraints": mechanism.system.m,
                    "t_span": list(mechanism.t_span),
                    "parameters": list(mechanism.system.parameters),
                }
                for name, mechanism in made.items()
            ]
        )
        return
    wide = out().width >= _WIDE
    columns = [
        ("n", {"justify": "right"}),
        ("m", {"justify": "right"}),
        ("time", {"no_wrap": True}),
        ("solution", {"no_wrap": True}),
    ]
    table = plain_table(
        ("name", {"no_wrap": True, "style": "bold"}),
        ("what it is, source", {"ratio": 1}),
        *(columns if wide else columns[:2]),
    )
    for name, mechanism in made.items():
        known = f"{mechanism.reference.digits} digits" if mechanism.reference else "–"
        if mechanism.exact:
            known = "exact"
        about = Text(short(mechanism.title)) + Text(f"\n{mechanism.source}", style="dim")
        sizes = str(mechanism.system.n), str(mechanism.system.m)
        rest = "{:g} … {:g}".format(*mechanism.t_span), known
        table.add_row(name, about, *sizes, *(rest if wide else ()))
    out().print(table)
    out().print("\nn coordinates, m constraints.  Run one: [bold]holonome run pendulum --out pendulum.png[/]")


@app.command("methods", cls=Command)
def list_methods(as_json: options.Json = False) -> None:
    """List the methods and where they come from."""
    from rich.text import Text

    from holonome.cli.printing import out, plain_table, print_json
    from holonome.solving.methods import methods

    if as_json:
        print_json(
            [
                {"name": name, "summary": entry.summary, "reference": entry.reference}
                for name, entry in methods().items()
            ]
        )
        return
    table = plain_table(
        ("name", {"no_wrap": True, "style": "bold"}), ("what it is, references", {"ratio": 1})
    )
    table.add_row("auto", "starts explicit, by the tolerance, and moves to bdf where stiffness is met")
    for name, entry in methods().items():
        table.add_row(name, Text(entry.summary) + Text(f"\n{entry.reference}", style="dim"))
    table.add_row(
        "local-iteration",
        Text("pieces with solvers of their own, joined by constraints: hn.solve_coupled in Python")
        + Text("\nWang, Hou & Modnak, 2011", style="dim"),
    )
    out().print(table)
