"""Sums over the edges of our blocks are DGL's to float rounding, forward and backward."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import dgl
import dgl.function as fn
import dgl.nn as dglnn
import pytest
import torch
from dgl.heterograph import DGLBlock as PlainBlock

from pygsampler._ops import segments
from pygsampler.dgl import NeighborSampler, sampled_block
from pygsampler.dgl.sampled_block import DGLBlock
from tests.dgl.block_pairs import outcome, reduce_by_engine

MESSAGES = {
    "mean": (fn.copy_u("h", "m"), fn.mean("m", "o")),
    "sum": (fn.copy_u("h", "m"), fn.sum("m", "o")),
    "max": (fn.copy_u("h", "m"), fn.max("m", "o")),
    "factor": (fn.u_mul_e("h", "a", "m"), fn.sum("m", "o")),
}


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reductions of the engine; every tensor is a large one."""
    made: list[str] = []

    def noted(name: str) -> Any:
        function = getattr(segments, name)

        def call(*arguments: Any) -> Any:
            made.append(name)
            return function(*arguments)

        return call

    for name in ("reduce", "weighted_sum"):
        monkeypatch.setattr(sampled_block.segments, name, noted(name))
    reduce_by_engine(monkeypatch)
    return made


def graph(nodes: int = 300, edges: int = 2000) -> Any:
    numbers = torch.Generator().manual_seed(3)
    src, dst = torch.randint(nodes, (2, edges), generator=numbers)
    # The last nodes have no in-edges.
    return dgl.graph((src, dst.clamp(max=nodes - 20)), num_nodes=nodes)


def block_of(g: Any, seeds: Any) -> Any:
    return NeighborSampler([4], seed=1).sample_blocks(g, seeds)[2][0]


def of_dgl(block: Any) -> Any:
    """The same block as DGL has it."""
    made = copy.copy(block)
    made.__class__ = PlainBlock
    return made


def both(block: Any, name: str, x: torch.Tensor, a: torch.Tensor | None) -> list[Any]:
    """The result and the gradients, of ours and of DGL's."""
    found = []
    for each in (block, of_dgl(block)):
        leaves = [t.detach().clone().requires_grad_() for t in (x, a) if t is not None]
        with each.local_scope():
            each.srcdata["h"] = leaves[0]
            if a is not None:
                each.edata["a"] = leaves[1]
            each.update_all(*MESSAGES[name])
            out = each.dstdata["o"]
        (out * torch.linspace(1, 2, out.numel()).view_as(out)).sum().backward()
        found.append([out.detach(), *(leaf.grad for leaf in leaves)])
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4)])
@pytest.mark.parametrize("name", ["mean", "sum", "max"])
def test_reductions_are_those_of_dgl(
    calls: list[str], name: str, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    block = block_of(graph(), torch.arange(250, 300))
    assert type(block) is DGLBlock
    x = torch.rand(block.num_src_nodes(), *shape, dtype=dtype)
    ours, theirs = both(block, name, x, None)
    torch.testing.assert_close(ours, theirs)
    assert calls == ["reduce"]


@pytest.mark.parametrize(
    ("x_shape", "a_shape", "is_ours"),
    [
        ((5,), (1,), True),
        ((3, 4), (3, 1), True),
        ((3, 4), (1, 1), True),
        ((3, 4, 2), (3, 1, 1), True),
        ((5,), (5,), False),
        ((3, 4), (3, 4), False),
        ((4,), (3, 1), False),
        ((3, 1), (1, 4), False),
    ],
)
def test_factors_of_edges(
    calls: list[str], x_shape: tuple[int, ...], a_shape: tuple[int, ...], is_ours: bool
) -> None:
    block = block_of(graph(), torch.arange(40))
    x = torch.rand(block.num_src_nodes(), *x_shape)
    a = torch.rand(block.num_edges(), *a_shape)
    ours, theirs = both(block, "factor", x, a)
    torch.testing.assert_close(ours, theirs)
    assert calls == ["weighted_sum"] * is_ours


def test_factors_belong_to_the_edges_of_any_format(calls: list[str]) -> None:
    block = block_of(graph(), torch.arange(40))
    x, a = torch.rand(block.num_src_nodes(), 3), torch.rand(block.num_edges(), 1)
    src, dst = block.edges()
    expected = torch.zeros(block.num_dst_nodes(), 3).index_add_(0, dst, x[src] * a)
    for each in (block, block.formats(["coo"]), block.int(), pickle.loads(pickle.dumps(block))):
        torch.testing.assert_close(both(each, "factor", x, a)[0][0], expected)


@pytest.mark.parametrize(
    "layer",
    [
        dglnn.SAGEConv(6, 5, "mean"),
        dglnn.SAGEConv(5, 6, "gcn"),
        dglnn.SAGEConv(6, 5, "pool"),
        dglnn.GraphConv(6, 5, norm="right"),
        dglnn.GINConv(torch.nn.Linear(6, 5), "max"),
        dglnn.GATConv(6, 5, 3),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_layers_of_dgl_use_the_engine(calls: list[str], layer: Any) -> None:
    block = block_of(graph(), torch.arange(40))
    width = getattr(layer, "_in_src_feats", None) or getattr(layer, "_in_feats", 6)
    found = []
    for each in (block, of_dgl(block)):
        layer.zero_grad()
        x = torch.linspace(-1, 1, block.num_src_nodes() * width).view(-1, width).requires_grad_()
        layer(each, x).square().sum().backward()
        found.append([x.grad, *(parameter.grad for parameter in layer.parameters())])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
    assert calls


def test_types_of_edges_too(calls: list[str]) -> None:
    numbers = torch.Generator().manual_seed(3)
    pairs = {
        ("a", "there", "b"): torch.randint(50, (2, 400), generator=numbers),
        ("b", "back", "a"): torch.randint(50, (2, 400), generator=numbers),
    }
    g = dgl.heterograph({kind: tuple(ends) for kind, ends in pairs.items()})
    seeds = {"a": torch.arange(10), "b": torch.arange(5)}
    block = NeighborSampler([4], seed=1).sample_blocks(g, seeds)[2][0]
    layer = dglnn.HeteroGraphConv(
        {name: dglnn.SAGEConv(6, 5, "mean") for name in ("there", "back")}, aggregate="sum"
    )
    x = {kind: torch.rand(block.num_src_nodes(kind), 6) for kind in ("a", "b")}
    ours, theirs = layer(block, x), layer(of_dgl(block), x)
    torch.testing.assert_close(ours, theirs)
    assert calls == ["reduce", "reduce"]


def test_what_is_not_known_is_left_to_dgl(calls: list[str]) -> None:
    block = block_of(graph(), torch.arange(40))
    x = torch.rand(block.num_src_nodes(), 3)

    def reduced(message: Any, reduce: Any, apply: Any = None, x: torch.Tensor = x) -> Any:
        found = []
        for each in (block, of_dgl(block)):
            with each.local_scope():
                each.srcdata["h"] = x
                each.edata["a"] = torch.ones(block.num_edges(), 1)
                each.update_all(message, reduce, apply)
                found.append(each.dstdata["o"])
        return found

    copy_u, factor = fn.copy_u("h", "m"), fn.u_mul_e("h", "a", "m")
    for arguments in (
        (copy_u, fn.min("m", "o")),
        (factor, fn.mean("m", "o")),
        (fn.copy_e("a", "m"), fn.sum("m", "o")),
        (lambda edges: {"m": edges.src["h"]}, fn.sum("m", "o")),
        (copy_u, lambda nodes: {"o": nodes.mailbox["m"].sum(1)}),
        (copy_u, fn.sum("m", "o"), lambda nodes: {"o": nodes.data["o"] * 2}),
    ):
        torch.testing.assert_close(*reduced(*arguments))
    assert calls == []


def test_small_tensors_are_left_to_dgl() -> None:
    block = block_of(graph(), torch.arange(40))
    x, a = torch.rand(block.num_src_nodes(), 8), torch.rand(block.num_edges(), 1)
    for name in MESSAGES:
        ours, theirs = both(block, name, x, a if name == "factor" else None)
        # The very same bits: nothing but DGL ran.
        assert all(map(torch.equal, ours, theirs))


@pytest.mark.parametrize("seeds", [torch.tensor([299]), torch.tensor([290, 299])])
def test_blocks_without_edges(calls: list[str], seeds: torch.Tensor) -> None:
    block = block_of(graph(), seeds)
    assert block.num_edges() == 0
    for name in ("mean", "sum", "max"):
        ours, theirs = both(block, name, torch.rand(block.num_src_nodes(), 3), None)
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["mean", "sum", "max"])
def test_values_that_are_not_finite(calls: list[str], name: str, value: float) -> None:
    block = block_of(graph(), torch.arange(40))
    x = torch.rand(block.num_src_nodes(), 3)
    x[::3, 0] = value
    # Every row of the result has such a value in this column.
    x[:, 1] = value
    ours, theirs = both(block, name, x, None)
    torch.testing.assert_close(ours, theirs, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradient_of_a_shared_maximum_goes_to_its_first_source(
    calls: list[str], dtype: torch.dtype
) -> None:
    block = block_of(graph(), torch.arange(40))
    x = torch.ones(block.num_src_nodes(), 2, dtype=dtype)
    ours, _ = both(block, "max", x, None)
    src, dst = block.edges()
    firsts = [int(src[dst == row][0]) for row in range(40) if (dst == row).any()]
    counts = torch.bincount(torch.tensor(firsts), minlength=len(x))
    assert (ours[1] != 0).all(1).equal(counts > 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64])
def test_other_dtypes_are_left_to_dgl(calls: list[str], dtype: torch.dtype) -> None:
    block = block_of(graph(), torch.arange(40))
    x = torch.ones(block.num_src_nodes(), 3, dtype=dtype)
    results = []
    for each in (block, of_dgl(block)):
        with each.local_scope():
            each.srcdata["h"] = x
            results.append(outcome(lambda each=each: each.update_all(*MESSAGES["sum"])))
    assert results[0] is results[1]
    assert calls == []


@pytest.mark.parametrize(
    "x",
    [
        torch.rand(6, 300).t(),
        torch.rand(300, 12)[:, ::2],
        torch.rand(300, 1).expand(300, 6),
        torch.rand(300, 2, 3).transpose(1, 2),
    ],
    ids=["transposed", "every second column", "expanded", "transposed heads"],
)
def test_memory_in_any_order(calls: list[str], x: torch.Tensor) -> None:
    block = block_of(graph(), torch.arange(40))
    x = x[: block.num_src_nodes()]
    a = torch.rand(2, block.num_edges()).t()[:, :1].reshape(-1, *[1] * (x.dim() - 1))
    for name in MESSAGES:
        torch.testing.assert_close(*both(block, name, x, a if name == "factor" else None))
    assert len(calls) == len(MESSAGES)


def test_values_that_are_assigned_anew_count(calls: list[str]) -> None:
    block = block_of(graph(), torch.arange(40)).to("cpu")
    for scale in (1.0, 2.0):
        block.srcdata["h"] = torch.full((block.num_src_nodes(), 3), scale)
        block.edata["a"] = torch.full((block.num_edges(), 1), 5.0)
        block.update_all(*MESSAGES["factor"])
        degrees = block.in_degrees()[:, None].expand(-1, 3)
        torch.testing.assert_close(block.dstdata["o"], degrees * 5.0 * scale)
        with block.local_scope():
            block.edata["a"] = block.edata["a"] * 0
            block.update_all(*MESSAGES["factor"])
            assert not block.dstdata["o"].any()
        assert block.dstdata["o"].any()
    assert calls == ["weighted_sum"] * 4
