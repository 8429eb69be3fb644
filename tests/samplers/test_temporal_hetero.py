"""Neighbours by time in graphs with types, against a slow reference of which edges there are."""

from __future__ import annotations

import gc
import math
import pickle
import weakref
from typing import Any

import numpy as np
import pytest
import temporal_bounds
from temporal_bounds import sampler_options

import pygsampler as pgs
from pygsampler.samplers import Temporal

KINDS = (("a", "r0", "b"), ("b", "r1", "a"), ("a", "r2", "a"), ("c", "r3", "a"), ("b", "r4", "c"))
COUNTS = {"a": 40, "b": 25, "c": 10}
# Edges of the last type, and vertices of "c", have no times.
TIMED_EDGES, TIMED_NODES = KINDS[:4], ("a", "b")


class Made:
    """A graph and what it was made of."""

    def __init__(self, seed: int, dtype: str, ids: str) -> None:
        random = np.random.default_rng(seed)
        self.ends, self.of_edges, self.of_nodes = {}, {}, {}
        for kind in KINDS:
            many = 300 if kind[2] == "a" else 120
            self.ends[kind] = [random.integers(0, COUNTS[end], many) for end in kind[::2]]
            if kind in TIMED_EDGES:
                self.of_edges[kind] = random.integers(-9, 20, many)
        self.of_nodes = {kind: random.integers(-9, 20, COUNTS[kind]) for kind in TIMED_NODES}
        self.graph = pgs.Graph.from_coo(
            {kind: tuple(e.astype(ids) for e in ends) for kind, ends in self.ends.items()},
            num_nodes=COUNTS,
            edge_data={
                kind: {
                    "m": np.arange(len(self.ends[kind][0])) % 3 > 0,
                    "w": (np.arange(len(self.ends[kind][0])) % 4).astype(np.float32),
                }
                | ({"t": self.of_edges[kind].astype(dtype)} if kind in self.of_edges else {})
                for kind in KINDS
            },
            node_data={kind: {"n": of.astype(dtype)} for kind, of in self.of_nodes.items()},
        )

    def times(self, kind: Any, name: str) -> Any:
        """When the edges of a type are; None: they have no times."""
        if name == "t":
            return self.of_edges.get(kind)
        of = self.of_nodes.get(kind[0])
        return None if of is None else of[self.ends[kind][0]]


def check(batch: Any, made: Made, seed_time: Any, **how: Any) -> int:
    """Every edge of a batch by the rules; returns how many there are."""
    window = math.inf if how.get("window") is None else how["window"]
    nodes = {kind: ids.tolist() for kind, ids in batch.input_nodes.items()}
    subgraph_ids = {kind: ids.tolist() for kind, ids in batch.subgraph_ids.items()}
    bounds = {kind: dict(enumerate(seed_time.get(kind, []))) for kind in COUNTS}
    expanded, total = dict.fromkeys(COUNTS, 0), 0
    for hop, blocks in enumerate(reversed(batch.blocks)):
        known = {kind: len(of) for kind, of in bounds.items()}
        first = dict(expanded) if how.get("frontier") == "new" else dict.fromkeys(COUNTS, 0)
        expanded = known
        for kind, block in blocks.items():
            src, dst = made.ends[kind]
            time = made.times(kind, how["time"])
            fanout = how["fanouts"][len(batch.blocks) - 1 - hop]
            fanout = fanout.get(kind, how.get("default")) if isinstance(fanout, dict) else fanout
            begin = first[kind[2]]
            assert block.num_dst_nodes == known[kind[2]] - begin
            indptr, ids, local = (a.tolist() for a in (block.indptr, block.edge_ids, block.indices))
            for row in range(block.num_dst_nodes):
                v, bound = nodes[kind[2]][begin + row], bounds[kind[2]][begin + row]
                rows = dst == v
                if how.get("mask"):
                    rows &= np.arange(len(dst)) % 3 > 0
                if how.get("prob"):
                    rows &= np.arange(len(dst)) % 4 > 0
                rows[how.get("exclude", {}).get(kind, [])] = False
                if time is not None:
                    late = time >= bound if how.get("compare") == "lt" else time > bound
                    rows &= ~late & (time >= bound - window)
                there = np.flatnonzero(rows)
                if time is not None:
                    there = there[np.argsort(time[there], kind="stable")]
                there = there.tolist()
                drawn = ids[indptr[row] : indptr[row + 1]]
                if time is not None and how.get("strategy") == "last" and 0 <= fanout < len(there):
                    there = there[len(there) - fanout :] if fanout else []
                if fanout < 0 or (not how.get("replace") and len(there) <= fanout):
                    assert drawn == there
                elif how.get("replace"):
                    assert len(drawn) == (fanout if there else 0)
                else:
                    assert len(drawn) == len(set(drawn)) == fanout
                assert set(drawn) <= set(there)
                for e, place in zip(drawn, local[indptr[row] : indptr[row + 1]], strict=True):
                    assert nodes[kind[0]][place] == src[e]
                    assert subgraph_ids[kind[0]][place] == subgraph_ids[kind[2]][begin + row]
                    if place not in bounds[kind[0]]:
                        carried = how.get("carry") == "edge" and time is not None
                        bounds[kind[0]][place] = time[e] if carried else bound
                total += len(drawn)
    assert {kind: len(of) for kind, of in bounds.items()} == {
        kind: len(of) for kind, of in nodes.items()
    }
    return total


@pytest.mark.once
@pytest.mark.parametrize("time", ["t", "n"])
@pytest.mark.parametrize("compare", ["le", "lt"])
@pytest.mark.parametrize("window", [None, 6.0])
@pytest.mark.parametrize("carry", ["seed", "edge"])
@pytest.mark.parametrize("strategy", ["uniform", "last"])
def test_every_edge_is_there_at_its_bound(
    time: str, compare: str, window: float | None, carry: str, strategy: str
) -> None:
    how: dict[str, Any] = {"time": time, "compare": compare, "window": window, "carry": carry}
    how["strategy"] = strategy
    random = np.random.default_rng(1)
    total = 0
    for seed, (dtype, ids) in enumerate((("int64", "int32"), ("float64", "int64"))):
        made = Made(seed, dtype, ids)
        some = dict.fromkeys(KINDS[1:], 2)
        for fanouts in ([3, 4], [{**some, KINDS[0]: -1}, {**some, KINDS[0]: 0}]):
            for more in (
                {},
                {"replace": True},
                {"frontier": "new"},
                {"mask": "m"},
                {"prob": "w"},
            ):
                if "replace" in more and isinstance(fanouts[0], dict):
                    continue
                seeds = {kind: random.integers(0, COUNTS[kind], 8) for kind in ("a", "c")}
                seed_time = {kind: random.integers(-12, 24, 8) for kind in seeds}
                sampler = pgs.PGSampler(fanouts, seed=3, **sampler_options({**how, **more}))
                batch = sampler.sample(made.graph, seeds, seed_time=seed_time)
                total += check(batch, made, seed_time, fanouts=fanouts, **how, **more)
                without = {kind: random.permutation(120)[:40] for kind in KINDS[::2]}
                batch = sampler.sample(made.graph, seeds, seed_time=seed_time, exclude=without)
                about = {"fanouts": fanouts, "exclude": without, **how, **more}
                total += check(batch, made, seed_time, **about)
    assert total > 300


def test_one_type_is_a_graph_without_types() -> None:
    random = np.random.default_rng(2)
    src, dst = random.integers(0, 50, (2, 700))
    times = random.integers(0, 30, 700)
    kind = ("v", "to", "v")
    typed = pgs.Graph.from_coo(
        {kind: (src, dst)}, num_nodes={"v": 50}, edge_data={kind: {"t": times}}
    )
    plain = pgs.Graph.from_coo(src, dst, num_nodes=50, edge_data={"t": times})
    seeds, bounds = random.integers(0, 50, (2, 20))
    for options in ({}, {"carry": "edge", "compare": "lt"}, {"strategy": "last", "window": 9}):
        sampler = pgs.PGSampler([4, 3], seed=2, **sampler_options(options))
        got = sampler.sample(typed, seeds, seed_time=bounds, epoch=1, batch=5)
        want = sampler.sample(plain, seeds, seed_time=bounds, epoch=1, batch=5)
        assert got.input_nodes["v"].tolist() == want.input_nodes.tolist()
        assert got.subgraph_ids["v"].tolist() == want.subgraph_ids.tolist()
        for mine, block in zip(got.blocks, want.blocks, strict=True):
            for name in ("indptr", "indices", "edge_ids"):
                assert getattr(mine[kind], name).tolist() == getattr(block, name).tolist()


@pytest.mark.once
@pytest.mark.parametrize(
    "how", temporal_bounds.MODES, ids=lambda how: "-".join(map(str, how.values()))
)
def test_a_million_edges_and_none_of_the_future(how: dict[str, Any]) -> None:
    """In every mode of its own; edges of one type, and vertices of one, have no times."""
    random = np.random.default_rng(8)
    counts = {"a": 4000, "b": 1000, "c": 3}
    kinds = [
        ("a", "to", "a"),
        ("b", "to", "a"),
        ("a", "to", "b"),
        ("b", "by", "b"),
        ("c", "in", "a"),
    ]
    many, ends, data, times = 40_000, {}, {}, {}
    born = {kind: random.integers(0, 64, counts[kind]) / 64 for kind in ("a", "b")}
    for kind in kinds:
        ends[kind] = tuple(random.integers(0, counts[end], many) for end in kind[::2])
        data[kind] = {"w": np.arange(many) % 5 / 2, "m": np.arange(many) % 7 > 0}
        times[kind] = None
        if how["time"] == "n" and kind[0] in born:
            times[kind] = born[kind[0]][ends[kind][0]]
        if how["time"] == "t" and kind[1] != "by":
            times[kind] = data[kind]["t"] = random.integers(0, 64, many) / 64
    graph = pgs.Graph.from_coo(
        ends,
        num_nodes=counts,
        edge_data=data,
        node_data={kind: {"n": of} for kind, of in born.items()},
    )
    sampler = pgs.PGSampler([4, 5, 6], seed=1, **sampler_options(how))
    total = 0
    for number in range(100):
        seeds = {kind: random.integers(0, counts[kind], 800) for kind in counts}
        bounds = {kind: random.integers(0, 64, 800) / 64 for kind in counts}
        without = {kind: random.permutation(many)[:999] for kind in kinds[number % 2 :: 2]}
        batch = sampler.sample(graph, seeds, seed_time=bounds, batch=number, exclude=without)
        total += temporal_bounds.none_later(list(reversed(batch.blocks)), bounds, times, how)
        for blocks in batch.blocks:
            for kind, ids in without.items():
                assert not np.isin(blocks[kind].edge_ids.numpy(), ids).any()
        if total > 1_000_000:
            return
    raise AssertionError(total)


def test_adding_a_type_changes_no_other_types_sample() -> None:
    made = Made(3, "int64", "int64")
    part = pgs.HeteroGraph(
        {kind: made.graph[kind] for kind in (KINDS[0], KINDS[2])}, {"a": 40, "b": 25}
    )
    sampler = pgs.PGSampler([3], seed=4, temporal="t")
    seeds, bounds = {"a": np.arange(40)}, {"a": np.arange(40) % 20}
    numbers = {"epoch": 0, "batch": 3}
    got = sampler.sample(part, seeds, seed_time=bounds, **numbers).blocks[0][KINDS[2]]
    want = sampler.sample(made.graph, seeds, seed_time=bounds, **numbers).blocks[0][KINDS[2]]
    assert got.edge_ids.tolist() == want.edge_ids.tolist()


def test_rows_that_relations_and_graphs_share() -> None:
    """Each goes by the times of its own vertices, however often the same CSC stands for edges."""
    random = np.random.default_rng(0)
    rows = pgs.Graph.from_coo(*random.integers(0, 50, (2, 900)), num_nodes=50)
    kinds, born = (("a", "r", "b"), ("c", "s", "b")), np.arange(50)
    sampler = pgs.PGSampler([-1], temporal="t", seed=1)
    for given in ((born, born[::-1].copy()), (born[::-1].copy(), born)):
        times = dict(zip(("a", "c"), given, strict=True))
        graph = pgs.HeteroGraph(
            dict.fromkeys(kinds, rows),
            dict.fromkeys("abc", 50),
            node_data={kind: {"t": of} for kind, of in times.items()},
        )
        (blocks,) = sampler.sample(graph, {"b": born}, seed_time=20).blocks
        for kind in kinds:
            block = blocks[kind]
            edges = np.asarray(block.edge_ids)
            src = np.asarray(rows.indices)[np.argsort(np.asarray(rows.edge_ids))][edges]
            assert len(src) > 100
            assert (times[kind[0]][src] <= 20).all()


def test_wrong_calls() -> None:
    made = Made(0, "int64", "int64")
    sampler = pgs.PGSampler([3], temporal="t")
    seeds = {"a": [0, 1], "b": [2]}
    for given, error, text in (
        (None, ValueError, "seed_time: expected a time for each seed with temporal='t', got None"),
        (
            {"a": [1, 2]},
            ValueError,
            r"seed_time\['b'\]: expected a time for each seed with temporal=",
        ),
        ({"a": [1], "b": [1]}, ValueError, r"seed_time\['a'\]: expected a time for each of 2"),
        ({"a": [1, 2], "b": [1], "x": [1]}, ValueError, "seed_time: expected types of the graph"),
        ([1, 2, 3], TypeError, "seed_time: expected a mapping of types to times, or a number"),
        (0.5, TypeError, "seed_time: expected integers"),
    ):
        with pytest.raises(error, match=text):
            sampler.sample(made.graph, seeds, seed_time=given)
    with pytest.raises(ValueError, match="exclude"):
        sampler.sample(made.graph, seeds, seed_time=3, exclude={KINDS[0]: [10**6]})
    with pytest.raises(ValueError, match="which is that of none"):
        pgs.PGSampler([3], temporal="x").sample(made.graph, seeds, seed_time=1)
    with pytest.raises(
        ValueError, match="seed_time: expected None for a sampler without temporal="
    ):
        pgs.PGSampler([3]).sample(made.graph, seeds, seed_time=1)
    mixed = pgs.Graph.from_coo(
        {kind: tuple(ends) for kind, ends in made.ends.items()},
        num_nodes=COUNTS,
        edge_data={KINDS[0]: {"t": np.zeros(120)}, KINDS[1]: {"t": np.zeros(300, np.int64)}},
    )
    with pytest.raises(ValueError, match="all integers, or all floating-point"):
        sampler.sample(mixed, seeds, seed_time=1)


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_a_loader_gives_seeds_their_times(shuffle: bool, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    made = Made(1, dtype, "int64")
    seeds = {"b": torch.arange(25), "a": torch.arange(40)}
    # A vertex's time says which it is.
    bounds = {kind: ids.to(getattr(torch, dtype)) % 20 + 5 for kind, ids in seeds.items()}
    sampler = pgs.PGSampler([3, 2], seed=1, temporal="t")
    loader = DataLoader(
        made.graph, seeds, sampler, batch_size=16, shuffle=shuffle, seed=2, seed_time=bounds
    )
    count = 0
    for number, batch in enumerate(loader):
        own = {kind: ids for kind, ids in batch.output_nodes.items() if len(ids)}
        times = {kind: bounds[kind][ids] for kind, ids in own.items()}
        want = sampler.sample(made.graph, own, seed_time=times, epoch=0, batch=number)
        assert {k: v.tolist() for k, v in batch.input_nodes.items()} == {
            k: v.tolist() for k, v in want.input_nodes.items()
        }
        count += sum(map(len, own.values()))
    assert count == 65
    all_of = [
        [
            batch.input_nodes["a"].tolist()
            for batch in DataLoader(made.graph, seeds, sampler, **more)
        ]
        for more in (
            {"seed_time": 7, "batch_size": 16, "seed": 2},
            {"seed_time": {"a": [7] * 40, "b": 7}, "batch_size": 16, "seed": 2},
        )
    ]
    assert all_of[0] == all_of[1]
    for given, error, text in (
        (True, TypeError, "seed_time.*: expected numbers"),
        ({"a": bounds["a"]}, ValueError, "seed_time: expected times of 'b' too"),
        ({**bounds, "c": bounds["a"]}, ValueError, "seed_time: expected types of the seeds"),
        (bounds["a"], TypeError, "seed_time: expected a mapping of types to times"),
        (
            {**bounds, "a": bounds["b"]},
            ValueError,
            r"seed_time\['a'\]: expected a time for each of 40",
        ),
    ):
        with pytest.raises(error, match=text):
            DataLoader(made.graph, seeds, sampler, batch_size=16, seed_time=given)


def test_dates_beside_times_that_are_none() -> None:
    torch = pytest.importorskip("torch")
    from pygsampler.torch import DataLoader

    made, sampler = Made(1, "int64", "int64"), pgs.PGSampler([3, 2], temporal="n", seed=1)
    at = {"b": np.datetime64("2024-03-01") + np.arange(3)}
    text = r"^seed_time\['b'\]: expected numbers, as the times 'n' are, got datetime64\[D\]"
    for graph in (made.graph, pickle.loads(pickle.dumps(made.graph))):
        with pytest.raises(TypeError, match=text):
            sampler.sample(graph, {"b": [0, 1, 2]}, seed_time=at)
    with pytest.raises(TypeError, match=text):
        DataLoader(made.graph, {"b": torch.arange(3)}, sampler, seed_time=at, batch_size=3)
    first = np.datetime64("2024-02-20")
    ends = {kind: tuple(ends) for kind, ends in made.ends.items()}
    dates = {kind: {"n": first + of} for kind, of in made.of_nodes.items()}
    dated = pgs.Graph.from_coo(ends, num_nodes=COUNTS, node_data=dates)
    for graph in (dated, pickle.loads(pickle.dumps(dated))):
        assert graph._source._time_sorted("n").kind == "M"
        assert len(sampler.sample(graph, {"b": [0, 1, 2]}, seed_time=at).input_nodes["a"])
    (batch,) = DataLoader(dated, {"b": torch.arange(3)}, sampler, seed_time=at, batch_size=3)
    assert len(batch.input_nodes["a"])
    dates["a"] = {"n": made.of_nodes["a"]}
    some = pgs.Graph.from_coo(ends, num_nodes=COUNTS, node_data=dates)
    with pytest.raises(ValueError, match=r"^time: expected arrays 'n' that are all dates, or all"):
        sampler.sample(some, {"b": [0, 1, 2]}, seed_time=3)


def test_spans_beside_times_that_are_numbers() -> None:
    made, day = Made(1, "int64", "int64"), np.timedelta64(1, "D")
    sampler = pgs.PGSampler([3, 2], temporal=Temporal("n", window=day), seed=1)
    for graph in (made.graph, pickle.loads(pickle.dumps(made.graph))):
        with pytest.raises(TypeError, match=r"^window: expected a number, as the times 'n' are"):
            sampler.sample(graph, {"b": [0, 1, 2]}, seed_time={"b": [3, 3, 3]})
    first = np.datetime64("2024-02-20")
    ends = {kind: tuple(ends) for kind, ends in made.ends.items()}
    dates = {kind: {"n": first + of} for kind, of in made.of_nodes.items()}
    dated = pgs.Graph.from_coo(ends, num_nodes=COUNTS, node_data=dates)
    at = {"b": first + np.arange(3) + 9}
    number = pgs.PGSampler(
        [3, 2], temporal=Temporal("n", window=int(day.astype("m8[ns]").astype(int))), seed=1
    )
    one, other = (
        each.sample(dated, {"b": [0, 1, 2]}, seed_time=at, epoch=0, batch=0)
        for each in (sampler, number)
    )
    for kind in one.input_nodes:
        assert one.input_nodes[kind].tolist() == other.input_nodes[kind].tolist()


def test_rows_by_time_go_with_the_graph_that_has_the_times() -> None:
    """A relation may be several graphs', and stays longer than any of them."""
    random = np.random.default_rng(0)
    rows = pgs.Graph.from_coo(*random.integers(0, 50, (2, 900)), num_nodes=50)
    kind, sampler = ("a", "r", "b"), pgs.PGSampler([-1], temporal="t", prob="w", seed=1)
    rows = rows.with_data({"w": random.random(900)})

    def of(times: Any) -> pgs.Graph:
        nodes = dict.fromkeys("ab", 50)
        return pgs.HeteroGraph({kind: rows}, nodes, node_data={"a": {"t": times}})

    born = of(np.arange(50)).ndata["a"]["t"]
    graphs = [of(born), of(born), of(np.arange(50)[::-1].copy())]
    for graph in graphs:
        sampler.sample(graph, {"b": [1, 2, 3]}, seed_time=20)
    known = rows._source._derived["times of nodes",]
    # Two of them have one array of times.
    assert len(known) == 2
    kept = [weakref.ref(graph._source._times["t", None, "w"]._parts[0]) for graph in graphs]
    assert kept[0]() is kept[1]()
    assert kept[0]() is not kept[2]()
    gc.collect()
    gc.disable()
    try:
        graphs.pop(0)
        assert kept[0]() is not None
        job = sampler.submit(graphs[0], {"b": [1, 2, 3]}, seed_time=20)
        graphs.pop(0)
        assert len(job.result().input_nodes["a"])
        del job, graph
        assert kept[0]() is None
        assert len(known) == 1
        graphs.clear()
        assert kept[2]() is None
        assert len(known) == 0
    finally:
        gc.enable()
    again = of(born)
    sampler.sample(again, {"b": [1]}, seed_time=20)
    made = again._source._times["t", None, "w"]._parts[0]
    rows.close()
    with pytest.raises(pgs.errors.ClosedError):
        made.graph._open()
