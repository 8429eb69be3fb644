"""The ends of a relation's edges, as lists that a caller gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._arrays.interning import Interned, intern
from pygsampler._engine import memory
from pygsampler._engine.checks import describe
from pygsampler._graph.host import NUMBERING, edge_ends, is_sparse

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType


def ends_of(kind: EdgeType, given: Any) -> tuple[Any, Any]:
    """Sources and destinations of the edges of a relation; TypeError for anything else."""
    try:
        src, dst = given
    except (TypeError, ValueError):
        raise TypeError(f"edges[{kind!r}]: expected (src, dst), got {describe(given)}") from None
    return src, dst


def in_one_width(
    edges: Mapping[EdgeType, tuple[Any, Any]],
) -> dict[EdgeType, tuple[Any, Any]]:
    """The ends of all relations, in 64 bits where one is; errors name the relation."""
    views = {}
    for kind, ends in edges.items():
        try:
            views[kind] = edge_ends(ends[0], "src"), edge_ends(ends[1], "dst")
        except (TypeError, ValueError, IndexError) as error:
            raise type(error)(f"edges[{kind!r}]: {error}") from None
    if len({view.bits for both in views.values() for view in both}) > 1:
        return {kind: (as_int64(src), as_int64(dst)) for kind, (src, dst) in views.items()}
    return dict(views)


def numbered(
    edges: Mapping[EdgeType, tuple[Any, Any]],
) -> tuple[dict[EdgeType, tuple[Any, Any]], dict[str, Interned]]:
    """The ends of all relations by numbers, and the labels of each type's nodes."""
    columns: dict[str, dict[str, Any]] = {}
    for kind, ends in edges.items():
        for name, values, of in zip(("src", "dst"), ends, kind[::2], strict=True):
            columns.setdefault(of, {})[f"edges[{kind!r}]: {name}"] = values
    labels = {of: intern(of_type) for of, of_type in columns.items()}
    numbers = {
        where: of_column
        for of, of_type in columns.items()
        for where, of_column in zip(of_type, labels[of].numbers, strict=True)
    }
    return {
        kind: (numbers[f"edges[{kind!r}]: src"], numbers[f"edges[{kind!r}]: dst"]) for kind in edges
    }, labels


def check_ends(edges: Mapping[EdgeType, tuple[Any, Any]], nodes: Mapping[str, int]) -> None:
    """ValueError for the first end of an edge that is no vertex of its type."""
    for kind, ends in edges.items():
        for name, given, of in zip(("src", "dst"), ends, kind[::2], strict=True):
            view = as_ids(given, name)
            ids = memory.integer_view(view.address, view.length, view.bits)
            for place, vertex in enumerate(ids):
                if not 0 <= vertex < nodes[of]:
                    way = f"; {NUMBERING}" if is_sparse(vertex, len(ids)) else ""
                    raise ValueError(
                        f"edges[{kind!r}]: {name}[{place}]: expected an id in [0, {nodes[of]}), "
                        f"got {vertex}{way}"
                    )
