"""The arrays of a graph in the host's memory, as the engine borrows them."""

from __future__ import annotations

from typing import Any

from pygsampler._arrays.ids import as_ids, has_moved
from pygsampler._core import memories
from pygsampler._core.checks import integer
from pygsampler._core.limits import MAX_NODES, MAX_NODES32
from pygsampler._graph import layout as at
from pygsampler._graph.parts import Parts
from pygsampler.array import Array

MOST_NODES = {32: MAX_NODES32, 64: MAX_NODES}


def of_edges(src: Any, dst: Any, num_nodes: int | None) -> tuple[Array, Array, Array, int]:
    """The CSC of a list of edges, in memory of the engine's, and the number of vertices."""
    sources = as_ids(src, "src")
    targets = as_ids(dst, "dst")
    if sources.bits != targets.bits:
        raise TypeError(f"dst: expected int{sources.bits} as src has, got int{targets.bits}")
    if sources.length != targets.length:
        raise ValueError(
            f"dst: expected as many values as src has ({sources.length}), got {targets.length}"
        )
    bits = sources.bits
    count = -1
    if num_nodes is not None:
        count = integer(num_nodes, "num_nodes", 0, MOST_NODES[bits])
    memory = memories.new(
        "GraphFromCOO", sources.address, targets.address, bits, sources.length, count
    )
    words = memories.read_int64(memory.data, at.COO_WORDS)
    made = Array._of_rows(at.COO_ROWS, words, memory)
    return made["indptr"], made["indices"], made["edge_ids"], words[at.COO_NUM_NODES]


def moved(parts: Parts) -> bool:
    """Whether torch has put one of the arrays elsewhere meanwhile."""
    # No generator: every batch asks, and one costs as much as all that it would look at.
    for part in parts:  # noqa: SIM110
        if part is not None and has_moved(part._owner, part._address):
            return True
    return False


def where_it_is(part: Array, where: str) -> Array:
    """The array where it is now."""
    if not has_moved(part._owner, part._address):
        return part
    return Array._of_view(as_ids(part._owner, where))
