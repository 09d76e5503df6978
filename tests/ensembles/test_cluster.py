"""A cluster on this machine computes the same digits, though its workers die."""

import os
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
