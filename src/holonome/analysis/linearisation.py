"""hn.linearize: small deviations from a state as a linear system, on the manifold of the constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from holonome.analysis.balance import Balance
from holonome.analysis.carried import Carried
from holonome.analysis.given import Given, Place, given, name_list, place, require_traced_constraints
from holonome.analysis.outputs import Outputs, outputs_at
from holonome.analysis.reduced import Reduced, reduced_anywhere, reduced_steady
from holonome.analysis.regular import require_regular
from holonome.analysis.symmetry import steady
from holonome.errors import ModelError
from holonome.locks import cached_property
from holonome.problem.system import System

if TYPE_CHECKING:
    from holonome.analysis.modes import Modes
    from holonome.analysis.pencil import Pencil
    from holonome.analysis.response import Response

LARGEST = 700
"""Coordinates and constraints up to which matrices of independent coordinates are formed."""


@dataclass(frozen=True, eq=False)
class Linearization(Carried):
    """Small deviations from a state:  z′ = A z + B u (+ rates),  y = C z + D u.

    z are independent coordinates, their velocities and first-order states, all others following by the
    constraints; u are changes of the inputs, y those of the outputs.

    Attributes
    ----------
    A, B, C, D : arrays
    names, inputs, outputs : tuples
        What the entries of z, u and y are.
    kind : str
        "equilibrium", "steady motion" or "state".
    rates : array
        z′ at the state itself; zero but at a "state".
    M, K, damping : arrays
        Of a mechanism without rolling wheels and states of its own, at an equilibrium or in a steady motion:
        M y″ + damping y′ + K y = B₂ u in the independent coordinates.
    system : System

    Examples
    --------
    >>> import holonome as hn
    >>> spring = hn.System(
    ...     2.0, lambda q, v, u: u.push - 8 * q - 0.4 * v, inputs={"push": 0.0}, names=["x"]
    ... )
    >>> lin = hn.linearize(spring, [0.0], outputs=["x"])
    >>> lin.A.tolist(), lin.B.tolist(), lin.C.tolist()
    ([[0.0, 1.0], [-4.0, -0.2]], [[0.0], [0.5]], [[1.0, 0.0]])
    >>> print(lin.modes())  # doctest: +ELLIPSIS
    modes of system about its equilibrium
      #           Hz   damping  what moves most
      1     0.318310    5.000%  x 100%
    """

    system: System
    place: Place = field(repr=False)
    kind: str
    inputs: tuple[str, ...]
    lam: np.ndarray = field(repr=False)
    X: np.ndarray = field(repr=False)
    _names_of_inputs: tuple[str, ...] = field(repr=False)
    _measured: Outputs | None = field(repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | ({} if self.large else {"reduced": self.reduced})

    @property
    def large(self) -> bool:
        """Whether only sparse matrices are formed."""
        return self.system.n + self.system.m > LARGEST

    @cached_property
    def reduced(self) -> Reduced:
        """The matrices in independent coordinates."""
        if self.large:
            raise ModelError(
                f"linearize: {self.system.name} has {self.system.n} coordinates, too many for full matrices; "
                "use lin.modes(count), lin.response(frequencies), or the sparse matrices of lin.pencil"
            )
        if self.kind == "state":
            return reduced_anywhere(self.system, self.place, self._names_of_inputs)
        return reduced_steady(self.system, self.place, self.lam, self.X, self._names_of_inputs)

    @cached_property
    def pencil(self) -> Pencil:
        """E x′ = J x + B u in all coordinates and multipliers, sparse."""
        from holonome.analysis.pencil import Pencil

        if self.kind == "state":
            raise ModelError("pencil: only at an equilibrium; find one with hn.equilibrium")
        return Pencil.at(self.system, self.place, self.lam, self._names_of_inputs, self.X)

    @property
    def A(self) -> np.ndarray:
        return self.reduced.A

    @property
    def B(self) -> np.ndarray:
        return self.reduced.B

    @property
    def rates(self) -> np.ndarray:
        return self.reduced.rates

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.reduced.tangent.names(self.system))

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.names if self._measured is None else self._measured.names

    @cached_property
    def _both(self) -> tuple[np.ndarray, np.ndarray]:
        """C and D."""
        found, size, width = self.reduced, self.reduced.tangent.size, self.B.shape[1]
        if self._measured is None:
            return np.eye(size), np.zeros((size, width))
        xi, zeta, sigma = found.tangent.deviations(np.eye(size), len(self.system.states))
        by_q, by_v, by_s, by_a, by_lam, by_p = self._measured.by
        C = by_q @ xi + by_v @ zeta + by_s @ sigma + by_a @ found.a[0] + by_lam @ found.lam[0]
        places = [self.system.parameters.place(name) for name in self._names_of_inputs]
        direct = np.hstack([np.zeros((len(by_p), 0)), *(by_p[:, part] for part in places)])
        return C, direct + by_a @ found.a[1] + by_lam @ found.lam[1]

    @property
    def C(self) -> np.ndarray:
        return self._both[0]

    @property
    def D(self) -> np.ndarray:
        return self._both[1]

    @cached_property
    def second_order(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """M, damping and K."""
        found = self.reduced.second_order
        if found is None:
            reason = (
                "it exists at equilibria only"
                if self.kind == "state"
                else "first-order states, velocity constraints or forces of multipliers do not fit"
            )
            raise ModelError(f"second order: there is no form M y″ + C y′ + K y here, {reason}; use lin.A")
        return found

    @property
    def M(self) -> np.ndarray:
        return self.second_order[0]

    @property
    def damping(self) -> np.ndarray:
        return self.second_order[1]

    @property
    def K(self) -> np.ndarray:
        return self.second_order[2]

    def modes(self, count: int | None = None, *, near: float = 0.0) -> Modes:
        """Frequencies, damping and shapes of the modes.

        Parameters
        ----------
        count
            How many, those nearest to ``near`` first; by default all, of a large system ten.
        near
            A frequency in Hz.
        """
        from holonome.analysis.modes import modes

        return modes(self, count, near)

    def response(self, frequencies: Any = None, *, between: tuple[float, float] | None = None) -> Response:
        """The response of the outputs to harmonic inputs.

        Parameters
        ----------
        frequencies
            In Hz; by default such that peaks are not missed, from a tenth of the slowest to ten times the
            fastest mode.
        between
            The lowest and the highest frequency, in place of ``frequencies``.
        """
        from holonome.analysis.response import response

        return response(self, frequencies, between)

    def to_scipy(self) -> Any:
        """A ``scipy.signal.StateSpace``, with ``.step()``, ``.impulse()``, ``.output(u, t)``."""
        from scipy.signal import StateSpace

        self._require_inputs()
        return StateSpace(self.A, self.B, self.C, self.D)

    def to_control(self) -> Any:
        """A ``control.StateSpace`` of python-control, with names."""
        try:
            from control import ss  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ModuleNotFoundError(
                "lin.to_control() needs python-control, which is not installed: pip install control"
            ) from None
        self._require_inputs()
        names = [name.replace("'", "_dot").replace(".", "_") for name in self.names]
        clean = [[x.replace(".", "_") for x in part] for part in (self.inputs, self.outputs)]
        return ss(self.A, self.B, self.C, self.D, states=names, inputs=clean[0], outputs=clean[1])

    def _require_inputs(self) -> None:
        if not self.inputs:
            raise ModelError("inputs: there are none; give the system inputs={…}, or linearize(inputs=[…])")

    def __str__(self) -> str:
        system = self.system
        if self.large:
            return (
                f"linearisation of {system.name} about its {self.kind}, in sparse matrices\n"
                f"  {system.n} coordinates, {system.m} constraints"
            )
        many = f"{len(self.A)} state{'s' * (len(self.A) != 1)}"
        lines = [f"linearisation of {system.name} about its {self.kind}: {many}"]
        if self.kind == "state":
            worst = int(np.argmax(np.abs(self.rates))) if self.rates.size else 0
            told = f"{self.names[worst]} changes at the rate {self.rates[worst]:.4g}" if self.names else ""
            lines[0] = f"linearisation of {system.name} about a state that is no equilibrium: {many}"
            if not np.any(self.rates):
                told = "it is in balance at this moment, but time enters the equations"
            lines.append(f"  {told}; what A says holds for short times only")
        for what, names in (("states", self.names), ("inputs", self.inputs), ("outputs", self.outputs)):
            shown = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
            lines.append(f"  {what}: {shown or 'none'}")
        return "\n".join(lines)


def linearize(
    system: Any,
    state: Any = None,
    *,
    start: Any = None,
    inputs: Sequence[str] | str | None = None,
    outputs: Sequence[Any] | str | None = None,
) -> Linearization:
    """Small deviations from a state as a linear system.

    Parameters
    ----------
    system : System, Mechanism or Example
    state : Equilibrium, State, Start, Solution, or array
        Where: an equilibrium, ``system.at(...)``, the last point of a run, or positions at rest; (q, v) and
        (q, v, s) with velocities and first-order states.
    start : dict
        The same by name, at rest.
    inputs : names
        Inputs and parameters whose changes are u; by default all inputs.
    outputs : names or functions
        "x", "x'", "A.angle", "A.rate", "body.P", "body.velocity", or functions of any of t, q, v, s, a,
        lam, p and u.  By default all entries of z.

    Returns
    -------
    Linearization
        Matrices, modes, frequency response.

    Examples
    --------
    >>> import holonome as hn
    >>> pendulum = hn.mechanisms.pendulum().system
    >>> lin = hn.linearize(pendulum, hn.equilibrium(pendulum, [0.1, -1.0]))
    >>> lin.names, lin.M.round(6).tolist(), lin.K.round(6).tolist()
    (('x', "x'"), [[1.0]], [[9.81]])
    """
    subject = given(system)
    here, lam = _where(subject, state, start)
    own = subject.system
    if hasattr(state, "free") and state.free:
        own = own.with_parameters(**state.free)
    names = list(own.inputs) if inputs is None else name_list("inputs", inputs)
    for name in names:
        if name not in own.parameters:
            there = ", ".join(own.parameters) or "none"
            raise ValueError(f"inputs: {name!r} is no input or parameter; there are {there}")
    _require_on_manifold(own, here)
    if own.n + own.m <= LARGEST:
        require_regular(own, here)
    X = _steady_at(own, here, state)
    kind = "state" if X is None else "steady motion" if np.any(here.v) else "equilibrium"
    if X is not None:
        require_traced_constraints(own, "a linearisation")
        lam = _multipliers(own, here) if lam is None else lam
    elif own.n + own.m > LARGEST:
        raise ModelError(f"state: not an equilibrium, and {own.name} is too large for others")
    else:
        lam = here.at(own).lam if own.m else np.zeros(0)
    labels = [label for name in names for label in _labels(own, name)]
    turning = np.zeros((own.n, own.n)) if X is None else X
    measured = None
    if outputs is not None:
        a = here.at(own).a if own.n else np.zeros(0)
        measured = outputs_at(own, outputs, here, a, lam)
    return Linearization(own, here, kind, tuple(labels), lam, turning, tuple(names), measured)


def _labels(system: System, name: str) -> list[str]:
    size = np.size(system.parameters[name])
    return [name] if np.ndim(system.parameters[name]) == 0 else [f"{name}[{k}]" for k in range(size)]


def _where(subject: Given, state: Any, start: Any) -> tuple[Place, np.ndarray | None]:
    here = place(subject, state, start, 0.0, argument="state")
    lam = getattr(state, "lam", None) if hasattr(type(state), "stability") else None
    return here, lam


def _require_on_manifold(system: System, here: Place) -> None:
    if not system.m:
        return
    g, rates, size = Balance(system).violated(system, here)
    reach = max(float(np.max(np.abs(here.q), initial=0.0)), float(np.max(np.abs(here.v), initial=0.0)), 1e-3)
    for what, values in (("g", g), ("velocities", rates)):
        if values.size and np.max(np.abs(values)) > 1e-5 * max(size, 1e-300) * reach:
            worst = system.constraint_names[int(np.argmax(np.abs(values)))]
            raise ValueError(
                f"state: it violates {worst} ({what}: {np.max(np.abs(values)):.3g}); make it consistent with "
                "hn.consistent, or give an equilibrium"
            )


def _steady_at(system: System, here: Place, state: Any) -> np.ndarray | None:
    if hasattr(type(state), "stability") and not state.moving:
        return np.zeros((system.n, system.n))
    if system.n + system.m > LARGEST:
        return np.zeros((system.n, system.n)) if _rests(system, here) else None
    return steady(system, here)


def _rests(system: System, here: Place) -> bool:
    a, lam = (part[0] for part in here.at(system)._motion)
    found = Balance(system).at(system, here, 0 * a, lam)
    forces = abs(found.block("balance", "lam")) @ np.abs(lam) + np.abs(found.of("balance"))
    return not np.any(here.v) and bool(np.max(np.abs(found.of("balance"))) <= 1e-7 * np.max(forces))


def _multipliers(system: System, here: Place) -> np.ndarray:
    return here.at(system)._motion[1][0] if system.m else np.zeros(0)
