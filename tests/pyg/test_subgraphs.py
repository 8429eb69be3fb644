"""ShaDowKHopSampler and GraphSAINTNodeSampler."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import pytest
import torch
from pyg_reference import EDGES, NODES, random_data
from torch_geometric.data import Data, HeteroData

from pygsampler.pyg import (
    GraphSAINTEdgeSampler,
    GraphSAINTNodeSampler,
    GraphSAINTRandomWalkSampler,
    ShaDowKHopSampler,
)


@pytest.fixture
def data() -> Data:
    made = random_data()
    made.x = torch.arange(float(NODES))[:, None]
    made.y = torch.arange(NODES) * 2
    made.edge_attr = torch.arange(EDGES)
    made.name = "all"
    return made


def check_edges(data: Data, batch: Any) -> None:
    """Edges, and attributes, are those of the ids."""
    assert torch.equal(batch.n_id[batch.edge_index], data.edge_index[:, batch.e_id])
    assert torch.equal(batch.x[:, 0].long(), batch.n_id)
    assert torch.equal(batch.edge_attr, batch.e_id)
    assert batch.name == "all"


def inside(data: Data, nodes: torch.Tensor) -> list[int]:
    found: list[int] = torch.isin(data.edge_index, nodes).all(0).nonzero().squeeze(1).tolist()
    return found


@pytest.mark.parametrize("workers", [0, 2])
def test_a_subgraph_for_each_root(data: Data, workers: int) -> None:
    roots = torch.tensor([5, 3, 5, 11, 0])
    loader = ShaDowKHopSampler(data, 2, 3, roots, batch_size=2, num_workers=workers)
    seen: list[int] = []
    for batch in loader:
        check_edges(data, batch)
        mine = batch.n_id[batch.root_n_id]
        ascending = batch.batch * (1 << 32) + batch.n_id
        assert (ascending.diff() > 0).all()
        assert torch.equal(batch.y, 2 * mine)
        assert batch.ptr[-1] == len(batch.n_id)
        assert torch.equal(batch.batch, torch.arange(len(mine)).repeat_interleave(batch.ptr.diff()))
        subgraph_ids = batch.batch[batch.edge_index]
        assert torch.equal(subgraph_ids[0], subgraph_ids[1])
        for tree in range(len(mine)):
            nodes = batch.n_id[batch.batch == tree]
            assert len(nodes.unique()) == len(nodes) <= 1 + 3 + 9
            assert batch.e_id[subgraph_ids[0] == tree].sort().values.tolist() == inside(data, nodes)
        seen += mine.tolist()
    assert seen == roots.tolist()


def test_hops_expand_what_is_new() -> None:
    # A path into 0, and a second neighbour of 0.
    data = Data(edge_index=torch.tensor([[1, 4, 2, 3], [0, 0, 1, 2]]), num_nodes=5)
    for depth, met in ((0, {0}), (1, {0, 1, 4}), (2, {0, 1, 2, 4}), (3, {0, 1, 2, 3, 4})):
        (batch,) = ShaDowKHopSampler(data, depth, -1, torch.tensor([0]))
        assert set(batch.n_id.tolist()) == met
    runs, ones = 600, 0
    for batch in ShaDowKHopSampler(data, 2, 1, torch.zeros(runs, dtype=torch.int64), seed=1):
        # By one draw a node, and one round each: never both neighbours of 0.
        assert set(batch.n_id.tolist()) in ({0, 1, 2}, {0, 4})
        ones += 1 in batch.n_id
    assert abs(ones / runs - 0.5) < 5 * 0.5 / math.sqrt(runs)


def test_masks_and_mistakes(data: Data) -> None:
    mask = torch.zeros(NODES, dtype=torch.bool)
    mask[[2, 7]] = True
    assert ShaDowKHopSampler(data, 1, 2, mask).node_idx.tolist() == [2, 7]
    assert len(ShaDowKHopSampler(data, 1, 2)) == NODES
    with pytest.raises(IndexError, match="node_idx"):
        ShaDowKHopSampler(data, 1, 2, torch.tensor([NODES]))
    with pytest.raises(
        ValueError, match=r"node_idx: expected a mask with a value for each of \d+ nodes, got 3"
    ):
        ShaDowKHopSampler(data, 1, 2, mask[:3])
    assert ShaDowKHopSampler(data, 1, 2, [1, 2]).node_idx.tolist() == [1, 2]
    with pytest.raises(TypeError, match="node_idx: expected ids or a mask of nodes, got list"):
        ShaDowKHopSampler(data, 1, 2, ["a"])
    with pytest.raises(TypeError, match="sample_coverage: expected an integer"):
        GraphSAINTNodeSampler(data, 3, sample_coverage="5")
    with pytest.raises(ValueError, match="depth: expected an integer"):
        ShaDowKHopSampler(data, -1, 2)
    with pytest.raises(ValueError, match="batch_size: expected an integer"):
        GraphSAINTNodeSampler(data, 0)
    with pytest.raises(NotImplementedError, match="HeteroData"):
        GraphSAINTNodeSampler(HeteroData(), 3)
    with pytest.raises(TypeError, match="expected a torch_geometric"):
        ShaDowKHopSampler(3, 1, 2)
    data.node_norm = torch.ones(NODES)
    with pytest.raises(ValueError, match="node_norm"):
        GraphSAINTNodeSampler(data, 3)


@pytest.mark.parametrize("workers", [0, 2])
def test_saint_batches(data: Data, workers: int) -> None:
    loader = GraphSAINTNodeSampler(data, 12, num_steps=5, num_workers=workers)
    assert len(loader) == 5
    found = set()
    for batch in loader:
        assert 1 < batch.num_nodes <= 12
        check_edges(data, batch)
        assert batch.e_id.sort().values.tolist() == inside(data, batch.n_id)
        found.add(tuple(batch.n_id.tolist()))
    assert len(found) == 5


def test_saint_norms_are_exact() -> None:
    # With a loop and a parallel edge; node 4 has no out-edge.
    data = Data(edge_index=torch.tensor([[0, 0, 1, 2, 1, 3, 0], [1, 2, 0, 2, 3, 4, 1]]))
    data.num_nodes = 5
    degrees, draws = [3, 2, 1, 1, 0], 3
    chance, joint = torch.zeros(5).double(), torch.zeros(5, 5).double()
    for each in product(range(5), repeat=draws):
        weight = math.prod(degrees[v] / 7 for v in each)
        there = torch.zeros(5).double()
        there[list(each)] = 1
        chance += weight * there
        joint += weight * there[:, None] * there
    steps = 500
    count = torch.zeros(5)
    loader = GraphSAINTNodeSampler(data, draws, num_steps=steps, seed=3)
    assert (loader.N, loader.E, loader.sample_coverage) == (5, 7, 0)
    for batch in loader:
        nodes = batch.n_id
        assert torch.equal(batch.node_norm, loader.node_norm[nodes])
        assert torch.equal(batch.edge_norm, loader.edge_norm[batch.e_id])
        count[nodes] += 1
        torch.testing.assert_close(batch.node_norm, (1 / (5 * chance[nodes])).float())
        source, target = nodes[batch.edge_index]
        exact = chance[target] / joint[source, target]
        torch.testing.assert_close(batch.edge_norm, exact.float())
    bound = 5 * (chance * (1 - chance) / steps).sqrt()
    assert ((count / steps - chance).abs() <= bound).all()


SAINTS = {
    "walk": lambda data, **how: GraphSAINTRandomWalkSampler(data, 6, 2, num_steps=5, **how),
    "edge": lambda data, **how: GraphSAINTEdgeSampler(data, 6, num_steps=5, **how),
}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("mode", list(SAINTS))
def test_saint_walks_and_edges(mode: str, data: Data, workers: int) -> None:
    loader = SAINTS[mode](data, num_workers=workers)
    assert len(loader) == 5
    found = set()
    for batch in loader:
        assert 1 < batch.num_nodes <= (18 if mode == "walk" else 12)
        assert "node_norm" not in batch
        with pytest.raises(AttributeError, match="expected sample_coverage above 0"):
            loader.node_norm  # noqa: B018
        check_edges(data, batch)
        assert batch.e_id.sort().values.tolist() == inside(data, batch.n_id)
        found.add(tuple(batch.n_id.tolist()))
    assert len(found) == 5


def directed() -> Data:
    """Out-degrees 3, 2, 1, 1 and 0, with a loop and a parallel edge."""
    data = Data(edge_index=torch.tensor([[0, 0, 1, 2, 1, 3, 0], [1, 2, 0, 2, 3, 4, 1]]))
    data.num_nodes = 5
    return data


def law_of(mode: str) -> Counter[frozenset[int]]:
    """The chances of sets of nodes by one walk of two steps, and by one edge."""
    row, col = directed().edge_index.tolist()
    law: Counter[frozenset[int]] = Counter()
    if mode == "edge":
        for u, v in zip(row, col, strict=True):
            law[frozenset([u, v])] += (1 / row.count(u) + 1 / col.count(v)) / 9  # type: ignore[assignment]
        return law
    nexts = {v: [w for u, w in zip(row, col, strict=True) if u == v] or [v] for v in range(5)}
    for u in range(5):
        for v in nexts[u]:
            for w in nexts[v]:
                chance = 1 / (5 * len(nexts[u]) * len(nexts[v]))
                law[frozenset([u, v, w])] += chance  # type: ignore[assignment]
    return law


@pytest.mark.parametrize("mode", list(SAINTS))
def test_laws_and_norms_of_saint(mode: str) -> None:
    law, steps = law_of(mode), 1500
    assert sum(law.values()) == pytest.approx(1)
    how: Any = {"num_steps": steps, "sample_coverage": 400, "seed": 3}
    data = directed()
    if mode == "walk":
        loader: Any = GraphSAINTRandomWalkSampler(data, 1, 2, **how)
    else:
        loader = GraphSAINTEdgeSampler(data, 1, **how)
    met = Counter[frozenset[int]]()
    for batch in loader:
        met[frozenset(batch.n_id.tolist())] += 1
        assert torch.equal(batch.node_norm, loader.node_norm[batch.n_id])
        assert torch.equal(batch.edge_norm, loader.edge_norm[batch.e_id])
        source, target = batch.n_id[batch.edge_index].tolist()
        chance = [sum(p for c, p in law.items() if v in c) for v in range(5)]
        for v, norm in zip(batch.n_id.tolist(), batch.node_norm.tolist(), strict=True):
            assert norm == pytest.approx(1 / (5 * chance[v]), rel=0.25)
        for u, v, norm in zip(source, target, batch.edge_norm.tolist(), strict=True):
            both = sum(p for c, p in law.items() if {u, v} <= c)
            assert norm == pytest.approx(chance[v] / both, rel=0.25)
            assert norm >= 1
    assert set(met) <= set(law)
    for there, p in law.items():
        assert abs(met[there] - p * steps) <= 5 * math.sqrt(p * (1 - p) * steps)


@pytest.mark.parametrize(
    "make",
    [
        lambda data: ShaDowKHopSampler(data, 2, 2, torch.arange(8), batch_size=4),
        lambda data: GraphSAINTNodeSampler(data, 12, num_steps=2),
        *SAINTS.values(),
    ],
)
def test_an_epoch_says_the_batches(make: Any, data: Data) -> None:
    def nodes(loader: Any) -> list[list[int]]:
        return [batch.n_id.tolist() for batch in loader]

    torch.manual_seed(2)
    first, second = make(data), make(data)
    assert nodes(first) != nodes(first)
    for loader in (first, second):
        loader.set_epoch(4)
    assert nodes(first) == nodes(second) == nodes(first)
    second.set_seed(9)
    assert nodes(first) != nodes(second)
    first.set_epoch(None)
    second.set_epoch(None)
    second.set_seed(None)
    torch.manual_seed(6)
    found = nodes(first)
    torch.manual_seed(6)
    assert nodes(second) == found
