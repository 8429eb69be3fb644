"""Programs in DGL's loader."""

from __future__ import annotations

from typing import Any

import dgl
import pytest
import torch
from dgl_graphs import random_graph
from program_functions import around, beside

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.dgl import Sampler

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")


@pgs.program
def hops(A: Any, seeds: Any, fanouts: Any) -> Any:
    blocks: list[Any] = []
    for K in reversed(fanouts):
        C = A[:, seeds]
        B = C.individual_sample(K, C.edata["t"])
        blocks.insert(0, B.mul(A.ndata["x"], axis=1))
        seeds = seeds | B.row()
    return blocks


@pytest.fixture
def g() -> Any:
    made = random_graph()
    made.edata["t"] = torch.arange(made.num_edges()) % 3 + 1.0
    made.edata["v"] = torch.arange(made.num_edges()).float()
    made.ndata["x"] = torch.arange(float(made.num_nodes()))
    return made


@pytest.mark.parametrize("workers", [0, 2])
def test_blocks_have_the_values(g: Any, workers: int) -> None:
    sampler = Sampler(hops(fanouts=[2, 3], weight="v", seed=4))
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(20), sampler, batch_size=8, num_workers=workers
    )
    found = list(loader)
    assert len(found) == 3
    for _, _, blocks in found:
        for block in blocks:
            sources = block.srcdata["x"][block.edges()[0].long()]
            assert block.num_edges() > 0
            assert torch.equal(block.edata["w"], block.edata["v"] * sources)


@pgs.program
def named(A: Any, seeds: Any) -> Any:
    B = A[:, seeds].individual_sample(3)
    return [{"w": B, "p": B * 2, "q": B * 3}]


@pgs.program
def named_around(A: Any, seeds: Any) -> Any:
    V = A[:, seeds].row() | seeds
    G = A[V, V]
    return V, {"p": G * 2}


@pytest.mark.parametrize("seeds", [[7, 3, 9], [7, 3, 7, 7]])
def test_values_by_names(g: Any, seeds: list[int]) -> None:
    ids = torch.tensor(seeds, dtype=torch.int64)
    _, _, (block,) = Sampler(named(weight="v", seed=0)).sample(g, ids)
    assert block.num_edges() > 0
    for name, factor in (("w", 1), ("p", 2), ("q", 3)):
        assert torch.equal(block.edata[name], factor * block.edata["v"])
    _, _, subgraph = Sampler(named_around(weight="v", seed=0)).sample(g, ids)
    assert subgraph.num_edges() > 0 and "w" not in subgraph.edata
    assert torch.equal(subgraph.edata["p"], 2 * subgraph.edata["v"])
    g.edata["p"] = g.edata["v"]
    with pytest.raises(ValueError, match=r"p: expected a graph without edata\['p'\]"):
        Sampler(named(weight="v", seed=0)).sample(g, ids)


def test_arrays_that_change_are_read_anew(g: Any) -> None:
    sampler = Sampler(hops(fanouts=[2], weight="v", seed=4))
    sampler.set_epoch(0)
    _, _, (before,) = sampler.sample(g, torch.arange(9))
    g.ndata["x"][:] = 0
    _, _, (after,) = sampler.sample(g, torch.arange(9))
    assert before.edata["w"].any()
    assert not after.edata["w"].any()
    g.ndata["x"] = torch.ones(g.num_nodes())
    _, _, (again,) = sampler.sample(g, torch.arange(9))
    assert torch.equal(again.edata["w"], again.edata["v"])


def test_a_graph_without_the_array(g: Any) -> None:
    sampler = Sampler(hops(fanouts=[2], weight="nothing", seed=4))
    with pytest.raises(ValueError, match=r"expected .*got 'nothing'"):
        sampler.sample(g, torch.arange(3))


@pytest.mark.parametrize("seeds", [[7, 3, 9], [7, 3, 7, 7], [5, 5], []])
def test_columns_that_are_no_seeds(g: Any, seeds: list[int]) -> None:
    ids = torch.tensor(seeds, dtype=torch.int64)
    _, _, blocks = Sampler(beside(seed=0)).sample(g, ids)
    for block in blocks:
        src, dst = (ends.long() for ends in block.edges())
        theirs = g.find_edges(block.edata[dgl.EID])
        assert torch.equal(block.srcdata[dgl.NID][src], theirs[0])
        assert torch.equal(block.dstdata[dgl.NID][dst], theirs[1])
        assert block.dstdata[dgl.NID][: len(seeds)].tolist() == seeds
        assert (block.num_edges() > 0) == bool(seeds)


def check_subgraph(g: Any, subgraph: Any) -> None:
    nodes, edges = subgraph.ndata[dgl.NID], subgraph.edata[dgl.EID]
    for ours, theirs in zip(subgraph.edges(), g.find_edges(edges), strict=True):
        assert torch.equal(nodes[ours.long()], theirs)
    assert torch.equal(subgraph.ndata["x"], g.ndata["x"][nodes.long()])
    assert torch.equal(subgraph.edata["w"], g.edata["t"][edges.long()].float())


@pytest.mark.parametrize("seeds", [[7, 3, 9], [7, 3, 7, 7], []])
def test_subgraphs_begin_with_the_seeds(g: Any, seeds: list[int]) -> None:
    ids = torch.tensor(seeds, dtype=torch.int64)
    nodes, output_nodes, subgraph = Sampler(around(seed=0)).sample(g, ids)
    assert output_nodes is ids
    assert torch.equal(nodes, subgraph.ndata[dgl.NID])
    assert nodes[: len(seeds)].tolist() == seeds
    check_subgraph(g, subgraph)
    theirs = g.subgraph(nodes.unique())
    assert nodes.unique().numel() == len(nodes) - len(seeds) + len(set(seeds))
    assert theirs.num_edges() == subgraph.edata[dgl.EID].unique().numel()
    # Each occurrence has all edges into it.
    degrees = theirs.in_degrees()[torch.searchsorted(theirs.ndata[dgl.NID], nodes)]
    assert torch.equal(subgraph.in_degrees(), degrees)


@pytest.mark.parametrize("workers", [0, 2])
def test_subgraphs_in_the_loader(g: Any, workers: int) -> None:
    sampler = Sampler(around(seed=0), prefetch_node_feats=["x"], prefetch_labels=["label"])
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(20), sampler, batch_size=8, num_workers=workers
    )
    seen: list[int] = []
    for nodes, output_nodes, subgraph in loader:
        check_subgraph(g, subgraph)
        assert torch.equal(nodes[: len(output_nodes)], output_nodes)
        seen += output_nodes.tolist()
        assert torch.equal(subgraph.ndata["label"], g.ndata["label"][subgraph.ndata[dgl.NID]])
    assert sorted(seen) == list(range(20))


def test_subgraphs_in_which_the_seeds_have_no_part(g: Any) -> None:
    sampler = samplers.saint_node(budget=30, seed=3)
    nodes, output_nodes, subgraph = Sampler(sampler).sample(g, torch.arange(2))
    assert not sampler.rooted
    assert output_nodes is nodes
    assert torch.equal(nodes, subgraph.ndata[dgl.NID])
    assert 0 < len(nodes) <= 30


def test_what_has_neither_blocks_nor_a_subgraph(g: Any) -> None:
    degrees = pgs.program(lambda A, seeds: {"d": A[:, seeds].count(axis=0)})
    for sampler, kind in ((degrees(seed=0), "vectors"), (pgs.RandomWalk(3), "walks")):
        with pytest.raises(ValueError, match=f"expected one of blocks or subgraphs, .* {kind}"):
            Sampler(sampler)


def test_seeds_that_are_not_in_the_subgraph(g: Any) -> None:
    rows = pgs.program(lambda A, seeds: A.induce(A[:, seeds].row()))(seed=0)
    g = dgl.remove_edges(g, g.out_edges(5, form="eid"))
    with pytest.raises(ValueError, match=r"have all of their seeds, .* without vertex 5"):
        Sampler(rows).sample(g, torch.tensor([5]))
