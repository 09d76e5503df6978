"""A value that a function has captured is frozen; solve notices that it has changed, and names it."""

import functools
import types

import numpy as np
import pytest

import holonome as hn

STIFFNESS = 4.0
TABLE = np.array([1.0, 2.0, 3.0])
LEVELS = [0.5]


def solve(system, **options):
    return hn.solve(system, (0.0, 1.0), [1.0], **options)


def refused(system, name, **options):
    with pytest.raises(hn.ModelError, match=r"when the function was traced.*parameters=") as caught:
        solve(system, **options)
    assert f": {name} was " in str(caught.value)


def of(force):
    system = hn.System(1.0, force, names=["x"])
    assert system.paths["force"] in ("traced", "numba")
    assert solve(system).success
    assert solve(system).success
    return system


def test_closures():
    k = 4.0
    system = of(lambda q: -k * q)
    k = 2.0 + 2.0
    assert solve(system).success
    k = 5.0
    refused(system, "k")
    k = 4.0
    assert solve(system).success


def test_globals(monkeypatch):
    system = of(lambda q: -STIFFNESS * q * TABLE[0])
    monkeypatch.setitem(globals(), "STIFFNESS", 5.0)
    refused(system, "STIFFNESS")
    monkeypatch.undo()
    assert solve(system).success
    TABLE[0] = 7.0
    refused(system, "TABLE")
    TABLE[0] = 1.0
    assert solve(system).success


def test_what_a_helper_reads(monkeypatch):
    def helper(q):
        return STIFFNESS * q

    system = of(lambda q: -helper(q))
    monkeypatch.setitem(globals(), "STIFFNESS", 5.0)
    refused(system, "STIFFNESS")


class Spring:
    shared = 1.0

    def __init__(self):
        self.k, self.log, self.nested = 4.0, [], types.SimpleNamespace()
        self.part = Part()

    def force(self, q):
        return -self.k * self.shared * self.part.scale * q + self.offset()

    def offset(self):
        return np.array(self.part.offsets)


class Part:
    def __init__(self):
        self.scale, self.offsets = 1.0, [0.0]


@pytest.mark.parametrize("bound", [True, False])
def test_attributes(bound):
    spring = Spring()
    system = of(spring.force if bound else lambda q: spring.force(q))
    spring.log.append("something else")
    spring.other = 3.0
    assert solve(system).success
    owner = "self" if bound else "spring"
    for holder, attribute, value in ((spring, "k", 5.0), (spring.part, "scale", 2.0)):
        before = getattr(holder, attribute)
        setattr(holder, attribute, value)
        refused(system, f"{owner}.{attribute}" if holder is spring else f"{owner}.part.{attribute}")
        setattr(holder, attribute, before)
    spring.part.offsets[0] = 1.0
    refused(system, f"{owner}.part.offsets")


def test_class_attributes(monkeypatch):
    system = of(Spring().force)
    monkeypatch.setattr(Spring, "shared", 2.0)
    refused(system, "self.shared")


def test_defaults_partials_containers_and_large_arrays():
    gains, settings, table = np.array([4.0]), {"k": [1.0]}, np.ones(100_000)

    def force(q, factor, gains=gains):
        return -gains * factor * settings["k"][0] * table[0] * q

    system = of(functools.partial(force, factor=2.0))
    for array, name in ((gains, "gains"), (table, "table")):
        array[...] = 3.0
        refused(system, name)
        array[...] = 4.0 if array is gains else 1.0
    settings["k"][0] = 2.0
    refused(system, "settings")


def test_one_element_of_a_large_array():
    table = np.ones(100_000)
    system = of(lambda q: -table[4321] * q)
    for i in (0, 4321, 99_999):
        table[i] = 3.0
        refused(system, "table")
        table[i] = 1.0
    assert solve(system).success


def test_numba_freezes_too_and_python_does_not():
    k, known = 4.0, {}

    def compiled(q):
        return np.array([-k * float(q[0])])

    def called(q):
        known["x"] = str(q[0])
        return [-k * float(q[0])]

    systems = [hn.System(1.0, force, names=["x"]) for force in (compiled, called)]
    assert [system.paths["force"] for system in systems] == ["numba", "python"]
    k = 5.0
    refused(systems[0], "k")
    assert solve(systems[1], rtol=1e-9).q[0, -1] == pytest.approx(np.cos(np.sqrt(5.0)), abs=1e-7)


def test_what_a_function_changes_itself_is_its_own_affair():
    calls = [0]

    def force(q):
        calls[0] += 1
        return -q

    system = of(force)
    calls[0] = 100
    assert solve(system).success


def test_events():
    level, system = [0.6], hn.System(1.0, lambda q: -q, names=["x"])

    def event(q):
        return q[0] - level[0]

    for _ in range(2):
        assert solve(system, events=event, rtol=1e-9).t_events[0] == pytest.approx([np.arccos(0.6)])
    level[0] = 0.8
    refused(system, "level", events=event)
    found = solve(system, events=lambda q: q[0] - level[0], rtol=1e-9).t_events[0]
    assert found == pytest.approx([np.arccos(0.8)])


def test_problems_of_index_2_and_consistent_values():
    k = 1.0
    problem = hn.Index2System(lambda x: -k * x, [[1.0], [0.0]], lambda x: x[:1], n=2)
    system = hn.System(1.0, lambda q: -k * q, lambda q: q[:1] - 1.0, names=["x"])
    k = 2.0
    with pytest.raises(hn.ModelError, match=r"f: k was 1\.0"):
        hn.solve(problem, (0, 1), [0.0, 1.0])
    with pytest.raises(hn.ModelError, match=r"force: k was 1\.0"):
        hn.consistent(system, [1.0])
