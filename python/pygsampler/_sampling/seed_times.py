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


def is_scalar_time(value: Any) -> bool:
    """True if a ``seed_time`` is one time for all seeds: a number, a date or a scalar of arrays."""
    one = isinstance(value, (int, float, str, date, timedelta))
    return one or getattr(value, "ndim", None) == 0


def seed_times(
    value: Any,
    count: int,
    graph_times: TimeSortedRelation | TimeSortedGraph,
    where: str = "seed_time",
) -> array[Any]:
    """Returns a time for each seed, in the kind of the graph's times: int64 or float64.

    Raises TypeError for dates if the graph's times are none, and for floats if they are integers.
    """
    if value is None:
        raise ValueError(
            f"{where}: expected a time for each seed with temporal={graph_times.name!r}, got None"
        )
    value = as_numpy_dates(value, where)
    check_datetime_kind(value, graph_times.kind, graph_times.name, where)
    value = as_nanoseconds(value, where)
    if getattr(value, "ndim", None) == 0:
        # A scalar of NumPy or a tensor without dimensions, such as times.max().
        value = value.item()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if not graph_times.float and not isinstance(value, int):
            raise TypeError(f"{where}: expected integers, as the graph's times, got {value!r}")
        try:
            return array("d" if graph_times.float else "q", [value]) * count
        except OverflowError:
            raise ValueError(f"{where}: expected a time of 64 bits, got {value}") from None
    if graph_times.float:
        try:
            if isinstance(value, (bytes, bytearray)):
                raise TypeError("an array takes them for the memory of numbers")
            made = array("d", value.tolist() if hasattr(value, "tolist") else value)
        except (TypeError, OverflowError):
            raise TypeError(
                f"{where}: expected a time for each seed, got {describe(value)}"
            ) from None
    else:
        view = as_int64(as_ids(value, where))
        made = array("q")
        made.frombytes(memory.integer_view(view.address, view.length, 64).cast("B"))
    if len(made) != count:
        raise ValueError(f"{where}: expected a time for each of {count} seeds, got {len(made)}")
    return made
