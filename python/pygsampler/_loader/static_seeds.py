"""``StaticSeeds``: the seeds of a pass in the order in which static batches take them."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from pygsampler._sampling.seed_times import seed_times
from pygsampler._sampling.static_buffers import EpochSeeds

if TYPE_CHECKING:
    from pygsampler._graph.temporal import TimeSortedGraph, TimeSortedRelation
    from pygsampler._loader.seeds import HeteroSeeds
    from pygsampler._loader.shards import Shards

__all__ = ["StaticSeeds"]


class StaticSeeds:
    """What a rank's batches of a pass begin with; ``timed`` are the times of edges, if any."""

    __slots__ = ("_rank", "_shards", "_timed", "_types")

    def __init__(
        self,
        types: HeteroSeeds | None,
        shards: Shards,
        rank: int,
        timed: TimeSortedRelation | TimeSortedGraph | None,
    ) -> None:
        self._types = types
        self._shards = shards
        self._rank = rank
        self._timed = timed

    def of(
        self,
        order: torch.Tensor,
        times: torch.Tensor | None,
        index: int,
        copied: Callable[[torch.Tensor, int], torch.Tensor],
    ) -> EpochSeeds:
        """The seeds in an order, and their times in it, copied to a GPU."""
        bounds = [self._shards.bounds(self._rank, step) for step in range(self._shards.steps)]
        counts = array("q", [end - start for start, end in bounds])
        if self._types is not None:
            order, times, bounds, counts = self._by_type(order, times, bounds)
        parts = array("q")
        for start, end in bounds:
            parts.extend((start, end - start))
        told = None
        if self._timed is not None:
            told = seed_times(times, len(order), self._timed)
        return EpochSeeds(copied(order, index), parts, counts, told)

    def _by_type(
        self, order: torch.Tensor, times: torch.Tensor | None, bounds: list[tuple[int, int]]
    ) -> tuple[torch.Tensor, torch.Tensor | None, list[tuple[int, int]], array[int]]:
        """Each batch has its seeds type by type."""
        types = self._types
        assert types is not None
        ids: list[torch.Tensor] = []
        of: list[torch.Tensor] = []
        counts, moved, at = array("q"), [], 0
        for start, end in bounds:
            parts = types.part(order, start, end)
            ids += parts.values()
            counts.extend(len(parts[kind]) if kind in parts else 0 for kind in types.kinds)
            if times is not None:
                of += types.part_times(order, times, start, end).values()
            moved.append((at, at + end - start))
            at += end - start
        joined = torch.cat(ids) if ids else order[:0]
        return joined, torch.cat(of) if of else None, moved, counts
