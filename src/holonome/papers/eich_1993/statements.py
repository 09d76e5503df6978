"""Section 4: the error test with a projected error, Gauss–Newton's rate, and a relaxed projection."""

from __future__ import annotations

import casadi as ca
import numpy as np

import holonome as hn
from holonome.dynamics.manifold import Manifold
from holonome.papers.eich_1993.propagation import ProjectedBDF
from holonome.papers.eich_1993.runs import GRAVITY, PAPER
from holonome.papers.figure import LOGARITHMIC, Curve, Figure, Panel
from holonome.papers.paper import Progress, run_of
from holonome.papers.table import Table
from holonome.papers.verdict import NOT_PUBLISHED, Band, Claim, Row
from holonome.plot import COLOURS


@PAPER.experiment("projected-error", "the error test with and without a projected error (section 4.1)")
def projected_error(progress: Progress) -> Table:
    """
    BDF with projection, whose error vector is projected before it is tested, or not: attempts, failures of
    the error test and, on the pendulum, errors, as medians over five tolerances within 1 %. The pendulum over
    10 periods, Andrews' squeezer over 0.03 s.
    """
    pendulum, andrews = hn.mechanisms.pendulum(gravity=GRAVITY), hn.mechanisms.andrews()
    assert pendulum.exact is not None
    rows, gains, losses = [], [], []
    for name, mechanism, end in (("pendulum", pendulum, 20.0), ("Andrews", andrews, 0.03)):
        for tolerance in (1e-5, 1e-7, 1e-9):
            progress(len(rows) / 12, f"{name}, TOL {tolerance:g}")
            attempts, errors = {}, {}
            for projected in (True, False):
                formulation = hn.CoordinateProjection(metric="euclidean", projects_error=projected)
                runs = [
                    run_of(
                        mechanism,
                        (0, end),
                        method=hn.Method(formulation, hn.BDF.dassl()),
                        rtol=tolerance * (1 + i / 500),
                        atol=0.1 * tolerance * (1 + i / 500),
                    )
                    for i in range(5)
                ]
                attempts[projected] = float(np.median([run.steps + run.rejections for run in runs]))
                found = {"attempts": attempts[projected]}
                if name == "pendulum":
                    errors[projected] = float(
                        np.median([np.max(np.abs(run.q - pendulum.exact(run.t)[0])) for run in runs])
                    )
                    found["error of q"] = errors[projected]
                case = {
                    "problem": name,
                    "TOL": f"{tolerance:g}",
                    "error": "projected" if projected else "all",
                }
                rows.append(Row(case, {}, found, NOT_PUBLISHED))
            gains.append(attempts[False] / attempts[True])
            losses += [errors[True] / errors[False]] if errors else []
    return Table(
        rows=rows,
        symbols={
            "error": "what the error test sees: its part in the manifold, or all of it",
            "attempts": "steps, accepted and rejected",
            "error of q": "largest error of the positions",
        },
        claims=[
            Claim.of(
                "The error estimate of the projected method may be projected too, as the projected part is "
                "all that is left of the local error.",
                [
                    Band("attempts that are saved, at least", min(gains), 1.0),
                    Band("at most", max(gains), 1.05),
                ],
                f"without it {min(gains):.2f} to {max(gains):.2f} times as many steps are tried; with it "
                "errors "
                f"are {min(losses):.1f} to {max(losses):.1f} times as large, as the test is laxer.",
            )
        ],
    )


def corrections(k: int, h: float) -> np.ndarray:
    """Sizes of Gauss–Newton's corrections in the projection of one step of order k from exact values."""
    bdf = ProjectedBDF(k, h, True, joint=True)
    exact = hn.mechanisms.pendulum(gravity=GRAVITY).exact
    assert exact is not None
    past = np.concatenate(exact(0.3 + h * np.arange(max(k, 2)))[:2]).T[::-1]
    y_hat = bdf.step(past[:k], past[1])
    y, sizes = y_hat, []
    for _ in range(3):
        H = bdf.H(y)
        new = y_hat + np.linalg.pinv(H) @ (H @ (y - y_hat) - bdf.phi(y))
        sizes.append(float(np.linalg.norm(new - y)))
        y = new
    return np.array(sizes)


def operations(system: hn.System) -> tuple[int, int]:
    """Scalar operations of a correction with a new factorization of H, and with one that is kept."""
    model = system.model
    manifold, e = Manifold(model, ca.ldl(ca.SX.eye(model.n))), ca.SX.sym("e", model.y.numel())
    old = ca.SX.sym("old", manifold.kept.numel())
    again = manifold.with_kept(old)
    both = [
        ca.Function(
            "f",
            [model.y, e, old, model.t, model.p],
            [ca.vertcat(of.tangential(e), of.correction())],
            {"allow_free": True},
        )
        for of in (manifold, again)
    ]
    trivial = {ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST}
    new, kept = (sum(f.instruction_id(i) not in trivial for i in range(f.n_instructions())) for f in both)
    return new, kept


@PAPER.experiment("gauss-newton", "the projection by Gauss–Newton, and relaxed (section 4.2)")
def gauss_newton(progress: Progress) -> Figure:
    """
    The second correction of Gauss–Newton's method over the first, in the projection of one step of the k-step
    method on the pendulum, against the step h. Then the relaxed projection, which keeps the factorization of
    H and is not quite orthogonal: its operations, steps and errors.
    """
    progress(0.0, "Gauss–Newton")
    steps, curves, slopes = 0.1 / 2.0 ** np.arange(5), [], []
    for k in (1, 2, 3, 4):
        sizes = np.array([corrections(k, float(h)) for h in steps])
        rates = sizes[:, 1] / sizes[:, 0]
        slopes.append(float(np.polyfit(np.log(steps[1:]), np.log(rates[1:]), 1)[0]))
        curves.append(Curve(f"k = {k}", steps, rates, {"color": COLOURS[k - 1], "marker": "o", "ms": 4}))
    progress(0.5, "relaxed projection")
    saved = {}
    for name, mechanism in (
        ("the pendulum", hn.mechanisms.pendulum(gravity=GRAVITY)),
        ("Andrews' squeezer", hn.mechanisms.andrews()),
    ):
        saved[name] = operations(mechanism.system)
    pendulum = hn.mechanisms.pendulum(gravity=GRAVITY)
    assert pendulum.exact is not None
    runs = {
        relaxed: run_of(
            pendulum,
            (0, 20),
            method=hn.Method(hn.CoordinateProjection(metric="euclidean", relaxed=relaxed), hn.BDF.dassl()),
            rtol=1e-7,
            atol=1e-8,
        )
        for relaxed in (False, True)
    }
    steps_ratio = runs[True].steps / runs[False].steps
    shares = [kept / new for new, kept in saved.values()]
    told = ", ".join(f"{kept} instead of {new} on {name}" for name, (new, kept) in saved.items())
    return Figure(
        panels=[Panel("", "step h", "second correction over the first", curves, LOGARITHMIC)],
        size=(6.4, 3.4),
        claims=[
            Claim.of(
                "Gauss–Newton converges with a rate O(hᵏ).",
                [Band(f"order, k = {k}", slope, k, k + 1.3) for k, slope in enumerate(slopes, 1)],
                f"orders {', '.join(f'{slope:.2f}' for slope in slopes)} for k = 1, 2, 3, 4: even O(hᵏ⁺¹).",
            ),
            Claim.of(
                "The effort can be significantly reduced by relaxing the orthogonality of the projection.",
                [Band("operations of a relaxed correction, at most", max(shares), high=0.8)],
                f"a correction with the kept factorization takes {told} operations; the steps are "
                f"{steps_ratio:.2f} times as many, and |g| ≤ {runs[True].drift[0]:.0e}. Where "
                "factorizations are "
                "emitted code, as here, that decides about little.",
            ),
        ],
    )
