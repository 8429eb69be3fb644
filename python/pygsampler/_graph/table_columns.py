"""The columns of a table by their kinds, as a graph keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pygsampler._arrays import interning
from pygsampler._arrays.array import Array
from pygsampler._graph import node_names
from pygsampler._graph.table_keys import key_labels
from pygsampler._graph.table_sources import COLUMN_KINDS, is_date, is_number, plain_column

__all__ = [
    "COLUMNS",
    "NO_TIME",
    "Column",
    "cast_null",
    "category_codes",
    "column_arrays",
    "column_kind",
    "columns_of",
    "encode_categories",
    "is_of_columns",
]

ColumnKind = Literal["number", "category", "text", "time", "embedding"]

# The array that lists the columns of a node type; those of the i-th begin with COLUMNS.i.
COLUMNS = "columns"
_VALID = "valid"
# The time that a row lacks, which NumPy calls NaT.
NO_TIME = -(2**63)


class Column(NamedTuple):
    """A column of a table whose rows are nodes.

    ``kind`` is one of these:

    - ``"number"``: ``values`` of any dtype of numbers, shape [N]. Missing ones are NaN.
    - ``"category"``: ``values`` are codes, int32, shape [N], places in ``categories``. Missing ones
      are -1.
    - ``"time"``: ``values`` are nanoseconds since 1970, int64, shape [N]. Missing ones are NaT,
      which is the smallest int64.
    - ``"embedding"``: ``values`` are rows of numbers, shape [N, ...]. None is missing.
    - ``"text"``: ``values`` are a ``pyarrow.LargeStringArray`` of N texts in the memory of the
      graph, or of its file. Missing ones are null.

    Values but those of text are arrays of ``ndata`` as well, by the column's name.
    """

    kind: ColumnKind
    values: Any
    categories: tuple[str, ...] | tuple[int, ...] | None = None

    @property
    def missing(self) -> Any:
        """Marks the rows without a value, a NumPy array of bool, shape [N]."""
        import numpy as np

        if self.kind == "text":
            return self.values.is_null().to_numpy(zero_copy_only=False)
        values = self.values.numpy()
        if self.kind == "category":
            return values < 0
        if self.kind == "time":
            return values == NO_TIME
        if self.kind == "embedding" or values.dtype.kind != "f":
            return np.zeros(len(values), bool)
        return np.isnan(values)


def column_kind(kind: Any) -> ColumnKind | None:
    """Returns the kind of a column by its type of Arrow; None for one that is left in its table."""
    import pyarrow as pa

    types = pa.types
    if types.is_dictionary(kind):
        return "category"
    if types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind):
        return "embedding"
    if is_date(kind):
        return "time"
    if is_number(kind):
        return "number"
    views = getattr(types, "is_string_view", lambda _: False)
    is_text = types.is_string(kind) or types.is_large_string(kind) or views(kind)
    return "text" if is_text else None


def encode_categories(table: Any, where: str, kinds: Mapping[str, ColumnKind]) -> Any:
    """Returns a table whose categories are dictionaries, each of one piece and without repetitions.

    Pieces of a table have the codes of the whole table once they are cut from its result.
    """
    import pyarrow as pa

    for place, name in enumerate(table.column_names):
        if kinds.get(name) == "category":
            column = _dictionary(cast_null(table[name], "category"), f"{where}: {name}")
            table = table.set_column(place, pa.field(name, column.type), column)
    return table


def cast_null(column: Any, kind: ColumnKind) -> Any:
    """Returns a column, with the type of its kind where all values are missing and it has none."""
    import pyarrow as pa

    if not pa.types.is_null(column.type):
        return column
    times, text = pa.timestamp("ns"), pa.large_string()
    types = {"number": pa.float64(), "category": text, "text": text, "time": times}
    return column.cast(types[kind])


def category_codes(column: Any, where: str) -> Any:
    """Returns the codes of categories, int32, -1 for missing ones: places in the dictionary."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = _dictionary(column, where)
    codes = column.combine_chunks()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.chunk(0) if codes.num_chunks else pa.array([], column.type)
    indices = codes.indices.cast(pa.int32()).fill_null(-1)
    return indices.to_numpy(zero_copy_only=False)


def _dictionary(column: Any, where: str) -> Any:
    """A column as one array of a dictionary, whose categories differ from each other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries().combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
        names = column.dictionary
        if not names.null_count and pc.count_distinct(names).as_py() == len(names):
            return pa.DictionaryArray.from_arrays(column.indices.cast(pa.int32()), names)
    column = plain_column(column)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        try:
            # Integers with missing ones are floats in pandas.
            column = column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise TypeError(
                f"{where}: expected categories, got numbers with fractions; round them, or call "
                'them "number"'
            ) from None
    try:
        return column.dictionary_encode()
    except (pa.ArrowNotImplementedError, AttributeError):
        raise TypeError(
            f"{where}: expected categories, which are text, integers or booleans, got {column.type}"
        ) from None


def column_arrays(table: Any, where: str, kinds: Mapping[str, ColumnKind]) -> dict[str, Any]:
    """Returns the arrays of a graph file that say what columns a table has, by their names.

    ``table`` has its categories as ``encode_categories`` returns them, and ``kinds`` those of the
    columns in their order. Empty without columns.
    """
    if not kinds:
        return {}
    import numpy as np

    about = [{"name": name, "kind": kind} for name, kind in kinds.items()]
    found: dict[str, Any] = {COLUMNS: np.frombuffer(json.dumps(about).encode(), np.uint8)}
    for place, (name, kind) in enumerate(kinds.items()):
        parts: Mapping[str, Any] = {}
        if kind == "category":
            parts = key_labels(table[name].chunk(0).dictionary)
        elif kind == "text":
            parts = _text_arrays(table[name], f"{where}: {name}")
        found |= {f"{COLUMNS}.{place}.{part}": values for part, values in parts.items()}
    return found


def _text_arrays(column: Any, where: str) -> dict[str, Any]:
    """Returns the offsets and bytes of a column of text, and which rows are there if some lack."""
    import numpy as np
    import pyarrow as pa

    column = plain_column(cast_null(column, "text"))
    if not pa.types.is_large_string(column.type):
        raise TypeError(f"{where}: expected text, got {column.type}")
    _, offsets, text = column.buffers()
    count = len(column)
    if offsets is None or not count:
        starts = np.zeros(count + 1, np.int64)
    else:
        starts = np.frombuffer(offsets, np.int64)[column.offset : column.offset + count + 1]
    known = b"" if text is None else text
    found = {
        interning.OFFSETS: starts - starts[0],
        interning.BYTES: np.frombuffer(known, np.uint8)[starts[0] : starts[-1]],
    }
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        found[_VALID] = np.packbits(valid, bitorder="little")
    return found


def is_of_columns(name: str) -> bool:
    """True for the name of an array of ``column_arrays``."""
    return name == COLUMNS or name.startswith(f"{COLUMNS}.")


def columns_of(
    ndata: Mapping[str, Array], arrays: Mapping[str, Array], kind: str
) -> Mapping[str, Column]:
    """Returns the columns of a node type by name, by its arrays and those of ``column_arrays``.

    ValueError for arrays that are none of ``column_arrays``, as in a damaged file.
    """
    if COLUMNS not in arrays:
        return MappingProxyType({})
    try:
        return MappingProxyType(dict(_columns(ndata, arrays)))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise ValueError(
            f"columns[{kind!r}]: expected the columns that Graph.from_tables wrote, got others: "
            f"{error}"
        ) from None


def _columns(
    ndata: Mapping[str, Array], arrays: Mapping[str, Array]
) -> Iterator[tuple[str, Column]]:
    for place, about in enumerate(json.loads(bytes(arrays[COLUMNS]._bytes()))):
        name, kind = about["name"], about["kind"]
        if kind not in COLUMN_KINDS:
            raise ValueError(f"kind {kind!r}")
        prefix = f"{COLUMNS}.{place}."
        parts = {
            part.removeprefix(prefix): values
            for part, values in arrays.items()
            if part.startswith(prefix)
        }
        if kind == "text":
            yield name, Column(kind, _texts(parts))
        elif kind == "category":
            names = node_names.names_of(parts)
            categories = parts[interning.IDS] if names is None else names
            yield name, Column(kind, ndata[name], tuple(categories.tolist()))
        else:
            yield name, Column(kind, ndata[name])


def _texts(arrays: Mapping[str, Array]) -> Any:
    """Returns text in the memory of its arrays, whose offsets are compared with it."""
    import numpy as np
    import pyarrow as pa

    starts, text = arrays[interning.OFFSETS].numpy(), arrays[interning.BYTES].numpy()
    if starts[0] or starts[-1] != len(text) or (np.diff(starts) < 0).any():
        raise ValueError("offsets that are not those of the text")
    count, valid = len(starts) - 1, arrays.get(_VALID)
    if valid is not None and 8 * len(valid) < count:
        raise ValueError("too few marks of the texts that are there")
    buffers = [
        None if valid is None else pa.py_buffer(valid.numpy()),
        pa.py_buffer(starts),
        pa.py_buffer(text),
    ]
    return pa.Array.from_buffers(pa.large_string(), count, buffers)
