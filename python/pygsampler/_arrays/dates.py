"""Dates of NumPy as what the engine has in their place: integers, of nanoseconds since 1970."""

from __future__ import annotations

import sys
from typing import Any


def without_dates(value: Any, where: str) -> Any:
    """``value``; of datetime64 its nanoseconds since 1970, of timedelta64 its nanoseconds, int64.

    All units become one, so that times and bounds can be compared. ValueError for NaT, and for what
    int64 does not have in nanoseconds: dates before 1678 or after 2261.
    """
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind not in ("M", "m"):
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
