"""``SampleRequest``: one call for a batch, in the words that the engine reads."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._arrays.ids import IdView, as_ids, as_int64, ids_on_host
from pygsampler._engine import memory
from pygsampler._engine import request_layout as at
from pygsampler._engine.checks import describe
from pygsampler._engine.handle import SLICE_MS
from pygsampler._graph.schema import edge_type_of
from pygsampler._sampling.hetero_inputs import flatten_by_type, flatten_times
from pygsampler._sampling.plan import Plan
from pygsampler._sampling.seed_times import seed_times

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.engine_sampler import EngineSampler, HeteroEngineSampler

_TEMPLATES = {
    size: array("q", [at.REQUEST_SIGNATURE, size, *[0] * (size - 2)])
    for size in (at.SIZE_PLAIN, at.SIZE_DEVICE, at.SIZE_HETERO, at.SIZE_PARTITION, at.SIZE_ROWS)
}
# The words from the flags to the number of threads, by one call.
_PACK = Struct(f"={at.THREADS - at.FLAGS + 1}q").pack_into
_FLAGS_AT = 8 * at.FLAGS
# By ``IdView.on_device()``.
PLACE_FLAGS = (0, at.FLAG_ON_DEVICE, at.FLAG_ON_DEVICE | at.FLAG_KNOWN)


def empty_request(size: int) -> array[int]:
    """The words of a request of ``size`` words that asks for nothing yet."""
    return _TEMPLATES[size][:]


class SampleRequest:
    """A batch that ``dispatch`` begins: of a graph, by a sampler, from seeds.

    The engine copies all arrays before ``Submit`` returns, but for seeds on a device, which stay in
    ``seeds``.

    Parameters
    ----------
    graph : Graph
        As ``sampled_graph`` gave it, where it is.
    form, asynchronous
        As ``Sampler.launch`` has it.
    row_plan : Plan, optional
        The plan by which partitions are asked for rows, where that is not the sampler's own.
    """

    __slots__ = (
        "asynchronous",
        "batch",
        "epoch",
        "excluded",
        "form",
        "graph",
        "kept",
        "row_plan",
        "sampler",
        "seeds",
        "words",
    )

    words: array[int]
    seeds: IdView
    # The ids of excluded edges for each relation of a partitioned graph.
    excluded: list[bytes]
    # Objects that the engine reads besides the graph's arrays while the job runs.
    kept: Any

    def __init__(
        self,
        sampler: EngineSampler,
        graph: Any,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
        row_plan: Plan | None = None,
    ) -> None:
        self.sampler, self.graph, self.epoch, self.batch = sampler, graph, epoch, batch
        # Batches in torch's memory cannot exclude edges, so the engine's memory holds the batch.
        self.form = form if exclude is None or form == "edge_lists" else "array"
        self.asynchronous, self.row_plan = asynchronous, row_plan
        if graph._service is not None:
            self._ask_partitions(seeds, exclude, None)
            return
        device = graph._device
        if device >= 0:
            # Before anything of CUDA: in a forked child it raises.
            graph._handle()
        ids = as_ids(seeds, "seeds", device)
        without = None if exclude is None else _excluded_ids(exclude, device)
        self._pack(at.SIZE_PLAIN if device < 0 else at.SIZE_DEVICE, ids, without, threads)

    def _pack(self, size: int, ids: IdView, without: IdView | None, threads: int) -> array[int]:
        """Writes the words that all requests have."""
        self.seeds, self.kept = ids, without
        words = self.words = _TEMPLATES[size][:]
        flags = 0 if self.asynchronous else at.FLAG_PROMPT
        if self.form == "edge_lists" and self.graph._device < 0:
            flags |= at.FLAG_EDGE_LISTS
        excluded, num_excluded = (0, 0) if without is None else (without.address, without.length)
        _PACK(
            words,
            _FLAGS_AT,
            flags,
            self.graph._handle(),
            self.sampler._handle(),
            ids.address,
            ids.length,
            ids.bits,
            self.epoch,
            self.batch,
            excluded,
            num_excluded,
            threads,
        )
        return words

    def on_device(self, stream: int) -> None:
        """Asks a device for the batch, after the work in ``stream``.

        An asynchronous request runs in a stream of the engine's.
        """
        words = self.words
        words[at.STREAM] = stream
        words[at.FLAGS] |= PLACE_FLAGS[self.seeds.on_device()]
        if self.asynchronous:
            words[at.FLAGS] |= at.FLAG_OWN_STREAM
        # One call of the engine in the place of two, each of which takes and gives the GIL.
        words[at.TIMEOUT] = SLICE_MS

    def _ask_partitions(self, seeds: Any, exclude: Any, seed_time: Any) -> None:
        """Packs a batch of a partitioned graph, whose job asks the graph's service for rows."""
        service, plan = self.graph._service, self.sampler._plan
        ids = as_ids(seeds, "seeds")
        service.check(plan)
        without = None if exclude is None else as_int64(as_ids(exclude, "exclude"))
        self.excluded = [b"" if without is None else _bytes_of(without, 0, without.length)]
        times = None
        if plan["family"] == "temporal":
            timed = service.times(plan["time"])
            times = seed_times(seed_time, ids.length, timed), timed.float
        elif seed_time is not None:
            raise ValueError(
                f"seed_time: expected None without temporal=, got {describe(seed_time)}"
            )
        self._pack_partitions(ids, service.bounds_of(plan), times)

    def _pack_partitions(
        self, ids: IdView, bounds: array[int], times: tuple[array[Any], bool] | None = None
    ) -> array[int]:
        # Its job is needed, which answers: a batch without rows may be there at once.
        self.asynchronous = True
        words = self._pack(at.SIZE_PARTITION, ids, None, 1)
        self.kept = bounds, times
        words[at.BOUNDS], words[at.NUM_BOUNDS] = bounds.buffer_info()
        if times is not None:
            values, floats = times
            words[at.SEED_TIMES] = values.buffer_info()[0]
            if floats:
                words[at.FLAGS] |= at.FLAG_FLOAT_TIMES
        return words


class TemporalRequest(SampleRequest):
    """A batch of edges that are not later than the seeds' times."""

    __slots__ = ()

    def __init__(
        self,
        sampler: EngineSampler,
        graph: Any,
        seeds: Any,
        seed_time: Any,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
    ) -> None:
        graph = graph._source
        self.sampler, self.graph, self.epoch, self.batch = sampler, graph, epoch, batch
        self.form, self.asynchronous, self.row_plan = (
            form if form == "edge_lists" else "array",
            asynchronous,
            None,
        )
        if graph._service is not None:
            self._ask_partitions(seeds, exclude, seed_time)
            return
        device, plan = graph._device, sampler._plan
        timed = graph._time_sorted(plan["time"], plan.get("mask"), plan.get("prob"))
        self.graph = timed.graph
        near = None if device < 0 else device
        ids = as_ids(seeds, "seeds", near)
        times = seed_times(seed_time, ids.length, timed)
        without = None if exclude is None else _excluded_ids(exclude, near)
        words = self._pack(at.SIZE_HETERO, ids, without, threads)
        sorted_ = array("q", (timed.memory.address, timed.by_node))
        self.kept = without, timed, times, sorted_
        words[at.SORTED], words[at.SEED_TIMES] = sorted_.buffer_info()[0], times.buffer_info()[0]


class HeteroRequest(SampleRequest):
    """A batch of a heterogeneous graph; ``seed_time`` is for plans by time."""

    __slots__ = ()

    def __init__(
        self,
        sampler: HeteroEngineSampler,
        graph: Graph,
        seeds: Any,
        seed_time: Any = None,
        *,
        epoch: int,
        batch: int,
        exclude: Any = None,
        threads: int = 0,
        form: str = "array",
        asynchronous: bool = False,
    ) -> None:
        source = graph._source
        self.sampler, self.graph, self.epoch, self.batch = sampler, source, epoch, batch
        self.form, self.asynchronous = form if form == "edge_lists" else "array", asynchronous
        self.row_plan = sampler._rows_of_parts()
        service, device, timed = source._service, source._device, None
        plan, name = sampler._plan, sampler._by_time
        if service is not None:
            service.check(plan)
            timed = None if name is None else service.times(name)
        elif name is not None:
            timed = source._time_sorted(name, plan.get("mask"), plan.get("prob"))
            self.graph = timed.graph
        else:
            self.graph = plan.sampled_graph(source)
        node_types, edge_types = source._schema
        if type(seeds) is not dict and not isinstance(seeds, Mapping) and len(node_types) == 1:
            seeds = {node_types[0]: seeds}
        ids, counts = flatten_by_type(seeds, node_types, "seeds", device)
        times = None
        if timed is not None:
            times = flatten_times(seed_time, seeds, counts, node_types, timed)
        without, excluded = None, [0] * len(edge_types)
        if exclude:
            without, excluded = flatten_by_type(exclude, edge_types, "exclude", device)
            without = as_int64(ids_on_host(without)) if without.length else None
        if service is not None:
            ends = [sum(excluded[: i + 1]) for i in range(len(excluded))]
            self.excluded = [
                b"" if without is None else _bytes_of(without, end - count, end)
                for count, end in zip(excluded, ends, strict=True)
            ]
            by_time = None if times is None or timed is None else (times, timed.float)
            words = self._pack_partitions(ids, service.bounds, by_time)
            excluded = [0] * len(edge_types)
        else:
            words = self._pack(at.SIZE_HETERO, ids, without, threads)
        numbers = array("q", [*counts, *excluded])
        words[at.COUNTS] = numbers.buffer_info()[0]
        self.kept = self.kept, numbers, times, timed
        if service is not None and timed is not None:
            has_times = array("q", timed.of)
            self.kept = self.kept, has_times
            words[at.TIMED] = has_times.buffer_info()[0]
        elif timed is not None:
            assert times is not None
            words[at.SORTED], words[at.SEED_TIMES] = timed.address, times.buffer_info()[0]


class WalkRelationsRequest(SampleRequest):
    """Walks along edge types of a partitioned heterogeneous graph.

    ``types`` are the edge types by the places in the plan's metapath, and ``roots`` is the node
    type where walks begin.
    """

    __slots__ = ()

    def __init__(
        self,
        sampler: EngineSampler,
        graph: Graph,
        types: Sequence[Any],
        roots: str,
        seeds: Any,
        *,
        epoch: int,
        batch: int,
    ) -> None:
        self.sampler, self.graph, self.epoch, self.batch = sampler, graph._source, epoch, batch
        self.form, self.asynchronous, self.excluded = "array", True, []
        service, plan = graph._service, sampler._plan
        # A part is asked for edges of one relation, whose rows know nothing of the others.
        self.row_plan = Plan(**{**plan, "metapath": None, "edge_types": None})
        service.check(self.row_plan)
        along, against = array("q"), plan["direction"] == "in"
        for kind in types:
            place = graph.edge_types.index(edge_type_of(kind, graph.edge_types, "metapath"))
            service.check_relation(place, plan["prob"])
            along.extend([place, graph.num_nodes[kind[0 if against else 2]]])
        words = self._pack_partitions(as_ids(seeds, "seeds"), service.bounds_of(plan))
        self.kept = self.kept, along
        words[at.WALK_RELATIONS], count = along.buffer_info()
        words[at.NUM_WALK_RELATIONS], words[at.ROOTS] = count // 2, graph.num_nodes[roots]


def _excluded_ids(exclude: Any, device: int | None) -> IdView:
    view = as_ids(exclude, "exclude", device)
    return as_int64(view if view.device == devices.CPU else ids_on_host(view))


def _bytes_of(ids: IdView, start: int, end: int) -> bytes:
    """The ids of 64 bits from ``start`` on and before ``end``."""
    return bytes(memory.memory_view(ids.address + 8 * start, 8 * (end - start)))
