"""Features beside data: ``NeighborLoader(features=, edge_features=)``, and stores of features."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from pyg_reference import EDGES, NODES, content, random_data
from torch_geometric.data import Data, TensorAttr
from torch_geometric.loader import LinkLoader, NodeLoader
from torch_geometric.sampler import SamplerOutput

import pygsampler as pgs
from pygsampler.pyg import (
    FeatureStore,
    GraphStore,
    LinkNeighborLoader,
    NeighborLoader,
    PGSampler,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)
SEEDS = torch.cat([torch.arange(60), torch.tensor([7, 7, 3])])
X = torch.randn(NODES, 3, 2, generator=torch.Generator().manual_seed(1)).half()
W = torch.arange(2 * EDGES).reshape(EDGES, 2)


def loaders(data: Any, **options: Any) -> list[Any]:
    options = {"batch_size": 16, "seed": 1, **options}
    return [
        NeighborLoader(data, [4, 3], SEEDS, **options),
        LinkNeighborLoader(data, [4, 3], torch.stack([SEEDS, SEEDS.flip(0)]), **options),
    ]


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"disjoint": True}])
@pytest.mark.parametrize("subgraph_type", ["directional", "bidirectional", "induced"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_batches_have_the_rows_of_their_nodes_and_edges(
    dtype: torch.dtype, subgraph_type: str, options: Any
) -> None:
    data = random_data(dtype=dtype)
    given = {"features": {"x": X, "number": numpy.arange(NODES)}, "edge_features": {"w": W}}
    options = {**options, "subgraph_type": subgraph_type}
    plain = loaders(data, **options)
    for one, other in zip(plain, loaders(data, **options, **given), strict=True):
        one.set_epoch(0)
        other.set_epoch(0)
        for expected, batch in zip(one, other, strict=True):
            assert batch.x.equal(X[batch.n_id])
            assert batch.number.equal(batch.n_id)
            assert batch.w.equal(W[batch.e_id])
            assert batch.num_nodes == len(batch.n_id)
            del batch.x, batch.number, batch.w
            del expected.x, batch["num_nodes"]
            assert content(batch) == content(expected)


def test_quantized_features_and_stores_of_them() -> None:
    features = pgs.Features.from_tensor(torch.randn(NODES, 5, 10)).quantize("int8")
    data = random_data()
    stores = FeatureStore({"x": features}), GraphStore(pgs.Graph.from_pyg(data))
    for loader in (
        NeighborLoader(data, [4, 3], SEEDS, batch_size=16, features={"x": features}),
        NeighborLoader(stores, [4, 3], SEEDS, batch_size=16),
    ):
        assert all(batch.x.equal(features[batch.n_id]) for batch in loader)


def test_a_class_of_batches_from_stores() -> None:
    class Library(Data):
        pass

    graph = pgs.Graph.from_pyg(random_data())
    stores = FeatureStore({"x": X}), GraphStore(graph)
    loader = NeighborLoader(stores, [4, 3], SEEDS, batch_size=16, custom_cls=Library)
    for batch in loader:
        assert type(batch) is Library and batch.x.equal(X[batch.n_id])


def test_out_of_a_file(tmp_path: Path) -> None:
    data = random_data()
    own = pgs.Graph.from_pyg(data).with_data(node_data={"mine": X}, edge_data={"w": W})
    own.save(tmp_path / "g.pgs")
    path = tmp_path / "g.pgs"
    features = {"mine": pgs.Features.open(path, "mine")}
    loader = NeighborLoader(
        data, [4, 3], SEEDS, batch_size=16,
        features=features, edge_features={"w": pgs.Features.open(path, "w")},
    )  # fmt: skip
    for batch in pickle.loads(pickle.dumps(loader)):
        assert batch.mine.equal(X[batch.n_id])
        assert batch.w.equal(W[batch.e_id])
    opened = pgs.Graph.open(path)
    stores = FeatureStore(opened.ndata, opened.edata), GraphStore(opened)
    assert PGSampler(stores, [2]).graph is opened
    for batch in NeighborLoader(stores, [4, 3], SEEDS, batch_size=16):
        assert batch.mine.equal(X[batch.n_id])
        assert batch.w.equal(W[batch.e_id])


def test_data_s_own_attribute_is_not_looked_up() -> None:
    data = random_data()
    data.x = torch.empty(NODES, 1 << 20, device="meta")  # whoever reads it fails
    for loader in loaders(data, features={"x": X}):
        assert all(batch.x.equal(X[batch.n_id]) for batch in loader)
    assert data.x.shape == (NODES, 1 << 20)


def test_ids_of_data_s_own_are_no_ids_of_rows() -> None:
    """PyG leaves an ``n_id`` and an ``e_id`` of data in the place of the batch's."""
    data = random_data()
    data.n_id, data.e_id = torch.arange(NODES) + 1000, torch.arange(EDGES) + 5000
    loader = NeighborLoader(data, [4], SEEDS, features={"x": X}, edge_features={"w": W})
    for batch in loader:
        assert batch.x.equal(X[batch.n_id - 1000])
        assert batch.w.equal(W[batch.e_id - 5000])


def test_transforms_see_them() -> None:
    def transform(batch: Data) -> Data:
        batch.total = batch.x.sum()
        return batch

    def without_edges(out: SamplerOutput) -> SamplerOutput:
        out.row, out.col, out.edge = out.row[:0], out.col[:0], out.edge[:0]
        return out

    for loader in loaders(
        random_data(),
        features={"x": X},
        edge_features={"w": W},
        transform=transform,
        transform_sampler_output=without_edges,
    ):
        for batch in loader:
            assert batch.total == X[batch.n_id].sum()
            assert batch.w.shape == (0, 2)


def test_edge_ids_of_a_graph() -> None:
    """Rows are of the edges' ids, whatever the order of the graph's arrays."""
    data = random_data()
    graph = pgs.Graph.from_pyg(data)
    assert graph.edge_ids is not None
    stores = FeatureStore({"x": X}, {"w": W}), GraphStore(graph)
    features = Data(x=X)
    for loader in (
        NeighborLoader(stores, [4, 3], SEEDS),
        NeighborLoader(
            features,
            [4, 3],
            SEEDS,
            neighbor_sampler=PGSampler(graph, [4, 3]),
            edge_features={"w": W},
        ),
    ):
        for batch in loader:
            assert batch.w.equal(W[batch.e_id])
            assert batch.n_id[batch.edge_index].equal(data.edge_index[:, batch.e_id])


def test_pyg_s_own_loaders_take_the_stores() -> None:
    data = random_data()
    stores = (
        FeatureStore({"x": X, "y": torch.arange(NODES)}, {"w": W}),
        GraphStore(pgs.Graph.from_pyg(data)),
    )
    sampler = PGSampler(stores, [4, 3], seed=1)
    for batch in NodeLoader(stores, sampler, SEEDS, batch_size=16, num_workers=2):
        assert batch.x.equal(X[batch.n_id])
        assert batch.y.equal(batch.n_id)
        assert "w" not in batch
        assert batch.n_id[batch.edge_index].equal(data.edge_index[:, batch.e_id])
    links = (None, torch.stack([SEEDS, SEEDS]))
    for batch in LinkLoader(stores, sampler, links, neg_sampling="binary"):
        assert batch.x.equal(X[batch.n_id])
    for batch in LinkNeighborLoader(stores, [4], links, features={"z": X}):
        assert batch.z.equal(batch.x)
        assert batch.w.equal(W[batch.e_id])


def test_weights_in_the_graph_of_a_store() -> None:
    weights = torch.zeros(EDGES)
    weights[::2] = 1
    graph = pgs.Graph.from_pyg(random_data()).with_data({"p": weights})
    stores = FeatureStore({"x": X}), GraphStore(graph)
    for batch in NeighborLoader(stores, [4, 3], SEEDS, weight_attr="p"):
        assert not (batch.e_id % 2).any()


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"features": X}, TypeError, "features: expected a mapping of names to arrays"),
        ({"features": {"n_id": X}}, ValueError, "expected names that batches do not have"),
        ({"edge_features": {"edge_index": W}}, ValueError, "edge_features: expected names that"),
        ({"features": {"a b": X}}, ValueError, "expected names of attributes, got 'a b'"),
        ({"features": {"x": X[:-1]}}, ValueError, r"features\['x'\]: expected a row for each of"),
        ({"edge_features": {"w": W[1:]}}, ValueError, rf"each of {EDGES} edges, got {EDGES - 1}"),
        ({"features": {"x": "x"}}, TypeError, r"features\['x'\]: expected"),
        (
            {"features": {"x": X}, "edge_features": {"x": W}},
            ValueError,
            "other names than features",
        ),
    ],
)
def test_mistakes(given: Any, error: type[Exception], text: str) -> None:
    for make in (
        lambda: NeighborLoader(random_data(), [4], SEEDS, **given),
        lambda: LinkNeighborLoader(random_data(), [4], **given),
    ):
        with pytest.raises(error, match=text):
            make()


def test_edges_without_ids_have_no_features() -> None:
    def without_ids(out: SamplerOutput) -> SamplerOutput:
        out.edge = None
        return out

    data = random_data()
    stores = FeatureStore({}, {"w": W}), GraphStore(pgs.Graph.from_pyg(data))
    for given, more in ((data, {"edge_features": {"w": W}}), (stores, {})):
        loader = NeighborLoader(given, [4], SEEDS, transform_sampler_output=without_ids, **more)
        with pytest.raises(ValueError, match="edge_features: expected batches with the ids"):
            next(iter(loader))


def test_a_store_of_features() -> None:
    store = FeatureStore({"x": X})
    store.put_tensor(W, group_name="paper", attr_name="w", index=None)
    assert len(store) == 2
    assert [(a.group_name, a.attr_name) for a in store.get_all_tensor_attrs()] == [
        (None, "x"),
        ("paper", "w"),
    ]
    ids = torch.tensor([5, 0, 5])
    mask = torch.zeros(NODES, dtype=torch.bool)
    mask[ids] = True
    assert store[None, "x", ids].equal(X[ids])
    assert store[None, "x", ids.int()].equal(X[ids])
    assert store[None, "x", numpy.array([3])].equal(X[3:4])  # PyG itself takes no more
    assert store[None, "x", mask].equal(X[mask])
    assert store[None, "x", 3:9:2].equal(X[3:9:2])
    assert store[None, "x", 7].equal(X[7])
    assert store[None, "x", None].equal(X)
    assert store[None, "x", ids[:0]].shape == (0, 3, 2)
    assert store.get_tensor_size(None, "x") == X.shape
    assert store.get_tensor_size(None, "x", ids) == (3, 3, 2)
    assert store.get_tensor_size(None, "none") is None
    both = store.multi_get_tensor([TensorAttr(None, "x", ids), TensorAttr("paper", "w", 4)])
    assert both[0].equal(X[ids])
    assert both[1].equal(W[4])
    assert store.view("paper").w[ids].equal(W[ids])
    again = pickle.loads(pickle.dumps(store))
    assert again[None, "x", ids].equal(X[ids])
    assert store.remove_tensor("paper", "w", None)
    assert not store.remove_tensor("paper", "w", None)
    with pytest.raises(KeyError, match="attr_name: expected one of none in group 'paper'"):
        store["paper", "w", ids]


def test_rows_are_written_where_they_are() -> None:
    mine = X.clone()
    store = FeatureStore({"x": mine})
    store.update_tensor(torch.zeros(2, 3, 2).half(), None, "x", torch.tensor([4, 5]))
    assert not mine[4:6].any()
    assert store[None, "x", torch.arange(4, 7)].equal(mine[4:7])
    store.update_tensor(X + 1, None, "x", None)  # all of them: others in their place
    assert not mine[4:6].any()
    assert store[None, "x", None].equal(X + 1)
    with pytest.raises(ValueError, match="index: expected None, or an id for each row of new"):
        store.put_tensor(X[:2], None, "new", torch.tensor([4, 5]))
    with pytest.raises(KeyError):
        store.update_tensor(X, None, "new", None)


@pytest.mark.parametrize(
    ("index", "error"),
    [
        (torch.tensor([NODES]), IndexError),
        (torch.tensor([-1]), IndexError),
        (torch.tensor([0.5]), TypeError),
        (torch.tensor([[1]]), TypeError),
        (slice(9, 3, -1), TypeError),
        (torch.zeros(3, dtype=torch.bool), ValueError),
    ],
)
def test_an_index_that_is_none(index: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"ids\[0\]|index: expected"):
        FeatureStore({"x": X}).get_tensor(None, "x", index)


def test_a_store_of_edges() -> None:
    data = random_data()
    graph = pgs.Graph.from_pyg(data)
    store = GraphStore(graph)
    (attr,) = store.get_all_edge_attrs()
    assert (attr.edge_type, attr.layout.value, attr.size) == (None, "csc", (NODES, NODES))
    for layout in ("csc", "coo", "csr"):
        row, col, moved = getattr(store, layout)()
        if layout != "coo":
            ptr, each = (row, col) if layout == "csr" else (col, row)
            assert len(ptr) == NODES + 1
            ptr = torch.arange(NODES).repeat_interleave(ptr.diff())
            row, col = (ptr, each) if layout == "csr" else (each, ptr)
        assert torch.stack([row, col]).equal(data.edge_index[:, moved])
    assert store.graph is graph
    assert store.remove_edge_index(None, "csc")
    assert store.graph is None
    with pytest.raises(KeyError):
        store[None, "csc"]
    with pytest.raises(ValueError, match="layout: expected 'csc' for a Graph, got 'coo'"):
        store.put_edge_index(graph, None, "coo")
    with pytest.raises(TypeError, match="edge_index: expected a Graph or a pair of tensors"):
        store.put_edge_index(5, None, "coo")
    store.put_edge_index((data.edge_index[0], data.edge_index[1]), None, "coo", size=(NODES, NODES))
    for batch in NeighborLoader((FeatureStore({"x": X}), store), [4, 3], SEEDS):
        assert batch.x.equal(X[batch.n_id])


def test_vertices_behind_the_last_row_are_in_the_csc() -> None:
    store = GraphStore(pgs.Graph.from_csc([0, 2], [1, 2], num_nodes=3))
    row, col, moved = store.csc()
    assert (row.tolist(), col.tolist(), moved) == ([1, 2], [0, 2, 2, 2], None)


@pytest.mark.parametrize(
    "kind", [list, tuple, numpy.array, torch.tensor, lambda some: [numpy.int64(i) for i in some]]
)
def test_samplers_of_seeds_may_give_numbers_of_any_kind(kind: Any) -> None:
    places = [[0, 5, 5], [], [62, -1], [7]]
    loader = NeighborLoader(random_data(), [2], SEEDS, batch_sampler=[kind(p) for p in places])
    assert len(loader.dataset) == len(SEEDS)
    assert loader.dataset[-1] == len(SEEDS) - 1
    for some, batch in zip(places, loader, strict=True):
        assert batch.n_id[: batch.batch_size].equal(SEEDS[some])
    with pytest.raises(IndexError):
        next(iter(NeighborLoader(random_data(), [2], SEEDS, batch_sampler=[[len(SEEDS)]])))
