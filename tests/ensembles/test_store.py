"""Stores: complete chunks survive whatever happens; a resumed study is the undisturbed one, bit by bit."""

import errno
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import holonome as hn
from holonome.ensembles.store import OtherStudy, UnwritableStore

xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")

PENDULUM = hn.mechanisms.pendulum()


def study(folder=None, **options):
    over = hn.ensembles.random(100, {"gravity": (9, 10), "m": (1, 2)})
    given = {"t_eval": [0.5, 1], "store": folder, "chunk": 16, "threads": 1} | options
    return hn.ensemble(PENDULUM, (0, 1), over=over, **given)


def test_a_rerun_computes_only_what_is_missing(tmp_path):
    folder, whole = tmp_path / "study", study().run()
    assert study(folder).run().equals(whole)
    marks = sorted((folder / "progress").glob("done-*"))
    assert len(marks) == 7
    before = {path: path.stat().st_mtime_ns for path in folder.glob("q/c/*/0/0")}
    (folder / "progress" / "done-32").unlink()
    assert study(folder).run().equals(whole)
    after = {path: path.stat().st_mtime_ns for path in folder.glob("q/c/*/0/0")}
    assert [path.parts[-3] for path in before if before[path] != after[path]] == ["2"]


def test_a_store_is_a_zarr_group_with_names(tmp_path):
    study(tmp_path / "study").run()
    group = zarr.open_group(tmp_path / "study", mode="r")
    assert group["q"].metadata.dimension_names == ("member", "t", "coordinate")
    assert group["over.m"].shape == (100,)


def test_another_study_is_refused(tmp_path):
    study(tmp_path / "study").run()
    with pytest.raises(OtherStudy, match="rtol"):
        study(tmp_path / "study", rtol=1e-8).run()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    with pytest.raises(OtherStudy, match="something else"):
        study(tmp_path / "other").run()


def test_messages_of_failures_are_kept(tmp_path):
    starts = [[1.0, 0.0], [5.0, 5.0]]
    for _ in range(2):
        ds = hn.ensemble(
            PENDULUM.system, (0, 1), over={"q0": ("case", starts)}, store=tmp_path / "study"
        ).run()
        assert ds.success.values.tolist() == [True, False]
        assert "rod" in str(ds.message.values[1])


PROGRAM = """
import sys, numpy as np, holonome as hn
made = hn.mechanisms.slider_crank()
over = hn.ensembles.random(4000, {"m1": (0.5, 1.5), "gravity": (9, 10)})
e = hn.ensemble(made, (0, 10), over=over, t_eval=[5, 10], store=sys.argv[1], chunk=50, threads=1)
print("ready", flush=True)
ds = e.run()
np.save(sys.argv[2], np.concatenate([ds.q.values.ravel(), ds.end.values]))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="there is no kill -9")
def test_killed_at_any_moment_and_resumed_by_two(tmp_path):
    random = np.random.default_rng(0)

    def command(folder, result):
        return [sys.executable, "-c", PROGRAM, str(tmp_path / folder), str(tmp_path / result)]

    subprocess.run(command("whole", "whole.npy"), check=True, capture_output=True)
    for _ in range(5):
        with subprocess.Popen(command("killed", "killed.npy"), stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(float(random.uniform(0.05, 0.6)))
            process.send_signal(signal.SIGKILL)
    both = [subprocess.Popen(command("killed", f"{i}.npy"), stdout=subprocess.DEVNULL) for i in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    whole, *found = (np.load(tmp_path / name) for name in ("whole.npy", "0.npy", "1.npy"))
    assert all(whole.tobytes() == one.tobytes() for one in found)


def test_a_full_disk_is_told_and_what_is_complete_stays(tmp_path, monkeypatch):
    """The disk is full from the fourth chunk on; afterwards only the others are computed."""
    import holonome.ensembles.store as module

    folder, whole, write = tmp_path / "study", study().run(), module._write_at_once

    def full(place, content):
        if place.name == "done-48":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))
        write(place, content)

    monkeypatch.setattr(module, "_write_at_once", full)
    with pytest.raises(UnwritableStore, match="No space left") as found:
        study(folder).run()
    assert isinstance(found.value, OSError)
    assert len(list((folder / "progress").glob("done-*"))) == 3
    monkeypatch.undo()
    assert study(folder).run().equals(whole)


def test_a_store_that_cannot_be_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file", tmp_path / "file" / "inside", "/proc/no such folder"):
        with pytest.raises(UnwritableStore, match="cannot be opened"):
            study(place).run()
