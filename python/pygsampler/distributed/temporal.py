"""``times_of``: the kind of times of the edges of a partitioned graph."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pygsampler.distributed.partition import Partition, Shard


class PartitionTimes(NamedTuple):
    """The relations whose edges have times, and the kind of time that a seed needs."""

    name: str
    float: bool
    of: tuple[bool, ...]
    # Same field as in `Timed`: parts do not say if their numbers were dates.
    kind: None = None


def times_of(
    relations: Sequence[Partition],
    sources: Sequence[Collection[str]],
    nodes: Collection[str],
    name: str,
) -> PartitionTimes:
    """The times of that name, of edges or of the nodes that they lead from.

    ``sources`` are the names of the arrays of those nodes, for each relation, and ``nodes``
    those of all nodes. ValueError where there are none, or no part has them.
    """
    edges = [relation.arrays["edges"] for relation in relations]
    of_edges = any(name in arrays for arrays in edges)
    if of_edges and name in nodes:
        raise ValueError(
            f"time: expected the name of an edge or of a node array, got {name!r}, which is that "
            "of both"
        )
    if not of_edges and name not in nodes:
        known = dict.fromkeys([*(each for arrays in edges for each in arrays), *nodes])
        have = ", ".join(map(repr, known)) or "none"
        raise ValueError(
            f"time: expected the name of an edge or node array of the partitioned graph ({have}), "
            f"got {name!r}"
        )
    found: list[Any] = []
    for relation, arrays, here in zip(relations, edges, sources, strict=True):
        if name in here and name not in relation.times:
            raise ValueError(
                f"time: expected an edge array, or nodes' times that the parts were written "
                f"with, got {name!r}, a node array; partition(..., times=[{name!r}]) and "
                "pygsampler partition --times write them"
            )
        found.append(arrays.get(name) if of_edges else relation.times.get(name))
    floats = {str(each["dtype"]).startswith("float") for each in found if each is not None}
    if len(floats) > 1:
        raise ValueError(
            f"time: expected arrays {name!r} that are all integers, or all floating-point, got "
            "some of both"
        )
    return PartitionTimes(name, True in floats, tuple(each is not None for each in found))


def time_sorted_rows(shard: Shard, name: str, mask: str | None, prob: str | None) -> Any:
    """A part's rows in the order of times, as ``Relation._time_sorted`` makes them."""
    own = shard.times.get(name)
    relation: Any = shard.graph._relation
    if own is None:
        return relation._time_sorted(name, mask, prob)
    key = "time of sources", name, mask, prob
    return relation._cached(key, lambda: relation._by_time(name, own, False, None, mask, prob))
