"""``NeighborLoader(edge_index="edge_index")``: PyG's layers give what plain tensors do."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from pyg_reference import NODES, content, random_data
from torch import nn as torch_nn
from torch_geometric import EdgeIndex as PyGEdgeIndex
from torch_geometric import nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import SamplerOutput
from torch_geometric.utils import scatter, softmax, to_dense_batch, trim_to_layer

import pygsampler as pgs
from pygsampler._ops.segments import Segments
from pygsampler.pyg import EdgeIndex, LinkNeighborLoader, NeighborLoader, PGSampler, Sampler

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process .* is multi-threaded:DeprecationWarning"
)
SEEDS = torch.cat([torch.arange(60), torch.tensor([7, 7, 3])])
WIDTH, HIDDEN = 12, 8
DEGREES = torch.bincount(torch.arange(NODES) % 9)


def conv(kind: Any, **options: Any) -> Callable[[int], Any]:
    return lambda width: kind(width, HIDDEN, **options)


# Of a width, one layer each; those by name take weights of edges too.
LAYERS: dict[str, Callable[[int], Any]] = {
    "SAGEConv": conv(nn.SAGEConv),
    "SAGEConv max": conv(nn.SAGEConv, aggr="max"),
    "SAGEConv sum": conv(nn.SAGEConv, aggr="sum"),
    "SAGEConv min": conv(nn.SAGEConv, aggr="min"),
    "SAGEConv lstm": conv(nn.SAGEConv, aggr="lstm"),
    "SAGEConv softmax": conv(nn.SAGEConv, aggr=nn.SoftmaxAggregation(learn=True)),
    "SAGEConv several": conv(nn.SAGEConv, aggr=["mean", "max", "std"]),
    "GCNConv": conv(nn.GCNConv),
    "GCNConv plain": conv(nn.GCNConv, add_self_loops=False),
    "GATConv": conv(nn.GATConv, heads=3, concat=False),
    "GATConv plain": conv(nn.GATConv, heads=3, concat=False, add_self_loops=False),
    "GATv2Conv": conv(nn.GATv2Conv, heads=2, concat=False),
    "GATv2Conv plain": conv(nn.GATv2Conv, heads=2, concat=False, add_self_loops=False),
    "TransformerConv": conv(nn.TransformerConv, heads=2, concat=False),
    "GINConv": lambda width: nn.GINConv(torch_nn.Linear(width, HIDDEN), train_eps=True),
    "GraphConv": conv(nn.GraphConv),
    "GraphConv mean": conv(nn.GraphConv, aggr="mean"),
    "GraphConv max": conv(nn.GraphConv, aggr="max"),
    "EdgeConv": lambda width: nn.EdgeConv(torch_nn.Linear(2 * width, HIDDEN)),
    "TAGConv": conv(nn.TAGConv),
    "ARMAConv": conv(nn.ARMAConv),
    "SGConv": conv(nn.SGConv),
    "ChebConv": conv(nn.ChebConv, K=2),
    "LEConv": conv(nn.LEConv),
    "ClusterGCNConv": conv(nn.ClusterGCNConv),
    "ResGatedGraphConv": conv(nn.ResGatedGraphConv),
    "GeneralConv": conv(nn.GeneralConv),
    "GENConv": conv(nn.GENConv),
    "FiLMConv": conv(nn.FiLMConv),
    "MFConv": conv(nn.MFConv),
    "PNAConv": conv(nn.PNAConv, aggregators=["mean", "max"], scalers=["identity"], deg=DEGREES),
    "SuperGATConv": conv(nn.SuperGATConv, heads=2, concat=False),
    "AGNNConv": lambda width: nn.AGNNConv(),
    "APPNP": lambda width: nn.APPNP(K=2, alpha=0.1),
    "GatedGraphConv": lambda width: nn.GatedGraphConv(width, num_layers=2),
}  # fmt: skip
WEIGHTED = ["GraphConv", "GraphConv mean", "GCNConv", "GCNConv plain", "TAGConv", "LEConv"]


def loader(layout: str = "edge_index", data: Any = None, **options: Any) -> Any:
    options = {"batch_size": 16, "seed": 1, "edge_index": layout, **options}
    made = NeighborLoader(random_data() if data is None else data, [4, 3, 2], SEEDS, **options)
    made.set_epoch(0)
    return made


def a_batch(**options: Any) -> Data:
    return next(iter(loader(**options)))


def results(layer: Any, x: torch.Tensor, edges: Any, *more: torch.Tensor) -> list[torch.Tensor]:
    """What a layer gives, and its gradients by x, weights and parameters."""
    torch.manual_seed(0)  # of negatives and dropout
    layer = copy.deepcopy(layer)
    leaves = [each.clone().requires_grad_() for each in (x, *more)]
    out = layer(leaves[0], edges, *leaves[1:])
    factors = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
    (out * factors).sum().backward()
    leaves += [each for each in layer.parameters() if each.grad is not None]
    return [out.detach(), *(each.grad for each in leaves if each.grad is not None)]


@pytest.mark.parametrize("trimmed", [0, 1, 2])
@pytest.mark.parametrize(
    ("name", "weighted"),
    [*((name, False) for name in LAYERS), *((name, True) for name in WEIGHTED)],
)
def test_layers_give_the_same(name: str, weighted: bool, trimmed: int) -> None:
    batch = a_batch()
    torch.manual_seed(2)
    layer = LAYERS[name](WIDTH).double()
    x = torch.randn(batch.num_nodes, WIDTH, dtype=torch.float64)
    weights = torch.rand(batch.num_edges, dtype=torch.float64)
    counts = batch.num_sampled_nodes, batch.num_sampled_edges
    edges = batch.edge_index
    for place in range(trimmed + 1):
        x, edges, weights = trim_to_layer(place, *counts, x, edges, weights)
    assert type(edges) is EdgeIndex
    more = (weights,) if weighted else ()
    found = results(layer, x, edges, *more)
    expected = results(layer, x, edges.as_tensor(), *more)
    assert len(found) == len(expected) > 1
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["SAGEConv", "SAGEConv max", "GATConv", "GraphConv"])
def test_other_dtypes(name: str, dtype: torch.dtype) -> None:
    batch = a_batch()
    torch.manual_seed(2)
    layer = LAYERS[name](WIDTH).to(dtype)
    x = torch.randn(batch.num_nodes, WIDTH).to(dtype)
    tolerance = {torch.float32: 1e-5, torch.float16: 0.02, torch.bfloat16: 0.2}[dtype]
    for one, other in zip(
        results(layer, x, batch.edge_index),
        results(layer, x, batch.edge_index.as_tensor()),
        strict=True,
    ):
        assert one.dtype == dtype
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", [nn.GraphSAGE, nn.GCN, nn.GAT, nn.GIN])
def test_models_trim_and_train_alike(kind: Any) -> None:
    losses = []
    for layout in ("coo", "edge_index"):
        torch.manual_seed(0)
        model = kind(1, 16, num_layers=3, out_channels=5)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        losses.append([])
        for _ in range(2):
            for batch in loader(layout):
                counts = batch.num_sampled_nodes, batch.num_sampled_edges
                out = model(
                    batch.x / NODES,
                    batch.edge_index,
                    num_sampled_nodes_per_hop=counts[0],
                    num_sampled_edges_per_hop=counts[1],
                )
                loss = torch_nn.functional.cross_entropy(
                    out[: batch.batch_size], batch.y[: batch.batch_size]
                )
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)


@pytest.fixture
def reductions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The kinds of those that the engine makes from now on."""
    made: list[int] = []
    reduce = Segments.reduce

    def noted(self: Segments, x: torch.Tensor, kind: int, *more: Any, **named: Any) -> Any:
        made.append(kind)
        return reduce(self, x, kind, *more, **named)

    monkeypatch.setattr(Segments, "reduce", noted)
    return made


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("SAGEConv sum", [0, 0]),
        ("SAGEConv", [0, 0, 0]),  # and the degrees
        ("SAGEConv max", [2, 0, 0]),  # how many share the gradient, and the gradient
        ("GraphConv", [0, 0]),
        ("GraphConv max", [2]),
        ("GINConv", [0, 0]),
        ("GCNConv plain", [0, 0, 0]),
    ],
)
def test_the_engine_adds_them_up(name: str, expected: list[int], reductions: list[int]) -> None:
    batch = a_batch()
    x = torch.randn(batch.num_nodes, WIDTH)
    results(LAYERS[name](WIDTH), x, batch.edge_index.as_tensor())
    assert reductions == []
    results(LAYERS[name](WIDTH), x, batch.edge_index)
    assert reductions == expected


def test_attention_is_added_up_by_it_too(reductions: list[int]) -> None:
    batch = a_batch()
    x = torch.randn(batch.num_nodes, WIDTH)
    for name in ("GATConv", "GATv2Conv", "TransformerConv"):
        reductions.clear()
        results(LAYERS[name](WIDTH), x, batch.edge_index)
        assert len(reductions) >= 3, name


@pytest.mark.parametrize("subgraph_type", ["directional", "bidirectional", "induced"])
@pytest.mark.parametrize("options", [{}, {"disjoint": True}, {"replace": True}])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_edges_are_as_they_say(subgraph_type: str, options: Any, dtype: torch.dtype) -> None:
    options = {**options, "subgraph_type": subgraph_type, "data": random_data(dtype=dtype)}
    for plain, batch in zip(loader("coo", **options), loader(**options), strict=True):
        edges = batch.edge_index
        assert type(edges) is EdgeIndex
        assert isinstance(edges, PyGEdgeIndex)
        assert edges.dtype == dtype
        assert edges.sort_order == (None if subgraph_type == "bidirectional" else "col")
        assert edges.sparse_size() == (len(batch.n_id),) * 2
        assert edges.validate() is edges
        assert edges.as_tensor().equal(plain.edge_index)
        if edges.sort_order:
            assert edges._indptr is not None
            assert edges.get_indptr().tolist() == [0, *_ends(edges)]
            assert edges.get_indptr().dtype == dtype
        batch.edge_index = edges.as_tensor()
        assert content(batch) == content(plain)


def _ends(edges: Any) -> list[int]:
    counts = torch.bincount(edges.as_tensor()[1].long(), minlength=edges.sparse_size(1))
    return counts.cumsum(0).tolist()


def test_links_and_out_neighbours() -> None:
    data = random_data()
    made = LinkNeighborLoader(data, [4], edge_index="edge_index", batch_size=50)
    for batch in made:
        assert batch.edge_index.validate().sort_order == "col"
    sampler = PGSampler(data, [4, 3], sample_direction="backward")
    for batch in loader(neighbor_sampler=sampler, seed=None):
        assert batch.edge_index.validate().sort_order == "row"
        assert batch.edge_index.get_indptr().tolist()[-1] == batch.num_edges
    # Where a vertex is expanded at several hops, edges are ordered hop by hop.
    sampler = Sampler(data, pgs.PGSampler([3, 3]))
    batch = next(iter(loader(neighbor_sampler=sampler, seed=None)))
    assert batch.edge_index.validate().sort_order is None


def test_trimming_keeps_order_and_pointers() -> None:
    batch = a_batch()
    counts = batch.num_sampled_nodes, batch.num_sampled_edges
    x, edges = batch.x, batch.edge_index
    for layer in range(3):
        x, edges, _ = trim_to_layer(layer, *counts, x, edges)
        assert edges.validate().sort_order == "col"
        assert edges.sparse_size() == (len(x), len(x))
        assert edges._indptr.tolist() == [0, *_ends(edges)]


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_send_them(workers: int) -> None:
    for plain, batch in zip(loader("coo"), loader(num_workers=workers), strict=True):
        edges = batch.edge_index
        assert type(edges) is EdgeIndex
        assert edges.sort_order == "col"
        assert edges._indptr is not None
        assert edges.as_tensor().equal(plain.edge_index)


def test_copies_keep_what_is_known() -> None:
    batch = a_batch()
    edges = batch.edge_index
    for other in (
        pickle.loads(pickle.dumps(edges)),
        copy.deepcopy(edges),
        copy.copy(edges),
        edges.clone(),
        edges.to("cpu"),
        edges.to("cpu", copy=True),
        edges.int(),
        batch.clone().edge_index,
        batch.to("cpu").edge_index,
        edges[:, torch.ones(batch.num_edges, dtype=torch.bool)],
        edges.flip(0).flip(0),
    ):
        assert type(other) is EdgeIndex
        assert other.sort_order == "col"
        assert other.sparse_size() == edges.sparse_size()
        assert other.as_tensor().equal(edges.as_tensor().to(other.dtype))
        assert other.get_indptr().equal(edges.get_indptr().to(other.dtype))
        sums = scatter(torch.ones(batch.num_edges, 1), other[1].long(), 0, len(batch.n_id))
        assert sums.squeeze(1).tolist() == torch.tensor([0, *_ends(edges)]).diff().tolist()


def test_its_ends_are_tensors_as_others() -> None:
    batch = a_batch()
    data, edges = batch.edge_index.as_tensor(), batch.edge_index
    for end, plain in ((edges[0], data[0]), (edges[1], data[1])):
        assert end.shape == plain.shape
        assert end.dtype == plain.dtype
        assert end.tolist() == plain.tolist()
        assert end.numpy().tolist() == plain.tolist()
        assert repr(end) == repr(plain)
        assert pickle.loads(pickle.dumps(end)).equal(plain)
        assert (end + 1).equal(plain + 1)
        assert torch.equal(end, plain)
        assert end.max() == plain.max()
        assert end[3:9].equal(plain[3:9])
        assert torch.cat([end, plain]).equal(torch.cat([plain, plain]))
        assert batch.x[end].equal(batch.x[plain])
        assert end.view(-1, 1).expand(-1, 3).clone().equal(plain.view(-1, 1).expand(-1, 3))
        assert end.view(1, -1).shape == (1, len(plain))
        assert end.unique().equal(plain.unique())
    source, target = edges
    assert torch.stack([source, target]).equal(data)
    assert edges.tolist() == data.tolist()
    assert (edges * 2).equal(data * 2)


def test_what_is_reduced_by_an_end() -> None:
    """All that PyG's ``scatter`` takes, sums that go on from others, and other dimensions."""
    batch = a_batch()
    data, edges, nodes = batch.edge_index.as_tensor(), batch.edge_index, len(batch.n_id)
    values = torch.randn(batch.num_edges, 3, 2, dtype=torch.float64)
    numbers = torch.randint(0, 9, (batch.num_edges, 3))
    before = torch.randn(nodes, 3, 2, dtype=torch.float64)
    for row in (0, 1):
        end, plain = edges[row], data[row]
        for reduce in ("sum", "mean", "max", "min", "mul", "any"):
            for each in (values, values[:, 0, 0], values[:, :0], numbers):
                found, expected = (scatter(each, by, 0, nodes, reduce) for by in (end, plain))
                torch.testing.assert_close(found, expected)
        found, expected = (
            scatter(values.transpose(0, 1), by, 1, nodes, "sum") for by in (end, plain)
        )
        torch.testing.assert_close(found, expected)
        found, expected = (softmax(values, by, num_nodes=nodes) for by in (end, plain))
        torch.testing.assert_close(found, expected)
        wide, narrow = (by.view(-1, 1, 1).expand_as(values) for by in (end, plain))
        for name, more in (
            ("scatter_add", {}),
            ("scatter_add_", {}),
            ("scatter_reduce", {"reduce": "amax", "include_self": False}),
            ("scatter_reduce_", {"reduce": "amax", "include_self": False}),
            ("scatter_reduce_", {"reduce": "amax", "include_self": True}),
            ("scatter_reduce_", {"reduce": "mean", "include_self": False}),
        ):
            found, expected = (
                getattr(before.clone(), name)(0, by, src=values, **more) for by in (wide, narrow)
            )
            torch.testing.assert_close(found, expected)
        # Fewer columns than the index has, which torch allows.
        found, expected = (before.scatter_add(0, by[:, :1], values) for by in (wide, narrow))
        torch.testing.assert_close(found, expected)
        for alpha in (1, 2):
            found, expected = (before.index_add(0, by, values, alpha=alpha) for by in (end, plain))
            torch.testing.assert_close(found, expected)
        assert before.gather(0, wide).equal(before.gather(0, narrow))
    _, mask = to_dense_batch(values[:, 0], edges[1], batch_size=nodes)
    assert mask.sum() == batch.num_edges


def test_gradients_of_gradients() -> None:
    batch = a_batch()
    layer = nn.SAGEConv(2, 2, aggr="sum").double()
    x = torch.randn(len(batch.n_id), 2, dtype=torch.float64, requires_grad=True)
    seconds = []
    for edges in (batch.edge_index, batch.edge_index.as_tensor()):
        (first,) = torch.autograd.grad((layer(x, edges) ** 3).sum(), x, create_graph=True)
        seconds.append(torch.autograd.grad((first**2).sum(), x)[0])
    torch.testing.assert_close(*seconds)


def test_what_is_written_to_them_counts() -> None:
    """Then nobody knows their order, and they are looked at anew."""
    batch = a_batch()
    edges, nodes = batch.edge_index, len(batch.n_id)
    values = torch.randn(batch.num_edges, 2)

    def same() -> None:
        for row in (0, 1):
            found, expected = (
                scatter(values, by[row], 0, nodes) for by in (edges, edges.as_tensor())
            )
            torch.testing.assert_close(found, expected)

    same()
    edges.as_tensor()[1] = edges.as_tensor()[1].flip(0)
    same()
    edges[1] = edges.as_tensor()[1].flip(0)
    same()
    target = edges[1]
    target %= 3
    same()
    edges.sub_(torch.tensor([[0], [-1]]))
    same()


def test_without_edges() -> None:
    data = Data(x=torch.randn(NODES, 3), edge_index=torch.empty(2, 0, dtype=torch.int64))
    for batch in loader(data=data):
        for edges in (batch.edge_index, batch.edge_index.as_tensor()):
            x = batch.x.clone().requires_grad_()
            out = nn.SAGEConv(3, 2)(x, edges)
            out.sum().backward()
            assert out.shape == (len(batch.n_id), 2)


def test_in_inference_mode() -> None:
    layer = nn.GATConv(1, 4).eval()
    with torch.inference_mode():
        for batch in loader():
            found, expected = (
                layer(batch.x, each) for each in (batch.edge_index, batch.edge_index.as_tensor())
            )
            torch.testing.assert_close(found, expected)


def test_a_changed_order_is_not_claimed() -> None:
    def turned(out: SamplerOutput) -> SamplerOutput:
        out.row, out.col, out.edge = out.row.flip(0), out.col.flip(0), out.edge.flip(0)
        return out

    batch = a_batch(transform_sampler_output=turned)
    assert batch.edge_index.sort_order is None
    layer, x = nn.SAGEConv(4, 4), torch.randn(len(batch.n_id), 4)
    for one, other in zip(
        results(layer, x, batch.edge_index),
        results(layer, x, batch.edge_index.as_tensor()),
        strict=True,
    ):
        torch.testing.assert_close(one, other)


def test_pyg_refuses_other_sizes() -> None:
    """As of its own class: who trims by hand gives a tensor, or resizes."""
    batch = a_batch()
    layer, x = nn.SAGEConv((1, 1), 4), batch.x
    with pytest.raises(ValueError, match="expected size"):
        layer((x, x[:5]), batch.edge_index)


@pytest.mark.parametrize("layout", ["csc", None, True])
def test_mistakes(layout: Any) -> None:
    with pytest.raises(ValueError, match="edge_index: expected 'coo' or 'edge_index', got"):
        loader(layout)


def test_older_versions_of_pyg_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch_geometric.__version__", "2.5.3")
    loader("coo")
    with pytest.raises(NotImplementedError, match=r"PyG 2\.5\.3, got 'edge_index'"):
        loader()


def test_hgt_conv_is_refused_as_with_pygs_class() -> None:
    """It joins all types to one graph, of which the edges' sizes are no longer true."""
    data = HeteroData()
    data["a"].x, data["b"].x = torch.randn(60, 8), torch.randn(40, 8)
    edges = torch.stack([torch.randint(0, 60, (300,)), torch.randint(0, 40, (300,))])
    data["a", "to", "b"].edge_index, data["b", "to", "a"].edge_index = edges, edges.flip(0)
    loader = NeighborLoader(data, [3, 3], "a", batch_size=20, edge_index="edge_index")
    batch = next(iter(loader))
    layer = nn.HGTConv(8, 8, data.metadata(), heads=2)
    with pytest.raises(ValueError, match="expected size"):
        layer(batch.x_dict, batch.edge_index_dict)
    plain = {kind: ends.as_tensor() for kind, ends in batch.edge_index_dict.items()}
    assert layer(batch.x_dict, plain)["a"].shape == (batch["a"].num_nodes, 8)
