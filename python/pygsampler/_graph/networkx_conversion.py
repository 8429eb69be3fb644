"""Graphs from NetworkX and for it; imports NetworkX only to make one of its graphs."""

from __future__ import annotations

import numbers
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import as_array
from pygsampler._arrays.datetimes import as_nanoseconds, as_numpy_dates, datetime_kind
from pygsampler._arrays.interning import IDS, text_arrays
from pygsampler._engine.checks import describe
from pygsampler._graph.converters import Coo, Offers
from pygsampler._graph.named_arrays import EDGES, NODES, OfferedArray, selected
from pygsampler._graph.node_names import names_of
from pygsampler._graph.reverse_edges import by_id

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array
    from pygsampler._graph.relation_state import RelationState

# The attribute that is taken unasked, and the attribute that has the ids of edges.
_WEIGHT, _EDGE_ID = "weight", "edge_id"
_WAYS = (
    "networkx.relabel_nodes(g, str) names them, and "
    "networkx.convert_node_labels_to_integers(g) numbers them"
)


def coo_from_networkx(
    graph: Any, edge_attrs: Iterable[str] | None, node_attrs: Iterable[str] | None
) -> Coo:
    """The edges in the order of ``graph.edges``, and the labels where they are no ids."""
    if not (hasattr(graph, "is_directed") and hasattr(graph, "edges") and hasattr(graph, "nodes")):
        raise TypeError(f"g: expected a networkx graph, got {describe(graph)}")
    labels = list(graph.nodes)
    number, arrays = _numbered(labels)
    wanted = None if edge_attrs is None else _names(edge_attrs, "edge_attrs")
    src, dst, columns = _edges(graph, number, wanted)
    count = len(src)
    if graph.is_directed():
        src, dst = _by_ids(src, dst, columns)
    else:
        # A self loop is its own reverse.
        back = [place for place in range(count) if src[place] != dst[place]]
        heads = array("q", (dst[place] for place in back))
        dst.extend(array("q", (src[place] for place in back)))
        src.extend(heads)
        for values in columns.values():
            values += [values[place] for place in back]
    if wanted is None:
        of_edges = _weights(columns)
    else:
        of_edges = _arrays({name: columns[name] for name in wanted}, EDGES)
    of_nodes: Offers = {}
    if node_attrs is not None:
        order = sorted(labels, key=number.__getitem__)
        of_nodes = _arrays(
            {name: _attribute(graph, order, name) for name in _names(node_attrs, "node_attrs")},
            NODES,
        )
    return Coo(src, dst, len(labels), arrays, of_edges, of_nodes)


def graph_to_networkx(
    graph: RelationState, edge_data: Iterable[str] | None, node_data: Iterable[str] | None
) -> Any:
    """The MultiDiGraph of a graph on the CPU, with these arrays as attributes."""
    made = networkx().MultiDiGraph()
    names = add_nodes(
        made,
        labels_of(graph._arrays, graph._num_nodes),
        lists(selected(graph._ndata, node_data, "node_data")),
    )
    src, dst = by_id(graph, "to_networkx")
    values = lists(selected(graph._edata, edge_data, "edge_data"))
    add_edges(made, (names, names), (src, dst, range(len(src))), values)
    return made


def hetero_to_networkx(
    graphs: Mapping[Any, RelationState],
    nodes: Mapping[str, int],
    labels: Mapping[str, Mapping[str, Array]],
    ndata: Mapping[str, Mapping[str, Array]],
) -> Any:
    """The MultiDiGraph of relations on the CPU, whose nodes are (type, label)."""
    made, names = networkx().MultiDiGraph(), {}
    for kind, count in nodes.items():
        arrays = ndata.get(kind, {})
        known = labels_of({**arrays, **labels.get(kind, {})}, count)
        values = {"node_type": [kind] * count, **lists(arrays)}
        names[kind] = add_nodes(made, [(kind, label) for label in known], values)
    for kind, graph in graphs.items():
        src, dst = by_id(graph, "to_networkx")
        values = {"edge_type": [kind] * len(src), **lists(graph._edata)}
        ends = names[kind[0]], names[kind[2]]
        add_edges(made, ends, (src, dst, range(len(src))), values)
    return made


def labels_of(arrays: Mapping[str, Array], count: int) -> Sequence[Any]:
    """Returns the labels of nodes: their names, their original ids, or their ids."""
    names = names_of(arrays)
    if names is not None:
        return names.tolist()
    ids = arrays.get(IDS)
    return range(count) if ids is None else list(ids.tolist())


def lists(arrays: Mapping[str, Array]) -> dict[str, list[Any]]:
    """The values of arrays as attributes have them."""
    return {name: array.tolist() for name, array in arrays.items()}


def add_nodes(
    graph: Any, names: Sequence[Any], columns: Mapping[str, Sequence[Any]]
) -> Sequence[Any]:
    """Adds nodes with the values of columns as attributes, and returns their names."""
    rows = _table_rows(columns, len(names))
    graph.add_nodes_from(
        (name, dict(zip(columns, row, strict=True))) for name, row in zip(names, rows, strict=True)
    )
    return names


def add_edges(
    graph: Any,
    names: tuple[Sequence[Any], Sequence[Any]],
    edges: tuple[Any, Any, Any],
    columns: Mapping[str, Sequence[Any]],
) -> None:
    """Adds edges (sources, destinations, ids) by places among the names of either side."""
    src, dst, ids = (each if isinstance(each, range) else each.tolist() for each in edges)
    # Attributes in a dict, since as keywords one called "key" would be the key of the edge.
    graph.add_edges_from(
        (names[0][u], names[1][v], {_EDGE_ID: edge, **dict(zip(columns, row, strict=True))})
        for u, v, edge, row in zip(src, dst, ids, _table_rows(columns, len(ids)), strict=True)
    )


def networkx() -> Any:
    """NetworkX; ImportError says how to get it."""
    try:
        import networkx as module
    except ImportError:
        raise ImportError(
            "to_networkx: expected NetworkX, found none; pip install networkx"
        ) from None
    return module


def _table_rows(columns: Mapping[str, Sequence[Any]], count: int) -> Iterable[tuple[Any, ...]]:
    """The rows of columns, so many where there are none."""
    return zip(*columns.values(), strict=True) if columns else [()] * count


def _numbered(labels: list[Any]) -> tuple[dict[Any, int], dict[str, Any]]:
    """The number of each label, and the arrays that keep the labels.

    TypeError for labels that are neither str nor int, or some of either.
    """
    number = {label: place for place, label in enumerate(labels)}
    kinds = set(map(type, labels))
    if bool not in kinds and all(issubclass(kind, numbers.Integral) for kind in kinds):
        ids = [int(label) for label in labels]
        if sorted(ids) == list(range(len(ids))):
            # They are nodes already, in whatever order they were added.
            return dict(zip(labels, ids, strict=True)), {}
        for label in ids:
            if not -(1 << 63) <= label < 1 << 63:
                expected = "nodes that are str, or int of 64 bits"
                raise TypeError(f"g: expected {expected}, got {label}; {_WAYS}")
        return number, {IDS: array("q", ids)}
    for label in labels:
        if not isinstance(label, str):
            of_names = next((other for other in labels if isinstance(other, str)), None)
            beside = "" if of_names is None else f" and {describe(of_names)}"
            expected = "nodes that are all str or all int, so that their names can be stored"
            raise TypeError(f"g: expected {expected}, got {describe(label)}{beside}; {_WAYS}")
    return number, text_arrays(labels)


def _edges(
    graph: Any, number: Mapping[Any, int], wanted: list[str] | None
) -> tuple[Any, Any, dict[str, list[Any]]]:
    """The ends of the edges, and the values of their attributes by name."""
    src, dst = array("q"), array("q")
    if wanted is None:
        first: Mapping[str, Any] = next(iter(graph.edges(data=True)), (None, None, {}))[2]
        names = [name for name in (_WEIGHT, _EDGE_ID) if first.get(name) is not None]
    else:
        names = list(dict.fromkeys([*wanted, _EDGE_ID]))
    columns: dict[str, list[Any]] = {name: [] for name in names}
    if not names:
        # Reading attributes takes longer than all else.
        for u, v in graph.edges():
            src.append(number[u])
            dst.append(number[v])
        return src, dst, columns
    for u, v, attributes in graph.edges(data=True):
        src.append(number[u])
        dst.append(number[v])
        for name, values in columns.items():
            value = attributes.get(name)
            if value is None and wanted is not None and name in wanted:
                raise ValueError(
                    f"edge_attrs: expected {name!r} of all edges, got none of {(u, v)!r}"
                )
            values.append(value)
    return src, dst, columns


def _by_ids(src: Any, dst: Any, columns: dict[str, list[Any]]) -> tuple[Any, Any]:
    """The ends, and the columns in place, in the order of the ids that ``to_networkx`` wrote."""
    ids = columns.get(_EDGE_ID)
    if ids is None or set(map(type, ids)) != {int} or sorted(ids) != list(range(len(ids))):
        return src, dst
    order = sorted(range(len(ids)), key=ids.__getitem__)
    for name, values in columns.items():
        columns[name] = [values[place] for place in order]
    return array("q", (src[i] for i in order)), array("q", (dst[i] for i in order))


def _names(value: Any, where: str) -> list[str]:
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"{where}: expected a list of names, got {describe(value)}")
    names = list(value)
    for place, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"{where}[{place}]: expected a str, got {describe(name)}")
    return names


def _attribute(graph: Any, labels: list[Any], name: str) -> list[Any]:
    values = []
    for label in labels:
        value = graph.nodes[label].get(name)
        if value is None:
            raise ValueError(f"node_attrs: expected {name!r} of all nodes, got none of {label!r}")
        values.append(value)
    return values


def _arrays(columns: Mapping[str, list[Any]], kind: str) -> Offers:
    """Returns the columns that a caller wants, as arrays.

    TypeError for values that are neither numbers nor dates.
    """
    found = {}
    for name, values in columns.items():
        where = f"{kind}[{name!r}]"
        given = as_numpy_dates(values, where)
        made = as_array(as_nanoseconds(given, where), where)
        # Dates as they are, so that it is known that they were dates.
        found[name] = OfferedArray(given if datetime_kind(given) else made, made.shape)
    return found


def _weights(columns: Mapping[str, list[Any]]) -> Offers:
    """The attribute "weight" of all edges; nothing where one has none, or one that is no number."""
    weights = columns.get(_WEIGHT, [])
    kinds = set(map(type, weights))
    if not kinds or bool in kinds or not all(issubclass(kind, numbers.Real) for kind in kinds):
        return {}
    whole = all(issubclass(kind, numbers.Integral) for kind in kinds)
    try:
        values = array("q" if whole else "d", weights)
    except (OverflowError, TypeError):
        return {}
    return {_WEIGHT: OfferedArray(values, (len(values),))}
