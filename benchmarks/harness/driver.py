"""Calls of the drivers in C and Fortran, which all end with the same arguments (``driver.h``)."""

from __future__ import annotations

import ctypes as ct
from collections.abc import Callable

import numpy as np

VECTOR = np.ctypeslib.ndpointer(float, flags="C_CONTIGUOUS")
WHOLE = np.ctypeslib.ndpointer(np.int32, flags="C_CONTIGUOUS")
COUNTS = ("steps", "residuals", "jacobians", "error_failures", "newton_failures", "saved")
ENDING = [
    ct.c_int,
    VECTOR,
    VECTOR,
    ct.POINTER(ct.c_double),
    ct.POINTER(ct.c_long * len(COUNTS)),
    ct.c_char_p,
]
MOST_POINTS = 100_000
"""States after each step that are kept at most."""


def called(function: Callable, arguments: tuple, times: np.ndarray | None, points: int, size: int):
    """States, seconds, counts and message; ``times`` None means after each of at most ``points`` steps."""
    states = np.empty((points if times is None else len(times), size))
    seconds, counts, message = ct.c_double(), (ct.c_long * len(COUNTS))(), ct.create_string_buffer(400)
    flag = function(
        *arguments,
        -points if times is None else len(times),
        np.zeros(1) if times is None else times,
        states,
        ct.byref(seconds),
        ct.byref(counts),
        message,
    )
    count = dict(zip(COUNTS, counts, strict=True))
    complaint = (message.value.decode() or f"flag {flag}") if flag < 0 else ""
    return states[: count["saved"]], seconds.value, count, complaint
