"""PyG's older loader: ``(batch_size, n_id, adjs)`` of layers, the outermost first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from pyg_reference import EDGES, NODES, random_data
from torch_geometric.data import Data
from torch_geometric.loader.neighbor_sampler import Adj, EdgeIndex
from torch_geometric.nn import SAGEConv

import pygsampler as pgs
from pygsampler.pyg.loader import NeighborSampler

DATA = random_data()
INDEX = DATA.edge_index
DEGREES = torch.bincount(INDEX[1], minlength=NODES)
# Twice the same, as a sampler of torch's may give them.
SEEDS = torch.tensor([3, 5, 3, 9, 3, 5, 8])


def check(batch: Any, seeds: list[int], sizes: list[int]) -> None:
    """A batch is of edges of the graph, along which layers lead to the seeds."""
    batch_size, n_id, adjs = batch
    adjs = adjs if isinstance(adjs, list) else [adjs]
    assert batch_size == len(seeds)
    assert n_id[:batch_size].tolist() == seeds
    assert len(adjs) == len(sizes)
    nodes = len(n_id)
    for (edge_index, e_id, size), fanout in zip(adjs, sizes[::-1], strict=True):
        assert size[0] == nodes
        assert torch.equal(INDEX[:, e_id], n_id[edge_index])
        degrees = torch.bincount(edge_index[1], minlength=size[1])
        of = DEGREES[n_id[: size[1]]]
        assert degrees.tolist() == (of if fanout < 0 else of.clamp(max=fanout)).tolist()
        # Every node is there for a target or an edge.
        assert len(edge_index[0].unique().clamp(min=size[1] - 1).unique()) == max(
            nodes - size[1], 0
        ) + bool((edge_index[0] < size[1]).any())
        nodes = size[1]
    assert nodes == batch_size


@pytest.mark.parametrize("sizes", [[3], [4, 3], [-1, 2], [2, 2, 2], [0, 2]])
def test_layers_lead_from_n_id_to_the_seeds(sizes: list[int]) -> None:
    (batch,) = NeighborSampler(INDEX, sizes, SEEDS, batch_size=7)
    check(batch, SEEDS.tolist(), sizes)
    loader = NeighborSampler(INDEX, sizes, batch_size=16, shuffle=True)
    assert len(loader) == -(-NODES // 16)
    seen = []
    for batch in loader:
        seeds = batch[1][: batch[0]].tolist()
        check(batch, seeds, sizes)
        seen += seeds
    assert sorted(seen) == list(range(NODES))


def test_one_size_is_no_list_and_none_are_no_edges() -> None:
    _, _, adj = NeighborSampler(INDEX, [2]).sample([1, 2])
    assert isinstance(adj, EdgeIndex)
    assert adj.to("cpu").size == adj.size
    assert NeighborSampler(INDEX, []).sample([4, 2])[2] == []


def test_options_are_pygs() -> None:
    mask = torch.zeros(NODES, dtype=torch.bool)
    mask[[2, 7]] = True
    loader = NeighborSampler(
        INDEX, sizes=[2, 4], node_idx=mask, return_e_id=False, dataset=None, collate_fn=None,
        transform=lambda *batch: SimpleNamespace(batch=batch),
    )  # fmt: skip
    assert str(loader) == "NeighborSampler(sizes=[2, 4])"
    found = [each.batch for each in loader]
    assert [n_id[0].item() for _, n_id, _ in found] == [2, 7]
    assert {adj.e_id for _, _, adjs in found for adj in adjs} == {None}
    loader.sizes = [1]
    loader.transform = None
    assert loader.sample([3])[2].size[1] == 1
    some = torch.tensor([[0, 1], [1, 0]])
    assert NeighborSampler(some, [1], torch.tensor([5])).sample([5])[1].tolist() == [5]
    assert len(NeighborSampler(some, [1])) == 2
    assert len(NeighborSampler(some, [1], num_nodes=4)) == 4
    graph = pgs.Graph.from_pyg(DATA)
    check(NeighborSampler(graph, [3, 2]).sample(SEEDS), SEEDS.tolist(), [3, 2])


@pytest.mark.filterwarnings("ignore:Sparse")
def test_a_matrix_gives_matrices() -> None:
    values = torch.arange(EDGES).float()
    adj_t = torch.sparse_coo_tensor(INDEX.flip(0), values, (NODES, NODES)).coalesce()
    adj_t = adj_t.to_sparse_csr()
    _, n_id, adjs = NeighborSampler(adj_t, [3, 2]).sample(SEEDS)
    for adj, e_id, size in adjs:
        assert isinstance(adjs[0], Adj)
        assert tuple(adj.shape) == size[::-1]
        assert torch.equal(adj.values(), adj_t.values()[e_id])
        assert torch.equal(n_id[adj.col_indices()], adj_t.col_indices()[e_id])
    features = torch.rand(NODES, 2)
    out = torch.sparse.mm(adjs[-1].adj_t, features[n_id[: adjs[-1].size[0]]])
    assert out.shape == (7, 2)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"edge_index": None}, TypeError, r"edge_index: expected a tensor of shape \[2, E\]"),
        ({"edge_index": INDEX[0]}, TypeError, "edge_index: expected a tensor"),
        ({"edge_index": INDEX.float()}, TypeError, "edge_index: expected int32 or int64"),
        ({"sizes": 3}, TypeError, "sizes: expected a list of int"),
        ({"sizes": [-2]}, ValueError, r"sizes\[0\]: expected an integer"),
        ({"node_idx": ["a"]}, (TypeError, ValueError), "."),
        ({"edge_index": Data(edge_index=INDEX)}, TypeError, r"a Data; give data\.edge_index"),
        ({"node_idx": torch.tensor([NODES + 3]), "num_nodes": NODES}, IndexError, "node_idx"),
        (
            {"node_idx": torch.zeros(3, dtype=torch.bool), "num_nodes": NODES},
            ValueError,
            "node_idx: expected a mask with a value for each of",
        ),
        ({"return_e_id": "no"}, TypeError, "return_e_id: expected True or False"),
    ],
)
def test_what_is_wrong_is_named(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        NeighborSampler(**({"edge_index": INDEX, "sizes": [2]} | given))


class SAGE(torch.nn.Module):
    """The model of OGB's script for ogbn-products, by this loader."""

    def __init__(self, width: int, hidden: int, classes: int) -> None:
        super().__init__()
        widths = [width, hidden, hidden, classes]
        self.convs = torch.nn.ModuleList(map(SAGEConv, widths, widths[1:]))

    def forward(self, x: Any, adjs: Any) -> Any:
        for i, (edge_index, _, size) in enumerate(adjs):
            x_target = x[: size[1]]
            x = self.convs[i]((x, x_target), edge_index)
            if i < len(self.convs) - 1:
                x = x.relu()
        return x.log_softmax(dim=-1)

    def inference(self, x_all: Any, loader: Any) -> Any:
        for i, conv in enumerate(self.convs):
            xs = []
            for _, n_id, adj in loader:
                edge_index, _, size = adj.to("cpu")
                x = x_all[n_id]
                x = conv((x, x[: size[1]]), edge_index)
                xs.append(x.relu() if i < len(self.convs) - 1 else x)
            x_all = torch.cat(xs, dim=0)
        return x_all.log_softmax(dim=-1)

    def whole(self, x: Any, edge_index: Any) -> Any:
        for i, conv in enumerate(self.convs):
            x = conv(x, edge_index)
            x = x.relu() if i < len(self.convs) - 1 else x
        return x.log_softmax(dim=-1)


def test_ogbs_script_trains_and_infers() -> None:
    """Nodes of four groups, with edges in them mostly, and features that say little."""
    torch.manual_seed(0)
    nodes, group = 400, torch.arange(400) % 4
    src = torch.randint(nodes, (4000,))
    near = (torch.randint(nodes // 4, (4000,)) * 4 + group[src]) % nodes
    dst = torch.where(torch.rand(4000) < 0.8, near, torch.randint(nodes, (4000,)))
    edge_index = torch.cat([torch.stack([src, dst]), torch.stack([dst, src])], dim=1)
    x = torch.nn.functional.one_hot(group, 4).float() + torch.randn(nodes, 4)
    train = torch.randperm(nodes)[:200]
    loader = NeighborSampler(
        edge_index, node_idx=train, sizes=[15, 10, 5], batch_size=64, shuffle=True, seed=0
    )
    whole = NeighborSampler(edge_index, node_idx=None, sizes=[-1], batch_size=100)
    model = SAGE(4, 16, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(8):
        total = 0.0
        for _, n_id, adjs in loader:
            optimizer.zero_grad()
            out = model(x[n_id], [adj.to("cpu") for adj in adjs])
            loss = torch.nn.functional.nll_loss(out, group[n_id[: len(out)]])
            loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(out)
        losses.append(total / len(train))
    assert losses[-1] < losses[0] / 2
    with torch.no_grad():
        found, expected = model.inference(x, whole), model.whole(x, edge_index)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert float((found.argmax(dim=-1) == group).float().mean()) > 0.8
