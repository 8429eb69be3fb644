"""``KHop`` and ``LayerSample`` on a GPU: the CPU's, byte for byte, by sample and by transit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.parity import awkward, random_graph, scaled, with_degrees

pytestmark = pytest.mark.research

NUMBERS = {"epoch": 3, "batch": 1 << 33}


def samplers() -> list[pgs.research.KHop | pgs.research.LayerSample]:
    hops: list[tuple[list[int], Any]] = [
        ([6, 3], False),
        ([40], "transit"),
        ([3, 2, 5], "transit"),
        # In shared memory by a warp and by a block, and in the GPU's memory.
        ([40], True),
        ([3, 2, 5], True),
        ([10, 20, 6], True),
    ]
    made: list[pgs.research.KHop | pgs.research.LayerSample] = [
        pgs.research.KHop(fanouts, unique=unique, edge_ids=True, execution=execution, seed=9)
        for fanouts, unique in hops
        for execution in ("sample", "transit", "auto")
        if unique is not True or execution != "transit"
    ]
    return [*made, pgs.research.LayerSample([30, 40, 5], edge_ids=True, seed=9)]


def same(got: pgs.research.StepSamples, want: pgs.research.StepSamples, what: object) -> None:
    mine, theirs = got.cpu().numpy(), want.numpy()
    for ours, others in zip(
        (*mine.steps, *mine.edge_ids), (*theirs.steps, *theirs.edge_ids), strict=True
    ):
        assert ours.dtype == others.dtype, what
        np.testing.assert_array_equal(ours, others, err_msg=str(what))


@pytest.mark.parametrize(("ids", "edge_ids"), [(32, 0), (64, 32)])
def test_every_option(ids: int, edge_ids: int) -> None:
    csc = random_graph(scaled(20000, 300), 2)
    graph = csc.graph(ids, ids, edge_ids)
    there = graph.to("cuda")
    seeds = np.random.default_rng(1).integers(0, csc.num_nodes, scaled(5000, 200))
    for sampler in samplers():
        want = sampler.sample(graph, seeds, **NUMBERS)
        same(sampler.sample(there, seeds, **NUMBERS), want, sampler)
        same(
            sampler.sample_many(there, [[1], seeds], epoch=3, batch=(1 << 33) - 1)[1], want, sampler
        )


@pytest.mark.parametrize("name", [*sorted(awkward()), "every degree"])
def test_awkward_graphs(name: str) -> None:
    csc = with_degrees(range(71), scaled(4000, 71)) if name == "every degree" else awkward()[name]
    graph = csc.graph(64, 64, 0)
    there = graph.to("cuda")
    seeds = np.arange(min(csc.num_nodes, scaled(300, 71)))
    for sampler in samplers():
        same(
            sampler.sample(there, seeds, **NUMBERS),
            sampler.sample(graph, seeds, **NUMBERS),
            sampler,
        )


def test_in_the_memory_of_torch(torch: Any) -> None:
    graph = random_graph(2000, 5).graph(32, 32, 0)
    there = graph.to("cuda")
    for sampler in samplers():
        want = sampler.sample(graph, range(100), **NUMBERS).numpy()
        got = sampler.launch(there, range(100), form="torch", **NUMBERS).result()
        assert got.steps[0].device.type == "cuda" and isinstance(got.seeds, torch.Tensor)
        for mine, theirs in zip(
            (*got.steps, *got.edge_ids), (*want.steps, *want.edge_ids), strict=True
        ):
            np.testing.assert_array_equal(mine.cpu().numpy(), theirs)
