"""Neighbours by time, against a slow reference of which edges there are at a bound."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
import reference
import temporal_bounds
from scipy import stats
from temporal_bounds import sampler_options

import pygsampler as pgs
from pygsampler.samplers import Temporal
from tests.support.assertions import assert_equal, content

NODES, EDGES = 60, 900


@pytest.fixture(scope="module")
def edges() -> Any:
    random = np.random.default_rng(5)
    src, dst = random.integers(0, NODES, EDGES), random.integers(0, NODES - 3, EDGES)
    # Parallel edges and self loops, and many that are at one time.
    dst[:20], src[:20] = 3, 4
    src[20:30] = dst[20:30]
    return src, dst, random.integers(-20, 40, EDGES), random.integers(-20, 40, NODES)


def graph_of(edges: Any, dtype: str = "int64", ids: str = "int64") -> pgs.Graph:
    src, dst, of_edges, of_nodes = edges
    return pgs.Graph.from_coo(
        src.astype(ids),
        dst.astype(ids),
        num_nodes=NODES,
        edge_data={
            "t": of_edges.astype(dtype),
            "m": np.arange(EDGES) % 3 > 0,
            "w": (np.arange(EDGES) % 4).astype(np.float32),
        },
        node_data={"n": of_nodes.astype(dtype)},
    )


def check(batch: Any, edges: Any, seed_time: Any, **how: Any) -> int:
    """Every edge of a batch by the rules; returns how many there are."""
    src, dst, of_edges, of_nodes = edges
    time = of_edges if how["time"] == "t" else of_nodes[src]
    window = math.inf if how.get("window") is None else how["window"]
    mask = np.arange(EDGES) % 3 > 0 if how.get("mask") else np.ones(EDGES, bool)
    if how.get("prob"):
        mask &= np.arange(EDGES) % 4 > 0
    mask[list(how.get("exclude", []))] = False
    nodes, subgraph_ids = batch.input_nodes.tolist(), batch.subgraph_ids.tolist()
    bounds = dict(enumerate(seed_time))
    total = 0
    expanded = 0
    for hop, block in enumerate(reversed(batch.blocks)):
        fanout = how["fanouts"][len(batch.blocks) - 1 - hop]
        known = len(bounds)
        first = expanded if how.get("frontier") == "new" else 0
        expanded = known
        assert block.dst_offset == first
        assert block.num_dst_nodes == known - first
        indptr, ids, local = (a.tolist() for a in (block.indptr, block.edge_ids, block.indices))
        for row in range(block.num_dst_nodes):
            v, bound = nodes[first + row], bounds[first + row]
            late = time >= bound if how.get("compare") == "lt" else time > bound
            there = np.flatnonzero((dst == v) & ~late & (time >= bound - window) & mask)
            there = there[np.argsort(time[there], kind="stable")].tolist()
            drawn = ids[indptr[row] : indptr[row + 1]]
            if how.get("strategy") == "last" and 0 <= fanout < len(there):
                there = there[len(there) - fanout :] if fanout else []
            if fanout < 0 or (not how.get("replace") and len(there) <= fanout):
                assert drawn == there
            elif how.get("replace"):
                assert len(drawn) == (fanout if there else 0)
            else:
                assert len(drawn) == len(set(drawn)) == fanout
            assert set(drawn) <= set(there)
            for e, place in zip(drawn, local[indptr[row] : indptr[row + 1]], strict=True):
                assert nodes[place] == src[e]
                assert subgraph_ids[place] == subgraph_ids[first + row]
                if place not in bounds:
                    bounds[place] = time[e] if how.get("carry") == "edge" else bound
            total += len(drawn)
    assert len(bounds) == len(nodes)
    return total


@pytest.mark.once
@pytest.mark.parametrize("time", ["t", "n"])
@pytest.mark.parametrize("compare", ["le", "lt"])
@pytest.mark.parametrize("window", [None, 0, 12.0])
@pytest.mark.parametrize("carry", ["seed", "edge"])
@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_every_edge_is_there_at_its_bound(
    edges: Any, time: str, compare: str, window: float | None, carry: str, strategy: str
) -> None:
    how: dict[str, Any] = {"time": time, "compare": compare, "window": window, "carry": carry}
    how["strategy"] = strategy
    random = np.random.default_rng(1)
    total = 0
    dtypes = (("int64", "int32"), ("float64", "int64"), ("int32", "int64"))
    options = (
        {},
        {"replace": True},
        {"frontier": "new"},
        {"mask": "m"},
        {"prob": "w"},
        {"prob": "w", "replace": True},
    )
    # Each two of a type, fanouts and options meet; all three of them need not.
    every_fanouts = ([3, 4], [-1, 2, 0], [2, 2, -1])
    for shift, (dtype, ids) in enumerate(dtypes):
        graph = graph_of(edges, dtype, ids)
        for place, more in enumerate(options):
            fanouts = every_fanouts[(place + shift) % 3]
            seeds = random.integers(0, NODES, 30)
            seed_time = random.integers(-25, 45, 30)
            sampler = pgs.PGSampler(fanouts, seed=3, **sampler_options({**how, **more}))
            batch = sampler.sample(graph, seeds, seed_time=seed_time)
            total += check(batch, edges, seed_time, fanouts=fanouts, **how, **more)
            without = random.permutation(EDGES)[:300]
            batch = sampler.sample(graph, seeds, seed_time=seed_time, exclude=without)
            about = {"fanouts": fanouts, "exclude": without, **how, **more}
            total += check(batch, edges, seed_time, **about)
    assert total == 0 if (window, compare) == (0, "lt") else total > 133


def test_zero_window_before_the_bound_leaves_nothing(edges: Any) -> None:
    sampler = pgs.PGSampler([-1], temporal=Temporal("t", window=0, inclusive=False), seed=1)
    assert sampler.sample(graph_of(edges), range(NODES), seed_time=10).num_edges == 0


def test_one_core_or_two(edges: Any) -> None:
    graph = graph_of(edges)
    sampler = pgs.PGSampler([5, 5, 5], temporal=Temporal("t", carry="edge"), seed=1)
    seeds = np.arange(6000) % NODES
    one = sampler.sample(graph, seeds, seed_time=seeds, batch=2, threads=1)
    two = sampler.sample(graph, seeds, seed_time=seeds, batch=2, threads=2)
    assert content(one) == content(two)
    assert check(one, edges, seeds, fanouts=[5, 5, 5], time="t", carry="edge") > 20_000


def test_rows_in_time_order_before_all_seeds_are_the_uniform_sample(edges: Any) -> None:
    src, dst, *_ = edges
    graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data={"t": np.arange(EDGES)})
    for more in ({}, {"replace": True}, {"frontier": "new"}, {"edge_weights": "ht"}):
        timed = pgs.PGSampler([4, 6], temporal="t", seed=9, **more)
        plain = pgs.PGSampler([4, 6], disjoint=True, seed=9, **more)
        seeds = np.arange(40) % NODES
        one = timed.sample(graph, seeds, seed_time=EDGES, epoch=1, batch=4)
        other = plain.sample(graph, seeds, epoch=1, batch=4)
        assert one.input_nodes.tolist() == other.input_nodes.tolist()
        for mine, theirs in zip(one.blocks, other.blocks, strict=True):
            assert mine.edge_ids.tolist() == theirs.edge_ids.tolist()
            assert mine.indices.tolist() == theirs.indices.tolist()
            if more.get("edge_weights"):
                assert mine.edge_weights.tolist() == theirs.edge_weights.tolist()


@pytest.mark.parametrize("replace", [False, True])
def test_draws_are_uniform_among_those_that_are_there(replace: bool) -> None:
    times = np.array([5, 1, 9, 3, 7, 2, 8, 4, 6, 0])
    graph = pgs.Graph.from_coo(
        np.arange(1, 11), np.zeros(10, int), num_nodes=11, edge_data={"t": times}
    )
    sampler = pgs.PGSampler([3], temporal=Temporal("t", window=6), replace=replace, seed=2)
    subgraph_ids = 30_000
    batch = sampler.sample(graph, np.zeros(subgraph_ids, int), seed_time=7)
    there = np.flatnonzero((times <= 7) & (times >= 1))
    found = Counter(batch.blocks[0].edge_ids.tolist())
    assert set(found) == set(there.tolist())
    expected = np.full(len(there), 3 * subgraph_ids / len(there))
    counts = np.array([found[e] for e in there.tolist()])
    # Without replacement the counts of one row depend on one another, and vary less.
    scale = 1 if replace else (len(there) - 3) / (len(there) - 1)
    statistic = ((counts - expected) ** 2 / expected).sum() / scale
    assert stats.chi2.sf(statistic, len(there) - 1) > 1e-6


@pytest.mark.parametrize("exclude", [[], [3, 5]])
@pytest.mark.parametrize("replace", [False, True])
def test_draws_by_weight_among_those_that_are_there(replace: bool, exclude: list[int]) -> None:
    """Two of a row's edges, some before a window and some after the bound, by successive draws."""
    weights = np.array([3.0, 1, 5, 2, 4, 9, 7])
    times = np.array([9, 3, 1, 4, 5, 0, 3])
    there = np.setdiff1d(np.flatnonzero((times <= 5) & (times >= 1)), exclude)
    graph = pgs.Graph.from_csc(
        [0, 7] + [7] * 6, np.arange(7) % 7, edge_data={"t": times, "w": weights}
    )
    sampler = pgs.PGSampler(
        [2], seed=5, temporal=Temporal("t", window=4), prob="w", replace=replace
    )
    draws = 20_000
    # Each seed has a tree, and so draws of its own.
    batch = sampler.sample(
        graph, np.zeros(draws, np.int64), seed_time=5, epoch=0, batch=0, exclude=exclude
    )
    found = Counter(map(tuple, batch.blocks[0].edge_ids.numpy().reshape(-1, 2).tolist()))
    chance = {}
    total = weights[there].sum()
    for a in there.tolist():
        for b in there.tolist():
            rest = total if replace else total - weights[a]
            if replace or a != b:
                chance[a, b] = weights[a] / total * weights[b] / rest
    assert set(found) <= set(chance)
    observed = [found[pair] for pair in chance]
    expected = [draws * p for p in chance.values()]
    assert min(expected) > 10
    assert stats.chisquare(observed, expected).pvalue > 1e-4


@pytest.mark.parametrize("exclude", [[], [4, 5, 11, 30]])
@pytest.mark.parametrize(("fanout", "replace"), [(1, False), (4, False), (33, False), (5, True)])
def test_factors_by_weight_are_the_references(
    fanout: int, replace: bool, exclude: list[int]
) -> None:
    """Of a row with edges before a window and behind the bound, of weight 0, and excluded ones."""
    random = np.random.default_rng(8)
    times = random.integers(0, 12, 90)
    weights = random.pareto(0.7, 90) * (np.arange(90) % 7 > 0)
    graph = pgs.Graph.from_csc(
        [0, 90] + [90] * 89, np.arange(90), edge_data={"t": times, "w": weights}
    )
    options: dict[str, Any] = {"temporal": Temporal("t", window=7), "prob": "w"}
    options |= {"replace": replace, "seed": 5}
    sampler = pgs.PGSampler([fanout], edge_weights="ht", **options)
    how: dict[str, Any] = {"seed_time": 9, "epoch": 2, "batch": 3, "exclude": exclude}
    block = sampler.sample(graph, np.zeros(6, int), **how).blocks[0]
    same = pgs.PGSampler([fanout], **options).sample(graph, np.zeros(6, int), **how).blocks[0]
    ids, indptr, found = (
        a.tolist() for a in (block.edge_ids, block.indptr, block.edge_weights.numpy())
    )
    assert same.edge_ids.tolist() == ids
    row = [e for e in np.argsort(times, kind="stable").tolist() if weights[e] > 0]
    there = [i for i, e in enumerate(row) if 2 <= times[e] <= 9]
    without = {i for i in there if row[i] in exclude}
    assert fanout < len(there) - len(without)
    for tree in range(6):
        state = reference.part(reference.row_state(5, 2, 3, 0, 0, 0), tree)
        taken = [row.index(e) for e in ids[indptr[tree] : indptr[tree + 1]]]
        assert len(taken) == fanout
        assert found[indptr[tree] : indptr[tree + 1]] == reference.factors(
            [float(weights[e]) for e in row], without, len(there) - len(without), fanout, replace,
            state, taken, range(there[0], there[-1] + 1),
        )  # fmt: skip


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize(("fanout", "replace"), [(1, False), (3, False), (9, False), (2, True)])
def test_factors_by_weight_make_sums_unbiased(fanout: int, replace: bool, typed: bool) -> None:
    """Sums over what was drawn are in the mean those over all that was there."""
    weights = np.array([3.0, 1, 5, 0, 2, 4, 9, 7, 1, 0.5])
    times = np.array([9, 3, 1, 4, 4, 5, 0, 3, 2, 5])
    y = np.array([1.0, -7, 4, 100, 3, 8, 100, 2, 11, 20])
    there = (times <= 5) & (times >= 1) & (weights > 0)
    there[8] = False  # excluded
    data = {"t": times, "w": weights}
    sampler = pgs.PGSampler(
        [fanout],
        seed=5,
        temporal=Temporal("t", window=4),
        prob="w",
        replace=replace,
        edge_weights="ht",
    )
    seeds = np.zeros(20_000, np.int64)
    block: Any
    if typed:
        kind, other = ("v", "x", "v"), ("u", "y", "v")
        ends = np.arange(10), np.zeros(10, int)
        many = pgs.Graph.from_coo(
            {kind: ends, other: ends},
            num_nodes={"v": 10, "u": 10},
            edge_data={kind: data, other: data},
        )
        blocks = sampler.sample(
            many, {"v": seeds}, seed_time={"v": seeds + 5}, epoch=0, batch=0, exclude={kind: [8]}
        ).blocks
        block = blocks[0][kind]
    else:
        graph = pgs.Graph.from_csc([0, 10] + [10] * 9, np.arange(10), edge_data=data)
        block = sampler.sample(graph, seeds, seed_time=5, epoch=0, batch=0, exclude=[8]).blocks[0]
    factors = block.edge_weights.numpy().astype(float)
    if fanout >= there.sum() and not replace:
        assert (factors == 1).all()
    owner = np.repeat(np.arange(len(seeds)), np.diff(block.indptr.numpy()))
    sums = np.bincount(owner, factors * y[block.edge_ids.numpy()], len(seeds))
    error = sums.std() / len(seeds) ** 0.5
    assert abs(sums.mean() - y[there].sum()) <= 4 * error + 1e-6


@pytest.mark.once
@pytest.mark.parametrize(
    "how", temporal_bounds.MODES, ids=lambda how: "-".join(map(str, how.values()))
)
def test_a_million_edges_and_none_of_the_future(how: dict[str, Any]) -> None:
    """In every mode of its own, by a checker that knows which edge first reached a vertex."""
    random = np.random.default_rng(8)
    nodes, count = 4000, 120_000
    src, dst = random.integers(0, nodes, count), random.integers(0, nodes, count)
    # Of few values, so that many are equal.
    times = {"t": random.integers(0, 64, count) / 64, "n": random.integers(0, 64, nodes) / 64}
    data = {"t": times["t"], "w": np.arange(count) % 5 / 2, "m": np.arange(count) % 7 > 0}
    graph = pgs.Graph.from_coo(
        src, dst, num_nodes=nodes, edge_data=data, node_data={"n": times["n"]}
    )
    sampler = pgs.PGSampler([8, 10, 12], seed=1, **sampler_options(how))
    kind = ("v", "to", "v")
    of = {kind: times["t"] if how["time"] == "t" else times["n"][src]}
    total = 0
    for number in range(100):
        seeds, bounds = random.integers(0, nodes, 3000), random.integers(0, 64, 3000) / 64
        without = random.permutation(count)[:2000] if number % 2 else None
        batch = sampler.sample(graph, seeds, seed_time=bounds, batch=number, exclude=without)
        hops = [{kind: block} for block in reversed(batch.blocks)]
        total += temporal_bounds.none_later(hops, {"v": bounds}, of, how)
        for block in batch.blocks:
            assert without is None or not np.isin(block.edge_ids.numpy(), without).any()
        if total > 1_000_000:
            return
    raise AssertionError(total)


def test_floats_are_in_their_order() -> None:
    times = np.array([0.0, -0.0, 1e-300, -1e-300, np.inf, -np.inf, 2.5, -2.5])
    graph = pgs.Graph.from_coo(
        np.arange(1, 9), np.zeros(8, int), num_nodes=9, edge_data={"t": times}
    )
    for bound in (*times, 3.0):
        for compare in ("le", "lt"):
            sampler = pgs.PGSampler([-1], temporal=Temporal("t", inclusive=compare == "le"), seed=1)
            drawn = sampler.sample(graph, [0], seed_time=float(bound)).blocks[0].edge_ids.tolist()
            there = np.flatnonzero(times <= bound if compare == "le" else times < bound)
            assert drawn == there[np.argsort(times[there], kind="stable")].tolist()


def test_it_is_a_sampler(edges: Any) -> None:
    graph = graph_of(edges)
    sampler = pgs.PGSampler(
        [3, 3], temporal=Temporal("t", strategy="last", window=9.5, carry="edge"), seed=1
    )
    assert sampler.temporal == Temporal("t", "last", 9.5, True, "edge")
    assert sampler.disjoint
    assert pgs.PGSampler([3], temporal="t").temporal == Temporal("t")
    assert pgs.PGSampler([3]).temporal is None
    first = content(sampler.sample(graph, range(9), seed_time=30))
    again = eval(repr(sampler), {"PGSampler": pgs.PGSampler, "Temporal": Temporal})
    assert again.plan == sampler.plan
    for other in (again, pickle.loads(pickle.dumps(sampler)), sampler.with_seed(1)):
        assert content(other.sample(graph, range(9), batch=0, seed_time=30)) == first
    job = sampler.submit(graph, range(9), batch=0, seed_time=np.full(9, 30))
    assert content(job.result()) == first
    graph.close()
    with pytest.raises(pgs.errors.ClosedError):
        sampler.sample(graph, [0], seed_time=1)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_loader_gives_seeds_their_times(edges: Any, shuffle: bool, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    graph = graph_of(edges, dtype)
    seeds = torch.arange(NODES)
    times = (torch.arange(NODES) * 7 % 50).to(getattr(torch, dtype))
    sampler = pgs.PGSampler([4, 4], temporal="t", seed=2)
    options: dict[str, Any] = {"batch_size": 16, "shuffle": shuffle, "seed": 3}
    found = []
    for prefetch in (0, 4):
        loader = DataLoader(graph, seeds, sampler, seed_time=times, prefetch=prefetch, **options)
        for number, batch in enumerate(loader):
            bounds = times[batch.output_nodes]
            alone = sampler.sample(
                graph, batch.output_nodes, seed_time=bounds, epoch=0, batch=number
            )
            assert alone.input_nodes.tolist() == batch.input_nodes.tolist()
            found += batch.output_nodes.tolist()
    assert sorted(found) == sorted(2 * list(range(NODES)))
    for one in (9, np.int32(9), torch.tensor(9)):
        all_of = [
            [batch.input_nodes.tolist() for batch in DataLoader(graph, seeds, sampler, **more)]
            for more in ({"seed_time": one, **options}, {"seed_time": [9] * NODES, **options})
        ]
        assert all_of[0] == all_of[1]
    with pytest.raises(
        ValueError, match="seed_time: expected a time for each seed with temporal='t'"
    ):
        DataLoader(graph, seeds, sampler, **options)
    with pytest.raises(ValueError, match="seed_time: expected a time for each of 60 seeds, got 3"):
        DataLoader(graph, seeds, sampler, seed_time=times[:3], **options)
    with pytest.raises(
        ValueError, match="seed_time: expected None for a sampler without temporal="
    ):
        DataLoader(graph, seeds, [2], seed_time=times, **options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"inclusive": "ge"}, TypeError, "inclusive: expected True or False, got str 'ge'"),
        ({"carry": "vertex"}, ValueError, "carry: expected"),
        ({"strategy": "first"}, ValueError, "strategy: expected"),
        ({"window": -1}, ValueError, "window: expected a number from 0"),
        ({"window": math.nan}, ValueError, "window: expected a number from 0"),
        (
            {"window": "day"},
            TypeError,
            "window: expected a number, or a span as 3d, 12h or 30min, ",
        ),
        ({"window": "3"}, TypeError, "window: expected a number, or a span as .*, got '3'"),
        ({"window": "3M"}, TypeError, "units w, d, h, m, s, ms, us and ns, got '3M'"),
        ({"window": "-3d"}, TypeError, "window: expected a number, or a span as .*, got '-3d'"),
        (
            {"window": "200000d"},
            ValueError,
            "window: expected a span from 0 to 146 years, got '200",
        ),
        ({"window": "99999999999w"}, ValueError, "window: expected a span from 0 to 146 years"),
        (
            {"window": np.timedelta64(-3, "D")},
            ValueError,
            "window: expected a span from 0 to 146 years, got -3 days",
        ),
        (
            {"window": np.array([3], "timedelta64[D]")},
            TypeError,
            "window: expected one span for all seeds, got ndarray",
        ),
        ({"attr": 3}, TypeError, "attr: expected the name of an edge or node array, got int 3"),
        ({"prob": "w", "mask": "m"}, ValueError, "prob, mask: expected at most one of them"),
        ({"mode": "queue"}, ValueError, "mode: expected one of"),
    ],
)
def test_wrong_options(options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        rule = {
            name: options.pop(name)
            for name in {"attr", "strategy", "window", "inclusive", "carry"} & options.keys()
        }
        pgs.PGSampler([3], temporal=Temporal(**{"attr": "t", **rule}), **options)


@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("soon", TypeError),
        (b"12345678", TypeError),
        (1 << 70, ValueError),
        ([1 << 70] * 3, (TypeError, IndexError)),
        ([None] * 3, TypeError),
        (object(), TypeError),
        ([math.nan] * 3, (ValueError, TypeError)),
        ({"n": 3}, TypeError),
    ],
)
@pytest.mark.parametrize("of", ["q", "d", "M"])
def test_times_that_are_none(edges: Any, value: Any, error: Any, of: str, loads: bool) -> None:
    """They are errors of ``seed_time`` and ``label_time``, and none of another library."""
    graph, sampler = dated(edges, of), pgs.PGSampler([3], temporal="t", seed=1)
    if value in (1 << 70, [1 << 70] * 3) and of == "d" and not loads:
        # Times of float64 can be so late.
        return
    if not loads:
        with pytest.raises(error, match=r"^seed_time(\[0\])?: expected"):
            sampler.sample(graph, [0, 1, 2], seed_time=value)
        return
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    error = (error, TypeError) if isinstance(error, type) else (*error, TypeError)
    more = {"labels": torch.arange(NODES), "seed_time": {"M": DAYS["M"][0], "d": 0.5, "q": 3}[of]}
    if isinstance(value, list) and len(value) == 3:
        more["label_time"] = [*value, *value[:1] * (NODES - 3)]
    with pytest.raises(error, match=r"^label_time(\[0\])?: expected"):
        DataLoader(graph, [0, 1, 2], sampler, **{"label_time": value, **more}, batch_size=3)
    with pytest.raises(error, match=r"^seed_time(\[0\])?: expected"):
        next(iter(DataLoader(graph, [0, 1, 2], sampler, seed_time=value, batch_size=3)))


def test_a_rule_is_a_name_or_a_temporal() -> None:
    with pytest.raises(TypeError, match=r"^temporal: expected the name of an edge or"):
        pgs.PGSampler([3], temporal=3)  # type: ignore[arg-type]
    assert repr(pgs.PGSampler([3], temporal="t", seed=1)) == (
        "PGSampler([3], disjoint=True, temporal=Temporal('t'), seed=1)"
    )


def test_wrong_calls(edges: Any) -> None:
    graph = graph_of(edges)
    sampler = pgs.PGSampler([3], temporal="t")
    for given, error, text in (
        (None, ValueError, "seed_time: expected a time for each seed with temporal='t', got None"),
        ([1, 2], ValueError, "seed_time: expected a time for each of 1 seeds, got 2"),
        ([0.5], TypeError, "seed_time"),
        ("now", TypeError, "seed_time"),
    ):
        with pytest.raises(error, match=text):
            sampler.sample(graph, [0], seed_time=given)
    floats = graph_of(edges, "float64")
    with pytest.raises(ValueError, match=r"seed_time\[1\]: expected a time, got nan"):
        sampler.sample(floats, [0, 1], seed_time=[0.0, math.nan])
    with pytest.raises(ValueError, match=r"edata\['t'\]\[2\]: expected a time, got nan"):
        bad = pgs.Graph.from_csc([0, 3], [0, 0, 0], edge_data={"t": [0.0, 1.0, math.nan]})
        sampler.sample(bad, [0], seed_time=1.0)
    with pytest.raises(TypeError, match="expected times of int32, int64, float32 or float64"):
        pgs.PGSampler([3], temporal="m").sample(graph, [0], seed_time=1)
    with pytest.raises(ValueError, match=r"time: expected the name of an edge or node array"):
        pgs.PGSampler([3], temporal="x").sample(graph, [0], seed_time=1)
    both = graph.with_data(node_data={"t": np.zeros(NODES)})
    with pytest.raises(ValueError, match="which is that of both"):
        sampler.sample(both, [0], seed_time=1)
    with pytest.raises(ValueError, match="exclude"):
        sampler.sample(graph, [0], seed_time=1, exclude=[EDGES])
    with pytest.raises(
        ValueError, match="seed_time: expected None for a sampler without temporal="
    ):
        pgs.PGSampler([3]).sample(graph, [0], seed_time=1)
    with pytest.raises(IndexError, match=r"seeds\[0\]"):
        sampler.sample(graph, [NODES], seed_time=1)


def test_dates_are_nanoseconds_whatever_their_unit(edges: Any) -> None:
    src, dst, days, _ = edges
    first, day = np.datetime64("2024-03-01"), 86_400 * 10**9
    begin = int(first.astype("datetime64[ns]").astype(np.int64))
    dates, numbers = (
        pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data={"t": times})
        for times in (first + days, begin + days * day)
    )
    assert dates.edata["t"].tolist() == numbers.edata["t"].tolist()
    seeds, bounds = np.arange(30), np.arange(30) - 5
    for window in (None, 9):
        spans = (None, None) if window is None else (np.timedelta64(window, "D"), window * day)
        one, other = (
            content(
                pgs.PGSampler([4, 3], seed=2, temporal=Temporal("t", window=span)).sample(
                    graph, seeds, seed_time=at
                )
            )
            for graph, span, at in (
                (dates, spans[0], (first + bounds).astype("datetime64[h]")),
                (numbers, spans[1], begin + bounds * day),
            )
        )
        assert one == other
    sampler = pgs.PGSampler([3], temporal="t", seed=1)
    at = np.datetime64("2024-03-09T12:00")
    want = content(sampler.sample(numbers, [3], seed_time=begin + 8 * day, epoch=0, batch=0))
    assert content(sampler.sample(dates, [3], seed_time=at, epoch=0, batch=0)) == want
    with pytest.raises(ValueError, match=r"seed_time\[1\]: expected a time, got NaT"):
        sampler.sample(dates, [0, 1], seed_time=np.array(["2024-03-01", "NaT"], "datetime64[D]"))
    with pytest.raises(ValueError, match="expected dates from 1678 to 2261"):
        sampler.sample(dates, [0], seed_time=np.array(["3000-01-01"], "datetime64[D]"))
    with pytest.raises(TypeError, match=r"^window: expected a number or timedelta64, got datetime"):
        pgs.PGSampler([3], temporal=Temporal("t", window=first))  # type: ignore[arg-type]


def dated(edges: Any, kind: str) -> pgs.Graph:
    """Times of edges and of vertices as days, in numbers or as NumPy has dates and spans."""
    src, dst, of_edges, of_nodes = edges
    first = {"M": np.datetime64("2024-03-01"), "m": np.timedelta64(0, "D"), "d": 0.0, "q": 0}[kind]
    return pgs.Graph.from_coo(
        src,
        dst,
        num_nodes=NODES,
        edge_data={"t": first + of_edges},
        node_data={"n": first + of_nodes},
    )


DAYS = {
    "M": np.datetime64("2024-03-01") + np.arange(4),
    "m": np.arange(4).astype("timedelta64[D]"),
}


@pytest.mark.parametrize("name", ["t", "n"])
@pytest.mark.parametrize("of", ["q", "d", "M", "m"])
@pytest.mark.parametrize("given", ["M", "m"])
def test_dates_beside_times_that_are_none(edges: Any, name: str, of: str, given: str) -> None:
    """Days since some day and nanoseconds since 1970 would be compared, and nobody would know."""
    graph, sampler = dated(edges, of), pgs.PGSampler([3], temporal=name, seed=1)
    at = DAYS[given]
    if of == given:
        assert sampler.sample(graph, [0, 1, 2, 3], seed_time=at).blocks[0].num_edges > 0
        return
    called = {"q": "numbers", "d": "numbers", "M": "dates", "m": "spans"}[of]
    text = rf"^seed_time: expected {called}.*, as the times '{name}' are, got {at.dtype.name[:4]}"
    for bounds in (at, at[0]):
        for forms in (
            graph,
            graph.with_data({"w": np.ones(EDGES)}),
            pickle.loads(pickle.dumps(graph)),
        ):
            with pytest.raises(TypeError, match=text):
                sampler.sample(forms, [0, 1, 2, 3], seed_time=bounds)


@pytest.mark.parametrize("name", ["t", "n"])
@pytest.mark.parametrize("of", ["q", "d", "M", "m"])
def test_spans_beside_times_that_are_numbers(edges: Any, name: str, of: str, tmp_path: Any) -> None:
    """A window of three days beside days would be of 259200000000000 days, and cut nothing off."""
    graph, span = dated(edges, of), np.timedelta64(1, "D")
    sampler = pgs.PGSampler([-1], temporal=Temporal(name, window=span), seed=1)
    at = {"q": 3, "d": 3.0, "M": DAYS["M"][3], "m": DAYS["m"][3]}[of]
    others = sampler.with_seed(2), pickle.loads(pickle.dumps(sampler)), sampler.with_gpu_share(0.5)
    for each in (sampler, *others):
        if of in "Mm":
            want = pgs.PGSampler([-1], temporal=Temporal(name, window=86_400 * 10**9))
            about = {"seed_time": at, "epoch": 0, "batch": 0}
            drawn = (sampler.sample(graph, [0, 1, 2, 3], **about) for sampler in (each, want))
            assert_equal(*drawn)
            continue
        text = rf"^window: expected a number, as the times '{name}' are, got timedelta64\[D\]"
        with pytest.raises(TypeError, match=text):
            each.sample(graph, [0, 1, 2, 3], seed_time=at)
        with pytest.raises(TypeError, match=text):
            each.submit(graph, [0, 1, 2, 3], seed_time=at)
    # Nobody knows what those of a file were.
    graph.save(tmp_path / "numbers.pgs")
    opened = pgs.Graph.open(tmp_path / "numbers.pgs")
    assert len(sampler.sample(opened, [0], seed_time=at).output_nodes) == 1
    assert sampler.plan["window"] == 86_400 * 10**9
    assert "window=np.timedelta64(1,'D')" in repr(sampler).replace("numpy.", "np.")


def test_a_loader_of_a_window_beside_numbers(edges: Any) -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    sampler = pgs.PGSampler([3], temporal=Temporal("t", window=np.timedelta64(1, "D")), seed=1)
    loader = DataLoader(
        dated(edges, "q"), torch.arange(4), sampler, seed_time=[3] * 4, batch_size=4
    )
    with pytest.raises(TypeError, match=r"^window: expected a number, as the times 't' are"):
        next(iter(loader))


def test_numbers_beside_dates_are_nanoseconds(edges: Any, tmp_path: Any) -> None:
    """Tensors have no dates, nor have files."""
    graph, sampler = dated(edges, "M"), pgs.PGSampler([3], temporal="t", seed=1)
    seeds, numbers = [0, 1, 2, 3], DAYS["M"].astype("datetime64[ns]").astype(np.int64)
    want = content(sampler.sample(graph, seeds, seed_time=DAYS["M"], epoch=0, batch=0))
    assert content(sampler.sample(graph, seeds, seed_time=numbers, epoch=0, batch=0)) == want
    graph.save(tmp_path / "dated.pgs")
    opened = pgs.Graph.open(tmp_path / "dated.pgs")
    for at in (DAYS["M"], numbers):
        assert content(sampler.sample(opened, seeds, seed_time=at, epoch=0, batch=0)) == want
    with pytest.raises(TypeError, match=r"seed_time: expected .* int32 or int64"):
        sampler.sample(graph, seeds, seed_time=numbers.astype(float))


def test_a_loader_of_dates_beside_times_that_are_none(edges: Any) -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader, LinkLoader, NegativeSampling

    sampler = pgs.PGSampler([3], temporal="t", seed=1)
    links = np.arange(4)
    text = "^seed_time: expected numbers, as the times '[tn]' are, got datetime64"
    for of in ("q", "d"):
        graph = dated(edges, of)
        with pytest.raises(TypeError, match=text):
            DataLoader(graph, torch.arange(4), sampler, seed_time=DAYS["M"], batch_size=4)
        with pytest.raises(TypeError, match=text):
            LinkLoader(graph, links, sampler, seed_time=DAYS["M"], batch_size=4)
        with pytest.raises(TypeError, match=text):
            LinkLoader(
                graph,
                links,
                [3],
                negative_sampling=NegativeSampling(time_attr="n"),
                seed_time=DAYS["M"],
                batch_size=4,
            )
    graph = dated(edges, "M")
    (batch,) = DataLoader(graph, torch.arange(4), sampler, seed_time=DAYS["M"], batch_size=4)
    want = sampler.sample(graph, [0, 1, 2, 3], seed_time=DAYS["M"], epoch=0, batch=0)
    assert batch.input_nodes.tolist() == want.input_nodes.tolist()
    assert len(list(LinkLoader(graph, links, sampler, seed_time=DAYS["M"], batch_size=4))) == 1


SETS = [list(range(9)), [3], [], [7, 7, 2]]


@pytest.mark.parametrize("memory", [None, 1, 1 << 30])
@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("name", ["t", "n"])
def test_many_batches_are_those_of_sample(
    edges: Any, name: str, typed: bool, memory: int | None
) -> None:
    graph = graph_of(edges)
    sampler = pgs.PGSampler([4, 3], temporal=Temporal(name, window=30), seed=3)
    bounds = [[i - 4 for i in seeds] for seeds in SETS]
    sets: list[Any] = SETS
    times: list[Any] = bounds
    if typed:
        src, dst, of_edges, of_nodes = edges
        kind = ("a", "r", "a")
        graph = pgs.Graph.from_coo(
            {kind: (src, dst)},
            num_nodes={"a": NODES},
            edge_data={kind: {"t": of_edges}},
            node_data={"a": {"n": of_nodes}},
        )
        sets = [{"a": seeds} for seeds in SETS]
        times = [{"a": bound} for bound in bounds]

    def arrays(batch: Any) -> Any:
        blocks = [next(iter(b.values())) if typed else b for b in batch.blocks]
        nodes, trees = batch.input_nodes, batch.subgraph_ids
        if typed:
            nodes, trees = nodes["a"], trees["a"]
        of_blocks = [(b.indptr.tolist(), b.indices.tolist(), b.edge_ids.tolist()) for b in blocks]
        return batch.epoch, batch.batch, nodes.tolist(), trees.tolist(), of_blocks

    numbers: dict[str, Any] = {"epoch": 5, "batch": 8, "memory": memory}
    many = sampler.sample_many(graph, iter(sets), seed_time=iter(times), **numbers)
    assert [batch.batch for batch in many] == [8, 9, 10, 11]
    for i, batch in enumerate(many):
        alone = sampler.sample(graph, sets[i], epoch=5, batch=8 + i, seed_time=times[i])
        assert arrays(batch) == arrays(alone)
    assert many[0].num_edges > 0
    # One time for all, and a time for each set.
    for at in (12, [12, 0, 3, -5], np.array([12, 0, 3, -5])):
        for i, batch in enumerate(sampler.sample_many(graph, sets, seed_time=at, **numbers)):
            one = at if isinstance(at, int) else at[i]
            alone = sampler.sample(graph, sets[i], epoch=5, batch=8 + i, seed_time=one)
            assert arrays(batch) == arrays(alone)
    # Numbers go on as those of sample do.
    sampler.set_epoch(1)
    assert [b.batch for b in sampler.sample_many(graph, sets, seed_time=times)] == [0, 1, 2, 3]
    assert sampler.sample(graph, sets[0], seed_time=times[0]).batch == 4
    assert sampler.sample_many(graph, [], seed_time=[]) == []


@pytest.mark.parametrize(
    ("seed_time", "error", "text"),
    [
        (None, ValueError, r"seed_time\[0\]: expected a time for each seed with temporal='t', got"),
        ([1, 2], ValueError, "seed_time: expected the times of each of 3 sets of seeds, got 2"),
        ({"a": 1}, TypeError, "seed_time: expected the times of each set of seeds, or one time"),
        (b"123", TypeError, "seed_time: expected the times of each set of seeds, or one time"),
        (object(), TypeError, "seed_time: expected the times of each set of seeds, or one time"),
        ([1, [1, 2], 3], ValueError, r"seed_time\[1\]: expected a time for each of 1 seeds, got 2"),
        ([1, 2, ["x", 5]], TypeError, r"seed_time\[2\]\[0\]: expected a number, or a date as"),
        ([1, 2, np.datetime64("2024-01-01")], TypeError, r"seed_time\[2\]: expected numbers, as"),
        ([1, 2.5, 3], TypeError, r"seed_time\[1\]: expected integers, as the graph's times"),
    ],
)
def test_many_batches_with_wrong_times(
    edges: Any, seed_time: Any, error: type[Exception], text: str
) -> None:
    graph, sampler = graph_of(edges), pgs.PGSampler([3], temporal="t", seed=1)
    with pytest.raises(error, match=rf"^{text}"):
        sampler.sample_many(graph, [[0], [1], [2, 3]], seed_time=seed_time)
    with pytest.raises(IndexError, match=rf"^seeds\[1\]\[0\]: expected an id in \[0, {NODES}\)"):
        sampler.sample_many(graph, [[0], [NODES]], seed_time=3)
    with pytest.raises(ValueError, match=r"seed_time\[0\]: expected None for a sampler without"):
        pgs.PGSampler([3], seed=1).sample_many(graph, [[0]], seed_time=3)
    assert sampler.sample_many(graph, [[0]], seed_time=99)[0].num_edges > 0
