"""KGCN with neighbours that are drawn once: their law, and that they stay."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import pickle
import threading
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sampler_laws import plausible

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers import fixed_neighbors


def large() -> pgs.Graph:
    random = np.random.default_rng(1)
    return pgs.Graph.from_coo(random.integers(0, 60, 400), random.integers(0, 60, 400))


def rows(batch: Any, hop: int) -> dict[int, list[tuple[int, int]]]:
    """Of each destination its neighbours and their edges, in order."""
    block = batch.numpy().blocks[hop]
    sources = block.src_nodes[block.indices].tolist()
    pairs = list(zip(sources, block.edge_ids.tolist(), strict=True))
    ends = block.indptr.tolist()
    return {
        v: pairs[a:b] for v, a, b in zip(block.dst_nodes.tolist(), ends, ends[1:], strict=False)
    }


def test_tables_have_the_law_of_kgcn() -> None:
    """Over vertices: of two edges each of the 16 sequences of four draws is as likely."""
    # Each of the first has two in-edges, the next has five, and the others none.
    count = 4000
    src = np.concatenate([np.tile([count, count + 1], count), count + np.arange(1, 6)])
    dst = np.concatenate([np.repeat(np.arange(count), 2), np.full(5, count)])
    graph = pgs.Graph.from_coo(src, dst, num_nodes=count + 6)
    made = samplers.kgcn_static(fanout=4, hops=1, seed=8).sample(graph, range(count + 6))
    found = rows(made, 0)
    drawn = Counter(tuple(u - count for u, _ in found[v]) for v in range(count))
    plausible(drawn, dict.fromkeys(itertools.product([0, 1], repeat=4), 1 / 16))
    assert len({e for _, e in found[count]}) == 4 == len(found[count])
    assert not any(found[v] for v in range(count + 1, count + 6))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_a_vertex_has_the_same_neighbours_always(dtype: str) -> None:
    """In every batch, epoch and hop, and they are those of kgcn; each edge is one of the graph."""
    plain = large()
    ids = (np.arange(plain.num_edges) * 3 + 5).astype(np.int64)
    parts = plain.indptr.numpy(), plain.indices.numpy().astype(dtype)
    graph = pgs.Graph.from_csc(*parts, edge_ids=ids)
    rows_of = np.repeat(np.arange(60), np.diff(parts[0])).tolist()
    pairs = zip(parts[1].tolist(), rows_of, strict=True)
    ends = dict(zip(ids.tolist(), pairs, strict=True))
    drawn = samplers.kgcn(fanouts=[5], seed=3).sample(graph, range(60), epoch=0, batch=0)
    table = rows(drawn, 0)
    sampler = samplers.kgcn_static(fanout=5, hops=2, seed=3)
    random = np.random.default_rng(2)
    for epoch, batch in itertools.product(range(2), range(4)):
        seeds = random.integers(0, 60, 7)
        made = sampler.sample(graph, seeds, epoch=epoch, batch=batch)
        assert (made.epoch, made.batch) == (epoch, batch)
        assert made.output_nodes.dtype == dtype
        for hop in range(2):
            for v, found in rows(made, hop).items():
                assert found == table[v]
                assert all(ends[e] == (u, v) for u, e in found)
    assert any(len(found) == 5 for found in table.values())


def test_another_seed_draws_others() -> None:
    graph, sampler = large(), samplers.kgcn_static(fanout=3, seed=3)
    seeds = range(60)
    first = rows(sampler.sample(graph, seeds), 1)
    sampler.set_epoch(4)
    sampler.sample(graph, seeds)
    for other in (
        sampler.with_seed(3),
        sampler.with_gpu_share(0.5),
        pickle.loads(pickle.dumps(sampler.with_seed(3))),
    ):
        assert (other.epoch, other.sample(graph, seeds).batch) == (0, 0)
        assert rows(other.sample(graph, seeds), 1) == first and other.plan == sampler.plan
    assert (sampler.epoch, sampler.sample(graph, seeds).batch) == (4, 1)
    assert rows(sampler.with_seed(4).sample(graph, seeds), 1) != first
    many = sampler.sample_many(graph, [seeds, [1]], batch=0)
    assert rows(many[0], 1) == first and list(rows(many[1], 1)) == [1]
    assert repr(sampler) == "kgcn_static(fanout=3, hops=2, seed=3)"


def test_edges_that_are_left_out() -> None:
    graph, sampler = large(), samplers.kgcn_static(fanout=3, hops=1, seed=3)
    whole = rows(sampler.sample(graph, [0, 1, 2]), 0)
    gone = {whole[0][0][1], whole[2][1][1]}
    less = rows(sampler.sample(graph, [0, 1, 2], exclude=sorted(gone)), 0)
    assert less == {v: [pair for pair in row if pair[1] not in gone] for v, row in whole.items()}


def test_a_loader_and_what_is_kept() -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    graph, sampler = large(), samplers.kgcn_static(fanout=3, seed=3)
    edges = torch.arange(400.0)
    loader = DataLoader(
        graph, range(60), sampler, batch_size=20, shuffle=True, edge_features={"e": edges}
    )
    passes = []
    for _ in range(2):
        seen: dict[int, list[int]] = {}
        for batch in loader:
            block = batch.blocks[-1]
            assert block.e.equal(edges[block.edge_ids])
            starts = block.indptr.tolist()
            for i, v in enumerate(block.dst_nodes.tolist()):
                seen[v] = block.edge_ids[starts[i] : starts[i + 1]].tolist()
        passes.append(seen)
    assert passes[0] == passes[1] and len(passes[0]) == 60
    # What was drawn goes with the graph, and the graph with its last user.
    table = weakref.ref(sampler.sampled_graph(graph))
    gone = weakref.ref(graph)
    assert sampler.sampled_graph(table()) is table()
    del loader, batch, block, graph
    gc.collect()
    assert gone() is None and table() is None


@pytest.mark.filterwarnings(
    # Python 3.12 warns of forks in processes with threads.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)
def test_a_fork_while_neighbors_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child does not have the thread that draws them, and draws its own."""
    graph, sampler = large(), samplers.kgcn_static(fanout=3, seed=3)
    want = rows(samplers.kgcn_static(fanout=3, seed=3).sample(graph, [0, 1]), 1)
    drawn, begun, go_on = fixed_neighbors._Tables._sample, threading.Event(), threading.Event()

    def slow(self: Any, of: pgs.Graph) -> pgs.Graph:
        if os.getpid() == parent:
            begun.set()
            assert go_on.wait(60)
        return drawn(self, of)

    parent = os.getpid()
    monkeypatch.setattr(fixed_neighbors._Tables, "_sample", slow)
    thread = threading.Thread(target=lambda: sampler.sample(graph, [0]))
    forks = multiprocessing.get_context("fork")
    found = forks.SimpleQueue()
    child = forks.Process(
        target=lambda: found.put(rows(sampler.sample(graph, [0, 1]), 1)), daemon=True
    )
    thread.start()
    try:
        assert begun.wait(60)
        child.start()
        child.join(60)
        assert child.exitcode == 0 and found.get() == want
    finally:
        if child.is_alive():
            child.kill()
        go_on.set()
        thread.join()


def test_what_is_no_option() -> None:
    for options, error, text in (
        ({"fanout": 0}, ValueError, "fanout: expected an integer"),
        ({"fanout": -1}, ValueError, "fanout: expected an integer"),
        ({"fanout": [4]}, TypeError, "fanout: expected an integer"),
        ({"fanout": 4, "hops": 0}, ValueError, "hops: expected an integer"),
    ):
        with pytest.raises(error, match=text):
            samplers.kgcn_static(**options)
    with pytest.raises(TypeError, match=r"graph: expected a pygsampler\.Graph"):
        samplers.kgcn_static(fanout=4).sample([[1]], [0])  # type: ignore[arg-type]
