"""The arrays of a graph in the host's memory, as the engine borrows them."""

from __future__ import annotations

from pygsampler import _engine, _input
from pygsampler.array import Array

Parts = tuple[Array, Array, "Array | None"]


def new(parts: Parts, num_nodes: int) -> int:
    """The engine's handle of a graph on the arrays, which are validated."""
    indptr, indices, edge_ids = parts
    ids_address, ids_bits = 0, 64
    if edge_ids is not None:
        ids_address, ids_bits = edge_ids._address, edge_ids._bits
    handle: int = _engine.call(
        "GraphNew",
        indptr._address,
        indptr._bits,
        len(indptr) - 1,
        indices._address,
        indices._bits,
        len(indices),
        ids_address,
        ids_bits,
        num_nodes,
    )
    return handle


def moved(parts: Parts) -> bool:
    """Whether torch has put one of the arrays elsewhere meanwhile."""
    return any(part is not None and _input.moved(part._owner, part._address) for part in parts)


def where_they_are(parts: Parts) -> Parts:
    """The arrays where they are now."""
    indptr, indices, edge_ids = parts
    return (
        _where_it_is(indptr, "indptr"),
        _where_it_is(indices, "indices"),
        None if edge_ids is None else _where_it_is(edge_ids, "edge_ids"),
    )


def _where_it_is(part: Array, where: str) -> Array:
    if not _input.moved(part._owner, part._address):
        return part
    return Array._of_view(_input.take(part._owner, where))
