"""Loops that end early: abandoned, interrupted at any moment, cut off by the end of all."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from random import Random

import pytest
import torch
from torch_graphs import regular

import pygsampler as pgs
from pygsampler.torch import DataLoader

NODES, DEGREE = 3000, 12


def held() -> tuple[int, int, int]:
    """Memories and jobs of the engine's, and Python's threads."""
    gc.collect()
    stats = pgs.engine.memory_stats()
    return stats["live"], stats["jobs"], threading.active_count()


def test_a_consumer_that_abandons_its_loader() -> None:
    """After it: no job runs on, no memory is kept, no thread is left; the next pass is right."""
    graph = regular(NODES, DEGREE)
    loader = DataLoader(graph, torch.arange(NODES), [8, 8], batch_size=100, seed=1, prefetch=8)
    loader.set_epoch(0)
    want = [batch.input_nodes.tolist() for batch in loader]
    before = held()
    for left_after in (0, 1, 5):
        batches = iter(loader)
        for _ in range(left_after):
            next(batches)
        kept = [iter(loader) for _ in range(4)]
        for other in kept:
            next(other)
        del batches, kept, other
        assert held() == before
    # Held by a cycle, as in a frame of a notebook: gone with the next collection.
    cycle: list[object] = [iter(loader)]
    next(cycle[0])  # type: ignore[call-overload]
    cycle.append(cycle)
    del cycle
    assert held() == before
    loader.set_epoch(0)
    assert [batch.input_nodes.tolist() for batch in loader] == want


@pytest.fixture
def press_ctrl_c() -> Iterator[Callable[[float], None]]:
    """Sends SIGINT to the main thread after so many seconds."""
    timers: list[threading.Timer] = []
    main = threading.main_thread().ident
    assert main is not None

    def press(seconds: float) -> None:
        timer = threading.Timer(seconds, signal.pthread_kill, (main, signal.SIGINT))
        timers.append(timer)
        timer.start()

    yield press
    for timer in timers:
        timer.cancel()
        timer.join()


def test_ctrl_c_at_random_moments_of_200_loops(press_ctrl_c: Callable[[float], None]) -> None:
    """After each: KeyboardInterrupt has arrived, no job is left, the batch asked for next is
    right and of the number that comes next; and after all of them no memory is kept."""
    graph = regular(NODES, DEGREE)
    sampler = pgs.PGSampler([8, 8], seed=1)
    want = sampler.sample(graph, range(100), epoch=0, batch=7).input_nodes.tolist()
    loader = DataLoader(graph, torch.arange(NODES), sampler, batch_size=60, prefetch=3)
    before = held()[:2]
    random = Random(1)

    def loop_over(kind: int) -> None:
        while True:
            if kind == 0:
                sampler.sample_many(graph, [range(100)] * 3)
            elif kind == 1:
                [sampler.submit(graph, range(100)) for _ in range(3)][1].result()
            elif kind == 2:
                sampler.sample(graph, range(300))
            elif kind == 3:
                pgs.Graph.from_coo(range(NODES), range(NODES))
                sampler.sample(graph, range(300)).blocks[0].coo()
            else:
                for batch in loader:
                    assert len(batch.output_nodes) == 60

    for loop in range(200):
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c(random.uniform(0, 0.01))
            loop_over(loop % 5)
        batch = sampler.sample(graph, range(100), epoch=0, batch=7)
        assert batch.input_nodes.tolist() == want
        first, second = sampler.sample(graph, [0]).batch, sampler.sample(graph, [0]).batch
        assert second == first + 1
    del batch
    assert held()[:2] == before


PRELUDE = """
import threading
from array import array
import pygsampler as pgs
n, degree = 50_000, 20
indices = array("q", ((v * 7919) % n for v in range(n * degree)))
graph = pgs.Graph.from_csc(array("q", range(0, n * degree + 1, degree)), indices)
deep = pgs.PGSampler([15] * 6, seed=0)
small = pgs.PGSampler([3], seed=0)
"""


@pytest.mark.parametrize(
    "script",
    [
        "import atexit; job = deep.submit(graph, range(n)); atexit.register(lambda: print(job))",
        "cycle = [deep.submit(graph, range(n)), graph]; cycle.append(cycle); del graph",
    ],
    ids=["seen at the end", "in a cycle"],
)
def test_the_interpreter_ends_with_batches_in_flight(script: str) -> None:
    """After it: status 0 within moments, and not a word on standard error."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + script],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_a_process_that_is_ended_by_a_signal_leaves_nothing() -> None:
    """After it: SIGTERM in the middle of a batch ends the process at once, by that signal."""
    script = PRELUDE + "print('ready', flush=True)\nwhile True: deep.sample(graph, range(n))"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.05)
    process.terminate()
    assert process.wait(240) == -signal.SIGTERM
    process.stdout.close()
