from __future__ import annotations

import gc
import json
import signal
import threading
import time
from array import array

import pytest
from graphs import as_lists, circulant

import pygsampler as pgs
from pygsampler._engine import library

HEAVY_SEEDS = range(100_000)


@pytest.fixture(scope="module")
def heavy() -> pgs.Graph:
    """A graph that six hops of from every vertex take seconds."""
    return circulant(100_000, 20, 32)


@pytest.fixture(scope="module")
def deep() -> pgs.PGSampler:
    return pgs.PGSampler([15] * 40, seed=0)


def test_a_result_is_what_sample_gives():
    graph, sampler = circulant(100, 10), pgs.PGSampler([3, 3], seed=0)
    jobs = [sampler.submit(graph, range(50)) for _ in range(10)]
    assert [(job.epoch, job.batch) for job in jobs] == [(0, i) for i in range(10)]
    for job in jobs:
        batch = job.result()
        assert as_lists(batch) == as_lists(sampler.sample(graph, range(50), batch=job.batch))
        assert (batch.epoch, batch.batch) == (job.epoch, job.batch)
        assert job.result() is batch
        assert job.done()
        assert repr(job) == f"Job(epoch=0, batch={job.batch}, done)"


def test_seeds_are_copied_before_submit_returns():
    graph, sampler = circulant(100, 10), pgs.PGSampler([3], seed=0)
    seeds = array("q", range(50))
    job = sampler.submit(graph, seeds, batch=0)
    seeds[:] = array("q", [0] * 50)
    assert job.result().output_nodes.tolist() == list(range(50))


def test_done_does_not_wait(heavy, deep):
    job = deep.submit(heavy, HEAVY_SEEDS)
    assert not job.done()
    assert repr(job) == f"Job(epoch=0, batch={job.batch}, on its way)"
    job.cancel()


def test_an_error_is_raised_each_time():
    graph, sampler = circulant(10, 2), pgs.PGSampler([3], seed=0)
    job = sampler.submit(graph, [3, 10])
    for _ in range(2):
        with pytest.raises(IndexError, match=r"seeds\[1\]: .* got 10"):
            job.result()
    assert job.done()
    assert "failed: seeds[1]" in repr(job)


def test_a_cancelled_job_says_so(heavy, deep):
    job = deep.submit(heavy, HEAVY_SEEDS)
    job.cancel()
    job.cancel()
    with pytest.raises(pgs.Error, match="job: expected a job on its way, got one that was cancel"):
        job.result()
    # Everything is usable afterwards.
    assert pgs.PGSampler([2], seed=0).sample(heavy, [0]).num_edges == 2


def test_cancel_after_the_result_changes_nothing():
    graph, sampler = circulant(10, 2), pgs.PGSampler([3], seed=0)
    job = sampler.submit(graph, [3])
    batch = job.result()
    job.cancel()
    assert job.result() is batch


def test_cancel_in_another_thread_ends_the_wait(heavy, deep):
    job = deep.submit(heavy, HEAVY_SEEDS)
    errors = []

    def wait():
        try:
            job.result()
        except pgs.Error as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.1)
    job.cancel()
    thread.join(240)
    assert not thread.is_alive()
    assert "got one that was cancelled" in str(errors[0])


def test_many_threads_may_wait_for_one_job():
    graph, sampler = circulant(1000, 10), pgs.PGSampler([5, 5, 5], seed=0)
    for _ in range(20):
        job = sampler.submit(graph, range(500))
        results = []
        threads = [
            threading.Thread(target=lambda job=job, out=results: out.append(job.result()))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(results) == 4
        assert len(set(map(id, results))) == 1


def test_a_dropped_job_is_cancelled(heavy, deep):
    for _ in range(3):
        deep.submit(heavy, HEAVY_SEEDS)
    gc.collect()
    assert pgs.PGSampler([2], seed=0).sample(heavy, [0]).num_edges == 2


def test_closing_a_graph_waits_for_its_jobs():
    graph, sampler = circulant(50_000, 10), pgs.PGSampler([10] * 3, seed=0)
    jobs = [sampler.submit(graph, range(0, 50_000, 5)) for _ in range(4)]
    graph.close()
    assert all(job.result().num_edges > 0 for job in jobs)


def test_a_signal_handler_neither_hangs_nor_loses_a_result():
    graph = circulant(20_000, 20, 32)
    sampler = pgs.PGSampler([10] * 3, seed=0)
    seen: list[object] = []

    def handler(number, frame) -> None:
        try:
            seen.append(job.result())
        except pgs.Error as error:
            seen.append(str(error))

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(20):
            job = sampler.submit(graph, range(10_000))
            signal.setitimer(signal.ITIMER_REAL, 0.002, 0.001)
            batch = job.result()
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert isinstance(batch, pgs.MiniBatch)
            inside = "job: expected no wait inside a wait of the same thread for it"
            assert all(what in (batch, inside) for what in seen)
            seen.clear()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_what_a_signal_handler_raises_ends_the_wait_and_the_job(heavy, deep):
    def handler(number, frame) -> None:
        raise TimeoutError("late")

    before = signal.signal(signal.SIGALRM, handler)
    try:
        job = deep.submit(heavy, HEAVY_SEEDS)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(TimeoutError, match="late"):
            job.result()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert job.done()
    assert json.loads(library.call("MemoryStats"))["jobs"] == 0


@pytest.mark.usefixtures("no_collections")
def test_ctrl_c_ends_a_long_call(heavy, deep):
    def press() -> None:
        time.sleep(0.3)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        deep.sample(heavy, HEAVY_SEEDS)
    thread.join()
    assert pgs.PGSampler([2], seed=0).sample(heavy, [0]).num_edges == 2
