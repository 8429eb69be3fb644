"""Converts errors of one side to messages, and back to errors on the other side."""

from __future__ import annotations

import json
import logging
from typing import Any

from pyarrow import ArrowException, flight

from pygsampler import errors
from pygsampler._engine.error_conversion import ErrorConversion

logger = logging.getLogger("pygsampler.flight")

# Errors that a request may cause. Only these come back as what they were.
_KINDS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        TypeError,
        ValueError,
        IndexError,
        OverflowError,
        MemoryError,
        NotImplementedError,
        errors.ClosedError,
        errors.CudaError,
        errors.Error,
    )
}


def encode_error() -> ErrorConversion:
    """Makes errors of Flight's, of which a client can make the same again."""
    return ErrorConversion(_encoded)


def _encoded(error: Exception) -> Exception | None:
    """Returns the error of Flight's for another one."""
    if isinstance(error, flight.FlightError):
        return None
    if isinstance(error, ArrowException):
        return _flight("ValueError", f"arrays: expected a stream of Arrow's, got {error}")
    if isinstance(error, KeyError):
        return _flight("ValueError", str(error.args[0] if error.args else error))
    for name, kind in _KINDS.items():
        if isinstance(error, kind):
            return _flight(name, str(error) or name)
    logger.error("a request has failed", exc_info=error)
    return _flight("Error", "expected an answer, got a mistake of the server's (see its log)")


def _flight(kind: str, text: str) -> Exception:
    error: Exception = flight.FlightServerError(text, json.dumps([kind, text]).encode())
    return error


def busy(limit: int) -> Exception:
    """Returns the error for one more request than may be answered at once."""
    text = f"server: expected at most {limit} requests at once, got one more; ask again"
    error: Exception = flight.FlightUnavailableError(text, json.dumps(["busy", text]).encode())
    return error


def denied(text: str) -> Exception:
    """A request without the token."""
    error: Exception = flight.FlightUnauthenticatedError(text, json.dumps(["token", text]).encode())
    return error


def is_busy(error: Exception) -> bool:
    """True if the same request may be answered later."""
    return _said(error)[0] == "busy"


def decode_error(error: Exception, location: str) -> Exception:
    """Returns the exception that the client raises for an error of Flight's."""
    kind, text = _said(error)
    if kind == "token":
        return PermissionError(text)
    if kind in _KINDS:
        return _KINDS[kind](text)
    if isinstance(error, flight.FlightTimedOutError):
        return TimeoutError(f"{location}: expected an answer in time, got none")
    # gRPC's own text: the first sentence says what happened.
    return ConnectionError(f"{location}: expected an answer, got {str(error).partition('. ')[0]}")


def _said(error: Any) -> tuple[str, str]:
    """Returns the error's class and text, as the server says them."""
    try:
        kind, text = json.loads(error.extra_info)
    except (AttributeError, TypeError, ValueError):
        return "", ""
    return str(kind), str(text)
