"""Programs over relations in DGL's loader: blocks of heterographs, with the program's laws."""

from __future__ import annotations

from typing import Any

import dgl
import pytest
import torch
from dgl.dataloading import DataLoader

import pygsampler as pgs
from pygsampler.dgl import Sampler

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")

WRITES, CITES, BY = ("a", "writes", "p"), ("p", "cites", "p"), ("p", "by", "a")
NODES = {"a": 30, "p": 50}


def heterograph() -> Any:
    torch.manual_seed(3)
    edges = {
        kind: (
            torch.randint(0, NODES[kind[0]], (count,)),
            torch.randint(0, NODES[kind[2]], (count,)),
        )
        for kind, count in ((WRITES, 150), (CITES, 220), (BY, 90))
    }
    g = dgl.heterograph(edges, num_nodes_dict=NODES)
    for kind, count in NODES.items():
        g.nodes[kind].data["x"] = torch.randn(count, 3)
        g.nodes[kind].data["y"] = torch.rand(count) + 0.5
    for kind in edges:
        g.edges[kind].data["t"] = torch.rand(g.num_edges(kind)) + 0.5
    return g


@pgs.program
def authors(A: Any, seeds: Any, K: int) -> Any:
    papers = seeds["p"]
    C = A["p", "cites", "p"][:, papers]
    B = C.individual_sample(K, C)
    W = A["a", "writes", "p"][:, papers | B.row()].individual_sample(2)
    return [W, {"w": B, "share": B.div(C.sum(axis=0))}]


def check(g: Any, seeds: torch.Tensor, found: Any, K: int) -> None:
    input_nodes, output_nodes, (outer, inner) = found
    assert output_nodes["p"].tolist() == seeds.tolist()
    for kind in NODES:
        assert torch.equal(outer.srcnodes[kind].data[dgl.NID], input_nodes[kind])
        assert torch.equal(outer.dstnodes[kind].data[dgl.NID], inner.srcnodes[kind].data[dgl.NID])
        nodes = outer.srcnodes[kind].data[dgl.NID]
        assert torch.equal(outer.srcnodes[kind].data["x"], g.nodes[kind].data["x"][nodes])
    assert inner.dstnodes["p"].data[dgl.NID].tolist() == seeds.tolist()
    for block in (outer, inner):
        for kind in g.canonical_etypes:
            ids = block.edges[kind].data[dgl.EID]
            src, dst = block.edges(etype=kind, order="eid")
            ends = g.find_edges(ids, etype=kind)
            assert torch.equal(block.srcnodes[kind[0]].data[dgl.NID][src], ends[0])
            assert torch.equal(block.dstnodes[kind[2]].data[dgl.NID][dst], ends[1])
    assert [outer.num_edges(kind) for kind in (CITES, BY)] == [0, 0]
    assert [inner.num_edges(kind) for kind in (WRITES, BY)] == [0, 0]
    weights = g.edges[CITES].data["t"]
    totals = torch.zeros(NODES["p"]).index_add(0, g.edges(etype=CITES)[1], weights)
    ids = inner.edges[CITES].data[dgl.EID]
    assert torch.allclose(inner.edges[CITES].data["w"], weights[ids])
    share = weights[ids] / totals[g.find_edges(ids, etype=CITES)[1]]
    assert torch.allclose(inner.edges[CITES].data["share"], share)
    degrees = inner.in_degrees(etype=CITES)
    assert torch.equal(degrees, g.in_degrees(seeds, etype=CITES).clamp(max=K))
    reached = outer.dstnodes["p"].data[dgl.NID]
    # Repeated seeds have their edges each.
    assert torch.equal(
        outer.in_degrees(etype=WRITES), g.in_degrees(reached, etype=WRITES).clamp(max=2)
    )


def test_blocks_of_a_loader() -> None:
    g = heterograph()
    sampler = Sampler(authors(K=3, weight="t", seed=5))
    sampler.set_epoch(2)
    loader = DataLoader(g, {"p": torch.arange(20)}, sampler, batch_size=6)
    batches = list(loader)
    assert len(batches) == 4
    for number, batch in enumerate(batches):
        check(g, torch.arange(20)[6 * number : 6 * number + 6], batch, 3)
    again = list(loader)
    for one, other in zip(batches, again, strict=True):
        assert one[0]["a"].tolist() == other[0]["a"].tolist()
    # A write to the weights counts.
    g.edges[CITES].data["t"] *= 2
    check(g, torch.arange(6), next(iter(loader)), 3)


def test_repeated_seeds_and_edges_left_out() -> None:
    g = heterograph()
    sampler = Sampler(authors(K=-1, weight="t", seed=5))
    seeds = torch.tensor([4, 9, 4, 4, 30])
    check(g, seeds, sampler.sample_blocks(g, {"p": seeds}), 1000)
    gone = {CITES: torch.arange(0, 220, 3), BY: torch.tensor([1])}
    _, _, (_, inner) = sampler.sample_blocks(g, {"p": seeds}, gone)
    kept = set(inner.edges[CITES].data[dgl.EID].tolist())
    into = set(g.in_edges(seeds.unique(), etype=CITES, form="eid").tolist())
    assert kept == into - set(gone[CITES].tolist())


def test_arrays_of_types_are_read() -> None:
    @pgs.program
    def near(A: Any, seeds: Any, *, V: Any) -> Any:
        C = A["p", "cites", "p"][:, seeds]
        X = A.features("x")
        return C.dot(X, X).mul(A.ndata["y"], axis=1).mul(V)

    g = heterograph()
    scale = torch.arange(1.0, NODES["p"] + 1)
    found = Sampler(near(V=scale, seed=1), edge_values="near")
    _, _, (block,) = found.sample_blocks(g, {"p": torch.tensor([2, 7])})
    ids = block.edges[CITES].data[dgl.EID]
    src, dst = g.find_edges(ids, etype=CITES)
    x, y = g.nodes["p"].data["x"], g.nodes["p"].data["y"]
    assert torch.allclose(
        block.edges[CITES].data["near"], (x[src] * x[dst]).sum(1) * y[src] * scale[dst], rtol=1e-5
    )


def test_what_is_not_offered_is_told() -> None:
    @pgs.program
    def among(A: Any, seeds: Any) -> Any:
        V = seeds.unique()
        C = A["p", "cites", "p"]
        return V, C[V, V]

    g = heterograph()
    with pytest.raises(NotImplementedError, match="returns blocks, got one of a subgraph"):
        Sampler(among(seed=1)).sample_blocks(g, {"p": torch.tensor([1])})
    with pytest.raises(ValueError, match="expected node types of g, got 'q'"):
        Sampler(authors(K=1, seed=1)).sample_blocks(g, {"q": torch.tensor([1])})


def test_features_of_a_homogeneous_graph_are_read() -> None:
    """PASS reads rows of the graph's nodes, of one number too."""
    g = dgl.rand_graph(40, 300)
    for width in (3, 1):
        g.ndata["x"] = torch.randn(40, width)
        weights = {name: torch.ones(width, 2) for name in ("W1", "W2")}
        sampler = pgs.samplers.learned.pass_sampler(
            fanouts=[2], **weights, W3=torch.ones(3), seed=1
        )
        _, _, (block,) = Sampler(sampler).sample_blocks(g, torch.arange(5))
        assert block.num_edges() and (block.edata["w"] > 0).all()
