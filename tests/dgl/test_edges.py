"""Edge and link prediction: as_edge_prediction_sampler around PGSampler."""

from __future__ import annotations

from typing import Any

import dgl
import pytest
import torch

from pygsampler.dgl import PGSampler
from tests.dgl.graphs import check_blocks

pytestmark = pytest.mark.filterwarnings(
    "ignore:Dataloader CPU affinity",
    # Python 3.12 warns of forks in processes with threads, which torch's own loader makes too.
    "ignore:This process .* is multi-threaded:DeprecationWarning",
)
EDGES = 1500


def both_ways() -> tuple[Any, torch.Tensor]:
    """A graph with every edge in both directions, and each edge's reverse."""
    random = torch.Generator().manual_seed(3)
    src, dst = torch.randint(0, 200, (2, EDGES), generator=random)
    g = dgl.graph((torch.cat([src, dst]), torch.cat([dst, src])), num_nodes=200)
    ids = torch.arange(EDGES)
    return g, torch.cat([ids + EDGES, ids])


@pytest.mark.parametrize("workers", [0, 2])
def test_link_prediction_without_leaks(workers: int) -> None:
    g, reverse = both_ways()
    sampler = dgl.dataloading.as_edge_prediction_sampler(
        PGSampler([4, 4]),
        exclude="reverse_id",
        reverse_eids=reverse,
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(3),
    )
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(EDGES), sampler, batch_size=250, shuffle=True, num_workers=workers
    )
    seen = []
    for input_nodes, pairs, negatives, blocks in loader:
        eids = pairs.edata[dgl.EID]
        seen += eids.tolist()
        assert negatives.num_edges() == 3 * pairs.num_edges()
        seeds = pairs.ndata[dgl.NID]
        excluded = torch.cat([eids, reverse[eids]])
        check_blocks(g, [4, 4], seeds, (input_nodes, seeds, blocks), excluded=excluded)
    assert sorted(seen) == list(range(EDGES))


@pytest.mark.parametrize("exclude", [None, "self"])
def test_edge_classification(exclude: str | None) -> None:
    g, _ = both_ways()
    sampler = dgl.dataloading.as_edge_prediction_sampler(PGSampler([3, 3]), exclude=exclude)
    loader = dgl.dataloading.DataLoader(g, torch.arange(100), sampler, batch_size=30)
    for input_nodes, pairs, blocks in loader:
        seeds = pairs.ndata[dgl.NID]
        excluded = pairs.edata[dgl.EID] if exclude else None
        check_blocks(g, [3, 3], seeds, (input_nodes, seeds, blocks), excluded=excluded)
