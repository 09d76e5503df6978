"""Long expressions of parameters alone: computed once for a run, not in each evaluation.

A mean over 200 000 parameters is the same number throughout a run.  Emitted into every kernel, it would take
most of the time of compiling and of running; instead its value stands in the context, behind everything else,
and kernels read it as they read a parameter.  It is computed by CasADi, without compiling, when a context is
filled with parameters.

Only kernels of the motion are made of such a *lean* model.  Derivatives with respect to parameters are taken
of the whole one, in which the terms are expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import casadi as ca
import numpy as np

from holonome.equations.model import Model

FEWEST = 500
"""Operations on parameters alone that are worth entries in the context; fewer cost less than finding them."""

_PARTS = ("M", "f", "g", "h", "r", "k", "I")


@dataclass(frozen=True, eq=False)
class ParameterTerms:
    """A model in which terms of parameters alone are symbols at the end of p, and their values."""

    model: Model
    count: int = 0
    function: ca.Function | None = None

    def values(self, parameters: np.ndarray) -> np.ndarray:
        """The terms for these parameters."""
        return np.zeros(0) if self.function is None else np.array(self.function(parameters)).ravel()


def parameter_terms(model: Model, parameters: ca.SX) -> ParameterTerms:
    """The terms of a model, where it is worth it; parameters are those that do not change on the way."""
    if parameters.numel() < FEWEST:
        return ParameterTerms(model)
    parts: list[ca.SX] = [getattr(model, name) for name in _PARTS]
    parts += [] if model.V is None else [model.V]
    parts += model.given.values()
    lean, symbols, terms = ca.extract_parametric(ca.vertcat(*(part.nz[:] for part in parts)), parameters)
    if not terms:
        return ParameterTerms(model)
    symbols, terms = ca.vertcat(*symbols), ca.vertcat(*terms)
    function = ca.Function("terms", [parameters], [ca.densify(terms)])
    if function.n_instructions() < FEWEST:
        return ParameterTerms(model)
    replaced = _in_place_of(parts, lean)
    named = dict(zip(_PARTS, replaced, strict=False))
    given = dict(zip(model.given, replaced[len(replaced) - len(model.given) :], strict=True))
    V = None if model.V is None else replaced[len(_PARTS)]
    whole = replace(model, p=ca.vertcat(model.p, symbols), V=V, given=given, **named)
    return ParameterTerms(whole, symbols.numel(), function)


def _in_place_of(parts: Sequence[ca.SX], entries: ca.SX) -> list[ca.SX]:
    """Matrices with the patterns of these, and other entries."""
    ends = np.cumsum([0, *(part.nnz() for part in parts)]).tolist()
    return [
        ca.SX(part.sparsity(), entries[begin:end])
        for part, begin, end in zip(parts, ends, ends[1:], strict=False)
    ]
