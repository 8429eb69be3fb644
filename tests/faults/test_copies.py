"""More than one of everything: forks from threads, processes that start at once, packages that are
imported twice, interpreters in one process."""

from __future__ import annotations

import subprocess
import sys
import threading
import warnings

import pytest
from forks import finish, start
from graphs import as_lists, circulant

import pygsampler as pgs

pytestmark = pytest.mark.once


@pytest.fixture(autouse=True)
def quiet_forks():
    with warnings.catch_warnings():
        # Python 3.12 warns of forks in processes with threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def test_forks_from_threads_while_others_sample():
    """After it: each child, born of a thread that is not the main one, has sampled what its parent
    samples, and the parent's threads have not lost a batch."""
    graph, sampler = circulant(2000, 9), pgs.PGSampler([4, 3], seed=1)
    want = as_lists(sampler.sample(graph, range(100), batch=0))
    stop, failures = threading.Event(), []

    def sample() -> None:
        while not stop.is_set():
            if as_lists(sampler.sample(graph, range(100), batch=0)) != want:
                failures.append("a batch of the parent")

    def fork() -> None:
        try:
            for _ in range(3):
                child = start(lambda: as_lists(sampler.sample(graph, range(100), batch=0)))
                if finish(*child) != want:
                    failures.append("a batch of a child")
        except BaseException as error:
            failures.append(repr(error))

    samplers = [threading.Thread(target=sample) for _ in range(2)]
    forkers = [threading.Thread(target=fork) for _ in range(2)]
    for thread in samplers + forkers:
        thread.start()
    for thread in forkers:
        thread.join(240)
    stop.set()
    for thread in samplers:
        thread.join(240)
    assert not failures
    assert not any(thread.is_alive() for thread in samplers + forkers)
    assert as_lists(sampler.sample(graph, range(100), batch=0)) == want


PROGRAM = """
import sys
import pygsampler as pgs
graph = pgs.Graph.from_csc([0, 2, 4, 6], [1, 2, 0, 2, 0, 1])
sys.stdin.readline()
print(pgs.PGSampler([1, 1], seed=3).sample(graph, [0], batch=0).input_nodes.tolist())
"""


def test_two_processes_load_the_extension_at_once():
    """After it: both have their own engine, and the same batch."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    # Both wait at the same line, loaded, until they are told to go on.
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    ends = [process.communicate(timeout=240) for process in processes]
    assert ends[0] == ends[1]
    assert ends[0][1] == ""
    assert ends[0][0].startswith("[0, ")


def test_a_package_that_is_imported_twice(run_python):
    """After it: two copies of the Python package, first used by many threads at once, sample alike,
    take each other's arrays, and the process ends well."""
    script = """
        import sys, threading
        import pygsampler as first
        names = [name for name in sys.modules if name.split(".")[0] == "pygsampler"]
        kept = {name: sys.modules.pop(name) for name in names}
        import pygsampler as second
        assert second is not first and second.Graph is not first.Graph
        found = []
        def work(pgs):
            graph = pgs.Graph.from_csc([0, 2, 4, 6], [1, 2, 0, 2, 0, 1])
            batch = pgs.PGSampler([1, 1], seed=3).sample(graph, [0, 2], batch=0)
            found.append((batch.input_nodes.tolist(), batch.blocks[0].edge_ids.tolist()))
        threads = [threading.Thread(target=work, args=(pgs,)) for pgs in [first, second] * 8]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(found) == 16 and all(one == found[0] for one in found), found
        graph = first.Graph.from_csc([0, 1], [0])
        batch = second.PGSampler([1], seed=0).sample(
            second.Graph.from_csc(graph.indptr, graph.indices), graph.indices
        )
        assert batch.num_edges == 1
        try:
            second.PGSampler([1]).sample(graph, [0])
            raise SystemExit("a graph of another copy was taken")
        except TypeError as error:
            assert "expected a pygsampler.Graph" in str(error)
        print("ended")
    """
    assert run_python(script) == "ended\n"


def test_interpreters_within_a_process(run_python):
    """After it: an interpreter in the same process has sampled or was told by an ImportError that
    extensions like ours do not load there, which is CPython's own rule; never a crash, and the main
    interpreter goes on."""
    script = """
        import importlib.util, sys, textwrap
        names = ("_interpreters", "_xxsubinterpreters")
        found = [name for name in names if importlib.util.find_spec(name)]
        interpreters = importlib.import_module(found[0])
        import pygsampler as pgs
        graph = pgs.Graph.from_csc([0, 2, 4, 6], [1, 2, 0, 2, 0, 1])
        sampler = pgs.PGSampler([1, 1], seed=3)
        want = sampler.sample(graph, [0, 2], batch=0).input_nodes.tolist()
        inside = textwrap.dedent(f'''
            import sys
            sys.path[:] = {sys.path!r}
            try:
                import pygsampler as pgs
                graph = pgs.Graph.from_csc([0, 2, 4, 6], [1, 2, 0, 2, 0, 1])
                got = pgs.PGSampler([1, 1], seed=3).sample(graph, [0, 2], batch=0)
                assert got.input_nodes.tolist() == {want}
                del graph, got
            except ImportError as error:
                assert "subinterpreters" in str(error), error
        ''')
        for _ in range(3):
            one = interpreters.create()
            raised = interpreters.run_string(one, inside)
            assert raised is None, raised
            interpreters.destroy(one)
            assert sampler.sample(graph, [0, 2], batch=0).input_nodes.tolist() == want
        print("ended")
    """
    assert run_python(script) == "ended\n"
