"""A graph's CSC is taken once, without a copy, and anew when the graph is another."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import dgl
import pytest
import torch

from pygsampler.dgl import LaborSampler, PGSampler
from pygsampler.dgl import graph as dgl_graph
from pygsampler.dgl.graph import graph_of
from pygsampler.dgl.sort_check import find_unsorted
from tests.dgl.graphs import check_blocks, random_graph

CPU = torch.device("cpu")


def test_taken_once_and_not_copied() -> None:
    g = random_graph()
    graph = graph_of(g, CPU)
    indptr, indices, edge_ids = g.adj_tensors("csc")
    assert graph.indptr.torch().data_ptr() == indptr.data_ptr()
    assert graph.indices.torch().data_ptr() == indices.data_ptr()
    assert graph.edge_ids.torch().data_ptr() == edge_ids.data_ptr()
    PGSampler([3]).sample(g, torch.arange(4))
    g.create_formats_()
    g.ndata["more"] = torch.zeros(500)
    assert graph_of(g, CPU) is graph
    assert graph_of(g.local_var(), CPU) is graph


def test_forgotten_with_the_graph() -> None:
    g = random_graph()
    graph = weakref.ref(graph_of(g, CPU))
    key = id(g._graph), ()
    assert key in dgl_graph._graphs
    del g
    gc.collect()
    assert graph() is None
    assert key not in dgl_graph._graphs


CHANGES: dict[str, Callable[[Any], Any]] = {
    "add_edges": lambda g: g.add_edges(torch.arange(50), torch.arange(50)),
    "remove_edges": lambda g: g.remove_edges(torch.arange(0, 4000, 2)),
    "add_nodes": lambda g: g.add_nodes(10),
    "remove_nodes": lambda g: g.remove_nodes(torch.arange(100, 200)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_in_place_is_noticed(change: Callable[[Any], Any]) -> None:
    g = random_graph()
    sampler = PGSampler([-1, 4])
    seeds = torch.arange(50)
    check_blocks(g, [-1, 4], seeds, sampler.sample(g, seeds))
    change(g)
    check_blocks(g, [-1, 4], seeds, sampler.sample(g, seeds))


@pytest.mark.parametrize("sampler", [PGSampler, LaborSampler])
@pytest.mark.parametrize("typed", [False, True])
def test_rows_that_dgl_sorts_in_place(sampler: Any, typed: bool) -> None:
    """Its negatives sort them: edges to leave out, masks and weights stay those that they were."""
    g = random_graph()
    kind = "v", "e", "v"
    if typed:
        g = dgl.heterograph({kind: g.edges(), ("v", "f", "v"): ([0], [1])}, {"v": g.num_nodes()})
    kind = kind if typed else g.canonical_etypes[0]
    half = torch.arange(g.num_edges(kind)) % 2
    names = ["w", "m"] if sampler is PGSampler else ["w"]
    g.edges[kind].data["w"], g.edges[kind].data["m"] = half.float(), half
    out = (half == 0).nonzero().flatten()
    before = g.adj_tensors("csc", etype=kind)[1].clone()

    def of_odd_edges_alone() -> None:
        seeds = {"v": torch.arange(300)} if typed else torch.arange(300)
        options = [{}, *({"prob": name} for name in names[:1]), *({"mask": n} for n in names[1:])]
        for given in options:
            made = sampler([4, 4], **given)
            exclude = None if given else ({kind: out} if typed else out)
            for block in made.sample(g, seeds, exclude)[2]:
                ids = block.edges[kind].data[dgl.EID]
                assert len(ids) and bool((half[ids.long()] == 1).all())

    of_odd_edges_alone()
    dgl.sampling.global_uniform_negative_sampling(g, 10, etype=kind)
    assert not g.adj_tensors("csc", etype=kind)[1].equal(before), "rows were sorted"
    of_odd_edges_alone()


def test_where_neighbours_descend() -> None:
    for rows, at in (
        ([[0, 1, 1], [0, 5], [], [2]], None),
        ([[3], [], [2], [1], [0]], None),
        ([[0, 1], [4, 4, 2, 1]], 3),
        ([[*range(5000)], [*range(5000)], [7, 6]], 10000),
        ([[]], None),
    ):
        indices = torch.tensor([each for row in rows for each in row], dtype=torch.int32)
        ends = torch.tensor([0, *map(len, rows)]).cumsum(0).int()
        found = find_unsorted(ends, indices)
        assert (found is None) == (at is None)
        if found is not None:
            assert found.pair.data_ptr() == indices[at:].data_ptr()
            assert not found.is_sorted
            indices[at : at + 2] = torch.tensor([1, 1])
            assert found.is_sorted


@pytest.mark.parametrize(
    "other",
    [lambda g: g.int(), lambda g: g.formats("coo"), dgl.reverse, dgl.add_self_loop],
    ids=["int", "coo", "reverse", "self_loop"],
)
def test_one_sampler_for_several_graphs(other: Callable[[Any], Any]) -> None:
    g = random_graph()
    h = other(g)
    sampler = PGSampler([-1, 4])
    seeds = torch.arange(50)
    for graph in (g, h, g, h):
        ids = seeds.to(graph.idtype)
        check_blocks(graph, [-1, 4], ids, sampler.sample(graph, ids))


def test_out_edges_by_the_reversed_graph() -> None:
    """``edge_dir="out"`` samples the reversed graph, with the edge ids and the data of ``g``."""
    g = random_graph()
    g.ndata["x"] = torch.arange(g.num_nodes())
    g.edata["w"] = torch.rand(g.num_edges()) + 0.1
    for options in ({}, {"prob": "w"}):
        samplers = [PGSampler([3, 2], seed=4, edge_dir=way, **options) for way in ("out", "in")]
        for each in samplers:
            each.set_epoch(0)
        own, turned = samplers
        exclude = torch.arange(0, g.num_edges(), 3) if not options else None
        for _ in range(2):
            got = own.sample(g, torch.arange(50), exclude)
            want = turned.sample(dgl.reverse(g, copy_edata=True), torch.arange(50), exclude)
            assert got[0].equal(want[0])
            for mine, other in zip(got[2], want[2], strict=True):
                assert mine.edata[dgl.EID].equal(other.edata[dgl.EID])
                assert all(a.equal(b) for a, b in zip(mine.edges(), other.edges(), strict=True))
            assert got[2][0].srcdata["x"].equal(got[0])
    own.edge_dir = "in"
    assert own.edge_dir == "in"
    _, _, (block,) = PGSampler([3], edge_dir="out").sample(g, torch.arange(50))
    u, v = g.edges(order="eid")
    rows, cols = block.edges()
    eid = block.edata[dgl.EID]
    assert v[eid].equal(block.srcdata[dgl.NID][rows])
    assert u[eid].equal(block.dstdata[dgl.NID][cols])
