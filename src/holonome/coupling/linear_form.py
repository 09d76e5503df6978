"""Subsystems and coupling of the linear form (1) of Wang, Hou & Modnak:

A_j x_j″ + B_j λ + C_j x_j = r_j,      Σ D_j x_j″ = d.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holonome.coupling.constraints import LinearCoupling, at_time
from holonome.errors import ModelError
from holonome.problem.system import System


def linear_form(
    A: Sequence[Any],
    B: Sequence[Any] | None,
    C: Sequence[Any],
    D: Sequence[Any],
    r: Sequence[Any],
    d: Any,
) -> tuple[list[System], LinearCoupling, int]:
    """The subsystems, their coupling and the number of its rows."""
    count = len(A)
    for argument, given in {"B": B, "C": C, "D": D, "r": r}.items():
        if given is not None and len(given) != count:
            raise ModelError(
                f"{argument}: {len(given)} entries, but A has {count}; give one for each subsystem"
            )
    m = np.size(at_time(d, 0.0))
    systems = []
    D_checked = []
    B_checked = []
    for j in range(count):
        n = len(np.atleast_2d(at_time(A[j], 0.0)))
        A_j = _matrix(f"A[{j}]", A[j], (n, n))
        C_j = _matrix(f"C[{j}]", C[j], (n, n))
        r_j = _matrix(f"r[{j}]", r[j], (n,))
        D_j = _matrix(f"D[{j}]", D[j], (m, n))
        B_j = _transpose(D_j) if B is None else _matrix(f"B[{j}]", B[j], (n, m))
        if not callable(A_j) and np.allclose(A_j, A_j.T, rtol=1e-12, atol=0.0):
            systems.append(System(A_j, _LinearForce(None, C_j, r_j), n=n))
        else:  # a mass matrix is symmetric, so the equations are multiplied by A_j⁻¹
            systems.append(System(np.eye(n), _LinearForce(A_j, C_j, r_j), n=n))
            B_j = _solve(A_j, B_j)
        D_checked.append(D_j)
        B_checked.append(B_j)
    return systems, LinearCoupling(D_checked, B_checked, _matrix("d", d, (m,))), m


class _LinearForce:
    """The force r − C x, or A⁻¹ (r − C x)."""

    def __init__(self, A: Any, C: Any, r: Any) -> None:
        self.A = A
        self.C = C
        self.r = r

    def __call__(self, t, q):
        force = at_time(self.r, t) - at_time(self.C, t) @ q
        return force if self.A is None else np.linalg.solve(at_time(self.A, t), force)


def _matrix(argument: str, value: Any, shape: tuple[int, ...]) -> Any:
    """A constant array of this shape, or a function of t that returns one."""
    if callable(value):

        def reshaped(t):
            return np.reshape(np.asarray(value(t)), shape)

        _matrix(argument, value(0.0), shape)
        return reshaped
    try:
        array = np.array(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{argument}: {value!r} is not an array of real numbers") from None
    if array.size != np.prod(shape) or (array.ndim == 2 and len(shape) == 2 and array.shape != shape):
        raise ModelError(f"{argument}: shape {array.shape}; expected {shape}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"{argument}: contains entries that are not finite; give real numbers")
    return array.reshape(shape)


def _transpose(value: Any) -> Any:
    return (lambda t: value(t).T) if callable(value) else value.T


def _solve(A: Any, B: Any) -> Any:
    """A⁻¹ B."""
    if callable(A) or callable(B):
        return lambda t: np.linalg.solve(at_time(A, t), at_time(B, t))
    return np.linalg.solve(A, B)
