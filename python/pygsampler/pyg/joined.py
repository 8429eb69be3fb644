"""``joined``: a batch on the CPU as PyG writes a subgraph, by one call of the engine."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import torch

from pygsampler._batch import layout as at
from pygsampler._batch.induced import Edges
from pygsampler._core import memories
from pygsampler.array import Array

if TYPE_CHECKING:
    from pygsampler._graph.schema import Schema
    from pygsampler.hetero_batch import HeteroBatch
    from pygsampler.minibatch import MiniBatch

__all__ = ["Joined", "joined", "joined_types"]


class Joined(NamedTuple):
    """The vertices of each type, and the edges of each relation; a batch without types has one of
    each.

    Each seed has a row of its own at the front, also one that is there twice, with the edges that
    were sampled for it; edges out of it come from its first occurrence. Edges are grouped by hop,
    the seeds' first.
    """

    nodes: Sequence[torch.Tensor]
    # Whose tree a vertex is in; None where trees share vertices.
    trees: Sequence[torch.Tensor] | None
    # For each type the seeds, and what each hop found.
    num_nodes: Sequence[list[int]]
    # Places among the vertices of their types, and ids.
    rows: Sequence[torch.Tensor]
    cols: Sequence[torch.Tensor]
    ids: Sequence[torch.Tensor]
    # For each relation a factor for each edge, float32; None where it has none.
    weights: Sequence[torch.Tensor | None]
    # For each relation the edges of each hop.
    num_edges: Sequence[list[int]]
    # Whether the columns of each relation do not fall.
    in_order: bool

    def edges(self) -> Edges:
        """Those of a batch without types."""
        return Edges(self.rows[0], self.cols[0], self.ids[0], self.weights[0], self.in_order)


def joined(batch: MiniBatch) -> Joined:
    """A batch without types, on the CPU."""
    return _joined(batch._data, 0)


def joined_types(batch: HeteroBatch) -> Joined:
    """One of a graph with types, in the order of its types."""
    ends = _ends(batch._schema)
    return _joined(batch._data, ends.buffer_info()[0])


@lru_cache(maxsize=64)
def _ends(schema: Schema) -> array[int]:
    """The types that each relation leads from and to, as their places."""
    place = {kind: i for i, kind in enumerate(schema.node_types)}
    return array("q", [place[end] for src, _, dst in schema.edge_types for end in (src, dst)])


def _joined(data: int, ends: int) -> Joined:
    memory = memories.new("JoinedHops", data, ends)
    start = memory.data
    (count,) = memories.read_int64(start, 1)
    words = memories.read_int64(start, count)
    hops, types, relations = words[at.HOPS_NUM_HOPS : at.HOPS_NUM_RELATIONS + 1]
    place = at.HOPS_WORDS

    def some(number: int) -> list[int]:
        nonlocal place
        place += number
        return words[place - number : place]

    vertices = some(types)
    num_nodes = [some(hops + 1) for _ in range(types)]
    edges = some(relations)
    num_edges = [some(hops) for _ in range(relations)]
    widths, factors = some(relations), some(relations)

    whole = Array._of(start, words[at.HOPS_SIZE] // 8, 64, memory).torch()
    narrow = None

    def cut(bits: int, offset: int, lengths: list[int]) -> Sequence[torch.Tensor]:
        # "Unsafe" says that torch does not count writes to one as writes to the others, which have
        # no element in common. One call makes all of them.
        nonlocal narrow
        values = whole
        if bits == 32:
            narrow = values = whole.view(torch.int32) if narrow is None else narrow
        first = offset * 8 // bits
        rest = values.numel() - first - sum(lengths)
        return values.unsafe_split_with_sizes([first, *lengths, rest])[1:-1]

    trees = words[at.HOPS_TREES]
    lists = vertices * 2 if trees else vertices
    id_bits = words[at.HOPS_ID_BITS]
    front, *ends_of = cut(id_bits, words[at.HOPS_IDS], [sum(lists), *edges, *edges])
    # A copy: who keeps the ids of vertices need not keep the edges.
    front = front.clone()
    nodes = (front,) if len(lists) == 1 else front.unsafe_split_with_sizes(lists)
    ids: list[torch.Tensor] = []
    weights: Sequence[torch.Tensor | None] = [None] * relations
    if widths.count(64) == relations:
        ids = [*cut(64, words[at.HOPS_WIDE_IDS], edges)]
    elif widths.count(32) == relations:
        ids = [*cut(32, words[at.HOPS_NARROW_IDS], edges)]
    else:
        pieces = {
            bits: iter(
                cut(
                    bits,
                    words[offset],
                    [n for n, width in zip(edges, widths, strict=True) if width == bits],
                )
            )
            for bits, offset in ((64, at.HOPS_WIDE_IDS), (32, at.HOPS_NARROW_IDS))
        }
        ids = [next(pieces[bits]) for bits in widths]
    if max(factors, default=-1) >= 0:
        of_all = iter(cut(32, words[at.HOPS_EDGE_WEIGHTS], [n for n in factors if n >= 0]))
        weights = [next(of_all).view(torch.float32) if n >= 0 else None for n in factors]
    return Joined(
        nodes[:types],
        nodes[types:] if trees else None,
        num_nodes,
        ends_of[:relations],
        ends_of[relations:],
        ids,
        weights,
        num_edges,
        bool(words[at.HOPS_IN_ORDER]),
    )
