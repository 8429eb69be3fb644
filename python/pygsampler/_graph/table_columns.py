"""The columns of a table by their kinds, as a graph keeps them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import accumulate, pairwise
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from pygsampler._arrays.array import Array
from pygsampler._arrays.interning import BYTES, IDS, OFFSETS
from pygsampler._engine.error_conversion import ErrorConversion
from pygsampler._graph import node_names
from pygsampler._graph.table_keys import key_labels
from pygsampler._graph.table_sources import (
    COLUMN_KINDS,
    is_date,
    is_number,
    plain_column,
    text_buffers,
)

__all__ = [
    "COLUMNS",
    "NO_TIME",
    "VALID",
    "Categories",
    "Column",
    "cast_null",
    "category_codes",
    "column_arrays",
    "column_kind",
    "column_parts",
    "columns_of",
    "encode_categories",
    "is_of_columns",
    "packed_marks",
    "text_column",
    "valid_marks",
]

ColumnKind = Literal["number", "category", "text", "time", "embedding"]

# The array that lists the columns of a node type; those of the i-th begin with COLUMNS.i.
COLUMNS = "columns"
# The marks of the texts that are there.
VALID = "valid"
# The time that a row lacks, which NumPy calls NaT.
NO_TIME = -(2**63)
# Values at least before those that are there twice are looked for.
_PENDING = 1 << 12


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
    codes = column if isinstance(column, pa.DictionaryArray) else _single_array(column)
    indices = codes.indices.cast(pa.int32()).fill_null(-1)
    return indices.to_numpy(zero_copy_only=False)


def _single_array(column: Any) -> Any:
    """Returns the chunks of a column as one array."""
    import pyarrow as pa

    found = column.combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        return found.chunk(0) if found.num_chunks else pa.array([], column.type)
    return found


def _dictionary(column: Any, where: str) -> Any:
    """A column as one array of a dictionary, whose categories differ from each other."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        # Arrow refuses missing categories, and more of them than the type of the codes has.
        with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):
            codes = _single_array(column.unify_dictionaries())
            names = codes.dictionary
            if not names.null_count and pc.count_distinct(names).as_py() == len(names):
                return pa.DictionaryArray.from_arrays(codes.indices.cast(pa.int32()), names)
    categories = Categories(where)
    categories.add_names(column)
    return categories.encode(column) if categories.are_names else _encoded(column, where)


def _encoded(column: Any, where: str) -> Any:
    """A column as one array of a dictionary, whose categories have the order of the rows."""
    column = _countable(column, where)
    with _errors_of_type(column.type, where):
        return column.dictionary_encode()


def _countable(column: Any, where: str) -> Any:
    """A column of one piece without dictionaries, with integers instead of floats."""
    import pyarrow as pa
    import pyarrow.compute as pc

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
    return column


def _errors_of_type(kind: Any, where: str) -> ErrorConversion:
    """Raises TypeError where Arrow does not compare values of a type."""
    import pyarrow as pa

    def convert(error: Exception) -> Exception | None:
        if not isinstance(error, (pa.ArrowNotImplementedError, AttributeError)):
            return None
        return TypeError(
            f"{where}: expected categories, which are text, integers or booleans, got {kind}"
        )

    return ErrorConversion(convert)


class Categories:
    """The categories of a column, whose rows are added piece by piece.

    Categories are those of all dictionaries, in their order, also without rows. They are the values
    in the order of the rows for a column without dictionaries, and where one of these has a missing
    category.
    """

    def __init__(self, where: str) -> None:
        self._where = where
        self._names, self._values = _Distinct(), _Distinct()
        self._has_missing = False
        self._last: Any = None
        self._array: Any = None

    @property
    def are_names(self) -> bool:
        """True if the categories are those of dictionaries."""
        return self._last is not None and not self._has_missing

    def add_names(self, column: Any) -> None:
        """Adds the dictionaries of a column, if it has some."""
        import pyarrow as pa

        if not pa.types.is_dictionary(column.type):
            return
        for names in _dictionaries(column) or [pa.array([], column.type.value_type)]:
            if self._last is not None and names.equals(self._last):
                continue
            self._last = names
            with _errors_of_type(names.type, self._where):
                self._names.add(plain_column(names))
            self._has_missing |= names.null_count > 0

    def add(self, column: Any) -> None:
        """Adds rows of the column."""
        import pyarrow as pa

        column = cast_null(column, "category")
        self.add_names(column)
        pieces = [column]
        if pa.types.is_dictionary(column.type):
            none = pa.array([], column.type.value_type)
            pieces = [chunk.unique() for chunk in column.chunks] or [none]
        for piece in pieces:
            values = plain_column(piece)
            with _errors_of_type(values.type, self._where):
                self._values.add(values)

    def array(self) -> Any:
        """Returns the categories as an Arrow array, after the last rows were added."""
        if self._array is None:
            if self.are_names:
                self._array = self._names.array()
            else:
                self._array = _encoded(self._values.array(), self._where).dictionary
        return self._array

    def encode(self, column: Any) -> Any:
        """Returns rows of the column as one array whose dictionary is ``array``."""
        import pyarrow as pa

        names = self.array()
        column = cast_null(column, "category")
        if not self.are_names:
            codes = _codes([_countable(column, self._where)], names)
        else:
            codes = [chunk.indices.cast(pa.int32()) for chunk in column.chunks]
            own = [plain_column(each) for each in _dictionaries(column)]
            if not all(each.equals(names) for each in own):
                new = _codes(own, names)
                codes = [to.take(old) for to, old in zip(new, codes, strict=True)]
        return pa.DictionaryArray.from_arrays(
            _single_array(pa.chunked_array(codes, pa.int32())), names
        )


def _dictionaries(column: Any) -> list[Any]:
    return [chunk.dictionary for chunk in column.chunks]


def _codes(pieces: list[Any], names: Any) -> list[Any]:
    """Returns the places of the values of arrays in ``names``, which has all of them, int32."""
    import pyarrow as pa

    codes = pa.concat_arrays([names, *pieces]).dictionary_encode().indices.cast(pa.int32())
    ends = list(accumulate(map(len, pieces), initial=len(names)))
    return [codes[start:stop] for start, stop in pairwise(ends)]


class _Distinct:
    """The different values of Arrow arrays of a type, in the order in which they come."""

    def __init__(self) -> None:
        self._pieces: list[Any] = []
        # Values behind the first piece.
        self._more = 0

    def add(self, values: Any) -> None:
        values = values.unique()
        self._more += len(values) if self._pieces else 0
        self._pieces.append(values)
        # Seldom, since all that are there are hashed again.
        if self._more > max(len(self._pieces[0]), _PENDING):
            self.array()

    def array(self) -> Any:
        import pyarrow as pa

        if len(self._pieces) > 1:
            self._pieces = [pa.chunked_array(self._pieces).unique()]
            self._more = 0
        return self._pieces[0]


def column_arrays(
    kinds: Mapping[str, ColumnKind], values: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the arrays of a graph file that say what columns a table has, by their names.

    ``kinds`` has those of the columns in their order, and ``values`` the arrays of the columns of
    categories and text, as ``column_parts`` has them. Empty without columns.
    """
    if not kinds:
        return {}
    import numpy as np

    about = [{"name": name, "kind": kind} for name, kind in kinds.items()]
    found: dict[str, Any] = {COLUMNS: np.frombuffer(json.dumps(about).encode(), np.uint8)}
    for place, name in enumerate(kinds):
        own = values.get(name, {})
        found |= {f"{COLUMNS}.{place}.{part}": array for part, array in own.items()}
    return found


def column_parts(
    table: Any, where: str, kinds: Mapping[str, ColumnKind]
) -> dict[str, dict[str, Any]]:
    """Returns the arrays of a table's columns of categories and text, by column and part.

    ``table`` has its categories as ``encode_categories`` returns them.
    """
    found = {}
    for name, kind in kinds.items():
        if kind == "category":
            found[name] = key_labels(table[name].chunk(0).dictionary)
        elif kind == "text":
            text = text_column(table[name], f"{where}: {name}")
            found[name] = dict(zip((OFFSETS, BYTES), text_buffers(text), strict=True))
            if text.null_count:
                found[name][VALID] = packed_marks(valid_marks(text))
    return found


def text_column(column: Any, where: str) -> Any:
    """Returns a column of text as one array of large strings; TypeError for another column."""
    import pyarrow as pa

    column = plain_column(cast_null(column, "text"))
    if not pa.types.is_large_string(column.type):
        raise TypeError(f"{where}: expected text, got {column.type}")
    return column


def valid_marks(column: Any) -> Any:
    """Returns which rows of an array are there, bool."""
    return column.is_valid().to_numpy(zero_copy_only=False)


def packed_marks(valid: Any) -> Any:
    """Returns marks as bits, eight in a byte, the first in the lowest."""
    import numpy as np

    return np.packbits(valid, bitorder="little")


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
            categories = parts[IDS] if names is None else names
            yield name, Column(kind, ndata[name], tuple(categories.tolist()))
        else:
            yield name, Column(kind, ndata[name])


def _texts(arrays: Mapping[str, Array]) -> Any:
    """Returns text in the memory of its arrays, whose offsets are compared with it."""
    import numpy as np
    import pyarrow as pa

    starts, text = arrays[OFFSETS].numpy(), arrays[BYTES].numpy()
    if starts[0] or starts[-1] != len(text) or (np.diff(starts) < 0).any():
        raise ValueError("offsets that are not those of the text")
    count, valid = len(starts) - 1, arrays.get(VALID)
    if valid is not None and 8 * len(valid) < count:
        raise ValueError("too few marks of the texts that are there")
    buffers = [
        None if valid is None else pa.py_buffer(valid.numpy()),
        pa.py_buffer(starts),
        pa.py_buffer(text),
    ]
    return pa.Array.from_buffers(pa.large_string(), count, buffers)
