"""Graphs from tables with keys: a node for each row, and edges along foreign keys."""

from __future__ import annotations

import datetime
import glob
import json
import logging
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.datetimes import as_numpy_dates
from pygsampler._arrays.interning import IDS, text_arrays
from pygsampler._engine.checks import describe
from pygsampler._graph.converters import HeteroParts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pygsampler._graph.schema import EdgeType

    Rows = NDArray[np.int64]

__all__ = ["TIME", "TableGraph", "TableSchema", "read_schema", "schema_document", "tables_to_graph"]

# The node array that has the times of a table's rows, whatever the column is called.
TIME = "time"
# Prefix of the relation that leads from a key to the rows that refer to it.
_REVERSE = "rev_"
_FIELDS = ("key", "links", "time", "columns")
_UNMATCHED = ("error", "drop")
# Values that an error shows.
_SHOWN = 3
_MISSING_ARROW = "from_tables: expected pyarrow, found none; pip install pyarrow"


class TableSchema(NamedTuple):
    """A table's columns by their roles.

    ``links`` names for each foreign key the table whose key it has. ``columns`` are the columns
    that become node arrays, None for all numbers.
    """

    key: str | None = None
    links: Mapping[str, str] = {}
    time: str | None = None
    columns: tuple[str, ...] | None = None

    @property
    def named(self) -> list[str]:
        """All columns that it names, each once."""
        found = [self.key, *self.links, self.time, *(self.columns or ())]
        return list(dict.fromkeys(name for name in found if name is not None))

    def document(self) -> dict[str, Any]:
        """The schema as a mapping, without what is not set."""
        fields = {"key": self.key, "links": dict(self.links), "time": self.time}
        columns = {} if self.columns is None else {"columns": list(self.columns)}
        return {name: value for name, value in fields.items() if value} | columns


class TableGraph(NamedTuple):
    """The parts of a heterogeneous graph, and the labels of nodes by type."""

    parts: HeteroParts
    labels: dict[str, dict[str, Any]]


def tables_to_graph(tables: Any, schema: Any, unmatched: Any, name_prefix: str = "") -> TableGraph:
    """Returns the parts of the graph of tables, as ``Graph.from_tables`` describes them.

    ``name_prefix`` stands before a column in the name of its relation.
    """
    if unmatched not in _UNMATCHED:
        raise ValueError(f"unmatched: expected one of {_UNMATCHED}, got {describe(unmatched)}")
    sources = _sources(tables)
    if schema is None:
        schemas = guess_schema(sources)
    else:
        schemas = _checked_schema(read_schema(schema), sources)
    read = {name: _read(source, name, schemas[name]) for name, source in sources.items()}
    keys = {name: _key_of(read[name], name, of.key) for name, of in schemas.items() if of.key}
    edges: dict[EdgeType, tuple[Rows, Rows]] = {}
    for name, of in schemas.items():
        for column, target in of.links.items():
            ends = _foreign_key_edges(read[name], name, column, keys[target], target, unmatched)
            there = name, name_prefix + column, target
            back = target, _REVERSE + name_prefix + column, name
            for kind in (there, back):
                if kind in edges:
                    raise ValueError(
                        f"schema[{name!r}]: links[{column!r}]: expected one relation {kind}, got "
                        "two; rename the column"
                    )
            edges[there], edges[back] = ends, ends[::-1]
    if not edges:
        raise ValueError(
            "schema: expected a link between two tables at least, got none; "
            'schema={"orders": {"links": {"customer_id": "customers"}}}'
        )
    nodes = {name: table.num_rows for name, table in read.items()}
    arrays = {name: _node_arrays(read[name], name, of) for name, of in schemas.items()}
    labels = {name: _labels(column) for name, column in keys.items()}
    parts = HeteroParts(edges, nodes, None, {k: v for k, v in arrays.items() if v}, edges)
    return TableGraph(parts, labels)


# ---- schemas ---------------------------------------------------------------------------------


def read_schema(schema: Any) -> Any:
    """Returns a schema as a mapping: it is one, or the path of a file of JSON or YAML."""
    if not isinstance(schema, (str, os.PathLike)):
        return schema
    path = Path(os.fsdecode(schema))
    text = path.read_bytes()
    if path.suffix == ".json":
        try:
            return json.loads(text, object_pairs_hook=_once)
        except ValueError as error:
            raise ValueError(f"schema: expected JSON in {path.name}, got {error}") from None
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            f"schema: expected PyYAML for {path.name}, found none; pip install pyyaml, or a file "
            "of JSON whose name ends in .json"
        ) from None

    class UniqueKeyLoader(yaml.SafeLoader):  # type: ignore[misc]
        """YAML's, which would take the last of several."""

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            _once([(key.value, value) for key, value in node.value])
            return super().construct_mapping(node, deep)

    try:
        return yaml.load(text, UniqueKeyLoader)
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise ValueError(f"schema: expected YAML in {path.name}, got {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs of a mapping; ValueError for a name that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        raise ValueError(f"{_listed(twice)} twice in one mapping")
    return found


def schema_document(tables: Any, schema: Any) -> dict[str, dict[str, Any]]:
    """Returns a checked schema, or the one that is guessed, as a mapping of mappings."""
    sources = _sources(tables)
    if schema is None:
        found = guess_schema(sources)
    else:
        found = _checked_schema(read_schema(schema), sources)
    return {name: of.document() for name, of in found.items()}


def _checked_schema(schema: Any, sources: Mapping[str, Any]) -> dict[str, TableSchema]:
    if not isinstance(schema, Mapping):
        raise TypeError(f"schema: expected a mapping of tables, got {describe(schema)}")
    for name in schema:
        if name not in sources:
            raise ValueError(f"schema: expected tables of {_listed(sources)}, got {name!r}")
    found = {}
    for name in sources:
        found[name] = _checked_table(schema.get(name), f"schema[{name!r}]")
    for name, of in found.items():
        types = _types(sources[name], name)
        for column in of.named:
            if column not in types:
                raise ValueError(
                    f"tables[{name!r}]: expected a column {column!r}, got "
                    f"{_listed(types) or 'none'}"
                )
        for column, target in of.links.items():
            where = f"schema[{name!r}]: links[{column!r}]"
            if not isinstance(target, str) or target not in found:
                raise ValueError(f"{where}: expected one of {_listed(sources)}, got {target!r}")
            if found[target].key is None:
                raise ValueError(f"{where}: expected a table with a key, got {target!r}")
    return found


def _checked_table(fields: Any, where: str) -> TableSchema:
    if fields is None:
        return TableSchema()
    if not isinstance(fields, Mapping):
        raise TypeError(
            f"{where}: expected a mapping of {_listed(_FIELDS)}, got {describe(fields)}"
        )
    for field in fields:
        if field not in _FIELDS:
            raise ValueError(f"{where}: expected {_listed(_FIELDS)}, got {field!r}")
    for field in ("key", "time"):
        if not isinstance(fields.get(field), (str, type(None))):
            raise TypeError(f"{where}: {field}: expected a column, got {describe(fields[field])}")
    links, columns = fields.get("links") or {}, fields.get("columns")
    if not isinstance(links, Mapping) or not all(isinstance(name, str) for name in links):
        raise TypeError(f"{where}: links: expected a mapping of columns, got {describe(links)}")
    if isinstance(columns, str) or not isinstance(columns, (Sequence, type(None))):
        raise TypeError(f"{where}: columns: expected a list of names, got {describe(columns)}")
    kept = None if columns is None else tuple(map(str, columns))
    return TableSchema(fields.get("key"), dict(links), fields.get("time"), kept)


def guess_schema(tables: Mapping[str, Any]) -> dict[str, TableSchema]:
    """Guesses the schema of tables by the names and types of their columns.

    The key of a table "customers" is its column "id", "customers_id", "customer_id" or
    "customerid", if no value of it is missing or there twice. A column of another table that is
    called so, or, for a key "id", "customer_id", links to it. The time is the first column of
    dates. Upper and lower case are alike.
    """
    sources = _sources(tables)
    columns = {name: _types(source, name) for name, source in sources.items()}
    keys = {}
    for name, types in columns.items():
        for column in types:
            if _is_key_name(column, name) and _is_unique(sources[name], name, column):
                keys[name] = column
                break
    found = {}
    for name, types in columns.items():
        links = {}
        for column in types:
            if column == keys.get(name):
                continue
            for target, key in keys.items():
                own = column.lower() == key.lower() and key.lower() != "id"
                if own or _is_key_name(column, target, with_id=False):
                    links[column] = target
                    break
        time = next((c for c, kind in types.items() if _is_date(kind) and c not in links), None)
        found[name] = TableSchema(keys.get(name), links, time)
    return found


def _is_key_name(column: str, table: str, with_id: bool = True) -> bool:
    """True if a column is called as the key of a table; "id" alone counts ``with_id``."""
    own, name = column.lower(), table.lower()
    names = {name, name.removesuffix("s"), name.removesuffix("es")}
    if name.endswith("ies"):
        names.add(f"{name[:-3]}y")
    return (with_id and own == "id") or any(own in (f"{n}_id", f"{n}id") for n in names if n)


def _is_unique(source: Any, name: str, column: str) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    values = _keys(_read(source, name, TableSchema(column, columns=())), name, column)
    try:
        return values.null_count == 0 and bool(pc.count_distinct(values).as_py() == len(values))
    except pa.ArrowNotImplementedError:
        return False


# ---- tables ----------------------------------------------------------------------------------


def _sources(tables: Any) -> dict[str, Any]:
    if not isinstance(tables, Mapping) or not tables:
        raise TypeError(f"tables: expected a mapping of names to tables, got {describe(tables)}")
    for name in tables:
        if not isinstance(name, str) or not name:
            raise TypeError(f"tables: expected names of type str, got {describe(name)}")
    sources = {name: _opened(source, f"tables[{name!r}]") for name, source in tables.items()}
    for name, source in sources.items():
        twice = [column for column, count in Counter(source.schema.names).items() if count > 1]
        if twice:
            raise ValueError(
                f"tables[{name!r}]: expected columns of different names, got {_listed(twice)} twice"
            )
    return sources


def _opened(source: Any, where: str) -> Any:
    """Returns a table of Arrow, or a dataset of files, of which columns are read when needed."""
    try:
        import pyarrow as pa
        import pyarrow.dataset as ds
    except ImportError:
        raise ImportError(_MISSING_ARROW) from None
    if isinstance(source, (pa.Table, ds.Dataset)):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _dataset(os.fsdecode(source), where)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return _queried(*source, where)
    if isinstance(source, Mapping):
        return _table(source.items(), where)
    if hasattr(source, "iloc") and getattr(source, "ndim", 0) == 2:
        # Keys are often the index.
        index = [name for name in source.index.names if name not in (None, *source.columns)]
        levels = ((name, source.index.get_level_values(name)) for name in index)
        return _table([*levels, *source.items()], where)
    if type(source).__module__.partition(".")[0] == "polars" and hasattr(source, "lazy"):
        with _errors_at(where):
            columns = source.lazy().collect().get_columns()
        return _table(((column.name, column) for column in columns), where)
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    exports = ("to_arrow", "to_arrow_table", "arrow")
    made = next((m for m in (getattr(source, name, None) for name in exports) if callable(m)), None)
    with _errors_at(where):
        if made is not None:
            source = made()
        if isinstance(source, pa.RecordBatchReader):
            return source.read_all()
        if hasattr(source, "__arrow_c_stream__"):
            return pa.table(source)
    raise TypeError(
        f"{where}: expected a table of pandas, Arrow or polars, a mapping of columns, a path, or "
        f"(connection, query), got {describe(source)}"
    )


def _table(columns: Iterable[tuple[Any, Any]], where: str) -> Any:
    import pyarrow as pa

    found = [(str(name), _column(values, f"{where}: {name}")) for name, values in columns]
    with _errors_at(where):
        return pa.table([values for _, values in found], names=[name for name, _ in found])


@contextmanager
def _errors_at(where: str) -> Iterator[None]:
    """Errors of other libraries, such as those of a database, as a ValueError with the table."""
    try:
        yield
    except Exception as error:
        if isinstance(error, MemoryError) or type(error) is RuntimeError:
            # The latter is Ctrl-C in a query of DuckDB.
            raise
        raise ValueError(f"{where}: {error}") from error


def _dataset(path: str, where: str) -> Any:
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
            f"{where}: expected files of one of {_listed(kinds)}, got "
            f"{_listed(each or 'no suffix' for each in sorted(suffixes))}"
        )
    read: dict[str, Any] = {"format": kinds[suffixes.pop()], "partition_base_dir": base}
    with _errors_at(where):
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


def _queried(connection: Any, query: str, where: str) -> Any:
    """The rows of a query, of a connection of DuckDB, SQLite or another of Python's DB-API."""
    of_duckdb = hasattr(connection, "sql")
    if not of_duckdb and not hasattr(connection, "cursor"):
        raise TypeError(f"{where}: expected a connection, got {describe(connection)}")
    with _errors_at(where):
        if of_duckdb:
            found = connection.sql(query)
        else:
            found = connection.cursor()
            found.execute(query)
            names = [about[0] for about in found.description or ()]
            rows = [row.values() if isinstance(row, Mapping) else row for row in found.fetchall()]
    if of_duckdb and found is not None:
        return _opened(found, where)
    if of_duckdb or not names:
        raise ValueError(f"{where}: expected a query with columns, got {describe(query)}")
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
        raise TypeError(
            f"{where}: expected values of one type of Arrow's, got {error}; convert the column, or "
            "leave it out of the table"
        ) from None


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


def _types(source: Any, name: str) -> dict[str, Any]:
    """The columns of a table and their types."""
    return {field.name: field.type for field in source.schema}


def _read(source: Any, name: str, schema: TableSchema) -> Any:
    """Returns a table with the columns that the schema names, or all of numbers too."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    types = _types(source, name)
    wanted = schema.named
    if schema.columns is None:
        wanted += [c for c, kind in types.items() if c not in wanted and _is_number(kind)]
    if not wanted:
        # Its rows count, and Arrow loses their number with the last column.
        wanted = list(types)[:1]
    if isinstance(source, pa.Table):
        return source.select(wanted)
    with _errors_at(f"tables[{name!r}]"):
        table = source.to_table(columns=wanted)
    if isinstance(getattr(source, "format", None), ds.CsvFileFormat):
        for place, field in enumerate(table.schema):
            if pa.types.is_string(field.type) and field.name in (schema.key, *schema.links):
                # Text that is missing there is empty.
                empty = pc.equal(table[place], "")
                known = pc.if_else(empty, pa.scalar(None, field.type), table[place])
                table = table.set_column(place, field.name, known)
    return table


def _plain(column: Any) -> Any:
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
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    return column.storage if isinstance(column, pa.ExtensionArray) else column


# ---- keys ------------------------------------------------------------------------------------


def _keys(table: Any, name: str, column: str) -> Any:
    """Returns the keys in a column, NaN as missing; ValueError for rounded ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = _plain(table[column])
    if pa.types.is_floating(keys.type):
        keys = pc.if_else(pc.is_nan(keys), pa.scalar(None, keys.type), keys)
        largest, exact = pc.max(pc.abs(keys)).as_py(), 24 if keys.type == pa.float32() else 53
        if largest is not None and largest >= 2**exact:
            raise ValueError(
                f"tables[{name!r}]: {column}: expected keys below 2**{exact}, which {keys.type} "
                f"does not round, got {largest}; make them integers (Int64 in pandas) or text"
            )
    return keys


def _key_of(table: Any, name: str, key: str) -> Any:
    """Returns the key of each row; ValueError for one that is missing, or there twice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _keys(table, name, key)
    where = f"tables[{name!r}]: {key}"
    if column.null_count:
        place = pc.index(column.is_null(), True).as_py()
        raise ValueError(f"{where}[{place}]: expected a key of each row, got a missing value")
    try:
        counts = pc.value_counts(column)
    except pa.ArrowNotImplementedError:
        raise TypeError(f"{where}: expected keys that can be compared, got {column.type}") from None
    if len(counts) < len(column):
        twice = pc.filter(counts.field("values"), pc.greater(counts.field("counts"), 1))
        first = twice[0]
        places = pc.indices_nonzero(pc.equal(column, first)).slice(0, 2).to_pylist()
        raise ValueError(
            f"{where}: expected different keys, got {_shown(first)} in rows {places[0]} and "
            f"{places[1]}, and {len(column) - len(counts)} repetitions in all"
        )
    return column


def _foreign_key_edges(
    table: Any, name: str, column: str, keys: Any, target: str, unmatched: str
) -> tuple[Rows, Rows]:
    """Returns rows of a table, and the rows of another whose keys they have."""
    import numpy as np
    import pyarrow.compute as pc

    where = f"tables[{name!r}]: {column}"
    given = _keys(table, name, column)
    keys, values = _in_one_type(keys, given, f"{where}: expected keys of {target!r}")
    found = pc.index_in(values, value_set=keys)
    unknown = pc.and_(found.is_null(), values.is_valid())
    count = pc.sum(unknown).as_py() or 0
    if count:
        shown = ", ".join(map(_shown, pc.unique(pc.filter(given, unknown)).slice(0, _SHOWN)))
        text = f"{count} of {len(values)} rows with keys that no row has, such as {shown}"
        if unmatched == "error":
            raise ValueError(
                f'{where}: expected keys of {target!r}, got {text}; unmatched="drop" gives them '
                "no edge"
            )
        logging.getLogger("pygsampler").warning("%s: %s; they have no edge", where, text)
    rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    to = found.drop_null().to_numpy(zero_copy_only=False)
    return rows.astype(np.int64), to.astype(np.int64)


def _in_one_type(keys: Any, values: Any, where: str) -> tuple[Any, Any]:
    """Returns keys, and those that refer to them, in a type that has all of both."""
    import pyarrow as pa

    if values.null_count == len(values):
        return keys, pa.nulls(len(values), keys.type)
    if not len(keys):
        return pa.nulls(0, values.type), values
    wrong = f"{where}, {keys.type}, got {values.type}"
    kind = _common_type(keys.type, values.type)
    if kind is None:
        raise TypeError(f"{wrong}; make one of them what the other is")
    try:
        return _cast(keys, kind), _cast(values, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise TypeError(f"{wrong}: {error}") from None


def _common_type(*kinds: Any) -> Any:
    """Returns the type in which keys of two types are compared; None for types of two sorts."""
    import pyarrow as pa

    of = pa.types

    def are(*tests: Any) -> bool:
        return all(any(test(kind) for test in tests) for kind in kinds)

    if kinds[0] == kinds[1]:
        return kinds[0]
    if are(of.is_integer):
        return pa.decimal128(20) if pa.uint64() in kinds else pa.int64()
    if are(of.is_floating):
        return pa.float64()
    if are(of.is_integer, of.is_decimal):
        return pa.decimal256(76, max(getattr(kind, "scale", 0) for kind in kinds))
    if are(of.is_integer, of.is_decimal, of.is_floating):
        return pa.int64()
    if are(_is_date):
        units = [getattr(kind, "unit", "ms") for kind in kinds]
        zoned = any(getattr(kind, "tz", None) for kind in kinds)
        return pa.timestamp(max(units, key=["s", "ms", "us", "ns"].index), "UTC" if zoned else None)
    if are(of.is_large_binary, of.is_fixed_size_binary):
        return pa.large_binary()
    return pa.large_string() if are(of.is_large_string, _is_uuid) else None


def _cast(keys: Any, kind: Any) -> Any:
    import pyarrow as pa

    if kind == pa.large_string() and _is_uuid(keys.type):
        return pa.array(_texts(keys), kind)
    return keys.cast(kind)


def _is_uuid(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16)


def _labels(keys: Any) -> dict[str, Any]:
    """The keys as labels of nodes: integers that int64 has, or text."""
    import pyarrow as pa

    if pa.types.is_integer(keys.type) or getattr(keys.type, "scale", None) == 0:
        try:
            return {IDS: keys.cast(pa.int64()).to_numpy(zero_copy_only=False)}
        except pa.ArrowInvalid:
            # Beyond int64.
            pass
    return text_arrays(_texts(keys))


def _texts(keys: Any) -> list[Any]:
    """Keys as text, as the labels of nodes are."""
    import uuid

    import pyarrow as pa

    if _is_uuid(keys.type):
        return [each and str(uuid.UUID(bytes=each)) for each in keys.to_pylist()]
    if pa.types.is_timestamp(keys.type):
        return [each.isoformat() for each in keys.to_pylist()]
    try:
        found: list[Any] = keys.cast(pa.large_string()).to_pylist()
    except pa.ArrowInvalid:
        # Bytes that are no text.
        found = [each.hex() for each in keys.to_pylist()]
    return found


def _shown(value: Any) -> str:
    found = value.as_py()
    if _is_uuid(value.type):
        import uuid

        return str(uuid.UUID(bytes=found))
    return found.isoformat() if isinstance(found, datetime.date) else repr(found)


# ---- arrays ----------------------------------------------------------------------------------


def _node_arrays(table: Any, name: str, schema: TableSchema) -> dict[str, Any]:
    """Returns the node arrays of a table: its times, and its columns of numbers and rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, Any] = {}
    roles = {schema.key, *schema.links, schema.time}
    if schema.time is not None:
        where = f"tables[{name!r}]: {schema.time}"
        column = _plain(table[schema.time])
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        if column.null_count:
            raise ValueError(
                f"{where}: expected a time of each row, got {column.null_count} missing of "
                f"{len(column)}; drop those rows, or leave the time out of the schema"
            )
        times = as_numpy_dates(column.to_numpy(zero_copy_only=False), where)
        if len(column) and times.dtype.kind not in "Mmiuf":
            raise TypeError(f"{where}: expected dates or numbers, got {column.type}")
        found[TIME] = times if len(column) else np.zeros(0, np.int64)
    kept = schema.columns
    for column_name in table.column_names if kept is None else dict.fromkeys(kept):
        if kept is None and (column_name in roles or not _is_number(table[column_name].type)):
            continue
        if column_name == schema.time == TIME:
            continue
        if column_name == IDS and schema.key is not None:
            raise ValueError(
                f"tables[{name!r}]: expected no column {IDS!r} beside the key {schema.key!r}, "
                "which has that name in ndata; leave it out of columns"
            )
        if column_name in found:
            raise ValueError(
                f"tables[{name!r}]: expected no column {TIME!r} beside the times {schema.time!r}, "
                "which have that name in ndata; leave it out of columns"
            )
        found[column_name] = _column_array(
            _plain(table[column_name]), f"tables[{name!r}]: {column_name}"
        )
    return found


def _column_array(column: Any, where: str) -> Any:
    """Returns a column as an array: numbers, rows of numbers, or dates."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if column.null_count:
            raise ValueError(f"{where}: expected a row for each, got {column.null_count} missing")
        flat = _column_array(column.flatten(), where)
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths) > 1:
            raise ValueError(
                f"{where}: expected rows of one length, got {_listed(sorted(lengths)[:5])}"
            )
        width = lengths[0] if lengths else getattr(kind, "list_size", 0)
        return flat.reshape(len(column), width, *flat.shape[1:])
    if _is_date(kind):
        if column.null_count:
            raise ValueError(
                f"{where}: expected dates, got {column.null_count} missing; leave it out of columns"
            )
        return column.to_numpy(zero_copy_only=False)
    if not _is_number(kind):
        raise TypeError(
            f"{where}: expected numbers, rows of numbers or dates, got {kind}; nodes are rows of "
            "the table in its order, so ids of a batch find text there"
        )
    if (column.null_count and not pa.types.is_floating(kind)) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
    found: Any = column.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(found)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return _is_number(kind.value_type)
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def _is_date(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))
