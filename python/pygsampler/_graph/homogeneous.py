"""``HomogeneousView``: relations of a heterogeneous graph as one homogeneous graph."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.array import Array
from pygsampler._engine import memory as memories
from pygsampler._graph import layout as at
from pygsampler._graph.relation_group import RelationGroup
from pygsampler._graph.schema import TYPE, edge_type_of

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType, Schema


class HomogeneousView(NamedTuple):
    """Some relations of a graph, in a ``Graph``."""

    graph: Any
    roots: int  # nodes of the first type
    nodes: dict[str, int]  # where the nodes of each type begin
    edges: dict[EdgeType, int]  # and the ids of edges
    schema: Schema  # all types of the graph
    id_bits: int  # the widths of its ids, and of the edges of each of its edge types
    edge_id_bits: list[int]


def concatenate_by_type(where: str, name: str, of_types: Mapping[Any, Mapping[str, Array]]) -> Any:
    """The arrays of a name of all types, one behind another."""
    import numpy

    parts = []
    for kind, arrays in of_types.items():
        if name not in arrays:
            have = ", ".join(map(repr, arrays)) or "none"
            raise ValueError(
                f"{where}: expected arrays of all types, got {name!r}; {kind} has {have}"
            )
        parts.append(arrays[name].numpy())
        if (parts[-1].dtype, parts[-1].shape[1:]) != (parts[0].dtype, parts[0].shape[1:]):
            raise ValueError(
                f"{where}: expected arrays of one dtype and shape of a row, got {name!r}, which is "
                f"{parts[-1].dtype} {parts[-1].shape[1:]} of {kind} and {parts[0].dtype} "
                f"{parts[0].shape[1:]} of others"
            )
    return numpy.concatenate(parts)


def concatenate_relations(
    graph: Any, edge_data: Iterable[str], node_data: Iterable[str]
) -> dict[str, Any]:
    """Returns the arguments of ``Graph.from_csc`` for all relations of a graph on the CPU."""
    firsts = array("q", [0])
    for relation in graph._relations().values():
        firsts.append(firsts[-1] + relation._row_counts()[0].number)
    memory = memories.new("GraphHomogeneous", graph._handle(), firsts.buffer_info()[0])
    words = memories.read_int64(memory.data, at.JOINED_WORDS)
    made = Array._of_rows(at.JOINED_ROWS, words, memory)
    of_edges = {TYPE: made["edge_types"], "_ID": made["edge_own"]}
    of_nodes = {TYPE: made["node_types"], "_ID": made["node_own"]}
    for name in edge_data:
        of_edges[name] = concatenate_by_type("edge_data", name, graph.edata)
    for name in node_data:
        of_nodes[name] = concatenate_by_type("node_data", name, graph.ndata)
    csc = {name: made[name] for name in ("indptr", "indices", "edge_ids")}
    return {**csc, "edge_data": of_edges, "node_data": of_nodes}


def homogeneous_view(
    graph: Any,
    types: tuple[EdgeType, ...],
    first: str,
    edge_names: tuple[str, ...],
    node_names: tuple[str, ...],
) -> HomogeneousView:
    """Returns the relations of these types of a graph on the CPU, ``first``'s nodes first."""
    relations, group = graph._relations(), graph._source
    for kind in types:
        edge_type_of(kind, relations, "metapath")
    ends = dict.fromkeys([first, *(kind[end] for kind in types for end in (0, 2))])
    nodes = {kind: group._nodes[kind] for kind in ends}
    ndata = {kind: group._ndata[kind] for kind in ends}
    part = RelationGroup(nodes, {kind: relations[kind] for kind in types}, ndata)
    counts = [relations[kind]._row_counts()[0].number for kind in types]
    made = HomogeneousView(
        graph._wrap(part).to_homogeneous(edge_data=edge_names, node_data=node_names),
        nodes[first],
        dict(zip(nodes, itertools.accumulate(nodes.values(), initial=0), strict=False)),
        dict(zip(types, itertools.accumulate(counts, initial=0), strict=False)),
        graph._schema,
        next(iter(relations.values())).indices._bits,
        [
            (each.indices if each.edge_ids is None else each.edge_ids)._bits
            for each in relations.values()
        ],
    )
    part._release()
    return made
