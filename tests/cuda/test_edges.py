"""The edges of blocks one by one, written on the device: those of the CPU, whatever the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.support.parity import Csc, scaled

EMPTY, SHORT = 40, 900


def rows_of_all_kinds() -> Csc:
    """No edge, 0 to 8, and one vertex with more than all others have together."""
    random = np.random.default_rng(2)
    degrees = np.concatenate([np.zeros(EMPTY, int), random.integers(0, 9, SHORT)])
    degrees[EMPTY + SHORT // 2] = scaled(1_000_000, 9_000)
    indptr = np.concatenate([[0], degrees.cumsum()])
    return Csc(indptr, random.integers(0, len(degrees), indptr[-1]), len(degrees))


SEEDS = {
    "some": np.arange(EMPTY - 3, EMPTY + SHORT, 7),
    "the huge row among them": np.arange(EMPTY + SHORT // 2 - 2, EMPTY + SHORT),
    "empty rows": np.arange(EMPTY // 2),
    "none": np.arange(0),
}


@pytest.mark.parametrize("ids", [32, 64])
@pytest.mark.parametrize("frontier", ["all", "new"])
def test_edges_of_the_cpu(ids: int, frontier: str) -> None:
    cpu = rows_of_all_kinds().graph(ids)
    there = cpu.to("cuda")
    for fanouts in ([3, -1], [2, 5, 4], [0, 3]):
        sampler = pgs.PGSampler(fanouts, seed=4, frontier=frontier)
        for name, seeds in SEEDS.items():
            want = sampler.sample(cpu, seeds, batch=1)
            batch = sampler.sample(there, seeds, batch=1)
            blocks = batch.blocks
            # The last first: one launch is for all, whoever asks.
            edges = [block.coo() for block in blocks[::-1]][::-1]
            del batch
            for block, (src, dst), theirs in zip(blocks, edges, want.blocks, strict=True):
                assert dst.device == "cuda:0" and dst.dtype == f"int{ids}"
                assert block.coo()[1] is dst
                for mine, other in zip((src, dst), theirs.coo(), strict=True):
                    assert mine.cpu().tolist() == other.tolist(), (fanouts, name)


def compare(batch: Any, want: Any) -> None:
    for mine, theirs in zip(batch.blocks, want.blocks, strict=True):
        src, dst = mine.coo()
        assert src.dtype == dst.dtype == theirs.indices.dtype
        assert [src.tolist(), dst.tolist()] == [part.tolist() for part in theirs.coo()]
        assert mine.edge_index.shape == (2, mine.num_edges)
        assert mine.edge_index.tolist() == theirs.edge_index.tolist()
        assert mine.edge_index.dtype == theirs.edge_index.dtype


@pytest.mark.parametrize("ids", [32, 64])
@pytest.mark.parametrize("frontier", ["all", "new"])
def test_edges_of_torch(torch: Any, ids: int, frontier: str) -> None:
    """In memory of torch's and of ours, in a stream of the caller's, and where they were moved."""
    cpu = rows_of_all_kinds().graph(ids)
    there = cpu.to("cuda")
    sampler = pgs.PGSampler([3, -1], seed=4, frontier=frontier)
    for seeds in SEEDS.values():
        want = sampler.sample(cpu, seeds, batch=1).torch()
        with torch.cuda.stream(torch.cuda.Stream()):
            own = sampler.launch(there, seeds, epoch=0, batch=1, form="torch").result()
            assert own.blocks[0].edge_index.is_cuda and own.blocks[0].coo()[1].is_cuda
            for batch in (own, sampler.sample(there, seeds, batch=1).torch()):
                compare(batch, want)
                compare(batch.to("cpu"), want)
            compare(want.to("cuda"), want)


def test_launches(torch: Any) -> None:
    """One for all blocks of a batch, and none where int64 edges are there already."""
    from torch.profiler import ProfilerActivity, profile

    cpu = rows_of_all_kinds().graph(64)
    sampler, there = pgs.PGSampler([3, 4], seed=4), cpu.to("cuda")
    batch = sampler.launch(there, SEEDS["some"], epoch=0, batch=1, form="torch").result()
    sampler.sample(there, SEEDS["some"]).torch().blocks[0].coo()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for block in batch.blocks:
            block.edge_index, block.coo()
        torch.cuda.synchronize()
    launches = {e.key: e.count for e in found.key_averages() if "LaunchKernel" in e.key}
    assert sum(launches.values()) == 1, launches
