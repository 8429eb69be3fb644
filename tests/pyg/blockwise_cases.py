"""Graphs, models and comparisons that the tests of ``blockwise`` share."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from pyg_reference import random_data
from torch.nn import functional
from torch_geometric.data import HeteroData
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import add_self_loops, degree

from pygsampler.pyg import NeighborLoader, blockwise

IN, HIDDEN, OUT = 8, 16, 6
# In double precision differences are those of formulas, not of sums.
BOUND = 1e-9


def data(nodes: int = 200, edges: int = 1200) -> Any:
    """A graph with self loops, parallel edges and isolated nodes, and values of its edges."""
    graph = random_data(nodes, edges)
    random = torch.Generator().manual_seed(1)
    graph.x = torch.randn(nodes, IN, dtype=torch.float64, generator=random)
    graph.edge_attr = torch.randn(edges, 3, dtype=torch.float64, generator=random)
    graph.edge_weight = torch.rand(edges, dtype=torch.float64, generator=random) + 0.1
    graph.edge_type = torch.randint(4, (edges,), generator=random)
    return graph


def skip_without(layout: str) -> None:
    """Skips a test of edges that this version of PyG has not."""
    # Not above, where it would be imported before pyg_reference has silenced its warnings.
    from torch_geometric import __version__

    version = tuple(map(int, __version__.split(".")[:2]))
    if layout == "edge_index" and version < (2, 6):
        pytest.skip("edge_index='edge_index' needs PyG 2.6")


def batch_of(graph: Any, fanouts: list[int], **options: Any) -> Any:
    """Returns the first batch of a loader."""
    options = {"input_nodes": torch.arange(0, graph.num_nodes, 7), "batch_size": 16} | options
    return next(iter(NeighborLoader(graph, fanouts, seed=3, **options)))


def hetero_data() -> Any:
    """A graph of three node types, of which one has features of another width."""
    random = torch.Generator().manual_seed(2)
    graph, sizes = HeteroData(), {"paper": 120, "author": 90, "field": 12}
    for kind, count in sizes.items():
        graph[kind].x = torch.randn(count, IN, dtype=torch.float64, generator=random)
    graph["author"].x = graph["author"].x[:, :5]
    for src, name, dst, edges in (
        ("paper", "cites", "paper", 600),
        ("author", "writes", "paper", 500),
        ("paper", "written", "author", 500),
        ("field", "has", "author", 200),
        ("author", "in", "field", 200),
    ):
        ends = [torch.randint(sizes[kind], (edges,), generator=random) for kind in (src, dst)]
        graph[src, name, dst].edge_index = torch.stack(ends)
    return graph


def gradients(out: Any, values: torch.Tensor, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    found = torch.autograd.grad((out * values).sum(), inputs, allow_unused=True)
    return [
        torch.zeros_like(each) if grad is None else grad
        for each, grad in zip(inputs, found, strict=True)
    ]


def assert_close(got: torch.Tensor, expected: torch.Tensor, bound: float = BOUND) -> None:
    torch.testing.assert_close(got, expected, rtol=bound, atol=bound)


def assert_equal_steps(
    model: torch.nn.Module,
    batch: Any,
    training: bool = True,
    hops: bool = False,
    wrapped: Any = None,
    **extras: Any,
) -> Any:
    """Compares outputs, gradients and buffers of a model with those of ``blockwise(model)``."""
    wrapped = blockwise(model) if wrapped is None else wrapped
    model.train(training)
    state, count = copy.deepcopy(model.state_dict()), batch.batch_size
    numbers = {}
    if hops:
        numbers = {
            "num_sampled_nodes_per_hop": batch.num_sampled_nodes,
            "num_sampled_edges_per_hop": batch.num_sampled_edges,
        }
    x = batch.x.clone().requires_grad_()
    inputs = [x, *model.parameters()]
    out = model(x, batch.edge_index, **extras, **numbers)[:count]
    values = torch.randn(out.shape, dtype=out.dtype, generator=torch.Generator().manual_seed(5))
    expected = gradients(out, values, inputs)
    after = copy.deepcopy(model.state_dict())
    model.load_state_dict(state)
    other = copy.copy(batch)
    other.x = x.detach().clone().requires_grad_()
    inputs[0] = other.x
    if hops:
        got = wrapped(other.x, batch.edge_index, **extras, **numbers)
    else:
        got = wrapped(other, **extras)
    assert type(got) is torch.Tensor
    assert_close(got, out)
    for one, two in zip(gradients(got, values, inputs), expected, strict=True):
        assert_close(one, two)
    for name, value in after.items():
        assert_close(wrapped.state_dict()[name], value)
    return wrapped


def assert_equal_hetero_steps(
    model: torch.nn.Module, batch: Any, kind: str = "paper", wrapped: Any = None
) -> Any:
    """Compares a heterogeneous model, for training and evaluation."""
    wrapped = blockwise(model) if wrapped is None else wrapped
    count = batch[kind].batch_size
    lazy = torch.nn.UninitializedParameter
    for training in (True, False):
        model.train(training)
        out = model(batch.x_dict, batch.edge_index_dict)
        out = (out[kind] if isinstance(out, Mapping) else out)[:count]
        inputs = [each for each in model.parameters() if not isinstance(each, lazy)]
        values = torch.randn(out.shape, dtype=out.dtype)
        expected = gradients(out, values, inputs)
        got = wrapped(batch)
        got = got[kind] if isinstance(got, Mapping) else got
        assert type(got) is torch.Tensor
        assert_close(got, out)
        for one, two in zip(gradients(got, values, inputs), expected, strict=True):
            assert_close(one, two)
    return wrapped


class OwnModel(torch.nn.Module):
    """Two layers with a rule between them."""

    def __init__(self, layer: Callable[[], torch.nn.Module], rule: str = "relu") -> None:
        super().__init__()
        self.first, self.second, self.rule = layer(), layer(), rule
        self.encode, self.decode = torch.nn.Linear(IN, HIDDEN), torch.nn.Linear(HIDDEN, OUT)
        self.batch_norm, self.layer_norm = torch.nn.BatchNorm1d(HIDDEN), torch.nn.LayerNorm(HIDDEN)
        self.join = torch.nn.Linear(2 * HIDDEN, HIDDEN)

    def forward(self, x: Any, edge_index: Any, **extras: Any) -> Any:
        x = self.encode(x)
        h = self.first(x, edge_index, **extras)
        if self.rule == "residual":
            h = functional.relu(h + x)
        elif self.rule == "join":
            h = self.join(torch.cat([h, x], dim=-1))
            h = functional.dropout(functional.elu(h), p=0.0, training=self.training)
        elif self.rule == "batch norm":
            # The mean of squares: the gradient before a norm's mean would be rounding alone.
            h = self.batch_norm(h * h)
        elif self.rule == "layer norm":
            h = self.layer_norm(h)
            h *= 2.0
            h = 1 - h
            h += x
        elif self.rule == "jump":
            last = self.second(h.relu(), edge_index, **extras)
            return self.decode(torch.stack([x, h, last]).max(dim=0).values)
        h = self.second(h.view(-1, 4, HIDDEN // 4).flatten(1).tanh(), edge_index, **extras)
        return functional.log_softmax(self.decode(h), dim=-1)


class DegreeConv(MessagePassing):
    """The layer of PyG's tutorial, which counts the degrees of the edges that it gets."""

    def __init__(self) -> None:
        super().__init__(aggr="add")
        self.lin = torch.nn.Linear(HIDDEN, HIDDEN, bias=False)

    def forward(self, x: Any, edge_index: Any) -> Any:
        edge_index, _ = add_self_loops(edge_index, num_nodes=x.size(0))
        factor = degree(edge_index[1], x.size(0), dtype=x.dtype).pow(-0.5)
        norm = factor[edge_index[0]] * factor[edge_index[1]]
        return self.propagate(edge_index, x=self.lin(x), norm=norm)

    def message(self, x_j: Any, norm: Any) -> Any:
        return norm.view(-1, 1) * x_j
