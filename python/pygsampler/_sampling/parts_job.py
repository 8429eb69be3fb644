"""``PartsJob``: a batch of a graph whose parts lie in several processes."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._core import memories
from pygsampler._core.checks import describe
from pygsampler._sampling.job import Job
from pygsampler._sampling.timed import seed_times
from pygsampler._sampling.typed import _joined

if TYPE_CHECKING:
    from pygsampler._sampling.engine_sampler import EngineSampler
    from pygsampler.graph import Graph
    from pygsampler.hetero_graph import HeteroGraph


class PartsJob(Job):
    """It asks for the rows of each hop; the graph's service brings them."""

    __slots__ = ("_asks",)

    # What has to stay for as long as the job asks.
    _asks: Any

    @classmethod
    def start_typed(
        cls,
        graph: HeteroGraph,
        sampler: EngineSampler,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
    ) -> PartsJob:
        """The same of a graph with types."""
        service = graph._service
        plan = sampler._plan
        service.check(plan)
        for name, value in (("time", plan.get("time")), ("exclude", exclude)):
            if value is not None:
                raise NotImplementedError(
                    f"{name}: expected None for a graph with types in parts, got {describe(value)}"
                )
        if not isinstance(seeds, Mapping) and len(graph.node_types) == 1:
            seeds = {graph.node_types[0]: seeds}
        ids, counts = _joined(seeds, graph.node_types, "seeds")
        numbers = array("q", [*counts, *[0] * len(graph.edge_types)])
        bounds: array[int] = service.bounds
        job = cls(graph, sampler, epoch, batch)  # type: ignore[arg-type]
        memories.call(
            "PartsTypedSubmit",
            graph._handle(),
            sampler._handle(),
            ids.address,
            ids.length,
            ids.bits,
            numbers.buffer_info()[0],
            epoch,
            batch,
            bounds.buffer_info()[0],
            len(bounds),
            jobs=[job],
        )
        job._asks = service.take(job._number, plan.document, sampler._seed, (epoch, batch), b"")
        return job

    @classmethod
    def start_in_parts(
        cls,
        graph: Graph,
        sampler: EngineSampler,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        seed_time: Any = None,
    ) -> PartsJob:
        """Begins a batch, and tells the graph's service of it."""
        service = graph._service
        job = cls(graph, sampler, epoch, batch)
        ids = as_ids(seeds, "seeds")
        plan = sampler._plan
        service.check(plan)
        times, floats = array("q"), False
        if plan["family"] == "temporal":
            timed = service.times(plan["time"])
            times, floats = seed_times(seed_time, ids.length, timed), timed.float
        elif seed_time is not None:
            raise ValueError(f"seed_time: expected None without time=, got {describe(seed_time)}")
        without = None if exclude is None else as_int64(as_ids(exclude, "exclude"))
        excluded = (0, 0) if without is None else (without.address, without.length)
        bounds: array[int] = service.bounds_of(plan)
        memories.call(
            "PartsSubmit",
            graph._handle(),
            sampler._handle(),
            ids.address,
            ids.length,
            ids.bits,
            epoch,
            batch,
            *excluded,
            bounds.buffer_info()[0],
            len(bounds),
            times.buffer_info()[0] if len(times) or plan["family"] == "temporal" else 0,
            int(floats),
            jobs=[job],
        )
        left_out = b""
        if without is not None:
            left_out = bytes(memories.memory_view(without.address, 8 * without.length))
        job._asks = service.take(
            job._number, plan.document, sampler._seed, (epoch, batch), left_out
        )
        return job
