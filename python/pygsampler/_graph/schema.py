"""``Schema``: the types of a graph, what they are called, and how many nodes they have."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from pygsampler._engine.checks import describe, integer
from pygsampler._engine.limits import MAX_NODES
from pygsampler._graph.relation_state import RelationState

EdgeType = tuple[str, str, str]

PerNodeType: TypeAlias = Any
"""A value of a homogeneous graph; a mapping of node types to such values of a heterogeneous one.

Code that uses one kind of graph would have to tell a union's cases apart at each use.
"""
PerEdgeType: TypeAlias = Any
"""A value of a homogeneous graph; a mapping of edge types to such values of a heterogeneous one.

A key may also be the name of a relation that no other edge type has.
"""

# The arrays of edges and nodes by which types put together are told apart: their places.
TYPE = "_TYPE"
_SEPARATOR = "__"

# The most types that an error lists.
_MOST_LISTED = 20

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

if TYPE_CHECKING:

    class EdgeTypeMapping(Mapping[EdgeType, T_co]):
        """A read-only ``ByEdgeType``."""

        def __getitem__(self, edge_type: EdgeType | str, /) -> T_co: ...


class Schema(NamedTuple):
    """The types of a graph, in the user's order; results have them too."""

    node_types: tuple[str, ...]
    edge_types: tuple[EdgeType, ...]

    def endpoint_types(self, place: int) -> tuple[str, str]:
        """The types that the edges of a relation lead from and to."""
        src, _, dst = self.edge_types[place]
        return src, dst

    def document(self, counts: Iterable[int], graphs: Iterable[int]) -> str:
        """Returns JSON for the engine: types, numbers of their nodes, handles of the graphs."""
        place = {kind: i for i, kind in enumerate(self.node_types)}
        relations = [
            {
                "name": relation_name(kind),
                "short": kind[1],
                "src": place[kind[0]],
                "dst": place[kind[2]],
                "salt": str(type_salt(relation_name(kind))),
            }
            for kind in self.edge_types
        ]
        return json.dumps(
            {
                "types": self.node_types,
                "nodes": list(counts),
                "salts": [str(type_salt(kind)) for kind in self.node_types],
                "relations": relations,
                "graphs": list(graphs),
            }
        )


# The types of a graph that has none, as DGL calls them.
HOMOGENEOUS = Schema(("_N",), (("_N", "_E", "_N"),))


def relation_name(edge_type: Any) -> str:
    """Returns the name of a relation in plans and in the rule of random numbers."""
    return edge_type if isinstance(edge_type, str) else _SEPARATOR.join(edge_type)


def type_salt(name: str) -> int:
    """The number by which the random numbers of types differ."""
    return int.from_bytes(hashlib.blake2b(name.encode()).digest()[:8], "little")


def check_relations(edges: Any, where: str = "edges") -> dict[EdgeType, Any]:
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
        other = names.setdefault(relation_name(kind), kind)
        if other is not kind:
            raise ValueError(
                f"edges: expected types of different names, got {other} and {kind}, which are both "
                f"{relation_name(kind)!r}; call one of their parts otherwise"
            )
        found[kind] = given
    return found


def node_count(kind: str, count: Any) -> int:
    """Returns the number of nodes of a type, checked."""
    return integer(count, f"num_nodes[{kind!r}]", 0, MAX_NODES)


def node_counts(relations: Mapping[EdgeType, Any], num_nodes: Any) -> dict[str, int]:
    """Returns the number of nodes of each type: the types of ``num_nodes`` first, in its order."""
    if num_nodes is not None and not isinstance(num_nodes, Mapping):
        raise TypeError(f"num_nodes: expected a mapping of types to int, got {describe(num_nodes)}")
    nodes: dict[str, int] = {}
    for kind, count in (num_nodes or {}).items():
        nodes[kind] = node_count(kind, count)
    rows: dict[str, int] = {}
    for edge_type, arrays in relations.items():
        if isinstance(arrays, RelationState):
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


def edge_type_of(
    value: Any, kinds: Collection[EdgeType], where: str, owner: str = "the graph"
) -> EdgeType:
    """The edge type among ``kinds`` that a caller names.

    ``value`` is (source type, relation, destination type), ``"source__relation__destination"``, or
    the relation alone where no other edge type has it.

    Raises
    ------
    ValueError
        For an edge type that is not among them, and for a relation that several have.
    """
    kind = tuple(value) if isinstance(value, list) else value
    if isinstance(kind, tuple) and kind in kinds:
        return kind
    matches: list[EdgeType] = []
    if isinstance(kind, str):
        # PyG's edge types in one text are of a subclass of str.
        name = str(kind)
        matches = [each for each in kinds if relation_name(each) == name]
        matches = matches or [each for each in kinds if each[1] == name]
        kind = name
    if not matches:
        raise ValueError(
            f"{where}: expected types of {owner}, got {kind!r}; there are {listed(kinds)}"
        )
    if len(matches) > 1:
        raise ValueError(
            f"{where}: expected a name that only one edge type has, got {kind!r}; it can be any of "
            f"{listed(matches)}"
        )
    return matches[0]


def number_of(hop: Mapping[Any, Any], kind: EdgeType, default: Any) -> Any:
    """The number that the fanouts of a hop have for an edge type, however they name it."""
    return next(
        (hop[name] for name in (kind, relation_name(kind), kind[1]) if name in hop), default
    )


def by_name(arrays_by_key: Mapping[Any, Any], types: Collection[Any]) -> Mapping[Any, Any]:
    """A caller's mapping of names to arrays by type, which may be one of types to arrays by name.

    Keys that could be either are names outside and types inside.
    """
    inner = list(arrays_by_key.values())
    if not all(isinstance(arrays, Mapping) for arrays in inner):
        return arrays_by_key
    if all(_is_one(key, types) for arrays in inner for key in arrays):
        return arrays_by_key
    if not all(_is_one(kind, types) for kind in arrays_by_key):
        return arrays_by_key
    turned: dict[Any, dict[Any, Any]] = {}
    for kind, arrays in arrays_by_key.items():
        for name, array in arrays.items():
            turned.setdefault(name, {})[kind] = array
    return turned


def _is_one(key: Any, types: Collection[Any]) -> bool:
    """True if ``key`` is a node type, or names an edge type, among ``types``."""
    if key in types:
        return True
    of_edges = isinstance(next(iter(types), None), tuple)
    return of_edges and any(key in (relation_name(kind), kind[1]) for kind in types)


def listed(kinds: Iterable[Any]) -> str:
    """Types as errors list them."""
    names = [repr(kind) for kind in kinds]
    more = len(names) - _MOST_LISTED
    ending = f" and {more} more" if more > 0 else ""
    return (", ".join(names[:_MOST_LISTED]) or "none") + ending


class ByNodeType(dict[str, T]):
    """Values by node type; the KeyError for a type that is missing lists those that there are."""

    __slots__ = ()

    def __missing__(self, kind: Any) -> T:
        raise KeyError(f"expected one of {listed(self)}, got {kind!r}")


class ByEdgeType(dict[EdgeType, T]):
    """Values by edge type; a key may also be named as ``edge_type_of`` takes it."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getitem__(self, edge_type: EdgeType | str, /) -> T: ...

    def __missing__(self, edge_type: Any) -> T:
        try:
            kind = edge_type_of(edge_type, tuple(self), "key")
        except ValueError as error:
            raise KeyError(str(error).removeprefix("key: ")) from None
        return dict.__getitem__(self, kind)

    def __contains__(self, edge_type: object) -> bool:
        if dict.__contains__(self, edge_type):
            return True
        try:
            edge_type_of(edge_type, tuple(self), "key")
        except ValueError:
            return False
        return True

    def read_only(self) -> EdgeTypeMapping[T]:
        """A view of these values that nobody can change."""
        view: Any = MappingProxyType(self)
        return view  # type: ignore[no-any-return]

    def get(self, edge_type: Any, default: Any = None) -> Any:
        """The value of an edge type, or ``default`` where it is missing."""
        try:
            return self[edge_type]
        except KeyError:
            return default


def check_by_type(
    mapping: Any, where: str, types: Collection[Any], owner: str = "the graph"
) -> dict[Any, Any]:
    """Returns a caller's mapping of node types or edge types, with full edge types; {} for None.

    Edge types may be written in all ways that ``edge_type_of`` takes.

    Raises
    ------
    TypeError, ValueError
        For what is no mapping, for a type that is not among ``types``, and for an edge type that is
        named twice.
    """
    if mapping is None:
        return {}
    of_edges = isinstance(next(iter(types), None), tuple)
    if not isinstance(mapping, Mapping):
        what = "edge types" if of_edges else "types"
        raise TypeError(f"{where}: expected a mapping of {what}, got {describe(mapping)}")
    values: dict[Any, Any] = {}
    for name, value in mapping.items():
        if of_edges:
            kind = edge_type_of(name, types, where, owner)
            if kind in values:
                raise ValueError(f"{where}: expected each edge type once, got {kind} twice")
        else:
            kind = name
            if kind not in types:
                raise ValueError(
                    f"{where}: expected types of {owner}, got {kind!r}; there are {listed(types)}"
                )
        values[kind] = value
    return values
