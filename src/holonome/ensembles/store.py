"""Results on disk: a zarr group whose arrays are written chunk by chunk.

A chunk counts as done when its mark is there, a file that is created last and at once.  Whatever a process
that was killed leaves behind is computed and written again, to the same digits.  Two processes may fill one
store: each chunk is claimed by a lock that the system gives back when its owner ends, in whatever way.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from holonome.ensembles.identity import identity
from holonome.ensembles.study import Rows, Study
from holonome.errors import HolonomeError
from holonome.machine.interruption import Interruption

try:
    import fcntl
except ImportError:  # on Windows two processes may compute the same chunk; what they write is the same
    fcntl = None

_LONGEST = 240
"""Bytes of a message."""

_NUMBERS = {"end": float, "event": np.int16, "steps": np.int32, "singular": np.int16}
_WAIT = 0.2
_MARKS = "progress"
"""A group in the store, in whose folder the marks lie."""


class OtherStudy(HolonomeError, ValueError):
    """The store holds results of something else."""


class UnwritableStore(HolonomeError, OSError):
    """The store cannot be made, read or written: no such folder, no permission, no space left."""


@contextlib.contextmanager
def _told(folder: Path | str, doing: str) -> Iterator[None]:
    """Errors of the disk, with what they mean for the study."""
    try:
        yield
    except HolonomeError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise UnwritableStore(
            f"store: {str(folder)!r} cannot be {doing}: {reason}; chunks that are complete stay, and a later "
            "run goes on from there"
        ) from error


def _zarr() -> Any:
    try:
        return importlib.import_module("zarr")
    except ImportError as error:
        raise ImportError("store needs zarr: pip install 'holonome[study]'") from error


class Store:
    """The store of one study in a folder."""

    def __init__(self, folder: Path, members: int, chunk: int) -> None:
        self.folder, self.members, self.chunk = folder, members, chunk
        self._marks = folder / _MARKS
        self._group: Any = None

    @classmethod
    def opened(cls, folder: str, study: Study, chunk: int) -> Store:
        """The store in this folder, made if there is none; OtherStudy if it belongs to another study."""
        _zarr()
        with _told(folder, "opened"):
            return cls._opened_in(folder, study, chunk)

    @classmethod
    def _opened_in(cls, folder: str, study: Study, chunk: int) -> Store:
        path = Path(folder)
        marks = path / _MARKS
        if path.exists() and not marks.exists() and any(path.iterdir()):
            raise OtherStudy(f"store: the folder {folder!r} holds something else; give another")
        marks.mkdir(parents=True, exist_ok=True)
        about = {"members": study.design.members, "chunk": chunk, "identity": identity(study)}
        with _locked(marks / "lock"):
            written = marks / "study.json"
            if written.exists():
                known = json.loads(written.read_text("utf-8"))
                _refuse_other(folder, known, about)
                about = known
            store = cls(path, about["members"], about["chunk"])
            if not written.exists():
                store._create(study)
                _write_at_once(written, json.dumps(about, indent=1).encode())
        return store

    def _create(self, study: Study) -> None:
        """Empty arrays, named as in the dataset."""
        group = _zarr().open_group(self.folder, mode="a")
        group.require_group(_MARKS)
        times = () if study.times is None else (study.times.size,)
        for kept in study.observed.kept(bool(times)):
            own = (len(kept.labels),) if kept.labels else ()
            names = ("state" if kept.name in "sx" else "coordinate",) * len(own)
            over_time = ("t",) * kept.over_time
            self._array(group, kept.name, float, (*times * kept.over_time, *own), (*over_time, *names))
        for name, kind in _NUMBERS.items():
            self._array(group, name, kind, (), ())
        self._array(group, "message", np.uint8, (_LONGEST,), ("letter",))
        if times:
            group.create_array("t", data=study.times, dimension_names=["t"], overwrite=True)
        for variation in study.design.variations:
            if variation.values.ndim == 1:
                rows = study.design.rows(0, self.members)[variation.dimension]
                group.create_array(
                    f"over.{variation.name}",
                    data=variation.values[rows],
                    dimension_names=["member"],
                    overwrite=True,
                )

    def _array(
        self, group: Any, name: str, kind: Any, shape: tuple[int, ...], names: tuple[str, ...]
    ) -> None:
        group.create_array(
            name,
            shape=(self.members, *shape),
            chunks=(self.chunk, *shape),
            dtype=np.dtype(kind),
            fill_value=np.nan if kind is float else 0,
            dimension_names=["member", *names],
            overwrite=True,
        )

    def _opened(self) -> Any:
        if self._group is None:
            self._group = _zarr().open_group(self.folder, mode="r+")
        return self._group

    def _mark(self, first: int) -> Path:
        return self._marks / f"done-{first}"

    def is_done(self, first: int) -> bool:
        """Whether the chunk that begins there is complete."""
        return self._mark(first).exists()

    def missing(self) -> list[int]:
        """First members of the chunks that are not there."""
        done = {int(name.removeprefix("done-")) for name in os.listdir(self._marks) if name[:5] == "done-"}
        return [first for first in range(0, self.members, self.chunk) if first not in done]

    def held(self, missing: Iterable[int]) -> Iterator[tuple[int, Rows]]:
        """The chunks that are there, all but those."""
        left_out = set(missing)
        for first in range(0, self.members, self.chunk):
            if first not in left_out:
                yield first, self.read(first)

    def read(self, first: int) -> Rows:
        """A chunk that is there."""
        group, span = self._opened(), slice(first, min(first + self.chunk, self.members))
        letters = group["message"][span]
        messages = {
            row: bytes(letters[row]).rstrip(b"\0").decode("utf-8", "ignore")
            for row in np.flatnonzero(letters[:, 0]).tolist()
        }
        names = [name for name in group.array_keys() if not name.startswith("over.")]
        kept = {name: group[name][span] for name in names if name not in (*_NUMBERS, "message", "t")}
        numbers = {name: group[name][span] for name in _NUMBERS}
        return Rows(kept=kept, messages=messages, **numbers)

    def write(self, first: int, rows: Rows) -> None:
        """Keep a chunk; nothing happens if it is there."""
        with _told(self.folder, "written"):
            if not self.is_done(first):
                self._write(first, rows)

    def _write(self, first: int, rows: Rows) -> None:
        group, span = self._opened(), slice(first, first + rows.count)
        for name, values in rows.kept.items():
            group[name][span] = values
        for name in _NUMBERS:
            group[name][span] = getattr(rows, name)
        letters = np.zeros((rows.count, _LONGEST), np.uint8)
        for row, message in rows.messages.items():
            text = message.encode()[:_LONGEST]
            letters[row, : len(text)] = np.frombuffer(text, np.uint8)
        group["message"][span] = letters
        _write_at_once(self._mark(first), b"")

    @contextlib.contextmanager
    def claimed(self, first: int, wait: bool = True) -> Iterator[bool]:
        """While a chunk belongs to this process; False where it belongs to another, or is done."""
        place = self._marks / f"claim-{first}"
        with _locked(place, wait) as mine:
            try:
                yield mine and not self.is_done(first)
            finally:
                if mine:
                    with contextlib.suppress(OSError):
                        place.unlink()


@contextlib.contextmanager
def _locked(place: Path, wait: bool = True) -> Iterator[bool]:
    """While this process holds a lock; False if another does and this one shall not wait."""
    if fcntl is None:
        yield True
        return
    while True:
        with open(place, "a") as file:
            mine = _lock(file, wait)
            if mine and not _is_there(place, file):  # whoever held it has taken the file away meanwhile
                continue
            yield mine
            return


def _lock(file: Any, wait: bool) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # pyright: ignore[reportOptionalMemberAccess]
            return True
        except OSError:
            if not wait or Interruption.requested:
                return False
            time.sleep(_WAIT)


def _is_there(place: Path, file: Any) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(place))
    except OSError:
        return False


def _write_at_once(place: Path, content: bytes) -> None:
    """A file that is there completely or not at all."""
    draft = place.with_name(f"{place.name}.{os.getpid()}.draft")
    draft.write_bytes(content)
    os.replace(draft, place)


def _refuse_other(folder: str, known: dict[str, Any], about: dict[str, Any]) -> None:
    there, here = known["identity"], about["identity"]
    parts = [part for part in here if there.get(part) != here[part]]
    if known["members"] != about["members"] and "over" not in parts:
        parts.append("members")
    if parts:
        raise OtherStudy(
            f"store: {folder!r} holds another study, which differs in {', '.join(parts)}; give another "
            "folder, or delete this one"
        )
