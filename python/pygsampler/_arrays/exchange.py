"""Makes torch tensors on a result's memory through DLPack's C exchange API, all by one call."""

from __future__ import annotations

import ctypes
from array import array
from struct import pack
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._arrays.dlpack import capsule_pointer
from pygsampler._arrays.dtypes import INT, KINDS
from pygsampler._engine import library
from pygsampler._engine import memory as memories

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from pygsampler._engine.array_descriptor import ArrayDescriptor

# The layout of a table is known of this version of DLPack alone.
_MAJOR = 1
# One array of integers by its width: its length is the first word, and its address the second.
_ONE = {bits: pack("5q", INT, bits, 0, 0, 1) for bits in (32, 64)}


class _Header(ctypes.Structure):
    """The part of a table of functions that every version of DLPack has."""

    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("previous", ctypes.c_void_p),
    ]


class _TorchTable:
    """Remembers where torch's table of functions lies, once it was looked up."""

    address: int | None = None


def exchange_api() -> int:
    """Returns the address of torch's table of functions; 0 where torch has none, or is missing."""
    address = _TorchTable.address
    if address is None:
        try:
            from torch import Tensor
        except ImportError:
            return 0
        capsule = getattr(Tensor, "__dlpack_c_exchange_api__", None)
        address = _TorchTable.address = 0 if capsule is None else table_address(capsule)
    return address


def table_address(capsule: Any) -> int:
    """Returns the table of DLPack 1 among those that a capsule leads to, or 0."""
    address = capsule_pointer(capsule, b"dlpack_exchange_api")
    while address:
        header = _Header.from_address(address)
        if header.major == _MAJOR:
            break
        address = header.previous or 0
    return address


def descriptors(arrays: Sequence[ArrayDescriptor], start: int, widths: Mapping[int, int]) -> bytes:
    """Returns what `tensors` takes for arrays whose words begin at ``start``.

    ``widths`` has the width of integers by the word that says it.
    """
    packed = b""
    for _, bits, length, more, offset in arrays:
        code = KINDS[bits].code if isinstance(bits, str) else INT
        width = 8 * KINDS[bits].size if isinstance(bits, str) else widths[bits]
        packed += pack("5q", code, width, start + length, more, start + offset)
    return packed


def tensors(
    api: int, owner: object, address: int, words: int, described: bytes, device: int = devices.CPU
) -> tuple[torch.Tensor | None, ...]:
    """Returns a tensor, or None, for each array of a result at ``address``.

    Each keeps ``owner`` alive. ``words`` is the address of the words that describe the result.
    """
    create: Callable[..., tuple[torch.Tensor | None, ...]] = library.engine().tensors
    if isinstance(owner, memories.Memory) and owner.is_of(library.generation()):
        return create(api, owner.address, device, address, words, described)
    with memories.retained(owner, device) as memory:
        return create(api, memory, device, address, words, described)


def one_tensor(
    api: int, owner: object, address: int, length: int, bits: int, device: int = devices.CPU
) -> torch.Tensor:
    """Returns a tensor of integers at an ``address``, which keeps ``owner`` alive."""
    words = array("q", (length, address))
    (tensor,) = tensors(api, owner, 0, words.buffer_info()[0], _ONE[bits], device)
    assert tensor is not None
    return tensor
