"""Pages and pictures made when the docs are built: the mechanisms, and the animation in the tutorial."""

import re
import shutil
import sys
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from textwrap import dedent

import formulas
from matplotlib import pyplot

import holonome as hn
from holonome import plot


def mechanisms_page(folder: Path) -> None:
    """One section for each mechanism, with its picture and the statement of its module."""
    lines = [
        "# Mechanisms",
        "",
        "The mechanisms of `hn.mechanisms`, each one file with its equations and data. "
        "`hn.mechanisms.four_bar()` makes one; its arguments change what the picture shows.",
        "The statements below are those of the files.",
        "",
    ]
    for name, make in hn.mechanisms.available().items():
        mechanism = make()
        lines += [
            f"## {name}",
            "",
            f"{mechanism.title}. {mechanism.system.sizes_in_words}; t = {mechanism.t_span[0]:g} … "
            f"{mechanism.t_span[1]:g}.",
            "",
        ]
        if mechanism.drawing is not None:
            sol = hn.solve(mechanism.system, mechanism.t_span, mechanism.q0, mechanism.v0)
            axes = plot.plot_motion(sol, mechanism.drawing)
            axes.figure.savefig(folder / f"{name}.png", dpi=80)
            pyplot.close("all")
            lines += [f"![{mechanism.title}]({name}.png)", ""]
        lines += _statement(sys.modules[make.__module__].__doc__ or "")
    (folder / "mechanisms.md").write_text("\n".join(lines), encoding="utf-8")


def _statement(text: str) -> list[str]:
    """The statement of a mechanism: prose as prose, of what is indented drawings as they stand, equations as
    formulas.
    """
    lines: list[str] = []
    for block in re.findall(r"(?:^ {4}.*\n|^\n)+|(?:^(?! {4}).+\n)+", text.strip("\n") + "\n", re.MULTILINE):
        if block.startswith(" ") or (block.strip() and block.lstrip("\n").startswith(" ")):
            for drawing, equations in formulas.split(dedent(block).strip("\n").splitlines()):
                if not formulas.is_drawn(drawing):
                    lines += ["", *drawing, ""]
                else:
                    shown = dedent("\n".join(drawing)).strip("\n")
                    lines += ["", "```{code-block} text", ":class: drawing", "", shown, "```", ""]
                if equations:
                    lines += ["", "```{math}", formulas.display(equations), "```", ""]
        elif block.strip():
            prose = re.sub(r"^(.+)\n-{4,}$", r"**\1**\n", block, flags=re.MULTILINE)
            lines += ["", re.sub(r"([_<|])", r"\\\1", prose.strip()).replace("::", ":"), ""]
    return lines


def run_tutorial(docs: Path, folder: Path) -> None:
    """What the code of the tutorial writes, its animation above all."""
    namespace: dict = {}
    with chdir(folder), redirect_stdout(StringIO()):
        for block in re.findall(
            r"^```python\n(.*?)^```",
            (docs / "tutorial.md").read_text(encoding="utf-8"),
            re.MULTILINE | re.DOTALL,
        ):
            exec(block, namespace)
    pyplot.close("all")


def make(app) -> None:
    docs = Path(app.srcdir)
    generated = docs / "_generated"
    shutil.rmtree(generated, ignore_errors=True)
    (generated / "extra" / "tutorial").mkdir(parents=True)
    mechanisms_page(generated)
    run_tutorial(docs, generated / "extra" / "tutorial")


def setup(app):
    """Make them before the sources are read."""
    app.connect("builder-inited", make, priority=100)
    return {"parallel_read_safe": True}
