"""``read_typed``: graphs with types from files of edges whose columns name the types."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._core import memories
from pygsampler._core.checks import boolean, describe
from pygsampler._graph.file import path_of
from pygsampler.datasets import _job, _plan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from pygsampler._core.progress import Progress
    from pygsampler.hetero_graph import EdgeType, HeteroGraph

_ENDS = ("src_type", "relation", "dst_type")


def read_typed(
    source: Any,
    *,
    relation: str | int,
    src_type: str | int | None = None,
    dst_type: str | int | None = None,
    schema: Mapping[Any, EdgeType] | None = None,
    format: str | None = None,
    src: str | int | None = None,
    dst: str | int | None = None,
    num_nodes: Mapping[str, int] | None = None,
    renumber: bool = False,
    dtype: Any = None,
    edge_data: Iterable[str] | Mapping[str, str | int] | None = None,
    progress: Progress = None,
) -> HeteroGraph:
    """The graph with types of a file of edges, in memory; needs NumPy.

    A column says the relation of each edge, and two more the types of its ends, or ``schema`` knows
    these. Names are text or integers, at most 4096 in a column. Ids count within a type, and so do
    edges: the id of an edge is the number of lines of its type before it.

    Parameters
    ----------
    source : str or os.PathLike
        A file as ``read`` takes it, of the formats "snap", "csv", "tsv", "parquet" and "arrow".
    relation : str or int
        The column of relations: a name, or a place from 0.
    src_type, dst_type : str or int, optional
        Those of the types of sources and targets; both, or ``schema``.
    schema : mapping of names to (str, str, str), optional
        The type of edges that each name of the column stands for. The graph has them all, in this
        order; without it those of the file, as they first occur.
    num_nodes : mapping of str to int, optional
        How many vertices a type has, where some behind the largest id have no edges.
    renumber : bool
        Whether the vertices of each type are numbered from 0 by ascending id, for ids that are
        unique over all types or have gaps; ``ndata[type]["node_ids"]`` are those of the file.
    format, src, dst, dtype, edge_data, progress
        As for ``read``. ``edata`` of each type has the values of its edges.

    Raises
    ------
    OSError, TypeError, ValueError, MemoryError
        As ``read``, and ValueError for a relation that is not in ``schema``.
    """
    path = path_of(source, "source", _plan.IN_MEMORY)
    kind = _plan.format_of(path, format)
    types = _types(schema)
    columns = {"src_type": src_type, "relation": relation, "dst_type": dst_type}
    for end in ("src_type", "dst_type"):
        if (columns[end] is None) is (types is None):
            wanted = "a column, or schema=" if types is None else "None with schema="
            raise ValueError(f"{end}: expected {wanted}, got {columns[end]!r}")
    if relation is None:
        raise ValueError("relation: expected a column, got None")
    if num_nodes is not None and not isinstance(num_nodes, Mapping):
        expected = "a mapping of types to int"
        raise TypeError(f"num_nodes: expected {expected}, got {describe(num_nodes)}")
    anew = boolean(renumber, "renumber")
    if anew and num_nodes:
        raise ValueError(
            "num_nodes: expected None with renumber=True, which counts the ids that occur, got "
            f"{num_nodes!r}"
        )
    plan = _plan.plan_of(kind, src, dst, None, False, anew, dtype, edge_data)
    plan["data"] += _plan.words(columns, kind)
    arrays = [column["name"] for column in plan["data"]]
    if len(set(arrays)) < len(arrays):
        raise ValueError(f"edge_data: expected names other than {', '.join(_ENDS)}, got {arrays}")
    _plan.require_file(path)
    words: dict[str, list[str]] = {}
    memory = _job.run(path, "", plan, progress, words)
    assert isinstance(memory, memories.Memory)
    words = {name: words[name] for name in _ENDS if name in words}
    return _split(path, memory, arrays, words, types, num_nodes or {}, anew)


def _types(schema: Any) -> dict[str, EdgeType] | None:
    """The types by their names in the file."""
    if schema is None:
        return None
    if not isinstance(schema, Mapping) or not schema:
        raise TypeError(
            f"schema: expected a mapping of names to types of edges, got {describe(schema)}"
        )
    found: dict[str, EdgeType] = {}
    for name, kind in schema.items():
        if not isinstance(kind, tuple) or len(kind) != 3:
            expected = "(source, relation, destination)"
            raise TypeError(f"schema[{name!r}]: expected {expected}, got {kind!r}")
        found[str(name)] = kind
    return found


def _split(
    path: str,
    memory: memories.Memory,
    arrays: list[str],
    words: dict[str, list[str]],
    types: dict[str, EdgeType] | None,
    num_nodes: Mapping[str, int],
    anew: bool,
) -> HeteroGraph:
    """The graph of all edges by their types."""
    import numpy as np

    from pygsampler.datasets._files import graph_in
    from pygsampler.hetero_graph import HeteroGraph

    whole = graph_in(memory, arrays)
    place = slice(None) if whole.edge_ids is None else whole.edge_ids.numpy()
    src, dst = (np.empty(whole.num_edges, whole.dtype) for _ in range(2))
    src[place] = whole.indices.numpy()
    dst[place] = np.repeat(np.arange(whole.num_nodes), np.diff(whole.indptr.numpy()))
    values = {name: whole.edata[name].numpy() for name in arrays}
    codes = {name: values.pop(name) for name in words}
    edges = _lines(path, codes, words, types, whole.num_edges)
    known: dict[str, list[NDArray[Any]]] = {}
    for kind, lines in edges.items():
        known.setdefault(kind[0], []).append(src[lines])
        known.setdefault(kind[2], []).append(dst[lines])
    nodes, of_nodes = {}, {}
    for of, ids in known.items():
        if anew:
            # Numbers that the reader has given over all types.
            used = np.unique(np.concatenate(ids))
            nodes[of] = len(used)
            known[of] = [used]
            of_nodes[of] = {"node_ids": whole.arrays["node_ids"].numpy()[used]}
        else:
            nodes[of] = 1 + max((int(each.max()) for each in ids if len(each)), default=-1)

    def ends(kind: EdgeType, lines: NDArray[Any]) -> tuple[Any, Any]:
        both = src[lines], dst[lines]
        if not anew:
            return both
        numbers = (
            np.searchsorted(known[kind[end]][0], ids) for end, ids in zip((0, 2), both, strict=True)
        )
        first, second = (each.astype(whole.dtype) for each in numbers)
        return first, second

    return HeteroGraph.from_coo(
        {kind: ends(kind, lines) for kind, lines in edges.items()},
        {**nodes, **num_nodes},
        edge_data={
            kind: {name: rows[lines] for name, rows in values.items()}
            for kind, lines in edges.items()
        },
        node_data=of_nodes,
    )


def _lines(
    path: str,
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
                f"{os.path.basename(path)}: relation: expected one of {have}, as schema has them, "
                f"got {names[0]!r}, of edge {first}"
            )
    if not edges:
        raise ValueError(f"{os.path.basename(path)}: expected edges, or schema=, got none")
    return edges
