"""Reductions of blocks on a GPU: the bits of the CPU, and the same on every run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.cuda.conftest import torch_on_cuda
from tests.support.parity import random_graph

KINDS = ("sum", "mean", "max")
NODES = 20_000
MILLISECOND = 2_000_000


@pytest.fixture(autouse=True)
def deterministic(torch: Any) -> Iterator[None]:
    """Torch refuses what it has only with atomics."""
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


@pytest.fixture(scope="module")
def batches() -> dict[int, tuple[Any, Any]]:
    """The same batch on both, in both widths of ids."""
    torch_on_cuda()
    made = {}
    for bits in (32, 64):
        graph = random_graph(NODES, seed=5).graph(bits)
        sampler = pgs.PGSampler([10, 6], seed=3)
        seeds = np.arange(0, NODES, 23)
        mine = sampler.sample(graph, seeds, batch=1).torch()
        theirs = sampler.sample(graph.to("cuda"), seeds, batch=1).torch()
        made[bits] = mine, theirs
    return made


def gradients(torch: Any, made: Any, *inputs: Any) -> list[Any]:
    scale = torch.arange(made.numel(), device=made.device).to(made.dtype).reshape(made.shape)
    (made * (scale % 7 - 3)).sum().backward()
    return [made.detach().cpu(), *(one.grad.cpu() for one in inputs)]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (64,), (4, 25), (256,), (301,), (602,)])
def test_bits_of_the_cpu(
    torch: Any, batches: dict[int, Any], shape: tuple[int, ...], dtype: str, bits: int
) -> None:
    for mine, theirs in zip(*(batch.blocks for batch in batches[bits]), strict=True):
        x = torch.randn(mine.num_src_nodes, *shape, dtype=getattr(torch, dtype))
        for kind in KINDS:
            found = []
            for block, device in ((mine, "cpu"), (theirs, "cuda"), (theirs, "cuda")):
                y = x.to(device, copy=True).requires_grad_()
                made = getattr(block, kind)(y)
                assert made.dtype == y.dtype and made.device == y.device
                found.append(gradients(torch, made, y))
            for other in found[1:]:
                assert all(torch.equal(a, b) for a, b in zip(found[0], other, strict=True)), kind


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("heads", "shape"), [(0, (64,)), (0, ()), (4, (4, 32)), (3, (3, 5))])
def test_weighted_sums(
    torch: Any, batches: dict[int, Any], heads: int, shape: tuple[int, ...], bits: int
) -> None:
    for mine, theirs in zip(*(batch.blocks for batch in batches[bits]), strict=True):
        x = torch.randn(mine.num_src_nodes, *shape)
        w = torch.randn((mine.num_edges, heads) if heads else (mine.num_edges,))
        found = []
        for block, device in ((mine, "cpu"), (theirs, "cuda"), (theirs, "cuda")):
            y, v = (t.to(device, copy=True).requires_grad_() for t in (x, w))
            found.append(gradients(torch, block.weighted_sum(y, v), y, v))
        for other in found[1:]:
            assert torch.equal(found[0][0], other[0]) and torch.equal(found[0][1], other[1])
            # Products are added in an order of the GPU's own, the same on every run.
            torch.testing.assert_close(found[0][2], other[2], rtol=1e-4, atol=1e-4)
        assert torch.equal(found[1][2], found[2][2])


def test_a_stream_of_the_callers(torch: Any, batches: dict[int, Any]) -> None:
    """Work is in torch's current stream: after what made x, before what comes then."""
    mine, theirs = (batch.blocks[0] for batch in batches[64])
    x = torch.randn(mine.num_src_nodes, 128)
    y = x.clone().requires_grad_()
    want = gradients(torch, mine.mean(y), y)
    ready = x.cuda()
    torch.cuda.synchronize()
    for _ in range(5):
        with torch.cuda.stream(torch.cuda.Stream()):
            there = torch.full_like(ready, torch.nan)
            torch.cuda._sleep(10 * MILLISECOND)
            there.copy_(ready)
            there.requires_grad_()
            found = gradients(torch, theirs.mean(there), there)
        assert all(torch.equal(a, b) for a, b in zip(want, found, strict=True))


def test_nothing_waits(torch: Any, batches: dict[int, Any]) -> None:
    block = batches[64][1].blocks[0]
    x = torch.randn(block.num_src_nodes, 33, device="cuda", requires_grad=True)
    w = torch.randn(block.num_edges, device="cuda", requires_grad=True)
    block.sum(x).sum().backward()
    torch.cuda.synchronize()
    # What is kept of the first call is made again.
    block.__dict__.pop("_csr")
    torch.cuda.set_sync_debug_mode("error")
    try:
        made = block.mean(x) + block.weighted_sum(x, w) + block.max(x)
        made.sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("kind", KINDS)
def test_narrow_floats_are_reduced_by_torch(torch: Any, batches: dict[int, Any], kind: str) -> None:
    # Torch has no deterministic operation for some of it.
    torch.use_deterministic_algorithms(False)
    mine, theirs = (batch.blocks[0] for batch in batches[64])
    x = torch.randn(mine.num_src_nodes, 6).bfloat16()
    y = x.cuda().requires_grad_()
    got = getattr(theirs, kind)(y)
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.cpu(), getattr(mine, kind)(x))
    got.sum().backward()
    assert y.grad.dtype == torch.bfloat16


def test_nan_and_equals(torch: Any, batches: dict[int, Any]) -> None:
    for mine, theirs in zip(*(batch.blocks for batch in batches[32]), strict=True):
        x = torch.randint(-2, 3, (mine.num_src_nodes, 12)).float()
        x[::17, 3] = torch.nan
        y, z = x.clone().requires_grad_(), x.cuda().requires_grad_()
        found = [gradients(torch, block.max(v), v) for block, v in ((mine, y), (theirs, z))]
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)


def test_weights_from_elsewhere(torch: Any, batches: dict[int, Any]) -> None:
    block = batches[64][1].blocks[0]
    x = torch.randn(block.num_src_nodes, 4, device="cuda")
    with pytest.raises(ValueError, match="weights: expected a tensor on cuda:0, got one on cpu"):
        block.weighted_sum(x, torch.randn(block.num_edges))
    with pytest.raises(ValueError, match="x: expected a tensor on cuda:0, got one on cpu"):
        block.sum(x.cpu())


def test_blocks_without_edges(torch: Any) -> None:
    graph = pgs.Graph.from_coo([0], [1], num_nodes=4).to("cuda")
    block = pgs.PGSampler([2], seed=0).sample(graph, [2, 3]).torch().blocks[0]
    x = torch.randn(2, 3, device="cuda", requires_grad=True)
    for kind in KINDS:
        made = getattr(block, kind)(x)
        assert torch.equal(made, torch.zeros(2, 3, device="cuda"))
        made.sum().backward()
    assert torch.equal(x.grad, torch.zeros(2, 3, device="cuda"))
