"""``CudaEvents``: CUDA events around the steps of an epoch on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import torch

from pygsampler._arrays import devices

__all__ = ["CudaEvents", "StepTimes"]

# The number of steps that are remembered.
RING = 256
# The first steps of an epoch are all measured, and then one of EVERY: to create four events and put
# them into a stream takes the host as long as a small batch.
FIRST, EVERY = 64, 32
# A smaller part of a step that reading ahead saves is noise.
GAIN = 0.02


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


class CudaEvents:
    """The times at which the device came to the places of a step, in torch's current stream.

    A step has four events: where the consumer asked for its batch, which the device comes to once
    it has done what training put there before; where the batch was sampled, which is put there
    when it is; behind the reading of its rows; and where the consumer asked for the next batch.
    Between the first two the stream had nothing to do for want of the batch; that time is zero if
    the host is ahead. Nobody waits for events: those of the last ``ring`` measured steps are read
    when somebody asks. The first steps are measured, and then one of ``every``.
    """

    __slots__ = (
        *("_base", "_device", "_events", "_every", "_measured", "_open", "_raw", "_ring"),
        *("_stream", "steps"),
    )

    def __init__(self, device: int, ring: int = RING, every: int = EVERY) -> None:
        self._device = device
        self._every = every
        # The events of each place; and the number of each step with the event of asking: the last
        # event of the step before, if that was measured, too.
        self._events: list[list[Any]] = [[] for _ in range(ring)]
        self._ring: list[tuple[int, Any]] = [(0, None)] * ring
        # The number of measured steps, and the events of the step that has not ended.
        self._measured = 0
        self._open: list[Any] | None = None
        # An event, and when it was.
        self._base: tuple[Any, float] | None = None
        self._raw: int | None = None
        self._stream: Any = None
        # The number of steps begun.
        self.steps = 0

    def ask(self) -> None:
        """Notes that the consumer asks for a batch, in what is torch's current stream now."""
        step, ended = self.steps, self._open
        self.steps += 1
        is_measured = step < FIRST or step % self._every == 0
        if ended is None and not is_measured:
            return
        raw = devices.current_stream(self._device)
        if raw != self._raw:
            self._stream = torch.cuda.current_stream(self._device)
            self._raw = raw
        if ended is not None:
            ended[3].record(self._stream)
            self._open = None
            self._measured += 1
        if is_measured:
            place = self._measured % len(self._ring)
            events = self._events[place] = self._events[place] or [_event() for _ in range(4)]
            asked = events[0] if ended is None else ended[3]
            if ended is None:
                asked.record(self._stream)
            self._ring[place] = step, asked
            self._open = events

    def had(self) -> None:
        """Notes that the batch is sampled; a step that began before there were events has none."""
        if self._open is not None:
            self._open[1].record(self._stream)

    def hand(self) -> None:
        """Notes that the batch's rows are being read."""
        if self._open is not None:
            self._open[2].record(self._stream)

    def spans(self) -> list[tuple[int, Any, Any, Any, Any]]:
        """Returns the number and the events of each measured step that the device is through with.

        The events are: asked, had, handed, and asked for the next.
        """
        count, found = self._measured, []
        # The oldest may be recorded anew meanwhile.
        for place in range(max(count - len(self._ring) + 2, 0), count):
            step, asked = self._ring[place % len(self._ring)]
            _, had, handed, end = self._events[place % len(self._ring)]
            if not end.query():
                break
            found.append((step, asked, had, handed, end))
        return found

    def align(self) -> None:
        """Waits for the device, so that events can be converted to seconds of ``perf_counter``."""
        base = _event()
        base.record(torch.cuda.current_stream(self._device))
        base.synchronize()
        self._base = base, perf_counter()

    def spans_in_seconds(self) -> Iterator[tuple[int, float, float, float, float]]:
        """Yields ``spans`` in seconds of ``perf_counter``, once the device has finished all."""
        assert self._base is not None
        base, at = self._base
        if self._measured:
            self._events[(self._measured - 1) % len(self._ring)][3].synchronize()
        for step, *events in self.spans():
            asked, had, handed, end = (at + base.elapsed_time(event) / 1e3 for event in events)
            yield step, asked, had, handed, end

    def pair(self) -> tuple[Any, Any]:
        """Returns two events, the first of which is recorded in torch's current stream."""
        start, end = _event(), _event()
        start.record(torch.cuda.current_stream(self._device))
        return start, end

    def span(self, start: Any, end: Any) -> tuple[float, float] | None:
        """Returns the seconds of ``perf_counter`` at two recorded events, or None before then."""
        assert self._base is not None
        base, at = self._base
        if not end.query():
            return None
        return at + base.elapsed_time(start) / 1e3, at + base.elapsed_time(end) / 1e3

    def shares(self) -> dict[str, Any]:
        """Parts of the steps' time on the device, and of how many steps."""
        waited = gathered = whole = 0.0
        steps = self.spans()
        for _, asked, had, handed, end in steps:
            waited += asked.elapsed_time(had)
            gathered += had.elapsed_time(handed)
            whole += asked.elapsed_time(end)
        return {
            "waiting_share": waited / whole if whole else 0.0,
            "gathering_share": gathered / whole if whole else 0.0,
            "steps": len(steps),
        }


class StepTimes(NamedTuple):
    """Milliseconds of a step, without reading rows ahead and with it."""

    without: float
    ahead: float

    @property
    def is_faster(self) -> bool:
        """True if reading ahead saves a part of a step that is no noise."""
        return self.ahead < (1 - GAIN) * self.without
