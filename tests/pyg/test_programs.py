"""Programs in PyG's loaders."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from program_functions import around, beside
from pyg_reference import EDGES, NODES, random_data
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.sampler import EdgeSamplerInput, NodeSamplerInput

import pygsampler as pgs
from pygsampler import samplers
from pygsampler.pyg import NeighborLoader, Sampler


@pgs.program
def hops(A: Any, seeds: Any, fanouts: Any) -> Any:
    blocks: list[Any] = []
    for K in reversed(fanouts):
        C = A[:, seeds]
        B = C.individual_sample(K, C.edata["t"])
        blocks.insert(0, B.mul(A.ndata["level"], axis=1))
        seeds = seeds | B.row()
    return blocks


@pgs.program
def told(A: Any, seeds: Any, subgraph: bool) -> Any:
    """What is beside: of the seeds, of all vertices, of a subgraph's, and of neither."""
    d, S, C = A.degree(), seeds.unique(), A[:, seeds]
    beside = {"given": d[seeds], "seed": d[S] + 0, "column": C.count(axis=0), "all": d}
    beside |= {"rows": C.sum(axis=1), "list": C.row()}
    if not subgraph:
        return C.individual_sample(2), beside
    V = C.row() | seeds
    return V, A[V, V], beside | {"vertex": d[V]}


@pytest.fixture
def data() -> Data:
    made = random_data()
    made.x = torch.arange(float(NODES))[:, None]
    made.t, made.v = torch.arange(EDGES) % 3 + 1.0, torch.arange(float(EDGES))
    made.level = torch.arange(NODES)
    return made


def test_batches_have_the_values(data: Data) -> None:
    sampler = Sampler(data, hops(fanouts=[2, 3], weight="v", seed=4))
    loader = NodeLoader(data, sampler, input_nodes=torch.arange(20), batch_size=8)
    for batch in loader:
        sources = data.edge_index[0, batch.e_id]
        assert torch.equal(batch.n_id[batch.edge_index[0]], sources)
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)
    out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.arange(9)))
    assert torch.equal(out.edge_weights, data.v[out.edge] * data.level[out.node[out.row]])


def test_values_by_names(data: Data) -> None:
    @pgs.program
    def named(A: Any, seeds: Any, names: Any) -> Any:
        B = A[:, seeds].individual_sample(3)
        D = A[:, seeds | B.row()].individual_sample(2)
        return [{"w": D, names[0]: D * 2}, {"w": B, names[1]: B * 2}]

    seeds = torch.tensor([7, 3, 7, 12])
    sampler = Sampler(data, named(names=["p", "p"], weight="v", seed=4))
    loader = NeighborLoader(data, neighbor_sampler=sampler, num_neighbors=None, input_nodes=seeds)
    for batch in loader:
        assert torch.equal(batch.edge_weights, data.v[batch.e_id])
        assert torch.equal(batch.p, 2 * data.v[batch.e_id])
    with pytest.raises(ValueError, match=r"expected values '[pq]' of the edges of all blocks"):
        unlike = named(names=["p", "q"], weight="v", seed=4)
        Sampler(data, unlike).sample_from_nodes(NodeSamplerInput(None, seeds))


def test_attributes_that_are_not_there(data: Data) -> None:
    with pytest.raises(ValueError, match="nothing"):
        Sampler(data, hops(fanouts=[2], weight="nothing", seed=0))
    del data.level
    with pytest.raises(ValueError, match=r"ndata.*level"):
        Sampler(data, hops(fanouts=[2], weight="v", seed=0))


def check_edges(data: Data, out: Any) -> None:
    ends = data.edge_index[:, out.edge]
    assert torch.equal(out.node[out.row], ends[0])
    assert torch.equal(out.node[out.col], ends[1])


@pytest.mark.parametrize("seeds", [[7, 3, 9], [7, 3, 7, 7]])
def test_each_seed_has_its_edges_in_every_hop(data: Data, seeds: list[int]) -> None:
    sampler = Sampler(data, hops(fanouts=[2, 3], weight="v", seed=4))
    out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor(seeds)))
    check_edges(data, out)
    assert out.node[: len(seeds)].tolist() == seeds
    degrees = torch.bincount(out.col, minlength=len(out.node))
    indegrees = torch.bincount(data.edge_index[1], minlength=NODES)[out.node]
    assert torch.equal(
        degrees[: len(seeds)],
        indegrees[: len(seeds)].clamp(max=3) + indegrees[: len(seeds)].clamp(max=2),
    )
    assert sum(out.num_sampled_edges) == len(out.edge)
    assert torch.equal(out.edge_weights, data.v[out.edge] * data.level[out.node[out.row]])


@pytest.mark.parametrize("seeds", [[7, 3, 9], [7, 3, 7, 7], [5, 5]])
def test_columns_that_are_no_seeds(data: Data, seeds: list[int]) -> None:
    sampler = Sampler(data, beside(seed=0))
    out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor(seeds)))
    check_edges(data, out)
    assert out.node[: len(seeds)].tolist() == seeds
    assert sum(out.num_sampled_nodes) == len(out.node)
    assert sum(out.num_sampled_edges) == len(out.edge) > 0


@pytest.mark.parametrize("seeds", [[7, 3, 9], [7, 3, 7, 7]])
def test_subgraphs_begin_with_the_seeds(data: Data, seeds: list[int]) -> None:
    sampler = Sampler(data, around(seed=0))
    out = sampler.sample_from_nodes(NodeSamplerInput(None, torch.tensor(seeds)))
    assert out.node[: len(seeds)].tolist() == seeds
    assert out.num_sampled_nodes is None
    check_edges(data, out)
    assert torch.equal(out.edge_weights, data.t[out.edge])
    inside = torch.isin(data.edge_index, out.node).all(0)
    assert out.edge.unique().tolist() == inside.nonzero().squeeze(1).tolist()
    induced = Sampler(data, around(seed=0), subgraph_type="induced")
    same = induced.sample_from_nodes(NodeSamplerInput(None, torch.tensor(seeds)))
    for name in ("node", "row", "col", "edge"):
        assert torch.equal(getattr(same, name), getattr(out, name))


def test_subgraphs_in_the_loader(data: Data) -> None:
    loader = NodeLoader(
        data, Sampler(data, around(seed=0)), input_nodes=torch.arange(20), batch_size=8
    )
    for i, batch in enumerate(loader):
        assert batch.n_id[: batch.batch_size].tolist() == list(range(20))[8 * i : 8 * i + 8]
        assert torch.equal(batch.x[:, 0].long(), batch.n_id)


def test_loaders_of_ours_have_the_values(data: Data) -> None:
    for made in (around(seed=0), hops(fanouts=[2, 3], weight="v", seed=4)):
        loader = NeighborLoader(
            data,
            [2],
            neighbor_sampler=Sampler(data, made),
            input_nodes=torch.arange(20),
            batch_size=8,
        )
        for batch in loader:
            ids = batch.n_id[batch.edge_index[0]]
            assert torch.equal(ids, data.edge_index[0, batch.e_id])
            want = data.t[batch.e_id]
            if made.result_kind == "blocks":
                want = data.v[batch.e_id] * data.level[ids]
            assert torch.equal(batch.edge_weights, want)


def test_subgraphs_in_which_the_seeds_have_no_part(data: Data) -> None:
    sampler = Sampler(data, samplers.saint_node(budget=30, seed=3))
    batch = next(iter(NodeLoader(data, sampler, input_nodes=torch.arange(2), batch_size=2)))
    assert batch.batch_size == batch.num_nodes > 2
    assert torch.equal(batch.input_id, batch.n_id)
    with pytest.raises(ValueError, match="whose nodes are the ends of its edges"):
        sampler.sample_from_edges(EdgeSamplerInput(None, torch.tensor([1]), torch.tensor([2])))


@pytest.mark.parametrize("subgraph", [False, True])
@pytest.mark.parametrize("seeds", [[3, 1, 4], [9, 2, 9, 5, 2]])
def test_vectors_go_to_the_nodes_that_they_are_of(
    data: Data, seeds: list[int], subgraph: bool
) -> None:
    degree = torch.bincount(data.edge_index[1], minlength=NODES).float()
    sampler = Sampler(data, told(subgraph=subgraph, seed=1))
    (batch,) = NeighborLoader(
        data, [2], input_nodes=torch.tensor(seeds), batch_size=8, neighbor_sampler=sampler
    )
    assert batch.n_id[: len(seeds)].tolist() == seeds and len(batch.n_id) > len(seeds)
    for name in ("given", "seed", "column"):
        assert batch[name].tolist() == degree[seeds].tolist()
    for name in ("all", "vertex") if subgraph else ("all",):
        assert batch[name].tolist() == degree[batch.n_id].tolist()
    assert "rows" not in batch and "list" not in batch
    data.seed = data.x
    with pytest.raises(ValueError, match="seed: expected data without an attribute of that name"):
        next(iter(NeighborLoader(data, [2], batch_size=8, neighbor_sampler=sampler)))


@pytest.mark.parametrize("name", ["n_id", "batch_size", "num_nodes", "x2"])
def test_names_that_batches_have_already(data: Data, name: str) -> None:
    made = pgs.program(
        lambda A, seeds, name: (A[:, seeds].individual_sample(2), {name: A.degree()})
    )
    sampler = Sampler(data, made(name=name, seed=1))
    features = {"x2": torch.zeros(NODES, 3)}
    loader = NeighborLoader(data, [2], batch_size=8, neighbor_sampler=sampler, features=features)
    with pytest.raises(ValueError, match=f"{name}: expected another name"):
        next(iter(loader))


def test_reverses_have_no_values(data: Data) -> None:
    sampler = Sampler(data, samplers.vrgcn(fanouts=[2], seed=1), subgraph_type="bidirectional")
    with pytest.raises(ValueError, match="subgraph_type: expected 'directional' or 'induced'"):
        next(iter(NeighborLoader(data, [2], batch_size=8, neighbor_sampler=sampler)))


def test_scores_of_pagerank_come_along(data: Data) -> None:
    sampler = Sampler(data, samplers.ppr_shadow(k=5, epsilon=1e-4))
    (batch,) = NeighborLoader(
        data, [1], input_nodes=torch.tensor([3, 1, 3]), batch_size=3, neighbor_sampler=sampler
    )
    assert len(batch.score) == len(batch.n_id) == len(batch.batch) > 3
    for root in range(3):
        mine = batch.score[batch.batch == root]
        assert mine[0] == mine.max() == batch.score[root]


def test_losses_of_mvs_are_weighted(data: Data) -> None:
    data.gradient_norm = torch.linspace(1, 2, NODES)
    sampler = Sampler(data, samplers.mvs(size=4, seed=3))
    for batch in NeighborLoader(data, [-1], batch_size=8, neighbor_sampler=sampler):
        weight = batch.loss_weight
        assert len(weight) == batch.batch_size and (weight >= 0).all() and weight.any()
    given = torch.tensor([[1, 2], [3, 4]])
    ends = EdgeSamplerInput(None, given[0], given[1])
    assert not hasattr(sampler.sample_from_edges(ends), "beside")


def test_subgraphs_around_the_ends_of_edges(data: Data) -> None:
    sampler = Sampler(data, around(seed=0))
    ends = data.edge_index[:, :6]
    out = sampler.sample_from_edges(EdgeSamplerInput(None, *ends))
    _, places, *_ = out.metadata
    assert torch.equal(out.node[places], ends)


def test_a_program_in_the_place_of_its_sampler(data: Data) -> None:
    with pytest.raises(
        TypeError, match=r"sampler: expected a sampler, which told\(subgraph=, .*mak"
    ):
        Sampler(data, told)  # type: ignore[arg-type]


def test_what_has_neither_blocks_nor_a_subgraph(data: Data) -> None:
    degrees = pgs.program(lambda A, seeds: {"d": A[:, seeds].count(axis=0)})
    for sampler, kind in ((degrees(seed=0), "vectors"), (pgs.RandomWalk(3), "walks")):
        with pytest.raises(
            ValueError, match=f"expected a sampler that returns blocks or subgraphs, .* {kind}"
        ):
            Sampler(data, sampler)
