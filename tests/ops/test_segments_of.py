"""Reductions of rows that stand in a table, and of blocks with padding behind their edges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_graphs import sampled

import pygsampler as pgs
from pygsampler._batch.block import Block
from pygsampler._ops import segments as ours
from pygsampler.torch import StaticBlock, segment_reduce

KINDS = ("sum", "mean", "max")
NODES = 900


def padded(block: Any, rows: int = 4, sources: int = 6, edges: int = 9) -> Block:
    """The block with rows without edges, sources without rows, and edges that are none."""
    indptr = torch.cat([block.indptr, block.indptr[-1:].expand(rows)])
    spare = torch.arange(edges) % sources + block.num_src_nodes
    indices = torch.cat([block.indices, spare.to(block.indices.dtype)])
    nodes = torch.cat([block.src_nodes, block.src_nodes[:1].expand(sources)])
    ids = torch.zeros_like(indices)
    return Block._of_arrays(indptr, indices, ids, nodes, nodes[: block.num_dst_nodes + rows])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (100,), (4, 8), (0,)])
def test_rows_of_a_table_are_the_rows(shape: tuple[int, ...], dtype: Any) -> None:
    for ids, disjoint in ((np.int64, False), (np.int32, True)):
        batch = sampled(ids, disjoint=disjoint)
        block, of = batch.blocks[0], batch.input_nodes
        assert disjoint == (len(of.unique()) < len(of))
        x = torch.randn(NODES, *shape).to(dtype)
        heads = (block.num_edges, 4) if len(shape) == 2 else (block.num_edges,)
        weights = torch.randn(heads).to(dtype)
        for kind in (*KINDS, "weighted_sum"):
            given = (weights,) if kind == "weighted_sum" else ()
            found = []
            for named in (False, True):
                y, *w = (t.clone().requires_grad_() for t in (x, *given))
                reduced = getattr(block, kind)
                made = reduced(y, *w, of=of) if named else reduced(y[of.long()], *w)
                (made * made.detach().sin()).sum().backward()
                found.append([made, y.grad, *(t.grad for t in w)])
            assert torch.equal(found[0][0], found[1][0]), kind
            # A vertex of several trees has its gradients added in another order.
            same = {"rtol": 1e-2, "atol": 1e-1} if dtype.itemsize == 2 else {}
            for a, b in zip(found[0][1:], found[1][1:], strict=True):
                torch.testing.assert_close(a, b, **same)
            features = pgs.Features.from_tensor(x)
            got = getattr(block, kind)(features, *given, of=of)
            assert got.dtype == dtype and torch.equal(got, found[0][0])
            assert features.stats()["reads"] == 1


def test_weights_for_features_have_a_gradient() -> None:
    batch = sampled()
    block, of = batch.blocks[0], batch.input_nodes
    x = torch.randn(NODES, 4, 3)
    a, b = (torch.randn(block.num_edges, 4).requires_grad_() for _ in range(2))
    with torch.no_grad():
        b.copy_(a)
    block.weighted_sum(pgs.Features.from_tensor(x), a, of=of).square().sum().backward()
    block.weighted_sum(x[of], b).square().sum().backward()
    assert torch.equal(a.grad, b.grad)


def test_gradients_by_differences() -> None:
    batch = sampled()
    block = batch.blocks[1]
    of = torch.randint(40, (block.num_src_nodes,))
    x = (torch.randperm(80).double() / 97).reshape(40, 2).requires_grad_()
    a = torch.randn(block.num_edges, dtype=torch.float64, requires_grad=True)
    for kind in ("sum", "mean"):
        assert torch.autograd.gradcheck(lambda x, k=kind: getattr(block, k)(x, of=of), (x,))
    assert torch.autograd.gradcheck(lambda x, a: block.weighted_sum(x, a, of=of), (x, a))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_padding_changes_nothing(dtype: Any) -> None:
    batch = sampled(np.int32)
    for block in batch.blocks:
        full = padded(block)
        n, e, rows = block.num_src_nodes, block.num_edges, block.num_dst_nodes
        x, w = torch.randn(full.num_src_nodes, 12).to(dtype), torch.randn(full.num_edges).to(dtype)
        # What padding has must not matter.
        x[n:], w[e:] = torch.nan, torch.inf
        for kind in (*KINDS, "weighted_sum"):
            found = []
            for b in (block, full):
                y = x[: b.num_src_nodes].clone().requires_grad_()
                v = w[: b.num_edges].clone().requires_grad_()
                made = getattr(b, kind)(y, *((v,) if kind == "weighted_sum" else ()))
                made.square().sum().backward()
                found.append((made, y.grad, v.grad))
            assert torch.equal(found[0][0], found[1][0][:rows]) and not found[1][0][rows:].any()
            assert torch.equal(found[0][1], found[1][1][:n]) and not found[1][1][n:].any()
            if kind == "weighted_sum":
                assert torch.equal(found[0][2], found[1][2][:e]) and not found[1][2][e:].any()


def test_what_torch_makes_leaves_padding_out() -> None:
    block = sampled().blocks[0]
    full = padded(block)
    x, w = torch.randn(full.num_src_nodes, 12), torch.randn(full.num_edges, 3)
    for kind in (ours.SUM, ours.MEAN, ours.MAX):
        made = ours._by_torch(full._segments(), x, kind)
        torch.testing.assert_close(made, ours.reduce(full._segments(), x, kind))
    made = ours._by_torch(full._segments(), x, ours.SUM, None, w)
    want = full.weighted_sum(x.reshape(-1, 3, 4), w)
    torch.testing.assert_close(made, want.flatten(1))


def test_a_static_block_keeps_what_is_of_one_batch() -> None:
    one, two = (padded(b.blocks[0], rows=40, edges=200) for b in (sampled(), sampled(replace=True)))
    size = min(one.num_edges, two.num_edges), min(len(one.indptr), len(two.indptr))
    x = torch.randn(max(one.num_src_nodes, two.num_src_nodes), 3, requires_grad=True)
    sources = len(x)
    indptr, indices = (t.clone() for t in (one.indptr, one.indices))
    nodes = torch.zeros(sources, dtype=torch.int64)
    block = StaticBlock._of_arrays(indptr, indices, indices, nodes, indptr[1:])
    turn = block.__dict__["_turn"] = [0]
    for _ in range(2):
        for other in (one, two):
            indices[: size[0]] = other.indices[: size[0]]
            turn[0] += 1
            block.mean(x).square().sum().backward()
            got, x.grad = x.grad, None
            segment_reduce(x, indptr, indices, "mean").square().sum().backward()
            assert torch.equal(got, x.grad)
            x.grad = None
            assert block._segments() is block._segments()


def test_weights_of_another_dtype() -> None:
    block = sampled().blocks[0]
    x, w = torch.randn(block.num_src_nodes, 6).half(), torch.randn(block.num_edges)
    made = block.weighted_sum(x, w)
    assert made.dtype == torch.float32
    assert torch.equal(made, block.weighted_sum(x.float(), w))


@pytest.mark.parametrize("kind", KINDS)
def test_autocast_leaves_dtypes_alone(kind: str) -> None:
    block = sampled().blocks[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for dtype in (torch.float32, torch.bfloat16):
            x = torch.randn(block.num_src_nodes, 6, dtype=dtype, requires_grad=True)
            made = getattr(block, kind)(x)
            assert made.dtype == dtype
            made.sum().backward()
            assert x.grad.dtype == dtype


def test_what_is_wrong_is_told() -> None:
    batch = sampled()
    block, of = batch.blocks[0], batch.input_nodes
    x = torch.randn(NODES, 2)
    for wrong, error, text in (
        (of[1:], ValueError, f"of: expected an id for each of {len(of)} sources on cpu, got shape"),
        (of.float(), TypeError, "of: expected a tensor of int32 or int64, got torch.float32"),
        (of.tolist(), TypeError, "of: expected a tensor of int32 or int64, got list"),
    ):
        with pytest.raises(error, match=text):
            block.mean(x, of=wrong)
    bad = of.clone()
    bad[block.indices[3]] = NODES
    place = int(block.indices[3])
    with pytest.raises(IndexError, match=rf"of\[{place}\]: expected a row of x in \[0, 900\)"):
        block.mean(x, of=bad)
    with pytest.raises(TypeError, match="x: expected a tensor, got Features"):
        block.mean(pgs.Features.from_tensor(x))
    with pytest.raises(TypeError, match="x: expected a tensor or Features, got list"):
        block.mean(x.tolist(), of=of)
    with pytest.raises(TypeError, match="x: expected floats, got int64"):
        block.mean(pgs.Features.from_tensor(x.long()), of=of)


def test_features_in_a_file(tmp_path: Path) -> None:
    batch = sampled()
    x = torch.randn(NODES, 5)
    graph = pgs.Graph.from_coo([0], [1], num_nodes=NODES, node_data={"x": x})
    graph.save(tmp_path / "graph.pgs")
    features = pgs.Features.open(tmp_path / "graph.pgs", "x")
    block, of = batch.blocks[0], batch.input_nodes
    assert torch.equal(block.mean(features, of=of), block.mean(x, of=of))
