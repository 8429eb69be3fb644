"""``Numbers``: seed and epoch of a sampler, and the number of its next batch."""

from __future__ import annotations

import secrets
import sys

from pygsampler._engine import library
from pygsampler._engine.checks import integer
from pygsampler._engine.limits import MAX_BATCH, MAX_EPOCH


class BatchCounter:
    """The numbers that a batch without numbers of its own takes; threads may share them."""

    __slots__ = ("_counted_in", "epoch", "is_drawn", "next", "seed")

    def __init__(self, seed: int | None) -> None:
        self.seed = resolve_seed(seed)
        # True if another process that creates this sampler gets another seed.
        self.is_drawn = seed is None
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
        """Continues the count from a number, as the source of a pickle would."""
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


SEED_MASK = (1 << 64) - 1


def resolve_seed(seed: int | None) -> int:
    """``seed`` modulo ``2**64``, or a ``fresh_seed`` one where it is None."""
    if seed is None:
        return fresh_seed()
    return integer(seed, "seed", -(1 << 63), SEED_MASK) & SEED_MASK


def fresh_seed() -> int:
    """torch's initial seed where torch has been imported, else one of the system's."""
    torch = sys.modules.get("torch")
    initial_seed = getattr(torch, "initial_seed", None)
    if initial_seed is None:
        return secrets.randbits(64)
    return int(initial_seed()) & SEED_MASK


def signed_seed(seed: int) -> int:
    """The 64 bits of ``seed`` as the signed number that int64 has for them."""
    return seed - (1 << 64) if seed >> 63 else seed


def worker_start(number: int) -> int:
    """Returns the number at which the batch counter goes on in this process.

    The workers of torch's DataLoader are copies of one another, and of the workers of the epoch
    before: torch gives each a seed of its own, and the numbers start where that says.
    """
    data = sys.modules.get("torch.utils.data")
    info = data.get_worker_info() if data is not None else None
    if info is None:
        return number
    mixed = (int(info.seed) & SEED_MASK) * 0x9E3779B97F4A7C15 & SEED_MASK
    return mixed >> 25
