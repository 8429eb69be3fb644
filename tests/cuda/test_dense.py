"""Dense rows and inputs of programs on a GPU: the CPU's batches, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from pygsampler import samplers
from tests.support.assertions import assert_equal
from tests.support.parity import random_graph, scaled
from tests.support.program_functions import dots


@pgs.program
def projected(A: Any, seeds: Any, *, W: Any) -> Any:
    C = A[:, seeds]
    X = A.features("rows") @ W
    return [C.dot(X, X[C.column()])]


def stored(width: int, dtype: str, ids: int = 32) -> tuple[Any, Any]:
    csc = random_graph(scaled(4000, 150), 2)
    rng = np.random.default_rng(width)
    cpu = csc.graph(ids, ids, 0)
    cpu = cpu.with_data(
        edge_data={"w": rng.pareto(1.2, cpu.num_edges) + 0.1},
        node_data={"rows": (10 * rng.normal(size=(cpu.num_nodes, width))).astype(dtype)},
    )
    return cpu, cpu.to("cuda")


@pytest.mark.parametrize(
    ("width", "dtype", "ids"),
    [(1, "float32", 32), (11, "float64", 64), (32, "int32", 32), (70, "float32", 32)],
)
def test_rows_are_those_of_the_cpu(width: int, dtype: str, ids: int) -> None:
    cpu, there = stored(width, dtype, ids)
    rng = np.random.default_rng(7)
    some = dots(W=rng.normal(size=(width, 9)), v=rng.uniform(0.5, 2, 3), seed=3)
    wide = projected(W=rng.normal(size=(width, 41)), seed=3)
    for batch, count in enumerate((40, 0, 1)):
        seeds = rng.integers(0, cpu.num_nodes, count)
        for sampler in (some, wide):
            want = sampler.sample(cpu, seeds, epoch=1, batch=batch)
            assert_equal(sampler.sample(there, seeds, epoch=1, batch=batch), want)


def test_pass_and_updates() -> None:
    cpu, there = stored(13, "float32")
    rng = np.random.default_rng(1)
    two = {name: rng.normal(size=(13, 8)) / 10 for name in ("W1", "W2")}
    sampler = samplers.learned.pass_sampler(
        fanouts=[3, 4], **two, W3=np.array([0.1, 0.2, 1.0]), features="rows", weight="w", seed=2
    )
    kept, seeds = [], np.arange(30)
    for batch in range(4):
        if batch % 2:
            sampler.update(W2=rng.normal(size=(13, 8)), W3=rng.normal(size=3))
        want = sampler.sample(cpu, seeds, epoch=0, batch=0)
        assert_equal(sampler.sample(there, seeds, epoch=0, batch=0), want)
        kept.append(want.blocks[-1].edge_data["w"].numpy().tolist())
    # An update counts, and nothing else does.
    assert kept[0] != kept[1] == kept[2] != kept[3]


def test_errors_are_those_of_the_cpu() -> None:
    cpu, there = stored(3, "float32")
    for graph in (cpu, there):
        with pytest.raises(
            ValueError, match=r"@: expected rows of 2 numbers for 'W' of shape \(2, 4\), got 3"
        ):
            projected(W=np.ones((2, 4))).sample(graph, [0])
