"""``blockwise`` under ``torch.compile``: one graph for all batches, and the same steps."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from blockwise_cases import (
    HIDDEN,
    IN,
    OUT,
    DegreeConv,
    OwnModel,
    assert_close,
    assert_equal_hetero_steps,
    assert_equal_steps,
    batch_of,
    data,
    gradients,
    hetero_data,
)
from torch_geometric.nn import (
    GAT,
    GCN,
    GIN,
    GATConv,
    GCNConv,
    GraphSAGE,
    HeteroConv,
    RGCNConv,
    SAGEConv,
)
from torch_geometric.utils import add_self_loops

import pygsampler as pgs
from pygsampler.pyg import blockwise
from pygsampler.torch import DataLoader

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


def batches(fanouts: list[int], count: int = 3, **options: Any) -> list[Any]:
    """Batches of different sizes, without sizes 0 and 1, for which torch compiles anew."""
    options = {"batch_size": 40} | options
    nodes = [torch.arange(i, 200, 5 + i) for i in range(count)]
    return [batch_of(data(), fanouts, input_nodes=each, **options) for each in nodes]


def compiled(model: torch.nn.Module) -> Any:
    step = blockwise(model)
    step.compile(fullgraph=True, backend="aot_eager")
    return step


def graphs() -> int:
    assert not torch._dynamo.utils.counters["graph_break"]
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
    "residual": (lambda: OwnModel(lambda: SAGEConv(HIDDEN, HIDDEN), "residual"), ""),
    "jump": (lambda: OwnModel(lambda: GCNConv(HIDDEN, HIDDEN), "jump"), ""),
}


# Each of these goes another way through blockwise; the others differ within a layer.
WAYS = ("GraphSAGE", "GCN weights", "GAT attributes", "RGCNConv", "residual", "jump")


@needs_operators
@pytest.mark.parametrize(
    "name",
    [name if name in WAYS else pytest.param(name, marks=pytest.mark.slow) for name in MODELS],
)
def test_one_graph_serves_all_batches(name: str) -> None:
    make, extra = MODELS[name]
    model = make()
    step = compiled(model)
    for i, batch in enumerate(batches([4, 3])):
        # The first says how layers run.
        assert graphs() == int(i > 1)
        extras = {extra: batch[extra]} if extra else {}
        assert_equal_steps(model, batch, wrapped=step, **extras)
    assert graphs() == 1
    # The model itself is as it was.
    assert not any("forward" in module.__dict__ for module in model.modules())


@needs_operators
def test_an_error_leaves_the_model_as_it_was() -> None:
    model = GraphSAGE(IN, 16, 2, OUT)
    step = compiled(model)
    first, second = batches([4, 3], 2)
    step(first)
    second.x = second.x[:, 1:]
    with pytest.raises(Exception, match=r"shape|size"):
        step(second)
    assert not any("forward" in module.__dict__ for module in model.modules())


@needs_operators
def test_calls_with_numbers_of_hops_fewer_layers_and_evaluation() -> None:
    model = GCN(IN, 16, 2, OUT, norm="batch_norm", bias=False)
    step = compiled(model)
    for training, hops in ((True, True), (False, True), (False, False)):
        for batch in batches([3, 3, 2], 2):
            assert_equal_steps(model, batch, training, hops, wrapped=step)
    assert graphs() == 3


@needs_operators
def test_layers_that_need_all_nodes() -> None:
    model = OwnModel(DegreeConv)
    step = blockwise(model)
    # A layer's own forward may break the graph.
    step.compile(backend="aot_eager")
    for batch in batches([4, 3], edge_index="edge_index"):
        assert_equal_steps(model, batch, wrapped=step)
    assert "all nodes" in step.explain()[0].runs


@needs_operators
def test_torch_compile_of_the_module_breaks_its_graph_once() -> None:
    model = GraphSAGE(IN, 16, 2, OUT)
    step = torch.compile(blockwise(model), backend="aot_eager", dynamic=True)
    for batch in batches([4, 3], 4):
        expected = model(batch.x, batch.edge_index)[: batch.batch_size]
        assert_close(step(batch), expected)
    assert len(torch._dynamo.utils.counters["graph_break"]) == 1
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


class HeteroModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encode = torch.nn.ModuleDict(
            {"paper": torch.nn.Linear(IN, HIDDEN), "author": torch.nn.Linear(5, HIDDEN)}
        )
        self.convs = torch.nn.ModuleList(self.layer() for _ in range(2))

    @staticmethod
    def layer() -> Any:
        pair = HIDDEN, HIDDEN
        return HeteroConv(
            {
                ("paper", "cites", "paper"): GCNConv(HIDDEN, HIDDEN),
                ("author", "writes", "paper"): GATConv(pair, HIDDEN, add_self_loops=False),
                ("paper", "written", "author"): SAGEConv(pair, HIDDEN),
            }
        )

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Any:
        x = {kind: encode(x_dict[kind]) for kind, encode in self.encode.items()}
        for conv in self.convs:
            x = {kind: rows.relu() for kind, rows in conv(x, edge_index_dict).items()}
        return x


@needs_operators
def test_heterogeneous_models_are_one_graph() -> None:
    model = HeteroModel()
    step = compiled(model)
    for size in (16, 25, 31):
        nodes = "paper", torch.arange(0, 120, 3)
        batch = batch_of(hetero_data(), [4, 3], input_nodes=nodes, batch_size=size)
        assert_equal_hetero_steps(model, batch, wrapped=step)
    assert graphs() == 2


@needs_operators
@pytest.mark.parametrize("kind", [GraphSAGE, pytest.param(GCN, marks=pytest.mark.slow), GAT])
def test_mini_batches_and_tables_are_one_graph(kind: Any) -> None:
    table, graph, seeds = data().x, pgs.Graph.from_pyg(data()), torch.arange(0, 200, 3)
    model = kind(IN, 16, 2, OUT)
    step, eager = compiled(model), blockwise(model)
    inputs = list(model.parameters())
    for size in (16, 25, 31):
        batch = next(iter(DataLoader(graph, seeds, [4, 3], batch_size=size, seed=1)))
        expected, got = (each(batch, table=table) for each in (eager, step))
        assert_close(got, expected)
        values = torch.ones_like(got).cumsum(0)
        for one, two in zip(*(gradients(x, values, inputs) for x in (got, expected)), strict=True):
            assert_close(one, two)
        assert_close(step(batch, table=pgs.Features.from_tensor(table)), expected)
    assert graphs() == 2


@needs_operators
def test_hooks_are_called_and_copies_are_not_compiled() -> None:
    model = GraphSAGE(IN, 16, 2, OUT)
    step = compiled(model)
    first, second = batches([4, 3], 2)
    step(first)
    model.convs[0].register_forward_hook(lambda layer, args, out: out * 2)
    expected = blockwise(model)(second)
    assert_close(step(second), expected)
    assert graphs() == 1
    for other in (copy.deepcopy(step), pickle.loads(pickle.dumps(compiled(GCN(IN, 4, 2, 3))))):
        other(second)
        other(second)
    assert graphs() == 1


class ChangesEdges(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(IN, OUT)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.conv(x, add_self_loops(edge_index)[0])


@needs_operators
def test_layers_on_other_edges_are_refused() -> None:
    step = compiled(ChangesEdges())
    with pytest.raises(
        NotImplementedError, match="conv: expected x and the batch's own edge_index"
    ):
        step(batches([4], 1)[0])


@pytest.mark.skipif(hasattr(torch.library, "register_autograd"), reason="of torch 2.3 and older")
def test_older_torch_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"expected PyTorch 2.4 or newer"):
        blockwise(GraphSAGE(IN, 16, 2, OUT)).compile()
