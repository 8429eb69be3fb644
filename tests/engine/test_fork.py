"""Forked children get an engine of their own, whatever the parent was doing."""

from __future__ import annotations

import gc
import multiprocessing
import os
import threading

import numpy as np
import pyarrow as pa
import pytest
import torch
from forks import finish, in_child, start
from graphs import as_lists, circulant

import pygsampler as pgs
from pygsampler._engine import library

# From Python 3.12 on every fork of a process with threads warns; torch and Arrow have some.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")


@pytest.fixture
def graph() -> pgs.Graph:
    return circulant(2_000, 9)


@pytest.fixture
def sampler() -> pgs.PGSampler:
    return pgs.PGSampler([4, 4], seed=0)


def test_a_child_samples_what_its_parent_does(graph, sampler):
    expected = as_lists(sampler.sample(graph, range(500), batch=3))
    for _ in range(10):
        assert in_child(lambda: as_lists(sampler.sample(graph, range(500), batch=3))) == expected
    assert as_lists(sampler.sample(graph, range(500), batch=3)) == expected


def test_many_children_at_once(graph, sampler):
    expected = [as_lists(sampler.sample(graph, range(500), batch=i)) for i in range(12)]
    children = [
        start(lambda i=i: as_lists(sampler.sample(graph, range(500), batch=i))) for i in range(12)
    ]
    assert [finish(*child) for child in children] == expected


def test_a_child_uses_several_threads_and_collects_garbage(graph, sampler):
    def work():
        pgs.set_num_threads(4)
        found = []
        threads = [
            threading.Thread(
                target=lambda i=i: found.extend(
                    sampler.sample(graph, range(i, 500), batch=b).num_edges for b in range(50)
                )
            )
            for i in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        gc.collect()
        return len(found)

    sampler.sample(graph, [0])
    assert in_child(work) == 200


def test_what_a_child_drops_of_its_parents_ends_nothing(sampler):
    """Neither of the parent's, whose engine is dead there, nor of its own under equal numbers."""

    def sample(graph: pgs.Graph):
        return as_lists(sampler.sample(graph, range(50), batch=0))

    graphs = [circulant(50, 3) for _ in range(4)]
    expected = [sample(graph) for graph in graphs]
    jobs = [sampler.submit(graphs[0], range(50), batch=0) for _ in range(3)]

    def work():
        # Some before its engine is there, the rest after.
        del graphs[2:], jobs[1:]
        mine = [circulant(50, 3) for _ in range(max(graph._source._number for graph in graphs))]
        wrong = [graph for graph in mine if sample(graph) != expected[0]]
        alike = {graph._source._number for graph in graphs} & {
            graph._source._number for graph in mine
        }
        graphs.clear()
        jobs.clear()
        gc.collect()
        return len(alike), wrong + [graph for graph in mine if sample(graph) != expected[0]]

    assert in_child(work) == (2, [])
    assert [as_lists(job.result()) for job in jobs] == expected[:1] * 3
    assert [sample(graph) for graph in graphs] == expected


def test_children_of_children(graph, sampler):
    expected = as_lists(sampler.sample(graph, range(100), batch=0))

    def deeper(levels: int):
        found = [as_lists(sampler.sample(graph, range(100), batch=0)) == expected]
        return found + (in_child(lambda: deeper(levels - 1)) if levels else [])

    assert in_child(lambda: deeper(3)) == [True] * 4


def test_a_child_that_closes_all_files_still_has_children(graph, sampler):
    expected = as_lists(sampler.sample(graph, range(100), batch=0))

    def sample():
        return as_lists(sampler.sample(graph, range(100), batch=0)) == expected

    def outer():
        first = sample()
        # As a daemon does; only what in_child itself needs is left.
        for copy in library._copies:
            os.close(copy)
        return [first, in_child(sample), in_child(lambda: in_child(sample))]

    assert in_child(outer) == [True, True, True]


@pytest.mark.parametrize("missing", [True, False])
def test_without_memory_files_a_temporary_one_does(graph, sampler, monkeypatch, missing):
    expected = as_lists(sampler.sample(graph, range(100), batch=0))
    if missing:
        monkeypatch.delattr(os, "memfd_create")
    else:

        def refuse(*_):
            raise OSError("not here")

        monkeypatch.setattr(os, "memfd_create", refuse)
    assert in_child(lambda: as_lists(sampler.sample(graph, range(100), batch=0))) == expected


def test_generations_tell_processes_apart(graph):
    here = library.generation()
    assert in_child(library.generation) == here + 1
    assert in_child(lambda: in_child(library.generation)) == here + 2
    assert library.generation() == here


def test_the_number_of_threads_is_inherited():
    before = pgs.set_num_threads(3)
    try:
        assert in_child(pgs.get_num_threads) == 3
    finally:
        pgs.set_num_threads(before)


def test_the_parents_memory_can_be_read_exported_and_dropped_in_a_child():
    graph = pgs.Graph.from_coo([0, 1, 2, 3], [1, 2, 3, 0])
    batches = [pgs.PGSampler([2, 2], seed=0).sample(graph, [0, 1]) for _ in range(20)]
    views = [batch.input_nodes for batch in batches]
    tensors = [batch.torch() for batch in batches]
    expected = views[0].tolist()

    def work():
        found = [
            views[0].tolist(),
            views[1].numpy().tolist(),
            views[2].torch().tolist(),
            torch.from_dlpack(views[3]).tolist(),
            np.from_dlpack(views[4]).tolist(),
            pa.array(views[5]).to_pylist(),
            tensors[6].input_nodes.tolist(),
        ]
        edges = batches[0].blocks[0].coo()[1].tolist()
        batches.clear()
        views.clear()
        tensors.clear()
        gc.collect()
        return found, edges, pgs.PGSampler([-1], seed=0).sample(graph, [0]).num_edges

    found, edges, count = in_child(work)
    assert found == [expected] * 7
    assert edges == batches[0].blocks[0].coo()[1].tolist()
    assert count == 1


def test_objects_made_in_a_child_travel_back(graph, sampler):
    batch = in_child(lambda: sampler.sample(graph, range(50), batch=1))
    assert as_lists(batch) == as_lists(sampler.sample(graph, range(50), batch=1))


def test_closing_and_dropping_in_a_child_leaves_the_parent_alone(graph, sampler):
    batch = sampler.sample(graph, [0], batch=0)

    def work():
        nonlocal batch
        del batch
        graph.close()
        gc.collect()
        with pytest.raises(pgs.errors.ClosedError):
            sampler.sample(graph, [0])
        return True

    assert in_child(work)
    assert as_lists(sampler.sample(graph, [0], batch=0)) == as_lists(batch)


def test_a_child_drops_its_parents_jobs_without_a_word():
    heavy = circulant(50_000, 20, 32)
    deep = pgs.PGSampler([15] * 8, seed=0)
    jobs = [deep.submit(heavy, range(50_000)) for _ in range(3)]

    def work():
        texts = [repr(job) for job in jobs]
        jobs[0].cancel()
        jobs.clear()
        gc.collect()
        return texts

    assert in_child(work) == [f"Job(epoch=0, batch={i}, lost in a fork)" for i in range(3)]
    for job in jobs:
        job.cancel()


def test_forks_while_other_threads_use_the_engine(graph, sampler):
    expected = as_lists(sampler.sample(graph, range(100), batch=0))
    stop = threading.Event()

    def hammer(i: int) -> None:
        while not stop.is_set():
            sampler.sample(graph, range(i, 1000))
            pgs.PGSampler([1], seed=i).sample(circulant(20, 3), [0])

    threads = [threading.Thread(target=hammer, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(15):
            found = in_child(lambda: as_lists(sampler.sample(graph, range(100), batch=0)))
            assert found == expected
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_fork_before_the_first_use(run_python):
    script = """
        import os
        import pygsampler as pgs
        child = os.fork()
        graph = pgs.Graph.from_csc([0, 1], [0])
        assert pgs.PGSampler([1], seed=0).sample(graph, [0]).num_edges == 1
        if child:
            assert os.waitpid(child, 0)[1] == 0
            print("both")
        else:
            os._exit(0)
    """
    assert run_python(script) == "both\n"


def test_a_child_that_ends_in_the_usual_way(run_python):
    script = """
        import os, sys, warnings
        import pygsampler as pgs
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")
        graph, sampler = pgs.Graph.from_csc([0, 1], [0]), pgs.PGSampler([1], seed=0)
        sampler.sample(graph, [0])
        for samples in (True, False):
            child = os.fork()
            if not child:
                if samples:
                    sampler.sample(graph, [0])
                sys.exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        print("end")
    """
    assert run_python(script) == "end\n"


def sample_edges(arguments: tuple[pgs.Graph, pgs.PGSampler, int]) -> list[int]:
    graph, sampler, batch = arguments
    return sampler.sample(graph, range(100), batch=batch).blocks[0].edge_ids.tolist()


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_pools_of_every_kind(graph, sampler, method):
    expected = [sample_edges((graph, sampler, batch)) for batch in range(4)]
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(sample_edges, [(graph, sampler, batch) for batch in range(4)])
    assert found == expected


def test_rows_by_time_and_weight_know_the_edges_without_one():
    """A child makes their tables anew, and edges of weight 0 may still be excluded there."""
    src, dst = np.random.default_rng(0).integers(0, 50, (2, 400))
    data = {"t": np.arange(400), "w": (np.arange(400) % 3).astype(np.float32)}
    graph = pgs.Graph.from_coo(src, dst, num_nodes=50, edge_data=data)
    sampler = pgs.PGSampler([5], temporal="t", prob="w", seed=1)

    def work():
        numbers = {"epoch": 0, "batch": 0, "seed_time": 300, "exclude": [0, 1, 2, 3]}
        return sampler.sample(graph, [1, 2], **numbers).blocks[0].edge_ids.tolist()

    want = work()
    assert in_child(work) == want
