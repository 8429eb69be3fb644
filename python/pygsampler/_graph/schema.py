"""``Schema``: the types of a graph, what they are called, and how many vertices they have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pygsampler._core.checks import describe, integer
from pygsampler._core.limits import MAX_NODES
from pygsampler._graph.state import GraphState

EdgeType = tuple[str, str, str]

# The arrays of edges and vertices by which types put together are told apart: their places.
TYPE = "_TYPE"
_SEPARATOR = "__"


class Schema(NamedTuple):
    """The types of a graph, in the user's order; results have them too."""

    node_types: tuple[str, ...]
    edge_types: tuple[EdgeType, ...]

    def ends(self, place: int) -> tuple[str, str]:
        """The types that the edges of a relation lead from and to."""
        src, _, dst = self.edge_types[place]
        return src, dst

    def document(self, counts: Iterable[int], graphs: Iterable[int]) -> str:
        """What the engine knows of the types, with the numbers of their vertices and handles."""
        place = {kind: i for i, kind in enumerate(self.node_types)}
        relations = [
            {
                "name": name_of(kind),
                "src": place[kind[0]],
                "dst": place[kind[2]],
                "salt": str(salt_of(name_of(kind))),
            }
            for kind in self.edge_types
        ]
        return json.dumps(
            {
                "types": self.node_types,
                "nodes": list(counts),
                "salts": [str(salt_of(kind)) for kind in self.node_types],
                "relations": relations,
                "graphs": list(graphs),
            }
        )


def name_of(edge_type: Any) -> str:
    """What plans and random numbers call a relation."""
    return edge_type if isinstance(edge_type, str) else _SEPARATOR.join(edge_type)


def salt_of(name: str) -> int:
    """By what the random numbers of types differ."""
    return int.from_bytes(hashlib.blake2b(name.encode()).digest()[:8], "little")


def relations_of(edges: Any, where: str = "edges") -> dict[EdgeType, Any]:
    """The edge types of a mapping, checked."""
    if not isinstance(edges, Mapping):
        raise TypeError(f"{where}: expected a mapping of edge types, got {describe(edges)}")
    if not edges:
        raise ValueError("edges: expected at least one edge type, got none")
    found: dict[EdgeType, Any] = {}
    names: dict[str, Any] = {}
    for kind, given in edges.items():
        if (
            not isinstance(kind, tuple)
            or len(kind) != 3
            or not all(isinstance(part, str) and part for part in kind)
        ):
            raise TypeError(f"edges: expected types (source, relation, destination), got {kind!r}")
        other = names.setdefault(name_of(kind), kind)
        if other is not kind:
            raise ValueError(f"edges: expected types of different names, got {other} and {kind}")
        found[kind] = given
    return found


def count_of(kind: str, count: Any) -> int:
    """How many vertices a type has, checked."""
    return integer(count, f"num_nodes[{kind!r}]", 0, MAX_NODES)


def counts_of(relations: Mapping[EdgeType, Any], given: Any) -> dict[str, int]:
    """How many vertices each type has: those of ``given`` first, in its order."""
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"num_nodes: expected a mapping of types to int, got {describe(given)}")
    nodes: dict[str, int] = {}
    for kind, count in (given or {}).items():
        nodes[kind] = count_of(kind, count)
    rows: dict[str, int] = {}
    for edge_type, arrays in relations.items():
        if isinstance(arrays, GraphState):
            graph: Any = arrays
            indptr = graph.indptr
        elif isinstance(arrays, (tuple, list)) and len(arrays) in (2, 3):
            indptr = arrays[0]
        else:
            raise TypeError(
                f"edges[{edge_type!r}]: expected (indptr, indices), with edge_ids or not, or a "
                f"Graph, got {describe(arrays)}"
            )
        rows[edge_type[2]] = max(rows.get(edge_type[2], 0), len(indptr) - 1)
    for src, _, dst in relations:
        for kind in (src, dst):
            if kind not in nodes:
                if kind not in rows:
                    raise ValueError(
                        f"num_nodes: expected a number for {kind!r}, which no edges lead to, got "
                        "none"
                    )
                nodes[kind] = rows[kind]
    return nodes


def by_type(given: Any, where: str, known: Iterable[Any]) -> dict[Any, Any]:
    """Arrays by type; ValueError for a type that the graph does not have."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{where}: expected a mapping of types, got {describe(given)}")
    for kind in given:
        if kind not in known:
            raise ValueError(f"{where}: expected types of the graph, got {kind!r}")
    return dict(given)
