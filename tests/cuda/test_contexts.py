"""Contexts of a graph on a GPU: those of the CPU, byte for byte."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler.samplers import Temporal, context
from tests.support.context_graphs import ContextGraph, assert_equal_contexts
from tests.support.parity import scaled


def assert_equal_on_gpu(found: Any, wanted: Any, about: Any = "") -> None:
    """Asserts that contexts on a GPU have the bytes of those on the CPU."""
    assert found.device == "cuda:0" and repr(found).endswith(", device=cuda:0)")
    assert_equal_contexts(found, wanted, about)


def large(count: int, *, times: bool = True) -> pgs.Graph:
    """Sales of few customers and articles, hubs of which have most of them."""
    random = np.random.default_rng(5)
    customers, articles = max(count // 50, 2), max(count // 500, 2)
    sale = np.arange(count)
    customer = (random.random(count) ** 3 * customers).astype(np.int64)
    article = (random.random(count) ** 3 * articles).astype(np.int64)
    friend = random.integers(0, customers, (2, 4 * customers))
    edges: Any = {
        ("sale", "of", "customer"): (sale, customer),
        ("customer", "rev_of", "sale"): (customer, sale),
        ("sale", "what", "article"): (sale, article),
        ("article", "rev_what", "sale"): (article, sale),
        ("customer", "knows", "customer"): tuple(friend),
    }
    days = {"sale": {"day": random.integers(0, 1000, count)}} if times else None
    sizes = {"sale": count, "customer": customers, "article": articles}
    return pgs.Graph.from_coo(edges, num_nodes=sizes, node_data=days)


@pytest.mark.parametrize("times", [None, "edge", "node"])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_contexts_of_random_graphs_are_those_of_the_cpu(times: str | None, dtype: str) -> None:
    for number in range(scaled(30, 6)):
        made = ContextGraph(number, times, dtype, types=1 + number % 5)
        graph = made.graph(("int32", "int64")[number % 2])
        there = graph.to("cuda")
        for place, options in enumerate(
            (
                {"budget": 1},
                {"budget": 6, "width": 2},
                {"budget": 400, "width": None},
                {"budget": 60, "by": "cell", "cells": 7},
                {
                    "budget": 25,
                    "by": "cell",
                    "cells": {n: len(n) + i for i, n in enumerate(made.node_types)},
                },
            )
        ):
            seeds, _, kinds = made.seeds(int(made.random.integers(0, 40)))
            seed_time, _ = made.bounds(kinds)
            more = {} if times is None else {"seed_time": seed_time}
            time: Any = None
            if times is not None:
                window = 3 if place % 2 else None
                time = Temporal("t", inclusive=bool(number % 3), window=window)
            sampler = context(**options, time=time, seed=1)
            wanted = sampler.sample(graph, seeds, **more)
            assert_equal_on_gpu(sampler.sample(there, seeds, **more), wanted, (number, options))
            again = pickle.loads(pickle.dumps(sampler)).submit(there, seeds, **more)
            assert_equal_on_gpu(again.result(), wanted, "submitted")


@pytest.mark.parametrize("width", [None, 128, 3])
@pytest.mark.parametrize("put", ["to", "pin"])
def test_contexts_with_hubs_are_those_of_the_cpu(width: int | None, put: str) -> None:
    # Enough rows in a hop for several groups of lists of each lane.
    graph = large(scaled(1_000_000, 4000))
    there = getattr(graph, put)("cuda")
    random = np.random.default_rng(1)
    count = scaled(2000, 3)
    for kind in ("customer", "sale", "article"):
        seeds = {kind: random.integers(0, graph.num_nodes[kind], count)}
        bounds = {kind: random.integers(300, 1001, count)}
        for options in ({"budget": 1024}, {"budget": 1500, "by": "cell"}):
            sampler = context(width=width, time="day", **options)
            wanted = sampler.sample(graph, seeds, seed_time=bounds)
            assert_equal_on_gpu(
                sampler.sample(there, seeds, seed_time=bounds), wanted, (kind, options)
            )
            # Others have left something in the workspace.
            assert_equal_on_gpu(sampler.sample(there, seeds, seed_time=bounds), wanted, "again")


def test_contexts_without_times_are_those_of_the_cpu() -> None:
    graph = large(scaled(300_000, 3000), times=False)
    there = graph.to("cuda")
    random = np.random.default_rng(2)
    seeds = {kind: random.integers(0, n, scaled(500, 4)) for kind, n in graph.num_nodes.items()}
    for width in (None, 7):
        sampler = context(budget=700, width=width)
        assert_equal_on_gpu(sampler.sample(there, seeds), sampler.sample(graph, seeds), width)


@pytest.mark.parametrize("ids", ["int32", "int64"])
def test_contexts_of_homogeneous_graphs_are_those_of_the_cpu(ids: str) -> None:
    random = np.random.default_rng(3)
    nodes = scaled(50_000, 500)
    src, dst = (random.random((2, 8 * nodes)) ** 2 * nodes).astype(ids)
    data = {"t": random.normal(size=8 * nodes)}
    graph = pgs.Graph.from_coo(src, dst, num_nodes=nodes + 3, edge_data=data)
    there = graph.to("cuda")
    seeds = np.append(random.integers(0, nodes, scaled(400, 6)), [nodes, nodes + 2])
    bounds = random.normal(size=len(seeds))
    for sampler, more in (
        (context(budget=150), {}),
        (context(budget=150, time="t", width=9), {"seed_time": bounds}),
        (context(budget=90, by="cell", cells=4, time="t"), {"seed_time": 0.5}),
    ):
        assert_equal_on_gpu(
            sampler.sample(there, seeds, **more), sampler.sample(graph, seeds, **more)
        )


def test_seeds_on_the_gpu_give_the_same_and_wrong_ones_are_errors(torch: Any) -> None:
    graph = large(20_000)
    there = graph.to("cuda")
    seeds = torch.arange(0, 400, 3)
    sampler = context(budget=64, time="day")
    wanted = sampler.sample(graph, {"customer": seeds}, seed_time=700)
    found = sampler.sample(there, {"customer": seeds.cuda()}, seed_time=700)
    assert_equal_on_gpu(found, wanted)
    assert found.torch().nodes.is_cuda


def test_wrong_seeds_are_errors_and_leave_all_usable() -> None:
    graph = large(500)
    there = graph.to("cuda")
    sampler = context(budget=8, time="day")
    error = r'seeds\["customer"\]\[1\]: expected an id in \[0, 10\), got 10'
    for _ in range(2):
        with pytest.raises(IndexError, match=error):
            sampler.sample(there, {"customer": [1, 10, -1], "sale": [3]}, seed_time=700)
        wanted = sampler.sample(graph, {"customer": [1]}, seed_time=700)
        assert_equal_on_gpu(sampler.sample(there, {"customer": [1]}, seed_time=700), wanted)
    with pytest.raises(ValueError, match="budget: expected at least the cells of a seed"):
        context(budget=8, by="cell", cells=9).sample(there, {"customer": [1]})


def test_loader_yields_the_contexts_of_the_cpu(torch: Any) -> None:
    from pygsampler.torch import DataLoader

    graph = large(5000)
    sampler = context(budget=32, time="day", seed=4)
    found = []
    for put in (graph, graph.to("cuda")):
        loader = DataLoader(
            put,
            {"customer": torch.arange(100)},
            sampler,
            batch_size=32,
            shuffle=True,
            seed=1,
            seed_time=600,
        )
        found.append([(batch.nodes.cpu(), batch.parents.cpu()) for batch in loader])
    for here, there in zip(*found, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(here, there, strict=True))
