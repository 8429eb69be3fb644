"""The CSC of DGL's graphs, and what rows draw by, taken once for as long as they live."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any, NamedTuple

import dgl
import torch

from pygsampler._arrays import devices
from pygsampler._core.checks import describe
from pygsampler.array import as_array
from pygsampler.graph import Graph

__all__ = ["Places", "drawn_of", "graph_of", "places_of"]


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


class _Drawn(NamedTuple):
    """What was made of weights, or of a mask, as they were at one time."""

    array: weakref.ref[Any]
    state: tuple[Any, ...]
    # The graph of those edges on the CPU, and those that draw by it, by device and kind of memory.
    host: Graph
    placed: dict[tuple[str, bool], Graph]


class _Taken:
    """What was made of one graph of DGL's, each part when it was first asked for."""

    __slots__ = ("__weakref__", "drawn", "host", "index", "own", "pinned", "places")

    def __init__(self, index: weakref.ref[Any], own: Graph) -> None:
        self.index = index
        self.own = own
        # By the name of the GPU that reads it.
        self.pinned: dict[str, Graph] = {}
        self.places: Places | None = None
        self.host: Graph | None = None
        # By "prob" or "mask", the name, and the id of the tensor: DGLGraphs that share an index
        # may have others under one name.
        self.drawn: dict[tuple[str, str, int], _Drawn] = {}


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


def drawn_of(g: Any, graph: Graph, kind: str, name: str) -> Graph:
    """``graph``, made of ``g`` by ``graph_of``, with what ``"prob"`` or ``"mask"`` draws by.

    That is ``g.edata[name]``, which may be anywhere. Tables are made of it on the CPU, and anew
    where it is another tensor, or was written to: its version says so, as torch counts it. They
    are forgotten with the tensor. They are a graph of their own, which knows the ids of DGL.

    Raises ``ValueError`` for an array that ``g`` does not have, for one without one value for each
    edge and for values that are no weights; ``TypeError`` for other dtypes.
    """
    if name not in g.edata:
        have = ", ".join(map(repr, g.edata)) or "none"
        raise ValueError(
            f"{kind}: expected the name of an array in g.edata ({have}), got {name!r}; "
            f"{kind}=None samples uniformly"
        )
    taken, array = _taken(g), g.edata[name]
    key, state = (kind, name, id(array)), _state(array)
    drawn = taken.drawn.get(key)
    if drawn is None or drawn.array() is not array or drawn.state != state:
        if taken.host is None:
            taken.host = taken.own.to("cpu")
        where = f"g.edata[{name!r}]"
        found = taken.host._drawing(kind, where, as_array(array, where))
        forget = partial(_forget_drawn, weakref.ref(taken), key)
        drawn = taken.drawn[key] = _Drawn(weakref.ref(array, forget), state, found, {})
    place = graph.device, graph.pinned
    placed = drawn.placed.get(place)
    if placed is None:
        there = drawn.host
        if graph.device != "cpu":
            there = Graph._later(there, devices.parse(graph.device), graph.pinned)
        placed = graph.with_data()
        placed._derived[kind, name] = there
        drawn.placed[place] = placed
    return placed


def _state(array: Any) -> tuple[Any, ...]:
    """What is another where ``array`` has been written to, or has other memory."""
    # Torch does not count what is written to tensors of its inference mode.
    counted = isinstance(array, torch.Tensor) and not array.is_inference()
    return (array._version, array.data_ptr()) if counted else ()


def _forget_drawn(taken: weakref.ref[_Taken], key: tuple[str, str, int], array: Any) -> None:
    known = taken()
    if known is not None:
        drawn = known.drawn.get(key)
        # A tensor that came after it may have its id.
        if drawn is not None and drawn.array is array:
            del known.drawn[key]


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
