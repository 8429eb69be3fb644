"""Arrays derived of a graph, as sections of its file.

There is a section for the tables of each array of weights, and one for the graph by its out-edges;
docs/developer/file-format.md describes both.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from pygsampler._arrays.array import Array, as_array
from pygsampler._arrays.dtypes import KINDS
from pygsampler._arrays.mmap_file import CSC, MappedFile, checksum
from pygsampler._engine import memory
from pygsampler._engine.checks import describe
from pygsampler._graph.csc_arrays import CscArrays
from pygsampler._graph.named_arrays import EDGES

# A section is called by this and the name of the array.
_PREFIX = "tables."
# The first words of a section, its magic and layout: an array of that name may be anybody's.
_MAGIC = int.from_bytes(b"PGStable", "little")
_LAYOUT = 1
# magic, layout, edges, bits of edge ids, offsets of the parts, checksums of what they were made of
_OFFSETS, _CHECKSUMS, _WORDS = 4, 9, 16
_ALIGNMENT = 64
# The graph by its out-edges: magic, layout, rows, edges, bits of edge ids, offsets of its arrays,
# checksums of what it was made of.
OUT_EDGES = "out_edges"
_OUT_MAGIC = int.from_bytes(b"PGSoutEd", "little")
_OUT_OFFSETS, _OUT_CHECKSUMS = 5, 8


class SectionWriter:
    """A section that is written piece after piece, by default of int64 in one dimension."""

    __slots__ = ("dtype", "pieces", "shape")

    def __init__(
        self, pieces: Iterable[Array], dtype: str = "int64", shape: tuple[int, ...] | None = None
    ) -> None:
        if shape is None:
            pieces = list(pieces)
            shape = (sum(piece.nbytes for piece in pieces) // 8,)
        self.pieces, self.dtype, self.shape = pieces, dtype, shape

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * KINDS[self.dtype].size


def array_names(tables: Any, edges: Mapping[str, Array]) -> list[str]:
    """The names of the arrays whose tables a caller wants saved, each once."""
    if isinstance(tables, (str, bytes, Mapping)) or not hasattr(tables, "__iter__"):
        raise TypeError(f"tables: expected a list of names, got {describe(tables)}")
    found = list(tables)
    for place, name in enumerate(found):
        if not isinstance(name, str):
            raise TypeError(f"tables[{place}]: expected a name of type str, got {describe(name)}")
        if name not in edges:
            have = ", ".join(map(repr, edges)) or "none"
            expected = f"the name of an edge array of the graph ({have})"
            raise ValueError(f"tables[{place}]: expected {expected}, got {name!r}")
    return list(dict.fromkeys(found))


def table_section(tables: CscArrays, graph_arrays: CscArrays, values: Array) -> SectionWriter:
    """The ``tables`` that were computed from ``graph_arrays`` and the weights ``values``."""
    kept = len(tables.indices) < len(graph_arrays.indices)
    ids = tables.edge_ids._bits if kept and tables.edge_ids is not None else 0
    written = tables if kept else (*[None] * len(CSC), *tables[len(CSC) :])
    first = [_MAGIC, _LAYOUT, len(tables.indices), ids]
    return _pieces(first, written, (values, *graph_arrays[: len(CSC)]))


def _pieces(
    first: list[int], arrays: Sequence[Array | None], sources: Sequence[Array | None]
) -> SectionWriter:
    """A section: its first words, where each part is, checksums, and the parts."""
    pieces, offsets, at = [], [], 8 * _WORDS
    for part in arrays:
        if part is None:
            offsets.append(0)
            continue
        offsets.append(at)
        pieces += [part, as_array(bytes(-part.nbytes % _ALIGNMENT), "zeros")]
        at += sum(piece.nbytes for piece in pieces[-2:])
    sums = [0 if part is None else checksum(part._address, part.nbytes) for part in sources]
    words = [*first, *offsets, *sums]
    head = array("q", words + [0] * (_WORDS - len(words)))
    return SectionWriter([as_array(head, "head"), *pieces])


def table_section_name(name: str) -> str:
    """Returns the name of the section with the tables of an edge array."""
    return _PREFIX + name


def in_file(pages: MappedFile) -> dict[str, dict[str, Any]]:
    """The sections of tables by the names of their arrays, as the header has them."""
    return {
        about["name"].removeprefix(_PREFIX): about
        for about in pages.header["sections"]
        if about["name"].startswith(_PREFIX) and _begins_with(_MAGIC, pages, about)
    }


def _begins_with(magic: int, pages: MappedFile, section: dict[str, Any]) -> bool:
    """True if the section that ``section`` describes begins with the word ``magic``."""
    if section["dtype"] != "int64" or len(section["shape"] or ()) != 1:
        return False
    return _words(pages, section)[:1] == [magic]


def mapped_tables(pages: MappedFile, name: str, graph_arrays: CscArrays) -> CscArrays | None:
    """The mapped tables of an edge array; None where the file has none of its values and edges.

    A program that writes sections it does not know may have stored other weights with them. Raises
    ValueError for tables that reach beyond their section.
    """
    about = in_file(pages).get(name)
    if about is None:
        return None
    _, layout, edges, id_bits, *rest = _words(pages, about)
    offsets = rest[: _CHECKSUMS - _OFFSETS]
    made_of = _checksums(pages, (f"{EDGES}.{name}", *CSC))
    if layout != _LAYOUT or rest[len(offsets) :][: len(made_of)] != made_of:
        return None
    kept, size = edges < len(graph_arrays.indices), about["bytes"]
    rows, bits = len(graph_arrays.indptr), graph_arrays.indices._bits
    places = [
        # offset, elements, bits of each, whether it has to be there
        *zip(offsets, (rows, edges, edges), (64, bits, id_bits), [kept] * 3, strict=False),
        *((at, edges, 64, True) for at in offsets[len(CSC) :]),
    ]
    sound = 0 <= edges <= len(graph_arrays.indices) and (id_bits in (32, 64) or not kept)
    for at, length, wide, needed in places:
        sound = sound and (_inside(at, length, wide, size) if needed else at == 0)
    if not sound:
        raise _unsound(pages, about, "tables", graph_arrays)
    arrays = [_mapped(pages, about, *place[:3]) for place in places]
    csc = arrays[: len(CSC)] if kept else graph_arrays[: len(CSC)]
    return CscArrays(*csc, *arrays[len(CSC) :])


def out_edges_section(out_edges: CscArrays, graph_arrays: CscArrays) -> SectionWriter:
    """The graph ``graph_arrays`` by its out-edges, which ``out_edges`` is."""
    assert out_edges.edge_ids is not None
    rows, edges = len(out_edges.indptr) - 1, len(out_edges.indices)
    first = [_OUT_MAGIC, _LAYOUT, rows, edges, out_edges.edge_ids._bits]
    return _pieces(first, out_edges[: len(CSC)], graph_arrays[: len(CSC)])


def out_edges_in_file(pages: MappedFile) -> dict[str, Any] | None:
    """The section with the graph by its out-edges, as the header has it."""
    for about in pages.header["sections"]:
        if about["name"] == OUT_EDGES and _begins_with(_OUT_MAGIC, pages, about):
            found: dict[str, Any] = about
            return found
    return None


def out_edges_of(pages: MappedFile, graph_arrays: CscArrays, num_nodes: int) -> CscArrays | None:
    """The mapped graph by its out-edges; None where the file has none of its edges.

    A program that writes sections it does not know may have stored another graph with them. Raises
    ValueError for arrays that reach beyond their section.
    """
    about = out_edges_in_file(pages)
    if about is None:
        return None
    _, layout, rows, edges, id_bits, *rest = _words(pages, about)
    offsets = rest[: _OUT_CHECKSUMS - _OUT_OFFSETS]
    made_of = _checksums(pages, CSC)
    if layout != _LAYOUT or rows != num_nodes or rest[len(offsets) :][: len(made_of)] != made_of:
        return None
    places = list(
        zip(
            offsets,
            (rows + 1, edges, edges),
            (64, graph_arrays.indices._bits, id_bits),
            strict=True,
        )
    )
    sound = edges == len(graph_arrays.indices) and id_bits in (32, 64)
    if not sound or not all(_inside(*place, about["bytes"]) for place in places):
        raise _unsound(pages, about, "out-edges", graph_arrays)
    return CscArrays(*(_mapped(pages, about, *place) for place in places))


def _checksums(pages: MappedFile, sections: Sequence[str]) -> list[int]:
    """Returns the header's checksums of sections, by name; 0 for a section that is missing."""
    found = {one["name"]: one["checksum"] for one in pages.header["sections"]}
    return [found.get(name, 0) for name in sections]


def _inside(offset: int, length: int, bits: int, size: int) -> bool:
    """True if an array lies in a section of ``size`` bytes, behind the head of the section."""
    return 8 * _WORDS <= offset <= size - length * bits // 8 and offset % _ALIGNMENT == 0


def _mapped(
    pages: MappedFile, section: dict[str, Any], offset: int, length: int, bits: int
) -> Array:
    """The array that begins so many bytes from the start of a section."""
    return Array._from_address(
        pages.address + section["offset"] + offset, length, bits, pages, readonly=True
    )


def _unsound(
    pages: MappedFile, section: dict[str, Any], what: str, graph_arrays: CscArrays
) -> ValueError:
    where = f"{pages.path}: section {section['name']!r}"
    expected = f"{what} for the {len(graph_arrays.indices)} edges of the file"
    return ValueError(f"{where}: expected {expected}, got others")


def _words(pages: MappedFile, section: dict[str, Any]) -> list[int]:
    """The head of a section; nothing where it is too short for one."""
    if section["bytes"] < 8 * _WORDS:
        return []
    return memory.read_int64(pages.address + section["offset"], _WORDS)
