"""``CudaEvents``: CUDA events around the steps of a pass on a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import torch

from pygsampler._arrays import devices

__all__ = ["CudaEvents"]

# So many steps are remembered.
RING = 256


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


class CudaEvents:
    """When the device came to the places of a step, in the stream that is torch's current one.

    Three events a step: where the consumer asked for its batch, which the device comes to once
    it has done what training put there before; where the batch was sampled, which is put there
    when it is; and behind the reading of its rows. What lies between the first two is the time
    that the stream had nothing to do for want of the batch; it is nothing where the host is ahead.
    Nobody waits for them: those of the last ``RING`` steps are read when somebody asks.
    """

    __slots__ = (
        "_asked",
        "_base",
        "_device",
        "_had",
        "_handed",
        "_raw",
        "_ring",
        "_stream",
        "steps",
    )

    def __init__(self, device: int, ring: int = RING) -> None:
        self._device = device
        self._ring = ring
        self._asked: list[Any] = [None] * ring
        self._had: list[Any] = [None] * ring
        self._handed: list[Any] = [None] * ring
        # An event, and when it was.
        self._base: tuple[Any, float] | None = None
        self._raw: int | None = None
        self._stream: Any = None
        # How many steps were begun.
        self.steps = 0

    def ask(self) -> None:
        """The consumer asks for a batch, in what is torch's current stream now."""
        raw = devices.current_stream(self._device)
        if raw != self._raw:
            self._stream = torch.cuda.current_stream(self._device)
            self._raw = raw
        self.steps += 1
        self._record(self._asked)

    def had(self) -> None:
        """It is sampled. A step that was asked for before there were events has none."""
        if self.steps:
            self._record(self._had)

    def hand(self) -> None:
        """Its rows are being read."""
        if self.steps:
            self._record(self._handed)

    def _record(self, ring: list[Any]) -> None:
        place = (self.steps - 1) % self._ring
        event = ring[place]
        if event is None:
            event = ring[place] = _event()
        event.record(self._stream)

    def spans(self) -> list[tuple[int, Any, Any, Any, Any]]:
        """Of each step that the device is through with its number, and the events: asked, had,
        handed, and asked for the next."""
        newest = self.steps - 1
        # The oldest may be recorded anew meanwhile.
        found = []
        for step in range(max(newest - self._ring + 2, 0), newest):
            place = step % self._ring
            end = self._asked[(step + 1) % self._ring]
            if not end.query():
                break
            found.append((step, self._asked[place], self._had[place], self._handed[place], end))
        return found

    def align(self) -> None:
        """Waits for the device, so that events can be told in seconds of ``perf_counter``."""
        base = _event()
        base.record(torch.cuda.current_stream(self._device))
        base.synchronize()
        self._base = base, perf_counter()

    def timed(self) -> Iterator[tuple[int, float, float, float, float]]:
        """As ``spans``, in seconds of ``perf_counter``, once the device is through with all."""
        assert self._base is not None
        base, at = self._base
        if self.steps:
            self._asked[(self.steps - 1) % self._ring].synchronize()
        for step, *events in self.spans():
            asked, had, handed, end = (at + base.elapsed_time(event) / 1e3 for event in events)
            yield step, asked, had, handed, end

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
