"""``PartitionedJob``: a batch of a graph whose parts lie in several processes."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._engine import memory
from pygsampler._engine.checks import describe
from pygsampler._graph.schema import edge_type_of
from pygsampler._sampling.hetero_inputs import flatten_by_type, flatten_times
from pygsampler._sampling.job import SampleJob
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.seed_times import seed_times

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._graph.hetero_graph import HeteroGraph
    from pygsampler._sampling.engine_sampler import EngineSampler


class PartitionedJob(SampleJob):
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
        seed_time: Any = None,
        rows: Plan | None = None,
    ) -> PartitionedJob:
        """The same of a graph with types."""
        service = graph._service
        plan = sampler._plan
        service.check(plan)
        node_types, edge_types = graph.node_types, graph.edge_types
        if not isinstance(seeds, Mapping) and len(node_types) == 1:
            seeds = {node_types[0]: seeds}
        ids, counts = flatten_by_type(seeds, node_types, "seeds")
        times, floats, timed = array("q"), False, array("q")
        if plan.get("time") is not None:
            about = service.times(plan["time"])
            times, floats = flatten_times(seed_time, seeds, counts, node_types, about), about.float
            timed = array("q", about.of)
        left_out = [b""] * len(edge_types)
        if exclude:
            without, excluded = flatten_by_type(exclude, edge_types, "exclude")
            without, at = as_int64(without), 0
            for place, count in enumerate(excluded):
                if count:
                    left_out[place] = bytes(memory.memory_view(without.address + at, 8 * count))
                at += 8 * count
        numbers = array("q", [*counts, *[0] * len(edge_types)])
        bounds: array[int] = service.bounds
        job = cls(graph, sampler, epoch, batch)  # type: ignore[arg-type]
        memory.call(
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
            timed.buffer_info()[0] if timed else 0,
            times.buffer_info()[0],
            int(floats),
            jobs=[job],
        )
        asked = plan if rows is None else rows
        job._asks = service.register(
            job._number, asked.document, sampler._seed, (epoch, batch), left_out
        )
        return job

    @classmethod
    def start_along(
        cls,
        graph: HeteroGraph,
        sampler: EngineSampler,
        types: Sequence[Any],
        roots: str,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
    ) -> PartitionedJob:
        """Walks along these types of edges, by the places that the plan's metapath has, from
        vertices of the type ``roots``."""
        service = graph._service
        plan = sampler._plan
        # A part is asked for edges of one relation, whose rows know nothing of the others.
        plain = Plan(**{**plan, "metapath": None, "edge_types": None})
        service.check(plain)
        along, against = array("q"), plan["direction"] == "in"
        for kind in types:
            place = graph.edge_types.index(edge_type_of(kind, graph.edge_types, "metapath"))
            service.check_relation(place, plan["prob"])
            along.extend([place, graph.num_nodes[kind[0 if against else 2]]])
        ids = as_ids(seeds, "seeds")
        bounds: array[int] = service.bounds_of(plan)
        job = cls(graph, sampler, epoch, batch)  # type: ignore[arg-type]
        memory.call(
            "PartsAlongSubmit",
            graph._handle(),
            sampler._handle(),
            ids.address,
            ids.length,
            ids.bits,
            epoch,
            batch,
            bounds.buffer_info()[0],
            len(bounds),
            along.buffer_info()[0],
            len(along) // 2,
            graph.num_nodes[roots],
            jobs=[job],
        )
        job._asks = service.register(job._number, plain.document, sampler._seed, (epoch, batch))
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
        rows: Plan | None = None,
    ) -> PartitionedJob:
        """Begins a batch, and tells the graph's service of it.

        The parts are asked for rows by the plan ``rows`` where that is not the sampler's own.
        """
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
            raise ValueError(
                f"seed_time: expected None without temporal=, got {describe(seed_time)}"
            )
        without = None if exclude is None else as_int64(as_ids(exclude, "exclude"))
        excluded = (0, 0) if without is None else (without.address, without.length)
        bounds: array[int] = service.bounds_of(plan)
        memory.call(
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
            left_out = bytes(memory.memory_view(without.address, 8 * without.length))
        asked, when = plan if rows is None else rows, (epoch, batch)
        job._asks = service.register(job._number, asked.document, sampler._seed, when, [left_out])
        return job
