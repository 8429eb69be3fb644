"""Uniformity through the adapter, beside DGL's own sampler under the same test."""

from __future__ import annotations

from typing import Any

import dgl
import numpy as np
import pytest
import torch

from pygsampler.dgl import PGSampler
from tests.statistics import laws

DEGREE, FANOUT, VERTICES, BATCHES = 8, 3, 400, 30


def make_graph() -> Any:
    """400 vertices with 8 in-edges each; edge e is number e % 8 of vertex e // 8."""
    dst = torch.arange(VERTICES).repeat_interleave(DEGREE)
    src = torch.arange(VERTICES * DEGREE) % 37
    return dgl.graph((src, dst), num_nodes=VERTICES)


def p_value(sampler: Any, seeds: torch.Tensor) -> float:
    """Returns the p-value of the law that all 56 sets of 3 out of 8 in-edges are equally likely."""
    g = make_graph()
    rows = []
    for _ in range(BATCHES):
        _, _, (block,) = sampler.sample(g, seeds)
        # Grouped by destination, and each has its three.
        eid = block.edata[dgl.EID].reshape(-1, FANOUT)
        assert torch.equal(eid // DEGREE, seeds[:, None].expand_as(eid))
        rows.append((eid % DEGREE).numpy())
    return laws.subsets(np.concatenate(rows), DEGREE)


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
