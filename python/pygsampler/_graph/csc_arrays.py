"""``CscArrays``: the arrays of a graph as the engine reads them, from a CSC or a list of edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import IdView, as_ids, as_int64, has_moved
from pygsampler._arrays.interning import is_text
from pygsampler._engine import memory as memories
from pygsampler._engine.checks import integer
from pygsampler._engine.limits import MAX_NODES, MAX_NODES32
from pygsampler._graph import layout as at

MOST_NODES = {32: MAX_NODES32, 64: MAX_NODES}
NUMBERING = "renumber=True numbers the ids that occur"
# Nodes for each edge from which on ids are taken for hashes where memory is short.
_SPARSE = 64


class CscArrays(NamedTuple):
    """A CSC, and what its rows draw by where they do not draw uniformly."""

    indptr: Array
    indices: Array
    edge_ids: Array | None = None
    # The tables of a graph with weights (rng.Weights): 8 bytes for each edge, both or none.
    alias: Array | None = None
    sums: Array | None = None

    def each(self, change: Callable[[Array, str], Array]) -> CscArrays:
        """``change`` of every array that there is, and its name."""
        named = zip(self, self._fields, strict=True)
        return CscArrays(*(None if part is None else change(part, name) for part, name in named))  # type: ignore[arg-type]

    def shares(self, other: CscArrays) -> bool:
        """True if the two have an array in common."""
        known = {id(part) for part in other if part is not None}
        return any(id(part) in known for part in self)

    def addresses(self) -> tuple[int, ...]:
        """Returns the addresses of the arrays, 0 for an array that is None."""
        return tuple(0 if part is None else part._address for part in self)

    def arguments(self, addresses: tuple[int, ...], num_nodes: int) -> tuple[int, ...]:
        """Returns the engine's arguments for a graph whose arrays lie at these addresses."""
        indptr, indices, edge_ids, alias, sums = addresses
        return (
            indptr,
            self.indptr._bits,
            len(self.indptr) - 1,
            indices,
            self.indices._bits,
            len(self.indices),
            edge_ids,
            64 if self.edge_ids is None else self.edge_ids._bits,
            num_nodes,
            alias,
            sums,
        )


def csc_from_edges(src: Any, dst: Any, num_nodes: int | None) -> tuple[Array, Array, Array, int]:
    """The CSC of a list of edges, in memory of the engine's, and the number of nodes."""
    sources, targets = _alike(edge_ends(src, "src"), edge_ends(dst, "dst"))
    if sources.length != targets.length:
        raise ValueError(
            f"dst: expected as many values as src has ({sources.length}), got {targets.length}"
        )
    bits = sources.bits
    count = -1
    if num_nodes is not None:
        count = integer(num_nodes, "num_nodes", 0, MOST_NODES[bits])
    try:
        memory = memories.new(
            "GraphFromCOO", sources.address, targets.address, bits, sources.length, count
        )
    except (MemoryError, ValueError) as error:
        _refuse_gaps({"src": sources, "dst": targets}, count, error)
        raise
    words = memories.read_int64(memory.data, at.COO_WORDS)
    made = Array._of_rows(at.COO_ROWS, words, memory)
    return made["indptr"], made["indices"], made["edge_ids"], words[at.COO_NUM_NODES]


def edge_ends(value: Any, where: str) -> IdView:
    """The ends of edges; the error for names says how to number them."""
    try:
        return as_ids(value, where)
    except TypeError:
        if is_text(value):
            raise TypeError(
                f"{where}: expected ids, integers from 0, got names; renumber=True numbers them"
            ) from None
        raise


def _alike(first: IdView, second: IdView) -> tuple[IdView, IdView]:
    """Both in 64 bits where one is."""
    if first.bits == second.bits:
        return first, second
    return as_int64(first), as_int64(second)


def is_sparse(largest: int, edges: int) -> bool:
    """True for an id so much larger than there are edges that it is no number of a node."""
    return largest > _SPARSE * (edges + 1)


def _refuse_gaps(endpoint_ids: Mapping[str, IdView], count: int, error: Exception) -> None:
    """Raises ``error`` anew for ids that are no numbers of nodes, such as hashes."""
    for where, view in endpoint_ids.items():
        ids = memories.integer_view(view.address, view.length, view.bits)
        largest = max(ids, default=0)
        if is_sparse(largest, len(ids)):
            if count >= 0:
                raise type(error)(f"{error}; {NUMBERING}") from None
            raise type(error)(
                f"{where}[{ids.tolist().index(largest)}]: expected ids that number the nodes from "
                f"0, got {largest} ({error}); {NUMBERING}"
            ) from None


def has_moved_arrays(arrays: CscArrays) -> bool:
    """True if torch has moved the memory of one of the arrays."""
    # No generator: every batch asks, and one costs as much as all that it would look at.
    for part in arrays:  # noqa: SIM110
        if part is not None and has_moved(part._owner, part._address):
            return True
    return False


def current_array(part: Array, where: str) -> Array:
    """The array where it is now."""
    if not has_moved(part._owner, part._address):
        return part
    return Array._of_view(as_ids(part._owner, where))
