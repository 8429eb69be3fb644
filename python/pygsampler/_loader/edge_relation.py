"""``Relation``: what links lead between, with types or without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._engine.checks import describe
from pygsampler._graph.derived import DegreeAliasTable as Table
from pygsampler._graph.derived import degree_alias_table
from pygsampler._graph.graph import Graph, is_heterogeneous
from pygsampler._graph.schema import edge_type_of, relation_name, type_salt
from pygsampler._sampling.sampler import check_graph

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array

__all__ = ["EdgeRelation", "edge_relation"]


class EdgeRelation(NamedTuple):
    """The nodes at both ends of links, and the edges that there are between them."""

    graph: Graph | None
    """Its rows are destinations. None for a relation that the graph with types has no edges of."""
    num_src: int
    num_dst: int
    ends: tuple[str, str]
    """The types of sources and destinations; both are "" without types."""
    salt: int
    """What its draws differ by from those of other relations."""
    src_data: Mapping[str, Array]
    dst_data: Mapping[str, Array]

    def require_graph(self, what: str) -> Graph:
        """The edges, which ``what`` needs."""
        if self.graph is None:
            raise ValueError(
                f"negative_sampling: expected another kind than {what} for a relation that the "
                "graph has no edges of"
            )
        return self.graph

    def table(self, power: float) -> Table:
        """Returns the table for draws by in-degree to a power; it is cached in the graph."""
        relation: Any = self.require_graph("'degree'")._relation
        if relation.num_nodes == self.num_dst:
            table: Table = relation._negatives(power)
            return table
        host, n = relation._on_cpu(), self.num_dst

        def make() -> Table:
            # It looks at the lengths of the rows alone; ids are brought below n.
            rows, ids = host.indptr.torch()[: n + 1], host.indices.torch() % n
            with Graph.from_csc(rows, ids, num_nodes=n) as narrow:
                return Table(degree_alias_table(narrow._source, power))

        kept: Table = host._cached(("negatives", power, n), make)
        return kept


def edge_relation(graph: Any, edge_type: Any = None) -> EdgeRelation:
    """The relation of a graph without types, or that of ``edge_type`` in one with types."""
    if not is_heterogeneous(graph):
        check_graph(graph)
        if edge_type is not None:
            raise ValueError(
                f"edge_type: expected None for a homogeneous graph, got {describe(edge_type)}"
            )
        n = graph.num_nodes
        return EdgeRelation(graph, n, n, ("", ""), 0, graph.ndata, graph.ndata)
    types = graph.edge_types
    kind = types[0] if edge_type is None and len(types) == 1 else edge_type
    if isinstance(kind, (str, list)):
        kind = edge_type_of(kind, types, "edge_type")
    if not isinstance(kind, tuple) or len(kind) != 3:
        raise TypeError(
            f"edge_type: expected (source, relation, destination), got {describe(edge_type)}"
        )
    counts, (src, _, dst) = graph.num_nodes, kind
    for end in (src, dst):
        if end not in counts:
            raise ValueError(
                f"edge_type: expected one between types of the graph "
                f"({', '.join(map(repr, counts))}), got {kind!r}"
            )
    # A graph with one node type and one edge type counts as homogeneous, as it does for rows.
    alone = len(counts) == 1 and types == (kind,)
    return EdgeRelation(
        graph[kind] if kind in types else None,
        counts[src],
        counts[dst],
        (src, dst),
        0 if alone else type_salt(relation_name(kind)),
        graph.ndata[src],
        graph.ndata[dst],
    )
