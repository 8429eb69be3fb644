"""``Joint``: relations of a graph with types as one graph without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pygsampler._arrays.array import Array
    from pygsampler._graph.schema import EdgeType


class HomogeneousView(NamedTuple):
    """Some relations of a graph, in a ``Graph``."""

    graph: Any
    roots: int  # vertices of the first type
    nodes: dict[str, int]  # where the vertices of each type begin
    edges: dict[EdgeType, int]  # and the ids of edges


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
