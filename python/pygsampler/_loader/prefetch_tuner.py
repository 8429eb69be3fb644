"""``PrefetchTuner``: how many batches a loader with ``prefetch="auto"`` samples ahead."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._arrays import devices
from pygsampler._batch.minibatch import result_bytes
from pygsampler._engine.library import get_num_threads
from pygsampler._engine.memory import free_memory
from pygsampler._loader.trace import TracedJob
from pygsampler._sampling.pending import MappedJob

if TYPE_CHECKING:
    from pygsampler._loader.prefetch_control import PrefetchController
    from pygsampler._loader.stats import EpochStats

__all__ = ["AUTO", "BudgetTuner", "EpochTuner", "Measurement", "PrefetchTuner", "choose_depth"]

AUTO = "auto"
# The depth before anything is measured, which is the default of `prefetch`.
INITIAL = 4
# Depths of a GPU are this one at most, and then groups are of half as many.
MOST_ON_GPU = 8
# A smaller part of the time that the loop waits is noise.
WAITING = 0.02
# The part of the free memory that batches ahead may take.
MEMORY_SHARE = 0.25
# The batches of the first window, which starts after the first batches, that all epochs wait for;
# windows double up to so many batches.
START, FIRST, LONGEST = 2, 14, 128
# The batches of the only window of a short epoch: fewer say too little.
LEAST = 4
# The batches of an epoch that are all measured; afterwards one in eight is.
ALL_MEASURED = 64
# Bytes of an edge in a batch: ids of its source and of itself, and at most one new node.
EDGE_BYTES = 24
# Each batch in flight on a GPU has up to so many bytes of working memory for each node.
WORKING_BYTES = 12


class Measurement(NamedTuple):
    """Averages of some batches of an epoch.

    ``work`` is how many seconds one core samples and reads a batch, None where that is not known;
    ``step`` how many the loop takes for a batch without waiting for it, and ``waiting`` the part of
    the time that the loop waits. ``idle`` cores are those that the loop leaves; ``stages`` is 2
    where features are read after sampling, else 1; ``size`` is of a batch and ``free`` of the
    memory, in bytes; with a ``budget`` batches ahead take at most so many.
    """

    epoch: int
    batches: int
    work: float | None
    step: float
    waiting: float
    idle: float
    stages: int
    size: int
    free: int
    budget: int | None = None


def choose_depth(measured: Measurement, depth: int, most: int) -> tuple[int, str]:
    """Returns how many batches to sample ahead, and what bounds them: "cores", "memory" or "".

    By Little's law ``work / step`` batches are in work at any time if the loop is never to wait.
    Half as many more, and one, even out batches of changing cost, for each stage: a batch that is
    sampled waits for the loop to begin reading its features. If the cores could keep up and the
    loop waits all the same, twice the ``depth`` is tried. More than two batches for each idle core
    and stage gain nothing, and more than ``most`` are never ahead; memory alone makes ``depth``
    smaller, since a full queue costs nothing else.
    """
    wanted, bound = depth, ""
    keeps_up = True
    if measured.work is not None and measured.step > 0:
        demand = measured.work / measured.step
        keeps_up = demand < measured.idle
        busy = min(demand, measured.idle)
        wanted = max(wanted, 1 + ceil(1.5 * measured.stages * busy))
    if measured.waiting > WAITING:
        if keeps_up:
            wanted = max(wanted, 2 * depth)
        else:
            bound = "cores"
    allowed = max(depth, INITIAL, min(most, 2 * measured.stages * ceil(measured.idle)))
    if wanted > allowed:
        wanted, bound = allowed, "cores"
    return _within_memory(wanted, bound, measured)


def choose_depth_on_gpu(measured: Measurement, depth: int) -> tuple[int, str]:
    """Returns how many batches to sample ahead on a GPU, and what bounds them."""
    wanted = MOST_ON_GPU if measured.waiting > WAITING else depth
    return _within_memory(wanted, "", measured)


def _within_memory(wanted: int, bound: str, measured: Measurement) -> tuple[int, str]:
    most = int(MEMORY_SHARE * measured.free)
    if measured.budget is not None:
        most = measured.budget
    # One more is in the hands of the loop.
    room = most // max(measured.size, 1) - 1
    return (max(room, 1), "memory") if room < wanted else (wanted, bound)


def num_cores() -> int:
    """Returns how many cores may sample: those of the process, and as many as engine threads."""
    return min(get_num_threads(), len(os.sched_getaffinity(0)))


def batch_bytes(stats: Mapping[str, Any]) -> int:
    """Returns about how many bytes a batch has, by the edges and the features that were read."""
    read = sum(stats["bytes"].values()) + EDGE_BYTES * stats["edges"]
    return int(read / max(stats["batches"], 1))


class PrefetchTuner:
    """The depth that a loader's epochs begin with, and the figures that it was chosen by.

    Epochs change it while they go on, on the CPU, or when they end, on a GPU. Copies and pickles
    keep it. With a ``budget`` of bytes they begin with one batch ahead, until one is measured.
    """

    __slots__ = ("bound", "budget", "depth", "measured")

    def __init__(self, budget: int | None = None) -> None:
        self.budget = budget
        self.depth = INITIAL if budget is None else 1
        self.bound = ""
        self.measured: Measurement | None = None

    def begin(self, meter: EpochStats) -> EpochTuner:
        """Begins to measure an epoch on the CPU."""
        return EpochTuner(self, meter)

    def resume(self, depth: int) -> None:
        """Takes the depth of another loader, as far as this machine has cores for it."""
        self.depth = min(depth, max(INITIAL, 4 * num_cores()))
        self.bound, self.measured = "", None

    def finish_on_gpu(self, meter: EpochStats, num_nodes: int, index: int) -> None:
        """Chooses the depth of the next epoch on a GPU, after one that has ended."""
        stats = meter.stats()
        count, waiting = stats["batches"], stats["waiting_share"]
        if count < FIRST:
            return
        size = batch_bytes(stats) + WORKING_BYTES * num_nodes
        used = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
        free = devices.free_memory(index) if used else free_memory()
        step = stats["seconds"] * (1 - waiting) / count
        figures = None, step, waiting, 0.0, 1, size, free, self.budget
        self.measured = Measurement(meter.epoch, count, *figures)
        self.depth, self.bound = choose_depth_on_gpu(self.measured, self.depth)


class EpochTuner:
    """Measures an epoch on the CPU, and changes how many batches are ahead in it."""

    __slots__ = ("_cores", "_cpu", "_last", "_meter", "_next", "_tuner", "_work", "most", "next")

    # The most that the epoch can have ahead, and the step that asks for the next decision.
    most: int
    next: int

    def __init__(self, tuner: PrefetchTuner, meter: EpochStats) -> None:
        self._tuner, self._meter = tuner, meter
        self._cores = num_cores()
        self.most = max(tuner.depth, INITIAL, 4 * self._cores)
        self.next = START
        self._last: Mapping[str, Any] = {}
        self._cpu = 0.0
        # Seconds of work and jobs, of each stage.
        self._work: list[list[float]] = []

    def measured(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        """Returns ``submit``, of whose jobs it is noted how long the engine worked on them."""
        work = [0.0, 0.0]
        self._work.append(work)
        calls = 0

        def note(span: tuple[float, float] | None) -> None:
            if span is not None:
                work[0] += span[1] - span[0]
                work[1] += 1

        def measure(*arguments: Any) -> Any:
            nonlocal calls
            job = submit(*arguments)
            calls += 1
            return job if calls > ALL_MEASURED and calls % 8 else TracedJob(job, note)

        return measure

    def step(self, pacer: PrefetchController) -> None:
        """Measures the window that ends with this step, and has ``pacer`` keep what is chosen."""
        stats, cpu = self._meter.stats(), time.process_time()
        last, before = self._last, self._cpu
        self._last, self._cpu = stats, cpu
        count = stats["batches"]
        self.next = count + min(max(count, FIRST), LONGEST)
        if not last:
            return
        batches = count - last["batches"]
        seconds = stats["seconds"] - last["seconds"]
        seen = self._tuner.measured
        is_first = seen is None or seen.epoch != stats["epoch"]
        if batches < (LEAST if is_first else FIRST) or seconds <= 0:
            return
        waited = min(stats["waiting_seconds"] - last["waiting_seconds"], seconds)
        work = self._mean_work()
        # Cores that torch, and all else in the process, keeps busy while the loop goes on.
        busy = max(cpu - before - (work or 0.0) * batches, 0.0) / seconds
        tuner = self._tuner
        tuner.measured = measured = Measurement(
            epoch=stats["epoch"],
            batches=batches,
            work=work,
            step=(seconds - waited) / batches,
            waiting=waited / seconds,
            idle=max(self._cores - busy, 1.0),
            stages=max(len(self._work), 1),
            size=batch_bytes(stats),
            free=free_memory(),
            budget=tuner.budget,
        )
        depth, tuner.bound = choose_depth(measured, pacer.high, self.most)
        tuner.depth = depth = min(depth, self.most)
        pacer.resize(depth)

    def _mean_work(self) -> float | None:
        """Returns how long the engine worked on a batch, in all stages; None if it did on none."""
        if not self._work or not all(jobs for _, jobs in self._work):
            return None
        return sum(seconds / jobs for seconds, jobs in self._work)


class BudgetTuner:
    """Keeps as many batches ahead as a budget of bytes has room for, by the largest one so far.

    One more is in the hands of the loop, and one is ahead in any case. Sizes are looked at after
    1, 2, 4, ... batches: in the same steps of each run.
    """

    __slots__ = ("_budget", "_largest", "_working", "most", "next")

    def __init__(self, budget: int, depth: int, working: int = 0) -> None:
        """Takes the most that are ahead, and the bytes that a batch works in."""
        self._budget, self._working = budget, working
        self._largest = 0
        self.most = depth
        self.next = 0

    def measured(self, submit: Callable[..., Any]) -> Callable[..., Any]:
        """Returns ``submit``, of whose results the sizes are noted."""
        return lambda *arguments: MappedJob(submit(*arguments), self._note)

    def _note(self, batch: Any) -> Any:
        self._largest = max(self._largest, result_bytes(batch))
        return batch

    def step(self, pacer: PrefetchController) -> None:
        """Has ``pacer`` keep as many as there is room for."""
        self.next = max(2 * self.next, 1)
        size = self._largest + self._working
        if self._largest:
            pacer.resize(min(self.most, max(self._budget // size - 1, 1)))
