"""Parts that actors of Ray have: the same batches, and again the same after one of them died."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import partitioned_graphs
import pytest
from partners import partner

from pygsampler.distributed import RayExchange, partition

CODE = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
import numpy as np
import ray
import torch
import partitioned_graphs
from assertions import assert_equal
from partitioned_graphs import NODES
import pygsampler as pgs
from pygsampler import distributed

ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
whole, rng = partitioned_graphs.of("ids"), np.random.default_rng(0)
exchange = distributed.RayExchange.start(sys.argv[1], num_cpus=0.5)
with distributed.open_graph(sys.argv[1], exchange) as graph:
    assert graph.shard is None and "in 2 parts" in repr(graph)
    sampler = pgs.PGSampler([3, 4], seed=1)
    for number in range(12):
        if number == 6:
            os.kill(ray.get(exchange.actors[1].process.remote()), signal.SIGKILL)
        seeds = rng.integers(0, NODES, 20)
        made = sampler.sample(graph, seeds, epoch=0, batch=number)
        assert_equal(made, sampler.sample(whole, seeds, epoch=0, batch=number))
    walk = pgs.RandomWalk(4, seed=2, edge_ids=True)
    made, here = (walk.sample(g, range(30), epoch=0, batch=1) for g in (graph, whole))
    assert_equal(made, here)
    x = graph.features("x")
    assert torch.equal(x.read(torch.arange(NODES)), torch.from_dlpack(whole.ndata["x"]))
    assert x.stats()["bytes"] == {"kept": 0, "own": 0, "others": NODES * 12}
    # Nobody starts it again.
    exchange.actors[0].__ray_terminate__.remote()
    ray.kill(exchange.actors[0])
    try:
        sampler.sample(graph, [1], epoch=0, batch=0)
    except pgs.Error as error:
        assert "could not go on" in str(error), error
    else:
        raise AssertionError("expected an error")
ray.shutdown()
print("done")
"""


def test_an_actor_dies(tmp_path: Path) -> None:
    partner("ray")
    partition(partitioned_graphs.of("ids"), tmp_path / "parts", 2, out_edges=True)
    support = Path(partitioned_graphs.__file__).parent
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, str(tmp_path / "parts"), str(support)],
        env={**os.environ, "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Ray's own processes end with it.
        start_new_session=True,
    )
    try:
        printed, said = process.communicate(timeout=240)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, said
    assert printed.endswith("done\n")


def test_without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    partition(partitioned_graphs.of("ids"), tmp_path / "parts", 2)
    with pytest.raises(ImportError, match="RayExchange needs Ray: pip install ray"):
        RayExchange.start(tmp_path / "parts")
    with pytest.raises(ValueError, match="timeout: expected seconds > 0, got 0"):
        RayExchange([], timeout=0)
