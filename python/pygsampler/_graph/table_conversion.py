"""Graphs from tables with keys: a node for each row, and edges along foreign keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.datetimes import NanosecondTimes, as_nanoseconds, as_numpy_dates
from pygsampler._arrays.interning import IDS
from pygsampler._engine.checks import describe
from pygsampler._engine.progress import Progress, progress_callback
from pygsampler._graph.converters import HeteroParts
from pygsampler._graph.table_batches import RowProgress, count_rows
from pygsampler._graph.table_columns import (
    NO_TIME,
    cast_null,
    category_codes,
    column_arrays,
    column_kind,
    column_parts,
    encode_categories,
)
from pygsampler._graph.table_keys import foreign_key_edges, key_labels, primary_key
from pygsampler._graph.table_schema import schemas_of
from pygsampler._graph.table_sources import (
    TableSchema,
    is_date,
    is_number,
    listed,
    open_tables,
    plain_column,
    read_table,
)

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType
    from pygsampler._graph.table_columns import ColumnKind
    from pygsampler._graph.table_keys import Rows

__all__ = ["TIME", "TableGraph", "tables_to_graph"]

# The node array that has the times of a table's rows, whatever the column is called.
TIME = "time"
# Prefix of the relation that leads from a key to the rows that refer to it.
_REVERSE = "rev_"
_UNMATCHED = ("error", "drop")


class TableGraph(NamedTuple):
    """The parts of a heterogeneous graph, the labels of nodes by type, and their columns.

    ``columns`` has by type the arrays of ``column_arrays``.
    """

    parts: HeteroParts
    labels: dict[str, dict[str, Any]]
    columns: dict[str, dict[str, Any]]


class MissingValuesError(ValueError):
    """Missing values in a column that needs all; ``where`` names the column.

    ``text`` has places for how many are missing, and of how many.
    """

    def __init__(self, where: str, text: str, missing: int, total: int) -> None:
        super().__init__(f"{where}: {text.format(missing=missing, total=total)}")
        self.where, self.text = where, text


def tables_to_graph(
    tables: Any, schema: Any, unmatched: Any, name_prefix: str = "", progress: Progress = False
) -> TableGraph:
    """Returns the parts of the graph of tables, as ``Graph.from_tables`` describes them.

    ``name_prefix`` stands before a column in the name of its relation.
    """
    check_unmatched(unmatched)
    with progress_callback(progress, "reading tables", "rows") as report:
        advance = RowProgress(report)
        sources = open_tables(tables)
        schemas = schemas_of(schema, sources)
        kinds = link_types(schemas, name_prefix)
        if progress:
            for name, source in sources.items():
                of = schemas[name]
                advance.expect(count_rows(source) * (1 + bool(of.key) + len(of.links)))
        read = {
            name: read_table(source, name, schemas[name], advance)
            for name, source in sources.items()
        }
        keys = {}
        for name, of in schemas.items():
            if of.key:
                keys[name] = primary_key(read[name], name, of.key)
                advance(len(read[name]))
        edges: dict[EdgeType, tuple[Rows, Rows]] = {}
        for (name, column), (there, back) in kinds.items():
            target = there[2]
            ends = foreign_key_edges(read[name], name, column, keys[target], target, unmatched)
            edges[there], edges[back] = ends, ends[::-1]
            advance(len(read[name]))
    nodes = {name: table.num_rows for name, table in read.items()}
    columns = {name: column_kinds(read[name], name, of) for name, of in schemas.items()}
    for name, of_table in columns.items():
        read[name] = encode_categories(read[name], f"tables[{name!r}]", of_table)
    arrays = {name: node_arrays_of(read[name], name, of) for name, of in schemas.items()}
    labels = {name: key_labels(column) for name, column in keys.items()}
    parts = HeteroParts(edges, nodes, None, {k: v for k, v in arrays.items() if v}, edges)
    about = {
        name: column_arrays(of, column_parts(read[name], f"tables[{name!r}]", of))
        for name, of in columns.items()
    }
    return TableGraph(parts, labels, {name: of for name, of in about.items() if of})


def _chosen_kinds(table: Any, name: str, schema: TableSchema) -> dict[str, ColumnKind]:
    """Returns the kinds of the columns that the graph keeps, by name, in their order.

    TypeError for a column of another type than its kind has.
    """
    import pyarrow as pa

    found: dict[str, ColumnKind] = {}
    roles = {schema.key, *schema.links, schema.time}
    kept = schema.columns
    for column in table.column_names if kept is None else dict.fromkeys(kept):
        kind = table[column].type
        guess = column_kind(kind)
        if kept is None:
            is_default = is_number(kind) or guess == "category"
            if column in roles or guess is None or not is_default:
                continue
        wanted: Any = schema.kinds.get(column, guess)
        if wanted is None:
            raise TypeError(
                f"tables[{name!r}]: {column}: expected numbers, categories, dates, text or rows of "
                f"numbers, got {kind}; leave it out of columns"
            )
        plain = column_kind(kind.value_type) if pa.types.is_dictionary(kind) else guess
        fits = wanted in (guess, plain) or (wanted == "category" and guess != "embedding")
        if not fits and (wanted == "embedding" or not pa.types.is_null(kind)):
            raise TypeError(
                f"tables[{name!r}]: {column}: expected a column that can be {wanted!r}, got {kind}"
            )
        found[column] = wanted
    return found


def column_kinds(table: Any, name: str, schema: TableSchema) -> dict[str, ColumnKind]:
    """Returns the kinds of a table's columns, and of the times of its rows, by name.

    Times that are numbers are none of them, since nobody knows their unit.
    """
    kinds, time = _chosen_kinds(table, name, schema), schema.time
    if time is None or time in kinds or not is_date(table[time].type):
        return kinds
    return {TIME: "time", **kinds}


def check_unmatched(unmatched: Any) -> None:
    if unmatched not in _UNMATCHED:
        raise ValueError(f"unmatched: expected one of {_UNMATCHED}, got {describe(unmatched)}")


def link_types(
    schemas: Mapping[str, TableSchema], name_prefix: str = ""
) -> dict[tuple[str, str], tuple[EdgeType, EdgeType]]:
    """Returns the edge types of each table and foreign key: from its rows, and back.

    ValueError if there are none, or for two of one name.
    """
    found: dict[tuple[str, str], tuple[EdgeType, EdgeType]] = {}
    for name, of in schemas.items():
        for column, target in of.links.items():
            there = name, name_prefix + column, target
            back = target, _REVERSE + name_prefix + column, name
            for kind in (there, back):
                if any(kind in kinds for kinds in found.values()):
                    raise ValueError(
                        f"schema[{name!r}]: links[{column!r}]: expected one relation {kind}, got "
                        "two; rename the column"
                    )
            found[name, column] = there, back
    if not found:
        raise ValueError(
            "schema: expected a link between two tables at least, got none; "
            'schema={"orders": {"links": {"customer_id": "customers"}}}'
        )
    return found


def node_arrays_of(table: Any, name: str, schema: TableSchema) -> dict[str, Any]:
    """Returns the node arrays of a table: its times, and its columns but those of text.

    It is a function of these rows alone where the categories are encoded.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, Any] = {}
    if schema.time is not None:
        where = f"tables[{name!r}]: {schema.time}"
        column = plain_column(table[schema.time])
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        if column.null_count:
            text = (
                "expected a time of each row, got {missing} missing of {total}; drop those rows, "
                "or give a schema with another time for this table, or with none"
            )
            raise MissingValuesError(where, text, column.null_count, len(column))
        times = as_numpy_dates(column.to_numpy(zero_copy_only=False), where)
        if len(column) and times.dtype.kind not in "Mmiuf":
            raise TypeError(f"{where}: expected dates or numbers, got {column.type}")
        # Without rows a column may have any type, but dates stay dates: windows ask for that.
        found[TIME] = times if len(column) or times.dtype.kind in "Mm" else np.zeros(0, np.int64)
    for column_name, kind in _chosen_kinds(table, name, schema).items():
        if column_name == schema.time == TIME:
            continue
        if column_name == IDS and schema.key is not None:
            raise ValueError(
                f"tables[{name!r}]: expected no column {IDS!r} in addition to the key "
                f"{schema.key!r}, which has that name in ndata; leave it out of columns"
            )
        if column_name == TIME and schema.time is not None:
            raise ValueError(
                f"tables[{name!r}]: expected no column {TIME!r} in addition to the times "
                f"{schema.time!r}, which have that name in ndata; leave it out of columns"
            )
        if kind == "text":
            continue
        column, where = table[column_name], f"tables[{name!r}]: {column_name}"
        if kind == "category":
            found[column_name] = category_codes(column, where)
        else:
            column = plain_column(cast_null(column, kind))
            found[column_name] = _column_array(column, where)
    return found


def lengths_error(where: str, lengths: Iterable[int]) -> ValueError:
    return ValueError(f"{where}: expected rows of one length, got {listed(sorted(lengths)[:5])}")


def _column_array(column: Any, where: str) -> Any:
    """Returns a column as an array: numbers, rows of numbers, or times, of which some may lack."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if column.null_count:
            text = (
                "expected a row for each, got {missing} missing of {total}; fill them, or leave "
                "the column out of columns"
            )
            raise MissingValuesError(where, text, column.null_count, len(column))
        flat = _column_array(column.flatten(), where)
        flat = flat.values if isinstance(flat, NanosecondTimes) else flat
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths) > 1:
            raise lengths_error(where, lengths)
        width = lengths[0] if lengths else getattr(kind, "list_size", 0)
        return flat.reshape(len(column), width, *flat.shape[1:])
    if is_date(kind):
        known = as_nanoseconds(column.drop_null().to_numpy(zero_copy_only=False), where)
        if not column.null_count:
            return known.view("datetime64[ns]")
        times = np.full(len(column), NO_TIME, np.int64)
        times[column.is_valid().to_numpy(zero_copy_only=False)] = known
        # NumPy's dates with NaT are refused, and plain integers would be no dates for a window.
        return NanosecondTimes(times, "datetime64[ns]")
    if not is_number(kind):
        raise TypeError(f"{where}: expected rows of numbers, got {kind}; leave it out of columns")
    if (column.null_count and not pa.types.is_floating(kind)) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
    found: Any = column.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(found)
