"""Which rows a cache has: functions of scores, wherever the rows are put."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def hottest(scores: Tensor, count: int) -> Tensor:
    """The ``count`` rows of the highest scores, int64 and ascending; of equal ones the first.

    ``scores`` have a number for each row, none of them NaN.
    """
    import torch

    rows = len(scores)
    if count <= 0:
        return torch.empty(0, dtype=torch.int64)
    if count >= rows:
        return torch.arange(rows)
    least = scores.kthvalue(rows - count + 1).values
    above = (scores > least).nonzero().flatten()
    equal = (scores == least).nonzero().flatten()[: count - len(above)]
    return torch.cat([above, equal]).sort().values


def exchanged(counts: Tensor, held: Tensor) -> tuple[Tensor, Tensor]:
    """Which rows are to come into a cache, and their places, int64 and int32.

    ``counts`` says for each row how often it is going to be read, ``held`` for each place which
    row is there, or -1. A row that is there saves ``counts`` reads over the link, one that is not
    a read less, since bringing it is one: it comes where that is more than what it drives out would
    have saved. So as few reads as a static cache can have go over the link, those that fill it
    included.
    """
    import torch

    gains = counts.long() * 2 - 2
    there = held[held >= 0]
    # A row that is there wins over one as good that is not.
    gains[there] += 3
    chosen = torch.zeros(len(counts), dtype=torch.bool)
    chosen[hottest(gains, len(held))] = True
    chosen &= gains >= 0
    rows = chosen.clone()
    rows[there] = False
    coming = rows.nonzero().flatten()
    free = (held < 0) | ~chosen[held.clamp(min=0)]
    return coming, free.nonzero().flatten()[: len(coming)].int()
