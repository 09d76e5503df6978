"""Programs come back exactly, through JSON and as CasADi functions; crafted ones are refused, and reading a
file executes nothing.
"""

import copy
import io
import json
import pickle
import shutil
import zipfile
from itertools import product
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import holonome as hn
from holonome.equations import program as programs
from holonome.equations.program import OPERANDS, Program
from holonome.results import files

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-300, -1e300, 710.0, np.inf, -np.inf, np.nan]


def example() -> Program:
    x, p = ca.SX.sym("x", 3), ca.SX.sym("p", 1)
    sparse = ca.SX(3, 2)
    sparse[0, 0], sparse[2, 1] = ca.sin(x[0]) * p, ca.if_else(x[1] > 0, x[2], 1 / x[0])
    return Program.of_expressions({"x": x, "p": p}, [x + p * 1e-17, sparse])


def bits(values) -> bytes:
    """Tells -0 from 0, but not one NaN from another."""
    array = np.array(values, dtype=float)
    return np.where(np.isnan(array), np.nan, array).tobytes()


def through_json(program: Program) -> Program:
    return Program.from_dict(json.loads(json.dumps(program.as_dict(), allow_nan=False)))


@pytest.mark.parametrize("name", OPERANDS)
def test_every_operation_comes_back(name):
    x = ca.SX.sym("x", 2)
    code = getattr(ca, f"OP_{name.upper()}")
    right = ca.SX(2.5) if name == "constpow" else x[1]
    value = ca.SX.unary(code, x[0]) if OPERANDS[name] == 1 else ca.SX.binary(code, x[0], right)
    before = ca.Function("f", [x], [value])
    program = Program.of(before)
    assert name in {operation[0] for operation in program.operations}
    again = through_json(program)
    assert again == program
    after = again.function()
    assert Program.of(after).operations == program.operations
    for point in product(SPECIAL, SPECIAL):
        assert bits(before(point)) == bits(after(point)), point


@pytest.mark.parametrize("name", OPERANDS)
def test_derivatives_are_those_of_the_original(name):
    x = ca.SX.sym("x", 2)
    inner = ca.vertcat(x[0] * x[1] + 0.3, ca.sin(x[1]) - x[0])
    code = getattr(ca, f"OP_{name.upper()}")
    right = ca.SX(2.5) if name == "constpow" else inner[1]
    value = ca.SX.unary(code, inner[0]) if OPERANDS[name] == 1 else ca.SX.binary(code, inner[0], right)
    (again,) = through_json(Program.of_expressions({"x": x}, [value])).expressions([x])
    before, after = (ca.Function("f", [x], [ca.densify(ca.jacobian(f, x))]) for f in (value, again))
    for point in np.random.default_rng(3).uniform(-2, 2, (50, 2)):
        assert bits(before(point)) == bits(after(point))


@pytest.mark.parametrize("value", [*SPECIAL, 0.1, 5e-324, 1.7976931348623157e308, 2**53 + 2.0])
def test_constants_are_exact(value):
    program = Program((), (("const", value),), (programs.Output(1, 1, range(1), (0,)),))
    found = through_json(program).operations[0][1]
    assert type(found) is float
    assert bits(found) == bits(value)


def test_sparse_outputs_sizes_and_counts():
    program = example()
    again = through_json(program)
    assert again == program
    assert [(output.rows, output.columns, output.dense) for output in again.outputs] == [
        (3, 1, True),
        (3, 2, False),
    ]
    assert list(again.outputs[1].positions) == [0, 5]
    assert again.inputs == (("x", 3), ("p", 1))
    function = again.function()
    assert function.sparsity_out(1).nnz() == 2
    assert len(again) + 5 == again.cost == function.n_instructions()
    for clone in (copy.deepcopy(program), pickle.loads(pickle.dumps(program))):
        assert clone == program


def test_operations_outside_the_list_are_not_read():
    x = ca.SX.sym("x")
    with pytest.raises(NotImplementedError, match="not known"):
        Program.of(ca.Function("f", [x], [ca.erfinv(x)]))


CRAFTED = {
    "no object": lambda data: [],
    "no fields": lambda data: {},
    "no list": lambda data: data | {"operations": "input"},
    "inputs": lambda data: data | {"inputs": [["x"]]},
    "name of an input": lambda data: data | {"inputs": [[3, 3], ["p", 1]]},
    "huge input": lambda data: data | {"inputs": [["x", 10**12], ["p", 1]]},
    "negative input": lambda data: data | {"inputs": [["x", -3], ["p", 1]]},
    "unknown operation": lambda data: with_operation(data, ["system", 0]),
    "internal operation": lambda data: with_operation(data, ["printme", 0, 0]),
    "no operation": lambda data: with_operation(data, []),
    "operation that is a number": lambda data: with_operation(data, [3, 0]),
    "operation that is a list": lambda data: with_operation(data, [["add"], 0]),
    "too few operands": lambda data: with_operation(data, ["add", 0]),
    "too many operands": lambda data: with_operation(data, ["sin", 0, 0]),
    "itself": lambda data: with_operation(data, ["sin", 3]),
    "later operation": lambda data: with_operation(data, ["sin", 5]),
    "negative operand": lambda data: with_operation(data, ["sin", -1]),
    "operand with a fraction": lambda data: with_operation(data, ["sin", 0.5]),
    "operand that is a truth": lambda data: with_operation(data, ["sin", True]),
    "operand that is a text": lambda data: with_operation(data, ["sin", "0"]),
    "input that is not there": lambda data: with_operation(data, ["input", 2, 0]),
    "entry that is not there": lambda data: with_operation(data, ["input", 0, 3]),
    "constant that is a text": lambda data: with_operation(data, ["const", "1.0"]),
    "constant beyond all bounds": lambda data: with_operation(data, ["const", 10**400]),
    "constant that is none": lambda data: with_operation(data, ["const", None]),
    "result that is not there": lambda data: with_output(data, {"shape": [1, 1], "operations": [10**6]}),
    "too few results": lambda data: with_output(data, {"shape": [2, 1], "operations": [0]}),
    "huge output": lambda data: with_output(
        data, {"shape": [10**8, 10**8], "operations": [], "positions": []}
    ),
    "huge dense output": lambda data: with_output(data, {"shape": [10**8, 1], "operations": []}),
    "shape": lambda data: with_output(data, {"shape": [3], "operations": []}),
    "positions": lambda data: with_output(data, {"shape": [3, 1], "operations": [0, 0], "positions": [1, 1]}),
    "position outside": lambda data: with_output(
        data, {"shape": [3, 1], "operations": [0], "positions": [3]}
    ),
}


def with_operation(data, operation):
    return data | {"operations": [*data["operations"][:3], operation, *data["operations"][4:]]}


def with_output(data, output):
    return data | {"outputs": [output]}


@pytest.mark.parametrize("what", CRAFTED)
def test_crafted_programs_are_refused(what):
    with pytest.raises(ValueError, match=r"^program: "):
        Program.from_dict(CRAFTED[what](example().as_dict()))


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    pendulum = hn.mechanisms.pendulum()
    result = hn.solve(pendulum.system, (0, 0.2), pendulum.q0)
    return result.save(tmp_path_factory.mktemp("saved") / "run.npz")


def changed(path: Path, target: Path, **arrays) -> Path:
    """A copy of a file with other arrays; None leaves one out."""
    with np.load(path) as file:
        data = {name: file[name] for name in file.files} | arrays
    np.savez_compressed(target, **{name: value for name, value in data.items() if value is not None})
    return target


def stored_system(path: Path) -> dict:
    with np.load(path) as file:
        return json.loads(str(file["system"]))


def test_files_tell_their_version(saved, tmp_path):
    with np.load(saved) as file:
        assert int(file["format"]) == 2
    with pytest.raises(ValueError, match="later version"):
        hn.Solution.load(changed(saved, tmp_path / "later.npz", format=3))


def test_truncated_and_damaged_files_are_refused(saved, tmp_path):
    whole, path = saved.read_bytes(), tmp_path / "damaged.npz"
    for length in [*range(0, len(whole), 499), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="damaged"):
            hn.Solution.load(path)
    random = np.random.default_rng(5)
    for _ in range(60):
        damaged = bytearray(whole)
        for place in random.integers(0, len(whole), 4):
            damaged[place] = random.integers(0, 256)
        path.write_bytes(damaged)
        try:
            hn.Solution.load(path)
        except ValueError as error:
            assert "damaged.npz" in str(error)  # noqa: PT017 - many a byte does not matter


WRONG_ARRAYS = {
    "t": np.zeros((2, 2)),
    "q": np.zeros((2, 1)),
    "v": np.zeros((1, 1)),
    "lam": np.zeros(3),
    "status": np.array(0.5),
    "nfev": np.array([1, 2]),
    "method": np.array(3.0),
    "message": None,
    "atol": np.array("small"),
    "rejected": np.zeros((0, 2)),
    "accepted": None,
    "system": np.array(7),
}


@pytest.mark.parametrize("name", WRONG_ARRAYS)
def test_arrays_that_do_not_fit_are_refused(saved, tmp_path, name):
    path = changed(saved, tmp_path / "wrong.npz", **{name: WRONG_ARRAYS[name]})
    with pytest.raises(ValueError, match=f"wrong.npz' .*wrong .*{name}|wrong.npz' is not a saved result"):
        hn.Solution.load(path)


def test_sizes_that_are_only_claimed_take_no_memory(saved, tmp_path):
    """A header that promises 8 TB, and zeros that unpack to more than a file may hold."""
    path = tmp_path / "huge.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    for content in (header.getvalue(), header.getvalue() + bytes(10**6)):
        shutil.copy(saved, path)
        with (
            zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
            pytest.warns(UserWarning, match="Duplicate"),
        ):
            archive.writestr("t.npy", content)
        with pytest.raises(ValueError, match="damaged"):
            hn.Solution.load(path)


def test_too_large_results_are_neither_read_nor_written(saved, tmp_path, monkeypatch):
    result = hn.Solution.load(saved)
    monkeypatch.setattr(files, "LARGEST", 10_000)
    with pytest.raises(ValueError, match="bytes when unpacked"):
        hn.Solution.load(saved)
    with pytest.raises(ValueError, match="fewer points"):
        result.save(tmp_path / "large.npz")


WRONG_SYSTEMS = {
    "not JSON": lambda state: "nothing",
    "list": lambda state: "[1, 2]",
    "deep": lambda state: "[" * 100_000,
    "deep number": lambda state: "1" * 10_000,
    "kind": lambda state: state | {"kind": "Popen"},
    "no functions": lambda state: state | {"functions": {}},
    "functions as text": lambda state: state | {"functions": {"mass": "jhpnnagiieahaaaadaaaaaaaaaa"}},
    "foreign role": lambda state: (
        state | {"functions": state["functions"] | {"name": state["functions"]["mass"]}}
    ),
    "wrong size": lambda state: (
        state | {"functions": state["functions"] | {"force": state["functions"]["mass"]}}
    ),
    "names": lambda state: state | {"names": ["x"]},
    "n": lambda state: state | {"n": 10**9},
    "n that is none": lambda state: state | {"n": None},
    "states": lambda state: state | {"states": ["s"]},
    "parameters": lambda state: state | {"parameters": {"g": "9.81"}},
    "more parameters": lambda state: state | {"parameters": {"g": [1.0] * 5}},
    "infinite parameter": lambda state: (
        state | {"parameters": state["parameters"] | {"gravity": float("inf")}}
    ),
    "drawing": lambda state: state | {"drawing": {"names": []}},
    "links": lambda state: state | {"drawing": state["drawing"] | {"links": [["pivot", "nowhere"]]}},
    "camera": lambda state: state | {"drawing": state["drawing"] | {"camera": [1.0]}},
}


@pytest.mark.parametrize("what", WRONG_SYSTEMS)
def test_crafted_systems_are_refused_and_another_may_be_given(saved, tmp_path, what):
    state = WRONG_SYSTEMS[what](stored_system(saved))
    text = state if isinstance(state, str) else json.dumps(state)
    path = changed(saved, tmp_path / "crafted.npz", system=text)
    with pytest.raises(ValueError, match=r"crafted.npz' cannot be read .*; give system=") as caught:
        hn.Solution.load(path)
    assert len(str(caught.value)) < 500
    assert hn.Solution.load(path, hn.mechanisms.pendulum().system).t[-1] == 0.2


@pytest.mark.parametrize("version", [None, 2])
def test_functions_that_casadi_serialised_are_refused(saved, tmp_path, monkeypatch, version):
    """Such functions can name a compiler, which CasADi starts when it reads them."""
    marker, script = tmp_path / "executed", tmp_path / "compiler.sh"
    script.write_text(f'#!/bin/sh\ntouch {marker}\nexec gcc "$@"\n')
    script.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    x = ca.SX.sym("x")
    options = {"jit": True, "compiler": "shell", "jit_options": {"compiler": str(script)}}
    if shutil.which("gcc") is None:
        options = {}
    crafted = ca.Function("traced", [x], [x**2], options).serialize()
    if options:
        marker.unlink()
        ca.Function.deserialize(crafted)
        assert marker.exists(), "the danger is real"
        marker.unlink()
    state = stored_system(saved)
    old = {"traced": dict.fromkeys(state["functions"], crafted), "drawing": {"points": crafted, "names": []}}
    for content in (state | old, state | {"functions": old["traced"]}, state | {"drawing": old["drawing"]}):
        path = changed(saved, tmp_path / "old.npz", system=json.dumps(content), format=version)
        with pytest.raises(ValueError, match=r"earlier version|cannot be read") as caught:
            hn.Solution.load(path)
        assert "give system=" in str(caught.value)
    assert hn.Solution.load(path, hn.mechanisms.pendulum().system).success
    with pytest.raises(ValueError, match="earlier version"):
        hn.problem.user_function.Expression.of_program("mass", crafted, 2)
    assert not marker.exists()


def test_nothing_in_the_package_reads_what_casadi_serialised():
    for file in Path(hn.__file__).parent.rglob("*.py"):
        assert "serialize(" not in file.read_text(), file


@pytest.mark.parametrize("name", list(hn.mechanisms.available()))
def test_systems_come_back_operation_for_operation(name):
    system = hn.mechanisms.get(name).system
    before = system.__getstate__()["traced"]
    after = pickle.loads(pickle.dumps(system)).__getstate__()["traced"]
    assert after == before
