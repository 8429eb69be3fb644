"""Options of DGL's that are not offered."""

from __future__ import annotations

from typing import Any

from pygsampler._core.checks import describe

__all__ = ["offered"]


def offered(name: str, value: Any, expected: Any, remedy: str) -> None:
    """NotImplementedError for an option of DGL's with another value."""
    if value is not expected and value != expected:
        raise NotImplementedError(
            f"{name}: expected {expected!r}, got {describe(value)}, which is not offered; {remedy}"
        )
