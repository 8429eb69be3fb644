"""``samplers.clusters``: METIS' parts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers.metis import _symmetric


def cliques(count: int, size: int) -> pgs.Graph:
    """Directed cliques with loops, and an edge from each to the next."""
    src = [u + size * c for c in range(count) for u in range(size) for _ in range(size)]
    dst = [v + size * c for c in range(count) for _ in range(size) for v in range(size)]
    src += [size * c for c in range(count - 1)]
    dst += [size * (c + 1) for c in range(count - 1)]
    return pgs.Graph.from_coo(np.array(src), np.array(dst), num_nodes=count * size)


def test_what_metis_gets() -> None:
    """Both directions, no loops, parallel edges once."""
    indptr, indices = np.array([0, 3, 3, 5, 5]), np.array([1, 1, 0, 0, 2], np.int32)
    starts, adjacent = _symmetric(indptr, indices, 4)
    assert starts.tolist() == [0, 2, 3, 4, 4]
    assert adjacent.tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize("recursive", [False, True])
def test_cliques_are_parts(recursive: bool) -> None:
    pytest.importorskip("pymetis", reason="needs pymetis")
    graph = cliques(4, 6)
    found = samplers.clusters(graph, 4, recursive=recursive)
    assert found.dtype == np.int64
    assert len({tuple(part) for part in found.reshape(4, 6).tolist()}) == 4
    assert (found.reshape(4, 6) == found[::6, None]).all()
    assert found.tolist() == samplers.clusters(graph, 4, recursive=recursive).tolist()
    # Two parts are a batch, with the edge between them.
    seeds = np.flatnonzero(np.isin(found, found[[0, 6]]))
    assert samplers.cluster_gcn(seed=0).sample(graph, seeds).numpy().num_edges == 2 * 36 + 1
    assert samplers.clusters(graph, 1).tolist() == [0] * 24
    # One clique weighs as much as the others together.
    heavy = np.repeat([3, 1, 1, 1], 6)
    found = samplers.clusters(graph, 2, vertex_weights=heavy, recursive=recursive)
    assert (found == found[0]).tolist() == [True] * 6 + [False] * 18


def test_mistakes() -> None:
    graph = cliques(2, 3)
    for parts in (0, 7):
        with pytest.raises(ValueError, match="parts"):
            samplers.clusters(graph, parts)
    with pytest.raises(TypeError, match=r"vertex_weights: expected integers of shape \[6\]"):
        samplers.clusters(graph, 2, vertex_weights=np.ones(6))
    with pytest.raises(ValueError, match="vertex_weights: expected >= 0, got -1"):
        samplers.clusters(graph, 2, vertex_weights=np.full(6, -1))
    with pytest.raises(TypeError, match="recursive"):
        samplers.clusters(graph, 2, recursive="yes")  # type: ignore[arg-type]


def test_batches_are_of_clusters() -> None:
    graph, part = cliques(4, 3), np.arange(12) // 3
    sampler = samplers.cluster_gcn_parts(part, seed=5)
    assert sampler.num_parts == 4
    made = sampler.sample(graph, [2, 1], batch=0).numpy()
    assert made.nodes.tolist() == [6, 7, 8, 3, 4, 5]
    same = samplers.cluster_gcn(seed=5).sample(graph, made.nodes, batch=0).numpy()
    assert made.indices.tolist() == same.indices.tolist() and made.num_edges == 2 * 9 + 1
    assert made.edge_data["w"].tolist() == same.edge_data["w"].tolist()
    other = pickle.loads(pickle.dumps(sampler))
    assert other.plan == sampler.plan != samplers.cluster_gcn_parts(part[::-1]).plan
    assert other.with_seed(6).sample(graph, [0]).nodes.tolist() == [0, 1, 2]
    assert sampler.sample(graph, []).nodes.tolist() == []


def test_loaders_deal_clusters() -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    # Cluster 3 has no vertices.
    graph, part = cliques(5, 3), torch.tensor([0, 1, 2, 4, 5]).repeat_interleave(3)
    sampler = samplers.cluster_gcn_parts(part, seed=5)
    labels = torch.arange(15)
    loader = DataLoader(
        graph, range(6), sampler, batch_size=2, shuffle=True, features={"x": part}, labels=labels
    )
    for _ in range(2):
        dealt = []
        for batch in loader:
            assert batch.y.equal(batch.nodes) and batch.x.equal(part[batch.nodes])
            dealt.append(batch.nodes)
        assert torch.cat(dealt).sort().values.equal(labels)


def test_clusters_that_are_none() -> None:
    graph = cliques(2, 3)
    for part, wrong in (
        ([0.5] * 6, TypeError),
        ([[0]] * 6, TypeError),
        ([0, 1, -1], ValueError),
        ([0, 3, 1], ValueError),
    ):
        with pytest.raises(wrong, match="part: expected"):
            samplers.cluster_gcn_parts(np.array(part))
    sampler = samplers.cluster_gcn_parts(np.arange(6) // 3)
    with pytest.raises(IndexError, match="seeds: expected numbers of clusters below 2, got 2"):
        sampler.sample(graph, [0, 2])
    with pytest.raises(ValueError, match="graph: expected the one that was cut, of 6 nodes"):
        sampler.sample(cliques(3, 3), [0])
