"""Theorems 3.1 and 3.2."""

from __future__ import annotations

from typing import Any

import numpy as np

import holonome as hn
from holonome.papers.eich_1993.runs import GRAVITY, PAPER, method
from holonome.papers.figure import LOGARITHMIC, Curve, Figure, Panel
from holonome.papers.paper import Progress
from holonome.papers.verdict import Band, Claim
from holonome.plot import COLOURS

STEPS = 2.0 / 2 ** np.arange(5, 13)
ROUNDING = 1e-10
"""Errors below this are not used to measure an order."""


def guided(amplitude: float = 1.0) -> hn.System:
    """A linear system with a linear, time-variant invariant, (3.1) and (3.2): a point on springs and dampers,
    on a straight guide that is moved, unless the amplitude is zero.
    """
    return hn.System(
        np.eye(2),
        lambda t, q, v: np.array([-q[0] - 0.1 * v[0] + np.cos(2 * t), -3 * q[1] - 0.2 * v[1]]),
        lambda t, q, p: q[0] + 2 * q[1] - p.amplitude * np.sin(t),
        parameters={"amplitude": amplitude},
        names=["x", "y"],
        name="guided point",
    )


def largest_errors(system: hn.System, q0: Any, v0: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Constant steps, and the largest error of the projected k-step method on 0 ≤ t ≤ 2 with each; steps for
    which Newton's method fails are left out.
    """
    steps, errors = [], []
    for h in STEPS:
        run = hn.solve(
            system,
            (0, 2),
            q0,
            v0,
            method=method("yes", hn.BDF(max_order=k, order=k, step=h, newton_tolerance=1e-6)),
            rtol=1e-10,
            atol=1e-12,
        )
        if run.success:
            exact = hn.solve(system, (0, 2), q0, v0, method="dop853", rtol=1e-14, atol=1e-14, t_eval=run.t)
            steps.append(h)
            errors.append(np.max(np.abs(run.y - exact.y)))
    return np.array(steps), np.array(errors)


def order(steps: np.ndarray, errors: np.ndarray) -> float:
    """Slope between the two smallest errors above rounding."""
    steps, errors = steps[errors > ROUNDING][-2:], errors[errors > ROUNDING][-2:]
    return float(np.diff(np.log(errors))[0] / np.diff(np.log(steps))[0])


@PAPER.experiment("theorems-3.1-and-3.2", "order of the projected k-step method")
def theorems_3_1_and_3_2(progress: Progress) -> Figure:
    """
    The largest error on 0 ≤ t ≤ 2 against a constant step, for BDF of orders k = 1 … 6 with projection: on a
    linear system, a point with springs and dampers on a straight guide that is moved (Theorem 3.1), and on
    the pendulum (Theorem 3.2). Starting values are exact; orders are slopes between the two smallest errors
    above rounding.
    """
    pendulum = hn.mechanisms.pendulum(gravity=GRAVITY)
    problems = {
        "linear, Theorem 3.1: a moved guide": (guided(), [0.0, 0.0], [1.0, 0.0]),
        "nonlinear, Theorem 3.2: the pendulum": (pendulum.system, pendulum.q0, pendulum.v0),
    }
    panels, claims = [], []
    for i, (title, (system, q0, v0)) in enumerate(problems.items()):
        curves, found = [], []
        for k in range(1, 7):
            progress((6 * i + k - 1) / 12, f"{title}, k = {k}")
            steps, errors = largest_errors(system, q0, v0, k)
            found.append(order(steps, errors))
            curves.append(
                Curve(f"k = {k}", steps, errors, {"color": COLOURS[k - 1], "marker": "o", "ms": 3.5})
            )
        panels.append(
            Panel(
                title,
                "step h",
                "largest error of q and v",
                curves,
                LOGARITHMIC | {"ylim": (1e-14, 10)},
            )
        )
        kind = title.partition(",")[0]
        claims.append(
            Claim.of(
                f"The projected k-step BDF method, 1 ≤ k ≤ 6, has order k on {kind} systems.",
                [Band.near(f"order, k = {k}", p, k, 0.1) for k, p in enumerate(found, 1)],
                f"orders {', '.join(f'{p:.2f}' for p in found)}.",
            )
        )
    return Figure(
        panels=panels,
        claims=claims,
        notes=["The longest steps of the pendulum's curves are missing where Newton's method fails."],
    )
