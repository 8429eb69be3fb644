"""``Job``: a batch on its way."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._core import memories
from pygsampler._core.handle import SLICE_MS, EngineHandle
from pygsampler.errors import Error
from pygsampler.minibatch import MiniBatch

if TYPE_CHECKING:
    from pygsampler._sampling.engine_sampler import EngineSampler
    from pygsampler.graph import Graph


def require_own(job: EngineHandle) -> None:
    """Error for a job that another process submitted."""
    if job._is_foreign():
        raise Error(
            "job: expected a job of this process, got one submitted before a fork; "
            "submit it in the child"
        )


class Job(EngineHandle):
    """A batch that the engine samples in the background; made by ``PGSampler.submit``.

    ``result()`` waits for it, ``cancel()`` ends it, and so does dropping the job. It keeps the
    graph's arrays alive. It belongs to the process that submitted it: it cannot be pickled, and
    in a forked child ``result()`` raises Error.
    """

    __slots__ = (
        "__weakref__",
        "_graph",
        "_lock",
        "_outcome",
        "_sampler",
        "_waiting",
        "batch",
        "epoch",
    )

    epoch: int
    batch: int
    _end: ClassVar[str] = "Cancel"

    def __init__(self, graph: Graph, sampler: EngineSampler, epoch: int, batch: int) -> None:
        super().__init__()
        self._outcome: Any = None
        # Reentrant, since a signal handler may ask for a job that its thread is waiting for: it
        # gets an error then, since it can neither wait nor take what is being taken.
        self._lock = threading.RLock()
        self._waiting = False
        self._graph = graph
        self._sampler = sampler
        self.epoch = epoch
        self.batch = batch

    @classmethod
    def start(
        cls,
        graph: Graph,
        sampler: EngineSampler,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        prompt: bool = False,
    ) -> Job:
        """Hands a batch of a graph on the CPU to the engine."""
        job = cls(graph, sampler, epoch, batch)
        ids = as_ids(seeds, "seeds", graph._device)
        without = None
        if exclude is not None:
            without = as_int64(as_ids(exclude, "exclude", graph._device))
        # "Sample" makes a small batch on the spot: handing it to another thread and waking this
        # one again takes longer than sampling it.
        started = memories.call(
            "Sample" if prompt else "Submit",
            graph._handle(),
            sampler._handle(),
            ids.address,
            ids.length,
            ids.bits,
            epoch,
            batch,
            without.address if without else 0,
            without.length if without else 0,
            threads,
            jobs=[job],
        )
        if isinstance(started, memories.Memory):
            job._outcome = MiniBatch._of(started, epoch, batch)
        return job

    def result(self) -> MiniBatch:
        """The batch, waiting until it is there; a second call gives the same one.

        Ctrl-C while waiting cancels the job and raises KeyboardInterrupt.

        Raises
        ------
        IndexError, CudaError, MemoryError, ...
            What went wrong with the batch, as ``PGSampler.sample`` raises it.
        Error
            The job was cancelled, or belongs to another process.
        """
        while True:
            try:
                if self._poll(SLICE_MS):
                    break
            except (KeyboardInterrupt, SystemExit):
                self.cancel()
                raise
        outcome = self._outcome
        if isinstance(outcome, Exception):
            raise outcome
        batch: MiniBatch = outcome
        return batch

    def done(self) -> bool:
        """Whether ``result()`` would return, or raise, at once."""
        return self._poll(0)

    def cancel(self) -> None:
        """Ends the job if it is on its way: ``result()`` then raises Error.

        Returns once the engine no longer reads the graph for it. A result that has been taken
        stays.
        """
        if self._outcome is None:
            self._outcome = Error("job: expected a job on its way, got one that was cancelled")
            self._give_back()

    def __repr__(self) -> str:
        outcome = self._outcome
        if outcome is None:
            state = "lost in a fork" if self._is_foreign() else "on its way"
        else:
            state = f"failed: {outcome}" if isinstance(outcome, Exception) else "done"
        return f"Job(epoch={self.epoch}, batch={self.batch}, {state})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "Job: expected something to pickle, got a job of this process's engine; "
            "pickle its result()"
        )

    def _poll(self, timeout_ms: int) -> bool:
        """Waits a moment; True when there is an outcome."""
        if self._outcome is not None:
            return True
        require_own(self)
        with self._lock:
            if self._outcome is not None:
                return True
            if self._waiting:
                raise Error("job: expected no wait inside a wait of the same thread for it")
            self._waiting = True
            try:
                given = self._await(timeout_ms)
                if given:
                    taken = self._taken(given)
                    if taken is not None:
                        self._number = 0
                    # After a cancel in another thread its outcome stands.
                    self._outcome = self._outcome or taken
            except Exception as error:
                self._outcome = self._outcome or error
                # Where a signal handler raised it, and not the job, the job goes on otherwise.
                self._give_back()
            finally:
                self._waiting = False
            return self._outcome is not None

    def _await(self, timeout_ms: int) -> int | memories.Memory:
        """What the engine hands over, 0 while that is to come."""
        return memories.call("Wait", self._number, timeout_ms)

    def _taken(self, given: Any) -> Any:
        """The batch that the engine has handed over; None where it is still to come."""
        return MiniBatch._of(given, self.epoch, self.batch)
