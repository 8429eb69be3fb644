"""Ctrl-C at every moment of a call, one after the other.

Python runs signal handlers where a function begins and after a call of C code; a profiler's hook is
called there too, and raises in the handler's place.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any


def at_every_moment(work: Callable[[], object]) -> Iterator[int]:
    """Runs ``work`` with an interrupt at its first moment, its second, ... until it gets through;
    yields after each run."""

    here = sys._getframe()
    for moment in itertools.count():
        left = moment

        def hook(frame: FrameType, event: str, argument: Any) -> None:
            nonlocal left
            if event in ("call", "c_return") and frame is not here:
                left -= 1
                if left == -1:
                    raise KeyboardInterrupt

        arrived = False
        try:
            sys.setprofile(hook)
            work()
        except KeyboardInterrupt:
            arrived = True
        finally:
            sys.setprofile(None)
        assert arrived == (left < 0), f"lost at moment {moment}"
        yield moment
        if not arrived:
            return
