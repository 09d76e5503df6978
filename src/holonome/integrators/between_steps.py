"""The solution between the steps of a family: inside the last step of a run and, later, from the history.

Beside its functions for the loop (:mod:`holonome.integrators.loop`) a family has

    nearly(w, t, out)                  almost the state at a time inside the last step, cheaply: good enough
                                       to tell whether there are events
    inside(w, context, t, out)         the state itself; a status.  Unless a family says otherwise, the same
                                       brought onto the manifold
    recall(w, context, rows, row)      make the step that this row holds the last one; a status

and POINTS where rows hold times and states alone, (t, y): a step begins at one of them and ends at the next.
`between_steps` makes of that the kernels for a run and ``evaluate`` for the history.
"""

from typing import Any

from numba import njit

from holonome.integrators.residual_steps import onto_manifold
from holonome.machine.calls import NativeKernel, filled_in, pointer
from holonome.machine.context import OK

POINTS = False
parts: Any = None  # the functions of a family
inside = nearly = recall = parts


def _projected(w, context, t, out):
    nearly(w, t, out)
    return onto_manifold(w, context, t, out)


def _interpolant(t, y, memory, context, out):
    return inside(parts(memory), context, t, out)


def _preview(t, y, memory, context, out):
    nearly(parts(memory), t, out)
    return OK


def _evaluate(memory_array, context_array, rows, steps, wanted, out):
    """The solution at many times; ``steps`` are the numbers of the rows in whose steps they lie.  Returns the
    number done.
    """
    memory, context = pointer(memory_array), pointer(context_array)
    w, current = parts(memory), -1
    for number in range(wanted.size):
        row, t = steps[number], wanted[number]
        if POINTS and t == rows[row, 0]:
            for i in range(w.run.size):
                out[number, i] = rows[row, 1 + i]
            continue
        if row != current:
            if recall(w, context, rows, row) != OK:
                return number
            current = row
        if inside(w, context, t, pointer(out[number])) != OK:
            return number
    return wanted.size


_FAMILY = ("parts", "inside", "nearly", "recall", "POINTS")


def between_steps(family: dict[str, Any]) -> tuple[NativeKernel, NativeKernel, Any]:
    """Interpolant, preview and ``evaluate`` of a family, from its module."""
    if "inside" not in family:
        projected = njit(cache=True, error_model="numpy")(filled_in(_projected, family, _FAMILY))
        family = family | {"inside": projected}
    interpolant, preview, evaluate = (
        filled_in(template, family, _FAMILY) for template in (_interpolant, _preview, _evaluate)
    )
    compiled = njit(cache=True, nogil=True, error_model="numpy")(evaluate)
    return NativeKernel(interpolant), NativeKernel(preview), compiled
