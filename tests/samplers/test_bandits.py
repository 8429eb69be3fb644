"""GCN-BS and Thanos: draws by what was learned, rewards, and versions of it."""

from __future__ import annotations

import copy
import gc
import itertools
import math
import pickle
import threading
import weakref
from collections import Counter
from typing import Any

import numpy as np
import pytest
from forks import in_child
from sampler_laws import BATCHES, batches, edges_of, plausible

import pygsampler as pgs
from pygsampler import samplers
from tests.support.assertions import assert_equal

# 0 has three in-edges and 1 two.
GRAPH = pgs.Graph.from_coo([1, 2, 3, 2, 3], [0, 0, 0, 1, 1], num_nodes=4)
Q = {1: 13 / 30, 2: 17 / 60, 3: 17 / 60}


def learned(fanouts: list[int], **options: Any) -> samplers.learned.Bandit:
    """Whose weights are 2, 1 and 1 at vertex 0."""
    made = samplers.learned.gcn_bs(GRAPH, fanouts=fanouts, seed=5, **options)
    made.load_state_dict({"version": 3, "log_w": [math.log(2), 0, 0, 4, 5]})
    return made


def test_draws_are_by_what_was_learned() -> None:
    """Of two draws each ordered pair has the product of its chances; all of 1's edges are there."""
    sampler = learned([2])
    x = np.array([0, 5, 1, 2])
    found: Counter[tuple[int, ...]] = Counter()
    sums = []
    for batch in batches(sampler, GRAPH, [0, 1]):
        edges = edges_of(batch.blocks[0])
        drawn = [(u, w) for u, v, w in edges if v == 0]
        found[tuple(u for u, _ in drawn)] += 1
        for u, w in drawn:
            assert w == pytest.approx(1 / (2 * Q[u]))
        sums.append(sum(w * x[u] for u, w in drawn))
        assert [(u, w) for u, v, w in edges if v == 1] == [(2, 1), (3, 1)]
    plausible(found, {(a, b): Q[a] * Q[b] for a, b in itertools.product(Q, repeat=2)})
    # Unbiased for the sum over all edges.
    assert abs(np.mean(sums) - 8) < 4 * np.std(sums) / math.sqrt(BATCHES)


def test_distinct_draws_have_exact_chances() -> None:
    """Of three edges two are drawn: that one is not is its chance, 1 - 2 q."""
    sampler = learned([2], method="exp3m")
    x = np.array([0, 5, 1, 2])
    found: Counter[int] = Counter()
    sums = []
    for batch in batches(sampler, GRAPH, [0, 1]):
        edges = edges_of(batch.blocks[0])
        drawn = {u: w for u, v, w in edges if v == 0}
        assert len(drawn) == 2 and list(drawn) == sorted(drawn)
        (left,) = set(Q) - set(drawn)
        found[left] += 1
        for u, w in drawn.items():
            assert w == pytest.approx(1 / (2 * Q[u]))
        sums.append(sum(w * x[u] for u, w in drawn.items()))
        assert [(u, w) for u, v, w in edges if v == 1] == [(2, 1), (3, 1)]
    plausible(found, {u: 1 - 2 * q for u, q in Q.items()})
    assert abs(np.mean(sums) - 8) < 4 * np.std(sums) / math.sqrt(BATCHES)


def test_large_weights_are_capped() -> None:
    """w = 8, 1, 1, 1 and eta = 0.2: the chances are 1 and a third; and of any weights two come."""
    graph = pgs.Graph.from_coo([1, 2, 3, 4], [0] * 4, num_nodes=5)
    sampler = samplers.learned.thanos(graph, fanouts=[2], method="exp3m", seed=5)
    sampler.load_state_dict({"version": 0, "log_w": [math.log(8), 0, 0, 0]})
    found: Counter[int] = Counter()
    for batch in batches(sampler, graph, [0]):
        (_, _, sure), (u, _, w) = edges_of(batch.blocks[0])
        assert sure == 1 and w == pytest.approx(3)
        found[u] += 1
    plausible(found, {2: 1 / 3, 3: 1 / 3, 4: 1 / 3})
    # One alone has a weight that a double can tell from 0.
    sampler.load_state_dict({"version": 0, "log_w": [5000, 0, 0, 0]})
    for batch in batches(sampler, graph, [0], 50):
        assert [w for *_, w in edges_of(batch.blocks[0])] == pytest.approx([1, 3])


def test_no_scale_of_the_weights_matters() -> None:
    sampler, shifted = learned([2]), learned([2])
    state = sampler.state_dict()
    shifted.load_state_dict({**state, "log_w": state["log_w"] + 5000})
    for one, other in zip(
        batches(sampler, GRAPH, [0], 50), batches(shifted, GRAPH, [0], 50), strict=True
    ):
        assert edges_of(one.blocks[0]) == edges_of(other.blocks[0])


class Made:
    """A batch of one block into 0, of all three edges, with the weights that say q."""

    def __init__(self, weights: list[float]) -> None:
        block = pgs.PGSampler([3], seed=0).sample(GRAPH, [0]).numpy().blocks[0]
        block.__dict__["edge_weights"] = np.array(weights, np.float32)
        self.blocks = [block]


def test_rewards_of_the_papers() -> None:
    """a = (.5, .25, .25) and h = (1, 0), (0, 1), (1, 1)."""
    batch, a = Made([1 / 3] * 3), np.array([0.5, 0.25, 0.25])
    h = np.array([[9, 9], [1, 0], [0, 1], [1, 1.0]])
    made = batch.blocks[0]
    assert made.src_nodes[made.indices].tolist() == [1, 2, 3]
    # Of three draws with q = 1.
    bs = samplers.learned.gcn_bs(GRAPH, fanouts=[3])
    assert bs.rewards(batch, 0, h, a) == pytest.approx([0.25, 0.0625, 0.125], rel=1e-6)
    assert bs.rewards(batch, 0, h) == pytest.approx(np.array([1, 1, 2]) / 9, rel=1e-6)
    thanos = samplers.learned.thanos(GRAPH, fanouts=[3])
    assert thanos.rewards(batch, 0, h, a) == pytest.approx([0.5, 0.1875, 0.5])


def test_updates() -> None:
    """GCN-BS by delta / d r / q, Thanos by delta / d r, not below 0; neither above the most."""
    sampler = samplers.learned.gcn_bs(GRAPH, fanouts=[2], delta=0.3, max_reward=4, seed=1)
    batch = sampler.sample(GRAPH, [0, 1], batch=0)
    assert sampler.version_of(batch) == 0
    block = batch.blocks[0].numpy() if hasattr(batch.blocks[0], "numpy") else batch.numpy()
    edges = np.asarray(block.blocks[0].edge_ids)
    # The chances are equal: 1 / 3.
    rewards = np.array([1.0, 2.0, 50.0, 60.0])
    want = np.zeros(5)
    np.add.at(want, edges[:2], np.minimum(0.1 * rewards[:2] * 3, 4))
    assert sampler.update(batch, [rewards]) == 1 == sampler.version
    assert sampler.log_weights == pytest.approx(want, rel=1e-6)
    rewards[:2] = 1e9, -1
    sampler.update(batch, [rewards])
    np.add.at(want, edges[:2], [4, -0.3])
    assert sampler.log_weights == pytest.approx(want, rel=1e-6)
    sampler.update(batch, [None])
    assert sampler.log_weights == pytest.approx(want, rel=1e-6)

    thanos = samplers.learned.thanos(GRAPH, fanouts=[2], delta=0.3, restart=2, seed=1)
    same = thanos.sample(GRAPH, [0, 1], batch=0)
    assert edges.tolist() == np.asarray(same.numpy().blocks[0].edge_ids).tolist()
    thanos.update(same, [[2, -3, 7, 7]])
    want = np.zeros(5)
    want[edges[0]] = 0.2
    assert thanos.log_weights == pytest.approx(want)
    thanos.update(same, [[1, 1, 1, 1]])
    assert thanos.version == 2 and not thanos.log_weights.any()


def test_updates_of_distinct_draws() -> None:
    """By delta / d r / p, p the chance of an edge; those that were sure learn nothing."""
    options: dict[str, Any] = {"delta": 0.3, "max_reward": 4, "method": "exp3m", "seed": 1}
    sampler = samplers.learned.gcn_bs(GRAPH, fanouts=[2], **options)
    batch = sampler.sample(GRAPH, [0, 1], batch=0)
    edges = np.asarray(batch.numpy().blocks[0].edge_ids)
    sampler.update(batch, [[1.0, 90.0, 50.0, 60.0]])
    want = np.zeros(5)
    want[edges[:2]] = 0.1 * 1.5, 4  # the chances are 2 / 3
    assert sampler.log_weights == pytest.approx(want, rel=1e-6)

    sampler.load_state_dict({"version": 1, "log_w": [9.0, 0, 0, 0, 0]})
    batch = sampler.sample(GRAPH, [0], batch=0)
    assert batch.numpy().blocks[0].edge_data["w"].tolist() == [1, 2]
    sampler.update(batch, [[1.0, 1.0]])
    learnt = sampler.log_weights.tolist()
    assert learnt[0] == 9 and sorted(learnt[1:3]) == pytest.approx([0, 0.2])


def test_learning_finds_the_best_edge() -> None:
    """Edge 1 of three alone is rewarded: its chance comes near 1 - eta and a third of eta."""
    sampler = samplers.learned.gcn_bs(GRAPH, fanouts=[1], eta=0.3, delta=0.5, seed=2)
    for number in range(200):
        batch = sampler.sample(GRAPH, [0], epoch=0, batch=number).numpy()
        sampler.update(batch, [(batch.blocks[0].edge_ids == 1) * 1.0])
    w = np.exp(sampler.log_weights[:3] - sampler.log_weights[:3].max())
    assert (0.7 * w / w.sum() + 0.1)[1] > 0.79
    found = Counter(edges_of(b.blocks[0])[0][0] for b in batches(sampler, GRAPH, [0], 2000))
    assert abs(found[2] / 2000 - 0.8) < 0.05


def test_batches_have_a_version_each() -> None:
    """What was submitted before an update is of the weights before it."""
    sampler = learned([1])
    fresh = copy.deepcopy(sampler)
    jobs = [sampler.submit(GRAPH, [0] * 50 + [1], epoch=0, batch=i) for i in range(20)]
    first = jobs[0].result()
    sampler.update(first, [np.full(len(first.blocks[0].edge_ids), 30.0)])
    for number, job in enumerate(jobs):
        want = fresh.sample(GRAPH, [0, 1], epoch=0, batch=number)
        assert edges_of(job.result().numpy().blocks[0]) == edges_of(want.numpy().blocks[0])
        assert sampler.version_of(job.result()) == 3
    later = sampler.sample(GRAPH, [0], epoch=0, batch=20)
    assert sampler.version_of(later) == 4
    with pytest.raises(KeyError):
        fresh.version_of(later)


def test_copies_and_states() -> None:
    sampler = learned([1])
    shared = sampler.with_seed(9)
    far = pickle.loads(pickle.dumps(sampler))
    batch = sampler.sample(GRAPH, [0], batch=0)
    sampler.update(batch, [[10.0]])
    assert shared.version == 4 and far.version == 3 and shared.seed == 9
    assert shared.log_weights.tolist() == sampler.log_weights.tolist()
    assert far.log_weights.tolist() == learned([1]).log_weights.tolist()
    far.load_state_dict(sampler.state_dict())
    seeds = np.arange(2)
    for number in range(30):
        one, other = (s.sample(GRAPH, seeds, epoch=0, batch=number) for s in (sampler, far))
        assert edges_of(one.numpy().blocks[0]) == edges_of(other.numpy().blocks[0])
    assert far.version == 4 and "version 4" in repr(far)


def test_a_loader_that_samples_ahead() -> None:
    """Batches of older versions, the same ones in every run."""
    pytest.importorskip("torch", reason="needs torch")
    from pygsampler.torch import DataLoader

    rng = np.random.default_rng(1)
    graph = pgs.Graph.from_coo(*rng.integers(0, 50, (2, 600)), num_nodes=50)
    h = rng.normal(size=(50, 4))

    def run(prefetch: int) -> tuple[list[int], list[list[int]], list[float]]:
        sampler = samplers.learned.gcn_bs(graph, fanouts=[3, 3], seed=4)
        versions, ids = [], []
        for batch in DataLoader(graph, range(50), sampler, batch_size=5, prefetch=prefetch):
            versions.append(sampler.version_of(batch))
            ids.append(batch.blocks[0].edge_ids.tolist())
            rewards = [
                sampler.rewards(batch, hop, h[block.src_nodes.numpy()])
                for hop, block in enumerate(batch.blocks)
            ]
            sampler.update(batch, rewards)
        return versions, ids, sampler.log_weights.tolist()

    assert run(0)[0] == list(range(10))
    ahead = run(4)
    assert ahead == run(4) and ahead[0][0] == 0 and max(ahead[0]) < 9
    assert all(before <= after for before, after in itertools.pairwise(ahead[0]))


def test_a_graph_that_goes_is_let_go() -> None:
    graph = pgs.Graph.from_coo([1, 2, 3, 2, 3], [0, 0, 0, 1, 1], num_nodes=4)
    sampler = samplers.learned.gcn_bs(graph, fanouts=[2], seed=1)
    sampler.sample(graph, [0])
    seen = weakref.ref(graph)
    del graph
    gc.collect()
    assert seen() is None and sampler.sample(GRAPH, [0]).num_edges == 2


def test_what_is_wrong() -> None:
    for options, error in (
        ({"eta": 2}, ValueError), ({"eta": "x"}, TypeError), ({"delta": -1}, ValueError),
        ({"max_reward": math.inf}, ValueError), ({"fanouts": 3}, TypeError),
        ({"method": "exp4"}, ValueError),
    ):  # fmt: skip
        with pytest.raises(error, match=f"{next(iter(options))}: expected"):
            samplers.learned.gcn_bs(GRAPH, **{"fanouts": [2], **options})
    with pytest.raises(TypeError, match="graph: expected"):
        samplers.learned.thanos([1], fanouts=[2])  # type: ignore[arg-type]
    sampler = learned([2])
    batch = sampler.sample(GRAPH, [0])
    for rewards in ([], [[1.0]], [[1, math.nan]]):
        with pytest.raises(ValueError, match=r"rewards.*: expected"):
            sampler.update(batch, rewards)
    with pytest.raises(ValueError, match="h: expected a row for each of"):
        sampler.rewards(batch, 0, np.ones((1, 2)))
    with pytest.raises(ValueError, match="blocks"):
        learned([2, 2]).update(batch, [None, None])
    state = sampler.state_dict()
    for wrong in ({}, {**state, "log_w": [1.0]}, {**state, "log_w": [math.inf] * 5}):
        with pytest.raises(ValueError, match="state"):
            sampler.load_state_dict(wrong)
    assert sampler.state_dict()["log_w"].tolist() == state["log_w"].tolist()
    other = pgs.Graph.from_coo([0], [1], num_nodes=2)
    with pytest.raises(ValueError, match="graph: expected the one of 4 nodes and 5 edges"):
        sampler.sample(other, [0])


@pytest.mark.backends("emulator", "cuda")
def test_batches_and_updates_of_the_cpu(backend: str) -> None:
    rng = np.random.default_rng(0)
    graph = pgs.Graph.from_coo(*rng.integers(0, 300, (2, 4000)), num_nodes=300)
    places = graph, graph.to("cuda"), graph.pin("cuda")
    ours = [samplers.learned.gcn_bs(g, fanouts=[3, 4], seed=2) for g in places]
    h = rng.normal(size=(300, 3))
    for number in range(3):
        results = [
            sampler.sample(g, range(40), epoch=0, batch=number).cpu()
            for sampler, g in zip(ours, places, strict=True)
        ]
        for batch in results[1:]:
            assert_equal(batch, results[0], number)
        for sampler, batch in zip(ours, results, strict=True):
            rewards = [
                sampler.rewards(batch, hop, h[block.src_nodes.numpy()])
                for hop, block in enumerate(batch.blocks)
            ]
            sampler.update(batch, rewards)
        assert len({tuple(sampler.log_weights) for sampler in ours}) == 1
    assert ours[1].version == 3 and ours[1].log_weights.any()


@pytest.mark.filterwarnings(
    # Python 3.12 warns of forks in processes with threads.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)
def test_a_fork_while_another_thread_samples() -> None:
    """It holds the lock, and the child does not have that thread."""
    sampler = learned([2])
    want = sampler.sample(GRAPH, [0, 1], epoch=0, batch=7)
    held, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with sampler._state.lock:
            held.set()
            go_on.wait(60)

    def work() -> Any:
        batch = sampler.sample(GRAPH, [0, 1], epoch=0, batch=7)
        version = sampler.update(batch, [np.ones(batch.blocks[0].num_edges)])
        again = sampler._state.lock, sampler._state.lock
        return edges_of(batch.numpy().blocks[0]), version, again[0] is again[1]

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(60)
        assert in_child(work) == (edges_of(want.numpy().blocks[0]), 4, True)
    finally:
        go_on.set()
        thread.join()
    # The parent's is as it was.
    assert sampler.version == 3
