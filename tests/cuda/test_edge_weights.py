"""Factors of edges on a GPU: the CPU's, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import Csc, compare, random_graph, scaled, with_degrees


def both(csc: Csc, ids: int = 32, edge_ids: int = 0) -> tuple[pgs.Graph, pgs.Graph]:
    draw = np.random.default_rng(3)
    count = len(csc.indices)
    wide = draw.choice([0.0, 5e-324, 1e-300, 1.0, 1e300], count)
    w = np.where(np.arange(count) % 2, draw.pareto(1.2, count) + 1, wide)
    data = {"w": w, "m": draw.random(count) < 0.7}
    cpu = csc.graph(ids, edge_ids=edge_ids).with_data(edge_data=data)
    return cpu, cpu.to("cuda")


def test_every_degree() -> None:
    csc = with_degrees(range(71), scaled(4000, 150))
    cpu, there = both(csc)
    for fanout in (1, 2, 5, 10, 31, 32, 33, 64):
        for options in ({"prob": "w"}, {"mask": "m"}, {}, {"prob": "w", "replace": True}):
            given: dict[str, Any] = {"edge_weights": "ht", **options}
            compare(cpu, there, np.arange(71), [3, fanout], modes=["auto"], **given)


@pytest.mark.parametrize(("ids", "edge_ids"), [(32, 0), (64, 32)])
def test_every_option(ids: int, edge_ids: int) -> None:
    csc = random_graph(scaled(20000, 400), 2)
    cpu, there = both(csc, ids, edge_ids)
    seeds = np.random.default_rng(1).integers(0, csc.num_nodes, scaled(700, 40))
    exclude = np.arange(0, len(csc.indices), 3)
    for fanouts in ([5, 4, 3], [-1, 2], [33, 64], [1000])[:: scaled(1, 2)]:
        for named in ({"prob": "w"}, {}):
            for options in (
                {"replace": True},
                {"frontier": "new"},
                {"disjoint": True},
                {"exclude": exclude},
                {"exclude": exclude, "replace": True, "disjoint": True},
            ):
                given: dict[str, Any] = {"edge_weights": "ht", **named, **options}
                compare(cpu, there, seeds, fanouts, modes=["auto"], **given)


def test_several_batches_a_launch_and_pinned_graphs() -> None:
    csc = random_graph(scaled(20000, 400), 4)
    cpu, there = both(csc)
    sets = [np.arange(i, i + 30) for i in range(20)]
    for prob in ("w", None):
        sampler = pgs.PGSampler([5, 5], seed=1, prob=prob, edge_weights="ht")
        want = sampler.sample_many(cpu, sets, epoch=0, batch=0)
        for graph in (there, cpu.pin()):
            got = sampler.sample_many(graph, sets, epoch=0, batch=0)
            for mine, theirs in zip(got, want, strict=True):
                assert mine.blocks[0].edge_weights is not None
                assert_equal(mine, theirs)


def test_arrays_of_floats_on_the_device() -> None:
    _, there = both(random_graph(400, 4))
    batch = pgs.PGSampler([5], seed=1, edge_weights="ht").sample(there, np.arange(50))
    factors = batch.blocks[0].edge_weights
    assert factors is not None
    assert (factors.dtype, factors.device) == ("float32", "cuda:0")
    assert factors.__cuda_array_interface__["typestr"] == "<f4"
    assert factors.cpu().numpy().dtype == np.float32
    assert factors.cpu().tolist() == batch.cpu().blocks[0].edge_weights.tolist()  # type: ignore[union-attr]
    with pytest.raises(TypeError, match="expected one dimension of int32 or int64 for Arrow"):
        factors.__arrow_c_device_array__()
