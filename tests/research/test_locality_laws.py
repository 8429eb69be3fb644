"""Samplers by locality against their exact laws, on small graphs, and against the reference."""

from __future__ import annotations

import math
import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
from program_graphs import graphs, larger
from program_parity import check_algorithm
from sampler_laws import (
    BATCHES,
    BOTH,
    DEGREES,
    EDGES,
    LOOPS,
    batches,
    check_fanouts_are_refused,
    check_weights_of_all_edges,
    edges_of,
    near,
    of,
    plausible,
    worked,
)

import pygsampler as pgs
from pygsampler import research, samplers

pytestmark = pytest.mark.once

SAMPLERS = {
    "locality_saint": research.locality_saint(budget=4, score="u", beta=3),
    "locality_importance": research.locality_importance(nodes=[4, 3], score="u", beta=3, by="hop"),
    "locality_layers": research.locality_layers(nodes=[4, 3]),
}


@pytest.fixture(scope="module")
def plain() -> pgs.Graph:
    return of(BOTH)


@pytest.fixture(scope="module")
def normalized() -> pgs.Graph:
    return of(LOOPS, edge_data={"w": 1 / (DEGREES[[v for _, v in LOOPS]] + 1)})


@pytest.fixture(scope="module")
def weighted() -> pgs.Graph:
    draw = np.random.default_rng(0)
    node_data = {"locality": draw.random(5) + 0.5}
    return of(BOTH, edge_data={"w": draw.random(len(BOTH))}, node_data=node_data)


@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers_equal_the_reference(name: str) -> None:
    check_algorithm(SAMPLERS[name], {**graphs(), "larger": larger()}, random.Random(name))


@pytest.mark.parametrize(
    ("by", "seeds", "q"),
    [
        ("graph", [4], {3: 61, 4: 52}),
        ("hop", [0, 3], {0: 1, 1: 1, 2: 2, 3: 1, 4: 1}),
    ],
)
def test_locality_of_layers(
    normalized: pgs.Graph, by: str, seeds: list[int], q: dict[int, float]
) -> None:
    """Rows by q (1 + 2 L); sums are those over all edges in the mean."""
    scores, x = np.array([0, 0.5, 0, 0.25, 1]), np.array([3, 1, 4, 1, 5])
    graph = normalized.with_data(node_data={"locality": scores})
    p = {u: value * (1 + 2 * scores[u]) for u, value in q.items()}
    law = {u: value / sum(p.values()) for u, value in p.items()}
    sampler = research.locality_importance(nodes=[3], beta=3, by=by, weight="w", seed=4)
    w = {
        (u, v): value for u, v, value in edges_of(pgs.PGSampler([-1]).sample(graph, seeds).numpy())
    }
    weights = {v: 1 / sum(to == v for _, to in w) for v in seeds}
    drawn, sums = Counter[int](), []
    for batch in batches(sampler, graph, seeds):
        edges = edges_of(batch.blocks[0])
        sums.append(sum(value * x[u] for u, v, value in edges if v == seeds[0]))
        times = {u: round(value / weights[v] * 3 * law[u]) for u, v, value in edges}
        drawn.update(times)
    near(sums, weights[seeds[0]] * sum(x[u] for u, v in w if v == seeds[0]))
    assert sum(drawn.values()) == 3 * BATCHES
    plausible(drawn, law)


def test_locality_of_layers_without_it(normalized: pgs.Graph) -> None:
    graph = normalized.with_data(node_data={"locality": np.arange(5) / 4})
    for by, plain in (
        ("graph", samplers.fastgcn(nodes=[2, 3], weight="w", seed=4)),
        ("hop", samplers.ladies(nodes=[2, 3], method="iid", normalize=False, weight="w", seed=4)),
    ):
        ours = research.locality_importance(nodes=[2, 3], beta=1, by=by, weight="w", seed=4)
        for one, other in zip(*(batches(s, graph, [0, 3], 50) for s in (ours, plain)), strict=True):
            for mine, theirs in zip(one.blocks, other.blocks, strict=True):
                assert edges_of(mine) == edges_of(theirs)
    marked = research.locality_importance(nodes=[2], hard=True, weight="w", seed=4)
    assert 0 not in {u for b in batches(marked, graph, [0, 3], 50) for u, *_ in edges_of(b)}
    with pytest.raises(ValueError, match="by: expected 'graph' or 'hop', got 'all'"):
        research.locality_importance(nodes=[2], by="all")
    with pytest.raises(ValueError, match="beta: expected a number >= 1, got 0"):
        research.locality_importance(nodes=[2], beta=0)


@pytest.mark.parametrize("reuse", [0, 0.25, 1])
def test_locality_layers_draw_by_degree_and_some_rows_twice(
    normalized: pgs.Graph, reuse: float
) -> None:
    """Pairs of rows of two hops, one draw each, have their exact law, and sums are unbiased."""
    degrees = {0: 3, 1: 3, 2: 4, 3: 3, 4: 2}
    senders = {v: {u for u, to in LOOPS if to == v} for v in degrees}
    x = np.array([3, 1, 4, 1, 5])
    law: dict[tuple[int, int], float] = Counter()
    for upper in senders[4]:
        first = degrees[upper] / sum(degrees[u] for u in senders[4])
        candidates = senders[4] | senders[upper]
        for chance, times in ((1 - reuse, 1), (reuse, 2)):
            p = {u: degrees[u] * (times if u == upper else 1) for u in candidates}
            for u, each in p.items():
                law[upper, u] += first * chance * each / sum(p.values())
    law = {pair: p for pair, p in law.items() if p}
    sampler = research.locality_layers(nodes=[1, 1], reuse=reuse, weight="w", seed=6)
    drawn, sums = Counter[tuple[int, int]](), []
    for batch in batches(sampler, normalized, [4]):
        outer, inner = (edges_of(block) for block in batch.blocks)
        ((upper, *_),) = inner
        (row,) = {u for u, *_ in outer}
        drawn[upper, row] += 1
        sums.append(sum(value * x[u] for u, v, value in outer if v == 4))
    plausible(drawn, law)
    near(sums, (x[3] + x[4]) / 2)


def test_locality_layers_of_all_rows_and_of_wrong_shares(normalized: pgs.Graph) -> None:
    every = research.locality_layers(nodes=[-1, -1], weight="w", seed=6)
    plain = samplers.fastgcn(nodes=[-1, -1], weight="w", seed=6)
    for one, other in zip(
        *(batches(s, normalized, [0, 3], 3) for s in (every, plain)), strict=True
    ):
        for mine, theirs in zip(one.blocks, other.blocks, strict=True):
            assert edges_of(mine) == edges_of(theirs)
    for reuse in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="reuse: expected a number from 0 to 1, got"):
            research.locality_layers(nodes=[2], reuse=reuse)
    with pytest.raises(TypeError, match="reuse: expected a number, got bool True"):
        research.locality_layers(nodes=[2], reuse=True)


def test_locality_draws_by_marks() -> None:
    graph = pgs.Graph.from_coo(np.array([1, 2, 3]), np.zeros(3, int), num_nodes=4)
    graph = graph.with_data(node_data={"locality": np.array([0, 1, 0, 0])})
    sampler = research.locality(fanouts=[1], beta=3.0, seed=10)
    found = Counter(edges_of(b.blocks[0])[0][0] for b in batches(sampler, graph, [0]))
    plausible(found, {1: 3 / 5, 2: 1 / 5, 3: 1 / 5})
    with pytest.raises(ValueError, match=r"beta: expected a number >= 1, got 0\.5"):
        research.locality(fanouts=[1], beta=0.5)


def test_norms_of_vertices_drawn_by_locality(plain: pgs.Graph) -> None:
    graph = plain.with_data(node_data={"locality": np.array([0, 1, 0.5, 0, 0])})
    q = np.array([1, 3, 2, 1, 1]) / 8
    chance = 1 - (1 - q) ** 2
    joint = {(u, v): 2 * q[u] * q[v] for u, v in EDGES}
    sampler = research.locality_saint(budget=2, beta=3.0, seed=11)
    worked(batches(sampler, graph, []), list(chance), joint)
    with pytest.raises(ValueError, match=r"beta: expected a number >= 1, got 0\.5"):
        research.locality_saint(budget=2, beta=0.5)


def test_without_marked_nodes_draws_are_uniform(weighted: pgs.Graph) -> None:
    """Draws without any mark are uniform, and the call that computes the marks warns."""
    with pytest.warns(UserWarning, match="locality_scores: no node is marked"):
        marks = research.locality_scores(weighted, threshold=2.0)
    unmarked = weighted.with_data(node_data={"locality": marks})
    ones = weighted.with_data(node_data={"locality": np.ones(5)})
    for make in (
        lambda: research.locality(fanouts=[1], hard=True, seed=3),
        lambda: research.locality_saint(budget=2, hard=True, seed=3),
        lambda: research.locality_importance(nodes=[2], hard=True, seed=3),
    ):
        for batch in range(5):
            found, same = (
                make().sample(each, [0, 2], epoch=0, batch=batch) for each in (unmarked, ones)
            )
            assert found.num_edges == same.num_edges
            name = "nodes" if hasattr(found, "nodes") else "input_nodes"
            assert getattr(found, name).tolist() == getattr(same, name).tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert research.locality_scores(weighted, min_neighbors=2, threshold=0.0).any()


@pytest.mark.parametrize(
    "sampler",
    [
        research.locality_importance(nodes=[-1], weight="w", seed=1),
        research.locality_importance(nodes=[-1], by="hop", weight="w", seed=1),
        research.locality_layers(nodes=[-1], weight="w", seed=1),
    ],
)
def test_all_rows_have_the_weights_of_their_edges(weighted: pgs.Graph, sampler: Any) -> None:
    check_weights_of_all_edges(sampler, weighted)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: research.locality_saint(budget=-1),
            ValueError,
            "budget: expected an integer from 0",
        ),
        (lambda: research.locality(fanouts=[2], hard=2), TypeError, "hard: expected True or False"),
        (
            lambda: research.locality(fanouts=[2], beta="3"),
            TypeError,
            "beta: expected a number, got str '3'",
        ),
        (lambda: research.locality_scores(None), TypeError, "graph: expected a pygsampler.Graph"),
        (
            lambda: research.locality_importance(nodes=5),
            TypeError,
            r"nodes: expected a list of int, .* got int 5",
        ),
        (
            lambda: research.locality_layers(nodes=5),
            TypeError,
            r"nodes: expected a list of int, .* got int 5",
        ),
    ],
)
def test_wrong_arguments_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_wrong_fanouts_are_refused() -> None:
    check_fanouts_are_refused(research.locality)
