"""Batches that a sampler has begun and not finished: their protocols, and two simple jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class PendingBatch(Protocol[T_co]):
    """A batch on its way."""

    def result(self) -> T_co:
        """The batch, waiting until it is there; raises what went wrong with it."""
        ...

    def done(self) -> bool:
        """True if ``result()`` would return, or raise, at once."""
        ...

    def cancel(self) -> None:
        """Ends it: nothing reads the graph or the seeds for it afterwards."""
        ...


class PendingGroup(Protocol[T_co]):
    """Several batches on their way, whose results come together."""

    def result(self) -> Sequence[T_co | Exception]:
        """Waits for all batches and returns them in their order; it can be called once.

        If a batch fails, its error replaces the batch, and is the last item.
        """
        ...

    def done(self) -> bool:
        """True if ``result()`` would return at once."""
        ...

    def cancel(self) -> None:
        """Ends all: nothing reads the graph or the seeds for them afterwards."""
        ...


class GroupLauncher(Protocol):
    """Starts several batches of one graph and epoch by one call."""

    def __call__(self, seeds: Sequence[Any], batches: Sequence[int]) -> PendingGroup[Any]:
        """A batch for each set of seeds, of the number in its place."""
        ...


class CompletedJob:
    """A batch that is there already, for samplers that make it in ``launch``."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def result(self) -> Any:
        """The batch."""
        return self._batch

    def done(self) -> bool:
        """True."""
        return True

    def cancel(self) -> None:
        """Nothing is on its way."""


class MappedJob(Generic[T]):
    """A job that applies a function to the result of another job."""

    def __init__(self, job: Any, make: Callable[[Any], T]) -> None:
        self._job, self._make = job, make
        self._made: T | None = None

    def result(self) -> T:
        """The batch; a second call gives the same one."""
        if self._made is None:
            self._made = self._make(self._job.result())
        return self._made

    def done(self) -> bool:
        """True if the other job is done."""
        return bool(self._job.done())

    def span(self, timeout_ms: int = -1) -> Any:
        """Begin and end of the other job's work, by its record; None without a record."""
        span = getattr(self._job, "span", None)
        return None if span is None else span(timeout_ms)

    def cancel(self) -> None:
        """Ends it."""
        self._job.cancel()
