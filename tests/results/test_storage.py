"""Saved results: what comes back is what was saved, with its system, and nothing in a file is code."""

import bz2
import contextlib
import io
import json
import math
import tracemalloc
import zipfile

import numpy as np
import pytest

import holonome as hn
from holonome.results import files


@pytest.mark.parametrize("name", list(hn.mechanisms.available()))
def test_every_result_comes_back_with_its_system(name, tmp_path):
    mechanism = hn.mechanisms.get(name)
    t_span = (0.0, min(0.1, mechanism.t_span[1]))
    saved = hn.solve(mechanism.system, t_span, mechanism.q0, mechanism.v0)
    found = hn.Solution.load(saved.save(tmp_path / "run.npz"))
    assert str(found) == str(saved)
    for part in ("t", "q", "v", "s", "lam", "g", "gv", "a"):
        np.testing.assert_array_equal(getattr(found, part), getattr(saved, part), err_msg=part)
    np.testing.assert_array_equal(found.history.h, saved.history.h)
    assert found.history.cause == saved.history.cause
    assert dict(found.system.parameters).keys() == dict(mechanism.system.parameters).keys()
    again = hn.solve(found.system, t_span, mechanism.q0, mechanism.v0)
    np.testing.assert_allclose(again.q[:, -1], saved.q[:, -1], rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", list(hn.mechanisms.available()))
def test_drawings_come_back(name, tmp_path):
    mechanism = hn.mechanisms.get(name)
    saved = hn.solve(mechanism.system, (0.0, 0.01), mechanism.q0, mechanism.v0)
    found = hn.Solution.load(saved.save(tmp_path / "run.npz"))
    p = saved.system.parameters.namespace(saved.system.parameters.flat)
    for times in (slice(None), 0):
        before, after = (
            run.system.drawing.at(saved.q[:, times], p, saved.t[times], saved.s[:, times])
            for run in (saved, found)
        )
        assert list(before) == list(after)
        for point in before:
            np.testing.assert_allclose(after[point], before[point], rtol=0, atol=1e-14)
    assert [list(pair) for pair in found.system.drawing.links] == [
        list(pair) for pair in saved.system.drawing.links
    ]


def test_an_ode_with_its_invariant_comes_back(tmp_path):
    circle = hn.ODE(
        lambda x, p: p.omega * np.array([-x[1], x[0]]),
        invariant=lambda x: x @ x,
        names=["a", "b"],
        parameters={"omega": 2.0, "unused": np.eye(2)},
    )
    saved = hn.solve(circle, (0, 5), [1, 0], method="bdf")
    found = hn.Solution.load(saved.save(tmp_path / "run.npz"))
    assert isinstance(found.system, hn.ODE)
    np.testing.assert_array_equal(found.x, saved.x)
    np.testing.assert_array_equal(found.invariant, saved.invariant)
    np.testing.assert_array_equal(found.system.parameters["unused"], np.eye(2))


def test_a_result_without_history_comes_back(tmp_path):
    pendulum = hn.mechanisms.get("pendulum")
    saved = hn.solve(pendulum.system, (0, 1), pendulum.q0, t_eval=[0.5, 1.0])
    found = hn.Solution.load(saved.save(tmp_path / "run.npz"))
    assert found.history is None
    np.testing.assert_array_equal(found.q, saved.q)


def test_functions_that_cannot_be_traced_are_asked_for(tmp_path):
    def force(q):
        return np.array([0.0, -9.81 if math.floor(float(q[0]) * 0.0) == 0 else 0.0])

    system = hn.System(np.eye(2), force, lambda q: q @ q - 1, names=["x", "y"])
    assert system.paths["force"] != "traced"
    saved = hn.solve(system, (0, 0.5), [1, 0])
    path = saved.save(tmp_path / "run.npz")
    with pytest.raises(ValueError, match="could not be traced"):
        hn.Solution.load(path)
    np.testing.assert_array_equal(hn.Solution.load(path, system=system).lam, saved.lam)
    with pytest.raises(ValueError, match="4 coordinates, 2 constraints"):
        hn.Solution.load(path, system=hn.mechanisms.get("double_pendulum").system)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "text.npz").write_text("nothing")
    np.savez(tmp_path / "other.npz", t=[0.0])
    np.savez(tmp_path / "pickle.npz", t=np.array([{}], dtype=object))
    for name, message in (
        ("text", "not a file of NumPy arrays"),
        ("other", "not a saved result"),
        ("pickle", "not a file of NumPy arrays"),
    ):
        with pytest.raises(ValueError, match=message):
            hn.Solution.load(tmp_path / f"{name}.npz")
    with pytest.raises(FileNotFoundError):
        hn.Solution.load(tmp_path / "missing.npz")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The file of a short run, and its arrays."""
    pendulum = hn.mechanisms.get("pendulum")
    path = hn.solve(pendulum.system, (0, 1), pendulum.q0).save(tmp_path_factory.mktemp("saved") / "run.npz")
    with np.load(path) as arrays:
        return path, dict(arrays)


def refused(path):
    """The one error of a file that cannot be read; it names the file."""
    with pytest.raises(hn.UnreadableFile) as caught:
        hn.Solution.load(path)
    assert repr(str(path)) in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(path))
    return str(caught.value)


def packed(array):
    """An array as it stands in a file."""
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array))
    return buffer.getvalue()


OTHERS = {
    "t": [np.nan, -1.0],
    "q": [np.array([[{}]], dtype=object), 1j, True, np.zeros((0, 0)), np.zeros(3, dtype="M8[s]")],
    "v": [np.zeros((1, 3))],
    "s": [np.zeros(3)],
    "lam": [np.zeros((2, 3)), "text"],
    "status": [99, np.nan, np.array([0])],
    "steps": [-1, 2.5, np.uint64(2**64 - 1)],
    "format": [0, -1, 3, 2.0],
    "rtol": [np.nan, -1.0, np.inf, "1e-6"],
    "atol": [np.nan, [[1.0]]],
    "method": ["\x1b]0;title\x07", b"auto"],
    "message": ["\ud800", 5],
    "accepted": [np.zeros((1, 5)), np.full((1, 6), np.nan)],
    "rejected": [np.full((1, 4), 0.5), np.zeros((1, 2))],
    "singular_times": [np.array([np.nan])],
    "system": [5, "{", "[" * 100_000, '{"kind":' * 100_000, "[]", '{"kind":["System"]}'],
}


@pytest.mark.parametrize("name", OTHERS)
def test_arrays_that_no_run_gives_are_refused(name, saved, tmp_path):
    for value in OTHERS[name]:
        whole = np.full(saved[1]["t"].shape, value) if name == "t" else value
        if name == "t" and value == -1.0:
            whole[len(whole) // 2 :] = -2.0
            whole[-1] = 0.0
        np.savez(tmp_path / "run.npz", **saved[1] | {name: whole})
        refused(tmp_path / "run.npz")


@pytest.mark.parametrize("name", [name for name in OTHERS if name not in ("format", "accepted", "rejected")])
def test_missing_arrays_are_noticed(name, saved, tmp_path):
    np.savez(tmp_path / "run.npz", **{key: array for key, array in saved[1].items() if key != name})
    if name == "singular_times":
        hn.Solution.load(tmp_path / "run.npz")
    else:
        refused(tmp_path / "run.npz")


@pytest.mark.parametrize("kind", [">f8", "f4", "g", "i8"])
def test_other_types_of_numbers_are_converted(kind, saved, tmp_path):
    whole = {"t": np.arange(saved[1]["t"].size), "q": np.ones_like(saved[1]["q"])}
    np.savez(tmp_path / "run.npz", **saved[1] | {name: value.astype(kind) for name, value in whole.items()})
    found = hn.Solution.load(tmp_path / "run.npz")
    np.testing.assert_array_equal(found.g, np.ones_like(found.g))
    assert found.t.dtype == found.q.dtype == float


def changed_system(saved, path, change):
    """The file with another system."""
    state = json.loads(str(saved[1]["system"]))
    change(state)
    np.savez(path, **saved[1] | {"system": json.dumps(state)})
    return path


def force(**parts):
    return lambda state: state["functions"]["force"].update(parts)


def more(*operation):
    return lambda state: state["functions"]["force"]["operations"].append(list(operation))


SYSTEMS = {
    "a name that is a list": lambda state: state.update(name=[[]]),
    "commands to a terminal": lambda state: state.update(names=["\x1b[2J", "y"]),
    "half a character": lambda state: state.update(names=["\ud800", "y"]),
    "the same name twice": lambda state: state.update(names=["x", "x"]),
    "another kind": lambda state: state.update(kind="Popen"),
    "an ODE with coordinates": lambda state: state.update(kind="ODE"),
    "no size": lambda state: state.update(n=math.nan),
    "a negative size": lambda state: state.update(n=-1),
    "a huge size": lambda state: state.update(n=10**9),
    "a size that is true": lambda state: state.update(n=True),
    "a parameter that is text": lambda state: state["parameters"].update(g="9.81"),
    "a parameter that is NaN": lambda state: state["parameters"].update(g=math.nan),
    "a ragged parameter": lambda state: state["parameters"].update(g=[[1], [1, 2]]),
    "a huge parameter": lambda state: state["parameters"].update(g=10**400),
    "parameters without names": lambda state: state.update(parameters=[9.81, 1.0]),
    "a state that is NaN": lambda state: state.update(states={"s": "nan"}),
    "no functions": lambda state: state.update(functions={}),
    "an unknown function": lambda state: state["functions"].update(__init__=state["functions"]["force"]),
    "half an elastic element": lambda state: state["functions"].update(
        {"elastic[0].stiffness": state["functions"]["force"]}
    ),
    "no operations": force(operations="none"),
    "an operation of itself": lambda state: state["functions"]["force"]["operations"].insert(0, ["neg", 0]),
    "an operation of a later one": more("neg", 10**6),
    "an operation before the first": more("neg", -1),
    "an operation by a fraction": more("neg", 0.0),
    "an operation by a huge number": more("neg", 10**4000),
    "an unknown operation": more("system", 0),
    "too few operands": more("add", 0),
    "an input that is not there": more("input", 99, 0),
    "an entry that is not there": more("input", 1, 2),
    "a constant that is NaN": more("const", math.nan),
    "a result of negative size": force(outputs=[{"shape": [-1, -1], "operations": []}]),
    "a huge result": force(outputs=[{"shape": [10**4, 10**4], "operations": []}]),
    "a result with gaps": force(outputs=[{"shape": [2, 1], "operations": [0], "positions": [0]}]),
    "huge inputs": force(inputs=[["t", 10**8]]),
    "inputs in another order": lambda state: state["functions"]["force"]["inputs"].reverse(),
    "a drawing that is text": lambda state: state.update(drawing="bob"),
    "a camera without angles": lambda state: state["drawing"].update(camera=[math.nan, 0.0]),
    "a link to nowhere": lambda state: state["drawing"].update(links=[["pivot", "elsewhere"]]),
    "a link of text": lambda state: state["drawing"].update(links=["ab"]),
    "a wheel around nothing": lambda state: state["drawing"].update(circles=[["pivot", "elsewhere"]]),
    "a wheel with two rims in the plane": lambda state: state["drawing"].update(
        circles=[["pivot", "bob", "bob"]]
    ),
    "a wheel of text": lambda state: state["drawing"].update(circles=["pivot"]),
    "circles that are no list": lambda state: state["drawing"].update(circles={"pivot": "bob"}),
    "a symbol of no kind": lambda state: state["drawing"].update(symbols=[["<script>", "pivot"]]),
    "a symbol nowhere": lambda state: state["drawing"].update(symbols=[["revolute", "elsewhere"]]),
    "a symbol with numbers": lambda state: state["drawing"].update(symbols=[["revolute", 1]]),
    "a track through one point": lambda state: state["drawing"].update(tracks=[["pivot"]]),
    "an arrow of three points": lambda state: state["drawing"].update(arrows=[["pivot", "bob", "bob"]]),
    "a line to nowhere": lambda state: state["drawing"].update(lines=[["pivot", "elsewhere"]]),
    "traces in a text": lambda state: state["drawing"].update(traces="bob"),
}


@pytest.mark.parametrize("change", SYSTEMS.values(), ids=SYSTEMS)
def test_forged_systems_are_refused(change, saved, tmp_path):
    refused(changed_system(saved, tmp_path / "run.npz", change))


def test_drawings_of_earlier_files_have_fewer_parts(saved, tmp_path):
    def older(state):
        for part in ("lines", "circles", "symbols", "tracks", "arrows"):
            del state["drawing"][part]

    found = hn.Solution.load(changed_system(saved, tmp_path / "run.npz", older))
    assert found.system.drawing.circles == ()
    assert found.system.drawing.links


def test_names_are_only_names(saved, tmp_path):
    name = "[red]../../<!--<script></script>"
    path = changed_system(saved, tmp_path / "run.npz", lambda state: state.update(name=name))
    found = hn.Solution.load(path)
    assert found.system.name == name
    assert "[red]" in str(found)
    page = found.animate().html
    assert "<!--" not in page[page.index('id="data"') :]


def test_truncated_files_are_refused(saved, tmp_path):
    whole = saved[0].read_bytes()
    for length in (0, 1, 100, len(whole) // 2, len(whole) - 22, len(whole) - 1):
        (tmp_path / "run.npz").write_bytes(whole[:length])
        refused(tmp_path / "run.npz")
    refused(tmp_path)


def test_a_bomb_does_not_go_off(saved, tmp_path):
    """An array packed by bzip2 whose header promises little, and one that promises too much."""
    zeros, packer = bytes(2**22), bz2.BZ2Compressor()
    content = packer.compress(packed(saved[1]["q"])) + b"".join(packer.compress(zeros) for _ in range(64))
    with zipfile.ZipFile(tmp_path / "run.npz", "w") as archive:
        for name, array in saved[1].items():
            if name != "q":
                archive.writestr(f"{name}.npy", packed(array))
        info = zipfile.ZipInfo("q.npy")
        archive.writestr(info, content + packer.flush())
        info.file_size, info.compress_type = len(packed(saved[1]["q"])), zipfile.ZIP_BZIP2
    whole = bytearray((tmp_path / "run.npz").read_bytes())
    whole[info.header_offset + 8 : info.header_offset + 10] = bytes([zipfile.ZIP_BZIP2, 0])
    (tmp_path / "run.npz").write_bytes(whole)
    tracemalloc.start()
    refused(tmp_path / "run.npz")
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used < 2**24

    np.savez_compressed(tmp_path / "run.npz", **saved[1] | {"unused": np.zeros(files.UNQUESTIONED // 8)})
    assert "bytes when unpacked" in refused(tmp_path / "run.npz")


def test_what_packs_too_tightly_is_stored_as_it_is(saved, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "UNQUESTIONED", 2**16)
    rest = hn.System([1.0] * 4, [0.0] * 4, names=list("abcd"))
    found = hn.solve(rest, (0, 1), [0.0] * 4, t_eval=np.linspace(0, 1, 200_001))
    kept = found.changed(t=np.zeros_like(found.t))
    again = hn.Solution.load(kept.save(tmp_path / "rest.npz"))
    np.testing.assert_array_equal(again.states[:, :8], kept.states[:, :8])


def test_damage_anywhere_gives_a_result_or_one_error(saved, tmp_path):
    """Bytes of a file at random; what can still be read can be used."""
    whole, rng = saved[0].read_bytes(), np.random.default_rng(20)
    loaded = 0
    for _ in range(400):
        damaged = bytearray(whole)
        for place in rng.integers(len(whole), size=rng.choice([1, 1, 2, 5, 50])):
            damaged[place] = rng.integers(256)
        (tmp_path / "run.npz").write_bytes(damaged)
        with contextlib.suppress(hn.UnreadableFile):
            found = hn.Solution.load(tmp_path / "run.npz")
            loaded += 1
            assert found.q.shape == found.v.shape == (2, found.t.size)
    assert loaded
    arrays = {name: array for name, array in saved[1].items() if name != "system"}
    text = str(saved[1]["system"])
    for _ in range(400):
        place, letter = rng.integers(len(text)), chr(rng.integers(32, 127))
        changed = text[:place] + letter + text[place + rng.integers(2) :]
        np.savez(tmp_path / "run.npz", **arrays, system=changed)
        with contextlib.suppress(hn.UnreadableFile):
            hn.Solution.load(tmp_path / "run.npz")
