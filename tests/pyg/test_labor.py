"""LaborSampler of a Data, and ``labor=`` of this module's loaders."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from pyg_reference import NODES, content, random_data
from test_hetero import ALL, WRITES, typed_data
from torch_geometric.data import HeteroData
from torch_geometric.sampler import NodeSamplerInput

from pygsampler.pyg import LaborSampler, LinkNeighborLoader, NeighborLoader

SEEDS = torch.cat([torch.arange(60), torch.tensor([7, 7, 3])])


def one_type(data: Any) -> HeteroData:
    """The same nodes and edges with a type each."""
    made = HeteroData()
    made["node"].x = data.x
    made["node", "to", "node"].edge_index = data.edge_index
    made["node", "to", "node"].edge_attr = data.edge_attr
    return made


@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("weight_attr", [None, "edge_attr"])
@pytest.mark.parametrize("options", [{}, {"exact": True}, {"importance": 1}])
def test_it_samples_what_one_type_samples(
    options: Any, weight_attr: str | None, direction: str
) -> None:
    data = random_data()
    given = {**options, "weight_attr": weight_attr, "sample_direction": direction, "seed": 3}
    own = LaborSampler(data, [3, 2], **given)
    typed = LaborSampler(one_type(data), [3, 2], **given)
    for each in (own, typed):
        each.set_epoch(1)
    found, want = (
        each.sample_from_nodes(NodeSamplerInput(None, SEEDS, input_type=kind))
        for each, kind in ((own, None), (typed, "node"))
    )
    edge = "node", "to", "node"
    assert found.node.equal(want.node["node"]) and len(found.edge)
    for name in ("row", "col", "edge", "edge_weights"):
        assert getattr(found, name).equal(getattr(want, name)[edge])
    assert found.num_sampled_nodes == want.num_sampled_nodes["node"]
    assert found.num_sampled_edges == want.num_sampled_edges[edge]
    rows, ends = (1, found.col) if direction == "forward" else (0, found.row)
    assert data.edge_index[rows, found.edge].equal(found.node[ends])


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_loaders_make_one(dtype: torch.dtype) -> None:
    data = random_data(dtype=dtype)
    degrees = torch.bincount(data.edge_index[1].long(), minlength=NODES)
    options: Any = {"batch_size": 21, "seed": 4, "edge_weights": "ht"}
    for labor in ("exact", "poisson"):
        loader = NeighborLoader(data, [3, 2], SEEDS, labor=labor, **options)
        loader.set_epoch(0)
        drawn = 0
        for batch in loader:
            count = batch.batch_size
            into = torch.bincount(batch.edge_index[1].long(), minlength=len(batch.n_id))[:count]
            drawn += int(into.sum())
            if labor == "exact":
                assert into.equal(degrees[batch.n_id[:count]].clamp(max=3))
            assert (batch.edge_weights >= 1).all()
            assert batch.edge_weights.shape == batch.e_id.shape
        expected = int(degrees[SEEDS].clamp(max=3).sum())
        assert drawn == expected or (labor == "poisson" and abs(drawn - expected) < expected / 4)
        workers = NeighborLoader(data, [3, 2], SEEDS, labor=labor, num_workers=2, **options)
        workers.set_epoch(0)
        assert [content(b) for b in workers] == [content(b) for b in loader]
    links = LinkNeighborLoader(
        data, [3, 2], labor="exact", neg_sampling="binary", subgraph_type="induced", batch_size=300
    )
    for batch in links:
        assert batch.edge_label_index.max() < len(batch.n_id)
        assert data.edge_index[:, batch.e_id].equal(batch.n_id[batch.edge_index])


def test_fewer_nodes_than_drawn_one_by_one() -> None:
    data = random_data()
    counts = {}
    for labor in (None, "exact", "poisson"):
        loader = NeighborLoader(data, [3, 3], torch.arange(40), labor=labor, batch_size=40, seed=1)
        counts[labor] = sum(batch.num_nodes for _ in range(20) for batch in loader)
    assert max(counts["exact"], counts["poisson"]) < counts[None]


def test_of_types() -> None:
    data = typed_data()
    loader = NeighborLoader(data, [3, 2], "paper", labor="exact", batch_size=16, weight_attr="w")
    assert isinstance(loader.node_sampler, LaborSampler)
    batch = next(iter(loader))
    assert all("edge_weights" not in batch[kind] for kind in ALL)
    links = LinkNeighborLoader(data, [3], WRITES, labor="poisson", batch_size=40)
    assert isinstance(links.link_sampler, LaborSampler)
    assert next(iter(links))[WRITES].edge_label_index.shape == (2, 40)


def test_copies_and_what_does_not_fit() -> None:
    data = random_data()
    sampler = LaborSampler(data, [3], seed=1)
    for other in (copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        for each in (sampler, other):
            each.set_epoch(0)
        found = [each.sample_from_nodes(NodeSamplerInput(None, SEEDS)) for each in (sampler, other)]
        assert found[0].edge.equal(found[1].edge)
    assert LaborSampler(data, []).sample_from_nodes(NodeSamplerInput(None, SEEDS)).edge.numel() == 0
    with pytest.raises(IndexError, match="expected an id in"):
        sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([NODES])))
    for options, error, text in (
        ({"labor": "most"}, ValueError, "labor: expected 'exact', 'poisson' or None, got str"),
        ({"replace": True}, ValueError, "replace: expected False with labor='exact'"),
        ({"disjoint": True}, ValueError, "disjoint: expected False with labor='exact'"),
        ({"time_attr": "x"}, ValueError, "time_attr: expected None with labor='exact'"),
        ({"subgraph_type": "induced", "edge_weights": "ht"}, ValueError, "edge_weights: expected"),
        ({"weight_attr": "none"}, ValueError, "none"),
        ({"neighbor_sampler": sampler}, ValueError, "labor: expected None with neighbor_sampler"),
    ):
        with pytest.raises(error, match=text):
            NeighborLoader(data, [3], SEEDS, **{"labor": "exact", **options})
    with pytest.raises(ValueError, match="replace: expected False"):
        NeighborLoader(typed_data(), [3], "paper", labor="exact", replace=True)
    assert NeighborLoader(typed_data(), [3], "paper").node_sampler.is_hetero
