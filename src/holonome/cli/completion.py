"""What the shell offers when the user presses TAB."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any


def mechanism_names() -> list[str]:
    """Names of the built-in mechanisms, without loading them."""
    files = (Path(entry.name) for entry in (resources.files("holonome") / "mechanisms").iterdir())
    return sorted(
        file.stem for file in files if file.suffix == ".py" and file.stem not in ("__init__", "example")
    )


def subjects(incomplete: str) -> list[str]:
    """Mechanisms, model files and saved results."""
    typed = Path(incomplete)
    folder, start = (typed, "") if incomplete.endswith("/") else (typed.parent, typed.name)
    prefix = incomplete[: len(incomplete) - len(start)]
    files = [
        f"{prefix}{path.name}{'/' if path.is_dir() else ''}"
        for path in (folder.iterdir() if folder.is_dir() else ())
        if path.name.startswith(start)
        and not path.name.startswith(".")
        and (path.is_dir() or path.suffix in (".py", ".npz"))
    ]
    return [name for name in mechanism_names() if name.startswith(incomplete)] + sorted(files)


def methods(incomplete: str) -> list[tuple[str, str]]:
    """Methods, with a summary of each."""
    from holonome.solving.methods import methods

    known = {
        "auto": "starts explicit, moves to bdf where stiffness is met",
        **{name: entry.summary for name, entry in methods().items()},
    }
    return [(name, summary) for name, summary in known.items() if name.startswith(incomplete)]


def papers(incomplete: str) -> list[str]:
    """Names of papers, and "all"."""
    from holonome.papers import names

    return [name for name in ["all", *names()] if name.startswith(incomplete)]


def experiments(ctx: Any, incomplete: str) -> list[tuple[str, str]]:
    """Tables and figures of the paper named before."""
    from holonome import papers

    name = ctx.params.get("paper")
    titles = papers.get(name).titles if name in papers.names() else {}
    return [
        (wanted, title)
        for wanted, title in titles.items()
        if wanted.startswith(incomplete) and wanted not in (ctx.params.get("names") or [])
    ]
