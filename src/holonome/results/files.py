"""Results on disk: ``.npz`` files that hold the numbers of a run and, as text, its system, so that a complete
:class:`holonome.Solution` can be restored.

Nothing in such a file is code. Functions that could not be traced are not stored; in that case the system
must be given again.  Files may come from an untrusted source: nothing is read before its size is known, and
anything malformed raises :class:`holonome.UnreadableFile`.
"""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from holonome.arguments import shown
from holonome.errors import UnreadableFile
from holonome.integrators.loop import CAUSES
from holonome.problem.system import System
from holonome.results.impacts import Impacts
from holonome.results.pieces import as_arrays, from_arrays
from holonome.results.solution import Solution
from holonome.results.stored_system import CONTROL, as_text, from_text

FORMAT = 2
"""Version of the files.  Those of version 1, which have no number, hold functions serialized by CasADi;
reading these could execute commands, so only the numbers are read.
"""

LARGEST = 2**32
"""Bytes of all arrays of a file together."""

UNQUESTIONED = 2**28
"""Bytes that a file may unpack to, however small it is."""

PACKED = 100
"""Beyond that, the largest ratio of the unpacked size of a file to its own size; what is packed more tightly
is stored as it is.
"""

_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Others may unpack to any size at once."""

_COUNTS = (
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
_NUMBERS = ("status", *_COUNTS)
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

_OF_PIECES = {
    "piece_begins": 1,
    "piece_values": 2,
    "piece_modes": 2,
    "piece_switched": 2,
    "trace": 2,
    "impacts": 2,
}
"""Of a run in pieces: the first point and the parameters of each, what its contacts do, with the numbers of
these modes, the inputs where they changed, and the impacts.
"""

_OPTIONAL = {"format": 0, "atol": None, "singular_times": 1, "accepted": 2, "rejected": 2} | _OF_PIECES
_TEXTS = ("method", "message", "system")
_HIGHEST_ORDER = 100


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
    arrays |= as_arrays(solution.pieces)
    if solution.impacts is not None:
        arrays["impacts"] = solution.impacts.table(Impacts.names_in(system))
    if solution.trace is not None:
        arrays["trace"] = solution.trace
    size = sum(np.asarray(value).nbytes for value in arrays.values())
    if size > LARGEST - 10**6:
        raise ValueError(
            f"path: the result has {size / 2**30:.1f} GiB, a file may have {LARGEST / 2**30:.0f}; ask for "
            "fewer points with t_eval"
        )
    np.savez_compressed(path, **arrays)
    if size > _most_unpacked(path):
        np.savez(path, **arrays)


def read_npz(path: Path, system: System | None) -> Solution:
    """Read a result that `write_npz` wrote."""
    if path.exists() and not path.is_file():
        raise UnreadableFile(f"path: {str(path)!r} is not a file")
    with open(path, "rb") as file:
        data = _checked(_arrays(path, file), path)
    found = _stored_system(data, path) if system is None else _given_system(system, data)
    sizes, stored = (
        (found.n, found.m, len(found.states)),
        tuple(len(data[name]) for name in ("q", "lam", "s")),
    )
    if sizes != stored:
        raise (ValueError if system is not None else UnreadableFile)(
            f"system: {found.n} coordinates, {found.m} constraints, {len(found.states)} states; the result "
            f"in {str(path)!r} has {stored[0]}, {stored[1]}, {stored[2]}"
        )
    numbers: dict[str, Any] = {name: int(data[name]) for name in _NUMBERS}
    fields = {
        "system": found,
        "method": str(data["method"]),
        "t": data["t"],
        "states": np.concatenate([data["q"], data["v"], data["s"], data["lam"]]).T.copy(),
        "outcome": str(data["message"]),
        "rtol": float(data["rtol"]),
        "atol": data["atol"][()],
        "accepted": data.get("accepted"),
        "rejected": data.get("rejected"),
        "singular_times": data.get("singular_times", np.zeros(0)),
    }
    return Solution(fields | numbers | _pieces(data, found, path))


def _given_system(given: Any, data: Mapping[str, np.ndarray]) -> System:
    """The system of a System or of a mechanism, whose rows may depend on where a run begins."""
    if not hasattr(given, "system") and not hasattr(given, "mechanical"):
        raise TypeError(f"system: {shown(given)} is no hn.System or hn.Mechanism")
    mechanism = getattr(given, "mechanism", given)
    if hasattr(mechanism, "begin_at") and data["t"].size:
        mechanism.begin_at(data["q"][:, 0], float(data["t"][0]))
    return getattr(given, "system", given)


def _pieces(data: Mapping[str, np.ndarray], system: System, path: Path) -> dict[str, Any]:
    """What a run in pieces has beyond others."""
    trace, table, found = data.get("trace"), data.get("impacts"), {}
    inputs = system.parameters.size - system.parameters.of_inputs.start
    try:
        found["pieces"] = from_arrays(data, system, data["t"].size)
        for array in (trace, table, data.get("piece_values")):
            _require(array is None or bool(np.all(np.isfinite(array))))
        if trace is not None:
            _require(trace.shape[1] == 1 + inputs and bool(np.all(np.diff(trace[:, 0]) >= 0)))
            found["trace"] = trace
        _require(table is not None or not system.contacts)
        if table is not None:
            _require(table.shape[1] == Impacts.Recorder.columns)
            names = Impacts.names_in(system)
            _require(bool(np.all(np.isin(table[:, 1], np.arange(len(names))))))
            found["impacts"] = Impacts.of_table(table, names)
    except ValueError as error:
        raise UnreadableFile(
            f"path: {str(path)!r} is not a saved result of this system, or it is damaged: wrong pieces, "
            "inputs or impacts; save the result again"
        ) from error
    return found


def _require(fits: bool) -> None:
    if not fits:
        raise ValueError


def _stored_system(data: Mapping[str, np.ndarray], path: Path) -> System:
    text = str(data["system"])
    if not text:
        raise UnreadableFile(
            f"system: a function of this system could not be traced, or the system is too large, so it is "
            f"not in {str(path)!r}; give system=..."
        )
    if "format" not in data:
        raise UnreadableFile(
            f"path: {str(path)!r} was saved by an earlier version of holonome, whose systems are no longer "
            "read because such a file can hold commands; give system=..."
        )
    try:
        return from_text(text, len(data["lam"]))
    except ValueError as error:
        raise UnreadableFile(
            f"path: the system in {str(path)!r} cannot be read ({_short(error)}); give system=..."
        ) from error


def _short(error: Exception) -> str:
    """The beginning of a message, which may quote what stands in a file."""
    return CONTROL.sub("?", str(error))[:200]


def _most_unpacked(path: Path) -> int:
    """Bytes that a file of this size may unpack to."""
    return min(LARGEST, max(UNQUESTIONED, PACKED * path.stat().st_size))


def _arrays(path: Path, file: BinaryIO) -> dict[str, np.ndarray]:
    """The arrays of a result, as far as a file has them."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = {member.filename.removesuffix(".npy"): member for member in archive.infolist()}
            size = sum(member.file_size for member in archive.infolist())
            if size > _most_unpacked(path):
                raise ValueError(f"{size} bytes when unpacked")
            wanted = [name for name in (*_NEEDED, *_OPTIONAL) if name in members]
            return {name: _array(archive, members[name]) for name in wanted}
    except Exception as error:  # whatever a damaged or forged file makes zipfile, zlib or NumPy raise
        raise UnreadableFile(
            f"path: {str(path)!r} is not a file of NumPy arrays, or it is damaged ({_short(error)}); save "
            "the result again"
        ) from error


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array, whose header must agree with the size of its data before any memory is allocated."""
    if member.compress_type not in _PACKINGS:
        raise ValueError(f"array {member.filename!r} is packed in another way than NumPy's")
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
    """The arrays in the types that a result has, once their dimensions, lengths and values have been
    checked.
    """
    if not {"t", "q", "v", "lam", "system", "status"} <= set(data):
        raise UnreadableFile(f"path: {str(path)!r} is not a saved result")
    version = data.get("format", np.array(FORMAT))
    if version.shape == () and version.dtype.kind in "iu" and int(version) > FORMAT:
        raise UnreadableFile(
            f"path: {str(path)!r} was saved by a later version of holonome (format {int(version)}, known is "
            f"{FORMAT}); update holonome"
        )
    wrong = [name for name in (*_NEEDED, "atol") if name not in data]
    for name, array in data.items():
        kinds = "U" if name in _TEXTS else "iu" if name in ("format", *_NUMBERS) else "fiu"
        dimensions = (_NEEDED | _OPTIONAL)[name]
        if array.dtype.kind not in kinds or (dimensions is not None and array.ndim != dimensions):
            wrong.append(name)
        elif kinds == "fiu":
            data[name] = np.ascontiguousarray(array, dtype=float).reshape(array.shape)
    wrong = wrong or [*_disagreeing(data), *_impossible(data)]
    if wrong:
        raise UnreadableFile(
            f"path: {str(path)!r} is not a saved result, or it is damaged: wrong "
            f"{', '.join(dict.fromkeys(wrong))}; save the result again"
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
        wrong += [
            name for name, columns in (("accepted", 6), ("rejected", 4)) if data[name].shape[1] < columns
        ]
    return wrong


def _impossible(data: Mapping[str, np.ndarray]) -> list[str]:
    """Arrays with values that no run gives."""
    steps = np.diff(data["t"])
    possible = {
        "format": int(data.get("format", FORMAT)) == FORMAT,
        "t": np.all(np.isfinite(data["t"])) and (np.all(steps >= 0) or np.all(steps <= 0)),
        "status": int(data["status"]) in (-1, 0, 1),
        "singular_times": np.all(np.isfinite(data.get("singular_times", 0.0))),
    }
    possible |= {name: 0 <= int(data[name]) < 2**63 for name in _COUNTS}
    possible |= {name: np.all((data[name] >= 0) & (data[name] < np.inf)) for name in ("rtol", "atol")}
    possible |= {name: not CONTROL.search(str(data[name])) for name in ("method", "message")}
    if "accepted" in data and "rejected" in data:
        possible["accepted"] = np.all(np.isin(data["accepted"][:, 5:6], np.arange(_HIGHEST_ORDER + 1)))
        possible["rejected"] = np.all(np.isin(data["rejected"][:, 3:4], list(CAUSES)))
    return [name for name, fits in possible.items() if not fits]
