"""The CSC of DGL's graphs, taken once for as long as a graph lives."""

from __future__ import annotations

import weakref
from typing import Any

import dgl
import torch

from pygsampler._check import describe
from pygsampler.graph import Graph

__all__ = ["graph_of"]

_graphs: dict[int, tuple[weakref.ref[Any], Graph]] = {}
"""By the id of DGL's graph index. No lock: two threads that meet here build equal graphs, and a
lock that is held while another thread forks would never be released in the child."""


def graph_of(g: Any) -> Graph:
    """The in-edges of the DGLGraph ``g``, whose arrays are shared and not copied.

    DGL never changes a graph index in place: whatever alters edges, vertices, id type, device or
    formats (``add_edges``, ``remove_nodes``, ``g.int()``, ``g.to``, ``g.formats``, ...) makes a new
    one, also where the DGLGraph object stays. So the index object is the graph's identity, and
    graphs that share it (``local_var``, ``clone``) share the result. It is forgotten with it.

    A graph whose formats exclude CSC is sorted into a CSC of our own, with the edge ids of ``g``.

    Raises ``TypeError`` for anything but a DGLGraph, ``NotImplementedError`` for heterographs,
    blocks and graphs on another device.
    """
    if not isinstance(g, dgl.DGLGraph):
        raise TypeError(f"g: expected a dgl.DGLGraph, got {describe(g)}")
    index = g._graph
    known = _graphs.get(id(index))
    if known is not None and known[0]() is index:
        return known[1]
    graph = _take(g)
    key = id(index)
    _graphs[key] = (weakref.ref(index, lambda _: _forget(key)), graph)
    return graph


def _forget(key: int, graphs: dict[int, tuple[weakref.ref[Any], Graph]] = _graphs) -> None:
    # The default argument outlives the module's globals, which are cleared before DGL's graphs
    # at the end of the interpreter.
    graphs.pop(key, None)


def _take(g: Any) -> Graph:
    if len(g.ntypes) != 1 or len(g.etypes) != 1:
        raise NotImplementedError(
            f"g: expected a homogeneous graph, got {len(g.ntypes)} node types and "
            f"{len(g.etypes)} edge types; dgl.to_homogeneous(g) makes one of a heterograph"
        )
    if g.device.type != "cpu":
        raise NotImplementedError(f"g: expected a graph on the CPU, got one on {g.device}")
    formats = g.formats()
    if "csc" not in formats["created"] + formats["not created"]:
        # Not ordered by id, which not every format can do.
        u, v, eid = g.edges(form="all", order=None)
        src, dst = torch.empty_like(u), torch.empty_like(v)
        src[eid.long()], dst[eid.long()] = u, v
        return Graph.from_coo(src, dst, num_nodes=g.num_nodes())
    indptr, indices, edge_ids = g.adj_tensors("csc")
    # DGL says "the edge ids are 0, 1, 2, ..." with an empty array.
    consecutive = len(edge_ids) != len(indices)
    return Graph.from_csc(
        indptr, indices, edge_ids=None if consecutive else edge_ids, num_nodes=g.num_nodes()
    )
