"""Conversion of DGL's graphs, cached as long as these live.

The results are homogeneous graphs on DGL's CSC, graphs of several edge types, and graphs with
weights or masks.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import dgl
import torch
from dgl.distributed import DistGraph

from pygsampler._arrays import devices
from pygsampler._arrays.array import as_array
from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph
from pygsampler.dgl.homogeneous import TYPES, HomogeneousIds, endpoints
from pygsampler.dgl.sort_check import UnsortedWitness, find_unsorted

__all__ = [
    "EdgePlaces",
    "check_graph",
    "check_place",
    "edge_places",
    "graph_of",
    "joint_of",
    "walk_graph",
    "weighted_graph",
]


class EdgePlaces(NamedTuple):
    """A graph on a GPU whose edge ids are places in the CSC, and what DGL calls those edges."""

    graph: Graph
    edge_ids: torch.Tensor
    """DGL's id of the edge at each place, shape [num_edges]."""
    place: torch.Tensor
    """The place of the edge with each id, shape [num_edges]."""

    def places_of(self, edges: torch.Tensor) -> torch.Tensor:
        """The places of the edges with these ids, int64 and on the CPU as the ids are."""
        return self.place[edges.to(self.place.device)].cpu().long()


class _WeightedGraph(NamedTuple):
    """Arrays computed from weights, or from a mask, in the state of one time."""

    arrays: tuple[weakref.ref[Any], ...]
    state: tuple[Any, ...]
    # The graph of those edges on the CPU, and those that draw by it, by device and kind of memory.
    host: Graph
    placed: dict[tuple[str, bool], Graph]


class _CachedGraph:
    """Arrays computed from a graph of DGL, or from some of its edge types, at their first use."""

    __slots__ = (
        "__weakref__",
        "descent",
        "drawn",
        "host",
        "index",
        "joint",
        "own",
        "pinned",
        "places",
    )

    def __init__(
        self, index: weakref.ref[Any], graph: Graph, descent: UnsortedWitness | None = None
    ) -> None:
        self.index = index
        self.own = graph
        # The detector of sorted rows, for a graph that shares DGL's arrays.
        self.descent = descent
        # The ids of edge types that were joined into one.
        self.joint: HomogeneousIds | None = None
        # By the name of the GPU that reads it.
        self.pinned: dict[str, Graph] = {}
        self.places: EdgePlaces | None = None
        self.host: Graph | None = None
        # By what draws ("prob", "mask", "walk"), the name, and the ids of the tensors: DGLGraphs
        # that share an index may have others under one name.
        self.drawn: dict[tuple[Any, ...], _WeightedGraph] = {}

    def fits(self, index: Any) -> bool:
        """True if this is of that index, as its rows are now."""
        return self.index() is index and not (self.descent is not None and self.descent.is_sorted)

    def on_host(self) -> Graph:
        """The graph on the CPU."""
        if self.host is None:
            self.host = self.own.to("cpu")
        return self.host


_graphs: dict[tuple[int, tuple[int, ...]], _CachedGraph] = {}
"""By the id of DGL's graph index, and the edge types that were joined. No lock: two threads that
meet here build equal graphs, and a lock that is held while another thread forks would never be
released in the child."""


def graph_of(g: Any, device: torch.device, types: Sequence[int] = ()) -> Graph:
    """Returns the in-edges of the DGLGraph ``g`` for seeds on ``device``, without a copy.

    With ``types``, ids of edge types in ascending order, it is a graph of these types, as ``Joint``
    has them; without them ``g`` has one node type and one edge type.

    The device of the seeds samples, as in DGL: the CPU or the GPU that ``g`` is on, or, for a ``g``
    in page-locked host memory (``use_uva=True`` of DGL's loader, ``g.pin_memory_()``), any GPU.

    Whatever alters edges, nodes, id type, device or formats (``add_edges``, ``remove_nodes``,
    ``g.int()``, ``g.to``, ``g.formats``, ...) makes a new graph index, also where the DGLGraph
    object stays. So the index object is the graph's identity, and graphs that share it
    (``local_var``, ``clone``) share the result. It is forgotten with it. Two things are done in
    place, and asked for anew each time: pinning, and the sorting of rows (``UnsortedWitness``).

    A graph whose formats exclude CSC is sorted into a CSC of our own, with the edge ids of ``g``.

    Raises ``TypeError`` for anything but a DGLGraph, ``NotImplementedError`` for heterographs and
    blocks, ``ValueError`` for seeds where ``g`` can't be sampled.
    """
    taken = _cached_graph(g, tuple(types))
    own, name = taken.own, str(device)
    if own.device == name:
        return own
    check_place(g, own.device, device, "seed_nodes")
    pinned = taken.pinned.get(name)
    if pinned is None:
        pinned = taken.pinned[name] = own.pin(name)
    return pinned


def check_place(g: Any, place: str, device: torch.device, where: str) -> None:
    """Raises ValueError for seeds ``where`` on a device that cannot sample ``g`` on ``place``."""
    if str(device) == place:
        return
    if place != "cpu" or device.type != "cuda":
        raise ValueError(f"{where}: expected ids on {place}, where g is, got {device}")
    if not g.is_pinned():
        raise ValueError(
            f"{where}: expected ids on the CPU, where g is, got {device}; a GPU samples a graph in "
            "host memory with use_uva=True of DGL's DataLoader, or after g.pin_memory_()"
        )


def joint_of(g: Any, types: Sequence[int]) -> HomogeneousIds:
    """Returns the places of the ids of these types in the graph that ``graph_of`` makes."""
    joint = _cached_graph(g, tuple(types)).joint
    assert joint is not None
    return joint


_turned: dict[int, tuple[weakref.ref[Any], Any]] = {}
"""By the id of DGL's graph index that of the reversed graph, which is kept as long."""


def reverse(g: Any) -> Any:
    """Returns ``g`` with each edge reversed; ids and data are those of ``g``.

    Edges of a type (source, relation, destination) become edges of (destination, relation, source).
    DGL reverses the formats that it has of the graph, and copies nothing.
    """
    index = g._graph
    known = _turned.get(id(index))
    if known is None or known[0]() is not index:
        key, turned_graphs = id(index), _turned
        end = weakref.ref(index, lambda _: _forget(key, turned_graphs))
        known = _turned[key] = end, index.reverse()
    # A DGLGraph keeps the types of edges that its index has when it is made.
    return dgl.DGLGraph(known[1], g.ntypes, g.etypes, g._node_frames, g._edge_frames)


def edge_places(g: Any, graph: Graph) -> EdgePlaces | None:
    """Returns the table to exclude edges of ``g`` in ``graph``, a result of ``graph_of``.

    None where ``graph`` knows the ids of DGL: on the host, or pinned there, it does. For a CSC that
    DGL has on a GPU, the table that converts ids to places is built at first use.
    """
    taken = _cached_graph(g)
    if graph is not taken.own or graph.device == "cpu" or graph.edge_ids is None:
        return None
    if not _has_csc(g):
        return None
    if taken.places is None:
        taken.places = _make_places(g)
    return taken.places


def weighted_graph(g: Any, graph: Graph, kind: str, name: str) -> Graph:
    """Returns ``graph_of`` ``g``, which is ``graph``, with the array of ``"prob"`` or ``"mask"``.

    The array is ``g.edata[name]``, on any device. Tables are computed from it on the CPU, and anew
    if it is another tensor, or was written to, which torch's version counter shows. They are
    forgotten with the tensor. They are a separate graph, which knows the ids of DGL.

    Raises ``ValueError`` for an array that ``g`` does not have, for an array without one value for
    each edge and for values that are no weights; ``TypeError`` for other dtypes.
    """
    if name not in g.edata:
        _refuse(kind, name, g.edata)
    taken, array = _cached_graph(g), g.edata[name]

    def make(host: Graph) -> Graph:
        where = f"g.edata[{name!r}]"
        relation: Any = host._relation
        return Graph._wrap(relation._drawing(kind, where, as_array(array, where)))

    drawn = _current(taken, (kind, name), [array], make)
    place = graph.device, graph.pinned
    placed = drawn.placed.get(place)
    if placed is None:
        there = _put(drawn.host, graph)
        placed = graph.with_data()
        placed._source._derived[kind, name] = there._relation
        drawn.placed[place] = placed
    return placed


def graph_with_arrays(
    g: Any, graph: Graph, edges: Sequence[str], nodes: Sequence[str], row_names: Sequence[str]
) -> Graph:
    """Returns ``graph_of`` ``g``, which is ``graph``, with the arrays that a program reads.

    They are the arrays of these names in ``g.edata`` and ``g.ndata``, of one value per row unless
    they are among ``row_names``, and are read anew if one is another tensor or was written to.

    Raises ``ValueError`` for an array that ``g`` does not have, ``NotImplementedError`` on a GPU.
    """
    if graph.device != "cpu":
        raise NotImplementedError(
            f"a program that reads arrays: expected a graph on the CPU, got one on {graph.device}"
        )
    parts = [("edata", name, g.edata) for name in edges]
    parts += [("ndata", name, g.ndata) for name in nodes]
    for where, name, data in parts:
        if name not in data:
            have = ", ".join(map(repr, data)) or "none"
            raise ValueError(f"{where}: expected one of g.{where} ({have}), got {name!r}")

    def make(host: Graph) -> Graph:
        found: dict[str, dict[str, torch.Tensor]] = {"edata": {}, "ndata": {}}
        for where, name, data in parts:
            values = data[name].detach().cpu()
            if where == "edata" or name not in row_names:
                values = values.reshape(len(values))
            found[where][name] = values.contiguous()
        return host.with_data(found["edata"], found["ndata"])

    about = ("reads", *edges, "", *nodes)
    return _current(_cached_graph(g), about, [data[name] for _, name, data in parts], make).host


def walk_graph(
    g: Any, device: torch.device, name: str | None, types: Sequence[int] = (), second: bool = False
) -> Graph:
    """Returns a graph for walks along the out-edges of ``g`` from seeds on ``device``.

    It is the result of ``graph_of`` if ``name`` is None. Else walks with ``prob=name`` draw by
    ``g.edata[name]``, or with ``types`` by ``g.edges[etype].data[name]``, where edges of types
    without it are equal. Tables are built as by ``drawn_of``; tables that do not depend on the
    weights are built once. ``second`` is for walks that look back.

    Raises as ``graph_of`` and ``drawn_of`` do.
    """
    graph = graph_of(g, device, types)
    if name is None:
        return graph
    found = [g.edges[g.canonical_etypes[t]].data for t in types] or [g.edata]
    arrays = [data[name] for data in found if name in data]
    if not arrays:
        _refuse("prob", name, dict.fromkeys(each for data in found for each in data))
    kinds = TYPES if len(types) > 1 else None

    def make(host: Graph) -> Graph:
        rows = host._source._walked("out", types=kinds)
        graph = host.with_data()
        made = graph._source
        form = made._form(rows._open(), rows._kinds, rows._file)
        where = f"edata[{name!r}]"
        try:
            values = as_array(_values(g, name, types, found), where)
            form._derived["prob", name] = form._drawing("prob", where, values)
        except ValueError:
            _refuse_weights(g, name, types)
            raise
        made._derived["out", kinds, 0] = form
        return graph

    taken = _cached_graph(g, tuple(types))
    drawn = _current(taken, ("walk", name), arrays, make)
    derived = drawn.host._source._derived
    if second and ("second", "out", None, None, 0) not in derived:
        back = taken.on_host()._source._walked("out", second=True)
        derived["second", "out", None, None, 0] = back
    place = graph.device, graph.pinned
    placed = drawn.placed.get(place)
    if placed is None:
        placed = drawn.placed[place] = _put(drawn.host, graph)
    return placed


def _values(g: Any, name: str, types: Sequence[int], data_by_type: list[Any]) -> Any:
    """The weights of all edges, in the order of their ids."""
    if not types:
        return data_by_type[0][name]
    sizes = [g.num_edges(g.canonical_etypes[t]) for t in types]
    return torch.cat(
        [
            data[name].detach().cpu() if name in data else torch.ones(size)
            for data, size in zip(data_by_type, sizes, strict=True)
        ]
    )


def _refuse(kind: str, name: str, arrays: Any) -> None:
    have = ", ".join(map(repr, arrays)) or "none"
    raise ValueError(
        f"{kind}: expected the name of an array in g.edata ({have}), got {name!r}; "
        f"{kind}=None samples uniformly"
    )


def _refuse_weights(g: Any, name: str, types: Sequence[int]) -> None:
    """Raises ValueError for the first invalid weight of several types, by its type and id."""
    for etype in (g.canonical_etypes[t] for t in types):
        data = g.edges[etype].data
        wrong = ~((data[name] >= 0) & data[name].isfinite()) if name in data else torch.empty(0)
        if wrong.any():
            edge = int(wrong.nonzero()[0])
            raise ValueError(
                f"g.edges[{etype!r}].data[{name!r}][{edge}]: expected a finite weight >= 0, "
                f"got {data[name][edge].item()}"
            )


def _current(
    cached: _CachedGraph,
    key_parts: tuple[str, ...],
    arrays: list[Any],
    make: Callable[[Graph], Graph],
) -> _WeightedGraph:
    """Returns the cached result for these arrays, computed anew if one of them was written to."""
    key, state = (*key_parts, *map(id, arrays)), tuple(map(_state, arrays))
    drawn = cached.drawn.get(key)
    if drawn is None or drawn.state != state or not _are(drawn.arrays, arrays):
        forget = partial(_forget_weighted, weakref.ref(cached), key)
        kept = tuple(weakref.ref(array, forget) for array in arrays)
        drawn = cached.drawn[key] = _WeightedGraph(kept, state, make(cached.on_host()), {})
    return drawn


def _are(references: tuple[weakref.ref[Any], ...], arrays: list[Any]) -> bool:
    return all(ref() is array for ref, array in zip(references, arrays, strict=True))


def _put(host: Graph, graph: Graph) -> Graph:
    """``host``, or on a device one of it, where ``graph`` is."""
    if graph.device == "cpu":
        return host
    return Graph._later(host, devices.parse(graph.device), graph.pinned)


def _state(array: Any) -> tuple[Any, ...]:
    """Returns a state that differs where ``array`` has been written to, or has other memory."""
    # Torch does not count what is written to tensors of its inference mode.
    counted = isinstance(array, torch.Tensor) and not array.is_inference()
    return (array._version, array.data_ptr()) if counted else ()


def _forget_weighted(cached: weakref.ref[_CachedGraph], key: tuple[Any, ...], array: Any) -> None:
    known = cached()
    if known is not None:
        drawn = known.drawn.get(key)
        # A tensor that came after it may have its id.
        if drawn is not None and any(ref is array for ref in drawn.arrays):
            del known.drawn[key]


def _make_places(g: Any) -> EdgePlaces:
    indptr, indices, edge_ids = g.adj_tensors("csc")
    place = torch.empty_like(edge_ids)
    place[edge_ids.long()] = torch.arange(
        len(edge_ids), dtype=edge_ids.dtype, device=edge_ids.device
    )
    graph = Graph.from_csc(indptr, indices, num_nodes=g.num_nodes())
    return EdgePlaces(graph, edge_ids, place)


def check_graph(g: Any, name: str = "g") -> None:
    """Raises TypeError for what is no DGLGraph; of a DistGraph it says who samples it."""
    if isinstance(g, DistGraph):
        raise TypeError(
            f"{name}: expected a dgl.DGLGraph, got a DistGraph, whose edges are in other processes;"
            " pygsampler.dgl.NeighborSampler has DGL's own sampling for it, and DGL's classes and "
            "functions take it"
        )
    if not isinstance(g, dgl.DGLGraph):
        raise TypeError(f"{name}: expected a dgl.DGLGraph, got {describe(g)}")


def _cached_graph(g: Any, types: tuple[int, ...] = ()) -> _CachedGraph:
    check_graph(g)
    index = g._graph
    key = id(index), types
    known = _graphs.get(key)
    if known is not None and known.fits(index):
        return known
    end = weakref.ref(index, lambda _: _forget(key))
    if types:
        # A copy, by the ids of edges.
        joint = HomogeneousIds(g, types)
        known = _CachedGraph(end, joint.graph_of(g).to(str(g.device)))
        known.joint = joint
    else:
        known = _CachedGraph(end, *_take(g))
    _graphs[key] = known
    return known


def _forget(key: Any, graphs: dict[Any, Any] = _graphs) -> None:
    # The default argument outlives the module's globals, which are cleared before DGL's graphs
    # at the end of the interpreter.
    graphs.pop(key, None)


def _take(g: Any) -> tuple[Graph, UnsortedWitness | None]:
    if len(g.ntypes) != 1 or len(g.etypes) != 1:
        raise NotImplementedError(
            f"g: expected a homogeneous graph, got {len(g.ntypes)} node types and "
            f"{len(g.etypes)} edge types; dgl.to_homogeneous(g) makes one of a heterograph"
        )
    try:
        indptr, indices, edge_ids = g.adj_tensors("csc")
    except dgl.DGLError:
        # The question costs more than half of the answer, so it is asked afterwards.
        if _has_csc(g):
            raise
        src, dst = endpoints(g)
        graph = Graph.from_coo(src.cpu(), dst.cpu(), num_nodes=g.num_nodes())
        return graph.to(str(g.device)), None
    # DGL says "the edge ids are 0, 1, 2, ..." with an empty array.
    consecutive = len(edge_ids) != len(indices)
    graph = Graph.from_csc(
        indptr, indices, edge_ids=None if consecutive else edge_ids, num_nodes=g.num_nodes()
    )
    return graph, find_unsorted(indptr, indices)


def _has_csc(g: Any) -> bool:
    formats = g.formats()
    return "csc" in formats["created"] + formats["not created"]
