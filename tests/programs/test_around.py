"""What samplers have of the program that they are made of: all kinds alike."""

from __future__ import annotations

import copy
import itertools
import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.torch import DataLoader
from tests.support.research import HAS_RESEARCH

GRAPH = pgs.Graph.from_coo([1, 2, 3, 2, 3, 0], [0, 0, 0, 1, 1, 3], num_nodes=4)
TYPED = pgs.Graph.from_coo({("a", "to", "b"): ([0, 1, 1], [0, 0, 1])}, num_nodes={"a": 3, "b": 2})


@pgs.program
def wander(A: Any, seeds: Any, W: Any = None) -> Any:
    if W is not None:
        # Nothing that is returned is made of it.
        (A[:, seeds].spread(A.degree(), axis=1) * W[0]).sum(axis=0)
    return A.walk(seeds, 3)


@pgs.program
def related(A: Any, seeds: Any) -> Any:
    return [A["a", "to", "b"][:, seeds].individual_sample(1)]


# Each with a graph, and the seeds of a batch.
KINDS: dict[str, tuple[Any, Any, Any]] = {
    "walks": (lambda seed: wander(seed=seed), GRAPH, [0, 1]),
    "relations": (lambda seed: related(seed=seed), TYPED, {"b": [0, 1]}),
    "learned": (lambda seed: samplers.learned.gcn_bs(GRAPH, fanouts=[1], seed=seed), GRAPH, [0, 1]),
    "clusters": (
        lambda seed: samplers.cluster_gcn_parts(np.array([0, 0, 1, 1]), seed=seed),
        GRAPH,
        [1, 0],
    ),
}


def shown(batch: Any) -> Any:
    """All that a batch has drawn."""
    if isinstance(batch, pgs.Walks):
        return batch.nodes.tolist()
    blocks = batch.blocks
    if not batch.is_homogeneous:
        blocks = [hop["a", "to", "b"] for hop in blocks]
    return [(b.indptr.tolist(), b.indices.tolist()) for b in blocks]


@pytest.mark.parametrize("kind", KINDS)
def test_another_one_counts_for_itself(kind: str) -> None:
    """Whether by seed, by share or tuned, as those of all other samplers."""
    make, graph, seeds = KINDS[kind]
    sampler = make(7)
    sampler.set_epoch(3)
    sampler.sample(graph, seeds)
    same = {
        "with_seed": sampler.with_seed(7),
        "within": sampler.with_gpu_share(0.5),
        "tuned": sampler.tuned(graph, seeds, batches=1),
    }
    for name, other in same.items():
        assert type(other) is type(sampler), name
        assert (other.seed, other.epoch) == (7, 0), name
        assert name == "tuned" or other.plan == sampler.plan
        for number in range(2):
            made = other.sample(graph, seeds)
            assert (made.epoch, made.batch) == (0, number), name
            wanted = sampler.sample(graph, seeds, epoch=0, batch=number)
            assert shown(made) == shown(wanted), name
    # Nothing of that was counted here.
    assert (sampler.epoch, sampler.sample(graph, seeds).batch) == (3, 1)
    assert sampler.with_seed(8).seed == 8


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_told_of_the_program(kind: str) -> None:
    make, graph, seeds = KINDS[kind]
    sampler = make(7)
    for other in (sampler, copy.copy(sampler), pickle.loads(pickle.dumps(sampler))):
        names = {"walks": "wander", "relations": "related", "learned": "exp3"}
        assert other.name == names.get(kind, "cluster_gcn")
        assert other.code.startswith("%0 = seeds") or "\n%" in other.code
    explained = sampler.explain(graph, 2, batches=1)
    assert "measured, the median of 1 batches" in explained and explained.svg.startswith("<svg")
    assert sampler.profile(graph, seeds, batches=1).microseconds


@pytest.mark.parametrize("kind", ["walks", "learned", "clusters"])
def test_a_seed_that_nobody_gave(kind: str) -> None:
    """Processes that share the work cannot shuffle by it, whatever the sampler is made of."""
    make, graph, seeds = KINDS[kind]
    of_all = {"batch_size": 1, "shuffle": True, "rank": 0, "world_size": 2}
    with pytest.raises(ValueError, match="seed: expected an integer, the same on all 2 ranks"):
        DataLoader(graph, seeds, make(None), **of_all)
    assert len(list(DataLoader(graph, seeds, make(7), **of_all))) == 1


@pytest.mark.parametrize(
    "make",
    [
        pgs.RandomWalk(2).with_gpu_share,
        pgs.walks.PinSAGE().with_gpu_share,
        *([pgs.research.KHop([2]).with_gpu_share] if HAS_RESEARCH else []),
        pgs.PGSampler([2]).with_gpu_share,
        pgs.LaborSampler([2], edge_weights="ht").with_gpu_share,
        pgs.samplers.HGTSampler([2]).with_gpu_share,
        *(KINDS[kind][0](None).with_gpu_share for kind in KINDS),
        samplers.ladies(nodes=[2]).with_gpu_share,
        samplers.kgcn_static(fanout=2).with_gpu_share,
        lambda _: pgs.RandomWalk(2).with_seed(None),
        lambda _: pgs.PGSampler([2], seed=7).with_seed(None),
    ],
)
def test_a_seed_that_nobody_gave_stays_one(make: Any) -> None:
    """Also in what is made of the sampler."""
    assert make(0.5)._numbers.is_drawn


@pytest.mark.parametrize("faster", [False, True])
def test_a_tuned_one_has_no_other_seed(faster: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether its own plan is the fastest or another."""
    times = itertools.count(-1, -1) if faster else itertools.count(1)
    monkeypatch.setattr(type(samplers.ladies(nodes=[2])), "_median", lambda *_: next(times))
    for seed in (None, 7):
        sampler = samplers.ladies(nodes=[2], seed=seed)
        tuned = sampler.tuned(GRAPH, [0, 1], batches=1)
        assert tuned.seed == sampler.seed and tuned._numbers.is_drawn == (seed is None)
        assert (tuned.plan != sampler.plan) == faster


def test_inputs_of_a_program_that_returns_walks() -> None:
    sampler = wander(W=np.array([2.0], np.float32), seed=7)
    before = sampler.sample(GRAPH, [0, 1], epoch=0, batch=0)
    assert sampler.version == 0 and sampler.inputs["W"].tolist() == [2.0]
    assert sampler.update(W=np.array([3.0], np.float32)) == 1 == sampler.version
    assert sampler.inputs["W"].tolist() == [3.0]
    after = sampler.sample(GRAPH, [0, 1], epoch=0, batch=0)
    assert shown(after) == shown(before)
    with pytest.raises(TypeError, match=r"wander.update: V: expected one of its inputs \(W\)"):
        sampler.update(V=np.ones(1))
