"""``blockwise`` under ``torch.compile``: one graph for all batches, and the same steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from blockwise_cases import (
    HIDDEN,
    IN,
    OUT,
    OwnModel,
    assert_equal_steps,
    batch_of,
    data,
)
from torch_geometric.nn import (
    GAT,
    GCN,
    GIN,
    GCNConv,
    GINEConv,
    GraphSAGE,
    RGCNConv,
    SAGEConv,
)

from pygsampler.pyg import blockwise

needs_operators = pytest.mark.skipif(
    not hasattr(torch.library, "register_autograd"), reason="needs torch 2.4 or newer"
)
# Torch asks for the gradients of tensors that are no leaves.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute")


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    yield
    torch._dynamo.reset()
    torch.set_default_dtype(torch.float32)


def batches(fanouts: list[int], graph: Any = None, count: int = 4, **options: Any) -> list[Any]:
    """Batches of different sizes."""
    graph = data() if graph is None else graph
    nodes = [torch.arange(i, 200, 5 + i) for i in range(count)]
    options = {"batch_size": 40} | options
    return [batch_of(graph, fanouts, input_nodes=each, **options) for each in nodes]


def compiled(model: torch.nn.Module, first: Any, **extras: Any) -> Any:
    """A compiled model that has seen a batch for training."""
    step = blockwise(model)
    step.compile(fullgraph=True, backend="aot_eager")
    step(first, **extras)
    return step


def graphs() -> int:
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


# A model and the values of edges that it takes.
MODELS: dict[str, tuple[Any, str]] = {
    "GraphSAGE": (lambda: GraphSAGE(IN, 16, 2, OUT), ""),
    "GraphSAGE max": (lambda: GraphSAGE(IN, 16, 2, OUT, aggr="max", jk="cat"), ""),
    "GraphSAGE norm": (lambda: GraphSAGE(IN, 16, 2, OUT, norm="batch_norm", bias=False), ""),
    "GCN": (lambda: GCN(IN, 16, 2, OUT), ""),
    "GCN weights": (lambda: GCN(IN, 16, 2, OUT), "edge_weight"),
    "GIN": (lambda: GIN(IN, 16, 2, OUT, train_eps=True), ""),
    "GAT": (lambda: GAT(IN, 16, 2, OUT, heads=2), ""),
    "GAT attributes": (lambda: GAT(IN, 16, 2, OUT, heads=2, edge_dim=3), "edge_attr"),
    "GATv2": (lambda: GAT(IN, 16, 2, OUT, heads=2, v2=True), ""),
    "RGCNConv": (lambda: OwnModel(lambda: RGCNConv(HIDDEN, HIDDEN, 4)), "edge_type"),
    "GINEConv": (
        lambda: OwnModel(lambda: GINEConv(torch.nn.Linear(HIDDEN, HIDDEN), edge_dim=3)),
        "edge_attr",
    ),
    "residual": (lambda: OwnModel(lambda: SAGEConv(HIDDEN, HIDDEN), "residual"), ""),
    "jump": (lambda: OwnModel(lambda: GCNConv(HIDDEN, HIDDEN), "jump"), ""),
}


@needs_operators
@pytest.mark.parametrize("name", MODELS)
def test_one_graph_serves_all_batches(name: str) -> None:
    make, extra = MODELS[name]
    first, *others = batches([4, 3])
    model = make()
    step = compiled(model, first, **({extra: first[extra]} if extra else {}))
    assert graphs() == 0
    for batch in others:
        extras = {extra: batch[extra]} if extra else {}
        assert_equal_steps(model, batch, wrapped=step, **extras)
    assert graphs() == 1
    assert not torch._dynamo.utils.counters["graph_break"]
    # The model itself is as it was.
    assert not any("forward" in module.__dict__ for module in model.modules())
