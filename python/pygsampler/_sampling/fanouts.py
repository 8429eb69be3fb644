"""Fanouts as a caller gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set, Sized
from itertools import islice
from typing import Any

from pygsampler._core.checks import describe, integer
from pygsampler._core.limits import MAX_FANOUT, MAX_HOPS


def checked_fanouts(fanouts: Any) -> tuple[int, ...]:
    """The fanouts as a tuple, outermost hop first; TypeError or ValueError names the wrong one."""
    if (
        isinstance(fanouts, (str, bytes, bytearray, Mapping, Set))
        or not isinstance(fanouts, Sized)
        or not isinstance(fanouts, Iterable)
    ):
        raise TypeError(
            f"fanouts: expected a sequence of int, outermost hop first, got {describe(fanouts)}"
        )
    # One more than fits, and no more: what is given may have no end.
    items = list(islice(fanouts, MAX_HOPS + 1))
    if not 1 <= len(items) <= MAX_HOPS:
        got = len(items) if len(items) <= MAX_HOPS else len(fanouts)
        raise ValueError(f"fanouts: expected 1 to {MAX_HOPS} hops, got {got}")
    return tuple(_check_fanout(item, f"fanouts[{i}]") for i, item in enumerate(items))


def _check_fanout(value: Any, where: str) -> int:
    fanout = integer(value, where, -1)
    if fanout > MAX_FANOUT:
        raise ValueError(f"{where}: expected at most {MAX_FANOUT} (-1 for all), got {fanout}")
    return fanout
