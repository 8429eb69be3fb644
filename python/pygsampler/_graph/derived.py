"""Arrays that the engine derives of a graph: tables for weighted draws, and its out-edges."""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays.array import Array
from pygsampler._engine import memory as memories
from pygsampler._engine.handle import SLICE_MS, EngineHandle
from pygsampler._engine.progress import progress_counter
from pygsampler._graph import layout as at
from pygsampler._graph.csc_arrays import CscArrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._arrays.ids import IdView
    from pygsampler._graph.relation_state import RelationState

_ALL = 1 << 30


class DegreeAliasTable:
    """The alias table of ``negatives_of``, and copies of it on devices, by their index."""

    __slots__ = ("copies", "table")

    def __init__(self, table: Array) -> None:
        self.table = table
        self.copies: dict[int, Any] = {}

    def close(self) -> None:
        """Lets go of the copies."""
        self.copies.clear()


class _DeriveJob(EngineHandle):
    """Arrays in the making."""

    __slots__ = ()

    _close_function: ClassVar[str] = "DeriveCancel"


def weight_tables(graph: RelationState, name: str, values: Array, mask: bool) -> CscArrays | None:
    """The arrays of the graph of those edges; None where a mask leaves them all.

    ``graph`` is on the CPU and ``values`` have one for each edge id. A bar is shown where it takes
    long. ValueError names the edge of a weight that is negative, infinite or no number.
    """
    parts = graph._open()
    words = (values._address, values._length, int(mask))
    memory = run_derivation(
        graph, len(parts.indices), name, "tables", words, name=name, dtype=values.dtype
    )
    made = Array._of_rows(at.TABLES_ROWS, memories.read_int64(memory.data, at.TABLES_WORDS), memory)
    # If no edge is left out, there is no CSC next to the graph's own.
    if made or not mask:
        return parts._replace(**made)
    return None


def transpose(
    graph: RelationState, name: str, types: Array | None, kinds: int, bare: bool
) -> tuple[CscArrays, int]:
    """The arrays of the graph by its out-edges, and how many types its rows are split by.

    ``graph`` is on the CPU; ``types`` have one for each edge id, below ``kinds`` where that is not
    0, and are called ``name``. Without them, rows are whole, and the number is 0. ``bare`` leaves
    the ids of edges out. A bar is shown where it takes long. ValueError names the edge of a type
    that none can have, and TypeError is for those that are no integers.
    """
    edges = len(graph._open().indices)
    dtype, address, length = "", 0, 0
    if types is not None:
        dtype, address, length = types.dtype, types._address, types._length
    words = [address, length, kinds, int(bare)]
    memory = run_derivation(
        graph, edges, name or "out-edges", "transpose", words, name=name, dtype=dtype
    )
    words = memories.read_int64(memory.data, at.TRANSPOSED_WORDS)
    made = Array._of_rows(at.TRANSPOSED_ROWS, words, memory)
    return CscArrays(**made), words[at.TRANSPOSED_KINDS]


def degree_alias_table(graph: RelationState, power: float) -> Array:
    """The alias table by which nodes are drawn as their in-degree to a power: shape [num_nodes].

    ``graph`` is on the CPU. A bar is shown where it takes long.
    """
    words = struct.unpack("<q", struct.pack("<d", power))
    nodes = graph._num_nodes
    memory = run_derivation(graph, nodes, "negatives", "negatives", words, unit=" nodes")
    return Array._from_address(memory.data, nodes, 64, memory)


def page_ranks(
    graph: RelationState, roots: IdView, most: int, alpha: float, epsilon: float, threshold: float
) -> tuple[Array, Array, Array]:
    """The nodes around each root by personalised PageRank, at most so many.

    Returns where those of each root begin, [roots + 1], the nodes, the root first and then by
    score, and their scores, of 2**60: int64. ``graph`` is on the CPU. A bar is shown where it takes
    long. ValueError and IndexError name what no walk can have.
    """
    count = roots.length
    (*numbers,) = struct.unpack("<3q", struct.pack("<3d", alpha, epsilon, threshold))
    words = roots.address, count, roots.bits, most, *numbers
    memory = run_derivation(graph, count, "PageRank", "pagerank", words, unit=" roots")
    starts = Array._from_address(memory.data, count + 1, 64, memory)
    (total,) = memories.read_int64(memory.data + 8 * count, 1)
    place = memory.data + 8 * (count + 1)
    return (
        starts,
        Array._from_address(place, total, 64, memory),
        Array._from_address(place + 8 * total, total, 64, memory),
    )


def run_derivation(
    graph: RelationState,
    count: int,
    text: str,
    kind: str,
    words: Sequence[int],
    *,
    name: str = "",
    dtype: str = "",
    unit: str = " edges",
) -> memories.Memory:
    """Returns the memory that a job of the engine derives of a graph, and shows its progress.

    ``kind`` and ``words`` are those of ``core.StartDerivation``, ``name`` and ``dtype`` those of
    the array that the job reads; ``text`` and ``count`` are the progress bar's.
    """
    job, numbers = _DeriveJob(), array("q", words)
    try:
        job._create("DeriveStart", graph._handle(), kind, name, dtype, numbers.buffer_info()[0])
        # A bar, even one that is never shown, takes longer than a small graph.
        if job._call("DerivePoll", SLICE_MS) >= 0:
            with progress_counter(True, count, text, unit) as report:
                before = 0
                while (done := job._call("DerivePoll", SLICE_MS)) >= 0:
                    done = count * done // _ALL
                    report(done - before)
                    before = done
                report(count - before)
        memory = memories.new("DeriveTake", job._number)
        job._number = 0
    finally:
        job._release()
    return memory
