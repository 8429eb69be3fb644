"""Seeds and exclusions by type of a heterogeneous batch, in one list for the engine."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._arrays.ids import IdView, as_ids, as_int64, ids_on_host
from pygsampler._engine import memory
from pygsampler._engine.checks import describe
from pygsampler._graph.schema import check_by_type
from pygsampler._sampling.seed_times import is_scalar_time, seed_times

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._graph.graph import Graph
    from pygsampler._graph.homogeneous import HomogeneousView
    from pygsampler._graph.temporal import TimeSortedGraph


def flatten_times(
    value: Any,
    seeds: Any,
    counts: Sequence[int],
    types: Sequence[str],
    graph_times: TimeSortedGraph,
) -> array[Any]:
    """The times of all seeds, as they are joined.

    ``value`` is a mapping of types, what one type's seeds have, or a number for all.
    """
    if value is None or is_scalar_time(value):
        return seed_times(value, sum(counts), graph_times)
    if not isinstance(value, Mapping):
        if len(seeds) != 1:
            raise TypeError(
                "seed_time: expected a mapping of types to times, or a number, got "
                f"{describe(value)}"
            )
        value = {next(iter(seeds)): value}
    value = check_by_type(value, "seed_time", types)
    times = array("d" if graph_times.float else "q")
    for kind, count in zip(types, counts, strict=True):
        if count or kind in value:
            times += seed_times(value.get(kind), count, graph_times, f"seed_time[{kind!r}]")
    return times


@lru_cache(maxsize=1024)
def _called(where: str, kind: Any) -> str:
    """Returns the name of a type's ids in errors; cached, since every batch needs it."""
    return f"{where}[{kind!r}]"


def flatten_by_type(
    ids_by_type: Any, types: Sequence[Any], where: str, device: int = devices.CPU
) -> tuple[IdView, list[int]]:
    """Returns ids by type as one list, in the order of the types, and their numbers.

    Ids of a single type may stay on the device, ids of several types are copied from there.
    """
    near = None if device < 0 else device
    if type(ids_by_type) is dict and len(ids_by_type) == 1:
        # First: most batches have seeds of one type.
        ((kind, ids),) = ids_by_type.items()
        if kind in types:
            counts = [0] * len(types)
            view = as_ids(ids, _called(where, kind), near)
            counts[types.index(kind)] = view.length
            return view, counts
    if not isinstance(ids_by_type, Mapping):
        raise TypeError(f"{where}: expected a mapping of types to ids, got {describe(ids_by_type)}")
    if not all(kind in types for kind in ids_by_type):
        ids_by_type = check_by_type(ids_by_type, where, types)
    views = {kind: as_ids(ids, f"{where}[{kind!r}]", near) for kind, ids in ids_by_type.items()}
    counts = [views[kind].length if kind in views else 0 for kind in types]
    if len(views) == 1:
        return next(iter(views.values())), counts
    ids = array("q")
    for kind in types:
        if kind in views:
            view = as_int64(ids_on_host(views[kind]))
            ids.frombytes(memory.integer_view(view.address, view.length, 64).cast("B"))
    return as_ids(ids, where), counts


def homogeneous_ids(seeds: Any, graph: Graph, joint: HomogeneousView) -> Any:
    """Seeds by type as those of the joined graph."""
    about = joint.nodes, graph.num_nodes, joint.graph.dtype, graph._device
    return ids_in_homogeneous(seeds, "seeds", *about)


def ids_in_homogeneous(
    ids_by_type: Any,
    where: str,
    starts: Mapping[Any, int],
    counts: Mapping[Any, int],
    dtype: str,
    device: int,
) -> Any:
    """Ids by type as those of the joined graph, in which each type's begin at ``starts``."""
    import numpy

    if not isinstance(ids_by_type, Mapping):
        raise TypeError(f"{where}: expected a mapping of types to ids, got {describe(ids_by_type)}")
    parts = [numpy.zeros(0, dtype)]
    near = None if device < 0 else device
    for kind, values in ids_by_type.items():
        if kind not in starts:
            known = ", ".join(map(repr, starts))
            raise ValueError(f"{where}: expected types among {known}, got {kind!r}")
        view = ids_on_host(as_ids(values, f"{where}[{kind!r}]", near))
        own = numpy.array(memory.integer_view(view.address, view.length, view.bits), numpy.int64)
        wrong = own[(own < 0) | (own >= counts[kind])]
        if len(wrong):
            raise IndexError(
                f"{where}[{kind!r}]: expected ids from 0 to {counts[kind] - 1}, got {int(wrong[0])}"
            )
        parts.append((own + starts[kind]).astype(dtype))
    return numpy.concatenate(parts)
