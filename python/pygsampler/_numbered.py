"""``Numbered``: what the engine makes under a number that Python has asked for first."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

from pygsampler import _engine
from pygsampler.errors import ClosedError


class Numbered:
    """Something of the engine's in the making, which is given up when this goes."""

    __slots__ = ("_generation", "_number")

    # What the engine calls the next number, and the end of what stands behind one.
    _next: ClassVar[str]
    _end: ClassVar[str]

    def __init__(self) -> None:
        self._generation = -1
        # The number comes before the thing: Ctrl-C may come as soon as there is one.
        self._number: int = _engine.call(self._next)
        self._generation = _engine.generation()

    def call(self, name: str, *args: Any) -> Any:
        """Runs ``bridge_<name>`` with the number."""
        return _engine.call(name, self._number, *args)

    def end(self) -> None:
        """Gives it up, unless it is complete by now."""
        # Ctrl-C may come before __init__ has set it.
        if _engine.alive(getattr(self, "_generation", -1)):
            with suppress(ClosedError):
                self.call(self._end)

    __del__ = end
