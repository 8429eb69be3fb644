"""Batches of fixed sizes in memory that stays where it is: what a static loader yields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pygsampler.converted import TorchBatch, TorchBlock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pygsampler._batch.segments import Segments

__all__ = ["StaticBatch", "StaticBlock"]


class StaticBlock(TorchBlock):
    """A block with room for a number of edges and vertices, of which a batch uses the first.

    Sizes and shapes are those of the room. What is left of ``indices`` and ``edge_ids`` is filled
    up with edges between rows that the batch does not use, dealt out over all of those, and rows
    that it does not use have no edges in ``indptr``. So any layer may work on all of it: what it
    gives for rows in use is what it would give without the rest. ``src_mask``, ``dst_mask`` and
    ``edge_mask`` tell them apart. For a layer that takes all sources as targets too, as PyG's
    GCNConv does, the targets of the rest are sources in use: give it
    ``torch.where(block.edge_mask, dst, src)`` in the place of ``dst``.
    """

    # Set by who makes the block, around the dataclass, which is frozen.
    _edges: Callable[[torch.Tensor | None, torch.Tensor], None]
    _real: torch.Tensor
    _turn: list[int]

    @property
    def counts(self) -> torch.Tensor:
        """How many sources, destinations and edges the batch has: int64, shape [3], on the GPU."""
        return self._real

    @property
    def src_mask(self) -> torch.Tensor:
        """Which sources are the batch's: bool, shape [num_src_nodes]."""
        return first(self.num_src_nodes, self._real[0])

    @property
    def dst_mask(self) -> torch.Tensor:
        """Which destinations are the batch's: bool, shape [num_dst_nodes]."""
        return first(self.num_dst_nodes, self._real[1])

    @property
    def edge_mask(self) -> torch.Tensor:
        """Which edges are the batch's: bool, shape [num_edges]."""
        return first(self.num_edges, self._real[2])

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The edges as (source, destination) in local ids, each of shape [num_edges].

        Those that fill up end in rows behind the batch's own. Written by a kernel in torch's
        current stream.
        """
        destinations = torch.empty_like(self.indices)
        self._edges(None, destinations)
        return self.indices, destinations

    @property
    def edge_index(self) -> torch.Tensor:
        """The edges as PyG takes them, int64 of shape [2, num_edges], made as ``coo`` does."""
        made = self.indices.new_empty((2, self.num_edges), dtype=torch.int64)
        self._edges(made[0], made[1])
        return made

    def _segments(self) -> Segments:
        # What is derived of the edges is good for one batch.
        known = self.__dict__
        turn = self._turn[0]
        if known.get("_csr_turn") != turn:
            known.pop("_csr", None)
            known["_csr_turn"] = turn
        return super()._segments()

    def _trimmed(self, counts: list[int]) -> TorchBlock:
        src, dst, edges = counts
        made = TorchBlock(
            self.indptr[: dst + 1].clone(),
            self.indices[:edges].clone(),
            self.edge_ids[:edges].clone(),
            self.src_nodes[:src].clone(),
            self.dst_nodes[:dst].clone(),
        )
        for name, rows in self.features.items():
            made._furnish(name, rows[:edges].clone())
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("StaticBlock: expected a batch to pickle, got a static one; see trimmed()")


class StaticBatch(TorchBatch):
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
        return first(len(self.output_nodes), self._counts[0])

    def trimmed(self) -> TorchBatch:
        """The batch that a loader without ``static`` gives, in memory of its own.

        Waits for the GPU, which knows the sizes.
        """
        seeds, *counts = self._counts.tolist()
        blocks = tuple(
            block._trimmed(counts[3 * place : 3 * place + 3])
            for place, block in enumerate(self.blocks)
        )
        made = TorchBatch(
            self.input_nodes[: counts[0]].clone(),
            self.output_nodes[:seeds].clone(),
            self.output_index[:seeds].clone(),
            blocks,
            self.epoch,
            self.batch,
        )
        for name, rows in self.features.items():
            made._furnish(name, rows[: seeds if name == "y" else counts[0]].clone())
        return made

    def _map(self, move: Any) -> TorchBatch:
        return self.trimmed()._map(move)

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("StaticBatch: expected a batch to pickle, got a static one; see trimmed()")


def first(count: int, used: torch.Tensor) -> torch.Tensor:
    """Of so many, which are among the first ``used``, a number on the GPU."""
    return torch.arange(count, device=used.device) < used
