"""What a continuation finds: a branch of equilibria over a parameter, with its special points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from holonome.analysis.carried import Carried
from holonome.analysis.pinned import equilibrium_at, pinned
from holonome.analysis.problem import Problem
from holonome.analysis.reduced import deflated
from holonome.arguments import checked
from holonome.errors import HolonomeError
from holonome.locks import cached_property
from holonome.problem.system import System

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.analysis.equilibrium import Equilibrium

FOLD, BRANCH, HOPF = "fold", "branch point", "Hopf point"


@dataclass(frozen=True, eq=False)
class BranchPoint:
    """A fold, a branch point or a Hopf point.

    Attributes
    ----------
    kind : str
        "fold", "branch point" or "Hopf point".
    value : float
        Of the parameter.
    q, s : arrays
        Positions and first-order states there.
    index : float
        Where on the branch, counted in its points.
    frequency : float
        At a Hopf point, that of the oscillation that begins there, in Hz; elsewhere zero.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> arch = hn.System(
    ...     1.0, lambda q, p: q - q**3 - p.load, parameters={"load": 0.0}, names=["x"]
    ... )
    >>> fold = hn.equilibrium(arch, [-1.0]).follow("load", (0.0, -1.0)).folds[0]
    >>> fold.kind, abs(fold.value + 2 / 27**0.5) < 1e-9
    ('fold', True)
    """

    kind: str
    value: float
    q: np.ndarray
    s: np.ndarray
    index: float
    _X: np.ndarray = field(repr=False)
    frequency: float = 0.0


@dataclass(frozen=True, eq=False)
class Branch(Carried):
    """Equilibria over a parameter: result of ``equilibrium.follow(...)``.

    Attributes
    ----------
    values : (points,) array
        Of the parameter.
    q, v, s, lam : arrays, (…, points)
    folds, branch_points, hopf_points : tuples of BranchPoint
        Where the branch turns back, where others cross it, and where an oscillation begins: a pair of
        eigenvalues crosses the imaginary axis.
    others : list of Branch
        The branches that begin at branch points.
    ended : str
        Why the branch ends.
    stable : (points,) array of bool
        Whether no deviation grows.

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> hoop = hn.System(
    ...     1.0, lambda q, p: (p.w2 * np.cos(q) - 9.81) * np.sin(q), parameters={"w2": 5.0}, names=["theta"]
    ... )
    >>> branch = hn.equilibrium(hoop, [0.0]).follow("w2", (5.0, 20.0))
    >>> bool(branch.stable[0]), bool(branch.stable[-1]), branch.others[0].stable[1:].all().item()
    (True, False, True)
    """

    system: System
    name: str
    values: np.ndarray
    folds: tuple[BranchPoint, ...]
    branch_points: tuple[BranchPoint, ...]
    others: tuple[Branch, ...]
    ended: str
    _problem: Problem = field(repr=False)
    _X: np.ndarray = field(repr=False)  # (points, unknowns)

    _kept = ("eigenvalues", "hopf_points")

    def _part(self, name: str) -> np.ndarray:
        return self._X[:, self._problem.layout[name]].T

    @property
    def q(self) -> np.ndarray:
        return self._part("q")

    @property
    def v(self) -> np.ndarray:
        return self._part("v") if self._problem.moving else np.zeros_like(self.q)

    @property
    def s(self) -> np.ndarray:
        return self._part("s")

    @property
    def lam(self) -> np.ndarray:
        return self._part("lam")

    @property
    def everything(self) -> list[Branch]:
        """All branches, this one first."""
        return [self, *(part for other in self.others for part in other.everything)]

    @cached_property
    def eigenvalues(self) -> list[np.ndarray]:
        """Of the linearisation at each point, without zeros."""
        from holonome.analysis.stability import matrix_at

        found = []
        for k in range(self.values.size):
            try:
                found.append(deflated(matrix_at(self[k]).A)[0])
            except HolonomeError:
                found.append(np.full(1, np.nan, complex))
        return found

    @cached_property
    def stable(self) -> np.ndarray:
        return np.array(
            [not np.any(x.real > 1e-7 * np.max(np.abs(x), initial=0.0)) for x in self.eigenvalues], bool
        )

    @cached_property
    def hopf_points(self) -> tuple[BranchPoint, ...]:
        from holonome.analysis.hopf import hopf_points

        return hopf_points(self)

    @property
    def stretches(self) -> Iterator[tuple[int, int, bool]]:
        """Beginning, end and stability of parts of one kind; they share their ends."""
        begin = 0
        for k in range(1, self.values.size + 1):
            if k == self.values.size or self.stable[k] != self.stable[begin]:
                yield begin, min(k + 1, self.values.size), bool(self.stable[begin])
                begin = k

    def __len__(self) -> int:
        return self.values.size

    def __getitem__(self, point: int) -> Equilibrium:
        """The equilibrium at a point."""
        return equilibrium_at(self._problem, self._X[point])

    def at(self, value: float) -> list[Equilibrium]:
        """All equilibria at a value of the parameter, on this branch and the others."""
        value = checked("amplitude", value)
        found = []
        for part in self.everything:
            p = part.values - value
            for k in np.flatnonzero((p[:-1] * p[1:] < 0) | (p[:-1] == 0)):
                share = p[k] / (p[k] - p[k + 1]) if p[k] != p[k + 1] else 0.0
                there = pinned(part._problem, part._X[k] + share * (part._X[k + 1] - part._X[k]), value)
                if there is not None:
                    found.append(equilibrium_at(part._problem, there))
            if p.size and p[-1] == 0:
                found.append(part[-1])
        return found

    def quantity(self, what: str) -> np.ndarray:
        """A coordinate, state, or quantity of a joint or body by name, at each point."""
        return self._measured(what, self._X)

    def quantity_at(self, what: str, point: BranchPoint) -> float:
        return float(self._measured(what, point._X[np.newaxis])[0])

    def _measured(self, what: str, X: np.ndarray) -> np.ndarray:
        found = self.system.measured(what) if what not in self.system.parameters else None
        if what == self.name:
            return X[:, -1]
        if found is None or not found:
            names = ", ".join([*self.system.names, *self.system.states])
            raise ValueError(f"quantity: there is no {what!r}; there are {names}, or joints and bodies")
        symbols = self.system.symbols
        inputs = [symbols[name] for name in ("t", "q", "v", "p", "s")]
        function = ca.Function("quantity", inputs, [ca.densify(next(iter(found.values())))])
        values = []
        for x in X:
            here = self._problem.place(x)
            p = self._problem.system_at(x).parameters.flat
            values.append(float(function(here.t, here.q, here.v, p, here.s)))
        return np.array(values)

    def plot(self, what: str | None = None, axes: Axes | None = None, file: str | Path | None = None) -> Axes:
        """The diagram: a quantity over the parameter, solid where it is stable."""
        from holonome.analysis.pictures import plot_branches

        if what is None:
            names = [*self.system.names, *self.system.states]
            ranges = np.ptp(np.hstack([np.vstack([part.q, part.s]) for part in self.everything]), axis=1)
            what = names[int(np.argmax(ranges))]
        return plot_branches(self, what, axes, file)

    def __str__(self) -> str:
        many = len(self.everything)
        lines = [
            f"equilibria of {self.system.name} over {self.name} = {self.values[0]:.6g} … "
            f"{self.values[-1]:.6g}: {self.values.size} points; {self.ended}"
        ]
        for part in self.everything:
            for point in (*part.folds, *part.branch_points, *part.hopf_points):
                lines.append(f"  {point.kind} at {self.name} = {point.value:.9g}")
                lines[-1] += f", {point.frequency:.6g} Hz" if point.frequency else ""
        if many > 1:
            lines.append(f"  {many - 1} other branch{'es' * (many > 2)}")
        return "\n".join(lines)
