"""``LaborSampler`` in ``DataLoader`` and ``LinkLoader``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler.torch import DataLoader, LinkLoader

KIND = "v", "to", "v"
ENDS = np.random.default_rng(0).integers(0, 90, (2, 900))


def plain() -> pgs.Graph:
    return pgs.Graph.from_coo(*ENDS, num_nodes=90, edge_data={"w": np.arange(900) % 4})


def typed() -> pgs.HeteroGraph:
    return pgs.HeteroGraph({KIND: plain()})


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("prob", [None, "w"])
@pytest.mark.parametrize("hetero", [False, True])
def test_batches_of_a_loader_are_those_of_the_sampler(
    exact: bool, prob: str | None, hetero: bool
) -> None:
    def make(edge_weights: str | None = "ht") -> pgs.LaborSampler:
        how: Any = {"exact": exact, "prob": prob, "edge_weights": edge_weights}
        return pgs.LaborSampler([3, {KIND: 2} if hetero else 2], seed=5, **how)

    graph: Any = typed() if hetero else plain()
    seeds: Any = {"v": range(80)} if hetero else range(80)
    loader: Any = DataLoader(graph, seeds, make(), batch_size=20, shuffle=True)
    loader.set_epoch(1)
    degrees, count = np.bincount(ENDS[1], minlength=90), 0
    for number, batch in enumerate(loader):
        seeds_of = batch.output_nodes
        want: Any = make().sample(graph, seeds_of, epoch=1, batch=number).torch()
        for hop, hop_of_sampler in zip(batch.blocks, want.blocks, strict=True):
            got, expected = (each[KIND] if hetero else each for each in (hop, hop_of_sampler))
            assert got.edge_ids.tolist() == expected.edge_ids.tolist()
            assert got.edge_weights.tolist() == expected.edge_weights.tolist()
        if exact and prob is None:
            own = (seeds_of["v"] if hetero else seeds_of).numpy()
            assert got.in_degrees().tolist() == degrees[own].clip(max=2).tolist()
        count += 1
    assert count == 4


def test_links() -> None:
    out = {KIND: torch.arange(0, 900, 2)}
    sampler = pgs.LaborSampler([9], seed=1)
    for batch in LinkLoader(typed(), out, sampler, batch_size=50):
        hidden = out[KIND][batch.input_id[KIND]]
        assert not torch.isin(batch.minibatch.blocks[0][KIND].edge_ids, hidden).any()
    exact = pgs.LaborSampler([4], exact=True, seed=1)
    batches = LinkLoader(plain(), out[KIND], exact, batch_size=50, exclude=None)
    assert all(batch.minibatch.blocks[0].indptr.diff().max() <= 4 for batch in batches)
    for batch in LinkLoader(plain(), out[KIND], sampler, batch_size=50):
        hidden = out[KIND][batch.input_id]
        assert not torch.isin(batch.minibatch.blocks[0].edge_ids, hidden).any()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"mask": "w"}, ValueError, "mask: expected None for a homogeneous graph, got 'w'"),
        ({"prob": "z"}, ValueError, "z"),
    ],
)
def test_options_that_the_graph_does_not_take(
    options: Any, error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        DataLoader(plain(), range(9), pgs.LaborSampler([2], **options), batch_size=3)
