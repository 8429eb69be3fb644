"""``NodeSeeds``: nodes that a loader iterates over, with their times and weights."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from pygsampler._arrays.ids import as_ids
from pygsampler._graph.graph import is_heterogeneous
from pygsampler._loader.epoch_state import shuffle
from pygsampler._loader.seed_source import EpochDraws
from pygsampler._loader.seed_weights import seed_weights as checked_seed_weights
from pygsampler._loader.seeds import (
    HeteroSeeds,
    check_dates,
    seed_tensor,
    seed_times_tensor,
    to_device,
)
from pygsampler._sampling.sampler import check_graph
from pygsampler._sampling.seed_times import seed_times
from pygsampler._sampling.static_buffers import EpochSeeds

if TYPE_CHECKING:
    from pygsampler._loader.epoch_state import EpochRun
    from pygsampler._sampling.sampler import Sampler

__all__ = ["NodeSeeds"]

_NO_ARGUMENTS: dict[str, Any] = {}


class NodeSeeds:
    """The seeds of a ``DataLoader``; ``summary`` is how its ``repr`` shows them."""

    fills_caches: ClassVar[bool] = True
    excludes = False

    def __init__(
        self,
        graph: Any,
        seeds: Any,
        sampler: Sampler[Any],
        seed_time: Any,
        seed_weights: Any,
        num_samples: Any,
    ) -> None:
        self._types: HeteroSeeds | None = None
        if is_heterogeneous(graph):
            check_graph(graph, sampler._takes_types)
            self._types = HeteroSeeds(graph, seeds)
            self._seeds = self._types.order
        else:
            self._seeds = seed_tensor(seeds, graph.num_nodes)
        self._times = self._checked_times(seed_time, graph, getattr(sampler, "temporal", None))
        self._weights = checked_seed_weights(
            seed_weights, num_samples, self._types, len(self._seeds)
        )
        self.digest = None if self._weights is None else self._weights.digest

    def __len__(self) -> int:
        return len(self._seeds) if self._weights is None else self._weights.count

    @property
    def seeds_by_type(self) -> dict[str, torch.Tensor]:
        """All seeds by node type; "" of a homogeneous graph."""
        if self._types is None:
            return {"": self._seeds}
        return self._types.part(self._seeds, 0, len(self._seeds))

    @property
    def summary(self) -> str:
        """The number of seeds, in words."""
        by_weight = "" if self._weights is None else f"{len(self)} by weight of "
        return f"{by_weight}{len(self._seeds)} seeds"

    def order(self, run: EpochRun) -> torch.Tensor:
        """Returns the seeds of an epoch on the CPU, the same for every device."""
        if self._weights is not None:
            return self._seeds[self._weights.places(run.seed, run.epoch)]
        return shuffle(self._seeds, run.seed, run.epoch) if run.shuffle else self._seeds

    def times(self, run: EpochRun) -> torch.Tensor | None:
        """Returns the times of the seeds of an epoch on the CPU; None: they have none."""
        times = self._times
        if times is not None and self._weights is not None:
            return times[self._weights.places(run.seed, run.epoch)]
        if times is None or not run.shuffle:
            return times
        # The order depends on the number of seeds alone; a float64 moves as its bits.
        return shuffle(times.view(torch.int64), run.seed, run.epoch).view(times.dtype)

    def begin(self, run: EpochRun, index: int) -> EpochDraws:
        """Implements ``SeedSource.begin``."""
        order, times, types = self.order(run), self.times(run), self._types
        bounds = run.shard.bounds
        part: Callable[[int, int], Any]
        if types is not None:
            part = lambda start, end: types.part(order, start, end)  # noqa: E731
        elif index >= 0:
            # Put into the stream of the first submissions, which so come after it. Later ones may
            # be in other streams: by then a batch has been handed over, so the copy is done.
            part = as_ids(to_device(order, index), "seeds", index).part
        else:
            part = lambda start, end: order[start:end]  # noqa: E731

        def draw(step: int) -> tuple[Any, dict[str, Any]]:
            start, end = bounds(step)
            if times is None:
                return part(start, end), _NO_ARGUMENTS
            if types is None:
                return part(start, end), {"seed_time": times[start:end]}
            return part(start, end), {"seed_time": types.part_times(order, times, start, end)}

        return EpochDraws(draw, None)

    def most(self, size: int, graph: Any) -> int | Mapping[str, int]:
        """Implements ``SeedSource.most``."""
        if self._types is None:
            return size
        return self._types.most(size, self._weights is not None)

    def static_links(self, size: int, graph: Any) -> None:
        """Returns None: no edges belong to the seeds."""

    def static_seeds(self, run: EpochRun, graph: Any, times: Any, index: int) -> EpochSeeds:
        """Implements ``SeedSource.static_seeds``."""
        order, bounds_of_seeds = self.order(run), self.times(run)
        bounds = [run.shard.bounds(step) for step in range(run.shard.steps)]
        counts = array("q", [end - start for start, end in bounds])
        if self._types is not None:
            order, bounds_of_seeds, bounds, counts = self._split_by_type(
                order, bounds_of_seeds, bounds
            )
        parts = array("q")
        for start, end in bounds:
            parts.extend((start, end - start))
        rows = None if times is None else seed_times(bounds_of_seeds, len(order), times)
        return EpochSeeds(to_device(order, index), parts, counts, rows)

    def _split_by_type(
        self, order: torch.Tensor, times: torch.Tensor | None, bounds: list[tuple[int, int]]
    ) -> tuple[torch.Tensor, torch.Tensor | None, list[tuple[int, int]], array[int]]:
        """Returns each batch's seeds type by type, their times, and where batches are."""
        types = self._types
        assert types is not None
        ids: list[torch.Tensor] = []
        times_of_types: list[torch.Tensor] = []
        counts, moved, first = array("q"), [], 0
        for start, end in bounds:
            parts = types.part(order, start, end)
            ids += parts.values()
            counts.extend(len(parts[kind]) if kind in parts else 0 for kind in types.kinds)
            if times is not None:
                times_of_types += types.part_times(order, times, start, end).values()
            moved.append((first, first + end - start))
            first += end - start
        all_times = torch.cat(times_of_types) if times_of_types else None
        return torch.cat(ids) if ids else order[:0], all_times, moved, counts

    def _checked_times(self, times: Any, graph: Any, rule: Any) -> torch.Tensor | None:
        """Returns a time for each seed, int64 or float64; None for a sampler without times."""
        if rule is None:
            if times is not None:
                raise ValueError(
                    "seed_time: expected None for a sampler without temporal=, got some"
                )
            return None
        if times is None:
            raise ValueError(
                f"seed_time: expected a time for each seed with temporal={rule.attr!r}, got None"
            )
        check_dates(times, graph, rule.attr)
        if self._types is not None:
            return self._types.times(times)
        return seed_times_tensor(times, "seed_time", len(self._seeds), "seeds")
