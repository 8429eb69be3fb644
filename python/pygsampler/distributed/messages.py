"""Messages between processes about rows: questions, and answers."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from pygsampler._engine.memory import address_of

# All that is said is in words of 64 bits, and what is not is filled up to them.
_FILL = b"\0" * 7
_FIELDS = 12


def _padded(part: bytes | memoryview) -> tuple[bytes | memoryview, bytes]:
    return part, _FILL[: -len(part) % 8]


# The hop of a question that is for features.
FEATURES = -1


class RowRequest(NamedTuple):
    """Rows that a batch needs of a part, as a request for rows has them.

    Or, with ``hop`` FEATURES, rows of the node array that ``document`` names, of ``vertices``.
    """

    document: str
    seed: int
    hop: int
    epoch: int
    batch: int
    bits: int
    rows: int
    vertices: bytes | memoryview
    subgraph_ids: bytes | memoryview
    bounds: bytes | memoryview
    exclude: bytes | memoryview

    def message(self) -> bytes:
        """Returns the bytes that are sent."""
        document = self.document.encode()
        arrays = self.vertices, self.subgraph_ids, self.bounds, self.exclude
        sizes = [len(part) for part in arrays]
        seed = self.seed - (self.seed >> 63 << 64)
        numbers = [self.hop, self.epoch, self.batch, self.bits, self.rows, len(document)]
        head = array("q", [0, seed, *numbers, *sizes])
        body = b"".join(piece for part in (document, *arrays) for piece in _padded(part))
        head[0] = 8 * len(head) + len(body)
        return head.tobytes() + body


def read_requests(message: memoryview) -> Iterator[RowRequest]:
    """Yields the requests of a message, in the order in which they were sent."""
    at = 0
    while at < len(message):
        size, seed, hop, epoch, batch, bits, rows, *lengths = message[at : at + 8 * _FIELDS].cast(
            "q"
        )
        parts: list[memoryview] = []
        place = at + 8 * _FIELDS
        for length in lengths:
            parts.append(message[place : place + length])
            place += length + -length % 8
        if size <= 0 or place != at + size or place > len(message):
            raise ValueError(
                f"message: expected a question of {size} bytes of {len(message)} at {at}, got "
                f"{place - at}; are all processes of one version?"
            )
        document, vertices, subgraph_ids, bounds, exclude = parts
        yield RowRequest(
            str(document, "utf-8"),
            seed % 2**64,
            hop,
            epoch,
            batch,
            bits,
            rows,
            vertices,
            subgraph_ids,
            bounds,
            exclude,
        )
        at += size


class RowReply(NamedTuple):
    """An answer: where rows lie, or why there are none."""

    address: int
    size: int
    error: str
    rows: memoryview

    @classmethod
    def from_buffer(cls, buffer: memoryview) -> RowReply:
        """Rows that are here, and stay as long as the view."""
        return cls(address_of(buffer) if len(buffer) else 0, len(buffer), "", buffer)

    @classmethod
    def failed(cls, error: str) -> RowReply:
        """Why there are none."""
        return cls(0, 0, error, memoryview(b""))

    def pieces(self) -> list[bytes | memoryview]:
        """Returns the bytes that are sent, in pieces."""
        part = self.error.encode() if self.error else self.rows
        return [array("q", [bool(self.error), len(part)]).tobytes(), *_padded(part)]


def read_replies(message: memoryview, count: int) -> list[RowReply]:
    """Returns successive answers of a message; addresses are valid while the message lives."""
    base = address_of(message) if len(message) else 0
    found: list[RowReply] = []
    at = 0
    for _ in range(count):
        if at + 16 > len(message):
            raise ValueError(f"message: expected {count} answers, got {len(found)}")
        failed, size = message[at : at + 16].cast("q")
        at += 16
        if size < 0 or at + size > len(message):
            raise ValueError(f"message: expected {size} bytes at {at}, got {len(message) - at}")
        rows = message[at : at + size]
        error = (str(rows, "utf-8") or "an error without a text") if failed else ""
        found.append(RowReply(base + at, size, error, rows))
        at += size + -size % 8
    return found


def concatenate(pieces: Sequence[bytes | memoryview]) -> bytes:
    """Returns several pieces as a single message."""
    return b"".join(pieces)
