"""``TemporalEngineSampler``: batches of edges that are not later than a bound, by the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._arrays.ids import as_ids, as_int64, ids_on_host
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._engine import memory as memories
from pygsampler._sampling.device_job import DeviceJob
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.job import SampleJob
from pygsampler._sampling.partitioned_job import PartitionedJob
from pygsampler._sampling.seed_times import seed_times

if TYPE_CHECKING:
    from pygsampler._engine.memory import Memory
    from pygsampler._graph.graph import Graph
    from pygsampler._graph.temporal import TimeSortedRelation

__all__ = ["TemporalEngineSampler"]


class TemporalEngineSampler(EngineSampler):
    """A plan of the family of neighbours by time, and its handle in the engine."""

    __slots__ = ()

    def start(
        self,
        graph: Graph,
        seeds: Any,
        seed_time: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int,
        prompt: bool,
        hops: bool = False,
    ) -> SampleJob:
        """Hands a batch to the engine; that of a graph in parts asks these for rows."""
        if graph._service is not None:
            return PartitionedJob.start_in_parts(
                graph,
                self,
                seeds,
                epoch=epoch,
                batch=batch,
                exclude=exclude,
                seed_time=seed_time,
            )
        device = graph._device
        timed: TimeSortedRelation = graph._timed(
            self._plan["time"], self._plan["mask"], self._plan["prob"]
        )
        near = None if device < 0 else device
        ids = as_ids(seeds, "seeds", near)
        times = seed_times(seed_time, ids.length, timed)
        rows = timed.memory.address, times.buffer_info()[0], int(timed.by_vertex)
        handles = timed.graph._handle(), self._handle()
        without = (
            None if exclude is None else as_int64(ids_on_host(as_ids(exclude, "exclude", near)))
        )
        excluded = (0, 0) if without is None else (without.address, without.length)
        if device >= 0:
            waiting = _TemporalDeviceJob(timed.graph, self, epoch, batch)
            waiting._rows, waiting._seeds = timed, ids
            stream = devices.current_stream(device) if ids.stream is None else ids.stream
            on_device = int(ids.device >= 0)
            about = (
                ids.address,
                ids.length,
                ids.bits,
                on_device,
                epoch,
                batch,
                *excluded,
                stream,
                int(not prompt),
            )
            memories.call("DeviceTimedSubmit", *handles, *about, *rows, jobs=[waiting])
            return waiting
        job = _TemporalJob(timed.graph, self, epoch, batch, hops)
        job._rows = timed
        numbers = ids.address, ids.length, ids.bits, epoch, batch, *excluded, threads
        how = int(prompt), int(hops)
        started = memories.call("TimedSubmit", *handles, *numbers, *how, *rows, jobs=[job])
        if isinstance(started, memories.Memory):
            job._outcome = job._wrap_result(started)
        return job

    def _view(self, graph: Graph, memory: Memory, epoch: int, batch: int) -> MiniBatch:
        return MiniBatch._of(memory, epoch, batch)


class _TemporalJob(SampleJob):
    """It keeps the times, too."""

    __slots__ = ("_rows",)

    _rows: TimeSortedRelation


class _TemporalDeviceJob(DeviceJob):
    """The same on a GPU."""

    __slots__ = ("_rows",)

    _rows: TimeSortedRelation
