"""What the paper states in words or formulas between its tables: linear constraints, the bound (2.27), the
step conditions (2.34) to (3.10), the cost of an iteration, superlinear convergence, and GGL without a test of
the multipliers.
"""

from __future__ import annotations

import numpy as np

import holonome as hn
from holonome.papers.figure import Curve, Figure, Panel
from holonome.papers.paper import Progress
from holonome.papers.table import Table
from holonome.papers.verdict import NOT_PUBLISHED, Band, Claim, Row
from holonome.papers.yen_petzold_1996.figures import METHOD_COLOURS
from holonome.papers.yen_petzold_1996.runs import PAPER, SYMBOLS, counts, methods, simulate
from holonome.papers.yen_petzold_1996.step import Step, off_the_manifold, swinging
from holonome.plot import COLOURS


def bead() -> hn.System:
    """A point in a plane, 0 = x + 2y − z, on a spring that is not linear: linear constraints."""
    return hn.System(
        np.eye(3),
        lambda q, v: -1e4 * (q @ q - 1) * q - 0.1 * v,
        lambda q: q[0] + 2 * q[1] - q[2],
        names=["x", "y", "z"],
        name="bead in a plane",
    )


@PAPER.experiment("linear-constraints", "CS and CM on linear constraints (section 3.2)")
def linear_constraints(progress: Progress) -> Table:
    """
    A point in a plane, on a stiff spring that is not linear, by CS, CM and CMp with TOL = 1e-4: the counts,
    and the largest distance of the positions from those of CS.
    """
    system, rows, runs = bead(), [], {}
    for name in ("CS", "CM", "CMp"):
        progress(len(rows) / 3, name)
        runs[name] = hn.solve(
            system, (0, 1), [1.1, 0.0, 1.1], [0.0, 1.0, 2.0], method=methods("q")[name], rtol=1e-4, atol=1e-4
        )
        same = runs[name].t.size == runs["CS"].t.size
        apart = float(np.max(np.abs(runs[name].q - runs["CS"].q))) if same else np.inf
        rows.append(Row({"method": name}, {}, {**counts(runs[name]), "from CS": apart}, NOT_PUBLISHED))
    apart = max(row.measured["from CS"] for row in rows)
    return Table(
        rows=rows,
        symbols={**SYMBOLS, "from CS": "largest distance of the positions at the steps from those of CS"},
        claims=[
            Claim.of(
                "The iterates of CS and CM are the same if the constraints are linear.",
                Band("distance from CS", apart, high=1e-12),
                f"the counts are equal, and positions differ by {apart:.0e} at most over {runs['CS'].steps} "
                "steps.",
            )
        ],
    )


@PAPER.experiment("bound-2.27", "the error of all coordinates from that of the independent ones")
def bound_2_27(progress: Progress) -> Figure:
    """
    One step of implicit Euler, h = 0.1, for the point mass at several angles of the circle: the estimate
    (2.27), κ Σ (‖Δx‖ + ‖Δw‖) with κ = ‖(GY)⁻¹GX‖, over the distance ‖(q, v) − (q₀, v₀)‖ that it stands for.
    """
    progress(0.0, "one step of implicit Euler")
    angles, printed, corrected = np.linspace(0.0, 0.78, 27), [], []
    for angle in angles:
        step = swinging([10.0, 100.0], float(angle))
        points = step.iterate("CS")[0]
        moved = float(np.linalg.norm(points[-1] - points[0]))
        increments = np.abs(np.diff(points, axis=0))
        independent = float(np.sum(increments[:, step.x] + increments[:, 2 + step.x]))
        kappa = abs(step.q[step.x] / step.q[step.y])
        printed.append(kappa * independent / moved)
        corrected.append(np.hypot(1.0, kappa) * independent / moved)
    low, high = min(printed), max(printed)
    return Figure(
        panels=[
            Panel(
                "",
                "angle of the point mass",
                "estimate over distance",
                [
                    Curve("κ, as printed", angles, np.array(printed), {"color": COLOURS[1]}),
                    Curve("√(1 + κ²)", angles, np.array(corrected), {"color": COLOURS[0]}),
                ],
            )
        ],
        size=(6.4, 3.4),
        claims=[
            Claim.of(
                "‖(q, v) − (q₀, v₀)‖ ≈ κ Σ (‖Δx‖ + ‖Δw‖), (2.27).",
                [Band("smallest ratio", low, 0.5), Band("largest ratio", high, high=2.0)],
                f"their ratio is {low:.2f} to {high:.2f}: with G X = 0, as at the lowest point, κ "
                "vanishes and "
                "the estimate with it.",
            ),
            Claim.ours(
                "With √(1 + κ²) in place of κ it is an estimate, as Δy = −Q Δx where the constraints are "
                "met.",
                [
                    Band("smallest ratio", min(corrected), 0.7),
                    Band("largest ratio", max(corrected), high=2.0),
                ],
                f"the ratio is {min(corrected):.2f} to {max(corrected):.2f}.",
            ),
        ],
        notes=['The error test "bound" of `CoordinateSplit` takes κ no smaller than 1.'],
    )


class FirstOrder:
    """One step of implicit Euler for (2.28), q′ = f(q) − Gᵀλ with f = −K (q − (0, −1)) − (0, 1) on the
    circle: r = (q − q_n)/h − f and F = [P r; g].
    """

    def __init__(self, stiffness: tuple[float, float], h: float, start: tuple[float, float]) -> None:
        self.K, self.h, self.start = np.diag(stiffness), h, np.array(start)
        self.qn = np.array([np.sin(0.01), -np.cos(0.01)])

    def operator(self, q: np.ndarray, kind: str) -> np.ndarray:
        """dr/dq, for CS with d(Gᵀs)/dq = s I."""
        s = -self.r(q)[1] / q[1] if kind == "CS" else 0.0
        return np.eye(2) / self.h + self.K + s * np.eye(2)

    def r(self, q: np.ndarray) -> np.ndarray:
        return (q - self.qn) / self.h + self.K @ (q - [0.0, -1.0]) + [0.0, 1.0]

    def jacobian(self, q: np.ndarray, P: np.ndarray, kind: str) -> np.ndarray:
        return np.vstack([P @ self.operator(q, kind), q])

    @staticmethod
    def P(q: np.ndarray) -> np.ndarray:
        return np.array([1.0, -q[0] / q[1]])

    def norm(self, kind: str) -> float:
        """‖(dr/dq + dGᵀs/dq)⁻¹‖ of (2.34), or that of (3.5), at the start."""
        return float(np.linalg.norm(np.linalg.inv(self.operator(self.start, kind)), 2))

    def converges(self, kind: str) -> bool:
        """Whether the simplified iteration does."""
        q, P0 = self.start, self.P(self.start)
        J0, size = self.jacobian(q, P0, kind), 1.0
        for _ in range(200):
            P = self.P(q) if kind == "CS" else P0
            increment = np.linalg.solve(J0, [P @ self.r(q), (q @ q - 1) / 2])
            q, size = q - increment, float(np.linalg.norm(increment))
            if not 1e-12 < size < 1e3:
                break
        return size <= 1e-12


@PAPER.experiment("step-conditions", "the conditions (2.34), (2.35), (3.5) and (3.10) for convergence")
def step_conditions(progress: Progress) -> Table:
    """
    Steps of implicit Euler for the problem of first order (2.28) on the circle, with stiffness 1/ε along it
    and 1/ε² across it, from starts off the circle and along it, with short and long steps: in how many the
    condition holds, ‖(dr/dq + dGᵀs/dq)⁻¹‖ ≤ 1 for CS and ‖(dr/dq)⁻¹‖ ≤ 1 for CM, and in how many the
    iteration converges.
    """
    progress(0.0, "steps of implicit Euler")
    steps = [
        FirstOrder((k, k**2 if k > 1 else k), h, (aside, -1.0 - away))
        for k in (0.1, 1e3, 1e4)
        for h in (1e-3, 0.1, 5.0)
        for aside in (0.0, 0.01, 0.3)
        for away in (0.0, 1e-4, 1e-3, 1e-2, -1e-4, -1e-3, -1e-2)
    ]
    rows, found = [], {}
    for kind, condition in (("CS", "(2.34), (2.35)"), ("CM", "(3.5), (3.10)")):
        told = [(step.norm(kind) <= 1.0, step.converges(kind)) for step in steps]
        found[kind] = {
            "both": told.count((True, True)),
            "diverges": told.count((True, False)),
            "converges": told.count((False, True)),
            "neither": told.count((False, False)),
        }
        rows.append(Row({"iteration": kind, "condition": condition}, {}, found[kind], NOT_PUBLISHED))
    claims = [
        Claim.of(
            f"{condition} is sufficient for the convergence of {kind}.",
            Band("steps in which it holds and the iteration diverges", found[kind]["diverges"], high=0),
            f"in {found[kind]['diverges']} of {found[kind]['diverges'] + found[kind]['both']} steps in which "
            "it holds the iteration diverges.",
        )
        for kind, condition in (("CS", "(2.34), (2.35)"), ("CM", "(3.5), (3.10)"))
    ]
    return Table(
        rows=rows,
        shown=("diverges", "converges"),
        symbols={
            "both": "steps in which the condition holds and the iteration converges",
            "diverges": "the condition holds, the iteration diverges",
            "converges": "the condition does not hold, the iteration converges",
            "neither": "neither",
        },
        claims=[
            *claims,
            Claim.ours(
                "The condition for CM is not necessary either, and cannot be: its norm has the unit of a "
                "time.",
                Band("steps that converge without", found["CM"]["converges"], 1),
                f"{found['CM']['converges']} steps converge in which it does not hold, those that are longer "
                "than 1 without stiffness.",
            ),
        ],
    )


def operations(n: int, m: int) -> dict[str, float]:
    """Multiplications, each with an addition, of one iteration with dense factors, counted term by term."""
    factor = sum((n - k) + (n - k) * (m - k) for k in range(1, m + 1))  # LU of Gᵀ(q), n × m
    solve = m * m  # with (GY), or its transpose
    rest = m * (n - m)  # with G X, or its transpose
    return {
        "GGL": (2 * (n + m)) ** 2,
        "CS": (2 * n) ** 2 + factor + 2 * (solve + rest) + 4 * (solve + rest),
        "CM": (2 * n) ** 2 + 2 * (solve + rest) + 4 * (solve + rest),
        "printed": 6 * (n * m) ** 2 + 4 * n**2,
    }


@PAPER.experiment("cost", "operations of one iteration (section 2.3)")
def cost(progress: Progress) -> Table:
    """
    Multiplications of one iteration of Algorithms 2.1 and 3.1 with n coordinates and m constraints, counted
    term by term for dense factors: 4n² for J₁, the elimination of Gᵀ(q) (CS), two projected vectors, and four
    solutions with (GY) and GX. Beside them 4(n + m)² for a system of 2(n + m) equations, and the printed
    estimate O(6(nm)²) + O(4n²).
    """
    progress(0.0, "counting")
    rows = [
        Row({"n": n, "m": m}, {}, operations(n, m), NOT_PUBLISHED)
        for n, m in ((2, 1), (6, 5), (7, 6), (30, 10), (30, 29), (300, 30), (300, 200))
    ]
    ratios = [row.measured["CS"] / row.measured["GGL"] for row in rows]
    lower = [row.measured["CM"] / row.measured["CS"] for row in rows if int(row.case["n"]) > 2]
    printed = [row.measured["printed"] / row.measured["CS"] for row in rows]
    return Table(
        rows=rows,
        shown=("GGL", "CS", "CM"),
        symbols={
            "GGL": "a system of 2(n + m) equations, 4(n + m)²",
            "CS": "Algorithm 2.1",
            "CM": "Algorithm 3.1, whose P is known",
            "printed": "6(nm)² + 4n²",
        },
        claims=[
            Claim.of(
                "An iteration of CS costs almost as much as the solution of a system of 2(n + m) equations.",
                [
                    Band("smallest ratio", min(ratios), 0.8),
                    Band("largest ratio", max(ratios), high=1.25),
                ],
                f"{min(ratios):.2f} to {max(ratios):.2f} times as much for these n and m: the elimination of "
                "Gᵀ(q) in every iteration, of the order n m², decides for many constraints.",
            ),
            Claim.of(
                "The cost is of the order 6(nm)² + 4n².",
                Band("printed over counted, at most", max(printed), high=10),
                f"that is up to {max(printed):.0f} times what is counted; n m² in place of (nm)² fits.",
            ),
            Claim.of(
                "The cost of CM is considerably lower than that of CS.",
                Band("CM over CS, at most", max(lower), high=0.9),
                f"CM takes {min(lower):.2f} to {max(lower):.2f} times the operations of CS for n ≥ 6.",
            ),
        ],
    )


@PAPER.experiment("superlinear", "the rate of convergence of CM (section 3.2)")
def superlinear(progress: Progress) -> Figure:
    """
    The increments of CM and CS in one step of implicit Euler, h = 0.1, with stiffness 1/ε along the circle
    and 1/ε² across it, ε = 1e-3, from a start 0.01 along the circle: each increment over the one before.
    """
    progress(0.0, "one step of implicit Euler")
    curves, ratios = [], {}
    starts = {
        "CM": Step([1e3, 1e6], [0.01, -1.0], [0.01, 0.0]),
        "CS": off_the_manifold(1e-3, 2e-4),
    }
    for kind, step in starts.items():
        sizes = step.iterate(kind, tolerance=1e-13)[1]
        sizes = sizes[sizes > 1e-12]
        ratios[kind] = sizes[1:] / sizes[:-1]
        curves.append(
            Curve(
                kind,
                np.arange(2, sizes.size + 1),
                ratios[kind],
                {"color": METHOD_COLOURS[kind], "marker": "o", "ms": 4},
            )
        )
    last = ratios["CM"][-3:]
    rate = starts["CM"].rate("CM")
    return Figure(
        panels=[Panel("", "iteration", "increment over the one before", curves, {"yscale": "log"})],
        size=(6.4, 3.4),
        claims=[
            Claim.of(
                "In general, the rate of convergence of CM is superlinear.",
                Band("last ratio over the one before", float(last[-1] / last[-2]), high=0.5),
                f"the ratio of increments stays at {last[-1]:.4f}, which is ϱ(I − J₀⁻¹J*) = {rate:.4f}: a "
                "matrix that is kept converges linearly.",
            ),
        ],
        notes=["The theorem of Dennis and Moré that is quoted asks for matrices that are updated."],
    )


@PAPER.experiment("untested-multipliers", "GGL without a test of the multipliers (section 1)")
def untested_multipliers(progress: Progress) -> Table:
    """
    The driven problem (`driven_circle`), whose exact multiplier is λ = 1, by GGL with and without the
    multipliers in the convergence test of Newton's method: the error of q over TOL, and that of λ for
    t > 0.1.
    """
    rows = []
    cases = [(1e-4, 1e-2), (1e-4, 1e-4), (1e-6, 1e-2), (1e-8, 1e-3)]
    for i, (eps, tolerance) in enumerate(cases):
        mechanism = hn.mechanisms.driven_circle(eps=eps)
        assert mechanism.exact is not None
        for tested in ("all", "qv"):
            progress(i / len(cases), f"ε = {eps:g}, TOL {tolerance:g}, {tested}")
            method = hn.Method(hn.GGL(error_test="q", newton_test=tested), hn.BDF.dassl(max_order=2))
            run = simulate(mechanism, method, tolerance)
            q, _, lam = mechanism.exact(run.t)
            late = run.t > 0.1
            errors = {
                "error of q / TOL": float(np.max(np.abs(run.q - q))) / tolerance,
                "error of λ": float(np.max(np.abs(run.lam - lam)[:, late])) if np.any(late) else np.nan,
            }
            case = {"tested": {"all": "all", "qv": "q, v"}[tested], "TOL": f"{tolerance:g}", "ε": f"{eps:g}"}
            rows.append(Row(case, {}, {"steps": run.steps, "end": float(run.t[-1]), **errors}, NOT_PUBLISHED))
    without = [row.measured for row in rows if row.case["tested"] == "q, v"]
    finished = [row.measured for row in rows if row.case["tested"] == "all" and row.measured["end"] >= 9.99]
    wrong = min(row["error of λ"] for row in without)
    right = max(row["error of λ"] for row in finished)
    return Table(
        rows=rows,
        shown=("error of λ",),
        symbols={
            **{name: SYMBOLS[name] for name in ("TOL", "ε", "steps")},
            "tested": "what the convergence test of Newton's method sees",
            "end": "where the run ended, of 10",
            "error of q / TOL": "largest error of the positions over the tolerance",
            "error of λ": "largest error of the multiplier, which is 1",
        },
        claims=[
            Claim.of(
                "Leaving the multipliers out of the convergence test of (1.3) can lead to incorrect "
                "solutions.",
                [Band("error of λ without the test, at least", wrong, 10)],
                f"every run reports success with multipliers that are wrong by {wrong:.0e} or more; with the "
                f"test they are right to {right:.0e} where the run ends. Positions are off by "
                f"{max(row['error of q / TOL'] for row in without):.0f} tolerances at most.",
            )
        ],
    )
