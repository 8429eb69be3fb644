"""Rows of a table of features that a batch names by id and that nobody has gathered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from pygsampler._engine.checks import describe
from pygsampler._features.features import Features
from pygsampler._ops.segments import Segments, reduce, weighted_sum
from pygsampler._ops.self_rows import rows_by_id

__all__ = ["TableRows", "gather_rows", "rows_of_batch"]


class TableRows:
    """The rows ``ids`` of a table [N, width], which a layer may read where they are."""

    __slots__ = ("ids", "table")

    def __init__(self, table: torch.Tensor | Features, ids: torch.Tensor) -> None:
        self.table, self.ids = table, ids

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, part: slice) -> TableRows:
        return TableRows(self.table, self.ids[part])

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of a row's values."""
        known = self.table.dtype
        return known if isinstance(known, torch.dtype) else getattr(torch, str(known))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that gathered rows have."""
        return len(self.ids), *self.table.shape[1:]

    def gather(self) -> torch.Tensor:
        """Returns the rows as a tensor [len(ids), width]."""
        return rows_by_id(self.table, self.ids)

    def reduce(self, edges: Segments, kind: int) -> torch.Tensor:
        """Returns them reduced over each row's edges, as ``segments.reduce`` does."""
        return reduce(edges, self.table, kind, self.ids)

    def weighted_sum(self, edges: Segments, weights: torch.Tensor) -> torch.Tensor:
        """Returns their sum over each row's edges, each times the edge's weight."""
        return weighted_sum(edges, self.table, weights, self.ids)


def gather_rows(x: torch.Tensor | TableRows) -> torch.Tensor:
    """Returns x as a tensor."""
    return x.gather() if isinstance(x, TableRows) else x


def rows_of_batch(table: Any, ids: Any) -> Any:
    """Returns the rows of a batch's nodes; of a mapping of types gathered, since each has a use.

    Raises TypeError unless ``table`` is a tensor or ``Features``, or a mapping as ``ids`` is.
    """
    if isinstance(ids, Mapping):
        if not isinstance(table, Mapping):
            raise TypeError(f"table: expected a mapping of node types, got {describe(table)}")
        return {
            kind: rows_of_batch(each, ids[kind]).gather()
            for kind, each in table.items()
            if kind in ids
        }
    if not isinstance(table, (torch.Tensor, Features)):
        raise TypeError(
            f"table: expected a tensor or Features with a row for each node of the graph, got "
            f"{describe(table)}"
        )
    return TableRows(table, ids)
