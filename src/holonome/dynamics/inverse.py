"""Inverse dynamics: the inputs, or the generalised forces, that wanted accelerations need:

    M a = f(u) − Gᵀ λ,    G a + γ = 0,

for u and λ; by Newton's method, which takes one step where forces are linear in the inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holonome.arguments import NUMBERS, read, shown
from holonome.dynamics.state import State
from holonome.errors import ModelError

_ITERATIONS, _SMALL = 30, 1e-12


def inverse_dynamics(state: State, a: Any, inputs: Sequence[str] | None) -> Any:
    """Inputs by name; of a system without inputs, generalised forces."""
    system = state.system
    wanted = read(NUMBERS, "a", a)
    if wanted.ndim not in (1, 2) or len(wanted) != system.n:
        raise ValueError(f"a: shape {wanted.shape}; give ({system.n},), or ({system.n}, {state.size})")
    rows = wanted.reshape(system.n, -1).T
    if len(rows) not in (1, state.size):
        raise ValueError(f"a: {len(rows)} columns, but {state.size} states; give one for each")
    rows = np.broadcast_to(rows, (state.size, system.n))
    _require_possible(state, rows)
    if not system.inputs and inputs is None:
        return state.shaped(_missing_forces(state, rows), (system.n,))
    names = _names(system, inputs)
    found = [_inputs_at(one, row, names) for one, row in zip(state, rows, strict=True)]
    shapes = [np.shape(system.parameters[name]) for name in names]
    return {
        name: state.shaped(np.array([one[name] for one in found]), shape)
        for name, shape in zip(names, shapes, strict=True)
    }


def _names(system: Any, inputs: Sequence[str] | None) -> list[str]:
    names = list(system.inputs) if inputs is None else [inputs] if isinstance(inputs, str) else list(inputs)
    unknown = [name for name in names if name not in system.inputs]
    if unknown or not names:
        there = ", ".join(system.inputs) or "none; give the system inputs={...}"
        raise ValueError(f"inputs: {shown(unknown[0] if unknown else inputs)}; the inputs are {there}")
    return names


def _require_possible(state: State, a: np.ndarray) -> None:
    """The constraints must allow these accelerations."""
    G, gamma = state.rows("G"), state.rows("gamma")
    left = np.einsum("kij,kj->ki", G, a) + gamma
    size = np.einsum("kij,kj->ki", np.abs(G), np.abs(a)) + np.abs(gamma)
    bad = np.abs(left) > 1e-6 * np.max(size, axis=1, initial=0.0, keepdims=True) + 1e-300
    if bad.any():
        k, row = np.argwhere(bad)[0]
        raise ValueError(
            f"a: the constraint {state.system.constraint_names[row]} does not allow these accelerations at "
            f"t = {state.times[k]:.6g}: G a + γ = {left[k, row]:.3g}"
        )


def _missing_forces(state: State, a: np.ndarray) -> np.ndarray:
    """M a − f, less what the constraints can exert."""
    missing = np.einsum("kij,kj->ki", state.rows("M"), a) - state.rows("f")
    for force, G in zip(missing, state.rows("G"), strict=True):
        if len(G):
            force -= G.T @ np.linalg.lstsq(G.T, force, rcond=_SMALL)[0]
    return missing


def _inputs_at(state: State, a: np.ndarray, names: list[str]) -> dict[str, Any]:
    """Of one state."""
    system, n = state.system, state.system.n
    for _ in range(_ITERATIONS):
        missing = state.M @ a - state.f
        B = np.hstack([state.derivative("f", by=name).reshape(n, -1) for name in names])
        both = np.hstack([B, -state.G.T])
        x = np.linalg.lstsq(both, missing, rcond=_SMALL)[0]
        left = np.abs(missing - both @ x)
        if np.max(left) > 1e-8 * (np.max(np.abs(missing)) + np.max(np.abs(state.f))):
            raise ModelError(
                f"inputs: {', '.join(names)} cannot give these accelerations at t = {state.t:.6g}: "
                f"{np.max(left):.3g} is lacking at {system.names[int(np.argmax(left))]!r}"
            )
        values = {}
        for name in names:
            old = np.asarray(system.parameters[name])
            values[name], x = old + x[: old.size].reshape(old.shape), x[old.size :]
        before, system = system, system.with_parameters(**values)
        moved = max(np.max(np.abs(values[name] - before.parameters[name])) for name in names)
        if moved <= 1e-10 * max(np.max(np.abs(value)) for value in values.values()) + 1e-300:
            return values
        state = state.of(system)
    raise ModelError(f"inputs: {', '.join(names)} were not found in {_ITERATIONS} iterations")
