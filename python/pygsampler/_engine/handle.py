"""``EngineHandle``: what has a handle in the engine, and gives it back when it goes."""

from __future__ import annotations

from array import array
from contextlib import suppress
from typing import Any, ClassVar

from pygsampler._engine import library
from pygsampler.errors import ClosedError, Error

# Milliseconds of one wait in the engine. Python runs signal handlers between two waits: this
# bounds how late Ctrl-C is.
SLICE_MS = 50


class EngineHandle:
    """Base class of objects that own an engine handle, a number in a copy of the engine, or 0.

    The engine's destructor, in C, releases the handle with the object: in a destructor in Python
    Ctrl-C would be lost, and the release with it. Like any ``__del__`` it runs while all objects
    that it refers to still exist, such as the arrays that the engine reads.
    """

    __slots__ = ("_generation", "_number")

    # The function of the bridge that ends such a thing; it bears a number that is no more.
    _close_function: ClassVar[str]

    # In a forked child, whose engine is another one, the number means nothing.
    _generation: int
    _number: int
    # The address of two words that the engine writes for a subclass: a memory and a handle, which
    # are released with the object while they are stored there.
    _out: int = 0

    def __init__(self) -> None:
        self._number = 0
        self._generation = library.generation()

    # Until the engine is loaded there is nothing to give back; this runs no Python either.
    __del__: ClassVar[type] = tuple

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_close_function" in vars(cls):
            library.set_destructor(cls, cls._close_function)

    def _current(self) -> int:
        """The handle, or 0 where this process's engine has none."""
        return self._number if self._generation == library.generation() else 0

    def _is_foreign(self) -> bool:
        """True if this process was forked after the handle was created."""
        return self._generation != library.generation()

    def _require_current_process(self) -> None:
        """Error where another process submitted the job behind the handle."""
        if self._is_foreign():
            raise Error(
                "job: expected a job of this process, got one submitted before a fork; "
                "submit it in the child"
            )

    def _call(self, name: str, *arguments: Any) -> Any:
        """Runs ``bridge_<name>`` with the handle."""
        return library.call(name, self._number, *arguments)

    def _create(self, name: str, *arguments: Any) -> None:
        """Takes the handle that ``bridge_<name>`` gives, Ctrl-C or not."""
        slot, generation = array("q"), library.generation()
        try:
            library.call(name, *arguments, into=slot)
        finally:
            # Calls nothing of Python's, where Ctrl-C would come in between.
            if slot:
                self._generation = generation
                self._number = slot[0]

    def _release(self) -> None:
        """Ends what stands behind the handle, if there is one and its engine is still there."""
        number = self._number
        if number and library.alive(self._generation):
            with suppress(ClosedError):
                library.call(self._close_function, number)
        # Another thread may have taken a new one meanwhile.
        if self._number == number:
            self._number = 0
