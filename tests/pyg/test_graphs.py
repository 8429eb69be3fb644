"""What PGSampler takes as a graph, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pyg_reference import EDGES, NODES, content, random_data
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import EdgeSamplerInput, NodeSamplerInput, NumNeighbors
from torch_geometric.sampler.base import SubgraphType
from torch_geometric.testing import MyFeatureStore, MyGraphStore

import pygsampler as pgs
from pygsampler.pyg import LinkNeighborLoader, NeighborLoader, PGSampler, Sampler


def batch_of(data: Any, graph: Any = None, **options: Any) -> Any:
    """A batch of a sampler of ``graph``, which is to be the graph of ``data``."""
    sampler = PGSampler(data if graph is None else graph, [3, -1], seed=2, **options)
    sampler.set_epoch(0)
    return content(NeighborLoader(data, [3, -1], neighbor_sampler=sampler)([4, 0, 31]))


def in_order(data: Any) -> Any:
    """``data`` with its edges in the order of their targets."""
    order = data.edge_index[1].argsort(stable=True)
    data.edge_index, data.edge_attr = data.edge_index[:, order], data.edge_attr[order]
    return data


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_every_form_of_the_edges() -> None:
    data = in_order(random_data())
    src, dst = data.edge_index
    indptr = torch.searchsorted(dst, torch.arange(NODES + 1))
    expected = batch_of(data)
    assert batch_of(data, is_sorted=True) == expected
    assert batch_of(data, pgs.Graph.from_csc(indptr, src)) == expected
    assert batch_of(data, pgs.Graph.from_pyg(data)) == expected
    adjacency = torch.sparse_csr_tensor(
        indptr, src, torch.ones(EDGES), (NODES, NODES), check_invariants=False
    )
    assert batch_of(data, Data(adj_t=adjacency, num_nodes=NODES)) == expected
    typed = EdgeIndex(data.edge_index, sparse_size=(NODES, NODES), sort_order="col")
    assert batch_of(data, Data(edge_index=typed, num_nodes=NODES)) == expected
    # Data is both stores too; PyG puts the edges of a row into an order of its own there.
    graph = PGSampler((data, data), [3]).graph
    assert graph.num_edges == EDGES
    assert 0 < graph.num_nodes <= NODES


@pytest.mark.parametrize("layout", ["coo", "csc", "csr"])
def test_stores(layout: str) -> None:
    """A batch of (FeatureStore, GraphStore), with the edge ids that the layouts have."""
    data = in_order(random_data())
    src, dst = data.edge_index
    edges: Any = (src, dst)
    by_source = src.argsort(stable=True)
    if layout == "csr":
        edges = (torch.searchsorted(src[by_source], torch.arange(NODES + 1)), dst[by_source])
    if layout == "csc":
        edges = (src, torch.searchsorted(dst, torch.arange(NODES + 1)))
    features, graph = MyFeatureStore(), MyGraphStore()
    features.put_tensor(data.x, group_name=None, attr_name="x", index=None)
    graph.put_edge_index(edges, edge_type=None, layout=layout, size=(NODES, NODES))
    loader = NeighborLoader((features, graph), [3, 2], torch.arange(NODES), batch_size=40)
    for batch in loader:
        assert batch.x.equal(data.x[batch.n_id])
        ids = by_source[batch.e_id] if layout == "csr" else batch.e_id
        assert batch.n_id[batch.edge_index].equal(data.edge_index[:, ids])


def typed_store() -> Any:
    store = MyGraphStore()
    edges = torch.zeros(2, 0).long()
    store.put_edge_index(tuple(edges), edge_type=("a", "to", "b"), layout="coo", size=(2, 2))
    return MyFeatureStore(), store


@pytest.mark.parametrize("subgraph_type", ["directional", "induced"])
def test_a_graph_of_a_file(subgraph_type: str, tmp_path: Path) -> None:
    """Data has the features alone; the batches have edges."""
    data = random_data()
    graph = pgs.Graph.from_pyg(data)
    graph.save(tmp_path / "graph")
    features = Data(x=data.x, y=data.y)
    drawn = []
    for source in (graph, pgs.Graph.open(tmp_path / "graph")):
        sampler = PGSampler(source, [3, 2], seed=1, subgraph_type=subgraph_type)
        sampler.set_epoch(0)
        loader = NeighborLoader(features, [3, 2], neighbor_sampler=sampler, batch_size=50)
        for batch in loader:
            assert batch.x.equal(data.x[batch.n_id])
            assert batch.n_id[batch.edge_index].equal(data.edge_index[:, batch.e_id])
        drawn.append([content(batch) for batch in loader])
    assert drawn[0] == drawn[1]
    assert "edge_index" not in features


def test_data_may_change_afterwards() -> None:
    data = random_data()
    sampler = PGSampler(data, [3], seed=0)
    sampler.set_epoch(0)
    inputs = NodeSamplerInput(None, torch.arange(10))
    before = content(sampler.sample_from_nodes(inputs))
    data.edge_index.fill_(0)
    assert content(sampler.sample_from_nodes(inputs)) == before


@pytest.mark.parametrize(
    ("error", "text", "options"),
    [
        (ValueError, "time_attr: .* of data, got 'time'", {"time_attr": "time"}),
        (ValueError, "weight_attr: .* of data .'edge_attr'.*, got 'w'", {"weight_attr": "w"}),
        (TypeError, "weight_attr: expected the name of .*, got int 1", {"weight_attr": 1}),
        (ValueError, "temporal_strategy: .*'first'", {"temporal_strategy": "first"}),
        (
            NotImplementedError,
            r"num_neighbors: .* a dict .*data\.to_homogeneous\(\)",
            {"num_neighbors": {("a", "b", "c"): [1]}},
        ),
        (
            NotImplementedError,
            "num_neighbors",
            {"num_neighbors": NumNeighbors({("a", "b", "c"): [1]})},
        ),
        (TypeError, "num_neighbors: expected a list of int", {"num_neighbors": 5}),
        (TypeError, "num_neighbors: expected a list of int", {"num_neighbors": torch.tensor(5)}),
        (TypeError, r"num_neighbors\[1\]: expected an integer", {"num_neighbors": [5, 2.5]}),
        (
            TypeError,
            r"num_neighbors\[0\]: expected an integer",
            {"num_neighbors": torch.ones(2)},
        ),
        (ValueError, r"num_neighbors\[0\]: .* got -2", {"num_neighbors": [-2, 1]}),
        (ValueError, "num_neighbors: expected at most 256", {"num_neighbors": [1] * 257}),
        (TypeError, "replace: expected True or False, got int 2", {"replace": 2}),
        (TypeError, "disjoint: expected True or False", {"disjoint": "no"}),
        (ValueError, "subgraph_type: .* str 'upside'", {"subgraph_type": "upside"}),
        (ValueError, "is_sorted: expected edge_index ordered", {"is_sorted": True}),
        (ValueError, "seed: expected", {"seed": 1 << 64}),
        (ValueError, "device", {"device": "tpu"}),
    ],
)
@pytest.mark.parametrize("make", [PGSampler, NeighborLoader, LinkNeighborLoader])
def test_refused_options(make: Any, error: Any, text: str, options: dict[str, Any]) -> None:
    arguments = {"num_neighbors": [2], **options}
    # PyG itself wants times in pairs, but what is wrong comes first.
    with pytest.raises(error, match=text):
        make(random_data(), **arguments)


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (NeighborLoader, {"input_time": torch.arange(NODES)}),
        (LinkNeighborLoader, {"edge_label_time": torch.arange(EDGES)}),
    ],
)
def test_options_that_only_one_has(make: Any, options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        make(random_data(), [2], **options)


@pytest.mark.parametrize(
    ("data", "error", "text"),
    [
        (HeteroData(), ValueError, "data: .* with types of nodes, got one without"),
        (5, TypeError, "data: expected a torch_geometric.data.Data, got int 5"),
        ((1, 2), TypeError, r"data: expected a Data, a Graph or \(FeatureStore, GraphStore\)"),
        ((MyFeatureStore(), MyGraphStore()), ValueError, "data: .* with edges, got an empty one"),
        (Data(num_nodes=3, edge_index=torch.zeros(3, 2).long()), ValueError, r"shape \(2, E\)"),
        (
            Data(num_nodes=3, edge_index=torch.zeros(2, 2)),
            TypeError,
            r"data.edge_index: expected int32 or int64 ids, got torch\.float32",
        ),
    ],
)
def test_refused_graphs(data: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        PGSampler(data, [2])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (HeteroData(), "data: .* HeteroData; .*to_homogeneous"),
        (typed_store(), "data: .* without edge types.*to_homogeneous"),
    ],
)
def test_sampler_refuses_heterogeneous_data(data: Any, text: str) -> None:
    with pytest.raises(NotImplementedError, match=text):
        Sampler(data, pgs.PGSampler([2]))


@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize(
    ("edges", "text"),
    [
        ([[0, 0], [1, 3]], r"data.edge_index\[1\]\[1\]: expected a node in \[0, 3\), got 3"),
        ([[0, 0], [-1, 1]], r"data.edge_index\[1\]\[0\]: .* got -1"),
        ([[0, 7], [1, 1]], r"data.edge_index\[0\]\[1\]: .* got 7"),
    ],
)
def test_an_end_that_is_no_vertex(edges: Any, text: str, is_sorted: bool) -> None:
    with pytest.raises(IndexError, match=text):
        PGSampler(Data(num_nodes=3, edge_index=torch.tensor(edges)), [2], is_sorted=is_sorted)


def test_refused_inputs() -> None:
    sampler, ids = PGSampler(random_data(), [2]), torch.arange(4)
    with pytest.raises(ValueError, match="input_time: expected None"):
        sampler.sample_from_nodes(NodeSamplerInput(None, ids, time=ids))
    with pytest.raises(NotImplementedError, match=r"input_type: .*to_homogeneous"):
        sampler.sample_from_nodes(NodeSamplerInput(None, ids, input_type="paper"))
    with pytest.raises(ValueError, match="edge_label_time: expected None"):
        sampler.sample_from_edges(EdgeSamplerInput(None, ids, ids, time=ids))
    with pytest.raises(TypeError, match=r"input_nodes: .* int64 ids, got torch\.float32"):
        sampler.sample_from_nodes(NodeSamplerInput(None, ids.float()))
    with pytest.raises(TypeError, match=r"edge_label_index: .* int64 ids, got torch\.float32"):
        sampler.sample_from_edges(EdgeSamplerInput(None, ids, ids.float()))
    with pytest.raises(TypeError, match=r"no more arguments, got \['depth'\]"):
        sampler.sample_from_nodes(NodeSamplerInput(None, ids), depth=2)
    with pytest.raises(IndexError, match="100"):
        sampler.sample_from_nodes(NodeSamplerInput(None, ids + 97))
    with pytest.raises(ValueError, match="epoch"):
        sampler.set_epoch(1 << 24)


@pytest.mark.parametrize("make", [NeighborLoader, LinkNeighborLoader])
def test_a_sampler_has_its_own_options(make: Any) -> None:
    data = random_data()
    sampler = PGSampler(data, [2], seed=1)
    for name, value in (("seed", 2), ("device", "cpu")):
        with pytest.raises(ValueError, match=f"{name}: expected None with neighbor_sampler"):
            make(data, [2], neighbor_sampler=sampler, **{name: value})
    with pytest.raises(TypeError, match=r"data: expected a Data .* got Graph"):
        make(sampler.graph, [2])


def test_directed_is_pygs_old_word() -> None:
    with pytest.warns(UserWarning, match="subgraph_type='induced'"):
        loader = NeighborLoader(random_data(), [2], directed=False)
    assert loader.node_sampler.subgraph_type == SubgraphType.induced
