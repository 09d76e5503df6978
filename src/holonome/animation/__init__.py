"""Animations of runs: a self-contained page for the browser, or a film.

The page draws the mechanism on a canvas and the graphs with plotly.js, which it contains, compressed. Its
parts are the files ``page.html``, ``page.css`` and ``page.js`` beside this one.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import re
import zlib
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

from holonome.animation.scene import ROOM, Scene, named_curves
from holonome.arguments import shown
from holonome.problem.drawing import Drawing
from holonome.results.quantities import acting
from holonome.results.solution import Solution

__all__ = ["Animation", "animate"]


class Animation:
    """An animation of one or several runs. In a notebook it displays itself.

    Attributes
    ----------
    file : Path or None
        Where it was saved.
    html : str
        The page.
    """

    def __init__(self, scenes: Sequence[Scene], title: str) -> None:
        self.scenes = list(scenes)
        self.title = title
        self.file = None

    @functools.cached_property
    def html(self) -> str:
        data = {"title": self.title, "runs": [scene.data(ROOM / len(self.scenes)) for scene in self.scenes]}
        parts = {
            "TITLE": html.escape(self.title),
            "STYLE": _part("page.css"),
            "SCRIPT": _part("page.js"),
            "PLOTLY": _plotly(),
            "DATA": json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
        }
        return re.sub(r"{{([A-Z]+)}}", lambda match: parts[match[1]], _part("page.html"))

    def save(self, file: str | Path) -> Path:
        """Write to a file whose suffix selects the format: ``.html``, ``.gif`` or ``.mp4``."""
        file = Path(file)
        match file.suffix.lower():
            case ".html" | ".htm":
                file.write_text(self.html, encoding="utf-8")
            case ".gif" | ".mp4":
                from holonome.animation.film import write

                write(self.scenes, self.title, file)
            case _:
                raise ValueError(f"file: {str(file)!r} ends in {file.suffix!r}; use .html, .gif or .mp4")
        self.file = file
        return file

    def _repr_html_(self) -> str:
        height = 900 if any(scene.drawing is not None for scene in self.scenes) else 640
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="{html.escape(self.title)}" '
            f'style="width: 100%; height: {height}px; border: 0" loading="lazy"></iframe>'
        )

    def __repr__(self) -> str:
        return f"Animation({self.title!r}" + (f", file={str(self.file)!r})" if self.file else ")")


def animate(
    solutions: Solution | Sequence[Solution],
    file: str | Path | None = None,
    *,
    drawings: Drawing | Sequence[Drawing | None] | None = None,
    titles: Sequence[str] | None = None,
    title: str | None = None,
    graphs: Sequence[str | Sequence[str]] | None = None,
    forces: Sequence[str] = (),
) -> Animation:
    """Animate one run, or several side by side with a common clock.

    Parameters
    ----------
    solutions : Solution or sequence of Solution
        What :func:`holonome.solve` returned.
    file : str or Path, optional
        Where to save it; the ending says how: ``.html`` is a page that needs no network, ``.gif`` and
        ``.mp4`` are films (the latter needs ffmpeg).
    drawings : Drawing or sequence, optional
        How to draw each; None takes the drawing of the system or, without one, infers points and rods from
        its coordinates and constraints.
    titles : sequence of str, optional
        A heading for each run; by default the name of the system, and of the method where there are several.
    title : str, optional
        The heading of the page.
    graphs : list of names, optional
        What the graphs of a page show, one for each entry, which is a name or a list of them: ``"energy"``,
        ``"drift"``, a coordinate or state; of a :class:`holonome.Mechanism` also ``"A.angle"``, ``"A.rate"``,
        ``"A.force"`` and ``"A.moment"`` of a joint, ``"coupler.P"`` and ``"coupler.velocity"`` of a body,
        ``"motor.power"``. By default energy and drift.
    forces : list of names, optional
        Joints, forces, springs and drives of a mechanism whose forces and moments are drawn as arrows, or
        ``"gravity"``.

    Returns
    -------
    Animation
        It shows itself in a notebook; ``.file`` is where it was saved.

    Examples
    --------
    >>> import holonome as hn
    >>> wheels = hn.mechanisms.wheelset()
    >>> runs = [
    ...     hn.solve(wheels.system, (0, 1), wheels.q0, wheels.v0, method=method, rtol=1e-4)
    ...     for method in ("index1", "bdf")
    ... ]
    >>> hn.animate(runs, titles=["without projection", "with projection"])
    Animation('Wheelset')
    """
    runs = _checked_runs(solutions)
    scenes = _scenes(runs, drawings, titles, _names("graphs", graphs), _names("forces", forces) or ())
    name = runs[0].system.name.replace("_", " ")
    animation = Animation(
        scenes, title or (scenes[0].title if len(runs) == 1 else name[:1].upper() + name[1:])
    )
    if file is not None:
        animation.save(file)
    return animation


def _checked_runs(solutions: Solution | Sequence[Solution]) -> list[Solution]:
    runs = [solutions] if isinstance(solutions, Solution) else list(solutions)
    if not runs or not all(isinstance(run, Solution) for run in runs):
        raise TypeError(
            f"solutions: {', '.join(type(run).__name__ for run in runs) or 'none given'}; give what hn.solve "
            "returned, or a list of such solutions"
        )
    for k, run in enumerate(runs):
        if not run.t.size:
            raise ValueError(
                f"solutions[{k}]: it has no points; solve with a t_eval that is not empty, or without"
            )
    if len({run.t[-1] >= run.t[0] for run in runs if run.t.size > 1}) > 1:
        raise ValueError("solutions: some run forward in time and some backward; they cannot share a clock")
    return runs


def _scenes(
    runs: Sequence[Solution],
    drawings: Drawing | Sequence[Drawing | None] | None,
    titles: Sequence[str] | None,
    graphs: Sequence[str | Sequence[str]] | None,
    forces: Sequence[str],
) -> list[Scene]:
    drawn: list[Any] = list(drawings) if isinstance(drawings, (list, tuple)) else [drawings] * len(runs)
    named = [None] * len(runs) if titles is None else list(titles)
    for name, given in (("drawings", drawn), ("titles", named)):
        if len(given) != len(runs):
            raise ValueError(f"{name}: {len(given)} given for {len(runs)} solutions")
    for drawing in drawn:
        if drawing is not None and not isinstance(drawing, Drawing):
            raise TypeError(f"drawings: {type(drawing).__name__}; give an hn.Drawing")
    scenes = [
        Scene.of(run, drawing, heading, graphs, forces)
        for run, drawing, heading in zip(runs, drawn, named, strict=True)
    ]
    for scene in scenes:  # what is wrong with a drawing or a name shows here
        scene.points(scene.solution.t[:1])
        for name in forces:
            acting(scene.solution, name)
        if graphs is not None:
            list(named_curves(scene.solution, graphs))
    if titles is None and len(runs) > 1:
        scenes = [replace(scene, title=scene.solution.method) for scene in scenes]
    return scenes


def _names(argument: str, given: Any) -> Any:
    """A list of names, or lists of them."""
    if given is None or (isinstance(given, (list, tuple)) and all(_is_name(entry) for entry in given)):
        return given
    raise TypeError(f"{argument}: {shown(given)}; give a list of names")


def _is_name(entry: Any) -> bool:
    return isinstance(entry, str) or (
        isinstance(entry, (list, tuple)) and bool(entry) and all(isinstance(name, str) for name in entry)
    )


def _part(name: str) -> str:
    return (resources.files("holonome.animation") / name).read_text(encoding="utf-8")


@functools.cache
def _plotly() -> str:
    """plotly.js as it comes with the package plotly, compressed: 1.9 instead of 4.8 MB."""
    source = (resources.files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return base64.b64encode(zlib.compress(source, 9)).decode("ascii")
