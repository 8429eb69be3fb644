"""Jobs in flight ahead of the consumer, handed over in order."""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable, Generator
from inspect import GEN_RUNNING, getgeneratorstate
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from weakref import ref

from pygsampler._engine import library
from pygsampler._loader.prefetch_control import PrefetchController
from pygsampler._loader.stats import EpochStats
from pygsampler._loader.trace import GATHERING, SAMPLING
from pygsampler._sampling.pending import PendingBatch, PendingGroup

if TYPE_CHECKING:
    from pygsampler._loader.prefetch_tuner import BudgetTuner, EpochTuner

__all__ = ["Upcoming", "close_at_exit", "prefetch_groups", "prefetch_in_order"]

T = TypeVar("T")

# The queue is looked at in each step, but not more often than this, in seconds: to ask jobs whether
# they are done takes about a hundredth of that.
LOOK = 2e-3
# A result that takes no longer, in seconds, is there already.
READY = 20e-6


class Upcoming(Generic[T]):
    """Finds the result that a queue yields next, where it is there already."""

    __slots__ = ("find", "is_pending")

    # Returns it, or None: it is not there, or its job has failed, which is raised at its place.
    find: Callable[[], T | None]
    # Says whether its job was begun before the result at hand was asked for, and has not failed.
    is_pending: Callable[[], bool]

    def __init__(self) -> None:
        self.find = lambda: None
        self.is_pending = lambda: False


def prefetch_in_order(
    submit: Callable[[int], PendingBatch[Any]],
    steps: int,
    depth: int,
    then: Callable[[Any], PendingBatch[Any]] | None = None,
    *,
    low: int | None = None,
    steady: bool = False,
    meter: EpochStats | None = None,
    tuner: EpochTuner | BudgetTuner | None = None,
    upcoming: Upcoming[Any] | None = None,
) -> Generator[Any, None, None]:
    """Yields the results of ``submit(0)``, ..., ``submit(steps - 1)`` in this order.

    While the consumer holds one result, up to ``depth`` later jobs run; ``depth`` 0 submits a job
    only when its result is asked for. More jobs are started when ``low`` are left
    (``PrefetchController``), by default one for each that is taken; with ``steady`` each at the
    same step in every run. With ``then`` the result of a job starts a second job, which counts
    instead of the first from then on, and the generator yields the results of the second jobs. A
    job that fails, in ``submit``, ``then`` or ``result``, raises at its own place, after the
    results before it. However the generator ends (exhausted, closed, dropped, failed, interrupted),
    every job that is still in flight is cancelled. ``meter`` records the cancellation. A ``tuner``
    changes ``depth`` meanwhile. ``upcoming`` finds only results of ``submit``.
    """
    first: deque[PendingBatch[Any] | Exception] = deque()
    last: deque[PendingBatch[Any] | Exception] = first if then is None else deque()
    submitted = 0
    meter = EpochStats() if meter is None else meter
    pacer = PrefetchController(depth, max(depth - 1, 0) if low is None else low, steady=steady)
    meter.pacer = pacer
    most, check = max(depth, 1), -1
    if tuner is not None:
        most, check = tuner.most, tuner.next
        submit = tuner.measured(submit)
        then = then and tuner.measured(then)
    sampled, finished = meter.queues(most, 1 if then is None else 2)
    if meter.trace is not None:
        submit = meter.trace.watched(SAMPLING, submit)
        then = then and meter.trace.watched(GATHERING, then)

    def fill(count: int) -> None:
        nonlocal submitted
        for _ in range(min(count, steps - submitted)):
            try:
                first.append(submit(submitted))
                submitted += 1
            except Exception as error:
                # Raised when the consumer arrives here: the batches before it are good.
                first.append(error)
                submitted = steps
                return

    def hand_on() -> None:
        """Begins the second jobs of those that are done, of one that is not where none is begun."""
        assert then is not None
        moved = 0
        while first:
            head = first[0]
            if isinstance(head, Exception):
                last.append(head)
            else:
                if head.done():
                    moved += 1
                elif last:
                    break
                start = perf_counter()
                try:
                    result = head.result()
                    if not moved:
                        meter.waited(start, perf_counter())
                    last.append(then(result))
                except Exception as error:
                    last.append(error)
            # Not before: a job that is interrupted here is cancelled below.
            first.popleft()
        sampled[moved] += 1

    def find() -> Any:
        head = first[0] if first else None
        if head is None or isinstance(head, Exception) or not head.done():
            return None
        try:
            return head.result()
        except Exception as error:
            # Raised when the consumer arrives there.
            first[0] = error
            return None

    def is_pending() -> bool:
        # Without a low mark each job is begun when the one before it is taken.
        return pacer.low > 0 and bool(first) and not isinstance(first[0], Exception)

    if upcoming is not None:
        upcoming.find, upcoming.is_pending = find, is_pending
    # The number of jobs in `last` that are known to be done, and the time to look at more.
    ready, look = 0, perf_counter() + LOOK
    try:
        for step in range(steps):
            if submitted == step:
                fill(max(pacer.high, 1))
            if then is not None:
                hand_on()
            head = last.popleft()
            if isinstance(head, Exception):
                raise head
            if not ready and then is not None and head.done():
                # Making tensors of its rows is no wait.
                ready = 1
            start = perf_counter()
            found = ready
            if ready:
                ready -= 1
                result = head.result()
            else:
                result = head.result()
                now = perf_counter()
                if now - start > READY:
                    meter.waited(start, now)
                    start = now
                else:
                    found = 1
            del head
            if start >= look:
                look = start + LOOK
                if found:
                    while ready < len(last) and _is_done(last[ready]):
                        ready += 1
                    found = ready + 1
                finished[found] += 1
                pacer.observe(found)
            if step == check and tuner is not None:
                tuner.step(pacer)
                check = tuner.next
            ahead = submitted - step - 1
            if ahead <= pacer.until:
                fill(pacer.free_slots(ahead))
            elif ahead < pacer.high:
                pacer.held += 1
            yield result
            del result
        if tuner is not None:
            # Short epochs have one window.
            tuner.step(pacer)
    finally:
        for job in first if last is first else (*last, *first):
            if not isinstance(job, Exception):
                job.cancel()


def prefetch_groups(
    submit: Callable[[int, int], PendingGroup[T]],
    steps: int,
    depth: int,
    size: int,
    *,
    steady: bool = False,
    meter: EpochStats | None = None,
    upcoming: Upcoming[T] | None = None,
) -> Generator[T, None, None]:
    """Yields results like ``in_order``, of jobs that start ``size`` at a time, at most ``depth``.

    ``submit(first, count)`` starts the jobs from ``first`` on; their results come together, and an
    exception stands in the place of the first that failed. A group is submitted once there is room
    for a whole one: the low mark is ``depth - size``.
    """
    waiting: deque[PendingGroup[T] | Exception] = deque()
    ready: deque[T | Exception] = deque()
    submitted = taken = 0
    meter = EpochStats() if meter is None else meter
    pacer = meter.pacer = PrefetchController(depth, depth - size, steady=steady)
    _, finished = meter.queues(depth, 1)
    if meter.trace is not None:
        submit = meter.trace.watched(SAMPLING, submit)

    def fill() -> None:
        nonlocal submitted
        ahead = submitted - taken
        if ahead > pacer.until:
            pacer.held += ahead < depth
            return
        room = pacer.free_slots(ahead)
        while submitted < steps and room >= size:
            count = min(size, steps - submitted)
            room -= count
            try:
                waiting.append(submit(submitted, count))
                submitted += count
            except Exception as error:
                # Raised when the consumer arrives here: the batches before it are good.
                waiting.append(error)
                submitted = steps

    def take() -> None:
        # So many groups are there, in whole.
        count = 0
        while count < len(waiting) and _is_done(waiting[count]):
            count += 1
        if taken:
            finished[min(count * size, depth)] += 1
            pacer.observe(count)
        head = waiting.popleft()
        if isinstance(head, Exception):
            raise head
        start = perf_counter()
        ready.extend(head.result())
        if not count:
            meter.waited(start, perf_counter())

    def find() -> T | None:
        if not ready and waiting and not isinstance(waiting[0], Exception) and waiting[0].done():
            take()
        head = ready[0] if ready else None
        return None if isinstance(head, Exception) else head

    def is_pending() -> bool:
        head = ready[0] if ready else waiting[0] if waiting else None
        return pacer.low > 0 and head is not None and not isinstance(head, Exception)

    if upcoming is not None:
        upcoming.find, upcoming.is_pending = find, is_pending
    try:
        fill()
        while ready or taken < steps:
            if not ready:
                take()
            result = ready.popleft()
            if isinstance(result, Exception):
                raise result
            taken += 1
            fill()
            yield result
            del result
    finally:
        for group in waiting:
            if not isinstance(group, Exception):
                group.cancel()


def _is_done(job: PendingBatch[Any] | PendingGroup[Any] | Exception) -> bool:
    return isinstance(job, Exception) or job.done()


# No WeakSet: what it does when a generator goes is Python, where Ctrl-C would be lost.
_open: set[ref[Generator[Any, None, None]]] = set()


def close_at_exit(batches: Generator[T, None, None]) -> Generator[T, None, None]:
    """``batches``, to be closed at the end of the interpreter if it is still open then.

    Left to the garbage collector it would end after the modules that its jobs need are emptied.
    """
    _open.add(ref(batches, _open.discard))
    return batches


@atexit.register
def _close_all() -> None:
    running = []
    for one in list(_open):
        batches = one()
        if batches is None:
            continue
        try:
            batches.close()
        except ValueError:  # a daemon thread is in the middle of it
            running.append(batches)
    if running:
        library.shut_down(lambda: any(getgeneratorstate(each) == GEN_RUNNING for each in running))
