"""``blockwise`` of mini-batches, a block for each layer, and of tables of features."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
from blockwise_cases import (
    HIDDEN,
    IN,
    OUT,
    DegreeConv,
    OwnModel,
    assert_close,
    data,
    gradients,
    hetero_data,
)
from torch_geometric.nn import (
    GAT,
    GCN,
    GIN,
    EdgeCNN,
    GATConv,
    GCNConv,
    GraphConv,
    GraphSAGE,
    HeteroConv,
    Linear,
    SAGEConv,
    TAGConv,
    to_hetero,
)

import pygsampler as pgs
from pygsampler._batch.block import Block
from pygsampler.pyg import NeighborLoader, blockwise
from pygsampler.pyg.table_rows import TableRows
from pygsampler.torch import DataLoader

pytestmark = pytest.mark.usefixtures("double_precision")
NODES = 200


def graph() -> pgs.Graph:
    return pgs.Graph.from_pyg(data(NODES))


def batch_of(fanouts: list[int], **options: Any) -> Any:
    """A mini-batch of 16 seeds, with the features of its nodes."""
    options = {"features": {"x": data(NODES).x}} | options
    seeds = torch.arange(0, NODES, 7)
    return next(iter(DataLoader(graph(), seeds, fanouts, batch_size=16, seed=3, **options)))


def by_block(model: Any, batch: Any, convs: list[Any], x: torch.Tensor) -> torch.Tensor:
    """The model's rows of the seeds where each layer's own forward runs on all of its block."""
    for conv, block in zip(convs, batch.blocks, strict=True):
        own = type(conv).forward.__get__(conv)

        def forward(
            x: Any, edge_index: Any, own: Any = own, block: Any = block, **nothing: None
        ) -> Any:
            return own(x, block.edge_index)[: block.num_dst_nodes]

        conv.__dict__["forward"] = forward
    try:
        result: torch.Tensor = model(x, None)
        return result
    finally:
        for conv in convs:
            del conv.__dict__["forward"]


def assert_equal_by_block(model: Any, convs: list[Any], batch: Any) -> Any:
    wrapped = blockwise(model)
    for training in (True, False):
        model.train(training)
        inputs = list(model.parameters())
        state = copy.deepcopy(model.state_dict())
        out = by_block(model, batch, convs, batch.x)
        expected = gradients(out, torch.ones_like(out).cumsum(0), inputs)
        after = copy.deepcopy(model.state_dict())
        model.load_state_dict(state)
        got = wrapped(batch)
        assert type(got) is torch.Tensor
        assert_close(got, out)
        for one, two in zip(
            gradients(got, torch.ones_like(out).cumsum(0), inputs), expected, strict=True
        ):
            assert_close(one, two)
        for name, value in after.items():
            assert_close(model.state_dict()[name], value)
    return wrapped


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (GraphSAGE, {}),
        (GraphSAGE, {"aggr": "max", "norm": "batch_norm"}),
        (GraphSAGE, {"aggr": "lstm"}),
        (GCN, {}),
        (GCN, {"improved": True, "norm": "layer_norm"}),
        (GCN, {"add_self_loops": False}),
        (GIN, {"train_eps": True}),
        (GAT, {"heads": 2}),
        (GAT, {"heads": 2, "v2": True, "residual": True}),
        (EdgeCNN, {}),
    ],
    ids=str,
)
def test_layers_of_a_pyg_model_take_their_blocks(kind: Any, options: Any) -> None:
    model = kind(IN, HIDDEN, 2, OUT, **options)
    assert_equal_by_block(model, list(model.convs), batch_of([4, 3]))


def test_jumping_knowledge_joins_the_rows_of_the_seeds() -> None:
    model = GraphSAGE(IN, HIDDEN, 2, OUT, jk="cat").eval()
    batch = batch_of([4, 3])
    rows, found = batch.x, []
    for conv, block in zip(model.convs, batch.blocks, strict=True):
        rows = model.act(conv(rows, block.edge_index)[: block.num_dst_nodes])
        found.append(rows)
    count = batch.blocks[-1].num_dst_nodes
    expected = model.lin(torch.cat([each[:count] for each in found], dim=1))
    assert_close(blockwise(model)(batch), expected)


@pytest.mark.parametrize("rule", ["relu", "residual", "batch norm", "layer norm"])
@pytest.mark.parametrize("layer", [SAGEConv, GATConv, GCNConv, TAGConv])
def test_models_of_ones_own_take_blocks(layer: Any, rule: str) -> None:
    model = OwnModel(lambda: layer(HIDDEN, HIDDEN), rule)
    batch = batch_of([4, 3])
    wrapped = blockwise(model)
    for training in (True, False):
        model.train(training)
        state = copy.deepcopy(model.state_dict())
        got = wrapped(batch)
        model.load_state_dict(state)
        for conv, block in zip((model.first, model.second), batch.blocks, strict=True):
            own = type(conv).forward.__get__(conv)

            def forward(x: Any, edge_index: Any, own: Any = own, block: Any = block) -> Any:
                return own(x, block.edge_index)[: block.num_dst_nodes]

            conv.__dict__["forward"] = forward
        # A residual adds the destinations' rows alone.
        if rule in ("residual", "layer norm"):
            plain = model.encode(batch.x)[: batch.blocks[0].num_dst_nodes]
            h = model.first(model.encode(batch.x), None)
            if rule == "residual":
                h = (h + plain).relu()
            else:
                h = 1 - model.layer_norm(h) * 2.0 + plain
            h = model.second(h.tanh(), None)
            expected = model.decode(h).log_softmax(dim=-1)
        else:
            expected = model(batch.x, None)
        for conv in (model.first, model.second):
            del conv.__dict__["forward"]
        assert_close(got, expected)


def test_a_layer_that_counts_degrees_sees_its_block() -> None:
    model = OwnModel(DegreeConv)
    assert_equal_by_block(model, [model.first, model.second], batch_of([4, 3]))


def test_more_hops_than_layers_leave_the_outermost_out() -> None:
    model = GraphSAGE(IN, HIDDEN, 1, OUT).eval()
    batch = batch_of([4, 3])
    block = batch.blocks[-1]
    expected = model(batch.x[: block.num_src_nodes], block.edge_index)[: block.num_dst_nodes]
    assert_close(blockwise(model)(batch), expected)
    with pytest.raises(ValueError, match="at most 2 layers"):
        blockwise(GraphSAGE(IN, HIDDEN, 3, OUT))(batch)


def padded(block: Block, sources: int, rows: int, edges: int) -> Block:
    """A block as a static loader yields it: its edges fill up between rows behind its own."""
    _, dst = block.coo()
    indptr = torch.cat([block.indptr, block.indptr[-1:].expand(rows - block.num_dst_nodes)])
    more = edges - block.num_edges
    indices = torch.cat([block.indices, torch.full((more,), sources - 1).to(block.indices)])
    dst = torch.cat([dst, torch.full((more,), rows - 1).to(dst)])
    nodes = torch.zeros(sources).long(), torch.zeros(rows).long()
    made = Block._of_arrays(indptr, indices, indices, *nodes)
    made.__dict__["coo"] = lambda: (indices, dst)
    return made


@pytest.mark.parametrize(
    ("kind", "options"),
    [(GraphSAGE, {}), (GCN, {}), (GIN, {}), (GAT, {}), (GAT, {"v2": True})],
    ids=str,
)
def test_blocks_of_fixed_sizes_give_the_same_rows(kind: Any, options: Any) -> None:
    """What fills a static batch up changes no row of the batch's own."""
    model, batch = kind(IN, HIDDEN, 2, OUT, **options), batch_of([4, 3])
    first, second = batch.blocks
    middle = first.num_dst_nodes + 5
    blocks = [
        padded(first, first.num_src_nodes + 9, middle, first.num_edges + 11),
        padded(second, middle, second.num_dst_nodes + 3, second.num_edges + 7),
    ]
    x = torch.cat([batch.x, torch.randn(9, IN)])
    nodes = {
        name: torch.zeros(3).long() for name in ("input_nodes", "output_nodes", "output_index")
    }
    static: Any = pgs.MiniBatch._of_fields({"blocks": tuple(blocks), **nodes}, 0, 0)
    static._attach("x", x)
    wrapped = blockwise(model)
    expected = wrapped(batch)
    got = wrapped(static)[: len(expected)]
    assert_close(got, expected)
    values = torch.randn(expected.shape)
    inputs = list(model.parameters())
    for one, two in zip(
        gradients(got, values, inputs), gradients(expected, values, inputs), strict=True
    ):
        assert_close(one, two)


def test_heterogeneous_models_take_blocks() -> None:
    given = hetero_data()
    typed = pgs.Graph.from_pyg(given)
    x = {kind: given[kind].x for kind in given.node_types}
    loader = DataLoader(
        typed,
        {"paper": torch.arange(40)},
        [4, 3],
        batch_size=16,
        seed=3,
        features={"x": x},
    )
    batch = next(iter(loader))

    class Typed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            kinds = given.edge_types
            self.first, self.second = (
                HeteroConv({kind: SAGEConv((-1, -1), HIDDEN) for kind in kinds}, aggr="sum")
                for _ in range(2)
            )
            self.last = Linear(HIDDEN, OUT)

        def forward(self, x: Any, edges: Any) -> Any:
            h = {kind: rows.relu() for kind, rows in self.first(x, edges).items()}
            return self.last(self.second(h, edges)["paper"])

    model = Typed()
    wrapped = blockwise(model)
    got = wrapped(batch)
    h = batch.x
    for hop, conv in zip(batch.blocks, (model.first, model.second), strict=True):
        found: dict[str, Any] = {}
        for kind, block in hop.items():
            src, _, dst = kind
            pair = h[src], h[dst][: block.num_dst_nodes]
            rows = conv.convs[kind](pair, block.edge_index)
            found[dst] = found[dst] + rows if dst in found else rows
        h = {kind: rows.relu() for kind, rows in found.items()} if conv is model.first else found
    assert_close(got, model.last(h["paper"]))
    same = to_hetero(GraphSAGE(IN, HIDDEN, 2, OUT), given.metadata())
    out = blockwise(same.eval())
    given_x = {**x, "author": torch.nn.functional.pad(x["author"], (0, IN - 5))}
    loader = DataLoader(
        typed, {"paper": torch.arange(40)}, [4, 3], batch_size=16, features={"x": given_x}
    )
    assert out(next(iter(loader)))["paper"].shape == (16, OUT)


def test_what_blocks_cannot_do_is_refused() -> None:
    model = blockwise(GCN(IN, HIDDEN, 2, OUT))
    batch = batch_of([4, 3])
    with pytest.raises(TypeError, match="edge_weight: expected no more arguments with a MiniBatch"):
        model(batch, edge_weight=torch.ones(3))
    with pytest.raises(TypeError, match="expected none with a batch"):
        model(batch, num_sampled_nodes_per_hop=[1])
    sampler = pgs.PGSampler([4, 3], frontier="new")
    with pytest.raises(ValueError, match='expected frontier="all"'):
        model(sampler.sample(graph(), np.arange(5)).torch())
    with pytest.raises(TypeError, match=r"call batch.torch\(\)"):
        model(pgs.PGSampler([4, 3]).sample(graph(), np.arange(5)))
    with pytest.raises(AttributeError, match="x"):
        model(pgs.PGSampler([4, 3]).sample(graph(), np.arange(5)).torch())


TABLES = [
    (GraphSAGE, {}, True),
    (GraphSAGE, {"aggr": "max"}, True),
    (GraphSAGE, {"root_weight": False}, True),
    (GraphSAGE, {"project": True}, False),
    (GIN, {}, True),
    (GCN, {}, True),
    (GAT, {}, False),
    (EdgeCNN, {}, False),
]


@pytest.mark.parametrize("form", ["tensor", "features", "gradient"])
@pytest.mark.parametrize("source", ["blocks", "pyg"])
@pytest.mark.parametrize(("kind", "options", "direct"), TABLES, ids=str)
def test_the_first_layer_reads_a_table(
    kind: Any, options: Any, direct: bool, source: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = data(NODES)
    if source == "blocks":
        batch = batch_of([4, 3], features={})
        ids = batch.input_nodes
    else:
        # A loader of a graph without x gathers none.
        table, given.x = given.x, None
        given.num_nodes = NODES
        seeds = torch.arange(0, NODES, 7)
        batch = next(iter(NeighborLoader(given, [4, 3], seeds, batch_size=16, seed=3)))
        ids, given.x = batch.n_id, table
    table = given.x.clone().requires_grad_(form == "gradient")
    wide = kind(IN, HIDDEN, 2, OUT, **options)
    wrapped = blockwise(wide)
    gathered = []
    own = TableRows.gather
    monkeypatch.setattr(TableRows, "gather", lambda self: gathered.append(len(self)) or own(self))
    rows = pgs.Features.from_tensor(table) if form == "features" else table
    got = wrapped(batch, table=rows)
    # Rows of destinations alone, if any.
    assert (max(gathered, default=0) < len(ids)) is direct
    filled = copy.copy(batch)
    if source == "blocks":
        filled._attach("x", table[ids])
    else:
        filled.x = table[ids]
    expected = wrapped(filled)
    assert_close(got, expected)
    inputs = list(wide.parameters()) + ([table] if form == "gradient" else [])
    values = torch.randn(got.shape)
    for one, two in zip(
        gradients(got, values, inputs), gradients(expected, values, inputs), strict=True
    ):
        assert_close(one, two)


def test_weights_of_edges_go_with_a_table() -> None:
    given = data(NODES)
    table = given.x
    batch = next(iter(NeighborLoader(given, [4, 3], torch.arange(30), batch_size=16, seed=3)))
    for model in (
        GCN(IN, HIDDEN, 2, OUT),
        OwnModel(lambda: GraphConv(HIDDEN, HIDDEN)),
        OwnModel(lambda: GraphConv(HIDDEN, HIDDEN, aggr="mean")),
    ):
        wrapped, weights = blockwise(model), batch.edge_weight
        expected = wrapped(batch, edge_weight=weights)
        assert_close(wrapped(batch, table=table, edge_weight=weights), expected)


def test_hooks_of_the_first_layer_see_its_rows() -> None:
    model, seen = GraphSAGE(IN, HIDDEN, 2, OUT), []
    model.convs[0].register_forward_pre_hook(lambda _, args: seen.append(args[0].shape))
    batch = batch_of([4, 3], features={})
    blockwise(model)(batch, table=data(NODES).x)
    assert seen == [(len(batch.input_nodes), IN)]


def test_tables_that_do_not_fit_are_refused() -> None:
    model, batch = blockwise(GraphSAGE(IN, HIDDEN, 2, OUT)), batch_of([4, 3])
    with pytest.raises(TypeError, match="table: expected a tensor or Features"):
        model(batch, table=[1, 2])
    with pytest.raises(TypeError, match="table: expected a batch with it"):
        model(batch.x, batch.blocks[0].edge_index, table=batch.x)
    with pytest.raises(IndexError):
        model(batch, table=data(NODES).x[:3])
