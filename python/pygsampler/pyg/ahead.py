"""``Ahead``: batches of a PyG loader that are sampled while the ones before are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

__all__ = ["Ahead"]


class Ahead:
    """A sampler of batches for torch's loader, some of whose batches are sampled ahead.

    In the place of a batch's places among the seeds it gives the ``Future`` of what ``sample``
    makes of them, in a thread, batch by batch in order. What the sampler of batches below it
    raises comes after the batches before it.
    """

    __slots__ = ("_base", "_depth", "_sample")

    def __init__(self, base: Any, depth: int, sample: Callable[[Any], Any]) -> None:
        self._base, self._depth, self._sample = base, depth, sample

    def __len__(self) -> int:
        return len(self._base)

    def __iter__(self) -> Iterator[Future[Any]]:
        going: deque[Future[Any]] = deque()
        # One thread: batches are counted as they are sampled.
        with ThreadPoolExecutor(1, thread_name_prefix="pygsampler") as thread:
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
                    yield going.popleft()
                if not isinstance(end, StopIteration):
                    assert end is not None
                    raise end
            finally:
                # It knows this frame.
                end = None
                for job in going:
                    job.cancel()
