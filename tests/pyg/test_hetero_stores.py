"""Loaders of (FeatureStore, GraphStore) whose nodes and edges have types."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric.data import HeteroData
from torch_geometric.sampler import NodeSamplerInput
from torch_geometric.testing import MyFeatureStore, MyGraphStore

import pygsampler as pgs
from pygsampler.pyg import (
    FeatureStore,
    GraphStore,
    HGTLoader,
    NeighborLoader,
    PGSampler,
    Sampler,
)

NODES = {"paper": 60, "author": 40}
CITES, WRITES, WRITTEN = (
    ("paper", "cites", "paper"),
    ("author", "writes", "paper"),
    ("paper", "rev_writes", "author"),
)


def typed_data() -> Any:
    random = torch.Generator().manual_seed(0)
    data = HeteroData()
    for kind, count in NODES.items():
        data[kind].x = torch.randn(count, 3, generator=random)
    for kind, count in {CITES: 300, WRITES: 150, WRITTEN: 150}.items():
        ends = [torch.randint(0, NODES[of], (count,), generator=random) for of in kind[::2]]
        data[kind].edge_index = torch.stack(ends)
        data[kind].w = torch.arange(count) % 3
    return data


def stores(data: Any, layout: str, kind: str) -> Any:
    """PyG's stores of its tests, or ours, with edges in one layout; or ours with our graph."""
    graph: Any
    if kind == "graph":
        own = pgs.Graph.from_pyg(data)
        return (
            FeatureStore(
                {of: {"x": data[of].x} for of in NODES},
                {of: {"w": data[of].w} for of in data.edge_types},
            ),
            GraphStore(own),
        )
    features, graph = (
        (MyFeatureStore(), MyGraphStore()) if kind == "pyg" else (FeatureStore(), GraphStore())
    )
    for of in NODES:
        features.put_tensor(data[of].x, group_name=of, attr_name="x", index=None)
    for of in data.edge_types:
        src, dst = data[of].edge_index
        sizes = NODES[of[0]], NODES[of[2]]
        order = src.argsort(stable=True) if layout == "csr" else dst.argsort(stable=True)
        pair: Any = (src, dst)
        if layout != "coo":
            rows, columns = (src, dst) if layout == "csr" else (dst, src)
            count = sizes[0] if layout == "csr" else sizes[1]
            starts = torch.searchsorted(rows[order], torch.arange(count + 1))
            ends = columns[order]
            pair = (starts, ends) if layout == "csr" else (ends, starts)
        graph.put_edge_index(pair, edge_type=of, layout=layout, size=sizes)
    return features, graph


def edges(batch: Any, kind: Any) -> list[Any]:
    src, dst = batch[kind].edge_index
    return sorted(
        zip(batch[kind[0]].n_id[src].tolist(), batch[kind[2]].n_id[dst].tolist(), strict=True)
    )


@pytest.mark.parametrize("loader", [NeighborLoader, HGTLoader])
@pytest.mark.parametrize(
    ("kind", "layout", "workers"),
    [
        ("pyg", "coo", 0),
        ("pyg", "csr", 2),
        ("pyg", "csc", 0),
        ("ours", "coo", 0),
        ("ours", "csc", 0),
        ("graph", "", 0),
        ("graph", "", 2),
    ],
)
def test_whole_neighbourhoods(kind: str, layout: str, workers: int, loader: Any) -> None:
    """The nodes, edges and features of the HeteroData's batches."""
    data = typed_data()
    options = {"batch_size": 25, "num_workers": workers, "filter_per_worker": bool(workers)}
    if loader is HGTLoader:
        options["max_neighbors"] = None
    seeds = ("paper", torch.arange(50))
    theirs = loader(data, [-1, -1], seeds, **options)
    ours = loader(stores(data, layout, kind), [-1, -1], seeds, **options)
    for want, got in zip(theirs, ours, strict=True):
        assert set(got.node_types) == set(NODES) and set(got.edge_types) == set(data.edge_types)
        assert got["paper"].batch_size == 25
        for of in NODES:
            assert sorted(got[of].n_id.tolist()) == sorted(want[of].n_id.tolist())
            assert got[of].x.equal(data[of].x[got[of].n_id])
            assert got[of].num_nodes == len(got[of].n_id)
        for of in data.edge_types:
            assert edges(got, of) == edges(want, of)
            if kind == "graph":
                assert got[of].w.equal(data[of].w[got[of].e_id])


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_ids_of_edges_are_the_stores(layout: str) -> None:
    """In COO the place of an edge; else its place in what the store's CSC was made of."""
    data = typed_data()
    given = stores(data, layout, "pyg")
    loader = NeighborLoader(given, [3, 2], ("paper", torch.arange(30)), batch_size=30, seed=1)
    (batch,) = loader
    rows, columns, _ = given[1].coo()
    for kind in data.edge_types:
        found = batch[kind]
        src, dst = found.edge_index
        assert rows[kind][found.e_id].equal(batch[kind[0]].n_id[src])
        assert columns[kind][found.e_id].equal(batch[kind[2]].n_id[dst])
        assert len(found.e_id) > 0


@pytest.mark.parametrize(("kind", "layout"), [("pyg", "coo"), ("pyg", "csc"), ("graph", "")])
def test_backward(kind: str, layout: str) -> None:
    """All nodes that are reached along the edges."""
    data = typed_data()
    index = NodeSamplerInput(None, torch.tensor([3]), None, "paper")
    theirs, ours = (
        PGSampler(of, [-1, -1], sample_direction="backward").sample_from_nodes(index)
        for of in (data, stores(data, layout, kind))
    )
    for of in NODES:
        assert sorted(theirs.node[of].tolist()) == sorted(ours.node[of].tolist())
    for edge_type in data.edge_types:
        pairs = [
            sorted(
                zip(
                    out.node[edge_type[0]][out.row[edge_type]].tolist(),
                    out.node[edge_type[2]][out.col[edge_type]].tolist(),
                    strict=True,
                )
            )
            for out in (theirs, ours)
        ]
        assert pairs[0] == pairs[1]
    assert ours.row[CITES].numel() > 0


def test_our_graph_is_sampled_as_it_is() -> None:
    data = typed_data()
    features, graph = stores(data, "", "graph")
    sampler = PGSampler((features, graph), [4], weight_attr="w", seed=3)
    assert sampler.graph is graph.hetero_graph
    (batch,) = NeighborLoader(
        (features, graph), [60], "paper", batch_size=60, weight_attr="w", seed=3
    )
    for kind in data.edge_types:
        assert batch[kind].e_id.numel() == int((data[kind].w > 0).sum()) or kind == WRITTEN
        assert (batch[kind].w > 0).all()
    with pytest.raises(ValueError, match=r"weight_attr: .* \('w'\), got 'v'"):
        PGSampler((features, graph), [4], weight_attr="v")
    graph.remove_edge_index(edge_type=CITES, layout="csc")
    assert graph.hetero_graph is None
    assert PGSampler((features, graph), [4]).graph.edge_types == (WRITES, WRITTEN)


def test_a_class_of_ones_own_and_numbers_of_nodes() -> None:
    """``custom_cls`` makes the batches; a type without a size has as many nodes as features."""

    class Library(HeteroData):  # type: ignore[misc]
        pass

    features, graph = MyFeatureStore(), MyGraphStore()
    features.put_tensor(torch.arange(9), group_name="user", attr_name="x", index=None)
    edge_index = torch.tensor([0, 2, 3]), torch.tensor([1, 1, 2])
    graph.put_edge_index(edge_index, edge_type=("user", "of", "item"), layout="coo", size=(None, 5))
    loader = NeighborLoader(
        (features, graph), [-1], ("item", [1, 4]), batch_size=2, custom_cls=Library
    )
    (batch,) = loader
    assert type(batch) is Library
    assert loader.node_sampler.num_nodes == {"user": 9, "item": 5}
    assert batch["user"].x.tolist() == [0, 2]


def test_mistakes() -> None:
    data = typed_data()
    given = stores(data, "coo", "pyg")
    with pytest.raises(NotImplementedError, match=r"weight_attr: expected None with .* got 'w'"):
        NeighborLoader(given, [2], "paper", weight_attr="w")
    with pytest.raises(ValueError, match=r"input_nodes: expected one of the types"):
        NeighborLoader(given, [2], "venue")
    with pytest.raises(TypeError, match="input_nodes: expected a type of nodes"):
        NeighborLoader(given, [2], torch.arange(3))
    with pytest.raises(NotImplementedError, match="NeighborLoader and PGSampler take one"):
        Sampler(given, pgs.PGSampler([2]))
    given[1].put_edge_index(
        (torch.tensor([60]), torch.tensor([0])), edge_type=CITES, layout="coo", size=(60, 60)
    )
    with pytest.raises(IndexError, match=r"sources of \('paper', 'cites', 'paper'\)"):
        NeighborLoader(given, [2], "paper")
    plain = random_data()
    given[1].put_edge_index(tuple(plain.edge_index), edge_type=None, layout="coo", size=(100, 100))
    with pytest.raises(ValueError, match="data: expected a graph store whose edges all have types"):
        NeighborLoader(given, [2], "paper")


def test_a_graph_of_stores() -> None:
    """``Graph.from_pyg`` of a pair has edges, ids and features by type."""
    data = HeteroData()
    data["a"].x, data["b"].num_nodes = torch.rand(5, 3), 4
    to, of = ("a", "to", "b"), ("b", "of", "a")
    data[to].edge_index = torch.tensor([[0, 4, 1], [3, 1, 1]])
    data[of].edge_index = torch.tensor([[0, 1], [1, 4]])
    whole = pgs.Graph.from_pyg(data)
    weights = {to: {"w": torch.rand(3)}}
    ours = FeatureStore({"a": {"z": data["a"].x}}, weights), GraphStore(whole)
    for features, store in ((data, data), ours):
        graph = pgs.Graph.from_pyg((features, store))
        assert graph.num_nodes == {"a": 5, "b": 4}
        assert graph.edge_types == (to, of)
        for kind in (to, of):
            ids = graph[kind].edge_ids
            assert ids is None or sorted(ids.tolist()) == list(range(graph[kind].num_edges))
            places = range(graph[kind].num_edges) if ids is None else ids.tolist()
            assert graph[kind].indices.tolist() == data[kind].edge_index[0][list(places)].tolist()
        assert graph.ndata["a"]["x"].torch().equal(data["a"].x)
    assert graph[to].indices.torch().data_ptr() == whole[to].indices.torch().data_ptr()
    assert graph.ndata["a"]["z"].torch().equal(data["a"].x)
    assert graph.edata[to]["w"].torch().equal(weights[to]["w"])
    with pytest.raises(TypeError, match=r"expected \(FeatureStore, GraphStore\), got \(int 1"):
        pgs.Graph.from_pyg((1, 2))


@pytest.mark.parametrize("kind", ["pyg", "ours", "graph"])
def test_types_with_features_and_no_edges(kind: str) -> None:
    """As in PyG they are types: seeds may be of them, and other samples are what they were."""
    features, graph = stores(typed_data(), "csc", kind)
    core, seeds = pgs.PGSampler([2, 3], seed=1), {"paper": torch.arange(0, 60, 7)}
    before = core.sample(PGSampler((features, graph), [3, 2]).graph, seeds, batch=0)
    features.put_tensor(torch.randn(11, 2), group_name="venue", attr_name="x", index=None)
    data = features, graph
    sampler = PGSampler(data, [3, 2])
    assert sampler.graph.node_types == ("paper", "author", "venue")
    assert sampler.num_nodes["venue"] == 11
    after = core.sample(sampler.graph, seeds, batch=0)
    for of in NODES:
        assert after.input_nodes[of].tolist() == before.input_nodes[of].tolist()
    (batch,) = NeighborLoader(data, [3, 2], ("paper", torch.arange(4)), batch_size=4)
    assert batch["venue"].num_nodes == 0 and batch["venue"].x.shape == (0, 2)
    for loader in (NeighborLoader, HGTLoader):
        venues = torch.tensor([10, 3])
        (batch,) = loader(data, [3, 2], input_nodes=("venue", venues), batch_size=2)
        assert batch["venue"].n_id.equal(venues) and len(batch["venue"].x) == 2
        assert batch["paper"].num_nodes == 0 and batch[CITES].edge_index.shape == (2, 0)
    own = pgs.Graph.from_pyg(data)
    assert own.node_types == ("paper", "author", "venue")
    assert own.ndata["venue"]["x"].shape == (11, 2)
    with pytest.raises(ValueError, match=r"input_nodes: expected one of the types .*'venue'"):
        NeighborLoader(data, [3, 2], "book")
