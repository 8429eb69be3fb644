"""LinkLoader.stats() and trace(): DataLoader's, of batches around edges."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

import pygsampler as pgs
from pygsampler.torch import LinkLoader, NegativeSampling
from tests.loader.test_stats import X, by_batch, graph, read  # noqa: F401
from tests.support.assertions import contents

EDGES = torch.arange(0, 12000, 6)


def loader_of(graph: pgs.Graph, **options: Any) -> LinkLoader:  # noqa: F811
    known: dict[str, Any] = {
        "batch_size": 100, "seed": 1, "shuffle": True,
        "negative_sampling": NegativeSampling(amount=2),
        **options,
    }  # fmt: skip
    return LinkLoader(graph, EDGES, [5, 3], **known)


def test_before_a_pass_there_is_nothing(graph: pgs.Graph) -> None:  # noqa: F811
    found = loader_of(graph, features={"x": X}).stats()
    assert found["batches"] == found["edges"] == found["seconds"] == found["waiting_share"] == 0
    assert found["features"] == {"x": {"reads": 0, "rows": 0, "bytes": {"cpu": 0}}}


@pytest.mark.parametrize("prefetch", [0, 1, 4])
def test_what_a_pass_counts(graph: pgs.Graph, prefetch: int) -> None:  # noqa: F811
    loader = loader_of(graph, prefetch=prefetch, features={"x": X})
    for epoch in range(2):
        batches = list(loader)
        found = loader.stats()
        rows = sum(len(batch.minibatch.input_nodes) for batch in batches)
        assert (found["epoch"], found["batches"]) == (epoch, 20)
        assert found["edges"] == sum(b.num_edges for of in batches for b in of.minibatch.blocks)
        assert found["features"]["x"] == {"reads": 20, "rows": rows, "bytes": {"cpu": 32 * rows}}
        assert 0 <= found["waiting_seconds"] <= found["next_seconds"] <= found["seconds"]
        assert set(found["queues"]) == {"sampled", "gathered"}
        assert found["queues"]["sampled"]["looks"] > 0


def test_of_types() -> None:
    random = torch.Generator().manual_seed(2)
    likes, by = ("user", "likes", "item"), ("item", "by", "user")
    ends = {kind: tuple(torch.randint(0, 60, (2, 900), generator=random)) for kind in (likes, by)}
    hetero = pgs.Graph.from_coo(ends, num_nodes={"user": 60, "item": 60})
    loader = LinkLoader(
        hetero, {likes: torch.arange(300)}, [4, 2], batch_size=64, seed=1,
        features={"x": {"user": torch.rand(60, 4), "item": torch.rand(60, 4)}},
    )  # fmt: skip
    edges = sum(batch.minibatch.num_edges for batch in loader)
    found = loader.stats()
    assert (found["batches"], found["edges"]) == (5, edges)
    assert edges > 0
    assert sum(found["bytes"].values()) > 0


@pytest.mark.parametrize("prefetch", [0, 4])
def test_a_trace_has_the_stages_of_each_batch(
    graph: pgs.Graph,  # noqa: F811
    tmp_path: Path,
    prefetch: int,
) -> None:
    expected = contents(loader_of(graph, prefetch=prefetch, features={"x": X}))
    loader = loader_of(graph, prefetch=prefetch, features={"x": X})
    loader.trace(tmp_path / "trace.json")
    copied = pickle.loads(pickle.dumps(loader))
    assert contents(copied) == expected
    assert copied.stats()["batches"] == 20
    assert loader.stats()["batches"] == 0
    assert not (tmp_path / "trace.json").exists()
    assert contents(loader) == expected
    _, spans = read(tmp_path / "trace.json")
    names = "sample", "gather", "next", "train"
    sampled, gathered, asked, trained = (by_batch(spans, name) for name in names)
    for of in (sampled, gathered, asked, trained):
        assert set(of) == set(range(20))
    for batch in range(20):
        assert sampled[batch][1] <= gathered[batch][0]
        assert gathered[batch][1] <= asked[batch][1] <= trained[batch][0] + 1e-3


def test_a_pass_that_was_left(graph: pgs.Graph, tmp_path: Path) -> None:  # noqa: F811
    loader = loader_of(graph)
    loader.trace(tmp_path / "trace.json")
    for step, _ in enumerate(loader):
        if step == 3:
            break
    gc.collect()
    found = loader.stats()
    assert found["batches"] == 4
    assert loader.stats() == found
    assert loader.state_dict()["start"] == 4
    _, spans = read(tmp_path / "trace.json")
    assert set(by_batch(spans, "train")) == set(range(4))
    with pytest.raises(FileNotFoundError, match="missing"):
        loader.trace(tmp_path / "missing" / "trace.json")


@pytest.mark.backends("emulator", "cuda")
@pytest.mark.parametrize("prefetch", [0, 3, 12])
@pytest.mark.parametrize("exclude", ["self", None])
def test_on_a_device(
    host_tensors: None, tmp_path: Path, exclude: str | None, prefetch: int
) -> None:
    random = torch.Generator().manual_seed(7)
    src, dst = torch.randint(0, 500, (2, 4000), generator=random)
    loader = LinkLoader(
        pgs.Graph.from_coo(src, dst, num_nodes=505),
        torch.arange(0, 4000, 3),
        [4, 3],
        device="cuda",
        batch_size=300,
        seed=1,
        negative_sampling=NegativeSampling(),
        exclude=exclude,
        prefetch=prefetch,
    )
    loader.trace(tmp_path / "trace.json")
    edges = sum(batch.minibatch.num_edges for batch in loader)
    found = loader.stats()
    assert (found["batches"], found["edges"]) == (5, edges)
    assert edges > 0
    assert found["next_seconds"] <= found["seconds"]
    _, spans = read(tmp_path / "trace.json")
    for name in ("sample", "next", "train"):
        assert set(by_batch(spans, name)) == set(range(5))
