"""ClusterGCNSampler beside DGL's."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import dgl
import numpy as np
import pytest
import torch

from pygsampler.dgl import ClusterGCNSampler
from tests.dgl.graphs import random_graph

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")


def triplets(g: Any) -> list[tuple[int, int, int]]:
    """Edges in original ids."""
    nodes, (u, v) = g.ndata[dgl.NID], g.edges()
    return sorted(zip(nodes[u].tolist(), nodes[v].tolist(), g.edata[dgl.EID].tolist(), strict=True))


@pytest.fixture(autouse=True)
def metis(monkeypatch: pytest.MonkeyPatch) -> Any:
    """METIS, or, where pymetis is not, parts of vertices in turn."""
    try:
        import pymetis  # noqa: F401
    except ImportError:

        def in_turn(graph: Any, parts: int, **options: Any) -> Any:
            return np.arange(graph.num_nodes) % parts

        monkeypatch.setattr("pygsampler.dgl.cluster_gcn.clusters", in_turn)


@pytest.mark.parametrize("workers", [0, 2])
def test_subgraphs_are_dgls(workers: int, tmp_path: Path) -> None:
    g = random_graph()
    ours = ClusterGCNSampler(g, 6, tmp_path / "ours.npz", prefetch_ndata=["label"])
    # DGL's of these parts: it reads them, since its METIS does not end on this graph.
    file = tmp_path / "theirs.pkl"
    file.write_bytes(pickle.dumps((ours.partition_offset, ours.partition_node_ids)))
    theirs = dgl.dataloading.ClusterGCNSampler(g, 6, str(file))
    assert ours.partition_node_ids.sort().values.tolist() == list(range(g.num_nodes()))
    assert ours.partition_offset.tolist()[-1] == g.num_nodes()
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(6), ours, batch_size=4, shuffle=False, num_workers=workers
    )
    for first, subgraph in zip((0, 4), loader, strict=True):
        want = theirs.sample(g, torch.arange(first, min(first + 4, 6)))
        assert subgraph.ndata[dgl.NID].tolist() == want.ndata[dgl.NID].tolist()
        assert triplets(subgraph) == triplets(want)
        assert torch.equal(subgraph.ndata["label"], g.ndata["label"][subgraph.ndata[dgl.NID]])


def test_parts_cut_few_edges() -> None:
    """Two cliques with one edge between them are the two parts."""
    pytest.importorskip("pymetis", reason="needs pymetis")
    pairs = [(u, v) for first in (0, 5) for u in range(first, first + 5) for v in range(u)]
    pairs = [(u, v) for u, v in pairs if v >= 5 * (u >= 5)] + [(0, 5)]
    g = dgl.add_reverse_edges(dgl.graph(tuple(torch.tensor(pairs).t())))
    for options in ({}, {"mode": "recursive"}, {"balance_edges": True}):
        sampler = ClusterGCNSampler(g, 2, None, **options)
        parts = sampler.partition_node_ids.view(2, 5).tolist()
        assert sorted(parts) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
        assert sampler.sample(g, torch.tensor([1])).num_edges() == 20
        assert sampler.sample(g, torch.tensor([1, 0])).num_edges() == 42


def test_parts_are_kept(tmp_path: Path) -> None:
    g, path = random_graph(), tmp_path / "parts"
    made = ClusterGCNSampler(g, 4, path)
    kept = path.read_bytes()
    again = ClusterGCNSampler(g, 4, path, mode="recursive")
    assert torch.equal(again.partition_node_ids, made.partition_node_ids)
    assert path.read_bytes() == kept
    other = dgl.graph(g.edges()[::-1], num_nodes=g.num_nodes())
    with pytest.raises(ValueError, match="cache_path: expected parts of this graph"):
        ClusterGCNSampler(other, 4, path)
    with pytest.raises(ValueError, match="cache_path: expected 2 parts"):
        ClusterGCNSampler(g, 2, path)
    path.write_bytes(pickle.dumps((made.partition_offset, made.partition_node_ids)))
    with pytest.raises(ValueError, match="cache_path: expected parts that this class wrote"):
        ClusterGCNSampler(g, 4, path)


def test_mistakes() -> None:
    g = random_graph()
    sampler = ClusterGCNSampler(g, 3, None)
    assert repr(sampler) == "pygsampler.dgl.ClusterGCNSampler(k=3)"
    assert sampler.sample(g, torch.tensor([], dtype=torch.int64)).num_nodes() == 0
    with pytest.raises(IndexError, match="numbers from 0 to 2, got"):
        sampler.sample(g, torch.tensor([3]))
    with pytest.raises(TypeError, match=r"g: expected a dgl\.DGLGraph, got NoneType"):
        sampler.sample(None, torch.tensor([0]))
    with pytest.raises(ValueError, match="distinct parts"):
        sampler.sample(g, torch.tensor([1, 1]))
    with pytest.raises(ValueError, match="expected the graph that was cut"):
        sampler.sample(dgl.graph(([0], [1])), torch.tensor([1]))
    with pytest.raises(ValueError, match="mode: expected 'k-way' or 'recursive', got 'both'"):
        ClusterGCNSampler(g, 3, None, mode="both")
    with pytest.raises(NotImplementedError, match="balance_ntypes: expected None, got"):
        ClusterGCNSampler(g, 3, None, balance_ntypes=torch.zeros(500))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k: expected"):
        ClusterGCNSampler(g, 0, None)
    with pytest.raises(TypeError, match=r"g: expected a dgl\.DGLGraph"):
        ClusterGCNSampler(3, 3, None)  # type: ignore[arg-type]
