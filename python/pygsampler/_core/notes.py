"""What the engine has to say of kernels that it compiled, for the log."""

from __future__ import annotations

import json

from pygsampler._core import library


def log_notes() -> None:
    """Warnings in the log, each once in a process: kernels that could not be kept on disk."""
    notes = library.call("CompilerNotes")
    if notes == "[]":
        return
    import logging

    for note in json.loads(notes):
        logging.getLogger("pygsampler").warning("%s", note)
