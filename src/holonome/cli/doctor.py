"""``holonome doctor``: environment, versions, caches, and a self-test against known digits."""

from __future__ import annotations

import importlib.metadata
import io
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from holonome.cli import options
from holonome.cli.app import FAILED, Command, app, fail

_NEEDED = ("numpy", "scipy", "casadi", "numba", "llvmlite", "matplotlib", "rich", "typer")
_OPTIONAL = {"pandas": "sol.to_pandas()", "xarray": "sol.to_xarray(), .nc files", "sympy": "hn.from_sympy"}


@dataclass(frozen=True)
class Check:
    """A check: whether it passed, what was found, and a remedy."""

    name: str
    well: bool
    found: str
    remedy: str = ""


@app.command(cls=Command)
def doctor(
    clear: Annotated[
        bool, typer.Option("--clear", help="Delete compiled code first; it will be made again.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Look at the environment, versions and caches, and run a self-test of about five seconds.

    The exit code is 1 if something is wrong; each thing that is comes with its remedy.
    """
    from rich.text import Text

    from holonome.cli.printing import alive, compile_engine, out, plain_table, print_json

    console, checks = out(), []
    if clear:
        deleted = sum(_delete(folders, patterns) for folders, patterns in _caches().values())
        checks.append(Check("cleared", True, _size(deleted)))
    checks += [*_environment(), *_caches_in_order()]
    compile_engine()
    begin = time.perf_counter()
    with alive("self-test"):
        checks += _self_test()
    checks.append(
        Check("self-test", all(check.well for check in checks), f"{time.perf_counter() - begin:.1f} s")
    )
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        table = plain_table(
            ("", {"no_wrap": True}), ("", {"no_wrap": True, "style": "cyan"}), ("", {"overflow": "fold"})
        )
        table.show_header = False
        for check in checks:
            found = Text(check.found) + (
                Text(f"\n{check.remedy}", style="yellow") if check.remedy and not check.well else Text("")
            )
            table.add_row(
                Text("✓" if check.well else "✗", style="green" if check.well else "bold red"),
                check.name,
                found,
            )
        console.print(table)
    wrong = [check.name for check in checks if not check.well and check.name != "self-test"]
    if wrong:
        fail(f"something is wrong with: {', '.join(wrong)}", FAILED)


def _environment() -> Iterator[Check]:
    import holonome

    yield Check("holonome", True, f"{holonome.__version__}, {Path(holonome.__file__).parent}")
    yield Check(
        "python",
        sys.version_info >= (3, 11),
        f"{platform.python_version()}, {platform.platform()}",
        "holonome needs Python 3.11 or newer",
    )
    yield Check("processor", True, f"{_processor()}, {os.cpu_count()} cores")
    versions = {name: importlib.metadata.version(name) for name in _NEEDED}
    yield Check("packages", True, ", ".join(f"{name} {version}" for name, version in versions.items()))
    for name, what in _OPTIONAL.items():
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found = f"not installed; only needed for {what}: pip install 'holonome[{name}]'"
        yield Check(name, True, found)
    yield Check("ffmpeg", True, shutil.which("ffmpeg") or "not found; only needed for .mp4 films")
    off = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
    yield Check(
        "numba's compiler",
        not off,
        "switched off" if off else "on",
        "unset NUMBA_DISABLE_JIT: without its compiler nothing runs at speed",
    )
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    yield Check(
        "output",
        encoding == "utf8",
        f"encoding {sys.stdout.encoding}",
        "set PYTHONUTF8=1, or symbols will be shown as question marks",
    )


def _processor() -> str:
    import llvmlite.binding as llvm

    name = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(errors="replace").splitlines()
        models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        name = models[0] if models else name
    return f"{name} ({llvm.get_host_cpu_name()})" if name else llvm.get_host_cpu_name()


def _caches() -> dict[str, tuple[list[Path], tuple[str, ...]]]:
    """Folders of compiled code, and patterns of our files in them."""
    from holonome.machine import engine_cache
    from holonome.machine.cache import cache_folder

    models, engine = cache_folder(), engine_cache.folder()
    return {
        "models": ([] if models is None else [models], ("models/*/*.o",)),
        "engine": ([] if engine is None else [engine.parent], ("*/*/*.nbi", "*/*/*.nbc")),
    }


def _files(folders: list[Path], patterns: tuple[str, ...]) -> list[Path]:
    return [file for folder in folders for pattern in patterns for file in folder.glob(pattern)]


def _delete(folders: list[Path], patterns: tuple[str, ...]) -> int:
    """Delete the files, and return their size in bytes."""
    total = 0
    for file in _files(folders, patterns):
        total += file.stat().st_size
        file.unlink(missing_ok=True)
    return total


def _caches_in_order() -> Iterator[Check]:
    for name, (folders, patterns) in _caches().items():
        sizes = [file.stat().st_size for file in _files(folders, patterns)]
        well = bool(folders) and all(_writable(folder) for folder in folders)
        where = str(folders[0]) if folders else "nowhere"
        yield Check(
            f"cache of {name}",
            well,
            f"{where}, {len(sizes)} files, {_size(sum(sizes))}" + ("" if well else "; not writable"),
            "set HOLONOME_CACHE to a folder that can be written; otherwise each process compiles again",
        )


def _writable(folder: Path) -> bool:
    """Whether a file can be created in the folder, or the folder itself if it does not exist."""
    while not os.path.exists(folder):
        folder = folder.parent
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _size(total: int) -> str:
    return f"{total / 1e6:.1f} MB" if total > 1e5 else f"{total / 1e3:.1f} kB"


def _self_test() -> Iterator[Check]:
    tests: dict[str, Callable[[], tuple[bool, str]]] = {
        "exact pendulum": _pendulum,
        "Andrews, explicit": lambda: _andrews("dop853"),
        "Andrews, BDF": lambda: _andrews("bdf"),
        "compiling a model": _fresh_model,
        "a picture": _picture,
    }
    for name, test in tests.items():
        try:
            well, found = test()
        except Exception as error:
            well, found = False, f"{type(error).__name__}: {error}"
        yield Check(
            name,
            bool(well),
            found,
            "holonome doctor --clear, then try again; if that does not help, reinstall it",
        )


def _pendulum() -> tuple[bool, str]:
    """A pendulum against Jacobi's elliptic functions."""
    from holonome import mechanisms
    from holonome.cli.simulation import relative
    from holonome.solving.solve import solve

    pendulum = mechanisms.get("pendulum")
    assert pendulum.exact is not None
    found = solve(pendulum.system, (0.0, 10.0), pendulum.q0, pendulum.v0, rtol=1e-10, atol=1e-12)
    error = relative(found.q, pendulum.exact(found.t)[0])
    well = found.success and error < 1e-7 and found.drift[0] < 1e-14
    return well, f"error {error:.1e}, {found.drift_in_words}"


def _andrews(method: str) -> tuple[bool, str]:
    """Andrews' mechanism against the published digits, and the time of one evaluation."""
    from holonome import mechanisms
    from holonome.cli.simulation import relative
    from holonome.mechanisms.andrews import PUBLISHED
    from holonome.solving.solve import solve

    andrews = mechanisms.get("andrews")
    rtol = 1e-10 if method == "dop853" else 1e-9
    problem = andrews.system, andrews.t_span, andrews.q0, andrews.v0
    found = solve(*problem, method=method, rtol=rtol, atol=1e-3 * rtol)
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        solve(*problem, method=method, rtol=rtol, atol=1e-3 * rtol)
        times.append(time.perf_counter() - begin)
    error = relative(found.q[:, -1], PUBLISHED.q)
    return (
        found.success and error < 1e-5,
        f"error {error:.1e} at rtol {rtol:g}, {min(times) * 1e3:.2g} ms, {min(times) / found.nfev * 1e9:.0f} "
        "ns for each evaluation",
    )


def _fresh_model() -> tuple[bool, str]:
    """A model that is in no cache, from its functions to the first result."""
    import numpy as np

    from holonome.problem.system import System
    from holonome.solving.solve import solve

    length = 1.0 + time.time() % 1.0
    begin = time.perf_counter()
    rod = System(np.eye(2), [0.0, -9.81], lambda q: q @ q - length**2, names=["x", "y"])
    found = solve(rod, (0.0, 1.0), [length, 0.0])
    took = time.perf_counter() - begin
    paths = set(rod.paths.values())
    exact = abs(np.hypot(*found.q[:, -1]) - length) < 1e-13
    well = found.success and paths <= {"constant", "traced"} and exact
    return well, f"{took * 1e3:.0f} ms from its functions to the first result"


def _picture() -> tuple[bool, str]:
    from holonome import mechanisms, plot
    from holonome.solving.solve import solve

    pendulum = mechanisms.get("pendulum")
    axes = plot.plot_positions(solve(pendulum.system, (0.0, 1.0), pendulum.q0))
    file = io.BytesIO()
    axes.get_figure(root=True).savefig(file, format="png")  # type: ignore[union-attr]
    return len(file.getvalue()) > 1000, f"{_size(len(file.getvalue()))} of PNG"
