"""``LoaderStats``: figures of a loader's epochs, counted while they go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from pygsampler._loader.prefetch_control import PrefetchController
from pygsampler._loader.summary import Stats
from pygsampler._loader.trace import EpochTrace
from pygsampler.errors import ClosedError

if TYPE_CHECKING:
    from pygsampler._loader.cuda_events import CudaEvents
    from pygsampler._loader.feature_fetcher import FeatureFetcher

__all__ = ["EpochStats", "LoaderStats", "stats_text"]


class LoaderStats:
    """The figures of the epoch that began last, and the trace that the next one is to write.

    Copies and pickles begin without either.
    """

    __slots__ = ("_fetcher", "_last", "_trace")

    def __init__(self, fetcher: FeatureFetcher) -> None:
        self._fetcher = fetcher
        self._last: EpochStats | None = None
        self._trace: EpochTrace | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return LoaderStats, (self._fetcher,)

    def begin(self, epoch: int) -> EpochStats:
        """Returns the figures of an ``epoch`` that begins now."""
        self._last = EpochStats(epoch, self._fetcher, self._trace)
        self._trace = None
        return self._last

    def stats(self) -> Stats:
        """Returns what ``DataLoader.stats`` says."""
        return (self._last or EpochStats(fetcher=self._fetcher)).stats()

    def trace(self, path: Any) -> None:
        """Has the next epoch write a trace into the file ``path``."""
        target = Path(path)
        if not target.parent.is_dir():
            raise FileNotFoundError(f"path: expected a file in a folder that exists, got {target}")
        if self._trace is not None:
            self._trace.replaced(target)
        self._trace = EpochTrace(target)


class EpochStats:
    """Counts one epoch. The epoch writes it, any thread may read ``stats``.

    A step is what the consumer does between two calls of ``next()``, and the second call:
    ``ask`` is where a call begins, ``had`` where the batch is sampled, ``hand`` where it is handed
    over. On the CPU, where a batch may take no longer than a few of these calls, the epoch adds to
    ``in_next`` itself, and only a traced one has them.
    """

    __slots__ = (
        "_asked",
        "_begun",
        "_ended",
        "_handed",
        "_queues",
        "_rows",
        "_since",
        "_waited",
        "batches",
        "edges",
        "epoch",
        "events",
        "in_next",
        "pacer",
        "trace",
        "waits",
    )

    # The numbers of batches handed over and of their edges.
    batches: int
    edges: int
    # Seconds in next().
    in_next: float
    # Set by who begins batches ahead.
    pacer: PrefetchController
    # On a GPU, once there is something to record.
    events: CudaEvents | None
    trace: EpochTrace | None

    def __init__(
        self, epoch: int = 0, fetcher: FeatureFetcher | None = None, trace: EpochTrace | None = None
    ) -> None:
        self.epoch = epoch
        self.batches = self.edges = self.waits = 0
        self.events = None
        self.trace = trace
        self.pacer = PrefetchController(0, 0)
        self._rows = fetcher
        self._since = {} if fetcher is None else _read(fetcher)
        self._begun: float | None = None
        self._ended: float | None = None
        self._handed = self.in_next = self._waited = 0.0
        # When the batch that comes next was asked for; None where that was not noted.
        self._asked: float | None = None
        self._queues: tuple[list[int], list[int]] = [], []

    def queues(self, most: int, stages: int) -> tuple[list[int], list[int]]:
        """Returns new counts of how often 0, 1, ... ``most`` batches waited, sampled or complete.

        The first list counts sampled batches, the second those of the last stage. With one stage
        both are one list.
        """
        sampled = [0] * (most + 1)
        self._queues = sampled, [0] * (most + 1) if stages > 1 else sampled
        return self._queues

    def __enter__(self) -> EpochStats:
        """The first batch was asked for."""
        self._begun = self._handed = perf_counter()
        return self

    def __exit__(self, *how: object) -> None:
        """Records that no more batches are requested."""
        self._ended = perf_counter()
        if self.trace is not None:
            if self.batches:
                # Who has left has not asked for another.
                end = self._ended if self._asked is None else self._asked
                self.trace.add("train", self.batches - 1, self._handed, end)
            self.trace.write(self.events)

    def ask(self) -> None:
        """The consumer asks for a batch."""
        self._asked = perf_counter()
        if self.events is not None:
            self.events.ask()

    def waited(self, start: float, end: float) -> None:
        """Records a wait for a result that was not ready."""
        self.waits += 1
        self._waited += end - start
        if self.trace is not None:
            self.trace.add("wait", self.batches, start, end)

    def had(self) -> None:
        """The batch is sampled; on a GPU its rows are read now."""
        if self.events is not None:
            self.events.had()

    def have_rows(self) -> None:
        """The batch has its rows; on a GPU the stream does once it is there."""
        if self.events is not None:
            self.events.hand()

    def reading(self) -> tuple[Any, Any] | None:
        """Rows of the batch after this one begin to be read, in torch's current stream.

        Returns two events for ``read``, the first of which is recorded; None where nobody is to
        know.
        """
        return None if self.trace is None or self.events is None else self.events.pair()

    def read(self, start: Any, end: Any) -> None:
        """Rows of the batch after this one have been read in torch's current stream."""
        assert self.trace is not None
        end.record()
        self.trace.read(self.batches, start, end)

    def hand(self) -> None:
        """The batch is handed over."""
        asked, self._asked = self._asked, None
        if asked is None:
            return
        now = perf_counter()
        self.in_next += now - asked
        if self.trace is not None:
            batch = self.batches - 1
            if batch:
                self.trace.add("train", batch - 1, self._handed, asked)
            self.trace.add("next", batch, asked, now)
            self._handed = now

    def stats(self) -> Stats:
        """Returns what ``DataLoader.stats`` says."""
        seconds = 0.0
        if self._begun is not None:
            seconds = (perf_counter() if self._ended is None else self._ended) - self._begun
        found: dict[str, Any] = {
            "epoch": self.epoch,
            "batches": self.batches,
            "edges": self.edges,
            "seconds": seconds,
            "next_seconds": self.in_next,
            "waits": self.waits,
            "waiting_seconds": self._waited,
            **self._shares(seconds),
            "queues": self._lengths(),
            "held_back": self.pacer.held,
            "pauses": self.pacer.pauses,
        }
        read = {} if self._rows is None else _since(_read(self._rows), self._since)
        found["features"] = read
        found["bytes"] = _summed([each["bytes"] for each in read.values()])
        asked = [each for each in read.values() if "hits" in each]
        rows = sum(each["rows"] for each in asked)
        found["hit_rate"] = sum(each["hits"] for each in asked) / rows if rows else None
        return Stats(found)

    def _shares(self, seconds: float) -> dict[str, Any]:
        if self.events is not None:
            return self.events.shares()
        share = self._waited / seconds if seconds else 0.0
        return {"waiting_share": share, "gathering_share": None, "steps": self.batches}

    def _lengths(self) -> dict[str, dict[str, float]]:
        sampled, last = self._queues
        found = {"sampled": _length(sampled)}
        if last is not sampled:
            found["gathered"] = _length(last)
        return found


def stats_text(stats: Mapping[str, Any]) -> str:
    """Returns the figures of a bar."""
    words = [
        f"{stats['edges'] / max(stats['seconds'], 1e-9) / 1e6:.2f} M edges/s",
        f"{stats['waiting_share']:.1%} waiting for data",
        f"{stats['queues']['sampled']['mean']:.1f} batches ahead",
    ]
    if stats["hit_rate"] is not None:
        words.append(f"{stats['hit_rate']:.1%} cache hits")
    return ", ".join(words)


def _length(counts: Sequence[int]) -> dict[str, float]:
    """Returns a summary of the counts of each length of a queue."""
    looks = sum(counts)
    if not looks:
        return {"looks": 0, "mean": 0.0, "min": 0, "empty": 0.0}
    mean = sum(length * count for length, count in enumerate(counts)) / looks
    least = next(length for length, count in enumerate(counts) if count)
    return {"looks": looks, "mean": mean, "min": least, "empty": counts[0] / looks}


def _read(fetcher: FeatureFetcher) -> dict[str, dict[str, Any]]:
    """Returns the statistics of all features that are not closed."""
    found = {}
    for name, features in fetcher.tables():
        with suppress(ClosedError):
            found[name] = features.stats()
    return found


def _since(now: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the growth of all counts since ``before``, and the other values as they are now."""
    grown: dict[str, Any] = {}
    for name, value in now.items():
        if isinstance(value, Mapping):
            grown[name] = _since(value, before.get(name, {}))
        elif type(value) is int:
            grown[name] = value - before.get(name, 0)
        else:
            grown[name] = value
    return grown


def _summed(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    made: dict[str, int] = {}
    for part in counts:
        for name, value in part.items():
            made[name] = made.get(name, 0) + value
    return made
