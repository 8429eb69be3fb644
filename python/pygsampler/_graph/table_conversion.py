"""Graphs from tables with keys: a node for each row, and edges along foreign keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._arrays.datetimes import as_numpy_dates
from pygsampler._arrays.interning import IDS
from pygsampler._engine.checks import describe
from pygsampler._engine.progress import Progress, progress_callback
from pygsampler._graph.converters import HeteroParts
from pygsampler._graph.table_batches import RowProgress, count_rows
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
    from pygsampler._graph.table_keys import Rows

__all__ = ["TIME", "TableGraph", "tables_to_graph"]

# The node array that has the times of a table's rows, whatever the column is called.
TIME = "time"
# Prefix of the relation that leads from a key to the rows that refer to it.
_REVERSE = "rev_"
_UNMATCHED = ("error", "drop")


class TableGraph(NamedTuple):
    """The parts of a heterogeneous graph, and the labels of nodes by type."""

    parts: HeteroParts
    labels: dict[str, dict[str, Any]]


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
    arrays = {name: node_arrays_of(read[name], name, of) for name, of in schemas.items()}
    labels = {name: key_labels(column) for name, column in keys.items()}
    parts = HeteroParts(edges, nodes, None, {k: v for k, v in arrays.items() if v}, edges)
    return TableGraph(parts, labels)


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
    """Returns the node arrays of a table: its times, and its columns of numbers and rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, Any] = {}
    roles = {schema.key, *schema.links, schema.time}
    if schema.time is not None:
        where = f"tables[{name!r}]: {schema.time}"
        column = plain_column(table[schema.time])
        if pa.types.is_floating(column.type):
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
        if column.null_count:
            text = (
                "expected a time of each row, got {missing} missing of {total}; drop those rows, "
                "or leave the time out of the schema"
            )
            raise MissingValuesError(where, text, column.null_count, len(column))
        times = as_numpy_dates(column.to_numpy(zero_copy_only=False), where)
        if len(column) and times.dtype.kind not in "Mmiuf":
            raise TypeError(f"{where}: expected dates or numbers, got {column.type}")
        found[TIME] = times if len(column) else np.zeros(0, np.int64)
    kept = schema.columns
    for column_name in table.column_names if kept is None else dict.fromkeys(kept):
        if kept is None and (column_name in roles or not is_number(table[column_name].type)):
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
            plain_column(table[column_name]), f"tables[{name!r}]: {column_name}"
        )
    return found


def lengths_error(where: str, lengths: Iterable[int]) -> ValueError:
    return ValueError(f"{where}: expected rows of one length, got {listed(sorted(lengths)[:5])}")


def _column_array(column: Any, where: str) -> Any:
    """Returns a column as an array: numbers, rows of numbers, or dates."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        if column.null_count:
            text = "expected a row for each, got {missing} missing"
            raise MissingValuesError(where, text, column.null_count, len(column))
        flat = _column_array(column.flatten(), where)
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths) > 1:
            raise lengths_error(where, lengths)
        width = lengths[0] if lengths else getattr(kind, "list_size", 0)
        return flat.reshape(len(column), width, *flat.shape[1:])
    if is_date(kind):
        if column.null_count:
            text = "expected dates, got {missing} missing; leave it out of columns"
            raise MissingValuesError(where, text, column.null_count, len(column))
        return column.to_numpy(zero_copy_only=False)
    if not is_number(kind):
        raise TypeError(
            f"{where}: expected numbers, rows of numbers or dates, got {kind}; nodes are rows of "
            "the table in its order, so ids of a batch find text there"
        )
    if (column.null_count and not pa.types.is_floating(kind)) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64(), safe=False)
    found: Any = column.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(found)
