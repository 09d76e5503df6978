"""A cluster on this machine computes the same digits, though its workers die."""

import os
import signal
import warnings

import numpy as np
import pytest

import holonome as hn

pytest.importorskip("xarray")
distributed = pytest.importorskip("distributed")

PENDULUM = hn.mechanisms.pendulum()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_local_cluster(tmp_path):
    over = hn.ensembles.sobol(2000, {"gravity": (9, 10)})
    keep = {"height": lambda q: q[1]}
    alone = hn.ensemble(PENDULUM, (0, 10), over=over, keep=keep).run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            e = hn.ensemble(PENDULUM, (0, 10), over=over, keep=keep, device=client, chunk=100)
            assert e.run().equals(alone)
            worker = next(iter(client.scheduler_info()["workers"]))
            client.run(lambda: os.environ.setdefault("ensemble", "here"), workers=[worker])
            assert e.run().equals(alone)
    assert np.isfinite(alone.height).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_is_killed_loses_nothing(tmp_path):
    """SIGKILL in the middle of a study, in memory and with a store; the nanny starts another worker."""
    over = hn.ensembles.sobol(4000, {"gravity": (9, 10)})
    keep = {"height": lambda q: q[1], "speed": hn.ensembles.maximum(lambda v: v @ v)}
    given = {"over": over, "keep": keep, "chunk": 20}
    alone = hn.ensemble(PENDULUM, (0, 100), **given).run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cluster = distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            for store in (None, tmp_path / "study"):
                killed = []

                def kill_one(fraction, text, killed=killed):
                    if fraction > 0.2 and not killed:
                        process = next(iter(client.run(os.getpid).values()))
                        os.kill(process, signal.SIGKILL)
                        killed.append(process)

                e = hn.ensemble(PENDULUM, (0, 100), **given, device=client, store=store)
                assert e.run(progress=kill_one).equals(alone)
                assert killed
                assert killed[0] not in client.run(os.getpid).values()
