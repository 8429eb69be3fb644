"""``sample_on_devices``: shares of a call are the samples of one device, in their order."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler.research import KHop, LayerSample, sample_on_devices
from pygsampler.walks import MultiRW

AT = {"epoch": 2, "batch": 5}
SAMPLERS = {
    "khop": KHop([3, 2], seed=7),
    "khop edges": KHop([3, 2], edge_ids=True, unique=True, seed=7),
    "layer": LayerSample([5, 4], edge_ids=True, seed=7),
    "walk": pgs.RandomWalk(6, walks_per_seed=3, edge_ids=True, seed=7),
    "weighted": pgs.RandomWalk(6, prob="w", p=2.0, q=0.5, seed=7),
    "ppr": pgs.RandomWalk(9, stop=0.2, seed=7),
    "multirw": MultiRW(3, 8, seed=7),
}


def graph() -> pgs.Graph:
    random = np.random.default_rng(3)
    pairs = random.integers(0, 200, (2, 1500))
    weights = random.random(1500).astype(np.float32)
    return pgs.Graph.from_coo(*pairs, num_nodes=200, edge_data={"w": weights})


def arrays(result: Any) -> dict[str, Any]:
    names = [name for name in result._descriptors if result._array(name) is not None]
    return {name: result.numpy()._array(name) for name in names}


def alike(one: Any, other: Any) -> None:
    assert type(one) is type(other) and len(one) == len(other)
    assert (one.epoch, one.batch, one.seed) == (other.epoch, other.batch, other.seed)
    assert one._descriptors.keys() == other._descriptors.keys()
    mine, theirs = arrays(one), arrays(other)
    assert mine.keys() == theirs.keys()
    for name, values in mine.items():
        assert values.dtype == theirs[name].dtype
        np.testing.assert_array_equal(values, theirs[name])


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("devices", [1, 2, 3, 7])
def test_shares_are_the_samples_of_one_device(name: str, devices: int) -> None:
    g, sampler = graph(), SAMPLERS[name]
    seeds = np.arange(60) * 7 % 200
    want = sampler.sample(g, seeds, **AT)
    got = sample_on_devices(sampler, [g] * devices, seeds, **AT)
    alike(got, want)
    assert got.per_sample()[0] is not None and got.device == "cpu"
    alike(pickle.loads(pickle.dumps(got)), want)
    assert got.torch().device.type == "cpu"
    # Shares that differ in size, shares without a sample, and none at all.
    for few in (seeds[:3], seeds[:0]):
        alike(sample_on_devices(sampler, [g] * devices, few, **AT), sampler.sample(g, few, **AT))


def test_calls_go_on_counting() -> None:
    g, sampler = graph(), KHop([3, 2], seed=7)
    results = [sample_on_devices(sampler, [g, g], [1, 2, 3]) for _ in range(2)]
    assert [result.batch for result in results] == [0, 1]
    alike(results[1], sampler.sample(g, [1, 2, 3], epoch=0, batch=1))


@pgs.program
def walk_program(A: Any, seeds: Any) -> Any:
    return A.walk(seeds, 3)


def test_bad_input() -> None:
    g, sampler = graph(), SAMPLERS["khop"]
    other = pgs.Graph.from_coo([0], [1], num_nodes=200)
    for arguments, error, text in (
        ((pgs.PGSampler([3]), [g], [0]), TypeError, "sampler: expected a KHop, a LayerSample or"),
        ((walk_program(seed=1), [g], [0]), TypeError, "sampler: expected a KHop, a LayerSample or"),
        ((sampler, g, [0]), TypeError, "graphs: expected a sequence of Graph, got"),
        ((sampler, [], [0]), ValueError, "graphs: expected one for each device, got none"),
        ((sampler, [g, 3], [0]), TypeError, "graph: expected a pygsampler.Graph"),
        (
            (sampler, [g, other], [0]),
            ValueError,
            r"graphs\[1\]: expected .* num_edges is 1500, got",
        ),
        ((sampler, [g, g], [0, 1, 200]), IndexError, r"seeds\[2\]: expected an id in \[0, 200\)"),
        ((SAMPLERS["multirw"], [g], [0, 1]), ValueError, "seeds: expected a multiple of 3"),
    ):
        with pytest.raises(error, match=text):
            sample_on_devices(*arguments)
