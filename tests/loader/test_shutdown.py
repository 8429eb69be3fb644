"""Every way to stop using a loader: break, error, closed graph, Ctrl-C, end of the interpreter."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import torch

import pygsampler as pgs
from pygsampler.torch import DataLoader

SEEDS = torch.arange(2000)


def make_graph() -> pgs.Graph:
    indptr = torch.arange(0, 2001 * 20, 20)
    indices = torch.randint(0, 2000, (40000,), generator=torch.Generator().manual_seed(1))
    return pgs.Graph.from_csc(indptr, indices)


def test_break_and_again() -> None:
    loader = DataLoader(make_graph(), SEEDS, [10, 10], batch_size=50, seed=1)
    for _ in range(50):
        for step, _ in enumerate(loader):
            if step == 2:
                break
    assert sum(1 for _ in loader) == 40


def test_an_error_in_the_loop_leaves_the_loader_usable() -> None:
    loader = DataLoader(make_graph(), SEEDS, [10, 10], batch_size=50, seed=1)
    with pytest.raises(ZeroDivisionError):
        for _ in loader:
            1 / 0  # noqa: B018
    assert sum(1 for _ in loader) == 40


def test_a_closed_graph_raises_where_the_batch_is_consumed() -> None:
    graph = make_graph()
    loader = DataLoader(graph, SEEDS, [10, 10], batch_size=50, seed=1, prefetch=3)
    batches = iter(loader)
    next(batches)
    graph.close()
    good = 0
    with pytest.raises(pgs.errors.ClosedError):
        for _ in batches:
            good += 1
    # Three jobs were in flight, and closing the graph lets jobs in flight finish.
    assert good == 3
    with pytest.raises(pgs.errors.ClosedError):
        next(iter(loader))


def test_a_graph_that_only_the_iterator_holds() -> None:
    batches = iter(DataLoader(make_graph(), SEEDS, [10, 10], batch_size=50, seed=1))
    assert sum(batch.output_nodes.numel() for batch in batches) == 2000


def test_batches_outlive_everything() -> None:
    loader = DataLoader(make_graph(), SEEDS, [10, 10], batch_size=500, seed=1)
    nodes = [batch.input_nodes for batch in loader]
    expected = [tensor.tolist() for tensor in nodes]
    loader.set_epoch(0)
    list(loader)
    del loader
    assert [tensor.tolist() for tensor in nodes] == expected


PRELUDE = """
import torch
import pygsampler as pgs
from pygsampler.torch import DataLoader
n = 20000
indptr = torch.arange(0, (n + 1) * 50, 50)
graph = pgs.Graph.from_csc(indptr, torch.randint(0, n, (n * 50,)))
loader = DataLoader(
    graph, torch.arange(n), [15, 15, 15], batch_size=5000, prefetch=8, device="{device}"
)
"""


def run(script: str, device: str = "cpu") -> subprocess.Popen[str]:
    return subprocess.Popen(
        # Python 3.12 warns of forks in processes with threads.
        [
            sys.executable,
            "-W",
            "ignore::DeprecationWarning",
            "-c",
            PRELUDE.format(device=device) + textwrap.dedent(script),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.backends("cpu", "cuda")
@pytest.mark.parametrize(
    "script",
    [
        "batches = iter(loader); next(batches)",
        "batches = iter(loader); next(batches); import sys; sys.exit(0)",
        "keep = [iter(loader) for _ in range(3)]; kept = [next(batches) for batches in keep]",
    ],
    ids=["suspended", "exit", "three"],
)
def test_the_interpreter_ends_while_jobs_run(device: str, script: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a torch that is built for CUDA")
    process = run(script, device)
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err) == (0, "", "")


def test_the_interpreter_ends_while_a_daemon_thread_waits() -> None:
    """The thread's batches are cancelled under it, which it may say; nothing hangs or crashes."""
    process = run(
        """
        import threading, time
        threading.Thread(target=list, args=(loader,), daemon=True).start()
        time.sleep(0.05)
        """
    )
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out) == (0, "")
    assert err == "" or "Exception in thread" in err


def test_a_daemon_thread_that_learns_of_the_end_frees_its_batches_before_it() -> None:
    """torch ends the process when a thread frees a tensor after the interpreter's end."""
    process = run(
        """
        import threading, time
        def work():
            kept = []
            try:
                while True:
                    kept = list(loader)
            except pgs.errors.ClosedError:
                time.sleep(0.3)
                kept.clear()
                print("freed", flush=True)
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.05)
        """
    )
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err) == (0, "freed\n", "")


def test_ctrl_c_stops_a_wait() -> None:
    process = run(
        """
        slow = DataLoader(graph, torch.arange(n), [-1, -1, -1, -1], batch_size=n, prefetch=2)
        print("ready", flush=True)
        try:
            while True:
                list(slow)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        list(DataLoader(graph, torch.arange(100), [2], batch_size=10))
        print("usable", flush=True)
        """
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    # Not line by line: readline may take a second line along, which communicate would not see.
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err) == (0, "stopped\nusable\n", "")


def test_a_fork_while_jobs_run() -> None:
    """The child drops the parent's iterator without touching its jobs; both go on sampling."""
    process = run(
        """
        import os
        batches = iter(loader)
        next(batches)
        child = os.fork()
        small = DataLoader(graph, torch.arange(100), [2], batch_size=10, seed=1)
        assert sum(1 for _ in small) == 10
        if child:
            assert sum(1 for _ in batches) == 3
            _, status = os.waitpid(child, 0)
            assert status == 0, status
        """
    )
    out, err = process.communicate(timeout=240)
    assert (process.returncode, out, err) == (0, "", "")
