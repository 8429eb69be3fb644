"""``pyg.HGTLoader``: HGT's subgraphs in PyG's batches, and HGT trained on them."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric.data import HeteroData
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import HGTConv
from torch_geometric.sampler import NodeSamplerInput

import pygsampler as pgs
from pygsampler.pyg import FeatureStore, GraphStore, HGTLoader, HGTSampler, NeighborLoader

NODES = {"paper": 60, "author": 40, "alone": 3}
KINDS = {
    ("paper", "cites", "paper"): 300,
    ("author", "writes", "paper"): 150,
    ("paper", "rev_writes", "author"): 150,
    ("alone", "of", "author"): 0,
}


def typed_data(dtype: torch.dtype = torch.int64) -> Any:
    random = torch.Generator().manual_seed(0)
    data = HeteroData()
    for kind, count in NODES.items():
        data[kind].x = torch.arange(count * 2.0).view(count, 2)
    for kind, count in KINDS.items():
        ends = [torch.randint(0, NODES[of], (count,), generator=random) for of in kind[::2]]
        data[kind].edge_index = torch.stack(ends).to(dtype)
        data[kind].edge_attr = torch.arange(count)
    return data


def check(data: Any, batch: Any) -> None:
    """All edges among the nodes, and features; a node given twice has all in-edges twice."""
    place: dict[str, dict[int, int]] = {}
    for kind in data.node_types:
        ids = batch[kind].n_id
        assert torch.equal(batch[kind].x, data[kind].x[ids])
        place[kind] = {v: i for i, v in reversed(list(enumerate(ids.tolist())))}
    for kind in data.edge_types:
        found = batch[kind]
        assert torch.equal(found.edge_attr, found.e_id)
        want = [
            (place[kind[0]][source], into, e)
            for into, v in enumerate(batch[kind[2]].n_id.tolist())
            for e, (source, target) in enumerate(data[kind].edge_index.t().tolist())
            if target == v and source in place[kind[0]]
        ]
        got = zip(*found.edge_index.tolist(), found.e_id.tolist(), strict=True)
        assert list(got) == want


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize(
    "num_samples", [[5, 5], [0], {"paper": [4, 3], "author": [2, 9], "alone": [1, 1]}]
)
def test_batches(num_samples: Any, dtype: torch.dtype) -> None:
    data = typed_data(dtype)
    loader = HGTLoader(data, num_samples, "paper", batch_size=16, seed=1)
    assert str(loader) == "HGTLoader()" and len(loader) == 4
    counts = dict.fromkeys(NODES, num_samples) if isinstance(num_samples, list) else num_samples
    for place, batch in enumerate(loader):
        seeds = batch["paper"].batch_size
        assert batch["paper"].n_id[:seeds].tolist() == list(range(16 * place, 16 * place + seeds))
        assert batch["paper"].num_nodes == min(seeds + sum(counts["paper"]), 60)
        assert batch["author"].num_nodes == sum(counts["author"])
        assert batch["alone"].num_nodes == 0
        assert "num_sampled_nodes" not in batch["paper"]
        check(data, batch)


def test_a_seed_that_is_there_twice_has_two_nodes() -> None:
    data = typed_data()
    seeds = torch.tensor([7, 3, 7])
    (batch,) = HGTLoader(data, [6, 6], ("paper", seeds), batch_size=3, seed=1)
    assert batch["paper"].n_id[:3].tolist() == [7, 3, 7]
    assert batch["paper"].num_nodes == 15
    check(data, batch)


def test_whole_neighbourhoods_are_those_of_neighbors() -> None:
    data = typed_data()
    (ours,) = HGTLoader(data, [-1, -1], ("paper", torch.arange(2)), batch_size=2)
    (other,) = NeighborLoader(data, [-1, -1], ("paper", torch.arange(2)), batch_size=2)
    for kind in data.node_types:
        assert set(ours[kind].n_id.tolist()) == set(other[kind].n_id.tolist())


def lists(loader: Any) -> list[Any]:
    return [[batch[kind].n_id.tolist() for kind in NODES] for batch in loader]


def test_an_epoch_repeats_whatever_the_workers() -> None:
    data = typed_data()
    loaders = [
        HGTLoader(data, [4, 4], "author", batch_size=8, num_workers=n, filter_per_worker=per)
        for n, per in ((0, None), (2, True), (2, False))
    ]
    epochs = []
    for loader in loaders:
        loader.set_seed(5)
        loader.set_epoch(2)
        epochs.append(lists(loader))
        check(data, next(iter(loader)))
    assert epochs[0] == epochs[1] == epochs[2]
    loaders[0].set_epoch(3)
    assert lists(loaders[0]) != epochs[0]
    by_torch = HGTLoader(data, [4, 4], "author", batch_size=8)
    torch.manual_seed(3)
    first = lists(by_torch)
    assert lists(by_torch) != first
    torch.manual_seed(3)
    assert lists(by_torch) == first


def test_the_sampler_in_pygs_own_loader() -> None:
    data = typed_data()
    sampler = HGTSampler(data, [3], seed=2)
    assert repr(sampler) == "pygsampler.pyg.HGTSampler([3], max_neighbors=50, seed=2)"
    sampler.set_epoch(0)
    ours = HGTLoader(data, [3], "paper", batch_size=10, seed=2)
    ours.set_epoch(0)
    assert lists(NodeLoader(data, sampler, "paper", batch_size=10)) == lists(ours)
    out = copy.copy(sampler).sample_from_nodes(
        NodeSamplerInput(None, torch.tensor([1]), None, "author")
    )
    assert out.num_sampled_nodes is None and out.node["author"][0] == 1


def test_places_that_a_batch_sampler_gives_and_a_class_of_batches() -> None:
    data = typed_data()
    ids, places = torch.arange(30, 5, -1), [[0, 7], [24], [3, 3]]
    loader = HGTLoader(data, [3], ("paper", ids), batch_sampler=places, seed=2)
    for batch, given in zip(loader, places, strict=True):
        assert batch["paper"].n_id[: len(given)].tolist() == ids[given].tolist()
        assert batch["paper"].batch_size == len(given)

    class Library(HeteroData):
        pass

    stores = (
        FeatureStore({"paper": {"x": data["paper"].x}}),
        GraphStore(pgs.Graph.from_pyg(data)),
    )
    own = HGTLoader(stores, [3], ("paper", ids), batch_sampler=places, seed=2, custom_cls=Library)
    for batch, other in zip(own, loader, strict=True):
        assert type(batch) is Library
        assert batch["paper"].x.equal(data["paper"].x[batch["paper"].n_id])
        assert len(batch["paper"].n_id) == len(other["paper"].n_id)


def test_mistakes() -> None:
    data = typed_data()
    for given, text in (
        ({"paper": [1]}, r"num_samples: expected a list for each type .* none for \['author'"),
        ({kind: [1] for kind in [*NODES, "z"]}, r"types of nodes of data .* got \['z'\]"),
        ({"paper": [1], "author": [1, 2], "alone": [1]}, "as many of each type"),
        ([1, -2], r"num_samples\[1\]: expected an integer >= -1"),
    ):
        with pytest.raises(ValueError, match=text):
            HGTLoader(data, given, "paper")
    with pytest.raises(TypeError, match="data: expected a HeteroData, or stores"):
        HGTLoader(random_data(), [1], None)
    with pytest.raises(ValueError, match="input_nodes: expected one of the types"):
        HGTLoader(data, [1], "venue")
    with pytest.raises(IndexError, match="input_nodes"):
        HGTLoader(data, [1], ("paper", torch.tensor([60])))
    with pytest.raises(ValueError, match="subgraph_type: expected 'induced'"):
        HGTSampler(data, [1]).subgraph_type = "directional"
    with pytest.raises(NotImplementedError, match="sample_from_edges"):
        HGTSampler(data, [1]).sample_from_edges(None)
    loader = HGTLoader(data, [1], "paper")
    loader.data["paper"].x = torch.zeros(61, 2)
    with pytest.raises(ValueError, match=r"data\['paper'\]: expected 60 nodes"):
        next(iter(loader))


def test_hgt_trains() -> None:
    """What a paper is about is what its authors' features say, and not its own."""
    torch.manual_seed(0)
    data = typed_data()
    topic = torch.arange(60) % 2
    writers = torch.randint(0, 20, (240,)) * 2
    papers = torch.randint(0, 60, (240,))
    ends = torch.stack([writers + topic[papers], papers])
    data["author", "writes", "paper"].edge_index = ends
    data["paper", "rev_writes", "author"].edge_index = ends.flip(0)
    data["author", "writes", "paper"].edge_attr = torch.arange(240)
    data["paper", "rev_writes", "author"].edge_attr = torch.arange(240)
    del data["alone"], data["alone", "of", "author"]
    data["author"].x = torch.randn(40, 8) + 2 * (torch.arange(40) % 2).view(-1, 1)
    data["paper"].x = torch.randn(60, 8)
    data["paper"].y = topic
    conv = HGTConv(8, 16, data.metadata(), heads=2)
    out = torch.nn.Linear(16, 2)
    optimizer = torch.optim.Adam([*conv.parameters(), *out.parameters()], lr=0.02)
    loader = HGTLoader(data, [30, 30], "paper", batch_size=20, shuffle=True, seed=1)
    right = 0
    for _ in range(12):
        right = 0
        for batch in loader:
            hidden = conv(batch.x_dict, batch.edge_index_dict)["paper"]
            found = out(hidden[: batch["paper"].batch_size].relu())
            want = batch["paper"].y[: batch["paper"].batch_size]
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(found, want).backward()
            optimizer.step()
            right += int((found.argmax(1) == want).sum())
    assert right >= 54  # of 60; by chance 30
