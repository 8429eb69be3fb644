"""Edges with times on a GPU: the batches of the CPU, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler.samplers import Temporal
from tests.support.assertions import assert_equal
from tests.support.hetero_parity import assert_equal_batches
from tests.support.parity import scaled

NUMBERS = {"epoch": 2, "batch": 1 << 33}


def make(floats: bool, dtype: str = "int64") -> tuple[pgs.Graph, Any]:
    random = np.random.default_rng(3)
    nodes, edges = scaled(20_000, 300), scaled(400_000, 4000)
    src, dst = random.integers(0, nodes, (2, edges)).astype(dtype)
    dst[: edges // 5] = 7
    times = random.integers(0, 50, edges)
    graph = pgs.Graph.from_coo(
        src,
        dst,
        num_nodes=nodes,
        edge_data={
            "t": times / 3 if floats else times,
            "odd": np.arange(edges) % 2 == 1,
            "w": (np.arange(edges) % 7).astype(np.float32),
        },
        node_data={"born": random.integers(0, 50, nodes).astype(np.int32)},
    )
    return graph, random


@pytest.mark.parametrize("floats", [False, True])
def test_batches_are_those_of_the_cpu(floats: bool) -> None:
    graph, random = make(floats, "int32" if floats else "int64")
    there = graph.to("cuda")
    for options in (
        {"temporal": "t"},
        {"temporal": Temporal("t", inclusive=False, carry="edge"), "mask": "odd"},
        {"temporal": Temporal("t", strategy="last", window=7)},
        {"temporal": "born", "frontier": "new", "replace": True},
        {"temporal": Temporal("t", window=20, carry="edge"), "prob": "w"},
        {"temporal": "born", "prob": "w", "replace": True},
        {"temporal": "t", "edge_weights": "ht", "mask": "odd"},
        {"temporal": "t", "edge_weights": "ht", "prob": "w"},
    ):
        sampler = pgs.PGSampler([5, 3], seed=4, **options)
        seeds = random.integers(0, graph.num_nodes, 50)
        bounds = random.integers(0, 50, 50)
        want = sampler.sample(graph, seeds, seed_time=bounds, **NUMBERS)
        assert want.num_edges > 0
        assert_equal(sampler.sample(there, seeds, seed_time=bounds, **NUMBERS), want, options)
        job = sampler.submit(there, seeds, seed_time=bounds, **NUMBERS)
        assert_equal(job.result(), want, (options, "submitted"))
        # Every third edge, and each that the batch has: rows are short of some.
        without = np.union1d(np.arange(0, graph.num_edges, 3), want.blocks[0].edge_ids)
        around = sampler.sample(graph, seeds, seed_time=bounds, exclude=without, **NUMBERS)
        got = sampler.sample(there, seeds, seed_time=bounds, exclude=without, **NUMBERS)
        assert_equal(got, around, (options, "excluded"))
        for block in around.blocks:
            assert not np.isin(block.edge_ids, without).any()


def test_many_batches_are_those_of_the_cpu() -> None:
    graph, random = make(False)
    there, sampler = graph.to("cuda"), pgs.PGSampler([5, 3], seed=4, temporal="t")
    sets = [random.integers(0, graph.num_nodes, count) for count in (50, 1, 20)]
    times = [random.integers(0, 50, len(seeds)) for seeds in sets]
    want = sampler.sample_many(graph, sets, seed_time=times, **NUMBERS)
    for memory in (None, 1):
        many = sampler.sample_many(there, sets, seed_time=times, memory=memory, **NUMBERS)
        for got, batch in zip(many, want, strict=True):
            assert got.device == there.device and got.batch == batch.batch
            assert_equal(got, batch, memory)
    with pytest.raises(ValueError, match=r"seed_time\[0\]: expected a time for each seed"):
        sampler.sample_many(there, sets)


def test_errors_name_the_seed_and_harm_nothing() -> None:
    graph, _ = make(False)
    there = graph.to("cuda")
    sampler = pgs.PGSampler([3], temporal="t", seed=1)
    with pytest.raises(IndexError, match=r"seeds\[1\]: expected an id in \[0, "):
        sampler.sample(there, [0, graph.num_nodes], seed_time=[1, 1])
    with pytest.raises(ValueError, match="seed_time: expected a time for each of 2 seeds, got 1"):
        sampler.sample(there, [0, 1], seed_time=[1])
    with pytest.raises(ValueError, match=r"exclude\[1\]: expected the id of an edge of the graph"):
        sampler.sample(there, [0], seed_time=1, exclude=[3, graph.num_edges])
    want = sampler.sample(graph, [0, 7], seed_time=[9, 40], **NUMBERS)
    assert_equal(sampler.sample(there, [0, 7], seed_time=[9, 40], **NUMBERS), want, "after errors")


@pytest.mark.parametrize("floats", [False, True])
def test_graphs_with_types(floats: bool) -> None:
    """Relations with times, with weights, with both and with neither."""
    random = np.random.default_rng(5)
    nodes, edges = {"a": scaled(5000, 90), "b": scaled(9000, 150)}, scaled(60_000, 1500)
    kinds = [("a", "to", "b"), ("b", "to", "a"), ("b", "in", "b"), ("a", "in", "a")]
    ends, data = {}, {}
    for place, kind in enumerate(kinds):
        ends[kind] = [random.integers(0, nodes[end], edges) for end in (kind[0], kind[2])]
        ends[kind][1][: edges // 4] = 3
        times = random.integers(0, 50, edges)
        data[kind] = {"t": times / 4 if floats else times, "odd": np.arange(edges) % 2 == 1}
        if place % 2:
            del data[kind]["t"]
        if place < 2:
            data[kind]["w"] = (np.arange(edges) % 5).astype(np.float32)
    born = {"b": {"born": random.integers(0, 50, nodes["b"])}}
    graph = pgs.Graph.from_coo(ends, num_nodes=nodes, edge_data=data, node_data=born)
    there = graph.to("cuda")
    for options in (
        {"temporal": Temporal("t", carry="edge")},
        {"temporal": Temporal("t", window=6), "prob": "w"},
        {"temporal": "born", "prob": "w", "replace": True},
        {"temporal": Temporal("t", strategy="last"), "mask": "odd", "edge_weights": "ht"},
        {"temporal": "born", "edge_weights": "ht", "frontier": "new"},
    ):
        sampler = pgs.PGSampler([4, 7], seed=4, **options)
        seeds = {kind: random.integers(0, count, 20) for kind, count in nodes.items()}
        given = {"seed_time": {kind: random.integers(0, 50, 20) for kind in seeds}, **NUMBERS}
        want = sampler.sample(graph, seeds, **given)
        assert want.num_edges
        assert_equal_batches(sampler.sample(there, seeds, **given), want, options)
        assert_equal_batches(
            sampler.submit(there, seeds, **given).result(), want, (options, "submitted")
        )
        without = {kind: np.arange(place, edges, 2) for place, kind in enumerate(kinds[:3])}
        around = sampler.sample(graph, seeds, exclude=without, **given)
        got = sampler.sample(there, seeds, exclude=without, **given)
        assert_equal_batches(got, around, (options, "excluded"))
        for blocks in around.blocks:
            for kind, ids in without.items():
                assert not np.isin(blocks[kind].edge_ids, ids).any()
