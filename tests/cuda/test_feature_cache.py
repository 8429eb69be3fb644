"""A cache of features on a GPU: what is read is what the CPU reads, whatever is there."""

from __future__ import annotations

import gc
import logging
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler._features.cache_policy import replacements, top_rows  # noqa: E402
from pygsampler.torch import DataLoader  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int64", "bool"]
NODES = 3000


def make_graph() -> pgs.Graph:
    random = np.random.default_rng(3)
    indptr = np.concatenate([[0], random.integers(0, 30, NODES).cumsum()])
    return pgs.Graph.from_csc(indptr, (random.random(int(indptr[-1])) ** 2 * NODES).astype(int))


def reversed_order(graph: pgs.Graph) -> Any:
    return -torch.arange(graph.num_nodes, device="cuda")


def filled(x: Any, policy: Any, rows: int = 400) -> pgs.Features:
    """With its rows, of a graph, or of an epoch of a loader."""
    features = pgs.Features.from_tensor(x)
    if policy == "degree" or callable(policy):
        return features.cache(rows=rows, policy=policy, graph=make_graph())
    cached = features.cache(rows=rows, policy=policy)
    loader = DataLoader(
        make_graph(), range(500), [4, 3], batch_size=100, features={"x": cached}, device="cuda"
    )
    for batch in loader:
        assert torch.equal(batch.x.cpu(), x[batch.input_nodes.cpu()])
    return cached


POLICIES = ["degree", "presampled", "exact", "lru", reversed_order]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_the_cpu(policy: Any, dtype: str) -> None:
    for shape in ((), (1,), (3,), (100,), (2, 7), (602,), (0,)):
        x = (torch.randn(NODES, *shape) * 5).to(getattr(torch, dtype))
        cached = filled(x, policy)
        assert cached.device == "cuda:0" and cached.shape == x.shape
        assert cached.cached == (400 if x[0].nbytes else 0)
        for ids in (torch.randint(0, NODES, (777,)), torch.arange(0), torch.tensor([999] * 40)):
            for given in (ids.cuda(), ids.int().cuda(), ids):
                got = cached[given]
                assert got.is_cuda and got.dtype == x.dtype
                assert torch.equal(got.cpu(), x[ids])


@pytest.mark.parametrize("policy", POLICIES)
def test_hits_are_those_of_the_rows_that_are_there(policy: Any) -> None:
    x = torch.randn(NODES, 25)
    cached = filled(x, policy)
    before = cached.stats()
    held = cached._cache.cached_rows()  # type: ignore[union-attr]
    there = set(held.tolist())
    assert len(there) == len(held) <= 400
    # Some that are there and some that are not; the least recent may go meanwhile, but not before.
    ids = torch.randperm(NODES)[:1500]
    assert torch.equal(cached[ids].cpu(), x[ids])
    hits = sum(id in there for id in ids.tolist())
    after = cached.stats()
    assert after["hits"] - before["hits"] == hits > 0
    assert (after["reads"], after["rows"]) == (before["reads"] + 1, before["rows"] + 1500)
    assert after["bytes"] == {
        "cuda:0": 100 * after["hits"],
        "pinned": 100 * (after["rows"] - after["hits"]),
    }
    assert cached.miss_rate == 1 - after["hits"] / after["rows"]


def test_choices_there_are_those_of_the_cpu() -> None:
    random = torch.Generator().manual_seed(1)
    for rows in (1, 5, 1000, 300_000):
        for most in (1, 3, 1000):
            counts = torch.randint(0, most, (rows,), generator=random, dtype=torch.int32)
            for places in {1, rows // 3, rows - 1, rows, rows + 5}:
                assert torch.equal(top_rows(counts.cuda(), places).cpu(), top_rows(counts, places))
                held = torch.full((places,), -1)
                some = torch.randperm(rows, generator=random)[: places // 2]
                held[: len(some)] = some
                want = replacements(counts, held)
                got = replacements(counts.cuda(), held.cuda())
                assert all(torch.equal(a.cpu(), b) for a, b in zip(got, want, strict=True))


@pytest.mark.parametrize("deterministic", [False, True])
def test_exact_has_what_an_epoch_reads_most(deterministic: bool) -> None:
    graph, x = make_graph(), torch.randn(NODES, 4)
    cached = pgs.Features.from_tensor(x).cache(rows=300, policy="exact")
    about: dict[str, Any] = {"batch_size": 64, "shuffle": True, "seed": 5}
    loader = DataLoader(graph, range(900), [4, 3], device="cuda", features={"x": cached}, **about)
    plain = DataLoader(graph, range(900), [4, 3], **about)
    torch.use_deterministic_algorithms(deterministic)
    try:
        hits = 0
        for _ in range(3):
            counts = torch.zeros(NODES, dtype=torch.int64)
            for batch in plain:
                counts[batch.input_nodes] += 1
            for batch in loader:
                assert torch.equal(batch.x.cpu(), x[batch.input_nodes.cpu()])
            found = cached.stats()["hits"]
            best = int(counts[top_rows(counts, 300)].sum())
            # A row that comes must bring more than the read that it costs.
            assert best - 300 <= found - hits <= best
            hits = found
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize("prefetch", [0, 1, 4, 8])
@pytest.mark.parametrize("where", ["there", "pinned"])
def test_batches_with_and_without(prefetch: int, where: str) -> None:
    graph = make_graph()
    x, y = torch.randn(NODES, 20), torch.randint(0, 7, (NODES,))
    w = torch.randn(graph.num_edges, 3)
    there = graph.to("cuda") if where == "there" else graph.pin()
    about: dict[str, Any] = {"batch_size": 128, "shuffle": True, "seed": 2, "prefetch": prefetch}
    want = DataLoader(
        graph, range(2000), [4, 3], features={"x": x}, labels=y, edge_features={"w": w}, **about
    )
    for policy in POLICIES:
        edges = "exact" if policy == "degree" or callable(policy) else policy
        got = DataLoader(
            there,
            range(2000),
            [4, 3],
            features={"x": pgs.Features.from_tensor(x).cache(rows=300, policy=policy)},
            labels=pgs.Features.from_tensor(y).cache(bytes=20_000, policy=policy),
            edge_features={"w": pgs.Features.from_tensor(w).cache(rows=4000, policy=edges)},
            **about,
        )
        for _ in range(2):
            want.set_epoch(got.epoch)
            for mine, theirs in zip(got, want, strict=True):
                assert torch.equal(mine.x.cpu(), theirs.x) and torch.equal(mine.y.cpu(), theirs.y)
                for block, other in zip(mine.blocks, theirs.blocks, strict=True):
                    assert torch.equal(block.w.cpu(), other.w)


@pytest.mark.parametrize("policy", ["degree", "lru"])
def test_wrong_ids_are_told_and_nothing_is_lost(policy: str) -> None:
    x = torch.randn(NODES, 4)
    cached = filled(x, policy)
    for wrong in (-1, NODES, 2**40):
        ids = torch.zeros(1000, dtype=torch.int64, device="cuda")
        ids[[700, 300]] = wrong
        with pytest.raises(IndexError, match=rf"ids\[300\]: .* \[0, 3000\), got {wrong}"):
            cached[ids]
    every = torch.arange(NODES)
    assert torch.equal(cached[every].cpu(), x)
    out = torch.empty(NODES, 4, device="cuda")
    assert cached.read(every.cuda(), out=out) is out and torch.equal(out.cpu(), x)


def test_an_update_reaches_every_copy() -> None:
    x = torch.randn(NODES, 6)
    features = pgs.Features.from_tensor(x)
    graph, every = make_graph(), torch.arange(NODES)
    copies = [features.pin(), features.cache(rows=200, graph=graph)]
    copies += [copies[1].cache(rows=NODES, graph=graph), features.cache(rows=300, policy="lru")]
    want = x.clone()
    for number, writer in enumerate((features, *copies)):
        for one in copies:
            assert torch.equal(one[every].cpu(), want)
        ids = torch.randint(0, NODES, (500,)).unique()
        writer.update(torch.full((len(ids), 6), float(number)), ids.cuda() if number % 2 else ids)
        want[ids] = number
        for one in copies:
            assert torch.equal(one[every].cpu(), want)
    assert torch.equal(x, want)


@pytest.mark.parametrize("policy", ["lru", "degree"])
def test_several_streams_and_threads(policy: str) -> None:
    """Rows that one of them admits, or brings, while others read."""
    x = torch.randn(NODES, 300)
    cached = filled(x, policy, rows=100)
    there = x.cuda()
    wrong: list[object] = []

    def work(seed: int) -> None:
        random = torch.Generator().manual_seed(seed)
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for step in range(60):
                ids = torch.randint(0, NODES, (700,), generator=random).cuda()
                if step % 7 == seed:
                    torch.cuda._sleep(300_000)
                if policy == "degree" and step % 9 == seed:
                    cached._cache.take(torch.randperm(NODES, generator=random)[:100])  # type: ignore[union-attr]
                if not torch.equal(cached[ids], there[ids]):
                    wrong.append((seed, step))
        stream.synchronize()

    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    if policy == "lru":
        held = cached._cache.table.held()  # type: ignore[union-attr]
        assert len(held.unique()) == len(held)


def test_without_memory_it_shrinks(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()
    pgs.cuda.trim()
    torch.cuda.empty_cache()
    x = torch.randn(100_000, 1024)
    features = pgs.Features.from_tensor(x)
    free, _ = torch.cuda.mem_get_info()
    taken = torch.empty(free - (300 << 20), dtype=torch.uint8, device="cuda")
    with caplog.at_level(logging.WARNING, "pygsampler"):
        cached = features.cache(rows=100_000, policy="lru")
    assert 0 < cached.cached < 100_000
    assert f"it holds {cached.cached} now" in caplog.text
    del taken
    torch.cuda.empty_cache()
    ids = torch.randint(0, 100_000, (5000,))
    for _ in range(3):
        assert torch.equal(cached[ids].cpu(), x[ids])
    assert cached.stats()["hits"] > 0


@pytest.mark.parametrize("policy", ["degree", "presampled", "exact", "lru"])
def test_pickled_and_moved(policy: str) -> None:
    x, every = torch.randn(NODES, 3), torch.arange(NODES)
    cached = filled(x, policy)
    again = pickle.loads(pickle.dumps(cached))
    assert repr(again) == repr(cached)
    assert torch.equal(again[every].cpu(), x) and again.stats()["hits"] > 0
    assert torch.equal(cached.to("cuda")[every].cpu(), x)
    assert torch.equal(cached.to("cpu")[every], x)
    cached.close()
    with pytest.raises(pgs.errors.ClosedError):
        cached[every]


def test_features_of_a_file(tmp_path: Any) -> None:
    graph, x = make_graph(), torch.randn(NODES, 40)
    graph.with_data(node_data={"x": x}).save(tmp_path / "graph.pgs")
    cached = pgs.Features.open(tmp_path / "graph.pgs", "x").cache(rows=500, graph=graph)
    ids = torch.randint(0, NODES, (2000,))
    assert torch.equal(cached[ids].cpu(), x[ids]) and cached.stats()["hits"] > 0
    with pytest.raises(ValueError, match="read-only"):
        cached.update(0.0, [1])


def test_memory_is_given_back() -> None:
    x = torch.randn(1 << 16, 64)
    gc.collect()
    pgs.cuda.trim()
    before = pgs.cuda.memory_stats()["used"]
    cached = pgs.Features.from_tensor(x).cache(rows=1 << 15, policy="lru")
    ids = torch.randint(0, 1 << 16, (20_000,))
    for _ in range(3):
        assert torch.equal(cached[ids].cpu(), x[ids])
    assert pgs.cuda.memory_stats()["used"] >= before + (1 << 15) * 256
    del cached
    gc.collect()
    pgs.cuda.trim()
    assert pgs.cuda.memory_stats()["used"] <= before
