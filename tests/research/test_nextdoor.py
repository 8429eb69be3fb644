"""NextDoor's interface: the paper's programs as it writes them, their laws, and bad input."""

from __future__ import annotations

import collections
import itertools
import math
import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler.research.nextdoor import (
    INF,
    NULL,
    NextDoor,
    SamplingType,
    graph,
    randFloat,
    randInt,
    rejection_smpl,
)
from pygsampler.research.transit_calls import below, part_states, sample_states
from tests.support import reference
from tests.support.sampler_laws import BOTH, of, plausible

# 0-1, 0-2, 1-2, 2-3 and 3-4, both ways; the weight of an edge is 1 + |u - v|.
NEIGHBORS = {0: [1, 2], 1: [0, 2], 2: [0, 1, 3], 3: [2, 4], 4: [3]}
MANY = 6000


def tree(weighted: bool = False) -> pgs.Graph:
    weights = np.array([1.0 + abs(u - v) for u, v in BOTH])
    return of(BOTH, edge_data={"w": weights} if weighted else {})


class Walk:
    """What walks of the paper have alike: figure 4a, but for ``next``."""

    def __init__(self, length: int) -> None:
        self.length = length

    def steps(self) -> int:
        return self.length

    def sampleSize(self, step: int) -> int:
        return 1

    def unique(self, step: int) -> bool:
        return False

    def samplingType(self) -> SamplingType:
        return SamplingType.Individual

    def stepTransits(self, step: int, s: Any, transitIdx: Any) -> Any:
        return s.prevVertex(1, transitIdx)


class Node2vec(Walk):
    """Figure 4a."""

    p, q = 2.0, 0.5

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        t = s.prevVertex(2, 0)
        tEdges = s.prevEdges(2, 0)
        maxW = transits[0].maxEdgeWeight()
        return rejection_smpl(transits[0], srcEdges, maxW, t, tEdges, self.p, self.q)


class DeepWalk(Walk):
    """By rejection with ``maxEdgeWeight``, for one sample at a time."""

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        while True:
            idx = randInt(0, srcEdges.size())
            if randFloat() * transits[0].maxEdgeWeight() < srcEdges.weight(idx):
                return srcEdges[idx]


class PrefixWalk(Walk):
    """By a search in ``prefixSum``, for any number of samples."""

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        v, idx = transits[0], 0 * srcEdges.size()
        x = randFloat() * v.prefixSum(srcEdges.size() - 1)
        for _ in range(3):
            idx = np.where(v.prefixSum(idx) <= x, idx + 1, idx)
        return srcEdges[idx]


class PPR(Walk):
    """Stops with probability ``alpha`` before each step."""

    def __init__(self, alpha: float = 0.5) -> None:
        super().__init__(INF)
        self.alpha = alpha

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        stops = randFloat() < self.alpha
        return np.where(stops, NULL, srcEdges[randInt(0, srcEdges.size())])


class PPRByIf(PPR):
    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        if randFloat() < self.alpha:
            randInt(0, srcEdges.size())
            return None
        return srcEdges[randInt(0, srcEdges.size())]


class MultiRW(Walk):
    """Figure 4c, and the one transit of each step, which the paper does not write."""

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        idx = randInt(0, srcEdges.size())
        v = srcEdges[idx]
        s.roots.replace(transits[0], v)
        return v

    def stepTransits(self, step: int, s: Any, transitIdx: Any) -> Any:
        return s.roots[randInt(0, s.numRoots())]

    def numTransits(self, step: int) -> int:
        return 1


class KHop(Walk):
    """Figure 4d; with one step, MVS's neighbors of all roots."""

    def __init__(self, fanouts: list[int], unique: bool = False) -> None:
        super().__init__(len(fanouts))
        self.fanouts, self.distinct = fanouts, unique

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        idx = randInt(0, srcEdges.size())
        return srcEdges[idx]

    def sampleSize(self, step: int) -> int:
        return self.fanouts[step]

    def unique(self, step: int) -> bool:
        return self.distinct


class Layer(KHop):
    """Section 3: until a sample has ``most`` nodes."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__([size])
        self.most = most

    def steps(self) -> int:
        return INF

    def sampleSize(self, step: int) -> int:
        return self.fanouts[0]

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        v = super().next(s, transits, srcEdges, step)
        return np.where(s.size() < self.most, v, NULL)

    def samplingType(self) -> SamplingType:
        return SamplingType.Collective


class Importance(Walk):
    """Figure 4b: FastGCN and LADIES, with the paper's uniform choice."""

    def __init__(self, size: int, length: int) -> None:
        super().__init__(length)
        self.size = size

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        v = randInt(0, graph.vertices())
        for trn in transits:
            if trn.hasEdge(v):
                s.addEdge(step, trn, v)
        return v

    def sampleSize(self, step: int) -> int:
        return self.size

    def samplingType(self) -> SamplingType:
        return SamplingType.Collective


class ImportanceOfMany(Importance):
    """The same with a mask in the place of the ``if``."""

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        v = randInt(0, graph.vertices())
        for trn in transits:
            s.addEdge(step, trn, v, where=trn.hasEdge(v))
        return v


class Ladies(ImportanceOfMany):
    """LADIES' criterion in ``next``: a place among all edges of the transits."""

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        v = srcEdges[randInt(0, srcEdges.size())]
        for trn in transits:
            s.addEdge(step, trn, v, where=trn.hasEdge(v))
        return v


class ClusterGCN(ImportanceOfMany):
    """Section 4.2: edges between any two transits."""

    def __init__(self) -> None:
        super().__init__(1, 1)

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        for v, trn in itertools.product(transits, transits):
            s.addEdge(step, trn, v, where=trn.hasEdge(v))
        return NULL


ALL = {
    "node2vec": (Node2vec(5), "w"),
    "deepwalk": (PrefixWalk(5), "w"),
    "ppr": (PPR(), None),
    "multirw": (MultiRW(6), None),
    "khop": (KHop([3, 2]), None),
    "khop unique": (KHop([3, 4], unique=True), None),
    "layer": (Layer(4, 20), None),
    "importance": (ImportanceOfMany(4, 2), None),
    "ladies": (Ladies(4, 2), None),
    "cluster": (ClusterGCN(), None),
}
ROOTS = {"multirw": 3, "importance": 3, "ladies": 3, "cluster": 3}


def roots_of(name: str, count: int) -> Any:
    width = ROOTS.get(name, 1)
    return np.arange(count * width).reshape(count, width) % 5


def law_of_walks(chance: Any, length: int, start: int) -> dict[Any, float]:
    """The chance of each walk, by that of a next node after the nodes before it."""
    law = {(start,): 1.0}
    for _ in range(length):
        law = {
            (*walk, v): p * chance(walk, v) for walk, p in law.items() for v in NEIGHBORS[walk[-1]]
        }
    return {walk[1:]: p for walk, p in law.items()}


def rows(array: Any) -> Any:
    return collections.Counter(map(tuple, np.asarray(array).tolist()))


@pytest.mark.parametrize("name", ALL)
def test_calls_for_one_sample_and_for_many_make_the_same(name: str) -> None:
    application, prob = ALL[name]
    roots = roots_of(name, 30)
    one, many = (
        NextDoor(application, prob=prob, batched=batched, seed=5).sample(
            tree(True), roots, epoch=2, batch=7
        )
        for batched in (False, True)
    )
    assert len(one) == len(many) == 30 and len(one.steps) == len(many.steps) > 0
    for mine, theirs in zip(one.steps, many.steps, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(one.edges, many.edges)
    np.testing.assert_array_equal(one.complete, many.complete)
    # Samples are those of their number, however many there are.
    few = NextDoor(application, prob=prob, seed=5).sample(tree(True), roots[:4], epoch=2, batch=7)
    width = min(len(few.steps), len(one.steps))
    for mine, theirs in zip(few.steps[:width], one.steps, strict=False):
        np.testing.assert_array_equal(mine, theirs[:4])
    other = NextDoor(application, prob=prob, batched=True, seed=6).sample(tree(True), roots)
    if name != "cluster":
        assert not np.array_equal(other.steps[0], many.steps[0])


class DrawsAfter(Walk):
    """A walk that draws once more after node2vec's rejection, and goes by both."""

    def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
        t, tEdges = s.prevVertex(2, 0), s.prevEdges(2, 0)
        u = rejection_smpl(transits[0], srcEdges, 1.0, t, tEdges, 4.0, 0.25)
        return np.where(randFloat() < 0.5, u, srcEdges[randInt(0, srcEdges.size())])


def test_a_sample_depends_on_no_other_after_draws_that_are_tried_again() -> None:
    edges = np.random.default_rng(3).integers(0, 50, (2, 300))
    wide = pgs.Graph.from_coo(*edges, num_nodes=50)
    roots = list(range(40))
    whole = NextDoor(DrawsAfter(5), batched=True, seed=2).sample(wide, roots, epoch=0, batch=0)
    few = NextDoor(DrawsAfter(5), batched=True, seed=2).sample(wide, roots[:7], epoch=0, batch=0)
    one = NextDoor(DrawsAfter(5), seed=2).sample(wide, roots, epoch=0, batch=0)
    for of_all, of_few, of_one in zip(whole.steps, few.steps, one.steps, strict=True):
        assert of_all[:7].tolist() == of_few.tolist()
        assert of_all.tolist() == of_one.tolist()


def test_samples_within_a_budget() -> None:
    sampler = NextDoor(DrawsAfter(2), batched=True, seed=2)
    sets = [[0, 1], [2], [3, 4]]
    within = sampler.sample_many(tree(), sets, epoch=0, batch=0, memory=1)
    for mine, theirs in zip(
        within, sampler.sample_many(tree(), sets, epoch=0, batch=0), strict=True
    ):
        assert [a.tolist() for a in mine.steps] == [a.tolist() for a in theirs.steps]
        assert mine.nbytes > 0


@pytest.mark.parametrize("by", ["prefix", "rejection"])
def test_deepwalk_has_its_law(by: str) -> None:
    application = PrefixWalk(3) if by == "prefix" else DeepWalk(3)
    count = MANY if by == "prefix" else 1500
    walks = NextDoor(application, prob="w", batched=by == "prefix", seed=1).sample(
        tree(True), np.full(count, 2), epoch=0, batch=0
    )

    def chance(walk: Any, v: int) -> float:
        return (1 + abs(walk[-1] - v)) / sum(1 + abs(walk[-1] - u) for u in NEIGHBORS[walk[-1]])

    plausible(rows(walks.per_sample()), law_of_walks(chance, 3, 2))


def test_node2vec_has_its_law() -> None:
    walks = NextDoor(Node2vec(3), prob="w", batched=True, seed=1).sample(
        tree(True), np.full(MANY, 2), epoch=0, batch=0
    )

    def weight(walk: Any, v: int) -> float:
        factor = 1.0
        if len(walk) > 1:
            t = walk[-2]
            factor = 0.5 if v == t else 1.0 if v in NEIGHBORS[t] else 2.0
        return (1 + abs(walk[-1] - v)) * factor

    def chance(walk: Any, v: int) -> float:
        return weight(walk, v) / sum(weight(walk, u) for u in NEIGHBORS[walk[-1]])

    plausible(rows(walks.per_sample()), law_of_walks(chance, 3, 2))


def test_ppr_ends_with_its_law_and_is_cut_at_the_cap() -> None:
    sampler = NextDoor(PPR(), batched=True, max_steps=3, seed=1)
    walks = sampler.sample(tree(), np.zeros(MANY, int), epoch=0, batch=0)
    lengths = (walks.per_sample() >= 0).sum(axis=1)
    # Section 3: next adds nothing with probability 1/2, before the first step too.
    plausible(rows(lengths[:, None]), {(0,): 1 / 2, (1,): 1 / 4, (2,): 1 / 8, (3,): 1 / 8})
    np.testing.assert_array_equal(walks.complete, lengths < 3)
    long = NextDoor(PPR(), batched=True, seed=1).sample(tree(), np.zeros(200, int), batch=0)
    assert long.complete.all() and 3 < len(long.steps) < 100
    for step in range(3):
        np.testing.assert_array_equal(long.steps[step], walks.steps[step][:200])
    by_if = NextDoor(PPRByIf(), seed=1).sample(tree(), np.zeros(200, int), batch=0)
    for mine, theirs in zip(by_if.steps, long.steps, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_multi_dimensional_walks_have_their_law() -> None:
    walks = NextDoor(MultiRW(2), batched=True, seed=3).sample(
        tree(), np.full((MANY, 2), [2, 4]), epoch=0, batch=0
    )
    law: dict[Any, float] = collections.defaultdict(float)
    for i in range(2):
        for v in NEIGHBORS[[2, 4][i]]:
            roots = [2, 4]
            roots[i] = v
            for j in range(2):
                for u in NEIGHBORS[roots[j]]:
                    law[(v, u)] += 1 / (
                        2 * len(NEIGHBORS[[2, 4][i]]) * 2 * len(NEIGHBORS[roots[j]])
                    )
    # Roots are chosen uniformly, as in the paper: 1/6 for each neighbor of 2, 1/2 for that of 4.
    assert math.isclose(sum(p for (v, _), p in law.items() if v == 0), 1 / 6)
    plausible(rows(walks.per_sample()), law)
    # The roots of the call are what they were.
    assert (walks.roots == [2, 4]).all()


def test_k_hop_has_its_law_and_mvs_the_neighbors_of_all_roots() -> None:
    hops = NextDoor(KHop([2, 1]), batched=True, seed=3).sample(
        tree(), np.full(MANY, 2), epoch=0, batch=0
    )
    law = {
        (a, b, c, d): 1 / 9 / len(NEIGHBORS[a]) / len(NEIGHBORS[b])
        for a, b in itertools.product(NEIGHBORS[2], repeat=2)
        for c, d in itertools.product(NEIGHBORS[a], NEIGHBORS[b])
    }
    plausible(rows(hops.per_sample()), law)
    mvs = NextDoor(KHop([2]), batched=True, seed=3).sample(tree(), np.full((MANY, 2), [0, 4]))
    assert mvs.steps[0].shape == (MANY, 4) and (mvs.steps[0][:, 2:] == 3).all()
    plausible(rows(mvs.steps[0][:, :2]), {(a, b): 1 / 4 for a in (1, 2) for b in (1, 2)})


def test_unique_steps_have_no_node_twice() -> None:
    pair = pgs.Graph.from_coo([0, 1, 3, 4, 5, 3, 4, 5], [2, 2, 0, 0, 0, 1, 1, 1])
    hops = NextDoor(KHop([2, 2], unique=True), batched=True, seed=0).sample(
        pair, np.full(MANY, 2), epoch=0, batch=0
    )
    assert (np.sort(hops.steps[0]) == [0, 1]).all()
    # All three neighbors are there, but for one in (2/3)^31 that 32 rounds leave out.
    assert (np.sort(hops.steps[1]) == [-1, 3, 4, 5]).all()
    pairs = hops.steps[1][:, :2]
    full = pairs[(pairs >= 0).all(axis=1)]
    assert len(full) > MANY // 2
    assert (full[:, 0] != full[:, 1]).all()
    # A slot alone in its step takes each neighbor alike.
    alone = NextDoor(KHop([3], unique=True), batched=True, seed=0).sample(
        tree(), np.full(MANY, 2), epoch=0, batch=0
    )
    plausible(rows(alone.steps[0]), dict.fromkeys(itertools.permutations(NEIGHBORS[2]), 1 / 6))


def test_layers_draw_together_until_they_have_enough() -> None:
    layers = NextDoor(Layer(2, 5), batched=True, seed=3).sample(
        tree(), np.full(MANY, 2), epoch=0, batch=0
    )
    # 1 root, 3, 5 nodes; then next adds none.
    assert [step.shape for step in layers.steps] == [(MANY, 2)] * 3
    assert (layers.steps[1] >= 0).all() and (layers.steps[2] == NULL).all()
    assert layers.complete.all()
    law: dict[Any, float] = collections.defaultdict(float)
    for a, b in itertools.product(NEIGHBORS[2], repeat=2):
        pool = NEIGHBORS[a] + NEIGHBORS[b]
        for c, d in itertools.product(pool, repeat=2):
            law[(a, b, c, d)] += 1 / 9 / len(pool) ** 2
    plausible(rows(np.concatenate(layers.steps[:2], axis=1)), law)


def test_importance_sampling_adds_the_edges_between_layers() -> None:
    roots = np.full((300, 2), [0, 3])
    samples = NextDoor(ImportanceOfMany(5, 2), batched=True, seed=3).sample(
        tree(), roots, epoch=0, batch=0
    )
    by_if = NextDoor(Importance(5, 2), seed=3).sample(tree(), roots[:20], epoch=0, batch=0)
    np.testing.assert_array_equal(by_if.edges, samples.edges[samples.edges[:, 0] < 20])
    want = []
    for w in range(300):
        before = roots[w]
        for step in range(2):
            nodes = samples.steps[step][w]
            want += [[w, step, t, v] for v in nodes for t in before if v in NEIGHBORS[int(t)]]
            before = nodes
    assert samples.edges.tolist() == [list(map(int, row)) for row in want]
    plausible(rows(samples.steps[0].reshape(-1, 1)), {(v,): 1 / 5 for v in range(5)})


def test_cluster_sampling_has_the_edges_between_roots() -> None:
    samples = NextDoor(ClusterGCN(), batched=True, seed=3).sample(
        tree(), [[0, 1, 2, -1], [3, 4, -1, -1]], epoch=0, batch=0
    )
    assert rows(samples.edges[:, [0, 2, 3]]) == {
        (w, u, v): 1
        for w, cluster in enumerate([[0, 1, 2], [3, 4]])
        for u in cluster
        for v in cluster
        if v in NEIGHBORS[u]
    }


def test_draws_are_those_of_the_engine() -> None:
    seed, epoch, batch = (1 << 63) + 5, 3, (1 << 39) + 1
    states = sample_states(seed, epoch, batch, np.arange(4))
    want = [reference.row_state(seed, epoch, batch, 255, w, reference.WALKS) for w in range(4)]
    assert states.tolist() == want
    parts = part_states(states, [0, 1, 7, 1 << 40])
    assert parts.tolist() == [
        reference.part(s, t) for s, t in zip(want, [0, 1, 7, 1 << 40], strict=True)
    ]
    bounds = [1, 10, 1 << 40, (1 << 63) - 1]
    got = below(states, np.array(bounds, np.uint64))
    assert got.tolist() == [s * n >> 64 for s, n in zip(want, bounds, strict=True)]


def test_walks_are_the_rules_of_the_document() -> None:
    walks = NextDoor(KHop([2, 2]), batched=True, seed=9).sample(tree(), [2, 0], epoch=1, batch=4)
    for w, root in enumerate([2, 0]):
        before = [root]
        state = reference.row_state(9, 1, 4, 255, w, reference.WALKS)
        for step in range(2):
            after = []
            for slot in range(2 * len(before)):
                own = reference.part(reference.part(state, 2 * step), slot)
                edges = sorted_rows()[before[slot // 2]]
                after.append(edges[reference.draw(reference.part(own, 0), 0, len(edges))])
            assert walks.steps[step][w].tolist() == after
            before = after


def sorted_rows() -> list[list[int]]:
    """The rows of the graph in their order."""
    g = tree()
    indptr, indices = g.indptr.tolist(), g.indices.tolist()
    return [indices[indptr[v] : indptr[v + 1]] for v in range(5)]


def test_results_are_in_two_formats_and_libraries() -> None:
    sampler = NextDoor(KHop([2, 2]), batched=True, seed=9)
    samples = sampler.sample(tree(), [2, 0], epoch=1, batch=4)
    assert samples.per_step() is samples.steps and samples.per_sample().shape == (2, 6)
    tensors = samples.torch()
    assert tensors.per_sample().tolist() == samples.per_sample().tolist()
    assert tensors.numpy().steps[1].tolist() == samples.steps[1].tolist()
    assert "steps=2" in repr(samples) and (samples.epoch, samples.batch) == (1, 4)
    # Roots that the sampler picks: one random node for each sample.
    picked = sampler.sample(tree(), MANY, epoch=0, batch=0)
    plausible(rows(picked.roots), {(v,): 1 / 5 for v in range(5)})
    assert sampler.sample(tree(), []).steps[1].shape == (0, 4)
    again = pickle.loads(pickle.dumps(sampler))
    assert again.sample(tree(), [2, 0], epoch=1, batch=4).steps[1].tolist() == (
        samples.steps[1].tolist()
    )


def test_loaders_yield_them() -> None:
    from pygsampler.torch import DataLoader

    sampler = NextDoor(KHop([2, 2]), batched=True, seed=4)
    batches = list(DataLoader(tree(), list(range(5)), sampler, batch_size=3))
    assert [len(batch) for batch in batches] == [3, 2]
    want = sampler.sample(tree(), [3, 4], epoch=0, batch=1)
    assert batches[1].steps[1].tolist() == want.steps[1].tolist()


def test_nodes_without_edges_end_walks() -> None:
    chain = pgs.Graph.from_coo([0, 1], [1, 2], num_nodes=4)
    walks = NextDoor(KHop([1, 1, 1]), batched=True, seed=1).sample(chain, [2, 3])
    assert walks.per_sample().tolist() == [[1, 0, -1], [-1, -1, -1]]


def test_bad_applications_and_arguments() -> None:
    class Wrong(Walk):
        def next(self, s: Any, transits: Any, srcEdges: Any, step: int) -> Any:
            return self.value

        def __init__(self, value: Any, **functions: Any) -> None:
            super().__init__(1)
            self.value = value
            for name, function in functions.items():
                setattr(self, name, function)

    def sample(application: Any, roots: Any = (0,), **options: Any) -> Any:
        return NextDoor(application, **options).sample(tree(), list(roots))

    with pytest.raises(
        TypeError, match=r"expected an instance, got the class MultiRW; MultiRW\(\)"
    ):
        NextDoor(MultiRW)
    with pytest.raises(TypeError, match=r"expected a method next\(self, s, transits, srcEdges, st"):
        NextDoor(Walk(1))
    for value, error, text in (
        ("x", TypeError, r"Wrong.next: expected a node, or NULL, for each sample, got"),
        (0.5, TypeError, r"Wrong.next: expected a node"),
        (5, IndexError, r"Wrong.next: expected NULL or a node in \[0, 5\), got 5"),
        (-2, IndexError, r"Wrong.next: expected NULL or a node in \[0, 5\), got -2"),
    ):
        with pytest.raises(error, match=text):
            sample(Wrong(value))
    for functions, text in (
        ({"steps": lambda: 0}, "Wrong.steps: expected"),
        ({"sampleSize": lambda step: 0}, "Wrong.sampleSize: expected"),
        ({"unique": lambda step: 1}, "Wrong.unique: expected True or False"),
        ({"samplingType": lambda: "individual"}, "Wrong.samplingType: expected a SamplingType"),
        ({"stepTransits": lambda step, s, i: s.prevVertex(0, i)}, "prevVertex: expected i >= 1"),
        ({"stepTransits": lambda step, s, i: s.prevVertex(1, 1)}, r"a position in \[0, 1\), got 1"),
        ({"next": lambda s, t, e, step: e[2]}, r"srcEdges: expected an index in \[0, 2\), got 2"),
        ({"next": lambda s, t, e, step: randInt(3, 1)}, "randInt: expected high >= 3, got 1"),
    ):
        with pytest.raises((TypeError, ValueError, IndexError), match=text):
            sample(Wrong(0, **functions))
    with pytest.raises(TypeError, match=r"numpy.where, or where=.*batched=False"):
        sample(PPRByIf(), (0, 1), batched=True)
    with pytest.raises(RuntimeError, match="randFloat: expected a call from next"):
        randFloat()
    with pytest.raises(ValueError, match="max_steps: expected"):
        NextDoor(PPR(), max_steps=0)
    for roots, error, text in (
        ([5], IndexError, r"seeds\[0\]: expected an id in \[0, 5\), got 5"),
        ([[0, 1], [-1, 2]], IndexError, r"seeds\[1, 0\]: expected .*-1 behind all ids"),
        ([0.5], TypeError, "seeds: expected integers of shape"),
        ([[[0]]], TypeError, "seeds: expected integers of shape"),
    ):
        with pytest.raises(error, match=text):
            NextDoor(PPR()).sample(tree(), roots)
    with pytest.raises(NotImplementedError, match="exclude"):
        NextDoor(PPR()).sample(tree(), [0], exclude=[1])
    with pytest.raises(KeyError):
        NextDoor(Node2vec(2), prob="missing").sample(tree(), [0])
