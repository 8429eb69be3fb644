"""Programs in PyG's loaders."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pyg_reference import EDGES, NODES, random_data
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput

import pygsampler as pgs
from pygsampler.pyg import Sampler


@pgs.program
def hops(A: Any, seeds: Any, fanouts: Any) -> Any:
    blocks: list[Any] = []
    for K in reversed(fanouts):
        C = A[:, seeds]
        B = C.individual_sample(K, C.edata["t"])
        blocks.insert(0, B.mul(A.ndata["level"], axis=1))
        seeds = seeds | B.row()
    return blocks


@pytest.fixture
def data() -> Data:
    made = random_data()
    made.x = torch.arange(float(NODES))[:, None]
    made.t, made.v = torch.arange(EDGES) % 3 + 1.0, torch.arange(float(EDGES))
    made.level = torch.arange(NODES)
    return made


def test_batches_have_the_values(data: Data) -> None:
    sampler = Sampler(data, hops(fanouts=[2, 3], weight="v", seed=4))
    loader = NodeLoader(data, sampler, input_nodes=torch.arange(20), batch_size=8)
    for batch in loader:
        sources = data.edge_index[0, batch.e_id]
        assert torch.equal(batch.n_id[batch.edge_index[0]], sources)
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(9)))
    assert torch.equal(out.edge_weights, data.v[out.edge] * data.level[out.node[out.row]])


def test_attributes_that_are_not_there(data: Data) -> None:
    with pytest.raises(ValueError, match="nothing"):
        Sampler(data, hops(fanouts=[2], weight="nothing", seed=0))
    del data.level
    with pytest.raises(ValueError, match=r"ndata.*level"):
        Sampler(data, hops(fanouts=[2], weight="v", seed=0))
