"""Tables of results as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows with the same keys, which become the header."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
