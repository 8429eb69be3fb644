"""Small graphs, and what batches of samplers are held against: their exact laws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

import pygsampler as pgs

# 0-1, 0-2, 1-2, 2-3, 3-4: both ways, and by P = D^-1 (A + I) with loops.
EDGES = [(0, 1), (0, 2), (1, 2), (2, 3), (3, 4)]
BOTH = EDGES + [(v, u) for u, v in EDGES]
LOOPS = BOTH + [(v, v) for v in range(5)]
DEGREES = np.array([2, 2, 3, 2, 1])
BATCHES = 6000


def of(edges: list[tuple[int, int]], **data: Any) -> pgs.Graph:
    src, dst = np.array(edges).T.copy()
    return pgs.Graph.from_coo(src, dst, num_nodes=5, **data)


def batches(sampler: Any, graph: pgs.Graph, seeds: list[int], count: int = BATCHES) -> list[Any]:
    return [
        b.numpy() for b in sampler.sample_many(graph, [np.array(seeds, np.int64)] * count, epoch=0)
    ]


def edges_of(made: Any) -> list[tuple[int, int, float]]:
    """(source, destination, value) in original ids, of a block or a subgraph."""
    block = made.blocks[0] if hasattr(made, "blocks") else made
    dst = np.repeat(np.arange(len(block.indptr) - 1), np.diff(block.indptr))
    values = block.edge_data.get("w", np.ones(block.num_edges))
    return [
        (int(block.src_nodes[u]), int(block.dst_nodes[v]), float(w))
        for u, v, w in zip(block.indices, dst, values, strict=True)
    ]


def plausible(counts: Mapping[Any, int], law: Mapping[Any, float]) -> None:
    """Chi-square within five standard deviations of its mean, of cells that are no rarer than 5."""
    assert set(counts) <= {cell for cell, p in law.items() if p > 0}
    total = sum(counts.values())
    assert math.isclose(sum(law.values()), 1, abs_tol=1e-9)
    statistic = sum((counts.get(c, 0) - p * total) ** 2 / (p * total) for c, p in law.items() if p)
    free = sum(p > 0 for p in law.values()) - 1
    assert abs(statistic - free) < 5 * math.sqrt(2 * free)
