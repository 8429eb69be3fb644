"""Reductions of blocks on a GPU: the bits of the CPU, and the same on every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pygsampler as pgs
from tests.cuda.conftest import NODES
from tests.support.parity import random_graph

KINDS = ("sum", "mean", "max")
pytestmark = pytest.mark.usefixtures("deterministic")
MILLISECOND = 2_000_000


@pytest.fixture
def segments(torch: Any) -> Any:
    from pygsampler._ops import segments

    return segments


def gradients(torch: Any, made: Any, *inputs: Any) -> list[Any]:
    scale = torch.arange(made.numel(), device=made.device).reshape(made.shape) % 7 - 3
    (made * scale.to(made.dtype)).sum().backward()
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
    # The calls below build again what the first call stored.
    block.__dict__.pop("_csr")
    torch.cuda.set_sync_debug_mode("error")
    try:
        made = block.mean(x) + block.weighted_sum(x, w) + block.max(x)
        made.sum().backward()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (5,), (47,), (100,), (256,), (602,)])
def test_narrow_floats(
    torch: Any, batches: dict[int, Any], shape: tuple[int, ...], dtype: str
) -> None:
    for mine, theirs in zip(*(batch.blocks for batch in batches[32]), strict=True):
        x = torch.randn(mine.num_src_nodes, *shape).to(getattr(torch, dtype))
        w = torch.randn(mine.num_edges).to(x.dtype)
        for kind in (*KINDS, "weighted_sum"):
            found = []
            for block, device in ((mine, "cpu"), (theirs, "cuda")):
                y, v = (t.to(device, copy=True).requires_grad_() for t in (x, w))
                more = (v,) if kind == "weighted_sum" else ()
                with torch.autocast("cuda"):
                    made = getattr(block, kind)(y, *more)
                assert made.dtype == y.dtype
                found.append(gradients(torch, made, y, *more))
            assert torch.equal(found[0][0], found[1][0]) and torch.equal(found[0][1], found[1][1])
            for a, b in zip(found[0][2:], found[1][2:], strict=True):
                torch.testing.assert_close(a, b, rtol=1e-2, atol=1e-1)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("shape", [(), (47,), (100,), (128,), (256,), (602,)])
def test_rows_of_a_table(
    torch: Any, batches: dict[int, Any], shape: tuple[int, ...], dtype: str
) -> None:
    """Checks rows of a tensor, of features on the device or page-locked, and through a cache."""
    mine, theirs = batches[64]
    x = torch.randn(NODES, *shape).to(getattr(torch, dtype))
    block, ids = theirs.blocks[0], theirs.input_nodes
    host = pgs.Features.from_tensor(x)
    graph = random_graph(NODES, seed=5).graph(64)
    places = host.to("cuda"), host.pin("cuda"), host.cache("cuda", rows=NODES // 5, graph=graph)
    for kind in KINDS:
        y = x.clone().requires_grad_()
        made = getattr(mine.blocks[0], kind)(y, of=mine.input_nodes)
        want = gradients(torch, made, y)
        there = x.cuda().requires_grad_()
        found = gradients(torch, getattr(block, kind)(there, of=ids), there)
        assert all(torch.equal(a, b) for a, b in zip(want, found, strict=True)), kind
        for features in places:
            assert torch.equal(getattr(block, kind)(features, of=ids).cpu(), want[0]), kind
    with pytest.raises(ValueError, match="expected features on cuda:0, got ones on cpu"):
        block.mean(host, of=ids)


def padded(torch: Any, block: Any, rows: int, edges: int) -> Any:
    """A block of fixed capacities: empty rows and edges of dummy sources behind the others."""

    class Padded(type(block)):  # type: ignore[misc]
        # The same tensors have another block's edges in the next call.
        def _segments(self) -> Any:
            self.__dict__.pop("_csr", None)
            return super()._segments()

    sources = block.num_src_nodes + rows
    indptr = torch.full((rows + 1,), block.num_edges, dtype=block.indptr.dtype, device="cuda")
    indptr[: len(block.indptr)] = block.indptr
    spare = torch.arange(edges, device="cuda") % rows + block.num_src_nodes
    indices = spare.to(block.indices.dtype)
    indices[: block.num_edges] = block.indices
    nodes = torch.zeros(sources, dtype=block.src_nodes.dtype, device="cuda")
    nodes[: block.num_src_nodes] = block.src_nodes
    return Padded._of_arrays(indptr, indices, torch.zeros_like(indices), nodes, nodes[:rows])


def test_a_captured_step_follows_its_tensors(torch: Any) -> None:
    """Forward and backward of padded blocks in a CUDA graph, replayed with other batches."""
    torch.use_deterministic_algorithms(False)
    graph = random_graph(NODES, seed=5).graph(32)
    sampler = pgs.PGSampler([7], seed=3)
    there = graph.to("cuda")
    seeds = [np.arange(k, NODES, 50 + k) for k in range(4)]
    batches = [sampler.sample(there, s, batch=i).torch() for i, s in enumerate(seeds)]
    rows = max(len(s) for s in seeds) + 30
    edges = max(b.blocks[0].num_edges for b in batches) + 100
    sources = max(b.blocks[0].num_src_nodes for b in batches) + rows
    table = torch.randn(NODES, 36, device="cuda", requires_grad=True)
    h = torch.randn(sources, 4, 9, device="cuda", requires_grad=True)
    w = torch.randn(edges, 4, device="cuda", requires_grad=True)
    static = padded(torch, batches[0].blocks[0], rows, edges)
    ids = torch.zeros(sources, dtype=torch.int32, device="cuda")
    # The ids have room for the sources of the largest batch.
    static.__dict__["src_nodes"] = ids

    def fill(batch: Any) -> None:
        full = padded(torch, batch.blocks[0], rows, edges)
        static.indptr.copy_(full.indptr)
        static.indices.copy_(full.indices)
        ids.zero_()
        ids[: len(batch.input_nodes)] = batch.input_nodes

    def step(block: Any, rows: int) -> list[Any]:
        made = block.mean(table, of=block.src_nodes) + block.max(table, of=block.src_nodes)
        made = made + block.weighted_sum(h, w).flatten(1) + block.mean(h).flatten(1)
        grads = torch.autograd.grad(made[:rows].square().sum(), (table, h, w))
        return [made, *grads]

    fill(batches[0])
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(2):
            step(static, rows)
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        kept = step(static, rows)
    for batch in batches:
        fill(batch)
        captured.replay()
        block = batch.blocks[0]
        n, e = block.num_src_nodes, block.num_edges
        x, y, v = table.detach(), h.detach()[:n], w.detach()[:e]
        table2, h2, w2 = (t.clone().requires_grad_() for t in (x, y, v))
        made = block.mean(table2, of=block.src_nodes) + block.max(table2, of=block.src_nodes)
        made = made + block.weighted_sum(h2, w2).flatten(1) + block.mean(h2).flatten(1)
        want = torch.autograd.grad(made.square().sum(), (table2, h2, w2))
        assert torch.equal(kept[0][: block.num_dst_nodes], made)
        assert not kept[0][block.num_dst_nodes :].any()
        assert torch.equal(kept[1], want[0])
        assert torch.equal(kept[2][:n], want[1]) and not kept[2][n:].any()
        assert torch.equal(kept[3][:e], want[2]) and not kept[3][e:].any()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("sources", "edges"), [(1, 100_000), (50_000, 1_000_000), (3000, 20_000)])
def test_transposition_is_a_stable_sort(
    torch: Any, segments: Any, sources: int, edges: int, bits: int
) -> None:
    dtype = getattr(torch, f"int{bits}")
    random = torch.Generator().manual_seed(sources)
    indices = torch.randint(sources, (edges,), generator=random)
    # A few have most of them.
    hub = torch.rand(edges, generator=random) < 0.3
    indices[hub] = torch.randint(3, (int(hub.sum()),), generator=random) % sources
    bounds = torch.randint(edges + 1, (999,), generator=random).sort().values
    indptr = torch.cat([torch.zeros(1).long(), bounds, torch.tensor([edges])])
    csr = segments.Segments(indptr.to(dtype).cuda(), indices.to(dtype).cuda(), sources)
    for _ in range(3):
        made = csr.transposed(places=True)
        csr._transposed = None
        order = indices.sort(stable=True).indices
        assert torch.equal(made.places.cpu().long(), order)
        rows = torch.searchsorted(indptr, order, right=True) - 1
        assert torch.equal(made.indices.cpu().long(), rows)
        counts = indices.bincount(minlength=sources)
        assert torch.equal(made.indptr.cpu().long().diff(), counts)


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
