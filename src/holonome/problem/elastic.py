"""Elastic elements: springs, bushings and beams, whose forces methods may see apart from all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from holonome.arguments import NUMBERS, read, shown
from holonome.equations.model import Elements
from holonome.errors import ModelError
from holonome.problem.parameters import Parameters
from holonome.problem.user_function import UserFunction


@dataclass(frozen=True)
class Elastic:
    """An element that answers a deformation c with the force −c_qᵀ (K c + D c′).

    Every method treats it as the force that it is.  ``motion="smooth"`` needs stiff forces in this form: it
    takes K c + D c′ as an unknown of its own, so that its steps do not depend on the stiffness.

    Parameters
    ----------
    deformation : callable(t, q, p)
        What is deformed, a scalar or a vector; zero where the element is free of load.  NumPy code that can
        be traced.
    stiffness : number, array or callable(p)
        K: a number for all rows, a vector (one for each), or a symmetric matrix without negative eigenvalues.
    damping : number, array or callable(p), optional
        D, in the same forms; c′ = c_q v + c_t.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> bushing = hn.Elastic(
    ...     lambda q: np.array([q[0] - np.sin(q[2]), q[1] + np.cos(q[2])]),
    ...     stiffness=lambda p: p.k,
    ...     damping=10.0,
    ... )
    >>> stiffness = {"k": np.array([1e8, 1e6])}
    >>> rod = hn.System([1.0, 1.0, 0.1], [0.0, -9.81, 0.0], elastic=bushing, parameters=stiffness)
    >>> rod.n, rod.m
    (3, 0)
    """

    deformation: Callable
    stiffness: Any
    damping: Any = 0.0

    def __post_init__(self) -> None:
        if not callable(self.deformation):
            raise ModelError(f"deformation: {shown(self.deformation)} is not callable; give a function of q")
        for part in ("stiffness", "damping"):
            if not callable(getattr(self, part)):
                read(NUMBERS, part, getattr(self, part), ModelError)


def as_elements(elastic: Any) -> dict[str, Elastic]:
    """The elements by the name that messages give them."""
    if elastic is None:
        return {}
    if isinstance(elastic, Elastic):
        return {"elastic": elastic}
    if not isinstance(elastic, list | tuple) or not all(isinstance(element, Elastic) for element in elastic):
        raise ModelError(f"elastic: {shown(elastic)}; give an hn.Elastic or a list of them")
    return {f"elastic[{i}]": element for i, element in enumerate(elastic)}


def functions(elements: Mapping[str, Elastic], n: int, parameters: Parameters) -> dict[str, UserFunction]:
    """What the user gave for each element, by role."""
    return {
        f"{name}.{part}": UserFunction(f"{name}.{part}", getattr(element, part), n, parameters)
        for name, element in elements.items()
        for part in ("deformation", "stiffness", "damping")
    }


def rebuilt(parts: Mapping[str, Callable]) -> Elastic | list[Elastic] | None:
    """Elements from their parts by role, as they come back from a pickle."""
    names = dict.fromkeys(role.rpartition(".")[0] for role in parts)
    elements = [
        Elastic(*(parts[f"{name}.{part}"] for part in ("deformation", "stiffness", "damping")))
        for name in names
    ]
    return elements[0] if list(names) == ["elastic"] else elements or None


def combined(
    names: Sequence[str], expressions: Mapping[str, ca.SX], given: Mapping[str, UserFunction], rest: ca.SX
) -> Elements:
    """All elements as one: deformations stacked, stiffness and damping as diagonal blocks."""
    c = [expressions[f"{name}.deformation"] for name in names]
    K, D = (
        [
            _matrix(given[f"{name}.{part}"], expressions[f"{name}.{part}"], rows.numel())
            for name, rows in zip(names, c, strict=True)
        ]
        for part in ("stiffness", "damping")
    )
    return Elements(ca.vertcat(*c), ca.diagcat(*K), ca.diagcat(*D), rest)


class Matrices:
    """K and D of all elements as functions of the parameters, and which parameters they depend on."""

    def __init__(self, elements: Elements, p: ca.SX) -> None:
        both = ca.veccat(elements.K, elements.D)
        self.places = np.unique(ca.jacobian_sparsity(both, p).get_triplet()[1]).astype(int)
        self.at = ca.Function("matrices", [p], [ca.densify(elements.K), ca.densify(elements.D)])


def check(
    names: Sequence[str], matrices: Matrices, expressions: Mapping[str, ca.SX], parameters: Parameters
) -> None:
    """K and D must be symmetric, finite and without negative eigenvalues for the values of the parameters."""
    values = [np.array(value) for value in matrices.at(parameters.flat)]
    first = 0
    for name in names:
        rows = slice(first, first + expressions[f"{name}.deformation"].numel())
        first = rows.stop
        for part, value in zip(("stiffness", "damping"), values, strict=True):
            block = value[rows, rows]
            size = np.max(np.abs(block), initial=0.0)
            if not np.isfinite(size):
                raise ModelError(f"{name}.{part}: {block.tolist()} is not finite")
            if np.max(np.abs(block - block.T), initial=0.0) > 1e-12 * size:
                raise ModelError(f"{name}.{part}: must be symmetric; this is {block.tolist()}")
            if np.min(np.linalg.eigvalsh(block), initial=0.0) < -1e-12 * size:
                raise ModelError(f"{name}.{part}: must have no negative eigenvalue; this is {block.tolist()}")


def _matrix(function: UserFunction, flat: ca.SX, rows: int) -> ca.SX:
    """A stiffness or damping in full, from a number, a diagonal or a matrix."""
    shape = function.shape if function.shape is not None else (flat.numel(),)
    if flat.numel() == 1:
        return ca.SX(ca.DM.eye(rows)) * flat
    if shape == (rows,):
        return ca.diag(flat)
    if shape == (rows, rows) or (function.shape is None and flat.numel() == rows**2):
        return ca.reshape(flat, rows, rows).T
    raise ModelError(
        f"{function.role} has shape {shape}; its deformation has {rows} row{'s' * (rows != 1)}, so expected "
        f"a number, ({rows},) or ({rows}, {rows})"
    )
