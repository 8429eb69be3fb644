"""``stream``: batches ahead of a loop, in bounded memory, without a framework."""

from __future__ import annotations

import ctypes
from array import array
from bisect import bisect_right
from collections.abc import Generator, Mapping
from contextlib import closing
from itertools import accumulate
from typing import Any, TypeVar

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import as_ids
from pygsampler._engine.checks import boolean, integer
from pygsampler._engine.library import call
from pygsampler._engine.limits import MAX_EPOCH
from pygsampler._graph.graph import Graph, is_heterogeneous
from pygsampler._graph.schema import check_by_type
from pygsampler._loader.prefetch import close_at_exit, prefetch_in_order
from pygsampler._sampling.batch_counter import signed_seed
from pygsampler._sampling.pending import PendingBatch
from pygsampler._sampling.sampler import Sampler, check_graph

__all__ = ["MOST_ON_GPU", "stream"]

T = TypeVar("T")

# The engine has buffers and streams for so many batches of a GPU at once.
MOST_ON_GPU = 8


def stream(
    graph: Graph,
    sampler: Sampler[T],
    seeds: Any = None,
    *,
    batch_size: int = 1024,
    shuffle: bool = False,
    epoch: int | None = None,
    prefetch: int = 4,
) -> Generator[T, None, None]:
    """Yields a sampler's batches of all seeds, one after another, with some prefetched.

    It needs neither torch nor NumPy, and works for every sampler. A corpus of walks takes the
    memory of a few batches, whatever the graph's size:

        for walks in pgs.stream(graph, pgs.walks.DeepWalk(seed=0), shuffle=True):
            ...

    Parameters
    ----------
    graph : Graph
        A graph on the CPU, on a GPU or pinned: the batches are on its device.
    sampler : Sampler
        ``RandomWalk``, ``PGSampler``, or any other sampler.
    seeds : int32 or int64 node ids, 1-D, or mapping of node types to these, optional
        On the CPU; they are read while the iterator lives. Default: all nodes. In a heterogeneous
        graph they are a mapping, and batches follow the order of the graph's node types.
    batch_size : int
        Seeds of a batch, at least 1; the last may have fewer.
    shuffle : bool
        Permute the seeds, by the sampler's seed and the epoch.
    epoch : int, optional
        0 to ``2**24 - 1``; the sampler's own by default, which ``set_epoch`` sets. Choose another
        epoch for each iteration: batches are numbered from 0, so that one epoch always has the same
        batches.
    prefetch : int
        Batches that are sampled ahead while one is used; 0 samples a batch when it is requested.
        From 2 on one core samples each batch, and several batches are sampled at once; on a GPU at
        most 8 are in flight. They take the memory of ``prefetch + 1`` batches.

    Yields
    ------
    object
        The type that ``sampler.sample`` returns. The batches, their numbers and their order are
        equal to those of ``pygsampler.torch.DataLoader`` for the same sampler and epoch. None is
        started before the first is requested; closing or dropping the iterator, an error and Ctrl-C
        cancel the batches in flight.

    Raises
    ------
    TypeError, ValueError
        For an argument of a wrong type or value, naming it.
    IndexError
        For a seed outside ``[0, graph.num_nodes)``.
    """
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler: expected a Sampler, got {type(sampler).__name__}")
    check_graph(graph, sampler._takes_types)
    size = integer(batch_size, "batch_size", 1)
    depth = integer(prefetch, "prefetch", 0)
    number = sampler.epoch if epoch is None else integer(epoch, "epoch", 0, MAX_EPOCH)
    order = _HeteroSeeds(graph, seeds) if is_heterogeneous(graph) else _Seeds(graph, seeds)
    if boolean(shuffle, "shuffle"):
        order.shuffle(sampler.seed, number)
    return close_at_exit(_batches(graph, sampler, order, size, number, depth))


class _Seeds:
    """The seeds of an epoch, in the order of its batches; without ``ids`` all ids."""

    def __init__(self, graph: Graph, seeds: Any) -> None:
        self._ids = None if seeds is None else _checked(seeds, "seeds", graph.num_nodes)
        self.count: int = graph.num_nodes if self._ids is None else len(self._ids)

    def shuffle(self, seed: int, epoch: int) -> None:
        """Puts a copy of the seeds into the order of an epoch."""
        self._ids = _shuffled(self._ids, self.count, seed, epoch)

    def part(self, start: int, end: int) -> Any:
        """Returns some of the seeds."""
        return array("q", range(start, end)) if self._ids is None else self._ids[start:end]


class _HeteroSeeds(_Seeds):
    """The seeds of several types: to an id the number of nodes of the types before is added."""

    def __init__(self, graph: Graph, seeds: Any) -> None:
        counts = graph.num_nodes
        if seeds is not None and not isinstance(seeds, Mapping) and len(counts) == 1:
            seeds = dict.fromkeys(counts, seeds)
        given = check_by_type(seeds, "seeds", counts)
        self._types = [kind for kind in counts if seeds is None or kind in given]
        *self._firsts, self.count = accumulate((counts[k] for k in self._types), initial=0)
        self._ids = None
        if seeds is not None:
            parts = [_checked(given[k], f"seeds[{k!r}]", counts[k]) for k in self._types]
            order = array("q")
            for ids, first in zip(parts, self._firsts, strict=True):
                order.extend(node + first for node in ids._integers())
            # Seeds of one type are shuffled in their dtype, as in a loader.
            self._ids = parts[0] if len(parts) == 1 else _checked(order, "seeds", self.count)
            self.count = len(self._ids)

    def part(self, start: int, end: int) -> dict[str, Any]:
        part = super().part(start, end)
        if len(self._types) == 1:
            return {self._types[0]: part}
        by_type: list[array[int]] = [array("q") for _ in self._types]
        for node in part:
            place = bisect_right(self._firsts, node) - 1
            by_type[place].append(node - self._firsts[place])
        return dict(zip(self._types, by_type, strict=True))


def _shuffled(ids: Array | None, num_nodes: int, seed: int, epoch: int) -> Array:
    """A copy in the order of the epoch."""
    if ids is None:
        order = Array._of_view(as_ids(array("q", range(num_nodes)), "seeds"))
    else:
        order = Array._room(ids.dtype, ids.shape)
        ctypes.memmove(order._address, ids._address, ids.nbytes)
    call("Shuffle", order._address, len(order), order._bits, signed_seed(seed), epoch)
    return order


def _checked(seeds: Any, where: str, num_nodes: int) -> Array:
    ids = Array._of_view(as_ids(seeds, where))
    values = ids._integers()
    if len(values) and not 0 <= min(values) <= max(values) < num_nodes:
        place = next(i for i, value in enumerate(values) if not 0 <= value < num_nodes)
        raise IndexError(
            f"{where}[{place}]: expected a node in [0, {num_nodes}), got {values[place]}"
        )
    return ids


def _batches(
    graph: Graph, sampler: Sampler[T], seeds: _Seeds, size: int, epoch: int, depth: int
) -> Generator[T, None, None]:
    if graph._device >= 0:
        depth = min(depth, MOST_ON_GPU)
    # With several batches in flight, one core for each wastes nothing on synchronisation.
    threads = 1 if depth >= 2 else 0
    count = seeds.count

    def submit(step: int) -> PendingBatch[T]:
        chosen = seeds.part(step * size, min((step + 1) * size, count))
        return sampler.submit(graph, chosen, epoch=epoch, batch=step, threads=threads)

    with closing(prefetch_in_order(submit, -(-count // size), depth)) as batches:
        yield from batches
