"""``SharedIntegers``: a few integers that several processes share."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

__all__ = ["MOST", "SharedIntegers"]

# Integers of one owner.
MOST = 4


class _Page(NamedTuple):
    """A page that this process shares with those that it forks, and its places without an owner."""

    process: int
    words: memoryview
    free: Iterator[int]


def _page() -> _Page:
    words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")
    return _Page(os.getpid(), words, iter(range(0, len(words), MOST)))


_current: _Page | None = None


def _room(count: int) -> memoryview:
    """Returns room for some integers in a page, which is freed with its last owner."""
    global _current
    page = _current
    # A forked process would take the places that its parent takes.
    place = next(page.free, None) if page and page.process == os.getpid() else None
    if page is None or place is None:
        _current = page = _page()
        place = next(page.free)
    return page.words[place : place + count]


class SharedIntegers:
    """Up to four integers of 64 bits, shared with forked processes and with receivers of a pickle.

    A place of a page costs next to nothing, where torch takes longer to share a tensor than all
    other work of a sampler of a small graph takes. Only processes that receive a pickle need the
    tensor.
    """

    __slots__ = ("_tensor", "_words")

    def __init__(self, values: list[int]) -> None:
        self._words = _room(len(values))
        self._tensor: torch.Tensor | None = None
        for place, value in enumerate(values):
            self._words[place] = value

    @classmethod
    def _received(cls, tensor: torch.Tensor) -> SharedIntegers:
        received = cls(tensor.tolist())
        # Else it was pickled without the means of another process, and is a copy.
        if tensor.is_shared():  # type: ignore[no-untyped-call]
            received._tensor = tensor
        return received

    def tolist(self) -> list[int]:
        """The values now."""
        return self._words.tolist() if self._tensor is None else self._tensor.tolist()

    def __getitem__(self, place: int) -> int:
        return self.tolist()[place]

    def __setitem__(self, place: int, value: int) -> None:
        # In both, since a process that was forked before the tensor was there has the page alone.
        self._words[place] = value
        if self._tensor is not None:
            self._tensor[place] = value

    def clone(self) -> SharedIntegers:
        """The same values, to be changed apart from these."""
        return SharedIntegers(self.tolist())

    def __reduce__(self) -> tuple[Any, ...]:
        if self._tensor is None:
            tensor = torch.tensor(self.tolist(), dtype=torch.int64)
            tensor.share_memory_()  # type: ignore[no-untyped-call]
            self._tensor = tensor
        return SharedIntegers._received, (self._tensor,)
