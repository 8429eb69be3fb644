"""LABOR on graphs with types on a GPU: the batches of the CPU, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler.samplers import layer_wise
from tests.support.hetero_parity import assert_equal_batches, half_of, make, seeds_of
from tests.support.parity import scaled

pytestmark = pytest.mark.once

NUMBERS = {"epoch": 3, "batch": 1 << 33}
KINDS: tuple[dict[str, Any], ...] = (
    {},
    {"exact": True},
    {"importance": 2},
    {"importance": -1, "frontier": "new"},
    {"exact": True, "edge_weights": "mean", "layer_dependency": True},
    {"importance": 1, "edge_weights": None, "batch_dependency": 3},
    {"edge_weights": "mean", "batch_dependency": 4, "frontier": "new"},
)


@pytest.mark.parametrize("types", [1, 3, 40])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_random_schemas(types: int, dtype: str) -> None:
    random = np.random.default_rng(types)
    graph = make(types, types, 2 * types, dtype, scaled(4000, 40))
    there = graph.to("cuda")
    some = graph.edge_types[0]
    for place, options in enumerate(KINDS):
        fanouts: Any = ([3, 2], [{some: 1}, 40], [-1, 2], [5, {some: 0}, 3])[place % 4]
        by: tuple[dict[str, Any], ...] = ({}, {"prob": "w"}, {"mask": "odd"})
        weights = by[place % (3 if types > 1 else 2)]
        how: dict[str, Any] = {"edge_weights": "ht", **options, **weights}
        sampler = pgs.LaborSampler(fanouts, seed=place, default_fanout=2, **how)
        seeds = seeds_of(graph, random)
        without = half_of(graph, random) if place % 2 else {}
        want = sampler.sample(graph, seeds, exclude=without, **NUMBERS)
        assert_equal_batches(
            sampler.sample(there, seeds, exclude=without, **NUMBERS), want, sampler
        )
        job = sampler.submit(there, seeds, exclude=without, **NUMBERS)
        assert_equal_batches(job.result(), want, (sampler, "submitted"))


@pytest.mark.parametrize("options", KINDS[:5])
def test_rows_of_every_size(options: dict[str, Any]) -> None:
    """0 to 70 edges, one of more than a warp looks at, parallel edges and self loops."""
    random = np.random.default_rng(1)
    dst = np.repeat(np.arange(72), [*range(71), scaled(300_000, 4200)])
    src = random.integers(0, 500, len(dst))
    weights = {"w": np.where(random.random(len(dst)) < 0.1, 1e-6, random.random(len(dst)))}
    kinds = ("v", "to", "v"), ("u", "to", "v")
    graph = pgs.Graph.from_coo(
        {kinds[0]: (src, dst), kinds[1]: (src // 2, dst)},
        num_nodes={"v": 500, "u": 250},
        edge_data={kinds[0]: weights},
    )
    for put, fanout in ((graph.to, 1), (graph.pin, 7), (graph.to, 64)):
        there = put("cuda")
        for prob in (None, "w"):
            how: dict[str, Any] = {"prob": prob, "edge_weights": "ht", **options}
            sampler = pgs.LaborSampler([fanout], seed=fanout, **how)
            want = sampler.sample(graph, {"v": range(72)}, **NUMBERS)
            assert_equal_batches(sampler.sample(there, {"v": range(72)}, **NUMBERS), want, sampler)


@pytest.mark.parametrize("prob", [None, "w"])
@pytest.mark.parametrize("excluded", [False, True])
def test_parallel_edges(prob: str | None, excluded: bool) -> None:
    """Rows of few sources, some of which the batch leaves out: of the program as well."""
    random = np.random.default_rng(4)
    src, dst = random.integers(60, 64, 600), np.arange(600) % 60
    kind, data = ("v", "to", "v"), {"w": random.random(600) + 0.1}
    one = pgs.Graph.from_coo(src, dst, num_nodes=64, edge_data=data)
    typed = pgs.Graph.from_coo({kind: (src, dst)}, num_nodes={"v": 64}, edge_data={kind: data})
    seeds, out = np.arange(60), np.arange(0, 600 if excluded else 0, 3)
    options: dict[str, Any] = {"exact": True, "batch_dependency": 3, "seed": 2}
    program = layer_wise.labor(fanouts=[3], weight=prob, weights="ht", **options)
    family = pgs.LaborSampler([3], prob=prob, edge_weights="ht", **options)
    for batch in range(2):
        blocks = [
            program.sample(g, seeds, epoch=0, batch=batch, exclude=out).cpu().numpy().blocks[0]
            for g in (one, one.to("cuda"))
        ]
        for name in ("indptr", "indices", "edge_ids"):
            assert getattr(blocks[0], name).tolist() == getattr(blocks[1], name).tolist()
        assert blocks[0].edge_data["w"].tolist() == blocks[1].edge_data["w"].tolist()
        here, there = (
            family.sample(g, {"v": seeds}, epoch=0, batch=batch, exclude={kind: out})
            for g in (typed, typed.to("cuda"))
        )
        assert_equal_batches(there, here, family)
        assert here.blocks[0][kind].edge_ids.tolist() == blocks[0].edge_ids.tolist()


def test_nothing_and_what_is_wrong() -> None:
    graph = make(7, 3, 5, "int64")
    there = graph.to("cuda")
    sampler = pgs.LaborSampler([4, 3], seed=1, importance=1, edge_weights="ht")
    sets: list[dict[str, Any]] = [{"t0": [0]}, {}, {"t1": [0, 0], "t2": [0]}]
    want = sampler.sample_many(graph, sets, epoch=2, batch=7)
    for one in (sampler, sampler.with_gpu_share(0.3)):
        for mine, other in zip(one.sample_many(there, sets, epoch=2, batch=7), want, strict=True):
            assert_equal_batches(mine, other, one)
    with pytest.raises(IndexError, match=r'seeds\["t1"\]\[1\]: expected an id in \[0, '):
        sampler.sample(there, {"t1": [0, 100_000]}, **NUMBERS)
    assert_equal_batches(
        sampler.sample(there, sets[2], epoch=2, batch=9), want[2], "after an error"
    )
    with pytest.raises(ValueError, match=r"fanouts\[0\]: expected a number for each edge type"):
        pgs.LaborSampler([{graph.edge_types[0]: 2}], seed=1, edge_weights="ht").sample(
            there, {"t0": [0]}
        )
