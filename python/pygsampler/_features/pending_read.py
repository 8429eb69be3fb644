"""``PendingRead``: rows of features on their way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pygsampler._arrays.array import Array
    from pygsampler._features.gather import GatherJob


class PendingRead:
    """Rows on their way from features on the CPU; made by ``Features.read_async``."""

    __slots__ = ("_count", "_job", "_like", "_made", "_shown")

    def __init__(
        self, shown: Callable[..., Array], job: GatherJob, count: int, like: bool, out: Any
    ) -> None:
        # Of the memory that the job fills, and of the features, which it keeps.
        self._shown = shown
        self._job = job
        self._count = count
        self._like = like
        self._made = out

    def wait(self) -> Any:
        """The rows, as ``Features.read`` gives them; a second call gives the same ones.

        Raises IndexError for ids that are no rows. Ctrl-C while waiting ends the reading.
        """
        memory, (start,) = self._job.result()
        if self._made is None:
            made = self._shown(memory, start, self._count)
            self._made = made.torch() if self._like else made
        return self._made

    def done(self) -> bool:
        """True if ``wait()`` would return, or raise, at once."""
        return self._job.done()

    def cancel(self) -> None:
        """Ends it: nothing reads the features or the ids for it afterwards."""
        self._job.cancel()

    def __repr__(self) -> str:
        return f"Reading({self._count} rows, {self._job._state()})"
