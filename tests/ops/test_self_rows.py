"""Rows of destinations beside their in-neighbours' reduced: torch's slices and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import pygsampler as pgs

KINDS = ("sum", "mean", "max")


def sampled(dtype: Any = np.int64, **options: Any) -> Any:
    rng = np.random.default_rng(0)
    src, dst = rng.integers(0, 900, (2, 4000)).astype(dtype)
    graph = pgs.Graph.from_coo(src, dst % 700, num_nodes=900)
    ids = np.arange(60).astype(dtype)
    return pgs.PGSampler([7, 5], seed=1, **options).sample(graph, ids).torch()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frontier", ["all", "new"])
def test_the_slice_and_the_reduction(kind: str, frontier: str) -> None:
    for dtype in (np.int32, np.int64):
        for block in sampled(dtype, frontier=frontier).blocks:
            x = torch.randn(block.num_src_nodes, 3, 5, requires_grad=True)
            y = x.detach().clone().requires_grad_()
            own, reduced = block.self_and_reduce(x, kind)
            first = block.dst_offset
            wants = y[first : first + block.num_dst_nodes], getattr(block, kind)(y)
            assert torch.equal(own, wants[0]) and torch.equal(reduced, wants[1])
            ways = torch.randn_like(own)
            (own * ways + 2 * reduced).sum().backward()
            (wants[0] * ways + 2 * wants[1]).sum().backward()
            torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_table(kind: str) -> None:
    batch = sampled()
    block, ids = batch.blocks[0], batch.input_nodes
    table = torch.randn(900, 6)
    wants = table[ids][: block.num_dst_nodes], getattr(block, kind)(table[ids])
    for x in (table, pgs.Features.from_tensor(table)):
        own, reduced = block.self_and_reduce(x, kind, of=ids)
        assert torch.equal(own, wants[0]) and torch.equal(reduced, wants[1])
    x = table.clone().requires_grad_()
    own, reduced = block.self_and_reduce(x, kind, of=ids)
    (own.square().sum() + reduced.square().sum()).backward()
    y = table.clone().requires_grad_()
    rows = y[ids]
    whole = rows[: block.num_dst_nodes].square().sum() + getattr(block, kind)(rows).square().sum()
    whole.backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_one_of_both_alone() -> None:
    block = sampled().blocks[0]
    for which in (0, 1):
        x = torch.randn(block.num_src_nodes, 4, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        block.self_and_reduce(x)[which].square().sum().backward()
        (y[: block.num_dst_nodes], block.mean(y))[which].square().sum().backward()
        torch.testing.assert_close(x.grad, y.grad)


def test_gradients_in_steps() -> None:
    block = sampled().blocks[1]
    x = torch.randn(block.num_src_nodes, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: block.self_and_reduce(x), x)


def test_without_gradients_it_is_a_view() -> None:
    block = sampled().blocks[0]
    x = torch.randn(block.num_src_nodes, 4)
    assert block.self_and_reduce(x)[0].data_ptr() == x.data_ptr()
    y = torch.nn.Parameter(x)
    with torch.no_grad():
        assert not block.self_and_reduce(y)[1].requires_grad


def test_wrong_arguments() -> None:
    batch = sampled()
    block = batch.blocks[0]
    x = torch.randn(block.num_src_nodes, 4)
    with pytest.raises(ValueError, match="reduce: expected 'sum', 'mean' or 'max', got 'min'"):
        block.self_and_reduce(x, "min")
    with pytest.raises(ValueError, match="of: expected ids for features, got None"):
        block.self_and_reduce(pgs.Features.from_tensor(x))
    with pytest.raises(ValueError, match="x: expected a row for each of"):
        block.self_and_reduce(x[1:])
