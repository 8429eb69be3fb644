"""Graphs of RelBench's databases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pygsampler._engine.checks import describe
from pygsampler._graph.construction import group_from_tables
from pygsampler._graph.graph import Graph
from pygsampler._graph.table_schema import checked_columns
from pygsampler._graph.table_sources import listed

__all__ = ["from_relbench"]

# RelBench's name of a relation is this and the column of the foreign key.
_PREFIX = "f2p_"


def from_relbench(
    database: Any, *, columns: Mapping[str, Any] | None = None, unmatched: str = "error"
) -> Graph:
    """The graph of a database of RelBench (Robinson et al., 2024), as its own tools make it.

    A node for each row, and for each foreign key the relations ``(table, "f2p_" + column, target)``
    and ``(target, "rev_f2p_" + column, table)``. ``ndata[table]["time"]`` has the times of tables
    that have some, in nanoseconds since 1970, and is known to be dates. ``graph.columns[table]``
    has columns with their kinds, and ``ndata[table]`` their values but those of text, as
    ``Graph.from_tables`` has them; ``pygsampler.pyg.tensor_frames`` makes frames of them. Needs
    pyarrow and pandas.

    Parameters
    ----------
    database : relbench.base.Database
        Such as ``relbench.datasets.get_dataset("rel-f1").get_db()``.
    columns : mapping of str to lists or mappings, optional
        By table the columns that the graph keeps, as "columns" of a schema of
        ``Graph.from_tables``: a list, or a mapping of names to kinds, "number", "category",
        "text", "time" and "embedding". All numbers and categories of pandas of the tables that it
        does not have.
    unmatched : {"error", "drop"}
        Foreign keys that no row has, as for ``Graph.from_tables``.

    Returns
    -------
    Graph
        Heterogeneous; node i of a type is row i of its table.

    Raises
    ------
    TypeError
        For what is no database, and for columns that cannot be of their kind.
    ValueError
        As ``Graph.from_tables``, and for columns of tables that are not in the database.
    """
    tables = getattr(database, "table_dict", None)
    fields = ("df", "pkey_col", "fkey_col_to_pkey_table", "time_col")
    if not isinstance(tables, dict) or not all(
        hasattr(table, field) for table in tables.values() for field in fields
    ):
        raise TypeError(f"database: expected a relbench.base.Database, got {describe(database)}")
    kept = _columns_by_table(columns, tables)
    schema = {
        name: {
            "key": table.pkey_col,
            "links": table.fkey_col_to_pkey_table,
            "time": table.time_col,
            "columns": kept.get(name),
        }
        for name, table in tables.items()
    }
    frames = {name: table.df for name, table in tables.items()}
    return Graph._wrap(group_from_tables(frames, schema, unmatched, _PREFIX))


def _columns_by_table(columns: Any, tables: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the columns that a caller gives for tables, checked as far as no table is needed."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise TypeError(f"columns: expected a mapping of tables, got {describe(columns)}")
    for name, of_table in columns.items():
        if name not in tables:
            raise ValueError(f"columns: expected tables of {listed(tables)}, got {name!r}")
        checked_columns(of_table, f"columns[{name!r}]")
    return dict(columns)
