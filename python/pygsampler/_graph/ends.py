"""The ends of a relation's edges, as lists that a caller gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.ids import as_ids
from pygsampler._core import memories
from pygsampler._core.checks import describe

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType


def ends_of(kind: EdgeType, given: Any) -> tuple[Any, Any]:
    """Sources and destinations of the edges of a relation; TypeError for anything else."""
    try:
        src, dst = given
    except (TypeError, ValueError):
        raise TypeError(f"edges[{kind!r}]: expected (src, dst), got {describe(given)}") from None
    return src, dst


def check_ends(edges: Mapping[EdgeType, tuple[Any, Any]], nodes: Mapping[str, int]) -> None:
    """ValueError for the first end of an edge that is no vertex of its type."""
    for kind, ends in edges.items():
        for name, given, of in zip(("src", "dst"), ends, kind[::2], strict=True):
            view = as_ids(given, name)
            ids = memories.integer_view(view.address, view.length, view.bits)
            for place, vertex in enumerate(ids):
                if not 0 <= vertex < nodes[of]:
                    raise ValueError(
                        f"edges[{kind!r}]: {name}[{place}]: expected an id in [0, {nodes[of]}), "
                        f"got {vertex}"
                    )
