"""``TypedSampler``: the engine's way to a batch of a graph with types."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._arrays.ids import View, as_ids, as_int64, on_host
from pygsampler._core import memories
from pygsampler._core.checks import describe
from pygsampler._core.handle import SLICE_MS
from pygsampler._sampling.device_job import DeviceJob
from pygsampler._sampling.engine_sampler import EngineSampler
from pygsampler._sampling.job import Job
from pygsampler._sampling.timed import seed_times
from pygsampler.hetero_batch import HeteroBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._core.memories import Memory
    from pygsampler._graph.timed import TypedTimed
    from pygsampler._sampling.plan import Plan
    from pygsampler.hetero_graph import HeteroGraph


_EMPTY = as_ids(array("q"), "exclude")


class TypedSampler(EngineSampler):
    """A plan of the family of graphs with types, and its handle in the engine."""

    __slots__ = ("_by_time",)

    # The name of the times; None: edges have none.
    _by_time: str | None

    def __init__(self, plan: Plan, seed: int) -> None:
        super().__init__(plan, seed)
        self._by_time = plan.get("time")

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
    ) -> Job:
        """Hands a batch to the engine; one on a GPU that is not prompt is made beside its caller's
        stream."""
        device, name, timed = graph._device, self._by_time, None
        if name is not None:
            timed = graph._timed(name, self._plan["mask"], self._plan["prob"])
            graph = timed.graph
        kind: Any = _TypedJob if device < 0 else _TypedDeviceJob
        job: _TypedJob | _TypedDeviceJob = kind(graph, self, epoch, batch)
        node_types, edge_types = graph._schema
        if type(seeds) is not dict and not isinstance(seeds, Mapping) and len(node_types) == 1:
            seeds = {node_types[0]: seeds}
        ids, counts = _joined(seeds, node_types, "seeds", device)
        times = (0, 0)
        if timed is not None:
            bounds = _times_of(seed_time, seeds, counts, node_types, timed)
            job._rows = timed
            times = timed.address, bounds.buffer_info()[0]
        without, excluded = _EMPTY, [0] * len(edge_types)
        if exclude:
            without, excluded = _joined(exclude, edge_types, "exclude", device)
            without = as_int64(on_host(without))
        numbers = array("q", [*counts, *excluded])
        if isinstance(job, _TypedDeviceJob):
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
                job._outcome = job._taken(given)
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
            jobs=[job],
        )
        if isinstance(started, memories.Memory):
            job._outcome = job._taken(started)
        return job

    def _view(self, graph: Any, memory: Memory, epoch: int, batch: int) -> HeteroBatch:
        return HeteroBatch._of_engine(memory, graph._schema, epoch, batch, graph._device)


class _TypedJob(Job):
    """It keeps the times of edges, too."""

    __slots__ = ("_rows",)

    _rows: TypedTimed


class _TypedDeviceJob(DeviceJob):
    """The same on a GPU."""

    __slots__ = ("_rows",)

    _rows: TypedTimed


def _times_of(
    given: Any, seeds: Any, counts: Sequence[int], types: Sequence[str], timed: TypedTimed
) -> array[Any]:
    """The times of all seeds, as they are joined.

    ``given`` is a mapping of types, what one type's seeds have, or a number for all.
    """
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if given is None or number:
        return seed_times(given, sum(counts), timed)
    if not isinstance(given, Mapping):
        if len(seeds) != 1:
            raise TypeError(
                "seed_time: expected a mapping of types to times, or a number, got "
                f"{describe(given)}"
            )
        given = {next(iter(seeds)): given}
    for kind in given:
        if kind not in types:
            raise ValueError(f"seed_time: expected types of the graph, got {kind!r}")
    joined = array("d" if timed.float else "q")
    for kind, count in zip(types, counts, strict=True):
        if count or kind in given:
            joined += seed_times(given.get(kind), count, timed, f"seed_time[{kind!r}]")
    return joined


@lru_cache(maxsize=1024)
def _called(where: str, kind: Any) -> str:
    """What errors call the ids of a type; kept, since every batch asks."""
    return f"{where}[{kind!r}]"


def _joined(
    given: Any, types: Sequence[Any], where: str, device: int = devices.CPU
) -> tuple[View, list[int]]:
    """Ids by type as one list, in the order of the types, and how many there are of each.

    Those of one type may stay on the device, others are copied from there.
    """
    near = None if device < 0 else device
    if type(given) is dict and len(given) == 1:
        # First: most batches have seeds of one type.
        ((kind, ids),) = given.items()
        if kind in types:
            counts = [0] * len(types)
            view = as_ids(ids, _called(where, kind), near)
            counts[types.index(kind)] = view.length
            return view, counts
    if not isinstance(given, Mapping):
        raise TypeError(f"{where}: expected a mapping of types to ids, got {describe(given)}")
    for kind in given:
        if kind not in types:
            raise ValueError(f"{where}: expected types of the graph, got {kind!r}")
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
