"""``LookaheadSampler``: a batch of a PyG loader is sampled while the one before is put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
)

from pygsampler.pyg.lookahead import LookaheadBatch
from pygsampler.pyg.order import SeededOrder

__all__ = ["LookaheadSampler", "LookaheadStep", "is_predictable"]

# After a batch of fewer edges none is begun: to hand one to another thread, and to wait for that,
# takes as long as to sample so few. With 64 seeds, (10, 10) of a graph like arxiv (1,500 edges) it
# cost a fifth of an iteration, with 256 seeds (5,600) it saved a quarter.
LEAST = 1 << 12
# So many batches may be begun that are not those that are asked for next.
_WRONG = 2


def is_predictable(batches: Any) -> bool:
    """True if an early request of a batch from a sampler of batches has no visible effect.

    Torch's samplers draw for a whole epoch at its start, except by a generator of the user, whose
    state is visible. A custom sampler may depend on the loop.
    """
    if type(batches) is not BatchSampler:
        return False
    seeds = batches.sampler
    if type(seeds) in (SequentialSampler, DistributedSampler):
        return True
    return isinstance(seeds, SeededOrder) or (
        type(seeds) is RandomSampler and seeds.generator is None
    )


class LookaheadStep:
    """The current batch of an epoch, and the batch after it."""

    __slots__ = ("_begin", "_wrong", "begun", "places")

    def __init__(self, begin: Callable[[Any], LookaheadBatch | None]) -> None:
        self._begin = begin
        # The places and the job of the next batch; None without one.
        self.places: Any = None
        self.begun: LookaheadBatch | None = None
        self._wrong = 0

    def begin(self, out: Any) -> None:
        """Begins the next batch, after what was sampled of this one."""
        before, self.begun = self.begun, None
        if before is not None and not before.is_used:
            self._wrong += 1
        if self.places is not None and self._wrong < _WRONG and _edges(out) >= LEAST:
            self.begun = self._begin(self.places)


def _edges(out: Any) -> int:
    row = getattr(out, "row", ())
    return sum(map(len, row.values())) if isinstance(row, dict) else len(row)


class LookaheadSampler:
    """A sampler of batches for torch's loader, with each next batch known one step early.

    ``begin`` starts the batch of some places, and ``on_step`` is called with each batch before it
    is requested.
    """

    __slots__ = ("_base", "_begin", "_turn")

    def __init__(
        self,
        base: Any,
        begin: Callable[[Any], LookaheadBatch | None],
        on_step: Callable[[LookaheadStep], None],
    ) -> None:
        self._base, self._begin, self._turn = base, begin, on_step

    def __len__(self) -> int:
        return len(self._base)

    def __iter__(self) -> Iterator[Any]:
        now = LookaheadStep(self._begin)
        base = iter(self._base)
        places = next(base, None)
        try:
            while places is not None:
                now.places = next(base, None)
                self._turn(now)
                yield places
                places = now.places
        finally:
            now.places = now.begun = None
