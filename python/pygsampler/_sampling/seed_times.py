"""``seed_times``: the bounds of a batch's seeds, as the engine takes them."""

from __future__ import annotations

from array import array
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.datetimes import as_nanoseconds, as_numpy_dates, check_datetime_kind
from pygsampler._arrays.ids import as_ids, as_int64
from pygsampler._engine import memory
from pygsampler._engine.checks import describe

if TYPE_CHECKING:
    from pygsampler._graph.temporal import TimeSortedGraph, TimeSortedRelation


def is_scalar_time(given: Any) -> bool:
    """True if a ``seed_time`` is one time for all seeds: a number, a date or a scalar of arrays."""
    one = isinstance(given, (int, float, str, date, timedelta))
    return one or getattr(given, "ndim", None) == 0


def seed_times(
    given: Any, count: int, timed: TimeSortedRelation | TimeSortedGraph, where: str = "seed_time"
) -> array[Any]:
    """Returns a time for each seed, in the kind of the graph's times: int64 or float64.

    Raises TypeError for dates if the graph's times are none, and for floats if they are integers.
    """
    if given is None:
        raise ValueError(
            f"{where}: expected a time for each seed with temporal={timed.name!r}, got None"
        )
    given = as_numpy_dates(given, where)
    check_datetime_kind(given, timed.kind, timed.name, where)
    given = as_nanoseconds(given, where)
    if getattr(given, "ndim", None) == 0:
        # Of NumPy, or a tensor, such as times.max().
        given = given.item()
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        if not timed.float and not isinstance(given, int):
            raise TypeError(f"{where}: expected integers, as the graph's times, got {given!r}")
        try:
            return array("d" if timed.float else "q", [given]) * count
        except OverflowError:
            raise ValueError(f"{where}: expected a time of 64 bits, got {given}") from None
    if timed.float:
        try:
            if isinstance(given, (bytes, bytearray)):
                raise TypeError("an array takes them for the memory of numbers")
            made = array("d", given.tolist() if hasattr(given, "tolist") else given)
        except (TypeError, OverflowError):
            raise TypeError(
                f"{where}: expected a time for each seed, got {describe(given)}"
            ) from None
    else:
        view = as_int64(as_ids(given, where))
        made = array("q")
        made.frombytes(memory.integer_view(view.address, view.length, 64).cast("B"))
    if len(made) != count:
        raise ValueError(f"{where}: expected a time for each of {count} seeds, got {len(made)}")
    return made
