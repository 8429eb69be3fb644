"""Heterographs: blocks of all types, as DGL's own sampler makes them."""

from __future__ import annotations

import inspect
import itertools
from typing import Any, NamedTuple

import dgl
import pytest
import torch
from dgl.dataloading import DataLoader, as_edge_prediction_sampler
from dgl.heterograph import DGLBlock

import pygsampler.dgl as ours
from pygsampler.dgl.hetero import place_of
from tests.dgl.graphs import CITES, HAS, NEVER, WRITES, heterograph

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")


def edges_of(g: Any, block: Any, kind: Any) -> list[tuple[int, int, int]]:
    """(source, destination, id) of the edges of a block, in the ids of ``g``."""
    src, dst = block.edges(etype=kind)
    u = block.srcnodes[kind[0]].data[dgl.NID][src.long()]
    v = block.dstnodes[kind[2]].data[dgl.NID][dst.long()]
    ids = block.edges[kind].data[dgl.EID]
    a, b = g.find_edges(ids, etype=kind)
    assert torch.equal(a, u) and torch.equal(b, v)
    assert torch.equal(block.edges[kind].data["y"], ids.long())
    return sorted(zip(u.tolist(), v.tolist(), ids.tolist(), strict=True))


@pytest.mark.parametrize("idtype", [torch.int64, torch.int32])
def test_all_edges_are_those_of_dgl(idtype: torch.dtype) -> None:
    g = heterograph(idtype)
    seeds = {
        "paper": torch.tensor([3, 5, 60], dtype=idtype),
        "topic": torch.tensor([1], dtype=idtype),
    }
    mine = ours.PGSampler([-1, -1], seed=1).sample_blocks(g, seeds)
    theirs = dgl.dataloading.NeighborSampler([-1, -1], **fused()).sample_blocks(g, seeds)
    assert set(mine[0]) == set(theirs[0]) == set(g.ntypes)
    assert mine[1] is seeds
    for got, want in zip(mine[2], theirs[2], strict=True):
        assert got.canonical_etypes == want.canonical_etypes
        assert got.srctypes == want.srctypes and got.idtype == want.idtype
        for kind in g.canonical_etypes:
            assert edges_of(g, got, kind) == edges_of(g, want, kind)
        for kind in g.ntypes:
            assert got.num_dst_nodes(kind) == want.num_dst_nodes(kind)
            ids = got.srcnodes[kind].data[dgl.NID]
            assert set(ids.tolist()) == set(want.srcnodes[kind].data[dgl.NID].tolist())
            assert torch.equal(got.dstnodes[kind].data[dgl.NID], ids[: got.num_dst_nodes(kind)])
            assert torch.equal(got.srcnodes[kind].data["x"], g.nodes[kind].data["x"][ids.long()])
    for kind in g.ntypes:
        assert torch.equal(mine[0][kind], mine[2][0].srcnodes[kind].data[dgl.NID])


def fused() -> dict[str, Any]:
    """DGL 2.1's fused sampler loses edges of int32 graphs."""
    options = inspect.signature(dgl.dataloading.NeighborSampler).parameters
    return {"fused": False} if "fused" in options else {}


def test_blocks_share_their_types_alone() -> None:
    """Checks that what follows from the types is computed once, and a write changes one block."""
    g = heterograph()
    sampler = ours.PGSampler([2, 2], seed=1)
    sampler.set_epoch(0)
    seeds = {"paper": torch.arange(9), "topic": torch.arange(4)}
    _, _, (first, second) = sampler.sample_blocks(g, seeds)
    known = DGLBlock(
        second._graph, (g.ntypes, g.ntypes), g.etypes, second._node_frames, second._edge_frames
    )
    assert vars(second).keys() == vars(known).keys()
    for name, value in vars(known).items():
        if name not in ("_graph", "_node_frames", "_edge_frames"):
            assert vars(second)[name] == value, name
    assert second.canonical_etypes == g.canonical_etypes
    first.srcnodes["paper"].data["mine"] = torch.zeros(first.num_src_nodes("paper"))
    first.edges[CITES].data["mine"] = torch.zeros(first.num_edges(CITES))
    _, _, (third, _) = sampler.sample_blocks(g, seeds)
    for block in (second, third):
        assert "mine" not in block.srcnodes["paper"].data
        assert "mine" not in block.edges[CITES].data
    # DGL hands out its own lists of types: who changes one has changed a block, and no other.
    for each in (first.canonical_etypes, first.etypes, first.ntypes, third.canonical_etypes):
        each.clear()
    _, _, (fourth, _) = sampler.sample_blocks(g, seeds)
    for block in (second, fourth):
        assert block.canonical_etypes == g.canonical_etypes
        assert (block.etypes, block.srctypes, block.dsttypes) == (g.etypes, g.ntypes, g.ntypes)
    # A graph with other types between the same has blocks of its own.
    other = dgl.heterograph({("paper", "likes", "paper"): (torch.arange(9), torch.arange(9))})
    _, _, (block, _) = sampler.sample_blocks(other, torch.arange(3))
    assert block.canonical_etypes == [("paper", "likes", "paper")]


def test_fanouts_by_type() -> None:
    g = heterograph()
    hop = {"writes": 2, CITES: 3, "has": -1, NEVER: 1}
    seeds = {"paper": torch.arange(70), "topic": torch.arange(9)}
    _, _, (block,) = ours.PGSampler([hop], seed=4).sample_blocks(g, seeds)
    for kind, most in ((WRITES, 2), (CITES, 3), (HAS, 10**6)):
        want = g.in_degrees(etype=kind).clamp(max=most)
        assert torch.equal(block.in_degrees(etype=kind), want)
    assert block.num_edges(NEVER) == 0
    with pytest.raises(dgl.DGLError, match=r"fanouts\[0\]: expected a number for each edge type"):
        ours.PGSampler([{"writes": 2}]).sample_blocks(g, seeds)


def test_weights_of_a_type() -> None:
    g = heterograph()
    seeds = {"paper": torch.arange(70)}
    sampler = ours.PGSampler([-1], prob="w", seed=4)
    for _ in range(2):
        _, _, (block,) = sampler.sample_blocks(g, seeds)
        positive = g.edges[WRITES].data["w"] > 0
        assert block.num_edges(WRITES) == int(positive.sum())
        assert positive[block.edges[WRITES].data[dgl.EID]].all()
        assert block.num_edges(CITES) == g.num_edges(CITES)
        # Seen where it was written to.
        g.edges[WRITES].data["w"][:100] = 0
    _, _, (block,) = ours.PGSampler([2], seed=4, edge_weights="ht").sample_blocks(g, seeds)
    degrees = g.in_degrees(etype=CITES)[block.edges(etype=CITES)[1]].float()
    assert torch.allclose(block.edges[CITES].data["edge_weights"], (degrees / 2).clamp(min=1))
    with pytest.raises(ValueError, match="prob: expected the name of an array of some edge type"):
        ours.PGSampler([2], prob="none").sample_blocks(g, seeds)


def test_seeds_that_repeat() -> None:
    g = heterograph()
    seeds = {"paper": torch.tensor([7, 3, 7, 7, 9]), "author": torch.tensor([1, 1])}
    sampler = ours.PGSampler([3, -1], seed=4)
    _, _, blocks = sampler.sample_blocks(g, seeds)
    last = blocks[-1]
    for kind, ids in seeds.items():
        assert torch.equal(last.dstnodes[kind].data[dgl.NID], ids)
    for kind in (WRITES, CITES):
        assert torch.equal(last.in_degrees(etype=kind), g.in_degrees(seeds["paper"], etype=kind))
        edges_of(g, last, kind)
        edges_of(g, blocks[0], kind)
    for before, after in itertools.pairwise(blocks):
        for kind in g.ntypes:
            ids = before.dstnodes[kind].data[dgl.NID]
            assert torch.equal(ids, after.srcnodes[kind].data[dgl.NID])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_model_trains_in_dgls_loader(workers: int) -> None:
    g = heterograph()
    conv = dgl.nn.HeteroGraphConv(
        {kind[1]: dgl.nn.SAGEConv(5, 5, "mean") for kind in g.canonical_etypes}, aggregate="sum"
    )
    sampler = ours.PGSampler([4, 3], seed=2)

    def epoch(number: int) -> list[Any]:
        sampler.set_epoch(number)
        loader = DataLoader(
            g,
            {"paper": torch.arange(70), "topic": torch.arange(9)},
            sampler,
            batch_size=16,
            shuffle=False,
            num_workers=workers,
        )
        found = []
        for nodes, _, blocks in loader:
            h = blocks[0].srcdata["x"]
            for block in blocks:
                out = conv(block, h)
                rest = {k: v[: block.num_dst_nodes(k)] for k, v in h.items()}
                h = {**rest, **out}
            sum(v.sum() for v in h.values()).backward()
            found.append((nodes["author"], blocks[0].edges[CITES].data[dgl.EID]))
        return found

    first, again = epoch(0), epoch(0)
    assert len(first) == 5
    assert all(
        torch.equal(a, b)
        for x, y in zip(first, again, strict=True)
        for a, b in zip(x, y, strict=True)
    )
    assert conv.mods["writes"].fc_neigh.weight.grad.abs().sum() > 0


def test_edges_to_predict_are_sampled_around() -> None:
    g = heterograph()
    sampler = as_edge_prediction_sampler(
        ours.PGSampler([-1], seed=1),
        exclude="self",
        negative_sampler=dgl.dataloading.negative_sampler.Uniform(2),
    )
    loader = DataLoader(
        g, {WRITES: torch.arange(60), CITES: torch.arange(30)}, sampler, batch_size=30
    )
    for nodes, positive, negative, (block,) in loader:
        assert set(nodes) == set(g.ntypes)
        for kind in (WRITES, CITES):
            ids = positive.edges[kind].data[dgl.EID]
            assert not set(ids.tolist()) & set(block.edges[kind].data[dgl.EID].tolist())
            assert negative.num_edges(kind) == 2 * len(ids)


@pytest.mark.parametrize("idtype", [torch.int64, torch.int32])
def test_out_edges_are_those_of_the_reversed_graph(idtype: torch.dtype) -> None:
    """Fanouts, weights and excluded edges go by the types of ``g``."""
    g = heterograph(idtype)
    seeds = {"paper": torch.arange(30, dtype=idtype), "author": torch.arange(5, dtype=idtype)}
    hop = {WRITES: 2, "cites": -1, "has": 3, NEVER: 1}
    excluded = torch.arange(0, 300, 2), torch.arange(9)
    own = ours.PGSampler([hop, 4], edge_dir="out", prob="w", seed=4)
    by_name = {"writes": 2, "cites": -1, "has": 3, "never": 1}
    other = ours.PGSampler([by_name, 4], prob="w", seed=4)
    turned = dgl.reverse(g, copy_ndata=True, copy_edata=True)
    for each in (own, other):
        each.set_epoch(0)
    for without in (None, excluded):
        mine = own.sample_blocks(g, seeds, without and {WRITES: without[0], "cites": without[1]})
        named = without and {"writes": without[0], "cites": without[1]}
        theirs = other.sample_blocks(turned, seeds, named)
        for block, want in zip(mine[2], theirs[2], strict=True):
            assert block.canonical_etypes == [kind[::-1] for kind in g.canonical_etypes]
            for kind in block.canonical_etypes:
                assert edges_of(turned, block, kind) == edges_of(turned, want, kind)
        out = mine[2][-1].edges["cites"].data[dgl.EID].tolist()
        assert len(out) and (without is None or not set(out) & set(range(9)))
    g.edges[WRITES].data["w"][:] = 0
    _, _, (_, last) = own.sample_blocks(g, seeds)
    assert last.num_edges("writes") == 0, "the array is that of g, as it is now"
    block = mine[2][0]["cites"]
    h = dgl.nn.SAGEConv(5, 4, "mean")(block, mine[2][0].srcdata["x"]["paper"])
    assert h.shape == (block.num_dst_nodes(), 4)


class FakeGraph(NamedTuple):
    """A graph that is somewhere, as far as ``place_of`` asks it."""

    device: torch.device
    pinned: bool = False

    def is_pinned(self) -> bool:
        return self.pinned


class FakeIds(NamedTuple):
    """Ids that are somewhere."""

    device: torch.device
    count: int = 2

    def __len__(self) -> int:
        return self.count


def test_where_batches_are_made() -> None:
    cpu, gpu, other = torch.device("cpu"), torch.device("cuda", 0), torch.device("cuda", 1)
    ids = {"paper": FakeIds(gpu), "author": FakeIds(gpu), "topic": FakeIds(cpu, 0)}
    assert place_of(FakeGraph(gpu), ids) == gpu
    assert place_of(FakeGraph(cpu, pinned=True), ids) == gpu
    assert place_of(FakeGraph(cpu), {"paper": FakeIds(cpu)}) == cpu
    assert place_of(FakeGraph(gpu), {"paper": FakeIds(cpu, 0)}) == gpu
    for g, given, text in (
        (FakeGraph(cpu), ids, r"expected ids on the CPU, where g is, got cuda:0; a GPU samples"),
        (FakeGraph(gpu), {"paper": FakeIds(cpu)}, r"\['paper'\]: expected ids on cuda:0, where"),
        (FakeGraph(gpu), {"paper": FakeIds(other)}, r"expected ids on cuda:0, where g is, got"),
        (
            FakeGraph(cpu, pinned=True),
            {"paper": FakeIds(gpu), "author": FakeIds(other)},
            r"seed_nodes: expected ids on one device",
        ),
    ):
        with pytest.raises(ValueError, match=text):
            place_of(g, given)


def test_errors() -> None:
    g = heterograph()
    sampler = ours.PGSampler([2])
    with pytest.raises(TypeError, match="seed_nodes: expected a dict of node types to ids"):
        sampler.sample_blocks(g, torch.arange(3))
    with pytest.raises(ValueError, match="seed_nodes: expected node types of g, got 'none'"):
        sampler.sample_blocks(g, {"none": torch.arange(3)})
    with pytest.raises(IndexError, match="70"):
        sampler.sample_blocks(g, {"paper": torch.tensor([70])})
