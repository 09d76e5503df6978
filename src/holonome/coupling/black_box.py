"""Subsystems that hide their equations: a function advances them over a window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from holonome.arguments import checked, shown
from holonome.errors import ModelError
from holonome.problem.checks import names_or_number


class WindowSolver(Protocol):
    """Anything that advances a subsystem over a window under a given coupling force: another program, a
    measured response, ``scipy.integrate.solve_ivp``.

    It is called many times for the same window with different forces, always with the same initial state, so
    it must not keep a state of its own.

    Examples
    --------
    A mass that moves freely under the coupling force, by the midpoint rule over the whole window:

    >>> import holonome as hn
    >>> def free_mass(t, q, v, force):
    ...     a, s = force((t[0] + t[-1]) / 2), t - t[0]
    ...     return [q + s * v + s**2 / 2 * a], [v + s * a]
    >>> hn.BlackBox(free_mass, n=1)
    BlackBox('black box', n=1)
    """

    def __call__(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, force: Callable[[float], np.ndarray]
    ) -> Sequence[np.ndarray]:
        """The motion at the times ``t``.

        Parameters
        ----------
        t : (points,) array
            Times at which the motion is wanted; ``t[0]`` is the beginning of the window, ``t[-1]`` its end.
        q, v : (n,) arrays
            Positions and velocities at ``t[0]``.
        force : callable
            ``force(t)`` returns the n generalised coupling forces, to be added to the subsystem's own.

        Returns
        -------
        q, v, and optionally a : (n, points) arrays
            Positions, velocities and accelerations; without accelerations, the velocities are differentiated.
        """
        ...


class BlackBox:
    """A subsystem that hides its equations behind a :class:`WindowSolver`.

    Its mobility, the acceleration per unit force, is measured by a few trial calls at the beginning of a run,
    and again where the iteration becomes slow.

    Parameters
    ----------
    solver : WindowSolver
        ``solver(t, q, v, force)`` returns the motion at the times ``t``.
    names : sequence of str, optional
        Names of the coordinates.
    n : int, optional
        Number of coordinates, if no names are given.
    name : str, optional
        A name for messages.

    Examples
    --------
    A mass on a spring, whose motion is known in closed form if the force is constant in a window:

    >>> import numpy as np, holonome as hn
    >>> def oscillator(t, q, v, force):
    ...     s, rest = t - t[0], force((t[0] + t[-1]) / 2)
    ...     return [rest + (q - rest) * np.cos(s) + v * np.sin(s)], [-(q - rest) * np.sin(s) + v * np.cos(s)]
    >>> box = hn.BlackBox(oscillator, names=["x"])
    >>> box.n
    1
    """

    def __init__(
        self,
        solver: WindowSolver,
        *,
        names: Sequence[str] | None = None,
        n: int | None = None,
        name: str = "black box",
    ) -> None:
        if not callable(solver):
            raise TypeError(
                f"solver: {shown(solver)} is not callable; give a function (t, q, v, force) that returns the "
                "motion at the times t"
            )
        self.solver = solver
        self.name = checked("name", name, ModelError)
        self.names = names_or_number(names, n, "coordinates", "q")
        self.n = len(self.names)
        self.m = 0

    def __repr__(self) -> str:
        return f"BlackBox({self.name!r}, n={self.n})"
