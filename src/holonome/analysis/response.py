"""The frequency response of a linearisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.analysis.reduced import deflated
from holonome.arguments import NUMBERS, read, shown
from holonome.errors import ModelError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from holonome.analysis.linearisation import Linearization

_POINTS, _WIDTH = 400, 3.0


@dataclass(frozen=True, eq=False)
class Response:
    """Outputs for harmonic inputs of size one: result of ``lin.response()``.

    Attributes
    ----------
    frequencies : (points,) array
        In Hz.
    values : complex array, (outputs, inputs, points)
        C (iω − A)⁻¹ B + D.
    inputs, outputs : tuples of names

    Examples
    --------
    >>> import numpy as np, holonome as hn
    >>> spring = hn.System(
    ...     2.0, lambda q, v, u: u.push - 8 * q - 0.4 * v, inputs={"push": 0.0}, names=["x"]
    ... )
    >>> response = hn.linearize(spring, [0.0], outputs=["x"]).response([0.0, 1 / np.pi])
    >>> response.of("x", "push").round(6).tolist()
    [(0.125+0j), -1.25j]
    """

    frequencies: np.ndarray
    values: np.ndarray = field(repr=False)
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = "system"

    def of(self, output: str, input: str | None = None) -> np.ndarray:  # noqa: A002 - the word of the field
        """One curve, by the names of its output and input."""
        if input is None and len(self.inputs) == 1:
            input = self.inputs[0]  # noqa: A001
        for argument, name, there in (("output", output, self.outputs), ("input", input, self.inputs)):
            if name not in there:
                raise ValueError(f"{argument}: there is no {name!r}; there are {', '.join(there)}")
        return self.values[self.outputs.index(output), self.inputs.index(str(input))]

    @property
    def magnitude(self) -> np.ndarray:
        return np.abs(self.values)

    @property
    def phase(self) -> np.ndarray:
        """In degrees, continuous along the frequencies."""
        return np.degrees(np.unwrap(np.angle(self.values), axis=-1))

    def plot(self, axes: Any = None, file: str | Path | None = None) -> Axes:
        """A Bode plot: magnitude and phase over frequency."""
        from holonome.analysis.pictures import plot_response

        return plot_response(self, axes, file)

    def __str__(self) -> str:
        low, high = self.frequencies[0], self.frequencies[-1]
        lines = [f"response of {self.name} from {low:.4g} to {high:.4g} Hz, {self.frequencies.size} points"]
        for i, output in enumerate(self.outputs):
            for j, given in enumerate(self.inputs):
                size = np.abs(self.values[i, j])
                k = int(np.argmax(size))
                lines.append(
                    f"  {output} by {given}: {size[0]:.4g} at {low:.4g} Hz, at most {size[k]:.4g} at "
                    f"{self.frequencies[k]:.6g} Hz"
                )
        return "\n".join(lines)


def response(lin: Linearization, frequencies: Any, between: Any = None) -> Response:
    """The frequency response at given frequencies, or at those that tell most."""
    if not lin.inputs:
        raise ModelError("inputs: there are none; give the system inputs={…}, or linearize(inputs=[…])")
    if lin.kind == "state":
        raise ModelError(
            "response: only about an equilibrium or a steady motion; find one with hn.equilibrium"
        )
    if frequencies is None:
        frequencies = _telling(lin, None if between is None else _range(between))
    elif between is not None:
        raise ValueError("between: frequencies are given as well; give one of them")
    found = np.atleast_1d(read(NUMBERS, "frequencies", frequencies))
    if found.ndim != 1 or not found.size or np.any(found < 0):
        raise ValueError("frequencies: give a one-dimensional array of frequencies in Hz, none negative")
    values = _sparse(lin, found) if lin.large else _dense(lin, found)
    return Response(found, values, lin.inputs, lin.outputs if not lin.large else _names(lin), lin.system.name)


def _dense(lin: Linearization, frequencies: np.ndarray) -> np.ndarray:
    A, B, C, D = lin.A, lin.B, lin.C, lin.D
    eye = np.eye(len(A))
    found = np.zeros((*D.shape, frequencies.size), complex)
    for k, frequency in enumerate(frequencies):
        try:
            found[..., k] = C @ np.linalg.solve(2j * np.pi * frequency * eye - A, B.astype(complex)) + D
        except np.linalg.LinAlgError:  # at the frequency of an undamped mode
            found[..., k] = np.inf
    return found


def _sparse(lin: Linearization, frequencies: np.ndarray) -> np.ndarray:
    pencil, rows = lin.pencil, _rows(lin)
    found = np.zeros((rows.shape[0], pencil.B.shape[1], frequencies.size), complex)
    for k, frequency in enumerate(frequencies):
        found[..., k] = rows @ pencil.solve(2j * np.pi * frequency, pencil.B)
    return found


def _rows(lin: Linearization) -> np.ndarray:
    """Outputs as rows of (q, v, s, λ)."""
    if lin._measured is None:
        raise ModelError("outputs: of a large system name those that are wanted, linearize(outputs=[…])")
    by_q, by_v, by_s, by_a, by_lam, by_p = lin._measured.by
    if np.any(by_a) or np.any(by_p):
        raise ModelError("outputs: of a large system they cannot depend on accelerations or inputs")
    return np.hstack([by_q, by_v, by_s, by_lam])


def _names(lin: Linearization) -> tuple[str, ...]:
    assert lin._measured is not None
    return lin._measured.names


def _range(between: Any) -> tuple[float, float]:
    found = read(NUMBERS, "between", between)
    if found.shape != (2,) or not 0 < found[0] < found[1]:
        raise ValueError(f"between: {shown(between)}; give two positive frequencies in increasing order")
    return float(found[0]), float(found[1])


def _telling(lin: Linearization, between: tuple[float, float] | None) -> np.ndarray:
    """Around all modes, or in a range, and closely spaced at modes with little damping."""
    if lin.large:
        if between is None:
            raise ModelError("frequencies: give them, as this system is too large to look at all its modes")
        return np.geomspace(*between, _POINTS)
    values = deflated(lin.A)[0]
    sizes = np.abs(values[np.abs(values) > 0]) / (2 * np.pi)
    if between is not None:
        low, high = between
    elif sizes.size:
        low, high = 0.1 * np.min(sizes), 10 * np.max(sizes)
    else:
        low, high = 0.01, 100.0
    parts = [np.geomspace(low, high, _POINTS)]
    for value in values[values.imag > 0]:
        width = max(abs(value.real), 1e-3 * abs(value))
        near = value.imag + width * np.sinh(np.linspace(-_WIDTH, _WIDTH, 41))
        parts.append(near[near > 0] / (2 * np.pi))
    whole = np.unique(np.concatenate(parts))
    return whole[(whole >= low) & (whole <= high)]
