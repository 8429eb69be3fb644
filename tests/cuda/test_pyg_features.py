"""Features, stores and EdgeIndex of PyG's loaders with a GPU: what the CPU gives."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    pytest.importorskip("torch_geometric", reason="needs PyG")
    from torch_geometric import nn

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.utils import trim_to_layer  # noqa: E402

import pygsampler as pgs  # noqa: E402
from pygsampler.pyg import EdgeIndex, FeatureStore, GraphStore, NeighborLoader  # noqa: E402

# PyG and torch warn of each other, and Python of the forks of torch's loader.
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("gpu")]
NODES, EDGES = 500, 4000
SEEDS = torch.cat([torch.arange(300), torch.tensor([7, 7, 3])])
X = torch.randn(NODES, 3, 5).half()
W = torch.arange(2 * EDGES).reshape(EDGES, 2)
LAYERS = {
    "SAGEConv": lambda: nn.SAGEConv(12, 8),
    "SAGEConv max": lambda: nn.SAGEConv(12, 8, aggr="max"),
    "SAGEConv sum": lambda: nn.SAGEConv(12, 8, aggr="sum"),
    "SAGEConv lstm": lambda: nn.SAGEConv(12, 8, aggr="lstm"),
    "GCNConv": lambda: nn.GCNConv(12, 8),
    "GATConv": lambda: nn.GATConv(12, 4, heads=2),
    "GATConv plain": lambda: nn.GATConv(12, 4, heads=2, add_self_loops=False),
    "GATv2Conv": lambda: nn.GATv2Conv(12, 4, heads=2),
    "TransformerConv": lambda: nn.TransformerConv(12, 4, heads=2),
    "GINConv": lambda: nn.GINConv(torch.nn.Linear(12, 8)),
    "GraphConv": lambda: nn.GraphConv(12, 8),
    "GraphConv mean": lambda: nn.GraphConv(12, 8, aggr="mean"),
    "GraphConv max": lambda: nn.GraphConv(12, 8, aggr="max"),
}


def make_data(place: str) -> Any:
    random = torch.Generator().manual_seed(0)
    src = torch.randint(0, NODES, (EDGES,), generator=random)
    dst = (torch.rand(EDGES, generator=random) ** 3 * NODES * 0.9).long()
    return Data(edge_index=torch.stack([src, dst]).to(place), num_nodes=NODES)


def batches(device: str, place: str = "cpu", **options: Any) -> Any:
    loader = NeighborLoader(
        make_data(place), [5, 4], SEEDS, batch_size=64, seed=3, device=device, **options
    )
    loader.set_epoch(1)
    return loader


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("place", ["cpu", "pinned", "cuda", "tensor"])
def test_rows_are_those_of_the_cpu(place: str, device: str) -> None:
    def placed(x: Any) -> Any:
        if place == "tensor":
            return x.cuda()
        features = pgs.Features.from_tensor(x)
        return {"cpu": features, "pinned": features.pin(), "cuda": features.to("cuda")}[place]

    options = {"features": {"x": placed(X)}, "edge_features": {"w": placed(W)}}
    for workers in (0, 2) if device == "cpu" else (0,):
        for batch in batches(device, **options, num_workers=workers):
            assert batch.x.is_cuda == batch.w.is_cuda == (device == "cuda" or place != "cpu")
            assert batch.x.cpu().equal(X[batch.n_id.cpu()])
            assert batch.w.cpu().equal(W[batch.e_id.cpu()])


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_stores_on_a_gpu(place: str) -> None:
    graph = pgs.Graph.from_pyg(make_data("cpu")).to("cuda")
    store = FeatureStore(
        {"x": pgs.Features.from_tensor(X).to(place)}, {"w": pgs.Features.from_tensor(W).to(place)}
    )
    stores = store, GraphStore(graph)
    for batch in NeighborLoader(stores, [5, 4], SEEDS, batch_size=64):
        assert batch.n_id.is_cuda
        assert batch.x.cpu().equal(X[batch.n_id.cpu()])
        assert batch.w.cpu().equal(W[batch.e_id.cpu()])
    with pytest.raises(IndexError, match="expected an integer in"):
        store[None, "x", torch.tensor([0, NODES], device="cuda")]
    assert store[None, "x", torch.tensor([3, 1], device="cuda")].cpu().equal(X[[3, 1]])


# Whose sums are not ours, on a GPU: cuDNN's, and those of PyG's softmax where it has pointers.
OTHER_ORDERS = ("SAGEConv lstm", "GATConv plain", "TransformerConv")


@pytest.mark.parametrize("name", LAYERS)
def test_layers_give_the_same(name: str) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name]().double().cuda()
    batch = next(iter(batches("cuda", "cuda", edge_index="edge_index")))
    values = torch.randn(batch.num_nodes, 12, dtype=torch.float64, device="cuda")
    counts = batch.num_sampled_nodes, batch.num_sampled_edges
    x, edges = values, batch.edge_index
    for place in range(2):
        x, edges, _ = trim_to_layer(place, *counts, x, edges)
        assert type(edges) is EdgeIndex
        assert edges.is_cuda
        assert edges.validate().sort_order == "col"
        found = []
        # The same bits each time, too.
        for each in (edges, edges.clone(), edges.as_tensor()):
            same, h = copy.deepcopy(layer), x.clone().requires_grad_()
            out = same(h, each)
            (out * torch.linspace(-1, 1, out.numel(), device="cuda").view_as(out)).sum().backward()
            found.append([out.detach(), h.grad, *(p.grad for p in same.parameters())])
        for one, again, other in zip(*found, strict=True):
            assert one.equal(again) or name in OTHER_ORDERS
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_moved_and_pinned() -> None:
    expected = [batch.edge_index for batch in batches("cpu", edge_index="edge_index")]
    there = [batch.edge_index for batch in batches("cuda", "cuda", edge_index="edge_index")]
    pinned = batches("cpu", edge_index="edge_index", pin_memory=True, num_workers=2)
    for edges, other, batch in zip(expected, there, pinned, strict=True):
        assert batch.edge_index.is_pinned()
        moved = batch.to("cuda", non_blocking=True).edge_index
        for each in (other, moved, edges.cuda()):
            assert type(each) is EdgeIndex
            assert each.is_cuda
            assert each.sort_order == "col"
            assert each.sparse_size() == edges.sparse_size()
            assert each.as_tensor().cpu().equal(edges.as_tensor())
            assert each.get_indptr().cpu().equal(edges.get_indptr())
