"""Keys of tables: which rows have them, and which rows refer to those."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from pygsampler._arrays.interning import BYTES, IDS, OFFSETS, text_arrays
from pygsampler._graph.table_sources import is_date, plain_column, text_buffers

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

# Values that an error shows.
SHOWN = 3


def key_column(table: Any, name: str, column: str) -> Any:
    """Returns the keys in a column, NaN as missing; ValueError for rounded ones."""
    keys = key_values(table, column)
    refuse_rounded(rounded_key(keys), keys.type, name, column)
    return keys


def key_values(table: Any, column: str) -> Any:
    """Returns the keys in a column, NaN as missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = plain_column(table[column])
    if pa.types.is_floating(keys.type):
        keys = pc.if_else(pc.is_nan(keys), pa.scalar(None, keys.type), keys)
    return keys


def rounded_key(keys: Any) -> float | None:
    """Returns the largest size of keys that are floats and may have been rounded, or None."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(keys.type):
        return None
    largest: float | None = pc.max(pc.abs(keys)).as_py()
    return largest if largest is not None and largest >= 2 ** _exact_bits(keys.type) else None


def _exact_bits(kind: Any) -> int:
    import pyarrow as pa

    return 24 if kind == pa.float32() else 53


def refuse_rounded(largest: float | None, kind: Any, name: str, column: str) -> None:
    if largest is not None:
        raise ValueError(
            f"tables[{name!r}]: {column}: expected keys below 2**{_exact_bits(kind)}, which {kind} "
            f"does not round, got {largest}; make them integers (Int64 in pandas) or text"
        )


def primary_key(table: Any, name: str, key: str) -> Any:
    """Returns the key of each row; ValueError for one that is missing, or there twice."""
    import pyarrow.compute as pc

    column = key_column(table, name, key)
    where = f"tables[{name!r}]: {key}"
    if column.null_count:
        refuse_missing_key(pc.index(column.is_null(), True).as_py(), where)
    check_comparable(column, where)
    counts = pc.value_counts(column)
    if len(counts) < len(column):
        twice = pc.filter(counts.field("values"), pc.greater(counts.field("counts"), 1))
        first = twice[0]
        places = pc.indices_nonzero(pc.equal(column, first)).slice(0, 2).to_pylist()
        refuse_repeated_keys(first, places, len(column) - len(counts), where)
    return column


def refuse_missing_key(place: int, where: str) -> NoReturn:
    raise ValueError(f"{where}[{place}]: expected a key of each row, got a missing value")


def check_comparable(keys: Any, where: str) -> None:
    """Raises TypeError for keys of a type that Arrow does not compare."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        pc.value_counts(keys.slice(0, 0))
    except pa.ArrowNotImplementedError:
        raise TypeError(f"{where}: expected keys that can be compared, got {keys.type}") from None


def refuse_repeated_keys(key: Any, places: Sequence[int], repetitions: int, where: str) -> NoReturn:
    """Raises ValueError for a repeated key, an Arrow scalar, with the number of others."""
    raise ValueError(
        f"{where}: expected different keys, got {_shown(key)} in rows {places[0]} and "
        f"{places[1]}, and {repetitions} repetitions in all"
    )


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
        shown = pc.unique(pc.filter(given, unknown)).slice(0, SHOWN)
        report_unmatched(shown, count, len(values), where, target, unmatched)
    rows = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
    to = found.drop_null().to_numpy(zero_copy_only=False)
    return rows.astype(np.int64), to.astype(np.int64)


def report_unmatched(
    keys: Iterable[Any], count: int, total: int, where: str, target: str, unmatched: str
) -> None:
    """An error, or a warning in the log, for foreign keys that no row has; it shows ``keys``."""
    text = f"{count} of {total} rows with keys that no row has, such as "
    text += ", ".join(map(_shown, keys))
    if unmatched == "error":
        raise ValueError(
            f'{where}: expected keys of {target!r}, got {text}; unmatched="drop" gives them no edge'
        )
    logging.getLogger("pygsampler").warning("%s: %s; they have no edge", where, text)


def _in_one_type(keys: Any, values: Any, where: str) -> tuple[Any, Any]:
    """Returns keys, and those that refer to them, in a type that has all of both."""
    import pyarrow as pa

    if values.null_count == len(values):
        return keys, pa.nulls(len(values), keys.type)
    if not len(keys):
        return pa.nulls(0, values.type), values
    shared = SharedType.between(keys.type, values.type, where)
    return shared.cast(keys), shared.cast(values)


class SharedType(NamedTuple):
    """The type in which keys and foreign keys are compared.

    ``wrong`` begins the error for values that the type has no room for.
    """

    kind: Any
    wrong: str

    @classmethod
    def between(cls, keys: Any, foreign: Any, where: str) -> SharedType:
        """Returns the type of two types of Arrow; TypeError for types of two sorts."""
        wrong = f"{where}, {keys}, got {foreign}"
        kind = _common_type(keys, foreign)
        if kind is None:
            raise TypeError(f"{wrong}; make one of them what the other is")
        return cls(kind, wrong)

    def cast(self, keys: Any) -> Any:
        """Returns an array of keys in this type; TypeError for one that it has no room for."""
        import pyarrow as pa

        try:
            return _cast(keys, self.kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise TypeError(f"{self.wrong}: {error}") from None


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


# Kinds of labels: integers, text, and bytes that are no text as their digits. The labels of a table
# have one kind: the largest of those of its keys.
INTEGERS, TEXT, DIGITS = range(3)


def label_kind(keys: Any) -> int:
    """Returns the smallest kind of labels that has all of these keys."""
    import pyarrow as pa

    if pa.types.is_integer(keys.type) or getattr(keys.type, "scale", None) == 0:
        try:
            keys.cast(pa.int64())
        except pa.ArrowInvalid:
            # Beyond int64.
            return TEXT
        return INTEGERS
    if _is_uuid(keys.type) or pa.types.is_timestamp(keys.type):
        return TEXT
    try:
        keys.cast(pa.large_string())
    except pa.ArrowInvalid:
        return DIGITS
    return TEXT


def key_labels(keys: Any, kind: int | None = None) -> dict[str, Any]:
    """The keys as labels of nodes, of the kind of all keys of their table, by default of these."""
    import pyarrow as pa

    kind = label_kind(keys) if kind is None else kind
    if kind == INTEGERS:
        return {IDS: keys.cast(pa.int64()).to_numpy(zero_copy_only=False)}
    if kind == DIGITS:
        return text_arrays([each.hex() for each in keys.to_pylist()])
    if _is_uuid(keys.type) or pa.types.is_timestamp(keys.type):
        return text_arrays(_texts(keys))
    texts = keys.cast(pa.large_string())
    # Files may have bytes in columns of text that are no text.
    texts.validate(full=True)
    return dict(zip((OFFSETS, BYTES), text_buffers(texts), strict=True))


def _texts(keys: Any) -> list[Any]:
    """Keys as text, as the labels of nodes are."""
    import uuid

    import pyarrow as pa

    if _is_uuid(keys.type):
        return [each and str(uuid.UUID(bytes=each)) for each in keys.to_pylist()]
    if pa.types.is_timestamp(keys.type):
        return [each.isoformat() for each in keys.to_pylist()]
    found: list[Any] = keys.cast(pa.large_string()).to_pylist()
    return found


def _shown(value: Any) -> str:
    found = value.as_py()
    if _is_uuid(value.type):
        import uuid

        return str(uuid.UUID(bytes=found))
    return found.isoformat() if isinstance(found, datetime.date) else repr(found)
