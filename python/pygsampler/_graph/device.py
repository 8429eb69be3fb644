"""The arrays of a graph where a CUDA device reads them: there, or page-locked on the host."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, NamedTuple

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array, _copy_to_device
from pygsampler._arrays.mmap_file import MappedFile
from pygsampler._engine import memory
from pygsampler._graph.csc_arrays import CscArrays

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


class PinnedArrays(NamedTuple):
    """The page-locks of a graph's arrays, held as long as this, and the device's addresses.

    ``copies`` are of small arrays, which may share pages with others; ``arrays`` are those that are
    locked in place.
    """

    device: int
    addresses: tuple[int, ...]
    copies: tuple[mmap.mmap, ...]
    arrays: tuple[Array, ...]
    # Last, since a tuple releases its last item first. If pages were freed before their lock,
    # another thread could have new pages there: they would be taken for locked, and the device
    # would go on reading the old ones.
    locks: tuple[memory.Memory, ...]


# Larger arrays do not share pages with other allocations: the system maps them by themselves.
_LARGEST_COPY = 64 << 20
# So much is copied between two looks at whether Ctrl-C was pressed.
_CHUNK = 64 << 20


def place(
    arrays: CscArrays,
    device: int,
    pinned: bool,
    uploaded: tuple[CscArrays, CscArrays] | None,
    shared: Callable[[Array], Array] | None = None,
) -> tuple[CscArrays, PinnedArrays | None]:
    """The arrays for a graph that the device samples, and what pins them.

    ``uploaded`` are arrays on the host, and the same on the device. ``shared`` puts arrays of edges
    where several devices share them. CudaError where there is no room for copies, which are
    complete on return.
    """
    if pinned:
        return arrays, pin(arrays, device)
    known = {} if uploaded is None else {id(a): b for a, b in zip(*uploaded, strict=True)}

    def upload(part: Array, name: str) -> Array:
        found = known.get(id(part))
        if found is not None:
            return found
        if shared is None or name == "indptr":
            return _copy_to_device(part, device)
        return shared(part)

    return arrays.each(upload), None


def download(arrays: CscArrays) -> CscArrays:
    """Copies on the CPU."""
    return arrays.each(lambda part, _: part.cpu())


def pin(arrays: Iterable[Array | None], device: int) -> PinnedArrays:
    """Page-locks the arrays in place, small ones in copies.

    CudaError if the system does not allow it.
    """
    locks: list[memory.Memory] = []
    copies: list[mmap.mmap] = []
    in_place: list[Array] = []
    places = []
    try:
        for part in arrays:
            place = 0
            if part is not None and part.nbytes:
                address = part._address
                if _shares_pages(part):
                    copies.append(_copy(part))
                    address = memory.address_of(memoryview(copies[-1]))
                else:
                    in_place.append(part)
                locks.append(_locked(device, address, part.nbytes))
                place = locks[-1].data
            places.append(place)
        return PinnedArrays(device, tuple(places), tuple(copies), tuple(in_place), tuple(locks))
    except BaseException:
        # Before the pages.
        locks.clear()
        raise


def _shares_pages(part: Array) -> bool:
    """True if the pages of an array may hold other allocations too, or are those of a file.

    The driver refuses to copy to or from memory that is page-locked in part, so what shares pages
    with other allocations must not be locked where it is. Pages of a file that may not be written
    to cannot be locked at all.
    """
    if isinstance(part._owner, MappedFile):
        return True
    if part.nbytes > _LARGEST_COPY:
        return False
    return bool(part._address % mmap.PAGESIZE or part.nbytes % mmap.PAGESIZE)


def _locked(device: int, address: int, size: int) -> memory.Memory:
    return memory.new("DeviceRegister", device, address, size)


def _copy(part: Array) -> mmap.mmap:
    """The bytes of an array in pages of their own."""
    pages = mmap.mmap(-1, part.nbytes)
    values = part._bytes()
    for at in range(0, part.nbytes, _CHUNK):
        pages[at : at + _CHUNK] = values[at : at + _CHUNK]
    return pages


def together(arrays: CscArrays) -> int:
    """The device that all arrays are on; ValueError where they are on several."""
    device = arrays.indptr._device
    for part, where in zip(arrays, arrays._fields, strict=True):
        if part is not None and part._device != device and len(part):
            raise ValueError(
                f"{where}: expected an array on {devices.name(device)}, as indptr is, "
                f"got one on {part.device}"
            )
    return device
