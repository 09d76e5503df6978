"""Which faces of a drawing bound solids, so that those that are turned away need not be drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np


def normal(corners: np.ndarray) -> np.ndarray:
    """Twice the area of a polygon along its normal, after Newell; (corners, 3)."""
    around = corners - corners[0]
    return np.sum(np.cross(around, np.roll(around, -1, axis=0)), axis=0)


def outward(faces: Sequence[Sequence[str]], places: Mapping[str, np.ndarray]) -> list[int]:
    """For each face 1 if its normal points out of the solid that it bounds, −1 if inward, and 0 if the faces
    that it is connected with are not closed or do not all turn the same way.
    """
    owner: dict[str, str] = {}

    def root(name: str) -> str:
        while owner.setdefault(name, name) != name:
            name = owner[name]
        return name

    for face in faces:
        for name in face[1:]:
            owner[root(name)] = root(face[0])
    solids: dict[str, list[int]] = {}
    for k, face in enumerate(faces):
        solids.setdefault(root(face[0]), []).append(k)
    found = [0] * len(faces)
    for numbers in solids.values():
        sign = _sign([faces[k] for k in numbers], places)
        for k in numbers:
            found[k] = sign
    return found


def _sign(faces: Sequence[Sequence[str]], places: Mapping[str, np.ndarray]) -> int:
    edges = [(a, b) for face in faces for a, b in zip(face, (*face[1:], face[0]), strict=True)]
    there = set(edges)
    if len(faces) < 4 or len(there) < len(edges) or any((b, a) not in there for a, b in edges):
        return 0
    middle = np.mean([places[name] for face in faces for name in face], axis=0)
    corners = [np.array([places[name] for name in face]) - middle for face in faces]
    return int(np.sign(sum(float(face.mean(axis=0) @ normal(face)) for face in corners)))
