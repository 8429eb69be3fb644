"""Dates of any library as integers of nanoseconds since 1970, which are the times of the engine."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any, Literal

# The kinds of times: dates, spans between dates, or numbers that are neither.
Kind = Literal["M", "m", ""]
_CALLED = {"M": "dates (datetime64)", "m": "spans (timedelta64)", "": "numbers"}
# Nobody knows if numbers are seconds or days.
_REMEDY = {"M": "", "m": "", "": "; give it in their unit, or make the graph with dates as times"}

# A date, or a date and a time, which may have a time zone: as ISO 8601 writes them.
_ISO = re.compile(
    r"\s*(\d{4}(?:-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?)?)?)?)"
    r"\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)?\s*"
)
# The units of spans as text, by NumPy's names. NumPy's "M", a month, is of no fixed length.
_UNITS = {
    name: unit
    for unit, names in {
        "W": "w W week weeks",
        "D": "d D day days",
        "h": "h hour hours",
        "m": "m min minute minutes",
        "s": "s sec second seconds",
        "ms": "ms",
        "us": "us",
        "ns": "ns",
    }.items()
    for name in names.split()
}
_SPAN = re.compile(r"\s*(\d{1,19})(\.\d+)?\s*([A-Za-z]+)\s*")
# The engine takes 2**62 nanoseconds.
SPAN_RANGE = "a span from 0 to 146 years"
_RANGE = "expected dates from 1678 to 2261, which int64 has in nanoseconds"


@dataclass(frozen=True, slots=True)
class NanosecondTimes:
    """Nanoseconds that were dates or spans where they come from, as those of a request.

    NumPy's own arrays say it themselves; who has none may bring dates too.
    """

    values: Any
    dtype: str
    """One of ``DATED``."""


# The dtypes of a ``NanosecondTimes``, by NumPy's names.
DATED: dict[str, Kind] = {"datetime64[ns]": "M", "timedelta64[ns]": "m"}


def as_numpy_dates(value: Any, where: str) -> Any:
    """Returns dates and spans of any library as NumPy's, and any other ``value`` as it is.

    Dates are those of ``datetime``, pandas, Arrow, and texts as ISO 8601 has them, one or a
    sequence; spans those of ``datetime``, pandas and Arrow. Dates with a time zone become UTC,
    dates without one count as UTC. Numbers of pandas become NumPy's. ValueError for a text that is
    no date, and for dates with a time zone among others without; it names ``where``.
    """
    # First: each batch of a loop has them.
    package = type(value).__module__.partition(".")[0]
    if package == "torch":
        return value
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if package == "numpy" and kind is not None and kind not in "OUT":
        return value
    if isinstance(value, (str, date, timedelta)):
        return _of_objects([value], where, one=True)[0]
    if isinstance(value, (list, tuple)):
        return _of_objects(value, where) if value and _is_date(value[0]) else value
    if kind is not None:
        pandas = sys.modules.get("pandas")
        if pandas is not None and isinstance(
            value, (pandas.Series, pandas.Index, pandas.api.extensions.ExtensionArray)
        ):
            return _of_pandas(pandas, value, where)
        if kind in "OUT":
            items = value.tolist()
            if not isinstance(items, list):
                return as_numpy_dates(items, where)
            return _of_objects(items, where) if items and _is_date(items[0]) else value
    elif package == "pyarrow":
        return _of_arrow(value, where)
    return value


def as_numpy_span(window: Any) -> Any:
    """Returns a window that is a span of any library as NumPy's, and any other as it is.

    Text is a span as "3d", "12h" or "30min". TypeError for a text that is none, ValueError for one
    that is longer than int64 has in nanoseconds.
    """
    return _span_of_text(window) if isinstance(window, str) else as_numpy_dates(window, "window")


def _span_of_text(text: str) -> Any:
    import numpy

    np: Any = numpy

    match = _SPAN.fullmatch(text)
    unit = match and _UNITS.get(match[3])
    if not match or not unit:
        raise TypeError(
            "window: expected a number, or a span as 3d, 12h or 30min, with one of the units "
            f"w, d, h, m, s, ms, us and ns, got {text!r}"
        )
    one = int(np.timedelta64(1, unit) / np.timedelta64(1, "ns"))
    size = one * int(match[1]) + int(one * Fraction(f"0{match[2] or ''}"))
    if size >= 1 << 63:
        raise ValueError(f"window: expected {SPAN_RANGE}, got {text!r}")
    return np.timedelta64(size, "ns") if match[2] else np.timedelta64(int(match[1]), unit)


def datetime_kind(value: Any) -> Kind:
    """Returns the kind of ``value``: datetime64, timedelta64, or anything else."""
    if isinstance(value, NanosecondTimes):
        return DATED[value.dtype]
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind if kind in ("M", "m") else ""


def check_datetime_kind(value: Any, times_kind: Kind | None, name: str, where: str) -> None:
    """Raises TypeError for dates or spans whose kind differs from the times called ``name``.

    ``times_kind`` is the kind of the times, None if it is unknown. Numbers stand for either, in
    nanoseconds: tensors have no dates.
    """
    kind = datetime_kind(value)
    if times_kind is None or kind in ("", times_kind):
        return
    raise TypeError(
        f"{where}: expected {_CALLED[times_kind]}, as the times {name!r} are, got {value.dtype}"
        f"{_REMEDY[times_kind]}"
    )


def check_window(window: Any, times_kind: Kind | None, name: str) -> None:
    """Raises TypeError for a window of timedelta64 if the times called ``name`` are numbers.

    ``times_kind`` is the kind of the times, None if it is unknown.
    """
    if times_kind == "" and datetime_kind(window):
        raise TypeError(
            f"window: expected a number, as the times {name!r} are, got "
            f"{window.dtype}{_REMEDY[times_kind]}"
        )


def as_nanoseconds(value: Any, where: str) -> Any:
    """``value``; of datetime64 its nanoseconds since 1970, of timedelta64 its nanoseconds, int64.

    All units become one, so that times and bounds can be compared. ValueError for NaT, and for what
    int64 does not have in nanoseconds: dates before 1678 or after 2261.
    """
    if isinstance(value, NanosecondTimes):
        return value.values
    kind = datetime_kind(value)
    if not kind:
        return value
    numpy: Any = sys.modules["numpy"]
    if numpy.isnat(value).any():
        places = numpy.flatnonzero(numpy.isnat(value))
        place = f"[{places[0]}]" if numpy.ndim(value) else ""
        raise ValueError(f"{where}{place}: expected a time, got NaT")
    made = value.astype(f"{kind}8[ns]")
    if (made.astype(value.dtype) != value).any():
        raise ValueError(f"{where}: {_RANGE}, got others")
    numbers = made.astype("int64")
    return numbers if numpy.ndim(value) else int(numbers)


def is_date_text(text: str) -> bool:
    """True if a text looks like a date."""
    return _ISO.fullmatch(text) is not None


def _is_date(item: Any) -> bool:
    """True if ``item`` may be a date or a span by its type."""
    return isinstance(item, (str, date, timedelta)) or datetime_kind(item) != ""


def _of_objects(items: Sequence[Any], where: str, *, one: bool = False) -> Any:
    """An array of single dates, or of single spans; errors of ``one`` name no place."""
    import numpy as np

    zoned: set[bool] = set()
    values = []
    for place, item in enumerate(items):
        at = where if one else f"{where}[{place}]"
        values.append(_of_object(np, item, at, zoned))
        if len(zoned) > 1:
            raise ValueError(
                f"{at}: expected dates that all have a time zone or none, got {item!r}"
            )
    spans = [value.dtype.kind == "m" for value in values]
    if any(spans) and not all(spans):
        raise TypeError(f"{where}: expected dates or spans, got some of both")
    return np.array(values)


def _of_object(np: Any, item: Any, where: str, zoned: set[bool]) -> Any:
    """Returns a date or span as NumPy has it; ``zoned`` gets whether it has a time zone."""
    if isinstance(item, str):
        return _of_text(np, item, where, zoned)
    if isinstance(item, timedelta):
        exact = getattr(item, "to_timedelta64", None)
        return np.timedelta64(item) if exact is None else exact()
    if isinstance(item, date):
        # NaT of pandas is a date, too, and differs from itself.
        if item != item:
            return np.datetime64("NaT")
        if isinstance(item, datetime):
            zoned.add(item.tzinfo is not None)
            if item.tzinfo is not None:
                item = item.astimezone(timezone.utc).replace(tzinfo=None)
        _check_year(item.year, item, where)
        exact = getattr(item, "to_datetime64", None)
        return np.datetime64(item) if exact is None else exact()
    if datetime_kind(item):
        return item
    raise ValueError(f"{where}: expected a date, got {item!r}")


def _of_text(np: Any, text: str, where: str, zoned: set[bool]) -> Any:
    found = _ISO.fullmatch(text)
    if found is None:
        raise TypeError(
            f"{where}: expected a number, or a date as 2024-03-01 or 2024-03-01T12:00, got {text!r}"
        )
    digits, zone = found.groups()
    _check_year(int(digits[:4]), text, where)
    try:
        moment = np.datetime64(digits)
    except ValueError:
        raise ValueError(f"{where}: expected a date, got {text!r}") from None
    # A date alone has no zone, and is no sign that others have none.
    if len(digits) > 10:
        zoned.add(zone is not None)
    if zone is None or zone in ("Z", "UTC"):
        return moment
    hours, minutes = int(zone[1:3]), int(zone[3:].lstrip(":") or 0)
    offset = np.timedelta64(60 * hours + minutes, "m")
    return moment - offset if zone[0] == "+" else moment + offset


def _check_year(year: int, item: Any, where: str) -> None:
    """Raises ValueError for years out of range: NumPy lets dates overflow where it mixes units."""
    if not 1678 <= year <= 2261:
        raise ValueError(f"{where}: {_RANGE}, got {str(item)!r}")


def _of_pandas(pandas: Any, value: Any, where: str) -> Any:
    """A Series, an Index or an array of pandas as NumPy has it."""
    if hasattr(value.dtype, "pyarrow_dtype"):
        array = value if isinstance(value, pandas.api.extensions.ExtensionArray) else value.array
        return _of_arrow(array.__arrow_array__(), where)
    if getattr(value.dtype, "tz", None) is not None:
        return pandas.DatetimeIndex(value).tz_convert(None).to_numpy()
    if value.dtype.kind == "O":
        items = value.tolist()
        first = next((item for item in items if item is not None and item == item), None)
        if _is_date(first):
            return _of_objects(items, where)
    return value.to_numpy()


def _of_arrow(value: Any, where: str) -> Any:
    """Dates, spans and texts of Arrow as NumPy has them, and other values as they are."""
    import pyarrow as pa

    if not isinstance(value, (pa.Array, pa.ChunkedArray, pa.Scalar)):
        return value
    one = isinstance(value, pa.Scalar)
    kind = value.type.value_type if pa.types.is_dictionary(value.type) else value.type
    if not pa.types.is_temporal(kind) and not _is_text(pa, kind):
        return value
    values = pa.repeat(value, 1) if one else value
    if kind is not value.type:
        values = values.cast(kind)
    if _is_text(pa, kind):
        made = _of_objects(values.to_pylist(), where, one=one)
    elif isinstance(values, pa.ChunkedArray):
        made = values.to_numpy()
    else:
        made = values.to_numpy(zero_copy_only=False)
    return made[0] if one else made


def _is_text(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
