"""How arrays are cut for several devices; tests/cuda/test_shared_arrays.py puts them there."""

from __future__ import annotations

import os
import socket
import struct
from array import array
from itertools import pairwise, product
from typing import Any

import pytest

import pygsampler as pgs
from pygsampler._graph.shared_arrays import (
    _MOST_UNITS,
    EVERYONE,
    ArrayPiece,
    EdgeAccessCounts,
    layout,
)
from pygsampler.distributed.shared_graph import _DescriptorChannel

UNIT = 4096


class Given:
    """Figures that are known."""

    def __init__(self, figures: list[float]) -> None:
        self.figures = figures

    def relative_counts(self, width: int, unit: int, count: int) -> array[float]:
        return array("d", (self.figures * count)[:count])


def owned(pieces: list[ArrayPiece], place: int) -> int:
    return sum(piece.size for piece in pieces if piece.place in (place, EVERYONE))


@pytest.mark.parametrize(
    ("nbytes", "places", "replicate"),
    [*product((1, UNIT, 5 * UNIT - 3, 1000 * UNIT + 1), (1, 2, 3, 8), (0.0, 0.1, 0.5, 1.0))],
)
def test_every_byte_has_a_place(nbytes: int, places: int, replicate: float) -> None:
    heat: Any = Given([3.0, 1.0, 2.0, 2.0, 0.0])
    pieces = layout(nbytes, 4, UNIT, places, replicate, heat)
    total = sum(piece.size for piece in pieces)
    assert nbytes <= total < nbytes + UNIT and all(piece.size % UNIT == 0 for piece in pieces)
    # Alike from one piece to the next would be one piece.
    assert all(a.place != b.place for a, b in pairwise(pieces))
    shared = sum(piece.size for piece in pieces if piece.place == EVERYONE)
    assert abs(shared - replicate * total) <= UNIT / 2
    # The rest in contiguous ranges of one size.
    order = [piece.place for piece in pieces if piece.place != EVERYONE]
    assert order == sorted(order) and set(order) <= set(range(places))
    sizes = [owned(pieces, place) for place in range(places)]
    assert max(sizes) - min(sizes) <= UNIT


def test_what_is_read_most_is_everyones() -> None:
    heat: Any = Given([1.0, 5.0, 0.0, 5.0, 2.0, 2.0, 2.0, 0.5])
    pieces = layout(8 * UNIT, 4, UNIT, 2, 0.5, heat)
    # 1, 3, and of those that are alike the first ones.
    assert pieces == [
        ArrayPiece(UNIT, 0),
        ArrayPiece(UNIT, EVERYONE),
        ArrayPiece(UNIT, 0),
        ArrayPiece(3 * UNIT, EVERYONE),
        ArrayPiece(2 * UNIT, 1),
    ]
    assert layout(8 * UNIT, 4, UNIT, 2, 0.25, None)[0] == ArrayPiece(2 * UNIT, EVERYONE)


def test_large_arrays_have_large_units() -> None:
    pieces = layout(3 * _MOST_UNITS * UNIT, 4, UNIT, 2, 0.5, None)
    assert len(pieces) == 3 and sum(size for size, _ in pieces) == 3 * _MOST_UNITS * UNIT
    heat: Any = Given([0.0, 1.0])
    assert len(layout(3 * _MOST_UNITS * UNIT, 4, UNIT, 2, 0.5, heat)) <= _MOST_UNITS
    # Without copies a piece for each place, whatever the size.
    assert len(layout(50 * _MOST_UNITS * UNIT, 4, UNIT, 7, 0.0, None)) == 7


def test_heat_of_a_star() -> None:
    """Vertex 0 is everybody's neighbour, and all others are its own: every hop visits all rows, of
    which the long one gives 10 of its 40 edges."""
    star = pgs.Graph.from_csc([0, 40, *range(41, 81)], [*range(1, 41), *[0] * 40])
    assert EdgeAccessCounts(star._source).relative_counts(8, 160, 4).tolist() == pytest.approx(
        [5, 5, 20, 20]
    )
    # Rows of 4 bytes, three to a run.
    assert EdgeAccessCounts(star._source, per_row=True).relative_counts(
        4, 12, 14
    ).tolist() == pytest.approx([12] * 13 + [8])


class Taking:
    """What takes the descriptors of pieces."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.taken: list[int] = []

    def take(self, piece: int, descriptor: int) -> None:
        os.fstat(descriptor)
        if self.error is not None:
            raise self.error
        self.taken.append(piece)


@pytest.mark.parametrize(
    ("sent", "first", "error", "text"),
    [
        (3, 4, None, ""),
        (2, 4, ConnectionError, "expected 3 descriptors of rank 1 from piece 4 on, got 2 from 4"),
        (3, 5, ConnectionError, "got 3 from 5 on"),
        (0, 0, ConnectionError, "expected rank 1, which is gone"),
        (-1, 0, TimeoutError, "expected rank 1 within 0.1 seconds, got nothing"),
        (3, 4, pgs.errors.CudaError, "no way; that is memory of rank 1"),
    ],
)
def test_descriptors_of_others(sent: int, first: int, error: Any, text: str) -> None:
    """All that come are closed, whatever happens."""
    wires = object.__new__(_DescriptorChannel)
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    here.settimeout(0.1)
    wires.rank, wires.size, wires._timeout, wires._sockets = 0, 2, 0.1, {1: here}
    own: Any = Taking(pgs.errors.CudaError("no way") if error is pgs.errors.CudaError else None)
    with there, open(os.devnull) as null:
        if sent > 0:
            socket.send_fds(there, [struct.pack("<q", first)], [null.fileno()] * sent)
        elif sent == 0:
            there.shutdown(socket.SHUT_RDWR)
        before = len(os.listdir("/proc/self/fd"))
        if error is None:
            wires._take(own, 1, [4, 5, 6])
            assert own.taken == [4, 5, 6]
        else:
            with pytest.raises(error) as caught:
                wires._take(own, 1, [4, 5, 6])
            assert text in str(caught.value)
        assert len(os.listdir("/proc/self/fd")) == before
    wires._hang_up()
    assert here.fileno() == -1
