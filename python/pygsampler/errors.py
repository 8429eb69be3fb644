"""Errors that have no fitting type among Python's own."""

from __future__ import annotations

__all__ = ["ClosedError", "CudaError", "Error"]


def __dir__() -> list[str]:
    return sorted(__all__)


class Error(Exception):
    """An error inside pygsampler; the base class of its other errors.

    This class is raised for a job that was cancelled, or that belongs to another process.
    """


class CudaError(Error):
    """The CUDA driver, or the engine that runs on it, cannot fulfil a request.

    The text has the driver's call, its number and name for the error, and for a lack of memory the
    requested and the free bytes. The next batch works, unless the driver has destroyed the
    process's context.
    """


class ClosedError(Error):
    """A graph, sampler or engine was used after it had been closed.

    ``graph.close()`` closes a graph, and the end of the interpreter the engine.
    """


_KINDS: dict[str, type[Exception]] = {
    "TypeError": TypeError,
    "ValueError": ValueError,
    "IndexError": IndexError,
    "OverflowError": OverflowError,
    "MemoryError": MemoryError,
    "KeyboardInterrupt": Error,
    "ClosedError": ClosedError,
    "CudaError": CudaError,
    "Error": Error,
}


def from_engine(message: str) -> Exception:
    """The exception for an engine error, which arrives as the text ``Kind: what happened``."""
    kind, colon, text = message.partition(": ")
    cls = _KINDS.get(kind)
    if kind == "OSError":
        # Python finds the class, such as PermissionError, by the number.
        number, _, text = text.partition(": ")
        return OSError(int(number), text)
    if not colon or cls is None:
        return Error(message)
    return cls(text)
