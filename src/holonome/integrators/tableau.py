"""Runge–Kutta coefficients, and the sums of a step as machine code that has them in it.

    stage i     out = y + h Σ_{j<i} a_ij k_j
    end         out = y + h Σ b_j k_j
    errors      out = h Σ e_j k_j

A loop over rows of coefficients in memory takes a quarter of the time of a step of a small mechanism.  Here
zeros of the tableau cost nothing, four components are summed at once, in two halves that do not wait for each
other, and every address is known: that is more than twice as fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from holonome.integrators import dop853
from holonome.locks import new_lock
from holonome.machine.calls import call
from holonome.machine.kernel import Kernel, compiled
from holonome.machine.layout import WIDTH, padded
from holonome.machine.llvm import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, eq=False)
class Tableau:
    """Coefficients: stages a, c, weights b, one or two error estimators with an entry for the derivative at
    the end, the order, that of the estimate, and the length of the real stability interval.

    Examples
    --------
    The midpoint rule, with Euler's method for the error:

    >>> import numpy as np, holonome as hn
    >>> midpoint = hn.Tableau(
    ...     name="midpoint", title="the midpoint rule",
    ...     a=np.array([[0, 0], [0.5, 0]]), b=np.array([0.0, 1.0]), c=np.array([0.0, 0.5]),
    ...     errors=(np.array([-1.0, 1.0, 0.0]),), order=2, error_order=1, stable=2.0)
    >>> pendulum = hn.mechanisms.pendulum()
    >>> method = hn.Method(hn.UnderlyingODE(), hn.RungeKutta(midpoint))
    >>> hn.solve(pendulum.system, (0, 1), pendulum.q0, pendulum.v0, method=method, rtol=1e-4).success
    True
    """

    name: str
    title: str
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    errors: tuple[np.ndarray, ...]
    order: int
    error_order: int
    stable: float
    beta: float = 0.0

    @property
    def stages(self) -> int:
        return len(self.b)

    def sums(self) -> Iterator[tuple[np.ndarray, bool]]:
        """Coefficients of the end, of stages 1, 2, …, and of both errors, in the order of their addresses;
        and whether y is added.
        """
        yield self.b, True
        for i in range(1, self.stages):
            yield self.a[i, :i], True
        for e in (self.errors[0], self.errors[-1]):
            yield e[: self.stages], False


def _lower(rows: list[list[float]]) -> np.ndarray:
    return np.array([row + [0.0] * (len(rows) - len(row)) for row in rows])


def _full(entries: dict[int, float], size: int) -> np.ndarray:
    return np.array([entries.get(i, 0.0) for i in range(size)])


def _heun() -> Tableau:
    return Tableau(
        "heun",
        "Heun's method",
        _lower([[], [1]]),
        np.array([1 / 2, 1 / 2]),
        np.array([0.0, 1.0]),
        (np.array([-1 / 2, 1 / 2, 0.0]),),
        2,
        1,
        2.0,
    )


def _dormand_prince() -> Tableau:
    a = _lower(
        [
            [],
            [1 / 5],
            [3 / 40, 9 / 40],
            [44 / 45, -56 / 15, 32 / 9],
            [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
            [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
        ]
    )
    b = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84])
    e = np.array([71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40])
    c = np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1])
    return Tableau("dopri5", "Dormand–Prince 5(4)", a, b, c, (e,), 5, 4, 3.3, beta=0.08)


def _dormand_prince_8() -> Tableau:
    a = np.array([_full(row, 12) for row in dop853.A])
    return Tableau(
        "dop853",
        "DOP853",
        a,
        _full(dop853.B, 12),
        np.array(dop853.C),
        (_full(dop853.E5, 13), _full(dop853.E3, 13)),
        8,
        7,
        6.1,
        beta=0.05,
    )


TABLEAUS = {tableau.name: tableau for tableau in (_heun(), _dormand_prince(), _dormand_prince_8())}


_lock, _compiled = new_lock(), dict[tuple[Tableau, int], Kernel]()
"""Code once made is kept: runs in other threads may be in it."""

END = 0
"""Place of the sum for the end of a step; stage i has place i, and the errors follow the last stage."""


@njit(cache=True, inline="always")
def combine(sums, place, h, y, k, out):
    """out = y + h Σ_j a_j k_j, without y for an error; ``sums`` are addresses as `addresses` gives them."""
    call(int(sums[place]), h, y, k, y, out)


def addresses(tableau: Tableau, size: int) -> list[int]:
    """Machine code of all sums of a method, for vectors of this size stored `padded` one after another."""
    stride, sums = padded(size), list(tableau.sums())
    with _lock:
        if (tableau, stride) not in _compiled:
            text = "\n".join(_assembly(f"sum{i}", *sum_, stride) for i, sum_ in enumerate(sums))
            _compiled[tableau, stride] = compiled(text, "sum0")
        code = _compiled[tableau, stride]
    return [code.address_of(f"sum{i}") for i in range(len(sums))]


def _assembly(name: str, coefficients: np.ndarray, with_y: bool, stride: int) -> str:
    """One sum, a kernel with h in place of t, and k in place of z.

    The last k was written just before, number by number.  It is loaded in the same way, or the processor
    would wait until all of it is stored, and it enters last, followed by only one multiplication and one
    addition.
    """
    write = Writer()
    lanes = write.lanes(WIDTH)
    h = lanes.everywhere("%t")
    write.lines += ["br label %loop", "loop:", "%i = phi i64 [0, %0], [%next, %loop]"]
    k = write.address("%z", "%i")
    *others, last = np.flatnonzero(coefficients).tolist() or [0]
    sums: list[str] = []
    for turn, j in enumerate(others):
        product = lanes.value("fmul contract", lanes.number(coefficients[j]), lanes.load(k, j * stride))
        sums = [*sums, product] if turn < 2 else [sums[1], lanes.value("fadd contract", sums[0], product)]
    total = None
    if sums:
        both = lanes.value("fadd contract", *sums) if len(sums) == 2 else sums[0]
        total = lanes.value("fmul contract", h, both)
    if with_y:
        y = lanes.load("%y", "%i")
        total = lanes.value("fadd contract", y, total) if total else y
    newest = "poison"
    for i in range(WIDTH):
        newest = lanes.insert(newest, write.load(k, last * stride + i, "volatile "), i)
    weight = lanes.value("fmul contract", h, lanes.number(coefficients[last]))
    change = lanes.value("fmul contract", weight, newest)
    lanes.store(lanes.value("fadd contract", total, change) if total else change, "%out", "%i")
    write.lines += [
        f"%next = add i64 %i, {WIDTH}",
        f"%more = icmp slt i64 %next, {stride}",
        "br i1 %more, label %loop, label %end",
        "end:",
    ]
    return write.function(name, "0")


def tableau_fields(tableau: Tableau, size: int) -> dict[str, Any]:
    """What the record of a method with this tableau is made with, for vectors of this size."""
    return {
        "stages": tableau.stages,
        "stride": padded(size),
        "order": tableau.order,
        "two_errors": len(tableau.errors) - 1,
        "last_weight": tableau.errors[0][-1],
        "exponent": 1 / (tableau.error_order + 1),
        "beta": tableau.beta,
        "sums": addresses(tableau, size),
        "c": tableau.c,
        "k": tableau.stages * padded(size),
    }
