"""``blockwise``: PyG's own models give the same outputs and gradients, on fewer rows."""

from __future__ import annotations

import copy
import pickle
from inspect import signature
from typing import Any

import pytest
import torch
from blockwise_cases import IN, OUT, assert_close, assert_equal_steps, batch_of, data, skip_without
from torch_geometric.data import Data
from torch_geometric.loader import NodeLoader
from torch_geometric.nn import GAT, GCN, GIN, PNA, EdgeCNN, GATConv, GCNConv, GraphSAGE, SAGEConv

import pygsampler as pgs
from pygsampler.pyg import (
    EdgeIndex,
    LinkNeighborLoader,
    NeighborLoader,
    PGSampler,
    Sampler,
    blockwise,
    layers,
)

pytestmark = pytest.mark.usefixtures("double_precision")
DEGREES = {"deg": torch.tensor([1, 5, 9, 4])}
AGGREGATORS = {"aggregators": ["mean", "max", "std"], "scalers": ["identity", "amplification"]}


# A model, its options, and the values of edges that it takes.
CASES: list[tuple[Any, dict[str, Any], str]] = [
    (GraphSAGE, {}, ""),
    (GraphSAGE, {"aggr": "max"}, ""),
    (GraphSAGE, {"aggr": "sum", "normalize": True, "project": True}, ""),
    (GraphSAGE, {"aggr": "lstm"}, ""),
    (GraphSAGE, {"aggr": "median"}, ""),
    (GraphSAGE, {"root_weight": False, "bias": False}, ""),
    (GraphSAGE, {"norm": "layer_norm", "act_first": True}, ""),
    (GraphSAGE, {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}, "act": "elu"}, ""),
    (GCN, {}, ""),
    (GCN, {}, "edge_weight"),
    (GCN, {"improved": True}, ""),
    (GCN, {"improved": True}, "edge_weight"),
    (GCN, {"add_self_loops": False}, ""),
    (GCN, {"add_self_loops": False}, "edge_weight"),
    (GCN, {"normalize": False}, "edge_weight"),
    (GIN, {"train_eps": True}, ""),
    (GIN, {"norm": "graph_norm"}, ""),
    (GAT, {"heads": 2}, ""),
    (GAT, {"heads": 2, "add_self_loops": False, "residual": True}, ""),
    (GAT, {"heads": 2, "edge_dim": 3}, ""),
    (GAT, {"heads": 2, "edge_dim": 3}, "edge_attr"),
    (GAT, {"heads": 2, "edge_dim": 3, "fill_value": 0.5}, "edge_attr"),
    (GAT, {"heads": 2, "edge_dim": 3, "fill_value": "max"}, "edge_attr"),
    (GAT, {"heads": 2, "v2": True}, ""),
    (GAT, {"heads": 2, "v2": True, "share_weights": True, "edge_dim": 3}, "edge_attr"),
    (PNA, {**AGGREGATORS, **DEGREES}, ""),
    (PNA, {**AGGREGATORS, **DEGREES, "edge_dim": 3}, "edge_attr"),
    (EdgeCNN, {}, ""),
]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("hops", [False, True], ids=["batch", "hops"])
@pytest.mark.parametrize(
    ("kind", "options", "extra"), CASES, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_models_of_pyg_give_the_same(
    kind: Any, options: Any, extra: str, hops: bool, training: bool
) -> None:
    if "residual" in options and "residual" not in signature(GATConv).parameters:
        pytest.skip("needs PyG 2.6")
    batch = batch_of(data(), [4, 3])
    model = kind(IN, 16, 2, OUT, **options)
    extras = {extra: batch[extra]} if extra else {}
    assert_equal_steps(model, batch, training, hops, **extras)


@pytest.mark.parametrize("jk", ["last", "cat", "max", "lstm"])
@pytest.mark.parametrize("kind", [GraphSAGE, GAT])
def test_jumping_knowledge_takes_the_rows_that_all_layers_have(kind: Any, jk: str) -> None:
    assert_equal_steps(kind(IN, 16, 3, OUT, jk=jk), batch_of(data(), [3, 3, 2]))


@pytest.mark.parametrize("norm", ["batch_norm", "graph_norm", "pair_norm", "instance_norm"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("hops", [False, True], ids=["batch", "hops"])
def test_norms_take_the_statistics_of_the_same_rows(norm: str, training: bool, hops: bool) -> None:
    # Without biases, whose gradient before a mean is rounding alone.
    model = GraphSAGE(IN, 16, 3, OUT, norm=norm, bias=False)
    wrapped = assert_equal_steps(model, batch_of(data(), [3, 3, 2]), training, hops)
    statistics = [bool(line.reason) for line in wrapped.explain()]
    of_batch = training or norm != "batch_norm"
    assert statistics == [of_batch, of_batch, False]


@pytest.mark.parametrize("layout", ["coo", "edge_index"])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
@pytest.mark.parametrize("kind", [GraphSAGE, GCN, GAT, EdgeCNN])
def test_layouts_and_dtypes_of_edges(kind: Any, dtype: torch.dtype, layout: str) -> None:
    skip_without(layout)
    graph = data()
    graph.edge_index = graph.edge_index.to(dtype)
    batch = batch_of(graph, [4, 3], edge_index=layout)
    assert isinstance(batch.edge_index, EdgeIndex) == (layout == "edge_index")
    if layout == "edge_index" or dtype == torch.int64:
        assert_equal_steps(kind(IN, 16, 2, OUT), batch)
    elif kind is not EdgeCNN:
        # PyG's own layers want 64 bits.
        model = kind(IN, 16, 2, OUT)
        expected = model(batch.x, batch.edge_index.long())[: batch.batch_size]
        assert_close(blockwise(model)(batch), expected)


@pytest.mark.parametrize("options", [{"replace": True}, {"disjoint": True}, {"labor": "poisson"}])
@pytest.mark.parametrize("kind", [GraphSAGE, GCN])
def test_samplers_give_the_same(kind: Any, options: Any) -> None:
    seeds = torch.tensor([5, 5, 9, 180, 199])
    batch = batch_of(data(), [4, 3], input_nodes=seeds, **options)
    assert_equal_steps(kind(IN, 16, 2, OUT), batch)


@pytest.mark.parametrize("kind", [GraphSAGE, GCN, GIN, GAT, PNA, EdgeCNN])
@pytest.mark.parametrize("graph", ["isolated seeds", "one node", "one loop", "one edge"])
def test_graphs_with_hardly_any_edges(kind: Any, graph: str) -> None:
    nodes = 1 if "one node" in graph or "loop" in graph else 5
    ends = {"one edge": [[1], [0]], "one loop": [[0], [0]]}.get(graph, [[], []])
    edges = torch.tensor(ends, dtype=torch.int64)
    batch = batch_of(
        Data(x=torch.randn(nodes, IN), edge_index=edges), [2, 2], input_nodes=torch.arange(1)
    )
    options = {**AGGREGATORS, "deg": torch.tensor([1, 2])} if kind is PNA else {}
    wrapped = assert_equal_steps(kind(IN, 16, 2, OUT, **options), batch)
    # The next batch tells more.
    assert_equal_steps(wrapped._model, batch_of(data(), [4, 3]), wrapped=wrapped)


def test_fewer_layers_than_hops_and_no_more() -> None:
    batch = batch_of(data(), [3, 3, 2])
    for kind in (GraphSAGE, GCN, EdgeCNN):
        for hops in (False, True):
            assert_equal_steps(kind(IN, 16, 2, OUT, norm="graph_norm"), batch, hops=hops)
            assert_equal_steps(kind(IN, 16, 2, OUT), batch, hops=hops)
    with pytest.raises(ValueError, match=r"at most 3 layers .* sample as many hops"):
        blockwise(GraphSAGE(IN, 16, 4, OUT))(batch)


def test_layers_compute_the_rows_that_later_ones_need() -> None:
    batch, sizes = batch_of(data(), [4, 3]), []
    model = GraphSAGE(IN, 16, 2, OUT)
    for layer in model.convs:
        layer.register_forward_hook(lambda layer, args, out: sizes.append(len(out)))
    blockwise(model)(batch)
    seeds, first, _ = batch.num_sampled_nodes
    assert sizes == [seeds + first, seeds]


@pytest.mark.parametrize("kind", [GraphSAGE, GCN])
def test_batches_of_links_give_the_rows_of_all_ends(kind: Any) -> None:
    graph = data()
    loader = LinkNeighborLoader(
        graph, [4, 3], graph.edge_index[:, :20], neg_sampling="binary", batch_size=8, seed=1
    )
    model = kind(IN, 16, 2, OUT)
    for batch in loader:
        out = blockwise(model)(batch)
        assert len(out) == batch.num_sampled_nodes[0]
        assert_close(out, model(batch.x, batch.edge_index)[: len(out)])
        assert int(batch.edge_label_index.max()) < len(out)


def test_edges_in_another_order_within_a_hop() -> None:
    """Samplers of other packages do not sort the edges of a hop."""
    graph = data()
    batch = batch_of(graph, [4, 3])
    one, two = batch.num_sampled_edges
    order = torch.cat([torch.randperm(one), one + torch.randperm(two)])
    batch.edge_index = batch.edge_index[:, order]
    for kind, extra in ((GraphSAGE, ""), (GCN, "edge_weight"), (GAT, "edge_attr")):
        options = {"edge_dim": 3} if extra == "edge_attr" else {}
        extras = {extra: batch[extra][order]} if extra else {}
        assert_equal_steps(kind(IN, 16, 2, OUT, **options), batch, **extras)


def test_edges_that_are_not_by_hop_are_refused() -> None:
    batch = batch_of(data(), [4, 3])
    batch.edge_index = batch.edge_index.flip(1)
    with pytest.raises(ValueError, match="expected edges by hop"):
        blockwise(GraphSAGE(IN, 16, 2, OUT))(batch)
    with pytest.raises(ValueError, match="expected edges by hop"):
        list(layers(batch))


def test_samplers_that_expand_a_node_in_several_hops_are_refused() -> None:
    graph = data()
    sampler = Sampler(graph, pgs.PGSampler([4, 3], seed=1, frontier="all"))
    batch = next(iter(NodeLoader(graph, sampler, input_nodes=torch.arange(20), batch_size=20)))
    with pytest.raises(ValueError, match="a sampler that expands a node in several hops"):
        blockwise(GraphSAGE(IN, 16, 2, OUT))(batch)


def test_batches_of_other_loaders_with_hops() -> None:
    graph = data()
    loader = NodeLoader(graph, PGSampler(graph, [4, 3], seed=1), torch.arange(50), batch_size=20)
    for batch in loader:
        assert_equal_steps(GCN(IN, 16, 2, OUT), batch)


@pytest.mark.parametrize("kind", ["induced", "bidirectional"])
def test_batches_without_hops_are_refused(kind: str) -> None:
    batch = batch_of(data(), [4, 3], subgraph_type=kind)
    with pytest.raises(ValueError, match=r"num_sampled|edges that num_sampled_edges counts"):
        blockwise(GraphSAGE(IN, 16, 2, OUT))(batch)


def test_calls_that_are_refused() -> None:
    batch, model = batch_of(data(), [4, 3]), GraphSAGE(IN, 16, 2, OUT)
    with pytest.raises(TypeError, match="expected a Data or HeteroData of a NeighborLoader"):
        blockwise(model)(batch.x, batch.edge_index)
    with pytest.raises(TypeError, match="expected none with a batch"):
        blockwise(model)(batch, num_sampled_nodes_per_hop=[1, 2])
    with pytest.raises(ValueError, match="expected rows of"):
        other = copy.copy(batch)
        other.x = batch.x[:-1]
        blockwise(model)(other)
    with pytest.raises(TypeError, match=r"expected a torch\.nn\.Module"):
        blockwise(len)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected layers of PyG"):
        blockwise(torch.nn.Linear(1, 1))
    with pytest.raises(ValueError, match="cached=False"):
        blockwise(torch.nn.ModuleList([GCNConv(1, 1, cached=True)]))
    with pytest.raises(TypeError, match="expected a Data or HeteroData"):
        layers(3)


def test_parameters_and_state_are_those_of_the_model() -> None:
    model = GCN(IN, 16, 2, OUT, norm="batch_norm")
    wrapped = blockwise(model)
    assert blockwise(wrapped) is wrapped
    assert list(wrapped.state_dict()) == list(model.state_dict())
    assert [id(each) for each in wrapped.parameters()] == [id(each) for each in model.parameters()]
    state = {name: value + 1 for name, value in model.state_dict().items()}
    wrapped.load_state_dict(state)
    assert_close(model.convs[0].lin.weight, state["convs.0.lin.weight"])
    wrapped.eval()
    assert not model.training and not model.norms[0].training
    model.train()
    assert wrapped.training
    wrapped.to(torch.float32)
    assert model.convs[0].lin.weight.dtype == torch.float32
    assert wrapped.num_layers == 2
    assert "GCN(" in repr(wrapped)
    outer = torch.nn.ModuleDict({"model": wrapped})
    assert list(outer.state_dict()) == [f"model.{name}" for name in model.state_dict()]


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_copies_have_parameters_of_their_own(how: str) -> None:
    batch, model = batch_of(data(), [4, 3]), GraphSAGE(IN, 16, 2, OUT)
    wrapped = blockwise(model)
    expected = wrapped(batch)
    other = copy.deepcopy(wrapped) if how == "deepcopy" else pickle.loads(pickle.dumps(wrapped))
    assert_close(other(batch), expected)
    with torch.no_grad():
        for each in other.parameters():
            each.zero_()
    assert not other(batch).detach().any()
    assert_close(wrapped(batch), expected)
    assert not any("forward" in module.__dict__ for module in model.modules())


def test_hooks_of_layers_are_called() -> None:
    batch, model, calls = batch_of(data(), [4, 3]), GAT(IN, 16, 2, OUT, heads=2), []
    names = {module: name for name, module in model.named_modules()}
    for module in (model, model.convs[0], model.convs[1].lin):
        module.register_forward_pre_hook(lambda module, args: calls.append(names[module]))
        module.register_forward_hook(lambda module, args, out: calls.append(names[module]))
    wrapped = blockwise(model)
    wrapped(batch)
    # PyG's layer maps sources and destinations.
    assert calls == ["", "convs.0", "convs.0", *["convs.1.lin"] * 4, ""]
    assert [line.reason for line in wrapped.explain()] == ["", "lin with hooks or of another class"]


def test_backward_hooks_of_layers_are_called() -> None:
    batch, model, calls = batch_of(data(), [4, 3]), GraphSAGE(IN, 16, 2, OUT), []
    for conv in model.convs:
        conv.register_full_backward_hook(lambda *_: calls.append(len(calls)))
    assert_equal_steps(model, batch)
    # Those of the model itself, and ours.
    assert len(calls) == 4


class Adapted(torch.nn.Module):
    """A linear layer with a term beside it, as of LoRA."""

    def __init__(self, inner: torch.nn.Module) -> None:
        super().__init__()
        self.inner, self.weight, self.bias = inner, inner.weight, inner.bias
        self.more = torch.nn.Linear(inner.weight.shape[1], inner.weight.shape[0], bias=False)

    def forward(self, x: Any) -> Any:
        return self.inner(x) + self.more(x).sin()


@pytest.mark.parametrize(
    ("kind", "name"),
    [(GraphSAGE, "lin_l"), (GCN, "lin"), (GAT, "lin"), (GIN, "nn")],
    ids=["GraphSAGE", "GCN", "GAT", "GIN"],
)
def test_replaced_linear_layers_are_called(kind: Any, name: str) -> None:
    # Wide inputs, which a known matrix would make narrower first.
    model = kind(IN, 40, 2, 2)
    for conv in model.convs:
        if name == "nn":
            conv.nn.lins[0] = Adapted(conv.nn.lins[0])
        else:
            setattr(conv, name, Adapted(getattr(conv, name)))
    assert_equal_steps(model, batch_of(data(), [4, 3]))


def test_layers_with_methods_of_their_own_run_as_they_are() -> None:
    model = GraphSAGE(IN, 16, 2, OUT)
    message = model.convs[0].message
    model.convs[0].message = lambda x_j: 3 * message(x_j)
    model.convs[0].fuse = False
    wrapped = assert_equal_steps(model, batch_of(data(), [4, 3]))
    assert wrapped.explain()[0].reason == "methods of its own"


@pytest.mark.parametrize("kind", [GraphSAGE, GCN, GIN, GAT])
def test_wide_inputs_and_outputs(kind: Any) -> None:
    for widths in ((40, 2), (2, 40)):
        graph = data()
        graph.x = torch.randn(graph.num_nodes, widths[0])
        assert_equal_steps(kind(widths[0], 16, 2, widths[1]), batch_of(graph, [4, 3]))


def test_batches_of_inference_mode() -> None:
    model = GCN(IN, 16, 2, OUT).eval()
    with torch.inference_mode():
        batch = batch_of(data(), [4, 3])
        expected = model(batch.x, batch.edge_index)[: batch.batch_size]
        assert_close(blockwise(model)(batch), expected)


def test_report_says_what_was_replaced() -> None:
    model = GraphSAGE(IN, 16, 2, OUT)
    model.convs[1] = SAGEConv(16, OUT, aggr="median")
    wrapped = blockwise(model)
    assert [line.runs for line in wrapped.explain()] == ["reduction", "by its own forward"]
    wrapped(batch_of(data(), [4, 3]))
    text = str(wrapped.explain())
    assert text.splitlines()[0].split() == ["layer", "kind", "runs", "reason"]
    assert "on (x_source, x_target)" in text and "aggr='median'" in text


def test_dropout_has_the_models_rate() -> None:
    """Masks have other shapes than the model's: what is equal are their statistics."""
    batch = batch_of(data(), [4, 3])
    for options in ({}, {"v2": True}):
        model = GAT(IN, 16, 2, OUT, dropout=0.4, **options)
        wrapped = blockwise(model)
        runs = [
            torch.stack([run() for _ in range(300)])
            for run in (
                lambda wrapped=wrapped: wrapped(batch).detach(),
                lambda model=model: model(batch.x, batch.edge_index)[: batch.batch_size].detach(),
            )
        ]
        error = sum(each.var(0) / len(each) for each in runs).sqrt()
        assert float(((runs[0].mean(0) - runs[1].mean(0)) / error).abs().max()) < 5
        ratio = runs[0].var(0).mean() / runs[1].var(0).mean()
        assert 0.8 < float(ratio) < 1.25


@pytest.mark.parametrize("kind", [GraphSAGE, GCN, GIN, GAT])
def test_autocast_gives_what_the_model_gives(kind: Any) -> None:
    torch.set_default_dtype(torch.float32)
    graph = data()
    graph.x = graph.x.float()
    batch, model = batch_of(graph, [4, 3]), kind(IN, 16, 2, OUT)
    wrapped = blockwise(model)
    with torch.autocast("cpu", torch.bfloat16):
        expected = model(batch.x, batch.edge_index)[: batch.batch_size]
        out = wrapped(batch)
    torch.testing.assert_close(out.float(), expected.float(), rtol=0.05, atol=0.05)
    out.float().sum().backward()
    assert all(each.grad is not None for each in model.parameters())


@pytest.mark.parametrize("kind", [GraphSAGE, GCN, GIN, GAT], ids=lambda kind: kind.__name__)
def test_training_gives_the_same_losses(kind: Any) -> None:
    """50 steps from equal seeds, with the model itself and under ``blockwise``."""
    graph, losses = data(), []
    for wrap in (False, True):
        torch.manual_seed(0)
        model = kind(IN, 16, 2, 5)
        step = blockwise(model) if wrap else model
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        losses.append([])
        loader = NeighborLoader(graph, [4, 3], batch_size=20, seed=1)
        for batch in (batch for _ in range(5) for batch in loader):
            out = step(batch) if wrap else step(batch.x, batch.edge_index)[: batch.batch_size]
            loss = torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert len(losses[0]) == 50
    assert losses[0] == pytest.approx(losses[1], rel=1e-7)


@pytest.mark.parametrize("layout", ["coo", "edge_index"])
def test_layers_of_a_batch(layout: str) -> None:
    skip_without(layout)
    batch = batch_of(data(), [4, 3], edge_index=layout)
    model = GraphSAGE(IN, 16, 2, OUT)
    x = batch.x
    for (sources, destinations, edges), conv in zip(layers(batch), model.convs, strict=True):
        assert int(edges[0].max()) < sources and int(edges[1].max()) < destinations
        x = conv((x[:sources], x[:destinations]), edges)
        x = x.relu() if conv is model.convs[0] else x
    assert_close(x, model(batch.x, batch.edge_index)[: batch.batch_size])
