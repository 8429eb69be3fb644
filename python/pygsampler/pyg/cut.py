"""Tensors of a batch that the engine made, cut out of one."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from pygsampler._batch import layout as at
from pygsampler._batch.induced import FEW
from pygsampler._batch.named import NO_VALUES
from pygsampler.array import Array
from pygsampler.converted import TorchBatch, as_torch
from pygsampler.minibatch import MiniBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pygsampler._core.row import Row
    from pygsampler.block import Block
    from pygsampler.hetero_batch import HeteroBatch

__all__ = ["Cut", "CutBatch", "cut_batch"]


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

    def numpy(self, bits: int) -> Any:
        """All of the batch as integers of so many bits, by NumPy."""
        return self._of_width[bits].numpy()

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

    With 64 seeds that saves a tenth of an iteration of PyG's loader, and more where cores are busy.
    """
    if type(batch) is not MiniBatch or batch._device >= 0 or batch._names:
        return as_torch(batch)
    return CutBatch(batch)


_NODES, _OUTPUT_NODES, _OUTPUT_INDEX, _TREES = at.ROWS
_INDPTR, _INDICES, _EDGE_IDS, _ = at.BLOCK_ROWS


class CutBatch:
    """What PyG has of a batch on the CPU, by the names of ``TorchBatch``; each tensor is cut when
    it is asked for."""

    __slots__ = ("_batch", "_cut", "_starts", "blocks")

    # `cut_batch` takes none of a program that returns something by name.
    extra: ClassVar[Mapping[str, torch.Tensor]] = MappingProxyType({})

    def __init__(self, batch: MiniBatch) -> None:
        self._batch, self._cut, words = batch, Cut(batch), batch._words
        self._starts = range(at.HEADER_WORDS, len(words), at.WORDS)
        self.blocks = tuple(_CutBlock(self, start) for start in self._starts)

    def _row(self, row: Row) -> Any:
        words = self._batch._words
        return self._cut.row(row, words, words)

    @property
    def input_nodes(self) -> torch.Tensor:
        """As ``MiniBatch`` has them."""
        found: torch.Tensor = self._row(_NODES)
        return found

    @property
    def output_nodes(self) -> torch.Tensor:
        """As ``MiniBatch`` has them."""
        found: torch.Tensor = self._row(_OUTPUT_NODES)
        return found

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

    def few_edges(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
        """The sources, targets and ids of all edges, the seeds' first; None of many, or where hops'
        destinations do not follow each other.

        By NumPy, whose calls cost a third of torch's, and which asks no other core.
        """
        numpy: Any = sys.modules.get("numpy")
        words, first, edges = self._batch._words, 0, 0
        for start in reversed(self._starts):
            if words[start + at.FIRST_DST] != first:
                return None
            first += words[start + at.NUM_DST]
            edges += words[start + at.NUM_EDGES]
        if numpy is None or edges >= FEW:
            return None
        of = self._cut.numpy, self._starts[::-1], words
        row, ids = (numpy.concatenate(_arrays(each, *of)) for each in (_INDICES, _EDGE_IDS))
        bounds = _arrays(_INDPTR, *of)
        degrees = numpy.concatenate([each[1:] - each[:-1] for each in bounds])
        col = numpy.arange(first, dtype=row.dtype).repeat(degrees)
        as_tensor = torch.from_numpy
        return as_tensor(row), as_tensor(col), as_tensor(ids)


def _arrays(
    row: Row, of_width: Callable[[int], Any], starts: Iterable[int], words: Sequence[int]
) -> list[Any]:
    """An array of each block, whose words start there, as NumPy has them."""
    _, bits, length, more, offset = row
    assert isinstance(bits, int)
    width = words[bits]
    whole, size = of_width(width), width // 8
    found = []
    for start in starts:
        first = words[start + offset] // size
        found.append(whole[first : first + words[start + length] + more])
    return found


class _CutBlock:
    """A block of one, whose words start there among the batch's."""

    __slots__ = ("_of", "_start", "dst_offset", "num_dst_nodes", "num_edges", "num_src_nodes")

    # As `extra` of the batch.
    edge_values: ClassVar[Mapping[str, torch.Tensor]] = NO_VALUES

    def __init__(self, of: CutBatch, start: int) -> None:
        words = of._batch._words
        self._of, self._start = of, start
        self.num_src_nodes, self.num_dst_nodes = (
            words[start + at.NUM_SRC],
            words[start + at.NUM_DST],
        )
        self.num_edges, self.dst_offset = words[start + at.NUM_EDGES], words[start + at.FIRST_DST]

    def _row(self, row: Row) -> Any:
        words = self._of._batch._words
        own = words[self._start : self._start + at.WORDS]
        return self._of._cut.row(row, own, words)

    @property
    def indptr(self) -> torch.Tensor:
        """As ``Block`` has it."""
        found: torch.Tensor = self._row(_INDPTR)
        return found

    @property
    def indices(self) -> torch.Tensor:
        """As ``Block`` has them."""
        found: torch.Tensor = self._row(_INDICES)
        return found

    @property
    def edge_ids(self) -> torch.Tensor:
        """As ``Block`` has them."""
        found: torch.Tensor = self._row(_EDGE_IDS)
        return found

    @property
    def edge_weights(self) -> torch.Tensor | None:
        """As ``Block`` has them."""
        if not self._of._batch._words[self._start + at.EDGE_WEIGHTS]:
            return None
        weights = self._block.edge_weights
        return None if weights is None else weights.torch()

    @property
    def _block(self) -> Block:
        return self._of._batch.blocks[self._of._starts.index(self._start)]

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The edges in local ids."""
        return self.indices, self._block.coo()[1].torch()
