"""The blocks of PGSampler for DGL, compared with the blocks of DGL's own sampler."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import dgl
import pytest
import torch

from pygsampler.dgl import PGSampler
from tests.dgl.graphs import DTYPES, check_blocks, content, random_graph

FANOUTS = [[4, 3], [10], [5, 0, 3], [-1, 2], [2, -1], [1, 1, 1]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("fanouts", FANOUTS, ids=str)
def test_invariants(fanouts: list[int], replace: bool, dtype: torch.dtype) -> None:
    g = random_graph(dtype=dtype)
    seeds = torch.randperm(500)[:60].to(dtype)
    sampler = PGSampler(fanouts, replace=replace)
    for _ in range(3):
        check_blocks(g, fanouts, seeds, sampler.sample(g, seeds), replace)


@pytest.mark.parametrize("fanouts", [[4, 3], [-1, 2]], ids=str)
def test_the_invariants_hold_for_dgls_own_sampler(fanouts: list[int]) -> None:
    g = random_graph()
    seeds = torch.randperm(500)[:60]
    for fused in (False, True):
        sampler = dgl.dataloading.NeighborSampler(fanouts, fused=fused)
        check_blocks(g, fanouts, seeds, sampler.sample(g, seeds))


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_neighbours_are_dgls(dtype: torch.dtype) -> None:
    """With every edge taken there is nothing random left: both samplers agree on the edges."""
    g = random_graph(dtype=dtype)
    seeds = torch.arange(40, dtype=dtype)
    ours = PGSampler([-1, -1]).sample(g, seeds)
    theirs = dgl.dataloading.NeighborSampler([-1, -1], fused=False).sample(g, seeds)
    assert sorted(ours[0].tolist()) == sorted(theirs[0].tolist())
    for mine, other in zip(ours[2], theirs[2], strict=True):
        assert sorted(mine.edata[dgl.EID].tolist()) == sorted(other.edata[dgl.EID].tolist())


@pytest.mark.parametrize("dtype", DTYPES)
def test_edge_ids_are_the_graphs(dtype: torch.dtype) -> None:
    """Edges in an order that is neither CSC nor CSR, and a CSC whose ids are its positions."""
    g = random_graph(dtype=dtype)
    indptr, indices, _ = g.adj_tensors("csc")
    consecutive = dgl.graph(("csc", (indptr, indices, torch.empty(0, dtype=dtype))))
    assert consecutive.adj_tensors("csc")[2].numel() in (0, g.num_edges())
    for graph in (g, consecutive):
        seeds = torch.arange(80, dtype=dtype)
        check_blocks(graph, [3, 3], seeds, PGSampler([3, 3]).sample(graph, seeds))


@pytest.mark.parametrize("formats", ["coo", "csr", "csc", ["coo", "csr"]], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_format(formats: Any, dtype: torch.dtype) -> None:
    g = random_graph(dtype=dtype)
    seeds = torch.arange(80, dtype=dtype)
    # Checked against g itself, since not every format can list its edges by id.
    check_blocks(g, [3, 3], seeds, PGSampler([3, 3]).sample(g.formats(formats), seeds))


def test_isolated_vertices() -> None:
    g = dgl.graph(([], []), num_nodes=5)
    seeds = torch.tensor([4, 0])
    input_nodes, _, blocks = PGSampler([3, 3]).sample(g, seeds)
    assert input_nodes.equal(seeds)
    assert [block.num_edges() for block in blocks] == [0, 0]
    check_blocks(g, [3, 3], seeds, (input_nodes, seeds, blocks))


@pytest.mark.parametrize("dtype", DTYPES)
def test_no_seeds(dtype: torch.dtype) -> None:
    g = random_graph(dtype=dtype)
    seeds = torch.empty(0, dtype=dtype)
    input_nodes, output_nodes, blocks = PGSampler([3, 3]).sample(g, seeds)
    assert input_nodes.numel() == output_nodes.numel() == 0
    assert input_nodes.dtype == dtype
    for block in blocks:
        assert block.num_src_nodes() == block.num_dst_nodes() == block.num_edges() == 0


def test_parallel_edges_are_distinct() -> None:
    g = dgl.graph(([0] * 6, [1] * 6), num_nodes=2)
    _, _, (block,) = PGSampler([-1]).sample(g, torch.tensor([1]))
    assert sorted(block.edata[dgl.EID].tolist()) == list(range(6))
    _, _, (block,) = PGSampler([4]).sample(g, torch.tensor([1]))
    assert len(set(block.edata[dgl.EID].tolist())) == 4


@pytest.mark.parametrize("seeds", [[3, 1], torch.tensor(3), {"_N": torch.tensor([3, 1])}])
def test_forms_of_seeds_that_dgl_takes(seeds: Any) -> None:
    g = random_graph()
    _, output_nodes, blocks = PGSampler([3]).sample(g, seeds)
    assert output_nodes is seeds
    assert blocks[0].dstdata[dgl.NID][0] == 3


def test_int64_seeds_of_an_int32_graph() -> None:
    g = random_graph(dtype=torch.int32)
    seeds = torch.tensor([3, 1])
    _, output_nodes, (block,) = PGSampler([3]).sample(g, seeds)
    assert output_nodes is seeds
    assert block.dstdata[dgl.NID].dtype == torch.int32


def test_features_of_the_graph_come_along_as_in_dgl() -> None:
    g = random_graph()
    seeds = torch.arange(30)
    ours = PGSampler([3, 3]).sample(g, seeds)[2]
    theirs = dgl.dataloading.NeighborSampler([3, 3]).sample(g, seeds)[2]
    for mine, other in zip(ours, theirs, strict=True):
        assert set(mine.srcdata) == set(other.srcdata)
        assert set(mine.dstdata) == set(other.dstdata)
        assert set(mine.edata) == set(other.edata)
        assert mine.srcdata["feat"].equal(g.ndata["feat"][mine.srcdata[dgl.NID]])
        assert mine.dstdata["label"].equal(g.ndata["label"][mine.dstdata[dgl.NID]])
        assert mine.edata["weight"].equal(g.edata["weight"][mine.edata[dgl.EID]])
        assert mine.ntypes == other.ntypes
        assert mine.canonical_etypes == other.canonical_etypes


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_do_what_blocks_do(dtype: torch.dtype) -> None:
    """Messages forward and backward, other formats, other id types, pickling."""
    import pickle

    g = random_graph(dtype=dtype)
    _, _, (block,) = PGSampler([4]).sample(g, torch.arange(50, dtype=dtype))
    feat = block.srcdata["feat"].clone().requires_grad_()
    with block.local_scope():
        block.srcdata["h"] = feat
        block.update_all(dgl.function.copy_u("h", "m"), dgl.function.sum("m", "h"))
        total = block.dstdata["h"]
    total.sum().backward()
    rows, cols = block.edges()
    expected = torch.zeros(50, 4).index_add_(0, cols.long(), feat.detach()[rows.long()])
    assert torch.allclose(total, expected, atol=1e-5)
    degrees = torch.bincount(rows.long(), minlength=block.num_src_nodes())
    assert torch.allclose(feat.grad, degrees[:, None].float().expand(-1, 4))
    assert block.out_degrees().long().equal(degrees)
    assert block.formats("coo").num_edges() == block.num_edges()
    assert block.long().idtype == torch.int64
    again = pickle.loads(pickle.dumps(block))
    assert again.edges()[0].equal(rows)
    assert again.edata[dgl.EID].equal(block.edata[dgl.EID])


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_are_not_copied(dtype: torch.dtype) -> None:
    g = random_graph(dtype=dtype)
    input_nodes, _, blocks = PGSampler([4, 4]).sample(g, torch.arange(50, dtype=dtype))
    assert blocks[0].dstdata[dgl.NID].data_ptr() == input_nodes.data_ptr()
    assert blocks[1].srcdata[dgl.NID].data_ptr() == input_nodes.data_ptr()


@pytest.mark.parametrize("dtype", DTYPES)
def test_duplicate_seeds_have_a_row_each(dtype: torch.dtype) -> None:
    g = random_graph(dtype=dtype)
    distinct = torch.tensor([9, 3, 77, 401, 12], dtype=dtype)
    place = torch.tensor([0, 1, 0, 2, 3, 3, 4, 0])
    seeds = distinct[place]
    sampler = PGSampler([4, 3, 2], seed=1)
    sampler.set_epoch(0)
    _, output_nodes, blocks = sampler.sample(g, seeds)
    assert output_nodes is seeds
    assert blocks[-1].dstdata[dgl.NID].equal(seeds)
    assert blocks[-1].dstdata["label"].equal(seeds.long())
    for before, after in pairwise(blocks):
        assert before.dstdata[dgl.NID].equal(after.srcdata[dgl.NID])
    u, v = g.edges(order="eid")
    for block in blocks:
        src, dst = block.srcdata[dgl.NID], block.dstdata[dgl.NID]
        assert src[: dst.numel()].equal(dst)
        rows, cols = block.edges(order="eid")
        eid = block.edata[dgl.EID].long()
        assert u[eid].equal(src[rows.long()])
        assert v[eid].equal(dst[cols.long()])
        assert src[seeds.numel() :].unique().numel() == src.numel() - seeds.numel()
        # Rows of equal seeds are equal, edge by edge.
        edges_of = [eid[cols == row].tolist() for row in range(seeds.numel())]
        for row, first in ((2, 0), (7, 0), (5, 4)):
            assert edges_of[row] == edges_of[first]
    # The rows of the distinct vertices are a sample like any other.
    assert blocks[-1].in_degrees().tolist() == [
        min(2, int(g.in_degrees(int(seed)))) for seed in seeds
    ]


def test_outermost_fanout_comes_first() -> None:
    g = dgl.rand_graph(1000, 50000)
    _, _, blocks = PGSampler([2, 7]).sample(g, torch.arange(10))
    assert blocks[-1].in_degrees().tolist() == [7] * 10
    assert set(blocks[0].in_degrees().tolist()) == {2}


def test_excluded_edges_are_sampled_around() -> None:
    """A vertex of degree 20 with half of its edges excluded still gets its fanout of 8."""
    g = random_graph()
    v = g.edges()[1]
    hub = int(g.in_degrees().argmax())
    eids = (v == hub).nonzero().squeeze(1)
    excluded = eids[::2]
    seeds = torch.arange(100)
    sampler = PGSampler([8, 8])
    for given in (
        excluded,
        excluded.int(),
        excluded.tolist(),
        {g.etypes[0]: excluded},
        {g.canonical_etypes[0]: excluded},
    ):
        result = sampler.sample(g, seeds, given)
        check_blocks(g, [8, 8], seeds, result, excluded=excluded)
    for nothing in (torch.empty(0, dtype=torch.int64), {}, None):
        check_blocks(g, [8, 8], seeds, sampler.sample(g, seeds, nothing))
    theirs = dgl.dataloading.NeighborSampler([8, 8], fused=False).sample(g, seeds, excluded)
    check_blocks(g, [8, 8], seeds, theirs, excluded=excluded, fewer=True)


def test_batches_never_repeat_without_set_epoch_and_always_with() -> None:
    g = random_graph()
    seeds = torch.arange(60)
    sampler = PGSampler([3, 3], seed=4)
    drawn = {content(sampler.sample(g, seeds)) for _ in range(20)}
    assert len(drawn) == 20
    fresh = PGSampler([3, 3], seed=4)
    assert content(fresh.sample(g, seeds)) in drawn, "a new sampler of this seed starts over"
    sampler.set_epoch(3)
    first = content(sampler.sample(g, seeds))
    assert content(sampler.sample(g, seeds)) == first
    sampler.set_epoch(4)
    assert content(sampler.sample(g, seeds)) != first
    sampler.set_epoch(3)
    assert content(sampler.sample(g, seeds)) == first
    assert content(sampler.sample(g, seeds, torch.tensor([0, 1]))) != first
    sampler.set_epoch(None)
    assert content(sampler.sample(g, seeds)) not in drawn | {first}


def test_default_seed_is_torchs() -> None:
    g = random_graph()
    seeds = torch.arange(60)

    def first(manual: int) -> tuple[Any, ...]:
        torch.manual_seed(manual)
        return content(PGSampler([3, 3]).sample(g, seeds))

    assert first(1) == first(1) != first(2)


def test_torchs_seed_may_be_set_after_the_sampler_was_made() -> None:
    g, seeds = random_graph(), torch.arange(60)
    sampler = PGSampler([3, 3])

    def batches(manual: int, epoch: int | None = None) -> list[Any]:
        torch.manual_seed(manual)
        sampler.set_epoch(epoch)
        return [content(sampler.sample(g, seeds)) for _ in range(2)]

    assert batches(1) == [content(each) for each in twice(PGSampler([3, 3], seed=1), g, seeds)]
    assert batches(1, epoch=4) != batches(2, epoch=4) == batches(2, epoch=4)
    torch.manual_seed(3)
    assert content(sampler.sample(g, seeds)) == batches(2, epoch=4)[0], "an epoch has one seed"
    given = PGSampler([3, 3], seed=7)
    torch.manual_seed(1)
    given.sample(g, seeds)
    assert given.seed == 7


def test_set_seed_begins_anew() -> None:
    g, seeds = random_graph(), torch.arange(60)
    expected = [content(each) for each in twice(PGSampler([3, 3], seed=9), g, seeds)]
    sampler = PGSampler([3, 3], seed=4)
    for _ in range(2):
        sampler.set_seed(9)
        assert sampler.seed == 9
        assert [content(each) for each in twice(sampler, g, seeds)] == expected
    for wrong in (1 << 64, "a"):
        with pytest.raises((TypeError, ValueError), match="seed"):
            sampler.set_seed(wrong)  # type: ignore[arg-type]
    sampler.set_seed(None)
    torch.manual_seed(9)
    assert [content(each) for each in twice(sampler, g, seeds)] == expected


def twice(sampler: PGSampler, g: Any, seeds: torch.Tensor) -> list[Any]:
    return [sampler.sample(g, seeds) for _ in range(2)]


def test_torchs_random_numbers_are_left_alone() -> None:
    g = random_graph()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    PGSampler([3, 3]).sample(g, torch.arange(60))
    assert torch.rand(3).equal(expected)
