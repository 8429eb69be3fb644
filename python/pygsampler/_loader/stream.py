"""``stream``: batches ahead of a loop, in bounded memory, without a framework."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Generator
from contextlib import closing
from typing import Any, TypeVar

from pygsampler._arrays.array import Array
from pygsampler._arrays.ids import as_ids
from pygsampler._engine.checks import boolean, integer
from pygsampler._engine.library import call
from pygsampler._engine.limits import MAX_EPOCH
from pygsampler._graph.graph import Graph
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
    """What a sampler makes of all seeds, batch after batch, some of them ahead.

    It needs neither torch nor NumPy, and works for every sampler: a corpus of walks goes by in the
    memory of a few batches, whatever the graph's size:

        for walks in pgs.stream(graph, pgs.walks.DeepWalk(seed=0), shuffle=True):
            ...

    Parameters
    ----------
    graph : Graph
        On the CPU, on a GPU or pinned: the batches are where it is.
    sampler : Sampler
        ``RandomWalk``, ``PGSampler``, or one of your own.
    seeds : int32 or int64 vertex ids, 1-D, optional
        On the CPU; they are read while the iterator lives. Default: all vertices.
    batch_size : int
        Seeds of a batch, at least 1; the last may have fewer.
    shuffle : bool
        Permute the seeds, by the sampler's seed and the epoch.
    epoch : int, optional
        0 to ``2**24 - 1``; the sampler's own by default, which ``set_epoch`` sets. Give each pass
        its own: batches are numbered from 0, so that a pass with the same epoch is the same.
    prefetch : int
        Batches that are made ahead while one is used; 0 makes one when it is asked for. From 2 on
        each is made by one core, and several at once; on a GPU at most 8 are in flight. Memory is
        that of ``prefetch + 1`` batches.

    Yields
    ------
    object
        What ``sampler.sample`` returns. The batches, their numbers and their order are those
        that ``pygsampler.torch.DataLoader`` has for the same sampler and epoch. None is begun
        before the first is asked for; closing or dropping the iterator, an error and Ctrl-C cancel
        what is in flight.

    Raises
    ------
    TypeError, ValueError
        For an argument of a wrong type or value, naming it.
    IndexError
        For a seed outside ``[0, graph.num_nodes)``.
    """
    check_graph(graph)
    if not isinstance(sampler, Sampler):
        raise TypeError(f"sampler: expected a Sampler, got {type(sampler).__name__}")
    size = integer(batch_size, "batch_size", 1)
    depth = integer(prefetch, "prefetch", 0)
    number = sampler.epoch if epoch is None else integer(epoch, "epoch", 0, MAX_EPOCH)
    ids: Array | None = None
    if seeds is not None:
        ids = Array._of_view(as_ids(seeds, "seeds"))
        _check(ids, graph.num_nodes)
    if boolean(shuffle, "shuffle"):
        ids = _shuffled(ids, graph.num_nodes, sampler.seed, number)
    return close_at_exit(_batches(graph, sampler, ids, size, number, depth))


def _check(ids: Array, num_nodes: int) -> None:
    values = ids._integers()
    if len(values) and not 0 <= min(values) <= max(values) < num_nodes:
        place = next(i for i, value in enumerate(values) if not 0 <= value < num_nodes)
        raise IndexError(
            f"seeds[{place}]: expected a vertex in [0, {num_nodes}), got {values[place]}"
        )


def _shuffled(ids: Array | None, num_nodes: int, seed: int, epoch: int) -> Array:
    """A copy in the order of the epoch."""
    if ids is None:
        order = Array._of_view(as_ids(array("q", range(num_nodes)), "seeds"))
    else:
        order = Array._room(ids.dtype, ids.shape)
        ctypes.memmove(order._address, ids._address, ids.nbytes)
    call("Shuffle", order._address, len(order), order._bits, signed_seed(seed), epoch)
    return order


def _batches(
    graph: Graph, sampler: Sampler[T], ids: Array | None, size: int, epoch: int, depth: int
) -> Generator[T, None, None]:
    if graph._device >= 0:
        depth = min(depth, MOST_ON_GPU)
    # With several batches in flight, one core for each wastes nothing on synchronisation.
    threads = 1 if depth >= 2 else 0
    count = graph.num_nodes if ids is None else len(ids)

    def submit(step: int) -> PendingBatch[T]:
        first, end = step * size, min((step + 1) * size, count)
        chosen: Any = array("q", range(first, end)) if ids is None else ids[first:end]
        return sampler.submit(graph, chosen, epoch=epoch, batch=step, threads=threads)

    with closing(prefetch_in_order(submit, -(-count // size), depth)) as batches:
        yield from batches
