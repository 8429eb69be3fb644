"""Conversion of the exceptions of a block of code."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType


class ErrorConversion:
    """A context manager that raises another exception for an exception of its block.

    A function under ``contextlib.contextmanager`` would tie both exceptions to each other, on
    Python 3.12 and newer: the graphs and batches of their frames would stay in memory until a
    garbage collection.

    Parameters
    ----------
    convert : callable
        Returns the other exception for an exception of the block, None to leave it as it is.
    chained : bool
        True names the block's exception as the cause; False hides it.
    """

    def __init__(
        self, convert: Callable[[Exception], Exception | None], *, chained: bool = False
    ) -> None:
        self._convert, self._chained = convert, chained

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        converted = self._convert(error) if isinstance(error, Exception) else None
        try:
            if converted is not None:
                raise converted from error if self._chained else None
        finally:
            # The traceback of `converted` has this frame, which would refer to it in turn.
            del converted
