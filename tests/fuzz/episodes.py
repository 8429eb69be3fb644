"""Runs episodes: some hundred random calls on one world, by one thread or by several."""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

import pygsampler as pgs
from tests.fuzz import batches, contexts, files, graphs, modules, samplers
from tests.fuzz.world import OPERATIONS, World, step

__all__ = ["CALLS", "Episode", "Failure", "Holdings", "holdings", "run"]
# They add their operations when they are imported.
assert batches and contexts and files and graphs and modules and samplers

CALLS = 250
SHARED = 0.15
THREADS = 3


@dataclass(frozen=True)
class Episode:
    """Its calls depend on these alone; with several threads their order does not."""

    seed: int
    number: int
    device: str = "cpu"

    def random(self, thread: int = 0) -> Random:
        return Random(f"{self.seed}:{self.number}:{thread}")

    @property
    def shared(self) -> bool:
        return Random(f"{self.seed}:{self.number}").random() < SHARED


class Failure(Exception):
    """A call that broke a promise: which one, and how."""


def run(
    episode: Episode,
    trace: Callable[[str], None] | None = None,
    sabotage: Callable[[World, Random], None] | None = None,
) -> int:
    """All calls of an episode; the number of them. Raises Failure."""
    world = World(shared=episode.shared, device=episode.device)
    threads_before = pgs.get_num_threads()
    errors: list[Failure] = []

    def work(thread: int, calls: int) -> None:
        random = episode.random(thread)
        names = list(OPERATIONS)
        weights = [OPERATIONS[name][1] for name in names]
        for number, name in enumerate(random.choices(names, weights, k=calls)):
            if errors:
                return
            if trace is not None:
                trace(f"{episode.number}.{thread}.{number} {name}")
            try:
                if sabotage is not None and number == calls // 2:
                    sabotage(world, random)
                step(world, random, name)
            except Exception:
                text = f"call {number} of thread {thread}, {name}\n{traceback.format_exc()}"
                errors.append(Failure(text))

    if not world.shared:
        work(0, CALLS)
    else:
        threads = [
            threading.Thread(target=work, args=(i, CALLS // THREADS)) for i in range(THREADS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    pgs.set_num_threads(threads_before)
    if errors:
        raise errors[0]
    return CALLS if not world.shared else CALLS // THREADS * THREADS


@dataclass(frozen=True)
class Holdings:
    """What a process holds when no object of ours is left."""

    memories: int
    jobs: int
    descriptors: int
    threads: int
    resident: int

    def leaks(self, before: Holdings) -> Iterator[str]:
        """What has grown, in words. Memory grows by pieces, the rest not at all."""
        for name, slack in {
            "memories": 0,
            "jobs": 0,
            # The system's own: a file of /proc that is being read, a thread of Go's.
            "descriptors": 2,
            "threads": 12,
            "resident": 48 << 20,
        }.items():
            now, then = getattr(self, name), getattr(before, name)
            if now > then + slack:
                yield f"{name}: {then} before, {now} now"


def holdings() -> Holdings:
    gc.collect()
    stats = pgs.engine.memory_stats()
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    descriptors = 0
    with contextlib.suppress(OSError):
        descriptors = len(os.listdir("/proc/self/fd"))
    return Holdings(
        memories=stats["live"],
        jobs=stats["jobs"],
        descriptors=descriptors,
        threads=len(os.listdir("/proc/self/task")),
        resident=pages * os.sysconf("SC_PAGE_SIZE"),
    )
