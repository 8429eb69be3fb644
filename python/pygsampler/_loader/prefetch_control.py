"""``PrefetchController``: when batches are begun ahead, and when sampling rests."""

from __future__ import annotations

__all__ = ["PrefetchController"]

GROWTH = 5


class PrefetchController:
    """The bound of a queue of batches, with hysteresis.

    Batches are begun until ``high`` are ahead of the consumer. From then on none is begun until
    only ``low`` are left. Where more of them are finished than ``GROWTH`` looks at the queue
    before, and at none in between fewer than at the one before it, none is begun until half of
    ``high`` are left, or ``low`` where that is less: the sampler is faster than its consumer, which
    has the device to itself meanwhile. A ``steady`` queue does not rest, since when it does depends
    on the time: what is sampled changes with each consumed batch.

    Source: TurboGNN, whose monitor halts the sampling process where its queue has grown for about
    five iterations.
    """

    __slots__ = (
        *("_finished", "_first", "_looks", "_steady"),
        *("held", "high", "low", "pauses", "until"),
    )

    # Batches are begun where no more than so many are ahead.
    until: int
    # How many steps began nothing though there was room, and how often a growing queue said so.
    held: int
    pauses: int

    def __init__(self, high: int, low: int, *, steady: bool = False) -> None:
        self.high, self._steady = high, steady
        self.low = self.until = low
        self.held = self.pauses = 0
        # How many were finished at the last look, and at the first since they became fewer, which
        # was so many looks ago.
        self._finished = self._first = self._looks = 0

    def free_slots(self, ahead: int) -> int:
        """Returns how many batches to start if ``ahead``, at most ``until``, are ahead."""
        self.until = self.low
        return self.high - ahead

    def resize(self, high: int) -> None:
        """Changes how many are ahead at most; one is begun for each that is consumed."""
        if high != self.high:
            self.high = high
            self.low = self.until = max(high - 1, 0)

    def observe(self, finished: int) -> None:
        """So many of those ahead are finished."""
        if self._steady:
            return
        fell = finished < self._finished
        self._finished = finished
        self._looks += 1
        if not fell and self._looks < GROWTH:
            return
        grown = not fell and finished > self._first
        self._first, self._looks = finished, 0
        if grown and self.high // 2 < self.until:
            self.until = self.high // 2
            self.pauses += 1
