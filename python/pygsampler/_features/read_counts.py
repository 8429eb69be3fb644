"""Counts of how often each row is read, and how often each node is a neighbor."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._engine.progress import progress_counter
from pygsampler._features.cache_table import filled_memory, is_out_of_memory
from pygsampler._graph.degrees import out_degrees
from pygsampler.errors import CudaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from pygsampler._arrays.ids import IdView
    from pygsampler._graph.graph import Graph

# Ids of one launch, after which Ctrl-C is heard.
_MOST = 1 << 28


class ReadCounts:
    """A count for each of so many rows, in the memory of a device; CudaError without any."""

    __slots__ = ("_device", "_memory", "_rows")

    def __init__(self, device: int, num_rows: int) -> None:
        self._device = device
        self._rows = num_rows
        memory = filled_memory(device, num_rows, 0)
        if memory is None:
            raise CudaError(
                f"features: no memory on {devices.name(device)} to count the reads of {num_rows} "
                "rows: CUDA_ERROR_OUT_OF_MEMORY"
            )
        self._memory = memory

    def add(self, ids: IdView) -> None:
        """Counts ids on the device, in torch's current stream; those that are no rows are not."""
        self.add_at(ids.address, ids.length, ids.bits)

    def add_at(self, address: int, length: int, bits: int) -> None:
        """Counts ids at an address."""
        stream = devices.current_stream(self._device)
        library.call("DeviceOrder", self._memory.address, stream)
        about = address, length, bits, self._memory.data, self._rows
        library.call("DeviceCountIDs", self._device, *about, stream)

    def result(self) -> Tensor:
        """Returns the counts so far, int32, up to 2**31 - 1 of a row.

        If torch uses CUDA they are on the device.
        """
        if devices.torch_uses_cuda():
            memory = self._memory
            about = memory.data, self._rows, 32, memory
            return Array._from_address(*about, device=self._device).torch()
        stream = devices.current_stream(self._device)
        size = 4 * self._rows
        given = memories.new("DeviceDownload", self._device, self._memory.data, size, stream)
        return Array._from_address(given.data, self._rows, 32, given).torch()


def new_read_counts(device: int, row_counts: Sequence[int]) -> list[ReadCounts] | None:
    """Counts of so many rows each; None, and a warning, where there is no memory for them."""
    try:
        return [ReadCounts(device, number) for number in row_counts]
    except CudaError as error:
        if not is_out_of_memory(error):
            raise
        logging.getLogger("pygsampler").warning("%s; caches keep what they have", error)
        return None


def neighbor_counts(graph: Graph) -> Tensor:
    """Counts how often each node is an in-neighbor: its out-degree, an integer for each node."""
    if graph._device < 0 or graph.pinned:
        host = graph._source._on_cpu()
        with progress_counter(True, len(host.indptr) - 1, "degrees", " nodes") as report:
            before = 0

            def tell(rows_done: int, num_rows: int | None) -> None:
                nonlocal before
                report(rows_done - before)
                before = rows_done

            return out_degrees(host, progress=tell).torch()
    counts, indices = ReadCounts(graph._device, graph.num_nodes), graph.indices
    width = indices._bits // 8
    for first in range(0, len(indices), _MOST):
        length = min(_MOST, len(indices) - first)
        counts.add_at(indices._address + first * width, length, indices._bits)
    return counts.result()
