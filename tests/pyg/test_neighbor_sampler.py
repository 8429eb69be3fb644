"""``NeighborSampler`` and ``BidirectionalNeighborSampler`` in the places of PyG's."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric import sampler as peer
from torch_geometric import typing as peer_typing
from torch_geometric.data import Data, HeteroData
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import EdgeSamplerInput, NodeSamplerInput
from torch_geometric.sampler.base import DataType

from pygsampler import Graph
from pygsampler.pyg import (
    BidirectionalNeighborSampler,
    FeatureStore,
    GraphStore,
    LaborSampler,
    NeighborLoader,
    NeighborSampler,
    PGSampler,
)
from pygsampler.pyg.neighbor_sampler import NeighborSampler as OfModule

pytestmark = pytest.mark.filterwarnings("ignore:Using 'NeighborSampler' without a 'pyg-lib'")


@pytest.fixture(autouse=True)
def made_without_pyg_lib(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyG's sampler is made of times and weights where it could not sample by them."""
    for name in ("WITH_EDGE_TIME_NEIGHBOR_SAMPLE", "WITH_WEIGHTED_NEIGHBOR_SAMPLE"):
        monkeypatch.setattr(peer_typing, name, True)


CITES, WRITES = ("paper", "cites", "paper"), ("author", "writes", "paper")


def data_with_times() -> Any:
    data = random_data()
    data.edge_w = torch.rand(data.num_edges)
    data.edge_at = torch.randint(50, (data.num_edges,))
    data.node_at = torch.randint(50, (data.num_nodes,))
    return data


def typed_data() -> Any:
    data, random = HeteroData(), torch.Generator().manual_seed(0)
    data["paper"].num_nodes, data["author"].num_nodes = 40, 25
    for kind, count in ((CITES, 300), (WRITES, 200)):
        sources = data[kind[0]].num_nodes
        ends = torch.randint(sources, (count,), generator=random), torch.randint(40, (count,))
        data[kind].edge_index = torch.stack(ends)
        data[kind].edge_at = torch.randint(50, (count,), generator=random)
        data[kind].edge_w = torch.rand(count, generator=random)
    data["paper"].node_at = torch.randint(50, (40,), generator=random)
    return data


def edges_of(colptr: Any, row: Any, perm: Any, *more: Any) -> list[Any]:
    """The edges that a CSC of PyG's has: target, source, column, and values; rows in any order."""
    target = torch.arange(len(colptr) - 1).repeat_interleave(colptr.diff())
    perm = torch.arange(len(row)) if perm is None else perm
    return sorted(zip(*(each.tolist() for each in (target, row, perm, *more)), strict=True))


@pytest.mark.parametrize(
    ("direction", "time_attr"),
    [("forward", None), ("forward", "edge_at"), ("forward", "node_at"), ("backward", None)],
)
def test_attributes_are_pygs(direction: str, time_attr: str | None) -> None:
    data = data_with_times()
    options: dict[str, Any] = {"time_attr": time_attr, "weight_attr": "edge_w"}
    if time_attr is not None:
        options["weight_attr"] = None
    ours = NeighborSampler(data, [3, 2], sample_direction=direction, **options)
    theirs = peer.NeighborSampler(data, [3, 2], sample_direction=direction, **options)
    more = [
        [getattr(each, name) for name in ("edge_time", "edge_weight")] for each in (ours, theirs)
    ]
    assert [value is None for value in more[0]] == [value is None for value in more[1]]
    found, expected = (
        edges_of(each.colptr, each.row, each.perm, *(v for v in values if v is not None))
        for each, values in zip((ours, theirs), more, strict=True)
    )
    assert found == expected
    if time_attr == "node_at":
        assert torch.equal(ours.node_time, theirs.node_time)
    else:
        assert ours.node_time is theirs.node_time is None
    for name in ("is_hetero", "is_temporal", "disjoint", "num_nodes", "data_type", "replace",
                 "subgraph_type", "temporal_strategy", "keep_orig_edges"):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours.num_neighbors.values == theirs.num_neighbors.values


@pytest.mark.parametrize(
    ("direction", "time_attr"),
    [("forward", None), ("forward", "edge_at"), ("forward", "node_at"), ("backward", None)],
)
def test_attributes_of_types_are_pygs(direction: str, time_attr: str | None) -> None:
    data = typed_data()
    options: dict[str, Any] = {"time_attr": time_attr, "sample_direction": direction}
    if time_attr is None and direction == "forward":
        # PyG keeps those of reversed types by the types that they were of.
        options["weight_attr"] = "edge_w"
    ours = NeighborSampler(data, [3, 2], **options)
    theirs = peer.NeighborSampler(data, [3, 2], **options)
    for name in ("node_types", "edge_types", "to_rel_type", "to_edge_type", "is_hetero",
                 "is_temporal", "disjoint", "data_type"):  # fmt: skip
        assert getattr(ours, name) == getattr(theirs, name), name
    assert dict(ours.num_nodes) == theirs.num_nodes
    assert ours.perm.keys() == (dict.fromkeys(ours.edge_types)).keys()
    for kind in theirs.edge_types:
        joined = "__".join(kind)
        perms = [ours.perm[kind], theirs.perm[kind]] if kind in theirs.perm else []
        if not perms:
            (perm,) = [theirs.perm[other] for other in theirs.perm if other[1] == kind[1]]
            perms = [ours.perm[kind], perm]
        found, expected = (
            edges_of(
                each.colptr_dict[joined],
                each.row_dict[joined],
                perm,
                *(of[joined] for of in (each.edge_time, each.edge_weight) if of is not None),
            )
            for each, perm in zip((ours, theirs), perms, strict=True)
        )
        assert found == expected
    if time_attr == "node_at":
        assert ours.node_time.keys() == theirs.node_time.keys() == {"paper"}
        assert torch.equal(ours.node_time["paper"], theirs.node_time["paper"])
    else:
        assert ours.node_time is theirs.node_time is None
    with pytest.raises(AttributeError, match="colptr_dict has it by type"):
        ours.colptr  # noqa: B018


def test_stores_are_remote() -> None:
    features, edges = FeatureStore(), GraphStore()
    edges.put_edge_index(torch.tensor([[0, 1, 3], [1, 2, 0]]), None, "coo", False, (4, 4))
    sampler = NeighborSampler((features, edges), [1])
    assert sampler.data_type == DataType.remote
    assert sampler.node_types == sampler.edge_types == [None]
    assert not sampler.is_hetero
    typed = GraphStore()
    typed.put_edge_index(torch.tensor([[0, 1, 3], [1, 2, 0]]), CITES, "coo", False, (4, 4))
    sampler = NeighborSampler((features, typed), [1])
    assert sampler.data_type == DataType.remote
    assert sampler.is_hetero
    assert sampler.is_hetero


class Own(NeighborSampler):
    """A class of the user's, with an argument of its own."""

    def __init__(self, data: Any, *arguments: Any, mine: int = 3, **options: Any) -> None:
        super().__init__(data, *arguments, **options)
        self.mine = mine


@pytest.mark.parametrize("kind", [NeighborSampler, Own])
@pytest.mark.parametrize("make", [random_data, typed_data])
def test_one_class_is_for_both(kind: Any, make: Any) -> None:
    data = make()
    seeds: Any = "paper" if isinstance(data, HeteroData) else None
    sampler = kind(data, [3, 2], seed=1)
    assert isinstance(sampler, kind)
    assert isinstance(sampler, PGSampler)
    assert sampler.is_hetero == isinstance(data, HeteroData)
    assert type(kind(data, [1])) is type(sampler)
    assert repr(sampler).startswith(f"pygsampler.pyg.{kind.__name__}(")
    expected = NeighborLoader(data, [3, 2], seeds, seed=1)
    for other in (sampler, copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert type(other) is type(sampler)
        assert getattr(other, "mine", 3) == 3
        other.set_epoch(0)
        expected.set_epoch(0)
        loader = NodeLoader(data, other, seeds)
        for one, two in zip(loader, expected, strict=True):
            assert str(one.to_dict()) == str(two.to_dict())


def test_the_names_are_those_of_pygs_modules() -> None:
    assert OfModule is NeighborSampler
    ours, theirs = (
        list(inspect.signature(each).parameters) for each in (NeighborSampler, peer.NeighborSampler)
    )
    assert ours[: len(theirs)] == theirs


def test_edges_of_the_older_loader_name_it() -> None:
    with pytest.raises(TypeError, match=r"is pygsampler\.pyg\.loader\.NeighborSampler"):
        NeighborSampler(torch.zeros(2, 3).long(), [2])
    with pytest.raises(TypeError, match="'edge_index'"):
        NeighborSampler(edge_index=1, sizes=[2])


def both_ways(data: Any, seeds: list[int], hops: int) -> tuple[set[int], set[int]]:
    """Nodes and edges that are met by going so far in both directions."""
    nodes, edges, current = set(seeds), set(), set(seeds)
    src, dst = data.edge_index.tolist()
    for _ in range(hops):
        found = {i for i, ends in enumerate(zip(src, dst, strict=True)) if current & set(ends)}
        edges |= found
        reached = {end[i] for i in found for end in (src, dst)}
        current = reached - nodes
        nodes |= reached
    return nodes, edges


@pytest.mark.parametrize("disjoint", [False, True])
@pytest.mark.parametrize("hops", [0, 1, 3])
def test_both_directions_of_all_neighbours(disjoint: bool, hops: int) -> None:
    data = Data(edge_index=torch.randint(40, (2, 60)), num_nodes=40)
    seeds = torch.tensor([3, 8, 5])
    sampler = BidirectionalNeighborSampler(data, [-1] * hops, disjoint=disjoint)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, seeds))
    assert out.node[:3].tolist() == seeds.tolist()
    assert sum(out.num_sampled_nodes) == len(out.node)
    assert sum(out.num_sampled_edges) == len(out.edge)
    assert torch.equal(data.edge_index[:, out.edge], out.node[torch.stack([out.row, out.col])])
    if not disjoint:
        nodes, edges = both_ways(data, seeds.tolist(), hops)
        assert sorted(out.node.tolist()) == sorted(nodes)
        assert sorted(out.edge.tolist()) == sorted(edges)
        return
    for tree, seed in enumerate(seeds.tolist()):
        nodes, edges = both_ways(data, [seed], hops)
        assert sorted(out.node[out.batch == tree].tolist()) == sorted(nodes)
        assert sorted(out.edge[out.batch[out.row] == tree].tolist()) == sorted(edges)


def test_both_directions_of_some_neighbours() -> None:
    data = random_data()
    sampler = BidirectionalNeighborSampler(data, [2, 1], seed=1)
    sampler.set_epoch(0)
    seeds = NodeSamplerInput(None, torch.arange(9))
    out = sampler.sample_from_nodes(seeds)
    assert str(sampler.sample_from_nodes(seeds)) == str(out)
    # Of the first hop, before another is reached again.
    assert torch.bincount(out.col[: out.num_sampled_edges[0]], minlength=9)[:9].max() == 2
    assert (
        torch.bincount(out.row[out.num_sampled_edges[0] :][: out.num_sampled_edges[1]]).max() <= 2
    )
    other = copy.copy(sampler)
    other.set_epoch(1)
    assert str(other.sample_from_nodes(seeds)) != str(out) == str(sampler.sample_from_nodes(seeds))
    batch = next(iter(NodeLoader(data, sampler, batch_size=9)))
    assert torch.equal(data.edge_index[:, batch.e_id], batch.n_id[batch.edge_index])
    links = EdgeSamplerInput(None, torch.tensor([1, 3]), torch.tensor([0, 3]))
    found = sampler.sample_from_edges(links)
    assert found.node[found.metadata[1]].tolist() == [[1, 3], [0, 3]]


def test_what_both_directions_do_not_offer() -> None:
    data = data_with_times()
    seeds = NodeSamplerInput(None, torch.tensor([1, 1]))
    with pytest.raises(NotImplementedError, match="time_attr: expected None"):
        BidirectionalNeighborSampler(data, [1], time_attr="edge_at")
    with pytest.raises(NotImplementedError, match="data: expected one without types"):
        BidirectionalNeighborSampler(typed_data(), [1])
    with pytest.raises(NotImplementedError, match="neg_sampling: expected None"):
        links = EdgeSamplerInput(None, torch.tensor([1]), torch.tensor([0]))
        BidirectionalNeighborSampler(data, [1]).sample_from_edges(links, "binary")
    with pytest.raises(ValueError, match="input_nodes: expected distinct nodes"):
        BidirectionalNeighborSampler(data, [1]).sample_from_nodes(seeds)
    with pytest.raises(NotImplementedError, match="got 'induced'"):
        sampler = BidirectionalNeighborSampler(data, [1], subgraph_type="induced")
        sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor([1])))


class Reordered(NeighborSampler):
    """A class of the user's that has data in another place."""

    def __init__(self, counts: list[int], data: Any) -> None:
        super().__init__(data, counts)


@pytest.mark.parametrize("make", [random_data, typed_data])
def test_a_subclass_may_have_data_in_another_place(make: Any) -> None:
    data = make()
    for sampler in (Reordered([2], data), Reordered(counts=[2], data=data)):
        assert isinstance(sampler, Reordered)
        assert sampler.is_hetero == isinstance(data, HeteroData)
        assert pickle.loads(pickle.dumps(sampler)).num_neighbors.values == [2]


def labor(data: Any, **options: Any) -> LaborSampler:
    return LaborSampler(data, [3, 2], importance=1, **options)


def neighbors(data: Any, **options: Any) -> PGSampler:
    return PGSampler(data, [3, 2], **options)


class OwnLabor(LaborSampler):
    """A class of the user's."""


@pytest.mark.parametrize("make", [neighbors, labor])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_heterogeneous_graph_is_data(make: Any, direction: str) -> None:
    """A Graph with a schema is sampled as the HeteroData that it was made of."""
    data = typed_data()
    graph = Graph.from_pyg(data)
    found = []
    for given in (graph, data, (FeatureStore(), GraphStore(graph))):
        sampler = make(given, seed=1, sample_direction=direction)
        sampler.set_epoch(2)
        out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(9), None, "paper"))
        ids = [(ends, row.tolist(), out.col[ends].tolist()) for ends, row in out.row.items()]
        found.append((sorted(ids), {kind: node.tolist() for kind, node in out.node.items()}))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("kind", [LaborSampler, OwnLabor])
@pytest.mark.parametrize("make", [random_data, typed_data])
def test_labor_is_one_class_for_both(kind: Any, make: Any) -> None:
    data = make()
    seeds: Any = "paper" if isinstance(data, HeteroData) else None
    sampler = kind(data, [3, 2], seed=1)
    assert isinstance(sampler, kind)
    assert type(kind(data, [1])) is type(sampler)
    assert type(sampler).__name__ == kind.__name__
    assert repr(sampler).startswith("pygsampler.pyg.LaborSampler(")
    expected = NeighborLoader(data, [3, 2], seeds, labor="poisson", seed=1)
    for other in (sampler, copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        assert type(other) is type(sampler)
        other.set_epoch(0)
        expected.set_epoch(0)
        for one, two in zip(NodeLoader(data, other, seeds), expected, strict=True):
            assert str(one.n_id if seeds is None else one.n_id_dict) == str(
                two.n_id if seeds is None else two.n_id_dict
            )


def test_loaders_refuse_a_graph_as_data() -> None:
    graph = Graph.from_pyg(typed_data())
    with pytest.raises(TypeError, match="neighbor_sampler=PGSampler"):
        NeighborLoader(graph, [2], "paper")
