"""How times compare: ``temporal_comparison`` and ``carry`` of samplers and loaders."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pyg_reference import EDGES, NODES, random_data
from torch_geometric.data import Data, HeteroData

from pygsampler import Graph
from pygsampler.pyg import (
    FeatureStore,
    GraphStore,
    LinkNeighborLoader,
    NeighborLoader,
    NeighborSampler,
    PGSampler,
)

HOPS = 3
COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "monotonically_decreasing": operator.le,
    "strictly_decreasing": operator.lt,
    "monotonically_increasing": operator.ge,
    "strictly_increasing": operator.gt,
}
RELATION = "v", "to", "v"


def make_data(float_: bool = False) -> Any:
    random = torch.Generator().manual_seed(0)
    times = torch.randint(-4, 9, (EDGES,), generator=random)
    nodes = torch.randint(-4, 9, (NODES,), generator=random)
    data = random_data()
    data.edge_at = times.double() / 3 if float_ else times
    data.node_at = nodes
    return data


def typed(data: Any) -> Any:
    made = HeteroData()
    made["v"].num_nodes, made["v"].node_at = NODES, data.node_at
    made[RELATION].edge_index, made[RELATION].edge_at = data.edge_index, data.edge_at
    return made


def met(data: Any, seed: int, bound: float, name: str, compare: Any, carry: bool) -> set[int]:
    """The edges by which all that may be taken around a seed is met, hop by hop.

    A node is expanded once, by the bound of the edge that reaches it first; the test's graphs have
    one for which that is the same whichever comes first.
    """
    src, dst = data.edge_index.tolist()
    of_edges = name == "edge_at"
    times = data[name].tolist()
    found: set[int] = set()
    known, current = {seed}, {seed: bound}
    for _ in range(HOPS):
        reached: dict[int, float] = {}
        for node, limit in current.items():
            for edge in [i for i, end in enumerate(dst) if end == node]:
                time = times[edge] if of_edges else times[src[edge]]
                if compare(time, limit):
                    found.add(edge)
                    if src[edge] not in known and src[edge] not in reached:
                        reached[src[edge]] = time if carry else bound
        known |= set(reached)
        current = reached
    return found


@pytest.mark.parametrize("comparison", [None, *COMPARISONS])
@pytest.mark.parametrize("name", ["edge_at", "node_at"])
@pytest.mark.parametrize("kind", ["data", "floats", "typed", "graph"])
def test_all_hops_compare_with_the_seed(comparison: Any, name: str, kind: str) -> None:
    data = make_data(kind == "floats")
    given: Any = data
    options: dict[str, Any] = {}
    if kind == "typed":
        given = typed(data)
    elif kind == "graph":
        graph = Graph.from_pyg(data)
        sampler = PGSampler(
            graph, [-1] * HOPS, time_attr=name, temporal_comparison=comparison, carry="seed"
        )
        options = {"neighbor_sampler": sampler}
    compare = COMPARISONS[comparison or "monotonically_decreasing"]
    for seed, bound in ((3, 2), (7, 0), (11, 5)):
        seeds = ("v", torch.tensor([seed])) if kind == "typed" else torch.tensor([seed])
        loader = NeighborLoader(
            given, [-1] * HOPS, seeds, torch.tensor([bound]), time_attr=name,
            temporal_comparison=comparison, carry="seed", **options,
        )  # fmt: skip
        (batch,) = loader
        found = batch[RELATION].e_id if kind == "typed" else batch.e_id
        assert set(found.tolist()) == met(data, seed, bound, name, compare, False)


@pytest.mark.parametrize("comparison", [*COMPARISONS])
@pytest.mark.parametrize("kind", ["data", "typed"])
def test_times_run_one_way_along_each_path(comparison: str, kind: str) -> None:
    """A tree, each of whose nodes is reached by one edge."""
    random = torch.Generator().manual_seed(2)
    parents = [int(torch.randint(max(i, 1), (1,), generator=random)) for i in range(1, NODES)]
    data = Data(
        edge_index=torch.tensor([[*range(1, NODES)], parents]),
        num_nodes=NODES,
        edge_at=torch.randint(-6, 7, (NODES - 1,), generator=random),
    )
    typed_ = HeteroData()
    typed_["v"].num_nodes = NODES
    typed_[RELATION].edge_index, typed_[RELATION].edge_at = data.edge_index, data.edge_at
    seeds = torch.zeros(13).long()
    bounds = torch.arange(-6, 7)
    loader = NeighborLoader(
        typed_ if kind == "typed" else data, [-1] * HOPS,
        ("v", seeds) if kind == "typed" else seeds, bounds,
        time_attr="edge_at", temporal_comparison=comparison,
    )  # fmt: skip
    sizes = set()
    for bound, batch in zip(bounds.tolist(), loader, strict=True):
        found = batch[RELATION].e_id if kind == "typed" else batch.e_id
        expected = met(data, 0, bound, "edge_at", COMPARISONS[comparison], True)
        assert set(found.tolist()) == expected
        sizes.add(len(expected))
    assert len(sizes) > 2


def test_what_a_sampler_shows_is_as_it_was_given() -> None:
    data = make_data()
    for given in (data, typed(data)):
        for name, shown in (("edge_at", "edge_time"), ("node_at", "node_time")):
            one, other = (
                NeighborSampler(given, [2], time_attr=name, temporal_comparison=comparison)
                for comparison in (None, "strictly_increasing")
            )
            assert str(getattr(one, shown)) == str(getattr(other, shown))


def test_the_graph_that_was_given_keeps_its_times() -> None:
    data = make_data()
    graph = Graph.from_pyg(data)
    PGSampler(graph, [2], time_attr="edge_at", temporal_comparison="strictly_increasing")
    assert graph.edata["edge_at"].tolist() == data.edge_at.tolist()


def test_links_and_seeds_by_their_own_times() -> None:
    data = make_data()
    links = LinkNeighborLoader(
        data, [-1], edge_label_index=data.edge_index[:, :8], edge_label_time=torch.arange(8) - 3,
        neg_sampling="binary", time_attr="node_at", temporal_comparison="strictly_increasing",
        batch_size=1,
    )  # fmt: skip
    for bound, batch in zip(range(-3, 5), links, strict=True):
        assert (batch.node_at[batch.edge_index[0]] > bound).all()
    seeds = torch.arange(NODES)
    loader = NeighborLoader(
        data, [-1], seeds, time_attr="node_at", temporal_comparison="strictly_increasing"
    )
    for seed, batch in zip(seeds.tolist(), loader, strict=True):
        assert (batch.node_at[batch.edge_index[0]] > data.node_at[seed]).all()


def test_of_stores() -> None:
    data = make_data()
    features, edges = FeatureStore({"v": {"x": torch.zeros(NODES, 1)}}), GraphStore()
    edges.put_edge_index(data.edge_index, RELATION, "coo", False, (NODES, NODES))
    features.put_tensor(data.node_at, group_name="v", attr_name="node_at", index=None)
    loader = NeighborLoader(
        (features, edges), [-1] * HOPS, ("v", torch.tensor([3])), torch.tensor([0]),
        time_attr="node_at", temporal_comparison="strictly_increasing", carry="seed",
    )  # fmt: skip
    (batch,) = loader
    # Stores name edges by their places in the CSC.
    edge = batch[RELATION].edge_index
    found = batch["v"].n_id[edge]
    expected = met(data, 3, 0, "node_at", operator.gt, False)
    assert sorted(found.t().tolist()) == sorted(data.edge_index.t()[[*expected]].tolist())


@pytest.mark.parametrize("hetero", [False, True])
def test_wrong_words_are_named(hetero: bool) -> None:
    data = typed(make_data()) if hetero else make_data()
    with pytest.raises(ValueError, match="temporal_comparison: expected one of"):
        PGSampler(data, [1], time_attr="edge_at", temporal_comparison="later")
    with pytest.raises(ValueError, match="carry: expected 'seed', 'edge' or None, got str 'both'"):
        PGSampler(data, [1], time_attr="edge_at", carry="both")
