"""Fork, spawn, the interpreter's end, and other users of CUDA in the same process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

Run = Callable[..., subprocess.CompletedProcess[str]]

PRELUDE = """
import os, pickle, sys, warnings
import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import emulated, random_graph
emulator = emulated()
warnings.simplefilter("ignore", DeprecationWarning)
cpu = random_graph(300, seed=61).graph(to_pin=True)
sampler = pgs.PGSampler([4, 3], seed=1)
want = sampler.sample(cpu, range(50), batch=0)
there = cpu.to("cuda")
assert_equal(sampler.sample(there, range(50), batch=0), want)

def in_child(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
"""


def check(run_script: Run, script: str) -> None:
    import textwrap

    done = run_script(PRELUDE + textwrap.dedent(script) + "\nprint('ended')\n")
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stdout + done.stderr
    assert not done.stderr


def test_a_forked_child_samples_on_the_cpu(run_script: Run) -> None:
    check(
        run_script,
        """
        def work():
            assert_equal(sampler.sample(cpu, range(50), batch=0), want)
            assert_equal(sampler.sample(there.to("cpu"), range(50), batch=0), want)
        in_child(work)
        assert_equal(sampler.sample(there, range(50), batch=0), want)
        """,
    )


def test_a_forked_child_says_why_it_cannot_use_the_gpu(run_script: Run) -> None:
    check(
        run_script,
        """
        def work():
            for attempt in range(2):
                try:
                    sampler.sample(there, range(50))
                    raise SystemExit("a batch of the parent's device")
                except pgs.errors.CudaError as error:
                    assert "fork" in str(error), error
            assert emulator or not pgs.cuda.is_available()
        in_child(work)
        batch = sampler.sample(there, range(50), batch=0)
        # What the child drops is the parent's to give back.
        in_child(lambda: globals().pop("batch"))
        assert_equal(batch, want)
        """,
    )


def test_a_child_forked_before_cuda_may_use_it(run_script: Run) -> None:
    done = run_script(
        """
        import os, warnings
        import pygsampler as pgs
        from tests.support.assertions import assert_equal
        from tests.support.parity import random_graph
        warnings.simplefilter("ignore", DeprecationWarning)
        cpu = random_graph(300, seed=61).graph()
        sampler = pgs.PGSampler([4, 3], seed=1)
        want = sampler.sample(cpu, range(50), batch=0)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                assert_equal(sampler.sample(cpu.to("cuda"), range(50), batch=0), want)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert_equal(sampler.sample(cpu.to("cuda"), range(50), batch=0), want)
        """
    )
    assert done.returncode == 0, done.stderr


def test_pickled_graphs_find_their_device(run_script: Run) -> None:
    check(
        run_script,
        """
        copy = pickle.loads(pickle.dumps(there))
        assert copy.device == "cuda:0"
        assert_equal(sampler.sample(copy, range(50), batch=0), want)
        batch = pickle.loads(pickle.dumps(sampler.sample(there, range(50), batch=0).cpu()))
        assert_equal(batch, want)
        """,
    )


def test_the_end_with_everything_alive(run_script: Run) -> None:
    check(
        run_script,
        """
        jobs = [sampler.submit(there, range(100)) for _ in range(8)]
        batches = [sampler.sample(there, range(100)) for _ in range(8)]
        capsules = [batch.input_nodes.__dlpack__(stream=1) for batch in batches]
        pinned = cpu.pin()
        sampler.sample(pinned, [1])
        """,
    )


def test_no_driver_is_opened_by_the_import(run_script: Run) -> None:
    done = run_script(
        """
        import pygsampler as pgs
        graph = pgs.Graph.from_csc([0, 1], [0])
        pgs.PGSampler([1]).sample(graph, [0])
        print("libcuda" in open("/proc/self/maps").read())
        """
    )
    assert (done.returncode, done.stdout) == (0, "False\n"), done.stderr
