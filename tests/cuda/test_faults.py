"""Each call of the driver fails once: an error that says so, and then the next batch works."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import pygsampler as pgs
from tests.support.interpreter import Interpreter
from tests.support.parity import MODES, compare, random_graph, scaled
from tests.support.research import of_research

# Every attempt is the whole way, since a fault may leave any of it undone.
PROGRAM = """
import gc, sys
import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import random_graph

mode = "{mode}"
cpu = random_graph(200, seed=51, most=10).graph()
sampler = pgs.PGSampler([3, 2], seed=1, mode=mode)
want = sampler.sample(cpu, range(0, 200, 9), batch=0)
failures = []
for attempt in range(3):
    try:
        there = cpu.to("cuda")
        got = sampler.sample(there, range(0, 200, 9), batch=0)
        assert_equal(got, want)
        many = sampler.sample_many(there, [[1, 2], [3]], batch=0)
        assert [len(batch.output_nodes) for batch in many] == [2, 1]
        del many
        gc.collect()
        assert pgs.cuda.memory_stats(0)["flights"] == 0
        assert_equal(sampler.sample(there, range(0, 200, 9), batch=0), want)
        break
    except pgs.errors.CudaError as error:
        failures.append(str(error))
else:
    sys.exit("no batch after three attempts: " + repr(failures))
assert len(failures) <= 1, failures
print("failed:", *failures)
"""

# The same of a graph with types.
TYPED = """
import gc, sys
import numpy as np
import pygsampler as pgs
from tests.support.hetero_parity import assert_equal_batches

ends = np.arange(200) % 60, np.arange(200) * 7 % 50
edges = {{("a", "to", "b"): ends, ("b", "of", "a"): ends[::-1]}}
cpu = pgs.Graph.from_coo(edges, num_nodes={{"a": 60, "b": 50}})
sampler = pgs.PGSampler([3, 2], seed=1)
seeds = {{"a": [1, 2], "b": [3]}}
want = sampler.sample(cpu, seeds, batch=0)
failures = []
for attempt in range(3):
    try:
        there = cpu.to("cuda")
        assert_equal_batches(sampler.sample(there, seeds, batch=0), want, "first")
        gc.collect()
        assert pgs.cuda.memory_stats(0)["flights"] == 0
        without = {{("a", "to", "b"): [5]}}
        sampler.sample(there, seeds, batch=0, exclude=without)
        assert_equal_batches(sampler.sample(there, seeds, batch=0), want, "last")
        break
    except pgs.errors.CudaError as error:
        failures.append(str(error))
else:
    sys.exit("no batch after three attempts: " + repr(failures))
assert len(failures) <= 1, failures
print("failed:", *failures)
"""

# After so many calls in a row that no longer fail anything, the program has no more of them; after
# so many attempts at the least, since the results of some dozens of calls are of no use to anyone.
QUIET, ATTEMPTS = 25, 6

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize("mode", ["auto", *of_research("bsp", "queue"), "typed"])
def test_every_call_fails_once(tmp_path: Path, mode: str) -> None:
    assert mode in (*MODES, "typed")
    program = TYPED if mode == "typed" else PROGRAM
    together = scaled(min(16, 2 * len(os.sched_getaffinity(0))), 4)
    # Each process makes a context on a GPU, which takes seconds. Other calls fail in other modes.
    step = scaled(9, 29)
    quiet, number, seen = 0, 1 + [*MODES, "typed"].index(mode), 0

    def said(call: int, done: subprocess.CompletedProcess[str]) -> str:
        assert done.returncode == 0, f"call {call}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr, f"call {call}: {done.stderr}"
        return done.stdout.partition("failed:")[2].strip()

    # Forks of one interpreter, in which nothing has loaded the driver: an import takes longer than
    # all that a script does on the emulator.
    interpreter = Interpreter(imports=("numpy", "pygsampler", "tests.support.parity"))
    with contextlib.closing(interpreter):
        while quiet < max(QUIET, ATTEMPTS * step):
            calls = range(number, number + together * step, step)
            faults = [{"PYGSAMPLER_FAULT": f"{call}:999"} for call in calls]
            given = program.format(mode=mode), tmp_path, [()] * together, faults
            for text in map(said, calls, interpreter.run_together(*given, timeout=240)):
                # Some calls only give memory back: nobody waits for their result.
                quiet = 0 if text else quiet + step
                seen += bool(text)
                assert not text or "999" in text, text
            number = calls[-1] + step
    assert seen * step >= 30


def test_a_driver_that_dies(run_script: Run) -> None:
    """Sticky errors, as after a kernel that crashed: errors for good, no hang, no crash."""
    script = """
    import pygsampler as pgs
    from tests.support.parity import random_graph
    cpu = random_graph(200, seed=51, most=10).graph()
    sampler = pgs.PGSampler([3, 2], seed=1)
    for attempt in range(3):
        try:
            sampler.sample(cpu.to("cuda"), range(20))
            raise SystemExit("a batch of a dead device")
        except pgs.errors.CudaError as error:
            assert "700" in str(error), error
    assert len(sampler.sample(cpu, range(20)).output_nodes) == 20
    print("ended")
    """
    for call in (scaled(5, 5), scaled(20, 20), scaled(40, 30)):
        done = run_script(script, PYGSAMPLER_FAULT=f"{call}:700:sticky")
        assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


def test_a_variable_that_says_nothing(run_script: Run) -> None:
    done = run_script(
        """
        import pygsampler as pgs
        try:
            pgs.cuda.device_count()
        except pgs.errors.CudaError as error:
            print(error)
        """,
        PYGSAMPLER_FAULT="often",
    )
    assert "PYGSAMPLER_FAULT" in done.stdout, done.stdout + done.stderr


def test_out_of_memory_says_how_much() -> None:
    """No device has room for a map of so many vertices; and the next batch works."""
    vast = pgs.Graph.from_csc([0, 1], [0], num_nodes=1 << 44)
    with pytest.raises(pgs.errors.CudaError, match=r"out of memory: asked for \d+ bytes"):
        pgs.PGSampler([1, 1]).sample(vast.to("cuda"), [0])
    cpu = random_graph(200, seed=52).graph()
    compare(cpu, cpu.to("cuda"), range(50), [3, 2])
    assert pgs.cuda.memory_stats(0)["flights"] == 0


def test_out_of_memory_with_types() -> None:
    """Checks that a heterogeneous graph that is too large is an error, and the next batch works."""
    kind = "a", "to", "a"
    vast = pgs.HeteroGraph({kind: ([0, 1], [0])}, {"a": 1 << 44}).to("cuda")
    sampler = pgs.PGSampler([1, 1])
    with pytest.raises(pgs.errors.CudaError, match=r"out of memory: asked for \d+ bytes"):
        sampler.sample(vast, {"a": [0]})
    small = pgs.HeteroGraph({kind: ([0, 1], [0])}).to("cuda")
    assert sampler.sample(small, {"a": [0]}).cpu().input_nodes["a"].tolist() == [0]
    assert pgs.cuda.memory_stats(0)["flights"] == 0
