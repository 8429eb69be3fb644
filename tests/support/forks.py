"""Runs a function in a forked child."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
from collections.abc import Callable
from typing import Any

LIMIT_SECONDS = 30


def start(work: Callable[[], Any]) -> tuple[int, int]:
    """Forks a child that does ``work``; gives (process id, pipe) for ``finish``."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    try:
        # A child that hangs dies by itself, and with a signal.
        signal.alarm(LIMIT_SECONDS)
        try:
            outcome = (True, work())
        except BaseException:
            outcome = (False, traceback.format_exc())
        with open(write, "wb") as pipe:
            pickle.dump(outcome, pipe)
    finally:
        os._exit(0)


def finish(child: int, read: int) -> Any:
    with open(read, "rb") as pipe:
        data = pipe.read()
    status = os.waitpid(child, 0)[1]
    assert status == 0, f"the child ended with status {status}"
    good, result = pickle.loads(data)
    assert good, result
    return result


def in_child(work: Callable[[], Any]) -> Any:
    """Returns ``work()`` from a forked child; its error is an AssertionError with its traceback."""
    return finish(*start(work))
