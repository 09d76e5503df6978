"""Elimination orders with little fill, computed from the sparsity pattern alone.

There are two algorithms, for two purposes.  `markowitz` updates the pattern with its fill and so counts rows
and columns exactly: for emitted code of up to 60 unknowns.  `minimum_degree` bounds the degrees of a
symmetric graph without forming the fill: for any size.

Neither replaces the other without loss.  On pendulum, slider-crank, four-bar, Andrews' mechanism and a chain
of five links, in all formulations, both leave the same number of entries; but with `minimum_degree` the
emitted factorization has up to 2 % more instructions (index 1) or 1 % fewer (GGL), and other last digits.  On
chains `markowitz` saves 4 % of the entries and 8 % of the multiplications, but takes 80 ms instead of 10 for
1000 unknowns, and its time grows with their square.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

_CROWDED, _UNUSUAL = 40, 10
"""An unknown with more than `_CROWDED` neighbours, and `_UNUSUAL` times more than the median, is eliminated
last: earlier, it would connect all of them with each other.
"""


def minimum_degree(neighbours: list[set[int]], stages: Sequence[int]) -> tuple[list[int], list[int]]:
    """Elimination order of a graph, and the degree of each node when it is eliminated: the next node is
    always one of least degree among those without a neighbour of an earlier stage.

    Degrees are bounds as in AMD: a node's neighbours are those of the graph and those in its elements, the
    sets of nodes that eliminations connected.  ``neighbours`` is overwritten.
    """
    stage = _crowded_last(neighbours, stages)
    waiting = [[i for i in around if stage[i] > stage[k]] for k, around in enumerate(neighbours)]
    before = [sum(stage[j] < stage[i] for j in around) for i, around in enumerate(neighbours)]
    degree = [len(around) for around in neighbours]
    member_of = [set() for _ in neighbours]
    elements = {}
    heap = [(degree[i], i) for i in range(len(neighbours)) if not before[i]]
    heapq.heapify(heap)
    order, degrees = [], []
    done = [False] * len(neighbours)
    while heap:
        bound, k = heapq.heappop(heap)
        if done[k] or bound != degree[k]:
            continue
        absorbed = member_of[k]
        around = neighbours[k].union(*[elements.pop(e) for e in absorbed]) - {k}
        elements[k], done[k] = around, True
        order.append(k)
        degrees.append(len(around))
        outside = _outside(around, absorbed, member_of, elements)
        for i in waiting[k]:
            before[i] -= 1
        for i in around:
            neighbours[i] -= around
            neighbours[i].discard(k)
            degree[i] = min(
                len(neighbours[i]) + len(around) - 1 + sum([outside[e] for e in member_of[i]]),
                degree[i] + len(around) - 1,
            )
            member_of[i].add(k)
            if not before[i]:
                heapq.heappush(heap, (degree[i], i))
        neighbours[k] = set()
    return order, degrees


def _outside(
    around: set[int], absorbed: set[int], member_of: list[set[int]], elements: dict[int, set[int]]
) -> dict[int, int]:
    """How many nodes each other element has outside a new one; absorbed elements are removed first."""
    outside: dict[int, int] = {}
    for i in around:
        member_of[i] -= absorbed
        for e in member_of[i]:
            outside[e] = outside.get(e, len(elements[e])) - 1
    return outside


def _crowded_last(neighbours: list[set[int]], stages: Sequence[int]) -> list[int]:
    """The stages, with one more for unknowns that have unusually many neighbours."""
    last, usual = max(stages, default=0) + 1, sorted(map(len, neighbours))[len(neighbours) // 2]
    return [
        last if len(around) > max(_CROWDED, _UNUSUAL * usual) else own
        for around, own in zip(neighbours, stages, strict=True)
    ]


def markowitz(rows: list[set[int]], groups: Sequence[range]) -> list[int]:
    """Elimination order of an unsymmetric pattern, given by rows: one group of unknowns after the other,
    within each always the diagonal pivot with the smallest Markowitz count, the product of the numbers of
    other entries in its row and column.
    """
    size = len(rows)
    pattern = [set(row) for row in rows]
    columns: list[set[int]] = [{i for i in range(size) if j in pattern[i]} for j in range(size)]
    order: list[int] = []

    def count(i: int) -> int:
        return (len(pattern[i]) - 1) * (len(columns[i]) - 1) if i in pattern[i] else size**2

    for group in groups:
        left = set(group)
        while left:
            k = min(left, key=lambda i: (count(i), i))
            left.remove(k)
            order.append(k)
            for i in columns[k] - {k}:
                pattern[i] |= pattern[k]
                pattern[i].discard(k)
                for j in pattern[k] - {k}:
                    columns[j].add(i)
            for j in pattern[k] - {k}:
                columns[j].discard(k)
            columns[k] = set()
    return order
