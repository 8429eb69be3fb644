"""``Ahead``: batches of a PyG loader that are sampled while the ones before are used."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

__all__ = ["Ahead"]


class Ahead:
    """The places of a loader's batches as torch's sampler of batches gives them, some ahead.

    ``sample`` makes what is needed of the places of a batch, in a thread, batch by batch in order;
    ``due`` is told of it right before torch's loader asks for that batch.
    """

    __slots__ = ("_base", "_depth", "_due", "_sample")

    def __init__(
        self,
        base: Any,
        depth: int,
        sample: Callable[[Any], Any],
        due: Callable[[Future[Any]], None],
    ) -> None:
        self._base, self._depth = base, depth
        self._sample, self._due = sample, due

    def __len__(self) -> int:
        return len(self._base)

    def __iter__(self) -> Iterator[Any]:
        going: deque[tuple[Any, Future[Any]]] = deque()
        # One thread: batches are counted as they are sampled.
        with ThreadPoolExecutor(1, thread_name_prefix="pygsampler") as thread:
            try:
                for places in self._base:
                    going.append((places, thread.submit(self._sample, places)))
                    if len(going) > self._depth:
                        yield self._handed(going)
                while going:
                    yield self._handed(going)
            finally:
                for _, job in going:
                    job.cancel()

    def _handed(self, going: deque[tuple[Any, Future[Any]]]) -> Any:
        places, job = going.popleft()
        self._due(job)
        return places
