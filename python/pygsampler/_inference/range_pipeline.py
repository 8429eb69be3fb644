"""Ranges of a layer in turn; a GPU computes one while the next is read and the last written."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from pygsampler._inference.ranges import NodeRange

__all__ = ["RangeInputs", "RangePipeline"]

# Results on their way to the host: one is written there while the next one comes.
_MOST_STAGED = 2


class RangeInputs(NamedTuple):
    """The arguments of a layer for a range: its edges, rows of sources and of destinations."""

    nodes: NodeRange | None
    x_src: Any
    x_dst: Any
    access: str

    def tensors(self) -> list[Tensor]:
        """Returns all tensors, those of edges too."""
        nodes = self.nodes
        found = [] if nodes is None else [nodes.indptr, nodes.indices, nodes.others]
        for rows in (self.x_src, self.x_dst):
            found.extend(rows if isinstance(rows, list) else [rows])
        return [each for each in found if each is not None]


class RangePipeline:
    """The inputs and results of a layer's ranges, in their order.

    With separate streams, reads of the next range and writes of the last range take place while the
    GPU computes a range in torch's current stream. The order of ranges and their rows are the same
    without such streams.
    """

    def __init__(
        self, read: Callable[[int], RangeInputs], count: int, device: torch.device
    ) -> None:
        """Takes a function that reads the inputs of the i-th of ``count`` ranges."""
        self._read, self._count = read, count
        self._coming: tuple[RangeInputs, torch.cuda.Event] | None = None
        self._staged: deque[tuple[Tensor, Tensor, torch.cuda.Event]] = deque()
        self._streams: tuple[torch.cuda.Stream, torch.cuda.Stream] | None = None
        if device.type == "cuda" and count > 1:
            self._main = torch.cuda.current_stream(device)
            stream: Any = torch.cuda.Stream
            self._streams = stream(device), stream(device)
            # Layers before wrote in the current stream what this one reads.
            self._streams[0].wait_stream(self._main)

    def take(self, number: int) -> RangeInputs:
        """Returns the inputs of a range for work in the current stream."""
        if self._streams is None:
            return self._read(number)
        inputs, done = self._coming or self._begin(number)
        self._coming = None
        self._main.wait_event(done)
        for each in inputs.tensors():
            # Their memory is the reading stream's, which may not have it back before.
            each.record_stream(self._main)
        return inputs

    def read_ahead(self, number: int) -> None:
        """Begins to read the inputs of a range, if there is one and a stream for it."""
        if self._streams is not None and number < self._count:
            self._coming = self._begin(number)

    def _begin(self, number: int) -> tuple[RangeInputs, torch.cuda.Event]:
        assert self._streams is not None
        with torch.cuda.stream(self._streams[0]):
            return self._read(number), self._streams[0].record_event()

    def write(self, place: Tensor, result: Tensor) -> None:
        """Writes the result of a range into its place, at the latest when ``finish`` returns."""
        if self._streams is None or place.is_cuda:
            place.copy_(result)
            return
        writes = self._streams[1]
        staged = torch.empty(result.shape, dtype=result.dtype, pin_memory=True)
        writes.wait_stream(self._main)
        with torch.cuda.stream(writes):
            staged.copy_(result, non_blocking=True)
            result.record_stream(writes)
            self._staged.append((place, staged, writes.record_event()))
        if len(self._staged) >= _MOST_STAGED:
            self._write_first()

    def _write_first(self) -> None:
        place, staged, done = self._staged.popleft()
        done.synchronize()
        place.copy_(staged)

    def finish(self) -> None:
        """Returns when all results are in their places, for work in the current stream."""
        while self._staged:
            self._write_first()

    def close(self) -> None:
        """Returns when nothing is read any more, so that rows of the host may be let go of."""
        if self._streams is not None:
            self._streams[0].synchronize()
