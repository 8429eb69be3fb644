"""The memory of a result as a whole: its words and all of its arrays, one behind another."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from pygsampler._arrays.array import Array
from pygsampler._engine.memory import Memory


def on_host(data: int, size: int, words: Sequence[int], owner: object, device: int) -> Memory:
    """A copy on the CPU of a result of ``size`` bytes on a device.

    It begins with the words, which of a result on a device stand on the host alone.
    """
    memory = Array._of(data, size // 4, 32, owner, device=device).cpu()._owner
    assert isinstance(memory, Memory)
    write(words, memory.data)
    return memory


def write(words: Sequence[int], address: int) -> None:
    """Writes words to where a result begins."""
    told = (ctypes.c_int64 * len(words))(*words)
    ctypes.memmove(address, told, ctypes.sizeof(told))
