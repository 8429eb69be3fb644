"""stats() and trace() of loaders on a GPU: what its events say, and what they cost."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path
from typing import Any

import pytest
from torch_graphs import csc

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler.torch import DataLoader, LinkLoader, NegativeSampling  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
NODES = 20_000
SEEDS = torch.arange(0, 8000)
X = torch.rand(NODES, 64, generator=torch.Generator().manual_seed(2))
# About a millisecond of a GPU.
MILLISECOND = 2_000_000


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    return pgs.Graph.from_csc(*csc(NODES, 40))


class Slow(pgs.PGSampler):
    """The host takes so many seconds more for a batch, in ``launch``."""

    seconds = 0.0

    def launch(self, *args: Any, **how: Any) -> Any:
        time.sleep(self.seconds)
        return super().launch(*args, **how)


def trained(loader: Any, milliseconds: float) -> dict[str, Any]:
    """The figures after a pass whose steps take the GPU so long."""
    for _ in loader:
        if milliseconds:
            torch.cuda._sleep(int(milliseconds * MILLISECOND))
    torch.cuda.synchronize()
    return loader.stats()


def test_where_training_takes_longer_nobody_waits(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [10, 5], batch_size=200, seed=1, device="cuda")
    trained(loader, 0)
    found = trained(loader, 4)
    assert found["steps"] == len(loader) == 40
    # The number of batches ahead says nothing: the host takes them before the GPU needs them.
    assert found["waiting_share"] < 0.2


def test_a_slow_host_is_waited_for(graph: pgs.Graph) -> None:
    sampler = Slow([10, 5], seed=1)
    loader = DataLoader(graph, SEEDS, sampler, batch_size=200, device="cuda", prefetch=2)
    trained(loader, 0)
    sampler.seconds = 8e-3
    found = trained(loader, 2)
    # Two to four of eight milliseconds are training.
    assert found["waiting_share"] > 0.3


def test_the_time_of_next_is_no_wait_while_the_stream_has_work(graph: pgs.Graph) -> None:
    """The wall clock would say that half of a step is waited."""
    sampler = Slow([10, 5], seed=1)
    loader = DataLoader(graph, SEEDS, sampler, batch_size=200, device="cuda", prefetch=2)
    trained(loader, 0)
    sampler.seconds = 2e-3
    batches = iter(loader)
    next(batches)
    # The host is ahead from here on.
    torch.cuda._sleep(50 * MILLISECOND)
    for _ in batches:
        torch.cuda._sleep(8 * MILLISECOND)
    torch.cuda.synchronize()
    found = loader.stats()
    assert found["next_seconds"] > 0.9 * 39 * 2e-3
    assert found["waiting_share"] < 0.2


def test_the_gathering_has_a_share_of_its_own(graph: pgs.Graph) -> None:
    for features in (pgs.Features.from_tensor(X).to("cuda"), pgs.Features.from_tensor(X)):
        loader = DataLoader(
            graph, SEEDS, [10, 5], batch_size=400, device="cuda", features={"x": features}
        )
        trained(loader, 0)
        found = trained(loader, 1)
        assert 0 < found["gathering_share"] < 0.9
        assert found["waiting_share"] + found["gathering_share"] <= 1
        tier = "cuda:0" if features.device == "cuda:0" else "pinned"
        assert found["bytes"] == {tier: 256 * found["features"]["x"]["rows"]}


def test_asking_waits_for_nothing(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [10, 5], batch_size=400, seed=1, device="cuda")
    trained(loader, 0)
    for step, _ in enumerate(loader):
        if step == 10:
            torch.cuda._sleep(500 * MILLISECOND)
            found = loader.stats()
            # The stream works still.
            assert not torch.cuda.current_stream().query()
            assert found["batches"] == 11
            break
    torch.cuda.synchronize()


@pytest.mark.parametrize("prefetch", [0, 1, 4, 8])
def test_batches_do_not_depend_on_the_pipeline(graph: pgs.Graph, prefetch: int) -> None:
    options: dict[str, Any] = {"batch_size": 300, "shuffle": True, "seed": 3, "features": {"x": X}}

    def content(batch: Any) -> Any:
        edges = [(b.indptr.tolist(), b.indices.tolist()) for b in batch.blocks]
        return batch.input_nodes.tolist(), edges, batch.x.cpu()

    expected = [content(batch) for batch in DataLoader(graph, SEEDS, [10, 5], **options)]
    for low in (None, 0, prefetch - 1):
        for share in (None, 0.001, 0.1, 1.0):
            if low is not None and not 0 <= low < prefetch:
                continue
            loader = DataLoader(
                graph, SEEDS, [10, 5], device="cuda",
                prefetch=prefetch if low is None else (low, prefetch), gpu_share=share, **options,
            )  # fmt: skip
            for batch, (nodes, edges, x) in zip(loader, expected, strict=True):
                got = content(batch)
                assert got[:2] == (nodes, edges)
                assert got[2].equal(x)


def test_another_stream(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, SEEDS, [10, 5], batch_size=400, seed=1, device="cuda")
    for step, batch in enumerate(loader):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        torch.cuda.set_stream(stream if step % 2 else torch.cuda.default_stream())
        batch.input_nodes.record_stream(stream)
        torch.cuda._sleep(MILLISECOND)
    torch.cuda.set_stream(torch.cuda.default_stream())
    torch.cuda.synchronize()
    found = loader.stats()
    assert found["steps"] == 20
    assert 0 <= found["waiting_share"] <= 1


@pytest.mark.parametrize("links", [False, True])
@pytest.mark.parametrize("prefetch", [0, 4])
def test_a_trace_has_the_spans_of_the_stream(
    graph: pgs.Graph, tmp_path: Path, prefetch: int, links: bool
) -> None:
    options: dict[str, Any] = {
        "batch_size": 400, "seed": 1, "device": "cuda", "prefetch": prefetch, "features": {"x": X},
    }  # fmt: skip
    loader: Any
    if links:
        loader = LinkLoader(graph, SEEDS, [10, 5], negative_sampling=NegativeSampling(), **options)
    else:
        loader = DataLoader(graph, SEEDS, [10, 5], **options)
    trained(loader, 0)
    loader.trace(tmp_path / "trace.json")
    found = trained(loader, 2)
    assert (found["batches"], found["steps"]) == (20, 20)
    assert 0 < found["gathering_share"] < 1 > found["waiting_share"] >= 0
    made = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in made if e["name"] == "thread_name"}
    stream = next(tid for tid, name in names.items() if name == "torch's stream")
    spans = sorted((e for e in made if e.get("tid") == stream and e["ph"] == "X"), key=_begin)
    assert [span["name"] for span in spans] == ["wait", "gather", "train"] * 20
    for before, after in itertools.pairwise(spans):
        # Events have a resolution of half a microsecond.
        assert abs(before["ts"] + before["dur"] - after["ts"]) < 5
    train = [span["dur"] for span in spans if span["name"] == "train"]
    assert min(train) > 500
    # Both clocks agree: the host asks for a batch before the device comes to it.
    asked = {e["args"]["batch"]: e["ts"] for e in made if e["name"] == "next"}
    for span in spans:
        if span["name"] == "wait":
            assert span["ts"] > asked[span["args"]["batch"]] - 200


def _begin(span: dict[str, Any]) -> tuple[int, int]:
    return span["args"]["batch"], ("wait", "gather", "train").index(span["name"])
