"""The degrees of a graph, counted by the engine on all cores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.interning import integers
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import index
from pygsampler._engine.handle import EngineHandle
from pygsampler._graph.relation_state import RelationState

# Edges of one call, after which there is progress to tell, and Ctrl-C is heard: a tenth of a
# second.
_STEP = 1 << 24


def profile(
    graph: RelationState,
    *,
    parallel: bool = False,
    progress: Callable[[int, int | None], object] | None = None,
) -> dict[str, Any]:
    """Counts in- and out-degrees, self loops and isolated nodes of a graph on the CPU.

    ``in`` and ``out`` have ``min``, ``median``, ``p99``, ``max`` (quantiles of the nearest rank),
    ``zero`` (nodes without such edges) and ``counts``, pairs of a degree and the number of
    nodes that have it, by degree. ``isolated`` counts nodes without any edge,
    ``parallel_edges`` those that repeat an earlier edge: it sorts each row, and is -1 unless
    ``parallel``. ``progress`` is called with nodes done and in all.

    4 bytes of memory for each node (8 from 2**32 edges on); the graph is read once, in order.
    """
    with _counted(graph, parallel, progress) as count:
        found: dict[str, Any] = json.loads(count._call("DegreesProfile"))
        return found


def out_degrees(
    graph: RelationState, *, progress: Callable[[int, int | None], object] | None = None
) -> Array:
    """The out-degree of each node of a graph on the CPU, int64; ``progress`` as above."""
    with _counted(graph, False, progress) as count:
        memory = memories.new("DegreesOut", count._number)
        return Array._from_address(memory.data, graph._num_nodes, 64, memory)


def degrees_of(
    graph: RelationState, direction: Literal["in", "out"], count: int, nodes: Any
) -> Array | int:
    """Returns in- or out-degrees of a graph on the CPU, with ``count`` nodes at that end.

    The nodes are all of them, some by their ids, or one, whose degree is an int. Needs NumPy.
    Raises IndexError for an id out of range.
    """
    import numpy as np

    one = hasattr(nodes, "__index__") and not getattr(nodes, "shape", ())
    if nodes is None:
        ids = None
    else:
        ids = integers([index(nodes)] if one else on_cpu(nodes), "nodes")
        outside = np.flatnonzero((ids < 0) | (ids >= count))
        if len(outside):
            at = int(outside[0])
            where = "nodes" if one else f"nodes[{at}]"
            raise IndexError(f"{where}: expected an id in [0, {count}), got {ids[at]}")
    if direction == "out":
        degrees = out_degrees(graph)[:count].numpy()
        degrees = degrees if ids is None else degrees[ids]
    else:
        indptr = graph._open()[0].numpy()
        rows = min(len(indptr) - 1, count)
        if ids is None:
            degrees = np.zeros(count, np.int64)
            degrees[:rows] = np.diff(indptr[: rows + 1])
        else:
            # Nodes past the last row have no in-edges.
            first, end = (indptr[np.minimum(ids + i, rows)] for i in (0, 1))
            degrees = (end - first).astype(np.int64)
    return int(degrees[0]) if one else as_array(degrees, "degrees")


def on_cpu(nodes: Any) -> Any:
    """Ids of nodes, copied from a GPU where they are there."""
    return nodes.cpu() if hasattr(nodes, "cpu") else nodes


@contextmanager
def _counted(
    graph: RelationState, parallel: bool, progress: Callable[[int, int | None], object] | None
) -> Iterator[_Count]:
    """The count of all rows."""
    handle, rows = graph._handle(), len(graph._open()[0]) - 1
    count = _Count()
    try:
        count._create("DegreesNew", handle, int(parallel))
        row = 0
        while row < rows:
            row = count._call("DegreesAdvance", _STEP)
            if progress is not None:
                # Not of edges: a read of ours, of a file that became shorter, would be a signal.
                progress(row, rows)
        yield count
    finally:
        count._release()


class _Count(EngineHandle):
    """The engine's count of a graph's degrees."""

    __slots__ = ()

    _close_function: ClassVar[str] = "DegreesClose"
