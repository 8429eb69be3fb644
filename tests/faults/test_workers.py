"""Torch's own DataLoader over our sampler: workers of every kind, and one that is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader
from torch_graphs import regular

import pygsampler as pgs

NODES, DEGREE = 2000, 12


class Collate:
    """What a worker does with the ids of a batch; ``kill`` is a vertex that it dies of."""

    def __init__(self, graph: pgs.Graph, kill: int = -1) -> None:
        self.graph = graph
        self.sampler = pgs.PGSampler([5, 5], seed=1)
        self.kill = kill

    def __call__(self, ids: list[int]) -> Any:
        if self.kill in ids:
            # In the middle of a batch: the engine is at work when the signal comes.
            self.sampler.submit(self.graph, torch.arange(NODES).repeat(500))
            threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()
            while True:
                self.sampler.sample(self.graph, torch.arange(NODES).repeat(50))
        # The batch's number is of its ids alone, so that every kind of worker gives the same.
        return self.sampler.sample(self.graph, torch.tensor(ids), batch=ids[0]).torch()


def loader(collate: Collate, **options: Any) -> Any:
    return DataLoader(range(NODES), batch_size=100, collate_fn=collate, **options)  # type: ignore


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    with warnings.catch_warnings():
        # Python 3.12 warns of forks in processes with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        yield
    end = time.monotonic() + 60
    while multiprocessing.active_children() and time.monotonic() < end:
        time.sleep(0.01)
    left = multiprocessing.active_children()
    # The next tests are not to fail of these, nor to wait for them.
    for child in left:
        child.kill()
    assert not left


def nodes_of(batches: Any) -> list[list[int]]:
    return [batch.input_nodes.tolist() for batch in batches]


def test_a_worker_that_is_killed_in_the_middle_of_a_batch() -> None:
    """After it: the loop raises and does not hang, no process and no job is left, and a new
    loader over the same graph gives every batch."""
    graph = regular(NODES, DEGREE)
    want = nodes_of(loader(Collate(graph)))
    seen = 0
    # Of the worker, or of a tensor that it had sent and that was not taken over before its death.
    with pytest.raises((RuntimeError, OSError, EOFError)) as raised:
        for _ in loader(Collate(graph, kill=1150), num_workers=2, timeout=60):
            seen += 1
    if raised.type is RuntimeError:
        raised.match(r"DataLoader worker .* (killed|exited)")
    # Its traceback has the loop, and that the other worker.
    del raised
    assert seen <= 11
    assert pgs.engine.memory_stats()["jobs"] == 0
    assert nodes_of(loader(Collate(graph), num_workers=2)) == want


def test_workers_that_persist() -> None:
    """After it: the second pass, by the same processes, gives what the first gave."""
    graph = regular(NODES, DEGREE)
    want = nodes_of(loader(Collate(graph)))
    persistent = loader(Collate(graph), num_workers=2, persistent_workers=True)
    assert nodes_of(persistent) == want
    first = [worker.pid for worker in persistent._iterator._workers]
    assert nodes_of(persistent) == want
    assert [worker.pid for worker in persistent._iterator._workers] == first


def test_a_loader_that_is_left_in_the_middle() -> None:
    """After it: the workers are gone, and with them what they held; the next pass is whole."""
    graph = regular(NODES, DEGREE)
    for _ in range(3):
        for step, _ in enumerate(loader(Collate(graph), num_workers=2)):
            if step == 1:
                break
    assert len(nodes_of(loader(Collate(graph), num_workers=1))) == 20


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_import_all_anew(method: str) -> None:
    """After it: processes that share nothing with this one give the same batches. In a program
    of its own, since such workers import the main module."""
    program = """
        import sys
        sys.path[:0] = {folders!r}
        from test_workers import DEGREE, NODES, Collate, loader, nodes_of, regular
        if __name__ == "__main__":
            graph = regular(NODES, DEGREE)
            want = nodes_of(loader(Collate(graph)))
            options = {{"num_workers": 1, "multiprocessing_context": {method!r}}}
            assert nodes_of(loader(Collate(graph), **options)) == want
            print("the same")
    """
    folder = os.path.dirname(__file__)
    folders = [folder, os.path.join(os.path.dirname(folder), "support")]
    script = textwrap.dedent(program.format(folders=folders, method=method))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stdout) == (0, "the same\n"), done.stderr
