"""Walks by transits in Python: the option, and on the emulator the walks of the CPU."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import pygsampler as pgs
from tests.gpu import run_with_driver

ROOT = Path(__file__).resolve().parents[1]

CODE = """
import sys
import numpy as np
import pygsampler as pgs

draw = np.random.default_rng(1)
src, dst = draw.integers(0, 300, (2, 4000))
# All of them lead to one, and it to few.
src[:1500], dst[1500:3000] = 0, 0
data = {"w": draw.exponential(size=4000), "t": draw.integers(0, 3, 4000)}
here = pgs.Graph.from_coo(src, dst, num_nodes=310, edge_data=data)
there = here.to("cuda")
seeds = draw.integers(0, 310, 700)
for options in (
    {},
    {"prob": "w", "edge_ids": True},
    {"stop": 0.1, "walks_per_seed": 3},
    {"restart": 0.2, "count_jumps": True, "prob": "w"},
    {"p": 2.0, "q": 0.5, "prob": "w"},
    {"metapath": [0, 2], "edge_types": "t", "direction": "in"},
):
    sampler = pgs.RandomWalk(12, execution="transit", seed=3, **options)
    want = sampler.sample(here, seeds, epoch=1, batch=2)
    got = sampler.sample(there, seeds, epoch=1, batch=2).cpu()
    assert (got.nodes.numpy() == want.nodes.numpy()).all(), options
    assert (got.lengths.numpy() == want.lengths.numpy()).all(), options
    assert (got.edge_ids.numpy() == want.edge_ids.numpy()).all(), options
    assert (want.lengths.numpy() > 1).any()
"""


def test_walks_of_the_cpu(emulator: Path) -> None:
    run_with_driver(emulator, CODE)


def test_the_cpu_ignores_it() -> None:
    graph = pgs.Graph.from_coo([0, 1, 2, 0], [1, 2, 0, 2], num_nodes=3)
    walks = [
        pgs.RandomWalk(9, execution=execution, seed=4).sample(graph, [0, 1, 2]).nodes.tolist()
        for execution in ("auto", "sample", "transit")
    ]
    assert walks[0] == walks[1] == walks[2]


def test_it_is_written_where_it_is_not_usual() -> None:
    sampler = pgs.RandomWalk(9, execution="transit", seed=4)
    assert repr(sampler) == "RandomWalk(9, execution='transit', seed=4)"
    assert repr(pickle.loads(pickle.dumps(sampler))) == repr(sampler)
    assert repr(pgs.RandomWalk(9, seed=4)) == "RandomWalk(9, seed=4)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"execution": "warp"}, "execution: expected"),
        ({"execution": "transit", "layout": "packed"}, "layout: expected 'auto' or 'csr' with"),
    ],
)
def test_what_is_refused(options: dict[str, str], message: str) -> None:
    graph = pgs.Graph.from_coo([0, 1], [1, 0], num_nodes=2)
    with pytest.raises(ValueError, match=message):
        pgs.RandomWalk(3, seed=1, **options).sample(graph, [0])  # type: ignore[arg-type]
