"""The pieces of a run with interruptions, and what they are as arrays of numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from holonome.dynamics.modes import CLOSED, OPEN, SLIDE, STICK, ModeSystem, contact_data, mode_of
from holonome.dynamics.switched import HELD_AT, SwitchedSystem, switched
from holonome.problem.system import System

_STATUSES = (OPEN, CLOSED, STICK, SLIDE)


class Piece(NamedTuple):
    """A part of a run between two interruptions."""

    begin: int
    """Its first point."""
    system: System
    """The system with the parameters and inputs of this part."""
    solved: System
    """The system that was solved: the same one, or with the constraints of closed contacts."""


def as_arrays(pieces: Sequence[Piece]) -> dict[str, np.ndarray]:
    """First points, parameters with inputs, and what contacts do, followed by the numbers of the mode."""
    if not pieces:
        return {}
    arrays = {
        "piece_begins": np.array([piece.begin for piece in pieces], dtype=float),
        "piece_values": np.array([piece.system.parameters.flat for piece in pieces]),
    }
    if any(isinstance(_switched(piece.solved), SwitchedSystem) for piece in pieces):
        arrays["piece_switched"] = np.array([_switches(piece) for piece in pieces])
    if pieces[0].system.contacts:
        arrays["piece_modes"] = np.array([_numbers(piece.solved) for piece in pieces], dtype=float)
    return arrays


def _switched(solved: System) -> System:
    """What was solved, without its contacts."""
    return solved.base if isinstance(solved, ModeSystem) else solved


def _switches(piece: Piece) -> np.ndarray:
    """Whether each constraint holds, and at which values."""
    solved, m, g = _switched(piece.solved), piece.system.m, piece.system.model.position_rows
    holds, held_at = np.ones(m), np.zeros(g)
    if isinstance(solved, SwitchedSystem):
        holds[list(solved.released_rows)], held_at = 0.0, np.asarray(piece.solved.parameters[HELD_AT])
    return np.append(holds, held_at)


def _numbers(mode: System) -> list[float]:
    assert isinstance(mode, ModeSystem)
    return [*map(_STATUSES.index, mode.statuses), *mode.data]


def from_arrays(arrays: Mapping[str, np.ndarray], system: System, points: int) -> tuple[Piece, ...]:
    """Pieces of a run of this system; ValueError if these are no such arrays."""
    parts = ("begins", "values", "modes", "switched")
    begins, values, modes, switches = (arrays.get(f"piece_{name}") for name in parts)
    if begins is None and values is None and modes is None and switches is None:
        return ()
    if begins is None or values is None or (modes is None) == bool(system.contacts):
        raise ValueError("arrays of pieces are missing")
    rising = bool(np.all(np.diff(begins, prepend=-1.0) > 0) and np.all(begins <= points))
    if values.shape != (begins.size, system.parameters.size) or not rising or (begins.size and begins[0]):
        raise ValueError("wrong pieces")
    if modes is not None and not _are_modes(modes, begins.size, len(system.contacts)):
        raise ValueError("wrong contacts")
    m, g = system.m, system.model.position_rows
    if switches is not None and (
        switches.shape != (begins.size, m + g)
        or not np.all(np.isfinite(switches))
        or not np.all(np.isin(switches[:, :m], (0, 1)))
    ):
        raise ValueError("wrong switches")
    pieces, known = [], {}
    for k, (begin, row) in enumerate(zip(begins, values, strict=True)):
        one = known.setdefault(row.tobytes(), None) or system.with_values(row)
        known[row.tobytes()] = one
        solved = one
        if switches is not None:
            solved = switched(one, np.flatnonzero(switches[k, :m] == 0).tolist(), switches[k, m:])
        pieces.append(Piece(int(begin), one, solved if modes is None else _mode(solved, modes[k])))
    return tuple(pieces)


def _are_modes(modes: np.ndarray, pieces: int, contacts: int) -> bool:
    return (
        modes.shape == (pieces, contacts + contact_data(contacts).size)
        and bool(np.all(np.isin(modes[:, :contacts], np.arange(len(_STATUSES)))))
        and bool(np.all(np.isfinite(modes)))
    )


def _mode(system: System, row: np.ndarray) -> ModeSystem:
    statuses = tuple(_STATUSES[int(what)] for what in row[: len(system.contacts)])
    return mode_of(system, statuses, row[len(statuses) :])
