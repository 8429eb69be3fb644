"""``TimeSortedRelation`` and ``TimeSortedGraph``: graphs whose rows are in the order of time."""

from __future__ import annotations

import weakref
from array import array
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._graph import layout as at
from pygsampler._graph.derived import run_derivation

if TYPE_CHECKING:
    from pygsampler._arrays.datetimes import Kind
    from pygsampler._graph.relation_state import RelationState


class TimeSortedRelation:
    """The sorted rows, which ``graph`` has, and in ``memory`` the times of their edges."""

    __slots__ = (
        "__weakref__",
        "_whole",
        "by_node",
        "float",
        "graph",
        "kind",
        "memory",
        "name",
        "values",
    )

    graph: Any
    memory: memories.Memory
    # The times of nodes of another type, where the rows are by those.
    values: Array
    # The kind of dates that the times were before they were numbers; None if unknown.
    kind: Kind | None

    def __init__(
        self,
        name: str,
        by_node: bool,
        graph: Any,
        memory: Any,
        float_: bool,
        kind: Kind | None,
        relation: Any = None,
    ) -> None:
        self.name, self.by_node, self.float, self.kind = name, by_node, float_, kind
        self.graph, self.memory = graph, memory
        # The relation that ``graph`` is derived from and refers to weakly; a forked child derives
        # ``graph`` anew.
        self._whole = relation

    def close(self) -> None:
        """Lets go of the arrays once the batches in flight are done."""
        self.graph.close()


class TimeSortedBySource:
    """A graph's rows in the order of the times that nodes of another type have.

    The graph may be a relation of several heterogeneous graphs, so these own the sorted rows: they
    live as long as a sampler uses them, and later requests for the same rows share them.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # The address of the array is how it is known: it stays as long as its rows.
        self._known: weakref.WeakValueDictionary[tuple[Any, ...], TimeSortedRelation]
        self._known = weakref.WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def get_or_sort(
        self, values: Array, name: str, *by: str | None, make: Callable[[], TimeSortedRelation]
    ) -> TimeSortedRelation:
        """Returns the rows sorted by the times ``values``, of the edges that ``by`` leaves in.

        ``name`` is the name of the array. ``make`` makes the rows if there are none.
        """
        key = id(values), name, *by
        found = self._known.get(key)
        if found is None:
            with library.table_lock():
                found = self._known.get(key)
                if found is None:
                    found = make()
                    found.values = values
                    self._known[key] = found
        return found

    def close(self) -> None:
        """Lets go of the arrays once the batches in flight are done."""
        for each in list(self._known.values()):
            each.close()
        self._known.clear()


class TimeSortedGraph:
    """Sorted rows of each relation of a heterogeneous graph; None where its edges have no times.

    ``graph`` has the sorted rows of all.
    """

    __slots__ = ("_about", "_parts", "float", "graph", "kind", "name")

    graph: Any

    def __init__(
        self, name: str, graph: Any, relations: Sequence[TimeSortedRelation | None]
    ) -> None:
        kinds = {part.float for part in relations if part is not None}
        if len(kinds) > 1:
            raise ValueError(
                f"time: expected arrays {name!r} that are all integers, or all floating-point, "
                "got some of both"
            )
        self.name, self.graph, self._parts, self.float = (
            name,
            graph,
            tuple(relations),
            True in kinds,
        )
        dated = {part.kind for part in relations if part is not None} - {None}
        if len(dated) > 1:
            raise ValueError(
                f"time: expected arrays {name!r} that are all dates, or all numbers, got some of "
                "both"
            )
        self.kind = next(iter(dated), None)
        self._about = array("q")
        for part in relations:
            self._about += array(
                "q", [0, 0] if part is None else [part.memory.address, int(part.by_node)]
            )

    @property
    def address(self) -> int:
        """The address of two integers per relation: of its times, and 1 if nodes have the times."""
        return self._about.buffer_info()[0]


def sort_by_time(
    graph: RelationState, name: str, values: Array, by_node: bool
) -> tuple[dict[str, Array], memories.Memory, bool]:
    """Returns the arrays of the rows in the order of time, the times, and if these are float64.

    ``graph`` is on the CPU. ``values`` has a time for each edge id, or each node, and is called
    ``name``. A bar is shown where it takes long. TypeError for other dtypes than int32, int64,
    float32 and float64, ValueError for NaN.
    """
    array_words = values._address, values._length, int(by_node)
    memory = run_derivation(
        graph,
        len(graph._open().indices),
        "times",
        "times",
        array_words,
        name=name,
        dtype=values.dtype,
    )
    words = memories.read_int64(memory.data, at.TIMES_WORDS)
    return Array._of_rows(at.TIMES_ROWS, words, memory), memory, bool(words[at.TIMES_FLOAT])
