"""Attention of blocks on a GPU: near the CPU's, the same on every run, and in a CUDA graph."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.cuda.conftest import NODES
from tests.support.parity import random_graph

pytestmark = pytest.mark.usefixtures("deterministic")


def step(block: Any, values: list[Any], device: str) -> list[Any]:
    """Attention of both kinds and softmax with all gradients."""
    leaves = [v.to(device, copy=True).requires_grad_() for v in values]
    made = results(block, leaves)
    sum(one.square().sum() for one in made).backward()
    return [*(one.detach() for one in made), *(t.grad for t in leaves)]


def results(block: Any, leaves: list[Any]) -> list[Any]:
    x, source, target, scores, x_dst, edge = leaves
    att = x[0]
    return [
        block.attention(x, source, target),
        block.attention(x, source, target, edge=scores),
        block.attention(x.flatten(1)[:, None], source, target),
        block.attention(x.flatten(1)[:, None], source, target, edge=scores),
        block.softmax(scores),
        block.attention_v2(x, x_dst, att),
        block.attention_v2(x, x_dst, att, edge=edge),
    ]


def values_of(torch: Any, block: Any, shape: tuple[int, ...], dtype: Any) -> list[Any]:
    n, heads = block.num_src_nodes, shape[0]
    rows, edges = block.num_dst_nodes, block.num_edges
    sizes = (n, *shape), (n, heads), (rows, heads), (edges, heads), (rows, *shape), (edges, *shape)
    return [(torch.randn(*s) / 2).to(dtype) for s in sizes]


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (4, 64), (3, 5), (8, 8), (1, 602), (40, 3), (2, 2, 6)])
def test_near_the_cpu(
    torch: Any, batches: dict[int, Any], shape: tuple[int, ...], dtype: str, bits: int
) -> None:
    floats = getattr(torch, dtype)
    same = {2: {"rtol": 2e-2, "atol": 1e-1}, 4: {"rtol": 1e-3, "atol": 1e-3}}.get(
        floats.itemsize, {"rtol": 1e-9, "atol": 1e-9}
    )
    for mine, theirs in zip(*(batch.blocks for batch in batches[bits]), strict=True):
        values = values_of(torch, mine, shape, floats)
        want, *found = (
            step(b, values, d) for b, d in ((mine, "cpu"), (theirs, "cuda"), (theirs, "cuda"))
        )
        for a, b in zip(want, found[0], strict=True):
            # A gradient is a sum whose terms may be far larger than it is.
            most = max(1.0, float(a.abs().max())) if a.numel() else 1.0
            torch.testing.assert_close(a, b.cpu(), rtol=same["rtol"], atol=same["atol"] * most)
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_nothing_waits(torch: Any, batches: dict[int, Any]) -> None:
    block = batches[64][1].blocks[0]
    values = [v.cuda() for v in values_of(torch, block, (4, 8), torch.float32)]
    step(block, values, "cuda")
    torch.cuda.synchronize()
    block.__dict__.pop("_csr")
    torch.cuda.set_sync_debug_mode("error")
    try:
        step(block, values, "cuda")
    finally:
        torch.cuda.set_sync_debug_mode("default")


def test_a_captured_step_follows_its_tensors(torch: Any) -> None:
    """Forward and backward of padded blocks in a CUDA graph, replayed with other batches."""
    graph = random_graph(NODES, seed=5).graph(64).to("cuda")
    sampler = pgs.PGSampler([7], seed=3)
    seeds = [np.arange(k, NODES, 50 + k) for k in range(4)]
    blocks = [sampler.sample(graph, s, batch=i).torch().blocks[0] for i, s in enumerate(seeds)]
    rows = max(len(s) for s in seeds) + 30
    edges = max(block.num_edges for block in blocks) + 100
    sources = max(block.num_src_nodes for block in blocks) + rows

    class Padded(type(blocks[0])):  # type: ignore[misc]
        # The same tensors have another block's edges in the next call.
        def _segments(self) -> Any:
            self.__dict__.pop("_csr", None)
            return super()._segments()

    def zeros(n: int) -> Any:
        return torch.zeros(n, dtype=torch.int64, device="cuda")

    indptr, indices, nodes = zeros(rows + 1), zeros(edges), zeros(sources)
    static = Padded._of_arrays(indptr, indices, indices, nodes, nodes[:rows])
    shapes = (sources, 4, 9), (sources, 4), (rows, 4), (edges, 4), (rows, 4, 9), (edges, 4, 9)
    values = [torch.randn(*s, device="cuda") for s in shapes]

    def fill(block: Any) -> None:
        indptr.fill_(block.num_edges)
        indptr[: len(block.indptr)] = block.indptr
        indices.copy_(torch.arange(edges, device="cuda") % rows + block.num_src_nodes)
        indices[: block.num_edges] = block.indices

    leaves = [v.clone().requires_grad_() for v in values]

    def run() -> list[Any]:
        made = results(static, leaves)
        return [*made, *torch.autograd.grad(sum(one.square().sum() for one in made), leaves)]

    fill(blocks[0])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        kept = run()
    for block in blocks:
        fill(block)
        captured.replay()
        ends = block.num_dst_nodes, block.num_edges
        sizes = block.num_src_nodes, block.num_src_nodes, *ends, *ends
        want = step(block, [v[:n] for v, n in zip(values, sizes, strict=True)], "cuda")
        for mine, padded in zip(want, kept, strict=True):
            torch.testing.assert_close(mine, padded[: len(mine)], rtol=0, atol=0)
            assert not padded[len(mine) :].any()


def test_blocks_without_edges(torch: Any) -> None:
    graph = pgs.Graph.from_coo([0], [1], num_nodes=4).to("cuda")
    block = pgs.PGSampler([2], seed=0).sample(graph, [2, 3]).torch().blocks[0]
    values = values_of(torch, block, (2, 3), torch.float32)
    made = step(block, values, "cuda")
    assert made[4].shape == (0, 2)
    assert not any(one.any() for one in made)
