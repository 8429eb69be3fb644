"""Tensors of a batch that the engine made, cut out of one."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from pygsampler.array import Array
from pygsampler.converted import TorchBatch, as_torch
from pygsampler.minibatch import MiniBatch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pygsampler.block import Block
    from pygsampler.hetero_batch import HeteroBatch

__all__ = ["Cut", "cut_batch"]


class Cut:
    """Tensors of a batch's arrays of integers, cut out of one tensor that all of it is.

    A tensor by DLPack costs several times as much as a slice, and a batch has three for each hop,
    and type of edges.
    """

    __slots__ = ("_data", "_of_width")

    def __init__(self, batch: HeteroBatch | MiniBatch) -> None:
        self._data = batch._data
        memory, device = batch._memory, batch._device
        whole = Array._of(self._data, batch._size // 4, 32, memory, device=device).torch()
        self._of_width = {32: whole, 64: whole[: len(whole) // 2 * 2].view(torch.int64)}

    def __call__(self, values: Array) -> torch.Tensor:
        """The array as a tensor."""
        bits, length = values._bits, values._length
        # An empty array may begin behind the end.
        start = (values._address - self._data) * 8 // bits if length else 0
        return self._of_width[bits].narrow(0, start, length)


def cut_batch(batch: Any) -> Any:
    """A batch without types in torch's tensors, or of one on the CPU what is read of it here.

    With 64 seeds that saves a tenth of an iteration of PyG's loader.
    """
    if type(batch) is not MiniBatch or batch._device >= 0 or batch._names:
        return as_torch(batch)
    return _CutBatch(batch)


class _CutBatch:
    """What PyG has of a batch on the CPU, by the names of ``TorchBatch``."""

    __slots__ = ("_batch", "_cut", "blocks", "input_nodes", "output_nodes")

    # `cut_batch` takes none of a program that returns something by name.
    extra: ClassVar[Mapping[str, torch.Tensor]] = MappingProxyType({})

    def __init__(self, batch: MiniBatch) -> None:
        self._batch, self._cut = batch, Cut(batch)
        self.input_nodes = self._cut(batch.input_nodes)
        self.output_nodes = self._cut(batch.output_nodes)
        self.blocks = tuple(_CutBlock(block, self._cut) for block in batch.blocks)

    @property
    def output_index(self) -> torch.Tensor:
        """As ``MiniBatch`` has it."""
        return self._cut(self._batch.output_index)

    @property
    def trees(self) -> torch.Tensor | None:
        """As ``MiniBatch`` has them."""
        trees = self._batch.trees
        return None if trees is None else self._cut(trees)

    _distinct_seeds = TorchBatch._distinct_seeds


class _CutBlock:
    """A block of one."""

    __slots__ = (
        "_block",
        "dst_offset",
        "edge_ids",
        "edge_values",
        "edge_weights",
        "indices",
        "indptr",
        "num_dst_nodes",
        "num_edges",
        "num_src_nodes",
    )

    def __init__(self, block: Block, cut: Cut) -> None:
        self._block = block
        self.num_src_nodes, self.num_dst_nodes = block.num_src_nodes, block.num_dst_nodes
        self.num_edges, self.dst_offset = block.num_edges, block.dst_offset
        self.indptr, self.indices = cut(block.indptr), cut(block.indices)
        self.edge_ids = cut(block.edge_ids)
        weights = block.edge_weights
        self.edge_weights = None if weights is None else weights.torch()
        self.edge_values = block.edge_values

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The edges in local ids."""
        return self.indices, self._block.coo()[1].torch()
