"""``TensorSlicer``: tensors of a batch, as slices of one tensor that the engine returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pygsampler._arrays.array import Array
from pygsampler._batch import layout as at

if TYPE_CHECKING:
    from pygsampler._batch.minibatch import MiniBatch

__all__ = ["TensorSlicer"]


class TensorSlicer:
    """Tensors of a batch's arrays of integers, cut out of one tensor that all of it is.

    A tensor by DLPack costs several times as much as a slice, and a batch has three for each hop,
    and type of edges.
    """

    __slots__ = ("_data", "_of_width")

    def __init__(self, batch: MiniBatch) -> None:
        source = batch._source
        self._data = source._data
        size, where = source._words[at.SIZE], (source._memory, source._device)
        whole = Array._from_address(self._data, size // 4, 32, where[0], device=where[1]).torch()
        self._of_width = {32: whole, 64: whole[: len(whole) // 2 * 2].view(torch.int64)}

    def __call__(self, values: Array) -> torch.Tensor:
        """The array as a tensor."""
        bits, length = values._bits, values._length
        # An empty array may begin behind the end.
        start = (values._address - self._data) * 8 // bits if length else 0
        return self._of_width[bits].narrow(0, start, length)
