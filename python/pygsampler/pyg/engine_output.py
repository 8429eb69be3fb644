"""``EdgeLists``: a batch on the CPU in the layout of a PyG subgraph, written by the engine."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.utils.dlpack import from_dlpack

from pygsampler._batch import layout as at
from pygsampler._batch.induced_edges import InducedEdges
from pygsampler._engine import memory as memories
from pygsampler._engine.memory import Memory

if TYPE_CHECKING:
    from pygsampler._batch.minibatch import MiniBatch
    from pygsampler._graph.schema import Schema

__all__ = ["EdgeLists", "edge_lists", "hetero_edge_lists"]


class EdgeLists(NamedTuple):
    """The nodes of each type, and the edges of each relation; one of each without types.

    Each seed has its own row at the front, also a repeated seed, with the edges that were sampled
    for it; edges out of it come from its first occurrence. Edges are grouped by hop, with the hop
    of the seeds first.
    """

    nodes: Sequence[torch.Tensor]
    # Whose tree a node is in; None where trees share nodes.
    subgraph_ids: Sequence[torch.Tensor] | None
    # For each type the seeds, and what each hop found.
    num_nodes: Sequence[list[int]]
    # Places among the nodes of their types, and ids.
    rows: Sequence[torch.Tensor]
    cols: Sequence[torch.Tensor]
    ids: Sequence[torch.Tensor]
    # For each relation a factor for each edge, float32; None where it has none.
    weights: Sequence[torch.Tensor | None]
    # For each relation the edges of each hop.
    num_edges: Sequence[list[int]]
    # True if the columns of each relation are in ascending order.
    in_order: bool

    def edges(self) -> InducedEdges:
        """The edges of a homogeneous batch."""
        return InducedEdges(self.rows[0], self.cols[0], self.ids[0], self.weights[0], self.in_order)


def edge_lists(batch: MiniBatch | Memory) -> EdgeLists:
    """A batch without types, on the CPU; or what it was sampled into, where that is hops."""
    if isinstance(batch, Memory):
        return _read_lists(batch)
    return _read_lists(memories.new("EdgeLists", batch._source._data, 0))


def hetero_edge_lists(batch: MiniBatch | Memory) -> EdgeLists:
    """Returns the edges of a heterogeneous batch, in the order of its types."""
    if isinstance(batch, Memory):
        return _read_lists(batch)
    source = batch._source
    ends = _endpoint_types(source.schema)
    return _read_lists(memories.new("EdgeLists", source._data, ends.buffer_info()[0]))


@lru_cache(maxsize=64)
def _endpoint_types(schema: Schema) -> array[int]:
    """The types that each relation leads from and to, as their places."""
    place = {kind: i for i, kind in enumerate(schema.node_types)}
    return array("q", [place[end] for src, _, dst in schema.edge_types for end in (src, dst)])


def _read_lists(memory: Memory) -> EdgeLists:
    data = memory.data
    words = memories.read_int64(data, at.HOPS_ROOM)
    if words[at.HOPS_NUM_WORDS] > at.HOPS_ROOM:
        words = memories.read_int64(data, words[at.HOPS_NUM_WORDS])
    hops, types, relations, subgraph_ids = words[at.HOPS_NUM_HOPS : at.HOPS_TREES + 1]
    lists = at.HOPS_WORDS + types * (hops + 1)
    edges = lists + types
    widths = edges + relations * hops
    factors = widths + relations
    wide = factors + relations
    narrow = wide + words[at.HOPS_WIDE]

    # One call makes all tensors of one width. "Unsafe" says that torch does not count writes to one
    # as writes to the others, which have no element in common.
    whole = from_dlpack(memories.capsule(memory, data, words[at.HOPS_SIZE] // 8, 64))
    of_64 = whole.unsafe_split_with_sizes(words[wide:narrow])
    of_32: Sequence[torch.Tensor] = ()
    if words[at.HOPS_NARROW]:
        sizes = words[narrow : narrow + words[at.HOPS_NARROW]]
        of_32 = whole.view(torch.int32).unsafe_split_with_sizes(sizes)

    # Behind the nodes, sources and targets, of those that have them.
    next_64, next_32 = 1, 1
    ids: Sequence[torch.Tensor] = of_64
    if words[at.HOPS_ID_BITS] == 64:
        next_64 = 2 * relations + 2
    else:
        ids, next_32 = of_32, 2 * relations + 2
    nodes = ids[1:2]
    if types > 1 or subgraph_ids:
        # A copy: who keeps the ids of a type need not keep the edges of all. Without types they are
        # a larger part, and a copy takes as long as all that is above.
        sizes = words[lists:edges] * (2 if subgraph_ids else 1)
        nodes = nodes[0].clone().unsafe_split_with_sizes(sizes)
    edge_ids: list[torch.Tensor] = []
    for bits in words[widths:factors]:
        if bits == 64:
            next_64 += 1
            edge_ids.append(of_64[next_64])
        else:
            next_32 += 1
            edge_ids.append(of_32[next_32])
    weights: list[torch.Tensor | None] = []
    next_32 += 1
    for number in words[factors:wide]:
        if number < 0:
            weights.append(None)
        else:
            next_32 += 1
            weights.append(of_32[next_32].view(torch.float32))
    return EdgeLists(
        nodes[:types],
        nodes[types:] if subgraph_ids else None,
        [words[i : i + hops + 1] for i in range(at.HOPS_WORDS, lists, hops + 1)],
        ids[2 : 2 + relations],
        ids[2 + relations : 2 + 2 * relations],
        edge_ids,
        weights,
        [words[i : i + hops] for i in range(edges, widths, hops)] if hops else [[]] * relations,
        bool(words[at.HOPS_IN_ORDER]),
    )
