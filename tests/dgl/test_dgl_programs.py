"""Programs in DGL's loader."""

from __future__ import annotations

from typing import Any

import dgl
import pytest
import torch
from dgl_graphs import random_graph

import pygsampler as pgs
from pygsampler.dgl import Sampler

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")


@pgs.program
def hops(A: Any, seeds: Any, fanouts: Any) -> Any:
    blocks: list[Any] = []
    for K in reversed(fanouts):
        C = A[:, seeds]
        B = C.individual_sample(K, C.edata["t"])
        blocks.insert(0, B.mul(A.ndata["x"], axis=1))
        seeds = seeds | B.row()
    return blocks


@pytest.fixture
def g() -> Any:
    made = random_graph()
    made.edata["t"] = torch.arange(made.num_edges()) % 3 + 1.0
    made.edata["v"] = torch.arange(made.num_edges()).float()
    made.ndata["x"] = torch.arange(float(made.num_nodes()))
    return made


@pytest.mark.parametrize("workers", [0, 2])
def test_blocks_have_the_values(g: Any, workers: int) -> None:
    sampler = Sampler(hops(fanouts=[2, 3], weight="v", seed=4))
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(20), sampler, batch_size=8, num_workers=workers
    )
    found = list(loader)
    assert len(found) == 3
    for _, _, blocks in found:
        for block in blocks:
            sources = block.srcdata["x"][block.edges()[0].long()]
            assert block.num_edges() > 0
            assert torch.equal(block.edata["w"], block.edata["v"] * sources)


def test_arrays_that_change_are_read_anew(g: Any) -> None:
    sampler = Sampler(hops(fanouts=[2], weight="v", seed=4))
    sampler.set_epoch(0)
    _, _, (before,) = sampler.sample(g, torch.arange(9))
    g.ndata["x"][:] = 0
    _, _, (after,) = sampler.sample(g, torch.arange(9))
    assert before.edata["w"].any()
    assert not after.edata["w"].any()
    g.ndata["x"] = torch.ones(g.num_nodes())
    _, _, (again,) = sampler.sample(g, torch.arange(9))
    assert torch.equal(again.edata["w"], again.edata["v"])


def test_a_graph_without_the_array(g: Any) -> None:
    sampler = Sampler(hops(fanouts=[2], weight="nothing", seed=4))
    with pytest.raises(ValueError, match=r"expected .*got 'nothing'"):
        sampler.sample(g, torch.arange(3))
