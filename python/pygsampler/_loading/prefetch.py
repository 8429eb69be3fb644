"""Jobs in flight ahead of the consumer, handed over in order."""

from __future__ import annotations

import atexit
from collections import deque
from collections.abc import Callable, Generator
from inspect import GEN_RUNNING, getgeneratorstate
from typing import Any, TypeVar
from weakref import ref

from pygsampler._core import library
from pygsampler._sampling.base import Group, Pending

__all__ = ["close_at_exit", "in_groups", "in_order"]

T = TypeVar("T")


def in_order(
    submit: Callable[[int], Pending[Any]],
    steps: int,
    depth: int,
    then: Callable[[Any], Pending[Any]] | None = None,
) -> Generator[Any, None, None]:
    """Yield the results of ``submit(0)``, ..., ``submit(steps - 1)`` in this order.

    While the consumer holds one result, up to ``depth`` later jobs run; ``depth`` 0 submits a job
    only when its result is asked for. With ``then`` a result is the beginning of a second job, as
    which it counts from then on, and the results are those of the second ones. A job that fails,
    in ``submit``, ``then`` or ``result``, raises at its own place, after the results before it.
    However the generator ends (exhausted, closed, dropped, failed, interrupted), every job that is
    still in flight is cancelled.
    """
    first: deque[Pending[Any] | Exception] = deque()
    last: deque[Pending[Any] | Exception] = first if then is None else deque()
    submitted = 0

    def fill(limit: int) -> None:
        nonlocal submitted
        ahead = len(first) if last is first else len(first) + len(last)
        for _ in range(min(limit - ahead, steps - submitted)):
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
        while last is not first and first:
            head = first[0]
            if isinstance(head, Exception):
                last.append(head)
            elif last and not head.done():
                return
            else:
                assert then is not None
                try:
                    last.append(then(head.result()))
                except Exception as error:
                    last.append(error)
            # Not before: a job that is interrupted here is cancelled below.
            first.popleft()

    try:
        for _ in range(steps):
            fill(max(depth, 1))
            hand_on()
            head = last.popleft()
            if isinstance(head, Exception):
                raise head
            result = head.result()
            del head
            fill(depth)
            yield result
            del result
    finally:
        for job in first if last is first else (*last, *first):
            if not isinstance(job, Exception):
                job.cancel()


def in_groups(
    submit: Callable[[int, int], Group[T]],
    steps: int,
    depth: int,
    size: int,
) -> Generator[T, None, None]:
    """As ``in_order``, of jobs that are submitted ``size`` at a time, at most ``depth``.

    ``submit(first, count)`` starts the jobs from ``first`` on; their results come together, and an
    exception stands in the place of the first that failed. A group is submitted once there is room
    for a whole one, so that in between up to ``size - 1`` jobs fewer than ``depth`` are ahead.
    """
    waiting: deque[Group[T] | Exception] = deque()
    ready: deque[T | Exception] = deque()
    submitted = taken = 0

    def fill() -> None:
        nonlocal submitted
        while submitted < steps and submitted - taken + size <= depth:
            count = min(size, steps - submitted)
            try:
                waiting.append(submit(submitted, count))
                submitted += count
            except Exception as error:
                # Raised when the consumer arrives here: the batches before it are good.
                waiting.append(error)
                submitted = steps

    try:
        while ready or taken < steps:
            if not ready:
                fill()
                head = waiting.popleft()
                if isinstance(head, Exception):
                    raise head
                ready.extend(head.result())
                del head
            result = ready.popleft()
            if isinstance(result, Exception):
                raise result
            taken += 1
            if submitted - taken + size <= depth:
                fill()
            yield result
            del result
    finally:
        for group in waiting:
            if not isinstance(group, Exception):
                group.cancel()


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
        library.end(lambda: any(getgeneratorstate(each) == GEN_RUNNING for each in running))
