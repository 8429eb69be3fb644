"""Memory in pickles: how it goes there, and what it is when it comes back."""

from __future__ import annotations

from pickle import PickleBuffer

from pygsampler._engine import memory


def to_pickle(raw: memoryview | bytearray, protocol: int) -> PickleBuffer | bytes:
    """Bytes as a pickle takes them: without a copy, and out of band, where its protocol can."""
    return PickleBuffer(raw) if protocol >= 5 else bytes(raw)


def from_pickle(values: bytes | bytearray | memoryview | PickleBuffer) -> tuple[memoryview, int]:
    """The bytes that a pickle gives back as memory for arrays, and its address."""
    buffer = memoryview(values)
    if not buffer.nbytes:
        # Of none there is no address.
        buffer = memoryview(bytearray(8))
    address = memory.address_of(buffer)
    if buffer.readonly or address % 8:
        # A copy may be written to; and bytes handed over out of band may lie anywhere.
        buffer = memoryview(bytearray(buffer))
        address = memory.address_of(buffer)
    return buffer, address
