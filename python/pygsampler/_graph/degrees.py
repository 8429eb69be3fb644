"""The degrees of a graph, counted by the engine on all cores."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from pygsampler._core import memories
from pygsampler._core.handle import EngineHandle
from pygsampler._graph.state import GraphState
from pygsampler.array import Array

# Edges of one call, after which there is progress to tell, and Ctrl-C is heard: a tenth of a
# second.
_STEP = 1 << 24


def profile(
    graph: GraphState,
    *,
    parallel: bool = False,
    progress: Callable[[int, int | None], object] | None = None,
) -> dict[str, Any]:
    """In- and out-degrees, self loops and isolated vertices of a graph on the CPU.

    ``in`` and ``out`` have ``min``, ``median``, ``p99``, ``max`` (quantiles of the nearest rank),
    ``zero`` (vertices without such edges) and ``counts``, pairs of a degree and the number of
    vertices that have it, by degree. ``isolated`` counts vertices without any edge,
    ``parallel_edges`` those that repeat an earlier edge: it sorts each row, and is -1 unless
    ``parallel``. ``progress`` is called with vertices done and in all.

    4 bytes of memory for each vertex (8 from 2**32 edges on); the graph is read once, in order.
    """
    with _counted(graph, parallel, progress) as count:
        found: dict[str, Any] = json.loads(count._call("DegreesProfile"))
        return found


def out_degrees(
    graph: GraphState, *, progress: Callable[[int, int | None], object] | None = None
) -> Array:
    """The out-degree of each vertex of a graph on the CPU, int64; ``progress`` as above."""
    with _counted(graph, False, progress) as count:
        memory = memories.new("DegreesOut", count._number)
        return Array._of(memory.data, graph._num_nodes, 64, memory)


@contextmanager
def _counted(
    graph: GraphState, parallel: bool, progress: Callable[[int, int | None], object] | None
) -> Iterator[_Count]:
    """The count of all rows."""
    handle, rows = graph._handle(), len(graph._open()[0]) - 1
    count = _Count()
    try:
        count._make("DegreesNew", handle, int(parallel))
        row = 0
        while row < rows:
            row = count._call("DegreesAdvance", _STEP)
            if progress is not None:
                # Not of edges: a read of ours, of a file that became shorter, would be a signal.
                progress(row, rows)
        yield count
    finally:
        count._give_back()


class _Count(EngineHandle):
    """The engine's count of a graph's degrees."""

    __slots__ = ()

    _end: ClassVar[str] = "DegreesClose"
