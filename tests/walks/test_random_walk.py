"""``RandomWalk``: what others got wrong, wrong input, and what every sampler can.

The laws are in tests/statistics/walks.py, and each walk's bytes in test_reference.py.
"""

from __future__ import annotations

import copy
import gc
import json
import pickle
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
import reference
import torch
from graphs import circulant
from interrupts import at_every_moment
from walk_graphs import Shape, of_rows, shapes

import pygsampler as pgs
from pygsampler._engine import library
from pygsampler.torch import DataLoader

SHAPE = shapes()["ids"]
MAKERS = {
    "walk": lambda **how: pgs.RandomWalk(7, **how),
    "deep": lambda **how: pgs.walks.DeepWalk(9, walks_per_seed=3, prob="w", **how),
    "node2vec": lambda **how: pgs.walks.Node2Vec(5, p=0.5, q=2.0, direction="in", **how),
    "ppr": lambda **how: pgs.walks.PersonalizedPageRank(0.2, walks_per_seed=2, length=6, **how),
    "typed": lambda **how: pgs.RandomWalk(6, metapath=[0, 2], edge_types="t", **how),
    "jumps": lambda **how: pgs.RandomWalk(
        6, restart=0.25, count_jumps=True, edge_ids=True, stop=0.125, **how
    ),
}


@pytest.fixture
def graph() -> pgs.Graph:
    return SHAPE.graph()


def lists(walks: Any) -> Any:
    return walks.nodes.tolist(), walks.edge_ids.tolist(), walks.lengths.tolist()


# ---- what others got wrong -------------------------------------------------------------------


def ring(length: int, ways: int = 1) -> Shape:
    """Vertex v leads to v + 1, by so many edges."""
    return of_rows([[(v - 1) % length] * ways for v in range(length)], length)


def test_a_row_is_a_walk_and_not_a_step() -> None:
    """Memory is step by step: read the other way, walks would jump."""
    found = pgs.RandomWalk(4, walks_per_seed=2, edge_ids=True).sample(ring(10).graph(), [0, 5, 7])
    assert found.nodes.tolist() == [
        [(root + step) % 10 for step in range(5)] for root in (0, 0, 5, 5, 7, 7)
    ]
    # The edge into v has number v.
    np.testing.assert_array_equal(found.edge_ids.numpy(), found.nodes.numpy()[:, 1:])
    assert found.per_step().tolist() == np.transpose(found.nodes.numpy()).tolist()


def test_a_length_counts_steps() -> None:
    """And not vertices, as the authors of node2vec and PyG do."""
    for length in (0, 1, 5):
        found = pgs.walks.Node2Vec(length, p=0.5, walks_per_seed=1).sample(ring(9).graph(), [3])
        assert found.nodes.shape == (1, length + 1) and found.edge_ids.shape == (1, length)
        assert found.lengths.tolist() == [length]


def test_the_first_step_may_be_none() -> None:
    found = pgs.RandomWalk(3, stop=1.0).sample(ring(9).graph(), [3, 4])
    assert found.nodes.tolist() == [[3, -1, -1, -1], [4, -1, -1, -1]]
    assert found.lengths.tolist() == [0, 0]


# Seeds whose walk 0 has a draw at its first step with 26 ones on top: as a number of 32 bits it
# would round to 1, which is below no chance, and beyond the last place of a row.
ROUNDS_UP = {"place": 33219513, "stop": 195903361, "restart": 176373502}


@pytest.mark.parametrize("which", list(ROUNDS_UP))
def test_no_draw_rounds_up_to_one(which: str) -> None:
    seed = ROUNDS_UP[which]
    x = reference.splitmix64(
        reference.row_state(seed, 0, 0, 0, 0, reference.WALKS) + reference.GAMMA & reference.MASK64
    )
    place = {"place": None, "stop": 0, "restart": 1}[which]
    if place is not None:
        x = reference.splitmix64(x + (place + 1) * reference.GAMMA & reference.MASK64)
    assert x >> 38 == (1 << 26) - 1
    assert np.float32(x) * np.float32(2.0**-64) == 1
    shape = ring(6, ways=5)
    numbers = {"epoch": 0, "batch": 0}
    if which == "place":
        sampler = pgs.RandomWalk(1, edge_ids=True, seed=seed)
        # Vertex 2 leads to 3, whose last in-edge is number 19.
        assert sampler.sample(shape.graph(), [2], **numbers).edge_ids.tolist() == [[19]]
        weighted = pgs.RandomWalk(1, direction="in", prob="w", edge_ids=True, seed=seed)
        shape.weights = [1.0] * 30
        assert weighted.sample(shape.graph(), [2], **numbers).edge_ids.tolist() == [[14]]
    elif which == "stop":
        sampler = pgs.RandomWalk(4, stop=1.0, seed=seed)
        assert sampler.sample(shape.graph(), [2], **numbers).lengths.tolist() == [0]
    else:
        sampler = pgs.RandomWalk(4, restart=1.0, count_jumps=True, seed=seed)
        assert sampler.sample(shape.graph(), [2], **numbers).nodes.tolist() == [[2] * 5]


def test_going_back_is_no_edge() -> None:
    shape = ring(50)
    found = pgs.RandomWalk(60, restart=0.3, edge_ids=True, seed=1).sample(shape.graph(), [7] * 50)
    nodes, edges = found.nodes.numpy(), found.edge_ids.numpy()
    # Every step takes an edge, of where the walk is or of its seed.
    assert (edges == nodes[:, 1:]).all()
    assert set(np.unique((nodes[:, 1:] - nodes[:, :-1]) % 50)) > {1}
    counted = pgs.RandomWalk(60, restart=0.3, count_jumps=True, edge_ids=True, seed=1)
    found = counted.sample(shape.graph(), [7] * 50)
    nodes, edges = found.nodes.numpy(), found.edge_ids.numpy()
    back = edges == -1
    assert 0.2 < back.mean() < 0.4
    assert (nodes[:, 1:][back] == 7).all()
    assert (nodes[:, 1:][~back] == (nodes[:, :-1][~back] + 1) % 50).all()


def test_an_edge_back_is_told_by_its_vertex() -> None:
    """Where p forbids it, no walk goes back, whatever the places and numbers of edges are."""
    rows = [[u for u in range(12) if u != v] for v in range(12)]
    shape = of_rows(rows, 12, "mixed")
    found = pgs.walks.Node2Vec(30, p=1e60, q=1.0, walks_per_seed=20, seed=3)
    nodes = found.sample(shape.graph(), range(12)).nodes.numpy()
    assert (nodes[:, 2:] != nodes[:, :-2]).all()


def test_an_edge_that_is_refused_is_not_tried_as_another() -> None:
    """Where p and q leave common neighbours alone, walks stay in their clique."""
    clique = range(6)
    rows = [[u for u in clique if u != v] + [6 + v] for v in clique] + [[v] for v in clique]
    sampler = pgs.walks.Node2Vec(40, p=1e60, q=1e60, walks_per_seed=30, seed=3)
    nodes = sampler.sample(of_rows(rows, 12).graph(), list(clique)).nodes.numpy()
    # The first step knows no vertex before it; from a leaf the only way is back.
    inside = nodes[nodes[:, 1] < 6]
    assert len(inside) > 100 and (inside < 6).all()


def test_without_an_edge_of_its_type_a_walk_ends() -> None:
    shape = ring(6)
    shape.types = [0, 0, 1, 0, 0, 0]  # of the edge into v
    sampler = pgs.RandomWalk(5, metapath=[0, 1], edge_types="t")
    found = sampler.sample(shape.graph(), [0, 1, 3])
    assert found.nodes.tolist() == [
        [0, 1, 2, 3, -1, -1],
        [1, -1, -1, -1, -1, -1],
        [3, 4, -1, -1, -1, -1],
    ]


def test_walks_end_where_there_is_no_edge() -> None:
    shape = of_rows([[], [0], [1]], 6)
    found = pgs.RandomWalk(4).sample(shape.graph(), [0, 2, 5])
    assert found.nodes.tolist() == [[0, 1, 2, -1, -1], [2, -1, -1, -1, -1], [5, -1, -1, -1, -1]]
    # With restarts a walk goes back, unless it is where it began.
    back = pgs.RandomWalk(4, restart=1e-300).sample(shape.graph(), [0, 5])
    assert back.nodes.tolist() == [[0, 1, 2, 1, 2], [5, -1, -1, -1, -1]]
    jumps = pgs.RandomWalk(4, restart=1e-300, count_jumps=True, edge_ids=True)
    found = jumps.sample(shape.graph(), [0])
    assert found.nodes.tolist() == [[0, 1, 2, 0, 1]] and found.edge_ids.tolist() == [[0, 1, -1, 0]]


# ---- wrong input -----------------------------------------------------------------------------

HUGE = 10**30


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"length": -1}, ValueError, "length: expected .* got -1"),
        ({"length": (1 << 20) + 1}, ValueError, "length: expected .* got 1048577"),
        ({"length": HUGE}, ValueError, "length: expected"),
        ({"length": 2.5}, TypeError, "length: expected an integer"),
        ({"length": None}, TypeError, "length: expected"),
        ({"length": True}, TypeError, "length: expected"),
        ({"stop": -0.1}, ValueError, r"stop: expected .* in \[0, 1\], got -0.1"),
        ({"stop": 1.1}, ValueError, "stop: expected .* got 1.1"),
        ({"stop": float("nan")}, (TypeError, ValueError), "stop: expected .* got .*nan"),
        ({"stop": "0.1"}, TypeError, "stop: expected"),
        ({"stop": [0.1, 0.2]}, TypeError, "stop: expected"),
        ({"restart": -1}, ValueError, "restart: expected .* got -1"),
        ({"restart": float("inf")}, (TypeError, ValueError), "restart: expected .* got .*inf"),
        ({"p": 0}, ValueError, "p: expected .* above 0.* got 0"),
        ({"p": -1.0}, ValueError, "p: expected .* got -1"),
        ({"p": float("nan")}, (TypeError, ValueError), "p: expected .* got .*nan"),
        ({"q": 0.0}, ValueError, "q: expected .* above 0.* got 0"),
        ({"q": 1e200}, ValueError, r"q: expected .* got 1e\+200"),
        ({"q": float("inf")}, (TypeError, ValueError), "q: expected"),
        ({"metapath": [0]}, ValueError, "metapath, edge_types: expected both or neither"),
        ({"edge_types": "t"}, ValueError, "metapath, edge_types: expected both or neither"),
        ({"metapath": [], "edge_types": "t"}, ValueError, "metapath: expected"),
        ({"metapath": [0] * 65, "edge_types": "t"}, ValueError, "metapath: expected"),
        ({"metapath": [-1], "edge_types": "t"}, ValueError, r"metapath\[0\]: expected .* got -1"),
        ({"metapath": ["a"], "edge_types": "t"}, TypeError, r"metapath\[0\]: expected"),
        ({"metapath": 3, "edge_types": "t"}, TypeError, "metapath: expected"),
        ({"edge_types": 3, "metapath": [0]}, TypeError, "edge_types: expected"),
        ({"direction": "both"}, ValueError, "direction: expected .*'out'.* got .*'both'"),
        ({"walks_per_seed": 0}, ValueError, "walks_per_seed: expected .* got 0"),
        ({"walks_per_seed": 2.0}, TypeError, "walks_per_seed: expected"),
        ({"count_jumps": True}, ValueError, "count_jumps: expected False without restart"),
        ({"count_jumps": 1, "restart": 0.5}, TypeError, "count_jumps: expected"),
        ({"edge_ids": "yes"}, TypeError, "edge_ids: expected"),
        (
            {"mode_options": {"layout": "rows"}},
            ValueError,
            r"mode_options\['layout'\]: expected .* got .*'rows'",
        ),
        (
            {"mode_options": {"layuot": "csr"}},
            ValueError,
            "mode_options: expected 'layout' and 'execution', got str 'layuot'",
        ),
        ({"mode_options": "csr"}, TypeError, "mode_options: expected a mapping, got "),
        ({"prob": 3}, TypeError, "prob: expected"),
        ({"seed": "a"}, TypeError, "seed: expected"),
        ({"seed": 1 << 64}, ValueError, "seed: expected"),
    ],
)
def test_what_is_no_walk(options: dict[str, Any], error: Any, text: str) -> None:
    given = {"length": 3, **options}
    with pytest.raises(error, match=text):
        pgs.RandomWalk(given.pop("length"), **given)


@pytest.mark.parametrize(
    ("seeds", "error", "text"),
    [
        ([0, 40], IndexError, r"seeds\[1\]: expected .* \[0, 40\), got 40"),
        ([-1], IndexError, r"seeds\[0\]: expected .* got -1"),
        ([1 << 40], IndexError, r"seeds\[0\]: expected"),
        ([0.5], TypeError, r"seeds\[0\]: expected an integer"),
        (np.zeros((2, 2), np.int64), ValueError, "seeds: expected"),
        (None, TypeError, "seeds: expected"),
    ],
)
def test_seeds_that_are_none(graph: pgs.Graph, seeds: Any, error: Any, text: str) -> None:
    sampler = pgs.RandomWalk(3, seed=1)
    with pytest.raises(error, match=text):
        sampler.sample(graph, seeds)
    assert sampler.sample(graph, [0, 39], batch=0).lengths.shape == (2,)


def test_which_set_of_seeds_is_wrong(graph: pgs.Graph) -> None:
    with pytest.raises(IndexError, match=r"seeds\[1\]\[2\]: expected .* got 77"):
        pgs.RandomWalk(3).sample_many(graph, [[1], [0, 1, 77], [2]])


def test_arrays_that_are_not_there() -> None:
    bare = pgs.Graph.from_csc([0, 2, 3], [0, 1, 0])
    for options, name in (
        ({"prob": "w"}, "w"),
        ({"metapath": [0], "edge_types": "kind"}, "kind"),
        ({"prob": "w", "p": 2.0}, "w"),
    ):
        with pytest.raises((KeyError, ValueError), match=name):
            pgs.RandomWalk(3, **options).sample(bare, [0])
    with pytest.raises(ValueError, match=r"w.*\[1\]"):
        wrong = bare.with_data(edge_data={"w": [1.0, -2.0, 1.0]})
        pgs.RandomWalk(3, prob="w").sample(wrong, [0])
    with pytest.raises(ValueError, match=r"t.*\[2\]"):
        typed = bare.with_data(edge_data={"t": [0, 1, -1]})
        pgs.RandomWalk(3, metapath=[0], edge_types="t").sample(typed, [0])
    with pytest.raises(TypeError, match="t"):
        typed = bare.with_data(edge_data={"t": [0.0, 1.0, 1.0]})
        pgs.RandomWalk(3, metapath=[0], edge_types="t").sample(typed, [0])


def test_types_that_no_edge_has(graph: pgs.Graph) -> None:
    sampler = pgs.RandomWalk(3, metapath=[0, 3], edge_types="t")
    with pytest.raises(ValueError, match=r"metapath\[1\]: expected a type of edges below 3, got 3"):
        sampler.sample(graph, [0])


def test_what_cannot_be_excluded(graph: pgs.Graph) -> None:
    with pytest.raises(NotImplementedError, match="exclude: expected None for walks"):
        pgs.RandomWalk(3).sample(graph, [0], exclude=[1])


def test_graphs_that_are_closed_or_none(graph: pgs.Graph) -> None:
    for options in ({}, {"prob": "w"}, {"p": 2.0}, {"direction": "in"}):
        sampler, here = pgs.RandomWalk(3, **options), SHAPE.graph()
        sampler.sample(here, [0])
        here.close()
        with pytest.raises(pgs.errors.ClosedError):
            sampler.sample(here, [0])
    with pytest.raises(TypeError, match=r"graph: expected a pygsampler\.Graph"):
        pgs.RandomWalk(3).sample([[0]], [0])  # type: ignore[arg-type]


def test_more_than_there_is_memory_for(graph: pgs.Graph) -> None:
    sampler = pgs.RandomWalk(1 << 20, walks_per_seed=(1 << 31) - 1)
    with pytest.raises((MemoryError, OverflowError)):
        sampler.sample(graph, [0] * 40)
    assert len(pgs.RandomWalk(2).sample(graph, [0])) == 1


def test_no_seeds(graph: pgs.Graph) -> None:
    for options in ({}, {"p": 2.0}, {"walks_per_seed": 5}):
        found = pgs.RandomWalk(4, **options).sample(graph, [])
        assert len(found) == 0 and found.nodes.shape == (0, 5) and found.edge_ids.shape == (0, 4)
        assert found.nodes.numpy().shape == (0, 5) and found.torch().nodes.shape == (0, 5)


# ---- what every sampler can ------------------------------------------------------------------


@pytest.mark.parametrize("name", list(MAKERS))
def test_pickles_go_on_counting(name: str, graph: pgs.Graph) -> None:
    sampler = MAKERS[name](seed=4)
    sampler.set_epoch(3)
    sampler.sample(graph, [1, 2])
    for again in (pickle.loads(pickle.dumps(sampler)), copy.deepcopy(sampler)):
        assert repr(again) == repr(sampler) and again.plan == sampler.plan
        assert hash(again.plan) == hash(sampler.plan)
        assert (again.epoch, again.seed) == (3, 4)
        here = sampler.sample(graph, [1, 2], epoch=3, batch=1)
        there = again.sample(graph, [1, 2])
        assert (there.epoch, there.batch) == (3, 1) and lists(there) == lists(here)


@pytest.mark.parametrize("name", list(MAKERS))
def test_another_seed(name: str, graph: pgs.Graph) -> None:
    one, two = MAKERS[name](seed=4), MAKERS[name](seed=5)
    other = one.with_seed(5)
    assert other.plan == one.plan and other.seed == 5 and type(other) is type(one)
    seeds = range(40)
    assert lists(other.sample(graph, seeds)) == lists(two.sample(graph, seeds))
    assert lists(one.sample(graph, seeds)) != lists(two.sample(graph, seeds))


@pytest.mark.parametrize("name", list(MAKERS))
def test_a_seed_of_nobodys(name: str) -> None:
    """``with_seed(None)`` has the process's, as that of all samplers does."""
    one = MAKERS[name](seed=4)
    other = one.with_seed(None)
    assert other.seed == pgs.PGSampler([2], seed=4).with_seed(None).seed != 4
    assert other._numbers.is_drawn and not one.with_seed(4)._numbers.is_drawn


def test_a_part_of_a_gpu_changes_nothing_here(graph: pgs.Graph) -> None:
    sampler = MAKERS["jumps"](seed=4)
    part = sampler.with_gpu_share(0.25)
    assert lists(part.sample(graph, range(40))) == lists(sampler.sample(graph, range(40)))


def test_functions_of_papers_return_random_walks(graph: pgs.Graph) -> None:
    pairs = [
        (pgs.walks.DeepWalk(seed=1), pgs.RandomWalk(79, walks_per_seed=10, seed=1)),
        (pgs.walks.Node2Vec(p=0.5, seed=1), pgs.RandomWalk(79, p=0.5, walks_per_seed=10, seed=1)),
        (pgs.walks.PersonalizedPageRank(seed=1), pgs.RandomWalk(80, stop=0.15, seed=1)),
        (pgs.walks.MultiRW(1, 9, seed=1), pgs.RandomWalk(9, num_roots=1, seed=1)),
    ]
    for named, walk in pairs:
        assert named.plan == walk.plan
        assert type(named) is pgs.RandomWalk and repr(named) == repr(walk)
        here, there = named.sample(graph, [3]), walk.sample(graph, [3])
        assert here.nodes.tolist() == there.nodes.tolist()


def test_repr_is_how_it_is_written() -> None:
    assert repr(pgs.RandomWalk(5, seed=1)) == "RandomWalk(length=5, seed=1)"
    for make in MAKERS.values():
        sampler = make(seed=4)
        again = eval(repr(sampler), vars(pgs))
        assert again.plan == sampler.plan and again.seed == 4


def test_options_have_their_usual_values() -> None:
    sampler = pgs.RandomWalk(5)
    assert (sampler.length, sampler.walks_per_seed, sampler.edge_array) == (5, 1, None)
    assert pgs.walks.DeepWalk(prob="w").edge_array == ("prob", "w")
    assert sampler.plan == pgs.RandomWalk(5, p=1, q=1.0, direction="out").plan
    assert sampler.plan != pgs.RandomWalk(5, direction="in").plan


def test_one_sampler_from_many_threads(graph: pgs.Graph) -> None:
    sampler = MAKERS["node2vec"](seed=4)
    want = [lists(sampler.sample(graph, range(40), batch=number)) for number in range(8)]
    found: list[Any] = [None] * 8

    def work(number: int) -> None:
        found[number] = lists(sampler.sample(graph, range(40), batch=number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == want


# ---- the loader ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(MAKERS))
def test_the_loader_has_the_samplers_walks(name: str, graph: pgs.Graph) -> None:
    sampler, seeds = MAKERS[name](seed=4), torch.arange(40)
    for prefetch in (0, 1, 4):
        loader = DataLoader(graph, seeds, sampler, batch_size=16, prefetch=prefetch)
        for epoch in range(2):
            for number, got in enumerate(loader):
                chosen = seeds[16 * number : 16 * number + 16]
                want = sampler.sample(graph, chosen, epoch=epoch, batch=number)
                assert got.form == "torch"
                assert (got.epoch, got.batch) == (epoch, number)
                assert lists(got) == lists(want)
            assert number == 2 == len(loader) - 1


def test_ranks_walk_from_their_seeds(graph: pgs.Graph) -> None:
    """All seeds once, and walks of the same seed differ from epoch to epoch."""
    sampler = pgs.walks.DeepWalk(8, walks_per_seed=2, seed=4)
    for epoch in range(2):
        found = []
        for rank in range(3):
            loader = DataLoader(
                graph, range(40), sampler, batch_size=5, shuffle=True, rank=rank, world_size=3
            )
            loader.set_epoch(epoch)
            numbers = set()
            for got in loader:
                numbers.add(got.batch)
                found += got.nodes[::2, 0].tolist()
                order = got.nodes[::2, 0].tolist()
                want = sampler.sample(graph, order, epoch=epoch, batch=got.batch)
                assert got.nodes.tolist() == want.nodes.tolist()
            assert {number % 3 for number in numbers} == {rank}
        assert sorted(found) == list(range(40))


def test_a_loader_of_walks_may_be_pickled(graph: pgs.Graph) -> None:
    loader = DataLoader(graph, range(40), MAKERS["jumps"](seed=4), batch_size=16, shuffle=True)
    again = pickle.loads(pickle.dumps(loader))
    assert [lists(one) for one in again] == [lists(one) for one in loader]


# ---- Ctrl-C ----------------------------------------------------------------------------------


def held() -> tuple[int, int]:
    stats = json.loads(library.call("MemoryStats"))
    return stats["jobs"], stats["live"]


@pytest.mark.usefixtures("no_collections")
@pytest.mark.parametrize("second", [False, True])
def test_ctrl_c_ends_a_long_call(second: bool) -> None:
    graph = circulant(20_000, 8)
    sampler = pgs.RandomWalk(1000, q=2.0 if second else 1.0, seed=1)
    seeds = np.arange(20_000)
    sampler.sample(graph, seeds[:10])
    gc.collect()
    before = held()

    def press() -> None:
        time.sleep(0.3)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        while True:
            sampler.sample(graph, seeds)
    assert time.monotonic() - start < 30
    thread.join()
    gc.collect()
    assert held() == before
    assert sampler.sample(graph, [0]).lengths.tolist() == [1000]


def test_ctrl_c_at_every_moment(graph: pgs.Graph) -> None:
    sampler = MAKERS["deep"](seed=4)
    want = lists(sampler.sample(graph, range(40), batch=2))
    kinds = {
        "sample": lambda: sampler.sample(graph, range(40)),
        "submit": lambda: sampler.submit(graph, range(40)).result(),
        "many": lambda: sampler.sample_many(graph, [[1, 2], [3]]),
        "edges": lambda: sampler.sample(graph, range(40)).edge_ids,
    }
    for name, work in kinds.items():
        work()
        gc.collect()
        before = held()
        for moment in at_every_moment(work):
            if held() != before:
                gc.collect()
            assert held() == before, (name, moment)
        assert moment > 5
    assert lists(sampler.sample(graph, range(40), batch=2)) == want


def test_packed_edges_change_no_walk(graph: pgs.Graph) -> None:
    seeds = np.arange(graph.num_nodes)
    plain, packed = (
        pgs.RandomWalk(12, mode_options={"layout": layout}, edge_ids=True, seed=3)
        .sample(graph, seeds)
        .numpy()
        for layout in ("csr", "packed")
    )
    assert (plain.nodes == packed.nodes).all() and (plain.edge_ids == packed.edge_ids).all()
    assert (plain.lengths == packed.lengths).all()
