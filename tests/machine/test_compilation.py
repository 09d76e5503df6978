"""Machine code gives what CasADi gives, for every operation; the cache survives damage, rivals and missing
rights.
"""

import errno
import multiprocessing
import os
import stat
import time

import casadi as ca
import mpmath
import numpy as np
import platformdirs
import pytest

import holonome as hn
from holonome.machine import announcements, cache
from holonome.machine import kernel as machine
from holonome.machine.cache import cache_folder
from holonome.machine.calls import run_kernel
from holonome.machine.context import OK, PARAMETERS, SINGULAR

OPERATIONS = {
    "arithmetic": lambda a, b: a * b - a / b + 2 * a - (-b) + 1 / a,
    "sq": lambda a, b: a * a + ca.sqrt(ca.fabs(b)),
    "pow": lambda a, b: ca.fabs(a) ** b + ca.fabs(a) ** 2.5,
    "exp": lambda a, b: ca.exp(a) + ca.log(ca.fabs(b)),
    "circular": lambda a, b: ca.sin(a) + ca.cos(b) + ca.tan(a),
    "inverse": lambda a, b: ca.asin(a / 4) + ca.acos(b / 4) + ca.atan(a),
    "atan2": ca.atan2,
    "hyperbolic": lambda a, b: ca.sinh(a) + ca.cosh(b) + ca.tanh(a),
    "area": lambda a, b: ca.asinh(a) + ca.acosh(2 + ca.fabs(b)) + ca.atanh(a / 4),
    "rounding": lambda a, b: ca.floor(a) + ca.ceil(b),
    "sign": lambda a, b: ca.sign(a) * ca.fabs(b) + ca.copysign(a, b),
    "least": lambda a, b: ca.fmin(a, b) - ca.fmax(a, b),
    "compare": lambda a, b: (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b),
    "logic": lambda a, b: (
        ca.logic_and(a > 0, b > 0) + 2 * ca.logic_or(a > 0, b > 0) + 4 * ca.logic_not(a > 0)
    ),
    "choose": lambda a, b: ca.if_else(a > b, ca.log(ca.fabs(a)), b),
    "remainder": lambda a, b: ca.fmod(a, b) + ca.remainder(a, b),
    "special": lambda a, b: ca.erf(a) + ca.expm1(b) + ca.log1p(ca.fabs(a)),
    "hypot": ca.hypot,
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLONOME_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def symbols():
    return ca.SX.sym("t"), ca.SX.sym("y", 2), ca.SX.sym("z", 1), ca.SX.sym("p", 1)


def evaluate(kernel, size, t=0.5, y=(0.3, -1.2), z=(0.7,), p=(2.0,)):
    out = np.full(size, np.nan)
    status = run_kernel(
        kernel.address, t, np.array(y), np.array(z), np.concatenate([np.zeros(PARAMETERS), p]), out
    )
    return status, out


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_gives_what_casadi_gives(name):
    inputs = symbols()
    expression = OPERATIONS[name](inputs[1][0], inputs[1][1])
    kernel, function = machine.kernel(expression, inputs), ca.Function("f", inputs, [expression])
    for y in np.random.default_rng(0).uniform(-3, 3, (20, 2)):
        status, out = evaluate(kernel, 1, y=y)
        assert status == OK
        assert out[0] == pytest.approx(float(function(0.5, y, 0.7, 2.0)), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7])
def test_sines_and_cosines_to_the_last_place(count):
    y = ca.SX.sym("y", count)
    compiled = machine.kernel(
        ca.vertcat(ca.sin(y), ca.cos(y)), [ca.SX.sym("t"), y, ca.SX.sym("z", 0), ca.SX.sym("p", 0)]
    )
    rng = np.random.default_rng(count)
    angles = np.concatenate(
        [
            rng.uniform(-7, 7, 700),
            10 ** rng.uniform(-300, 9, 200),
            np.arange(-150, 150) * np.pi / 4,
            rng.integers(1, 2**29, 200) * (np.pi / 2),
        ]
    )
    out = np.empty((angles.size // count, 2 * count))
    rows = angles[: len(out) * count].reshape(-1, count)
    for angle, result in zip(rows, out, strict=True):
        assert run_kernel(compiled.address, 0.0, angle, angle, np.zeros(PARAMETERS + 1), result) == OK
    with mpmath.workdps(50):
        exact = np.array(
            [[float(f(mpmath.mpf(x))) for f in (mpmath.sin, mpmath.cos) for x in row] for row in rows]
        )
    assert np.all(np.abs(out - exact) <= np.spacing(np.abs(exact)))


def test_sines_of_what_is_no_angle():
    y = ca.SX.sym("y", 4)
    compiled = machine.kernel(ca.sin(y), [ca.SX.sym("t"), y, ca.SX.sym("z", 0), ca.SX.sym("p", 0)])
    given, out = np.array([1e15, np.nan, np.inf, -1e300]), np.empty(4)
    run_kernel(compiled.address, 0.0, given, given, np.zeros(PARAMETERS + 1), out)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(out, np.sin(given), rtol=1e-15)


def test_sines_of_sines():
    y = ca.SX.sym("y", 3)
    inner = ca.sin(ca.cos(y[0]) + y[1]) * ca.sin(y[2])
    expression = ca.vertcat(ca.cos(inner), ca.sin(inner + ca.cos(y[1])), ca.sin(ca.sin(ca.sin(y[0]))))
    compiled = machine.kernel(expression, [ca.SX.sym("t"), y, ca.SX.sym("z", 0), ca.SX.sym("p", 0)])
    given, out = np.array([0.3, 2.0, -4.0]), np.empty(3)
    assert run_kernel(compiled.address, 0.0, given, given, np.zeros(PARAMETERS + 1), out) == OK
    np.testing.assert_allclose(out, ca.Function("f", [y], [expression])(given).full().ravel(), rtol=4e-16)


def test_inputs_constants_and_structural_zeros():
    t, y, z, p = inputs = symbols()
    sparse = ca.SX(5, 1)
    sparse[0], sparse[2], sparse[4] = t + z[0], 3.5 * p[0], y[1]
    status, out = evaluate(machine.kernel(sparse, inputs), 5)
    assert status == OK
    np.testing.assert_allclose(out[[0, 2, 4]], [1.2, 7.0, -1.2])
    assert np.all(np.isnan(out[[1, 3]]))


@pytest.mark.parametrize(
    ("y", "status"),
    [((1.0, 0.0), OK), ((-1.0, 0.0), SINGULAR), ((0.0, 0.0), SINGULAR), ((np.nan, 0.0), SINGULAR)],
)
def test_margin_decides_the_status(y, status):
    inputs = symbols()
    kernel = machine.kernel(inputs[1] * 2, inputs, margin=inputs[1][0])
    assert evaluate(kernel, 2, y=y)[0] == status


@pytest.mark.parametrize("size", [50, machine.OPTIMISED_UP_TO])
def test_large_functions(size):
    inputs = symbols()
    expression, value = inputs[1][0], 0.3
    for _ in range(size):
        expression, value = ca.sin(expression) + inputs[1][1], np.sin(value) - 1.2
    assert evaluate(machine.kernel(expression, inputs), 1)[1][0] == pytest.approx(value, abs=1e-12)


def stored(folder):
    return sorted(folder.rglob("*.o"))


def kernel_of_this_test(factor=1.25):
    inputs = symbols()
    return machine.kernel(factor * inputs[1], inputs)


def test_second_time_nothing_is_compiled(own_cache, monkeypatch):
    kernel_of_this_test()
    assert len(stored(own_cache)) == 1
    monkeypatch.setattr(machine, "_compile", lambda *_: pytest.fail("compiled again"))
    assert evaluate(kernel_of_this_test(), 2)[1][1] == -1.5


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"\0" * 500])
def test_damaged_files_are_replaced(own_cache, damage):
    kernel_of_this_test()
    (file,) = stored(own_cache)
    good = file.read_bytes()
    for bad in (damage, good[:-7], good[:40] + b"x" + good[41:]):
        file.write_bytes(bad)
        assert evaluate(kernel_of_this_test(), 2)[1][1] == -1.5
        assert file.read_bytes() == good


def test_folder_that_cannot_be_written(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("HOLONOME_CACHE", str(blocked))
    assert evaluate(kernel_of_this_test(), 2)[1][1] == -1.5
    readonly = tmp_path / "readonly"
    readonly.mkdir()
    readonly.chmod(stat.S_IRUSR | stat.S_IXUSR)
    monkeypatch.setenv("HOLONOME_CACHE", str(readonly))
    assert evaluate(kernel_of_this_test(), 2)[1][1] == -1.5


def _write_many(folder, factor):
    os.environ["HOLONOME_CACHE"] = folder
    for _ in range(10):
        for file in stored(cache_folder()):
            file.unlink(missing_ok=True)
        assert evaluate(kernel_of_this_test(factor), 2)[1][1] == pytest.approx(-1.2 * factor)


@pytest.mark.slow
def test_processes_that_write_at_once(own_cache):
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write_many, args=(str(own_cache), 1.5)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert not list(own_cache.rglob("tmp*"))


def test_a_sweep_compiles_nothing(monkeypatch):
    mechanism = hn.mechanisms.pendulum()
    hn.solve(mechanism.system, (0, 1), mechanism.q0)
    monkeypatch.setattr(machine, "_compile", lambda *_: pytest.fail("compiled again"))
    ends = [
        hn.solve(mechanism.system, (0, 1), mechanism.q0, parameters={"gravity": g}).q[0, -1]
        for g in (1.62, 3.7, 9.81)
    ]
    assert len(set(ends)) == 3


def test_code_of_another_model_is_refused(own_cache):
    kernel_of_this_test(1.25)
    (first,) = stored(own_cache)
    kernel_of_this_test(3.0)
    (second,) = [file for file in stored(own_cache) if file != first]
    first.write_bytes(second.read_bytes())
    assert evaluate(kernel_of_this_test(1.25), 2)[1][1] == -1.5


def test_folders_and_files_are_private(own_cache):
    before = os.umask(0)
    try:
        kernel_of_this_test()
    finally:
        os.umask(before)
    (file,) = stored(own_cache)
    assert [path.stat().st_mode & 0o777 for path in (file, *file.parents[:3])] == [0o600, 0o700, 0o700, 0o700]


def compiles(make, monkeypatch):
    """Whether something is compiled."""
    compiled, usual = [], machine._compile
    monkeypatch.setattr(machine, "_compile", lambda *given: compiled.append(given) or usual(*given))
    make()
    return bool(compiled)


@pytest.mark.parametrize("mode", [0o620, 0o602])
def test_files_that_others_may_write_are_replaced(own_cache, mode, monkeypatch):
    kernel_of_this_test()
    (file,) = stored(own_cache)
    file.chmod(mode)
    file.parent.chmod(0o777)
    assert compiles(kernel_of_this_test, monkeypatch)
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.fixture
def heard(monkeypatch):
    """Announcements are made in this test."""
    monkeypatch.delenv("HOLONOME_QUIET", raising=False)
    monkeypatch.setattr(announcements, "_said", set())


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_what_others_own_is_refused_and_said_once(own_cache, heard, capsys, monkeypatch):
    kernel_of_this_test()
    (file,) = stored(own_cache)
    os.chown(file, 12345, 12345)
    assert compiles(kernel_of_this_test, monkeypatch)
    os.chown(own_cache / "models", 12345, 12345)
    for factor in (2.0, 3.0):
        kernel_of_this_test(factor)
    assert len(stored(own_cache)) == 1
    said = capsys.readouterr().err
    assert said.count("belong") == said.count("\n") == 1
    assert "set HOLONOME_CACHE" in said


def test_a_full_disk_leaves_nothing_behind_and_is_said_once(own_cache, heard, capsys, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    for factor in (2.0, 3.0):
        assert evaluate(kernel_of_this_test(factor), 2)[1][1] == -1.2 * factor
    assert not [path for path in own_cache.rglob("*") if path.is_file()]
    said = capsys.readouterr().err
    assert said.count("No space left") == said.count("\n") == 1


def homeless(name):
    raise RuntimeError("could not determine the home directory")


@pytest.mark.parametrize("user_cache_dir", [lambda name: f"~/.cache/{name}", homeless])
def test_a_user_without_a_home(user_cache_dir, heard, capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("HOLONOME_CACHE")
    monkeypatch.setattr(platformdirs, "user_cache_dir", user_cache_dir)
    monkeypatch.chdir(tmp_path)
    for factor in (2.0, 3.0):
        assert evaluate(kernel_of_this_test(factor), 2)[1][1] == -1.2 * factor
    assert capsys.readouterr().err.count("not kept") == 1
    assert not list(tmp_path.iterdir())


def test_files_that_were_not_used_for_longest_go_first(own_cache, monkeypatch):
    for age in range(10):
        kernel_of_this_test(2.0 + age)
        (file,) = [file for file in stored(own_cache) if time.time() - file.stat().st_mtime < 3600]
        os.utime(file, (time.time() - 86400 * (2 + age),) * 2)
    kernel_of_this_test(11.0)  # the oldest is used
    files = stored(own_cache)
    unfinished = files[0].with_name("left.tmp")
    unfinished.write_bytes(bytes(10))
    os.utime(unfinished, (0, 0))
    by_age = sorted(files, key=lambda file: -file.stat().st_mtime)
    size = sum(file.stat().st_size for file in files)
    monkeypatch.setenv("HOLONOME_CACHE_LIMIT", str(0.7 * size / 1e6))
    monkeypatch.setattr(cache, "_written", 10**9)
    kernel_of_this_test(99.0)
    left = stored(own_cache)
    assert 4 <= len(left) <= 6
    assert set(by_age[: len(left) - 1]) <= set(left)
    assert not unfinished.exists()


def test_the_limit_is_looked_at_rarely(own_cache, monkeypatch):
    monkeypatch.setattr(cache, "_written", -1)
    looked = []
    monkeypatch.setattr(cache, "delete_oldest", lambda *given: looked.append(given))
    for factor in range(2, 6):
        kernel_of_this_test(float(factor))
    assert len(looked) == 1
    monkeypatch.setattr(cache, "_written", -1)  # another process
    kernel_of_this_test(7.0)
    assert len(looked) == 1


def test_a_limit_that_is_no_number_is_said_once(heard, capsys, monkeypatch):
    for given in ("much", "-1", "nan"):
        monkeypatch.setenv("HOLONOME_CACHE_LIMIT", given)
        assert cache.limit() == 1e6 * cache.LIMIT
    assert capsys.readouterr().err.count("HOLONOME_CACHE_LIMIT='much'") == 1
