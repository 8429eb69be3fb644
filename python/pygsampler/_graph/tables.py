"""What rows draw by: the edges with weights, or those that a mask leaves, as a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pygsampler._core import memories
from pygsampler._core.handle import SLICE_MS, EngineHandle
from pygsampler._core.progress import counting
from pygsampler._graph import layout as at
from pygsampler._graph.parts import Parts
from pygsampler.array import Array

if TYPE_CHECKING:
    from pygsampler._graph.state import GraphState

_ALL = 1 << 30


class _Job(EngineHandle):
    """Tables in the making."""

    __slots__ = ()

    _end: ClassVar[str] = "TablesCancel"


def tables_of(graph: GraphState, name: str, values: Array, mask: bool) -> Parts | None:
    """The arrays of the graph of those edges; None where a mask leaves them all.

    ``graph`` is on the CPU and ``values`` have one for each edge id. A bar is shown where it takes
    long. ValueError names the edge of a weight that is negative, infinite or no number.
    """
    parts = graph._open()
    job = _Job()
    try:
        edges = len(parts.indices)
        with counting(True, edges, name, " edges") as report:
            job._make(
                "TablesStart",
                graph._handle(),
                name,
                values.dtype,
                values._address,
                values._length,
                int(mask),
            )
            before = 0
            while (done := job._call("TablesPoll", SLICE_MS)) >= 0:
                done = edges * done // _ALL
                report(done - before)
                before = done
            report(edges - before)
        memory = memories.new("TablesTake", job._number)
        job._number = 0
    finally:
        job._give_back()
    made = Array._of_rows(at.TABLES_ROWS, memories.read_int64(memory.data, at.TABLES_WORDS), memory)
    # Where nothing is left out there is no CSC beside the graph's own.
    if made or not mask:
        return parts._replace(**made)
    return None
