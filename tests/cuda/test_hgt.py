"""HGT's subgraphs of a graph on a GPU: those of the CPU, byte for byte."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.cuda.test_hetero import NUMBERS
from tests.support.hetero_parity import assert_equal_batches, half_of, make, seeds_of
from tests.support.parity import emulated, scaled
from tests.support.partners import partner


@pytest.mark.parametrize("types", [1, 3, 40])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_random_schemas(types: int, dtype: str) -> None:
    random = np.random.default_rng(types)
    graph = make(types, types, 2 * types, dtype, scaled(4000, 40))
    there = graph.to("cuda")
    for place, most in enumerate((50, None, 3)):
        iterations = 1 + place
        counts = {
            kind: [int(n) for n in random.choice([-1, 0, 2, 30, 700], iterations)]
            for kind in graph.node_types
        }
        sampler = pgs.samplers.HGTSampler(counts, max_neighbors=most, seed=place)
        seeds = seeds_of(graph, random)
        without = half_of(graph, random) if place % 2 else {}
        want = sampler.sample(graph, seeds, exclude=without, **NUMBERS)
        got = sampler.sample(there, seeds, exclude=without, **NUMBERS)
        assert_equal_batches(got, want, counts)
        job = pickle.loads(pickle.dumps(sampler)).submit(there, seeds, exclude=without, **NUMBERS)
        assert_equal_batches(job.result(), want, (counts, "submitted"))


@pytest.mark.parametrize("put", ["to", "pin"])
def test_many_candidates(put: str) -> None:
    """Vertices with a budget that take several merges, of which few, many and all are chosen."""
    random = np.random.default_rng(3)
    size = scaled(2_000_000, 5000)
    into = random.integers(0, 300, 2 * size)
    into[: size // 3] = 7  # a hub
    edges: Any = {
        ("a", "to", "b"): (random.integers(0, size, 2 * size), into),
        ("b", "back", "a"): (random.integers(0, 300, size), random.integers(0, size, size)),
    }
    graph = pgs.Graph.from_coo(edges, num_nodes={"a": size, "b": 300})
    there = getattr(graph, put)("cuda")
    seeds = {"b": np.arange(300)}
    for counts in ([100, 3], [-1], [size // 2, 2000]):
        sampler = pgs.samplers.HGTSampler(
            {"a": counts, "b": [5] * len(counts)}, max_neighbors=None, seed=2
        )
        want = sampler.sample(graph, seeds, **NUMBERS)
        for _ in range(2):  # the first does not fit at once
            assert_equal_batches(sampler.sample(there, seeds, **NUMBERS), want, counts)


def test_many_batches_a_share_and_seeds_on_the_gpu() -> None:
    graph = make(7, 3, 5, "int64")
    there = graph.to("cuda")
    sampler = pgs.samplers.HGTSampler([4, 3], seed=1)
    sets: list[Any] = [{"t0": [0]}, {}, {"t1": [0, 0], "t2": [0]}]
    want = sampler.sample_many(graph, sets, epoch=2, batch=7)
    for one in (sampler, sampler.with_gpu_share(0.3)):
        for mine, other in zip(one.sample_many(there, sets, epoch=2, batch=7), want, strict=True):
            assert_equal_batches(mine, other, one)
    if not emulated():
        torch = partner("torch")
        on_gpu = {kind: torch.tensor(ids, device="cuda") for kind, ids in sets[2].items()}
        assert_equal_batches(sampler.sample(there, on_gpu, epoch=2, batch=9), want[2], "on the GPU")


def test_refuses() -> None:
    there = make(7, 3, 5, "int64").to("cuda")
    sampler = pgs.samplers.HGTSampler([4], seed=1)
    with pytest.raises(IndexError, match=r'seeds\["t1"\]\[1\]: expected an id in \[0, \d+\), got'):
        sampler.sample(there, {"t1": [0, 4000]})
    with pytest.raises(ValueError, match="num_samples: expected numbers for each node type"):
        pgs.samplers.HGTSampler({"t0": [1]}, seed=1).sample(there, {"t1": [0]})
    assert sampler.sample(there, {"t1": [0]}).device == "cuda:0"
