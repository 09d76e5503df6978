"""The introduction: problems of higher index become ODEs with invariants, in general form."""

from __future__ import annotations

import numpy as np

import holonome as hn
from holonome.papers.eich_1993.runs import PAPER
from holonome.papers.paper import Progress
from holonome.papers.table import Table
from holonome.papers.verdict import NOT_PUBLISHED, Band, Claim, Row

_OPEN = np.nan
"""A value at the start that is to be found."""


def chain_of_rates(index: int) -> hn.DAE:
    """x₀ = exp(−t) and x_k′ = x_(k+1): a system of this index, whose solution is x_k = (−1)^k exp(−t)."""
    count = index

    def equations(t, x, dx):
        return [*(dx[k] - x[k + 1] for k in range(count - 1)), x[0] - np.exp(-t)]

    return hn.DAE(equations, n=count)


def crane() -> hn.DAE:
    """The force on a cart that leads a load behind a spring along sin t: index 5."""

    def equations(t, x, ddx):
        spring = 5 * (x[1] - x[0])
        return [ddx[0] - spring - x[2], 2 * ddx[1] + spring, x[1] - np.sin(t)]

    return hn.DAE(equations, names=["cart", "load", "force"])


def _hidden(sol: hn.Solution) -> float:
    """The largest residual of the equations and all their hidden constraints."""
    return float(np.max(np.abs(sol.invariant)))


@PAPER.experiment("higher-index", "problems of index 3 to 6 as ODEs with invariants (section 1)")
def higher_index(progress: Progress) -> Table:
    """
    Chains x_k′ = x_(k+1) whose first member is given, of index 3 to 6, and a force that leads a load along a
    path, of index 5: equations are differentiated as their structure says, and the ODE is solved with all of
    them as invariants, by three families of methods with TOL = 1e-6. Largest errors over 5 units of time
    against the closed forms.
    """
    cases: list[tuple[str, hn.DAE, list[float], list[float] | None]] = [
        (f"chain of {k}", chain_of_rates(k), [1.0] + [_OPEN] * (k - 1), None) for k in (3, 4, 5, 6)
    ]
    cases.append(("crane", crane(), [_OPEN, 0.0, _OPEN], [_OPEN, 1.0, _OPEN]))
    rows, wrong = [], 0
    for name, system, start, speed in cases:
        for method in ("dop853", "bdf", "radau"):
            progress(len(rows) / 15, f"{name}, {method}")
            sol = hn.solve(system, (0, 5), start, speed, method=method, rtol=1e-6)
            if name == "crane":
                exact = np.outer([0.6, 1.0, -2.6], np.sin(sol.t))
            else:
                exact = np.outer((-1.0) ** np.arange(sol.x.shape[0]), np.exp(-sol.t))
                wrong += system.index != int(name[-1])
            found = {"index": system.index, "error": float(np.max(np.abs(sol.x - exact)))}
            found |= {"invariants": _hidden(sol), "steps": sol.steps}
            rows.append(Row({"problem": name, "method": method}, {}, found, NOT_PUBLISHED))
    error = max(row.measured["error"] for row in rows)
    drift = max(row.measured["invariants"] for row in rows)
    return Table(
        rows=rows,
        symbols={
            "index": "the structural index",
            "error": "largest error of the variables",
            "invariants": "largest residual of the equations and hidden constraints at the steps",
        },
        claims=[
            Claim.of(
                "Reducing the index by differentiation gives an ODE with invariants, and projection keeps "
                "its solution on the manifold that they define.",
                [
                    Band("indices that are not those by construction", wrong, high=0),
                    Band("largest error", error, high=1e-8),
                    Band("largest residual", drift, high=1e-9),
                ],
                f"with index 3 to 6 errors are {error:.0e} at most and all hidden constraints hold to "
                f"{drift:.0e}.",
            )
        ],
    )
