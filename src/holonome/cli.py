"""The command ``holonome``: see it work, look at the mechanisms and methods, run one and keep the result, reproduce the papers."""

from __future__ import annotations

import ast
import difflib
import inspect
import json
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from holonome import __version__, mechanisms, papers
from holonome.mechanisms.andrews import PUBLISHED
from holonome.mechanisms.mechanism import Mechanism
from holonome.method import methods
from holonome.papers import report
from holonome.result import Solution, count
from holonome.solve import solve
from holonome.warmup import ensure_compiled

PICTURES = (".png", ".svg", ".pdf")
DATA = (".csv", ".npz", ".nc")
_COMPILING = "compiling the engine, once for this machine (about 20 s)"


class _PlainFlags:
    """Help in which a flag takes no value; typer would write <bool> behind it."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters


class _Command(_PlainFlags, TyperCommand):
    pass


class _Commands(_PlainFlags, TyperGroup):
    """Commands whose errors are one sentence on stderr."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            is_for_typer = isinstance(error, (typer.Abort, BrokenPipeError)) or hasattr(error, "exit_code")
            if is_for_typer or ctx.params.get("traceback"):
                raise
            expected = isinstance(error, (ValueError, OSError, ImportError))
            text = str(error).replace("repair=True", "--repair") if expected else f"{type(error).__name__}: {error} (--traceback shows where)"
            _fail(text, 2 if isinstance(error, ValueError) else 1)


app = typer.Typer(cls=_Commands, name="holonome", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  context_settings={"help_option_names": ["-h", "--help"]})


def main() -> None:
    """Entry point of the command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"holonome {__version__}")
        raise typer.Exit


@app.callback()
def common(version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")] = False,
           traceback: Annotated[bool, typer.Option("--traceback", help="Show the whole traceback of an error.")] = False) -> None:
    """Simulate mechanical systems with constraints, without drift.

    Begin with: holonome demo
    """


@app.command("mechanisms", cls=_Command)
def list_mechanisms() -> None:
    """List the built-in mechanisms."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("what it is, source", ratio=1)
    table.add_column("n", justify="right")
    table.add_column("m", justify="right")
    table.add_column("time", no_wrap=True)
    table.add_column("solution", no_wrap=True)
    for name, make in mechanisms.available().items():
        mechanism = make()
        known = "exact" if mechanism.exact else f"{mechanism.reference.digits} digits" if mechanism.reference else "–"
        about = Text(_short(mechanism.title)) + Text(f"\n{mechanism.source}", style="dim")
        span = "{:g} … {:g}".format(*mechanism.t_span)
        table.add_row(name, about, str(mechanism.system.n), str(mechanism.system.m), span, known)
    out = _out()
    out.print(table)
    out.print("\nn coordinates, m constraints.  Run one: [bold]holonome run pendulum --out pendulum.png[/]")


@app.command("methods", cls=_Command)
def list_methods() -> None:
    """List the methods and where they come from."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="cyan")
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("what it is, references", ratio=1)
    table.add_row("auto", "starts explicit, by the tolerance, and moves to bdf where stiffness is met")
    for name, entry in methods().items():
        table.add_row(name, Text(entry.summary) + Text(f"\n{entry.reference}", style="dim"))
    table.add_row("local-iteration", Text("pieces with solvers of their own, joined by constraints: hn.solve_coupled in Python")
                  + Text("\nWang, Hou & Modnak, 2011", style="dim"))
    _out().print(table)


_WITH = "Build the mechanism with this argument, e.g. --with links=20; may be repeated."
_OUT = "Write a picture (.png, .svg, .pdf) or data (.csv, .npz, .nc); a folder gets a picture and a table; may be repeated."


@app.command(cls=_Command)
def run(mechanism: Annotated[str, typer.Argument(help="Name of a mechanism, see: holonome mechanisms")],
        method: Annotated[str, typer.Option(help="Name of a method, see: holonome methods")] = "auto",
        rtol: Annotated[float, typer.Option(help="Relative tolerance.")] = 1e-6,
        atol: Annotated[float, typer.Option(help="Absolute tolerance.")] = 1e-9,
        until: Annotated[float | None, typer.Option(metavar="T", help="Final time.")] = None,
        step: Annotated[float | None, typer.Option(metavar="H", help="Constant step size.")] = None,
        changes: Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="Change a parameter; may be repeated.")] = None,
        arguments: Annotated[list[str] | None, typer.Option("--with", metavar="NAME=VALUE", help=_WITH)] = None,
        out: Annotated[list[Path] | None, typer.Option(metavar="PATH", help=_OUT)] = None,
        no_projection: Annotated[bool, typer.Option("--no-projection", help="Let the constraints drift, to see what that does.")] = False,
        repair: Annotated[bool, typer.Option("--repair", help="Start from the nearest consistent values if the given ones are not.")] = False,
        as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False) -> None:
    """Simulate a mechanism, print what happened and write files."""
    chosen = _build(mechanism, _assignments("--with", arguments), _assignments("--set", changes))
    files = _targets(out or [], chosen.name)
    created = _create_folders(files)
    t_span = (chosen.t_span[0], chosen.t_span[1] if until is None else until)
    _compile_engine()
    done = _simulate(chosen, t_span, method=method, rtol=rtol, atol=atol, step=step, projection=False if no_projection else None, repair=repair)
    for file in files:
        _write(file, done)
    if as_json:
        print(json.dumps(_as_dict(done, files), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _print_summary(_out(), _short(chosen.title), [*_rows(done), *(("written", _told(file, created)) for file in files)])
    if not done.solution.success:
        _fail(done.solution.message, 1)


@app.command(cls=_Command)
def demo(out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to put the picture.")] = Path()) -> None:
    """See it work: Andrews' squeezing mechanism, and what a pendulum does without projection."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out: {str(out)!r} is not a folder")
    _compile_engine()
    andrews, pendulum = mechanisms.get("andrews"), mechanisms.get("pendulum")
    squeezer = _simulate(andrews, andrews.t_span)
    held, loose = (_simulate(pendulum, (0.0, 100.0), projection=projection) for projection in (True, False))
    console = _out()
    rows = dict(_rows(squeezer))
    solution = squeezer.solution
    errors = [_relative(solution.q[:, -1], PUBLISHED.q), _relative(solution.v[:, -1], PUBLISHED.v)]
    rows["error"] = f"positions {errors[0]:.1e}, velocities {errors[1]:.1e}, relative to the\nsolution published in the Test Set for IVP Solvers"
    _print_summary(console, f"{andrews.title}: seven bodies, three loops, a motor and a spring", list(rows.items()))
    console.print()
    lengths = [float(np.max(np.abs(np.hypot(*done.solution.q) - 1))) for done in (held, loose)]
    _print_summary(console, "A pendulum with a rod of 1 m, for 100 s: what projection is good for", [
        ("with projection", f"{held.solution.drift_in_words}; the rod changes by {_length(lengths[0])}"),
        ("without", f"{loose.solution.drift_in_words}; the rod changes by {_length(lengths[1])}"),
        ("speed", f"{_duration(held.seconds)} of computing with projection, {_duration(loose.seconds)} without")])
    picture = out.resolve() / "holonome-demo.png"
    created = _create_folders([picture])
    plot_demo(andrews, squeezer.solution, held.solution, loose.solution, picture)
    console.print()
    _print_summary(console, "", [("picture", _told(picture, created)), ("next", "holonome mechanisms, holonome run four_bar --out four_bar.png")])


def plot_demo(andrews: Mechanism, squeezer: Solution, held: Solution, loose: Solution, file: Path) -> None:
    """The picture of the demo: Andrews' mechanism at a few instants, its angles, and a pendulum's drift with and without projection."""
    from holonome import plot

    assert andrews.drawing is not None
    with plot.house_style():
        figure = plot.new_figure(11.6, 5.08, shown=False)
        motion, angles, drift = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
        plot.plot_motion(squeezer, andrews.drawing, motion, instants=6)
        motion.set(xlabel="x [m]", ylabel="y [m]", title="Andrews' squeezing mechanism, pale to dark")
        plot.plot_positions(squeezer, angles, coordinates=["gamma", "phi", "delta", "epsilon"])
        angles.set(xlabel="time [s]", ylabel="angle [rad]", title=f"Four of its angles, {squeezer.steps} steps")
        for solution, colour, label in ((loose, plot.COLOURS[1], "without projection"), (held, plot.COLOURS[0], "with projection")):
            so_far = np.maximum.accumulate(np.abs(np.hypot(*solution.q) - 1))
            drift.semilogy(solution.t, np.maximum(so_far, plot.SMALLEST), color=colour, linewidth=2.0, label=label)
        drift.set(xlabel="time [s]", ylabel="largest error of its length so far [m]", title="A pendulum's rod of 1 m", ylim=(1e-17, 1))
        drift.legend(loc="center right")
        figure.savefig(file, dpi=138)


@app.command(cls=_Command)
def reproduce(ctx: typer.Context,
              paper: Annotated[str | None, typer.Argument(help="Name of a paper, or all; without it the papers are listed.")] = None,
              names: Annotated[list[str] | None, typer.Argument(metavar="NAME", help="Tables and figures, e.g. table-5.2 figure-5.3; all of them without it.")] = None,
              out: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write a report (index.html), numbers (.csv) and pictures (.png) there.")] = None,
              as_json: Annotated[bool, typer.Option("--json", help="Print the results as JSON.")] = False) -> None:
    """Compute tables and figures of the papers anew, beside what was published.

    Whether they agree does not change the exit code; it is 1 only if something could not be computed.
    """
    if paper is None:
        _list_papers(_out())
        return
    chosen = _experiments(paper, names or [])
    if out is not None and out.exists() and not out.is_dir():
        raise ValueError(f"--out: {str(out)!r} is not a folder")
    _compile_engine()
    created = set() if out is None else _create_folders([out / "any"])
    results, failed, reported, console, since = [], [], [], _out(), time.perf_counter()
    for number, (of, name, compute) in enumerate(chosen):
        begin = time.perf_counter()
        try:
            with _working(f"{of} {name}", number, len(chosen), since) as progress:
                result = compute(progress=progress)
            files = [] if out is None else result.save(out)
        except Exception as error:
            if ctx.find_root().params.get("traceback"):
                raise
            failed.append(f"{f'{of} {name}' if paper == 'all' else name} ({type(error).__name__}: {error})")
            reported.append(report.Failure(of, name, f"{type(error).__name__}: {error}", time.perf_counter() - begin))
            continue
        reported.append(result)
        results.append({**result.to_dict(), "files": [str(file) for file in files]})
        if not as_json:
            console.print(result)
            _print_summary(console, "", [("time", _duration(result.seconds)), *(("written", _told(file, created)) for file in files)])
            console.print()
    if as_json:
        print(json.dumps(_without_nan(results), indent=2, ensure_ascii=False, allow_nan=False))
    elif len(results) > 1:
        total: dict[str, int] = {}
        for result in results:
            for verdict, times in result["verdicts"].items():
                total[verdict] = total.get(verdict, 0) + times
        _print_summary(console, "Rows and statements together", [(verdict, str(times)) for verdict, times in total.items()])
    if out is not None:
        with _alive("writing the report") if sys.stderr.isatty() else nullcontext():
            page = report.write(reported, out)
        if not as_json:
            _print_summary(console, "", [("report", _told(page, created))])
    if failed:
        _fail(f"could not be computed: {'; '.join(failed)}", 1)


def _list_papers(console: Console) -> None:
    for name, paper in papers.available().items():
        console.print(Text(name, style="bold") + Text(f"  {paper.title}"))
        console.print(Text(paper.reference, style="dim"))
        _print_summary(console, "", list(paper.titles.items()))
        console.print()
    console.print("Compute one: [bold]holonome reproduce yen-petzold table-5.2 --out report[/]")


def _experiments(name: str, names: list[str]) -> list[tuple[str, str, Callable[..., papers.Experiment]]]:
    """The functions that were asked for, each with its paper and its name."""
    if name == "all":
        if names:
            raise ValueError(f"{names[0]!r} of all papers; name the paper")
        return [(paper.name, title, compute) for paper in papers.available().values() for title, compute in paper.experiments.items()]
    known = papers.get(name).experiments
    for wanted in names:
        if wanted not in known:
            raise ValueError(f"{wanted!r} is not a table or figure of {name}; {papers.nearest(wanted, known)}")
    return [(name, wanted, known[wanted]) for wanted in names or known]


@contextmanager
def _working(name: str, done: int, total: int, since: float) -> Iterator[Callable[[float, str], None]]:
    """A function that shows how far this one and all have come, and how much is left; the bars appear after a second."""
    console, begin = Console(stderr=True), time.perf_counter()
    columns = (TextColumn("{task.fields[name]}"), BarColumn(), TextColumn("{task.percentage:>3.0f} % {task.description}"), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal, get_time=time.perf_counter)
    task = progress.add_task("", total=1.0, name=name)
    every = progress.add_task("", total=total, completed=done, name=f"{done + 1} of {total}", visible=total > 1)
    progress.tasks[1].start_time = since

    def show(fraction: float, what: str) -> None:
        if time.perf_counter() - begin > 1.0:
            progress.start()
        progress.update(task, completed=fraction, description=what)
        left = (time.perf_counter() - since) * (total - done - fraction) / (done + fraction) if done else 0.0
        progress.update(every, completed=done + fraction, description=f"about {left / 60:.0f} min left" if left > 90 else f"about {left:.0f} s left" if left else "")

    try:
        yield show
    finally:
        progress.stop()


@dataclass(frozen=True, eq=False)
class _Done:
    """A finished run: the mechanism, its solution, and how long the first and a second computation took."""

    mechanism: Mechanism
    solution: Solution
    first: float
    seconds: float


def _simulate(mechanism: Mechanism, t_span: tuple[float, float], **options: Any) -> _Done:
    def simulate() -> tuple[float, Solution]:
        with _progress_bar() as progress:
            begin = time.perf_counter()
            solution = solve(mechanism.system, t_span, mechanism.q0, mechanism.v0, progress=progress, **options)
            return time.perf_counter() - begin, solution

    first, solution = simulate()
    seconds = simulate()[0] if first < 1.0 else first
    return _Done(mechanism, solution, first, seconds)


def _build(name: str, arguments: dict[str, Any], changes: dict[str, Any]) -> Mechanism:
    """The mechanism with its changes.

    What its function takes goes there, so that the start fits. Other parameters are changed in the system, and its known solution no longer counts.
    """
    available = mechanisms.available()
    if name not in available:
        near = difflib.get_close_matches(name, available, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(available)}."
        raise ValueError(f"{name!r} is not a mechanism; {hint}")
    accepted = list(inspect.signature(available[name]).parameters)
    for argument in arguments:
        if argument not in accepted:
            raise ValueError(f"--with: {argument!r} is not an argument of {name}; it takes {', '.join(accepted)}")
    parameters = {key: value for key, value in changes.items() if key not in accepted}
    try:
        mechanism = available[name](**arguments, **{key: value for key, value in changes.items() if key in accepted})
    except TypeError as error:
        raise ValueError(f"{name}: {error}") from error
    if parameters:
        unknown = [key for key in parameters if key not in mechanism.system.parameters]
        if unknown:
            known = dict.fromkeys([*accepted, *mechanism.system.parameters])
            raise ValueError(f"--set: {unknown[0]!r} is not a parameter of {name}; it has {', '.join(known)}")
        mechanism = replace(mechanism, system=mechanism.system.with_parameters(**parameters), reference=None, exact=None)
    return mechanism


def _assignments(option: str, texts: list[str] | None) -> dict[str, Any]:
    values = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        try:
            values[name.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            equals = ""
        if not equals or not name.strip():
            raise ValueError(f"{option}: {text!r} is not of the form NAME=VALUE with a number or a list of numbers")
    return values


def _targets(paths: list[Path], name: str) -> list[Path]:
    """The files to write; a folder gets a picture and a table."""
    files = []
    for path in paths:
        if path.is_dir() or not path.suffix:
            files += [path / f"{name}.png", path / f"{name}.csv"]
        elif path.suffix in PICTURES + DATA:
            files.append(path)
        else:
            raise ValueError(f"--out: {str(path)!r} ends in {path.suffix!r}; use {', '.join(PICTURES + DATA)} or a folder")
    return files


def _create_folders(files: list[Path]) -> set[Path]:
    """Make the folders that the files need, and say which were not there."""
    created = {file.parent for file in files if not file.parent.is_dir()}
    for folder in created:
        folder.mkdir(parents=True, exist_ok=True)
    return created


def _told(file: Path, created: set[Path]) -> str:
    return f"{file} (in a new folder)" if file.parent in created else str(file)


def _write(file: Path, done: _Done) -> None:
    if file.suffix in PICTURES:
        done.solution.plot(file=file, drawing=done.mechanism.drawing)
    else:
        done.solution.save(file)


def _relative(found: np.ndarray, expected: np.ndarray | None) -> float:
    return math.nan if expected is None else float(np.max(np.abs(found - expected)) / np.max(np.abs(expected)))


def _error(done: _Done) -> tuple[float, str] | None:
    """Largest relative error of the positions, and against what."""
    mechanism, solution = done.mechanism, done.solution
    if mechanism.exact is not None and solution.t.size:
        return _relative(solution.q, mechanism.exact(solution.t)[0]), "the exact solution"
    reference = mechanism.reference
    if reference is not None and reference.q is not None and solution.t.size and solution.t[-1] == reference.t:
        return _relative(solution.q[:, -1], reference.q), f"the reference at t = {reference.t:g} ({reference.digits} digits)"
    return None


def _energy(solution: Solution) -> tuple[float, float] | None:
    """Initial energy and its largest change."""
    energy = solution.energy
    return None if energy is None or not energy.size else (float(energy[0]), float(np.max(np.abs(energy - energy[0]))))


def _rows(done: _Done) -> list[tuple[str, str]]:
    """What there is to say about a run, as (heading, text)."""
    solution, system = done.solution, done.solution.system
    speed = f"{_duration(done.seconds)} of computing"
    if done.first > 2 * done.seconds:
        speed += f" (second run; first {_duration(done.first)}, with loading)"
    rows = [("system", f"{count(system.n, 'coordinate')}, {count(system.m, 'constraint')}"),
            ("time", f"{solution.t[0]:.6g} … {solution.t[-1]:.6g}, {count(solution.t.size, 'point')}" if solution.t.size else "no points"),
            ("method", f"{solution.method}, rtol {solution.rtol:g}"),
            ("steps", f"{solution.steps}, {solution.rejections} rejected, {count(solution.nfev, 'evaluation')}"),
            ("speed", speed)]
    if system.m:
        rows.append(("constraints", f"hold to {solution.drift_in_words}"))
    energy, error = _energy(solution), _error(done)
    if energy:
        rows.append(("energy", f"{energy[0]:.6g}, changes by at most {energy[1]:.1e}"))
    if error:
        rows.append(("error", f"{error[0]:.1e}, relative to {error[1]}"))
    if solution.success and solution.message != "the end was reached":
        rows.append(("note", solution.message))
    return rows


def _as_dict(done: _Done, files: list[Path]) -> dict[str, Any]:
    solution, system = done.solution, done.solution.system
    energy, error = _energy(solution), _error(done)
    final = {}
    if solution.t.size:
        q, v, lam = (values[:, -1].tolist() for values in (solution.q, solution.v, solution.lam))
        final = {"t": float(solution.t[-1]), "q": dict(zip(system.names, q, strict=True)), "v": dict(zip(system.names, v, strict=True)),
                 "lam": dict(zip(system.constraint_names, lam, strict=True))}
    return _without_nan({
        "mechanism": done.mechanism.name, "coordinates": system.n, "constraints": system.m,
        "parameters": {name: np.asarray(value).tolist() for name, value in system.parameters.items()},
        "success": solution.success, "status": solution.status, "message": solution.message,
        "method": solution.method, "rtol": solution.rtol, "points": int(solution.t.size),
        "steps": solution.steps, "rejections": solution.rejections, "nfev": solution.nfev, "seconds": done.seconds, "first_seconds": done.first,
        "drift": dict(zip(("g", "gv"), solution.drift, strict=True)),
        "energy": None if energy is None else dict(zip(("initial", "change"), energy, strict=True)),
        "error": None if error is None else dict(zip(("relative", "against"), error, strict=True)),
        "final": final, "files": [str(file) for file in files]})


def _without_nan(value: Any) -> Any:
    """JSON knows neither infinities nor NaN; they become null."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _short(title: str) -> str:
    """A title without what it says in parentheses, which its source says again."""
    return title.partition(" (")[0]


def _duration(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.0f} µs"


def _length(metres: float) -> str:
    return f"{metres * 100:.2g} cm" if metres >= 1e-2 else f"{metres * 1e3:.2g} mm" if metres >= 1e-4 else f"{metres:.1e} m"


def _print_summary(console: Console, title: str, rows: list[tuple[str, str]]) -> None:
    if title:
        console.print(Text(title, style="bold"))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for heading, text in rows:
        table.add_row(f"  {heading}", Text(text))
    console.print(table)


def _out() -> Console:
    return Console(highlight=False)


def _fail(text: str, code: int) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text("error: ", style="bold red") + Text(text))
    raise typer.Exit(code)


def _compile_engine() -> None:
    """Compile the engine, visibly, if that is still to come."""
    pendulum = mechanisms.get("pendulum")
    ensure_compiled(lambda: solve(pendulum.system, (0.0, 0.1), pendulum.q0, pendulum.v0).drift, lambda: _alive(_COMPILING))


@contextmanager
def _alive(text: str, patience: float = 1.0) -> Iterator[None]:
    """Show that something goes on, once it takes longer than one's patience: a spinner with the seconds gone by, or dots without a terminal."""
    console, done = Console(stderr=True), threading.Event()

    def show() -> None:
        if done.wait(patience):
            return
        if console.is_terminal:
            with Progress(SpinnerColumn(), TextColumn(text), TimeElapsedColumn(), console=console, transient=True) as progress:
                progress.add_task("", total=None)
                done.wait()
            return
        print(text, end=" ", file=console.file, flush=True)
        while not done.wait(2.0):
            print(".", end="", file=console.file, flush=True)
        print(file=console.file, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _progress_bar() -> Iterator[Callable[[float], None]]:
    """A function that shows the fraction done; the bar appears when it is first called, which only long runs do."""
    console = Console(stderr=True)
    columns = (TextColumn("simulating"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn())
    progress = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
    task = progress.add_task("", total=1.0)

    def show(fraction: float) -> None:
        progress.start()
        progress.update(task, completed=fraction)

    try:
        yield show
    finally:
        progress.stop()
