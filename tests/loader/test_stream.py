"""``pgs.stream``: the batches of a loader, without torch, ahead, in bounded memory."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest
from graphs import as_lists, circulant

import pygsampler as pgs
from pygsampler._engine import library
from pygsampler.torch import DataLoader

NODES = 500


@pytest.fixture
def graph() -> pgs.Graph:
    return circulant(NODES, 6)


def lists(found: Any) -> Any:
    return found.nodes.tolist()


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("seeds", [None, np.arange(7, 450, dtype=np.int32), [3, 3, 499]])
def test_batches_are_those_of_the_loader(graph: pgs.Graph, shuffle: bool, seeds: Any) -> None:
    sampler = pgs.walks.DeepWalk(5, walks_per_seed=2, seed=11)
    given = np.arange(NODES) if seeds is None else seeds
    loader = DataLoader(graph, given, sampler, batch_size=64, shuffle=shuffle)
    for epoch in range(2):
        want = list(loader)
        for prefetch in (0, 1, 4, 50):
            found = list(
                pgs.stream(
                    graph,
                    sampler,
                    seeds,
                    batch_size=64,
                    shuffle=shuffle,
                    epoch=epoch,
                    prefetch=prefetch,
                )
            )
            assert [(one.epoch, one.batch) for one in found] == [
                (one.epoch, one.batch) for one in want
            ]
            assert [lists(one) for one in found] == [lists(one) for one in want]
            assert sum(len(one) for one in found) == 2 * len(given)


def test_neighbours_too(graph: pgs.Graph) -> None:
    sampler = pgs.PGSampler([3, 2], seed=1)
    sampler.set_epoch(4)
    found = list(pgs.stream(graph, sampler, batch_size=100))
    want = [sampler.sample(graph, range(i, i + 100), epoch=4, batch=i // 100) for i in
            range(0, NODES, 100)]  # fmt: skip
    assert [as_lists(one) for one in found] == [as_lists(one) for one in want]
    assert {one.epoch for one in found} == {4}


def test_a_shuffled_stream_has_every_seed_once(graph: pgs.Graph) -> None:
    sampler = pgs.RandomWalk(0, seed=1)
    seeds = np.arange(NODES)[::-1].copy()
    orders = []
    for epoch in (0, 0, 1):
        found = pgs.stream(graph, sampler, seeds, batch_size=99, shuffle=True, epoch=epoch)
        orders.append([v for one in found for (v,) in lists(one)])
    assert orders[0] == orders[1] != orders[2]
    assert all(sorted(order) == list(range(NODES)) for order in orders)
    assert seeds.tolist() == list(range(NODES))[::-1]


def in_use() -> int:
    used: int = json.loads(library.call("MemoryStats"))["live_bytes"]
    return used


def test_memory_is_that_of_the_batches_ahead(graph: pgs.Graph) -> None:
    """A corpus of 400 MB goes by in a few: every batch has 0.8 MB, and five are there."""
    sampler = pgs.walks.DeepWalk(99, walks_per_seed=10, seed=1)
    seeds = np.tile(np.arange(NODES, dtype=np.int64), 100)
    gc.collect()
    # A batch takes the smallest block that is pooled, which counts by its room: other tests leave
    # larger ones.
    pgs.engine.trim()
    before, most, count = in_use(), 0, 0
    for walks in pgs.stream(graph, sampler, seeds, batch_size=100, prefetch=4):
        most = max(most, in_use() - before)
        count += len(walks) * 100 * 8
    assert count == 400_000_000
    assert most < 7 * 1000 * (100 * 8 + 4 + 1024)


def test_what_is_in_flight_is_cancelled(graph: pgs.Graph) -> None:
    def stats() -> tuple[int, int]:
        gc.collect()
        found = json.loads(library.call("MemoryStats"))
        return found["jobs"], found["live"]

    sampler = pgs.walks.DeepWalk(50, seed=1)
    next(iter(pgs.stream(graph, sampler)))
    before = stats()
    batches = pgs.stream(graph, sampler, batch_size=10)
    assert stats() == before  # nothing has begun
    assert len(list(islice(batches, 3))) == 3
    batches.close()
    assert stats() == before
    batches = pgs.stream(graph, sampler, batch_size=10)
    next(batches)
    del batches
    assert stats() == before


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"graph": [1]}, TypeError, "graph: expected a pygsampler.Graph"),
        ({"sampler": [10]}, TypeError, "sampler: expected a Sampler, got list"),
        ({"batch_size": 0}, ValueError, "batch_size: expected an integer >= 1, got 0"),
        ({"prefetch": -1}, ValueError, "prefetch: expected an integer >= 0, got -1"),
        ({"shuffle": 1}, TypeError, "shuffle: expected True or False"),
        ({"epoch": 1 << 24}, ValueError, "epoch: expected an integer from 0"),
        ({"seeds": [0, NODES]}, IndexError, r"seeds\[1\]: expected .* \[0, 500\), got 500"),
        ({"seeds": [-1]}, IndexError, r"seeds\[0\]: expected .* got -1"),
        ({"seeds": [0.5]}, TypeError, r"seeds\[0\]: expected an integer"),
    ],
)
def test_wrong_arguments_are_told_at_once(
    graph: pgs.Graph, change: dict[str, Any], error: Any, text: str
) -> None:
    given = {"graph": graph, "sampler": pgs.RandomWalk(2), **change}
    with pytest.raises(error, match=text):
        pgs.stream(given.pop("graph"), given.pop("sampler"), **given)


def test_no_seeds(graph: pgs.Graph) -> None:
    for shuffle in (False, True):
        assert list(pgs.stream(graph, pgs.RandomWalk(2), [], shuffle=shuffle)) == []


def test_an_error_comes_at_its_place(graph: pgs.Graph) -> None:
    batches = pgs.stream(graph, pgs.RandomWalk(2), batch_size=100, prefetch=0)
    next(batches)
    graph.close()
    with pytest.raises(pgs.errors.ClosedError):
        next(batches)


def test_neither_torch_nor_numpy_is_needed(run_python: Callable[..., str]) -> None:
    out = run_python(
        """
        import sys
        for name in ("torch", "numpy"):
            sys.modules[name] = None
        import pygsampler as pgs
        graph = pgs.Graph.from_csc([0, 1, 2, 3], [1, 2, 0])
        for walks in pgs.stream(graph, pgs.RandomWalk(2, seed=1), batch_size=2, shuffle=True):
            print(walks.nodes.tolist())
        batches = pgs.stream(graph, pgs.RandomWalk(2, seed=1), batch_size=1)
        next(batches)  # open at the end
        """
    )
    assert len(out.splitlines()) == 2
