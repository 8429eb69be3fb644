"""Factors of edges in PyG's batches."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pyg_reference import EDGES, content, random_data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput

import pygsampler as pgs
from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler, Sampler

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)
SEEDS = torch.arange(60)


def weighted() -> Any:
    data = random_data()
    data.w = torch.rand(EDGES, generator=torch.Generator().manual_seed(1))
    return data


CASES: list[dict[str, Any]] = [{}, {"weight_attr": "w"}, {"weight_attr": "w", "disjoint": True}]


@pytest.mark.parametrize("options", CASES, ids=str)
def test_beside_e_id(options: Any) -> None:
    data = weighted()
    inputs = {"input_nodes": torch.cat([SEEDS, SEEDS[:5]]), "batch_size": 65, "seed": 3}
    with_factors = NeighborLoader(data, [3, 4], edge_weights="ht", **inputs, **options)
    without = NeighborLoader(data, [3, 4], **inputs, **options)
    for each in (with_factors, without):
        each.set_epoch(1)
    [batch], [plain] = list(with_factors), list(without)
    assert batch.edge_weights.dtype == torch.float32
    assert batch.edge_weights.shape == batch.e_id.shape
    assert len(batch.edge_weights.unique()) > 5
    found = content(batch)
    del found["edge_weights"]
    assert found == content(plain)
    # Both occurrences of a seed have the factors of its edges.
    twice = batch.edge_weights[batch.edge_index[1] == 60]
    if not options.get("disjoint"):
        assert twice.equal(batch.edge_weights[batch.edge_index[1] == 0])


def test_sums_are_those_of_all_edges() -> None:
    data = weighted()
    x = torch.rand(data.num_nodes, generator=torch.Generator().manual_seed(2)) + 1
    source, target = data.edge_index
    want = x[source][target < 60].sum().double()
    loader = NeighborLoader(
        data, [3], input_nodes=SEEDS, batch_size=60, weight_attr="w", edge_weights="ht", seed=1
    )
    found = []
    for epoch in range(400):
        loader.set_epoch(epoch)
        [batch] = list(loader)
        found.append((x[batch.n_id[batch.edge_index[0]]] * batch.edge_weights).sum())
    sums = torch.stack(found).double()
    assert abs(sums.mean() - want) < 4 * sums.std() / len(sums) ** 0.5
    assert sums.std() > 0


@pytest.mark.parametrize("filter_per_worker", [False, True])
def test_links_and_workers(filter_per_worker: bool) -> None:
    data, found = weighted(), []
    for workers in (0, 2):
        loader = LinkNeighborLoader(
            data, [3, 2], neg_sampling="binary", batch_size=500, seed=1, edge_weights="ht",
            num_workers=workers, filter_per_worker=filter_per_worker, weight_attr="w",
        )  # fmt: skip
        loader.set_epoch(0)
        batches = list(loader)
        assert all(len(batch.edge_weights) == len(batch.e_id) for batch in batches)
        found.append([batch.edge_weights.tolist() for batch in batches])
    assert found[0] == found[1]


def test_the_option() -> None:
    data = weighted()
    sampler = PGSampler(data, [3], seed=1)
    assert sampler.edge_weights is None
    sampler.edge_weights = "ht"
    assert "edge_weights='ht'" in repr(sampler)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS))
    assert len(out.edge_weights) == len(out.edge)
    inner = pgs.PGSampler([3], frontier="new", edge_weights="ht", seed=1)
    loader = NeighborLoader(data, [3], neighbor_sampler=Sampler(data, inner), input_nodes=SEEDS)
    assert all(len(batch.edge_weights) == len(batch.e_id) for batch in loader)
    # PyG's own loader has no place for them, and its batches are what they are.
    assert all("edge_weights" not in batch for batch in NodeLoader(data, sampler, SEEDS))
    with pytest.raises(ValueError, match="edge_weights: expected None or 'ht'"):
        NeighborLoader(data, [3], edge_weights="x")
    for kind in ("induced", "bidirectional"):
        with pytest.raises(ValueError, match=f"subgraph_type='directional'.* got str '{kind}'"):
            PGSampler(data, [3], subgraph_type=kind, edge_weights="ht")
    sampler.subgraph_type = "induced"
    with pytest.raises(ValueError, match="subgraph_type='directional'"):
        sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS))
    data.edge_weights = data.w
    with pytest.raises(ValueError, match="expected data without an attribute of that name"):
        next(iter(NeighborLoader(data, [3], edge_weights="ht", input_nodes=SEEDS)))
