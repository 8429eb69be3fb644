"""``launched``: the engine's way to a batch, whatever the sampler makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pygsampler._sampling.device_job import DeviceJob, TorchJob
from pygsampler._sampling.job import SampleJob
from pygsampler._sampling.partitioned_job import PartitionedJob

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.engine_sampler import EngineSampler
    from pygsampler._sampling.plan import Plan


def dispatch(
    sampler: EngineSampler,
    graph: Graph,
    seeds: Any,
    *,
    epoch: int,
    batch: int,
    exclude: Any = None,
    threads: int = 0,
    into: str | None = None,
    beside: bool = False,
    rows: Plan | None = None,
) -> SampleJob:
    """``Sampler.launch`` of a graph that ``graph_of`` gave, where it is.

    ``rows`` is the plan by which parts are asked for rows, where that is not the sampler's own.
    """
    if graph._service is not None:
        return PartitionedJob.start_in_parts(
            graph, sampler, seeds, epoch=epoch, batch=batch, exclude=exclude, rows=rows
        )
    if graph._device < 0:
        return SampleJob.start(
            graph,
            sampler,
            seeds,
            epoch=epoch,
            batch=batch,
            exclude=exclude,
            threads=threads,
            prompt=not beside,
            hops=into == "hops",
        )
    if into == "torch" and exclude is None:
        return TorchJob(graph, sampler, seeds, epoch, batch, beside)
    return DeviceJob.submit(
        graph, sampler, seeds, epoch=epoch, batch=batch, exclude=exclude, own=beside
    )
