"""Random heterogeneous graphs, and the lists of their edges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import pygsampler as pgs


def random_types(
    seed: int, types: int, relations: int, dtype: str, most_nodes: int, most_edges: int
) -> tuple[dict[str, int], dict[Any, Any], pgs.Graph]:
    """The vertices of each type, (src, dst) of each relation, and the graph; some have no edges."""
    random = np.random.default_rng(seed)
    nodes = {f"t{i}": int(random.integers(1, most_nodes)) for i in range(types)}
    names = list(nodes)
    edges: dict[Any, Any] = {}
    for i in range(relations):
        src, dst = (names[random.integers(types)] for _ in range(2))
        count = int(random.integers(0, most_edges))
        ends = [random.integers(0, nodes[end], count).astype(dtype) for end in (src, dst)]
        edges[src, f"r{i}", dst] = ends
    return nodes, edges, pgs.Graph.from_coo(edges, num_nodes=nodes)


def random_edges(nodes: Mapping[str, int], counts: Mapping[Any, int], seed: int) -> dict[Any, Any]:
    """Returns (src, dst) for each edge type, of so many edges between nodes at random."""
    random = np.random.default_rng(seed)
    return {
        kind: tuple(random.integers(0, nodes[end], count) for end in kind[::2])
        for kind, count in counts.items()
    }
