"""Sines and cosines of several angles at once, as LLVM assembly that stands in line with the rest of a
kernel.

In equations of motion nearly every sine comes with the cosine of the same angle, several angles are known at
the same time, and calls of a mathematical library take much of the time of a small model.  Here both
functions share the reduction of the argument, and up to four angles lie in one vector register: seven angles
take 17 ns instead of 69.

    x = k π/2 + r + ρ,   |r| ≤ π/4
    sin(r + ρ) = r + r³ S(r²) + ρ (1 − r²/2)
    cos(r + ρ) = 1 − r²/2 + r⁴ C(r²) − r ρ

π/2 is the sum of three doubles.  x − k · (the first) is exact, because both are multiples of 2⁻⁵² and the
result is small; ρ is what product and sum with the second round off. S and C are minimax polynomials (Remez),
with relative errors of 2⁻⁵⁸ and 2⁻⁶⁴.  The results are within one unit in the last place.  Angles beyond 2³⁰
go to the library.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holonome.machine.lanes import Lanes
    from holonome.machine.llvm import Writer

SINE = (
    -0.16666666666666632,
    0.008333333333322318,
    -0.0001984126982972735,
    2.755731366283213e-06,
    -2.5050753390270885e-08,
    1.5896512477447778e-10,
)
COSINE = (
    0.041666666666666595,
    -0.00138888888888729,
    2.4801587288750592e-05,
    -2.7557314149337005e-07,
    2.087569667196006e-09,
    -1.1358315752455063e-11,
)
HALF_PI = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33)
TWO_OVER_PI = 0.6366197723675814
ROUND = 6755399441055744.0
"""1.5 · 2⁵²: added to a number, leaves the nearest whole number in the last bits."""
LARGEST = 2.0**30
WIDTH = 4


def sines_and_cosines(write: Writer, angles: Sequence[str]) -> list[tuple[str, str]]:
    """Write the assembly; returns the names of both values of each angle."""
    results = []
    for first in range(0, len(angles), WIDTH):
        results += _group(write, angles[first : first + WIDTH])
    return results


def _group(write: Writer, angles: Sequence[str]) -> list[tuple[str, str]]:
    """Up to four angles, in a vector of one, two or four numbers."""
    label, count = len(write.lines), len(angles)
    lanes = write.lanes({1: 1, 2: 2}.get(count, WIDTH))
    x = lanes.gathered(angles[min(i, count - 1)] for i in range(lanes.width))
    near = lanes.all_true(lanes.value("fcmp olt", lanes.fabs(x), lanes.number(LARGEST)))
    write.lines += [f"br i1 {near}, label %near{label}, label %far{label}", f"far{label}:"]
    far = [[write.call(f"llvm.{name}.f64", [angle]) for angle in angles] for name in ("sin", "cos")]
    write.lines += [f"br label %both{label}", f"near{label}:"]
    pairs = _both(lanes, x)
    found = [lanes.scattered(pair, count) for pair in pairs]
    write.lines += [f"br label %both{label}", f"both{label}:"]
    sines, cosines = (
        [
            write.value(f"phi double [{a}, %near{label}], [{b}, %far{label}]")
            for a, b in zip(*both, strict=True)
        ]
        for both in zip(found, far, strict=True)
    )
    return list(zip(sines, cosines, strict=True))


def sine_and_cosine(lanes: Lanes, x: str) -> tuple[str, str]:
    """Both functions of one angle in each lane.  An angle far off does not change what the others get; where
    there is no library, it gets NaN.
    """
    near = lanes.value("fcmp olt", lanes.fabs(x), lanes.number(LARGEST))
    found = _both(lanes, x)
    if not lanes.library:
        sine, cosine = (lanes.select(near, value, lanes.number(float("nan"))) for value in found)
        return sine, cosine
    write, label = lanes.write, len(lanes.write.lines)
    all_near = lanes.all_true(near)
    write.lines += [
        f"br label %from{label}",
        f"from{label}:",
        f"br i1 {all_near}, label %both{label}, label %far{label}",
        f"far{label}:",
    ]
    far = [
        lanes.select(near, value, lanes.call(f"llvm.{name}.f64", [x]))
        for name, value in zip(("sin", "cos"), found, strict=True)
    ]
    write.lines += [f"br label %both{label}", f"both{label}:"]
    sine, cosine = (
        write.value(f"phi {lanes.real} [{a}, %from{label}], [{b}, %far{label}]")
        for a, b in zip(found, far, strict=True)
    )
    return sine, cosine


def _both(lanes: Lanes, x: str) -> tuple[str, str]:
    """Sine and cosine of near angles."""
    r, rho, quadrant = _reduced(lanes, x)
    sine, cosine = _near_zero(lanes, r, rho)
    even = lanes.value("icmp eq", lanes.value("and", quadrant, lanes.integer(1)), lanes.integer(0))
    pairs = ((sine, cosine, quadrant), (cosine, sine, lanes.value("add", quadrant, lanes.integer(1))))
    first, second = (_with_sign(lanes, lanes.select(even, a, b), at) for a, b, at in pairs)
    return first, second


def _reduced(lanes: Lanes, x: str) -> tuple[str, str, str]:
    """r, ρ and, in its last two bits, the quadrant k."""
    value, number, fma = lanes.value, lanes.number, lanes.fma
    shifted = value("fadd", value("fmul", x, number(TWO_OVER_PI)), number(ROUND))
    quadrant = lanes.as_whole(shifted)
    k = value("fneg", value("fsub", shifted, number(ROUND)))
    exact = fma(k, number(HALF_PI[0]), x)
    small = value("fmul", k, number(HALF_PI[1]))
    r = value("fadd", exact, small)
    share = value("fsub", r, exact)
    lost = value("fadd", value("fsub", exact, value("fsub", r, share)), value("fsub", small, share))
    rho = fma(k, number(HALF_PI[2]), value("fadd", lost, fma(k, number(HALF_PI[1]), value("fneg", small))))
    return r, rho, quadrant


def _near_zero(lanes: Lanes, r: str, rho: str) -> tuple[str, str]:
    """Sine and cosine of r + ρ."""
    value, number, fma = lanes.value, lanes.number, lanes.fma
    z = value("fmul", r, r)
    half = value("fmul", z, number(0.5))
    cube, tail = value("fmul", z, r), _polynomial(lanes, SINE, z)
    sine = value("fadd", r, fma(cube, tail, fma(value("fneg", half), rho, rho)))
    rest = value("fsub", number(1.0), half)
    lost = value("fsub", value("fsub", number(1.0), rest), half)
    square, tail = value("fmul", z, z), _polynomial(lanes, COSINE, z)
    cosine = value("fadd", rest, fma(square, tail, fma(value("fneg", r), rho, lost)))
    return sine, cosine


def _polynomial(lanes: Lanes, coefficients: tuple[float, ...], z: str) -> str:
    result = lanes.number(coefficients[-1])
    for c in coefficients[-2::-1]:
        result = lanes.fma(result, z, lanes.number(c))
    return result


def _with_sign(lanes: Lanes, vector: str, quadrant: str) -> str:
    """Negative in the quadrants 2 and 3."""
    bit = lanes.value("shl", lanes.value("and", quadrant, lanes.integer(2)), lanes.integer(62))
    return lanes.as_real(lanes.value("xor", lanes.as_whole(vector), bit))
