"""PGSampler and LinkNeighborLoader from edges: labels, and negatives of both kinds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pyg_reference import NODES, check_edges, content, pairs, random_data
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader
from torch_geometric.loader import LinkNeighborLoader as PygLinkNeighborLoader
from torch_geometric.sampler import EdgeSamplerInput, NegativeSampling

from pygsampler.pyg import LinkNeighborLoader, PGSampler


def edges_between(first: int, last: int, count: int, seed: int = 0) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    return torch.randint(first, last, (2, count), generator=random)


@pytest.mark.parametrize("filter_per_worker", [None, True, False])
@pytest.mark.parametrize("negatives", [None, 1.0])
@pytest.mark.parametrize("subgraph_type", ["directional", "bidirectional"])
def test_basics(subgraph_type: str, negatives: Any, filter_per_worker: Any) -> None:
    """Positives among nodes 0 to 49 are edges of the graph, negatives among the others not."""
    positive, negative = edges_between(0, 50, 200), edges_between(50, 100, 200)
    edges = torch.cat([positive, negative], 1)
    label = torch.cat([torch.ones(200), torch.zeros(200)])
    data = Data(x=torch.arange(NODES), edge_index=positive, edge_attr=torch.arange(200))
    loader = LinkNeighborLoader(
        data,
        [-1, -1],
        edge_label_index=edges,
        edge_label=label if negatives is None else None,
        subgraph_type=subgraph_type,
        neg_sampling_ratio=negatives,
        batch_size=20,
        shuffle=True,
        filter_per_worker=filter_per_worker,
    )
    assert str(loader) == "LinkNeighborLoader()"
    assert len(loader) == 20
    seen = []
    for batch in loader:
        check_edges(data, batch, both_ways=subgraph_type == "bidirectional")
        assert batch.n_id.unique().numel() == batch.num_nodes
        seeds = batch.n_id[batch.edge_label_index]
        first = batch.edge_label_index.max() + 1
        assert batch.n_id[:first].equal(seeds.unique())
        assert seeds[:, :20].equal(edges[:, batch.input_id])
        here, asked = pairs(batch.edge_index), batch.edge_label_index
        if negatives is None:
            assert batch.edge_label.equal(label[batch.input_id])
            assert pairs(asked[:, batch.edge_label == 1]) <= here
            assert not pairs(asked[:, batch.edge_label == 0]) & here
        else:
            assert batch.edge_label.tolist() == [1.0] * 20 + [0.0] * 20
        seen += batch.input_id.tolist()
    assert sorted(seen) == list(range(400))
    # As for a node loader, an index of any shape.
    assert {int(edges[0, 5]), int(edges[1, 7])} <= set(loader([[5, 6], [7, 8]]).n_id.tolist())


def test_labels_make_room_for_the_negatives() -> None:
    data = random_data()
    label = torch.arange(500) % 3
    loader = LinkNeighborLoader(
        data, [2], edge_label=label, neg_sampling=NegativeSampling("binary", 0.5), batch_size=10
    )
    for batch in loader:
        assert batch.edge_label.dtype == torch.int64
        assert batch.edge_label.tolist() == [*(label[batch.input_id] + 1).tolist(), *[0] * 5]
        assert batch.edge_label_index.shape == (2, 15)


@pytest.mark.parametrize("amount", [1, 2])
@pytest.mark.parametrize("disjoint", [False, True])
def test_triplets(disjoint: bool, amount: int) -> None:
    data = random_data()
    edges = edges_between(0, NODES, 100)
    loader = LinkNeighborLoader(
        data,
        [-1, -1],
        edge_label_index=edges,
        disjoint=disjoint,
        neg_sampling={"mode": "triplet", "amount": amount},
        batch_size=20,
        shuffle=True,
    )
    for batch in loader:
        check_edges(data, batch)
        for name, row in (("src_index", 0), ("dst_pos_index", 1)):
            assert batch.n_id[batch[name]].equal(edges[row, batch.input_id])
        assert batch.dst_neg_index.shape == ((20,) if amount == 1 else (20, amount))
        assert int(batch.dst_neg_index.max()) < batch.num_nodes
        assert "edge_label_index" not in batch
        if disjoint:
            # One tree for an edge, its negatives among it.
            assert batch.batch[batch.src_index].equal(torch.arange(20))
            assert batch.batch[batch.dst_pos_index].equal(torch.arange(20))
            owners = batch.batch[batch.dst_neg_index].reshape(20, -1)
            assert bool((owners == torch.arange(20)[:, None]).all())
            row, col = batch.edge_index
            assert batch.batch[row].equal(batch.batch[col])


def test_disjoint_binary() -> None:
    data = random_data()
    loader = LinkNeighborLoader(data, [3], disjoint=True, neg_sampling="binary", batch_size=8)
    batch = next(iter(loader))
    assert batch.edge_label_index.equal(torch.arange(32).reshape(2, 16))
    assert batch.batch[:8].tolist() == batch.batch[16:24].tolist() == list(range(8))
    assert batch.n_id[batch.edge_label_index[:, :8]].equal(data.edge_index[:, :8])


def test_negatives_follow_their_weights() -> None:
    data = random_data()
    weight = torch.zeros(NODES).index_fill(0, torch.tensor([11, 12]), 1.0)
    loader = LinkNeighborLoader(
        data, [2], neg_sampling=NegativeSampling("triplet", 3, None, weight), batch_size=50
    )
    for batch in loader:
        assert set(batch.n_id[batch.dst_neg_index].flatten().tolist()) == {11, 12}


@pytest.mark.parametrize("make", [LinkNeighborLoader, PygLinkNeighborLoader, LinkLoader])
def test_every_way_into_a_loader(make: Any) -> None:
    data = random_data()
    sampler = PGSampler(data, [3, 2], seed=1)
    options = {"neg_sampling": "binary", "batch_size": 50}
    if make is LinkLoader:
        loader = make(data, sampler, **options)
    else:
        loader = make(data, [3, 2], neighbor_sampler=sampler, **options)
    sampler.set_epoch(2)
    own = LinkNeighborLoader(data, [3, 2], seed=1, **options)
    own.set_epoch(2)
    assert [content(batch) for batch in loader] == [content(batch) for batch in own]


@pytest.mark.parametrize("mode", ["binary", "triplet"])
def test_negatives_are_the_batchs_own(mode: str) -> None:
    """They follow from seed, epoch and edges, and torch's generator stands where it stood."""
    data = random_data()
    inputs = EdgeSamplerInput(None, *data.edge_index[:, :30])
    before = torch.get_rng_state()

    def drawn(seed: int, epoch: int | None) -> Any:
        sampler = PGSampler(data, [2], seed=seed)
        sampler.set_epoch(epoch)
        outs = [
            sampler.sample_from_edges(inputs, neg_sampling=NegativeSampling(mode, 1)).node.tolist()
            for _ in range(2)
        ]
        return outs if epoch is None else outs[0] if outs[0] == outs[1] else None

    same = drawn(1, 0)
    assert same is not None
    assert same == drawn(1, 0)
    assert same != drawn(2, 0)
    assert same != drawn(1, 1)
    first, second = drawn(1, None)
    assert first != second
    assert before.equal(torch.get_rng_state())


def test_negatives_cover_all_nodes_evenly() -> None:
    data = random_data()
    loader = LinkNeighborLoader(data, [], neg_sampling="binary", batch_size=10, seed=0)
    counts = torch.zeros(NODES)
    for _ in range(4):
        for batch in loader:
            ends = batch.n_id[batch.edge_label_index[:, 10:]].flatten()
            counts += torch.bincount(ends, minlength=NODES)
    # 4000 draws: 40 a node, and a chi-square of 99 degrees of freedom.
    assert float(((counts - 40) ** 2 / 40).sum()) < 160


def test_no_edges() -> None:
    edges = edges_between(0, NODES, 40)
    for hops in ([], [2]):
        loader = LinkNeighborLoader(Data(num_nodes=NODES), hops, edges, batch_size=20)
        for batch in loader:
            assert batch.input_id.numel() == batch.edge_label_index.size(1) == 20
            assert batch.num_nodes == batch.edge_label_index.unique().numel()
    with pytest.raises(ValueError, match="edge_label_index: expected edges"):
        LinkNeighborLoader(Data(num_nodes=NODES), [2])
