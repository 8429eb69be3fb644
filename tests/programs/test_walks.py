"""Programs that return walks: those of RandomWalk against the edges."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler.torch import DataLoader


@pgs.program
def wander(A: Any, seeds: Any, length: int) -> Any:
    return A.walk(seeds, length)


@pgs.program
def listed(A: Any, seeds: Any, length: int) -> Any:
    return {"nodes": A.walk(seeds, length)}


def graph() -> pgs.Graph:
    random = np.random.default_rng(0)
    src, dst = random.integers(0, 40, 90), random.integers(0, 40, 90)
    return pgs.Graph.from_coo(src, dst, num_nodes=40)


def test_they_are_those_of_random_walk() -> None:
    made, seeds = graph(), [3, 3, *range(40)]
    ours = wander(length=6, seed=5).sample(made, seeds, epoch=1, batch=2)
    theirs = pgs.RandomWalk(6, direction="in", seed=5).sample(made, seeds, epoch=1, batch=2)
    assert isinstance(ours, pgs.Walks) and len(ours) == len(seeds)
    assert ours.nodes.tolist() == theirs.nodes.tolist()
    assert ours.edge_ids.tolist() == theirs.edge_ids.tolist()
    assert (ours.lengths.numpy() < 6).any()
    # A walker of the list stays where there is no edge.
    batch = listed(length=6, seed=5).sample(made, seeds, epoch=1, batch=2)
    nodes = batch.extra["nodes"].numpy().reshape(7, -1).T
    ended = ours.nodes.numpy() < 0
    assert (nodes[~ended] == ours.nodes.numpy()[~ended]).all()
    last = ours.nodes.numpy()[np.arange(len(seeds)), ours.lengths.numpy()]
    assert (nodes[ended] == np.broadcast_to(last[:, None], nodes.shape)[ended]).all()


def test_they_are_a_sampler_like_any_other() -> None:
    made, sampler = graph(), wander(length=4, seed=5)
    assert repr(sampler) == "wander(length=4, seed=5)" and sampler.name == "wander"
    assert (sampler.result_kind, sampler.plan["family"]) == ("walks", "walk")
    assert sampler.code.split("\n")[1] == "%1 = walk %0 k=4 site=0"
    first = sampler.sample(made, [1, 2], epoch=0, batch=0).nodes.tolist()
    many = sampler.sample_many(made, [[1, 2], [3]], epoch=0, batch=0)
    assert [walks.batch for walks in many] == [0, 1] and many[0].nodes.tolist() == first
    assert sampler.submit(made, [1, 2], epoch=0, batch=0).result().nodes.tolist() == first
    sampler.set_epoch(3)
    sampler.sample(made, [1])
    again = pickle.loads(pickle.dumps(sampler))
    assert again.epoch == 3 and again.sample(made, [1]).batch == 1
    for other in (again, sampler.with_seed(5), sampler.with_gpu_share(0.5)):
        assert other.sample(made, [1, 2], epoch=0, batch=0).nodes.tolist() == first
    assert sampler.with_seed(6).seed == 6
    explained = sampler.explain(made, 8, batches=1)
    assert explained.startswith("walks of RandomWalk(length=4") and "measured" in explained
    assert explained.svg.startswith("<svg") and "walk" in sampler.profile(made, [1], batches=1)
    with pytest.raises(NotImplementedError, match="exclude: expected None for walks"):
        sampler.sample(made, [1], exclude=[0])
    for prefetch in (0, 4):
        loader = DataLoader(made, range(10), sampler, batch_size=5, prefetch=prefetch)
        assert [tuple(walks.nodes.shape) for walks in loader] == [(5, 5), (5, 5)]


@pytest.mark.parametrize(
    "function",
    [
        lambda A, seeds: seeds,
        lambda A, seeds: A.walk(seeds.unique(), 2),
        lambda A, seeds: A.walk(A.roots(3), 2),
        lambda A, seeds: (A.walk(seeds, 2), {"degree": A.degree()}),
    ],
)
def test_other_lists_are_none(function: Any) -> None:
    with pytest.raises(TypeError, match=r"test_walks.py:\d+: return: .*expected .*A\.walk\(seeds,"):
        pgs.program(function)(seed=0)


def test_a_program_in_the_place_of_its_sampler() -> None:
    with pytest.raises(
        TypeError, match=r"sampler: expected a sampler, which wander\(length=, .*mak"
    ):
        DataLoader(graph(), range(10), wander, batch_size=5)  # type: ignore[call-overload]


def test_walks_that_are_too_long() -> None:
    with pytest.raises(ValueError, match=r"program wander: length: expected an integer from 0 to"):
        wander(length=2**21)


def test_steps_by_weight_are_not_theirs() -> None:
    with pytest.raises(ValueError, match="weight: expected None of a program that returns walks"):
        pgs.program(lambda A, seeds: A.walk(seeds, 3))(weight="w")
