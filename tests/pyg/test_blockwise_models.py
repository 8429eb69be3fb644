"""``blockwise`` with models of one's own, homogeneous and heterogeneous."""

from __future__ import annotations

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
    hetero_data,
    skip_without,
)
from torch_geometric.nn import (
    ChebConv,
    ClusterGCNConv,
    GATConv,
    GATv2Conv,
    GCNConv,
    GINConv,
    GINEConv,
    GraphConv,
    GraphSAGE,
    HeteroConv,
    JumpingKnowledge,
    MessagePassing,
    RGCNConv,
    SAGEConv,
    TAGConv,
    TransformerConv,
    to_hetero,
)
from torch_geometric.utils import trim_to_layer

from pygsampler.pyg import NeighborLoader, blockwise, layers

pytestmark = pytest.mark.usefixtures("double_precision")


def sage(**options: Any) -> Any:
    return lambda: SAGEConv(HIDDEN, HIDDEN, **options)


def layer(kind: Any, *args: Any, **options: Any) -> Any:
    return lambda: kind(HIDDEN, HIDDEN, *args, **options)


class TwiceSAGE(SAGEConv):  # type: ignore[misc]
    """A subclass, whose messages this package does not know."""

    def message(self, x_j: Any) -> Any:
        return 2 * x_j


REDUCTION, PAIR = "reduction", "by its own forward, on (x_source, x_target)"
SOURCES, ALL = (
    "by its own forward, on the rows of its sources",
    "by its own forward, on all nodes of the batch",
)
# A layer, the values of edges that it takes, and how it runs.
LAYERS: dict[str, tuple[Any, str, str]] = {
    "GCNConv": (layer(GCNConv), "", "weighted sum"),
    "GINConv": (lambda: GINConv(torch.nn.Linear(HIDDEN, HIDDEN)), "", REDUCTION),
    "GraphConv": (layer(GraphConv), "edge_weight", REDUCTION),
    "GraphConv mean": (layer(GraphConv, aggr="mean"), "edge_weight", REDUCTION),
    "GraphConv max": (layer(GraphConv, aggr="max"), "edge_weight", PAIR),
    "GATConv": (layer(GATConv, edge_dim=3), "edge_attr", "attention"),
    "GATv2Conv": (layer(GATv2Conv, edge_dim=3), "edge_attr", "attention"),
    "RGCNConv": (layer(RGCNConv, 4), "edge_type", "reduction by relation"),
    "RGCNConv bases": (
        layer(RGCNConv, 4, num_bases=2, aggr="max"),
        "edge_type",
        "reduction by relation",
    ),
    "RGCNConv blocks": (layer(RGCNConv, 4, num_blocks=2), "edge_type", PAIR),
    "RGCNConv many": (layer(RGCNConv, 400), "edge_type", PAIR),
    "GINEConv": (lambda: GINEConv(torch.nn.Linear(HIDDEN, HIDDEN), edge_dim=3), "edge_attr", PAIR),
    "TransformerConv": (layer(TransformerConv), "", PAIR),
    "subclass": (lambda: TwiceSAGE(HIDDEN, HIDDEN), "", PAIR),
    "target_to_source": (layer(SAGEConv, flow="target_to_source"), "", ALL),
    "ClusterGCNConv": (layer(ClusterGCNConv), "", SOURCES),
    "TAGConv": (layer(TAGConv, K=2), "", ALL),
    "ChebConv": (layer(ChebConv, 3), "", ALL),
    "DegreeConv": (DegreeConv, "", ALL),
}


@pytest.mark.parametrize("fanouts", [[4, 3], [3, 3, 2]], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_layers_run_as_they_can(name: str, fanouts: list[int]) -> None:
    make, extra, runs = LAYERS[name]
    batch, model = batch_of(data(), fanouts), OwnModel(make)
    wrapped = blockwise(model)
    for training in (True, True, False):
        extras = {extra: batch[extra]} if extra else {}
        assert_equal_steps(model, batch, training, wrapped=wrapped, **extras)
    assert wrapped.explain()[1].runs == runs


@pytest.mark.parametrize("rule", ["relu", "residual", "join", "batch norm", "layer norm", "jump"])
@pytest.mark.parametrize("fanouts", [[4, 3], [3, 3, 2]], ids=str)
def test_models_that_work_row_by_row(rule: str, fanouts: list[int]) -> None:
    batch, model = batch_of(data(), fanouts), OwnModel(sage(), rule)
    wrapped = blockwise(model)
    for training in (True, True, False):
        assert_equal_steps(model, batch, training, wrapped=wrapped)


def test_layers_of_a_model_compute_the_rows_that_are_needed() -> None:
    batch, sizes = batch_of(data(), [3, 3, 2]), []
    model = OwnModel(sage(), "residual")
    wrapped = blockwise(model)
    wrapped(batch)
    for each in (model.first, model.second):
        each.register_forward_hook(lambda module, args, out: sizes.append(len(out)))
    wrapped(batch)
    seeds, first, *_ = batch.num_sampled_nodes
    assert sizes == [seeds + first, seeds]


class MixesRows(torch.nn.Module):
    """A model with a function between its layers."""

    def __init__(self, between: Any) -> None:
        super().__init__()
        self.between = between
        self.convs = torch.nn.ModuleList(SAGEConv(IN, IN) for _ in range(2))

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.convs[1](self.between(self.convs[0](x, edge_index)), edge_index)


@pytest.mark.parametrize(
    "between",
    [
        lambda x: x - x.mean(0),
        lambda x: x / x.sum(),
        lambda x: torch.softmax(x, 0),
        lambda x: x @ (x.t() @ x),
        lambda x: x.sort(0).values,
        lambda x: x.view(-1, 1).expand(-1, IN),
        lambda x: x[torch.arange(len(x) - 1, -1, -1)],
        lambda x: x.flip(0),
        lambda x: torch.cat([x, x]),
        lambda x: torch.nn.functional.batch_norm(x, None, None, training=True),
    ],
)
def test_models_that_mix_rows_are_refused(between: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"pygsampler\.pyg\.layers"):
        blockwise(MixesRows(between))(batch_of(data(), [4, 3]))


@pytest.mark.parametrize(
    "between",
    [
        lambda x: x - x.mean(1, keepdim=True),
        lambda x: x / x.norm(dim=-1, keepdim=True).clamp(min=0.1),
        lambda x: torch.softmax(x, -1) * x.max(dim=1, keepdim=True)[0],
        lambda x: torch.cat(x.chunk(2, dim=1)[::-1], dim=1),
        lambda x: x.view(-1, 2, IN // 2).transpose(1, 2).reshape(len(x), IN),
        lambda x: x[:, [0] * IN],
        lambda x: (2 - x) / (1 + x**2) + x.new_ones(len(x), 1),
        lambda x: torch.where(x > 0, x, 0.1 * x),
        lambda x: x.float().to(x.dtype) @ torch.eye(IN),
    ],
)
def test_functions_of_rows_are_followed(between: Any) -> None:
    assert_equal_steps(MixesRows(between), batch_of(data(), [4, 3]))


class Trims(torch.nn.Module):
    """A model that trims by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.convs = torch.nn.ModuleList([SAGEConv(IN, IN), SAGEConv(IN, OUT)])

    def forward(self, batch: Any) -> Any:
        x, edges = batch.x, batch.edge_index
        for number, conv in enumerate(self.convs):
            counts = batch.num_sampled_nodes, batch.num_sampled_edges
            x, edges, _ = trim_to_layer(number, *counts, x, edges)
            x = conv(x, edges)
        return x


def test_models_that_trim_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="narrow"):
        blockwise(Trims())(batch_of(data(), [4, 3]))


class TakesBatch(torch.nn.Module):
    """A model that takes a batch, shares a layer, and returns the seeds' rows."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.last = SAGEConv(IN, IN), torch.nn.Linear(IN, OUT)
        self.jump = JumpingKnowledge("max")

    def forward(self, batch: Any) -> Any:
        x = self.conv(batch.x, batch.edge_index)
        x = self.jump([x, self.conv(x.relu(), batch.edge_index)])
        return self.last(x)[: batch.batch_size]


def test_models_that_take_a_batch() -> None:
    batch, model = batch_of(data(), [4, 3]), TakesBatch()
    assert_close(blockwise(model)(batch), model(batch))


def test_a_layer_alone_and_lazy_parameters() -> None:
    batch = batch_of(data(), [4])
    assert_equal_steps(SAGEConv(IN, OUT), batch)
    torch.manual_seed(3)
    lazy, expected = SAGEConv(-1, OUT), SAGEConv(IN, OUT)
    wrapped = blockwise(lazy)
    assert wrapped(batch).shape == (batch.batch_size, OUT)
    assert lazy.lin_l.weight.shape == expected.lin_l.weight.shape


def test_more_layers_than_hops_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 1 layers"):
        blockwise(OwnModel(sage()))(batch_of(data(), [4]))


def test_models_that_call_no_layer_are_refused() -> None:
    model = OwnModel(sage())
    model.forward = lambda x, edge_index: x  # type: ignore[assignment]
    with pytest.raises(ValueError, match="expected calls of layers"):
        blockwise(model)(batch_of(data(), [4]))


def test_edges_that_a_model_changes_are_refused() -> None:
    model = MixesRows(torch.relu)
    run = model.forward
    model.forward = lambda x, edge_index: run(x, edge_index.clone())  # type: ignore[method-assign]
    # All layers run on all rows: nothing was left out yet.
    batch = batch_of(data(), [4, 3])
    assert_close(blockwise(model)(batch), model(batch.x, batch.edge_index)[: batch.batch_size])


def hetero_batch(fanouts: Any = (4, 3), **options: Any) -> Any:
    graph = hetero_data()
    seeds = "paper", torch.arange(0, 120, 8)
    return next(iter(NeighborLoader(graph, list(fanouts), seeds, batch_size=12, seed=3, **options)))


class HeteroModel(torch.nn.Module):
    """Two layers of HeteroConv."""

    def __init__(self, aggr: str) -> None:
        super().__init__()
        widths = {"paper": IN, "author": 5, "field": IN}
        self.encode = torch.nn.ModuleDict(
            {kind: torch.nn.Linear(width, HIDDEN) for kind, width in widths.items()}
        )
        self.convs = torch.nn.ModuleList(self.layer(aggr) for _ in range(2))
        self.decode = torch.nn.Linear(HIDDEN, OUT)

    @staticmethod
    def layer(aggr: str) -> Any:
        pair = HIDDEN, HIDDEN
        return HeteroConv(
            {
                ("paper", "cites", "paper"): GCNConv(HIDDEN, HIDDEN),
                ("author", "writes", "paper"): GATConv(pair, HIDDEN, add_self_loops=False),
                ("paper", "written", "author"): SAGEConv(pair, HIDDEN),
                ("field", "has", "author"): GraphConv(pair, HIDDEN, aggr="max"),
                ("author", "in", "field"): SAGEConv(pair, HIDDEN, aggr="max"),
            },
            aggr=aggr,
        )

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Any:
        x = {kind: self.encode[kind](rows) for kind, rows in x_dict.items()}
        for conv in self.convs:
            x = {kind: rows.relu() for kind, rows in conv(x, edge_index_dict).items()}
        return {kind: self.decode(rows) for kind, rows in x.items()}


@pytest.mark.parametrize("aggr", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("fanouts", [(4,), (4, 3), (3, 3, 2)], ids=str)
def test_hetero_conv(aggr: str, fanouts: Any) -> None:
    model = HeteroModel(aggr)
    if len(fanouts) == 1:
        model.convs = model.convs[:1]
    wrapped = assert_equal_hetero_steps(model, hetero_batch(fanouts))
    assert {line.runs for line in wrapped.explain()} == {"weighted sum", "attention", REDUCTION}


@pytest.mark.parametrize("layout", ["coo", "edge_index"])
@pytest.mark.parametrize("kind", ["sage", "graph", "gat", "gatv2", "transformer", "model"])
def test_models_of_to_hetero(kind: str, layout: str) -> None:
    skip_without(layout)
    batch = hetero_batch(edge_index=layout)
    make: Any = {
        "sage": lambda inputs: SAGEConv(inputs, IN),
        "graph": lambda inputs: GraphConv(inputs, IN),
        "gat": lambda inputs: GATConv(inputs, IN, add_self_loops=False),
        "gatv2": lambda inputs: GATv2Conv(inputs, IN, add_self_loops=False),
        "transformer": lambda inputs: TransformerConv(inputs, IN),
    }.get(kind)
    metadata = batch.node_types, batch.edge_types
    if make is None:
        model = GraphSAGE((-1, -1), HIDDEN, 2, OUT)
    else:
        model = MixesRows(lambda x: x.relu())
        model.convs = torch.nn.ModuleList([make((-1, -1)), make((-1, -1))])
    model = to_hetero(model, metadata)
    with torch.no_grad():
        model(batch.x_dict, batch.edge_index_dict)
    assert_equal_hetero_steps(model, batch)


def test_layers_of_a_heterogeneous_batch() -> None:
    batch = hetero_batch()
    for sources, destinations, edges in layers(batch):
        for (src, _, dst), ends in edges.items():
            assert not ends.numel() or int(ends[0].max()) < sources[src]
            assert not ends.numel() or int(ends[1].max()) < destinations[dst]
    assert destinations == {"paper": 12, "author": 0, "field": 0}


def test_backward_hooks_of_modules_are_refused() -> None:
    model = OwnModel(sage())
    model.encode.register_full_backward_hook(lambda *_: None)
    with pytest.raises(NotImplementedError, match="full backward hooks"):
        blockwise(model)(batch_of(data(), [4, 3]))


class NormFirst(torch.nn.Module):
    """A model with a norm before its only layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.conv = torch.nn.BatchNorm1d(IN), SAGEConv(IN, OUT)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.conv(self.norm(x), edge_index)


@pytest.mark.parametrize("fanouts", [[4], [4, 3], [3, 3, 2]], ids=str)
def test_norms_of_all_features(fanouts: list[int]) -> None:
    model = NormFirst()
    wrapped = blockwise(model)
    for training in (True, True, False):
        assert_equal_steps(model, batch_of(data(), fanouts), training, wrapped=wrapped)


class DegreeGNN(GraphSAGE):  # type: ignore[misc]
    """A model of PyG's kind with layers that are not."""

    def init_conv(self, in_channels: Any, out_channels: Any, **kwargs: Any) -> Any:
        conv = DegreeConv()
        conv.lin = torch.nn.Linear(in_channels, out_channels, bias=False)
        return conv


@pytest.mark.parametrize("fanouts", [[4, 3], [3, 3, 2]], ids=str)
@pytest.mark.parametrize("hops", [False, True], ids=["batch", "hops"])
def test_unknown_layers_in_a_model_of_pygs_kind(fanouts: list[int], hops: bool) -> None:
    model = DegreeGNN(IN, HIDDEN, 2, OUT)
    wrapped, calls = blockwise(model), []
    batch = batch_of(data(), fanouts)
    for training in (True, False):
        assert_equal_steps(model, batch, training, hops, wrapped)
    model.convs[0].register_forward_hook(lambda *_: calls.append(0))
    assert_equal_steps(model, batch, False, hops, wrapped)
    assert len(calls) == 2


class Restless(MixesRows):
    """A model whose layers are more each time."""

    def forward(self, x: Any, edge_index: Any) -> Any:
        self.times = 2 * getattr(self, "times", 1)
        for _ in range(self.times):
            x = self.convs[0](x, edge_index)
        return x


def test_layers_that_are_more_each_time_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 3 layers"):
        wrapped, batch = blockwise(Restless(None)), batch_of(data(), [3, 3, 2])
        for _ in range(9):
            wrapped(batch)


def test_messages_of_unknown_layers_are_compared_once() -> None:
    calls = []

    class Counts(MessagePassing):  # type: ignore[misc]
        def forward(self, x: Any, edge_index: Any) -> Any:
            calls.append(torch.is_grad_enabled())
            return self.propagate(edge_index, x=x)

    wrapped, batch = blockwise(OwnModel(Counts)), batch_of(data(), [4, 3])
    for _ in range(3):
        wrapped(batch)
    assert calls.count(True) == 6
    before = len(calls)
    wrapped(batch)
    assert len(calls) == before + 2
