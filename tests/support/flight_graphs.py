"""Graphs that tests serve and partition."""

from __future__ import annotations

from functools import cache

import numpy as np
import partitioned_graphs

import pygsampler as pgs

CITES, WRITES, BY = (
    ("paper", "cites", "paper"),
    ("author", "writes", "paper"),
    ("paper", "by", "author"),
)


@cache
def untyped() -> pgs.Graph:
    """A graph with ids, weights, a mask and times of edges."""
    return partitioned_graphs.of("ids")


@cache
def typed() -> pgs.Graph:
    """Papers and authors; only those that cite have ids of 64 bits."""
    rng = np.random.default_rng(3)
    edges, data = {}, {}
    sizes = (CITES, 90, 90, 700), (WRITES, 90, 40, 200), (BY, 40, 90, 200)
    for kind, rows, sources, count in sizes:
        dst = np.sort(rng.integers(0, rows, count))
        indptr = np.concatenate([[0], np.cumsum(np.bincount(dst, minlength=rows))])
        ids = rng.permutation(count)
        edges[kind] = (indptr, rng.integers(0, sources, count), ids)
        data[kind] = {"w": rng.random(count, np.float32), "t": rng.integers(0, 9, count)}
    x = {"paper": {"x": rng.normal(size=(90, 3)).astype(np.float32)}}
    x["paper"]["born"] = np.random.default_rng(4).integers(0, 9, 90)
    return pgs.HeteroGraph(edges, edge_data=data, node_data=x)
