"""HGTSampler, against a slow reference to the byte, and its chances against exact ones."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pytest
import reference_hgt
from hetero_graphs import random_types

import pygsampler as pgs


def check(batch: Any, seeds: Any, want: Any) -> None:
    """Every number of a batch."""
    nodes, rows = want
    assert {kind: ids.tolist() for kind, ids in batch.input_nodes.items()} == nodes
    for kind, found in nodes.items():
        given = seeds.get(kind, [])
        assert batch.output_nodes[kind].tolist() == given
        assert batch.output_index[kind].tolist() == [found.index(v) for v in given]
        count = len(set(given))
        assert batch.num_sampled_nodes[kind] == [count, len(found) - count]
    (blocks,) = batch.blocks
    assert list(blocks) == list(rows)
    for (src, _, dst), block in blocks.items():
        want_rows = rows[src, _, dst]
        assert block.src_nodes.tolist() == nodes[src]
        assert block.dst_nodes.tolist() == nodes[dst]
        indptr = [0, *itertools.accumulate(map(len, want_rows))]
        assert block.indptr.tolist() == indptr
        assert block.indices.tolist() == [source for row in want_rows for source, _ in row]
        assert block.edge_ids.tolist() == [e for row in want_rows for _, e in row]


@pytest.mark.parametrize("seed", range(24))
def test_random_schemas(seed: int) -> None:
    """1 to 20 relations, self relations and others, with and without a bound of rows."""
    random = np.random.default_rng(seed + 100)
    types, relations = (1, 1) if seed < 2 else map(int, random.integers(1, [9, 21]))
    nodes, edges, graph = random_types(
        seed, types, relations, ["int64", "int32"][seed % 2], 60, 400
    )
    iterations = int(random.integers(1, 4))
    counts = {kind: [int(n) for n in random.choice([-1, 0, 1, 4, 9], iterations)] for kind in nodes}
    most = [None, 1, 3, 50][seed // 2 % 4]
    seeds = {
        kind: random.integers(0, count, int(random.integers(0, 6))).tolist()
        for kind, count in nodes.items()
    }
    exclude = {kind: list(range(0, len(ends[0]), 3)) for kind, ends in edges.items()}
    options: Any = {"max_neighbors": most, "seed": seed}
    sampler = pgs.samplers.HGTSampler(counts, **options)
    for number, without in ((0, None), (1, exclude)):
        want = reference_hgt.sample(edges, seeds, counts, batch=number, exclude=without, **options)
        got = sampler.sample(graph, seeds, batch=number, exclude=without)
        assert {ids.dtype for ids in got.input_nodes.values()} == {graph.dtype}
        check(got, seeds, want)
        again = pickle.loads(pickle.dumps(sampler)).submit(graph, seeds, batch=number, threads=1)
        if without is None:
            check(pickle.loads(pickle.dumps(again.result())), seeds, want)


def test_a_row_longer_than_a_tile_is_copied_and_many_rows_are_drawn() -> None:
    """More rows than a tile has, and a row that is copied as a whole."""
    random = np.random.default_rng(5)
    edges: Any = {
        ("a", "to", "b"): (random.integers(0, 3000, 9000), random.integers(0, 700, 9000)),
        ("a", "hub", "b"): (random.permutation(3000), np.zeros(3000, np.int64)),
        ("b", "back", "a"): (random.integers(0, 700, 9000), random.integers(0, 3000, 9000)),
    }
    graph = pgs.Graph.from_coo(edges, num_nodes={"a": 3000, "b": 700})
    counts, seeds = {"a": [400, 100], "b": [90, 300]}, {"b": list(range(300))}
    for most in (None, 7):
        sampler = pgs.samplers.HGTSampler(counts, max_neighbors=most, seed=2)
        want = reference_hgt.sample(edges, seeds, counts, max_neighbors=most, seed=2, batch=4)
        check(sampler.sample(graph, seeds, batch=4), seeds, want)


# In-edges of two seeds, by two relations, some of them parallel.
ONE: Any = {
    ("a", "x", "s"): ([0, 1, 2, 2, 0, 3], [0, 0, 1, 1, 1, 0]),
    ("a", "y", "s"): ([0, 3, 4, 4], [0, 0, 0, 0]),
}


def ordered_chances(budgets: dict[int, float], count: int) -> dict[tuple[int, ...], float]:
    """The chance of each order in which count vertices are drawn by the squares of budgets."""
    chances = {}
    for order in itertools.permutations(budgets, count):
        chance, left = 1.0, sum(b * b for b in budgets.values())
        for v in order:
            chance *= budgets[v] ** 2 / left
            left -= budgets[v] ** 2
        chances[order] = chance
    return chances


@pytest.mark.parametrize("count", [1, 2])
def test_chances_are_the_papers(count: int) -> None:
    """Chi-square of the chosen vertices, in their order, against their exact chances."""
    graph = pgs.Graph.from_coo(ONE, num_nodes={"s": 2, "a": 6})
    budgets = {0: 1 / 3 + 1 / 3 + 1 / 4, 1: 1 / 3, 2: 2 / 3, 3: 1 / 3 + 1 / 4, 4: 2 / 4}
    chances = ordered_chances(budgets, count)
    assert sum(chances.values()) == pytest.approx(1)
    sampler, trials = pgs.samplers.HGTSampler({"s": [0], "a": [count]}, seed=11), 6000
    found = dict.fromkeys(chances, 0)
    for batch in sampler.sample_many(graph, [{"s": [0, 1]}] * trials, batch=0):
        found[tuple(batch.input_nodes["a"].tolist())] += 1
    statistic = sum((found[k] - trials * p) ** 2 / (trials * p) for k, p in chances.items())
    # Chi-square of 4 and of 19 degrees is beyond these once in 10^4.
    assert statistic < {1: 23.51, 2: 50.80}[count]


def test_a_vertex_that_is_chosen_later_is_chosen_by_both_iterations_budgets() -> None:
    """Exact chances of the second iteration, summed over what the first has chosen."""
    edges: Any = {("v", "e", "v"): ([1, 2, 3, 4, 3, 4, 4], [0, 0, 0, 1, 1, 2, 3])}
    graph = pgs.Graph.from_coo(edges, num_nodes={"v": 5})
    rows = {0: [1, 2, 3], 1: [4, 3], 2: [4], 3: [4]}
    chances: dict[tuple[int, ...], float] = {}
    first = dict.fromkeys(rows[0], 1 / 3)
    for (one,), p in ordered_chances(first, 1).items():
        budgets = {v: b for v, b in first.items() if v != one}
        for v in rows[one]:
            budgets[v] = budgets.get(v, 0) + 1 / len(rows[one])
        for (two,), q in ordered_chances(budgets, 1).items():
            chances[one, two] = p * q
    sampler, trials = pgs.samplers.HGTSampler([1, 1], seed=5), 6000
    found = dict.fromkeys(chances, 0)
    for batch in sampler.sample_many(graph, [{"v": [0]}] * trials, batch=0):
        found[tuple(batch.input_nodes["v"].tolist()[1:])] += 1
    statistic = sum((found[k] - trials * p) ** 2 / (trials * p) for k, p in chances.items())
    assert len(chances) == 9 and statistic < 31.83  # of 8 degrees


def test_other_types_and_orders_change_no_choice() -> None:
    """Types by another order are the same vertices; a relation to vertices that are never chosen
    and the number of threads change nothing."""
    nodes, edges, graph = random_types(3, 4, 9, "int64", 60, 400)
    sampler = pgs.samplers.HGTSampler([6, 6], max_neighbors=4, seed=1)
    seeds = {"t0": [0, 1, 2]}
    want = sampler.sample(graph, seeds, batch=0)
    turned = pgs.Graph.from_coo(
        {**dict(reversed(edges.items())), ("t0", "more", "other"): ([0], [0])},
        num_nodes={"other": 7, **dict(reversed(nodes.items()))},
    )
    for threads in (1, 2):
        got = sampler.sample(turned, seeds, batch=0, threads=threads)
        assert not len(got.input_nodes["other"])
        for kind in nodes:
            assert got.input_nodes[kind].tolist() == want.input_nodes[kind].tolist()
        for kind in edges:
            for name in ("indptr", "indices", "edge_ids"):
                ours, theirs = got.blocks[0][kind], want.blocks[0][kind]
                assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ([], ValueError, "num_samples: expected 1 to 256 hops"),
        ([1, -2], ValueError, r"num_samples\[1\]: expected an integer >= -1, got -2"),
        ([1.5], TypeError, r"num_samples\[0\]: expected an integer"),
        ("512", TypeError, "num_samples: expected a sequence of int or of dict"),
        ({}, ValueError, "num_samples: expected a number for each iteration"),
        ({"s": [1], "a": [1, 2]}, ValueError, "as many of each type, got {'s': 1, 'a': 2}"),
        ({"s": 3, "a": [1]}, TypeError, r"num_samples\['s'\]: expected a sequence of int, got int"),
        ({("a", "x", "s"): [1]}, TypeError, "num_samples: expected types of nodes, got tuple"),
        ({"a": [1]}, ValueError, 'expected numbers for each node type, got none for "s"'),
        ({"a": [1], "s": [1], "z": [2]}, ValueError, 'node types of the graph, got "z"'),
    ],
)
def test_wrong_numbers(given: Any, error: type[Exception], text: str) -> None:
    graph = pgs.Graph.from_coo(ONE, num_nodes={"s": 2, "a": 6})
    with pytest.raises(error, match=text):
        pgs.samplers.HGTSampler(given).sample(graph, {"s": [0]})


def test_wrong_arguments() -> None:
    graph = pgs.Graph.from_coo(ONE, num_nodes={"s": 2, "a": 6})
    sampler = pgs.samplers.HGTSampler([1])
    with pytest.raises(IndexError, match=r'seeds\["s"\]\[1\]: expected an id in \[0, 2\), got 2'):
        sampler.sample(graph, {"s": [0, 2]})
    with pytest.raises(ValueError, match="seeds: expected types of the graph, got 'z'"):
        sampler.sample(graph, {"z": [0]})
    with pytest.raises(TypeError, match="graph: expected a heterogeneous graph, got"):
        sampler.sample(pgs.Graph.from_coo([0], [1]), [0])
    with pytest.raises(ValueError, match="max_neighbors: expected an integer from 1"):
        pgs.samplers.HGTSampler([1], max_neighbors=0)
    assert repr(pgs.samplers.HGTSampler({"a": [1, 2]}, seed=3)) == (
        "HGTSampler({'a': [1, 2]}, max_neighbors=50, seed=3)"
    )
