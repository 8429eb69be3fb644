"""``Table``: the memory of a cache on a device."""

from __future__ import annotations

import logging
from array import array
from typing import TYPE_CHECKING

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler.errors import CudaError

if TYPE_CHECKING:
    from torch import Tensor

    from pygsampler._arrays.ids import IdView

# Arrays begin at multiples of this in the memory, since rows are read by vectors.
_ALIGNMENT = 256
# Bytes beside the row itself: which row a place has; when it was used last, and who wants it.
_KEY, _USE = 8, 8
_SLOT = 4
_WORD = (1 << 32) - 1


class CacheTable:
    """A cache of ``places`` rows of a table of ``num_rows`` rows, ``row_bytes`` bytes each.

    It has as many places as there is memory for, if need be none. ``uses`` is True if it stores the
    rows that were used last. Launches go through ``enter`` and ``change``, which order those of
    several streams, under ``library.cache_lock``.
    """

    __slots__ = (
        "_changed_in",
        "_gathers",
        "_memory",
        "_seen",
        "_starts",
        "_told",
        "_version",
        "device",
        "places",
        "row",
        "rows",
        "uses",
    )

    def __init__(self, device: int, num_rows: int, row_bytes: int, places: int, uses: bool) -> None:
        self.device = device
        self.rows = num_rows
        self.row = row_bytes
        self.uses = uses
        self._gathers = 0
        self._told = False
        self._version = 0
        # For each stream that was used the version that it knows, and where the last one was made.
        self._seen: dict[int, int] = {}
        self._changed_in = 0
        self._allocate(min(places, num_rows) if row_bytes else 0)

    @staticmethod
    def index_bytes(num_rows: int) -> int:
        """Bytes of device memory for a table of so many rows, without the cached ones."""
        return _SLOT * num_rows + 5 * _ALIGNMENT

    @staticmethod
    def bytes_of(row_bytes: int, uses: bool) -> int:
        """Bytes for each cached row."""
        return row_bytes + _KEY + (_USE if uses else 0)

    def _allocate(self, places: int) -> None:
        wanted = places
        self._memory: memories.Memory | None = None
        while places:
            sizes = [places * self.row, _KEY * places, _SLOT * self.rows, 8]
            sizes += [4 * places, 4 * places] if self.uses else []
            starts = [0]
            for size in sizes:
                starts.append(starts[-1] + -(-size // _ALIGNMENT) * _ALIGNMENT)
            self._starts = starts
            # All ones: no row has a place, and no place a row.
            self._memory = filled_memory(self.device, starts[-1] // 4, _WORD)
            if self._memory is not None:
                break
            places //= 2
        self.places = places
        if places < wanted:
            logging.getLogger("pygsampler").warning(
                "features: no memory on %s for a cache of %d rows of %d bytes; it holds %d now",
                devices.name(self.device),
                wanted,
                self.row,
                places,
            )

    def _section_address(self, place: int) -> int:
        memory = self._memory
        return 0 if memory is None else memory.data + self._starts[place]

    @property
    def cached(self) -> int:
        """The address of the cached rows; 0 where there is no room for any."""
        return self._section_address(0)

    @property
    def slots(self) -> int:
        """The address of each row's place, int32."""
        return self._section_address(2)

    @property
    def hits(self) -> int:
        """The address of the number of rows that were read from here, less 1."""
        return self._section_address(3)

    def enter(self, stream: int) -> None:
        """Lets the work that comes into the stream from now on read the table."""
        memory, version = self._memory, self._version
        known = self._seen.get(stream, -1)
        if memory is None or known == version:
            return
        if known < 0:
            # It stays until the work of this stream is done.
            library.call("DeviceOrder", memory.address, stream)
        if version and self._changed_in != stream:
            library.call("DeviceAfter", self.device, stream, self._changed_in)
        self._seen[stream] = version

    def change(self, stream: int) -> None:
        """Lets a stream change the table, after the reads of all other streams."""
        self.enter(stream)
        self._after_all(stream)
        self._version += 1
        self._changed_in = stream
        self._seen[stream] = self._version

    def _after_all(self, stream: int) -> None:
        for other in self._seen:
            if other != stream:
                library.call("DeviceAfter", self.device, stream, other)

    def put(self, row_ids: Tensor, places: Tensor, table: int) -> None:
        """Writes rows of the table at an address into places of the cache.

        Rows and places are tensors, int64 and int32, both on the device or on the CPU.
        """
        if not self.places or not len(row_ids):
            return
        with library.cache_lock(self.device):
            stream = devices.current_stream(self.device)
            given = []
            at, to = row_ids.data_ptr(), places.data_ptr()
            if not row_ids.is_cuda:
                given = [self._uploaded(values, stream) for values in (row_ids, places)]
                at, to = (memory.data for memory in given)
            self.change(stream)
            self._call("DeviceCachePut", (at, len(row_ids), 64), table, to, stream)
            for memory in given:
                library.call("DeviceOrder", memory.address, stream)

    def refresh(self, ids: IdView, table: int) -> None:
        """Writes rows anew that are here; ids on the CPU."""
        if not self.places or not ids.length:
            return
        with library.cache_lock(self.device):
            stream = devices.current_stream(self.device)
            size = ids.length * ids.bits // 8
            given = memories.new("DeviceUpload", self.device, ids.address, size, stream)
            self.change(stream)
            self._call("DeviceCachePut", (given.data, ids.length, ids.bits), table, 0, stream)
            library.call("DeviceOrder", given.address, stream)

    def before(self, stream: int) -> None:
        """A gather is about to read it, in the stream; the lock is held until ``after``."""
        if self.uses:
            self.change(stream)
        else:
            self.enter(stream)

    def after(self, ids: IdView, out: int, stream: int) -> None:
        """A gather of these ids, on the device, has been put into the stream."""
        if not self.uses or not self.places or not ids.length:
            return
        self._gathers += 1
        marks = self._section_address(4), self._section_address(5), self._gathers & _WORD
        try:
            about = ids.address, ids.length, ids.bits
            self._call("DeviceCacheAdmit", about, out, *marks, stream)
        except CudaError as error:
            # The rows have been read; what is cached stays as it is.
            if not is_out_of_memory(error):
                raise
            if not self._told:
                self._told = True
                logging.getLogger("pygsampler").warning("features: no row is admitted: %s", error)

    def held(self) -> Tensor:
        """The row of each place, or -1: a tensor of int64.

        It is on the device, or on the CPU if torch does not use CUDA.
        """
        import torch

        if not self.places:
            return torch.empty(0, dtype=torch.int64)
        if devices.torch_uses_cuda():
            with library.cache_lock(self.device):
                self._settle()
                about = self._section_address(1), self.places, 64, self._memory
                return Array._from_address(*about, device=self.device).torch().clone()
        memory = self._downloaded(self._section_address(1), _KEY * self.places)
        return Array._from_address(memory.data, self.places, 64, memory).torch()

    def count(self) -> int:
        """The number of rows that were read from here."""
        if not self.places:
            return 0
        memory = self._downloaded(self.hits, 8)
        (count,) = memories.read_int64(memory.data, 1)
        return count + 1

    def _downloaded(self, address: int, size: int) -> memories.Memory:
        with library.cache_lock(self.device):
            stream = self._settle()
            return memories.new("DeviceDownload", self.device, address, size, stream)

    def _settle(self) -> int:
        """torch's current stream, where all is done that was put into others."""
        stream = devices.current_stream(self.device)
        self.enter(stream)
        self._after_all(stream)
        return stream

    def _uploaded(self, values: Tensor, stream: int) -> memories.Memory:
        size = values.numel() * values.element_size()
        return memories.new("DeviceUpload", self.device, values.data_ptr(), size, stream)

    def _call(self, name: str, ids: tuple[int, int, int], source: int, *more: int) -> None:
        about = array("q", ids)
        about.extend(
            [source, self.rows, self.row, self.cached, self.slots, self._section_address(1)]
        )
        about.append(self.places)
        library.call(name, self.device, about.buffer_info()[0], *more)


def filled_memory(device: int, words: int, value: int) -> memories.Memory | None:
    """Memory of a device, words of 32 bits of a value, for work in torch's current stream.

    None where there is not so much, and torch has nothing in reserve to give back.
    """
    for last in (False, True):
        try:
            stream = devices.current_stream(device)
            return memories.new("DeviceFill", device, words, value, stream)
        except CudaError as error:
            if not is_out_of_memory(error):
                raise
        if last or not devices.free_reserve():
            break
    return None


def is_out_of_memory(error: CudaError) -> bool:
    return "OUT_OF_MEMORY" in str(error)
