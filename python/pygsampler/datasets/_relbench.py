"""Graphs of RelBench's databases."""

from __future__ import annotations

from typing import Any

from pygsampler._engine.checks import describe
from pygsampler._graph.construction import group_from_tables
from pygsampler._graph.graph import Graph

__all__ = ["from_relbench"]

# RelBench's name of a relation is this and the column of the foreign key.
_PREFIX = "f2p_"


def from_relbench(database: Any, *, unmatched: str = "error") -> Graph:
    """The graph of a database of RelBench (Robinson et al., 2024), as its own tools make it.

    A node for each row, and for each foreign key the relations ``(table, "f2p_" + column, target)``
    and ``(target, "rev_f2p_" + column, table)``. ``ndata[table]["time"]`` has the times of tables
    that have some, in nanoseconds since 1970, and is known to be dates. Columns of numbers are
    node arrays too, as ``Graph.from_tables`` has them. Needs pyarrow and pandas.

    Parameters
    ----------
    database : relbench.base.Database
        Such as ``relbench.datasets.get_dataset("rel-f1").get_db()``.
    unmatched : {"error", "drop"}
        Foreign keys that no row has, as for ``Graph.from_tables``.

    Returns
    -------
    Graph
        Heterogeneous; node i of a type is row i of its table.

    Raises
    ------
    TypeError
        For what is no database.
    ValueError
        As ``Graph.from_tables``.
    """
    tables = getattr(database, "table_dict", None)
    fields = ("df", "pkey_col", "fkey_col_to_pkey_table", "time_col")
    if not isinstance(tables, dict) or not all(
        hasattr(table, field) for table in tables.values() for field in fields
    ):
        raise TypeError(f"database: expected a relbench.base.Database, got {describe(database)}")
    schema = {
        name: {
            "key": table.pkey_col,
            "links": table.fkey_col_to_pkey_table,
            "time": table.time_col,
        }
        for name, table in tables.items()
    }
    frames = {name: table.df for name, table in tables.items()}
    return Graph._wrap(group_from_tables(frames, schema, unmatched, _PREFIX))
