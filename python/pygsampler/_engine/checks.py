"""Checks of plain Python values; every error says expected, got and where."""

from __future__ import annotations

import math
import operator
import reprlib
from typing import Any

_short = reprlib.Repr()
# Half of an object's text says less than its type.
_short.maxother = 1 << 20


def describe(value: Any) -> str:
    """A short text for what was got: its type, and its value when that is short."""
    text = _short.repr(value)
    # Values of one class may be of several kinds, as graphs are.
    naming = getattr(type(value), "_kind_name", None)
    name = type(value).__name__ if naming is None else naming(value)
    return f"{name} {text}" if len(text) <= 40 and "\n" not in text else name


def index(value: Any) -> int:
    """``value`` as an int: anything with ``__index__`` but a truth value, else TypeError."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or str(getattr(value, "dtype", "")) in ("bool", "torch.bool"):
        raise TypeError("expected an integer, got a truth value")
    return operator.index(value)


def integer(value: Any, where: str, low: int, high: int | None = None) -> int:
    """``value`` as an int in [low, high]; a truth value is no integer."""
    expected = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{where}: expected {expected}, got {describe(value)}") from None
    if number < low or (high is not None and number > high):
        raise ValueError(f"{where}: expected {expected}, got {number}")
    return number


def finite(value: Any, where: str, least: float, most: float = math.inf) -> float:
    """``value``, which has to be a finite number from ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{where}: expected a number, got {describe(value)}")
    if not math.isfinite(value) or not least <= value <= most:
        among = f">= {least:g}" if most == math.inf else f"in [{least:g}, {most:g}]"
        raise ValueError(f"{where}: expected a finite number {among}, got {value}")
    return float(value)


def is_truth(value: Any) -> bool:
    """True if ``value`` is a single truth value of NumPy or torch."""
    return getattr(value, "shape", None) == () and str(value.dtype) in ("bool", "torch.bool")


def boolean(value: Any, where: str) -> bool:
    """Returns ``value`` as a bool when it is True or False, of Python, NumPy or torch.

    An int is not, since it is mostly a misplaced fanout.
    """
    if value is True or value is False or is_truth(value):
        return bool(value)
    raise TypeError(f"{where}: expected True or False, got {describe(value)}")
