"""Temporal sampling of a Data by PyG's loaders: no edge, and no node, is later than its seed."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pytest
import torch
from pyg_reference import content
from torch_geometric.data import Data
from torch_geometric.sampler import EdgeSamplerInput, NegativeSampling, NodeSamplerInput
from torch_geometric.testing import MyFeatureStore, MyGraphStore

from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler
from pygsampler.pyg.negative_sampling import NodesByTime

NODES, EDGES = 200, 3000


@pytest.fixture(scope="module")
def data() -> Data:
    random = torch.Generator().manual_seed(3)
    return Data(
        x=torch.arange(NODES).float().view(-1, 1),
        edge_index=torch.randint(0, NODES, (2, EDGES), generator=random),
        time=torch.randint(0, 100, (NODES,), generator=random),
        edge_time=torch.randint(0, 100, (EDGES,), generator=random),
        num_nodes=NODES,
    )


def times_of(batch: Any, data: Data, name: str) -> torch.Tensor:
    """Of each edge of a batch."""
    if name == "edge_time":
        return data.edge_time[batch.e_id]
    return data.time[batch.n_id[batch.edge_index[0]]]


@pytest.mark.parametrize("strategy", ["uniform", "last"])
@pytest.mark.parametrize("name", ["time", "edge_time"])
@pytest.mark.parametrize("workers", [0, 2])
def test_no_edge_is_later_than_its_seed(data: Data, name: str, strategy: str, workers: int) -> None:
    bounds = torch.arange(NODES) % 100
    loader = NeighborLoader(
        data,
        [5, 5],
        input_nodes=torch.arange(NODES),
        input_time=bounds,
        time_attr=name,
        temporal_strategy=strategy,
        batch_size=50,
        num_workers=workers,
        seed=2,
    )
    edges = 0
    for batch in loader:
        assert torch.equal(batch.seed_time, bounds[batch.input_id])
        limits = batch.seed_time[batch.batch[batch.edge_index[1]]]
        assert (times_of(batch, data, name) <= limits).all()
        assert torch.equal(batch.batch[: batch.batch_size], torch.arange(batch.batch_size))
        edges += batch.num_edges
    assert edges > 1000


def test_seeds_have_the_times_of_their_nodes(data: Data) -> None:
    loader = NeighborLoader(data, [-1], time_attr="time", batch_size=NODES, seed=1)
    (batch,) = loader
    src, dst = data.edge_index
    there = (data.time[src] <= data.time[dst]).nonzero().view(-1)
    assert sorted(batch.e_id.tolist()) == there.tolist()


def test_the_last_ones(data: Data) -> None:
    sampler = PGSampler(data, [3], time_attr="edge_time", temporal_strategy="last", seed=1)
    seeds = torch.arange(NODES)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, seeds, time=torch.full((NODES,), 60)))
    assert sampler.disjoint
    assert (sampler.time_attr, sampler.temporal_strategy) == ("edge_time", "last")
    for v in range(NODES):
        row = out.edge[out.col == v].tolist()
        own = (data.edge_index[1] == v) & (data.edge_time <= 60)
        own = own.nonzero().view(-1)
        order = own[data.edge_time[own].argsort(stable=True)]
        assert row == order[-3:].tolist()


def test_epochs_repeat(data: Data) -> None:
    def run(epoch: int) -> list[Any]:
        sampler = PGSampler(data, [4, 4], time_attr="time", seed=7)
        sampler.set_epoch(epoch)
        loader = NeighborLoader(
            data, [4, 4], neighbor_sampler=sampler, batch_size=40, shuffle=False
        )
        return [content(batch) for batch in loader]

    assert run(1) == run(1)
    assert run(1) != run(2)


@pytest.mark.parametrize("mode", [None, "binary", "triplet"])
@pytest.mark.parametrize("name", ["time", "edge_time"])
def test_links(data: Data, mode: str | None, name: str) -> None:
    # As PyG has it, links are later than their ends.
    links = data.edge_index[:, :400]
    bounds = torch.maximum(data.time[links[0]], data.time[links[1]])
    loader = LinkNeighborLoader(
        data,
        [4, 4],
        edge_label_index=links,
        edge_label_time=bounds,
        time_attr=name,
        neg_sampling=None if mode is None else NegativeSampling(mode, 1),
        batch_size=100,
        seed=5,
    )
    edges = 0
    for batch in loader:
        limits = bounds[batch.input_id][batch.batch]
        if mode != "triplet":
            assert int(batch.batch.max()) < 100 * (1 if mode is None else 2)
        limits = bounds[batch.input_id][batch.batch % 100]
        assert (times_of(batch, data, name) <= limits[batch.edge_index[1]]).all()
        if mode == "binary" and name == "time":
            ends = batch.edge_label_index[:, 100:]
            assert (data.time[batch.n_id[ends]] <= bounds[batch.input_id]).all()
        edges += batch.num_edges
    assert edges > 1000


@pytest.mark.parametrize("mode", ["binary", "triplet"])
@pytest.mark.parametrize("weighted", [False, True])
def test_law_of_negatives(data: Data, mode: str, weighted: bool) -> None:
    """Those that are there at the edge's time, alike or by weight; early edges have few of them."""
    weight = torch.arange(NODES) % 4 if weighted else torch.ones(NODES)
    given = {"dst_weight": weight.float()} if weighted else {}
    bounds = torch.tensor([5, 60, 99]).repeat(200)
    loader = LinkNeighborLoader(
        data,
        [],
        edge_label_index=data.edge_index[:, : len(bounds)],
        edge_label_time=bounds,
        time_attr="time",
        neg_sampling=NegativeSampling(mode, 10, **given),
        batch_size=60,
        seed=3,
    )
    counts = torch.zeros(100, NODES)
    for batch in loader:
        number, size = bounds[batch.input_id], len(batch.input_id)
        if mode == "triplet":
            drawn = batch.n_id[batch.dst_neg_index]
        else:
            drawn = batch.n_id[batch.edge_label_index[1, size:]].view(10, size).t()
        counts.index_put_(
            (number.repeat_interleave(10), drawn.flatten()), torch.ones(10 * size), accumulate=True
        )
    for bound in (5, 60, 99):
        share = torch.where(data.time <= bound, weight, 0).double()
        there = share > 0
        assert counts[bound][~there].sum() == 0
        mean = 2000 * share[there] / share.sum()
        free = int(there.sum()) - 1
        assert free > 5
        found = float(((counts[bound][there] - mean) ** 2 / mean).sum())
        # Five standard deviations above what a chi-square of so many degrees of freedom is.
        assert abs(found - free) < 5 * (2 * free) ** 0.5


def test_negatives_before_all_nodes(data: Data) -> None:
    """As in PyG it is the oldest node, where none is there."""
    edges = data.edge_index[:, :20]
    options = {"edge_label_time": torch.full((20,), -1), "time_attr": "time"}
    loader = LinkNeighborLoader(
        data, [2], edges, neg_sampling="triplet", batch_size=20, seed=1, **options
    )
    batch = next(iter(loader))
    assert batch.n_id[batch.dst_neg_index].unique().tolist() == [int(data.time.argmin())]
    sampler = PGSampler(data, [2], time_attr="time", seed=1)
    inputs = EdgeSamplerInput(None, *edges)
    with pytest.raises(ValueError, match="edge_label_time: expected times with neg_sampling"):
        sampler.sample_from_edges(inputs, neg_sampling=NegativeSampling("binary", 1))


def test_weights_of_either_end_and_of_now() -> None:
    """Both ends share the order of a type's nodes: sums of each one's weights, as they are."""
    nodes = NodesByTime(torch.arange(4))
    ends = torch.tensor([1.0, 0, 0, 0]), torch.tensor([0, 0, 1.0, 0])
    late = torch.full((50,), 3)
    for _ in range(2):
        for node, weight in zip((0, 2), ends, strict=True):
            assert set(nodes.draw(late, weight, torch.Generator()).tolist()) == {node}
    assert len(nodes._sums) == 2
    ends[0].copy_(torch.tensor([0, 1.0, 0, 0]))
    assert set(nodes.draw(late, ends[0], torch.Generator()).tolist()) == {1}
    for wrong in ([-1.0, 1, 1, 1], [0.0] * 4, [float("nan"), 1, 1, 1], [float("inf"), 1, 1, 1]):
        with pytest.raises(ValueError, match="neg_sampling: expected finite weights >= 0"):
            nodes.draw(late, torch.tensor(wrong), torch.Generator())


@pytest.mark.parametrize("name", ["time", "edge_time"])
def test_weights_among_those_that_are_there(data: Data, name: str) -> None:
    """Edges without weight are never drawn, nor later ones."""
    weighted = data.clone()
    weighted.w = (torch.arange(data.num_edges) % 3).float()
    bounds = torch.arange(NODES) % 100
    loader = NeighborLoader(
        weighted,
        [4, 4],
        input_nodes=torch.arange(NODES),
        input_time=bounds,
        time_attr=name,
        weight_attr="w",
        edge_weights="ht",
        batch_size=40,
        seed=7,
    )
    edges = 0
    for batch in loader:
        limits = batch.seed_time[batch.batch[batch.edge_index[1]]]
        assert (times_of(batch, data, name) <= limits).all()
        assert (weighted.w[batch.e_id] > 0).all()
        assert batch.edge_weights.shape == batch.e_id.shape
        assert batch.edge_weights.isfinite().all()
        # A node with fewer than four edges gives all that are there; of others some give a part.
        counts = torch.bincount(batch.edge_index[1], minlength=batch.num_nodes)
        fewer = counts[batch.edge_index[1]] < 4
        assert (batch.edge_weights[fewer] == 1).all()
        assert (batch.edge_weights[~fewer] >= 1).all()
        assert (batch.edge_weights[~fewer] > 1).any()
        edges += batch.num_edges
    assert edges > 500


@pytest.mark.parametrize("strategy", ["uniform", "last"])
@pytest.mark.parametrize("name", ["time", "edge_time"])
def test_backward_is_forward_along_reversed_edges(data: Data, name: str, strategy: str) -> None:
    turned = data.clone()
    turned.edge_index = data.edge_index.flip(0)
    options: Any = {"time_attr": name, "temporal_strategy": strategy, "seed": 6}
    back = PGSampler(data, [3, 2], sample_direction="backward", **options)
    forward = PGSampler(turned, [3, 2], **options)
    limits = torch.arange(40) + 30
    for sampler in (back, forward):
        sampler.set_epoch(0)
    inputs = NodeSamplerInput(None, torch.arange(40), limits)
    one, other = (sampler.sample_from_nodes(inputs) for sampler in (back, forward))
    assert torch.equal(one.node, other.node)
    assert torch.equal(one.edge, other.edge)
    assert torch.equal(one.row, other.col)
    assert torch.equal(one.col, other.row)
    # Along an edge to a target, which is the one that was reached.
    assert torch.equal(one.node[one.row], data.edge_index[0][one.edge])
    assert torch.equal(one.node[one.col], data.edge_index[1][one.edge])
    times = data.edge_time[one.edge] if name == "edge_time" else data.time[one.node[one.col]]
    assert (times <= limits[one.batch[one.row]]).all()
    assert len(times) > 100


def test_backward_around_links_by_time(data: Data) -> None:
    sampler = PGSampler(data, [3], time_attr="edge_time", sample_direction="backward", seed=1)
    loader = LinkNeighborLoader(
        data,
        [3],
        edge_label_index=data.edge_index[:, :100],
        edge_label_time=data.edge_time[:100],
        neighbor_sampler=sampler,
        time_attr="edge_time",
        batch_size=20,
    )
    seen = 0
    for batch in loader:
        limits = data.edge_time[:100][batch.input_id]
        of = batch.batch[batch.edge_index[0]] % len(limits)
        assert (data.edge_time[batch.e_id] <= limits[of]).all()
        seen += batch.num_edges
    assert seen > 100


def test_wrong_arguments(data: Data) -> None:
    with pytest.raises(ValueError, match="input_time"):
        NeighborLoader(data, [2], input_time=torch.arange(NODES))
    with pytest.raises(ValueError, match="temporal_strategy: expected 'uniform' or 'last'"):
        NeighborLoader(data, [2], time_attr="time", temporal_strategy="first")
    with pytest.raises(TypeError, match="time_attr: expected the name of an attribute, got int"):
        NeighborLoader(data, [2], time_attr=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="time_attr: expected the name of an attribute of nodes"):
        NeighborLoader(data, [2], time_attr="when")
    loader = NeighborLoader(data, [2], time_attr="edge_time", batch_size=10)
    with pytest.raises(ValueError, match="input_time: expected times with time_attr='edge_time'"):
        next(iter(loader))
    induced = NeighborLoader(data, [2], time_attr="time", subgraph_type="induced", batch_size=10)
    with pytest.raises(
        ValueError, match="subgraph_type: expected 'directional' or 'bidirectional'"
    ):
        next(iter(induced))
    never = torch.where(torch.arange(NODES) == 7, torch.nan, 1.0)
    halves = data.clone()
    halves.half = torch.rand(data.num_edges)
    with pytest.raises(ValueError, match=r"input_time\[7\]: expected a time, got nan"):
        NeighborLoader(halves, [2], input_time=never, time_attr="half")
    links = torch.arange(NODES).repeat(2, 1)
    with pytest.raises(ValueError, match=r"edge_label_time\[7\]: expected a time, got nan"):
        LinkNeighborLoader(halves, [2], links, edge_label_time=never, time_attr="half")
    sampler = PGSampler(data, [2], time_attr="time")
    with pytest.raises(AttributeError, match="time_attr: cannot be assigned"):
        sampler.time_attr = "edge_time"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["time", "edge_time"])
def test_times_in_stores(data: Data, name: str) -> None:
    features, graph = MyFeatureStore(), MyGraphStore()
    features.put_tensor(data[name], group_name=None, attr_name=name, index=None)
    features.put_tensor(torch.ones(NODES, 1), group_name=None, attr_name="x", index=None)
    graph.put_edge_index(data.edge_index, edge_type=None, layout="coo", size=(NODES, NODES))
    seeds = NodeSamplerInput(None, torch.arange(20), torch.arange(20) * 5)
    options: Any = {"time_attr": name, "seed": 1}
    one = PGSampler(data, [-1], **options).sample_from_nodes(seeds)
    other = PGSampler((features, graph), [-1], **options).sample_from_nodes(seeds)
    assert sorted(one.edge.tolist()) == sorted(other.edge.tolist())
    with pytest.raises(ValueError, match="time_attr: expected the name of one tensor"):
        PGSampler((features, graph), [3], time_attr="when")
    features.put_tensor(torch.ones(3), group_name=None, attr_name="when", index=None)
    with pytest.raises(ValueError, match="edata: expected a number for each of 3000 edges"):
        PGSampler((features, graph), [3], time_attr="when")


@pytest.mark.parametrize("bound", [40, torch.tensor(40), torch.arange(41).max(), np.int64(40)])
def test_one_bound_is_that_of_all_seeds(data: Data, bound: Any) -> None:
    about: dict[str, Any] = {"time_attr": "time", "batch_size": 50, "seed": 2}
    seeds = torch.arange(NODES)
    want = NeighborLoader(data, [5], seeds, input_time=torch.full((NODES,), 40), **about)
    got = NeighborLoader(data, [5], seeds, input_time=bound, **about)

    def epoch(loader: Any) -> list[Any]:
        torch.manual_seed(4)
        return [(batch.e_id.tolist(), batch.n_id.tolist()) for batch in loader]

    assert epoch(got) == epoch(want)
    links = data.edge_index[:, :80]
    want = LinkNeighborLoader(
        data, [5], edge_label_index=links, edge_label_time=torch.full((80,), 40), **about
    )
    got = LinkNeighborLoader(data, [5], edge_label_index=links, edge_label_time=bound, **about)
    assert epoch(got) == epoch(want)


@pytest.mark.parametrize(
    "bound", ["2024-03-01", date(2024, 3, 1), np.array(["2024-03-01"] * NODES, "datetime64[D]")]
)
def test_dates_beside_tensors_of_times_are_refused(data: Data, bound: Any) -> None:
    text = "expected numbers, in the unit of the data's times, got datetime64.*has seconds since"
    with pytest.raises(TypeError, match=f"^input_time: {text}"):
        NeighborLoader(data, [5], torch.arange(NODES), input_time=bound, time_attr="time")
    with pytest.raises(TypeError, match=f"^edge_label_time: {text}"):
        LinkNeighborLoader(
            data,
            [5],
            edge_label_index=data.edge_index[:, :NODES],
            edge_label_time=bound,
            time_attr="time",
        )
