"""Mode "reservoir" on a GPU: the CPU's batches, byte for byte, whatever the thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.assertions import assert_equal
from tests.support.parity import (
    SWITCHES,
    Csc,
    awkward,
    compare_reservoirs,
    emulated,
    random_graph,
    scaled,
    with_degrees,
)

pytestmark = pytest.mark.research

DEGREES = 71
FANOUTS_A_LAUNCH = 5


@pytest.mark.parametrize("name", SWITCHES)
def test_every_degree_and_fanout(name: str) -> None:
    """Sources begin with the destinations, so every hop sees every degree again."""
    csc = with_degrees(range(DEGREES), scaled(4000, 150))
    cpu = csc.graph(32)
    there = cpu.to("cuda")
    fanouts = list(range(1, 41))
    if emulated():
        # Each row of SWITCHES another part of the table, all of it together.
        fanouts = fanouts[list(SWITCHES).index(name) :: len(SWITCHES)]
    for first in range(0, len(fanouts), FANOUTS_A_LAUNCH):
        part = fanouts[first : first + FANOUTS_A_LAUNCH]
        compare_reservoirs(cpu, there, np.arange(DEGREES), part, [SWITCHES[name]])


@pytest.mark.parametrize("ids", [32, 64])
def test_larger_degrees_and_fanouts(ids: int) -> None:
    """Around warps, blocks and what fits shared memory: 3072 slots of four warps."""
    degrees = [0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1025, 5000]
    cpu = with_degrees(degrees, 9000).graph(ids, edge_ids=96 - ids)
    there = cpu.to("cuda")
    cases = (41, 64, 65, 128, 255, 257, 1000, 1024, 3071, 3072, 3073, 4999, 5000, -1)
    for fanout in cases[:: scaled(1, 3)]:
        compare_reservoirs(cpu, there, np.arange(len(degrees)), [fanout], SWITCHES.values())


@pytest.mark.parametrize("name", sorted(awkward()))
@pytest.mark.parametrize("ids", [32, 64])
def test_awkward_graphs(name: str, ids: int) -> None:
    csc = awkward()[name]
    cpu = csc.graph(ids)
    there = cpu.to("cuda")
    seeds = np.arange(min(csc.num_nodes, scaled(300, 60)))[::-1].copy()
    few = list(SWITCHES.values())[:: scaled(1, 3)]
    for fanouts in ([3], [-1, 2], [5, 0, 5], [4, 4, 4])[:: scaled(1, 2)]:
        compare_reservoirs(cpu, there, seeds, fanouts, few)
        compare_reservoirs(cpu, there, np.append(seeds, seeds[:5]), fanouts, few)


def test_exclusions() -> None:
    csc = random_graph(scaled(20000, 400), 2)
    cpu = csc.graph(32)
    there = cpu.to("cuda")
    seeds = np.arange(scaled(2000, 60))
    for every in (1, 2, 3, 50):
        exclude = np.arange(every // 2, len(csc.indices), every)
        compare_reservoirs(cpu, there, seeds, [5, 4], list(SWITCHES.values())[::3], exclude=exclude)


def test_hubs() -> None:
    """Rows that are read through by one warp each, and by many blocks at once."""
    degree = scaled(5_000_000, 20_000)
    indptr = np.concatenate([[0], np.arange(degree, degree + 301)])
    indices = np.concatenate([np.arange(degree) % 100_000, np.zeros(300, np.int64)])
    cpu = Csc(indptr, indices, max(100_000, len(indptr) - 1)).graph(32)
    there = cpu.to("cuda")
    compare_reservoirs(cpu, there, np.arange(301), [10, 10], SWITCHES.values())


def test_large_batches() -> None:
    """Checks batches of more blocks than a GPU runs at a time, so both assignments are seen."""
    csc = random_graph(scaled(400_000, 3000), 7)
    cpu = csc.graph(32)
    there = cpu.to("cuda")
    seeds = np.random.default_rng(3).permutation(csc.num_nodes)[: scaled(200_000, 1500)]
    compare_reservoirs(cpu, there, seeds, [15], SWITCHES.values())
    compare_reservoirs(cpu, there, seeds[: len(seeds) // 4], [10, 5], SWITCHES.values())


def test_flights_and_many_batches() -> None:
    """Several on their way at once, in streams of their own."""
    cpu = random_graph(3000, 4).graph(64)
    there = cpu.to("cuda")
    lists = [np.arange(i, 2000, 7) for i in range(6)]
    for options in SWITCHES.values():
        sampler = pgs.PGSampler([6, 5], seed=1, mode="reservoir", mode_options=options)
        jobs = [sampler.submit(there, seeds, batch=i) for i, seeds in enumerate(lists)]
        many = sampler.sample_many(there, lists, batch=0)
        for i, seeds in enumerate(lists):
            want = sampler.sample(cpu, seeds, batch=i)
            assert_equal(jobs[i].result(), want)
            assert_equal(many[i], want)


def test_pinned_graphs() -> None:
    cpu = random_graph(3000, 5).graph(32, to_pin=True)
    with cpu.pin() as pinned:
        compare_reservoirs(cpu, pinned, np.arange(200), [4, 4], SWITCHES.values())


def test_the_loader(torch: Any) -> None:
    from pygsampler.torch import DataLoader

    csc = random_graph(20000, 6)
    cpu = csc.graph(64)
    seeds = torch.arange(0, 20000, 3)
    sampler = pgs.PGSampler([8, 4], seed=2, mode="reservoir")
    here = DataLoader(cpu, seeds, sampler, batch_size=512, shuffle=True)
    with cpu.to("cuda") as graph:
        there = DataLoader(graph, seeds, sampler, batch_size=512, shuffle=True, prefetch=4)
        for mine, theirs in zip(there, here, strict=True):
            assert torch.equal(mine.input_nodes.cpu(), theirs.input_nodes)
            for a, b in zip(mine.blocks, theirs.blocks, strict=True):
                assert torch.equal(a.indices.cpu(), b.indices)
                assert torch.equal(a.edge_ids.cpu(), b.edge_ids)
