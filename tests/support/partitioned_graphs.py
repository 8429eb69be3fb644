"""Graphs that tests partition."""

from __future__ import annotations

import numpy as np

import pygsampler as pgs

NODES, EDGES = 203, 1700


def of(kind: str) -> pgs.Graph:
    """A graph with isolated and trailing vertices, parallel edges, loops and a hub."""
    rng = np.random.default_rng(11)
    dtype = np.int32 if "32" in kind else np.int64
    src, dst = rng.integers(0, NODES - 3, (2, EDGES)).astype(dtype)
    dst[dst % 7 == 5] = 9
    src[:40] = dst[:40]
    edata = {"w": rng.integers(0, 4, EDGES).astype(np.float32), "t": rng.integers(0, 50, EDGES)}
    edata["m"] = rng.random(EDGES) < 0.7
    edata["k"] = np.random.default_rng(12).integers(0, 3, EDGES)
    ndata = {"x": rng.normal(size=(NODES, 3)).astype(np.float32), "y": rng.integers(0, 9, NODES)}
    ndata["born"] = np.random.default_rng(13).integers(0, 50, NODES).astype(np.float32)
    if "ids" in kind:
        return pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data=edata, node_data=ndata)
    order = np.argsort(dst, kind="stable")
    counts = np.bincount(dst, minlength=NODES - 2)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    return pgs.Graph.from_csc(indptr, src[order], num_nodes=NODES, edge_data=edata, node_data=ndata)
