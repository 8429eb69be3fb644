"""Blocks of a mini-batch as the layers of a model of PyG take them, one block for each layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from pygsampler._batch.block import Block
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._ops.segments import Segments
from pygsampler.pyg.batch_slices import BatchSlices, EdgeGroups, LayerEdges

__all__ = ["BlockSlices"]


class _PlainBlock:
    """The tensors of a block, for a compiler."""

    def __init__(self, block: Any) -> None:
        self.indptr, self.indices = block.indptr, block.indices
        self.num_src_nodes: int = block.num_src_nodes

    @property
    def num_dst_nodes(self) -> int:
        """The number of destinations."""
        return self.indptr.shape[0] - 1  # type: ignore[no-any-return]

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self.indices.shape[0]  # type: ignore[no-any-return]

    def _segments(self) -> Segments:
        return Segments(self.indptr, self.indices, self.num_src_nodes)

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The edges as (source, destination)."""
        indptr = self.indptr
        places = torch.arange(self.num_edges, device=indptr.device, dtype=indptr.dtype)
        return self.indices, torch.searchsorted(indptr, places, right=True).to(indptr.dtype) - 1

    @property
    def edge_index(self) -> torch.Tensor:
        """The edges as int64 [2, num_edges]."""
        return torch.stack(self.coo()).long()


class _BlockEdges(LayerEdges):
    """The edges of a block, into its destinations or, ``squared``, into all of its sources."""

    def __init__(
        self, groups: EdgeGroups, block: Block | _PlainBlock, squared: bool, depth: int
    ) -> None:
        sources, edges = block.num_src_nodes, block.num_edges
        targets = sources if squared else block.num_dst_nodes
        super().__init__(groups, sources, targets, edges, depth=depth)
        self._block = block

    @property
    def segments(self) -> Segments:
        """The CSR over the destinations."""
        if self._segments is None:
            block = self._block
            self._segments = block._segments()
            missing = self.targets - block.num_dst_nodes
            if missing:
                # Sources that are no destinations have no edges.
                last = block.indptr[-1:].expand(missing)
                indptr = torch.cat([block.indptr, last])
                self._segments = Segments(indptr, block.indices, self.sources)
        return self._segments

    def destinations(self) -> torch.Tensor:
        """Returns the destination of each edge of the segments."""
        return self._block.coo()[1]

    def values(self, values: torch.Tensor) -> torch.Tensor:
        """Returns what edges of the block have, which are grouped there."""
        return values

    def counted(self) -> LayerEdges:
        """Returns the edges that degrees are counted in, with a row for each source."""
        return _BlockEdges(self.groups, self._block, True, self.depth)

    def edge_index(self) -> torch.Tensor:
        """Returns the edges as a layer of PyG takes them, with ``(x_source, x_target)``."""
        return self._block.edge_index


class _BlockGroups(EdgeGroups):
    """The edges of one type of a batch, a block for each hop, the innermost first.

    ``edge_index`` has no edges: it stands for those of each block where a model passes it on.
    """

    def __init__(
        self,
        blocks: list[Block] | list[_PlainBlock],
        sources: list[int],
        targets: list[int],
        types: Any,
    ) -> None:
        stand_in = torch.empty((2, 0), dtype=torch.int64, device=blocks[0].indptr.device)
        hops = [0, *(block.num_edges for block in blocks)]
        super().__init__(stand_in, hops, sources, targets, types)
        self._blocks = blocks

    def traceable(self) -> EdgeGroups:
        """Returns the same edges as blocks of plain tensors."""
        blocks = [_PlainBlock(block) for block in self._blocks]
        return _BlockGroups(blocks, self.sources, self.targets, self.types)

    def layer(self, depth: int) -> LayerEdges:
        """Returns the edges of the layer that takes nodes of so many hops."""
        return _BlockEdges(self, self._blocks[depth - 1], False, depth)

    def all_rows(self, depth: int) -> LayerEdges:
        """Returns the same with a row for each source."""
        return _BlockEdges(self, self._blocks[depth - 1], True, depth)


class BlockSlices(BatchSlices):
    """The blocks of a ``MiniBatch``, of which layer i takes the i-th.

    A layer sees the nodes and edges of its block alone: degrees and statistics of norms are those
    of the block.
    """

    by_block = True

    def __init__(self, batch: MiniBatch) -> None:
        if batch.form != "torch":
            raise TypeError(
                f"batch: expected tensors of torch, got {batch.form!r}; call batch.torch()"
            )
        hetero = not batch.is_homogeneous
        self.is_hetero, self.hops = hetero, len(batch.blocks)
        # The innermost first, as hops are counted.
        hops: list[Mapping[Any, Block]] = [
            block if hetero else {None: block} for block in reversed(batch.blocks)
        ]
        for block in (block for hop in hops for block in hop.values()):
            if not isinstance(block.dst_offset, int) or block.dst_offset:
                raise ValueError(
                    'batch: expected frontier="all", where the destinations of a block are its '
                    'first sources, got frontier="new"; leave that out, or take a NeighborLoader, '
                    "whose batches expand each node once"
                )
        seeds = batch.output_nodes if hetero else {None: batch.output_nodes}
        self.nodes = _counts_by_hop(hops, hetero, seeds)
        self.groups: dict[Any, EdgeGroups] = {}
        for kind in hops[0] if hops else ():
            ends = (kind[0], kind[-1]) if hetero else (None, None)
            sources, targets = (self.nodes[end] for end in ends)
            self.groups[kind] = _BlockGroups([hop[kind] for hop in hops], sources, targets, ends)
        self._by_id = {id(each.edge_index): each for each in self.groups.values()}

    @property
    def edge_index(self) -> Any:
        """The edges that a model is called with, by which layers find those of their block."""
        found = {kind: groups.edge_index for kind, groups in self.groups.items()}
        return found if self.is_hetero else found[None]


def _counts_by_hop(
    hops: list[Mapping[Any, Block]], hetero: bool, seeds: Mapping[Any, Any]
) -> dict[Any, list[int]]:
    """The numbers of nodes of each type that are known after each hop, the seeds first.

    ``seeds`` has those of types that no edge leads to.
    """
    sources: dict[Any, list[int]] = {}
    targets: dict[Any, list[int]] = {}
    for hop in hops:
        ends = {(kind[0], kind[-1]) if hetero else (None, None): hop[kind] for kind in hop}
        known = {source: block.num_src_nodes for (source, _), block in ends.items()}
        wanted = {target: block.num_dst_nodes for (_, target), block in ends.items()}
        for found, more in ((sources, known), (targets, wanted)):
            for kind, count in more.items():
                found.setdefault(kind, []).append(count)
    counts = {}
    for kind in {**targets, **sources}:
        first = targets[kind][:1] if kind in targets else [len(seeds[kind])]
        # A type that no edge leads from has its seeds in each hop.
        counts[kind] = first + sources.get(kind, first * len(hops))
    return counts
