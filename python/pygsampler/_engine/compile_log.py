"""Messages of the engine about kernels that it compiled, for the log."""

from __future__ import annotations

import json

from pygsampler._engine import library


def log_warnings() -> None:
    """Logs warnings, each once in a process: kernels that could not be stored on disk."""
    _log(0, "warning")


def log_compile_times() -> None:
    """Information in the log, each once: kernels that took more than a second to compile."""
    _log(1, "info")


def _log(slow: int, level: str) -> None:
    notes = library.call("CompilerLog", slow)
    if notes == "[]":
        return
    import logging

    for note in json.loads(notes):
        getattr(logging.getLogger("pygsampler"), level)("%s", note)
