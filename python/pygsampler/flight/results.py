"""Results of samplers as Arrow record batches, and back.

A result is a schema and record batches of one row. Each is a part of the result: the batch, a
block, nodes of a type, walks. Arrays are lists, so that those of a part may differ in length; they
are views of the result's memory where it is, and one copy where it arrives. docs/guide/flight.md
has the format for clients in other languages.
"""

from __future__ import annotations

import ctypes
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow

from pygsampler._batch import buffer
from pygsampler._batch import layout as at
from pygsampler._batch.edge_values import EdgeValueName
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._batch.subgraph import Subgraph
from pygsampler._engine import memory as memories
from pygsampler._engine.array_descriptor import ArrayDescriptor
from pygsampler._engine.checks import describe
from pygsampler._engine.memory import Memory
from pygsampler._graph.schema import Schema, relation_name
from pygsampler._sampling.extensions import FAMILIES
from pygsampler.walks.result import Walks
from pygsampler.walks.visits import Visits

VERSION = 2
# The key of the schema's metadata that describes the parts.
KEY = b"pygsampler"

_WIDTHS = {"float32": 32, "int32": 32}
_EXTRAS = (
    ArrayDescriptor("", "float32", at.EXTRA_LENGTH, 0, at.EXTRA_OFFSET),
    ArrayDescriptor("", at.ID_BITS, at.EXTRA_LENGTH, 0, at.EXTRA_OFFSET),
)
_TOP_ROWS = tuple(row for row in at.WALK_ROWS if row.name in ("top_nodes", "visits"))
_ABOUT = {
    "part": pyarrow.string(),
    "number": pyarrow.int32(),
    "type": pyarrow.string(),
    "num_src": pyarrow.int64(),
    "num_dst": pyarrow.int64(),
    "first_dst": pyarrow.int64(),
}


class _Values(NamedTuple):
    """An array of a part: where the word of its offset is, how long it is, and of what."""

    name: str
    place: int
    length: int
    dtype: str


class _RecordPart(NamedTuple):
    """A record batch to be: what is said of it, and its arrays."""

    about: Mapping[str, Any]
    values: Sequence[_Values]


class _ResultKind(NamedTuple):
    """A kind of result."""

    made: Any
    magic: int
    # The attributes that it has besides its words, by name.
    beside: tuple[str, ...]


_KINDS = {
    "blocks": _ResultKind(MiniBatch, at.MAGIC, ()),
    "subgraph": _ResultKind(Subgraph, at.MAGIC, ()),
    "typed": _ResultKind(MiniBatch, at.MAGIC, ()),
    "walks": _ResultKind(Walks, at.WALK_MAGIC, ("seed", "node_types", "edge_types")),
    "visits": _ResultKind(Visits, at.WALK_MAGIC, ()),
}
_REGISTERED = {family.result_kind: family.result for family in FAMILIES.values()}
_KINDS |= {
    kind: _ResultKind(result, result._signature, ("seed",)) for kind, result in _REGISTERED.items()
}
_NAMES = {kind.made: name for name, kind in _KINDS.items() if name != "typed"}


class SentResult:
    """A result of the engine's, on the CPU, as it is sent."""

    def __init__(self, result: Any) -> None:
        """Raises TypeError for a result that cannot be sent."""
        kind = _NAMES.get(type(result))
        if kind is None or result.form != "array":
            raise TypeError(
                f"sampler: expected one whose results are arrays, got {describe(result)}"
            )
        if kind == "blocks" and not result.is_homogeneous:
            kind = "typed"
        self._owner = result
        self._data, self._words, more = _opened(result)
        self._parts = _record_parts(kind, self._words, **more)
        about = {
            "version": VERSION,
            "kind": kind,
            "epoch": result.epoch,
            "batch": result.batch,
            **{name: getattr(result, name) for name in _KINDS[kind].beside},
            **more,
            "words": self._words,
        }
        types = {**_ABOUT, **_list_types(self._parts)}
        self.schema = pyarrow.schema(list(types.items()), {KEY: json.dumps(about).encode()})

    @property
    def num_bytes(self) -> int:
        """The number of bytes of the arrays."""
        return sum(
            values.length * _width(values.dtype) for part in self._parts for values in part.values
        )

    def batches(self) -> Iterator[Any]:
        """The record batches, which share the result's memory."""
        for part in self._parts:
            arrays = {values.name: self._list(values) for values in part.values}
            columns = []
            for field in self.schema:
                made = arrays.get(field.name)
                if made is None:
                    made = pyarrow.array([part.about.get(field.name)], field.type)
                # Relations may have edge ids of different widths, so they are cast.
                columns.append(made if made.type == field.type else made.cast(field.type))
            yield pyarrow.RecordBatch.from_arrays(columns, schema=self.schema)

    def _list(self, values: _Values) -> Any:
        kind = _type(values.dtype)
        size = values.length * _width(values.dtype)
        if size:
            held = pyarrow.foreign_buffer(self._data + self._words[values.place], size, self._owner)
        else:
            held = pyarrow.py_buffer(b"")
        array = pyarrow.Array.from_buffers(kind, values.length, [None, held])
        return pyarrow.ListArray.from_arrays(pyarrow.array([0, values.length], "int32"), array)


def decode_result(schema: Any, batches: Iterable[Any]) -> Any:
    """The result that a schema and record batches are of; ValueError where they are of none."""
    about = _read_metadata(schema)
    kind, words = about["kind"], about["words"]
    more: dict[str, Any]
    more = {name: about[name] for name in ("names", "node_types", "edge_types") if name in about}
    _check_words(kind, words, more)
    try:
        parts = _record_parts(kind, words, **more)
    except (IndexError, KeyError, TypeError, ValueError):
        raise _damaged("words", f"those of {kind}", f"{len(words)} words") from None
    header = -(-8 * len(words) // at.ALIGNMENT) * at.ALIGNMENT
    words[at.SIZE] = header + sum(
        _aligned(values.length * _width(values.dtype)) for part in parts for values in part.values
    )
    memory = memories.new("MemoryNew", words[at.SIZE])
    end, given = header, iter(batches)
    for number, part in enumerate(parts):
        batch = next(given, None)
        if batch is None:
            raise _damaged("result", f"{len(parts)} record batches", str(number))
        for values in part.values:
            _copy(batch, values, memory.data + end)
            words[values.place] = end
            end += _aligned(values.length * _width(values.dtype))
    if next(given, None) is not None:
        raise _damaged("result", f"{len(parts)} record batches", "more")
    buffer.write_words(words, memory.data)
    # The words of a result on the CPU stand where it begins.
    memory.header = memory.data
    return _build_result(kind, memory, about)


def _opened(result: Any) -> tuple[int, list[int], dict[str, Any]]:
    """Returns where a result begins, the words that describe it, and its arrays' names."""
    if isinstance(result, MiniBatch):
        source, schema = result._source, result._schema
        if schema is None:
            names: dict[str, Any] = {"names": result._names}
        else:
            names = {"node_types": schema.node_types, "edge_types": schema.edge_types}
        return source._data, list(source._words), names
    if isinstance(result, Visits):
        memory = result._memory
        return memory.data, memories.read_int64(memory.header, at.WALK_WORDS), {}
    return result._address, list(result._words), {}


def _build_result(kind: str, memory: Memory, metadata: dict[str, Any]) -> Any:
    numbers = metadata["epoch"], metadata["batch"]
    if kind in ("blocks", "subgraph"):
        return _KINDS[kind].made._from_memory(memory, *numbers, tuple(metadata["names"]))
    if kind == "typed":
        schema = Schema(tuple(metadata["node_types"]), tuple(map(tuple, metadata["edge_types"])))
        return MiniBatch._from_memory(memory, *numbers, schema=schema)
    if kind == "visits":
        return Visits._from_memory(memory, *numbers)
    made = _KINDS[kind].made._from_memory(memory, *numbers, metadata["seed"])
    if kind == "walks" and metadata["node_types"] is not None:
        made.node_types = tuple(metadata["node_types"])
        made.edge_types = tuple(map(tuple, metadata["edge_types"]))
    return made


def _read_metadata(schema: Any) -> dict[str, Any]:
    """Returns the metadata, with all that they have to have."""
    try:
        about = json.loads((schema.metadata or {})[KEY])
        if about["version"] != VERSION:
            raise _damaged("result", f"version {VERSION}", describe(about["version"]))
        kind = _KINDS[about["kind"]]
        needed = (*kind.beside, *_NEEDED.get(about["kind"], ()))
        ok = all(type(about[name]) is int for name in ("epoch", "batch"))
        ok = ok and all(name in about for name in needed)
        ok = ok and all(type(word) is int and -(2**63) <= word < 2**63 for word in about["words"])
        if "names" in about:
            about["names"] = [_name(each) for each in about["names"]]
    except (KeyError, TypeError, ValueError) as error:
        if str(error).startswith("result:"):
            raise
        ok = False
    if not ok:
        raise _damaged("result", "metadata of a server of samples", "others")
    return dict(about)


def _name(value: Any) -> str | EdgeValueName:
    """Returns the name of an array; for arrays of a block the block's number comes first."""
    if isinstance(value, str):
        return value
    block, name = value
    if type(block) is not int or block < 0 or not isinstance(name, str):
        raise ValueError("name")
    return EdgeValueName(block, name)


_NEEDED = {
    "blocks": ("names",),
    "subgraph": ("names",),
    "typed": ("node_types", "edge_types"),
}


def _check_words(kind: str, words: list[int], more: dict[str, Any]) -> None:
    """Words come from elsewhere: their number has to be that which they say."""
    count = len(words)
    expected = at.WALK_WORDS
    if count < at.FIXED_WORDS or words[at.SIGNATURE] != _KINDS[kind].magic:
        expected = -1
    elif kind in ("blocks", "subgraph"):
        expected = _num_words(words, 1, 1, len(more["names"]))
    elif kind == "typed":
        expected = _num_words(words, len(more["node_types"]), len(more["edge_types"]), 0)
    elif kind in _REGISTERED:
        expected = _REGISTERED[kind]._num_words
    if count != expected:
        raise _damaged("words", f"those of {kind}", f"{count} words")


def _num_words(words: Sequence[int], types: int, relations: int, extras: int) -> int:
    """Returns how many words a batch of so many types has, or -1 if its words say others."""
    said = words[at.NUM_TYPES : at.NUM_EXTRAS + 1]
    # Without a type their number would not depend on the hops, of which there may be any number.
    if types < 1 or list(said) != [types, relations, extras]:
        return -1
    return at.num_words(words[at.NUM_HOPS], types, relations, extras)


def _record_parts(
    kind: str,
    words: Sequence[int],
    names: Sequence[str | EdgeValueName] = (),
    node_types: Sequence[str] = (),
    edge_types: Sequence[Any] = (),
) -> list[_RecordPart]:
    """The parts of a result, in the order in which they are sent."""
    if kind in ("blocks", "subgraph"):
        hops = words[at.NUM_HOPS]
        batch = _values(at.ROWS, words, 0, words)
        widths = [0, words[at.ID_BITS], words[at.edge_id_bits_at(hops)]]
        of_edges: list[list[_Values]] = [[] for _ in range(hops)]
        for i, name in enumerate(names):
            start = at.num_words(hops) + at.EXTRA_WORDS * i
            row = _EXTRAS[words[start + at.EXTRA_KIND]]
            if isinstance(name, EdgeValueName):
                if name.block >= hops:
                    raise _damaged("names", f"those of {hops} blocks", str(name.block))
                row = row._replace(name=f"edge_data/{name.name}")
                of_edges[name.block] += _values([row], words, start, words)
            else:
                row = row._replace(name=f"extra/{name}")
                batch += _values([row], words, start, words)
        parts = [_RecordPart({"part": "batch"}, batch)]
        for i, more in enumerate(of_edges):
            start = at.FIRST_BLOCK + at.WORDS * i
            parts.append(_block({"number": i}, words, start, widths, more))
        return parts
    if kind == "typed":
        types, relations, hops = len(node_types), len(edge_types), words[at.NUM_HOPS]
        first, bits = at.first_block(types), at.edge_id_bits_at(hops, types, relations)
        parts = []
        for i, name in enumerate(node_types):
            start = at.FIXED_WORDS + at.TYPE_WORDS * i
            about = {"part": "nodes", "type": name}
            parts.append(_RecordPart(about, _values(at.TYPE_ROWS, words, start, words)))
        for hop in range(hops):
            for i, edge_type in enumerate(edge_types):
                start = first + (hop * relations + i) * at.WORDS
                widths = [0, words[at.ID_BITS], words[bits + i]]
                of_type = {"number": hop, "type": relation_name(edge_type)}
                parts.append(_block(of_type, words, start, widths))
        return parts
    rows: Iterable[ArrayDescriptor] = _TOP_ROWS if kind == "visits" else at.WALK_ROWS
    if kind in _REGISTERED:
        rows = _REGISTERED[kind]._descriptors.values()
    return [_RecordPart({"part": kind}, _values(rows, words, 0, words))]


def _block(
    fields: Mapping[str, Any],
    words: Sequence[int],
    start: int,
    widths: Sequence[int],
    more: Sequence[_Values] = (),
) -> _RecordPart:
    counts = {
        "num_src": words[start + at.NUM_SRC],
        "num_dst": words[start + at.NUM_DST],
        "first_dst": words[start + at.FIRST_DST],
    }
    values = [*_values(at.BLOCK_ROWS, words, start, widths), *more]
    return _RecordPart({"part": "block", **fields, **counts}, values)


def _values(
    descriptors: Iterable[ArrayDescriptor], words: Sequence[int], start: int, widths: Sequence[int]
) -> list[_Values]:
    """The arrays that there are, of rows whose words begin at ``start``."""
    found = []
    for name, bits, length, more, offset in descriptors:
        if words[start + offset]:
            dtype = bits if isinstance(bits, str) else {32: "int32", 64: "int64"}[widths[bits]]
            found.append(_Values(name, start + offset, words[start + length] + more, dtype))
            if found[-1].length < 0:
                raise ValueError(name)
    return found


def _list_types(record_parts: Iterable[_RecordPart]) -> dict[str, Any]:
    """The type of each column of arrays: the widest that a part has of that name."""
    found: dict[str, str] = {}
    for part in record_parts:
        for values in part.values:
            if found.get(values.name) != "int64":
                found[values.name] = values.dtype
    return {name: pyarrow.list_(_type(dtype)) for name, dtype in found.items()}


def _copy(batch: Any, values: _Values, to: int) -> None:
    """Copies an array out of a record batch."""
    place = batch.schema.get_field_index(values.name)
    given = batch.column(place)[0].values if place >= 0 and batch.num_rows == 1 else None
    if given is None or len(given) != values.length or given.null_count:
        got = "none" if given is None else f"{len(given)}"
        raise _damaged(values.name, f"{values.length} values", got)
    kind = _type(values.dtype)
    if given.type != kind:
        if not pyarrow.types.is_int64(given.type) or values.dtype != "int32":
            raise _damaged(values.name, f"values of {kind}", str(given.type))
        given = given.cast(kind)
    width = _width(values.dtype)
    if values.length:
        ctypes.memmove(to, given.buffers()[1].address + given.offset * width, values.length * width)


def _type(dtype: str) -> Any:
    return getattr(pyarrow, dtype)()


def _width(dtype: str) -> int:
    return 8 if dtype == "int64" else _WIDTHS[dtype] // 8


def _aligned(size: int) -> int:
    return math.ceil(size / at.ALIGNMENT) * at.ALIGNMENT


def _damaged(where: str, expected: str, got: str) -> ValueError:
    return ValueError(
        f"{where}: expected {expected}, got {got}; are server and client of one version?"
    )
