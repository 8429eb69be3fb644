"""Graphs from tables with keys: a node for each row, and edges along foreign keys."""

from __future__ import annotations

import datetime
import glob
import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
            relation = name_prefix + column
            edges[name, relation, target] = ends
            edges[target, _REVERSE + relation, name] = ends[1], ends[0]
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
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except ValueError as error:
            raise ValueError(f"schema: expected JSON in {path.name}, got {error}") from None
    try:
        import yaml  # type: ignore[import-untyped]
    except ImportError:
        raise ImportError(
            f"schema: expected PyYAML for {path.name}, found none; pip install pyyaml, or a file "
            "of JSON whose name ends in .json"
        ) from None
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"schema: expected YAML in {path.name}, got {error}") from None


def schema_document(tables: Any, schema: Any) -> dict[str, dict[str, Any]]:
    """Returns a checked schema, or the one that is guessed, as a mapping of mappings."""
    sources = _sources(tables)
    found = guess_schema(sources) if schema is None else _checked_schema(schema, sources)
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
        for column, target in of.links.items():
            where = f"schema[{name!r}]: links[{column!r}]"
            if target not in found:
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
    return (with_id and own == "id") or any(own in (f"{n}_id", f"{n}id") for n in names)


def _is_unique(source: Any, name: str, column: str) -> bool:
    import pyarrow.compute as pc

    values = _plain(_read(source, name, TableSchema(column, columns=()))[column])
    return values.null_count == 0 and bool(pc.count_distinct(values).as_py() == len(values))


# ---- tables ----------------------------------------------------------------------------------


def _sources(tables: Any) -> dict[str, Any]:
    if not isinstance(tables, Mapping) or not tables:
        raise TypeError(f"tables: expected a mapping of names to tables, got {describe(tables)}")
    for name in tables:
        if not isinstance(name, str) or not name:
            raise TypeError(f"tables: expected names of type str, got {describe(name)}")
    return {name: _opened(source, f"tables[{name!r}]") for name, source in tables.items()}


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
        return pa.table({str(name): _column(values, where) for name, values in source.items()})
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return pa.table({str(name): _column(source[name], where) for name in source.columns})
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if isinstance(source, pa.RecordBatch):
        return pa.Table.from_batches([source])
    for method in ("to_arrow", "to_arrow_table", "arrow"):
        made = getattr(source, method, None)
        if callable(made):
            found = made()
            return found.read_all() if isinstance(found, pa.RecordBatchReader) else found
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    raise TypeError(
        f"{where}: expected a table of pandas, Arrow or polars, a path, or (connection, query), "
        f"got {describe(source)}"
    )


def _dataset(path: str, where: str) -> Any:
    """The rows of a file, of a folder's files, or of those of a pattern, in order of names."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    files = [path]
    if os.path.isdir(path):
        files = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(path)
            for name in names
            if not name.startswith((".", "_"))
        ]
    elif glob.has_magic(path) and not os.path.exists(path):
        files = [each for each in glob.glob(path, recursive=True) if os.path.isfile(each)]
    if not files or not os.path.exists(files[0]):
        raise FileNotFoundError(f"{where}: expected a file, a folder or a pattern, got {path!r}")
    suffixes = {os.path.splitext(each)[1].lower() for each in files}
    kinds = {".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "feather"}
    kinds |= {".csv": "csv"}
    if len(suffixes) > 1 or not suffixes <= set(kinds):
        raise ValueError(
            f"{where}: expected files of one of {_listed(kinds)}, got {_listed(sorted(suffixes))}"
        )
    try:
        return ds.dataset(sorted(files), format=kinds[suffixes.pop()])
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{where}: {error}") from None


def _queried(connection: Any, query: str, where: str) -> Any:
    """The rows of a query, of a connection of DuckDB, SQLite or another of Python's DB-API."""
    import pyarrow as pa

    if hasattr(connection, "sql"):
        return _opened(connection.sql(query), where)
    if not hasattr(connection, "cursor"):
        raise TypeError(f"{where}: expected a connection, got {describe(connection)}")
    cursor = connection.cursor()
    cursor.execute(query)
    names = [about[0] for about in cursor.description]
    rows = cursor.fetchall()
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    found = zip(names, columns, strict=True)
    return pa.table({name: _column(list(values), where) for name, values in found})


def _column(values: Any, where: str) -> Any:
    """A column as Arrow has it; UUIDs as their text."""
    import numpy as np
    import pyarrow as pa

    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    if getattr(values, "ndim", 1) == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])
    try:
        if hasattr(values, "dtype") and type(values).__module__.startswith("pandas"):
            return pa.array(values, from_pandas=True)
        return pa.array(values)
    except (pa.ArrowException, TypeError) as error:
        items = list(values)
        first = next((item for item in items if item is not None), None)
        if isinstance(first, np.generic):
            return pa.array(np.array(items))
        if type(first).__module__ != "uuid":
            raise TypeError(f"{where}: {error}") from None
        return pa.array([None if item is None else str(item) for item in items])


def _types(source: Any, name: str) -> dict[str, Any]:
    """The columns of a table and their types."""
    return {field.name: field.type for field in source.schema}


def _read(source: Any, name: str, schema: TableSchema) -> Any:
    """Returns a table with the columns that the schema names, or all of numbers too."""
    import pyarrow as pa

    types = _types(source, name)
    for column in schema.named:
        if column not in types:
            raise ValueError(
                f"tables[{name!r}]: expected a column {column!r}, got {_listed(types) or 'none'}"
            )
    wanted = schema.named
    if schema.columns is None:
        wanted += [c for c, kind in types.items() if c not in wanted and _is_number(kind)]
    if not wanted:
        # Its rows count, and Arrow loses their number with the last column.
        wanted = list(types)[:1]
    try:
        if isinstance(source, pa.Table):
            return source.select(wanted)
        return source.to_table(columns=wanted)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"tables[{name!r}]: {error}") from None


def _plain(column: Any) -> Any:
    """A column of one piece, without dictionaries and extensions of Arrow."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    views = getattr(pa.types, "is_string_view", lambda _: False)
    if pa.types.is_string(column.type) or views(column.type):
        column = column.cast(pa.large_string())
    return column


# ---- keys ------------------------------------------------------------------------------------


def _key_of(table: Any, name: str, key: str) -> Any:
    """Returns the key of each row; ValueError for one that is missing, or there twice."""
    import pyarrow.compute as pc

    column = _plain(table[key])
    where = f"tables[{name!r}]: {key}"
    if column.null_count:
        place = pc.index(column.is_null(), True).as_py()
        raise ValueError(f"{where}[{place}]: expected a key of each row, got a missing value")
    counts = pc.value_counts(column)
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
    import pyarrow as pa
    import pyarrow.compute as pc

    where = f"tables[{name!r}]: {column}"
    values = _plain(table[column])
    if values.type != keys.type:
        wrong = f"{where}: expected keys of {target!r}, {keys.type}, got {values.type}"
        if pa.types.is_null(values.type):
            values = pa.nulls(len(values), keys.type)
        elif _family(values.type) != _family(keys.type):
            raise TypeError(f"{wrong}; make one of them what the other is")
        try:
            values = values.cast(keys.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TypeError(f"{wrong}: {error}") from None
    found = pc.index_in(values, value_set=keys)
    unknown = pc.and_(found.is_null(), values.is_valid())
    count = pc.sum(unknown).as_py() or 0
    if count:
        shown = ", ".join(map(_shown, pc.unique(pc.filter(values, unknown)).slice(0, _SHOWN)))
        text = f"{count} of {len(values)} rows with keys that no row has, such as {shown}"
        if unmatched == "error":
            raise ValueError(
                f'{where}: expected keys of {target!r}, got {text}; unmatched="drop" gives them '
                "no edge"
            )
        logging.getLogger("pygsampler").info("%s: %s; they have no edge", where, text)
    rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    to = found.drop_null().to_numpy(zero_copy_only=False)
    return rows.astype(np.int64), to.astype(np.int64)


def _family(kind: Any) -> str:
    """Returns with what keys of a type can be compared: numbers, dates, text, their own type."""
    import pyarrow as pa

    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if _is_date(kind):
        return "dates"
    return "text" if pa.types.is_large_string(kind) else str(kind)


def _labels(keys: Any) -> dict[str, Any]:
    """The keys as labels of nodes: integers, or text."""
    import pyarrow as pa

    kind = keys.type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return {IDS: keys.cast(pa.int64()).to_numpy(zero_copy_only=False)}
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        import uuid

        return text_arrays([str(uuid.UUID(bytes=each)) for each in keys.to_pylist()])
    if pa.types.is_timestamp(kind):
        return text_arrays([each.isoformat() for each in keys.to_pylist()])
    return text_arrays(keys.cast(pa.large_string()).to_pylist())


def _shown(value: Any) -> str:
    found = value.as_py()
    return found.isoformat() if isinstance(found, datetime.date) else repr(found)


# ---- arrays ----------------------------------------------------------------------------------


def _node_arrays(table: Any, name: str, schema: TableSchema) -> dict[str, Any]:
    """Returns the node arrays of a table: its times, and its columns of numbers and rows."""
    found = {}
    roles = {schema.key, *schema.links, schema.time}
    if schema.time is not None:
        where = f"tables[{name!r}]: {schema.time}"
        column = _plain(table[schema.time])
        if column.null_count:
            raise ValueError(
                f"{where}: expected a time of each row, got {column.null_count} missing of "
                f"{len(column)}; drop those rows, or leave the time out of the schema"
            )
        found[TIME] = column.to_numpy(zero_copy_only=False)
    kept = schema.columns
    for column_name in table.column_names if kept is None else kept:
        if kept is None and (column_name in roles or not _is_number(table[column_name].type)):
            continue
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

    kind = column.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if column.null_count:
            raise ValueError(f"{where}: expected a row for each, got {column.null_count} missing")
        flat = _column_array(column.flatten(), where)
        width = len(flat) // max(len(column), 1)
        lengths = {len(each) for each in column} if not pa.types.is_fixed_size_list(kind) else ()
        if len(lengths) > 1:
            raise ValueError(f"{where}: expected rows of one length, got {sorted(lengths)[:5]}")
        return flat.reshape(len(column), width)
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
    if column.null_count and not pa.types.is_floating(kind):
        column = column.cast(pa.float64())
    found: Any = column.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(found)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return _is_number(kind.value_type)
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )


def _is_date(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names))
