"""Rows from outside of a GPU, read a batch ahead of training: those of a loop without."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler._loader import cache_tuner  # noqa: E402
from pygsampler._loader.read_ahead import MOST_STALE, ReadAhead, Trial  # noqa: E402
from pygsampler.torch import DataLoader, LinkLoader, NegativeSampling, capture  # noqa: E402
from tests.support.hetero_graphs import random_edges  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
NODES, WIDTH = 4000, 24
OPTIONS: dict[str, Any] = {"batch_size": 128, "shuffle": True, "seed": 2}
SEEDS = torch.arange(2000)
PLACES = {
    "pinned": lambda host: host.pin(),
    "degree": lambda host: host.cache(rows=500),
    "lru": lambda host: host.cache(rows=500, policy="lru"),
    "exact": lambda host: host.cache(rows=500, policy="exact"),
    "int8": lambda host: host.quantize("int8").pin(),
    "int8, cached": lambda host: host.quantize("int8").cache(rows=500),
}


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are read ahead whatever is measured."""
    monkeypatch.setattr(Trial, "step", lambda *_: True)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each batch that was handed over with rows that were read ahead."""
    found: list[int] = []
    fetch = ReadAhead.fetch

    def counted(reader: ReadAhead, sampled: Any) -> Any:
        if reader._ahead is not None:
            found.append(1)
        return fetch(reader, sampled)

    monkeypatch.setattr(ReadAhead, "fetch", counted)
    return found


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    random = np.random.default_rng(3)
    indptr = np.concatenate([[0], random.integers(0, 30, NODES).cumsum()])
    return pgs.Graph.from_csc(indptr, random.integers(0, NODES, int(indptr[-1])))


def step(batch: Any, weight: torch.Tensor) -> None:
    """Work of some milliseconds that needs the rows, and memory that is given back at once."""
    for _ in range(20):
        weight += (batch.x.float().T @ batch.x.float())[:WIDTH, :WIDTH] * 1e-6


def rows_of(batch: Any) -> list[Any]:
    return [batch.input_nodes, batch.x, batch.y, *(block.w for block in batch.blocks)]


@pytest.mark.parametrize("prefetch", [0, 1, 4, 8])
@pytest.mark.parametrize("place", PLACES)
def test_rows_are_those_of_the_tables(
    graph: pgs.Graph, place: str, prefetch: int, begun: list[int]
) -> None:
    x, y, w = torch.randn(NODES, WIDTH), torch.arange(NODES), torch.randn(graph.num_edges, 3)
    features = PLACES[place](pgs.Features.from_tensor(x))
    expected = features[torch.arange(NODES)].cpu() if "int8" in place else x
    loader = DataLoader(
        graph.to("cuda"), SEEDS, [4, 3], labels=y, prefetch=prefetch,
        features={"here": torch.randn(NODES, 2).cuda(), "x": features},
        edge_features={"w": pgs.Features.from_tensor(w).pin()}, **OPTIONS,
    )  # fmt: skip
    weight = torch.zeros(WIDTH, WIDTH, device="cuda")
    for _ in range(2):
        kept = []
        for batch in loader:
            assert list(batch.features) == ["here", "x", "y"]
            step(batch, weight)
            kept.append([values.clone() for values in rows_of(batch)])
            blocks = [block.edge_ids.cpu() for block in batch.blocks]
            assert torch.equal(batch.x.cpu(), expected[batch.input_nodes.cpu()])
            assert torch.equal(batch.y.cpu(), y[batch.output_nodes.cpu()])
            for block, ids in zip(batch.blocks, blocks, strict=True):
                assert torch.equal(block.w.cpu(), w[ids])
    # Without a host that waits, too.
    again = []
    loader.set_epoch(1)
    for batch in loader:
        step(batch, weight)
        again.append(rows_of(batch))
    for one, two in zip(kept, again, strict=True):
        for before, after in zip(one, two, strict=True):
            assert torch.equal(before, after)
    if prefetch > 1:
        assert len(begun) > len(loader)


def test_batches_of_types_and_of_links(begun: list[int]) -> None:
    kinds = {("a", "to", "b"): 900, ("b", "to", "a"): 700, ("b", "by", "b"): 800}
    counts = {"a": 300, "b": 500}
    graph = pgs.Graph.from_coo(random_edges(counts, kinds, 1), num_nodes=counts).to("cuda")
    x = {kind: torch.randn(n, 7) for kind, n in counts.items()}
    pinned = {kind: pgs.Features.from_tensor(rows).pin() for kind, rows in x.items()}
    seeds = {"b": torch.arange(400)}
    typed = DataLoader(graph, seeds, [4, 3], batch_size=50, features={"x": pinned}, seed=1)
    links = LinkLoader(
        graph, {("a", "to", "b"): torch.arange(400)}, [4, 3], batch_size=50, features={"x": pinned},
        negative_sampling=NegativeSampling(), seed=1,
    )  # fmt: skip
    loader: Any
    for loader in (typed, links):
        for found in loader:
            batch = found if loader is typed else found.minibatch
            for kind, ids in batch.input_nodes.items():
                assert torch.equal(batch.x[kind].cpu(), x[kind][ids.cpu()])
    assert len(begun) > len(typed)


@pytest.mark.parametrize("how", ["update", "torch"])
def test_rows_that_are_written_in_between_are_seen(
    graph: pgs.Graph, how: str, begun: list[int]
) -> None:
    # Small arrays are copied when they are page-locked, and only ``update`` writes to copies.
    width = WIDTH if how == "update" else (65 << 20) // (4 * NODES)
    x = torch.zeros(NODES, width)
    host = pgs.Features.from_tensor(x)
    everything = torch.arange(NODES)
    for features in (host.pin(), host.cache(rows=500)):
        loader = DataLoader(graph.to("cuda"), SEEDS, [4, 3], features={"x": features}, **OPTIONS)
        for number, batch in enumerate(loader):
            assert torch.equal(batch.x, torch.full_like(batch.x, float(number)))
            # Reads must be over before the rows change.
            torch.cuda.synchronize()
            if how == "update":
                host.update(torch.full((NODES, width), number + 1.0), everything)
            else:
                x.fill_(number + 1.0)
                if features.cached:
                    host.update(x.clone(), everything)
        x.zero_()
        host.update(torch.zeros(NODES, width), everything)
    # Then the loader has seen that it is no use, of both.
    assert len(begun) == 2 * MOST_STALE


def test_a_loop_that_is_left_and_one_in_other_streams(graph: pgs.Graph) -> None:
    x = torch.randn(NODES, WIDTH)
    features = pgs.Features.from_tensor(x).pin()
    loader = DataLoader(graph.to("cuda"), SEEDS, [4, 3], features={"x": features}, **OPTIONS)
    for count in range(1, 6):
        batches = iter(loader)
        for _ in range(count):
            batch = next(batches)
        batches.close()
        # Takes the memory of rows that were on their way.
        filler = [torch.full_like(batch.x, 7.0) for _ in range(4)]
        assert torch.equal(batch.x.cpu(), x[batch.input_nodes.cpu()])
        assert all(bool((values == 7).all()) for values in filler)
    streams = [torch.cuda.Stream() for _ in range(3)]
    weight = torch.zeros(WIDTH, WIDTH, device="cuda")
    batches = iter(loader)
    torch.cuda.synchronize()
    for number in range(len(loader)):
        with torch.cuda.stream(streams[number % 3]):
            batch = next(batches)
            # Its ids are of the stream that was current when it was begun.
            batch.input_nodes.record_stream(streams[number % 3])
            step(batch, weight)
            copy, ids = batch.x.clone(), batch.input_nodes.clone()
            del batch
            torch.cuda.current_stream().synchronize()
            assert torch.equal(copy.cpu(), x[ids.cpu()])


def test_a_trace_shows_it(graph: pgs.Graph, tmp_path: Path) -> None:
    features = pgs.Features.from_tensor(torch.randn(NODES, WIDTH)).pin()
    loader = DataLoader(graph.to("cuda"), SEEDS, [4, 3], features={"x": features}, **OPTIONS)
    for _ in range(2):
        loader.trace(tmp_path / "trace.json")
        for _ in loader:
            torch.cuda._sleep(2_000_000)
    made = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {e["args"]["name"]: e["tid"] for e in made if e["name"] == "thread_name"}
    spans = {
        name: {e["args"]["batch"]: e for e in made if e.get("tid") == tid and e["ph"] == "X"
               and e["name"] == what}
        for name, tid, what in (
            ("read", names["read ahead"], "read"), ("train", names["torch's stream"], "train"),
        )
    }  # fmt: skip
    assert len(spans["read"]) > len(loader) // 2
    for batch, read in spans["read"].items():
        # It runs beside the step of the batch before, not behind it.
        before = spans["train"][batch - 1]
        assert read["ts"] < before["ts"] + before["dur"]
    assert loader.stats()["gathering_share"] < 0.5


@pytest.mark.parametrize("place", ["pinned", "degree", "exact", "int8"])
@pytest.mark.parametrize("captured", [False, True])
def test_static_batches(graph: pgs.Graph, place: str, captured: bool) -> None:
    x, y = torch.randn(NODES, WIDTH), torch.arange(NODES).cuda()
    near = torch.randn(NODES, 3).cuda()
    features = PLACES[place](pgs.Features.from_tensor(x))
    expected = features[torch.arange(NODES)].cpu() if place == "int8" else x
    given = {"features": {"near": near, "x": features}, "labels": y}
    fixed = DataLoader(graph.to("cuda"), SEEDS, [4, 3], static=True, **given, **OPTIONS)

    def copied(batch: Any) -> list[torch.Tensor]:
        return [batch.input_nodes.clone(), batch.x.clone(), batch.near.clone(), batch.y.clone()]

    loop = capture(copied, fixed, warmup=2) if captured else None
    for epoch in range(3):
        if loop is None:
            outs = [copied(batch) for batch in fixed]
        else:
            outs = [[each.clone() for each in out] for out in loop]
        assert loop is None or loop.captured
        told = fixed.stats()["features"]["x"]
        assert told["rows"] == sum(len(nodes) for nodes, *_ in outs)
        plain = DataLoader(graph.to("cuda"), SEEDS, [4, 3], **given, **OPTIONS)
        plain.set_epoch(epoch)
        for (nodes, rows, close, labels), batch in zip(outs, plain, strict=True):
            count = len(batch.input_nodes)
            assert torch.equal(nodes[:count], batch.input_nodes)
            # The padding has the rows of its nodes.
            assert torch.equal(rows.cpu(), expected[nodes.cpu()])
            assert torch.equal(close, near[nodes.long()])
            assert torch.equal(labels[: len(batch.y)], batch.y)


def test_a_static_batch_sees_what_was_written(graph: pgs.Graph) -> None:
    host = pgs.Features.from_tensor(torch.zeros(NODES, WIDTH))
    fixed = DataLoader(
        graph.to("cuda"), SEEDS, [4, 3], features={"x": host.pin()}, static=True, **OPTIONS
    )
    everything = torch.arange(NODES)
    total = 0
    for out in (loop := capture(lambda batch: batch.x.clone(), fixed, warmup=1)):
        assert torch.equal(out, torch.full_like(out, float(total)))
        torch.cuda.synchronize()
        total += 1
        host.update(torch.full((NODES, WIDTH), float(total)), everything)
    assert loop.captured and total == len(fixed)


@pytest.mark.parametrize("how", ["nodes", "links", "captured"])
def test_a_cache_of_what_is_left(graph: pgs.Graph, how: str, monkeypatch: Any) -> None:
    monkeypatch.setattr(cache_tuner, "LEAST", 0)
    x = torch.randn(NODES, WIDTH)
    options: dict[str, Any] = {**OPTIONS, "features": {"x": x}, "cache": "auto", "batch_size": 100}
    there = graph.to("cuda")
    loader: Any
    if how == "links":
        loader = LinkLoader(there, SEEDS, [4, 3], **options)
    else:
        loader = DataLoader(there, SEEDS, [4, 3], static=how == "captured", **options)
    loop = None
    if how == "captured":
        loop = capture(lambda batch: (batch.input_nodes.clone(), batch.x.clone()), loader, warmup=1)
    for epoch in range(3):
        for found in loader if loop is None else loop:
            if loop is None:
                batch = found.minibatch if how == "links" else found
                found = batch.input_nodes, batch.x
            assert torch.equal(found[1].cpu(), x[found[0].cpu()])
        told = loader.stats()["features"]["x"]
        if epoch:
            # All have room.
            assert told["hits"] == told["rows"] > 0
    assert "4000 of 4000 rows of 'x' (100%)" in loader.explain()
    assert loop is None or loop.captured


def test_a_loop_is_measured_with_and_without(graph: pgs.Graph, monkeypatch: Any) -> None:
    monkeypatch.undo()
    x = torch.randn(NODES, WIDTH)
    features = pgs.Features.from_tensor(x).pin()
    options = {**OPTIONS, "batch_size": 40, "features": {"x": features}}
    loader = DataLoader(graph.to("cuda"), SEEDS, [4, 3], **options)
    assert len(loader) == 50 and "over the link" not in loader.explain()
    for _ in range(2):
        for batch in loader:
            torch.cuda._sleep(500_000)
            assert torch.equal(batch.x.cpu(), x[batch.input_nodes.cpu()])
    times = loader._fetcher.step_times
    assert times is not None and times.without > 0 < times.ahead
    assert "rows over the link: read" in loader.explain()
