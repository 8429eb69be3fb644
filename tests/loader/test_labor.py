"""``labor=`` of ``DataLoader`` and ``LinkLoader``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs
from pygsampler.samplers import layer_wise
from pygsampler.torch import DataLoader, LinkLoader

KIND = "v", "to", "v"
ENDS = np.random.default_rng(0).integers(0, 90, (2, 900))


def plain() -> pgs.Graph:
    return pgs.Graph.from_coo(*ENDS, num_nodes=90, edge_data={"w": np.arange(900) % 4})


def typed() -> pgs.HeteroGraph:
    return pgs.HeteroGraph({KIND: plain()})


def edges_of(loader: Any) -> list[Any]:
    loader.set_epoch(1)
    return [
        [(block[KIND] if isinstance(block, dict) else block).edge_ids.tolist() for block in blocks]
        for blocks in (
            [dict(b) if hasattr(b, "keys") else b for b in batch.blocks] for batch in loader
        )
    ]


@pytest.mark.parametrize("labor", ["exact", "poisson"])
@pytest.mark.parametrize("prob", [None, "w"])
def test_loaders_make_the_sampler(labor: str, prob: str | None) -> None:
    options: Any = {"batch_size": 20, "shuffle": True, "seed": 5}
    own = {"exact": labor == "exact", "seed": 5}
    weights: Any = {"prob": prob, "edge_weights": "ht"}
    of_plain = DataLoader(plain(), range(80), [3, 2], labor=labor, **weights, **options)
    given = layer_wise.labor(fanouts=[3, 2], weight=prob, **own)
    found = edges_of(of_plain)
    assert found == edges_of(DataLoader(plain(), range(80), given, **options)) and len(found) == 4
    assert all(len(b.edge_weights) == b.num_edges for batch in of_plain for b in batch.blocks)
    of_types = DataLoader(
        typed(), {"v": range(80)}, [3, {KIND: 2}], labor=labor, **weights, **options
    )
    given_types = pgs.LaborSampler([3, {KIND: 2}], **weights, **own)
    assert edges_of(of_types) == edges_of(
        DataLoader(typed(), {"v": range(80)}, given_types, **options)
    )
    degrees = np.bincount(ENDS[1], minlength=90)
    if labor == "exact" and prob is None:
        for batch in of_plain:
            want = degrees[batch.output_nodes].clip(max=2)
            assert batch.blocks[-1].indptr.diff().tolist() == want.tolist()


def test_links() -> None:
    out = {KIND: torch.arange(0, 900, 2)}
    for batch in LinkLoader(typed(), out, [9], labor="poisson", batch_size=50, seed=1):
        hidden = out[KIND][batch.input_id[KIND]]
        assert not torch.isin(batch.minibatch.blocks[0][KIND].edge_ids, hidden).any()
    batches = LinkLoader(
        plain(), out[KIND], [4], labor="exact", batch_size=50, exclude=None, seed=1
    )
    assert all(batch.minibatch.blocks[0].indptr.diff().max() <= 4 for batch in batches)
    for batch in LinkLoader(plain(), out[KIND], [9], labor="exact", batch_size=50, seed=1):
        hidden = out[KIND][batch.input_id]
        assert not torch.isin(batch.minibatch.blocks[0].edge_ids, hidden).any()


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"labor": "most"}, "labor: expected 'exact', 'poisson' or None, got str 'most'"),
        ({"labor": "exact", "mask": "w"}, "mask: expected None for a homogeneous graph, got 'w'"),
        ({"labor": "exact", "edge_weights": "all"}, "edge_weights: expected None or 'ht'"),
        ({"labor": "exact", "prob": "z"}, "z"),
        ({"sampler_or_fanouts": pgs.PGSampler([2]), "labor": "exact"}, "labor: expected None with"),
    ],
)
def test_what_does_not_fit(options: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        DataLoader(plain(), range(9), **{"sampler_or_fanouts": [2], "batch_size": 3, **options})
