"""Sines and cosines of several angles at once, as LLVM assembly that stands in line with the rest of a
kernel.

In equations of motion nearly every sine comes with the cosine of the same angle, several angles are known at
the same time, and calls of a mathematical library take much of the time of a small model.  Here both
functions share the reduction of the argument, and up to four angles lie in one vector register: seven angles
take 17 ns instead of 69.

    x = k π/2 + r + ρ,   |r| ≤ π/4,        sin(r + ρ) = r + r³ S(r²) + ρ (1 − r²/2),        cos(r + ρ) = 1 − r²/2 + r⁴ C(r²) − r ρ

π/2 is the sum of three doubles.  x − k · (the first) is exact, because both are multiples of 2⁻⁵² and the
result is small; ρ is what product and sum with the second round off. S and C are minimax polynomials (Remez),
with relative errors of 2⁻⁵⁸ and 2⁻⁶⁴.  The results are within one unit in the last place.  Angles beyond 2³⁰
go to the library.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Protocol

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


class Writer(Protocol):
    """Collects lines of assembly; see `compilation`."""

    lines: list[str]
    declarations: set[str]

    def value(self, text: str) -> str: ...
    def call(self, function: str, arguments: Sequence[str]) -> str: ...


def sines_and_cosines(write: Writer, angles: Sequence[str]) -> list[tuple[str, str]]:
    """Write the assembly; returns the names of both values of each angle."""
    results = []
    for first in range(0, len(angles), WIDTH):
        results += _group(write, angles[first : first + WIDTH])
    return results


def _group(write: Writer, angles: Sequence[str]) -> list[tuple[str, str]]:
    """Up to four angles, in a vector of one, two or four numbers."""
    label, width = len(write.lines), {1: 1, 2: 2}.get(len(angles), WIDTH)
    real, whole, bits = (
        ("double", "i64", "i1")
        if width == 1
        else (f"<{width} x double>", f"<{width} x i64>", f"<{width} x i1>")
    )
    suffix = "f64" if width == 1 else f"v{width}f64"
    write.declarations |= {
        f"declare {real} @llvm.fma.{suffix}({real}, {real}, {real})",
        f"declare {real} @llvm.fabs.{suffix}({real})",
    }

    def all_of(kind: str, value: str | int) -> str:
        return str(value) if width == 1 else "<" + ", ".join([f"{kind} {value}"] * width) + ">"

    def number(value: float) -> str:
        return all_of("double", "0x" + struct.pack(">d", value).hex())

    def fma(a: str, b: str, c: str) -> str:
        return write.value(f"call {real} @llvm.fma.{suffix}({real} {a}, {real} {b}, {real} {c})")

    def binary(operation: str, a: str, b: str) -> str:
        return write.value(f"{operation} {real if operation[0] == 'f' else whole} {a}, {b}")

    def negative(a: str) -> str:
        return write.value(f"fneg {real} {a}")

    def polynomial(coefficients: tuple[float, ...], z: str) -> str:
        result = number(coefficients[-1])
        for c in coefficients[-2::-1]:
            result = fma(result, z, number(c))
        return result

    def with_sign(value: str, quadrant: str) -> str:
        """Negative in the quadrants 2 and 3."""
        bit = binary("shl", binary("and", quadrant, all_of("i64", 2)), all_of("i64", 62))
        return write.value(
            f"bitcast {whole} {binary('xor', write.value(f'bitcast {real} {value} to {whole}'), bit)} to "
            f"{real}"
        )

    def taken_apart(vector: str) -> list[str]:
        return (
            [vector]
            if width == 1
            else [write.value(f"extractelement {real} {vector}, i64 {i}") for i in range(len(angles))]
        )

    x = angles[0] if width == 1 else "poison"
    for i in range(width if width > 1 else 0):
        x = write.value(f"insertelement {real} {x}, double {angles[min(i, len(angles) - 1)]}, i64 {i}")
    size = write.value(f"call {real} @llvm.fabs.{suffix}({real} {x})")
    near = write.value(f"fcmp olt {real} {size}, {number(LARGEST)}")
    if width > 1:
        near = write.value(f"icmp eq i{width} {write.value(f'bitcast {bits} {near} to i{width}')}, -1")
    write.lines += [f"br i1 {near}, label %near{label}, label %far{label}", f"far{label}:"]
    far = [[write.call(f"llvm.{name}.f64", [angle]) for angle in angles] for name in ("sin", "cos")]
    write.lines += [f"br label %both{label}", f"near{label}:"]
    shifted = binary("fadd", binary("fmul", x, number(TWO_OVER_PI)), number(ROUND))
    quadrant = write.value(f"bitcast {real} {shifted} to {whole}")
    k = negative(binary("fsub", shifted, number(ROUND)))
    exact = fma(k, number(HALF_PI[0]), x)
    small = binary("fmul", k, number(HALF_PI[1]))
    r = binary("fadd", exact, small)
    share = binary("fsub", r, exact)
    lost = binary("fadd", binary("fsub", exact, binary("fsub", r, share)), binary("fsub", small, share))
    rho = fma(k, number(HALF_PI[2]), binary("fadd", lost, fma(k, number(HALF_PI[1]), negative(small))))
    z = binary("fmul", r, r)
    half = binary("fmul", z, number(0.5))
    sine = binary("fadd", r, fma(binary("fmul", z, r), polynomial(SINE, z), fma(negative(half), rho, rho)))
    rest = binary("fsub", number(1.0), half)
    lost = binary("fsub", binary("fsub", number(1.0), rest), half)
    cosine = binary(
        "fadd", rest, fma(binary("fmul", z, z), polynomial(COSINE, z), fma(negative(r), rho, lost))
    )
    even = write.value(f"icmp eq {whole} {binary('and', quadrant, all_of('i64', 1))}, {all_of('i64', 0)}")
    pairs = ((sine, cosine, quadrant), (cosine, sine, binary("add", quadrant, all_of("i64", 1))))
    found = [
        taken_apart(with_sign(write.value(f"select {bits} {even}, {real} {a}, {real} {b}"), at))
        for a, b, at in pairs
    ]
    write.lines += [f"br label %both{label}", f"both{label}:"]
    sines, cosines = (
        [
            write.value(f"phi double [{a}, %near{label}], [{b}, %far{label}]")
            for a, b in zip(*both, strict=True)
        ]
        for both in zip(found, far, strict=True)
    )
    return list(zip(sines, cosines, strict=True))
