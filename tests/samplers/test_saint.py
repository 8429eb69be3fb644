"""GraphSAINT's samplers against their exact laws, on small graphs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sampler_laws import (
    BATCHES,
    BOTH,
    DEGREES,
    EDGES,
    LOOPS,
    batches,
    bound,
    edges_of,
    of,
    plausible,
    worked,
)

import pygsampler as pgs
from pygsampler import samplers

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def plain() -> pgs.Graph:
    return of(BOTH)


def test_saint_norms_are_exact(plain: pgs.Graph) -> None:
    sampler = samplers.saint_node(budget=2, seed=11)
    joint = [0.08, 0.12, 0.12, 0.12, 0.04]
    chance = [0.36, 0.36, 0.51, 0.36, 0.19]
    worked(batches(sampler, plain, []), chance, dict(zip(EDGES, joint, strict=True)))


def test_loops_are_there_with_their_vertices() -> None:
    """Loops count as edges of their vertices; beside these they are never missed."""
    sampler = samplers.saint_node(budget=2, seed=11)
    q = (DEGREES + 1) / (DEGREES + 1).sum()
    chance = 1 - (1 - q) ** 2
    joint = {(u, v): chance[u] + chance[v] - 1 + (1 - q[u] - q[v]) ** 2 for u, v in EDGES}
    worked(batches(sampler, of(LOOPS), []), list(chance), joint)


def test_saint_draws_by_what_is_asked_for() -> None:
    # 0 has two out-edges, 1 one, of weights 1 and 2, and 3; 2 and 3 the in-edges.
    graph = pgs.Graph.from_coo(
        np.array([0, 0, 1]), np.array([2, 3, 3]), edge_data={"w": np.array([1.0, 2.0, 3.0])}
    )
    laws: dict[Any, list[float]] = {
        "out_degree": [2 / 5, 1 / 5, 1 / 5, 1 / 5],
        "in_degree": [0, 0, 1 / 3, 2 / 3],
        "weights": [5 / 14, 9 / 14, 0, 0],
    }
    for by, law in laws.items():
        sampler = samplers.saint_node(budget=1, by=by, weight="w", seed=4)
        met = Counter(int(made.nodes[0]) for made in batches(sampler, graph, []))
        plausible(met, dict(enumerate(law)))
    with pytest.raises(ValueError, match="by: expected 'out_degree'"):
        samplers.saint_node(budget=1, by="x")  # type: ignore[arg-type]


def test_saint_edges_by_themselves(plain: pgs.Graph) -> None:
    sampler = samplers.saint_edge(budget=2, method="independent", seed=5)
    chance = [0.6, 0.6, 19 / 27, 11 / 15, 0.6]
    joint = dict(zip(EDGES, [7 / 15, 13 / 27, 13 / 27, 5 / 9, 3 / 5], strict=True))
    worked(batches(sampler, plain, []), chance, joint)


def test_saint_edges_that_are_sure(plain: pgs.Graph) -> None:
    """4 (1 / 2 + 1) / 5 is above 1: the edge 3-4 is there always."""
    sampler = samplers.saint_edge(budget=4, method="independent", seed=5)
    share = dict(zip(EDGES, [0.8, 2 / 3, 2 / 3, 2 / 3, 1.0], strict=True))
    chance, joint = exact(
        lambda there: math.prod(share[e] if e in there else 1 - share[e] for e in EDGES)
    )
    worked(batches(sampler, plain, []), chance, joint)


@pytest.mark.parametrize("loops", [False, True])
def test_saint_draws_of_edges(loops: bool) -> None:
    graph = of(LOOPS if loops else BOTH)
    sampler = samplers.saint_edge(budget=2, seed=6)
    d = DEGREES + loops
    share = {(u, v): (1 / d[u] + 1 / d[v]) / 5 for u, v in EDGES}
    if loops:
        share |= {(v, v): 1 / d[v] / 5 for v in range(5)}
    pairs = {(a, b): share[a] * share[b] for a in share for b in share}
    assert sum(pairs.values()) == pytest.approx(1)
    met = {c: {v for e in c for v in e} for c in pairs}
    chance = [sum(p for c, p in pairs.items() if v in met[c]) for v in range(5)]
    joint = {(u, v): sum(p for c, p in pairs.items() if {u, v} <= met[c]) for u, v in EDGES}
    worked(batches(sampler, graph, []), chance, joint)


def exact(law: Any) -> tuple[list[float], dict[tuple[int, int], float]]:
    """The chances of vertices, and of both ends of edges, of a law of sets of edges."""
    sets = [set(c) for n in range(6) for c in itertools.combinations(EDGES, n)]
    met = [({v for e in c for v in e}, law(c)) for c in sets]
    chance = [sum(p for there, p in met if v in there) for v in range(5)]
    return chance, {(u, v): sum(p for c, p in met if {u, v} <= c) for u, v in EDGES}


def test_saint_walks(plain: pgs.Graph) -> None:
    sampler = samplers.saint_walk(roots=1, length=1, seed=7)
    met, pairs = Counter[int](), Counter[tuple[int, int]]()
    for made in batches(sampler, plain, []):
        met.update(made.nodes.tolist())
        pairs.update((u, v) for u, v, _ in edges_of(made) if u < v)
    chance = [11 / 30, 11 / 30, 1 / 2, 7 / 15, 3 / 10]
    joint = dict(zip(EDGES, [1 / 5, 1 / 6, 1 / 6, 1 / 6, 3 / 10], strict=True))
    for v, p in enumerate(chance):
        assert abs(met[v] - p * BATCHES) <= bound(p)
    for e, p in joint.items():
        assert abs(pairs[e] - p * BATCHES) <= bound(p)


def test_walks_are_those_of_random_walk() -> None:
    """With dead ends, at which walks stay here and end there."""
    rng = np.random.default_rng(3)
    graph = pgs.Graph.from_coo(rng.integers(0, 40, 60), rng.integers(0, 40, 60), num_nodes=41)

    @pgs.program
    def walked(A: Any, seeds: Any, *, length: int) -> Any:
        return {"at": A.walk(seeds, length)}

    seeds = np.array([40, 3, 3, 0, *range(40)])
    ours = walked(length=6, seed=9).sample(graph, seeds).numpy().extra["at"].reshape(7, -1).T
    walks = pgs.RandomWalk(6, direction="in", seed=9).sample(graph, seeds).numpy()
    for got, want, length in zip(ours, walks.nodes, walks.lengths, strict=True):
        assert (got[: length + 1] == want[: length + 1]).all()
        assert (got[length:] == got[length]).all()
    assert 0 == walks.lengths.min() < walks.lengths.max() == 6


def test_norms_that_are_counted(plain: pgs.Graph) -> None:
    """Beside those that are known, and for an edge and a vertex that are never met."""
    sampler = samplers.saint_node(budget=2, by="in_degree", seed=2)
    src, dst = np.array([*BOTH, (5, 0), (5, 5)]).T
    graph = pgs.Graph.from_coo(src[:-1].copy(), dst[:-1].copy(), num_nodes=6)
    norms = samplers.saint_norms(graph, sampler, 2000)
    q = np.array([3, 2, 3, 2, 1, 0]) / 11
    chance = 1 - (1 - q) ** 2
    assert norms.node[:5] == pytest.approx(chance[:5], rel=0.1)
    assert 0 < norms.node[5] < 1e-4
    for e, (u, v) in enumerate(BOTH):
        both = chance[u] + chance[v] - 1 + (1 - q[u] - q[v]) ** 2
        assert norms.edge[e] == pytest.approx(both / chance[v], rel=0.1)
    assert norms.edge[len(BOTH)] == 10
    with pytest.raises(TypeError, match="sampler: expected one of subgraphs"):
        samplers.saint_norms(graph, samplers.graphsage(fanouts=[2]))
    with pytest.raises(ValueError, match="got empty ones"):
        samplers.saint_norms(graph, samplers.shadow(fanouts=[2]))
