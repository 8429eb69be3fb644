"""``ReadAhead``: rows of features over a link to a GPU, read a batch ahead of training."""

from __future__ import annotations

import logging
import os
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._batch.minibatch import MiniBatch, as_torch
from pygsampler._features.gather import gather_on_device
from pygsampler._loader.cuda_events import StepTimes
from pygsampler._loader.prefetch import READY, Upcoming

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pygsampler._features.features import Features
    from pygsampler._features.gather import GatherPart
    from pygsampler._graph.graph import Graph
    from pygsampler._loader.cache_tuner import CacheTuner
    from pygsampler._loader.feature_fetcher import FeatureFetcher
    from pygsampler._loader.stats import EpochStats

__all__ = ["ReadAhead", "SideStream", "Trial", "writes_of"]

# Steps before a loop is measured, and of each of two windows: with reading ahead, and without. In
# this order, since first steps are slower: by mistake nothing is read ahead, as in any other loop.
START, WINDOW = 8, 16
# Seconds between two looks at a batch that is not sampled yet.
LOOK = 20e-6
# So many batches in a row whose features were written to end the reading ahead.
MOST_STALE = 3

_log = logging.getLogger("pygsampler")
# The stream of each device: torch keeps memory for each stream that has had some.
_streams: dict[int, SideStream] = {}

_Rooms = list[tuple["Features", torch.Tensor, "GatherPart"]]


class ReadAhead:
    """Reads the rows of the batch that comes next while training goes on, in a stream of its own.

    Rows that are read ahead are those of features outside of the GPU's memory: page-locked on the
    host, with a cache or without, or shared by GPUs. Rows of the GPU's own memory are read where a
    batch is handed over, in torch's current stream, and so are all of a batch that was not there in
    time.

    A read begins when the device has done all that torch's current stream has by then: the steps
    before. So its rows lie in memory of that stream, which gives it to others in its order. Copies
    take few blocks, which go before those of training, since the link is to have work at all times.

    While the link is busy, kernels that the host launches start later, so steps of many small
    kernels gain nothing, or lose. ``Trial`` measures which holds for a loop.

    Source: TurboGNN, the third stage of its pipeline, which reads features during training.
    """

    def __init__(self, fetcher: FeatureFetcher, device: int, meter: EpochStats) -> None:
        self.upcoming: Upcoming[Any] = Upcoming()
        self._fetcher, self._device, self._meter = fetcher, device, meter
        # Empty once reading ahead has ended.
        self._external = fetcher.external_tables()
        self._process = os.getpid()
        # An event where the last batch was asked for; None: nothing is read ahead yet.
        self._asked: Any = None
        self._ahead: _Read | None = None
        # The number of the object that was fetched last, which a sampler may return again.
        self._last = 0
        self._num_stale = 0
        self._trial = Trial(fetcher)

    def give_caches(self, tuner: CacheTuner, graph: Graph, epoch: int, batches: int) -> bool:
        """Gives features caches while nothing is read ahead; the next batch is read by them."""
        given = self._fetcher.give_caches(tuner, graph, epoch, batches)
        if given:
            self._external = self._fetcher.external_tables()
            # Less comes over the link now.
            self._fetcher.step_times, self._trial = None, Trial(self._fetcher)
        return given

    def begin(self) -> None:
        """Begins to read for the upcoming batch, if that is sampled in time.

        A batch for which that fails, as for want of memory, is read when it is fetched, and so are
        those after it.
        """
        if self._asked is None or not self._external:
            return
        try:
            if not self._trial.step(torch.cuda.current_stream(self._device)):
                return
            sampled = self._find()
            if sampled is not None and id(sampled) != self._last:
                self._begin(sampled)
        except Exception as error:
            self.close()
            self._external = []
            _log.info("features: rows are not read ahead any more in this epoch: %s", error)

    def _find(self) -> Any:
        """Returns the upcoming batch; a host that is ahead of the device waits for it."""
        sampled = self.upcoming.find()
        if sampled is not None or not self.upcoming.is_pending():
            return sampled
        start = perf_counter()
        while sampled is None and self.upcoming.is_pending() and not self._asked.query():
            # The device has not come to the batch at hand, whose step can still wait.
            sleep(LOOK)
            sampled = self.upcoming.find()
        now = perf_counter()
        if now - start > READY:
            self._meter.waited(start, now)
        return sampled

    def _begin(self, sampled: Any) -> None:
        side = _streams.setdefault(self._device, SideStream(self._device, priority=-1))
        current = torch.cuda.current_stream(self._device)
        batch, writes = as_torch(sampled), writes_of(self._external)
        rooms = self._fetcher.attach_on_device(batch)
        external = [room for room in rooms if room[0]._is_external]

        def read() -> None:
            span = self._meter.reading()
            self._gather(external, concurrent=True)
            if span is not None:
                self._meter.read(*span)

        # Set before the launch, which may be interrupted behind what it has put into the stream.
        self._ahead = _Read(sampled, batch, rooms, current, side, writes)
        side.launch(read)

    def fetch(self, sampled: Any) -> MiniBatch:
        """Returns the loader's batch, whose rows are there for torch's current stream."""
        read = self._ahead
        self._record_request()
        self._last = id(sampled)
        if read is None or read.sampled is not sampled:
            self.close()
            batch: MiniBatch = as_torch(sampled)
            self._gather(self._fetcher.attach_on_device(batch))
            return batch
        current = torch.cuda.current_stream(self._device)
        read.side.join()
        if current != read.current:
            for _, rows, _ in read.rooms:
                rows.record_stream(current)
        # Only now, since an interrupt before has `close` wait for it.
        self._ahead = None
        # Who writes between two batches sees it in the next, as if nothing had been read ahead.
        is_stale = read.writes != writes_of(self._external)
        self._num_stale = self._num_stale + 1 if is_stale else 0
        if self._num_stale >= MOST_STALE:
            self._external = []
        self._gather([room for room in read.rooms if is_stale or not room[0]._is_external])
        return read.batch

    def _gather(self, rooms: _Rooms, *, concurrent: bool = False) -> None:
        """Puts the reading of rows into torch's current stream, and counts them."""
        gather_on_device(self._device, [part for _, _, part in rooms], concurrent=concurrent)
        for features, _, part in rooms:
            features._count(part.ids.length)

    def _record_request(self) -> None:
        """Notes where the device is through with all steps before."""
        if self._asked is None:
            # Torch may use the device only once the first batch has rows.
            if not self._external or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
                return
            self._asked = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._asked.record(torch.cuda.current_stream(self._device))

    def close(self) -> None:
        """Keeps memory that rows are on their way to from being used again before they are there.

        In a forked process there is no device, and nothing to do.
        """
        read = self._ahead
        if read is not None and os.getpid() == self._process:
            read.side.join(read.current)
        self._ahead = None


class SideStream:
    """A second stream of a device, whose work waits for that of torch's current one."""

    __slots__ = ("_device", "_priority", "_stream")

    def __init__(self, device: int, priority: int = 0) -> None:
        self._device, self._priority = device, priority
        self._stream: Any = None

    def launch(self, work: Callable[[], None]) -> None:
        """Has what ``work`` launches run after all that is in the current stream now."""
        side = self._stream
        if side is None:
            side = torch.cuda.Stream(self._device, self._priority)  # type: ignore[no-untyped-call]
            self._stream = side
        side.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(side):
            work()

    def join(self, stream: Any = None) -> None:
        """Lets a stream, the current one by default, wait for it, if it has had work."""
        if self._stream is not None:
            stream = torch.cuda.current_stream(self._device) if stream is None else stream
            stream.wait_stream(self._stream)


class Trial:
    """Measures steps of a loop with reading ahead and without it, and chooses the faster way.

    The choice holds for later epochs of the loader, too.
    """

    def __init__(self, fetcher: FeatureFetcher) -> None:
        self._fetcher = fetcher
        self._steps = 0
        # Events of the stream of training where the windows begin and end.
        self._events: list[Any] = []

    def step(self, stream: torch.cuda.Stream) -> bool:
        """Returns whether to read ahead for the batch after the one that is handed over now."""
        known = self._fetcher.step_times
        if known is not None:
            return known.is_faster
        step, self._steps = self._steps, self._steps + 1
        if step >= START and (step - START) % WINDOW == 0 and len(self._events) < 3:
            event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
            event.record(stream)
            self._events.append(event)
        if len(self._events) == 3 and self._events[2].query():
            first, second, third = self._events
            ahead, without = first.elapsed_time(second), second.elapsed_time(third)
            self._fetcher.step_times = StepTimes(without / WINDOW, ahead / WINDOW)
            return self._fetcher.step_times.is_faster
        return len(self._events) == 1


class _Read(NamedTuple):
    sampled: Any
    batch: MiniBatch
    rooms: _Rooms
    # The stream that the rooms are of, and the one that reads.
    current: Any
    side: SideStream
    writes: list[tuple[int, int]]


def writes_of(tables: Sequence[Features]) -> list[tuple[int, int]]:
    """Returns counts of writes, which change where one of the features was written to."""
    return [features._writes for features in tables]
