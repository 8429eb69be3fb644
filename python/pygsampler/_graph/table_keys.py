"""Keys of tables: which rows have them, and which rows refer to those."""

from __future__ import annotations

import datetime
import logging
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.interning import IDS, text_arrays
from pygsampler._graph.table_sources import is_date, plain_column

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

# Values that an error shows.
_SHOWN = 3


def key_column(table: Any, name: str, column: str) -> Any:
    """Returns the keys in a column, NaN as missing; ValueError for rounded ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = plain_column(table[column])
    if pa.types.is_floating(keys.type):
        keys = pc.if_else(pc.is_nan(keys), pa.scalar(None, keys.type), keys)
        largest, exact = pc.max(pc.abs(keys)).as_py(), 24 if keys.type == pa.float32() else 53
        if largest is not None and largest >= 2**exact:
            raise ValueError(
                f"tables[{name!r}]: {column}: expected keys below 2**{exact}, which {keys.type} "
                f"does not round, got {largest}; make them integers (Int64 in pandas) or text"
            )
    return keys


def primary_key(table: Any, name: str, key: str) -> Any:
    """Returns the key of each row; ValueError for one that is missing, or there twice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = key_column(table, name, key)
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


def foreign_key_edges(
    table: Any, name: str, column: str, keys: Any, target: str, unmatched: str
) -> tuple[Rows, Rows]:
    """Returns rows of a table, and the rows of another whose keys they have."""
    import numpy as np
    import pyarrow.compute as pc

    where = f"tables[{name!r}]: {column}"
    given = key_column(table, name, column)
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
    if are(is_date):
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


def key_labels(keys: Any) -> dict[str, Any]:
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
