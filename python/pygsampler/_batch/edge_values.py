"""Functions on the names of the arrays of a batch: ``parted`` finds the arrays of edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

__all__ = ["NO_VALUES", "EdgeValueName", "edge_data", "split_edge_values"]

ArrayT = TypeVar("ArrayT")

NO_VALUES: Mapping[str, Any] = MappingProxyType({})


class EdgeValueName(NamedTuple):
    """The name of values that the edges of one block have."""

    block: int
    name: str


def edge_data(weights: ArrayT | None, values: Mapping[str, ArrayT]) -> Mapping[str, ArrayT]:
    """All values of a block's edges by name: those that have no other are ``"w"``."""
    return {**values} if weights is None else {"w": weights, **values}


def split_edge_values(
    arrays: Iterable[tuple[str | EdgeValueName, ArrayT]],
) -> tuple[dict[str, ArrayT], dict[int, dict[str, ArrayT]]]:
    """Splits named arrays into the arrays of the batch and the arrays of each block's edges."""
    beside: dict[str, ArrayT] = {}
    of_edges: dict[int, dict[str, ArrayT]] = {}
    for name, array in arrays:
        if isinstance(name, EdgeValueName):
            of_edges.setdefault(name.block, {})[name.name] = array
        else:
            beside[name] = array
    return beside, of_edges
