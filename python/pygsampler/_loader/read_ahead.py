"""``ReadAhead``: rows of features over a link to a GPU, read a batch ahead of training."""

from __future__ import annotations

from time import sleep
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._batch.minibatch import MiniBatch, as_torch
from pygsampler._features.gather import gather_on_device
from pygsampler._loader.prefetch import Upcoming

if TYPE_CHECKING:
    from pygsampler._features.features import Features
    from pygsampler._features.gather import GatherPart
    from pygsampler._graph.graph import Graph
    from pygsampler._loader.cache_tuner import CacheTuner
    from pygsampler._loader.feature_fetcher import FeatureFetcher
    from pygsampler._loader.stats import EpochStats

__all__ = ["ReadAhead", "writes_of"]

# Seconds between two looks at a batch that is not sampled yet.
LOOK = 20e-6


class ReadAhead:
    """Reads the rows of the batch that comes next while training goes on, in a stream of its own.

    That is done for features outside of the GPU's memory: page-locked on the host, with a cache or
    without, or shared by GPUs. Rows of the GPU's own memory are read where a batch is handed over,
    in torch's current stream, and so are all of a batch that was not there in time.

    A read begins when the device has done all that torch's current stream has by then: the steps
    before. So its rows lie in memory of that stream, which gives it to others in its order, and no
    more than two batches have rows at a time. It takes few blocks, which go before those of
    training, since the link is to have work at all times.

    Source: TurboGNN, the third stage of its pipeline, which reads features during training.
    """

    def __init__(self, fetcher: FeatureFetcher, device: int, meter: EpochStats) -> None:
        self.upcoming: Upcoming[Any] = Upcoming()
        self._fetcher, self._device, self._meter = fetcher, device, meter
        self._far = fetcher.external_tables()
        self._stream: Any = None
        # An event where the last batch was asked for; None: nothing is read ahead yet.
        self._asked: Any = None
        self._ahead: _Read | None = None

    def give_caches(self, tuner: CacheTuner, graph: Graph, epoch: int) -> None:
        """Gives features caches while nothing is read ahead; the next batch is read by them."""
        if self._ahead is None and self._fetcher.give_caches(
            tuner, graph, epoch, self._meter.batches
        ):
            self._far = self._fetcher.external_tables()

    def begin(self) -> None:
        """Begins to read for the upcoming batch, if that is sampled in time.

        Where that fails, as for want of memory, the batch is read when it is fetched.
        """
        if self._asked is None:
            return
        sampled = self.upcoming.find()
        while sampled is None and self.upcoming.is_pending() and not self._asked.query():
            # The device has not come to the batch at hand, whose step can still wait.
            sleep(LOOK)
            sampled = self.upcoming.find()
        if sampled is None:
            return
        try:
            self._begin(sampled)
        except Exception:
            self.close()

    def _begin(self, sampled: Any) -> None:
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device, priority=-1)  # type: ignore[no-untyped-call]
        current = torch.cuda.current_stream(self._device)
        batch, writes = as_torch(sampled), writes_of(self._far)
        rooms = self._fetcher.attach_on_device(batch)
        # Set before the launch, which may be interrupted behind what it has put into the stream.
        self._ahead = _Read(sampled, batch, rooms, current, writes)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            span = self._meter.reading()
            far = [part for features, _, part in rooms if features._is_external]
            gather_on_device(self._device, far, concurrent=True)
            if span is not None:
                span.record(self._stream)

    def fetch(self, sampled: Any) -> MiniBatch:
        """Returns the loader's batch, whose rows are there for torch's current stream."""
        read, self._ahead = self._ahead, None
        self._record_request()
        if read is None or read.sampled is not sampled:
            batch: MiniBatch = as_torch(sampled)
            rooms = self._fetcher.attach_on_device(batch)
            gather_on_device(self._device, [part for _, _, part in rooms])
            return batch
        current = torch.cuda.current_stream(self._device)
        current.wait_stream(self._stream)
        if current != read.stream:
            for _, rows, _ in read.rooms:
                rows.record_stream(current)
        # Who writes between two batches sees it in the next, as if nothing had been read ahead.
        is_stale = read.writes != writes_of(self._far)
        parts = [part for features, _, part in read.rooms if is_stale or not features._is_external]
        gather_on_device(self._device, parts)
        return read.batch

    def _record_request(self) -> None:
        """Notes where the device is through with all steps before."""
        if self._asked is None:
            # Torch may use the device only once the first batch has rows.
            if not self._far or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
                return
            self._asked = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._asked.record(torch.cuda.current_stream(self._device))

    def close(self) -> None:
        """Has the rows that are on their way stay until they are there."""
        read, self._ahead = self._ahead, None
        if read is not None:
            read.stream.wait_stream(self._stream)


class _Read(NamedTuple):
    sampled: Any
    batch: MiniBatch
    rooms: list[tuple[Features, torch.Tensor, GatherPart]]
    # The stream that the rooms are of.
    stream: Any
    writes: list[tuple[int, int]]


def writes_of(tables: list[Features]) -> list[tuple[int, int]]:
    """Returns how often each of the features was written to."""
    return [features._writes for features in tables]
