"""Batches of fixed sizes in memory that stays where it is: what a static loader yields."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._batch.block import Block
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._graph.schema import ByEdgeType, ByNodeType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pygsampler._graph.schema import EdgeTypeMapping
    from pygsampler._ops.segments import Segments

__all__ = ["StaticBlock", "StaticHeteroBlock", "StaticHeteroMiniBatch", "StaticMiniBatch"]


def __dir__() -> list[str]:
    return sorted(__all__)


class StaticBlock(Block):
    """A block with room for a number of edges and vertices, of which a batch uses the first.

    Sizes and shapes are those of the room. What is left of ``indices`` and ``edge_ids`` is filled
    up with edges between rows that the batch does not use, dealt out over all of those, and rows
    that it does not use have no edges in ``indptr``. So any layer may work on all of it: what it
    gives for rows in use is what it would give without the rest. ``src_mask``, ``dst_mask`` and
    ``edge_mask`` tell them apart. For a layer that takes all sources as targets too, as PyG's
    GCNConv does, the targets of the rest are sources in use: give it
    ``torch.where(block.edge_mask, dst, src)`` in the place of ``dst``.

    With ``frontier="new"`` destinations are where each batch has found them: ``dst_offset`` is an
    int64 tensor of no dimensions on the GPU, ``dst_index`` are their rows. The blocks of a batch
    have one numbering there, and all have room for the sources of the outermost: what fills one up
    is between rows that no block of the batch uses, so that the edges of several may be joined.
    """

    # Set by who makes the block, around the dataclass, which is frozen.
    _edges: Callable[[torch.Tensor | None, torch.Tensor], None]
    _real: torch.Tensor
    _turn: list[int]
    # With frontier="new": the vertices of the destinations' type that the batch has, and room.
    _ends: tuple[torch.Tensor, int] | None = None

    @property
    def counts(self) -> torch.Tensor:
        """How many sources, destinations and edges the batch has: int64, shape [3], on the GPU."""
        return self._real

    @property
    def src_mask(self) -> torch.Tensor:
        """Which sources are the batch's: bool, shape [num_src_nodes]."""
        return prefix_mask(self.num_src_nodes, self._real[0])

    @property
    def dst_mask(self) -> torch.Tensor:
        """Which destinations are the batch's: bool, shape [num_dst_nodes]."""
        return prefix_mask(self.num_dst_nodes, self._real[1])

    @property
    def edge_mask(self) -> torch.Tensor:
        """Which edges are the batch's: bool, shape [num_edges]."""
        return prefix_mask(self.num_edges, self._real[2])

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The edges as (source, destination) in local ids, each of shape [num_edges].

        Those that fill up end in rows behind the batch's own. Written by a kernel in torch's
        current stream.
        """
        destinations = torch.empty_like(self.indices)
        self._edges(None, destinations)
        return self.indices, self._moved_on(destinations)

    @property
    def edge_index(self) -> torch.Tensor:
        """The edges as PyG takes them, int64 of shape [2, num_edges], made as ``coo`` does."""
        made = self.indices.new_empty((2, self.num_edges), dtype=torch.int64)
        self._edges(made[0], made[1])
        if self._ends is not None:
            made[1] = self._moved_on(made[1])
        edges: torch.Tensor = made
        return edges

    def _dst_places(self) -> slice | torch.Tensor:
        if self._ends is None:
            return slice(0, self.num_dst_nodes)
        all_of_type, size = self._ends
        used = self._real[1]
        places = torch.arange(self.num_dst_nodes, device=used.device)
        behind = all_of_type + (places - used) % (size - all_of_type)
        return torch.where(places < used, places + self.dst_offset, behind)

    def _moved_on(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows of ``indptr`` as local ids of destinations."""
        if self._ends is None or not len(rows):
            return rows
        moved: torch.Tensor = self.dst_index.to(rows.dtype).index_select(0, rows)
        return moved

    def _segments(self) -> Segments:
        # What is derived of the edges is good for one batch.
        known = self.__dict__
        turn = self._turn[0]
        if known.get("_csr_turn") != turn:
            known.pop("_csr", None)
            known["_csr_turn"] = turn
        return super()._segments()

    def _trimmed(self, counts: list[int]) -> Block:
        src, dst, edges = counts
        weights, offset = self.edge_weights, int(self.dst_offset)
        made = Block._of_arrays(
            self.indptr[: dst + 1].clone(),
            self.indices[:edges].clone(),
            self.edge_ids[:edges].clone(),
            self.src_nodes[:src].clone(),
            self.dst_nodes[:dst].clone(),
            offset,
            None if weights is None else weights[:edges].clone(),
            edge_type=self.edge_type,
        )
        for name, rows in self.features.items():
            made._attach(name, rows[:edges].clone())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("StaticBlock: expected a batch to pickle, got a static one; see trimmed()")


class StaticMiniBatch(MiniBatch):
    """A mini-batch with room for a number of vertices and edges, on a GPU.

    The loader writes each batch into the same memory, so a batch is gone once the next is asked
    for; ``trimmed()`` is a copy to keep, without what fills it up. ``input_nodes`` and
    ``output_nodes`` are filled up with vertices of the graph, integer labels with -100, which
    ``torch.nn.functional.cross_entropy`` ignores, others with 0.
    """

    # Set by who makes the batch.
    _counts: torch.Tensor
    if TYPE_CHECKING:
        blocks: tuple[StaticBlock, ...]

    @property
    def counts(self) -> torch.Tensor:
        """int64 on the GPU: the seeds, then for each block its sources, destinations and edges."""
        return self._counts

    @property
    def seed_mask(self) -> torch.Tensor:
        """Which of ``output_nodes`` are the batch's: bool."""
        return prefix_mask(len(self.output_nodes), self._counts[0])

    def trimmed(self) -> MiniBatch:
        """The batch that a loader without ``static`` gives, in memory of its own.

        Waits for the GPU, which knows the sizes.
        """
        seeds, *counts = self._counts.tolist()
        blocks = tuple(
            block._trimmed(counts[3 * place : 3 * place + 3])
            for place, block in enumerate(self.blocks)
        )
        ids = self.subgraph_ids
        fields = {
            "input_nodes": self.input_nodes[: counts[0]].clone(),
            "output_nodes": self.output_nodes[:seeds].clone(),
            "output_index": self.output_index[:seeds].clone(),
            "blocks": blocks,
            "subgraph_ids": None if ids is None else ids[: counts[0]].clone(),
        }
        made = MiniBatch._of_fields(fields, self.epoch, self.batch)
        for name, rows in self.features.items():
            made._attach(name, rows[: seeds if name == "y" else counts[0]].clone())
        return made

    def _map(self, move: Any) -> Any:
        return self.trimmed()._map(move)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        raise TypeError(
            "StaticMiniBatch: expected a batch to pickle, got a static one; see trimmed()"
        )


class StaticHeteroBlock(StaticBlock):
    """The edges of one type with room for a number of them: see ``StaticBlock``.

    A type that no batch has vertices of at a hop has no room there.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("StaticHeteroBlock: expected a batch to pickle, got a static one")


class StaticHeteroMiniBatch(MiniBatch):
    """A mini-batch of a graph with types with room for a number of vertices and edges, on a GPU.

    What ``StaticMiniBatch`` is without types: all of a loader's batches are this one, ``trimmed()``
    is a copy to keep, and what fills ``input_nodes``, ``output_nodes``, labels and blocks up is
    harmless. With ``disjoint`` the vertices that fill up are in a tree that no seed has.
    ``num_edges`` is how many there is room for.
    """

    # Set by who makes the batch.
    _counts: torch.Tensor
    # Whether the edges of all blocks may be joined.
    _joins: bool = False
    if TYPE_CHECKING:
        blocks: tuple[EdgeTypeMapping[StaticHeteroBlock], ...]

    @property
    def counts(self) -> torch.Tensor:
        """int64 on the GPU: the seeds of each type; then for each hop, the outermost first, and
        edge type sources, destinations and edges; then of each type its vertices when each hop
        began, and in the end."""
        return self._counts

    @property
    def seed_mask(self) -> dict[str, torch.Tensor]:
        """Of each type which of ``output_nodes`` are the batch's: bool."""
        return {
            kind: prefix_mask(len(ids), self._counts[place])
            for place, (kind, ids) in enumerate(self.output_nodes.items())
        }

    @property
    def node_mask(self) -> dict[str, torch.Tensor]:
        """Of each type which of ``input_nodes`` are the batch's: bool."""
        ends = self._ends()
        return {
            kind: prefix_mask(len(ids), ends[place, -1])
            for place, (kind, ids) in enumerate(self.input_nodes.items())
        }

    @property
    def num_edges(self) -> int:
        """Edges that there is room for in all blocks."""
        return sum(block.num_edges for hop in self.blocks for block in hop.values())

    @property
    def num_sampled_nodes(self) -> Any:
        """The host does not know how many there are."""
        raise AttributeError(_UNKNOWN.format("num_sampled_nodes"))

    @property
    def num_sampled_edges(self) -> Any:
        """Likewise."""
        raise AttributeError(_UNKNOWN.format("num_sampled_edges"))

    @property
    def edge_index_dict(self) -> Any:
        """As ``MiniBatch.edge_index_dict``, with ``frontier="new"`` alone: with
        ``"all"`` edges that fill a hop up may end in vertices that an outer one has found."""
        if self._joins:
            return super().edge_index_dict
        raise AttributeError(
            "edge_index_dict: expected a batch of other sizes each, got a static one, whose blocks "
            "are to be taken one by one: batch.blocks[i][edge_type].edge_index"
        )

    def trimmed(self) -> MiniBatch:
        """The batch that a loader without ``static`` gives, in memory of its own.

        Waits for the GPU, which knows the sizes.
        """
        types = list(self.input_nodes)
        told, all_ends = self._counts.tolist(), self._ends().tolist()
        ends = dict(zip(types, all_ends, strict=True))
        seeds = dict(zip(types, told, strict=False))
        place, blocks = len(types), []
        nodes = ByNodeType(
            (kind, ids[: ends[kind][-1]].clone()) for kind, ids in self.input_nodes.items()
        )
        for hop in self.blocks:
            of: ByEdgeType[Any] = ByEdgeType()
            for kind, block in hop.items():
                of[kind] = block._trimmed(told[place : place + 3])
                place += 3
            blocks.append(of.read_only())
        subgraph_ids = self.subgraph_ids
        fields = {
            "input_nodes": nodes,
            "output_nodes": _first(self.output_nodes, seeds),
            "output_index": _first(self.output_index, seeds),
            "blocks": tuple(blocks),
        }
        if subgraph_ids is not None:
            last = {kind: ends[kind][-1] for kind in ends}
            fields["subgraph_ids"] = _first(subgraph_ids, last)
        made = MiniBatch._of_fields(fields, self.epoch, self.batch, all_ends)
        features: Mapping[str, Any] = self.features
        for name, of_types in features.items():
            made._attach(
                name,
                {
                    kind: rows[: seeds[kind] if name == "y" else ends[kind][-1]].clone()
                    for kind, rows in of_types.items()
                },
            )
        return made

    def _ends(self) -> torch.Tensor:
        """Of each type its vertices when each hop began, and in the end."""
        types, hops = len(self.input_nodes), len(self.blocks)
        return self._counts[-types * (hops + 1) :].reshape(types, hops + 1)

    def _map(self, move: Any) -> Any:
        return self.trimmed()._map(move)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        raise TypeError(
            "StaticHeteroMiniBatch: expected a batch to pickle, got a static one; see trimmed()"
        )


_UNKNOWN = (
    "{}: expected a batch whose sizes the host knows, got a static one; see counts and trimmed()"
)


def _first(tensors: Mapping[str, torch.Tensor], counts: dict[str, int]) -> Any:
    """The first of each type, so many, in memory of their own."""
    return MappingProxyType(
        ByNodeType((kind, ids[: counts[kind]].clone()) for kind, ids in tensors.items())
    )


def prefix_mask(count: int, used: torch.Tensor) -> torch.Tensor:
    """Of so many, which are among the first ``used``, a number on the GPU."""
    return torch.arange(count, device=used.device) < used
