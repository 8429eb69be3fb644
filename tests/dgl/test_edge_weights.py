"""Factors of edges in DGL's blocks."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import dgl
import pytest
import torch

import pygsampler as pgs
from pygsampler.dgl import PGSampler, Sampler
from tests.dgl.graphs import content, random_graph

pytestmark = [
    pytest.mark.filterwarnings("ignore:Dataloader CPU affinity"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]
SEEDS = torch.arange(60)


def weighted() -> Any:
    g = random_graph()
    g.edata["w"] = torch.rand(g.num_edges(), generator=torch.Generator().manual_seed(1))
    return g


def factors(result: tuple[Any, Any, Any]) -> list[Any]:
    return [block.edata["edge_weights"] for block in result[2]]


@pytest.mark.parametrize("options", [{}, {"prob": "w"}, {"prob": "w", "replace": True}], ids=str)
def test_those_of_the_core(options: Any) -> None:
    g = weighted()
    ours = PGSampler([4, 3], seed=5, edge_weights="ht", **options)
    plain = PGSampler([4, 3], seed=5, **options)
    given = Sampler(pgs.PGSampler([4, 3], seed=5, edge_weights="ht", **options))
    for each in (ours, plain, given):
        each.set_epoch(3)
    found = ours.sample(g, SEEDS)
    assert content(found) == content(plain.sample(g, SEEDS))
    assert all("edge_weights" not in block.edata for block in plain.sample(g, SEEDS)[2])
    for mine, other, block in zip(
        factors(found), factors(given.sample(g, SEEDS)), found[2], strict=True
    ):
        assert mine.dtype == torch.float32 and mine.shape == (block.num_edges(),)
        assert mine.equal(other)
    assert len(torch.cat(factors(found)).unique()) > 10


def test_seeds_that_are_given_twice() -> None:
    """Each occurrence has the edges of the first, and so their factors."""
    g, sampler = weighted(), PGSampler([3], prob="w", seed=1, edge_weights="ht")
    _, _, [block] = sampler.sample(g, torch.tensor([7, 9, 7]))
    ids, weights = block.edata[dgl.EID], block.edata["edge_weights"]
    ends = block.adj_tensors("csc")[0].tolist()
    rows = [slice(a, b) for a, b in pairwise(ends)]
    assert ids[rows[0]].equal(ids[rows[2]]) and weights[rows[0]].equal(weights[rows[2]])
    assert not weights[rows[0]].equal(weights[rows[1]])


def test_sums_are_those_of_all_edges() -> None:
    """A sum of messages by factors, as DGL does it, over many epochs."""
    g = weighted()
    g.ndata["x"] = torch.rand(g.num_nodes(), generator=torch.Generator().manual_seed(2)) + 1
    full = torch.zeros(g.num_nodes())
    u, v = g.edges(order="eid")
    full.index_add_(0, v.long(), g.ndata["x"][u.long()])
    sampler = PGSampler([3], prob="w", seed=1, edge_weights="ht")
    found = []
    for epoch in range(400):
        sampler.set_epoch(epoch)
        _, _, [block] = sampler.sample(g, SEEDS)
        block.update_all(dgl.function.u_mul_e("x", "edge_weights", "m"), dgl.function.sum("m", "h"))
        found.append(block.dstdata["h"].sum())
    sums = torch.stack(found).double()
    want = full[SEEDS].sum().double()
    assert abs(sums.mean() - want) < 4 * sums.std() / len(sums) ** 0.5
    assert sums.std() > 0


def test_loader_with_workers() -> None:
    g, sampler = weighted(), PGSampler([4, 3], prob="w", seed=2, edge_weights="ht")
    sampler.set_epoch(0)
    found = []
    for workers in (0, 2):
        options: Any = {"batch_size": 20, "num_workers": workers}
        loader = dgl.dataloading.DataLoader(g, SEEDS, sampler, **options)
        # DGL hands batches of workers on as they come.
        found.append({int(b[1][0]): [w.tolist() for w in factors(b)] for b in loader})
    assert found[0] == found[1]


def test_the_option() -> None:
    g = weighted()
    sampler = PGSampler([3], seed=1)
    assert sampler.edge_weights is None
    sampler.edge_weights = "ht"
    assert "edge_weights='ht'" in repr(sampler)
    assert len(factors(sampler.sample(g, SEEDS))[0])
    copy = pickle.loads(pickle.dumps(sampler))
    assert len(factors(copy.sample(g, SEEDS))[0])
    with pytest.raises(ValueError, match="edge_weights: expected None or 'ht', got str 'x'"):
        sampler.edge_weights = "x"
    assert sampler.edge_weights == "ht"
    g.edata["edge_weights"] = g.edata["w"]
    with pytest.raises(ValueError, match=r"expected a graph without edata\['edge_weights'\]"):
        sampler.sample(g, SEEDS)
    sampler.edge_weights = None
    assert sampler.sample(g, SEEDS)[2][0].edata["edge_weights"].shape
