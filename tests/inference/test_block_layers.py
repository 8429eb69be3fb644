"""``inference`` with layers on blocks: the same as the model on the whole graph in one piece."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from inference_cases import (
    NODES,
    SIZES,
    WIDTH,
    PairConv,
    SAGEConv,
    plain,
    random_edges,
    random_graph,
    random_rows,
    torch,
)

import pygsampler as pgs
from pygsampler._inference.layer_runs import InferenceRun

inference = functools.partial(pgs.inference, progress=False)


def two_rows(block: Any, x: Any) -> Any:
    """Sums alone, whose bits are the same however the nodes are cut."""
    return torch.cat([x[: block.num_dst_nodes], block.mean(x), block.max(x)], dim=1)


def two_rows_of_pair(block: Any, x_src: Any, x_dst: Any) -> Any:
    return torch.cat([x_dst, block.mean(x_src), block.max(x_src)], dim=1)


def two_rows_at_once(block: Any, x: Any) -> Any:
    own, mean = block.self_and_reduce(x, "mean")
    return torch.cat([own, mean, block.max(x)], dim=1)


@pytest.mark.parametrize("memory", [None, 2000])
@pytest.mark.parametrize("batch_size", SIZES)
@pytest.mark.parametrize("kind", [SAGEConv, PairConv])
@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_layers_equal_a_product_of_matrices(
    dtype: Any, kind: Any, batch_size: int | None, memory: int | None
) -> None:
    layers = kind(WIDTH, 8), kind(8, 3)
    x, edges = random_rows(), random_edges()
    rows = inference(
        [layers[0], torch.relu, layers[1]],
        random_graph(dtype),
        x,
        batch_size=batch_size,
        memory=memory,
    )
    torch.testing.assert_close(rows, plain(layers, x, edges), rtol=1e-4, atol=1e-5)
    assert not rows.requires_grad


@pytest.mark.parametrize("layer", [two_rows, two_rows_of_pair, two_rows_at_once])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_reductions_have_the_same_bits_for_any_ranges(dtype: Any, layer: Any) -> None:
    graph, x = random_graph(), random_rows(dtype=dtype)
    expected = inference([two_rows, two_rows], graph, x)
    assert expected.shape == (NODES, 9 * WIDTH)
    for batch_size in SIZES:
        for memory in (None, 1):
            options = {"batch_size": batch_size, "memory": memory}
            rows = inference([layer, layer], graph, x, **options)
            assert torch.equal(rows, expected), options


def test_blocks_name_their_nodes_and_edges() -> None:
    """Sources, destinations and edge ids are those of the graph, in whatever range."""
    edges = random_edges()
    weight = torch.rand(edges.shape[1])

    def layer(block: Any, x: Any) -> Any:
        assert torch.equal(x[: block.num_dst_nodes, 0].long(), block.dst_nodes)
        assert torch.equal(x[:, 0].long(), block.src_nodes)
        src, dst = block.coo()
        ids = block.edge_ids
        assert torch.equal(block.src_nodes[src], edges[0][ids])
        assert torch.equal(block.dst_nodes[dst], edges[1][ids])
        return block.weighted_sum(x, weight[ids])

    def pair(block: Any, x_src: Any, x_dst: Any) -> Any:
        assert torch.equal(x_dst[:, 0].long(), block.dst_nodes)
        assert torch.equal(x_src[:, 0].long(), block.src_nodes)
        return block.weighted_sum(x_src, weight[block.edge_ids])

    x = torch.arange(NODES, dtype=torch.float32)[:, None]
    expected = torch.zeros(NODES, 1).index_add(0, edges[1], x[edges[0]] * weight[:, None])
    for function in (layer, pair):
        for batch_size in SIZES:
            rows = inference(function, random_graph(), x, batch_size=batch_size)
            torch.testing.assert_close(rows, expected)


def test_rows_of_sources_are_gathered_where_the_device_has_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The way of a GPU with too little memory for a layer's input, on the CPU."""
    graph, x = random_graph(), random_rows()
    expected = inference([two_rows, two_rows_of_pair, two_rows], graph, x)
    monkeypatch.setattr(InferenceRun, "_is_local", lambda run, table: False)
    for batch_size in SIZES:
        rows = inference([two_rows, two_rows_of_pair, two_rows], graph, x, batch_size=batch_size)
        assert torch.equal(rows, expected)


def test_functions_of_rows_stand_anywhere_in_a_list() -> None:
    encode, layer, decode = torch.nn.Linear(WIDTH, 8), SAGEConv(8, 8), torch.nn.Linear(8, 2)
    x = random_rows()
    for batch_size in (None, 11):
        rows = inference(
            [encode, torch.relu, layer, torch.tanh, decode],
            random_graph(),
            x,
            batch_size=batch_size,
        )
        hidden = plain([layer], encode(x).relu().detach(), random_edges())
        torch.testing.assert_close(rows, decode(hidden.tanh()).detach(), rtol=1e-4, atol=1e-5)
    only_rows = inference([encode, torch.relu], random_graph(), x)
    torch.testing.assert_close(only_rows, encode(x).relu().detach())


def test_a_sequential_and_a_module_list_are_lists() -> None:
    layers = [SAGEConv(WIDTH, 8), torch.nn.ReLU(), SAGEConv(8, 3)]
    expected = inference(layers, random_graph(), random_rows())
    for kind in (lambda parts: torch.nn.Sequential(*parts), torch.nn.ModuleList):
        assert torch.equal(inference(kind(layers), random_graph(), random_rows()), expected)


class Counted(torch.nn.Module):
    """A layer that notes which nodes it gave rows of, and whether it was in training."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout, self.norm = torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(WIDTH)
        self.nodes: list[int] = []

    def forward(self, block: Any, x: Any) -> Any:
        self.nodes += block.dst_nodes.tolist()
        assert not self.training
        assert not self.dropout.training
        return self.norm(self.dropout(block.sum(x)))


@pytest.mark.parametrize("wrap", ["module", "method", "partial", "closure"])
def test_each_node_is_computed_once_and_in_evaluation_mode(wrap: str) -> None:
    layer = Counted().train()
    layer.dropout.eval()
    ways: dict[str, Any] = {
        "module": layer,
        "method": layer.forward,
        "partial": functools.partial(lambda module, block, x: module(block, x), layer),
        "closure": lambda block, x: layer(block, x),
    }
    before = {name: each.clone() for name, each in layer.state_dict().items()}
    for batch_size in (None, 7):
        layer.nodes.clear()
        rows = inference(ways[wrap], random_graph(), random_rows(), batch_size=batch_size)
        assert layer.nodes == list(range(NODES))
        assert rows.shape == (NODES, WIDTH)
    # Each part has its own flag back.
    assert (layer.training, layer.dropout.training, layer.norm.training) == (True, False, True)
    assert all(torch.equal(each, before[name]) for name, each in layer.state_dict().items())


def test_flags_come_back_after_an_exception() -> None:
    layer = SAGEConv(WIDTH, 8).train()

    def fails(block: Any, x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inference([layer, fails], random_graph(), random_rows())
    assert layer.training
    assert torch.is_grad_enabled()


class Merging(torch.nn.Linear):
    """A matrix that is merged with an adapter for evaluation alone."""

    merged = False

    def train(self, mode: bool = True) -> Merging:
        self.merged = not mode
        return super().train(mode)


def test_parts_do_what_they_do_between_modes() -> None:
    conv = SAGEConv(WIDTH, 8)
    conv.own = Merging(WIDTH, 8)
    merged: list[bool] = []

    def layer(block: Any, x: Any) -> Any:
        merged.append(conv.own.merged)
        return conv(block, x)

    for training in (True, False):
        # Of a model in either mode the part is in training.
        conv.train(training)
        conv.own.train()
        inference(layer, random_graph(), random_rows())
        assert merged.pop()
        assert not conv.own.merged
        assert (conv.training, conv.own.training) == (training, True)
        assert conv.others.training == training


@pytest.mark.parametrize(("nodes", "edges"), [(0, 0), (1, 0), (1, 3), (5, 0)])
def test_small_and_empty_graphs(nodes: int, edges: int) -> None:
    ends = torch.zeros((2, edges), dtype=torch.int64)
    graph, x = pgs.Graph.from_coo(*ends, num_nodes=nodes), random_rows(nodes=nodes)
    for layer in (two_rows, two_rows_of_pair):
        for batch_size in (None, 1, 4):
            rows = inference(layer, graph, x, batch_size=batch_size)
            most = x if edges else torch.zeros_like(x)
            assert torch.equal(rows, torch.cat([x, most, most], 1))


def test_nodes_behind_the_last_row_have_no_edges() -> None:
    graph = pgs.Graph.from_csc(torch.tensor([0, 1, 3]), torch.tensor([4, 0, 3]), num_nodes=6)
    x = random_rows(nodes=6)
    expected = torch.zeros(6, WIDTH)
    expected[0], expected[1] = x[4], x[0] + x[3]
    for batch_size in (None, 1, 3, 4):
        rows = inference(lambda block, x: block.sum(x), graph, x, batch_size=batch_size)
        assert torch.equal(rows, expected)


def test_rows_equal_those_of_batches_with_all_neighbors() -> None:
    """The way of DGL's examples: layer by layer, by batches of all in-neighbors."""
    layers = SAGEConv(WIDTH, 8), SAGEConv(8, 3)
    graph, x = random_graph(), random_rows()
    rows = inference([layers[0], torch.relu, layers[1]], graph, x)
    sampler = pgs.PGSampler([-1])
    with torch.no_grad():
        for place, layer in enumerate(layers):
            out = torch.empty(NODES, layer.own.out_features)
            for seeds in torch.arange(NODES).split(32):
                batch = sampler.sample(graph, seeds).torch()
                h = layer(batch.blocks[0], x[batch.input_nodes])
                out[seeds] = h if place else h.relu()
            x = out
    torch.testing.assert_close(rows, x)


def test_progress_counts_the_rows_of_all_layers() -> None:
    calls: list[tuple[int, int]] = []
    pgs.inference(
        [SAGEConv(WIDTH, 8), SAGEConv(8, 3)],
        random_graph(),
        random_rows(),
        batch_size=50,
        progress=lambda done, total: calls.append((done, total)),
    )
    assert [done for done, _ in calls] == [50, 100, 120, 170, 220, 240]
    assert {total for _, total in calls} == {2 * NODES}


def test_unsuitable_arguments_are_refused_before_any_layer_runs() -> None:
    graph, x = random_graph(), random_rows()

    def never(block: Any, x: Any) -> Any:
        raise AssertionError("a layer ran")

    cases: list[tuple[type[Exception], str, Any]] = [
        (TypeError, "graph", lambda: inference(never, "graph", x)),
        (TypeError, "model", lambda: inference(3, graph, x)),
        (TypeError, "model", lambda: inference([], graph, x)),
        (TypeError, "4 arguments", lambda: inference(lambda a, b, c, d: a, graph, x)),
        (ValueError, "features", lambda: inference(never, graph, x[:5])),
        (TypeError, "features", lambda: inference(never, graph, object())),
        (ValueError, "batch_size", lambda: inference(never, graph, x, batch_size=0)),
        (TypeError, "batch_size", lambda: inference(never, graph, x, batch_size=1.5)),
        (ValueError, "memory", lambda: inference(never, graph, x, memory=0)),
        (ValueError, "device", lambda: inference(never, graph, x, device="meta")),
        (ValueError, "out", lambda: inference(never, graph, x, out=torch.empty(3, 5))),
        (ValueError, "out", lambda: inference(never, graph, x, out="rows.bin")),
        (TypeError, "out", lambda: inference(never, graph, x, out=[1])),
        (ValueError, "edge_data", lambda: inference(never, graph, x, edge_data={"w": x})),
        (TypeError, "progress", lambda: pgs.inference(never, graph, x, progress=3)),
    ]
    for error, text, call in cases:
        with pytest.raises(error, match=text):
            call()
    norm = torch.nn.BatchNorm1d(WIDTH, track_running_stats=False)
    with pytest.raises(ValueError, match="track_running_stats"):
        inference([norm], graph, x)
    with pytest.raises(TypeError, match="tensor from the layer"):
        inference(lambda block, x: None, graph, x)
    with pytest.raises(ValueError, match="a row for each"):
        inference(lambda block, x: x[:1], graph, x)
    for layers in ([lambda x: (x, x)], [two_rows, lambda x: (x, x)], [torch.nn.LSTM(WIDTH, 3)]):
        with pytest.raises(TypeError, match="expected a tensor from the layer, got"):
            inference(layers, graph, x)

    def narrow(block: Any, x: Any) -> Any:
        return x[: block.num_dst_nodes, : 1 if block.dst_nodes[0] else None]

    with pytest.raises(ValueError, match=r"got \(5,\) .* and \(1,\) for nodes from 7 on"):
        inference(narrow, graph, x, batch_size=7)
