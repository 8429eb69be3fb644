"""``HeteroSeeds``: seeds of several types in one order, which is shuffled and cut."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._core.checks import describe
from pygsampler._loading.seeds import seed_tensor

if TYPE_CHECKING:
    from pygsampler.hetero_graph import HeteroGraph

__all__ = ["HeteroSeeds"]


class HeteroSeeds:
    """The seeds of a loader, by type.

    ``order`` has them all, type after type in the graph's order. Of one type they are its ids; of
    several each stands as its id plus the vertices of the types before its own.
    """

    __slots__ = ("_ends", "_kinds", "order")

    def __init__(self, graph: HeteroGraph, seeds: Any) -> None:
        types, counts = graph.node_types, graph.num_nodes
        if not isinstance(seeds, Mapping) and len(types) == 1:
            seeds = {types[0]: seeds}
        if not isinstance(seeds, Mapping):
            raise TypeError(f"seeds: expected a mapping of types to ids, got {describe(seeds)}")
        for kind in seeds:
            if kind not in types:
                raise ValueError(f"seeds: expected types of the graph, got {kind!r}")
        self._kinds = [kind for kind in types if kind in seeds]
        parts = []
        for kind in self._kinds:
            try:
                parts.append(seed_tensor(seeds[kind], counts[kind]))
            except (TypeError, ValueError, IndexError) as error:
                text = str(error).removeprefix("seeds")
                raise type(error)(f"seeds[{kind!r}]{text}") from None
        ends = list(itertools.accumulate(counts[kind] for kind in self._kinds))
        self._ends = torch.tensor(ends)
        if len(parts) > 1:
            parts = [part.long() + first for part, first in zip(parts, [0, *ends], strict=False)]
        self.order = torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)

    def part(self, order: torch.Tensor, start: int, end: int) -> dict[str, torch.Tensor]:
        """Some of them, put into an order, by type."""
        part = order[start:end]
        if len(self._kinds) <= 1:
            return dict.fromkeys(self._kinds, part)
        found = {}
        place = torch.bucketize(part, self._ends, right=True)
        first = 0
        for i, (kind, end) in enumerate(zip(self._kinds, self._ends.tolist(), strict=True)):
            found[kind] = part[place == i] - first
            first = end
        return found
