"""weight_attr of our loaders and sampler for PyG."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from pyg_reference import EDGES, NODES, check_edges, content, random_data
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import NodeSamplerInput
from torch_geometric.transforms import ToSparseTensor
from torch_geometric.utils import coalesce
from weighted_graphs import LEVEL, edges_of, p_of_draws, p_of_sets

import pygsampler as pgs
from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler, Sampler

pytestmark = [
    # Torch's words on making a sparse matrix, which PyG does.
    pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta"),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
SEEDS = torch.arange(60)


def weighted(dtype: torch.dtype = torch.int64) -> Any:
    """A third of the edges has weight 0, and those into nodes 0 and 1 all."""
    data = random_data(dtype=dtype)
    random = torch.Generator().manual_seed(1)
    kept = (torch.rand(EDGES, generator=random) > 0.3) & (data.edge_index[1] > 1)
    data.w = torch.rand(EDGES, generator=random) * kept
    return data


def in_degrees(data: Any, batch: Any) -> list[int]:
    """Of the seeds, in the batch."""
    return torch.bincount(batch.edge_index[1], minlength=batch.batch_size)[
        : batch.batch_size
    ].tolist()


CASES: list[dict[str, Any]] = [
    {},
    {"replace": True},
    {"disjoint": True},
    {"subgraph_type": "bidirectional"},
    {"subgraph_type": "induced"},
    {"subgraph_type": "induced", "disjoint": True},
]


@pytest.mark.parametrize("options", CASES, ids=str)
@pytest.mark.parametrize(
    ("make", "dtype"),
    [
        (NeighborLoader, torch.int64),
        (NeighborLoader, torch.int32),
        (LinkNeighborLoader, torch.int64),
    ],
)
def test_edges_of_positive_weight(make: Any, options: Any, dtype: torch.dtype) -> None:
    data, both = weighted(dtype), options.get("subgraph_type") == "bidirectional"
    more = {"input_nodes": SEEDS} if make is NeighborLoader else {"neg_sampling": "binary"}
    loader = make(data, [4, -1, 3], batch_size=30, weight_attr="w", **more, **options)
    seen = 0
    for batch in loader:
        check_edges(data, batch, both_ways=both)
        assert (batch.w > 0).all() and batch.w.equal(data.w[batch.e_id])
        seen += len(batch.e_id)
    assert seen


@pytest.mark.parametrize("replace", [False, True])
def test_as_many_as_there_are(replace: bool) -> None:
    data = weighted()
    degrees = torch.bincount(data.edge_index[1][data.w > 0], minlength=NODES)
    for count in (3, -1, EDGES):
        if replace and count == EDGES:
            continue
        loader = NeighborLoader(
            data, [count], SEEDS, batch_size=60, weight_attr="w", replace=replace
        )
        (batch,) = loader
        expected = degrees[:60]
        if count > 0:
            expected = count * (expected > 0) if replace else expected.clamp(max=count)
        assert in_degrees(data, batch) == expected.tolist()


def test_induced_is_of_the_edges_that_are_left() -> None:
    data = weighted()
    sampler = PGSampler(data, [3, 3], subgraph_type="induced", weight_attr="w")
    out = sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS))
    inside = torch.isin(data.edge_index, out.node).all(0) & (data.w > 0)
    assert out.edge.sort()[0].tolist() == inside.nonzero().squeeze(1).tolist()


def of_rows(weights: list[float], rows: int) -> Any:
    src, dst = edges_of(rows, len(weights))
    edge_index = torch.from_numpy(np.stack([src, dst]))
    return Data(edge_index=edge_index, num_nodes=rows, w=torch.tensor(weights).repeat(rows))


def test_laws() -> None:
    rows = 10000
    inputs = NodeSamplerInput(None, torch.arange(rows))
    for weights, count in (([1.0, 2, 3], 2), ([1.0, 1, 2, 4], 3), ([2.0, 0, 1, 0, 1], 2)):
        for disjoint in (False, True):
            sampler = PGSampler(
                of_rows(weights, rows), [count], weight_attr="w", seed=7, disjoint=disjoint
            )
            edge = sampler.sample_from_nodes(inputs).edge
            assert p_of_sets(edge.numpy(), weights, count) > LEVEL
    weights = [0.0, 1, 2, 3, 0]
    data = of_rows(weights, rows)
    sampler = PGSampler(data, [3], weight_attr="w", seed=7, replace=True)
    edge = sampler.sample_from_nodes(inputs).edge
    assert len(edge) == 3 * rows
    assert p_of_draws(edge.numpy(), weights) > LEVEL


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float64])
def test_dtypes_and_columns(dtype: torch.dtype) -> None:
    data = weighted()
    exact = (data.w * 5).ceil()
    found = []
    for values in (exact if dtype != torch.bool else (exact > 0).float(), exact.to(dtype)):
        for shape in ((-1,), (-1, 1)):
            data.w = values.reshape(shape)
            sampler = PGSampler(data, [3, 3], weight_attr="w", seed=1)
            sampler.set_epoch(0)
            found.append(content(sampler.sample_from_nodes(NodeSamplerInput(None, SEEDS))))
    assert all(each == found[0] for each in found)


# ---- what a graph may be ---------------------------------------------------------------------


@pytest.mark.parametrize("layout", [None, torch.sparse_csr, torch.sparse_coo])
def test_adj_t(layout: Any) -> None:
    """Its values, or an attribute in its order, draw what the same weights of edges draw."""
    random = random_data()
    edge_index = coalesce(random.edge_index, sort_by_row=False)
    count = edge_index.shape[1]
    weights = torch.rand(count) * (torch.arange(count) % 3 > 0)
    data = Data(x=random.x, edge_index=edge_index, edge_weight=weights)
    matrix = ToSparseTensor(layout=layout)(data.clone())
    matrix.w = weights
    batches = []
    for each, name in ((data, "edge_weight"), (matrix, "edge_weight"), (matrix, "w")):
        loader = NeighborLoader(each, [4, 3], SEEDS, batch_size=30, weight_attr=name, seed=3)
        loader.set_epoch(0)
        batches.append([(b.n_id.tolist(), b.e_id.tolist()) for b in loader])
        for batch in loader:
            assert (batch.edge_weight > 0).all()
    assert batches[0] == batches[1] == batches[2]


def test_sorted_edges() -> None:
    data = weighted()
    order = data.edge_index[1].sort(stable=True)[1]
    ordered = Data(x=data.x, edge_index=data.edge_index[:, order].contiguous(), w=data.w[order])
    one = PGSampler(data, [3, 3], weight_attr="w", seed=1)
    other = PGSampler(ordered, [3, 3], weight_attr="w", seed=1, is_sorted=True)
    for each in (one, other):
        each.set_epoch(0)
    found, again = (each.sample_from_nodes(NodeSamplerInput(None, SEEDS)) for each in (one, other))
    assert found.node.equal(again.node)
    assert found.edge.equal(order[again.edge])


def test_backward() -> None:
    data = weighted()
    turned = data.clone()
    turned.edge_index = data.edge_index.flip(0)
    one = PGSampler(data, [3, 3], weight_attr="w", seed=1, sample_direction="backward")
    other = PGSampler(turned, [3, 3], weight_attr="w", seed=1)
    graph = pgs.Graph.from_pyg(data)
    third = PGSampler(graph, [3, 3], weight_attr="w", seed=1, sample_direction="backward")
    edges = []
    for each in (one, other, third):
        each.set_epoch(0)
        edges.append(each.sample_from_nodes(NodeSamplerInput(None, SEEDS)).edge)
        assert len(edges[-1]) and (data.w[edges[-1]] > 0).all()
    assert edges[0].equal(edges[1])
    # A graph has its edges in another order.
    everything = NodeSamplerInput(None, torch.arange(NODES))
    third.num_neighbors = [-1]
    found = third.sample_from_nodes(everything).edge
    assert found.sort()[0].equal((data.w > 0).nonzero().squeeze(1))


def test_graphs_and_samplers_of_the_core() -> None:
    data = weighted()
    graph = pgs.Graph.from_pyg(data)
    inner = pgs.PGSampler([3, 4], frontier="new", prob="w", seed=2)
    samplers = [
        PGSampler(data, [4, 3], weight_attr="w", seed=2),
        PGSampler(graph, [4, 3], weight_attr="w", seed=2),
        Sampler(data, inner),
        Sampler(graph, inner),
    ]
    found = []
    for each in samplers:
        each.set_epoch(0)
        found.append(content(each.sample_from_nodes(NodeSamplerInput(None, SEEDS))))
    assert all(each == found[0] for each in found)
    masked = Sampler(data, pgs.PGSampler([-1], frontier="new", mask="w"))
    edge = masked.sample_from_nodes(NodeSamplerInput(None, torch.arange(NODES))).edge
    assert edge.sort()[0].equal((data.w > 0).nonzero().squeeze(1))


def test_later_changes_of_the_data_do_not_reach_it() -> None:
    data = weighted()
    sampler = PGSampler(data, [3, 3], weight_attr="w", seed=1)
    sampler.set_epoch(0)
    inputs = NodeSamplerInput(None, SEEDS)
    before = content(sampler.sample_from_nodes(inputs))
    data.w.fill_(0)
    assert content(sampler.sample_from_nodes(inputs)) == before
    assert content(pickle.loads(pickle.dumps(sampler)).sample_from_nodes(inputs)) == before


def test_weight_attr_may_be_assigned() -> None:
    data, inputs = weighted(), NodeSamplerInput(None, SEEDS)
    sampler, uniform = (
        PGSampler(data, [3, 3], weight_attr="w", seed=1),
        PGSampler(data, [3, 3], seed=1),
    )
    assert "weight_attr='w'" in repr(sampler)
    for each in (sampler, uniform):
        each.set_epoch(0)
    before = content(sampler.sample_from_nodes(inputs))
    sampler.weight_attr = None
    assert repr(sampler) == repr(uniform)
    assert content(sampler.sample_from_nodes(inputs)) == content(uniform.sample_from_nodes(inputs))
    with pytest.raises(ValueError, match=r"created with \('w'\), got str 'edge_attr'"):
        sampler.weight_attr = "edge_attr"
    sampler.weight_attr = "w"
    sampler.num_neighbors = [3, 3]
    assert content(sampler.sample_from_nodes(inputs)) == before


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers(context: str) -> None:
    data = weighted()
    sampler = PGSampler(data, [3, 3], weight_attr="w", seed=2)
    sampler.set_epoch(3)

    def batches(**options: Any) -> list[Any]:
        return list(map(content, NodeLoader(data, sampler, SEEDS, batch_size=20, **options)))

    expected = batches()
    assert batches(num_workers=1, multiprocessing_context=context) == expected


# ---- what is refused -------------------------------------------------------------------------


@pytest.mark.parametrize("value", [-0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("make", [NeighborLoader, LinkNeighborLoader, PGSampler])
def test_weights_that_are_none(make: Any, value: float) -> None:
    data = weighted()
    data.w[17] = value
    with pytest.raises(ValueError, match=r"\['w'\]\[17\]: expected a finite weight >= 0, got"):
        make(data, [3], weight_attr="w")


def test_attributes() -> None:
    data = weighted()
    data.two, data.text, data.half = torch.ones(EDGES, 2), "text", data.w.half()
    data.short = data.w[:-1]
    for name, error, text in (
        ("no", ValueError, r"weight_attr: expected the name of .* of data .*'w'.*, got 'no'"),
        ("two", ValueError, r"weight_attr: expected one value for each of 500 edges in data.two"),
        ("short", ValueError, r"weight_attr: expected one value for each .* shape \(499,\)"),
        ("text", TypeError, r"weight_attr: expected a tensor in data.text, got str 'text'"),
        ("half", TypeError, r"\['half'\]: expected bool, integers, float32 .* got float16"),
    ):
        with pytest.raises(error, match=text):
            PGSampler(data, [3], weight_attr=name)
    with pytest.raises(ValueError, match=r"weight_attr: .* edge array of the graph .*'w'.* 'no'"):
        PGSampler(pgs.Graph.from_pyg(weighted()), [3], weight_attr="no")
    with pytest.raises(ValueError, match=r"^prob: expected the name of an attribute"):
        Sampler(data, pgs.PGSampler([3], frontier="new", prob="no"))
    with pytest.raises(NotImplementedError, match=r"weight_attr: expected None with .Feature"):
        PGSampler((data, data), [3], weight_attr="w")
