"""Packs arrays that did not come from the engine into the memory of a batch."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from pygsampler._arrays.ids import as_ids
from pygsampler._batch import layout as at
from pygsampler._engine import memory
from pygsampler._engine.checks import describe, integer

# Arrays begin on cache lines of their own.
_LINE = 64


def pack_batch(seeds: Any, nodes: Any, blocks: Sequence[Any], output_index: Any) -> bytearray:
    """The bytes of a batch as ``_batch.layout`` has it, of what ``MiniBatch.from_blocks`` takes."""
    ids = as_ids(nodes, "nodes")
    bits = ids.bits
    known = _BatchShape(ids.length, bits)
    vertices = known.as_integers(nodes, "nodes", None)
    given = known.as_integers(seeds, "seeds", None)
    index = range(len(given)) if output_index is None else output_index
    if not isinstance(blocks, Sequence) or isinstance(blocks, (str, bytes)) or not blocks:
        raise TypeError(f"blocks: expected a sequence of blocks, got {describe(blocks)}")
    words = [0] * at.num_words(len(blocks))
    size = 8 * len(words)
    parts: list[tuple[int, memoryview]] = []

    def place(values: memoryview) -> int:
        nonlocal size
        offset = size = -(-size // _LINE) * _LINE
        size += values.nbytes
        parts.append((offset, values.cast("B")))
        return offset

    sources, edge_id_bits = ids.length, bits
    for number, block in enumerate(blocks):
        start = at.FIRST_BLOCK + at.WORDS * number
        sources = known.block(block, f"blocks[{number}]", sources, words, start, place)
    rows = words[start + at.NUM_DST]
    for name, value in (
        (0, at.MAGIC),
        (at.ID_BITS, bits),
        (at.edge_id_bits_at(len(blocks)), edge_id_bits),
        (at.NUM_HOPS, len(blocks)),
        (at.NUM_TYPES, 1),
        (at.NUM_RELATIONS, 1),
        (at.NUM_OUTPUT, len(given)),
        (at.NODES, place(vertices)),
        (at.NUM_NODES, ids.length),
        (at.OUTPUT_NODES, place(given)),
        (at.OUTPUT_INDEX, place(known.as_integers(index, "output_index", rows, len(given)))),
    ):
        words[name] = value
    counts = at.counts_at(len(blocks))
    words[counts] = rows
    for hop in range(len(blocks)):
        start = at.FIRST_BLOCK + at.WORDS * (len(blocks) - 1 - hop)
        words[counts + 1 + hop] = words[start + at.NUM_SRC]
    words[at.SIZE] = size = -(-size // 8) * 8
    region = bytearray(size)
    region[: 8 * len(words)] = array("q", words).tobytes()
    for offset, values in parts:
        region[offset : offset + values.nbytes] = values
    return region


class _BatchShape:
    """The numbers of nodes of a batch, and the width of its ids."""

    def __init__(self, nodes: int, bits: int) -> None:
        self.nodes = nodes
        self.code = "q" if bits == 64 else "i"

    def as_integers(
        self, values: Any, where: str, below: int | None, count: int | None = None
    ) -> memoryview:
        """The integers in the batch's width; ValueError unless each is in ``[0, below)``."""
        view = as_ids(values, where)
        if count is not None and view.length != count:
            raise ValueError(f"{where}: expected {count} values, got {view.length}")
        found = memory.integer_view(view.address, view.length, view.bits)
        if view.length and (min(found) < 0 or (below is not None and max(found) >= below)):
            wrong = next(i for i, v in enumerate(found) if v < 0 or (below and v >= below))
            expected = ">= 0" if below is None else f"in [0, {below})"
            raise ValueError(f"{where}[{wrong}]: expected a value {expected}, got {found[wrong]}")
        return memoryview(array(self.code, found))

    def block(
        self, block: Any, where: str, sources: int, words: list[int], start: int, place: Any
    ) -> int:
        """Writes the words of a block; returns how many sources the next one has."""
        if not isinstance(block, Sequence) or len(block) not in (3, 4):
            raise TypeError(
                f"{where}: expected (indptr, indices, edge_ids) or those and dst_offset, "
                f"got {describe(block)}"
            )
        offsets = self.as_integers(block[0], f"{where}.indptr", None)
        rows = len(offsets) - 1
        edges = offsets[rows] if rows >= 0 else -1
        if rows < 0 or offsets[0] or any(a > b for a, b in pairwise(offsets)):
            raise ValueError(f"{where}.indptr: expected offsets that grow from 0")
        first = integer(block[3] if len(block) == 4 else 0, f"{where}.dst_offset", 0)
        if first + rows > sources:
            raise ValueError(
                f"{where}: expected its destinations among {sources} sources, got {rows} of them "
                f"from {first} on"
            )
        words[start : start + at.WORDS - 1] = (
            sources,
            rows,
            edges,
            place(offsets),
            place(self.as_integers(block[1], f"{where}.indices", sources, edges)),
            place(self.as_integers(block[2], f"{where}.edge_ids", None, edges)),
            first,
        )
        return first + rows
