"""Features of ours as columns of DGL graphs: what DGL's loader prefetches, and what blocks read."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dgl
import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler.dgl import FeatureStorage, PGSampler
from tests.dgl.graphs import DTYPES, random_graph

pytestmark = pytest.mark.filterwarnings(
    "ignore:Dataloader CPU affinity",
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)
SEEDS = torch.arange(0, 400)
X = torch.randn(500, 3, 2, generator=torch.Generator().manual_seed(1)).half()
W = torch.arange(8000).reshape(4000, 2)


def graph(make: Any = FeatureStorage, **options: Any) -> Any:
    """A graph whose columns x, y and w are made of X, labels and W."""
    g = random_graph(**options)
    g.ndata["x"], g.ndata["y"], g.edata["w"] = make(X), make(torch.arange(500)), make(W)
    return g


def loader(g: Any, sampler: Any, **options: Any) -> Any:
    return dgl.dataloading.DataLoader(
        g, SEEDS.to(g.idtype), sampler, **{"batch_size": 64, "device": "cpu", **options}
    )


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 1}])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "prefetched",
    [
        {},
        {"prefetch_node_feats": ["x"], "prefetch_labels": ["y"], "prefetch_edge_feats": ["w"]},
        {"prefetch_node_feats": {"_N": ["x", "feat"]}},
    ],
)
def test_blocks_have_the_rows_of_their_nodes_and_edges(
    prefetched: Any, dtype: torch.dtype, options: Any
) -> None:
    g = graph(dtype=dtype)
    before = g.ndata["x"].features.stats()["reads"]
    sampler = PGSampler([4, 3], seed=1, **prefetched)
    for input_nodes, output_nodes, blocks in loader(g, sampler, **options):
        assert blocks[0].srcdata["x"].equal(X[input_nodes.long()])
        assert blocks[0].srcdata["feat"].equal(g.ndata["feat"][input_nodes.long()])
        assert blocks[-1].dstdata["y"].equal(output_nodes.long())
        for block in blocks:
            assert block.edata["w"].equal(W[block.edata[dgl.EID].long()])
    assert g.ndata["x"].features.stats()["reads"] > before


def test_dgl_s_own_sampler_reads_them_too() -> None:
    g = graph()
    sampler = dgl.dataloading.NeighborSampler([4, 3], prefetch_node_feats=["x"])
    for input_nodes, _, blocks in loader(g, sampler):
        assert blocks[0].srcdata["x"].equal(X[input_nodes])
        assert blocks[-1].edata["w"].equal(W[blocks[-1].edata[dgl.EID]])


def test_edge_prediction_reads_them_too() -> None:
    g = graph()
    sampler = dgl.dataloading.as_edge_prediction_sampler(
        PGSampler([4, 3], prefetch_node_feats=["x"]),
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(1),
    )
    for input_nodes, positive, _, blocks in loader(g, sampler):
        assert blocks[0].srcdata["x"].equal(X[input_nodes])
        assert positive.edata["w"].equal(W[positive.edata[dgl.EID]])


def test_attached_data_is_fetched() -> None:
    """Fetches, as DGL's loader does, rows of data that are no column of the graph."""
    g = random_graph()
    made = loader(g, PGSampler([2]))
    made.attach_data("more", FeatureStorage(X))
    found = made.other_storages["more"].fetch(SEEDS[3:5], "cpu", False)
    assert found.wait().equal(X[3:5])


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.float64, torch.bfloat16])
def test_every_dtype(dtype: torch.dtype) -> None:
    values = torch.arange(1500).reshape(500, 3).to(dtype)
    g = random_graph()
    g.ndata["x"] = FeatureStorage(values)
    assert g.ndata["x"].dtype == dtype
    for input_nodes, _, blocks in loader(g, PGSampler([2], prefetch_node_feats=["x"])):
        assert blocks[0].srcdata["x"].equal(values[input_nodes])


def test_a_column_out_of_a_file(tmp_path: Path) -> None:
    g = random_graph()
    pgs.Graph.from_dgl(g).with_data(node_data={"x": X}).save(tmp_path / "g.pgs")
    storage = FeatureStorage(pgs.Features.open(tmp_path / "g.pgs", "x"))
    g.ndata["x"] = storage
    made = loader(g, PGSampler([4, 3], prefetch_node_feats=["x"]))
    assert all(blocks[0].srcdata["x"].equal(X[ids]) for ids, _, blocks in made)
    again = pickle.loads(pickle.dumps(storage))
    assert again[SEEDS].equal(X[SEEDS])


def test_a_column_of_quantized_rows() -> None:
    features = pgs.Features.from_tensor(torch.randn(500, 5, 10)).quantize("int8")
    g = random_graph()
    g.ndata["x"] = FeatureStorage(features)
    made = loader(g, PGSampler([4, 3], prefetch_node_feats=["x"]))
    assert all(blocks[0].srcdata["x"].equal(features[ids]) for ids, _, blocks in made)


def test_it_behaves_as_a_column_where_rows_are_asked_for() -> None:
    g = graph()
    storage = g.ndata["x"]
    assert len(storage) == 500
    assert storage.shape == X.shape
    assert storage.device == g.device
    assert storage[SEEDS].equal(X[SEEDS])
    assert storage[[4, 4]].equal(X[[4, 4]])
    assert storage[:].equal(X)
    assert "Features(" in repr(storage)
    assert storage.to("cpu") is storage
    sub = dgl.node_subgraph(g, SEEDS)
    assert sub.ndata["x"].equal(X[SEEDS])
    assert dgl.reverse(g, copy_edata=True).edata["w"][:].equal(W)
    with g.local_scope():
        del g.ndata["x"]
    assert g.ndata["x"] is storage


def test_mistakes() -> None:
    g = random_graph()
    with pytest.raises(dgl.DGLError, match="number of features to match"):
        g.ndata["x"] = FeatureStorage(X[:-1])
    with pytest.raises(TypeError, match="expected"):
        FeatureStorage("x")
    storage = FeatureStorage(X)
    with pytest.raises(IndexError, match=r"ids\[1\]: expected an integer in \[0, 500\), got 500"):
        storage[torch.tensor([0, 500])]
    with pytest.raises(IndexError, match="got -1"):
        storage.fetch(torch.tensor([-1]), "cpu").wait()
    with pytest.raises(TypeError, match=r"expected rows to be asked for, got torch\.cat"):
        torch.cat([storage, X])  # type: ignore[list-item]


def test_numpy_s_are_taken() -> None:
    g = random_graph()
    values = np.arange(1000, dtype=np.int16).reshape(500, 2)
    g.ndata["x"] = FeatureStorage(values)
    for input_nodes, _, blocks in loader(g, PGSampler([2])):
        assert blocks[0].srcdata["x"].numpy().tolist() == values[input_nodes.numpy()].tolist()
