"""``HeteroEngineSampler``: the engine's way to a batch of a graph with types."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._arrays.ids import as_ids, as_int64, ids_on_host
from pygsampler._batch.hetero_minibatch import HeteroMiniBatch
from pygsampler._engine import memory as memories
from pygsampler._engine.handle import SLICE_MS
from pygsampler._sampling.device_job import DeviceJob
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.hetero_inputs import flatten_by_type, flatten_times
from pygsampler._sampling.job import SampleJob
from pygsampler._sampling.partitioned_job import PartitionedJob

if TYPE_CHECKING:
    from pygsampler._engine.memory import Memory
    from pygsampler._graph.hetero_graph import HeteroGraph
    from pygsampler._graph.temporal import TimeSortedGraph
    from pygsampler._sampling.plan import Plan


_EMPTY = as_ids(array("q"), "exclude")


class HeteroEngineSampler(EngineSampler):
    """A plan of the family of graphs with types, and its handle in the engine."""

    __slots__ = ()

    @property
    def _by_time(self) -> str | None:
        """The name of the times; None: edges have none."""
        name: str | None = self._plan.get("time")
        return name

    def start(
        self,
        graph: HeteroGraph,
        seeds: Any,
        seed_time: Any = None,
        *,
        epoch: int,
        batch: int,
        exclude: Any,
        threads: int,
        prompt: bool,
        hops: bool = False,
    ) -> SampleJob:
        """Hands a batch to the engine; one on a GPU that is not prompt is made beside its caller's
        stream, and that of a graph in parts asks these for rows. ``hops``: see ``Sampler.launch``
        of what is put into hops."""
        if graph._service is not None:
            return PartitionedJob.start_typed(
                graph,
                self,
                seeds,
                epoch=epoch,
                batch=batch,
                exclude=exclude,
                seed_time=seed_time,
                rows=self._rows_of_parts(),
            )
        device, name, timed = graph._device, self._by_time, None
        if name is not None:
            timed = graph._timed(name, self._plan["mask"], self._plan["prob"])
            graph = timed.graph
        else:
            graph = self._plan.graph_of(graph)
        kind: Any = _HeteroJob if device < 0 else _HeteroDeviceJob
        job: _HeteroJob | _HeteroDeviceJob = kind(graph, self, epoch, batch, hops and device < 0)
        node_types, edge_types = graph._schema
        if type(seeds) is not dict and not isinstance(seeds, Mapping) and len(node_types) == 1:
            seeds = {node_types[0]: seeds}
        ids, counts = flatten_by_type(seeds, node_types, "seeds", device)
        times = (0, 0)
        if timed is not None:
            bounds = flatten_times(seed_time, seeds, counts, node_types, timed)
            job._rows = timed
            times = timed.address, bounds.buffer_info()[0]
        without, excluded = _EMPTY, [0] * len(edge_types)
        if exclude:
            without, excluded = flatten_by_type(exclude, edge_types, "exclude", device)
            without = as_int64(ids_on_host(without))
        numbers = array("q", [*counts, *excluded])
        if isinstance(job, _HeteroDeviceJob):
            job._seeds = ids
            given = memories.call(
                "DeviceTypedSubmit",
                graph._handle(),
                self._handle(),
                ids.address,
                ids.length,
                ids.bits,
                int(ids.device >= 0),
                numbers.buffer_info()[0],
                *times,
                epoch,
                batch,
                without.address if without.length else 0,
                without.length,
                devices.current_stream(device) if ids.stream is None else ids.stream,
                int(not prompt),
                # One call of the engine in the place of two, each of which takes and gives the GIL.
                SLICE_MS if prompt else 0,
                jobs=[job],
            )
            if isinstance(given, memories.Memory):
                job._outcome = job._wrap_result(given)
            return job
        started = memories.call(
            "TypedSubmit",
            graph._handle(),
            self._handle(),
            ids.address,
            ids.length,
            ids.bits,
            numbers.buffer_info()[0],
            *times,
            epoch,
            batch,
            without.address if without.length else 0,
            without.length,
            threads,
            int(prompt),
            int(hops),
            jobs=[job],
        )
        if isinstance(started, memories.Memory):
            job._outcome = job._wrap_result(started)
        return job

    def _rows_of_parts(self) -> Plan | None:
        """What a graph in parts is asked for rows by; None: this plan."""
        return None

    def _view(self, graph: Any, memory: Memory, epoch: int, batch: int) -> HeteroMiniBatch:
        return HeteroMiniBatch._of_engine(memory, graph._schema, epoch, batch, graph._device)


class _HeteroJob(SampleJob):
    """It keeps the times of edges, too."""

    __slots__ = ("_rows",)

    _rows: TimeSortedGraph


class _HeteroDeviceJob(DeviceJob):
    """The same on a GPU."""

    __slots__ = ("_rows",)

    _rows: TimeSortedGraph
