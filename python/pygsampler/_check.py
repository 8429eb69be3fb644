"""Checks of plain Python values; every error says expected, got and where."""

from __future__ import annotations

import operator
from typing import Any


def describe(value: Any) -> str:
    """A short text for what was got: its type, and its value when that is short."""
    text = repr(value)
    name = type(value).__name__
    return f"{name} {text}" if len(text) <= 40 and "\n" not in text else name


def integer(value: Any, where: str, low: int, high: int | None = None) -> int:
    """``value`` as an int in [low, high]; anything with ``__index__`` but bool is an integer."""
    expected = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    if isinstance(value, bool):
        raise TypeError(f"{where}: expected {expected}, got {describe(value)}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{where}: expected {expected}, got {describe(value)}") from None
    if number < low or (high is not None and number > high):
        raise ValueError(f"{where}: expected {expected}, got {number}")
    return number


def boolean(value: Any, where: str) -> bool:
    """``value`` when it is True or False; an int is not, since it is mostly a misplaced fanout."""
    if value is True or value is False:
        return bool(value)
    raise TypeError(f"{where}: expected True or False, got {describe(value)}")
