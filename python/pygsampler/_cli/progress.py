"""Progress bars with rate and time left, on stderr, for what takes longer than a moment."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import ProgressColumn, TaskID

# Work that takes fewer seconds has no bar.
_DELAY = 1.0


class Progress:
    """``progress(done, total)`` for work that tells how far it is; a context manager.

    There is a bar once the work takes longer than a second, and never where stderr is no
    terminal. A total of None or 0 is one that is not known. ``unit`` is what is counted; ``"B"``
    is shown as bytes, and ``"s"`` without a rate.
    """

    def __init__(self, what: str, unit: str) -> None:
        self._what = what
        self._unit = unit
        self._start = time.monotonic()
        self._bars: Bars | None = None
        self._task: TaskID | None = None
        self._done = 0
        self._shown = sys.stderr.isatty()

    def __call__(self, done: int, total: int | None = None) -> None:
        if not self._shown:
            return
        if self._bars is None:
            if time.monotonic() - self._start < _DELAY:
                return
            self._bars = self._begin()
        if self._task is None or done < self._done:
            # Work of several passes begins again at 0, and so do rate and time left.
            if self._task is not None:
                self._bars.remove_task(self._task)
            self._task = self._bars.add_task(self._what, total=total or None)
        self._done = done
        self._bars.update(self._task, completed=done, total=total or None)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bars is not None:
            self._bars.stop()

    def _begin(self) -> Bars:
        from rich.progress import Progress as Bars

        from pygsampler._cli.output import console

        bars = Bars(
            *_columns(self._unit),
            console=console(err=True),
            transient=True,
            get_time=time.monotonic,
        )
        bars.start()
        return bars


def _columns(unit: str) -> list[ProgressColumn]:
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Task,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )
    from rich.progress import ProgressColumn as Column
    from rich.text import Text

    from pygsampler._cli.output import count, rate

    class Counted(Column):
        def render(self, task: Task) -> Text:
            of = "" if task.total is None else f" of {count(task.total)}"
            return Text(f"{count(task.completed)}{of} {unit}")

    class Rate(Column):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else f"{rate(speed)} {unit}/s")

    ends: list[ProgressColumn]
    if unit == "B":
        ends = [DownloadColumn(), TransferSpeedColumn()]
    elif unit == "s":
        # Seconds have no rate per second.
        ends = [Counted()]
    else:
        ends = [Counted(), Rate()]
    what = TextColumn("{task.description}", markup=False)
    left = TimeRemainingColumn(elapsed_when_finished=True)
    return [what, BarColumn(), TaskProgressColumn(), *ends, left]
