"""``samplers.clusters``: METIS' parts."""

from __future__ import annotations

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers.clustering import _symmetric


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
