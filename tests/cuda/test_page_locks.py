"""Pages that a GPU reads in place stay where they are until they are unlocked."""

from __future__ import annotations

import ctypes
import mmap
import weakref
from typing import Any

import pytest

from pygsampler._engine import memory
from pygsampler._graph import device
from tests.support.parity import random_graph

libc = ctypes.CDLL(None)


def mapped(address: int) -> bool:
    start = ctypes.c_void_p(address // mmap.PAGESIZE * mmap.PAGESIZE)
    return libc.mincore(start, ctypes.c_size_t(1), ctypes.create_string_buffer(1)) == 0


@pytest.fixture
def unlocked(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Returns a list with an entry for each released lock: True if its pages were there then."""
    found: list[bool] = []
    lock = device._locked

    def locked(index: int, address: int, size: int) -> memory.Memory:
        made = lock(index, address, size)
        weakref.finalize(made, lambda: found.append(mapped(address)))
        return made

    monkeypatch.setattr(device, "_locked", locked)
    return found


@pytest.mark.parametrize("in_place", [False, True], ids=["copies", "in place"])
@pytest.mark.parametrize("how", ["close", "drop"])
def test_they_are_unlocked_before_they_go(how: str, in_place: bool, unlocked: list[bool]) -> None:
    graph = random_graph(300, seed=3).graph(to_pin=in_place).pin()
    if how == "close":
        graph.close()
    del graph
    assert unlocked == [True, True]


def test_those_before_one_that_cannot_be_locked(
    unlocked: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = random_graph(300, seed=3).graph()
    lock, calls = device._locked, []

    def second_fails(*about: int) -> Any:
        calls.append(about)
        if len(calls) == 2:
            raise MemoryError
        return lock(*about)

    monkeypatch.setattr(device, "_locked", second_fails)
    with pytest.raises(MemoryError):
        graph.pin()
    assert unlocked == [True]
