"""``Job``: a batch on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._engine import memory
from pygsampler._engine.pending import PendingMemory

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.engine_sampler import EngineSampler


class SampleJob(PendingMemory):
    """A batch that the engine samples in the background; made by ``PGSampler.submit``.

    ``result()`` waits for it, ``cancel()`` ends it, and so does dropping the job. It keeps the
    graph's arrays alive. It belongs to the process that submitted it: it cannot be pickled, and
    in a forked child ``result()`` raises Error.
    """

    __slots__ = ("_graph", "_hops", "_sampler", "batch", "epoch")

    epoch: int
    batch: int
    # Whether the engine joins the hops: the result is that memory then.
    _hops: bool

    def __init__(
        self, graph: Graph, sampler: EngineSampler, epoch: int, batch: int, hops: bool = False
    ) -> None:
        super().__init__()
        self._graph = graph
        self._sampler = sampler
        self._hops = hops
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
        hops: bool = False,
    ) -> SampleJob:
        """Hands a batch of a graph on the CPU to the engine."""
        job = cls(graph, sampler, epoch, batch, hops)
        ids = as_ids(seeds, "seeds", graph._device)
        without = None
        if exclude is not None:
            without = as_int64(as_ids(exclude, "exclude", graph._device))
        # "Sample" makes a small batch on the spot: handing it to another thread and waking this
        # one again takes longer than sampling it.
        name: str = "Sample" if prompt else "Submit"
        more: tuple[int, ...] = ()
        if hops:
            name, more = "HopsSubmit", (int(prompt),)
        started = memory.call(
            name,
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
            *more,
            jobs=(job,),
        )
        if isinstance(started, memory.Memory):
            job._outcome = job._wrap_result(started)
        return job

    def result(self) -> Any:
        """What the sampler makes, waiting until it is there; a second call gives the same one.

        Ctrl-C while waiting cancels the job and raises KeyboardInterrupt.

        Raises
        ------
        IndexError, CudaError, MemoryError, ...
            What went wrong with the batch, as ``PGSampler.sample`` raises it.
        Error
            The job was cancelled, or belongs to another process.
        """
        return self._result()

    def __repr__(self) -> str:
        return f"Job(epoch={self.epoch}, batch={self.batch}, {self._state()})"

    def _wrap_result(self, given: Any) -> Any:
        """The batch that the engine has handed over; None where it is still to come."""
        if self._hops:
            return given
        return self._sampler._view(self._graph, given, self.epoch, self.batch)
