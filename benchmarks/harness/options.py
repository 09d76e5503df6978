"""The options that all benchmarks share."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from datetime import date
from pathlib import Path

import holonome as hn

RESULTS = Path(__file__).parents[1] / "results"


class Options(argparse.ArgumentParser):
    """A parser with ``--quick``, and with ``--out`` where there is a file of results."""

    def __init__(self, description: str | None, result: str = "") -> None:
        super().__init__(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        self._result = result
        self.add_argument(
            "--quick", action="store_true", help="everything small and once, to see that it works"
        )
        if result:
            self.add_argument("--out", type=Path, help="where the results go")

    def given(self) -> argparse.Namespace:
        """The options; what a quick run measures means nothing and goes to a temporary folder."""
        found = self.parse_args()
        if self._result and found.out is None:
            found.out = (Path(tempfile.mkdtemp()) if found.quick else RESULTS) / self._result
        return found


def stamp() -> dict[str, str]:
    """When, where and of what a row was measured."""
    return {
        "date": date.today().isoformat(),
        "machine": platform.machine(),
        "holonome": hn.__version__,
    }


def long_stamp() -> dict[str, str]:
    """The same with the number of cores and the version of Python."""
    return {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "holonome": hn.__version__,
    }
