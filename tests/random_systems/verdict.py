"""One method on one random system: what became of it, and whether that is right."""

from __future__ import annotations

import inspect
import re
import time
import warnings
from typing import Any

import numpy as np

import holonome as hn
from conformance.methods import DRIFTS, PROMISES, ROUNDING, Promise, subjects
from random_systems.reference import Reference

GENEROUS = 3
"""How many times what is allowed for the gentle motions of the conformance tests."""

ROUNDING_LIMIT, CALLED_LIMIT = 1e-10, 1e-7
"""What a method that promises rounding may leave of the constraints; the second where constraints cannot be
traced, so that their velocities are known by differences.
"""

MAX_STEPS = 300_000
ARGUMENTS = {*inspect.signature(hn.solve).parameters, *inspect.signature(hn.System).parameters}


def promise_of(method: str, case: Any) -> Promise:
    """What the method promises; for general problems of index 2 and 3 every method is SRM."""
    return (
        PROMISES[hn.SRM](None)
        if case.structure.bodies in ("index 2", "index 3")
        else subjects()[method].promise
    )


def kind_of(error: Exception) -> str:
    """Return "refused" if the error is one of ours, or names an argument first; otherwise "raw"."""
    ours = isinstance(error, ValueError) and re.match(r"(\w+):", str(error))
    return "refused" if isinstance(error, hn.HolonomeError) or (ours and ours[1] in ARGUMENTS) else "raw"


def outcome(case: Any, system: Any, method: str, rtol: float, reference: Reference | None) -> dict[str, Any]:
    """A run, judged: {"result": …, "words": …, "error": …, "seconds": …}.

    The result is "right"; "silent" (success, but wrong); "failed" (it said so); "refused" (an error of ours);
    "raw" (an error of anybody else); "unknown" (success, but there is no reference, or a singular
    position was passed, which the result tells, and behind it the motion is another).
    """
    began = time.perf_counter()
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            times = np.linspace(0, case.t_end, 6) * getattr(case, "time", 1.0)
            given = case.arguments(rtol)
            times[-1] = given["t_span"][1]
            sol = hn.solve(system, **given, method=method, t_eval=times, max_steps=MAX_STEPS)
            found = judge(case, sol, method, rtol, reference)
    except Exception as error:
        found = {"result": kind_of(error), "words": f"{type(error).__name__}: {error}"}
    return found | {"seconds": round(time.perf_counter() - began, 3)}


def judge(case: Any, sol: Any, method: str, rtol: float, reference: Reference | None) -> dict[str, Any]:
    """The verdict on a run that returned."""
    if not sol.success:
        return {"result": "failed" if sol.message else "silent", "words": sol.message}
    y, promise = case.points(sol), promise_of(method, case)
    if not np.all(np.isfinite(y)):
        return {"result": "silent", "words": "not finite"}
    complaint = constraint_complaint(case, sol, promise, rtol, reference)
    if complaint:
        return {"result": "silent", "words": complaint}
    if reference is None:
        return {"result": "unknown", "words": sol.message}
    error, allowed = reference.error(y) / rtol, GENEROUS * promise.error
    if not error <= allowed and getattr(sol, "singular_times", np.zeros(0)).size:
        return {"result": "unknown", "words": sol.message, "error": error}
    if not error <= allowed:
        return {"result": "silent", "words": f"error {error:.1e} rtol after growth", "error": error}
    complaint = multiplier_complaint(case, sol, promise, rtol, reference)
    if complaint:
        return {"result": "silent", "words": complaint, "error": error}
    return {"result": "right", "words": "", "error": float(f"{error:.2g}")}


def constraint_complaint(case, sol, promise, rtol, reference) -> str:
    """What is wrong with the constraints, if anything."""
    rounding = CALLED_LIMIT if case.structure.called == "constraint" else ROUNDING_LIMIT
    for level, kept, residual in zip(
        ("positions", "velocities"), (promise.position, promise.velocity), case.residuals(sol), strict=True
    ):
        growth = 1.0 if reference is None else float(reference.growth[-1])
        limit = rounding if kept == ROUNDING else 1e3 * rtol * (growth if kept == DRIFTS else 1)
        if not residual <= limit:
            return f"constraints on {level} violated by {residual:.1e}, allowed {limit:.0e}"
    return ""


def multiplier_complaint(case, sol, promise, rtol, reference) -> str:
    """What is wrong with the multipliers at the end, if anything."""
    lam = case.multipliers(reference)
    if lam is None:
        return ""
    found = case.multipliers_of(sol)
    limit = GENEROUS * promise.multipliers * rtol * reference.growth[-1]
    error = np.max(np.abs(found - lam)) / (1 + np.max(np.abs(lam)))
    return "" if error <= limit else f"multipliers off by {error:.1e}, allowed {limit:.0e}"
