"""Which errors are propagated, and which invariants are kept."""

from __future__ import annotations

import numpy as np

import holonome as hn
from holonome.papers.eich_1993.orders import guided
from holonome.papers.eich_1993.runs import FORMULATIONS, GRAVITY, PAPER, method
from holonome.papers.figure import LOGARITHMIC, Curve, Figure, Panel
from holonome.papers.paper import Progress, run_of
from holonome.papers.verdict import Band, Claim
from holonome.plot import COLOURS


class ProjectedBDF:
    """The projected k-step BDF method on the pendulum, y = (x, y, ẋ, ẏ), at constant step and in plain NumPy,
    so that a perturbation can be put into a step.

    Parameters
    ----------
    k, h
        Order and step.
    projects
        Whether step 2 of the method, (2.5), is done.
    joint
        Whether (2.5) is meant for positions and velocities together, as it is printed. The shipped code, and
        this by default, first finds the nearest position, then the nearest velocity there.
    """

    def __init__(self, k: int, h: float, projects: bool, joint: bool = False) -> None:
        self.k, self.h, self.projects, self.joint = k, h, projects, joint
        self.alpha = np.zeros(k + 1)  # Σ α_i y_{n−i} = h f(y_n), from Σ ∇^j y_n / j
        difference = np.array([1.0])
        for j in range(1, k + 1):
            difference = np.convolve(difference, [1.0, -1.0])
            self.alpha[: j + 1] += difference / j

    @staticmethod
    def f(y: np.ndarray) -> np.ndarray:
        """The underlying ODE (1.7), with λ of (1.6)."""
        lam = (y[2] ** 2 + y[3] ** 2 - GRAVITY * y[1]) / (y[0] ** 2 + y[1] ** 2)
        return np.array([y[2], y[3], -lam * y[0], -GRAVITY - lam * y[1]])

    @staticmethod
    def phi(y: np.ndarray) -> np.ndarray:
        """The invariants (3.17) and (3.18)."""
        return np.array([y[0] ** 2 + y[1] ** 2 - 1, y[0] * y[2] + y[1] * y[3]])

    @staticmethod
    def H(y: np.ndarray) -> np.ndarray:
        return np.array([[2 * y[0], 2 * y[1], 0.0, 0.0], [y[2], y[3], y[0], y[1]]])

    def step(self, past: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """(2.4): ŷ_n from k projected values, the last one first; `before` is that before the last, for the
        prediction, if k = 1.
        """
        known, y = self.alpha[1:] @ past, 2 * past[0] - (past[1] if before is None else before)
        for _ in range(4):
            f_y = np.array([self.f(y + 1e-30j * e).imag / 1e-30 for e in np.eye(4)]).T
            y = y - np.linalg.solve(
                self.alpha[0] * np.eye(4) - self.h * f_y, self.alpha[0] * y + known - self.h * self.f(y)
            )
        return y

    def project(self, y_hat: np.ndarray) -> np.ndarray:
        """(2.5): the nearest point with φ = 0, by Gauss-Newton."""
        if not self.joint:
            q = y_hat[:2] / np.linalg.norm(y_hat[:2])
            return np.concatenate([q, y_hat[2:] - q * (q @ y_hat[2:])])
        y = y_hat
        for _ in range(8):
            H = self.H(y)
            H_plus = np.linalg.pinv(H)
            y = y_hat + H_plus @ (H @ (y - y_hat) - self.phi(y))
        return y

    def tangential(self, y: np.ndarray, d: np.ndarray) -> np.ndarray:
        """P d with P = I − H⁺H; or, one after the other, the parts with G d_q = 0 and G d_v + L d_q = 0."""
        if not self.joint:
            q, v = y[:2], y[2:]
            d_q = d[:2] - q * (q @ d[:2])
            return np.concatenate([d_q, d[2:] - q * (q @ d[2:] + v @ d_q)])
        H = self.H(y)
        return d - np.linalg.pinv(H) @ (H @ d)

    def run(self, steps: int, at: int = 0, kind: str = "", size: float = 0.0) -> np.ndarray:
        """The values at all steps; ŷ of step `at` is replaced by y_n plus a normal or tangential vector of
        this size.
        """
        exact = hn.mechanisms.pendulum(gravity=GRAVITY).exact
        assert exact is not None
        values = list(np.concatenate(exact(self.h * np.arange(self.k))[:2]).T)
        for n in range(self.k, steps + 1):
            y = self.step(np.array(values[: -self.k - 1 : -1]))
            y = self.project(y) if self.projects else y
            if n == at:
                d = np.array([1.0, 2.0, -3.0, 1.0])
                d = self.tangential(y, d) if kind == "tangential" else d - self.tangential(y, d)
                y = y + size * d / np.linalg.norm(d)
                y = self.project(y) if self.projects else y
            values.append(y)
        return np.array(values)


@PAPER.experiment(
    "error-propagation", "only the tangential part of a perturbation is propagated (section 3.1)"
)
def error_propagation(progress: Progress) -> Figure:
    """
    The solution of the pendulum by the three-step method, h = 0.01, is perturbed by 1e-4 at t = 1.3, normal
    or tangential to the manifold of the constraints, before it is projected. Shown is the change of the
    solution from then on: the conclusion from the proof of Theorem 3.1.
    """
    h, size, panels, left = 0.01, 1e-4, [], {}
    t = h * np.arange(401)
    for label, projects, joint in (
        ("without projection", False, False),
        ("with projection", True, False),
        ("with projection, positions and velocities together", True, True),
    ):
        progress(len(panels) / 3, label)
        bdf = ProjectedBDF(3, h, projects, joint)
        plain, curves = bdf.run(400), []
        for kind, colour in (("tangential", COLOURS[2]), ("normal", COLOURS[3])):
            change = np.linalg.norm(bdf.run(400, 130, kind, size) - plain, axis=1)
            left[kind, label] = float(np.max(change[130:]))
            curves.append(
                Curve(f"{kind} perturbation", t[130:], np.maximum(change[130:], 1e-17), {"color": colour})
            )
        axes = {"yscale": "log", "ylim": (3e-18, 2e-2)}
        panels.append(Panel(label.replace(", ", ",\n"), "time t", "change of the solution", curves, axes))
    projected = [label for kind, label in left if kind == "normal" and label.startswith("with ")]
    normal = max(left["normal", label] for label in projected)
    tangential = min(left["tangential", label] for label in projected)
    lost = [left[kind, "without projection"] for kind in ("normal", "tangential")]
    return Figure(
        panels=panels,
        claims=[
            Claim.of(
                "Only those parts of the errors that lie in the manifold are propagated.",
                [
                    Band("normal", normal, high=1e-12),
                    Band("tangential", tangential, 0.1 * size),
                ],
                f"of a normal perturbation of {size:g} rounding is left, {normal:.0e}; a "
                f"tangential one grows to {tangential:.0e}, in both readings of (2.5).",
            ),
            Claim.of(
                "Without projection both are propagated.",
                Band("smaller change", min(lost), 0.1 * size),
                f"changes of {lost[0]:.0e} (normal) and {lost[1]:.0e} (tangential).",
            ),
        ],
        notes=[
            "The pendulum is that of section 3.3. Normal means in the range of Hᵀ at the projected point, "
            "(2.8)."
        ],
    )


@PAPER.experiment("remark-2.2", "invariants that a multistep method keeps without projection")
def remark_2_2(progress: Progress) -> Figure:
    """
    A point with springs and dampers on a straight guide, by BDF on the equations of index 1 without
    projection, TOL = 1e-6: the violation of the guide over time, for a guide that stands still (a linear
    invariant with constant coefficients) and for one that is moved.
    """
    curves, drift = [], {}
    for name, amplitude, colour in (("guide at rest", 0.0, COLOURS[0]), ("moved guide", 1.0, COLOURS[1])):
        progress(len(curves) / 2, name)
        solution = hn.solve(
            guided(amplitude),
            (0, 20),
            [0.0, 0.0],
            [amplitude, 0.0],
            method=method("no", hn.BDF()),
            rtol=1e-6,
            atol=1e-6,
        )
        drift[name] = solution.drift[0]
        curves.append(Curve(name, solution.t, np.maximum(np.abs(solution.g[0]), 1e-18), {"color": colour}))
    return Figure(
        panels=[
            Panel(
                "without projection",
                "time t [s]",
                "|g| [m]",
                curves,
                {"yscale": "log", "ylim": (1e-18, 1e-2)},
            )
        ],
        size=(6.4, 3.4),
        claims=[
            Claim.of(
                "Consistent linear multistep methods keep linear invariants H y + b = 0; this no longer "
                "holds for H y + z(t) = 0.",
                [
                    Band("guide at rest", drift["guide at rest"], high=1e-13),
                    Band("moved guide", drift["moved guide"], 1e-8),
                ],
                f"|g| stays below {drift['guide at rest']:.0e} m if the guide is at rest, and reaches "
                f"{drift['moved guide']:.0e} m if it is moved.",
            )
        ],
    )


@PAPER.experiment("kepler", "an ODE with invariants: Kepler's problem over many revolutions")
def kepler(progress: Progress) -> Figure:
    """
    A body on an elliptic orbit with eccentricity 0.6, TOL = 1e-10, with energy and angular momentum kept by
    projection, and without: the error of its position against the number of revolutions, by a Runge–Kutta
    method of order 8 over 10⁴ of them and by BDF over 10³. The paper only names such invariants (section 2);
    the mechanism is `kepler`.
    """
    runs = {
        "Dormand–Prince 8(5,3)": (
            10_000,
            hn.UnderlyingODE(),
            hn.UnderlyingODE(projection=False),
            hn.RungeKutta("dop853"),
        ),
        "BDF": (1000, FORMULATIONS["yes"], FORMULATIONS["no"], hn.BDF()),
    }
    mechanism, panels, claims = hn.mechanisms.kepler(), [], []
    assert mechanism.exact is not None
    for name, (most, projected, plain, integrator) in runs.items():
        revolutions, curves, slopes, kept = np.unique(np.geomspace(1, most, 25).astype(int)), [], [], 0.0
        for label, formulation in (("energy and momentum kept", projected), ("not kept", plain)):
            progress(len(panels) / 2 + len(curves) / 4, f"{name}, {label}")
            solution = run_of(
                mechanism,
                (0, 2 * np.pi * most),
                method=hn.Method(formulation, integrator),
                rtol=1e-10,
                atol=1e-10,
                t_eval=2 * np.pi * revolutions,
            )
            error = np.max(np.abs(solution.q - mechanism.exact(solution.t)[0]), axis=0)
            late = revolutions >= most / 30
            slopes.append(float(np.polyfit(np.log(revolutions[late]), np.log(error[late]), 1)[0]))
            curves.append(
                Curve(label, revolutions, error, {"color": COLOURS[len(curves)], "marker": "o", "ms": 3.5})
            )
            if formulation is projected:
                kept = float(np.max(np.abs(solution.invariant - solution.invariant[:, :1])))
        panels.append(Panel(name, "revolutions", "error of q", curves, LOGARITHMIC))
        holds = [
            Band("invariants", kept, high=1e-12),
            Band.near("growth with invariants", slopes[0], 1, 0.2),
            Band.near("growth without", slopes[1], 2, 0.2),
        ]
        claims.append(
            Claim.ours(
                f"With both invariants the error of {name} grows linearly, without them quadratically.",
                holds,
                f"like r^{slopes[0]:.2f} and r^{slopes[1]:.2f} over r = {most} revolutions; the invariants "
                f"are kept to {kept:.0e}.",
            )
        )
    return Figure(panels=panels, claims=claims)
