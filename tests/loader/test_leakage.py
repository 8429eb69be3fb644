"""guard=True and check_no_leakage: what is later than its seed is found, wherever it stands."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler.samplers import Temporal
from pygsampler.torch import DataLoader, LinkLoader

RNG = np.random.default_rng(5)
NODES, EDGES = 60, 900
SEEDS = np.arange(NODES)
WRITES, CITES = ("author", "writes", "paper"), ("paper", "cites", "paper")


def plain(name: str) -> tuple[pgs.Graph, np.ndarray[Any, Any]]:
    """A graph, and the memory of its times, of edges or of nodes."""
    src, dst = np.random.default_rng(1).integers(0, NODES, (2, EDGES))
    of_edges = name == "edges"
    times = np.random.default_rng(2).integers(0, 300, EDGES if of_edges else NODES)
    data: dict[str, Any] = {"edge_data" if of_edges else "node_data": {"t": times}}
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES, **data), times


def typed(name: str) -> tuple[pgs.Graph, dict[Any, np.ndarray[Any, Any]]]:
    random = np.random.default_rng(3)
    edges = {
        WRITES: (random.integers(0, 20, 400), random.integers(0, NODES, 400)),
        CITES: tuple(random.integers(0, NODES, (2, 700))),
        ("paper", "by", "author"): (random.integers(0, NODES, 400), random.integers(0, 20, 400)),
    }
    times: dict[Any, Any]
    if name == "edges":
        times = {kind: random.integers(0, 300, len(edges[kind][0])) for kind in (WRITES, CITES)}
        data = {"edge_data": {kind: {"t": of} for kind, of in times.items()}}
    else:
        times = {"paper": random.integers(0, 300, NODES)}
        data = {"node_data": {kind: {"t": of} for kind, of in times.items()}}
    graph = pgs.Graph.from_coo(edges, num_nodes={"author": 20, "paper": NODES}, **data)
    return graph, times


def bounds(times: Any) -> Any:
    """Of seeds that are no later themselves."""
    return np.maximum(np.full(NODES, 150), times) if len(times) == NODES else np.full(NODES, 150)


RULES = [
    Temporal("t"),
    Temporal("t", strategy="last"),
    Temporal("t", window=40),
    Temporal("t", carry="edge"),
]


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("name", ["edges", "nodes"])
def test_what_is_sampled_by_time_has_no_leak(name: str, rule: Temporal) -> None:
    graph, times = plain(name)
    sampler = pgs.PGSampler([4, 4], temporal=rule, seed=1)
    options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 1}
    options["seed_time"] = bounds(times)
    made = DataLoader(graph, SEEDS, sampler, **options)
    assert made.check_no_leakage() == 4 and made.epoch == 0
    guarded = DataLoader(graph, SEEDS, sampler, **options, guard=True)
    for batch, same in zip(guarded, made, strict=True):
        assert batch.input_nodes.equal(same.input_nodes)
    assert guarded.check_no_leakage() == 4


def test_bounds_that_are_not_inclusive() -> None:
    graph, times = plain("edges")
    rule = Temporal("t", inclusive=False)
    sampler = pgs.PGSampler([-1], temporal=rule, seed=1)
    made = DataLoader(graph, SEEDS, sampler, batch_size=60, seed_time=150, guard=True)
    assert len(list(made)) == 1
    times[times < 150] = 150
    with pytest.raises(ValueError, match="expected times 't' before those of the seeds, got 150 "):
        list(made)


@pytest.mark.parametrize("prefetch", [0, 4])
@pytest.mark.parametrize("name", ["edges", "nodes"])
def test_leaks_of_edges_and_nodes(name: str, prefetch: int) -> None:
    """Rows are in the order of times that have changed meanwhile."""
    graph, times = plain(name)
    sampler = pgs.PGSampler([5, 5], temporal="t", seed=1)
    options: dict[str, Any] = {"batch_size": 16, "prefetch": prefetch, "seed_time": bounds(times)}
    made = DataLoader(graph, SEEDS, sampler, **options, guard=True)
    assert len(list(made)) == 4
    places = np.flatnonzero(times < 150)
    times[places] += 200
    what = f"{'edge' if name == 'edges' else 'node'} \\d+ of ''"
    text = f"batch 0 of epoch 1: expected times 't' no later than .* of {what}, whose seed has"
    with pytest.raises(ValueError, match=text):
        list(made)
    with pytest.raises(ValueError, match=r"batch 0 of epoch 2: .* are later"):
        made.check_no_leakage()


def test_seeds_that_are_later_than_their_own_time() -> None:
    graph, times = plain("nodes")
    seed = int(times.argmax())
    sampler = pgs.PGSampler([2], temporal="t", seed=1)
    made = DataLoader(graph, [seed], sampler, batch_size=1, seed_time=int(times.max()) - 1)
    with pytest.raises(ValueError, match=rf"got {times.max()} of node {seed} of ''"):
        made.check_no_leakage()


@pytest.mark.parametrize("name", ["edges", "nodes"])
def test_leaks_of_each_type(name: str) -> None:
    graph, times = typed(name)
    sampler = pgs.PGSampler([5, 5], temporal="t", seed=1)
    seeds = {"author": np.arange(20), "paper": np.arange(NODES)}
    at = {"author": np.full(20, 120), "paper": np.full(NODES, 299)}
    made = DataLoader(
        graph, seeds, sampler, batch_size=16, shuffle=True, seed=2, seed_time=at, guard=True
    )
    assert len(list(made)) == 5
    for kind, of in times.items():
        kept = of.copy()
        of[of < 120] += 1000
        what = "edge" if name == "edges" else "node"
        with pytest.raises(ValueError) as caught:
            list(made)
        assert f" {what} " in str(caught.value) and repr(kind) in str(caught.value)
        of[:] = kept
    assert len(list(made)) == 5


def test_trees_of_several_types_have_the_bounds_of_their_seeds() -> None:
    """Authors may see later edges than papers: a bound of the wrong seed would be noticed."""
    graph, _ = typed("edges")
    sampler = pgs.PGSampler([-1, -1], temporal="t", seed=1)
    random = np.random.default_rng(7)
    seeds = {"author": np.arange(20), "paper": np.arange(NODES)}
    at = {kind: random.integers(0, 300, len(of)) for kind, of in seeds.items()}
    options: dict[str, Any] = {"batch_size": 7, "shuffle": True, "seed": 2, "seed_time": at}
    assert DataLoader(graph, seeds, sampler, **options).check_no_leakage() == 12


def test_leaks_of_links() -> None:
    graph, times = plain("edges")
    sampler = pgs.PGSampler([4, 4], temporal=Temporal("t", inclusive=False), seed=1)
    places = np.flatnonzero(times > 150)
    options: dict[str, Any] = {"batch_size": 32, "seed_time": times[places], "guard": True}
    made = LinkLoader(graph, places, sampler, **options)
    assert len(list(made)) == len(made)
    times[times < 150] = 299
    with pytest.raises(ValueError, match="expected times 't' before those of the seeds, got 299"):
        list(made)


def test_a_pickled_loader_is_guarded() -> None:
    graph, times = plain("edges")
    sampler = pgs.PGSampler([-1], temporal="t", seed=1)
    made = DataLoader(graph, SEEDS, sampler, batch_size=16, seed_time=150, guard=True)
    assert len(list(made)) == 4
    places = times < 150
    for copied in (pickle.loads(pickle.dumps(made)), copy.copy(made)):
        assert len(list(copied)) == 4 and copied.check_no_leakage() == 4
    times[places] += 200
    with pytest.raises(ValueError, match="expected times 't' no later than"):
        list(copy.copy(made))


def test_dates_and_floats() -> None:
    src, dst = RNG.integers(0, NODES, (2, EDGES))
    days = np.datetime64("2024-01-01") + RNG.integers(0, 100, EDGES)
    for times, bound in ((days, np.datetime64("2024-02-15")), (RNG.random(EDGES), 0.5)):
        graph = pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data={"t": times})
        sampler = pgs.PGSampler([4, 4], temporal="t", seed=1)
        made = DataLoader(graph, SEEDS, sampler, batch_size=16, seed_time=bound, guard=True)
        assert len(list(made)) == made.check_no_leakage() == 4


def labeled(name: str) -> tuple[pgs.Graph, Any, Any, Any]:
    """A graph, its seeds, their times, and what makes values of them one of a graph's types."""
    if name == "plain":
        return plain("edges")[0], SEEDS, np.full(NODES, 150), lambda values: values
    graph, _ = typed("edges")
    seeds = {"paper": SEEDS, "author": np.arange(20)}
    at = {"paper": np.full(NODES, 150), "author": np.full(20, 150)}
    return graph, seeds, at, lambda values: {"paper": values}


@pytest.mark.parametrize("name", ["plain", "typed"])
def test_labels_that_are_known_too_soon(name: str) -> None:
    graph, seeds, at, of_type = labeled(name)
    labels, known = np.arange(NODES) % 5, np.full(NODES, 151)
    options: dict[str, Any] = {"batch_size": 16, "shuffle": True, "seed": 1, "seed_time": at}
    options |= {"labels": of_type(labels), "label_time": of_type(known)}
    sampler = pgs.PGSampler([4, 4], temporal="t", seed=1)
    made = DataLoader(graph, seeds, sampler, **options, guard=True)
    other = DataLoader(graph, seeds, sampler, **options)
    assert len(list(made)) == other.check_no_leakage() == len(made)
    known[37] = 150
    kind = "" if name == "plain" else "paper"
    text = f"got 150 of the label of node 37 of '{kind}', whose seed has 150; 1 are known by then"
    for loader in (made, copy.copy(made), pickle.loads(pickle.dumps(made))):
        with pytest.raises(ValueError, match=f"expected labels that are known after .*{text}"):
            list(loader)
    with pytest.raises(ValueError, match=text):
        other.check_no_leakage()
    # A node that is no seed has no label in a batch.
    rest = of_type(np.delete(SEEDS, 37))
    options["seed_time"] = 150
    assert len(list(DataLoader(graph, rest, sampler, **options, guard=True))) == 4


@pytest.mark.parametrize("name", ["plain", "typed"])
@pytest.mark.parametrize("place", [0, 3])
def test_features_that_are_the_labels(name: str, place: int) -> None:
    """The last column is the label: a batch has it of each of its nodes, and so of its seeds."""
    graph, seeds, at, of_type = labeled(name)
    labels = np.arange(NODES) % 5
    x = np.random.default_rng(0).random((NODES, 4)).astype(np.float32)
    options: dict[str, Any] = {"batch_size": 16, "seed_time": at, "labels": of_type(labels)}
    options["features"] = {"x": of_type(x), "z": of_type(x.copy())}
    sampler = pgs.PGSampler([4, 4], temporal="t", seed=1)
    later = DataLoader(graph, seeds, sampler, **options)
    assert later.check_no_leakage() == len(later)
    DataLoader(graph, seeds, sampler, **options, guard=True)
    x[:, place] = labels
    where = "features\\['x'\\]" + ("" if name == "plain" else "\\['paper'\\]")
    text = f"{where}: expected features that do not tell the labels, got column {place}"
    with pytest.raises(ValueError, match=text):
        DataLoader(graph, seeds, sampler, **options, guard=True)
    with pytest.raises(ValueError, match=f"{text}, which is column 0 of labels at 60 seeds"):
        later.check_no_leakage()
    # One seed with another value is enough to be something else.
    x[11, place] += 1
    assert later.check_no_leakage() == len(later)


def test_labels_that_tell_nothing_or_are_few() -> None:
    graph, _ = plain("edges")
    sampler = pgs.PGSampler([4], temporal="t", seed=1)
    labels = np.arange(NODES, dtype=np.float32)
    options: dict[str, Any] = {"batch_size": 16, "seed_time": 150, "guard": True}
    # The same of all, as a constant column is.
    ones = np.ones(NODES)
    DataLoader(graph, SEEDS, sampler, **options, labels=ones, features={"x": ones})
    # Of 31 seeds a column may be equal by chance; NaN is no label.
    DataLoader(graph, SEEDS[:31], sampler, **options, labels=labels, features={"x": labels})
    missing = labels.copy()
    missing[31:] = np.nan
    DataLoader(graph, SEEDS, sampler, **options, labels=missing, features={"x": labels})
    missing[31] = 31
    with pytest.raises(ValueError, match="got column 0, which is column 0 of labels at 32 seeds"):
        DataLoader(graph, SEEDS, sampler, **options, labels=missing, features={"x": labels})
    both = np.stack([ones, labels], 1)
    with pytest.raises(ValueError, match="got column 0, which is column 1 of labels at 60 seeds"):
        DataLoader(graph, SEEDS, sampler, **options, labels=both, features={"x": labels})


def test_labels_of_many_seeds_are_compared_at_some() -> None:
    count = 10_000
    times = np.zeros(count, np.int64)
    graph = pgs.Graph.from_coo(
        np.arange(count), np.arange(count)[::-1].copy(), num_nodes=count, edge_data={"t": times}
    )
    labels = np.repeat(np.arange(2), count // 2)
    sampler = pgs.PGSampler([2], temporal="t", seed=1)
    options: dict[str, Any] = {"batch_size": 5000, "seed_time": 5, "guard": True}
    x = {"x": np.stack([labels, np.arange(count)], 1)}
    with pytest.raises(ValueError, match="got column 0, which is column 0 of labels at 4096 seeds"):
        DataLoader(graph, np.arange(count), sampler, **options, labels=labels, features=x)
    other = {"x": 1 - labels}
    DataLoader(graph, np.arange(count), sampler, **options, labels=labels, features=other)


def test_wrong_times_of_labels() -> None:
    graph, _ = plain("edges")
    timed = pgs.PGSampler([4], temporal="t", seed=1)
    given: Any
    for sampler, more, text in (
        (timed, {"label_time": 5}, "label_time: expected None without labels="),
        ([4], {"label_time": 5, "labels": SEEDS}, "label_time: expected None for a sampler with"),
        (timed, {"label_time": [5], "labels": SEEDS}, "label_time: expected a time for each of 60"),
    ):
        at = {"seed_time": 150} if sampler is timed else {}
        with pytest.raises(ValueError, match=text):
            DataLoader(graph, SEEDS, sampler, batch_size=16, **at, **more)
    hetero, _ = typed("edges")
    options: dict[str, Any] = {"batch_size": 16, "seed_time": 150, "labels": {"paper": SEEDS}}
    for given, error, text in (
        (SEEDS, TypeError, "label_time: expected a mapping of types to times"),
        ({"author": 5}, ValueError, "label_time: .*'author'"),
    ):
        with pytest.raises(error, match=text):
            DataLoader(hetero, {"paper": SEEDS}, timed, **options, label_time=given)
    made = DataLoader(hetero, {"paper": SEEDS}, timed, **options, label_time=151)
    assert made.check_no_leakage() == 4


def test_mistakes() -> None:
    graph, _ = plain("edges")
    options: dict[str, Any] = {"batch_size": 16}
    with pytest.raises(ValueError, match="guard: expected a sampler with temporal=, got PGSampler"):
        DataLoader(graph, SEEDS, [2], **options, guard=True)
    with pytest.raises(ValueError, match="check_no_leakage: expected a sampler with temporal="):
        DataLoader(graph, SEEDS, [2], **options).check_no_leakage()
    rows = pgs.samplers.context(budget=8, time="t", seed=1)
    for where, guard in (("guard", True), ("check_no_leakage", False)):
        text = f"{where}: expected a sampler whose batches are blocks, got .* batches are contexts"
        with pytest.raises(ValueError, match=text):
            DataLoader(graph, SEEDS, rows, **options, seed_time=150, guard=guard).check_no_leakage()
    with pytest.raises(TypeError, match="guard: expected True or False"):
        loader: Any = DataLoader
        loader(graph, SEEDS, [2], **options, guard=1)
