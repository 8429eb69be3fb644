"""LaborSampler on a HeteroData in PyG's loaders and ours, and factors of graphs with types."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from partners import partner

# First: PyG's import warns of torch.
partner("torch_geometric")
from torch_geometric import loader as theirs  # noqa: E402
from torch_geometric.data import HeteroData  # noqa: E402

import pygsampler as pgs  # noqa: E402
from pygsampler.pyg import (  # noqa: E402
    LaborSampler,
    LinkNeighborLoader,
    NeighborLoader,
    PGSampler,
)

WRITES, CITES, BY = ("a", "writes", "p"), ("p", "cites", "p"), ("p", "by", "a")
NODES = {"a": 40, "p": 60}


def typed_data() -> HeteroData:
    torch.manual_seed(1)
    data = HeteroData()
    for kind, count in NODES.items():
        data[kind].x = torch.randn(count, 3)
    for kind, count in ((WRITES, 300), (CITES, 500), (BY, 200)):
        ends = [torch.randint(NODES[end], (count,)) for end in (kind[0], kind[2])]
        data[kind].edge_index = torch.stack(ends)
        data[kind].w = torch.rand(count)
    return data


@pytest.mark.parametrize("module", ["PyG's", "ours"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_in_loaders(module: str, direction: str) -> None:
    data = typed_data()
    sampler = LaborSampler(
        data, {WRITES: [2, 1], CITES: [3, -1], BY: [1, 2]}, sample_direction=direction, seed=4
    )
    of: Any = theirs.NeighborLoader if module == "PyG's" else NeighborLoader
    loader = of(data, [2, 2], ("p", torch.arange(60)), neighbor_sampler=sampler, batch_size=16)
    seen = 0
    for batch in loader:
        seen += batch["p"].batch_size
        for kind in NODES:
            assert torch.equal(batch[kind].x, data[kind].x[batch[kind].n_id])
        for kind in (WRITES, CITES, BY):
            store, ids = batch[kind], batch[kind].e_id
            ends = data[kind].edge_index[:, ids]
            assert torch.equal(batch[kind[0]].n_id[store.edge_index[0]], ends[0])
            assert torch.equal(batch[kind[2]].n_id[store.edge_index[1]], ends[1])
            if module == "ours":
                assert store.edge_weights.shape == ids.shape
                assert (store.edge_weights >= 1).all()
    assert seen == 60


def test_it_is_the_cores() -> None:
    """The batch that LaborSampler makes of the same number, with the same weights."""
    data = typed_data()
    sampler = LaborSampler(data, [2, 3], importance=1, weight_attr="w", seed=4)
    sampler.set_epoch(2)
    seeds = torch.tensor([5, 9, 30])
    identity = copy.copy(sampler)._identity.number(seeds, (b"type p", seeds[:0]))
    (batch,) = NeighborLoader(data, [], ("p", seeds), neighbor_sampler=sampler, batch_size=3)
    core = pgs.LaborSampler(
        [3, 2], importance=1, prob="w", frontier="new", seed=4, edge_weights="ht"
    ).sample(
        sampler.graph,
        {"p": seeds},
        epoch=identity[0],
        batch=identity[1],
    )
    for kind in (WRITES, CITES, BY):
        blocks = [hop[kind] for hop in reversed(core.blocks)]
        assert batch[kind].e_id.tolist() == [e for b in blocks for e in b.edge_ids.tolist()]
        weights = [w for b in blocks for w in b.edge_weights.tolist()]
        assert batch[kind].edge_weights.tolist() == weights


def test_seeds_twice_have_equal_rows_and_weights() -> None:
    data = typed_data()
    for sampler in (
        LaborSampler(data, [3], seed=4),
        PGSampler(data, [3], edge_weights="ht", weight_attr="w", seed=4),
    ):
        seeds = ("p", torch.tensor([5, 9, 5]))
        (batch,) = NeighborLoader(data, [3], seeds, neighbor_sampler=sampler, batch_size=3)
        store = batch[CITES]
        first, last = (store.edge_index[1] == row for row in (0, 2))
        assert store.e_id[first].tolist() == store.e_id[last].tolist()
        assert store.edge_weights[first].tolist() == store.edge_weights[last].tolist()
        assert len(store.edge_weights[first])


def test_sums_of_factors_are_unbiased() -> None:
    data = typed_data()
    src, dst = data[CITES].edge_index
    want = float(data["p"].x[src[dst == 7], 0].sum())
    for sampler in (
        PGSampler(data, [2], edge_weights="ht", seed=1),
        LaborSampler(data, [2], seed=1),
    ):
        loader = NeighborLoader(data, [2], ("p", torch.tensor([7])), neighbor_sampler=sampler)
        sums = torch.tensor(
            [
                float(
                    (
                        b[CITES].edge_weights * data["p"].x[b["p"].n_id[b[CITES].edge_index[0]], 0]
                    ).sum()
                )
                for _ in range(1500)
                for b in loader
            ]
        )
        assert abs(float(sums.mean()) - want) < 5 * float(sums.std()) / 1500**0.5


def test_around_links() -> None:
    data = typed_data()
    loader = LinkNeighborLoader(
        data,
        [2, 2],
        (WRITES, data[WRITES].edge_index),
        neg_sampling="binary",
        neighbor_sampler=LaborSampler(data, [2, 2], seed=3),
        batch_size=50,
    )
    links = 0
    for batch in loader:
        links += int((batch[WRITES].edge_label == 1).sum())
        assert batch[CITES].edge_weights.shape == batch[CITES].e_id.shape
    assert links == 300


def test_options_and_mistakes() -> None:
    data = typed_data()
    sampler = LaborSampler(data, [2], edge_weights=None, subgraph_type="bidirectional")
    (batch,) = theirs.NeighborLoader(
        data, [2], ("p", torch.arange(9)), neighbor_sampler=sampler, batch_size=9
    )
    assert "edge_weights" not in batch[CITES]
    assert batch[WRITES].edge_index.shape[1] == batch[BY].edge_index.shape[1]
    sampler.num_neighbors = [1, 1]
    sampler.weight_attr = None
    assert not sampler.replace and not sampler.disjoint and sampler.time_attr is None
    with pytest.raises(ValueError, match="edge_weights: expected None, or subgraph_type="):
        LaborSampler(data, [2], subgraph_type="induced")
    with pytest.raises(ValueError, match="importance: expected 0 with exact=True"):
        LaborSampler(data, [2], importance=1, exact=True)
    data[CITES].edge_weights = torch.rand(500)
    with pytest.raises(ValueError, match="edge_weights: expected data"):
        next(iter(NeighborLoader(data, [2], "p", neighbor_sampler=LaborSampler(data, [2]))))
