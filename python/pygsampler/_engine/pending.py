"""``PendingMemory`` and ``PackedJob``: memories that the engine makes in the background.

Torch's profiles see no work but its own: here the engine's gets its names.
"""

from __future__ import annotations

import sys
import threading
from abc import abstractmethod
from array import array
from types import SimpleNamespace
from typing import Any, ClassVar, NoReturn, TypeVar

from pygsampler._engine import library, memory
from pygsampler._engine import request_layout as at
from pygsampler._engine.handle import SLICE_MS, EngineHandle
from pygsampler.errors import Error

P = TypeVar("P", bound="PackedJob")
# Stands for torch's module where torch is not loaded.
_OFF: Any = SimpleNamespace(_is_profiler_enabled=False)
_loaded: Any = sys.modules.get


def is_profiling() -> bool:
    """Returns True if torch is loaded, and a profiler of its is on in this process.

    It is asked before each batch, and so is no more than two look-ups.
    """
    try:
        on: bool = _loaded("torch.autograd.profiler", _OFF)._is_profiler_enabled
    except AttributeError:
        # A torch that has no such flag.
        return False
    return on


def profiled(name: str) -> Any:
    """Returns a context manager for a range ``pygsampler::name`` of a profile that is on.

    It is one of NVTX, too, under ``torch.autograd.profiler.emit_nvtx``.
    """
    import torch

    return torch.profiler.record_function(f"pygsampler::{name}")


class PendingMemory(EngineHandle):
    """Memory that the engine makes in the background; a subclass says what becomes of it.

    ``result()`` waits for it, ``cancel()`` ends it, and so does dropping the job. It belongs to
    the process that submitted it: it cannot be pickled, and in a forked child ``result()`` raises
    Error.
    """

    __slots__ = ("__weakref__", "_lock", "_outcome", "_waiting")

    _close_function: ClassVar[str] = "Cancel"
    # True if the engine knows when it worked on the job.
    _timed: ClassVar[bool] = True

    def __init__(self) -> None:
        # The fields of EngineHandle, without calling its __init__: each batch of a loop comes here.
        self._number, self._generation = 0, library._state.generation
        self._outcome: Any = None
        # Reentrant, since a signal handler may ask for a job that its thread is waiting for: it
        # gets an error then, since it can neither wait nor take what is being taken.
        self._lock = threading.RLock()
        self._waiting = False

    def _result(self) -> Any:
        """The outcome, waiting until it is there; Ctrl-C while waiting cancels the job."""
        if self._outcome is None and is_profiling():
            with profiled("wait"):
                self._finish()
        else:
            self._finish()
        outcome = self._outcome
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _finish(self) -> None:
        """Waits until there is an outcome."""
        while True:
            try:
                if self._poll(SLICE_MS):
                    break
            except (KeyboardInterrupt, SystemExit):
                self.cancel()
                raise

    def done(self) -> bool:
        """True if ``result()`` would return, or raise, at once."""
        return self._poll(0)

    def cancel(self) -> None:
        """Ends the job if it is on its way: ``result()`` then raises Error.

        Returns once the engine no longer reads arrays for it. A result that has been taken stays.
        """
        if self._outcome is None:
            self._outcome = Error("job: expected a job on its way, got one that was cancelled")
            self._release()

    def span(self, timeout_ms: int = -1) -> tuple[float, float] | None:
        """Returns begin and end of the engine's work, in seconds of CLOCK_MONOTONIC.

        ``time.perf_counter`` uses the same clock. The call waits for the job, or for so long; None
        if it is not done then, or was taken.
        """
        words = array("q", (0, 0))
        while self._timed and self._outcome is None:
            self._require_current_process()
            wait = SLICE_MS if timeout_ms < 0 else timeout_ms
            if self._call("JobSpan", wait, words.buffer_info()[0]):
                began, ended = words
                return began / 1e9, ended / 1e9
            if timeout_ms >= 0:
                break
        return None

    def _state(self) -> str:
        """The state of the job in words, for ``repr``."""
        outcome = self._outcome
        if outcome is None:
            return "lost in a fork" if self._is_foreign() else "on its way"
        return f"failed: {outcome}" if isinstance(outcome, Exception) else "done"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__}: expected something to pickle, got a job of this process's "
            "engine; pickle its result()"
        )

    def _poll(self, timeout_ms: int) -> bool:
        """Waits a moment; True when there is an outcome."""
        if self._outcome is not None:
            return True
        self._require_current_process()
        with self._lock:
            if self._outcome is not None:
                return True
            if self._waiting:
                raise Error("job: expected no wait inside a wait of the same thread for it")
            self._waiting = True
            try:
                given = self._wait(timeout_ms)
                if given:
                    taken = self._wrap_result(given)
                    if taken is not None:
                        self._number = 0
                    # After a cancel in another thread its outcome stands.
                    self._outcome = self._outcome or taken
            except Exception as error:
                self._outcome = self._outcome or error
                # The job would go on if a signal handler, and not the job, raised the error.
                self._release()
            finally:
                self._waiting = False
            return self._outcome is not None

    def _wait(self, timeout_ms: int) -> int | memory.Memory:
        """Returns what the engine hands over, 0 while that is to come."""
        return memory.call("Wait", self._number, timeout_ms)

    @abstractmethod
    def _wrap_result(self, engine_result: Any) -> Any:
        """Returns the result for what the engine has handed over; None where more is to come."""


class PackedJob(PendingMemory):
    """A memory that the engine makes by the words of a packed request, which it owns.

    The engine writes its result into the words: what Ctrl-C keeps Python from taking is released
    with the job.
    """

    __slots__ = ("_out", "_words")

    def __init__(self, words: array[int]) -> None:
        super().__init__()
        self._words = words
        self._out = words.buffer_info()[0] + 8 * at.RESULT

    def begin(self: P) -> P:
        """Hands the request to the engine."""
        words = self._words
        library.call("Submit", self._out - 8 * at.RESULT, len(words))
        if words[at.RESULT]:
            self._outcome = self._wrap_result(memory.Memory(words, at.RESULT))
        else:
            self._number = words[at.JOB]
            words[at.JOB] = 0
        return self

    def _wrap_result(self, engine_result: Any) -> Any:
        return engine_result
