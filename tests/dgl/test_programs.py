"""Programs in DGL's loader."""

from __future__ import annotations

from typing import Any

import dgl
import pytest
import torch
from program_functions import around, beside

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.dgl import Sampler
from tests.dgl.graphs import random_graph

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


@pgs.program
def told(A: Any, seeds: Any, subgraph: bool) -> Any:
    """Returns extra values: of the seeds, all nodes, a subgraph's nodes, and none of these."""
    d, S, C = A.degree(), seeds.unique(), A[:, seeds]
    beside = {"given": d[seeds], "seed": d[S] + 0, "column": C.count(axis=0), "all": d}
    beside |= {"rows": C.sum(axis=1), "list": C.row()}
    if not subgraph:
        return C.individual_sample(2), beside
    V = C.row() | seeds
    return V, A[V, V], beside | {"vertex": d[V], "column": A[V, V].count(axis=0)}


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
    assert not sampler.is_rooted
    assert output_nodes is nodes
    assert torch.equal(nodes, subgraph.ndata[dgl.NID])
    assert 0 < len(nodes) <= 30


def test_a_program_in_the_place_of_its_sampler() -> None:
    with pytest.raises(
        TypeError, match=r"sampler: expected a sampler, which told\(subgraph=, .*mak"
    ):
        Sampler(told)  # type: ignore[arg-type]


def test_what_has_neither_blocks_nor_a_subgraph(g: Any) -> None:
    degrees = pgs.program(lambda A, seeds: {"d": A[:, seeds].count(axis=0)})
    for sampler, kind in ((degrees(seed=0), "vectors"), (pgs.RandomWalk(3), "walks")):
        with pytest.raises(
            ValueError, match=f"expected a sampler that returns blocks or subgraphs, .* {kind}"
        ):
            Sampler(sampler)


@pytest.mark.parametrize("seeds", [[3, 1, 4], [9, 2, 9, 5, 2]])
def test_vectors_go_to_the_vertices_that_they_are_of(g: Any, seeds: list[int]) -> None:
    degree = g.in_degrees().float()
    sampler = Sampler(told(subgraph=False, seed=1))
    _, _, (block,) = sampler.sample_blocks(g, torch.tensor(seeds))
    assert set(block.dstdata) == {*g.ndata, dgl.NID, "given", "seed", "column", "all"}
    for name in ("given", "seed", "column", "all"):
        assert block.dstdata[name].tolist() == degree[seeds].tolist()
    sampler = Sampler(told(subgraph=True, seed=1))
    nodes, _, subgraph = sampler.sample_blocks(g, torch.tensor(seeds))
    assert nodes[: len(seeds)].tolist() == seeds and len(nodes) > len(seeds)
    assert set(subgraph.ndata) == {*g.ndata, dgl.NID, "vertex", "column", "all"}
    for name in ("vertex", "all"):
        assert subgraph.ndata[name].tolist() == degree[nodes].tolist()
    assert subgraph.ndata["column"].tolist() == subgraph.in_degrees().tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_norms_and_weights_of_losses_come_along(g: Any, workers: int) -> None:
    chance = samplers.saint_node(budget=6, seed=3)
    norms = chance.sample(pgs.Graph.from_dgl(g), [], epoch=0, batch=0)
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(20), Sampler(chance), batch_size=8, num_workers=workers
    )
    known = dict(zip(norms.nodes.tolist(), norms.extra["node_norm"].tolist(), strict=True))
    for nodes, _, subgraph in loader:
        for node, found in zip(nodes.tolist(), subgraph.ndata["node_norm"].tolist(), strict=True):
            assert known.setdefault(node, found) == pytest.approx(found)
    g.ndata["gradient_norm"] = torch.linspace(1, 2, g.num_nodes())
    loader = dgl.dataloading.DataLoader(
        g, torch.arange(20), Sampler(samplers.mvs(size=4, seed=3)), batch_size=8
    )
    for _, seeds, (block,) in loader:
        weight = block.dstdata["loss_weight"]
        assert len(weight) == len(seeds) and (weight[block.in_degrees() > 0] > 0).all()


def test_values_beside_a_graphs_own(g: Any) -> None:
    """A graph has "w", by which edges are drawn, and blocks have what becomes of it."""
    g.edata["w"] = g.edata["t"]
    ids = torch.arange(8)
    made = samplers.ladies(nodes=[20], weight="w", seed=2)
    with pytest.raises(ValueError, match=r"w: expected a graph without edata.*edge_values= of"):
        Sampler(made).sample_blocks(g, ids)
    _, _, (block,) = Sampler(made, edge_values="share").sample_blocks(g, ids)
    assert block.edata["w"].tolist() == g.edata["w"][block.edata[dgl.EID]].tolist()
    assert block.num_edges() and block.edata["share"].isfinite().all()
    clusters = Sampler(samplers.cluster_gcn(seed=0), edge_values="norm")
    _, _, subgraph = clusters.sample_blocks(g, ids)
    assert set(subgraph.edata) == {*g.edata, dgl.EID, "norm"}
    with pytest.raises(TypeError, match="edge_values: expected a name, got int 3"):
        Sampler(made, edge_values=3)  # type: ignore[arg-type]


def test_a_graph_with_what_a_program_returns(g: Any) -> None:
    g.ndata["all"] = g.ndata["x"]
    for subgraph in (False, True):
        sampler = Sampler(told(subgraph=subgraph, seed=1))
        with pytest.raises(ValueError, match=r"all: expected a graph without ndata\['all'\]"):
            sampler.sample_blocks(g, torch.tensor([1, 2]))


def test_a_name_that_blocks_have_already(g: Any) -> None:
    made = pgs.program(lambda A, seeds: (A[:, seeds].individual_sample(2), {dgl.NID: A.degree()}))
    with pytest.raises(ValueError, match="_ID: expected another name of what the program returns"):
        Sampler(made(seed=1)).sample_blocks(g, torch.tensor([1, 2]))


def test_seeds_that_are_not_in_the_subgraph(g: Any) -> None:
    rows = pgs.program(lambda A, seeds: A.induce(A[:, seeds].row()))(seed=0)
    g = dgl.remove_edges(g, g.out_edges(5, form="eid"))
    with pytest.raises(ValueError, match=r"have all of their seeds, .* without node 5"):
        Sampler(rows).sample(g, torch.tensor([5]))
