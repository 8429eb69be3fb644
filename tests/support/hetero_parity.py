"""Random graphs with types, and whether two batches are one; without pytest, for short programs."""

from __future__ import annotations

from typing import Any

import numpy as np

import pygsampler as pgs
from tests.support.assertions import assert_equal


def make(seed: int, types: int, relations: int, dtype: str, size: int = 40) -> Any:
    """Random types and relations, some without edges; the first type has a vertex of many edges."""
    random = np.random.default_rng(seed)
    nodes = {f"t{i}": int(random.integers(1, size)) for i in range(types)}
    names, edges, data = list(nodes), {}, {}
    for i in range(relations):
        src, dst = (names[random.integers(types)] for _ in range(2))
        count = int(random.choice([0, 1, 5 * size]))
        ends = [random.integers(0, nodes[end], count).astype(dtype) for end in (src, dst)]
        ends[1][: count // 3] = 0
        kind = src, f"r{i}", dst
        edges[kind] = ends
        data[kind] = {
            "odd": np.arange(count) % 2 == 1,
            "w": (np.arange(count) % 7).astype(np.float32),
        }
    del data[kind]["odd"]
    return pgs.Graph.from_coo(edges, num_nodes=nodes, edge_data=data)


def seeds_of(graph: pgs.Graph, random: Any) -> dict[str, Any]:
    return {
        kind: random.integers(0, count, random.integers(0, 2 * count)).astype(graph.dtype)
        for kind, count in graph.num_nodes.items()
        if random.integers(3)
    }


def half_of(graph: pgs.Graph, random: Any) -> dict[Any, Any]:
    """Half of the edges of each type, for ``exclude``."""
    return {
        kind: np.flatnonzero(random.integers(0, 2, count))
        for kind, count in graph.num_edges.items()
    }


def assert_equal_batches(got: pgs.MiniBatch, want: pgs.MiniBatch, where: object) -> None:
    """Fails unless a batch on a GPU has the words and the arrays of the batch on the CPU."""
    assert got.device == "cuda:0"
    there = got.cpu()
    assert there.device == want.device == "cpu"
    # One type of either kind is sampled as a graph without types, whose arrays lie elsewhere.
    if len(want.input_nodes) > 1 or len(want.blocks[0]) > 1:
        assert there._source._words == want._source._words, where
    assert_equal(there, want, where)
