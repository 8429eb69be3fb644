"""LaborSampler on heterographs, beside DGL's."""

from __future__ import annotations

import math
from typing import Any

import dgl
import pytest
import torch
from dgl.dataloading import DataLoader

from pygsampler.dgl import LaborSampler
from tests.dgl.graphs import CITES, HAS, NEVER, WRITES, heterograph

pytestmark = pytest.mark.filterwarnings("ignore:Dataloader CPU affinity")


def check(g: Any, seeds: Any, found: Any) -> None:
    """Blocks in DGL's form, with edges and features of ``g``."""
    input_nodes, output_nodes, blocks = found
    assert output_nodes is seeds
    for i, block in enumerate(blocks):
        assert block.canonical_etypes == g.canonical_etypes and block.idtype == g.idtype
        for kind in g.ntypes:
            src, dst = (
                block.srcnodes[kind].data[dgl.NID],
                block.dstnodes[kind].data[dgl.NID],
            )
            assert torch.equal(src[: len(dst)], dst)
            assert len(set(src.tolist())) == len(src)
            assert torch.equal(block.srcnodes[kind].data["x"], g.nodes[kind].data["x"][src.long()])
            if i:
                assert torch.equal(blocks[i - 1].dstnodes[kind].data[dgl.NID], src)
        for kind in g.canonical_etypes:
            edges = block.edges[kind].data[dgl.EID]
            ends = g.find_edges(edges, etype=kind)
            local = block.edges(etype=kind)
            assert torch.equal(block.srcnodes[kind[0]].data[dgl.NID][local[0].long()], ends[0])
            assert torch.equal(block.dstnodes[kind[2]].data[dgl.NID][local[1].long()], ends[1])
            assert torch.equal(block.edges[kind].data["y"], edges.long())
    for kind in g.ntypes:
        assert torch.equal(input_nodes[kind], blocks[0].srcnodes[kind].data[dgl.NID])
        given = seeds.get(kind, torch.empty(0, dtype=g.idtype))
        assert torch.equal(blocks[-1].dstnodes[kind].data[dgl.NID], given)


@pytest.mark.parametrize("idtype", [torch.int64, torch.int32])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"prob": "w"},
        {"importance_sampling": 1},
        {"prob": "w", "importance_sampling": 2, "layer_dependency": True},
    ],
)
def test_blocks(options: Any, idtype: torch.dtype) -> None:
    g = heterograph(idtype)
    seeds = {
        "paper": torch.tensor([3, 5, 60], dtype=idtype),
        "topic": torch.tensor([1], dtype=idtype),
    }
    sampler = LaborSampler([2, {"writes": 1, CITES: -1, HAS: 3, NEVER: 2}], seed=4, **options)
    sampler.set_epoch(0)
    found = sampler.sample_blocks(g, seeds)
    check(g, seeds, found)
    last = found[2][-1]
    degrees = g.in_degrees(seeds["paper"], etype=CITES)
    assert torch.equal(last.in_degrees(etype=CITES).long(), degrees.long())
    for block in found[2]:
        for kind in g.canonical_etypes:
            data = block.edges[kind].data
            weighted = (kind == WRITES and "prob" in options) or "importance_sampling" in options
            if block.num_edges(kind):
                assert ("edge_weights" in data) == weighted
            if weighted and block.num_edges(kind):
                # The weights of a destination sum to the number of its edges, as in DGL.
                sums = torch.zeros(block.num_dst_nodes(kind[2]))
                sums.index_add_(0, block.edges(etype=kind)[1].long(), data["edge_weights"])
                assert torch.allclose(sums, block.in_degrees(etype=kind).float(), rtol=1e-4)
        if "prob" in options:
            assert (g.edges[WRITES].data["w"][block.edges[WRITES].data[dgl.EID].long()] > 0).all()
    again = sampler.sample_blocks(g, seeds)
    for one, two in zip(found[2], again[2], strict=True):
        for kind in g.canonical_etypes:
            assert torch.equal(one.edges[kind].data[dgl.EID], two.edges[kind].data[dgl.EID])


def star(degree: int = 12) -> Any:
    """Two relations with the same sources and destinations."""
    ends = torch.arange(degree).repeat(3), torch.arange(3).repeat_interleave(degree)
    return dgl.heterograph({("a", "x", "b"): ends, ("a", "y", "b"): ends})


def kept(sampler: Any, runs: int) -> torch.Tensor:
    """Returns how often each source stays: with all of its edges, of both edge types."""
    g, count = star(), torch.zeros(12)
    for _ in range(runs):
        _, _, (block,) = sampler.sample_blocks(g, {"b": torch.arange(3)})
        sources = [
            block.srcnodes["a"].data[dgl.NID][block.edges(etype=kind)[0]].bincount(minlength=12)
            for kind in ("x", "y")
        ]
        assert torch.equal(sources[0], sources[1])
        assert set(sources[0].tolist()) <= {0, 3}
        count += sources[0] / 3
    return count / runs


def test_one_number_for_a_node_and_the_law_of_dgl() -> None:
    runs = 300
    dgl.seed(5)
    bound = 6 * math.sqrt((1 / 3) * (2 / 3) / runs)
    assert (kept(LaborSampler([4], seed=5), runs) - 1 / 3).abs().max() < bound
    assert (kept(dgl.dataloading.LaborSampler([4]), runs) - 1 / 3).abs().max() < bound


@pytest.mark.parametrize("workers", [0, 2])
def test_in_the_loader(workers: int) -> None:
    g = heterograph()
    loader = DataLoader(
        g,
        {"paper": torch.arange(30), "topic": torch.arange(9)},
        LaborSampler([2, 2], seed=1),
        batch_size=13,
        num_workers=workers,
    )
    seen = 0
    for found in loader:
        seen += sum(len(ids) for ids in found[1].values())
        check(g, found[1], found)
    assert seen == 39


def test_hops_have_numbers_of_their_own_unless_they_depend() -> None:
    """A second hop from the same nodes: the same sources stay where numbers are the same."""
    g = dgl.heterograph({("v", "x", "v"): star().edges(etype="x"), ("v", "y", "v"): ([0], [0])})
    for depends in (False, True):
        sampler = LaborSampler([4, 4], layer_dependency=depends, seed=2)
        same = []
        for _ in range(20):
            _, _, (outer, inner) = sampler.sample_blocks(g, {"v": torch.arange(3)})
            into = outer.edges(etype="x")[1] < 3
            ids = outer.edges["x"].data[dgl.EID][into], inner.edges["x"].data[dgl.EID]
            same.append(set(ids[0].tolist()) == set(ids[1].tolist()))
        assert all(same) if depends else not all(same)


def test_seeds_twice_have_equal_rows() -> None:
    g = heterograph()
    _, _, (block,) = LaborSampler([3], seed=1).sample_blocks(g, {"paper": torch.tensor([3, 5, 3])})
    assert block.dstnodes["paper"].data[dgl.NID].tolist() == [3, 5, 3]
    for kind in (WRITES, CITES):
        _, into, ids = block.edges(etype=kind, form="all")
        edges = block.edges[kind].data[dgl.EID]
        assert edges[ids[into == 0]].tolist() == edges[ids[into == 2]].tolist()


@pytest.mark.parametrize("exclude", ["self", "reverse_types"])
def test_around_links(exclude: str) -> None:
    ends = torch.randint(40, (200,)), torch.randint(70, (200,))
    g = dgl.heterograph(
        {WRITES: ends, ("paper", "by", "author"): ends[::-1], CITES: ([1, 2], [3, 4])},
        num_nodes_dict={"author": 40, "paper": 70},
    )
    more = (
        {"reverse_etypes": {"writes": "by", "by": "writes"}} if exclude == "reverse_types" else {}
    )
    sampler = dgl.dataloading.as_edge_prediction_sampler(
        LaborSampler([3, 3], seed=1), exclude=exclude, **more
    )
    seen = 0
    for _, pairs, blocks in DataLoader(g, {WRITES: torch.arange(200)}, sampler, batch_size=32):
        out = set(pairs.edges["writes"].data[dgl.EID].tolist())
        seen += len(out)
        for block in blocks:
            for kind in ("writes", "by") if more else ("writes",):
                assert not out & set(block.edges[kind].data[dgl.EID].tolist())
    assert seen == 200


def test_out_edges_are_those_of_the_reversed_graph() -> None:
    g, seeds = heterograph(), {"author": torch.arange(9), "paper": torch.tensor([3, 5])}
    turned = dgl.reverse(g, copy_ndata=True, copy_edata=True)
    without = {"writes": torch.arange(0, 200, 3)}
    own = LaborSampler([{kind[1]: 3 for kind in g.canonical_etypes}], edge_dir="out", seed=5)
    other = LaborSampler([3], seed=5)
    for each in (own, other):
        each.set_epoch(0)
    found = [own.sample_blocks(g, seeds, without), other.sample_blocks(turned, seeds, without)]
    (mine,), (theirs,) = (blocks for _, _, blocks in found)
    assert mine.canonical_etypes == theirs.canonical_etypes and mine.num_edges()
    for kind in mine.canonical_etypes:
        edges = mine.edges[kind].data[dgl.EID]
        assert torch.equal(edges, theirs.edges[kind].data[dgl.EID])
    assert not set(mine.edges["writes"].data[dgl.EID].tolist()) & set(without["writes"].tolist())


def test_mistakes() -> None:
    g = heterograph()
    seeds = {"paper": torch.tensor([3])}
    sampler = LaborSampler([2])
    with pytest.raises(TypeError, match="seed_nodes: expected a dict of node types"):
        sampler.sample_blocks(g, torch.tensor([3]))
    with pytest.raises(ValueError, match=r"prob: expected the name of an array .* got 'z'"):
        LaborSampler([2], prob="z").sample_blocks(g, seeds)
    with pytest.raises(dgl.DGLError, match=r"fanouts\[0\]: expected a number for each edge type"):
        LaborSampler([{"cites": 2}]).sample_blocks(g, seeds)
    # 9 is beyond the topics, and an id that others have.
    with pytest.raises(IndexError, match=r'seeds\["topic"\]\[0\]: expected an id in'):
        sampler.sample_blocks(g, {"topic": torch.tensor([9])})
