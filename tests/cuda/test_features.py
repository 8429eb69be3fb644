"""Features on a GPU, and page-locked for one: the rows that the CPU reads, byte for byte."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs

torch = pytest.importorskip("torch", reason="needs torch")

from pygsampler.torch import DataLoader  # noqa: E402

pytestmark = pytest.mark.usefixtures("gpu")
DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "uint8", "int64", "bool"]


def placed(x: Any, place: str) -> pgs.Features:
    features = pgs.Features.from_tensor(x)
    if place == "tensor":
        return pgs.Features.from_tensor(x.cuda())
    return features.pin() if place == "pinned" else features.to("cuda")


@pytest.mark.parametrize("place", ["there", "pinned", "tensor"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_of_the_cpu(place: str, dtype: str) -> None:
    for shape in ((), (1,), (3,), (100,), (2, 7), (602,), (0,)):
        x = (torch.randn(1000, *shape) * 5).to(getattr(torch, dtype))
        features = placed(x, place)
        assert features.device == "cuda:0" and features.shape == x.shape
        assert features.pinned == (place == "pinned")
        for ids in (torch.randint(0, 1000, (777,)), torch.arange(0), torch.tensor([999] * 40)):
            for given in (ids.cuda(), ids.int().cuda(), ids):
                got = features[given]
                assert got.is_cuda and got.dtype == x.dtype
                assert torch.equal(got.cpu(), x[ids])


def test_bits_of_nans_and_a_memory_of_the_callers() -> None:
    bits = torch.randint(-(2**31), 2**31, (500, 33), dtype=torch.int64).int()
    features = pgs.Features.from_tensor(bits.view(torch.float32)).to("cuda")
    ids = torch.randint(0, 500, (90,), device="cuda")
    out = torch.empty(90, 33, device="cuda")
    assert features.read(ids, out=out) is out
    assert torch.equal(out.view(torch.int32).cpu(), bits[ids.cpu()])
    for wrong in (out[:5], out.double(), out.cpu(), torch.empty(33, 90, device="cuda").T):
        with pytest.raises(ValueError, match="out: expected"):
            features.read(ids, out=wrong)


@pytest.mark.parametrize("place", ["there", "pinned"])
def test_wrong_ids_are_told_and_nothing_is_lost(place: str) -> None:
    features = placed(torch.randn(50, 4), place)
    for wrong in (-1, 50, 2**40):
        ids = torch.zeros(1000, dtype=torch.int64, device="cuda")
        ids[[700, 300]] = wrong
        with pytest.raises(IndexError, match=rf"ids\[300\]: .* \[0, 50\), got {wrong}"):
            features[ids]
    assert features[[3, 4]].device == "cuda:0"


def test_in_another_stream() -> None:
    x = torch.randn(5000, 64)
    features, stream = pgs.Features.from_tensor(x).to("cuda"), torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(2_000_000)
        ids = torch.arange(4999, -1, -1, device="cuda")
        got = features[ids]
    stream.synchronize()
    assert torch.equal(got.cpu(), x.flip(0))


def test_written_moved_and_pickled() -> None:
    x = torch.randn(20, 3)
    there = pgs.Features.from_tensor(x).to("cuda")
    there.update(torch.ones(2, 3), torch.tensor([4, 5]))
    assert torch.equal(there[[3, 4, 5]].cpu().torch(), torch.stack([x[3], *torch.ones(2, 3)]))
    assert torch.equal(there.to("cpu")[torch.arange(20)][4], torch.ones(3))
    assert there.to("cuda") is there
    for features in (pgs.Features.from_tensor(x).to("cuda"), pgs.Features.from_tensor(x).pin()):
        other = pickle.loads(pickle.dumps(features))
        assert (other.device, other.pinned) == (features.device, features.pinned)
        assert torch.equal(other[torch.arange(20)].cpu(), x)
    there.close()
    with pytest.raises(pgs.errors.ClosedError):
        there[[0]]


def make_graph(ids: bool) -> pgs.Graph:
    random = np.random.default_rng(3)
    indptr = np.concatenate([[0], random.integers(0, 30, 3000).cumsum()])
    edges = int(indptr[-1])
    edge_ids = random.permutation(edges) if ids else None
    return pgs.Graph.from_csc(indptr, random.integers(0, 3000, edges), edge_ids=edge_ids)


@pytest.mark.parametrize("prefetch", [0, 1, 4, 8])
@pytest.mark.parametrize("place", ["cpu", "there", "pinned", "tensor"])
def test_batches_have_the_rows_of_the_cpu(prefetch: int, place: str) -> None:
    graph = make_graph(ids=prefetch == 4)
    x, y, w = torch.randn(3000, 20), torch.randint(0, 7, (3000,)), torch.randn(graph.num_edges, 3)
    about: dict[str, Any] = {"batch_size": 128, "shuffle": True, "seed": 2, "prefetch": prefetch}

    def at(values: Any) -> Any:
        return values if place == "cpu" else placed(values, place)

    want = DataLoader(
        graph, range(2000), [4, 3], features={"x": x}, labels=y, edge_features={"w": w}, **about
    )
    got = DataLoader(
        graph.to("cuda"),
        range(2000),
        [4, 3],
        features={"x": at(x)},
        labels=at(y),
        edge_features={"w": at(w)},
        **about,
    )
    for mine, theirs in zip(got, want, strict=True):
        assert mine.x.is_cuda and mine.y.is_cuda
        assert torch.equal(mine.x.cpu(), theirs.x) and torch.equal(mine.y.cpu(), theirs.y)
        for block, other in zip(mine.blocks, theirs.blocks, strict=True):
            assert torch.equal(block.w.cpu(), other.w)
        assert torch.equal(mine.to("cpu").x, theirs.x)


def test_edge_ids_beyond_the_rows_are_refused() -> None:
    graph = make_graph(ids=True)
    moved = pgs.Graph.from_csc(
        graph.indptr, graph.indices, edge_ids=np.asarray(graph.edge_ids) + 5, num_nodes=3000
    ).to("cuda")
    with pytest.raises(ValueError, match="edge_features\\['w'\\]: expected a row for each edge id"):
        DataLoader(
            moved, [0], [2], batch_size=1, edge_features={"w": torch.zeros(graph.num_edges, 1)}
        )


def test_memory_is_given_back() -> None:
    x = torch.randn(1 << 18, 16)
    gc.collect()
    before = pgs.cuda.memory_stats()
    features = pgs.Features.from_tensor(x).to("cuda")
    features[torch.arange(5)]
    assert pgs.cuda.memory_stats() != before
    del features
    gc.collect()
    pgs.cuda.trim()
    pinned = pgs.Features.from_tensor(x).pin()
    assert torch.equal(pinned[torch.arange(5)].cpu(), x[:5])


def test_an_array_on_a_device_shows_itself_there_whatever_its_dtype() -> None:
    graph = make_graph(ids=False)
    sampler = pgs.PGSampler([5], seed=1, edge_weights="ht")
    want = sampler.sample(graph, range(100), epoch=0, batch=0).blocks[0].edge_weights
    factors = sampler.sample(graph.to("cuda"), range(100), epoch=0, batch=0).blocks[0].edge_weights
    assert factors.torch().is_cuda
    assert torch.equal(factors.torch().cpu(), want.torch())
    rows = pgs.Features.from_tensor(torch.randn(10, 3, 2)).to("cuda")[[1, 2]]
    assert torch.as_tensor(rows, device="cuda").shape == (2, 3, 2)
    assert torch.from_dlpack(rows).shape == rows.shape
