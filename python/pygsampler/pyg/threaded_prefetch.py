"""``ThreadedPrefetch``: batches of a PyG loader that are sampled while the ones before are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

__all__ = ["ThreadedPrefetch"]

# Seconds for the batch that is being sampled when a pass ends.
_PATIENCE = 1.0


class ThreadedPrefetch:
    """A sampler of batches for torch's loader, some of whose batches are sampled ahead.

    Instead of a batch's places among the seeds it yields the ``Future`` of the result of ``sample``
    for them, computed in a thread, batch by batch in order. An error of the wrapped sampler of
    batches is raised after the batches before it.
    """

    __slots__ = ("_base", "_depth", "_sample")

    def __init__(self, base: Any, depth: int, sample: Callable[[Any], Any]) -> None:
        self._base, self._depth, self._sample = base, depth, sample

    def __len__(self) -> int:
        return len(self._base)

    def __iter__(self) -> Iterator[Future[Any]]:
        going: deque[Future[Any]] = deque()
        given: Future[Any] | None = None
        # One thread: batches are counted as they are sampled.
        thread = ThreadPoolExecutor(1, thread_name_prefix="pygsampler")
        try:
            base, end = iter(self._base), None
            while True:
                while end is None and len(going) <= self._depth:
                    try:
                        going.append(thread.submit(self._sample, next(base)))
                    except Exception as error:
                        end = error
                if not going:
                    break
                given = going.popleft()
                yield given
            if not isinstance(end, StopIteration):
                assert end is not None
                raise end
        finally:
            # It knows this frame.
            end = None
            running = [job for job in (given, *going) if job is not None and not job.cancel()]
            # The collector may end an abandoned epoch anywhere, also while Python starts or ends a
            # thread under a lock that a join would take again. So the thread is not joined. Its
            # jobs are waited for, but not forever, so that the next epoch counts them.
            thread.shutdown(wait=False)
            wait(running, _PATIENCE)
