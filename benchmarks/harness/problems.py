"""The problems: a system of holonome, a start, an end, and the exact state there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

import holonome as hn
import smooth_motion

ALL, SMOOTH = "all", "smooth"


@dataclass(frozen=True)
class Problem:
    """What every code is asked for: the state (q, v) at the end, or, if only the ``smooth`` motion is wanted,
    where that is then.
    """

    name: str
    title: str
    system: hn.System
    end: float
    q0: np.ndarray
    v0: np.ndarray
    motion: str = ALL
    exact: Callable[[float], np.ndarray] | None = None
    links: int = 0
    stiff: bool = False

    @property
    def state0(self) -> np.ndarray:
        return np.concatenate([self.q0, self.v0])

    def reference(self) -> np.ndarray:
        """State at the end, positions alone for smooth motion: exact, or by our method of order 8 at the
        tightest tolerance that it takes.
        """
        if self.exact is not None:
            return self.exact(self.end)
        method = "radau" if self.stiff else "dop853"
        for tolerance in (
            (1e-12,) if self.stiff or self.system.unknowns else (1e-14, 3e-14, 1e-13)
        ):  # rounding may stop the tightest one at a singular position
            solution = hn.solve(
                self.system, (0, self.end), self.q0, self.v0, method=method, rtol=tolerance, atol=tolerance
            )
            if solution.success:
                return np.concatenate([solution.q[:, -1], solution.v[:, -1]])
        raise RuntimeError(f"{self.name}: no reference, {solution.message}")

    def error(self, state: np.ndarray, reference: np.ndarray) -> float:
        """Largest |y − y_ref| / (1 + |y_ref|)."""
        return float(np.max(np.abs(state[: reference.size] - reference) / (1 + np.abs(reference))))


def _mechanism(
    name: str, title: str, end: float | None = None, links: int = 0, **parameters
) -> Callable[[], Problem]:
    def make() -> Problem:
        mechanism = hn.mechanisms.get(name, **parameters | ({"links": links} if links else {}))
        exact = None if mechanism.exact is None else (lambda t: np.concatenate(mechanism.exact(t)[:2]))
        return Problem(
            name,
            title,
            mechanism.system,
            end or mechanism.t_span[1],
            mechanism.q0,
            mechanism.v0,
            exact=exact,
            links=links,
        )

    return make


def _duplicated() -> Problem:
    base = hn.mechanisms.pendulum()
    p = base.system.parameters
    system = hn.System(
        np.eye(2),
        [0.0, -p["gravity"] if "gravity" in p else -9.81],
        lambda q: np.array([(q @ q - 1) / 2, (q @ q - 1) / 2]),
        names=["x", "y"],
        name="duplicated",
    )
    return Problem(
        "duplicated",
        "Pendulum, its constraint stated twice",
        system,
        10.0,
        base.q0,
        base.v0,
        exact=lambda t: np.concatenate(base.exact(t)[:2]),
    )


def _controlled() -> Problem:
    """A four-bar linkage whose crank a stiff controller turns: time constants of 2·10⁻⁷ and 10⁻¹ s."""
    base = hn.mechanisms.four_bar()

    def force(t, q, v):
        crank = 1e5 * (4.0 * t + np.pi / 2 - q[2]) + 1e4 * (4.0 - v[2])
        weights = -9.81 * np.array([0.0, 0.4, 0.0, 0.0, 0.9, 0.0, 0.0, 0.7, 0.0])
        return weights + np.array([0.0, 0.0, crank, *[0.0] * 6])

    def constraint(q):
        along = [
            length / 2 * np.array([np.cos(q[i]), np.sin(q[i])])
            for length, i in zip((0.4, 0.9, 0.7), (2, 5, 8), strict=True)
        ]
        a, b, c = q[0:2], q[3:5], q[6:8]
        ground = np.array([1.0, 0.0])
        return np.concatenate(
            [
                a - along[0],
                b - along[1] - a - along[0],
                b + along[1] - c - along[2],
                c - along[2] - ground,
            ]
        )

    system = hn.System(base.system.at(0, base.q0).M, force, constraint, name="controlled")
    start = hn.consistent(system, base.q0, base.v0)
    return Problem(
        "controlled",
        "Four-bar linkage with a stiff controller, 2 s",
        system,
        2.0,
        start.q,
        start.v,
        stiff=True,
    )


def _rod() -> Problem:
    """A rod that hangs in a stiff bushing, which turns with it."""

    def end(q):
        return np.array([q[0] - np.sin(q[2]) / 2, q[1] + np.cos(q[2]) / 2])

    elastic = hn.Elastic(end, stiffness=1e8, damping=1e4)
    system = hn.System(
        [1.0, 1.0, 1 / 12, 1.0, 1.0],
        [0.0, -9.81, 0.0, 0.0, -9.81],
        lambda q: np.array([q[3] - q[0] - np.sin(q[2]) / 2, q[4] - q[1] + np.cos(q[2]) / 2]),
        elastic=elastic,
        names=["x", "y", "angle", "tip_x", "tip_y"],
    )
    q0 = np.array([0.5, 0.0, np.pi / 2, 1.0, 0.0])
    return Problem(
        "bushing_pendulum",
        "Pendulum that hangs in a stiff bushing, 2 s",
        system,
        2.0,
        q0,
        np.zeros(5),
        stiff=True,
    )


def _slow(make: Callable[[float], smooth_motion.Problem], title: str, eps: float) -> Callable[[], Problem]:
    def build() -> Problem:
        slow = make(eps)
        return Problem(
            make.__name__,
            title,
            slow.system,
            slow.t_end,
            slow.q0,
            slow.v0,
            SMOOTH,
            exact=lambda t: slow.slow(np.array([t]))[:, 0],
        )

    return build


_MAKERS: dict[str, Callable[[], Problem]] = {
    "pendulum": _mechanism("pendulum", "Pendulum, 10 s"),
    "slider_crank": _mechanism("slider_crank_unequal", "Slider-crank, n = 6, m = 5, 10 s"),
    "andrews": _mechanism("andrews", "Andrews' squeezing mechanism, 0.03 s"),
    "four_bar": _mechanism("four_bar", "Four-bar linkage, 10 s"),
    "bushing": _mechanism("two_body_bushing", "Two bodies with a bushing, 1 s"),
    "bushing_pendulum": _rod,
    "controlled": _controlled,
    "wheelset": _mechanism("wheelset", "Wheel set, 1 s", end=1.0),
    "kepler": _mechanism("kepler", "Kepler's problem with two invariants, 5 revolutions"),
    "singular": _mechanism(
        "slider_crank", "Slider-crank with equal bars, through singular positions, 10 s", end=10.0
    ),
    "duplicated": _duplicated,
    **{
        f"spring_{eps:g}": _slow(smooth_motion.spring, f"Stiff spring, ε = {eps:g}, smooth motion", eps)
        for eps in (1e-4, 1e-6, 1e-8)
    },
    **{
        f"driven_{eps:g}": _slow(
            smooth_motion.driven, f"Driven point on a circle, ε = {eps:g}, smooth motion", eps
        )
        for eps in (1e-4, 1e-8)
    },
    "chain_10": _mechanism("chain", "Chain of 10 bars, 1 s", links=10),
    "chain_100": _mechanism("chain", "Chain of 100 bars, 0.2 s", end=0.2, links=100),
    "chain_1000": _mechanism("chain", "Chain of 1000 bars, 0.05 s", end=0.05, links=1000),
}
NAMES = list(_MAKERS)


@cache
def get(name: str) -> Problem:
    """One of `NAMES`."""
    return _MAKERS[name]()
