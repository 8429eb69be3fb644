"""Contexts of fixed length: by hand, by the rule in NumPy, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from context_graphs import NAMES, ContextGraph, assert_equal_contexts, assert_same
from partners import partner

import pygsampler as pgs
from pygsampler.samplers import Contexts, Temporal, context
from tests.support.assertions import assert_equal

SALES, OF = ("sale", "of", "customer"), ("customer", "rev_of", "sale")
WHAT = ("article", "rev_what", "sale")
SOLD = ("sale", "what", "article")


def shop(ids: str = "int64") -> pgs.Graph:
    """Customers 0 and 1, articles 0 and 1, and sales:

    sale     0  1  2  3  4
    customer 0  0  0  1  1
    article  0  1  0  0  1
    day      1  3  3  2  5
    """
    sale = np.arange(5, dtype=ids)
    customer, article = np.array([0, 0, 0, 1, 1], ids), np.array([0, 1, 0, 0, 1], ids)
    return pgs.Graph.from_coo(
        {
            SALES: (sale, customer),
            OF: (customer, sale),
            WHAT: (article, sale),
            SOLD: (sale, article),
        },
        num_nodes={"customer": 2, "article": 2, "sale": 5},
        node_data={
            "sale": {"day": np.array([1, 3, 3, 2, 5]), "price": np.arange(5.0)},
            "customer": {"age": np.array([30, 40])},
        },
    )


def rows(contexts: Any, seed: int = 0) -> list[tuple[Any, ...]]:
    """Of a context each row: its type and node, its hop, and the place of its parent."""
    found = contexts.numpy()
    kinds = contexts.node_types
    return [
        (
            *(() if kinds is None else (kinds[found.types[seed, i]],)),
            *(int(array[seed, i]) for array in (found.nodes, found.hops, found.parents)),
        )
        for i in range(found.lengths[seed])
    ]


def test_context_by_hand_is_breadth_first_and_latest_first() -> None:
    # Customer 0 at day 3: its sales 2, 1 (both of day 3, the later one of the row first), 0; then
    # their articles 0 (of sale 2) and 1; then the only other sale not after day 3.
    found = context(budget=8, time="day").sample(shop(), {"customer": [0]}, seed_time=3)
    assert rows(found) == [
        ("customer", 0, 0, -1),
        ("sale", 2, 1, 0),
        ("sale", 1, 1, 0),
        ("sale", 0, 1, 0),
        ("article", 0, 2, 1),
        ("article", 1, 2, 2),
        ("sale", 3, 3, 4),
        ("customer", 1, 4, 6),
    ]
    arrays = found.numpy()
    assert arrays.mask.dtype == bool and arrays.nodes.dtype == np.int64
    assert arrays.mask.tolist() == [[True] * 8] and arrays.cells is None


def test_context_by_hand_has_nothing_that_is_later_than_its_seed() -> None:
    graph = shop()
    found = context(budget=8, time="day").sample(graph, {"customer": [0, 0]}, seed_time=[1, 0])
    assert rows(found) == [("customer", 0, 0, -1), ("sale", 0, 1, 0), ("article", 0, 2, 1)]
    assert rows(found, 1) == [("customer", 0, 0, -1)]
    arrays = found.numpy()
    assert arrays.nodes[1].tolist() == [0] + [-1] * 7
    for name in ("types", "hops", "parents"):
        assert getattr(arrays, name)[1, 1:].tolist() == [-1] * 7
    strict = context(budget=8, time=Temporal("day", inclusive=False))
    assert len(rows(strict.sample(graph, {"customer": [0]}, seed_time=1))) == 1
    recent = context(budget=4, time=Temporal("day", window=1), width=None)
    assert rows(recent.sample(graph, {"customer": [0]}, seed_time=3))[:3] == [
        ("customer", 0, 0, -1),
        ("sale", 2, 1, 0),
        ("sale", 1, 1, 0),
    ]
    assert "sale" not in {
        row[0] for row in rows(recent.sample(graph, {"customer": [0]}, seed_time=9))
    }


def test_many_contexts_are_those_of_sample() -> None:
    graph, sampler = shop(), context(budget=6, time="day")
    sets = [{"customer": [0, 1]}, {"sale": [4]}, {"customer": [1], "article": [0]}]
    times = [{"customer": [3, 1]}, 5, {"customer": 2, "article": [4]}]
    many = sampler.sample_many(graph, sets, seed_time=times, epoch=1, batch=4)
    for number, found in enumerate(many):
        want = sampler.sample(graph, sets[number], seed_time=times[number])
        assert (found.epoch, found.batch) == (1, 4 + number)
        assert_same(found, {name: getattr(want.numpy(), name) for name in NAMES})
    assert len(rows(many[0])) > 1
    with pytest.raises(ValueError, match=r"seed_time\[0\]: expected a time for each seed"):
        sampler.sample_many(graph, sets)
    with pytest.raises(ValueError, match=r"seed_time\[0\]: expected None for contexts without"):
        context(budget=6).sample_many(graph, sets, seed_time=3)


def test_context_by_hand_takes_edges_without_times_first() -> None:
    # Customers and articles have no times, so that sale 4 reaches both before any sale.
    found = context(budget=5, time="day").sample(shop(), {"sale": [4]}, seed_time=5)
    assert rows(found) == [
        ("sale", 4, 0, -1),
        ("customer", 1, 1, 0),
        ("article", 1, 1, 0),
        # Of the customer sale 3 of day 2, of the article sale 1 of day 3.
        ("sale", 1, 2, 2),
        ("sale", 3, 2, 1),
    ]


def test_context_by_hand_looks_at_width_edges_of_a_row_and_an_edge_type() -> None:
    # The last edge of the row of each; sale 4 is the last one of article 1, too.
    found = context(budget=9, width=1, time="day").sample(shop(), {"customer": [1]}, seed_time=9)
    assert rows(found) == [("customer", 1, 0, -1), ("sale", 4, 1, 0), ("article", 1, 2, 1)]


def test_context_by_hand_ends_by_the_first_row_that_does_not_fit() -> None:
    # 1 + 2 + 2 cells; another sale does not fit into the 6th, and the articles are not asked.
    sampler = context(budget=6, time="day", by="cell")
    found = sampler.sample(shop(), {"customer": [0]}, seed_time=3)
    assert [row[:2] for row in rows(found)] == [("customer", 0), ("sale", 2), ("sale", 1)]
    assert found.numpy().cells.tolist() == [[1, 2, 2, 0, 0, 0]]
    wide = context(budget=6, time="day", by="cell", cells={"customer": 3, "article": 2, "sale": 3})
    found = wide.sample(shop(), {"customer": [0]}, seed_time=3)
    assert [row[:2] for row in rows(found)] == [("customer", 0), ("sale", 2)]
    assert found.length == 3 and found.numpy().cells.tolist() == [[3, 3, 0]]


def test_context_by_hand_breaks_ties_by_parent_edge_type_and_last_edge() -> None:
    a, b = ("n", "a", "n"), ("n", "b", "n")
    graph = pgs.Graph.from_coo(
        # Node 0 has edges from 1, 2 (a) and 3 (b), 1 one from 4, 3 from 5, and 2 from itself and 1.
        {a: ([1, 2, 4, 2, 1, 5], [0, 0, 1, 2, 2, 3]), b: ([3, 3], [0, 0])},
        num_nodes={"n": 7},
        edge_data={a: {"t": np.zeros(6)}, b: {"t": np.zeros(2)}},
    )
    found = context(budget=7, time="t").sample(graph, [0, 6], seed_time=0.0)
    assert [row[1:] for row in rows(found)] == [
        (0, 0, -1),
        (2, 1, 0),
        (1, 1, 0),
        (3, 1, 0),
        (4, 2, 2),
        (5, 2, 3),
    ]
    assert rows(found, 1) == [("n", 6, 0, -1)]


def test_context_of_a_homogeneous_graph_by_hand() -> None:
    times = np.array([5, 7, 7, 1, 9])
    graph = pgs.Graph.from_coo(
        [1, 2, 3, 4, 1], [0, 0, 0, 1, 2], num_nodes=6, edge_data={"t": times}
    )
    assert rows(context(budget=4).sample(graph, [0])) == [
        (0, 0, -1),
        (3, 1, 0),
        (2, 1, 0),
        (1, 1, 0),
    ]
    found = context(budget=9, time="t").sample(graph, [0, 5], seed_time=[7, 7])
    assert rows(found) == [(0, 0, -1), (3, 1, 0), (2, 1, 0), (1, 1, 0), (4, 2, 3)]
    assert rows(found, 1) == [(5, 0, -1)]
    assert found.node_types is None and found.types is None
    found = context(budget=9, by="cell", cells=4).sample(graph, [0])
    assert found.numpy().cells.tolist() == [[4, 4]]


OPTIONS: list[dict[str, Any]] = [
    {"budget": 1},
    {"budget": 7},
    {"budget": 7, "width": 2},
    {"budget": 300, "width": None},
    {"budget": 40, "width": 3},
    {"budget": 20, "cells": True},
    {"budget": 90, "cells": True, "width": 4},
]


@pytest.mark.parametrize("times", [None, "edge", "node"])
@pytest.mark.parametrize("dtype", ["int64", "float64", "int32", "float32"])
def test_contexts_are_those_of_the_rule_in_numpy(times: str | None, dtype: str) -> None:
    lengths = []
    for number in range(12 if times else 4):
        made = ContextGraph(number, times, dtype, types=1 + number % 4)
        reference, graph = made.reference(), made.graph(("int32", "int64")[number % 2])
        for options in OPTIONS:
            seeds, nodes, kinds = made.seeds(int(made.random.integers(0, 12)))
            seed_time, bounds = made.bounds(kinds)
            given, expected = dict(options), dict(options, width=options.get("width", 128))
            if given.pop("cells", False):
                cells = made.random.integers(1, 9, len(made.node_types))
                given |= {
                    "by": "cell",
                    "cells": dict(zip(made.node_types, map(int, cells), strict=True)),
                }
                expected["cells"] = cells
            more: dict[str, Any] = {}
            if times is not None:
                rule = Temporal(
                    "t", inclusive=bool(number % 3), window=3 if number % 5 == 4 else None
                )
                given["time"], more = rule, {"seed_time": seed_time}
                expected |= {"inclusive": rule.inclusive, "window": rule.window}
            sampler = context(**given)
            wanted = reference.sample(nodes, kinds, bounds, **expected)
            for threads in (1, 2):
                found = sampler.sample(graph, seeds, threads=threads, **more)
                assert_same(found, wanted)
            lengths.extend(wanted["lengths"])
    # Neither all empty nor all full.
    assert min(lengths) == 1 and max(lengths) > 25


@pytest.mark.parametrize("times", [None, "edge", "node"])
def test_contexts_of_homogeneous_graphs_are_those_of_the_rule_in_numpy(times: str | None) -> None:
    for number in range(8):
        made = ContextGraph(100 + number, times, types=1)
        (src, dst), *_ = made.ends.values()
        data: dict[str, Any] = {}
        time = None
        if times == "edge":
            time = next(iter(made.edge_times.values()))
            data["edge_data"] = {"t": time}
        if times == "node":
            data["node_data"] = {"t": made.node_times["n0"]}
            time = made.node_times["n0"][src]
        graph = pgs.Graph.from_coo(src, dst, num_nodes=int(made.sizes[0]), **data)
        reference = made.reference()
        reference.relations = [reference._sorted(0, 0, src, dst, time)]
        _, nodes, kinds = made.seeds(9)
        _, bounds = made.bounds(kinds)
        more = {} if times is None else {"seed_time": bounds}
        for width in (None, 1, 5):
            sampler = context(budget=11, width=width, time=None if times is None else "t")
            expected = reference.sample(nodes, kinds, bounds, budget=11, width=width)
            assert_same(sampler.sample(graph, nodes, **more), expected, types=False)


def plain(made: ContextGraph, seed: int, kind: int, bound: Any, budget: int) -> list[Any]:
    """The rows of a context by the words of the rule, one after another."""
    context, seen, hop = [(kind, seed, 0, -1)], {(kind, seed)}, 0
    while frontier := [i for i, row in enumerate(context) if row[2] == hop]:
        hop += 1
        candidates = []
        for parent in frontier:
            for place, (edge_type, (src, dst)) in enumerate(made.ends.items()):
                if made.node_types.index(edge_type[2]) != context[parent][0]:
                    continue
                times = made.edge_times.get(edge_type)
                for edge in np.flatnonzero(dst == context[parent][1]):
                    late = np.inf if times is None else times[edge]
                    if times is None or late <= bound:
                        candidates.append((-late, parent, place, -edge, edge_type, src[edge]))
        for *_, parent, _, _, edge_type, node in sorted(candidates, key=lambda c: c[:4]):
            row = made.node_types.index(edge_type[0]), int(node)
            if len(context) < budget and row not in seen:
                seen.add(row)
                context.append((*row, hop, parent))
    return context


def test_rule_in_numpy_is_the_rule_in_words() -> None:
    for number in range(30):
        made = ContextGraph(number, "edge", types=1 + number % 3)
        _, nodes, kinds = made.seeds(4)
        _, bounds = made.bounds(kinds)
        found = made.reference().sample(nodes, kinds, bounds, budget=15)
        for i in range(4):
            expected = plain(made, nodes[i], kinds[i], bounds[i], 15)
            arrays = (found[name][i] for name in ("types", "nodes", "hops", "parents"))
            assert list(zip(*arrays, strict=True))[: found["lengths"][i]] == expected


def test_contexts_do_not_depend_on_the_order_of_threads_nor_on_other_seeds() -> None:
    made = ContextGraph(3, "node")
    graph, sampler = made.graph(), context(budget=12, time="t")
    seeds, _, kinds = made.seeds(60)
    seed_time, _ = made.bounds(kinds)
    both = [sampler.sample(graph, seeds, seed_time=seed_time, threads=n) for n in (1, 2)]
    assert_equal_contexts(*both)
    name = next(iter(seeds))
    some = sampler.sample(graph, {name: seeds[name][-2:]}, seed_time={name: seed_time[name][-2:]})
    at = len(seeds[name])
    np.testing.assert_array_equal(some.numpy().nodes, both[0].numpy().nodes[at - 2 : at])


def test_contexts_of_no_seeds_have_the_shapes() -> None:
    found = context(budget=5, by="cell", cells=2).sample(shop(), {"sale": []}).numpy()
    assert {name: getattr(found, name).shape for name in NAMES} == {
        **dict.fromkeys(NAMES, (0, 2)),
        "lengths": (0,),
    }


def test_contexts_are_shown_copied_and_pickled() -> None:
    found = context(budget=3).sample(shop(), {"sale": [1]}, epoch=2, batch=7)
    assert repr(found) == "Contexts(1, length=3, epoch=2, batch=7)"
    assert "parents" in found._repr_html_()
    assert isinstance(found, Contexts) and found.device == "cpu" and found.cpu() is found
    for copy in (pickle.loads(pickle.dumps(found)), pickle.loads(pickle.dumps(found.numpy()))):
        assert copy.node_types == ("customer", "article", "sale")
        assert_equal(copy, found)
    with pytest.raises(TypeError, match=r"Contexts: created by samplers.context"):
        Contexts()


def test_context_sampler_is_shown_pickled_and_compared_by_its_plan() -> None:
    sampler = context(budget=9, time="day", by="cell", cells={"sale": 2}, width=None, seed=3)
    text = (
        "context(budget=9, time=Temporal('day'), by='cell', width=None, cells={'sale': 2}, seed=3)"
    )
    assert repr(sampler) == text
    assert sampler.plan == pickle.loads(pickle.dumps(sampler)).plan
    assert hash(sampler.plan) != hash(context(budget=9).plan)
    assert sampler.with_seed(4).seed == 4 and sampler.result_kind == "contexts"
    with pytest.raises(ValueError, match="none for 'customer'"):
        sampler.with_seed(4).submit(shop(), {"customer": [0]}, seed_time=1)
    job = context(budget=2, time="day").submit(shop(), {"customer": [0]}, seed_time=1)
    assert rows(job.result()) == [("customer", 0, 0, -1), ("sale", 0, 1, 0)]


def test_context_refuses_wrong_options() -> None:
    for options, error in (
        ({"budget": 0}, "budget: expected an integer from 1 to 65536, got 0"),
        ({"budget": 1 << 17}, "budget: expected an integer from 1 to 65536"),
        ({"width": 0}, "width: expected an integer from 1"),
        ({"order": "depth"}, r"order: expected one of \('breadth',\), got str 'depth'"),
        ({"by": "token"}, r"by: expected one of \('row', 'cell'\), got str 'token'"),
        ({"cells": 3}, "cells: expected None with by='row', got int 3"),
        ({"by": "cell", "cells": {"sale": 0}}, r"cells\['sale'\]: expected"),
        ({"time": Temporal("day", carry="edge")}, "time: expected carry='seed'"),
        ({"time": Temporal("day", window=-1)}, "window: expected"),
    ):
        with pytest.raises(ValueError, match=error):
            context(**options)
    for options, error in (
        ({"budget": 2.5}, "budget: expected an integer"),
        ({"time": 3}, "^time: expected the name"),
        ({"by": "cell", "cells": {3: 1}}, "cells: expected names of node types, got int 3"),
    ):
        with pytest.raises(TypeError, match=error):
            context(**options)  # type: ignore[arg-type]


def test_context_refuses_wrong_calls() -> None:
    graph = shop()
    timed = context(time="day")
    seeds = {"customer": [0]}
    for sampler, more, error in (
        (timed, {}, "seed_time: expected a time for each seed"),
        (context(), {"seed_time": 3}, "seed_time: expected None for contexts without time="),
        (timed, {"seed_time": [1, 2]}, "seed_time"),
        (context(by="cell", cells={"sale": 1}), {}, "cells: expected a number for each node type"),
        (
            context(by="cell", cells={"sale": 1, "customer": 1, "article": 1, "shop": 1}),
            {},
            "cells: expected node types of the graph, got 'shop'",
        ),
        (
            context(budget=3, by="cell", cells=4),
            {},
            'budget: expected at least the cells of a seed of "customer", which are 4, got 3',
        ),
        (context(time="nothing"), {"seed_time": 1}, "nothing"),
    ):
        with pytest.raises((ValueError, KeyError), match=error):
            sampler.sample(graph, seeds, **more)
    with pytest.raises(IndexError, match=r'seeds\["customer"\]\[1\]: expected an id in \[0, 2\)'):
        context().sample(graph, {"customer": [0, 2]})
    with pytest.raises(NotImplementedError, match="exclude: expected None for contexts"):
        context().sample(graph, seeds, exclude={SALES: [0]})
    with pytest.raises(TypeError, match="cells: expected one number for a homogeneous graph"):
        context(by="cell", cells={"n": 1}).sample(pgs.Graph.from_coo([0], [0]), [0])
    # All of it leaves the graph as it was.
    assert len(rows(timed.sample(graph, seeds, seed_time=3))) == 8


def test_loader_yields_contexts_in_tensors() -> None:
    torch = partner("torch")
    from pygsampler.torch import DataLoader

    made = ContextGraph(5, "node")
    graph, sampler = made.graph(), context(budget=6, time="t", seed=2)
    seeds = torch.arange(int(made.sizes[0]))
    loader = DataLoader(
        graph, {"n0": seeds}, sampler, batch_size=4, shuffle=True, seed=1, seed_time=2
    )
    found = [batch for _ in range(2) for batch in loader]
    assert sorted(torch.cat([b.nodes[:, 0] for b in found]).tolist()) == sorted(2 * seeds.tolist())
    for batch in found:
        assert batch.form == "torch" and batch.mask.dtype == torch.bool
        again = sampler.sample(graph, {"n0": batch.nodes[:, 0].clone()}, seed_time=2)
        assert torch.equal(batch.nodes, again.torch().nodes)
        assert torch.equal(batch.parents, again.torch().parents)
    features = {"x": {"n0": torch.zeros(len(seeds), 2)}}
    with pytest.raises(ValueError, match="features: expected None for a sampler whose batches are"):
        DataLoader(graph, {"n0": seeds}, sampler, batch_size=4, seed_time=2, features=features)
