"""``PrefetchController``: when batches are begun ahead, and when sampling rests."""

from __future__ import annotations

__all__ = ["PrefetchController"]

GROWTH = 5


class PrefetchController:
    """The bound of a queue of batches, with hysteresis.

    Batches are started until ``high`` are ahead of the consumer. From then on none is started until
    only ``low`` are left. If the number of finished batches has grown over the last ``GROWTH``
    looks at the queue, and fell at none of them, none is started until half of ``high`` are left,
    or ``low`` if that is less: the sampler is faster than its consumer, which has the device to
    itself meanwhile. A ``steady`` queue does not rest, since a rest depends on the time, and each
    consumed batch may change later samples.

    Source: TurboGNN, whose monitor halts the sampling process where its queue has grown for about
    five iterations.
    """

    __slots__ = (
        *("_finished", "_first", "_looks", "_steady"),
        *("held", "high", "low", "pauses", "until"),
    )

    # Batches are begun where no more than so many are ahead.
    until: int
    # The number of steps that began nothing though there was room, and of pauses for a growing
    # queue.
    held: int
    pauses: int

    def __init__(self, high: int, low: int, *, steady: bool = False) -> None:
        self.high, self._steady = high, steady
        self.low = self.until = low
        self.held = self.pauses = 0
        # The number of finished batches at the last look, their number at the first look since they
        # became fewer, and the number of looks since then.
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
        """Records the number of batches ahead that are finished."""
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
