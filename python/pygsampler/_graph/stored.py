"""Tables of weights in a graph file: one section for an array of edges, told in docs/format.md."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

from pygsampler._arrays.mapped import CSC, Pages, checksum
from pygsampler._core import memories
from pygsampler._core.checks import describe
from pygsampler._graph.data import EDGES
from pygsampler._graph.parts import Parts
from pygsampler.array import Array, as_array

# A section is called by this and the name of the array.
_PREFIX = "tables."
# What a section begins with, and how it is laid out: an array of that name may be anybody's.
_MAGIC = int.from_bytes(b"PGStable", "little")
_LAYOUT = 1
# magic, layout, edges, bits of edge ids, offsets of the parts, checksums of what they were made of
_OFFSETS, _CHECKSUMS, _WORDS = 4, 9, 16
_ALIGNMENT = 64


class Pieces:
    """A section of int64 that is written piece after piece."""

    __slots__ = ("pieces",)

    dtype = "int64"

    def __init__(self, pieces: list[Array]) -> None:
        self.pieces = pieces

    @property
    def nbytes(self) -> int:
        return sum(piece.nbytes for piece in self.pieces)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.nbytes // 8,)


def names(given: Any, edges: Mapping[str, Array]) -> list[str]:
    """The names of the arrays whose tables a caller wants saved, each once."""
    if isinstance(given, (str, bytes, Mapping)) or not hasattr(given, "__iter__"):
        raise TypeError(f"tables: expected a list of names, got {describe(given)}")
    found = list(given)
    for place, name in enumerate(found):
        if not isinstance(name, str):
            raise TypeError(f"tables[{place}]: expected a name of type str, got {describe(name)}")
        if name not in edges:
            have = ", ".join(map(repr, edges)) or "none"
            expected = f"the name of an edge array of the graph ({have})"
            raise ValueError(f"tables[{place}]: expected {expected}, got {name!r}")
    return list(dict.fromkeys(found))


def section(parts: Parts, whole: Parts, values: Array) -> Pieces:
    """The tables of ``parts``, which were made of the graph ``whole`` and those weights."""
    kept = len(parts.indices) < len(whole.indices)
    pieces, offsets, at = [], [], 8 * _WORDS
    for name, part in zip(parts._fields, parts, strict=True):
        if part is None or (name in CSC and not kept):
            offsets.append(0)
            continue
        offsets.append(at)
        pieces += [part, as_array(bytes(-part.nbytes % _ALIGNMENT), name)]
        at += sum(piece.nbytes for piece in pieces[-2:])
    ids = parts.edge_ids._bits if kept and parts.edge_ids is not None else 0
    made_of = (values, *whole[: len(CSC)])
    sums = [0 if part is None else checksum(part._address, part.nbytes) for part in made_of]
    words = [_MAGIC, _LAYOUT, len(parts.indices), ids, *offsets, *sums]
    head = array("q", words + [0] * (_WORDS - len(words)))
    return Pieces([as_array(head, "tables"), *pieces])


def section_of(name: str) -> str:
    """What the section is called with the tables of an edge array."""
    return _PREFIX + name


def in_file(pages: Pages) -> dict[str, dict[str, Any]]:
    """The sections of tables by the names of their arrays, as the header has them."""
    found = {}
    for about in pages.header["sections"]:
        name, shape = about["name"], about["shape"] or ()
        if name.startswith(_PREFIX) and about["dtype"] == "int64" and len(shape) == 1:
            words = _words(pages, about)
            if words and words[0] == _MAGIC:
                found[name.removeprefix(_PREFIX)] = about
    return found


def of_file(pages: Pages, name: str, whole: Parts) -> Parts | None:
    """The mapped tables of an edge array; None where the file has none of its values and edges.

    Whoever writes sections that he does not know may have put other weights beside them. ValueError
    for tables that reach beyond their section.
    """
    about = in_file(pages).get(name)
    if about is None:
        return None
    _, layout, edges, id_bits, *rest = _words(pages, about)
    offsets = rest[: _CHECKSUMS - _OFFSETS]
    checksums = {one["name"]: one["checksum"] for one in pages.header["sections"]}
    made_of = [checksums.get(one, 0) for one in (f"{EDGES}.{name}", *CSC)]
    if layout != _LAYOUT or rest[len(offsets) :][: len(made_of)] != made_of:
        return None
    kept, size = edges < len(whole.indices), about["bytes"]
    rows, bits = len(whole.indptr), whole.indices._bits
    places = [
        # offset, elements, bits of each, whether it has to be there
        *zip(offsets, (rows, edges, edges), (64, bits, id_bits), [kept] * 3, strict=False),
        *((at, edges, 64, True) for at in offsets[len(CSC) :]),
    ]
    sound = 0 <= edges <= len(whole.indices) and (id_bits in (32, 64) or not kept)
    for at, length, wide, needed in places:
        inside = 8 * _WORDS <= at <= size - length * wide // 8 and at % _ALIGNMENT == 0
        sound = sound and (inside if needed else at == 0)
    if not sound:
        where = f"{pages.path}: section {about['name']!r}"
        expected = f"tables for the {len(whole.indices)} edges of the file"
        raise ValueError(f"{where}: expected {expected}, got others")
    start = pages.address + about["offset"]
    arrays = [
        Array._of(start + at, length, wide, pages, readonly=True) for at, length, wide, _ in places
    ]
    csc = arrays[: len(CSC)] if kept else whole[: len(CSC)]
    return Parts(*csc, *arrays[len(CSC) :])


def _words(pages: Pages, about: dict[str, Any]) -> list[int]:
    """The head of a section; nothing where it is too short for one."""
    if about["bytes"] < 8 * _WORDS:
        return []
    return memories.read_int64(pages.address + about["offset"], _WORDS)
