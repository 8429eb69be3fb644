"""Rules for the rows of a cache: functions of scores, wherever the rows are put."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def top_rows(scores: Tensor, count: int) -> Tensor:
    """The ``count`` rows of the highest scores, int64 and ascending; of equal ones the first.

    ``scores`` have a number for each row, none of them NaN; the rows are on their device.
    """
    import torch

    rows = len(scores)
    if count >= rows or count <= 0:
        return torch.arange(max(min(count, rows), 0), device=scores.device)
    if scores.is_cuda:
        # kthvalue is one block's work there.
        least = scores.topk(count, sorted=False).values.min()
    else:
        least = scores.kthvalue(rows - count + 1).values
    above = (scores > least).nonzero().flatten()
    equal = (scores == least).nonzero().flatten()[: count - len(above)]
    return torch.cat([above, equal]).sort().values


def replacements(counts: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
    """Returns rows that are to come into a cache, and their places, int64 and int32.

    ``counts``, below 2**30, say for each row how often it is going to be read, ``held`` for each
    place which row is there, or -1. A row that is there saves ``counts`` reads over the link, one
    that is not a read less, since bringing it is one: it comes where that is more than what it
    drives out would have saved. So no set of rows has fewer reads over the link, those that bring
    it included.
    """
    import torch

    gains = counts * 2 - 2
    there = held[held >= 0]
    # A row that is there wins over one as good that is not.
    gains[there] += 3
    chosen = torch.zeros(len(counts), dtype=torch.bool, device=counts.device)
    chosen[top_rows(gains, len(held))] = True
    chosen &= gains >= 0
    return placements(chosen, held)


def placements(chosen: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
    """Returns chosen rows that are to come, int64, and their places, int32: others stay.

    ``chosen`` says for each row whether it is to be there, of at most as many as there are places.
    """
    free = (held < 0) | ~chosen[held.clamp(min=0)]
    coming = chosen.clone()
    coming[held[held >= 0]] = False
    rows = coming.nonzero().flatten()
    return rows, free.nonzero().flatten()[: len(rows)].int()
