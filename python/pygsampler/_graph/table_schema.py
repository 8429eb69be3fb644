"""Schemas of tables: read from a mapping or a file, checked, and guessed."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pygsampler._engine.checks import describe
from pygsampler._graph.table_batches import count_missing, count_rows
from pygsampler._graph.table_keys import key_column
from pygsampler._graph.table_sources import (
    COLUMN_KINDS,
    TableSchema,
    column_types,
    is_date,
    listed,
    open_tables,
    read_table,
)

__all__ = ["checked_columns", "schema_document", "schemas_of", "times_with_gaps"]

# True if a column of a source, called as its table, has a different value in each row.
Unique = Callable[[Any, str, str], bool]
_FIELDS = ("key", "links", "time", "columns")


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

    try:
        # YAML takes the last of several.
        _check_names(yaml.compose(text, yaml.SafeLoader))
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise ValueError(f"schema: expected YAML in {path.name}, got {error}") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The pairs of a mapping; ValueError for a name that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        raise ValueError(f"{listed(twice)} twice in one mapping")
    return found


def _check_names(root: Any) -> None:
    """Raises ValueError for a mapping in a tree of YAML's nodes that has a name twice."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        # Nodes may be shared, and be parts of themselves.
        if id(node) in seen or not isinstance(getattr(node, "value", None), list):
            continue
        seen.add(id(node))
        if node.id == "mapping":
            _once([(key.value, value) for key, value in node.value])
            waiting += [each for pair in node.value for each in pair]
        else:
            waiting += node.value


def schema_document(tables: Any, schema: Any) -> dict[str, dict[str, Any]]:
    """Returns a checked schema, or the one that is guessed, as a mapping of mappings."""
    return {name: of.document() for name, of in schemas_of(schema, open_tables(tables)).items()}


def times_with_gaps(
    tables: Any, document: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[int, int]]:
    """Returns by table how many rows have no time, and how many rows there are.

    ``document`` is that of ``schema_document``. Tables whose rows all have one are not in it.
    """
    found = {}
    for name, source in open_tables(tables).items():
        column = document[name].get("time")
        missing = 0 if column is None else count_missing(source, name, column)
        if missing:
            found[name] = missing, count_rows(source, read=True)
    return found


def schemas_of(
    schema: Any, sources: Mapping[str, Any], is_unique: Unique | None = None
) -> dict[str, TableSchema]:
    """Returns the checked schema of each table, or the one that is guessed where it is None.

    ``is_unique`` says if a column of a source has a different value in each row.
    """
    if schema is None:
        return guess_schema(sources, is_unique or _is_unique)
    return checked_schema(read_schema(schema), sources)


def checked_schema(schema: Any, sources: Mapping[str, Any]) -> dict[str, TableSchema]:
    if not isinstance(schema, Mapping):
        raise TypeError(f"schema: expected a mapping of tables, got {describe(schema)}")
    for name in schema:
        if name not in sources:
            raise ValueError(f"schema: expected tables of {listed(sources)}, got {name!r}")
    found = {}
    for name in sources:
        found[name] = _checked_table(schema.get(name), f"schema[{name!r}]")
    for name, of in found.items():
        types = column_types(sources[name])
        for column in of.named:
            if column not in types:
                raise ValueError(
                    f"tables[{name!r}]: expected a column {column!r}, got {listed(types) or 'none'}"
                )
        for column, target in of.links.items():
            where = f"schema[{name!r}]: links[{column!r}]"
            if not isinstance(target, str) or target not in found:
                raise ValueError(f"{where}: expected one of {listed(sources)}, got {target!r}")
            if found[target].key is None:
                raise ValueError(
                    f"{where}: expected a table with a key, got {target!r}; schema[{target!r}] "
                    'says it by "key"'
                )
    return found


def _checked_table(fields: Any, where: str) -> TableSchema:
    if fields is None:
        return TableSchema()
    if not isinstance(fields, Mapping):
        raise TypeError(f"{where}: expected a mapping of {listed(_FIELDS)}, got {describe(fields)}")
    for field in fields:
        if field not in _FIELDS:
            raise ValueError(f"{where}: expected {listed(_FIELDS)}, got {field!r}")
    for field in ("key", "time"):
        if not isinstance(fields.get(field), (str, type(None))):
            raise TypeError(f"{where}: {field}: expected a column, got {describe(fields[field])}")
    links = fields.get("links") or {}
    if not isinstance(links, Mapping) or not all(isinstance(name, str) for name in links):
        raise TypeError(f"{where}: links: expected a mapping of columns, got {describe(links)}")
    columns = fields.get("columns")
    kinds = checked_columns(columns, f"{where}: columns")
    kept = None if columns is None else tuple(map(str, columns))
    return TableSchema(fields.get("key"), dict(links), fields.get("time"), kept, kinds)


def checked_columns(columns: Any, where: str) -> dict[str, str]:
    """Returns the kinds that the "columns" of a table say, by name; errors name ``where``."""
    if isinstance(columns, str) or not isinstance(columns, (Sequence, Mapping, type(None))):
        raise TypeError(
            f"{where}: expected a list of names, or a mapping of names to kinds, got "
            f"{describe(columns)}"
        )
    kinds = columns if isinstance(columns, Mapping) else {}
    for name, kind in kinds.items():
        if kind not in COLUMN_KINDS:
            raise ValueError(
                f"{where}[{name!r}]: expected one of {listed(COLUMN_KINDS)}, got {kind!r}"
            )
    return {str(name): str(kind) for name, kind in kinds.items()}


def guess_schema(sources: Mapping[str, Any], is_unique: Unique) -> dict[str, TableSchema]:
    """Guesses the schema of tables by the names and types of their columns.

    The key of a table "customers" is its column "id", "customers_id", "customer_id" or
    "customerid", if no value of it is missing or there twice. A column of another table that is
    called so, or, for a key "id", "customer_id", links to it. The time is the first column of
    dates in which no row lacks one, or, without such a column, the first of dates, since a table
    without times would be known at any time. Upper and lower case are alike.
    """
    columns = {name: column_types(source) for name, source in sources.items()}
    keys = {}
    for name, types in columns.items():
        for column in types:
            if _is_key_name(column, name) and is_unique(sources[name], name, column):
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
        dates = [column for column, kind in types.items() if is_date(kind) and column not in links]
        time = next(iter(dates), None)
        if len(dates) > 1:
            whole = (each for each in dates if not count_missing(sources[name], name, each))
            time = next(whole, time)
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

    values = key_column(read_table(source, name, TableSchema(column, columns=())), name, column)
    try:
        return values.null_count == 0 and bool(pc.count_distinct(values).as_py() == len(values))
    except pa.ArrowNotImplementedError:
        return False
