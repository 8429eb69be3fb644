"""``inference`` of PyG's models equals the model on the whole graph in one piece."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from inference_cases import EDGES, NODES, WIDTH, random_edges, random_rows, torch
from partners import partner

import pygsampler as pgs
from pygsampler._inference.layer_runs import InferenceRun

partner("torch_geometric")

from torch_geometric import nn  # noqa: E402
from torch_geometric.data import Data, HeteroData  # noqa: E402
from torch_geometric.nn import models  # noqa: E402

from pygsampler.pyg import NeighborLoader, blockwise  # noqa: E402

inference = functools.partial(pgs.inference, progress=False)
# In double precision differences are those of formulas, not of sums.
BOUND = {"rtol": 1e-9, "atol": 1e-9}
PNA = {
    "aggregators": ["mean", "max", "std"],
    "scalers": ["identity", "amplification"],
    "deg": torch.ones(40, dtype=torch.long),
}
BASIC: dict[str, tuple[Any, dict[str, Any]]] = {
    "GraphSAGE": (models.GraphSAGE, {}),
    "GraphSAGE, max of projected rows": (models.GraphSAGE, {"aggr": "max", "project": True}),
    "GraphSAGE, normalized": (models.GraphSAGE, {"normalize": True, "root_weight": False}),
    "GraphSAGE, two reductions": (models.GraphSAGE, {"aggr": ["std", "max"]}),
    "GCN": (models.GCN, {}),
    "GCN, improved": (models.GCN, {"improved": True, "cached": True}),
    "GCN, without loops": (models.GCN, {"add_self_loops": False}),
    "GCN, without norm": (models.GCN, {"normalize": False}),
    "GIN": (models.GIN, {"train_eps": True}),
    "GAT": (models.GAT, {"heads": 2}),
    "GAT v2": (models.GAT, {"heads": 2, "v2": True}),
    "PNA": (models.PNA, PNA),
    "EdgeCNN": (models.EdgeCNN, {}),
}
AROUND: dict[str, dict[str, Any]] = {
    "cat": {"jk": "cat"},
    "max": {"jk": "max", "act": "tanh"},
    "lstm": {"jk": "lstm"},
    "last": {"jk": "last", "norm": "batch_norm"},
    "layer norm": {"norm": "layer_norm", "norm_kwargs": {"mode": "node"}, "act_first": True},
    "graph norm": {"norm": "graph_norm"},
    "no activation": {"act": None},
}


def graph_and_rows() -> tuple[Any, Any, Any]:
    edges, x = random_edges(), random_rows(dtype=torch.float64)
    data = Data(x=x, edge_index=edges)
    return pgs.Graph.from_pyg(data), data, x


def expected_of(model: Any, *arguments: Any, **more: Any) -> Any:
    """The model's own outputs in evaluation mode."""
    model.eval()
    with torch.no_grad():
        return model(*arguments, **more)


def trained(model: Any) -> Any:
    """The model with running statistics that are not those of the beginning, in training."""
    model = model.double().train()
    for each in model.modules():
        if isinstance(each, torch.nn.BatchNorm1d):
            each.running_mean.normal_()
            each.running_var.uniform_(0.5, 2)
    return model


@pytest.mark.parametrize("batch_size", [None, 1, 31])
@pytest.mark.parametrize("name", BASIC)
def test_models_equal_their_forward(name: str, batch_size: int | None) -> None:
    kind, options = BASIC[name]
    graph, data, x = graph_and_rows()
    model = trained(kind(WIDTH, 8, 3, 4, dropout=0.5, **options))
    rows = inference(model, graph, x, batch_size=batch_size)
    bounded = inference(model, graph, x, batch_size=batch_size, memory=20_000)
    assert model.training
    expected = expected_of(model, x, data.edge_index)
    torch.testing.assert_close(rows, expected, **BOUND)
    torch.testing.assert_close(bounded, expected, **BOUND)


@pytest.mark.parametrize("name", BASIC)
def test_rows_of_sources_are_gathered_where_the_device_has_no_room(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The way of a GPU with too little memory for a layer's input, on the CPU."""
    kind, options = BASIC[name]
    graph, data, x = graph_and_rows()
    model = trained(kind(WIDTH, 8, 2, 4, **options))
    monkeypatch.setattr(InferenceRun, "_is_local", lambda run, table: False)
    for batch_size in (None, 31):
        rows = inference(model, graph, x, batch_size=batch_size)
        torch.testing.assert_close(rows, expected_of(model, x, data.edge_index), **BOUND)


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("kind", [models.GraphSAGE, models.GCN, models.GAT, models.PNA, models.GIN])
def test_norms_and_jumping_knowledge(kind: Any, around: str) -> None:
    graph, data, x = graph_and_rows()
    options = PNA if kind is models.PNA else {}
    model = trained(kind(WIDTH, 8, 2, 4, dropout=0.5, **options, **AROUND[around]))
    for batch_size in (None, 17):
        rows = inference(model, graph, x, batch_size=batch_size)
        expected = expected_of(model, x, data.edge_index)
        torch.testing.assert_close(rows, expected, **BOUND)


@pytest.mark.parametrize("batch_size", [None, 17])
@pytest.mark.parametrize("name", ["GCN", "GCN, improved", "GCN, without loops", "GAT", "GAT v2"])
def test_values_of_edges(name: str, batch_size: int | None) -> None:
    kind, options = BASIC[name]
    graph, data, x = graph_and_rows()
    random = torch.Generator().manual_seed(3)
    count = data.edge_index.shape[1]
    if kind is models.GCN:
        edge_data = {"edge_weight": torch.rand(count, dtype=torch.float64, generator=random)}
        # The norms of another graph are not cached.
        options = {**options, "cached": False}
    else:
        edge_data = {"edge_attr": torch.randn(count, 3, dtype=torch.float64, generator=random)}
        options = {**options, "edge_dim": 3}
    model = trained(kind(WIDTH, 8, 2, 4, **options))
    expected = expected_of(model, x, data.edge_index, **edge_data)
    rows = inference(model, graph, x, edge_data=edge_data, batch_size=batch_size)
    torch.testing.assert_close(rows, expected, **BOUND)
    named = graph.with_data(edge_data=edge_data)
    by_name = {each: each for each in edge_data}
    assert torch.equal(inference(model, named, x, edge_data=by_name, batch_size=batch_size), rows)


@pytest.mark.parametrize("kind", [models.GraphSAGE, models.GIN, models.GAT, models.EdgeCNN])
def test_rows_equal_those_of_inference_of_pyg(kind: Any) -> None:
    graph, data, x = graph_and_rows()
    model = trained(kind(WIDTH, 8, 3, 4, jk="last")).eval()
    rows = inference(model, graph, x)
    expected = model.inference(NeighborLoader(data, [-1], batch_size=16))
    torch.testing.assert_close(rows, expected, **BOUND)


class Residual(torch.nn.Module):
    """Linear layers before and behind, sums of several layers' rows, a layer of several hops, and
    a mean of all rows."""

    def __init__(self) -> None:
        super().__init__()
        self.encode, self.decode = torch.nn.Linear(WIDTH, 8), torch.nn.Linear(8, 3)
        self.first, self.second = nn.SAGEConv(8, 8), nn.GATConv(8, 8)
        self.third, self.norm = nn.TAGConv(8, 8), torch.nn.BatchNorm1d(8)

    def forward(self, x: Any, edge_index: Any) -> Any:
        x = self.encode(x).relu()
        x = x + self.norm(self.first(x, edge_index)).relu()
        x = x + self.second(x, edge_index).relu()
        x = torch.nn.functional.dropout(x, training=self.training)
        return self.decode(x + self.third(x, edge_index)) - x.mean()


class Relations(torch.nn.Module):
    """R-GCN, whose layers take the type of each edge."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.RGCNConv(WIDTH, 8, 3), nn.RGCNConv(8, 4, 3, num_bases=2)

    def forward(self, x: Any, edge_index: Any, edge_type: Any) -> Any:
        x = self.first(x, edge_index, edge_type).relu()
        return self.second(x, edge_index, edge_type)


class OfBatch(torch.nn.Module):
    """A model whose forward takes a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.GraphConv(WIDTH, 4)

    def forward(self, batch: Any) -> Any:
        return self.conv(batch.x, batch.edge_index)


@pytest.mark.parametrize("batch_size", [None, 1, 13])
def test_models_of_ones_own(batch_size: int | None) -> None:
    graph, data, x = graph_and_rows()
    model = trained(Residual())
    rows = inference(model, graph, x, batch_size=batch_size)
    assert model.training
    assert "forward" not in model.first.__dict__
    torch.testing.assert_close(rows, expected_of(model, x, data.edge_index), **BOUND)
    torch.testing.assert_close(inference(blockwise(model), graph, x), rows, **BOUND)
    layer = trained(nn.SAGEConv(WIDTH, 3))
    rows = inference(layer, graph, x, batch_size=batch_size)
    torch.testing.assert_close(rows, expected_of(layer, x, data.edge_index), **BOUND)
    model = trained(OfBatch())
    rows = inference(model, graph, x, batch_size=batch_size)
    torch.testing.assert_close(rows, expected_of(model, data), **BOUND)


class Fading(torch.nn.Module):
    """A model that changes its weights of edges in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.GCNConv(WIDTH, 8), nn.GCNConv(8, 4)

    def forward(self, x: Any, edge_index: Any, edge_weight: Any) -> Any:
        weight = edge_weight.clone()
        x = self.first(x, edge_index, weight).relu()
        weight[x.sum(1)[edge_index[0]] > x.sum(1).mean()] *= 0.25
        return self.second(x, edge_index, weight)


@pytest.mark.parametrize("batch_size", [None, 13])
def test_weights_of_edges_may_change_between_layers(batch_size: int | None) -> None:
    graph, data, x = graph_and_rows()
    model, weight = Fading().double(), torch.rand(EDGES, dtype=torch.float64)
    rows = inference(model, graph, x, edge_data={"edge_weight": weight}, batch_size=batch_size)
    expected = expected_of(model, x, data.edge_index, weight)
    torch.testing.assert_close(rows, expected, **BOUND)


def test_a_model_may_overwrite_features_of_a_file(tmp_path: Any) -> None:
    numpy = pytest.importorskip("numpy", reason="needs NumPy")
    graph, data, x = graph_and_rows()
    kinds: Any = [
        (torch.nn.ReLU(inplace=True), "x -> x"),
        (nn.SAGEConv(WIDTH, 3), "x, edge_index -> x"),
    ]
    model = nn.Sequential("x, edge_index", kinds).double()
    expected = expected_of(model, x.clone(), data.edge_index)
    numpy.save(tmp_path / "x.npy", x.numpy())
    graph.with_data(node_data={"x": x}).save(tmp_path / "graph.pgs")
    for features in (tmp_path / "x.npy", pgs.Features.open(tmp_path / "graph.pgs", "x")):
        for _ in range(2):
            torch.testing.assert_close(inference(model, graph, features), expected, **BOUND)


@pytest.mark.parametrize("batch_size", [None, 2, 50])
def test_types_of_edges(batch_size: int | None) -> None:
    graph, data, x = graph_and_rows()
    edge_type = torch.arange(data.num_edges) % 3
    model = trained(Relations())
    rows = inference(model, graph, x, edge_data={"edge_type": edge_type}, batch_size=batch_size)
    torch.testing.assert_close(rows, expected_of(model, x, data.edge_index, edge_type), **BOUND)


class Doubled(torch.nn.Module):
    """A matrix in the place of a layer's own, as adapters of low rank put there."""

    def __init__(self, linear: Any) -> None:
        super().__init__()
        self.linear = linear

    def forward(self, x: Any) -> Any:
        return 2 * self.linear(x)


@pytest.mark.parametrize("batch_size", [None, 9])
@pytest.mark.parametrize(("kind", "name"), [(models.GraphSAGE, "lin_l"), (models.GCN, "lin")])
def test_matrices_that_were_replaced(kind: Any, name: str, batch_size: int | None) -> None:
    graph, data, x = graph_and_rows()
    model = trained(kind(WIDTH, 8, 2, 2))
    for conv in model.convs:
        setattr(conv, name, Doubled(getattr(conv, name)))
    rows = inference(model, graph, x, batch_size=batch_size)
    torch.testing.assert_close(rows, expected_of(model, x, data.edge_index), **BOUND)


def test_hooks_of_a_model_are_called() -> None:
    graph, data, x = graph_and_rows()
    model = trained(models.GraphSAGE(WIDTH, 8, 2, 4))
    model.convs[0].register_forward_hook(lambda module, inputs, out: 2 * out)
    rows = inference(model, graph, x, batch_size=10)
    torch.testing.assert_close(rows, expected_of(model, x, data.edge_index), **BOUND)
    model = nn.GCNConv(WIDTH, 4).double()
    seen: list[Any] = []
    model.register_forward_pre_hook(lambda module, inputs: seen.append(inputs))
    model.register_forward_hook(lambda module, inputs, out: 2 * out)
    rows = inference([model, torch.relu], graph, x, batch_size=10)
    assert len(seen) == 1 and torch.equal(seen[0][0], x)
    torch.testing.assert_close(rows, expected_of(model, x, data.edge_index).relu(), **BOUND)


def test_lists_of_layers() -> None:
    graph, data, x = graph_and_rows()
    layers: Any = torch.nn.ModuleList([nn.SAGEConv(WIDTH, 8), nn.GATConv(8, 4)]).double()

    def own(block: Any, x: Any) -> Any:
        return block.mean(x)

    with torch.no_grad():
        expected = layers[1](layers[0](x, data.edge_index).relu(), data.edge_index)
    rows = inference([layers[0], torch.relu, layers[1]], graph, x, batch_size=20)
    torch.testing.assert_close(rows, expected, **BOUND)
    rows = inference([layers[0], torch.relu, layers[1], own], graph, x)
    torch.testing.assert_close(rows, inference(own, graph, expected), **BOUND)
    with pytest.raises(TypeError, match="MessagePassing"):
        inference([models.GCN(WIDTH, 8, 2)], graph, x.float())


def test_norms_of_all_nodes_are_refused_in_lists() -> None:
    graph, _, x = graph_and_rows()
    conv = nn.SAGEConv(WIDTH, WIDTH).double()

    def layer(block: Any, x: Any) -> Any:
        return block.mean(x)

    norms: list[Any] = [
        nn.LayerNorm(WIDTH),
        nn.PairNorm(),
        nn.GraphNorm(WIDTH),
        torch.nn.BatchNorm1d(WIDTH, track_running_stats=False),
    ]
    for norm in norms:
        for layers in ([conv, norm], [layer, torch.nn.Sequential(norm)], [norm, conv]):
            with pytest.raises(ValueError, match="expected norms"):
                inference(layers, graph, x)
    by_row = nn.LayerNorm(WIDTH, mode="node").double()
    rows = inference([conv, by_row], graph, x, batch_size=7)
    torch.testing.assert_close(rows, by_row(inference([conv], graph, x)), **BOUND)


def test_a_stopped_run_of_a_model_of_ones_own_goes_on(tmp_path: Any) -> None:
    graph, _, x = graph_and_rows()
    model = trained(Residual())
    expected = inference(model, graph, x, batch_size=40, resume=tmp_path / "other")

    def fails(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    handle = model.third.register_forward_pre_hook(fails)
    with pytest.raises(KeyboardInterrupt):
        inference(model, graph, x, batch_size=40, resume=tmp_path / "layers")
    handle.remove()
    assert (tmp_path / "layers" / "layer1.bin").exists()
    rows = inference(model, graph, x, resume=tmp_path / "layers")
    assert torch.equal(rows, expected)


class InPlace(torch.nn.Module):
    """A model that overwrites the rows of its layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.SAGEConv(WIDTH, WIDTH), nn.SAGEConv(WIDTH, WIDTH)

    def forward(self, x: Any, edge_index: Any) -> Any:
        h = self.first(x, edge_index)
        h += x
        h = self.second(h, edge_index)
        h *= 2
        return h


def test_finished_layers_stay_when_a_model_overwrites_its_rows(tmp_path: Any) -> None:
    graph, data, x = graph_and_rows()
    model = InPlace().double()
    expected = expected_of(model, x, data.edge_index)

    def fails(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    handle = model.second.register_forward_pre_hook(fails)
    with pytest.raises(KeyboardInterrupt):
        inference(model, graph, x, resume=tmp_path)
    handle.remove()
    for _ in range(3):
        rows = inference(model, graph, x, resume=tmp_path)
        torch.testing.assert_close(rows, expected, **BOUND)


def test_a_folder_of_a_model_with_other_options_is_refused(tmp_path: Any) -> None:
    graph, _, x = graph_and_rows()
    pairs: list[tuple[Any, dict[str, Any], dict[str, Any]]] = [
        (models.GCN, {}, {"improved": True}),
        (models.GCN, {}, {"act": "tanh"}),
        (models.GCN, {}, {"act": torch.tanh}),
        (models.GAT, {}, {"negative_slope": 0.5}),
        (models.GraphSAGE, {}, {"aggr": "max"}),
    ]
    for place, (kind, first, other) in enumerate(pairs):
        folder = tmp_path / str(place)
        torch.manual_seed(0)
        model = kind(WIDTH, 8, 2, 4, **first).double()
        rows = inference(model, graph, x, resume=folder)
        assert torch.equal(inference(model.eval(), graph, x, resume=folder), rows)
        torch.manual_seed(0)
        model = kind(WIDTH, 8, 2, 4, **other).double()
        with pytest.raises(ValueError, match="the same model"):
            inference(model, graph, x, resume=folder)


SIZES = {"paper": 60, "author": 45, "field": 6}
EDGE_TYPES = {
    ("paper", "cites", "paper"): 300,
    ("author", "writes", "paper"): 200,
    ("paper", "written", "author"): 200,
    ("field", "has", "author"): 100,
    ("author", "in", "field"): 100,
}


def hetero_data() -> Any:
    random = torch.Generator().manual_seed(2)
    data = HeteroData()
    for kind, count in SIZES.items():
        width = 4 if kind == "author" else WIDTH
        data[kind].x = torch.randn(count, width, dtype=torch.float64, generator=random)
    for (src, name, dst), edges in EDGE_TYPES.items():
        ends = [torch.randint(SIZES[kind], (edges,), generator=random) for kind in (src, dst)]
        data[src, name, dst].edge_index = torch.stack(ends)
    return data


class Two(torch.nn.Module):
    def __init__(self, kind: Any, **options: Any) -> None:
        super().__init__()
        self.first, self.second = kind((-1, -1), 8, **options), kind((-1, -1), 4, **options)

    def forward(self, x: Any, edge_index: Any) -> Any:
        return self.second(self.first(x, edge_index).relu(), edge_index)


class ByRelation(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        kinds = {
            kind: nn.GCNConv(-1, 8) if kind[0] == kind[2] else nn.SAGEConv((-1, -1), 8)
            for kind in EDGE_TYPES
        }
        self.conv = nn.HeteroConv(kinds, aggr="sum")

    def forward(self, x: Any, edge_index: Any) -> Any:
        return {kind: each.relu() for kind, each in self.conv(x, edge_index).items()}


def hetero_models() -> dict[str, Any]:
    data = hetero_data()
    options = {"add_self_loops": False}
    return {
        "SAGEConv": nn.to_hetero(Two(nn.SAGEConv), data.metadata()),
        "GATConv": nn.to_hetero(Two(nn.GATConv, **options), data.metadata()),
        "HeteroConv": ByRelation(),
    }


@pytest.mark.parametrize("name", ["SAGEConv", "GATConv", "HeteroConv"])
def test_heterogeneous_models(name: str) -> None:
    data = hetero_data()
    graph = pgs.Graph.from_pyg(data)
    torch.manual_seed(0)
    model = hetero_models()[name].double()
    expected = expected_of(model, data.x_dict, data.edge_index_dict)
    model.train()
    for batch_size in (None, 7):
        rows = inference(model, graph, data.x_dict, batch_size=batch_size)
        assert set(rows) == set(expected)
        for kind, each in expected.items():
            torch.testing.assert_close(rows[kind], each, **BOUND)
    out = {"paper": torch.empty_like(expected["paper"])}
    rows = inference(model, graph, data.x_dict, out=out)
    assert rows["paper"] is out["paper"]
    torch.testing.assert_close(out["paper"], expected["paper"], **BOUND)


def test_unsuitable_arguments_are_refused() -> None:
    graph, _, x = graph_and_rows()
    model = models.GCN(WIDTH, 8, 2).double()
    with pytest.raises(ValueError, match="a row for each of 900 edges"):
        inference(model, graph, x, edge_data={"edge_weight": torch.ones(3)})
    with pytest.raises(KeyError, match="expected one of"):
        inference(model, graph, x, edge_data={"edge_weight": "weight"})
    with pytest.raises(TypeError, match="edge_data: expected a mapping"):
        inference(model, graph, x, edge_data=torch.ones(EDGES))
    ids = torch.tensor([5, 9])
    few = pgs.Graph.from_csc(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), edge_ids=ids)
    with pytest.raises(ValueError, match="expected a row for edge 9, got 9"):
        inference(model, few, x[:2], edge_data={"edge_weight": torch.ones(9)})
    conv = nn.GCNConv(WIDTH, 8).double()
    with pytest.raises(ValueError, match="arguments of PyG's layers in the list, got 'weight'"):
        inference([conv], graph, x, edge_data={"weight": torch.ones(EDGES)})
    data = hetero_data()
    hetero, model = pgs.Graph.from_pyg(data), hetero_models()["HeteroConv"]
    with pytest.raises(ValueError, match="lazy ones"):
        inference(model, hetero, data.x_dict)
    expected_of(model.double(), data.x_dict, data.edge_index_dict)
    values = torch.ones(300)
    for edge_data, text in (
        ({"edge_weight": "weight"}, "array of some edge type, got 'weight'"),
        ({"edge_weight": {"of": values}}, r"edge_data\['edge_weight'\]: expected types of the"),
        ({"edge_weight": {"cites": values[:5]}}, "a row for each of 300 edges"),
        ({"edge_weight": {"cites": object()}}, "expected a tensor or an array"),
    ):
        with pytest.raises((KeyError, TypeError, ValueError), match=text):
            inference(model, hetero, data.x_dict, edge_data=edge_data)
    for features, text in ((x, "mapping of node types"), ({"x": x}, "expected node types")):
        with pytest.raises((TypeError, ValueError), match=text):
            inference(model, hetero, features)
    with pytest.raises(TypeError, match="mapping of node types"):
        inference(model, hetero, data.x_dict, out=x)


def test_the_nodes_are_all_there() -> None:
    graph, _, x = graph_and_rows()
    assert inference(models.GIN(WIDTH, 8, 1).double(), graph, x).shape == (NODES, 8)
