"""Dates of NumPy as what the engine has in their place: integers, of nanoseconds since 1970."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Literal

# What times are: dates, spans between dates, or numbers that are neither.
Kind = Literal["M", "m", ""]
_CALLED = {"M": "dates (datetime64)", "m": "spans (timedelta64)", "": "numbers"}


@dataclass(frozen=True, slots=True)
class Dated:
    """Nanoseconds that were dates or spans where they come from, as those of a request.

    NumPy's own arrays say it themselves; who has none may bring dates too.
    """

    values: Any
    dtype: str
    """One of ``DATED``."""


# What the dtypes of a ``Dated`` are called: NumPy's names.
DATED: dict[str, Kind] = {"datetime64[ns]": "M", "timedelta64[ns]": "m"}


def kind_of(value: Any) -> Kind:
    """What ``value`` has: datetime64, timedelta64, or anything else."""
    if isinstance(value, Dated):
        return DATED[value.dtype]
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind if kind in ("M", "m") else ""


def check_kind(value: Any, of: Kind | None, name: str, where: str) -> None:
    """TypeError for dates or spans beside times, called ``name``, that are something else.

    ``of`` is what these are, None where nobody knows. Numbers stand for either, in nanoseconds:
    tensors have no dates.
    """
    kind = kind_of(value)
    if of is None or kind in ("", of):
        return
    raise TypeError(
        f"{where}: expected {_CALLED[of]}, as the times {name!r} are, got {value.dtype}"
    )


def check_span(window: Any, of: Kind | None, name: str) -> None:
    """TypeError for a window of timedelta64 beside times, called ``name``, that are numbers.

    ``of`` is what these are, None where nobody knows.
    """
    if of == "" and kind_of(window):
        raise TypeError(f"window: expected a number, as the times {name!r} are, got {window.dtype}")


def without_dates(value: Any, where: str) -> Any:
    """``value``; of datetime64 its nanoseconds since 1970, of timedelta64 its nanoseconds, int64.

    All units become one, so that times and bounds can be compared. ValueError for NaT, and for what
    int64 does not have in nanoseconds: dates before 1678 or after 2261.
    """
    if isinstance(value, Dated):
        return value.values
    kind = kind_of(value)
    if not kind:
        return value
    numpy: Any = sys.modules["numpy"]
    if numpy.isnat(value).any():
        places = numpy.flatnonzero(numpy.isnat(value))
        place = f"[{places[0]}]" if numpy.ndim(value) else ""
        raise ValueError(f"{where}{place}: expected a time, got NaT")
    made = value.astype(f"{kind}8[ns]")
    if (made.astype(value.dtype) != value).any():
        raise ValueError(
            f"{where}: expected dates from 1678 to 2261, which int64 has in nanoseconds, got others"
        )
    numbers = made.astype("int64")
    return numbers if numpy.ndim(value) else int(numbers)
