"""Progress of what takes long: a bar of tqdm's, or a function of the caller's."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pygsampler._engine.checks import describe

# Seconds after which a wait is shown, and between two times that its bar is drawn.
_WAIT_SECONDS, _DRAWN_EVERY = 1.0, 0.5

Progress = bool | Callable[[int, int], object] | None

# A bar is for what takes longer.
_BAR_SECONDS = 2.0


def progress_bar(**options: Any) -> Any:
    """A bar of tqdm's."""
    try:
        from tqdm.auto import tqdm
    except ImportError as error:
        raise ImportError("progress=True needs tqdm: pip install tqdm") from error
    return tqdm(**options)


@contextmanager
def progress_callback(
    progress: Progress, text: str, unit: str = "B"
) -> Iterator[Callable[[int, int], object]]:
    """Returns a function to call with what is done and what is in all, which may grow."""
    if progress is None or progress is False:
        yield lambda done, total: None
    elif progress is True:
        options = {"unit": unit, "unit_scale": True, "delay": _BAR_SECONDS, "leave": False}
        with progress_bar(total=0, desc=text, **options) as shown:

            def show(done: int, total: int) -> None:
                shown.total = total
                shown.update(done - shown.n)

            yield show
    elif callable(progress):
        yield progress
    else:
        expected = "True, False, None or a function of bytes done and in all"
        raise TypeError(f"progress: expected {expected}, got {describe(progress)}")


@contextmanager
def progress_counter(
    progress: Progress, total: int, text: str, unit: str = "B"
) -> Iterator[Callable[[int], object]]:
    """Returns a function to call with each part of ``total`` that is done."""
    done = 0
    with progress_callback(progress, text, unit) as tell:

        def more(size: int) -> None:
            nonlocal done
            done += size
            tell(done, total)

        yield more


@contextmanager
def wait_indicator(text: str) -> Iterator[None]:
    """A bar with the seconds that have gone, of what has no parts and takes longer than a second.

    In terminals and notebooks; none without tqdm.
    """
    over = threading.Event()
    shown = threading.Thread(target=_show, args=(text, over), name="pygsampler-wait", daemon=True)
    shown.start()
    try:
        yield
    finally:
        over.set()
        shown.join()


def _show(text: str, over: threading.Event) -> None:
    if over.wait(_WAIT_SECONDS):
        return
    # ``disable=None``: nothing where the output goes into a file.
    options = {"desc": text, "bar_format": "{desc}: {elapsed}", "leave": False, "disable": None}
    with suppress(ImportError), progress_bar(**options) as of:
        while not over.wait(_DRAWN_EVERY):
            of.refresh()
