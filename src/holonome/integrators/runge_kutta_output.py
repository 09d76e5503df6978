"""The solution of a Runge–Kutta method between its steps: a step of the same method from the last point to
the wanted time, so it has the method's order, lies on the manifold, and needs no storage.
"""

from numba import njit

from holonome.integrators.loop import hermite
from holonome.integrators.runge_kutta_steps import derivative, inside, parts
from holonome.machine.calls import NativeKernel, pointer
from holonome.machine.context import OK


@NativeKernel
def interpolant(t, y, memory, context, out):
    """The solution at a time inside the last step: a step of the method from its beginning."""
    w = parts(memory)
    status = inside(w, context, w.run.t_old, w.y_old, t)
    for i in range(w.size):
        out[i] = w.z[i]
    return status


@NativeKernel
def preview(t, y, memory, context, out):
    """Hermite's cubic through both ends of the last step."""
    w = parts(memory)
    hermite(w.run, t, w.y_old, w.k, w.y, w.k_new, w.size, out)
    return OK


@njit(cache=True, nogil=True, error_model="numpy")
def evaluate(memory_array, context_array, times, states, steps, wanted, out):
    """The solution at many times from the stored steps.

    ``times`` and ``states`` (one row each) are the points, ``steps`` the numbers of those with which the
    steps begin in which the wanted times lie.  Returns the number done.
    """
    memory, context = pointer(memory_array), pointer(context_array)
    w = parts(memory)
    current = -1
    for row in range(wanted.size):
        number = steps[row]
        if wanted[row] == times[number]:
            for i in range(w.size):
                out[row, i] = states[number, i]
            continue
        if number != current:
            for i in range(w.size):
                w.y_old[i] = states[number, i]
            if derivative(w, context, times[number], w.y_old, w.k) != OK:
                return row
            current = number
        if inside(w, context, times[number], w.y_old, wanted[row]) != OK:
            return row
        for i in range(w.size):
            out[row, i] = w.z[i]
    return wanted.size
