"""The CSC of DGL's graphs, taken once for as long as a graph lives."""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import dgl
import torch

from pygsampler._core.checks import describe
from pygsampler.graph import Graph

__all__ = ["Places", "graph_of", "places_of"]


class Places(NamedTuple):
    """A graph on a GPU whose edge ids are places in the CSC, and what DGL calls those edges."""

    graph: Graph
    edge_ids: torch.Tensor
    """DGL's id of the edge at each place, shape [num_edges]."""
    place: torch.Tensor
    """The place of the edge with each id, shape [num_edges]."""

    def of(self, edges: torch.Tensor) -> torch.Tensor:
        """The places of the edges with these ids, int64 and on the CPU as the ids are."""
        return self.place[edges.to(self.place.device)].cpu().long()


class _Taken:
    """What was made of one graph of DGL's, each part when it was first asked for."""

    __slots__ = ("index", "own", "pinned", "places")

    def __init__(self, index: weakref.ref[Any], own: Graph) -> None:
        self.index = index
        self.own = own
        # By the name of the GPU that reads it.
        self.pinned: dict[str, Graph] = {}
        self.places: Places | None = None


_graphs: dict[int, _Taken] = {}
"""By the id of DGL's graph index. No lock: two threads that meet here build equal graphs, and a
lock that is held while another thread forks would never be released in the child."""


def graph_of(g: Any, device: torch.device) -> Graph:
    """The in-edges of the DGLGraph ``g`` for seeds on ``device``; arrays are shared, not copied.

    Where the seeds are says who samples, as in DGL: the CPU or the GPU that ``g`` is on, or, for
    a ``g`` in page-locked host memory (``use_uva=True`` of DGL's loader, ``g.pin_memory_()``),
    any GPU.

    DGL never changes a graph index in place: whatever alters edges, vertices, id type, device or
    formats (``add_edges``, ``remove_nodes``, ``g.int()``, ``g.to``, ``g.formats``, ...) makes a new
    one, also where the DGLGraph object stays. So the index object is the graph's identity, and
    graphs that share it (``local_var``, ``clone``) share the result. It is forgotten with it.
    Pinning alone is done in place, so that is asked for anew each time.

    A graph whose formats exclude CSC is sorted into a CSC of our own, with the edge ids of ``g``.

    Raises ``TypeError`` for anything but a DGLGraph, ``NotImplementedError`` for heterographs and
    blocks, ``ValueError`` for seeds where ``g`` can't be sampled.
    """
    taken = _taken(g)
    own, name = taken.own, str(device)
    if own.device == name:
        return own
    if own.device != "cpu" or device.type != "cuda":
        raise ValueError(f"seed_nodes: expected ids on {own.device}, where g is, got {name}")
    if not g.is_pinned():
        raise ValueError(
            f"seed_nodes: expected ids on the CPU, where g is, got {name}; a GPU samples a graph "
            f"in host memory with use_uva=True of DGL's DataLoader, or after g.pin_memory_()"
        )
    pinned = taken.pinned.get(name)
    if pinned is None:
        pinned = taken.pinned[name] = own.pin(name)
    return pinned


def places_of(g: Any, graph: Graph) -> Places | None:
    """How to exclude edges of ``g`` in ``graph``, which was made of it by ``graph_of``.

    None where ``graph`` knows the ids of DGL: on the host, or pinned there, it does. For a CSC
    that DGL has on a GPU, the table that turns ids into places is made at first use.
    """
    taken = _taken(g)
    if graph is not taken.own or graph.device == "cpu" or graph.edge_ids is None:
        return None
    if not _has_csc(g):
        return None
    if taken.places is None:
        taken.places = _make_places(g)
    return taken.places


def _make_places(g: Any) -> Places:
    indptr, indices, edge_ids = g.adj_tensors("csc")
    place = torch.empty_like(edge_ids)
    place[edge_ids.long()] = torch.arange(
        len(edge_ids), dtype=edge_ids.dtype, device=edge_ids.device
    )
    graph = Graph.from_csc(indptr, indices, num_nodes=g.num_nodes())
    return Places(graph, edge_ids, place)


def _taken(g: Any) -> _Taken:
    if not isinstance(g, dgl.DGLGraph):
        raise TypeError(f"g: expected a dgl.DGLGraph, got {describe(g)}")
    index = g._graph
    known = _graphs.get(id(index))
    if known is not None and known.index() is index:
        return known
    own = _take(g)
    key = id(index)
    known = _graphs[key] = _Taken(weakref.ref(index, lambda _: _forget(key)), own)
    return known


def _forget(key: int, graphs: dict[int, _Taken] = _graphs) -> None:
    # The default argument outlives the module's globals, which are cleared before DGL's graphs
    # at the end of the interpreter.
    graphs.pop(key, None)


def _take(g: Any) -> Graph:
    if len(g.ntypes) != 1 or len(g.etypes) != 1:
        raise NotImplementedError(
            f"g: expected a homogeneous graph, got {len(g.ntypes)} node types and "
            f"{len(g.etypes)} edge types; dgl.to_homogeneous(g) makes one of a heterograph"
        )
    if not _has_csc(g):
        # Not ordered by id, which not every format can do.
        u, v, eid = g.edges(form="all", order=None)
        src, dst = torch.empty_like(u), torch.empty_like(v)
        src[eid.long()], dst[eid.long()] = u, v
        graph = Graph.from_coo(src.cpu(), dst.cpu(), num_nodes=g.num_nodes())
        return graph.to(str(g.device))
    indptr, indices, edge_ids = g.adj_tensors("csc")
    # DGL says "the edge ids are 0, 1, 2, ..." with an empty array.
    consecutive = len(edge_ids) != len(indices)
    return Graph.from_csc(
        indptr, indices, edge_ids=None if consecutive else edge_ids, num_nodes=g.num_nodes()
    )


def _has_csc(g: Any) -> bool:
    formats = g.formats()
    return "csc" in formats["created"] + formats["not created"]
