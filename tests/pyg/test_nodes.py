"""PGSampler and NeighborLoader from nodes: PyG's contract, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pyg_reference import NODES, ReferenceSampler, check_edges, content, pairs, random_data
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader as PygNeighborLoader
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import GraphConv, GraphSAGE
from torch_geometric.sampler import NodeSamplerInput, NumNeighbors
from torch_geometric.utils import k_hop_subgraph

import pygsampler as pgs
from pygsampler._batch import induced_edges as edges_among
from pygsampler.pyg import NeighborLoader, PGSampler

TYPES = ["directional", "bidirectional", "induced"]
SEEDS = torch.tensor([3, 0, 77, 99, 50, 12])
# 7 is there three times, as weighted samplers of torch give seeds.
REPEATED = torch.tensor([7, 3, 7, 99, 7, 0, 3])


def sampled(sampler: Any, seeds: torch.Tensor) -> Any:
    return sampler.sample_from_nodes(NodeSamplerInput(torch.arange(len(seeds)), seeds))


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("hops", [[3], [4, 2], [2, 0, 3], [-1, 3], [0], [], [2, 2, 2, 2]])
def test_outputs_of_the_reference(hops: list[int], replace: bool, disjoint: bool) -> None:
    data = random_data()
    sampler = PGSampler(data, hops, replace=replace, disjoint=disjoint, seed=5)
    sampler.set_epoch(3)
    expected = ReferenceSampler(data, sampler)
    for seeds in (SEEDS, SEEDS[:1], torch.arange(NODES)):
        out = sampled(sampler, seeds)
        assert content(out) == content(sampled(expected, seeds))
        assert out.metadata[0].equal(torch.arange(len(seeds)))


@given(
    st.integers(1, 12),
    st.integers(0, 40),
    st.lists(st.integers(-1, 4), max_size=4),
    st.lists(st.integers(0, 1 << 20), min_size=1, max_size=20),
    st.booleans(),
    st.booleans(),
    st.integers(0, 99),
)
@settings(max_examples=60)
def test_repeated_seeds_on_small_graphs(
    nodes: int,
    edges: int,
    hops: list[int],
    some: list[int],
    replace: bool,
    disjoint: bool,
    number: int,
) -> None:
    """The reference draws for each occurrence of a seed what it draws for the first."""
    data = random_data(nodes, edges, number)
    seeds = torch.tensor(some) % nodes
    sampler = PGSampler(data, hops, replace=replace, disjoint=disjoint, seed=number)
    sampler.set_epoch(0)
    expected = ReferenceSampler(data, sampler)
    assert content(sampled(sampler, seeds)) == content(sampled(expected, seeds))


@pytest.mark.parametrize("subgraph_type", TYPES)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_loader_basics(subgraph_type: str, dtype: torch.dtype) -> None:
    data = random_data(dtype=dtype)
    loader = NeighborLoader(data, [5, 5], batch_size=30, subgraph_type=subgraph_type)
    assert str(loader) == "NeighborLoader()"
    assert len(loader) == 4
    seen = []
    for batch in loader:
        assert isinstance(batch, Data)
        check_edges(data, batch, both_ways=subgraph_type == "bidirectional")
        assert batch.num_nodes == batch.n_id.numel() == batch.n_id.unique().numel()
        assert batch.input_id.equal(batch.n_id[: batch.batch_size])
        assert batch.y.equal(data.y[batch.n_id])
        assert "batch" not in batch
        if subgraph_type == "directional":
            assert sum(batch.num_sampled_nodes) == batch.num_nodes
            assert sum(batch.num_sampled_edges) == batch.num_edges
            assert batch.num_sampled_nodes[0] == batch.batch_size
        seen += batch.input_id.tolist()
    assert batch.batch_size == 10
    assert seen == list(range(NODES))


@pytest.mark.parametrize(
    "nodes", [torch.tensor([5, 2, 40]), [5, 2, 40], "mask", torch.tensor([5, 2, 40]).int()]
)
def test_input_nodes(nodes: Any) -> None:
    data = random_data()
    given = data.train_mask if isinstance(nodes, str) else nodes
    batch = next(iter(NeighborLoader(data, [2], given, batch_size=3)))
    expected, places = ([5, 2, 40], [0, 1, 2]) if given is nodes else ([0, 3, 6], [0, 3, 6])
    assert batch.n_id[:3].tolist() == expected
    assert batch.input_id.tolist() == places


@pytest.mark.parametrize("make", [NeighborLoader, PygNeighborLoader, NodeLoader])
def test_every_way_into_a_loader(make: Any) -> None:
    data = random_data()
    sampler = PGSampler(data, [3, 2], seed=1)
    options = {"input_nodes": data.train_mask, "batch_size": 8}
    if make is NodeLoader:
        loader = make(data, sampler, **options)
    else:
        loader = make(data, [3, 2], neighbor_sampler=sampler, **options)
    sampler.set_epoch(2)
    own = NeighborLoader(data, NumNeighbors([3, 2]), seed=1, **options)
    own.set_epoch(2)
    assert [content(batch) for batch in loader] == [content(batch) for batch in own]
    assert content(loader([4, 1])) == content(own(torch.tensor([4, 1])))


def test_all_neighbours_are_the_k_hop_subgraph() -> None:
    data = random_data()
    seeds = torch.tensor([5, 6, 7])
    nodes, _, _, mask = k_hop_subgraph(seeds, 2, data.edge_index, num_nodes=NODES)
    batch = NeighborLoader(data, [-1, -1], seeds, batch_size=3, subgraph_type="induced")(range(3))
    assert batch.n_id.sort()[0].equal(nodes)
    inside = torch.zeros(NODES, dtype=torch.bool).index_fill(0, nodes, True)
    among = inside[data.edge_index].all(0)
    assert bool((mask <= among).all())
    assert batch.e_id.sort()[0].equal(among.nonzero().squeeze(1))

    first, second = GraphConv(1, 8), GraphConv(8, 3)

    def model(data: Any) -> torch.Tensor:
        return second(first(data.x / NODES, data.edge_index).relu(), data.edge_index)

    for kind in ("directional", "induced"):
        part = NeighborLoader(data, [-1, -1], seeds, batch_size=3, subgraph_type=kind)(range(3))
        torch.testing.assert_close(model(part)[:3], model(data)[seeds])


@pytest.mark.parametrize("seeds", [SEEDS, REPEATED], ids=["distinct", "repeated"])
@pytest.mark.parametrize("disjoint", [False, True])
def test_bidirectional(disjoint: bool, seeds: torch.Tensor) -> None:
    data = random_data()
    outs = []
    for kind in ("directional", "bidirectional"):
        sampler = PGSampler(data, [3, 2], seed=1, subgraph_type=kind, disjoint=disjoint)
        sampler.set_epoch(0)
        outs.append(sampled(sampler, seeds))
    one_way, both = outs
    assert both.node.equal(one_way.node)
    forth = pairs(torch.stack([one_way.row, one_way.col]))
    found = pairs(torch.stack([both.row, both.col]))
    assert found == forth | {(col, row) for row, col in forth}
    assert len(found) == len(both.row)
    assert both.num_sampled_nodes is both.num_sampled_edges is None
    ends = data.edge_index[:, both.edge]
    here = torch.stack([both.node[both.row], both.node[both.col]])
    assert bool(((ends == here).all(0) | (ends == here.flip(0)).all(0)).all())


@pytest.mark.parametrize("of_table", [1 << 16, 0], ids=["table", "search"])
@pytest.mark.parametrize("at_once", [1 << 21, 40, 1])
@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("seeds", [SEEDS, REPEATED], ids=["distinct", "repeated"])
def test_induced(
    seeds: torch.Tensor,
    disjoint: bool,
    at_once: int,
    of_table: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By hand: each pair of nodes of a tree, and each edge between them."""
    monkeypatch.setattr(edges_among, "_AT_ONCE", at_once)
    monkeypatch.setattr(edges_among, "_OF_TABLE", of_table)
    data = random_data()
    sampler = PGSampler(data, [2, 1], subgraph_type="induced", disjoint=disjoint, seed=4)
    sampler.set_epoch(0)
    out = sampled(sampler, seeds)
    assert out.num_sampled_nodes is out.num_sampled_edges is None
    subgraph_ids = out.batch.tolist() if disjoint else [0] * len(out.node)
    place: dict[tuple[int, int], int] = {}
    for i, node in enumerate(zip(subgraph_ids, out.node.tolist(), strict=True)):
        place.setdefault(node, i)
    expected = []
    for col, (tree, v) in enumerate(zip(subgraph_ids, out.node.tolist(), strict=True)):
        for edge in (data.edge_index[1] == v).nonzero().squeeze(1).tolist():
            source = place.get((tree, int(data.edge_index[0, edge])))
            if source is not None:
                expected.append((source, col, edge))
    assert expected == list(zip(out.row.tolist(), out.col.tolist(), out.edge.tolist(), strict=True))


def test_disjoint_trees_share_nothing() -> None:
    data = random_data()
    seeds = torch.tensor([1, 1, 1, 2])
    batch = NeighborLoader(data, [4, 4], seeds, batch_size=4, disjoint=True, seed=0)(range(4))
    assert batch.batch[:4].tolist() == [0, 1, 2, 3]
    row, col = batch.edge_index
    assert batch.batch[row].equal(batch.batch[col])
    check_edges(data, batch)
    edges = [batch.e_id[batch.batch[col] == tree].tolist() for tree in range(3)]
    assert edges[0] != edges[1] != edges[2]


def test_weighted_order_of_the_seeds() -> None:
    """The sampler of torch's loader may give a seed many times in one batch."""
    data = random_data()
    weights = torch.zeros(NODES).index_fill(0, torch.tensor([4, 5]), 1.0)
    order = torch.utils.data.WeightedRandomSampler(weights, 64)
    for batch in NeighborLoader(data, [3, 3], batch_size=16, sampler=order):
        assert batch.batch_size == batch.num_sampled_nodes[0] == 16
        assert set(batch.n_id[:16].tolist()) == {4, 5}
        check_edges(data, batch)
        degrees = torch.bincount(batch.edge_index[1], minlength=batch.num_nodes)[:16]
        full = torch.bincount(data.edge_index[1], minlength=NODES).clamp(max=3)
        assert degrees.equal(full[batch.n_id[:16]])


def test_transforms() -> None:
    data = random_data()

    def marked(data: Any) -> Any:
        data.mark = data.num_nodes
        return data

    def halved(out: Any) -> Any:
        half = len(out.row) // 2
        out.row, out.col, out.edge = out.row[:half], out.col[:half], out.edge[:half]
        return out

    loader = NeighborLoader(
        data, [5], batch_size=20, transform=marked, transform_sampler_output=halved
    )
    batch = next(iter(loader))
    assert batch.mark == batch.num_nodes
    assert batch.num_edges == batch.num_sampled_edges[0] // 2


def test_features_in_a_memory_map(tmp_path: Path) -> None:
    data = random_data()
    shape = tuple(data.x.shape)
    mapped = numpy.memmap(tmp_path / "x", dtype=numpy.float32, mode="w+", shape=shape)
    mapped[:] = data.x.numpy()
    data.x, kept = mapped, data.x
    for batch in NeighborLoader(data, [5, 5], batch_size=50):
        assert isinstance(batch.x, torch.Tensor)
        assert batch.x.equal(kept[batch.n_id])


def test_ids_of_the_input() -> None:
    ids = torch.arange(NODES) * 10
    batch = NeighborLoader(random_data(), [2], range(NODES), input_id=ids, batch_size=4)([3, 1])
    assert batch.input_id.tolist() == [30, 10]


@pytest.mark.parametrize("hops", [[], [3, 3]])
def test_no_edges(hops: list[int]) -> None:
    for data in (
        Data(num_nodes=10),
        Data(x=torch.zeros(10, 1), edge_index=torch.zeros(2, 0).long()),
    ):
        for kind in TYPES:
            batch = NeighborLoader(data, hops, batch_size=4, subgraph_type=kind)([9, 1, 2])
            assert batch.n_id.tolist() == [9, 1, 2]
            assert batch.batch_size == 3


def test_layer_wise_inference_of_pygs_models() -> None:
    data = random_data()
    model = GraphSAGE(1, 8, 2, 3).eval()
    loader = NeighborLoader(data, [-1], batch_size=16)
    with torch.no_grad():
        found, expected = model.inference(loader), model(data.x, data.edge_index)
    torch.testing.assert_close(found, expected)


def test_what_pyg_reads_of_a_sampler() -> None:
    data = random_data()
    sampler = PGSampler(data, [3, 2], disjoint=True)
    assert len(sampler.num_neighbors) == sampler.num_neighbors.num_hops == 2
    assert sampler.num_nodes == NODES
    assert sampler.edge_permutation is None
    assert sampler.device == "cpu"
    assert "[3, 2]" in repr(sampler)
    assert isinstance(sampler.graph, pgs.Graph)
