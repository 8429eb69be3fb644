"""A check of whether DGL has sorted the rows of a graph since they were looked at."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

__all__ = ["UnsortedWitness", "find_unsorted"]

# Most graphs whose rows are in no order say so at once; the others are read a part at a time.
_FIRST, _GROWTH, _MOST = 1 << 10, 16, 1 << 22


class UnsortedWitness(NamedTuple):
    """Two neighbors of one row of DGL's CSC in descending order, read from DGL's memory.

    ``global_uniform_negative_sampling``, and so the negative sampler ``GlobalUniform``, sorts the
    rows of its graph in place, ids of edges with them, unless all are sorted already. Arrays
    computed from the places of edges, such as tables of weights and the places of edges to leave
    out, then belong to other edges. Rows that are not all sorted have such a pair, and sorted rows
    have none, so the pair detects the sorting exactly.
    """

    pair: torch.Tensor

    @property
    def is_sorted(self) -> bool:
        """True if the rows have been sorted."""
        before, after = self.pair.tolist()
        return bool(before <= after)


def find_unsorted(indptr: torch.Tensor, indices: torch.Tensor) -> UnsortedWitness | None:
    """The first in a CSC; None where its rows are sorted, which DGL then leaves alone."""
    first, length = 0, _FIRST
    while first + 1 < len(indices):
        part = indices[first : first + length + 1]
        # On the CPU by NumPy: these are small calls, and torch's take five times as long.
        inside = (_inside_of_array if part.is_cpu else _inside)(indptr, part, first)
        if len(inside):
            at = int(inside[0])
            return UnsortedWitness(indices[at - 1 : at + 1])
        first, length = first + length, min(length * _GROWTH, _MOST)
    return None


def _inside(indptr: torch.Tensor, part: torch.Tensor, first: int) -> torch.Tensor:
    """The places in all rows of what is below the id before it in its row."""
    after = (part[:-1] > part[1:]).nonzero().flatten().to(indptr.dtype) + first + 1
    # At the start of a row the entry before belongs to another row, so a fall there is allowed.
    begins = indptr[torch.searchsorted(indptr, after)] == after
    return after[~begins]


def _inside_of_array(indptr: torch.Tensor, part: torch.Tensor, first: int) -> Any:
    rows, ids = indptr.numpy(), part.numpy()
    after = (ids[:-1] > ids[1:]).nonzero()[0].astype(rows.dtype) + (first + 1)
    return after[rows[rows.searchsorted(after)] != after]
