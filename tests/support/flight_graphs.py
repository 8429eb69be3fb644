"""Graphs that tests serve, and what results of samplers are compared by."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

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


# All that results have by these names is compared.
_NAMES = (
    *("epoch", "batch", "seed", "length", "walks_per_seed", "widths", "node_types", "edge_types"),
    *("input_nodes", "output_nodes", "output_index", "subgraph_ids", "nodes", "lengths", "slots"),
    *("seeds", "steps", "counts", "extra", "num_sampled_nodes", "num_sampled_edges", "blocks"),
    *("num_src_nodes", "num_dst_nodes", "dst_offset", "src_nodes", "dst_nodes"),
    *("indptr", "indices", "edge_ids", "edge_weights"),
)


def content(result: Any) -> Any:
    """All that a result has: its class, and its arrays with their dtypes and shapes."""
    if isinstance(result, pgs.Array):
        return result.dtype, result.shape, result.tolist()
    if isinstance(result, Mapping):
        return [(key, content(value)) for key, value in result.items()]
    if isinstance(result, (list, tuple)):
        return [content(each) for each in result]
    if result is None or isinstance(result, (int, str)):
        return result
    found: dict[str, Any] = {"class": type(result).__name__}
    for name in _NAMES:
        try:
            found[name] = content(getattr(result, name))
        except (AttributeError, TypeError, ValueError):
            # Walks without edges raise a ValueError; some visits are in torch's tensors alone.
            found[name] = "none"
    return found
