"""Reads heterogeneous graphs from files of edges."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.interning import Interned, intern
from pygsampler._engine.checks import boolean, describe
from pygsampler._graph import node_names
from pygsampler._graph.schema import check_by_type, relation_name
from pygsampler.datasets import _graphs, _read_options, _sources, _tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pygsampler._engine.progress import Progress
    from pygsampler._graph.graph import Graph
    from pygsampler._graph.schema import EdgeType

_ENDS = ("src_type", "relation", "dst_type")


def read_types(
    source: Any,
    types: Any,
    columns: dict[str, Any],
    num_nodes: Any,
    renumber: Any,
    edge_data: Any,
    format: str | None,
    src: Any,
    dst: Any,
    dtype: Any,
    progress: Progress,
) -> Graph:
    """Reads a heterogeneous graph, from a file for each edge type or one for all.

    The other arguments are those of ``read``; ``columns`` are ``relation`` and the two of types.
    """
    if isinstance(types, tuple):
        source, types = {types: source}, None
    if num_nodes is not None and not isinstance(num_nodes, Mapping):
        expected = "a mapping of types to int"
        raise TypeError(f"num_nodes: expected {expected}, got {describe(num_nodes)}")
    anew = boolean(renumber, "renumber")
    if anew and num_nodes:
        raise ValueError(
            "num_nodes: expected None with renumber=True, which counts the ids that occur, got "
            f"{num_nodes!r}"
        )
    if _sources.is_schema(source):
        for name, value in {**columns, "types": types}.items():
            if value is not None:
                raise ValueError(f"{name}: expected None with a file for each type, got {value!r}")
        if not source:
            raise ValueError("source: expected at least one edge type, got none")
        sources = {_sources.edge_type_of(key): files for key, files in source.items()}
        options = {"src": src, "dst": dst, "edge_data": edge_data}
        own = {name: _value_per_type(each, name, sources) for name, each in options.items()}
        parts = {
            kind: _part(
                files,
                kind,
                format,
                anew,
                dtype,
                own["src"][kind],
                own["dst"][kind],
                own["edge_data"][kind],
                progress,
            )
            for kind, files in sources.items()
        }
    else:
        parts = _parts_of_columns(
            source, columns, _types(types), format, anew, dtype, src, dst, edge_data, progress
        )
    return _graph_of_types(parts, num_nodes or {}, anew)


class _Part(NamedTuple):
    """The edges of one type: numbers of their ends, and the arrays over the edges.

    ``labels`` are the names or ids that the numbers stand for, or None.
    """

    src: NDArray[Any]
    dst: NDArray[Any]
    labels: Any
    values: dict[str, Any]


def _value_per_type(option: Any, where: str, kinds: Collection[EdgeType]) -> dict[EdgeType, Any]:
    """Returns the value of an option for each type: its own of a mapping of types, or the same.

    ``edge_data`` may be a mapping of names to columns, which are no lists.
    """
    if not isinstance(option, Mapping) or not option:
        return dict.fromkeys(kinds, option)
    of_types = any(isinstance(key, tuple) for key in option) or all(
        isinstance(columns, (list, tuple, set, Mapping)) for columns in option.values()
    )
    if where == "edge_data" and not of_types:
        return dict.fromkeys(kinds, option)
    return {**dict.fromkeys(kinds), **check_by_type(option, where, kinds, "source")}


def _part(
    source: Any,
    kind: EdgeType,
    format: str | None,
    anew: bool,
    dtype: Any,
    src: Any,
    dst: Any,
    edge_data: Any,
    progress: Progress,
) -> _Part:
    """The edges of the files of one type."""
    files = _sources.files_of(source, format)
    form = _sources.format_of(files, format)
    plan = _read_options.plan_of(form, src, dst, None, False, anew, dtype, edge_data, mixed=True)
    if "mixed" in plan["src"]:
        plan["src"]["of"], plan["dst"]["of"] = kind[0], kind[2]
    return _part_of(_graphs.graph_of(files, plan, progress))


def _part_of(graph: Any) -> _Part:
    """The edges of a graph in the order of their ids."""
    import numpy as np

    place = slice(None) if graph.edge_ids is None else graph.edge_ids.numpy()
    src, dst = (np.empty(graph.num_edges, graph.dtype) for _ in range(2))
    src[place] = graph.indices.numpy()
    dst[place] = np.repeat(np.arange(graph.num_nodes), np.diff(graph.indptr.numpy()))
    labels = graph.node_names
    if labels is not None:
        labels = np.array(labels.tolist(), object)
    elif graph.node_ids is not None:
        labels = graph.node_ids.numpy()
    values: dict[str, Any] = {}
    for name, array in graph.edata.items():
        kind = graph._source._kind_of_times(name)
        values[name] = array.numpy().view(f"{kind}8[ns]") if kind else array.numpy()
    return _Part(src, dst, labels, values)


def _parts_of_columns(
    source: Any,
    columns: dict[str, Any],
    types: dict[str, EdgeType] | None,
    format: str | None,
    anew: bool,
    dtype: Any,
    src: Any,
    dst: Any,
    edge_data: Any,
    progress: Progress,
) -> dict[EdgeType, _Part]:
    """The edges of each type of files whose columns name the types."""
    for end in ("src_type", "dst_type"):
        if (columns[end] is None) is (types is None):
            wanted = "a column, or types=" if types is None else "None with types="
            raise ValueError(f"{end}: expected {wanted}, got {columns[end]!r}")
    if columns["relation"] is None:
        raise ValueError("relation: expected a column, got None")
    files = _sources.files_of(source, format)
    form = _sources.format_of(files, format)
    plan = _read_options.plan_of(form, src, dst, None, False, anew, dtype, edge_data, mixed=True)
    plan["data"] += _read_options.words(columns, form)
    arrays = [column["name"] for column in plan["data"]]
    if len(set(arrays)) < len(arrays):
        raise ValueError(f"edge_data: expected names other than {', '.join(_ENDS)}, got {arrays}")
    if files.one:
        _read_options.require_file(files.paths[0])
    words: dict[str, list[str]] = {}
    whole = _part_of(_graphs.graph_in(_tables.load(files, "", plan, progress, words), plan))
    words = {name: words[name] for name in _ENDS if name in words}
    codes = {name: whole.values.pop(name) for name in words}
    found = _lines(files.name, codes, words, types, len(whole.src))
    return {
        kind: _Part(
            whole.src[lines],
            whole.dst[lines],
            whole.labels,
            {name: rows[lines] for name, rows in whole.values.items()},
        )
        for kind, lines in found.items()
    }


def _graph_of_types(
    edges_by_type: dict[EdgeType, _Part], num_nodes: Mapping[str, int], anew: bool
) -> Graph:
    """The graph of the edges of all types; with ``anew`` each node type is numbered from 0."""
    import numpy as np

    from pygsampler._graph.graph import Graph

    dtype = np.result_type(*(part.src.dtype for part in edges_by_type.values()))
    ends: dict[str, dict[tuple[EdgeType, int], NDArray[Any]]] = {}
    for kind, part in edges_by_type.items():
        ends.setdefault(kind[0], {})[kind, 0] = part.src
        ends.setdefault(kind[2], {})[kind, 1] = part.dst
    nodes: dict[str, int] = {}
    numbers: dict[tuple[EdgeType, int], NDArray[Any]] = {}
    labels: dict[str, Interned] = {}
    for of, columns in ends.items():
        if not anew:
            nodes[of] = 1 + max(
                (int(ids.max()) for ids in columns.values() if len(ids)), default=-1
            )
            numbers.update(columns)
            continue
        used = {end: np.unique(ids) for end, ids in columns.items()}
        labels[of] = intern(
            {
                f"{relation_name(end[0])}: {('src', 'dst')[end[1]]}": edges_by_type[end[0]].labels[
                    ids
                ]
                for end, ids in used.items()
                if len(ids)
            }
        )
        nodes[of] = labels[of].num_nodes
        filled = iter(labels[of].numbers)
        for end, ids in used.items():
            values = next(filled)[np.searchsorted(ids, columns[end])] if len(ids) else columns[end]
            numbers[end] = values
    graph = Graph.from_coo(
        {
            kind: (numbers[kind, 0].astype(dtype), numbers[kind, 1].astype(dtype))
            for kind in edges_by_type
        },
        num_nodes={**nodes, **num_nodes},
        edge_data={kind: part.values for kind, part in edges_by_type.items()},
        node_data={of: {"node_ids": each.ids} for of, each in labels.items() if each.names is None},
    )
    for of, each in labels.items():
        if each.names is not None:
            graph._source._labels[of] = node_names.label_arrays(each.arrays())
    return graph


def _types(types: Any) -> dict[str, EdgeType] | None:
    """The types by their names in the file."""
    if types is None:
        return None
    if not isinstance(types, Mapping) or not types:
        raise TypeError(
            f"types: expected a mapping of names to types of edges, got {describe(types)}"
        )
    found: dict[str, EdgeType] = {}
    for name, kind in types.items():
        if not isinstance(kind, tuple) or len(kind) != 3:
            expected = "(source, relation, destination)"
            raise TypeError(f"types[{name!r}]: expected {expected}, got {kind!r}")
        found[str(name)] = kind
    return found


def _lines(
    file: str,
    codes: dict[str, NDArray[Any]],
    words: dict[str, list[str]],
    types: dict[str, EdgeType] | None,
    count: int,
) -> dict[EdgeType, NDArray[Any]]:
    """The lines of each type of edges, in their order."""
    import numpy as np

    joined = np.zeros(count, np.int64)
    for name, of_lines in codes.items():
        joined = joined * max(len(words[name]), 1) + of_lines
    order = np.argsort(joined, kind="stable")
    starts = np.flatnonzero(np.diff(joined[order], prepend=-1))
    found = {int(lines[0]): lines for lines in np.split(order, starts[1:]) if len(lines)}
    edges: dict[EdgeType, NDArray[Any]] = {}
    if types is not None:
        edges = dict.fromkeys(types.values(), np.zeros(0, np.int64))
    for first in sorted(found):
        names = [words[name][of_lines[first]] for name, of_lines in codes.items()]
        if types is None:
            edges[names[0], names[1], names[2]] = found[first]
        elif names[0] in types:
            kind = types[names[0]]
            edges[kind] = np.sort(np.concatenate([edges[kind], found[first]]))
        else:
            have = ", ".join(map(repr, types))
            raise ValueError(
                f"{file}: relation: expected one of {have}, as types has them, "
                f"got {names[0]!r}, of edge {first}"
            )
    if not edges:
        raise ValueError(f"{file}: expected edges, or types=, got none")
    return edges
