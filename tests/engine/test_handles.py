"""Handles in the engine: given back when their object goes, in whichever way it does."""

from __future__ import annotations

import gc
from array import array

import pytest
from graphs import as_lists, circulant

import pygsampler as pgs
from pygsampler._engine import library
from pygsampler._engine import request_layout as at
from pygsampler._engine.pending import PackedJob
from pygsampler._sampling.request import SampleRequest, empty_request


def test_graphs_and_samplers_give_their_handles_back():
    graph = circulant(9, 3)
    sampler = pgs.PGSampler([2], seed=0)
    sampler.sample(graph, [0])
    graph_handle, sampler_handle = graph._source._number, sampler._number
    words = empty_request(at.SIZE_PLAIN)
    words[at.SEED_BITS] = 64

    def submit() -> None:
        words[at.GRAPH], words[at.SAMPLER] = graph_handle, sampler_handle
        library.call("Submit", *words.buffer_info())

    del sampler
    gc.collect()
    with pytest.raises(pgs.errors.ClosedError):
        submit()
    sampler = pgs.PGSampler([2], seed=0)
    sampler_handle = sampler._handle()
    del graph
    gc.collect()
    with pytest.raises(pgs.errors.ClosedError):
        submit()


def test_a_result_that_stands_in_the_words_goes_with_its_job():
    """As Ctrl-C leaves it where it comes after the engine's call and before Python's next line."""
    graph, sampler = circulant(9, 3), pgs.PGSampler([2], seed=0)
    sampler.sample(graph, [0])

    def held() -> int:
        stats = pgs.engine.memory_stats()
        return stats["live"] + stats["jobs"]

    before = held()
    for asynchronous in (False, True):
        request = SampleRequest(sampler, graph, [0, 1], epoch=0, batch=0, asynchronous=asynchronous)
        job = PackedJob(request.words)
        library.call("Submit", *request.words.buffer_info())
        assert bool(request.words[at.JOB if asynchronous else at.RESULT])
        assert held() > before
        del job
        assert held() == before
        assert not any(request.words[at.RESULT : at.JOB + 1])


def test_ctrl_c_is_not_lost_in_a_destructor(run_python):
    """It arrives in the loop, whatever goes at that moment, and what goes is given back."""
    run_python(
        """
        import random, signal
        from array import array
        import pygsampler as pgs
        from pygsampler.torch import DataLoader
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        draw, sampler = random.Random(3), pgs.PGSampler([2], seed=0)
        indptr, indices = array("q", range(100)), array("q", range(99))

        def graphs():
            pgs.PGSampler([2]).sample(pgs.Graph.from_csc(indptr, indices), [0])

        def batches():
            for _ in loader:
                pass

        graph = pgs.Graph.from_csc(indptr, indices)
        loader = DataLoader(graph, [0, 1], sampler, batch_size=2, prefetch=0)
        for loop in range(900):
            kind = (graphs, batches, lambda: sampler.submit(graph, [0, 1]))[loop % 3]
            try:
                signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, 1e-3))
                # A lost one leaves this going.
                for _ in range(1_000_000):
                    kind()
                raise AssertionError("lost")
            except KeyboardInterrupt:
                pass
        assert pgs.engine.memory_stats()["jobs"] == 0, pgs.engine.memory_stats()
        """
    )


def test_an_object_that_comes_back_has_a_new_handle():
    """Out of a cycle, by another object's destructor: its own has run by then."""
    kept = []

    class Reviver:
        def __init__(self, item: object) -> None:
            self.item, self.me = item, self

        def __del__(self) -> None:
            kept.append(self.item)

    graph, sampler = circulant(9, 3), pgs.PGSampler([2], seed=0)
    want = as_lists(sampler.sample(graph, [0, 1], batch=0))
    for item in (graph, sampler, sampler.submit(graph, [0])):
        Reviver(item)
    del graph, sampler, item
    gc.collect()
    graph, sampler, job = kept
    assert as_lists(sampler.sample(graph, [0, 1], batch=0)) == want
    with pytest.raises(pgs.errors.ClosedError):
        job.result()
    assert pgs.engine.memory_stats()["jobs"] == 0


def test_a_cycle_cancels_its_jobs():
    """Whichever of the two the collector ends first, and however long the batch would take."""
    rows, degree = 20_000, 30
    indices = array("q", (i * 7919 % rows for i in range(rows * degree)))
    endless = pgs.PGSampler([-1] * 6, seed=0, disjoint=True)
    for job_first in (False, True):
        graph = pgs.Graph.from_csc(array("q", range(0, rows * degree + 1, degree)), indices)
        job = endless.submit(graph, range(100))
        cycle = [job, graph] if job_first else [graph, job]
        cycle.append(cycle)
        del graph, job, cycle
        gc.collect()
        assert pgs.engine.memory_stats()["jobs"] == 0


def test_subclasses(run_python):
    """They may have destructors of their own, and keywords for other bases."""
    run_python(
        """
        import pygsampler as pgs

        class Base:
            def __init_subclass__(cls, tag, **options):
                super().__init_subclass__(**options)
                cls.tag = tag

        class Sampler(pgs.PGSampler, Base, tag="x"):
            ended = 0

            def __del__(self):
                super().__del__()
                Sampler.ended += 1

        graph = pgs.Graph.from_csc([0, 1], [0])
        before = Sampler([1])
        del before
        sampler = Sampler([1], seed=0)
        assert sampler.sample(graph, [0]).num_edges == 1
        del sampler
        assert (Sampler.ended, Sampler.tag) == (2, "x")
        """
    )
