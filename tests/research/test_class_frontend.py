"""Programs as classes: in NextDoor's form and in GNNSampler's, each as the function by hand."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import research


@pgs.program
class KHop:
    """GraphSAGE's sampler, as in NextDoor's Figure 4d."""

    sampling_type = "individual"

    def __init__(self, fanouts: list[int], distinct: bool = False) -> None:
        self.fanouts, self.distinct = fanouts, distinct

    def steps(self) -> int:
        return len(self.fanouts)

    def sample_size(self, step: int) -> int:
        return self.fanouts[step]

    def unique(self, step: int) -> bool:
        return self.distinct

    def next(self, A: Any, transits: Any, C: Any, step: int) -> Any:
        return None


@pgs.program
class Layer:
    """LADIES' rows, with other weights from the second step on."""

    steps = 2
    sampling_type = "collective"

    def sample_size(self, step: int) -> int:
        return (3, 2)[step]

    def unique(self, step: int) -> bool:
        return True

    def next(self, A: Any, transits: Any, C: Any, step: int) -> Any:
        return (C * C).sum(axis=1) if step == 0 else None

    def step_transits(self, A: Any, sampled: Any, transits: Any, step: int) -> Any:
        return transits | sampled.row()


@pgs.program
class Local:
    """GNNSampler's: a bias that is made once, and hops by it."""

    def __init__(self, fanouts: list[int], beta: float) -> None:
        self.fanouts, self.beta = fanouts, beta
        self.hops = len(fanouts)

    def init(self, A: Any, seeds: Any) -> Any:
        return A.ndata["locality"] * (self.beta - 1) + 1, seeds

    def execute(self, A: Any, state: Any, hop: int) -> Any:
        bias, seeds = state
        C = A[:, seeds]
        B = C.individual_sample(self.fanouts[-1 - hop], C.spread(bias, axis=1))
        return B, (bias, seeds | B.row())


@pgs.program
class Named:
    """A hop whose edges have several values."""

    hops = 1

    def init(self, A: Any, seeds: Any) -> Any:
        return seeds

    def execute(self, A: Any, seeds: Any, hop: int) -> Any:
        B = A[:, seeds].individual_sample(2)
        return {"w": B, "half": B / 2}, seeds | B.row()


@pgs.program
class Around:
    """A subgraph, which blocks are no part of."""

    hops = 2

    def init(self, A: Any, seeds: Any) -> Any:
        return seeds.unique()

    def execute(self, A: Any, V: Any, hop: int) -> Any:
        return None, V | A[:, V].individual_sample(2).row()

    def result(self, A: Any, V: Any, blocks: Any) -> Any:
        assert blocks == []
        return A.induce(V)


@pgs.program
def k_hop(A: Any, seeds: Any, *, fanouts: list[int], distinct: bool) -> Any:
    blocks: list[Any] = []
    for K in fanouts:
        B = A[:, seeds].individual_sample(K, replace=not distinct)
        blocks.insert(0, B)
        seeds = B.row()
    return blocks


@pgs.program
def layer(A: Any, seeds: Any) -> Any:
    C = A[:, seeds]
    B0 = C.collective_sample(3, (C * C).sum(axis=1))
    seeds = seeds | B0.row()
    B1 = A[:, seeds].collective_sample(2)
    seeds = seeds | B1.row()
    return [B1, B0]


@pgs.program
def around(A: Any, seeds: Any) -> Any:
    V = seeds.unique()
    for _ in range(2):
        V = V | A[:, V].individual_sample(2).row()
    return A.induce(V)


def test_nextdoors_form_is_the_function_by_hand() -> None:
    for distinct in (False, True):
        made = KHop(fanouts=[4, 3], distinct=distinct, seed=1)
        assert made.code == k_hop(fanouts=[4, 3], distinct=distinct, seed=1).code
    assert Layer(weight="w", seed=0).code == layer(weight="w", seed=0).code
    assert repr(made) == "KHop(fanouts=[4, 3], distinct=True, seed=1)"
    assert repr(KHop).startswith("<program KHop(")
    assert pickle.loads(pickle.dumps(made)).code == made.code
    assert pickle.loads(pickle.dumps(KHop)) is KHop


def test_gnnsamplers_form_is_the_function_by_hand() -> None:
    by_class = Local(fanouts=[5, 4], beta=3.0, seed=1)
    assert by_class.code.split("\n")[-1].startswith("return blocks")
    written = research.locality(fanouts=[5, 4], beta=3.0, seed=1)
    assert sorted(_operators(by_class)) == sorted(_operators(written))
    block = Named(seed=0).sample(graph_t(), [2, 0]).blocks[0]
    assert set(block.edge_data) == {"half"} and set(block.edge_data["half"].tolist()) == {0.5}
    made = Around(seed=0)
    assert (made.code, made.result_kind) == (around(seed=0).code, "subgraph")


def _operators(sampler: pgs.Program) -> list[str]:
    return [line.split(" ")[2] for line in sampler.code.split("\n")[:-1]]


def graph_t() -> pgs.Graph:
    """0-1, 0-2, 1-2, 2-3, 3-4, both ways."""
    pairs = np.array([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4]])
    src, dst = np.concatenate([pairs, pairs[:, ::-1]]).T
    return pgs.Graph.from_coo(src.copy(), dst.copy(), num_nodes=5)


def test_draws_of_a_transit_are_independent() -> None:
    """From 2, K = 2: each of the 9 ordered pairs has 1/9."""
    graph, sampler = graph_t(), KHop(fanouts=[2], seed=3)
    rounds = 4500
    found = Counter(
        tuple(block.src_nodes[block.indices].tolist())
        for block in (
            sampler.sample(graph, [2], epoch=0, batch=i).numpy().blocks[0] for i in range(rounds)
        )
    )
    cells = list(itertools.product((0, 1, 3), repeat=2))
    assert set(found) <= set(cells)
    statistic = sum((found[c] - rounds / 9) ** 2 / (rounds / 9) for c in cells)
    assert abs(statistic - 8) < 5 * 4


def test_unique_steps_are_unique() -> None:
    """Distinct edges of each transit: as many as there are, and each once; rows likewise."""
    graph = graph_t()
    made = KHop(fanouts=[3, 2], distinct=True, seed=1)
    for i in range(20):
        batch = made.sample(graph, [2, 0], epoch=0, batch=i).numpy()
        for block in batch.blocks:
            for first, last in itertools.pairwise(block.indptr.tolist()):
                drawn = block.indices[first:last].tolist()
                assert len(set(drawn)) == len(drawn)
        assert np.diff(batch.blocks[-1].indptr).tolist() == [3, 2]
        rows = Layer(seed=1).sample(graph, [0, 2, 4], epoch=0, batch=i).numpy().blocks
        assert len(set(rows[-1].indices.tolist())) == 3


def test_vertices_of_each_step() -> None:
    graph = graph_t()
    by_step = KHop(fanouts=[2, 2], output="steps", seed=5)
    blocks = KHop(fanouts=[2, 2], seed=5)
    for i in range(20):
        extra = by_step.sample(graph, [2], epoch=0, batch=i).numpy().extra
        outer, inner = blocks.sample(graph, [2], epoch=0, batch=i).numpy().blocks
        assert set(extra) == {"step_0", "step_1"}
        for name, block in (("step_0", inner), ("step_1", outer)):
            met = list(dict.fromkeys(block.src_nodes[block.indices].tolist()))
            assert extra[name].tolist() == met


def _class(**members: Any) -> type:
    base = {
        "steps": 1,
        "sampling_type": "individual",
        "sample_size": lambda self, step: 2,
        "next": lambda self, A, transits, C, step: None,
    }
    return type("Mine", (), {k: v for k, v in {**base, **members}.items() if v is not None})


def test_mistakes_of_a_class() -> None:
    """They say what was expected, what was got, and where."""
    with pytest.raises(TypeError, match=r"Mine.*: expected a method next .* got neither"):
        pgs.program(_class(next=None))
    with pytest.raises(TypeError, match=r"Mine.*sample_size\(self, step\), got none"):
        pgs.program(_class(sample_size=None))
    with pytest.raises(TypeError, match=r"sampleSize: expected it to be called sample_size"):
        pgs.program(_class(sample_size=None, sampleSize=lambda self, step: 2))
    with pytest.raises(
        TypeError, match=r"test_class_frontend.py:\d+: next: .*transits, C, step\), got nex"
    ):
        pgs.program(_class(next=lambda self, s, transits: None))
    with pytest.raises(TypeError, match=r"execute\(self, A, state, hop\), got none"):
        pgs.program(type("Mine", (), {"init": lambda self, A, seeds: seeds}))
    for members, message in (
        ({"steps": None}, r"expected steps, an attribute or a method, got none"),
        ({"steps": 0}, r"steps: expected an integer >= 1, got 0"),
        ({"sampling_type": "single"}, r"expected 'individual' or 'collective', got 'single'"),
        ({"sample_size": lambda self, step: 1.5}, r"py:\d+: sample_size: expected an integer"),
        ({"sample_size": lambda self, step: -2}, r"sample_size: expected an integer >= -1, got -2"),
        ({"unique": lambda self, step: None}, r"unique: expected True or False, got None"),
        (
            {"next": lambda self, A, transits, C, step: C.sum(axis=1)},
            r"py:\d+: next: expected a matrix of C's edges, or None .*individual",
        ),
        (
            {"step_transits": lambda self, A, sampled, transits, step: sampled},
            r"step_transits: expected a list of nodes",
        ),
    ):
        with pytest.raises(TypeError, match=message):
            pgs.program(_class(**members))(seed=0)
    with pytest.raises(TypeError, match=r"execute: expected a matrix \(or None\) and the state"):
        odd = {"hops": 1, "init": lambda self, A, seeds: seeds}
        odd["execute"] = lambda self, A, state, hop: A[:, state]
        pgs.program(type("Mine", (), odd))(seed=0)
    odd["execute"] = lambda self, A, state, hop: (3, state)
    with pytest.raises(TypeError, match=r"execute: expected a matrix, values by name or None, got"):
        pgs.program(type("Mine", (), odd))(seed=0)
    with pytest.raises(ValueError, match=r"output: expected 'blocks' or 'steps', got 'walks'"):
        KHop(fanouts=[1], output="walks")
    with pytest.raises(TypeError, match=r"KHop: widths: expected one of fanouts, distinct, output"):
        KHop(widths=[1])
