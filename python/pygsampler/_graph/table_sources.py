"""Tables of any library, of files and of databases as Arrow has them."""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from pygsampler._engine.checks import describe
from pygsampler._engine.error_conversion import ErrorConversion

# The kinds that a schema may give to a column.
COLUMN_KINDS = ("number", "category", "text", "time", "embedding")

_MISSING_ARROW = "from_tables: expected pyarrow, found none; pip install pyarrow"
# Rows of a query that are fetched at a time.
_FETCHED = 1 << 14

# Stores the Arrow tables of a stream, which can be read once, as a dataset; errors begin with the
# text.
Store = Callable[[Iterable[Any], str], Any]
# Notes that so many rows were read.
Advance = Callable[[int], object]


class TableSchema(NamedTuple):
    """A table's columns by their roles.

    ``links`` names for each foreign key the table whose key it has. ``columns`` are the columns
    that the graph keeps, None for all numbers and categories; ``kinds`` are theirs where
    the schema says them, of ``COLUMN_KINDS``.
    """

    key: str | None = None
    links: Mapping[str, str] = {}
    time: str | None = None
    columns: tuple[str, ...] | None = None
    kinds: Mapping[str, str] = {}

    @property
    def named(self) -> list[str]:
        """All columns that it names, each once."""
        found = [self.key, *self.links, self.time, *(self.columns or ())]
        return list(dict.fromkeys(name for name in found if name is not None))

    def document(self) -> dict[str, Any]:
        """The schema as a mapping, without what is not set."""
        fields = {"key": self.key, "links": dict(self.links), "time": self.time}
        named = dict(self.kinds) or list(self.columns or ())
        columns = {} if self.columns is None else {"columns": named}
        return {name: value for name, value in fields.items() if value} | columns


def open_tables(tables: Any, store: Store | None = None) -> dict[str, Any]:
    """Returns tables of Arrow and datasets of files, by name.

    Streams, such as the rows of a query, are read into tables, or stored by ``store``.
    """
    if not isinstance(tables, Mapping) or not tables:
        raise TypeError(f"tables: expected a mapping of names to tables, got {describe(tables)}")
    for name in tables:
        if not isinstance(name, str) or not name:
            raise TypeError(f"tables: expected names of type str, got {describe(name)}")
    sources = {name: _opened(source, f"tables[{name!r}]", store) for name, source in tables.items()}
    for name, source in sources.items():
        twice = [column for column, count in Counter(source.schema.names).items() if count > 1]
        if twice:
            raise ValueError(
                f"tables[{name!r}]: expected columns of different names, got {listed(twice)} twice"
            )
    return sources


def _opened(source: Any, where: str, store: Store | None) -> Any:
    """Returns a table of Arrow, or a dataset of files, of which columns are read when needed."""
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
    except ImportError:
        raise ImportError(_MISSING_ARROW) from None
    if isinstance(source, (pa.Table, ds.Dataset)):
        return source
    if isinstance(source, (str, os.PathLike)):
        return file_dataset(os.fsdecode(source), where)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return _queried(*source, where, store)
    if isinstance(source, Mapping):
        return _table(source.items(), where)
    if hasattr(source, "iloc") and getattr(source, "ndim", 0) == 2:
        # Keys are often the index.
        index = [name for name in source.index.names if name not in (None, *source.columns)]
        levels = ((name, source.index.get_level_values(name)) for name in index)
        return _table([*levels, *source.items()], where)
    if type(source).__module__.partition(".")[0] == "polars" and hasattr(source, "lazy"):
        if store is not None and hasattr(source, "collect_batches"):
            return store(_frames_of_polars(source, where), where)
        with errors_at(where):
            frame = source.lazy().collect()
        return _of_polars(frame, where)
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    exports = ("to_arrow", "to_arrow_table", "arrow")
    made = next((m for m in (getattr(source, name, None) for name in exports) if callable(m)), None)
    with errors_at(where):
        if store is not None and hasattr(source, "__arrow_c_stream__"):
            source = pa.RecordBatchReader.from_stream(source)
        elif made is not None:
            source = made()
        if isinstance(source, pa.RecordBatchReader):
            if store is not None:
                return store(chain([source.schema.empty_table()], map(_one_batch, source)), where)
            return source.read_all()
        if hasattr(source, "__arrow_c_stream__"):
            return pa.table(source)
    raise TypeError(
        f"{where}: expected a table of pandas, Arrow or polars, a mapping of columns, a path, or "
        f"(connection, query), got {describe(source)}"
    )


def _of_polars(frame: Any, where: str) -> Any:
    return _table(((column.name, column) for column in frame.get_columns()), where)


def _frames_of_polars(source: Any, where: str) -> Iterator[Any]:
    """The rows of a lazy frame as tables, of which the first is empty."""
    with errors_at(where):
        frames = chain([source.head(0).collect()], source.collect_batches(maintain_order=True))
    while True:
        with errors_at(where):
            frame = next(frames, None)
        if frame is None:
            return
        yield _of_polars(frame, where)


def _one_batch(batch: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([batch])


def _table(columns: Iterable[tuple[Any, Any]], where: str) -> Any:
    import pyarrow as pa

    found = [(str(name), _column(values, f"{where}: {name}")) for name, values in columns]
    with errors_at(where):
        return pa.table([values for _, values in found], names=[name for name, _ in found])


def errors_at(where: str) -> ErrorConversion:
    """Errors of other libraries, such as those of a database, as a ValueError with the table."""

    def convert(error: Exception) -> Exception | None:
        if isinstance(error, MemoryError) or type(error) is RuntimeError:
            # The latter is Ctrl-C in a query of DuckDB.
            return None
        return ValueError(f"{where}: {error}")

    return ErrorConversion(convert, chained=True)


def file_dataset(path: str, where: str) -> Any:
    """The rows of a file, of a folder's files, or of those of a pattern, in order of names.

    Its columns are those of all files. Folders that are called ``year=2024`` make one, too.
    """
    import pyarrow as pa
    import pyarrow.csv as csv
    import pyarrow.dataset as ds

    found = [path]
    if glob.has_magic(path) and not os.path.exists(path):
        found = glob.glob(path, recursive=True)
    base = os.path.abspath(path)
    while not os.path.isdir(base):
        base = os.path.dirname(base)
    files = sorted({os.path.abspath(file) for each in found for file in _files(each)})
    if not files or not os.path.exists(files[0]):
        raise FileNotFoundError(
            f"{where}: expected a file, a folder or a pattern of files, got {path!r}, which has "
            "none"
        )
    suffixes = {os.path.splitext(each)[1].lower() for each in files}
    # Text may have several lines.
    lines = ds.CsvFileFormat(parse_options=csv.ParseOptions(newlines_in_values=True))
    kinds = {".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "feather"}
    kinds |= {".csv": lines}
    if len(suffixes) > 1 or not suffixes <= set(kinds):
        raise ValueError(
            f"{where}: expected files of one of {listed(kinds)}, got "
            f"{listed(each or 'no suffix' for each in sorted(suffixes))}"
        )
    read: dict[str, Any] = {"format": kinds[suffixes.pop()], "partition_base_dir": base}
    with errors_at(where):
        try:
            first = ds.dataset(files, **read, partitioning="hive")
            read["partitioning"] = "hive"
        except pa.ArrowTypeError:
            # The files have the column of the folders' names too, of another type.
            first = ds.dataset(files, **read)
        if len(files) == 1:
            return first
        own = [fragment.physical_schema for fragment in first.get_fragments()]
        every = pa.unify_schemas([first.schema, *own], promote_options="permissive")
        return ds.dataset(files, every, **read)


def _files(path: str) -> list[str]:
    """The path of a file, or those of a folder, without what is hidden in it."""
    if not os.path.isdir(path):
        return [path]
    found = []
    for folder, folders, names in os.walk(path, followlinks=True):
        folders[:] = [name for name in folders if _is_shown(name)]
        found += [os.path.join(folder, name) for name in names if _is_shown(name)]
    return found


def _is_shown(name: str) -> bool:
    return not name.startswith((".", "_"))


def _queried(connection: Any, query: str, where: str, store: Store | None) -> Any:
    """The rows of a query, of a connection of DuckDB, SQLite or another of Python's DB-API."""
    of_duckdb = hasattr(connection, "sql")
    if not of_duckdb and not hasattr(connection, "cursor"):
        raise TypeError(f"{where}: expected a connection, got {describe(connection)}")
    with errors_at(where):
        if of_duckdb:
            found = connection.sql(query)
        else:
            found = connection.cursor()
            found.execute(query)
            names = [about[0] for about in found.description or ()]
    if of_duckdb and found is not None:
        return _opened(found, where, store)
    if of_duckdb or not names:
        raise ValueError(f"{where}: expected a query with columns, got {describe(query)}")
    if store is None:
        with errors_at(where):
            rows = found.fetchall()
        return _table_of_rows(names, rows, where)
    return store(_fetched(found, names, where), where)


def _fetched(cursor: Any, names: list[str], where: str) -> Iterator[Any]:
    """The rows of a query as tables, of which the first may be empty."""
    rows: list[Any] = []
    first = True
    while first or rows:
        with errors_at(where):
            rows = cursor.fetchmany(_FETCHED)
        if first or rows:
            yield _table_of_rows(names, rows, where)
        first = False


def _table_of_rows(names: list[str], fetched: list[Any], where: str) -> Any:
    rows = [row.values() if isinstance(row, Mapping) else row for row in fetched]
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return _table(zip(names, map(list, columns), strict=True), where)


def _column(values: Any, where: str) -> Any:
    """A column as Arrow has it, and NaN as missing; UUIDs as their text."""
    import pyarrow as pa

    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu().numpy()
        if type(values).__module__.partition(".")[0] == "polars":
            # Arrow would get the addresses of objects.
            values = values.to_list() if str(values.dtype) == "Object" else values.to_arrow()
        if getattr(values, "ndim", 1) == 2:
            return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
        return _values(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise mixed_types(where, error) from None


def mixed_types(where: str, error: Exception) -> TypeError:
    return TypeError(
        f"{where}: expected values of one type of Arrow's, got {error}; convert the column, or "
        "leave it out of the table"
    )


def _values(values: Any) -> Any:
    import numpy as np
    import pyarrow as pa

    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError):
        items = list(values)
        first = next((item for item in items if item is not None), None)
        if isinstance(first, np.generic):
            found = np.array(items, "datetime64" if isinstance(first, np.datetime64) else None)
            if found.dtype.kind == "M" and np.datetime_data(found.dtype)[0] in "YMWhm":
                # Arrow's units are days, seconds and less.
                found = found.astype("datetime64[s]")
            return pa.array(found, from_pandas=True)
        if type(first).__module__ != "uuid":
            raise
        return pa.array([None if item is None else str(item) for item in items])


def column_types(source: Any) -> dict[str, Any]:
    """The columns of a table and their types."""
    return {field.name: field.type for field in source.schema}


def wanted_columns(source: Any, schema: TableSchema) -> list[str]:
    """The columns that the schema names, or with all default ones, too; one at least."""
    import pyarrow as pa

    types = column_types(source)
    wanted = schema.named
    if schema.columns is None:
        others = {c: kind for c, kind in types.items() if c not in wanted}
        wanted += [
            c for c, kind in others.items() if is_number(kind) or pa.types.is_dictionary(kind)
        ]
    # Its rows count, and Arrow loses their number with the last column.
    return wanted or list(types)[:1]


def read_table(
    source: Any, name: str, schema: TableSchema, advance: Advance = lambda count: None
) -> Any:
    """Returns a table with the columns that the schema names, or with all default ones, too."""
    import pyarrow as pa

    wanted = wanted_columns(source, schema)
    if isinstance(source, pa.Table):
        advance(source.num_rows)
        return source.select(wanted)
    with errors_at(f"tables[{name!r}]"):
        scanner = source.scanner(columns=wanted)
        batches = []
        for batch in scanner.to_batches():
            batches.append(batch)
            advance(batch.num_rows)
        table = pa.Table.from_batches(batches, scanner.projected_schema)
    return blank_to_missing(source, table, schema)


def blank_to_missing(source: Any, table: Any, schema: TableSchema) -> Any:
    """Returns rows of a source, in whose keys text that is empty is missing if it is of CSV."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    if isinstance(getattr(source, "format", None), ds.CsvFileFormat):
        for place, field in enumerate(table.schema):
            if pa.types.is_string(field.type) and field.name in (schema.key, *schema.links):
                # Text that is missing there is empty. Arrow 17 is wrong about slices in if_else.
                missing = pa.scalar(None, field.type)
                chunks = [
                    pc.replace_with_mask(chunk, pc.equal(chunk, ""), missing)
                    for chunk in table[place].chunks
                ]
                known = pa.chunked_array(chunks, field.type)
                table = table.set_column(place, field.name, known)
    return table


def plain_column(column: Any) -> Any:
    """A column of one piece, without dictionaries and extensions of Arrow."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    views = getattr(pa.types, "is_string_view", lambda _: False)
    if pa.types.is_string(kind) or views(kind):
        kind = pa.large_string()
    elif pa.types.is_binary(kind):
        kind = pa.large_binary()
    elif pa.types.is_list(kind):
        kind = pa.large_list(kind.value_type)
    if kind != column.type:
        # Before pieces become one: that may be more than the other types have room for.
        column = column.cast(kind)
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks > 1:
            column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    return column.storage if isinstance(column, pa.ExtensionArray) else column


def text_buffers(column: Any) -> tuple[Any, Any]:
    """Returns where each text begins, from 0, and where the last ends, and all texts as bytes.

    The column is of large strings or large binary; both arrays are NumPy's, the latter its own.
    """
    import numpy as np

    _, starts, data = column.buffers()
    if not len(column):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    places = np.frombuffer(starts, np.int64)[column.offset : column.offset + len(column) + 1]
    return places - places[0], np.frombuffer(data or b"", np.uint8)[places[0] : places[-1]]


def is_number(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return is_number(kind.value_type)
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def is_date(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))
