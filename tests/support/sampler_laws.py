"""Small graphs, and what batches of samplers are held against: their exact laws."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

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


def near(values: list[float] | np.ndarray[Any, Any], mean: float) -> None:
    """The mean of the values is ``mean`` within four standard errors."""
    found = np.asarray(values, float)
    error = found.std(ddof=1) / math.sqrt(len(found))
    assert abs(found.mean() - mean) <= 4 * error + 1e-6


def bound(p: float) -> float:
    """Returns four standard deviations of how often an event of chance ``p`` occurs."""
    return 4 * math.sqrt(max(p * (1 - p), 0) * BATCHES) + 1e-6


def worked(graph: Any, chance: list[float], joint: dict[tuple[int, int], float]) -> None:
    """The norms of batches are the chances, and each node and edge is met as often."""
    met, pairs = Counter[int](), Counter[tuple[int, int]]()
    for made in graph:
        met.update(made.nodes.tolist())
        for v, p in zip(made.nodes.tolist(), made.extra["node_norm"].tolist(), strict=True):
            assert p == pytest.approx(chance[v], rel=1e-6)
        for u, v, value in edges_of(made):
            both = joint[min(u, v), max(u, v)] if u != v else chance[v]
            assert value == pytest.approx(both / chance[v], rel=1e-5)
            pairs[u, v] += 1
    for v, p in enumerate(chance):
        assert abs(met[v] - p * BATCHES) <= bound(p)
    for (u, v), p in joint.items():
        assert abs(pairs[u, v] - p * BATCHES) <= bound(p)


def check_weights_of_all_edges(sampler: Any, graph: pgs.Graph) -> None:
    """A sampler of all rows returns each in-edge of the seeds, with the edge's own weight."""
    block = sampler.sample(graph, [0, 2, 3]).blocks[0]
    weights = graph.edata["w"].numpy()[block.edge_ids.numpy()]
    if sampler.name == "asgcn":
        sources, targets = (graph.ndata[f"h_{end}"].numpy() for end in ("source", "target"))
        src, dst = (np.asarray(ends) for ends in block.coo())
        nodes = block.src_nodes.numpy()
        weights = weights * (sources[nodes[src]] + targets[nodes[dst]] + 1)
    values = block.edge_data["w"].numpy()
    assert len(values) == sum(v in (0, 2, 3) for _, v in BOTH)
    np.testing.assert_allclose(values, weights, rtol=1e-6)


def check_fanouts_are_refused(make: Any) -> None:
    with pytest.raises(TypeError, match=r"fanouts: expected a list of int, .* got int 5"):
        make(fanouts=5)
    with pytest.raises(TypeError, match=r"fanouts\[1\]: expected an integer .* got str 'a'"):
        make(fanouts=[5, "a"])
    with pytest.raises(ValueError, match=r"fanouts\[0\]: expected an integer .* got -2"):
        make(fanouts=[-2, 5])
