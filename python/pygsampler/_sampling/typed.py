"""``TypedSampler``: the engine's way to a batch of a graph with types."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._arrays.ids import View, as_ids, as_int64, on_host
from pygsampler._core import memories
from pygsampler._core.checks import describe
from pygsampler._sampling.device_job import DeviceJob
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.job import Job
from pygsampler.hetero_batch import HeteroBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._core.memories import Memory
    from pygsampler.hetero_graph import HeteroGraph


_EMPTY = as_ids(array("q"), "exclude")


class TypedSampler(EngineSampler):
    """A plan of the family of graphs with types, and its handle in the engine."""

    __slots__ = ()

    def start(
        self,
        graph: HeteroGraph,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any,
        threads: int,
        prompt: bool,
    ) -> Job:
        """Hands a batch to the engine; one on a GPU that is not prompt is made beside its caller's
        stream."""
        device = graph._device
        job = (Job if device < 0 else DeviceJob)(graph, self, epoch, batch)  # type: ignore[arg-type]
        if not isinstance(seeds, Mapping) and len(graph.node_types) == 1:
            seeds = {graph.node_types[0]: seeds}
        ids, counts = _joined(seeds, graph.node_types, "seeds", device)
        without, excluded = _EMPTY, [0] * len(graph.edge_types)
        if exclude:
            without, excluded = _joined(exclude, graph.edge_types, "exclude", device)
            without = as_int64(on_host(without))
        numbers = array("q", [*counts, *excluded])
        if isinstance(job, DeviceJob):
            job._seeds = ids
            memories.call(
                "DeviceTypedSubmit",
                graph._handle(),
                self._handle(),
                ids.address,
                ids.length,
                ids.bits,
                int(ids.device >= 0),
                numbers.buffer_info()[0],
                epoch,
                batch,
                without.address if without.length else 0,
                without.length,
                devices.current_stream(device) if ids.stream is None else ids.stream,
                int(not prompt),
                jobs=[job],
            )
            return job
        started = memories.call(
            "TypedSubmit",
            graph._handle(),
            self._handle(),
            ids.address,
            ids.length,
            ids.bits,
            numbers.buffer_info()[0],
            epoch,
            batch,
            without.address if without.length else 0,
            without.length,
            threads,
            int(prompt),
            jobs=[job],
        )
        if isinstance(started, memories.Memory):
            job._outcome = job._taken(started)
        return job

    def _view(self, graph: Any, memory: Memory, epoch: int, batch: int) -> HeteroBatch:
        about = memory.data, graph._schema, epoch, batch
        if graph._device < 0:
            return HeteroBatch._of(memory, *about)
        return HeteroBatch._of(memory, *about, memory.header, graph._device)


def _joined(
    given: Any, types: Sequence[Any], where: str, device: int = devices.CPU
) -> tuple[View, list[int]]:
    """Ids by type as one list, in the order of the types, and how many there are of each.

    Those of one type may stay on the device, others are copied from there.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{where}: expected a mapping of types to ids, got {describe(given)}")
    for kind in given:
        if kind not in types:
            raise ValueError(f"{where}: expected types of the graph, got {kind!r}")
    near = None if device < 0 else device
    views = {kind: as_ids(ids, f"{where}[{kind!r}]", near) for kind, ids in given.items()}
    counts = [views[kind].length if kind in views else 0 for kind in types]
    if len(views) == 1:
        return next(iter(views.values())), counts
    joined = array("q")
    for kind in types:
        if kind in views:
            view = as_int64(on_host(views[kind]))
            joined.frombytes(memories.integer_view(view.address, view.length, 64).cast("B"))
    return as_ids(joined, where), counts
