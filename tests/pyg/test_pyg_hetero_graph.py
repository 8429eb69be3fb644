"""``HeteroGraph.from_pyg``."""

from __future__ import annotations

import pytest
import torch
from pyg_reference import random_data
from torch_geometric.data import HeteroData

import pygsampler as pgs


def test_from_hetero_data() -> None:
    data = HeteroData()
    data["a"].x = torch.randn(5, 2)
    data["b"].num_nodes = 3
    data["a", "x", "b"].edge_index = torch.tensor([[0, 1, 4], [0, 2, 2]])
    data["a", "x", "b"].w = torch.rand(3)
    graph = pgs.HeteroGraph.from_pyg(data)
    assert dict(graph.num_nodes) == {"a": 5, "b": 3}
    assert torch.equal(graph.ndata["a"]["x"].torch(), data["a"].x)
    assert list(graph.edata["a", "x", "b"]) == ["w"]
    batch = pgs.PGSampler([-1]).sample(graph, {"b": [2]})
    assert batch.nodes["a"].tolist() == [1, 4]
    assert batch.blocks[0]["a", "x", "b"].edge_ids.tolist() == [1, 2]
    with pytest.raises(TypeError, match="data: expected a HeteroData, got Data"):
        pgs.HeteroGraph.from_pyg(random_data())
