"""``Timed``: a graph whose rows are in the order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._core import memories
from pygsampler._graph import layout as at
from pygsampler._graph.derived import made_of
from pygsampler.array import Array

if TYPE_CHECKING:
    from pygsampler._graph.state import GraphState


class Timed:
    """The sorted rows, which ``graph`` has, and in ``memory`` the times of their edges."""

    __slots__ = ("by_vertex", "float", "graph", "memory", "name")

    graph: Any
    memory: memories.Memory

    def __init__(self, name: str, by_vertex: bool, graph: Any, memory: Any, float_: bool) -> None:
        self.name, self.by_vertex, self.float = name, by_vertex, float_
        self.graph, self.memory = graph, memory

    def close(self) -> None:
        """Lets go of the arrays once the batches in flight are done."""
        self.graph.close()


def sorted_by_time(
    graph: GraphState, name: str, values: Array, by_vertex: bool
) -> tuple[dict[str, Array], memories.Memory, bool]:
    """The arrays of the graph's rows in the order of time, the memory of the times, and whether
    these are float64.

    ``graph`` is on the CPU. ``values`` has a time for each edge id, or each vertex, and is called
    ``name``. A bar is shown where it takes long. TypeError for other dtypes than int32, int64,
    float32 and float64, ValueError for NaN.
    """
    about = name, values.dtype, values._address, values._length, int(by_vertex)
    memory = made_of(graph, len(graph._open().indices), "times", "TimesStart", *about)
    words = memories.read_int64(memory.data, at.TIMES_WORDS)
    return Array._of_rows(at.TIMES_ROWS, words, memory), memory, bool(words[at.TIMES_FLOAT])
