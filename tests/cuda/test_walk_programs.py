"""Programs that return walks, and what programs return beside blocks, on a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import samplers


@pgs.program
def wander(A: Any, seeds: Any, length: int) -> Any:
    return A.walk(seeds, length)


def graph(dtype: str) -> pgs.Graph:
    random = np.random.default_rng(0)
    ends = (random.integers(0, 300, 700).astype(dtype) for _ in range(2))
    return pgs.Graph.from_coo(*ends, num_nodes=300)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_walks_are_those_of_the_cpu(dtype: str) -> None:
    cpu, sampler = graph(dtype), wander(length=6, seed=5)
    there, seeds = cpu.to("cuda"), np.arange(0, 300, 3)
    want = sampler.sample(cpu, seeds, epoch=1, batch=2)
    got = sampler.sample(there, seeds, epoch=1, batch=2)
    assert isinstance(got, pgs.Walks) and got.device == "cuda:0"
    assert got.cpu().nodes.tolist() == want.nodes.tolist()
    assert got.cpu().edge_ids.tolist() == want.edge_ids.tolist()
    assert min(want.lengths.tolist()) < 6
    many = [sampler.sample_many(each, [[1], [2, 3]], epoch=1, batch=0) for each in (cpu, there)]
    for ours, theirs in zip(*many, strict=True):
        assert theirs.cpu().nodes.tolist() == ours.nodes.tolist()


@pytest.mark.research
@pytest.mark.parametrize("hard", [False, True])
def test_unmarked_vertices_and_all_rows(hard: bool) -> None:
    arrays = {name: np.zeros(300) for name in ("locality", "h_source", "h_target")}
    cpu = graph("int64").with_data(node_data=arrays)
    there = cpu.to("cuda")
    for sampler in (
        pgs.research.locality(fanouts=[1], hard=hard, seed=3),
        pgs.research.locality_importance(nodes=[-1], hard=hard, seed=3),
        samplers.asgcn(nodes=[-1], seed=3),
    ):
        want = sampler.sample(cpu, range(40), epoch=0, batch=0)
        got = sampler.sample(there, range(40), epoch=0, batch=0).cpu()
        assert got.input_nodes.tolist() == want.input_nodes.tolist()
        ours, theirs = got.blocks[0], want.blocks[0]
        assert ours.edge_ids.tolist() == theirs.edge_ids.tolist() and ours.num_edges
        assert set(ours.edge_data) == set(theirs.edge_data)
        for name, values in ours.edge_data.items():
            assert values.tolist() == theirs.edge_data[name].tolist()
