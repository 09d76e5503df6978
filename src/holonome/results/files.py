"""Results on disk: ``.npz`` files that hold the numbers of a run and, as text, its system, so that a complete
:class:`holonome.Solution` can be restored.

Nothing in such a file is code. Functions that could not be traced are not stored; in that case the system
must be given again.  Files may come from an untrusted source: nothing is read before its size is known, and
anything malformed raises a ValueError.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from holonome.integrators.loop import CAUSES
from holonome.problem.system import System
from holonome.results.solution import Solution
from holonome.results.stored_system import as_text, from_text

FORMAT = 2
"""Version of the files.  Those of version 1, which have no number, hold functions serialized by CasADi;
reading these could execute commands, so only the numbers are read.
"""

LARGEST = 2**32
"""Bytes of all arrays of a file together."""

_PACKED = 1100
"""Largest possible ratio of the unpacked size of a file to its own size."""

_NUMBERS = (
    "status",
    "nfev",
    "steps",
    "rejections",
    "projections",
    "dense_calls",
    "lowest_rank",
    "njev",
    "nlu",
    "error_failures",
    "newton_failures",
    "splits",
)
_NEEDED = {
    "t": 1,
    "q": 2,
    "v": 2,
    "s": 2,
    "lam": 2,
    "rtol": 0,
    "method": 0,
    "message": 0,
    "system": 0,
} | dict.fromkeys(_NUMBERS, 0)
"""Arrays that every result has, and their dimensions."""

_OPTIONAL = {"format": 0, "atol": None, "singular_times": 1, "accepted": 2, "rejected": 2}
_TEXTS = ("method", "message", "system")


def write_npz(solution: Solution, path: Path) -> None:
    """Write a result to a compressed file of NumPy arrays."""
    system, history = solution.system, solution.history
    fields = ["t", "q", "v", "lam", "s", "w", "rtol", "atol", "method", "message", "singular_times"]
    arrays: dict[str, Any] = {name: getattr(solution, name) for name in (*fields, *_NUMBERS)}
    arrays |= {
        "format": FORMAT,
        "system": as_text(system),
        "names": system.names,
        "states": list(system.states),
        "unknowns": list(system.unknowns),
        "constraint_names": system.constraint_names,
    }
    if history is not None:
        arrays |= {"accepted": history.accepted, "rejected": history.rejected}
    size = sum(np.asarray(value).nbytes for value in arrays.values())
    if size > LARGEST - 10**6:
        raise ValueError(
            f"path: the result has {size / 2**30:.1f} GiB, a file may have {LARGEST / 2**30:.0f}; ask for "
            "fewer points with t_eval"
        )
    np.savez_compressed(path, **arrays)


def read_npz(path: Path, system: System | None) -> Solution:
    """Read a result that `write_npz` wrote."""
    data = _checked(_arrays(path), path)
    found = _stored_system(data, path) if system is None else system
    if (found.n, found.m, len(found.states)) != (len(data["q"]), len(data["lam"]), len(data["s"])):
        states = f" and {len(found.states)} states" if len(found.states) != len(data["s"]) else ""
        raise ValueError(
            f"system: {found.n} coordinates and {found.m} constraints{states}; the result in {str(path)!r} "
            f"has {len(data['q'])} and {len(data['lam'])}" + (f" and {len(data['s'])}" if states else "")
        )
    states = np.concatenate([data["q"], data["v"], data["s"], data["lam"]]).T.copy()
    numbers: dict[str, Any] = {name: int(data[name]) for name in _NUMBERS}
    fields = {
        "system": found,
        "method": str(data["method"]),
        "t": data["t"],
        "states": states,
        "outcome": str(data["message"]),
        "rtol": float(data["rtol"]),
        "atol": data["atol"][()],
        "accepted": data.get("accepted"),
        "rejected": data.get("rejected"),
        "singular_times": data.get("singular_times", np.zeros(0)),
    }
    return Solution(fields | numbers)


def _stored_system(data: Mapping[str, np.ndarray], path: Path) -> System:
    text = str(data["system"])
    if not text:
        raise ValueError(
            f"system: a function of this system could not be traced, so it is not in {str(path)!r}; give "
            "system=..."
        )
    if "format" not in data:
        raise ValueError(
            f"path: {str(path)!r} was saved by an earlier version of holonome, whose systems are no longer "
            "read because such a file can hold commands; give system=..."
        )
    try:
        return from_text(text, len(data["lam"]))
    except (ValueError, MemoryError) as error:
        raise ValueError(
            f"path: the system in {str(path)!r} cannot be read ({str(error)[:200]}); give system=..."
        ) from error


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a result, as far as a file has them."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            size = sum(member.file_size for member in archive.infolist())
            if size > min(LARGEST, _PACKED * path.stat().st_size):
                raise ValueError(f"{size} bytes when unpacked")
            wanted = [name for name in (*_NEEDED, *_OPTIONAL) if name in members]
            return {name: _array(archive, members[name]) for name in wanted}
    except FileNotFoundError:
        raise
    except Exception as error:  # whatever a damaged or forged file makes zipfile, zlib or NumPy raise
        raise ValueError(
            f"path: {str(path)!r} is not a file of NumPy arrays, or it is damaged ({str(error)[:200]}); save "
            "the result again"
        ) from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array, whose header must agree with the size of its data before any memory is allocated."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version} of NumPy's format")
        header = "read_array_header_1_0" if version == (1, 0) else "read_array_header_2_0"
        shape, _, dtype = getattr(np.lib.format, header)(file)
        count = 1
        for length in shape:
            count *= length
        if dtype.kind not in "fiubU" or file.tell() + count * dtype.itemsize != member.file_size:
            raise ValueError(f"array {member.filename!r}")
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _checked(data: dict[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """The arrays, once their types, dimensions and lengths have been checked."""
    if not {"t", "q", "v", "lam", "system", "status"} <= set(data):
        raise ValueError(f"path: {str(path)!r} is not a saved result")
    version = data.get("format", np.array(1))
    if version.shape or version.dtype.kind != "i" or int(version) > FORMAT:
        raise ValueError(
            f"path: {str(path)!r} was saved by a later version of holonome (format {str(version)[:20]}, "
            f"known is {FORMAT}); update holonome"
        )
    wrong = [name for name in (*_NEEDED, "atol") if name not in data]
    for name, array in data.items():
        kinds = "U" if name in _TEXTS else "iu" if name in ("format", *_NUMBERS) else "fiu"
        dimensions = (_NEEDED | _OPTIONAL)[name]
        if array.dtype.kind not in kinds or (dimensions is not None and array.ndim != dimensions):
            wrong.append(name)
    if not wrong:
        wrong = _disagreeing(data)
    if wrong:
        raise ValueError(
            f"path: {str(path)!r} is not a saved result, or it is damaged: wrong {', '.join(wrong)}; save "
            "the result again"
        )
    return data


def _disagreeing(data: Mapping[str, np.ndarray]) -> list[str]:
    """Arrays whose size does not fit the others."""
    wrong = [name for name in ("q", "v", "s", "lam") if data[name].shape[1] != data["t"].size]
    if len(data["v"]) != len(data["q"]):
        wrong.append("v")
    if data["atol"].ndim > 1:
        wrong.append("atol")
    if ("accepted" in data) != ("rejected" in data):
        wrong.append("accepted")
    elif "accepted" in data:
        accepted, rejected = data["accepted"], data["rejected"]
        if accepted.shape[1] < 6:
            wrong.append("accepted")
        if rejected.shape[1] < 4 or not set(rejected[:, 3].tolist()) <= set(CAUSES):
            wrong.append("rejected")
    return wrong
