"""Memory that runs out: an error that says so, at whatever size, and then all goes on."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

pytestmark = pytest.mark.once

PROGRAM = """
import gc, resource
from array import array
import pygsampler as pgs

def mapped():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()

n, degree = 100_000, 8
indices = array("q", bytes(8 * n * degree))
for i in range(degree):
    indices[i::degree] = array("q", ((v * 7919 + i * 104729) % n for v in range(n)))
graph = pgs.Graph.from_csc(array("q", range(0, n * degree + 1, degree)), indices)
sampler = pgs.PGSampler([6, 6], seed=0)
seeds, few = array("q", range(20_000)), array("q", range(50))
ends = array("q", (v % n for v in range(300_000)))

def sample():
    return sampler.sample(graph, seeds, batch=0).num_edges

def sample_many():
    batches = sampler.sample_many(graph, [seeds, seeds, few], batch=0)
    return sum(batch.num_edges for batch in batches)

def from_edges():
    return pgs.Graph.from_coo(ends, ends, num_nodes=n).num_edges

# All threads that the engine will want are there before memory is short.
work = {what}
want = [work() for _ in range(3)][0]
right = sampler.sample(graph, few, batch=0).input_nodes.tolist()
outcomes = []
for step in range({least}, {most}, {every}):
    gc.collect()
    pgs.engine.trim()
    before = pgs.engine.memory_stats()["live"]
    resource.setrlimit(resource.RLIMIT_AS, (mapped() + step, resource.RLIM_INFINITY))
    try:
        outcomes.append(work() == want)
    except MemoryError as error:
        outcomes.append("memory" in str(error) or not str(error))
        assert outcomes[-1], error
        outcomes[-1] = None
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    gc.collect()
    assert pgs.engine.memory_stats()["live"] == before and pgs.engine.memory_stats()["jobs"] == 0
    assert sampler.sample(graph, few, batch=0).input_nodes.tolist() == right
print(outcomes.count(None), outcomes.count(True), outcomes.count(False), work() == want)
"""

# In MiB: what the engine leaves to Go's runtime, which ends the process when it finds no address
# space for itself. With less than this nothing new is mapped at all.
ROOM = 160


def little_stack() -> None:
    """A thread of the engine's then takes 256 KiB of the address space, and not 8 MiB."""
    resource.setrlimit(resource.RLIMIT_STACK, (256 << 10, 256 << 10))


@pytest.mark.parametrize(
    ("what", "most", "every"),
    [
        ("sample", 24, 1),
        ("sample_many", 40, 4),
        ("from_edges", 24, 2),
    ],
)
def test_memory_that_runs_out_at_every_size(what: str, most: int, every: int) -> None:
    """After it: MemoryError or the right answer at every step, nothing is kept of what failed,
    and with memory again the next call is right."""
    steps = {"least": ROOM << 20, "most": (ROOM + most) << 20, "every": every << 20}
    program = PROGRAM.format(what=what, **steps)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=240,
        preexec_fn=little_stack,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    failed, good, wrong, last = done.stdout.split()
    assert int(failed) > 0
    assert int(good) > 0
    assert (wrong, last) == ("0", "True")


def test_a_batch_beyond_all_memory() -> None:
    """Sizes that no machine has are refused as such, not tried; the next batch works."""
    import pygsampler as pgs

    graph = pgs.Graph.from_csc([0, 1], [0], num_nodes=1 << 40)
    sampler = pgs.PGSampler([(1 << 31) - 1] * 6, replace=True, seed=0)
    with pytest.raises(MemoryError, match="out of memory"):
        sampler.sample(graph, [0])
    assert pgs.PGSampler([1], seed=0).sample(graph, [0]).num_edges == 1
