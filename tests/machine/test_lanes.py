"""Code on vectors: every operation of a program, in line and by the library, against NumPy."""

import ctypes

import casadi as ca
import numpy as np
import pytest

from holonome.equations.program import OPERANDS, Program
from holonome.machine.elementary import FUNCTIONS
from holonome.machine.kernel import compiled
from holonome.machine.lanes import Lanes
from holonome.machine.llvm import Writer, part
from holonome.machine.ptx import ptx

X, Y = ca.SX.sym("x"), ca.SX.sym("y")


def on_lanes(expression, width, functions=None, library=True):
    """A function of two arrays whose length is a multiple of the width."""
    z = ca.SX.sym("z", 0)
    function = ca.Function("part", [ca.SX.sym("t"), ca.vertcat(X, Y), z, z], [expression])
    lanes = Lanes(Writer(), width, functions=functions or {}, library=library)
    text = part(Program.of(function), "f", lanes).replace("define internal", "define")
    kind = lanes.real
    text = "\n".join([*sorted(lanes.write.declarations), text]) + (
        f"\ndefine void @run(ptr %y, ptr %out) {{\n"
        f"%m = call {kind} @f({kind} zeroinitializer, ptr %y, ptr %y, ptr %y, ptr %out)\nret void\n}}\n"
    ).replace("double zeroinitializer", "double 0.0")
    code = compiled(text, "run", simplified=True)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(code.address)

    def call(x, y):
        out = np.empty(x.size)
        for i in range(0, x.size, width):
            given, found = np.concatenate([x[i : i + width], y[i : i + width]]), np.empty(width)
            run(given.ctypes.data, found.ctypes.data)
            out[i : i + width] = found
        assert code
        return out

    return call


def numbers():
    random = np.random.default_rng(0)
    x = random.uniform(-3, 3, 64) * 10.0 ** random.integers(-8, 3, 64)
    return x, random.uniform(-2, 2, 64)


@pytest.mark.parametrize("name", sorted(OPERANDS))
def test_lanes_compute_what_one_number_gets(name):
    code = getattr(ca, f"OP_{name.upper()}")
    expression = ca.SX.binary(code, X, Y) if OPERANDS[name] == 2 else ca.SX.unary(code, X)
    x, y = numbers()
    wide, narrow = on_lanes(expression, 4)(x, y), on_lanes(expression, 1)(x, y)
    np.testing.assert_array_equal(wide, narrow)


IN_LINE = {
    "exp": (np.exp, 2.0, np.linspace(-700, 700, 400)),
    "log": (np.log, 2.0, np.geomspace(1e-310, 1e300, 400)),
    "tan": (np.tan, 4.0, np.linspace(-30, 30, 400)),
    "atan": (np.arctan, 3.0, np.linspace(-30, 30, 400)),
    "asin": (np.arcsin, 8.0, np.linspace(-1, 1, 400)),
    "acos": (np.arccos, 8.0, np.linspace(-1, 1, 400)),
    "sinh": (np.sinh, 6.0, np.linspace(-30, 30, 400)),
    "cosh": (np.cosh, 6.0, np.linspace(-30, 30, 400)),
    "tanh": (np.tanh, 6.0, np.linspace(-30, 30, 400)),
    "expm1": (np.expm1, 6.0, np.linspace(-5, 5, 400)),
    "sin": (np.sin, 2.0, np.linspace(-1e6, 1e6, 400)),
}


@pytest.mark.parametrize("name", sorted(IN_LINE))
def test_functions_in_line(name):
    function, units, x = IN_LINE[name]
    found = on_lanes(getattr(ca, name)(X), 4, FUNCTIONS, library=False)(x, x)
    exact = function(x)
    assert np.max(np.abs(found - exact) / np.spacing(np.maximum(np.abs(exact), 1e-300))) <= units


def test_functions_of_two_numbers_in_line():
    random = np.random.default_rng(1)
    x, y = random.uniform(-5, 5, 400), random.uniform(-5, 5, 400)
    found = on_lanes(ca.atan2(X, Y), 4, FUNCTIONS, library=False)(x, y)
    np.testing.assert_allclose(found, np.arctan2(x, y), rtol=1e-15)
    found = on_lanes(X**Y, 4, FUNCTIONS, library=False)(np.abs(x), y)
    np.testing.assert_allclose(found, np.abs(x) ** y, rtol=1e-14)
    found = on_lanes(ca.hypot(X, Y), 4, FUNCTIONS, library=False)(x, y)
    np.testing.assert_allclose(found, np.hypot(x, y), rtol=1e-15)


def test_special_values_in_line():
    x = np.array([0.0, np.inf, -np.inf, np.nan, -1.0, 1.0, 1e-320, 800.0])
    with np.errstate(all="ignore"):
        for name, function in (("exp", np.exp), ("log", np.log), ("tanh", np.tanh)):
            found = on_lanes(getattr(ca, name)(X), 4, FUNCTIONS, library=False)(x, x)
            np.testing.assert_allclose(found, function(x), rtol=1e-14)
        y = np.array([0.0, 2.0, 3.0, 0.5])
        for base in (-2.0, 0.0, 3.0, np.inf):
            found = on_lanes(X**Y, 4, FUNCTIONS, library=False)(np.full(4, base), y)
            np.testing.assert_allclose(found, np.full(4, base) ** y, rtol=1e-14)


def test_far_angles_do_not_disturb_their_neighbours():
    x = np.array([0.5, 1e15, -0.25, np.nan])
    found = on_lanes(ca.sin(X), 4)(x, x)
    alone = on_lanes(ca.sin(X), 4)(np.array([0.5, 0.5, -0.25, 0.1]), x)
    assert found[0] == alone[0]
    assert found[2] == alone[2]
    assert abs(found[1] - np.sin(1e15)) < 1e-15
    assert np.isnan(found[3])


def test_ptx_of_every_function_that_is_in_line():
    lanes = Lanes(Writer(), 1, functions=FUNCTIONS, library=False)
    z = ca.SX.sym("z", 0)
    whole = sum((getattr(ca, name)(X) for name in IN_LINE), ca.atan2(X, Y) + X**Y + ca.hypot(X, Y))
    function = ca.Function("part", [ca.SX.sym("t"), ca.vertcat(X, Y), z, z], [whole])
    text = part(Program.of(function), "f", lanes, "alwaysinline").replace("internal ", "ptx_kernel ")
    text = text.replace("define ptx_kernel double", "define double")
    made = ptx("\n".join([*sorted(lanes.write.declarations), text]))
    assert ".version" in made
    assert "fma.rn.f64" in made
    assert "extern" not in made
