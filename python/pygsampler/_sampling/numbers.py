"""``Numbers``: seed and epoch of a sampler, and the number of its next batch."""

from __future__ import annotations

from pygsampler._engine import library
from pygsampler._engine.checks import integer
from pygsampler._engine.limits import MAX_BATCH, MAX_EPOCH
from pygsampler._sampling.seed import chosen_seed, worker_start


class Numbers:
    """The numbers that a batch without numbers of its own takes; threads may share them."""

    __slots__ = ("_counted_in", "drawn", "epoch", "next", "seed")

    def __init__(self, seed: int | None) -> None:
        self.seed = chosen_seed(seed)
        # Whether another process that makes this sampler has another seed.
        self.drawn = seed is None
        self.epoch = 0
        self.next = 0
        # The engine generation whose process the counter was set up for.
        self._counted_in: int | None = None

    def set_epoch(self, number: int) -> None:
        """The epoch from now on, which begins with batch 0."""
        epoch = integer(number, "epoch", 0, MAX_EPOCH)
        with library.count_lock():
            self.epoch = epoch
            self.next = 0
            self._counted_in = None

    def go_on(self, epoch: int, number: int) -> None:
        """Counts on from there, as what a pickle was made of would."""
        self.epoch, self.next = epoch, number

    def chosen_epoch(self, epoch: int | None) -> int:
        """``epoch``, checked, or the one that was set."""
        return self.epoch if epoch is None else integer(epoch, "epoch", 0, MAX_EPOCH)

    def chosen_batch(self, batch: int | None, count: int = 1) -> int:
        """``batch``, checked, or the next one; the first of ``count``."""
        if batch is None:
            batch = self._next_batch(count)
            if batch <= MAX_BATCH - count + 1:
                return batch
        return integer(batch, "batch", 0, MAX_BATCH - count + 1)

    def _next_batch(self, count: int) -> int:
        with library.count_lock():
            if self._counted_in != library.generation():
                self._counted_in = library.generation()
                self.next = worker_start(self.next)
            number = self.next
            self.next += count
            return number
