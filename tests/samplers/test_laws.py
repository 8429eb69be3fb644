"""The algorithms of ``pygsampler.samplers`` against their exact laws, on small graphs."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from sampler_laws import (
    BATCHES,
    BOTH,
    DEGREES,
    LOOPS,
    batches,
    check_fanouts_are_refused,
    edges_of,
    near,
    of,
    plausible,
)

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.samplers import layer_wise

pytestmark = pytest.mark.once


@pytest.fixture(scope="module")
def plain() -> pgs.Graph:
    return of(BOTH)


@pytest.fixture(scope="module")
def normalized() -> pgs.Graph:
    return of(LOOPS, edge_data={"w": 1 / (DEGREES[[v for _, v in LOOPS]] + 1)})


# ---- layer-wise ------------------------------------------------------------------------------


def successive(weights: Mapping[int, float], k: int) -> dict[frozenset[int], float]:
    """The law of k distinct ones, drawn one after another by weight."""
    law: dict[frozenset[int], float] = Counter()
    for order in itertools.permutations(weights, k):
        p, left = 1.0, sum(weights.values())
        for v in order:
            p, left = p * weights[v] / left, left - weights[v]
        law[frozenset(order)] += p
    return law


def test_ladies_draws_rows_by_their_squares(normalized: pgs.Graph) -> None:
    """Of the frontier's edges alone, each set as successive sampling has it."""
    sampler = samplers.ladies(nodes=[2], normalize=False, weight="w", seed=1)
    p = {0: 1 / 9, 2: 2 / 9, 1: 1 / 9, 3: 1 / 9, 4: 1 / 9}
    found: Counter[frozenset[int]] = Counter()
    for batch in batches(sampler, normalized, [0, 3]):
        edges = edges_of(batch.blocks[0])
        found[frozenset(u for u, _, _ in edges)] += 1
        for u, _, value in edges:
            assert value == pytest.approx(1 / 3 / p[u])
    plausible(found, successive(p, 2))


def test_iid_ladies_is_unbiased(normalized: pgs.Graph) -> None:
    sampler = samplers.ladies(nodes=[2], method="iid", normalize=False, weight="w", seed=2)
    x = np.arange(1, 6)
    sums: dict[int, list[float]] = {0: [], 3: []}
    for batch in batches(sampler, normalized, [0, 3]):
        got = Counter({0: 0.0, 3: 0.0})
        for u, v, value in edges_of(batch.blocks[0]):
            got[v] += value * x[u]
        for v, value in got.items():
            sums[v].append(value)
    near(sums[0], 2)
    near(sums[3], 4)


def test_poisson_ladies_is_unbiased(normalized: pgs.Graph) -> None:
    """Each row by itself, by (1, 1, 2, 1, 1) / 3."""
    sampler = samplers.ladies(nodes=[2], method="poisson", normalize=False, weight="w", seed=2)
    x, law = np.arange(1, 6), np.array([1, 1, 2, 1, 1]) / 3
    sums: dict[int, list[float]] = {0: [], 3: []}
    rows = []
    for batch in batches(sampler, normalized, [0, 3]):
        got = Counter({0: 0.0, 3: 0.0})
        edges = edges_of(batch.blocks[0])
        for u, v, value in edges:
            got[v] += value * x[u]
            assert value == pytest.approx(1 / 3 / law[u])
        rows.append([float(u in {u for u, _, _ in edges}) for u in range(5)])
        for v, value in got.items():
            sums[v].append(value)
    near(sums[0], 2)
    near(sums[3], 4)
    for u, drawn in enumerate(np.array(rows).T):
        near(drawn, law[u])
    # Rows of two destinations stay for both: 2 is one of both.
    assert abs(np.corrcoef(np.array(rows).T)[0, 4]) < 0.06


def test_conditioned_ladies_is_unbiased(normalized: pgs.Graph) -> None:
    """Sets and numbers of rows are those of the race, and sums by the weights are right."""
    sampler = samplers.ladies(nodes=[2], method="conditioned", normalize=False, weight="w", seed=2)
    race = samplers.ladies(nodes=[2], normalize=False, weight="w", seed=2)
    x = np.arange(1, 6)
    sums: dict[int, list[float]] = {0: [], 3: []}
    size = []
    made = zip(batches(sampler, normalized, [0, 3]), batches(race, normalized, [0, 3]), strict=True)
    for batch, other in made:
        assert batch.blocks[0].edge_ids.tolist() == other.blocks[0].edge_ids.tolist()
        got, edges = Counter({0: 0.0, 3: 0.0}), edges_of(batch.blocks[0])
        for u, v, value in edges:
            got[v] += value * x[u]
        for v, value in got.items():
            sums[v].append(value)
        # By the chance of a row, the number of rows.
        size.append(sum({u: 3 * value for u, _, value in edges}.values()))
    near(sums[0], 2)
    near(sums[3], 4)
    near(size, 5)
    # All rows: each is certain.
    every = samplers.ladies(nodes=[9], method="conditioned", normalize=False, weight="w", seed=2)
    (batch,) = batches(every, normalized, [0, 3], 1)
    assert all(value == pytest.approx(1 / 3) for _, _, value in edges_of(batch.blocks[0]))


def test_normalized_ladies_keeps_the_sums_of_columns(normalized: pgs.Graph) -> None:
    sampler = samplers.ladies(nodes=[3, 2], weight="w", seed=3)
    for batch in batches(sampler, normalized, [0, 3], 50):
        for block in batch.blocks:
            sums = Counter[int]()
            for _, v, value in edges_of(block):
                sums[v] += value
            assert all(value == pytest.approx(1) for value in sums.values())


@pytest.mark.parametrize("method", ["race", "iid", "poisson", "conditioned"])
def test_normalized_ladies_of_edges_without_weight(method: str) -> None:
    """A row that others brought leads to a vertex by weights of 0: these stay 0, and no 0 / 0."""
    weights = {(0, 1): 1.0, (2, 1): 1.0, (0, 3): 0.0, (2, 3): 0.0, (0, 4): 0.0, (2, 4): 3.0}
    graph = of(list(weights), edge_data={"w": np.array(list(weights.values()))})
    sampler = samplers.ladies(nodes=[1], method=method, weight="w", seed=3)
    met = set()
    for batch in batches(sampler, graph, [1, 3, 4], 100):
        edges = edges_of(batch.blocks[0])
        met |= {(u, v) for u, v, _ in edges}
        for v in {v for _, v, _ in edges}:
            drawn = {u: value for u, to, value in edges if to == v}
            assert all(value == 0 for u, value in drawn.items() if not weights[u, v])
            total = sum(w for (_, to), w in weights.items() if to == v)
            there = any(weights[u, v] for u in drawn)
            assert sum(drawn.values()) == pytest.approx(total if there else 0)
    assert met == set(weights)


def test_fastgcn_is_unbiased(normalized: pgs.Graph) -> None:
    """q is (41, 41, 57, 61, 52) / 252 of the whole graph, renormalised over the frontier's rows."""
    sampler = samplers.fastgcn(nodes=[3], weight="w", seed=4)
    x = np.array([3, 1, 4, 1, 5])
    q = np.array([41, 41, 57, 61, 52]) / 252
    sums, drawn = [], Counter[int]()
    for batch in batches(sampler, normalized, [4]):
        edges = edges_of(batch.blocks[0])
        sums.append(sum(value * x[u] for u, _, value in edges))
        for u, _, value in edges:
            drawn[u] += round(value * 2 * 3 * q[u] / q[[3, 4]].sum())
    near(sums, (x[3] + x[4]) / 2)
    assert sum(drawn.values()) == 3 * BATCHES
    plausible(drawn, {3: 61 / 113, 4: 52 / 113})


def test_asgcn_draws_by_scores(normalized: pgs.Graph) -> None:
    x = np.array([0, 1, -1, 2, 0], float)
    graph = normalized.with_data(node_data={"h_source": x, "h_target": x})
    law = dict(enumerate([0.0943, 0.2513, 0.0889, 0.4713, 0.0943]))
    total = sum(law.values())
    law = {v: p / total for v, p in law.items()}
    sampler = samplers.asgcn(nodes=[1], weight="w", seed=5)
    found: Counter[int] = Counter()
    sums = []
    for batch in batches(sampler, graph, [0, 3]):
        edges = edges_of(batch.blocks[0])
        (u,) = {u for u, _, _ in edges}
        found[u] += 1
        sums.append(sum(value for _, v, value in edges if v == 0))
    plausible(found, law)
    attention = np.maximum(x + x[0], 0) + 1
    near(sums, sum(attention[u] / 3 for u in (0, 1, 2)))


def labor_graph() -> pgs.Graph:
    """s1 = 0 has a = 2 and b = 3, s2 = 1 has b, c = 4, d = 5."""
    return pgs.Graph.from_coo(np.array([2, 3, 3, 4, 5]), np.array([0, 0, 1, 1, 1]), num_nodes=6)


def test_labor_shares_numbers_among_columns() -> None:
    sampler = layer_wise.labor(fanouts=[1], seed=6)
    single: Counter[tuple[int, int]] = Counter()
    both = vertices = 0
    for batch in batches(sampler, labor_graph(), [0, 1]):
        edges = {(u, v) for u, v, _ in edges_of(batch.blocks[0])}
        single.update(edges)
        both += {(3, 0), (3, 1)} <= edges
        vertices += len({u for u, _ in edges})
        assert all(
            value == pytest.approx(3 if v else 2) for _, v, value in edges_of(batch.blocks[0])
        )
    chances = {(2, 0): 1 / 2, (3, 0): 1 / 2, (3, 1): 1 / 3, (4, 1): 1 / 3, (5, 1): 1 / 3}
    for edge, p in chances.items():
        assert abs(single[edge] - p * BATCHES) < 4 * math.sqrt(p * (1 - p) * BATCHES)
    assert abs(both - BATCHES / 3) < 4 * math.sqrt(2 / 9 * BATCHES)
    assert abs(vertices / BATCHES - 5 / 3) < 0.05


def test_labor_by_importance_has_fewer_vertices() -> None:
    """LABOR-1: c = 1 and 8/9, 43/27 vertices in the mean, and each edge by one over its chance."""
    chances = {(2, 0): 1 / 2, (3, 0): 1 / 2, (3, 1): 4 / 9, (4, 1): 8 / 27, (5, 1): 8 / 27}
    sampler = layer_wise.labor(fanouts=[1], importance=1, seed=6)
    single, vertices = Counter[tuple[int, int]](), []
    for batch in batches(sampler, labor_graph(), [0, 1]):
        edges = edges_of(batch.blocks[0])
        vertices.append(len({u for u, _, _ in edges}))
        for u, v, value in edges:
            single[u, v] += 1
            assert value == pytest.approx(1 / chances[u, v])
    for edge, p in chances.items():
        assert abs(single[edge] - p * BATCHES) < 4 * math.sqrt(p * (1 - p) * BATCHES)
    near(vertices, 43 / 27)
    further = layer_wise.labor(fanouts=[1], importance=4, seed=6)
    found = [
        len(set(b.blocks[0].indices.tolist())) for b in batches(further, labor_graph(), [0, 1])
    ]
    assert np.mean(found) < 43 / 27


@pytest.mark.parametrize("options", [{}, {"importance": 2}])
def test_weighted_labor_is_unbiased(options: dict[str, int]) -> None:
    """Sums of w h over the column with the weights 1, 2, 3 and 0, and variance as uniform draws."""
    src, w = np.array([2, 3, 4, 5]), np.array([1.0, 2.0, 3.0, 0.0])
    graph = pgs.Graph.from_coo(src, np.zeros(4, np.int64), num_nodes=6, edge_data={"w": w * 1e-200})
    x = np.array([0, 0, 3, 1, 2, 9])
    sampler = layer_wise.labor(fanouts=[2], weight="w", seed=3, **options)
    sums, drawn, size = [], Counter[int](), []
    for batch in batches(sampler, graph.with_data(edge_data={"w": w}), [0]):
        edges = edges_of(batch.blocks[0])
        drawn.update(u for u, _, _ in edges)
        size.append(sum(value for _, _, value in edges))
        sums.append(sum(value * x[u] for u, _, value in edges))
    near(sums, float(w @ x[src]))
    near(size, float(w.sum()))
    # The variance of the sum of w / p, which c is chosen by.
    assert np.var(size) == pytest.approx(36 * (1 / 2 - 1 / 3), rel=0.1)
    assert drawn[5] == 0
    for u, p in ((2, 0.3), (3, 0.6), (4, 0.9)):
        assert abs(drawn[u] - p * BATCHES) < 4 * math.sqrt(p * (1 - p) * BATCHES)
    # No scale of the weights changes what stays.
    (small,) = batches(sampler, graph, [0], 1)
    (again,) = batches(sampler, graph.with_data(edge_data={"w": w}), [0], 1)
    assert small.blocks[0].edge_ids.tolist() == again.blocks[0].edge_ids.tolist()


def test_exact_labor() -> None:
    """Sequential Poisson: b's edges together by 1/4, and the shares of the weights 1, 2 and 3."""
    both = 0
    for batch in batches(layer_wise.labor(fanouts=[1], exact=True, seed=6), labor_graph(), [0, 1]):
        edges = {(u, v) for u, v, _ in edges_of(batch.blocks[0])}
        assert sorted(v for _, v in edges) == [0, 1]
        both += {(3, 0), (3, 1)} <= edges
    assert abs(both - BATCHES / 4) < 4 * math.sqrt(3 / 16 * BATCHES)
    # Vertex 1 has two edges that can be there, so all of them: each by its own weight.
    src, w = np.array([2, 3, 4, 5, 2, 3, 4]), np.array([1.0, 2.0, 3.0, 0.0, 4.0, 0.0, 5.0])
    dst = np.array([0, 0, 0, 0, 1, 1, 1])
    graph = pgs.Graph.from_coo(src, dst, num_nodes=6, edge_data={"w": w})
    x = np.array([0, 0, 3, 1, 2, 9])
    sums, drawn = [], Counter[int]()
    exact = layer_wise.labor(fanouts=[2], weight="w", exact=True, seed=3)
    for batch in batches(exact, graph, [0, 1]):
        edges = edges_of(batch.blocks[0])
        assert sorted((u, value) for u, v, value in edges if v == 1) == [(2, 4.0), (4, 5.0)]
        drawn.update(u for u, v, _ in edges if v == 0)
        sums.append(sum(value * x[u] for u, v, value in edges if v == 0))
    near(sums, float(w[:4] @ x[src[:4]]))
    assert sum(drawn.values()) == 2 * BATCHES
    assert drawn[5] == 0
    for u, p in ((2, 31 / 108), (3, 85 / 108), (4, 25 / 27)):
        assert abs(drawn[u] - p * BATCHES) < 4 * math.sqrt(p * (1 - p) * BATCHES)


def test_labor_with_numbers_that_change_gradually() -> None:
    """An edge of chance 1/2 is in two batches d of k apart with chance 1/2 - d/4k."""
    rows, k = 4000, 4
    graph = pgs.Graph.from_coo(np.arange(2 * rows), np.arange(2 * rows) // 2)
    seeds = np.arange(rows)

    def kept(sampler: Any, batch: int) -> Any:
        made = sampler.sample(graph, seeds, epoch=0, batch=batch)
        found = np.zeros(2 * rows, bool)
        found[made.blocks[0].edge_ids.numpy()] = True
        return found

    plain = layer_wise.labor(fanouts=[1], seed=6)
    gradual = layer_wise.labor(fanouts=[1], batch_dependency=k, seed=6)
    found = [kept(gradual, batch) for batch in range(2 * k + 1)]
    # A period begins with the numbers of a batch.
    for period in range(3):
        assert (found[k * period] == kept(plain, period)).all()

    def close(count: int, p: float) -> None:
        assert abs(count - 2 * rows * p) < 4 * math.sqrt(p * (1 - p) * 2 * rows)

    for i, one in enumerate(found):
        close(one.sum(), 1 / 2)
        for j in range(i + 1, 2 * k + 1):
            if j // k == i // k or (j % k == 0 and j // k == i // k + 1):
                angle = (j - i) / k * math.pi / 2
                rho = math.cos(angle)
            elif j // k == i // k + 1:
                # They have the numbers of where the later period begins in common.
                rho = math.sin(i % k / k * math.pi / 2) * math.cos(j % k / k * math.pi / 2)
            else:
                rho = 0
            close((one & found[j]).sum(), 1 / 4 + math.asin(rho) / (2 * math.pi))
    together = gradual.sample_many(graph, [seeds] * 6, epoch=0, batch=0)
    for made, one in zip(together, found, strict=False):
        assert sorted(made.blocks[0].edge_ids.tolist()) == np.flatnonzero(one).tolist()
    with pytest.raises(ValueError, match="batch_dependency: expected an integer"):
        layer_wise.labor(fanouts=[1], batch_dependency=0)


def test_labors_weights_scaled() -> None:
    src, w = np.array([2, 3, 4, 2, 5]), np.array([1.0, 2.0, 3.0, 4.0, 1.0])
    graph = pgs.Graph.from_coo(src, np.array([0, 0, 0, 1, 1]), num_nodes=6, edge_data={"w": w})
    for normalize, want in (("sum", {0: 6.0, 1: 5.0}), ("mean", None)):
        sampler = layer_wise.labor(fanouts=[2], weight="w", normalize=normalize, seed=3)
        for batch in batches(sampler, graph, [0, 1], 50):
            edges = edges_of(batch.blocks[0])
            for v in {v for _, v, _ in edges}:
                column = [value for _, to, value in edges if to == v]
                assert sum(column) == pytest.approx(want[v] if want else len(column))
    plain = layer_wise.labor(fanouts=[-1], weight="w", weights=False, seed=3)
    (batch,) = batches(plain, graph, [0, 1], 1)
    assert sorted(value for _, _, value in edges_of(batch.blocks[0])) == sorted(w)
    for wrong in (
        {"importance": -1},
        {"importance": 1.5},
        {"normalize": "max"},
        {"importance": 1, "exact": True},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            layer_wise.labor(fanouts=[2], **wrong)


# ---- node-wise -------------------------------------------------------------------------------


def test_graphsage_is_pgsampler(plain: pgs.Graph) -> None:
    ours = samplers.graphsage(fanouts=[2, 1], seed=7)
    theirs = pgs.PGSampler([2, 1], seed=7)
    for number in range(20):
        a = ours.sample(plain, [0, 2], epoch=0, batch=number).numpy()
        b = theirs.sample(plain, [0, 2], epoch=0, batch=number).numpy()
        for one, two in zip(a.blocks, b.blocks, strict=True):
            for name in ("src_nodes", "indptr", "indices", "edge_ids"):
                assert getattr(one, name).tolist() == getattr(two, name).tolist()


def test_kgcn_repeats_only_where_it_must() -> None:
    graph = pgs.Graph.from_coo(
        np.array([2, 3, 2, 3, 4, 5, 6]), np.array([0, 0, 1, 1, 1, 1, 1]), num_nodes=8
    )
    sampler = samplers.kgcn(fanouts=[4], seed=8)
    found: Counter[tuple[int, ...]] = Counter()
    for batch in batches(sampler, graph, [0, 1, 7]):
        edges = edges_of(batch.blocks[0])
        found[tuple(u for u, v, _ in edges if v == 0)] += 1
        ones = [u for u, v, _ in edges if v == 1]
        assert len(ones) == len(set(ones)) == 4
        assert not any(v == 7 for _, v, _ in edges)
    plausible(found, dict.fromkeys(itertools.product([2, 3], repeat=4), 1 / 16))


def test_vrgcn_weighs_what_is_there_for_all(plain: pgs.Graph) -> None:
    sampler = samplers.vrgcn(fanouts=[2], seed=9)
    x, sums = np.array([3, 1, 4, 1, 5]), []
    for batch in batches(sampler, plain, [2]):
        edges = edges_of(batch.blocks[0])
        assert len(edges) == 2
        sums.append(sum(value * x[u] for u, _, value in edges))
    near(sums, x[[0, 1, 3]].sum())


# ---- subgraphs -------------------------------------------------------------------------------


def test_shadow_has_all_edges_among_its_vertices(plain: pgs.Graph) -> None:
    sampler = samplers.shadow(fanouts=[1], seed=12)
    found: Counter[tuple[int, ...]] = Counter()
    for graph in batches(sampler, plain, [0]):
        found[tuple(sorted(graph.nodes.tolist()))] += 1
        inside = set(graph.nodes.tolist())
        assert {(u, v) for u, v, _ in edges_of(graph)} == {
            (u, v) for u, v in BOTH if {u, v} <= inside
        }
    plausible(found, {(0, 1): 0.5, (0, 2): 0.5})


def test_clusters_keep_the_edges_between_them(plain: pgs.Graph) -> None:
    made = samplers.cluster_gcn(seed=0).sample(plain, [0, 2, 3])
    assert isinstance(made, pgs.samplers.Subgraph)
    graph = made.numpy()
    assert {(u, v): round(w, 4) for u, v, w in edges_of(graph)} == {
        (2, 0): 0.5, (0, 2): 0.3333, (3, 2): 0.3333, (2, 3): 0.5,
    }  # fmt: skip


def test_mvs_keeps_seeds_by_their_gradients() -> None:
    graph = pgs.Graph.from_coo(np.array([4, 4, 4, 4]), np.arange(4), num_nodes=5)
    graph = graph.with_data(node_data={"gradient_norm": np.array([8, 3, 2, 1, 1.0])})
    sampler = samplers.mvs(size=2, seed=13)
    weights = np.array([1 / 4, 1 / 2, 3 / 4, 3 / 2])
    kept = np.zeros(4)
    for batch in batches(sampler, graph, [0, 1, 2, 3]):
        got = np.asarray(batch.extra["loss_weight"])
        there = got > 0
        assert got[there] == pytest.approx(weights[there])
        assert {v for _, v, _ in edges_of(batch.blocks[0])} == set(np.flatnonzero(there))
        kept += there
    for i, p in enumerate([1, 1 / 2, 1 / 3, 1 / 6]):
        assert abs(kept[i] - p * BATCHES) <= 4 * math.sqrt(p * (1 - p) * BATCHES)


# ---- trained ---------------------------------------------------------------------------------


def test_pass_draws_by_its_attention() -> None:
    x = np.array([[1], [2], [-1], [1]], np.float32)
    graph = pgs.Graph.from_coo([1, 2, 3], [0, 0, 0], num_nodes=4, node_data={"x": x})
    sampler = samplers.learned.pass_sampler(
        fanouts=[1],
        W1=np.ones((1, 1)),
        W2=np.full((1, 1), 0.5),
        W3=np.array([0.01, 0.01, 1]),
        seed=5,
    )
    counts: Counter[int] = Counter()
    p: dict[int, float] = {}
    for batch in batches(sampler, graph, [0]):
        for u, _, w in edges_of(batch):
            counts[u] += 1
            p[u] = w
    assert math.isclose(p[1], 0.6127, abs_tol=5e-5) and math.isclose(p[3], 0.3873, abs_tol=5e-5)
    plausible(counts, {1: p[1], 3: 1 - p[1]})


# ---- mistakes --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["graphsage", "kgcn", "labor", "seal", "shadow"])
def test_fanouts_that_are_none(name: str) -> None:
    check_fanouts_are_refused(getattr(layer_wise if name == "labor" else samplers, name))


@pytest.mark.parametrize("name", ["ladies", "fastgcn", "asgcn"])
def test_layers_that_are_none(name: str) -> None:
    with pytest.raises(TypeError, match=r"nodes: expected a list of int, .* got int 5"):
        getattr(samplers, name)(nodes=5)


def test_a_graph_with_types() -> None:
    typed = pgs.Graph.from_coo({("a", "to", "a"): ([0], [1])}, num_nodes={"a": 2})
    remedy = r"expected a pygsampler.Graph, got heterogeneous Graph.*; graph\.to_homogeneous\(\)"
    with pytest.raises(TypeError, match=remedy):
        samplers.graphsage(fanouts=[2]).sample(typed, [1])
