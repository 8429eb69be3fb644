"""Builds relations, and groups of relations, from arrays and from the graphs of other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.ids import ANYWHERE, as_ids
from pygsampler._arrays.interning import IDS, intern
from pygsampler._engine.checks import boolean, describe, integer
from pygsampler._engine.progress import Progress
from pygsampler._graph import converters, csc_arrays, node_names, table_conversion
from pygsampler._graph import named_arrays as graph_data
from pygsampler._graph.relation import Relation
from pygsampler._graph.relation_group import RelationGroup
from pygsampler._graph.schema import (
    EdgeType,
    check_by_type,
    check_relations,
    node_count,
    node_counts,
)

ByName = Mapping[str, Any] | None


def relation_from_csc(
    indptr: Any,
    indices: Any,
    edge_ids: Any,
    num_nodes: Any,
    edge_data: ByName,
    node_data: ByName = None,
) -> Relation:
    """Returns the relation of a CSC, whose arrays it shares."""
    offsets = Array._of_view(as_ids(indptr, "indptr", ANYWHERE))
    neighbors = Array._of_view(as_ids(indices, "indices", ANYWHERE))
    ids = None
    if edge_ids is not None:
        ids = Array._of_view(as_ids(edge_ids, "edge_ids", ANYWHERE))
        if len(ids) != len(neighbors):
            raise ValueError(
                f"edge_ids: expected one for each of {len(neighbors)} edges, got {len(ids)}"
            )
    if len(offsets) == 0:
        raise ValueError("indptr: expected at least one value (0), got an empty array")
    count = len(offsets) - 1
    if num_nodes is not None:
        most = csc_arrays.MOST_NODES[neighbors._bits]
        count = integer(num_nodes, "num_nodes", count, most)
    return Relation._checked(offsets, neighbors, ids, count)._add_arrays(edge_data, node_data)


def relation_from_coo(
    src: Any, dst: Any, num_nodes: Any, renumber: bool, edge_data: ByName, node_data: ByName
) -> Relation:
    """Returns the relation of a list of edges; ``renumber`` numbers the nodes."""
    interned = None
    if boolean(renumber, "renumber"):
        _refuse_counts(num_nodes)
        interned = intern({"src": src, "dst": dst})
        (src, dst), num_nodes = interned.numbers, interned.num_nodes
    made = Relation._checked(*csc_arrays.csc_from_edges(src, dst, num_nodes))
    if interned is not None:
        made._arrays = node_names.label_arrays(interned.arrays())
    if edge_data is not None:
        edges = graph_data.RowCount(graph_data.EDGES, made.num_edges)
        edge_data = graph_data.check_named_arrays(edge_data, edges)
    return made._add_arrays(edge_data, node_data)


def relation_from(source: converters.Csc | converters.Coo) -> Relation:
    """Returns the relation of another library's graph, with the arrays that it offers."""
    if isinstance(source, converters.Coo):
        made = relation_from_coo(source.src, source.dst, source.num_nodes, False, None, None)
        if source.arrays:
            named = {name: as_array(value, name) for name, value in source.arrays.items()}
            made._arrays = MappingProxyType(named)
    else:
        made = relation_from_csc(
            source.indptr, source.indices, source.edge_ids, source.num_nodes, None
        )
    edges, nodes = made._row_counts()
    made._edata = graph_data.offered(source.edge_data, edges)
    made._ndata = graph_data.offered(source.node_data, nodes)
    return made


def group_from_csc(edges: Any, num_nodes: Any, edge_data: Any, node_data: Any) -> RelationGroup:
    """Returns the relations of a mapping of edge types to CSCs, or to homogeneous graphs."""
    given = {
        kind: getattr(value, "_relation", value) for kind, value in check_relations(edges).items()
    }
    nodes = node_counts(given, num_nodes)
    of_edges = check_by_type(edge_data, "edge_data", given)
    relations = {
        kind: _relation(kind, value, nodes, of_edges.get(kind)) for kind, value in given.items()
    }
    made = RelationGroup(nodes, relations, node_arrays(node_data, nodes))
    made._handle()
    return made


def node_arrays(node_data: Any, nodes: Mapping[str, int]) -> dict[str, graph_data.NamedArrays]:
    """Returns a caller's arrays of nodes by type, checked; errors name the type."""
    found = {}
    for kind, arrays in check_by_type(node_data, "node_data", nodes).items():
        rows = graph_data.RowCount(graph_data.NODES, nodes[kind])
        try:
            found[kind] = graph_data.check_named_arrays(arrays, rows)
        except (TypeError, ValueError) as error:
            raise type(error)(f"node_data[{kind!r}]: {error}") from None
    return found


def group_from_coo(
    edges: Any, num_nodes: Any, renumber: bool, edge_data: Any, node_data: Any
) -> RelationGroup:
    """Returns the relations of a mapping of edge types to lists of edges."""
    relations = check_relations(edges)
    if not boolean(renumber, "renumber"):
        if not isinstance(num_nodes, Mapping):
            raise TypeError(
                f"num_nodes: expected a mapping of types to int, got {describe(num_nodes)}; "
                "renumber=True counts the ids that occur"
            )
        counts = {kind: node_count(kind, of) for kind, of in num_nodes.items()}
        parts = converters.HeteroParts(relations, counts, edge_data, node_data, relations)
        return group_from(parts)
    _refuse_counts(num_nodes)
    ends, labels = converters.numbered(
        {kind: converters.edge_endpoints(kind, of) for kind, of in relations.items()}
    )
    counts = {kind: interned.num_nodes for kind, interned in labels.items()}
    made = group_from(converters.HeteroParts(ends, counts, edge_data, node_data, ends))
    return _labeled(made, {kind: interned.arrays() for kind, interned in labels.items()})


def group_from_tables(
    tables: Any, schema: Any, unmatched: Any, name_prefix: str = "", progress: Progress = False
) -> RelationGroup:
    """Returns the relations of tables by their foreign keys; nodes have the keys as labels."""
    found = table_conversion.tables_to_graph(tables, schema, unmatched, name_prefix, progress)
    group = _labeled(group_from(found.parts), found.labels)
    for kind, arrays in found.columns.items():
        more = node_names.label_arrays(arrays)
        group._labels[kind] = MappingProxyType({**group._labels.get(kind, {}), **more})
    return group


def _labeled(group: RelationGroup, labels: Mapping[str, Mapping[str, Any]]) -> RelationGroup:
    """Returns the relations, whose nodes get labels by type."""
    for kind, of_kind in labels.items():
        arrays = node_names.label_arrays(of_kind)
        if IDS in arrays:
            rows = graph_data.RowCount(graph_data.NODES, group._nodes[kind])
            named = graph_data.check_named_arrays(arrays, rows)
            group._ndata[kind] = group._ndata[kind].with_more(named)
        else:
            group._labels[kind] = arrays
    return group


def group_from(source: converters.HeteroParts) -> RelationGroup:
    """Returns the relations of another library's graph, with its arrays."""
    edges, nodes = dict(source.edges), source.nodes
    for kind in source.lists:
        for end in (kind[0], kind[2]):
            if end not in nodes:
                raise ValueError(f"num_nodes: expected a number for {end!r}, got none")
    ends = converters.in_one_width(
        {kind: converters.edge_endpoints(kind, edges[kind]) for kind in source.lists}
    )
    try:
        edges |= {kind: _sorted(kind, pair, nodes) for kind, pair in ends.items()}
        return group_from_csc(edges, nodes, source.edge_data, source.node_data)
    except (ValueError, IndexError):
        # The sorted edges have other names and places, so the error names the unsorted ones.
        converters.check_endpoints(ends, nodes)
        raise


def group_from_stores(features: Any, store: Any) -> RelationGroup:
    """Returns the relations of a pair of PyG's stores, with all features."""
    own = getattr(store, "hetero_graph", None)
    parts = converters.hetero_from_stores(features, store, own is None)
    if own is None:
        return group_from(parts)
    given = parts.node_data or {}
    of_nodes = {
        kind: {**own.ndata.get(kind, {}), **given.get(kind, {})} for kind in {**own.ndata, **given}
    }
    nodes = {**own.num_nodes}
    for kind, count in converters.sizes_of(features).items():
        nodes.setdefault(kind, count)
    return group_from_csc(own._source._open(), nodes, parts.edge_data, of_nodes)


def _refuse_counts(num_nodes: Any) -> None:
    if num_nodes is not None:
        raise ValueError(
            "num_nodes: expected None with renumber=True, which counts the ids that occur, got "
            f"{num_nodes!r}"
        )


def _relation(kind: EdgeType, value: Any, nodes: Mapping[str, int], edge_data: Any) -> Relation:
    """Returns the CSC of an edge type, with as many nodes as the larger of its node types."""
    count = max(nodes[kind[0]], nodes[kind[2]])
    try:
        if isinstance(value, Relation):
            _check_on_cpu(value)
            if value.num_nodes == count:
                return value if not edge_data else value._with_data(edge_data)
            edge_data = {**value.edata, **(edge_data or {})}
            value = value.indptr, value.indices, value.edge_ids
        ids = value[2] if len(value) == 3 else None
        made = relation_from_csc(value[0], value[1], ids, count, edge_data)
        _check_on_cpu(made)
        return made
    except (TypeError, ValueError, IndexError) as error:
        raise type(error)(f"edges[{kind!r}]: {error}") from None


def _check_on_cpu(relation: Relation) -> None:
    if relation._device >= 0:
        raise ValueError(
            f"expected a graph on the CPU, got one on {relation.device}; build the heterogeneous "
            "graph of CPU arrays and use graph.to(device)"
        )


def _sorted(kind: EdgeType, edges: Any, nodes: Mapping[str, int]) -> tuple[Any, ...]:
    """Returns the CSC of an edge type's list of edges, with a row for each destination."""
    src, dst = edges
    count = nodes[kind[2]]
    try:
        made = relation_from_coo(src, dst, max(nodes[kind[0]], count), False, None, None)
    except (TypeError, ValueError, IndexError) as error:
        raise type(error)(f"edges[{kind!r}]: {error}") from None
    return made.indptr[: count + 1], made.indices, made.edge_ids
