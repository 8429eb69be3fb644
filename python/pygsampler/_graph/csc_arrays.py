"""``Parts``: the arrays of a graph that the engine reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pygsampler._arrays.array import Array


class CscArrays(NamedTuple):
    """A CSC, and what its rows draw by where they do not draw uniformly."""

    indptr: Array
    indices: Array
    edge_ids: Array | None = None
    # Of a graph that weights were made for (rng.Weights): 8 bytes for each edge, both or none.
    alias: Array | None = None
    sums: Array | None = None

    def each(self, change: Callable[[Array, str], Array]) -> CscArrays:
        """``change`` of every array that there is, and its name."""
        named = zip(self, self._fields, strict=True)
        return CscArrays(*(None if part is None else change(part, name) for part, name in named))  # type: ignore[arg-type]

    def shares(self, other: CscArrays) -> bool:
        """Whether one of the arrays is one of the others."""
        known = {id(part) for part in other if part is not None}
        return any(id(part) in known for part in self)

    def addresses(self) -> tuple[int, ...]:
        """Where they are; 0 where there is none."""
        return tuple(0 if part is None else part._address for part in self)

    def arguments(self, addresses: tuple[int, ...], num_nodes: int) -> tuple[int, ...]:
        """As the engine takes a graph whose arrays it finds at those addresses."""
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
