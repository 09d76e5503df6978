"""Coupled systems: subsystems and the constraints between them.

    M_j(t, q_j) q_j″ = f_j(t, q_j, q_j′) − (own constraint forces) − B_j λ
    0 = g(t, q_1, …, q_N)                                   D_j = ∂g/∂q_j,  B_j = D_jᵀ

The linear form (1) of Wang, Hou & Modnak states the constraint on the acceleration level, Σ D_j x_j″ = d, and
its B_j may be any matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from holonome.arguments import checked, shown
from holonome.coupling.black_box import BlackBox
from holonome.coupling.constraints import Coupling, CouplingJacobians, LinearCoupling, PositionCoupling
from holonome.coupling.joined import join
from holonome.coupling.linear_form import linear_form
from holonome.errors import ModelError
from holonome.problem.system import System


class CoupledSystem:
    """Subsystems and the constraints between them.

    Parameters
    ----------
    subsystems : dict of System or BlackBox
        The subsystems by name; a sequence gets the names x, y, z, or x1, x2, … if there are more.
    coupling : callable
        Returns the residuals of one or more constraints.  Its arguments are names of subsystems, which stand
        for their coordinates, and optionally ``t`` and ``p``.
    parameters : dict, optional
        Numbers and arrays that the coupling sees as ``p.name``.
    constraint_names : sequence of str, optional
        Names of the rows of the coupling.
    name : str, optional
        A name for messages.

    Examples
    --------
    Two masses on a rod of length 1:

    >>> import numpy as np, holonome as hn
    >>> bead = hn.System(np.eye(2), [0.0, -9.81], lambda q: q[1], names=["x", "y"])
    >>> bob = hn.System(np.eye(2), [0.0, -9.81], names=["x", "y"])
    >>> rod = lambda bead, bob: (bead - bob) @ (bead - bob) - 1
    >>> crane = hn.CoupledSystem({"bead": bead, "bob": bob}, rod)
    >>> crane.n, crane.m
    (4, 1)
    """

    def __init__(
        self,
        subsystems: Mapping[str, System | BlackBox] | Sequence[System | BlackBox],
        coupling: Callable,
        *,
        parameters: Mapping[str, Any] | None = None,
        constraint_names: Sequence[str] | None = None,
        name: str = "coupled system",
    ) -> None:
        self._set_subsystems(subsystems, name)
        if not callable(coupling):
            raise ModelError(
                f"coupling: {shown(coupling)} is not callable; give a function of any of "
                f"{', '.join(self.subsystems)}, t, p"
            )
        position_coupling = PositionCoupling(coupling, self.parts, parameters, constraint_names)
        self._coupling: PositionCoupling | LinearCoupling = position_coupling
        self.m = position_coupling.m
        self.constraint_names = position_coupling.system.constraint_names

    @classmethod
    def linear(
        cls,
        A: Sequence[Any],
        B: Sequence[Any] | None,
        C: Sequence[Any],
        D: Sequence[Any],
        r: Sequence[Any],
        d: Any = 0.0,
        *,
        names: Sequence[str] | None = None,
        name: str = "linear system",
    ) -> CoupledSystem:
        """The form (1) of the paper:  A_j x_j″ + B_j λ + C_j x_j = r_j,  Σ D_j x_j″ = d.

        Parameters
        ----------
        A, B, C, D, r : sequences
            One entry for each subsystem: an array, or a function of ``t`` that returns one.  ``B=None``
            stands for B_j = D_jᵀ.
        d : array or callable(t)
            One entry for each constraint.
        names : sequence of str, optional
            Names of the subsystems, by default x, y, ….
        name : str, optional
            A name for messages.

        Notes
        -----
        If all D_j and d are constant, the constraint is integrated, Σ D_j x_j = ½ d t² + c₁ t + c₀ with c₀
        and c₁ from the initial values, and a run satisfies this equation and its first derivative.
        Otherwise the constraint is imposed on the acceleration level only.

        Examples
        --------
        >>> import numpy as np, holonome as hn
        >>> two = hn.CoupledSystem.linear([1.0, 2.0], None, [4.0, 0.0], [1.0, -1.0], [0.0, 1.0])
        >>> two.n, two.m, list(two.subsystems)
        (2, 1, ['x', 'y'])
        """
        systems, coupling, m = linear_form(A, B, C, D, r, d)
        names = checked("names", names, ModelError)
        if names is not None and len(names) != len(systems):
            raise ModelError(f"names: {len(names)} names for {len(systems)} subsystems; give one for each")
        coupled = object.__new__(cls)
        coupled._set_subsystems(systems if names is None else dict(zip(names, systems, strict=True)), name)
        coupled.m = m
        coupled.constraint_names = [f"coupling[{i}]" for i in range(m)]
        coupled._coupling = coupling
        return coupled

    def _set_subsystems(
        self, subsystems: Mapping[str, System | BlackBox] | Sequence[System | BlackBox], name: str
    ) -> None:
        if not isinstance(subsystems, Mapping | Sequence) or isinstance(subsystems, str):
            raise TypeError(f"subsystems: {shown(subsystems)}; give a dict or a list of hn.System")
        if not isinstance(subsystems, Mapping):
            count = len(subsystems)
            default_names = "xyz" if count <= 3 else [f"x{i + 1}" for i in range(count)]
            subsystems = dict(zip(default_names, subsystems, strict=False))
        if len(subsystems) < 2:
            raise ModelError(f"subsystems: {len(subsystems)} given; a coupled system has at least two")
        for key, subsystem in subsystems.items():
            _check_subsystem(key, subsystem)
        self.name = checked("name", name, ModelError)
        self.subsystems = dict(subsystems)
        ends = np.cumsum([0, *[subsystem.n for subsystem in self.subsystems.values()]])
        self.parts = {
            key: slice(int(first), int(end))
            for key, (first, end) in zip(self.subsystems, pairwise(ends), strict=True)
        }
        self.n = int(ends[-1])

    def __repr__(self) -> str:
        rows = f"{self.m} coupling constraint{'s' * (self.m != 1)}"
        return f"CoupledSystem({self.name!r}: {', '.join(self.subsystems)}; {rows})"

    def at(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> Coupling:
        """The coupling at many points: ``t`` (points,), ``q`` and ``v`` (points × n)."""
        return self._coupling.at(t, q, v)

    def coupling_jacobians(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, a: np.ndarray, lam: np.ndarray
    ) -> CouplingJacobians:
        """Derivatives of the coupling forces and of the accelerations' constraint at many points."""
        return self._coupling.jacobians(t, q, v, a, lam)

    def starting_at(self, t: float, q: np.ndarray, v: np.ndarray) -> CoupledSystem:
        """The system of a run with this initial state, which fixes the constants of integration of a linear
        constraint.
        """
        if not isinstance(self._coupling, LinearCoupling):
            return self
        other = object.__new__(CoupledSystem)
        other.__dict__.update(self.__dict__)
        other._coupling = self._coupling.starting_at(t, q, v)
        return other

    def whole(self) -> System:
        """All subsystems and the coupling as one :class:`System`, to be solved in one piece:
        ``hn.solve(coupled.whole(), …)``.

        The rows of the coupling come first among its constraints.
        """
        if not isinstance(self._coupling, PositionCoupling):
            raise ModelError(
                "whole: a linear form, whose B_j may be any matrices, cannot be written as one System; give "
                "its coupling as a function"
            )
        systems: dict[str, System] = {}
        for key, subsystem in self.subsystems.items():
            if isinstance(subsystem, BlackBox):
                raise ModelError(
                    f"whole: {key!r} is a black box, so its equations are not known; use hn.solve_coupled"
                )
            systems[key] = subsystem
        return join(self._coupling.system, systems, self.parts, self.name)


def _check_subsystem(key: str, subsystem: Any) -> None:
    if not isinstance(subsystem, System | BlackBox):
        raise TypeError(f"subsystems[{key!r}]: {shown(subsystem)} is neither an hn.System nor an hn.BlackBox")
    if isinstance(subsystem, System) and (
        subsystem.states or subsystem.unknowns or subsystem.model.lam.numel() or subsystem.model.I.numel()
    ):
        raise ModelError(
            f"subsystems[{key!r}]: states, unknowns, invariants and forces that depend on lam are not "
            "supported in a coupled system; wrap it in an hn.BlackBox, or solve the whole with hn.solve"
        )
    if not str(key).isidentifier() or key in ("t", "p"):
        raise ModelError(
            f"subsystems: {key!r} cannot be the name of an argument of the coupling; choose another name"
        )
