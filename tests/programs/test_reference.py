"""The slow reference of programs: examples by hand, laws, and PGSampler as a program."""

from __future__ import annotations

import collections
import functools
import itertools
import math
import operator
import random
from typing import Any

import numpy as np
import program_numbers as numbers
import pytest
import reference as neighbors
from program_examples import ASGCN, FASTGCN, LABOR, LADIES, T, hops, rows_of
from program_graphs import SINGLE_INPUTS, Arrays, graphs, seeds_of
from program_reference import Result, reference
from random_programs import only, program
from weighted_graphs import LEVEL, successive

from tests.statistics import laws

pytestmark = pytest.mark.once

BATCHES = 3000


def vector(code: str, case: Arrays, seeds: list[int], **given: Any) -> list[Any]:
    """The one vector or list that a program returns."""
    (found,) = reference(code, case, seeds, **given).extras.values()
    return found


def counted(law: dict[Any, Any], outcomes: list[Any]) -> float:
    """The p-value of outcomes of a law; one that cannot be is a KeyError."""
    number = {outcome: i for i, outcome in enumerate(law)}
    found = np.array([number[outcome] for outcome in outcomes])
    return laws.classes(found, np.array([float(p) for p in law.values()]))


# ---- laws of the worked examples ----------------------------------------------------------------


def ladies(replace: str, batch: int) -> Result:
    return reference(LADIES.format(replace), T, [0, 3], seed=5, batch=batch, weight="w")


def test_ladies() -> None:
    sets, law = [], successive([1, 1, 2, 1, 1], 2)
    for batch in range(BATCHES):
        found = ladies("false", batch)
        assert found.extras["candidates"] == [0, 1, 2, 3, 4]
        assert np.allclose(np.array(found.extras["p"]) * 9, [1, 1, 2, 1, 1])
        sets.append(tuple(sorted(found.extras["chosen"])))
        (block,) = found.blocks
        ends = itertools.pairwise(block.indptr[:3])
        assert all(a == b or math.isclose(sum(block.values[a:b]), 1, rel_tol=1e-6) for a, b in ends)
    assert counted(law, sets) > LEVEL
    included = [float(sum(p for s, p in law.items() if u in s)) for u in range(5)]
    assert np.allclose(included, [0.35, 0.35, 0.6, 0.35, 0.35])


def test_ladies_with_replacement() -> None:
    law: dict[Any, float] = collections.Counter()
    for a, b in itertools.product(range(5), repeat=2):
        law[min(a, b), max(a, b)] += [1, 1, 2, 1, 1][a] * [1, 1, 2, 1, 1][b] / 36
    drawn = []
    for batch in range(BATCHES):
        extras = ladies("true", batch).extras
        times = dict(zip(extras["chosen"], extras["times"], strict=True))
        drawn.append(tuple(sorted(u for u in times for _ in range(int(times[u])))))
    assert counted(law, drawn) > LEVEL


@pytest.mark.parametrize("unit", [1.0, 1e-300, 2.0**-1070, 1e300])
@pytest.mark.parametrize(
    "code",
    [
        "%1 = slice %0\n%2 = individual %1, %1 k=2 replace=false site=0\n%3 = row %2",
        "%1 = slice %0\n%2 = sum %1 axis=1\n%3 = draw %2 k=2 replace=false site=3",
    ],
    ids=["individual", "draw"],
)
def test_race(code: str, unit: float) -> None:
    case = rows_of([1, 2, 3, 4], weights=[unit, 2 * unit, 0.0, 3 * unit])
    text = f'%0 = seeds\n{code}\nreturn vectors "chosen"=%3'
    law = {(1, 2): 3 / 20, (1, 4): 4 / 15, (2, 4): 7 / 12}
    found = [vector(text, case, [0], batch=b, weight="w") for b in range(BATCHES)]
    assert counted(law, [tuple(chosen) for chosen in found]) > LEVEL


def test_draws_of_a_column_with_replacement() -> None:
    case = rows_of([1, 2, 3, 4], weights=[1.0, 0.0, 2.0, 3.0])
    text = "%0 = seeds\n%1 = slice %0\n%2 = individual %1, %1 k=2 replace=true site=0\n"
    found = [
        tuple(
            reference(text + "return blocks %2", case, [0], batch=b, weight="w").blocks[0].edge_ids
        )
        for b in range(BATCHES)
    ]
    p = [1 / 6, 0, 1 / 3, 1 / 2]
    law = {(a, b): p[a] * p[b] for a in (0, 2, 3) for b in (0, 2, 3)}
    assert counted(law, found) > LEVEL


def test_labor() -> None:
    case = rows_of([2, 3], [3, 4, 5])  # a and b; b, c and d
    law: dict[Any, float] = collections.Counter()
    for a, c, d in itertools.product((0, 1), repeat=3):
        p = 1 / 2 * math.prod(1 / 3 if x else 2 / 3 for x in (c, d))
        for share, b in ((1 / 3, (1, 2)), (1 / 6, (1,)), (1 / 2, ())):
            edges = [0] * a + [*b] + [3] * c + [4] * d
            law[tuple(edges)] += p * share
    found = []
    for batch in range(BATCHES):
        (block,) = reference(LABOR.format(1), case, [0, 1], seed=2, batch=batch).blocks
        found.append(tuple(block.edge_ids))
        assert block.values == [[2.0, 2.0, 3.0, 3.0, 3.0][e] for e in block.edge_ids]
    assert counted(law, found) > LEVEL


def test_fastgcn() -> None:
    q = np.array([41, 41, 57, 61, 52]) / 252
    drawn: list[int] = []
    for batch in range(BATCHES):
        found = reference(FASTGCN, T, [0, 3], batch=batch, weight="w")
        assert np.allclose(found.extras["q"], q)
        drawn += found.extras["drawn"]
    assert len(drawn) == 3 * BATCHES
    assert counted(dict(enumerate(q)), drawn) > LEVEL


def test_asgcn() -> None:
    q, total = vector(ASGCN, T, [0, 3], weight="w"), np.zeros(2)
    assert np.allclose(q, [0.0943, 0.2513, 0.0889, 0.4713, 0.0943], atol=1e-4)
    for batch in range(BATCHES):
        (block,) = reference(ASGCN, T, [0, 3], batch=batch, weight="w").blocks
        total += [sum(block.values[a:b]) / 2 for a, b in itertools.pairwise(block.indptr)]
    # Unbiased: the columns' sums are 1.
    assert np.allclose(total / BATCHES, 1, atol=0.05)


def test_sites_differ_and_numbers_repeat() -> None:
    text = '%0 = random site={}\nreturn vectors "r"=%0'
    case = graphs()["some"]
    first, again, other = (vector(text.format(site), case, [0]) for site in (0, 0, 1))
    assert first == again
    assert not set(first) & set(other)


# ---- PGSampler as a program ---------------------------------------------------------------------


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("name", list(graphs()))
def test_equal_to_neighbours(name: str, replace: bool) -> None:
    case, at = graphs()[name], {"seed": 3, "epoch": 4, "batch": 1 << 33}
    for fanouts in ([2], [3, 2], [-1, 0, 4], [33, 70]):
        for seeds in ([], [0], [0, case.num_nodes - 1, 0]):
            want = neighbors.sample(
                case.indptr,
                case.indices,
                seeds,
                fanouts,
                edge_ids=case.edge_ids,
                replace=replace,
                **at,
            )
            got = reference(hops(fanouts, replace), case, seeds, **at)
            assert (got.nodes, got.output_index) == (want.nodes, want.output_index)
            for block, other in zip(got.blocks, want.blocks, strict=True):
                assert (block.indptr, block.indices, block.edge_ids) == other[:3]
                assert (block.num_src, block.num_dst) == other[3:5]


# ---- values -------------------------------------------------------------------------------------


def one_by_one(values: list[float]) -> float:
    """The sum with a rounding after each value; sum() compensates these since Python 3.12."""
    return functools.reduce(operator.add, values, 0.0)


def test_sum_along_columns_is_a_tree() -> None:
    weights = [1e16, 1.0, *[0.0] * 14, -1e16, *[0.0] * 15, 1e16, 1.0, -1e16]
    case = rows_of([0] * len(weights), weights=weights)
    text = '%0 = seeds\n%1 = slice %0\n%2 = sum %1 axis=0\nreturn vectors "s"=%2'
    # 1e16 meets -1e16 before it meets 1, among the first 32 and among the others.
    assert vector(text, case, [0], weight="w") == [2.0]
    rng = random.Random(1)
    for n in (*range(70), 1023, 1024, 1025, 2500):
        values = [rng.random() for _ in range(n)]
        parts = [values[i : i + 32] for i in range(0, n, 32)]
        padded = [np.array(part + [0.0] * (32 - len(part))) for part in parts]
        for half in (16, 8, 4, 2, 1):
            padded = [x[:half] + x[half:] for x in padded]
        trees = [float(x[0]) for x in padded]
        few = [one_by_one(trees[i : i + 32]) for i in range(0, len(trees), 32)]
        assert numbers.tree_sum(values) == one_by_one(few)


def test_sums_in_bins() -> None:
    rng = random.Random(2)
    for n in [*range(9), 64, 65, 500]:
        values = [math.ldexp(rng.uniform(-1, 1), rng.randrange(-60, 60)) for _ in range(n)]
        (found,) = numbers.binned_sums([values], "sum")
        assert abs(found - math.fsum(values)) <= max(map(abs, values), default=0) * 2.0**-52 * n
        rng.shuffle(values)
        assert numbers.binned_sums([values], "sum") == [found]
    found = numbers.binned_sums([[0.5, 0.25], [], [1e-30]], "sum")
    assert found[:2] == [0.75, 0.0] and math.isclose(found[2], 1e-30, rel_tol=1e-5)
    assert numbers.binned_sums([[1e308, 1e308]], "sum") == [math.inf]
    assert numbers.binned_sums([[5e-324] * 3], "sum") == [1.5e-323]
    # A term below 2^-120 of the largest is lost.
    assert numbers.binned_sums([[1.0], [1e-40]], "sum") == [1.0, 0.0]


def test_functions() -> None:
    rng = random.Random(3)
    for _ in range(2000):
        x = rng.uniform(-708, 709)
        assert math.isclose(numbers.exp(x), math.exp(x), rel_tol=1e-15)
        x = math.ldexp(rng.uniform(0.5, 1), rng.randrange(-1073, 1024))
        assert math.isclose(numbers.full_log(x), math.log(x), rel_tol=1e-15, abs_tol=1e-300)
        for y in (2, -3, 0, 0.5, 1.5):
            base = rng.uniform(0.01, 9)
            assert math.isclose(numbers.power(base, y), base**y, rel_tol=1e-14)
    assert numbers.exp(-745.1) == 5e-324 and numbers.exp(-746) == 0 and numbers.exp(710) == math.inf
    assert numbers.full_log(0.0) == -math.inf and numbers.full_log(-1.0) != numbers.full_log(-1.0)
    assert numbers.power(math.nan, 0) == 1 and numbers.power(-2.0, -3) == -0.125
    assert numbers.divided(-1.0, 0.0) == numbers.divided(1.0, -0.0) == -math.inf


def test_race_keys_ascend_as_quotients_do() -> None:
    rng = random.Random(4)
    found = []
    for _ in range(2000):
        bits, weight = rng.getrandbits(64), math.ldexp(rng.uniform(0.5, 1), rng.randrange(-30, 30))
        found.append(
            (-math.log(((bits >> 12) + 0.5) / 2**52) / weight, numbers.race_key(bits, weight))
        )
    found.sort()
    assert all(a[1] < b[1] for a, b in itertools.pairwise(found) if b[0] > a[0] * (1 + 1e-12))
    for bits in (0, (1 << 64) - 1):
        keys = [numbers.race_key(bits, w) for w in (1.7e308, 1.0, 5e-324)]
        assert 0 < keys[0] < keys[1] < keys[2] < 1 << 64


def test_factors_of_labor() -> None:
    factor = numbers.labor_factor
    assert math.isclose(factor([1.0] * 3, [1.0] * 3, 1), 1 / 3)
    assert math.isclose(factor([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 1), 3 / 19)
    assert math.isclose(factor([1.0, 2.0, 3.0], [1.0, 2.0, 3.0], 2), 0.3)
    assert factor([2.0, 0.0, 4.0], [2.0, 1.0, 4.0], 2) == factor([2.0], [2.0], -1) == 0.5
    assert factor([1.0, 1.0], [1.0, 1.0], 0) == factor([0.0], [1.0], 2) == 0
    # LABOR-1 of {a, b} and {b, c, d}.
    assert math.isclose(factor([1.0] * 2, [0.5, 0.5], 1), 1)
    assert math.isclose(factor([1.0] * 3, [1 / 2, 1 / 3, 1 / 3], 1), 8 / 9)
    # One capped: the equation holds.
    a = [9.0, 1.0, 1.0, 1.0]
    assert math.isclose(factor(a, a, 3), 0.2)
    left = sum(x * x / min(1, 0.2 * x) for x in a)
    assert math.isclose(left, 12 * 12 * (1 / 3 - 1 / 4) + sum(x * x for x in a))


def test_chances_that_are_capped() -> None:
    assert numbers.capped([4.0, 1.0, 0.0, 1.0], 2) == [1, 0.5, 0, 0.5]
    assert numbers.capped([8.0, 4.0, 1.0, 1.0], 3) == [1, 1, 0.5, 0.5]
    assert numbers.capped([3.0, 0.0, 1.0], 2) == [1, 0, 1]
    assert numbers.capped([3.0, 1.0], 0) == [0, 0]
    assert math.isclose(sum(numbers.capped([1.0, 2.0, 3.0, 5.0, 8.0], 3)), 3)


# ---- edges and results --------------------------------------------------------------------------

SMALL = rows_of(
    [1, 2, 2],
    [0],
    [3, 0],
    [],
    [2, 4, 4],
    weights=[5.0, math.nan, 7.0, 1.0, 7.0, 7.0, 2.0, 2.0, 1.0],
)


@pytest.mark.parametrize(
    ("k", "edges"), [(-1, [0, 1, 2]), (0, []), (1, [2]), (2, [0, 2]), (3, [0, 1, 2])]
)
def test_largest_values(k: int, edges: list[int]) -> None:
    text = f"%0 = seeds\n%1 = slice %0\n%2 = top_k %1, %1 k={k}\nreturn blocks %2"
    assert reference(text, SMALL, [0], weight="w").blocks[0].edge_ids == edges
    # Equal ones: the first.
    kept = {-1: [4, 5], 0: [], 1: [4]}.get(k, [4, 5])
    assert reference(text, SMALL, [2], weight="w").blocks[0].edge_ids == kept


def test_numbers_of_vertices() -> None:
    """Columns in another order than the seeds', and one behind them."""
    text = """%0 = seeds
%1 = slice %0
%2 = column %1
%3 = row %1
%4 = concat %3, %2
%5 = slice %4
return blocks %5, %1 "rows"=%3"""
    found = reference(text, SMALL, [4, 2, 4])
    # 4, 2 are seeds; their in-neighbours are 2, 4, 4 and 3, 0; columns behind: 2, 4, 3, 0.
    assert found.nodes == [4, 2, 3, 0, 1]
    assert (found.output_index, found.extras) == ([0, 1, 0], {"rows": [2, 4, 3, 0]})
    outer, inner = found.blocks
    assert (inner.indptr, inner.indices, inner.edge_ids) == (
        [0, 3, 5],
        [1, 0, 0, 2, 3],
        [6, 7, 8, 4, 5],
    )
    assert (inner.num_src, inner.num_dst, outer.num_src, outer.num_dst) == (4, 2, 5, 4)
    assert outer.indptr == [0, 3, 5, 5, 8]
    assert outer.edge_ids == [6, 7, 8, 4, 5, 0, 1, 2]


def test_subgraphs() -> None:
    text = """%0 = seeds
%1 = degree
%2 = gather %1, %0
%3 = pick %0, %2
%4 = unique %3
%5 = cross %4, %4
return subgraph %4, %5"""
    found = reference(text, SMALL, [3, 2, 0, 2, 4])
    assert (found.nodes, found.output_index) == ([2, 0, 4], [-1, 0, 1, 0, 2])
    (block,) = found.blocks
    assert (block.num_src, block.num_dst) == (3, 3)
    assert (block.indptr, block.edge_ids) == ([0, 1, 3, 6], [5, 1, 2, 6, 7, 8])
    assert block.indices == [1, 0, 0, 0, 2, 2]


def test_joined_edges() -> None:
    text = """%0 = seeds
%1 = slice %0
%2 = const value=2
%3 = mul %1, %2
%4 = merge %3, %1
%5 = sum %4 axis=0
%6 = count %4 axis=1
return blocks %4 "s"=%5 "n"=%6"""
    found = reference(text, SMALL, [2, 1], weight="w")
    assert found.blocks[0].edge_ids == [4, 5, 4, 5, 3, 3]
    assert found.blocks[0].values == [14.0, 14.0, 7.0, 7.0, 2.0, 1.0]
    assert found.extras == {"s": [42.0, 3.0], "n": [2.0, 4.0]}


@pytest.mark.parametrize(
    ("line", "value", "error"),
    [
        ("individual %1, %1 k=1 replace=false site=0", -1.0, "individual: .* got -1.0"),
        ("individual %1, %1 k=-1 replace=true site=0", math.nan, "individual: .* got nan"),
        ("sum %1 axis=1", math.inf, "sum: expected finite values, got inf"),
        ("mean %1 axis=1", math.nan, "mean: expected finite values, got nan"),
    ],
)
def test_errors_of_batches(line: str, value: float, error: str) -> None:
    case = rows_of([1, 2], weights=[1.0, value])
    result = 'vectors "e"=%2' if "axis" in line else "blocks %2"
    text = f"%0 = seeds\n%1 = slice %0\n%2 = {line}\nreturn {result}"
    with pytest.raises(numbers.BatchError, match=error):
        reference(text, case, [0], weight="w")


@pytest.mark.parametrize("line", ["individual %1, %1 k=1 replace=false site=0", "sum %1 axis=1"])
def test_values_that_nobody_needs(line: str) -> None:
    """Their errors are not seen, also where their edges are needed."""
    case = rows_of([1, 2], weights=[1.0, math.nan])
    text = f"%0 = seeds\n%1 = slice %0\n%2 = {line}\n"
    reference(text + "return blocks %1", case, [0], weight="w")
    with pytest.raises(numbers.BatchError):
        reference(text + "return blocks %1", case, [0], weight="w", everything=True)
    if "axis" in line:
        text += "%3 = mul %1, %2 axis=1\n%4 = merge %1, %3\n%5 = count %4 axis=0\n"
        assert vector(text + 'return vectors "n"=%5', case, [0], weight="w") == [4]
        with pytest.raises(numbers.BatchError):
            reference(text + "return blocks %4", case, [0], weight="w")


# ---- random programs ----------------------------------------------------------------------------


def test_parts_of_random_programs() -> None:
    """A node has the same value in the program that makes nothing else."""
    cases, seen, rng = list(graphs().values()), collections.Counter[str](), random.Random(0)
    for _ in range(450):
        code, case = program(rng), rng.choice(cases)
        seeds = seeds_of(case, rng)
        try:
            whole = reference(code, case, seeds, seed=1, weight="w", inputs=SINGLE_INPUTS)
        except numbers.BatchError:
            seen["errors"] += 1
            continue
        for name, value in whole.extras.items():
            if " of " in name:  # values of edges
                continue
            part = only(code, int(name[1:]), matrix=False)
            alone = vector(part, case, seeds, seed=1, weight="w", inputs=SINGLE_INPUTS)
            assert str(alone) == str(value), part
            seen["extras"] += 1
        seen[code.rpartition("return ")[2].split()[0]] += 1
        seen["edges"] += any(block.indices for block in whole.blocks)
    assert min(seen[k] for k in ("blocks", "subgraph", "vectors", "extras", "edges")) > 10, seen
