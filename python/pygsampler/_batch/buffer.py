"""The memory of a result as a whole: its words and all of its arrays, one behind another."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pygsampler._arrays.array import Array
from pygsampler._batch import layout as at
from pygsampler._engine.memory import Memory

if TYPE_CHECKING:
    import torch


def copy_to_host(
    address: int, size: int, words: Sequence[int], owner: object, device: int
) -> Memory:
    """A copy on the CPU of a result of ``size`` bytes on a device.

    It begins with the words, which of a result on a device stand on the host alone.
    """
    memory = Array._from_address(address, size // 4, 32, owner, device=device).cpu()._owner
    assert isinstance(memory, Memory)
    write_words(words, memory.data)
    return memory


def write_words(words: Sequence[int], address: int) -> None:
    """Writes words to where a result begins."""
    told = (ctypes.c_int64 * len(words))(*words)
    ctypes.memmove(address, told, ctypes.sizeof(told))


def check_signature(signature: int, expected: int) -> None:
    """Checks the first word of a result: ValueError for words of another version."""
    if signature != expected:
        alike = (signature ^ expected) & 0xFFFFFFFF == 0
        got = f"version {signature >> 32 or 1}" if alike else hex(signature)
        raise ValueError(
            f"header: expected version {at.HEADER_VERSION} of a result's words, got {got}; results "
            "of another version of pygsampler have to be sampled again"
        )


def edges_of_blocks(words: Sequence[int]) -> Sequence[int]:
    """Returns how many edges each block of a batch has, outermost hop first."""
    end = at.edge_id_bits_at(words[at.NUM_HOPS], words[at.NUM_TYPES], words[at.NUM_RELATIONS])
    return words[at.first_block(words[at.NUM_TYPES]) + at.NUM_EDGES : end : at.WORDS]


def integer_view(region: torch.Tensor, offset: int, length: int, bits: int) -> torch.Tensor:
    """A view of so many of 32 or 64 bits, from a byte of the region on, whatever its dtype."""
    import torch

    dtype = torch.int64 if bits == 64 else torch.int32
    whole = region if region.dtype == dtype else region.view(dtype)
    first = offset * 8 // bits
    return whole[first : first + length]
