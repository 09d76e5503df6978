"""A differential-algebraic system F(t, x, x′, x″) = 0 as an ODE on a manifold: its equations differentiated
as often as their structure asks for, all of them but the last derivatives as invariants.

Where the matrix of the highest derivatives is singular although its pattern is not, as with capacitors
between two nodes, equations are replaced by combinations of each other in which these derivatives cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from holonome.equations.structure import NOWHERE, Structure, structure, unmatched
from holonome.errors import ModelError

_RANK = 1e-10
"""Pivots below this, of a matrix whose rows and columns are at most 1, are zero."""


@dataclass(frozen=True, eq=False)
class Variables:
    """Symbols of time, parameters, and of x and its derivatives, a column for each order."""

    names: tuple[str, ...]
    t: ca.SX
    p: ca.SX
    levels: list[ca.SX] = field(default_factory=list)

    def at(self, order: int) -> ca.SX:
        """The derivatives of x of this order."""
        while len(self.levels) <= order:
            self.levels.append(ca.SX.sym(f"x{len(self.levels)}", len(self.names)))
        return self.levels[order]

    def highest(self, expression: ca.SX) -> np.ndarray:
        """The order of the highest derivative of each variable in each row; `NOWHERE` where there is none."""
        found = np.full((expression.numel(), len(self.names)), NOWHERE)
        for order in range(len(self.levels)):
            rows, columns = ca.jacobian_sparsity(expression, self.at(order)).get_triplet()
            found[rows, columns] = order
        return found

    def rate(self, expression: ca.SX) -> ca.SX:
        """The total derivative of an expression."""
        found = ca.jacobian(expression, self.t)
        for order in range(int(np.max(self.highest(expression), initial=NOWHERE)) + 1):
            found += ca.jtimes(expression, self.at(order), self.at(order + 1))
        return found

    def leading(self, orders: Sequence[int]) -> ca.SX:
        """One derivative of each variable, of these orders."""
        return ca.vertcat(*(self.at(order)[j] for j, order in enumerate(orders)))


@dataclass(frozen=True, eq=False)
class Reduced:
    """What is left of a system of higher index.

    Attributes
    ----------
    found
        Offsets of the equations as they were solved.
    used
        The same with what was differentiated beyond that, so that every variable has a rate.
    combined
        In words, which equations were replaced by combinations.
    states
        (variable, order) of each state; the variables themselves come first.
    rate, invariant
        Rates of the states, and what must vanish.
    hidden
        Names of the rows of ``invariant``.
    second_order
        Variables of which second derivatives occur.
    matrix
        Of the highest derivatives; it must be regular.
    """

    found: Structure
    used: Structure
    combined: tuple[str, ...]
    states: tuple[tuple[int, int], ...]
    symbols: ca.SX
    rate: ca.SX
    invariant: ca.SX
    hidden: tuple[str, ...]
    second_order: tuple[int, ...]
    matrix: ca.SX


def reduced(equations: ca.SX, variables: Variables, values: np.ndarray) -> Reduced:
    """The ODE and the invariants of F = 0; ``values`` are those of the parameters."""
    stated = np.max(variables.highest(equations), axis=0)
    equations, combined = _without_cancellations(equations, variables, values)
    found = _structure(equations, variables)
    used = _used(equations, variables, found)
    tower = _differentiated(equations, variables, used.c)
    top = ca.vertcat(*(derivatives[-1] for derivatives in tower))
    leading = variables.leading(used.d)
    matrix = ca.jacobian(top, leading)
    rest = ca.substitute(top, leading, ca.SX.zeros(leading.numel()))
    solved = _block_solution(matrix, -rest)
    n = len(variables.names)
    states = tuple((j, order) for order in range(max(used.d)) for j in range(n) if order < used.d[j])
    rate = [solved[j] if order + 1 == used.d[j] else variables.at(order + 1)[j] for j, order in states]
    hidden = [expression for derivatives in tower for expression in derivatives[:-1]]
    return Reduced(
        found,
        used,
        combined,
        states,
        ca.vertcat(*(variables.at(order)[j] for j, order in states)),
        ca.densify(ca.vertcat(*rate)),
        ca.densify(ca.vertcat(*hidden)) if hidden else ca.SX(0, 1),
        tuple(f"equation[{i}]" + "′" * order for i, times in enumerate(used.c) for order in range(times)),
        tuple(j for j, order in enumerate(stated) if order > 1 and found.d[j] > 1),
        matrix,
    )


def _structure(equations: ca.SX, variables: Variables) -> Structure:
    signature = variables.highest(equations)
    rows, columns = unmatched(signature)
    if rows:
        raise ModelError(
            "f: structurally singular: nothing is left to determine "
            f"{_listed(columns, variables.names)}, and {_equations(rows)} "
            f"{'has' if len(rows) == 1 else 'have'} no variable of "
            f"{'its' if len(rows) == 1 else 'their'} own; an equation is missing, or one says what others say"
        )
    return structure(signature)


def _used(equations: ca.SX, variables: Variables, found: Structure) -> Structure:
    """Offsets with which every variable has a rate and the highest derivatives occur linearly."""
    signature = variables.highest(equations)
    least = list(found.c)
    while True:
        used = structure(signature, least)
        leading = variables.leading(used.d)
        curved = [
            i
            for i in range(equations.numel())
            if used.c[i] == 0 and ca.depends_on(ca.jacobian(equations[i], leading), leading)
        ]
        if not curved:
            return used
        least = [max(c, int(i in curved)) for i, c in enumerate(used.c)]


def _differentiated(equations: ca.SX, variables: Variables, c: Sequence[int]) -> list[list[ca.SX]]:
    """Each equation with its derivatives."""
    tower = []
    for i, times in enumerate(c):
        derivatives = [equations[i]]
        for _ in range(times):
            derivatives.append(variables.rate(derivatives[-1]))
        tower.append(derivatives)
    return tower


def _block_solution(matrix: ca.SX, column: ca.SX) -> ca.SX:
    """The solution of a linear system, block by block of its triangular form."""
    blocks, rows, columns, row_of, column_of, *_ = matrix.sparsity().btf()
    solution = ca.SX(matrix.size2(), 1)
    for b in range(blocks):
        mine, own = rows[row_of[b] : row_of[b + 1]], columns[column_of[b] : column_of[b + 1]]
        right = column[mine] - matrix[mine, :] @ solution
        block = matrix[mine, own]
        solution[own] = right / block if len(own) == 1 else ca.solve(ca.densify(block), ca.densify(right))
    return solution


def _without_cancellations(
    equations: ca.SX, variables: Variables, values: np.ndarray
) -> tuple[ca.SX, tuple[str, ...]]:
    """The equations with combinations in place of those whose highest derivatives are dependent."""
    told: list[str] = []
    for _ in range(10 * equations.numel()):
        found = _structure(equations, variables)
        top = ca.vertcat(*(row[-1] for row in _differentiated(equations, variables, found.c)))
        leading = variables.leading(found.d)
        matrix = ca.jacobian(top, leading)
        weights = _dependence(matrix, variables, values)
        if weights is None:
            return equations, tuple(told)
        _require_constant(matrix, weights, variables, values)
        equations, what = _combined(equations, variables, found, weights)
        told.append(what)
    raise ModelError("f: no end of dependent derivatives; an equation follows from the others")


def _combined(
    equations: ca.SX, variables: Variables, found: Structure, weights: np.ndarray
) -> tuple[ca.SX, str]:
    """The equation of fewest derivatives among those with a weight becomes the combination of all of them."""
    rows = np.flatnonzero(weights)
    target = min(rows, key=lambda i: (found.c[i], -i))
    lag = found.c[target]
    orders = [found.c[i] - lag for i in rows]
    towers = _differentiated(equations[rows.tolist()], variables, orders)
    total = sum(
        float(weights[i] / weights[target]) * tower[-1] for i, tower in zip(rows, towers, strict=True)
    )
    for j, order in enumerate(found.d):
        if order >= lag:
            total = ca.substitute(total, variables.at(order - lag)[j], ca.SX(0))
    parts = [f"equation[{i}]" + "′" * order for i, order in zip(rows, orders, strict=True)]
    replaced = ca.vertcat(equations)
    replaced[int(target)] = total
    return replaced, f"equation[{target}] by a combination of {', '.join(parts)}"


def _dependence(matrix: ca.SX, variables: Variables, values: np.ndarray) -> np.ndarray | None:
    """Weights with which the rows of a matrix cancel, few of them; None if it is regular somewhere."""
    arguments = [variables.t, variables.p, *variables.levels]
    function = ca.Function("leading", arguments, [matrix])
    random = np.random.default_rng(3)
    weights = None
    for scale in (1.0, -1.0, 0.1, 3.0, 1e-3, 30.0):
        levels = [scale * random.uniform(0.2, 0.9, level.numel()) for level in variables.levels]
        at = np.array(function(0.37 * abs(scale), values, *levels))
        if not np.all(np.isfinite(at)):
            continue
        weights = _cancelling(at)
        if weights is None:
            return None
    return weights


def _cancelling(matrix: np.ndarray) -> np.ndarray | None:
    """Weights of the rows whose combination vanishes; None if the matrix is regular."""
    rows = _scales(matrix, 1)
    scaled = matrix / rows[:, None]
    scaled = scaled / _scales(scaled, 0)
    size = len(scaled)
    left, pivots = scaled.T.copy(), []
    free = None
    for column in range(size):
        place = len(pivots)
        row = place + int(np.argmax(np.abs(left[place:, column])))
        if abs(left[row, column]) <= _RANK:
            free = column
            break
        left[[place, row]] = left[[row, place]]
        left[place] /= left[place, column]
        others = np.arange(size) != place
        left[others] -= np.outer(left[others, column], left[place])
        pivots.append(column)
    if free is None:
        return None
    weights = np.zeros(size)
    weights[free] = 1.0
    weights[pivots] = -left[: len(pivots), free]
    weights[np.abs(weights) < _RANK] = 0.0
    return weights / rows


def _scales(matrix: np.ndarray, axis: int) -> np.ndarray:
    largest = np.max(np.abs(matrix), axis=axis)
    return np.where(largest > 0, largest, 1.0)


def _require_constant(matrix: ca.SX, weights: np.ndarray, variables: Variables, values: np.ndarray) -> None:
    """Rows cancel with constant weights, or else what was found at one point is not true at others."""
    left = weights[None, :] @ matrix
    size = np.abs(weights)[None, :] @ ca.fabs(matrix)
    arguments = [variables.t, variables.p, *variables.levels]
    function = ca.Function("cancelled", arguments, [ca.densify(left), ca.densify(size)])
    random = np.random.default_rng(4)
    for _ in range(4):
        levels = [random.uniform(-0.9, 0.9, level.numel()) for level in variables.levels]
        p = values * random.uniform(0.5, 1.5, values.size)
        rest, whole = (np.array(x).ravel() for x in function(random.uniform(0, 2), p, *levels))
        if not np.all(np.abs(rest) <= 1e-8 * whole + 1e-300):
            raise ModelError(
                "f: the structural index is not the index: the matrix of the highest derivatives, "
                f"{', '.join(f'equation[{i}]' for i in np.flatnonzero(weights))}, is singular although its "
                "pattern is not, and the rows do not cancel with constant weights (numbers, whatever the "
                "state and the parameters); combine these equations by hand so that the derivatives cancel"
            )


def _equations(rows: Sequence[int]) -> str:
    return ", ".join(f"equation[{i}]" for i in rows)


def _listed(places: Sequence[int], names: Sequence[str]) -> str:
    return ", ".join(names[j] for j in places)
