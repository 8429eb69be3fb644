"""Options of DGL's: those that are not offered, and checks that samplers share."""

from __future__ import annotations

from typing import Any

from pygsampler._engine.checks import describe

__all__ = ["array_name", "offered"]


def offered(name: str, value: Any, expected: Any, remedy: str) -> None:
    """NotImplementedError for an option of DGL's with another value."""
    if value is not expected and value != expected:
        raise NotImplementedError(
            f"{name}: expected {expected!r}, got {describe(value)}, which is not offered; {remedy}"
        )


def array_name(prob: Any) -> str | None:
    """``prob``, the name of an edge array, or None."""
    if prob is not None and not isinstance(prob, str):
        raise TypeError(f"prob: expected the name of an edge array, got {describe(prob)}")
    return prob
