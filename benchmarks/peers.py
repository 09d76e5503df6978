"""holonome against its peers, on the same problems, in one run.

    python benchmarks/peers.py setup      an environment for the peers, in benchmarks/.peers
    python benchmarks/peers.py run        measure, into benchmarks/results/peers.csv
    python benchmarks/peers.py report     tables and pictures from there: docs/benchmarks.md and docs/images/

Measure on an idle machine. `run --quick` tries everything once, in a few minutes, and its numbers mean
nothing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
ENVIRONMENT = HERE / ".peers"
RESULTS = HERE / "results" / "peers.csv"
PAGE = HERE.parent / "docs" / "benchmarks.md"
app = typer.Typer(add_completion=False, help=__doc__, rich_markup_mode=None, no_args_is_help=True)
console = Console()


@app.command()
def setup(
    sundials: Annotated[
        Path | None,
        typer.Option(
            help="Archive with the sources of SUNDIALS, to build it with -O3 as well, or the folder of such "
            "a build."
        ),
    ] = None,
    fortran: Annotated[
        Path | None,
        typer.Option(
            help="Folder with the sources of codes in Fortran (fortran/build.sh names them), to compile them "
            "with -O3."
        ),
    ] = None,
) -> None:
    """Install the peers, each by itself, so that one that fails does not stop the others."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    table = Table("peer", "", "message")
    for name in (HERE / "requirements-peers.txt").read_text().split():
        with console.status(f"{name} …"):
            run = subprocess.run(
                [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", name],
                capture_output=True,
                text=True,
            )
        complaints = [line for line in run.stderr.splitlines() if line.startswith("ERROR")]
        table.add_row(
            name,
            "[green]ready" if run.returncode == 0 else "[red]missing",
            complaints[-1] if run.returncode and complaints else "",
        )
    header = Path("/usr/include/sundials/sundials_config.h").exists()
    table.add_row(
        "SUNDIALS in C",
        "[green]ready" if header else "[red]missing",
        "" if header else "install the package libsundials-dev and gcc",
    )
    target = ENVIRONMENT / "sundials"
    if sundials is not None and sundials.is_dir():
        target.unlink(missing_ok=True)
        target.symlink_to(sundials.resolve())
    elif sundials is not None:
        with console.status("SUNDIALS with -O3 …"):
            shutil.rmtree(target, ignore_errors=True)
            subprocess.run(
                ["sh", str(HERE / "sundials" / "build.sh"), str(sundials)],
                env=dict(os.environ, SUNDIALS_DIR=str(target)),
                check=True,
                capture_output=True,
            )
    table.add_row(
        "SUNDIALS with -O3",
        "[green]ready" if target.exists() else "not built",
        "" if target.exists() else "setup --sundials ARCHIVE",
    )
    library = ENVIRONMENT / "fortran" / "libfortran.so"
    if fortran is not None:
        with console.status("codes in Fortran …"):
            build = subprocess.run(
                ["sh", str(HERE / "fortran" / "build.sh"), str(fortran), str(library)],
                capture_output=True,
                text=True,
            )
        if build.returncode:
            raise typer.BadParameter(build.stderr.strip(), param_hint="--fortran")
    table.add_row(
        "codes in Fortran",
        "[green]ready" if library.exists() else "not built",
        "" if library.exists() else "setup --fortran FOLDER, with gfortran and LAPACK",
    )
    console.print(table)


@app.command()
def run(
    problem: Annotated[list[str] | None, typer.Option(help="Only these problems.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="Only these peers.")] = None,
    quick: Annotated[bool, typer.Option(help="Everything once, to see that it works.")] = False,
    first: Annotated[bool, typer.Option(help="Also the times to the first result.")] = True,
    out: Annotated[Path, typer.Option(help="Where the results go.")] = RESULTS,
) -> None:
    """Measure holonome and its peers in turns."""
    from harness import measure, problems

    shutil.rmtree(ENVIRONMENT / "problems", ignore_errors=True)
    built = {"sundials -O3": "sundials", "fortran": "fortran"}
    peers = peer or [
        name for name in measure.PEERS if name not in built or (ENVIRONMENT / built[name]).exists()
    ]
    unknown = [name for name in [*(problem or []), *peers] if name not in [*problems.NAMES, *measure.PEERS]]
    if unknown:
        raise typer.BadParameter(
            f"{', '.join(unknown)} is not known; problems: {', '.join(problems.NAMES)}; peers: "
            f"{', '.join(measure.PEERS)}"
        )
    limits = measure.QUICK if quick else measure.Limits()
    with console.status("start …") as status:

        def rows():
            yield from measure.measure(problem or problems.NAMES, peers, limits, status.update)
            if first:
                yield from measure.first_results(peers, say=status.update)

        measure.write(rows(), out)
    console.print(f"written: {out}")


@app.command()
def report(
    results: Annotated[Path, typer.Option(help="What to draw.")] = RESULTS,
    page: Annotated[Path, typer.Option(help="Where the page goes.")] = PAGE,
) -> None:
    """Draw the tables and pictures anew."""
    from harness.report import write

    write(results, page, HERE.parent / "README.md" if page == PAGE else None)
    console.print(f"written: {page}")


if __name__ == "__main__":
    app()
