"""``Trace``: the spans of an epoch, in the format of Chrome's trace viewer."""

from __future__ import annotations

import atexit
import json
import logging
import os
from collections import deque
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pygsampler._loader.cuda_events import CudaEvents

__all__ = ["GATHERING", "SAMPLING", "EpochTrace"]

# So many batches are kept, the last ones.
MOST = 1 << 12

# The rows that are shown as threads. Concurrent jobs of a stage have its number and the next ones.
LOOP, STREAM, READING, SAMPLING, GATHERING = 1, 2, 3, 100, 200
_NAMES = {
    LOOP: "training loop",
    STREAM: "torch's stream",
    READING: "read ahead",
    SAMPLING: "sample",
    GATHERING: "gather",
}

# The files of traces that were asked for, and the process that did. No destructor reports them: an
# interrupt would be lost there.
_unwritten: dict[Path, int] = {}

# A thread, a name, the first batch and how many, and begin and end in seconds.
Span = tuple[int, str, int, int, float, float]


class EpochTrace:
    """Records when what happened in an epoch, in seconds of ``perf_counter``, for a file."""

    __slots__ = ("_base", "_path", "_reads", "_spans", "_stages")

    def __init__(self, path: Path) -> None:
        self._path = path
        if not _unwritten:
            atexit.unregister(_report_unwritten)
            atexit.register(_report_unwritten)
        _unwritten[path] = os.getpid()
        self._base = perf_counter()
        # The loop has up to three spans per batch, each stage one.
        self._spans: deque[Span] = deque(maxlen=3 * MOST)
        self._stages: dict[int, deque[Span]] = {
            stage: deque(maxlen=MOST) for stage in (SAMPLING, GATHERING)
        }
        # A batch, and the events where the reading of its rows begins and ends on a GPU.
        self._reads: deque[tuple[int, Any, Any]] = deque(maxlen=MOST)

    def read(self, batch: int, start: Any, end: Any) -> None:
        """Notes that a batch's rows were read ahead between two events of a GPU."""
        self._reads.append((batch, start, end))

    def add(self, name: str, batch: int, start: float, end: float) -> None:
        """Records an event of the thread that requests batches."""
        self._spans.append((LOOP, name, batch, 1, start, end))

    def watched(self, stage: int, submit: Callable[..., Any]) -> Callable[..., Any]:
        """``submit``, whose jobs tell when they were worked on.

        It is called for one batch after the other, or for so many as its second argument says.
        """
        begun = 0
        spans = self._stages[stage]

        def watch(*arguments: Any) -> TracedJob:
            nonlocal begun
            first, count = begun, arguments[1] if len(arguments) > 1 else 1
            start = perf_counter()
            job = submit(*arguments)
            begun += count

            def note(worked: tuple[float, float] | None) -> None:
                span = (start, perf_counter()) if worked is None else worked
                spans.append((stage, _NAMES[stage], first, count, *span))

            return TracedJob(job, note)

        return watch

    def replaced(self, path: Path) -> None:
        """Another trace takes the place of this one, which is missed where its file is another."""
        if path != self._path and _unwritten.pop(self._path, None) is not None:
            _report(self._path)

    def write(self, events: CudaEvents | None) -> None:
        """The file, with the spans of the device among the others."""
        _unwritten.pop(self._path, None)
        spans = list(self._spans)
        for stage in self._stages.values():
            spans += _side_by_side(stage)
        if events is not None:
            for step, asked, had, handed, end in events.spans_in_seconds():
                spans.append((STREAM, "wait", step, 1, asked, had))
                spans.append((STREAM, "gather", step, 1, had, handed))
                spans.append((STREAM, "train", step, 1, handed, end))
            for batch, start, end in self._reads:
                if (span := events.span(start, end)) is not None:
                    spans.append((READING, "read", batch, 1, *span))
        made = {"displayTimeUnit": "ms", "traceEvents": self._events(spans)}
        # Whoever looks meanwhile finds the old file or the new one.
        unfinished = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            unfinished.write_text(json.dumps(made))
            unfinished.replace(self._path)
        finally:
            unfinished.unlink(missing_ok=True)

    def _events(self, spans: list[Span]) -> list[dict[str, Any]]:
        pid = os.getpid()
        named = {"ph": "M", "pid": pid}
        made = [{**named, "name": "process_name", "args": {"name": "pygsampler"}}]
        for thread in sorted(set(map(itemgetter(0), spans))):
            stage = thread if thread < SAMPLING else thread // 100 * 100
            name = _NAMES[stage] + (f" {thread - stage}" if stage >= SAMPLING else "")
            of = {**named, "tid": thread}
            made.append({**of, "name": "thread_name", "args": {"name": name}})
            made.append({**of, "name": "thread_sort_index", "args": {"sort_index": thread}})
        for thread, name, batch, count, start, end in sorted(spans, key=itemgetter(4)):
            about = {"batch": batch, "batches": count} if count > 1 else {"batch": batch}
            span = {"ph": "X", "pid": pid, "tid": thread, "name": name, "args": about}
            at, lasted = 1e6 * (start - self._base), 1e6 * max(end - start, 0.0)
            made.append({**span, "ts": at, "dur": lasted})
        return made


class TracedJob:
    """A job, or a group of jobs, that records when it was worked on.

    On the CPU the engine records begin and end. Other jobs count from their submission until a
    thread saw that they are done.
    """

    __slots__ = ("_job", "_note")

    def __init__(self, job: Any, note: Callable[[tuple[float, float] | None], None]) -> None:
        self._job = job
        self._note: Callable[[tuple[float, float] | None], None] | None = note

    def result(self) -> Any:
        """The job's, waiting for it."""
        if self._note is None:
            return self._job.result()
        span = getattr(self._job, "span", None)
        worked = None if span is None else span()
        made = self._job.result()
        self._tell(worked)
        return made

    def done(self) -> bool:
        """True if the job is done."""
        span = getattr(self._job, "span", None)
        if span is not None:
            # Its span is to be asked for before its result is taken.
            if not (worked := span(0)):
                return bool(self._job.done())
            self._tell(worked)
            return True
        done = bool(self._job.done())
        if done:
            self._tell(None)
        return done

    def span(self, timeout_ms: int = -1) -> Any:
        """Begin and end of the work, by the job's record; None without a record."""
        span = getattr(self._job, "span", None)
        return None if span is None else span(timeout_ms)

    def cancel(self) -> None:
        """Ends the job."""
        self._job.cancel()

    def _tell(self, worked: tuple[float, float] | None) -> None:
        if self._note is not None:
            self._note(worked)
            self._note = None


def _report_unwritten() -> None:
    """Reports the traces of this process that were not written when it ends."""
    for path, process in _unwritten.items():
        if process == os.getpid():
            _report(path)


def _report(path: Path) -> None:
    logging.getLogger("pygsampler").warning(
        "trace: %s was not written, since no epoch has ended after loader.trace(path)", path
    )


def _side_by_side(spans: deque[Span]) -> list[Span]:
    """Returns the spans of a stage, each on the first lane that is free when it starts."""
    # Without generators, in whose destructor Ctrl-C would be lost.
    made: list[Span] = []
    free: list[float] = []
    for stage, name, batch, count, start, end in sorted(spans, key=itemgetter(4)):
        lane = 0
        while lane < len(free) and free[lane] > start:
            lane += 1
        free[lane : lane + 1] = [end]
        made.append((stage + lane, name, batch, count, start, end))
    return made
