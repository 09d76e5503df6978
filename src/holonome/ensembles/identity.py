"""What a study is, in short texts that can be compared with those of a store."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from holonome.equations.program import Program

if TYPE_CHECKING:
    from holonome.ensembles.study import Study


def identity(study: Study) -> dict[str, str]:
    """By part: equal texts mean equal results."""
    system, design, observed = study.system, study.design, study.observed
    motion, lam = ca.SX.sym("motion", system.state_size), ca.SX.sym("lam", system.m)
    values, events = observed.expressions(system, motion, lam)
    model = system.model
    inputs = {"t": model.t, "y": model.y, "p": model.p, "motion": motion, "lam": lam}
    whole = observed.expressions_along(system, motion, lam)
    keep, until = (_of(Program.of_expressions(inputs, outputs)) for outputs in ([values, *whole], events))
    equations = [ca.densify(part) for part in (model.M, model.f, model.g, model.h, model.r)]
    variations = [
        (variation.name, variation.dimension, _bytes(variation.values)) for variation in design.variations
    ]
    names: list[tuple] = [(quantity.name, quantity.labels) for quantity in observed.quantities]
    names += [(name, part.kind, part.direction) for name, part in observed.along]
    return {
        "system": _text([_of(Program.of_expressions(inputs, equations)), system.paths]),
        "t_span, start and parameters": _text([_bytes(study.base), study.start, study.speed]),
        "over": _text(variations),
        "t_eval": _text("end" if study.times is None else _bytes(study.times)),
        "keep": _text([names, keep]),
        "until": _text([until, [event.direction for event in observed.events]]),
        "method": str(study.method),
        "rtol and atol": _text([study.rtol, _bytes(np.asarray(study.atol, float))]),
        "steps": _text([study.first_step, study.max_step, study.max_steps, study.repair, study.at_rest]),
    }


def _of(program: Program) -> str:
    return json.dumps(program.as_dict())


def _bytes(array: np.ndarray) -> str:
    return f"{array.shape}{np.ascontiguousarray(array).tobytes().hex()}"


def _text(thing: Any) -> str:
    return hashlib.sha256(repr(thing).encode()).hexdigest()[:16]
