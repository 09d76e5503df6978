"""Modes of a linearisation: frequencies, damping, shapes, and which bodies or coordinates move most."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg

from holonome.analysis.carried import Carried
from holonome.analysis.given import Place
from holonome.analysis.reduced import Tangent, deflated
from holonome.analysis.run_of import run_of
from holonome.analysis.stability import hessian_of
from holonome.arguments import checked
from holonome.dynamics.start import consistent_state
from holonome.errors import HolonomeError, ModelError
from holonome.locks import cached_property
from holonome.problem.system import System

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.analysis.linearisation import Linearization
    from holonome.animation import Animation
    from holonome.results.solution import Solution

_SHOWN, _REAL = 3, 1e-9
_FRAMES = 60


@dataclass(frozen=True, eq=False)
class Mode(Carried):
    """One mode, exp(λ t) times a shape.

    Attributes
    ----------
    eigenvalue : complex
        λ, in 1/s; of a pair that with the positive imaginary part.
    frequency : float
        In Hz, |λ|/2π of an oscillation, 0 of what does not oscillate.
    damping : float
        −Re λ/|λ|, negative where it grows.
    time_constant : float
        In which it decays (or, negative, grows) by e; infinite if neither.
    shape, velocities, states : complex arrays
        Deviations of positions, velocities and first-order states; the largest position is 1.

    Examples
    --------
    >>> import holonome as hn
    >>> example = hn.mechanisms.pendulum()
    >>> slow = hn.linearize(example, hn.equilibrium(example, [0.0, -1.0])).modes()[0]
    >>> round(slow.frequency, 6), slow.damping, slow.shape.real.round(6).tolist()
    (0.498488, 0.0, [1.0, 0.0])
    """

    system: System = field(repr=False)
    place: Place = field(repr=False)
    eigenvalue: complex
    shape: np.ndarray = field(repr=False)
    velocities: np.ndarray = field(repr=False)
    states: np.ndarray = field(repr=False)

    _kept = ("shares", "joints")

    @property
    def oscillates(self) -> bool:
        return abs(self.eigenvalue.imag) > _REAL * abs(self.eigenvalue)

    @property
    def frequency(self) -> float:
        return abs(self.eigenvalue) / (2 * np.pi) if self.oscillates else 0.0

    @property
    def damping(self) -> float:
        size = abs(self.eigenvalue)
        return -self.eigenvalue.real / size + 0.0 if size else 0.0

    @property
    def time_constant(self) -> float:
        return -1 / self.eigenvalue.real if self.eigenvalue.real else np.inf

    @cached_property
    def shares(self) -> dict[str, float]:
        """Shares in the kinetic energy, the largest first: of bodies, or of coordinates and states."""
        by_bodies = getattr(self.system, "shares", None)
        if by_bodies is not None:
            found = by_bodies(self.place.t, self.place.q, self.place.s, self.shape)
            if found:
                return dict(sorted(found.items(), key=lambda item: -item[1]))
        names, parts = list(self.system.names), np.zeros(0)
        if self.system.n:
            M = self.place.at(self.system).M if self.system.n <= 2000 else np.eye(self.system.n)
            parts = np.abs((np.conj(self.shape) * (M @ self.shape)).real)
        if not np.any(parts):
            names, parts = (
                names + list(self.system.states),
                np.abs(np.concatenate([self.shape, self.states])) ** 2,
            )
        total = float(np.sum(parts)) or 1.0
        found = {name: float(x) / total for name, x in zip(names, parts, strict=True)}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @cached_property
    def joints(self) -> dict[str, complex]:
        """Of a mechanism: how much the coordinates of joints change, the largest first."""
        turning = getattr(self.system, "turning", None)
        if turning is None:
            return {}
        found = turning(self.place.t, self.place.q, self.place.s, self.shape)
        return dict(sorted(found.items(), key=lambda item: -abs(item[1])))

    def run(self, amplitude: float | None = None, cycles: int = 1) -> Solution:
        """The mode as a motion, at constant size, on the constraints; a result like that of a run.

        Parameters
        ----------
        amplitude
            Of the coordinate that moves most; by default so that the motion can be seen.
        cycles
            How many oscillations.
        """
        cycles = checked("cycles", cycles)
        size = self._visible() if amplitude is None else checked("amplitude", amplitude)
        rate = abs(self.eigenvalue.imag) if self.oscillates else max(abs(self.eigenvalue), 1e-300)
        times = np.linspace(0, 2 * np.pi / rate * cycles, _FRAMES * cycles + 1)
        turns = np.exp(1j * rate * times)
        n = self.system.n
        y0 = np.concatenate([self.place.q, self.place.v, self.place.s])
        deviation = np.concatenate([self.shape, self.velocities, self.states])
        states = y0 + size * (turns[:, None] * deviation).real
        if self.system.m and n + self.system.m <= 700:
            for row in states:
                try:
                    row[:] = consistent_state(self.system, row.copy(), self.place.t, repair=True).state
                except HolonomeError:
                    raise ModelError(
                        f"amplitude: {size:.3g} leads where the mechanism cannot follow; give a smaller one"
                    ) from None
        told = (
            f"mode of {self.frequency:.4g} Hz" if self.oscillates else f"mode of {self.eigenvalue.real:.4g}/s"
        )
        return run_of(self.system, times, states, told)

    def _visible(self) -> float:
        """An amplitude that moves the mechanism by about a tenth of its size."""
        drawing, system = self.system.drawing, self.system
        reach = max(float(np.max(np.abs(self.place.q), initial=0.0)), 1e-3)
        if drawing is None:
            return 0.15 * reach
        p, here = system.parameters.namespace(system.parameters.flat), self.place
        small = 1e-4

        def points(by: float) -> np.ndarray:
            q = here.q + by * self.shape.real
            found = drawing.at(q[:, None], p, np.array([here.t]), here.s[:, None])
            return np.stack([xyz[:, 0] for xyz in found.values()])

        still = points(0.0)
        moved = np.max(np.abs(points(small) - still)) / small
        extent = float(np.max(np.ptp(still, axis=0))) or 1.0
        return 0.12 * extent / moved if moved > 0 else 0.15 * reach

    def animate(self, file: str | Path | None = None, *, amplitude: float | None = None) -> Animation:
        """The mode in motion: a page (.html) or a film (.gif, .mp4)."""
        from holonome.animation import animate

        run = self.run(amplitude, 2)
        return animate(run, file, title=f"{self.system.name.replace('_', ' ')}: {run.method}")

    @property
    def told(self) -> str:
        """What moves most, in words."""
        found = [f"{name} {100 * x:.0f}%" for name, x in self.shares.items() if x > 0.005][:_SHOWN]
        joints = [name for name, x in self.joints.items() if abs(x) > 0][:2]
        return ", ".join(found) + (f"; joints {', '.join(joints)}" if joints else "")


class Modes(tuple[Mode, ...]):
    """Modes, slowest first; a tuple that prints as a table.

    Attributes
    ----------
    neutral : int
        Number of eigenvalues that are zero, which are not listed.

    Examples
    --------
    >>> import holonome as hn
    >>> example = hn.mechanisms.double_pendulum()
    >>> rest = hn.equilibrium(example, [0.0, -1.0, 0.0, -2.0])
    >>> modes = hn.linearize(example, rest).modes()
    >>> len(modes), modes.neutral, [round(mode.frequency, 4) for mode in modes]
    (2, 0, [0.3815, 0.9211])
    """

    neutral: int
    about: str

    def __new__(cls, modes: Any, neutral: int, about: str) -> Modes:
        found = super().__new__(cls, modes)
        found.neutral, found.about = neutral, about
        return found

    def __reduce__(self) -> Any:
        return Modes, (tuple(self), self.neutral, self.about)

    @property
    def frequencies(self) -> np.ndarray:
        """In Hz."""
        return np.array([mode.frequency for mode in self])

    @property
    def eigenvalues(self) -> np.ndarray:
        return np.array([mode.eigenvalue for mode in self])

    def plot(self, axes: Axes | None = None, file: str | Path | None = None) -> Axes:
        """The eigenvalues in the complex plane."""
        from holonome.analysis.pictures import plot_eigenvalues

        return plot_eigenvalues(self.eigenvalues, axes, file)

    def __str__(self) -> str:
        lines = [f"modes of {self.about}", "  #           Hz   damping  what moves most"]
        for k, mode in enumerate(self, 1):
            told = f"{mode.frequency:12.6f}  {100 * mode.damping:7.3f}%"
            if not mode.oscillates:
                what = "decays" if mode.eigenvalue.real < 0 else "grows"
                told = f"{what} in {abs(mode.time_constant):.4g} s".rjust(22)
            lines.append(f"{k:3d} {told}  {mode.told}")
        if self.neutral:
            lines.append(
                f"  and {self.neutral} eigenvalue{'s' * (self.neutral > 1)} zero: free to move or to stay"
            )
        return "\n".join(lines)


def modes(lin: Linearization, count: int | None, near: float) -> Modes:
    """The modes of a linearisation."""
    if count is not None:
        count = checked("count", count)
    near = checked("near", near)
    about = f"{lin.system.name} about {'its ' + lin.kind if lin.kind != 'state' else 'a state'}"
    if lin.large:
        found, neutral = _of_large(lin, 10 if count is None else count, near), 0
    else:
        found, neutral = _of_small(lin)
    found.sort(key=lambda mode: abs(abs(mode.eigenvalue) - 2 * np.pi * near))
    chosen = found[:count]
    return Modes(sorted(chosen, key=lambda mode: abs(mode.eigenvalue)), neutral, about)


def _of_small(lin: Linearization) -> tuple[list[Mode], int]:
    reduced, at, k = lin.reduced, lin.reduced.tangent, len(lin.system.states)
    second = reduced.second_order if lin.kind == "equilibrium" else None
    if second is not None and not np.any(second[1]) and hessian_of(reduced) is not None:
        return _undamped(lin, at, second)
    accurate, zeros, _ = deflated(reduced.A)
    values, vectors, *_ = scipy.linalg.eig(reduced.A)
    found, left = [], list(range(values.size))
    for value in sorted(accurate, key=lambda x: -abs(x)):
        nearest = min(left, key=lambda j: abs(values[j] - value))
        left.remove(nearest)
        if value.imag >= 0:
            found.append(_mode(lin, complex(value), *at.deviations(vectors[:, nearest], k)))
    return found, sum(zeros)


def _undamped(lin: Linearization, at: Tangent, matrices: Any) -> tuple[list[Mode], int]:
    """Of conservative forces without damping: exactly real shapes and frequencies."""
    M, _, K = matrices
    squares, Y = scipy.linalg.eigh((K + K.T) / 2, (M + M.T) / 2)
    size = float(np.max(np.abs(squares), initial=0.0))
    found, neutral = [], 0
    for square, y in zip(squares, Y.T, strict=True):
        if abs(square) <= 1e-13 * size or size == 0:
            neutral += 2
            continue
        roots = [1j * np.sqrt(square)] if square > 0 else [np.sqrt(-square), -np.sqrt(-square)]
        shape = at.Tq @ y
        found += [_mode(lin, complex(root), shape, root * shape, np.zeros(0)) for root in roots]
    return found, neutral


def _of_large(lin: Linearization, count: int, near: float) -> list[Mode]:
    n, k = lin.system.n, len(lin.system.states)
    values, vectors = lin.pencil.modes(count, near)
    found = []
    for value, x in zip(values, vectors.T, strict=True):
        if value.imag < -1e-9 * abs(value) or len(found) == count:
            continue
        if abs(value.real) < 1e-9 * abs(value):
            value = 1j * value.imag
        found.append(_mode(lin, complex(value), x[:n], x[n : 2 * n], x[2 * n : 2 * n + k]))
    return found


def _mode(lin: Linearization, value: complex, xi: Any, zeta: Any, sigma: Any) -> Mode:
    """A mode whose largest position is one."""
    parts = [np.asarray(part, complex) for part in (xi, zeta, sigma)]
    for part in parts:
        if part.size and np.max(np.abs(part)) > 0:
            scale = part[int(np.argmax(np.abs(part)))]
            parts = [x / scale for x in parts]
            break
    sigma = parts[2] if parts[2].size else np.zeros(len(lin.system.states), complex)
    return Mode(lin.system, lin.place, value, parts[0], parts[1], sigma)
