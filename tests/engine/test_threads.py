"""One graph and one sampler, many threads: the same results as from one."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from graphs import as_lists, circulant

import pygsampler as pgs
from tests.support.research import of_research

THREADS = 8


def in_threads(work: Callable[[int], None], count: int = THREADS) -> None:
    """Runs ``work(i)`` in threads that start together; raises what any of them raised."""
    gate = threading.Barrier(count)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            gate.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("mode", ["auto", *of_research("queue")])
@pytest.mark.parametrize("bits", [32, 64])
def test_eight_threads_give_what_one_gives(mode, bits):
    graph = circulant(3_000, 12, bits)
    sampler = pgs.PGSampler([4, 5], seed=0, mode=mode)

    def sample(batch: int):
        return as_lists(sampler.sample(graph, range(batch, 3_000, 31), batch=batch))

    expected = [sample(batch) for batch in range(40)]
    found = [None] * len(expected)

    def work(i: int) -> None:
        for batch in range(i, len(expected), THREADS):
            found[batch] = sample(batch)

    in_threads(work)
    assert found == expected


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_number_of_engine_threads_does_not_show(threads):
    graph = circulant(5_000, 12)
    seeds = range(0, 5_000, 3)
    sampler = pgs.PGSampler([4, -1], seed=0)
    expected = as_lists(sampler.sample(graph, seeds, batch=0, threads=1))
    before = pgs.set_num_threads(threads)
    try:
        assert as_lists(sampler.sample(graph, seeds, batch=0)) == expected
        assert as_lists(sampler.sample(graph, seeds, batch=0, threads=2)) == expected
    finally:
        pgs.set_num_threads(before)


def test_numbers_are_drawn_once_each():
    graph, sampler = circulant(10, 2), pgs.PGSampler([1], seed=0)
    numbers: list[int] = []

    def work(i: int) -> None:
        for _ in range(50):
            numbers.append(sampler.sample(graph, [i]).batch)

    in_threads(work)
    assert sorted(numbers) == list(range(50 * THREADS))


def test_first_use_and_closing_may_race_with_sampling():
    for _ in range(20):
        graph, sampler = circulant(50, 5), pgs.PGSampler([2], seed=0)
        closed = 0

        def work(i: int, graph=graph, sampler=sampler) -> None:
            nonlocal closed
            if i == 0:
                graph.close()
                return
            try:
                for _ in range(20):
                    assert sampler.sample(graph, [i]).num_edges == 2
            except pgs.errors.ClosedError:
                closed += 1

        in_threads(work)
        with pytest.raises(pgs.errors.ClosedError):
            sampler.sample(graph, [0])


def test_sampling_lets_other_threads_run():
    """The GIL is free: this thread counts while another samples for long."""
    graph = circulant(100_000, 20, 32)
    job = pgs.PGSampler([15] * 8, seed=0).submit(graph, range(100_000))
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        with pytest.raises(pgs.Error, match="cancelled"):
            job.result()

    thread = threading.Thread(target=wait)
    thread.start()
    waiting.wait()
    count = sum(range(300_000))
    assert thread.is_alive()
    job.cancel()
    thread.join(240)
    assert not thread.is_alive()
    assert count == 299_999 * 150_000
