"""Temporal sampling of a HeteroData by PyG's loaders: nothing is later than its seed."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch_geometric.data import HeteroData
from torch_geometric.sampler import EdgeSamplerInput, NodeSamplerInput
from torch_geometric.testing import MyFeatureStore, MyGraphStore

from pygsampler.pyg import GraphStore, LinkNeighborLoader, NeighborLoader, PGSampler

NODES = {"author": 40, "paper": 70, "place": 5}
CITES, WRITES, IN = (
    ("paper", "cites", "paper"),
    ("author", "writes", "paper"),
    ("place", "of", "paper"),
)
WRITTEN = ("paper", "by", "author")
COUNTS = {CITES: 600, WRITES: 300, IN: 150, WRITTEN: 200}


@pytest.fixture(scope="module", params=["time", "when"])
def data(request: Any) -> HeteroData:
    """With ``time`` of authors and papers, or ``when`` of all edges but those to authors."""
    random, data = torch.Generator().manual_seed(4), HeteroData()
    for kind, count in NODES.items():
        data[kind].num_nodes = count
        if request.param == "time" and kind != "place":
            data[kind].time = torch.randint(0, 100, (count,), generator=random)
    for kind, count in COUNTS.items():
        ends = [torch.randint(0, NODES[kind[end]], (count,), generator=random) for end in (0, 2)]
        data[kind].edge_index = torch.stack(ends)
        if request.param == "when" and kind != WRITTEN:
            data[kind].when = torch.randint(0, 100, (count,), generator=random)
    data.name = request.param
    return data


def check(batch: HeteroData, data: HeteroData, limits: torch.Tensor) -> int:
    """No edge, or node that it leads from, is later than its tree's; how many have times."""
    timed = 0
    for kind in COUNTS:
        (row, col), own = batch[kind].edge_index, data[kind].edge_index
        e_id = batch[kind].e_id
        assert torch.equal(batch[kind[0]].n_id[row], own[0][e_id])
        assert torch.equal(batch[kind[2]].n_id[col], own[1][e_id])
        assert torch.equal(batch[kind[0]].batch[row], batch[kind[2]].batch[col])
        if data.name == "when" and kind != WRITTEN:
            times = data[kind].when[e_id]
        elif data.name == "time" and kind[0] != "place":
            times = data[kind[0]].time[own[0][e_id]]
        else:
            continue
        assert (times <= limits[batch[kind[2]].batch[col]]).all()
        timed += len(times)
    return timed


@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_no_edge_is_later_than_its_seed(data: HeteroData, strategy: str) -> None:
    bounds = torch.arange(NODES["paper"]) + 20
    loader = NeighborLoader(
        data,
        {kind: [4, 3] for kind in COUNTS},
        "paper",
        input_time=bounds,
        time_attr=data.name,
        temporal_strategy=strategy,
        batch_size=16,
        seed=1,
    )
    timed = 0
    for batch in loader:
        seeds = batch["paper"]
        assert torch.equal(seeds.seed_time, bounds[seeds.input_id])
        assert torch.equal(seeds.batch[: seeds.batch_size], torch.arange(seeds.batch_size))
        timed += check(batch, data, seeds.seed_time)
    assert timed > 1000


def test_last_are_the_latest(data: HeteroData) -> None:
    sampler = PGSampler(data, [2], time_attr=data.name, temporal_strategy="last", seed=1)
    papers = torch.arange(NODES["paper"])
    time = torch.full((len(papers),), 60)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, papers, time, "paper"))
    assert (sampler.time_attr, sampler.temporal_strategy, sampler.disjoint) == (
        data.name,
        "last",
        True,
    )
    src, dst = data[CITES].edge_index
    times = data[CITES].when if data.name == "when" else data["paper"].time[src]
    for v in papers.tolist():
        there = ((dst == v) & (times <= 60)).nonzero().view(-1)
        there = there[times[there].argsort(stable=True)]
        assert out.edge[CITES][out.col[CITES] == v].tolist() == there[-2:].tolist()


@pytest.mark.parametrize("mode", [None, "binary", "triplet"])
@pytest.mark.parametrize("kind", [CITES, WRITES])
def test_links_with_times(data: HeteroData, kind: Any, mode: str | None) -> None:
    links = data[kind].edge_index[:, :60]
    bounds = torch.tensor([10, 30, 99]).repeat(20)
    loader = LinkNeighborLoader(
        data,
        [3, 2],
        edge_label_index=(kind, links),
        edge_label_time=bounds,
        time_attr=data.name,
        neg_sampling=mode,
        batch_size=20,
        seed=2,
    )
    for batch in loader:
        number = batch[kind].input_id
        if mode == "triplet":
            limits = batch[kind[0]].seed_time
            assert torch.equal(limits, bounds[number])
        else:
            assert torch.equal(batch[kind].edge_label_time[: len(number)], bounds[number])
            limits = bounds[number]
        assert check(batch, data, limits) > 0
        if mode is None or data.name == "when":
            continue
        if mode == "triplet":
            drawn = {kind[2]: batch[kind[2]].dst_neg_index}
        else:
            ends = batch[kind].edge_label_index[:, len(number) :]
            drawn = {kind[0]: ends[0], kind[2]: ends[1]}
        for of, rows in drawn.items():
            assert (data[of].time[batch[of].n_id[rows]] <= bounds[number]).all()


def test_seeds_have_the_times_of_their_nodes(data: HeteroData) -> None:
    sampler = PGSampler(data, [-1], time_attr=data.name, seed=1)
    papers = torch.arange(NODES["paper"])
    inputs = NodeSamplerInput(None, papers, None, "paper")
    if data.name == "when":
        with pytest.raises(ValueError, match="input_time: expected times, since nodes of 'paper'"):
            sampler.sample_from_nodes(inputs)
        return
    out = sampler.sample_from_nodes(inputs)
    src, dst = data[CITES].edge_index
    there = (data["paper"].time[src] <= data["paper"].time[dst]).nonzero().view(-1)
    assert sorted(out.edge[CITES].tolist()) == there.tolist()
    # Places have no times.
    assert len(out.edge[IN]) == COUNTS[IN]
    ids = torch.tensor([0, 1])
    places = EdgeSamplerInput(None, ids, ids, input_type=IN)
    with pytest.raises(ValueError, match="edge_label_time: expected times, since nodes of 'place'"):
        sampler.sample_from_edges(places)


def test_times_in_stores(data: HeteroData) -> None:
    features, graph = MyFeatureStore(), MyGraphStore()
    for kind, count in NODES.items():
        features.put_tensor(torch.ones(count, 1), group_name=kind, attr_name="x", index=None)
        if "time" in data[kind]:
            features.put_tensor(data[kind].time, group_name=kind, attr_name="time", index=None)
    for kind in COUNTS:
        size = NODES[kind[0]], NODES[kind[2]]
        graph.put_edge_index(data[kind].edge_index, edge_type=kind, layout="coo", size=size)
        if "when" in data[kind]:
            features.put_tensor(data[kind].when, group_name=kind, attr_name="when", index=None)
    options: Any = {"time_attr": data.name, "seed": 3}
    sampler = PGSampler(data, [3, 3], **options)
    own = GraphStore(sampler.graph)
    seeds = NodeSamplerInput(None, torch.arange(9), torch.arange(9) * 10, "paper")
    one = sampler.sample_from_nodes(seeds)
    other = PGSampler((features, own), [3, 3], **options).sample_from_nodes(seeds)
    for kind in NODES:
        assert torch.equal(one.batch[kind], other.batch[kind])
        assert torch.equal(one.node[kind], other.node[kind])
    # PyG's stores have the edges of a row in another order.
    one = PGSampler(data, [-1], **options).sample_from_nodes(seeds)
    other = PGSampler((features, graph), [-1], **options).sample_from_nodes(seeds)
    for edge_type in COUNTS:
        assert sorted(one.edge[edge_type].tolist()) == sorted(other.edge[edge_type].tolist())
    with pytest.raises(ValueError, match="time_attr: expected the name of tensors of the Feature"):
        PGSampler((features, graph), [3], time_attr="x y")
    name, kind = data.name, "place" if data.name == "when" else WRITTEN
    count = NODES.get(kind) or COUNTS[WRITTEN]
    features.put_tensor(torch.ones(count), group_name=kind, attr_name=name, index=None)
    with pytest.raises(ValueError, match=rf"time_attr: .*got {name!r}, which is that of both"):
        PGSampler((features, graph), [3], time_attr=name)


def test_one_type_is_a_data_without_types() -> None:
    plain, typed = random_data(), HeteroData()
    plain.time = torch.arange(100) * 7 % 50
    typed["v"].num_nodes, typed["v"].time = 100, plain.time
    typed["v", "to", "v"].edge_index = plain.edge_index
    options: Any = {"time_attr": "time", "temporal_strategy": "last", "seed": 5}
    ids = torch.arange(20)
    one = PGSampler(plain, [3, 3], **options).sample_from_nodes(NodeSamplerInput(None, ids, ids))
    other = PGSampler(typed, [3, 3], **options).sample_from_nodes(
        NodeSamplerInput(None, ids, ids, "v")
    )
    assert torch.equal(one.node, other.node["v"])
    assert torch.equal(one.edge, other.edge["v", "to", "v"])
    assert torch.equal(one.batch, other.batch["v"])


@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_backward_to_nothing_later(data: HeteroData, strategy: str) -> None:
    sampler = PGSampler(
        data,
        [4, 3],
        time_attr=data.name,
        temporal_strategy=strategy,
        sample_direction="backward",
        seed=2,
    )
    limits = torch.arange(NODES["paper"]) + 20
    out = sampler.sample_from_nodes(
        NodeSamplerInput(None, torch.arange(NODES["paper"]), limits, "paper")
    )
    timed = 0
    for kind, edge in out.edge.items():
        own = data[kind].edge_index
        assert torch.equal(out.node[kind[0]][out.row[kind]], own[0][edge])
        assert torch.equal(out.node[kind[2]][out.col[kind]], own[1][edge])
        if data.name == "when" and kind != WRITTEN:
            times = data[kind].when[edge]
        elif data.name == "time":
            times = data[kind[2]].time[own[1][edge]]
        else:
            continue
        assert (times <= limits[out.batch[kind[0]][out.row[kind]]]).all()
        timed += len(times)
    assert timed > 100


def test_mistakes(data: HeteroData) -> None:
    seeds = NodeSamplerInput(None, torch.arange(3), torch.arange(3), "paper")
    for options, error, text in (
        ({"subgraph_type": "induced"}, ValueError, "subgraph_type: .*'induced', whose edges"),
        ({"weight_attr": "w"}, ValueError, "weight_attr: expected the name of an attribute"),
        ({"temporal_strategy": "first"}, ValueError, "strategy"),
        ({"time_attr": 3}, TypeError, "time_attr: expected the name of an attribute, got int 3"),
    ):
        with pytest.raises(error, match=text):
            PGSampler(data, [3], **{"time_attr": data.name, **options}).sample_from_nodes(seeds)
    both = copy.copy(data)
    both["paper"].twice, both[CITES].twice = torch.zeros(NODES["paper"]), torch.zeros(COUNTS[CITES])
    with pytest.raises(ValueError, match=r"time_attr: .*got 'twice', which is that of both"):
        PGSampler(both, [3], time_attr="twice")
