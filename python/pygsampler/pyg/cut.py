"""Tensors of a batch that the engine made, cut out of one."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from pygsampler._batch import layout as at
from pygsampler._batch.named import NO_VALUES
from pygsampler.array import Array
from pygsampler.converted import TorchBatch, as_torch
from pygsampler.minibatch import MiniBatch

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pygsampler._core.row import Row
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

    def row(self, row: Row, words: Sequence[int], widths: Sequence[int]) -> torch.Tensor | None:
        """An array of integers of the batch, as ``Array._of_row`` has it, without making that."""
        _, bits, length, more, offset = row
        at_byte, count = words[offset], words[length] + more
        if not at_byte:
            return None
        assert isinstance(bits, int)
        width = widths[bits]
        return self._of_width[width].narrow(0, at_byte * 8 // width if count else 0, count)


def cut_batch(batch: Any) -> Any:
    """A batch without types in torch's tensors, or of one on the CPU what is read of it here.

    With 64 seeds that saves a tenth of an iteration of PyG's loader.
    """
    if type(batch) is not MiniBatch or batch._device >= 0 or batch._names:
        return as_torch(batch)
    return _CutBatch(batch)


_NODES, _OUTPUT_NODES, _OUTPUT_INDEX, _TREES = at.ROWS
_INDPTR, _INDICES, _EDGE_IDS, _ = at.BLOCK_ROWS


class _CutBatch:
    """What PyG has of a batch on the CPU, by the names of ``TorchBatch``."""

    __slots__ = ("_batch", "_cut", "blocks", "input_nodes", "output_nodes")

    # `cut_batch` takes none of a program that returns something by name.
    extra: ClassVar[Mapping[str, torch.Tensor]] = MappingProxyType({})

    input_nodes: torch.Tensor
    output_nodes: torch.Tensor

    def __init__(self, batch: MiniBatch) -> None:
        self._batch, self._cut, words = batch, Cut(batch), batch._words
        self.input_nodes = self._row(_NODES)
        self.output_nodes = self._row(_OUTPUT_NODES)
        starts = range(at.HEADER_WORDS, len(words), at.WORDS)
        self.blocks = tuple(
            _CutBlock(batch, place, words[start : start + at.WORDS], words, self._cut)
            for place, start in enumerate(starts)
        )

    def _row(self, row: Row) -> Any:
        words = self._batch._words
        return self._cut.row(row, words, words)

    @property
    def output_index(self) -> torch.Tensor:
        """As ``MiniBatch`` has it."""
        found: torch.Tensor = self._row(_OUTPUT_INDEX)
        return found

    @property
    def trees(self) -> torch.Tensor | None:
        """As ``MiniBatch`` has them."""
        found: torch.Tensor | None = self._row(_TREES)
        return found

    _distinct_seeds = TorchBatch._distinct_seeds


class _CutBlock:
    """A block of one."""

    __slots__ = (
        "_batch",
        "_place",
        "dst_offset",
        "edge_ids",
        "edge_weights",
        "indices",
        "indptr",
        "num_dst_nodes",
        "num_edges",
        "num_src_nodes",
    )

    # As `extra` of the batch.
    edge_values: ClassVar[Mapping[str, torch.Tensor]] = NO_VALUES

    def __init__(
        self,
        batch: MiniBatch,
        place: int,
        words: Sequence[int],
        widths: Sequence[int],
        cut: Cut,
    ) -> None:
        self._batch, self._place = batch, place
        self.num_src_nodes, self.num_dst_nodes = words[at.NUM_SRC], words[at.NUM_DST]
        self.num_edges, self.dst_offset = words[at.NUM_EDGES], words[at.FIRST_DST]
        self.indptr: Any = cut.row(_INDPTR, words, widths)
        self.indices: Any = cut.row(_INDICES, words, widths)
        self.edge_ids: Any = cut.row(_EDGE_IDS, words, widths)
        weights = batch.blocks[place].edge_weights if words[at.EDGE_WEIGHTS] else None
        self.edge_weights = None if weights is None else weights.torch()

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The edges in local ids."""
        return self.indices, self._batch.blocks[self._place].coo()[1].torch()
