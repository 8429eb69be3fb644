"""ClusterData and ClusterLoader beside PyG's."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
from pyg_reference import random_data
from torch_geometric.data import Data
from torch_geometric.loader import ClusterLoader as Theirs

from pygsampler import samplers
from pygsampler.pyg import ClusterData, ClusterLoader


@pytest.fixture
def metis(monkeypatch: pytest.MonkeyPatch) -> Any:
    """METIS, or, where pymetis is not, parts of vertices in turn."""
    if "pymetis" not in sys.modules:
        try:
            import pymetis  # noqa: F401
        except ImportError:
            from pygsampler.pyg import cluster_gcn

            def in_turn(graph: Any, parts: int, *, recursive: bool = False) -> Any:
                return np.arange(graph.num_nodes) % parts

            monkeypatch.setattr(cluster_gcn, "clusters", in_turn)


def six() -> Data:
    """PyG's own example: two clusters {0, 2, 4} and {1, 3, 5} with loops, and 0-1 between."""
    adj = torch.tensor(
        [
            [1, 1, 1, 0, 1, 0],
            [1, 1, 0, 1, 0, 1],
            [1, 0, 1, 0, 1, 0],
            [0, 1, 0, 1, 0, 1],
            [1, 0, 1, 0, 1, 0],
            [0, 1, 0, 1, 0, 1],
        ]
    )
    edge_index = adj.nonzero().t()
    x = torch.arange(6.0)[:, None]
    return Data(x=x, edge_index=edge_index, edge_attr=torch.arange(edge_index.size(1)), name="six")


def test_two_clusters(metis: Any) -> None:
    parts = ClusterData(six(), num_parts=2, log=False)
    assert parts.partition.partptr.tolist() == [0, 3, 6]
    groups = parts.partition.node_perm.view(2, 3).tolist()
    assert sorted(groups) == [[0, 2, 4], [1, 3, 5]]
    for part, nodes in zip(ClusterLoader(parts), groups, strict=True):
        assert part.x[:, 0].tolist() == nodes
        assert part.edge_index.tolist() == [[0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3]
        assert part.name == "six"
    (both,) = ClusterLoader(parts, batch_size=2)
    assert both.num_edges == 20
    between = (both.edge_index[0] < 3) != (both.edge_index[1] < 3)
    ends = both.x[both.edge_index[:, between], 0].long()
    assert sorted(ends.t().tolist()) == [[0, 1], [1, 0]]


@pytest.mark.parametrize("sparse_format", ["csr", "csc"])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_pygs(metis: Any, sparse_format: Any, workers: int) -> None:
    """Each tensor of each batch, in its order, for directed graphs with loops and parallels."""
    data = random_data()
    data.x = torch.randn(data.num_nodes, 3)
    data.edge_attr = torch.arange(data.num_edges)
    data.y = torch.arange(data.num_nodes)
    data.name = "all"
    parts = ClusterData(data, 7, log=False, sparse_format=sparse_format)
    assert sorted(parts.partition.node_perm.tolist()) == list(range(data.num_nodes))
    for size in (1, 3, 7):
        options = {"batch_size": size, "shuffle": True, "num_workers": workers}
        found = [
            list(loader(parts, generator=torch.Generator().manual_seed(3), **options))
            for loader in (ClusterLoader, Theirs)
        ]
        assert len(found[0]) == len(found[1]) == -(-7 // size)
        for ours, theirs in zip(*found, strict=True):
            assert ours.num_nodes == theirs.num_nodes
            assert set(ours.keys()) == set(theirs.keys())
            for name in ("x", "y", "edge_attr", "edge_index"):
                assert torch.equal(ours[name], theirs[name])


def test_a_chosen_seed_decides_the_order(metis: Any) -> None:
    parts = ClusterData(random_data(), 7, log=False)

    def passes(seed: int | None, manual: int, **options: Any) -> list[Any]:
        torch.manual_seed(manual)
        loader = ClusterLoader(parts, shuffle=True, seed=seed, **options)
        return [[batch.num_nodes for batch in loader] for _ in range(2)]

    def order(**options: Any) -> list[Any]:
        loader = ClusterLoader(parts, batch_size=1, shuffle=True, seed=1, **options)
        loader.set_epoch(2)
        return [batch.edge_index.tolist() for batch in loader]

    assert passes(1, 1) == passes(1, 2)
    assert order() == order(num_workers=2)
    assert passes(None, 1) == passes(None, 1)
    assert len({str(passes(seed, 1)) for seed in range(4)}) > 1


def test_clusters_are_kept(metis: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = ClusterData(six(), 2, save_dir=str(tmp_path), log=False)
    monkeypatch.setattr("pygsampler.pyg.cluster_gcn.clusters", None)
    again = ClusterData(six(), 2, save_dir=str(tmp_path), log=False)
    assert torch.equal(again.partition.node_perm, parts.partition.node_perm)
    other = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    with pytest.raises(ValueError, match="clusters of 2 nodes and 1 edges, got those of 6 and 20"):
        ClusterData(other, 2, save_dir=str(tmp_path), log=False)
    with pytest.raises(ValueError, match="num_parts: expected an integer from 1 to"):
        ClusterData(six(), 0)
    with pytest.raises(
        TypeError, match=r"data: expected a torch_geometric.data.Data, got NoneType"
    ):
        ClusterData(None, 2)
    with pytest.raises(TypeError, match="cluster_data: expected a ClusterData, got Data"):
        ClusterLoader(six())


def test_without_pymetis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymetis", None)
    with pytest.raises(ImportError, match=r"pip install pymetis"):
        ClusterData(six(), 2, log=False)
    with pytest.raises(ImportError, match=r"pip install pymetis"):
        import pygsampler as pgs

        samplers.clusters(pgs.Graph.from_pyg(six()), 2)
