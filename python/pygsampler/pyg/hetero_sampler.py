"""``HeteroPGSampler``: heterogeneous data behind PyG's ``BaseSampler``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.data import HeteroData
from torch_geometric.sampler import (
    EdgeSamplerInput,
    HeteroSamplerOutput,
    NodeSamplerInput,
    NumNeighbors,
)
from torch_geometric.sampler.base import SubgraphType
from torch_geometric.typing import DEFAULT_REL

from pygsampler._batch.induced_edges import edge_rows, induced_edges
from pygsampler._engine.checks import describe
from pygsampler._graph.converters import csr_arrays
from pygsampler._graph.graph import Graph, HeteroGraph, is_heterogeneous
from pygsampler._graph.schema import edge_type_of
from pygsampler.pyg import options
from pygsampler.pyg.base_sampler import NodeRequest, Sampler, bits
from pygsampler.pyg.comparison import mirrored
from pygsampler.pyg.graph import with_edge_index
from pygsampler.pyg.hetero_output import hetero_output
from pygsampler.pyg.hetero_stores import graph_of_stores, is_hetero
from pygsampler.pyg.neighbor_sampler import PGSampler
from pygsampler.pyg.stores import FeatureStore, GraphStore

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType

__all__ = ["HeteroPGSampler", "HeteroProgramSampler", "HeteroRequests"]


class HeteroRequests(Sampler):
    """The graph and the requests of samplers of heterogeneous graphs."""

    # The names of times and weights, and True if times are negated.
    _names: Callable[[], tuple[str | None, str | None]]
    _mirrored: bool
    # True if batches of a graph with one type of nodes are numbered with its name.
    _names_only_type = False

    def _graph_of(self, data: Any, device: Any, is_sorted: bool, backward: bool) -> Graph:
        """Returns the in-edges of ``data``; ``backward`` each type is (dst, relation, src)."""
        if not is_hetero(data):
            raise TypeError(
                f"data: expected a HeteroData, or stores with edge types, got {describe(data)}"
            )
        times, weights = self._names()
        about = self._sampler.array_names, self._sampler._row_names
        graph, place = _graph(data, weights, backward, times, *about)
        if self._mirrored:
            graph = mirrored(graph, str(times))
        return graph.to(place if device is None else str(torch.device(device)))

    def _request(self, index: NodeSamplerInput, more: dict[str, Any]) -> NodeRequest:
        inputs = NodeSamplerInput.cast(index)
        self._check_call(inputs.time, "input_time", more)
        kind, types = inputs.input_type, self._graph.node_types
        if kind not in types:
            raise ValueError(f"input_type: expected one of {types}, got {describe(kind)}")
        seeds = options.ids(inputs.node, "input_nodes")
        options.check_range(seeds, "input_nodes", self._graph.num_nodes[kind])
        # Else the same ids of two types would be one batch.
        several = len(types) > 1 or self._names_only_type
        of_type = b"type " + kind.encode() if several else b""
        given = None if inputs.time is None else {kind: inputs.time}
        times = self._times_of({kind: seeds}, given, "input_time")
        named = (of_type, seeds[:0]) if several else None
        if times is not None:
            named = (of_type + b"times", bits(times[kind]))
        return NodeRequest(inputs, {kind: seeds}, times, (seeds, named))

    def _check_call(self, times: Any, where: str, more: dict[str, Any]) -> None:
        """Raises ValueError for times that nobody asks for, TypeError for unknown arguments."""
        if times is not None and not self._is_temporal:
            raise ValueError(f"{where}: expected None without time_attr, got {describe(times)}")
        if more:
            raise TypeError(f"sample: expected no more arguments, got {sorted(more)}")

    @property
    def num_edges(self) -> Mapping[EdgeType, int]:
        """Number of edges of each type."""
        counts = self._graph.num_edges
        return {self._turned(kind): counts[kind] for kind in self._relations}

    @property
    def _relations(self) -> tuple[EdgeType, ...]:
        """The types of edges that are sampled, without the one of data that has none."""
        return tuple(kind for kind in self._graph.edge_types if kind[1] != _NONE)

    def _link_ends(
        self, inputs: EdgeSamplerInput, more: dict[str, Any]
    ) -> tuple[torch.Tensor, torch.Tensor, bytes]:
        self._check_call(inputs.time, "edge_label_time", more)
        kind = inputs.input_type
        ends = (kind[0], kind[-1]) if isinstance(kind, tuple) else ()
        if not ends or not set(ends) <= set(self._graph.node_types):
            raise ValueError(
                f"input_type: expected a type of edges between {self._graph.node_types}, got "
                f"{describe(kind)}"
            )
        both = []
        for row, (ids, of) in enumerate(zip((inputs.row, inputs.col), ends, strict=True)):
            where = f"edge_label_index[{row}]"
            both.append(options.ids(ids, where))
            options.check_range(both[row], where, self.num_nodes[of])
        # Else the same ids of two types would be one batch.
        return both[0], both[1], b"links " + "__".join(map(str, kind)).encode()

    def _turned(self, kind: EdgeType) -> EdgeType:
        """An edge type of the graph that is sampled as the data has it, and the other way round."""
        return _reverse(kind) if self._sample_direction == "backward" else kind


class HeteroPGSampler(HeteroRequests, PGSampler):
    """The methods of a `PGSampler` of heterogeneous data."""

    def _node_time(self) -> dict[str, torch.Tensor] | None:
        name = self.time_attr
        if name is None:
            return None
        found = {
            kind: arrays[name].torch()
            for kind, arrays in self._graph.ndata.items()
            if name in arrays
        }
        return found or None

    def _times_of(self, seeds: Any, bounds: Any, where: str) -> Any:
        """The bounds of seeds, by default the times of the nodes that they are."""
        name = self.time_attr
        if name is None:
            return None
        options.no_induced(self.subgraph_type)
        if bounds is not None:
            kept = self._graph._source._time_sorted(name, None, self.weight_attr)
            return {
                of: self._in_data_direction(options.bounds(each, where, name, kept.float))
                for of, each in bounds.items()
            }
        known = self._node_time() or {}
        for kind in seeds:
            if kind not in known:
                raise ValueError(
                    f"{where}: expected times, since nodes of {kind!r} have no {self.time_attr!r}, "
                    "got None"
                )
        return {kind: known[kind][ids.long()] for kind, ids in seeds.items()}

    def _sample(self, seeds: Any, identity: tuple[int, int], times: Any = None) -> Any:
        """Returns the sampled subgraph; each type has its seeds once, or as the roots of trees."""
        self._check_factors()
        made = self._result(seeds, identity, times)
        hops = self._num_neighbors.num_hops
        schema = self._graph._schema
        return hetero_output(made, schema, next(iter(seeds)), self._relations, hops)

    def _finished(self, out: Any) -> Any:
        """The subgraph of the type that was asked for, with the data's types of edges."""
        # Hop by hop, in a hop row by row; so are all edges among the nodes.
        out.sort_order = "col"
        if self.subgraph_type == SubgraphType.induced:
            self._induce(out)
        if self._sample_direction == "backward":
            # Edges as they are in the data.
            out.sort_order = "row"
            turned = {_reverse(kind): ends for kind, ends in out.col.items()}
            out.col = {_reverse(kind): ends for kind, ends in out.row.items()}
            out.row = turned
            out.edge = {_reverse(kind): ids for kind, ids in out.edge.items()}
            factors = getattr(out, "edge_weights", None)
            if factors is not None:
                out.edge_weights = {_reverse(kind): each for kind, each in factors.items()}
            if out.num_sampled_edges is not None:
                numbers = out.num_sampled_edges.items()
                out.num_sampled_edges = {_reverse(kind): each for kind, each in numbers}
        if self.subgraph_type == SubgraphType.bidirectional:
            out = out.to_bidirectional(keep_orig_edges=self.keep_orig_edges)
            out.sort_order = None
        return out

    def _fanouts(self, num_neighbors: Any) -> tuple[NumNeighbors, list[Any]]:
        numbers, fanouts = _fanouts(num_neighbors, [*map(self._turned, self._relations)])
        return numbers, [
            {self._turned(kind): n for kind, n in hop.items()} if isinstance(hop, dict) else hop
            for hop in fanouts
        ]

    def _induce(self, out: HeteroSamplerOutput) -> None:
        """All edges among the nodes of ``out``, those that are never sampled apart."""
        drawn = self._edge_array()._open()
        subgraph_ids = out.batch or dict.fromkeys(out.node)
        for edge_type in self._relations:
            src, _, dst = edge_type
            found = induced_edges(
                drawn[edge_type],
                out.node[dst],
                subgraph_ids[dst],
                (out.node[src], subgraph_ids[src]),
            )
            out.row[edge_type], out.col[edge_type] = found.row, found.col
            out.edge[edge_type] = found.edge
        # None as in PyG: the edges of a hop are no subgraph of the induced ones.
        out.num_sampled_nodes = out.num_sampled_edges = None

    def __repr__(self) -> str:
        weights = f", weight_attr={self.weight_attr!r}" if self.weight_attr else ""
        values = self.num_neighbors.values
        if isinstance(values, dict):
            kinds = [*map(self._turned, self._relations)]
            values = {_edge_type(key, kinds): list(each) for key, each in values.items()}
        return (
            f"pygsampler.pyg.{type(self).__name__}({values}, replace={self.replace}, "
            f"subgraph_type={self.subgraph_type.value!r}, disjoint={self.disjoint}{weights})"
        )


class HeteroProgramSampler(HeteroRequests):
    """The methods of a `Sampler` of a program over relations of heterogeneous data."""

    _mirrored = False

    def _graph_of(self, data: Any, device: Any, is_sorted: bool, backward: bool) -> Graph:
        if backward:
            raise NotImplementedError(
                "sample_direction: expected 'forward' for a program over relations, whose matrices "
                "have the in-edges of their columns, got 'backward'"
            )
        program: Any = self._sampler
        if program._program.result_kind == "subgraph":
            raise NotImplementedError(
                "sampler: expected a program over relations that returns blocks, got one of a "
                "subgraph; batch.to_pyg() of pygsampler.torch.DataLoader makes a HeteroData of it"
            )
        if self.subgraph_type != SubgraphType.directional:
            raise NotImplementedError(
                f"subgraph_type: expected 'directional' for a program over relations, got "
                f"{describe(self.subgraph_type.value)}"
            )
        return super()._graph_of(data, device, is_sorted, backward)

    def _names(self) -> tuple[str | None, str | None]:
        return None, None

    def _times_of(self, seeds: Any, bounds: Any, where: str) -> Any:
        return None

    def _edge_array(self) -> Any:
        return self._graph

    def _sample(self, seeds: Any, identity: tuple[int, int], times: Any = None) -> Any:
        given = {kind: ids for kind, ids in seeds.items() if len(ids)}
        made = self._result(given or seeds, identity, times)
        hops = len(made.blocks)
        return hetero_output(made, self._graph._schema, next(iter(seeds)), self._relations, hops)

    def _finished(self, out: Any) -> Any:
        out.sort_order = None
        return out


Sampler._of_relations = HeteroProgramSampler
PGSampler._hetero = HeteroPGSampler


def _fanouts(num_neighbors: Any, edge_types: Sequence[Any]) -> tuple[NumNeighbors, list[Any]]:
    """``num_neighbors`` as PyG has it, and the core's fanouts, outermost hop first."""
    values = num_neighbors.values if isinstance(num_neighbors, NumNeighbors) else num_neighbors
    if not isinstance(values, Mapping):
        counts = options.num_neighbors(num_neighbors)
        return NumNeighbors(list(counts)), counts[::-1]
    if not edge_types and not values:
        return NumNeighbors({}), []
    default = num_neighbors.default if isinstance(num_neighbors, NumNeighbors) else None
    by_type: dict[Any, Any] = {}
    for key, counts in values.items():
        kind = _edge_type(key, edge_types)
        if kind in by_type:
            raise ValueError(f"num_neighbors: expected each edge type once, got {kind} twice")
        by_type[kind] = options.num_neighbors(counts, f"num_neighbors[{kind!r}]")
    named = NumNeighbors({kind: list(counts) for kind, counts in by_type.items()}, default)
    missing = [kind for kind in edge_types if kind not in by_type]
    if missing and default is None:
        raise ValueError(
            f"num_neighbors: expected a list for each edge type, or NumNeighbors(default=), got "
            f"none for {_listed(missing)}"
        )
    for kind in missing:
        by_type[kind] = options.num_neighbors(default, "num_neighbors.default")
    hops = {kind: len(counts) for kind, counts in by_type.items()}
    if len(set(hops.values())) > 1:
        raise ValueError(
            f"num_neighbors: the number of hops must be the same across all edge types, got {hops}"
        )
    number = next(iter(hops.values()))
    fanouts = [{kind: by_type[kind][hop] for kind in edge_types} for hop in range(number)]
    return named, fanouts[::-1]


def _edge_type(key: Any, edge_types: Sequence[Any]) -> Any:
    """The edge type of data that PyG, or a caller, names."""
    # PyG's own keys store the parts of their text: a split would break names with underscores.
    kind = getattr(key, "edge_type", key)
    ends = tuple(kind.split("__")) if isinstance(kind, str) else kind
    if isinstance(ends, tuple) and len(ends) == 2:
        # PyG's name of a relation that has none.
        whole = ends[0], DEFAULT_REL, ends[1]
        kind = whole if whole in edge_types or kind is ends else kind
    return edge_type_of(kind, edge_types, "num_neighbors", "data")


# The relation of data without types of edges, which has none: a graph has one at least.
_NONE = "without edges"


def _listed(kinds: Sequence[Any]) -> str:
    return ", ".join(map(repr, kinds))


def _reverse(kind: EdgeType) -> EdgeType:
    src, relation, dst = kind
    return dst, relation, src


def _graph(
    data: Any,
    weight_attr: str | None,
    backward: bool = False,
    time_attr: str | None = None,
    reads: tuple[Sequence[str], Sequence[str]] = ((), ()),
    row_names: Sequence[str] = (),
) -> tuple[Graph, str]:
    """Returns the in-edges of ``data`` and their device; an edge's id is its ``edge_index`` column.

    ``reads`` names attributes of edges and of nodes, for the types that have them; attributes in
    ``row_names`` have a row for each node. With ``backward`` the edges and their types are
    reversed.
    """
    if is_heterogeneous(data):
        data = FeatureStore(), GraphStore(data)
    if not isinstance(data, HeteroData):
        stored = graph_of_stores(data, weight_attr, backward, time_attr)
        return stored, stored.device
    data = with_edge_index(data)
    nodes: dict[str, int] = {}
    for kind in data.node_types:
        count = data[kind].num_nodes
        if count is None:
            raise ValueError(f"data[{kind!r}]: expected num_nodes, or a tensor of its nodes")
        nodes[kind] = int(count)
    edges: dict[Any, Any] = {}
    arrays: dict[Any, dict[str, torch.Tensor]] = {}
    of_nodes: dict[Any, dict[str, torch.Tensor]] = {}
    if time_attr is not None:
        for kind, count in nodes.items():
            if time_attr in data[kind]:
                values = _values("time_attr", data[kind][time_attr], count, f"data[{kind!r}]")
                of_nodes[kind] = {time_attr: values}
    for kind, count in nodes.items():
        found = {
            name: _values("ndata", data[kind][name], count, f"data[{kind!r}]", name in row_names)
            for name in reads[1]
            if name in data[kind]
        }
        if found:
            of_nodes[kind] = found
    known: dict[str, None] = {}
    places: dict[str, None] = {}
    for kind in map(tuple, data.edge_types):
        where, store = f"data[{kind!r}]", data[kind]
        index = _edge_index(store)
        if not isinstance(index, torch.Tensor) or index.dim() != 2 or index.shape[0] != 2:
            got = tuple(index.shape) if isinstance(index, torch.Tensor) else list(store.keys())
            raise ValueError(
                f"{where}: expected edge_index of shape (2, E), or an adj_t of torch.sparse or "
                f"torch-sparse, got {got}"
            )
        if hasattr(index, "as_tensor"):
            index = index.as_tensor()
        places[str(index.device)] = None
        index = index.cpu()
        for row, end in enumerate((kind[0], kind[2])):
            if end not in nodes:
                raise ValueError(f"{where}: expected types of nodes of data, got {end!r}")
            options.check_range(index[row], f"{where}.edge_index[{row}]", nodes[end])
        known.update(dict.fromkeys(key for key in store.keys() if key != "edge_index"))  # noqa: SIM118
        as_sampled = _reverse(kind) if backward else kind
        ends = index.flip(0) if backward else index
        edges[as_sampled] = _csc(ends, nodes[as_sampled[0]], nodes[as_sampled[2]])
        arrays[as_sampled] = {
            name: _values(what, store[name], index.shape[1], where)
            for what, name in (
                ("weight_attr", weight_attr),
                ("time_attr", time_attr),
                *(("edata", name) for name in reads[0]),
            )
            if name is not None and name in store
        }
    if not edges:
        if not nodes:
            raise ValueError("data: expected a HeteroData with types of nodes, got one without")
        first = next(iter(nodes))
        none = torch.zeros(nodes[first] + 1, dtype=torch.int64), torch.empty(0, dtype=torch.int64)
        edges, places = {(first, _NONE, first): none}, {"cpu": None}
    timed_edges = any(time_attr in of for of in arrays.values())
    if time_attr is not None and bool(of_nodes) == timed_edges:
        both = ", which is that of both" if timed_edges else ""
        raise ValueError(
            "time_attr: expected the name of an attribute of nodes or edges of some type of data, "
            f"got {time_attr!r}{both}"
        )
    if weight_attr is not None and not any(weight_attr in of for of in arrays.values()):
        have = ", ".join(map(repr, known)) or "none"
        raise ValueError(
            f"weight_attr: expected the name of an attribute of the edges of some type ({have}), "
            f"got {weight_attr!r}"
        )
    if len({index.dtype for _, index, *_ in edges.values()}) > 1:
        widths = {kind: str(index.dtype) for kind, (_, index, *_) in edges.items()}
        raise TypeError(f"data: expected an edge_index of one dtype in all types, got {widths}")
    if len(places) > 1:
        raise ValueError(f"data: expected all edges in one place, got some on {_listed([*places])}")
    return HeteroGraph(edges, nodes, edge_data=arrays, node_data=of_nodes), next(iter(places))


def _edge_index(store: Any) -> Any:
    """Returns the edges of a type.

    With a SparseTensor in ``adj_t`` they are in the order of its rows, by whose places PyG looks up
    what a batch has of it.
    """
    adjacency = getattr(store, "adj_t", None)
    if not hasattr(adjacency, "csr"):
        return getattr(store, "edge_index", None)
    indptr, source, _ = csr_arrays(adjacency, "adj_t")
    return torch.stack([source, edge_rows(indptr.diff(), len(source)).to(source.dtype)])


def _csc(index: torch.Tensor, sources: int, targets: int) -> tuple[torch.Tensor, ...]:
    """The in-edges in tensors of torch's, which it shares with processes that it spawns."""
    src, dst = index.contiguous()
    graph = Graph.from_coo(src, dst, num_nodes=max(sources, targets))
    indptr, indices = graph.indptr.torch()[: targets + 1], graph.indices.torch()
    if graph.edge_ids is None:
        return indptr, indices
    return indptr, indices, graph.edge_ids.torch()


def _values(what: str, values: Any, count: int, where: str, is_row: bool = False) -> torch.Tensor:
    if not isinstance(values, torch.Tensor):
        raise TypeError(f"{what}: expected a tensor in {where}, got {describe(values)}")
    if is_row and values.dim() == 2 and len(values) == count:
        return values.detach().to("cpu", copy=True)
    if values.numel() != count or values.shape[:1] != (count,):
        things = "edges" if "(" in where else "nodes"
        raise ValueError(
            f"{what}: expected one value for each of {count} {things} in {where}, got shape "
            f"{tuple(values.shape)}"
        )
    return values.detach().to("cpu", copy=True).reshape(count)
