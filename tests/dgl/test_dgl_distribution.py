"""Uniformity through the adapter, beside DGL's own sampler under the same test."""

from __future__ import annotations

from math import comb
from typing import Any

import dgl
import pytest
import torch
from scipy import stats

from pygsampler.dgl import PGSampler

DEGREE, FANOUT, VERTICES, BATCHES = 8, 3, 400, 30


def make_graph() -> Any:
    """400 vertices with 8 in-edges each; edge e is number e % 8 of vertex e // 8."""
    dst = torch.arange(VERTICES).repeat_interleave(DEGREE)
    src = torch.arange(VERTICES * DEGREE) % 37
    return dgl.graph((src, dst), num_nodes=VERTICES)


def p_value(sampler: Any, seeds: torch.Tensor) -> float:
    """Of the hypothesis that all 56 sets of 3 out of 8 in-edges are equally likely: Pearson's
    chi-square over the counts of the sets, about 200 draws expected for each."""
    g = make_graph()
    sets: list[int] = []
    for _ in range(BATCHES):
        _, _, (block,) = sampler.sample(g, seeds)
        eid = block.edata[dgl.EID]
        bits = torch.zeros(VERTICES, dtype=torch.int64)
        bits.index_add_(0, eid // DEGREE, 1 << (eid % DEGREE))
        sets += bits[seeds].tolist()
    assert {bin(bits).count("1") for bits in sets} == {FANOUT}
    counts = torch.tensor(sets).unique(return_counts=True)[1].double()
    assert counts.numel() == comb(DEGREE, FANOUT)
    return float(stats.chisquare(counts.numpy()).pvalue)


@pytest.mark.parametrize("make", [PGSampler, dgl.dataloading.NeighborSampler], ids=["ours", "dgl"])
def test_every_set_of_neighbours_is_equally_likely(make: Any) -> None:
    # Seeds are fixed, so that the test cannot flake.
    torch.manual_seed(1)
    dgl.seed(1)
    assert p_value(make([FANOUT]), torch.arange(VERTICES)) > 1e-3


def test_the_test_sees_a_bias() -> None:
    """Every batch drawn three times, as a constant seed would do: the counts scatter too much."""

    class Biased(PGSampler):
        calls = 0

        def sample_blocks(self, g: Any, seed_nodes: Any, exclude_eids: Any = None) -> Any:
            self.set_epoch(self.calls // 3)
            self.calls += 1
            return super().sample_blocks(g, seed_nodes, exclude_eids)

    assert p_value(Biased([FANOUT], seed=1), torch.arange(VERTICES)) < 1e-6
