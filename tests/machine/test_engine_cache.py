"""The cache of the compiled engine: edited code never runs in its old form, and folders that cannot be
written are done without.
"""

import errno
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import timeit
from pathlib import Path

import pytest

from holonome.machine import engine_cache

SOURCE = Path(__file__).parents[2] / "src" / "holonome"

ADD = """
from numba import njit

FACTOR = {factor}

@njit(cache=True)
def scaled(x):
    return FACTOR * x
"""

TWICE = """
from numba import njit

from holonome.algebra.factor import scaled

@njit(cache=True)
def twice(x):
    return 2.0 * scaled(x)
"""

RUN = """
import sys
from holonome.formulations.uses_factor import twice
from holonome.machine import engine_cache
print(twice(1.0), sum(twice.stats.cache_hits.values()), engine_cache.folder())
"""


@pytest.fixture
def copied(tmp_path):
    """A copy of the package with a function in one file that calls one in another."""
    package = tmp_path / "holonome"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__", "*.nb?"))
    (package / "algebra" / "factor.py").write_text(ADD.format(factor=3.0))
    (package / "formulations" / "uses_factor.py").write_text(TWICE)
    return package


def run(package, program=RUN, code=0, **variables):
    """What a program in a new process prints."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(package.parent), "HOLONOME_CACHE": str(package.parent / "cache")}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment | variables, capture_output=True, text=True
    )
    assert result.returncode == code, result.stderr
    return result


def test_code_that_was_edited_in_another_file_runs(copied):
    value, hits, first = run(copied).stdout.split()
    assert (float(value), int(hits)) == (6.0, 0)
    assert Path(first).parent == copied / "__pycache__" / "engine"
    value, hits, folder = run(copied).stdout.split()
    assert (float(value), int(hits), folder) == (6.0, 1, first)
    (copied / "algebra" / "factor.py").write_text(ADD.format(factor=5.0))
    value, hits, second = run(copied).stdout.split()
    assert (float(value), int(hits)) == (10.0, 0)
    assert second != first
    (copied / "algebra" / "factor.py").write_text(ADD.format(factor=3.0))
    value, hits, folder = run(copied).stdout.split()
    assert (float(value), int(hits), folder) == (6.0, 1, first)


def test_the_users_cache_where_the_package_cannot_be_written(copied):
    (copied / "__pycache__").touch()
    folder = run(copied).stdout.split()[2]
    assert Path(folder).parent == copied.parent / "cache" / "engine"
    assert int(run(copied).stdout.split()[1]) == 1


def test_where_nothing_can_be_written_everything_still_runs(copied):
    (copied / "__pycache__").touch()
    (copied.parent / "cache").touch()
    assert run(copied).stdout.split() == ["6.0", "0", "None"]
    program = """
from holonome.solving import first_use
first_use.announce_first_use()
first_use.announce_first_use()
from holonome.integrators.newton import norm
"""
    said = run(copied, program, HOLONOME_QUIET="").stderr
    assert said.count("in every process") == 1
    assert said.count("\n") == 1


AS_NOBODY = """
import os, shutil, sys
from holonome.formulations.uses_factor import twice
twice(1.0)  # all that Numba loads is in memory, as it may lie where nobody looks
for name in [name for name in sys.modules if name.partition(".")[0] == "holonome"]:
    del sys.modules[name]
shutil.rmtree({pycache!r}, ignore_errors=True)
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid({user})
"""


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
@pytest.mark.parametrize("home", ["closed", "closed/nowhere", None])
def test_where_not_even_looking_is_allowed(home, copied, monkeypatch):
    with tempfile.TemporaryDirectory() as place:  # pytest's folders are closed to others themselves
        os.chmod(place, 0o755)
        package = Path(shutil.copytree(copied, Path(place) / "holonome"))
        (Path(place) / "closed").mkdir(mode=0)
        package.chmod(0o555)
        program = AS_NOBODY.format(pycache=str(package / "__pycache__"), user=65534 if home else 12345)
        program += "" if home else "del os.environ['HOME']\n"
        variables = {"HOLONOME_CACHE": "", "XDG_CACHE_HOME": "", "HOME": str(Path(place) / str(home))}
        assert run(package, program + RUN, **variables).stdout.split() == ["6.0", "0", "None"]
        package.chmod(0o755)
        (Path(place) / "closed").chmod(0o755)


def test_code_of_another_function_is_refused(copied):
    folder = Path(run(copied).stdout.split()[2])
    (one,) = folder.rglob("factor.scaled*.nbc")
    (other,) = folder.rglob("uses_factor.twice*.nbc")
    other.write_bytes(one.read_bytes())
    assert run(copied).stdout.split()[:2] == ["6.0", "0"]


@pytest.mark.skipif(os.name != "posix", reason="rights of POSIX")
def test_files_that_others_may_write_are_compiled_anew(copied):
    folder = Path(run(copied).stdout.split()[2])
    assert folder.stat().st_mode & 0o777 == 0o755
    for file in folder.rglob("uses_factor*"):
        assert file.stat().st_mode & 0o777 == 0o644
        file.chmod(0o666)
    assert run(copied).stdout.split()[:2] == ["6.0", "0"]
    assert run(copied).stdout.split()[:2] == ["6.0", "1"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives folders away")
def test_a_folder_of_another_user_is_not_used(copied, tmp_path):
    shared = tmp_path / "shared"
    first = Path(run(copied, NUMBA_CACHE_DIR=str(shared)).stdout.split()[2])
    assert first.parent == shared / "holonome"
    assert first.stat().st_mode & 0o777 == 0o700
    os.chown(first, 12345, 12345)
    found = run(copied, NUMBA_CACHE_DIR=str(shared), HOLONOME_QUIET="")
    assert Path(found.stdout.split()[2]).parent == copied / "__pycache__" / "engine"
    assert found.stderr.count("belongs to another user") == found.stderr.count("\n") == 1


def test_a_full_disk_leaves_no_folder_behind(tmp_path, monkeypatch):
    def full(**arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "NamedTemporaryFile", full)
    assert not engine_cache._is_ready(tmp_path / "engine" / "digest")
    assert not list((tmp_path / "engine").iterdir())


def test_numbas_own_variable_comes_first(copied, tmp_path):
    folder = run(copied, NUMBA_CACHE_DIR=str(tmp_path / "numba")).stdout.split()[2]
    assert Path(folder).parent == tmp_path / "numba" / "holonome"


def test_a_damaged_cache_is_made_anew(copied):
    folder = Path(run(copied).stdout.split()[2])
    for file in folder.rglob("uses_factor*"):
        file.write_bytes(b"nonsense" if file.suffix == ".nbc" else pickle.dumps("nonsense")[:5])
    assert run(copied).stdout.split()[:2] == ["6.0", "0"]
    assert run(copied).stdout.split()[:2] == ["6.0", "1"]


def test_a_folder_that_vanishes_is_made_anew(copied):
    program = RUN.replace("print(", "import shutil; shutil.rmtree(engine_cache.folder()); print(", 1)
    run(copied, program)
    assert run(copied).stdout.split()[:2] == ["6.0", "1"]


def test_functions_of_others_keep_numbas_cache(tmp_path):
    (tmp_path / "mine.py").write_text(ADD.format(factor=1.0))
    program = "import holonome.machine, mine; mine.scaled(1.0); print(mine.scaled.stats.cache_path)"
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), str(SOURCE.parent)]))
    environment.pop("NUMBA_CACHE_DIR", None)
    found = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert Path(found.stdout.strip()) == tmp_path / "__pycache__"


@pytest.mark.parametrize("room", engine_cache.COMPILED_ROOMS)
def test_the_cache_is_in_place_before_a_room_is_entered(room):
    program = f"import holonome.{room}, sys; sys.exit('holonome.machine.engine_cache' not in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_all_compiled_files_are_part_of_the_digest():
    compiled = {
        file.parent.name
        for file in SOURCE.rglob("*.py")
        if any(word in file.read_text() for word in ("@njit", "njit(", "NativeKernel", "cfunc("))
    }
    assert compiled <= set(engine_cache.COMPILED_ROOMS)
    nested = [file for room in engine_cache.COMPILED_ROOMS for file in (SOURCE / room).glob("*/*.py")]
    assert not nested


def test_the_digest_is_cheap():
    assert min(timeit.repeat(engine_cache.digest.__wrapped__, number=1, repeat=20)) < 5e-3


def test_folders_of_old_engines_are_removed(tmp_path):
    old, recent, new = (tmp_path / name for name in ("old", "recent", "new"))
    for folder in (old, recent, new):
        (folder / "algebra").mkdir(parents=True)
    long_ago = time.time() - 2 * 24 * 3600
    os.utime(old, (long_ago, long_ago))
    engine_cache.remove_unused(new)
    assert sorted(folder.name for folder in tmp_path.iterdir()) == ["new", "recent"]


def test_a_folder_in_use_stays(tmp_path):
    long_ago = time.time() - 2 * 24 * 3600
    os.utime(tmp_path, (long_ago, long_ago))
    assert engine_cache._is_ready(tmp_path)
    assert time.time() - tmp_path.stat().st_mtime < 60


def test_one_cache_serves_processes_of_every_kind(copied):
    program = """
import multiprocessing, sys
from holonome.formulations.uses_factor import twice

if __name__ == "__main__":
    for kind in multiprocessing.get_all_start_methods():
        with multiprocessing.get_context(kind).Pool(2) as pool:
            assert pool.map(twice, [1.0, 2.0]) == [6.0, 12.0], kind
    from holonome.machine import engine_cache
    print(engine_cache.folder())
"""
    file = copied.parent / "program.py"
    file.write_text(program)
    folder = run(copied, f"import runpy; runpy.run_path({str(file)!r}, run_name='__main__')").stdout.strip()
    assert len(list(Path(folder).parent.iterdir())) == 1
