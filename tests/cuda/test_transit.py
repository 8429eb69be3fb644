"""Walks by transits on a device: those of the CPU, and those by sample."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs

NODES, EDGES = 310, 4000
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"prob": "w", "edge_ids": True},
    {"stop": 0.1, "walks_per_seed": 3},
    {"restart": 0.2, "count_jumps": True, "prob": "w"},
    {"p": 2.0, "q": 0.5, "prob": "w"},
    {"p": 0.25, "q": 4.0},
    {"metapath": [0, 2], "edge_types": "t", "direction": "in"},
)


@pytest.fixture(scope="module")
def graph() -> pgs.Graph:
    draw = np.random.default_rng(1)
    src, dst = draw.integers(0, NODES - 10, (2, EDGES))
    # A third of the edges leave one vertex, and a third come to it.
    src[:1300], dst[1300:2600] = 0, 0
    data = {"w": draw.exponential(size=EDGES), "t": draw.integers(0, 3, EDGES)}
    return pgs.Graph.from_coo(src, dst, num_nodes=NODES, edge_data=data)


def arrays(walks: Any) -> list[Any]:
    return [part.cpu().tolist() for part in (walks.nodes, walks.lengths, walks.edge_ids)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("how", ["copied", "pinned"])
def test_those_of_the_cpu(graph: pgs.Graph, how: str, options: dict[str, Any]) -> None:
    there = graph.pin() if how == "pinned" else graph.to("cuda")
    draw = np.random.default_rng(2)
    # Some from everywhere, and more than a block takes from the hub and from its neighbour.
    for seeds in (draw.integers(0, NODES, 700), np.repeat([0, 5], 1500)):
        sampler = pgs.RandomWalk(7, mode_options={"execution": "transit"}, seed=3, **options)
        want = arrays(sampler.sample(graph, seeds, epoch=1, batch=2))
        assert arrays(sampler.sample(there, seeds, epoch=1, batch=2)) == want
        assert max(want[1]) > 1


def test_one_call_after_another(graph: pgs.Graph) -> None:
    there = graph.to("cuda")
    transit, sample = (
        pgs.RandomWalk(9, mode_options={"execution": execution}, seed=5, stop=0.2)
        for execution in ("transit", "sample")
    )
    # More, then fewer, and none: rooms are kept from one to the next.
    for count in (3000, 10, 0, 500):
        seeds = np.arange(count) % NODES
        assert arrays(transit.sample(there, seeds)) == arrays(sample.sample(there, seeds))
    with pytest.raises(IndexError, match=r"seeds\[1\]"):
        transit.sample(there, [3, NODES])
    got, want = (walker.sample(there, [3, 4], epoch=1, batch=0) for walker in (transit, sample))
    assert arrays(got) == arrays(want)
