"""``CountedLoader``: loaders that say what their passes were made of."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import torch

from pygsampler._loader.checkpoint import EpochRun, ResumableLoader
from pygsampler._loader.cuda_events import CudaEvents
from pygsampler._loader.stats import EpochStats
from pygsampler._loader.summary import Stats
from pygsampler._loader.trace import MOST as MOST_TRACED
from pygsampler._loader.trace import EpochTrace

if TYPE_CHECKING:
    from pygsampler._loader.feature_fetcher import FeatureFetcher

__all__ = ["CountedLoader", "record_events"]

T = TypeVar("T")


class CountedLoader(ResumableLoader):
    """A loader whose passes are counted, and traced where somebody asks for it."""

    _rows: FeatureFetcher
    # Of the pass that began last; and of the next one, where somebody asked for it.
    _meter: EpochStats | None = None
    _trace: EpochTrace | None = None

    def stats(self) -> Stats:
        """Returns figures of the epoch that began last, until now or until it ended.

        ``print(loader.stats())`` shows a table with plain names.

        Any thread may ask, at any time. Nobody waits for the GPU, except where features have a
        cache, whose hits are counted there: asking waits then, and so does a pass that begins.
        Iterators that are in use at once have figures of their own, of which these are the latest
        one's; a pickled loader begins without any. Of static batches queues are not counted, and
        rows that fill them up are read and counted too; reading is part of ``waiting_share``, and
        in a loop of ``capture``, whose graph reads, of neither share. A ``LinkLoader`` draws
        negatives in ``next()`` for the batches that it begins there: in ``next_seconds``, and no
        waiting.

        Returns
        -------
        Stats
            A dict. ``epoch``, ``batches``, ``edges``: of what was handed over. ``seconds``: from
            the first ``next()`` until now or the end.

            ``waiting_share``: the part of the time that training waits for data. On the CPU
            ``waiting_seconds`` of ``seconds``. On a GPU by CUDA events in torch's current stream,
            over the last ``steps`` of up to 254: from where the stream has done all that was put
            into it before ``next()`` was called, until the batch is there; nothing where the host
            is ahead of the GPU. ``gathering_share``: likewise, of the reading of features in that
            stream; None on the CPU, where they are read ahead.

            ``waits``, ``waiting_seconds``: how often ``next()`` waited on the host for a batch that
            was not there (20 microseconds or more), and for how long. ``next_seconds``: in
            ``next()`` in all.

            ``queues``: how many batches were found ``sampled``, and on the CPU with features
            ``gathered``, when the next was asked for: ``looks``, ``mean``, ``min``, and the part of
            looks that found it ``empty``. There is a look in each step, though but one in two
            milliseconds, and on a GPU one a group. ``held_back``: how many steps began no batch
            though fewer than ``prefetch`` were ahead. ``pauses``: how often that began with a
            queue of finished batches that had grown for five looks.

            ``features``: for each by its name what its ``stats()`` have grown by since the pass
            began, whoever read them; ``bytes``: the sum of theirs, by where they were read;
            ``hit_rate``: hits by rows, of those that have a cache, or None.
        """
        return (self._meter or EpochStats(rows=self._rows)).stats()

    def trace(self, path: Any) -> None:
        """Trace the next pass, into a file for ``chrome://tracing`` or Perfetto when it ends.

        It has spans of each batch: ``sample`` and, on the CPU, ``gather``, in threads for as many
        as run beside each other; of the loop's thread ``next``, in it ``wait``, and ``train``,
        which is between two calls of ``next()``; and on a GPU ``wait``, ``gather`` and ``train`` of
        torch's stream. Samples and reading on the CPU are shown where the engine worked on them,
        samples on a GPU from when they were launched until the loop saw that they were done. The
        last 4096 batches are kept. On a GPU a traced pass waits for the device where it begins and
        where it ends.

        A warning in the log ("pygsampler") says where no pass has ended after this call, so that
        there is no file. FileNotFoundError where there is no such folder. OSError at the end of the
        pass where the file cannot be written.
        """
        target = Path(path)
        if not target.parent.is_dir():
            raise FileNotFoundError(f"path: expected a file in a folder that exists, got {target}")
        if self._trace is not None:
            self._trace.replaced(target)
        self._trace = EpochTrace(target)

    def __getstate__(self) -> dict[str, Any]:
        # Torch's seed is this process's: another one keeps the seed as it is now. A pass is too.
        return {**self.__dict__, "_follows": False, "_meter": None, "_trace": None, "_pass": None}

    def _next_pass(self) -> tuple[EpochRun, EpochStats]:
        """A pass that begins now, and what counts it."""
        going = self._begin(self._next_epoch())
        meter = self._meter = EpochStats(going.epoch, self._rows, self._trace)
        self._trace = None
        return going, meter

    def _metered(
        self,
        batches: Any,
        going: EpochRun,
        meter: EpochStats,
        handed: Callable[[Any], T],
    ) -> Generator[T, None, None]:
        """What is ``handed`` over of each batch on the CPU, whose rows are read."""
        with meter, closing(batches):
            meter.ask()
            traced, asked = meter.trace is not None, time.perf_counter()
            for batch in batches:
                made = handed(batch)
                going.handed += 1
                meter.batches += 1
                meter.edges += batch.num_edges
                if traced:
                    meter.hand()
                else:
                    meter.in_next += time.perf_counter() - asked
                yield made
                if traced:
                    meter.ask()
                asked = time.perf_counter()

    def _metered_there(
        self,
        batches: Any,
        going: EpochRun,
        meter: EpochStats,
        handed: Callable[[Any], T],
        counted: Any = None,
    ) -> Generator[T, None, None]:
        """Likewise of each batch on a GPU, whose rows are read where it is handed over; ``counted``
        knows how many edges it has, if not the batch."""
        with meter, closing(batches):
            meter.ask()
            for batch in batches:
                meter.had()
                meter.edges += (counted or batch).num_edges
                made = handed(batch)
                going.handed += 1
                meter.batches += 1
                meter.hand()
                yield made
                meter.ask()


def record_events(meter: EpochStats, index: int) -> None:
    """Has a pass record events, once torch uses the device."""
    if meter.events is not None or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return
    meter.events = CudaEvents(index) if meter.trace is None else CudaEvents(index, MOST_TRACED)
    if meter.trace is not None:
        meter.events.align()
