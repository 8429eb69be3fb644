"""Sums, means and largest of what edges bring, and their gradients."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import torch
from torch_graphs import sampled

import pygsampler as pgs
from pygsampler._ops import segments as ours
from pygsampler.torch import segment_reduce

KINDS = {"sum": ours.SUM, "mean": ours.MEAN, "max": ours.MAX}


def distinct(shape: tuple[int, ...], dtype: Any) -> Any:
    """Values that are all different, so that there is one largest."""
    size = int(np.prod(shape))
    return ((torch.randperm(size) - size // 2) / 997).to(dtype).reshape(shape)


def by_index(block: Any, rows: Any, kind: str) -> Any:
    """What torch's own operations give, of a row for each edge."""
    _, dst = block.coo()
    flat = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))
    places = dst.long().unsqueeze(1).expand_as(flat)
    if kind == "max":
        least = flat.new_full((block.num_dst_nodes, flat.shape[1]), -torch.inf)
        made = least.scatter_reduce(0, places, flat, "amax")
        made = made.masked_fill(made == -torch.inf, 0)
    else:
        made = flat.new_zeros((block.num_dst_nodes, flat.shape[1])).scatter_add(0, places, flat)
        if kind == "mean":
            made = made / block.indptr.diff().clamp(min=1).unsqueeze(1)
    return made.reshape((block.num_dst_nodes, *rows.shape[1:]))


@pytest.mark.parametrize("shape", [(), (1,), (16,), (33,), (3, 8), (0,)])
@pytest.mark.parametrize("kind", KINDS)
def test_results_and_gradients_are_torchs(kind: str, shape: tuple[int, ...]) -> None:
    for ids, dtype in ((np.int32, torch.float32), (np.int64, torch.float64)):
        for block in sampled(ids).blocks:
            x = distinct((block.num_src_nodes, *shape), dtype).requires_grad_()
            y = x.detach().clone().requires_grad_()
            got = getattr(block, kind)(x)
            want = by_index(block, y[block.indices.long()], kind)
            assert got.dtype == dtype
            torch.testing.assert_close(got, want)
            weight = torch.randn_like(got)
            (got * weight).sum().backward()
            (want * weight).sum().backward()
            torch.testing.assert_close(x.grad, y.grad)


@pytest.mark.parametrize(("heads", "shape"), [(0, (16,)), (0, ()), (4, (4, 8)), (3, (3,))])
def test_weighted_sums_and_both_gradients(heads: int, shape: tuple[int, ...]) -> None:
    for block in sampled().blocks:
        x = torch.randn(block.num_src_nodes, *shape, dtype=torch.float64, requires_grad=True)
        sizes = (block.num_edges, heads) if heads else (block.num_edges,)
        a = torch.randn(sizes, dtype=torch.float64, requires_grad=True)
        y, b = (t.detach().clone().requires_grad_() for t in (x, a))
        got = block.weighted_sum(x, a)
        rows = y[block.indices] * b.reshape(b.shape + (1,) * (y.dim() - b.dim()))
        want = by_index(block, rows, "sum")
        torch.testing.assert_close(got, want)
        weight = torch.randn_like(got)
        (got * weight).sum().backward()
        (want * weight).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
        torch.testing.assert_close(a.grad, b.grad)


def test_gradients_by_differences() -> None:
    block = sampled(fanouts=(3,), seeds=12).blocks[0]
    x = distinct((block.num_src_nodes, 2), torch.float64).requires_grad_()
    a = torch.randn(block.num_edges, dtype=torch.float64, requires_grad=True)
    for kind in KINDS:
        assert torch.autograd.gradcheck(getattr(block, kind), (x,))
    assert torch.autograd.gradcheck(block.weighted_sum, (x, a))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats_are_added_as_float32(kind: str, dtype: Any) -> None:
    block = sampled().blocks[0]
    x = torch.randn(block.num_src_nodes, 6).to(dtype).requires_grad_()
    got = getattr(block, kind)(x)
    want = by_index(block, x.detach().float()[block.indices], kind)
    assert got.dtype == dtype
    torch.testing.assert_close(got, want.to(dtype))
    got.sum().backward()
    assert x.grad.dtype == dtype


@pytest.mark.parametrize("kind", KINDS)
def test_what_torch_makes_elsewhere_is_the_same(kind: str) -> None:
    """The way of GPUs, taken on the CPU."""
    block = sampled().blocks[0]
    x = distinct((block.num_src_nodes, 5), torch.float32).requires_grad_()
    y = x.detach().clone().requires_grad_()
    csr = block._segments()
    made = ours._by_torch(csr, y, KINDS[kind])
    got = getattr(block, kind)(x)
    torch.testing.assert_close(got, made)
    got.square().sum().backward()
    made.square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)


def test_any_number_of_cores_gives_the_same_bits() -> None:
    block = sampled(seeds=600).blocks[0]
    found = []
    before = pgs.get_num_threads()
    try:
        for threads in (1, 2, 5):
            pgs.set_num_threads(threads)
            torch.manual_seed(0)
            x = torch.randn(block.num_src_nodes, 300, requires_grad=True)
            a = torch.randn(block.num_edges, requires_grad=True)
            made = block.mean(x) + block.weighted_sum(x, a) + block.max(x)
            made.square().sum().backward()
            found.append((made, x.grad, a.grad))
    finally:
        pgs.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


def test_blocks_without_edges_or_rows() -> None:
    graph = pgs.Graph.from_coo([0], [1], num_nodes=4)
    batch = pgs.PGSampler([2], seed=0).sample(graph, [2, 3]).torch()
    x = torch.randn(2, 3, requires_grad=True)
    for kind in KINDS:
        made = getattr(batch.blocks[0], kind)(x)
        assert torch.equal(made, torch.zeros(2, 3))
        made.sum().backward()
    assert torch.equal(x.grad, torch.zeros(2, 3))
    none = pgs.PGSampler([2], seed=0).sample(graph, []).torch().blocks[0]
    assert none.mean(torch.zeros(0, 3)).shape == (0, 3)
    assert none.weighted_sum(torch.zeros(0, 3), torch.zeros(0)).shape == (0, 3)


def test_inputs_that_are_not_contiguous() -> None:
    block = sampled().blocks[0]
    x = torch.randn(5, block.num_src_nodes).T
    assert torch.equal(block.sum(x), block.sum(x.contiguous()))
    assert torch.equal(block.sum(x[:, ::2]), block.sum(x[:, ::2].contiguous()))
    x = torch.randn(block.num_src_nodes, 4, requires_grad=True)
    # A gradient of stride 0.
    block.sum(x).sum().backward()
    degree = torch.zeros(block.num_src_nodes).index_add(
        0, block.indices, torch.ones(block.num_edges)
    )
    assert torch.equal(x.grad, degree.unsqueeze(1).expand(-1, 4))


def test_nan_is_the_largest_and_its_source_gets_the_gradient() -> None:
    x = torch.tensor([[1.0], [float("nan")], [3.0]], requires_grad=True)
    made = segment_reduce(x, torch.tensor([0, 3, 3]), torch.tensor([0, 1, 2]), "max")
    assert made[0].isnan()
    assert made[1] == 0
    made.nansum().backward()
    assert x.grad[0] == x.grad[2] == 0


def test_a_block_that_travelled_reduces_alike() -> None:
    block = sampled().blocks[0]
    x = torch.randn(block.num_src_nodes, 4)
    want = block.mean(x)
    assert torch.equal(pickle.loads(pickle.dumps(block)).mean(x), want)


def test_segments_of_any_csr() -> None:
    x = torch.randn(9, 3)
    indptr, indices = torch.tensor([0, 2, 2, 5]), torch.tensor([0, 8, 1, 1, 2])
    made = segment_reduce(x, indptr, indices, "mean")
    want = torch.stack([x[[0, 8]].mean(0), torch.zeros(3), x[[1, 1, 2]].mean(0)])
    torch.testing.assert_close(made, want)
    assert torch.equal(segment_reduce(x, indptr.int(), indices.int(), "mean"), made)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"reduce": "min"}, ValueError, "reduce: expected 'sum', 'mean' or 'max', got 'min'"),
        ({"indices": [0.0]}, TypeError, "indices: expected int32 or int64 as indptr"),
        ({"indices": [[0], [1]]}, ValueError, "indices: expected one dimension"),
        ({"indptr": []}, TypeError, "indptr: expected int32 or int64"),
        ({"indptr": [0, 3]}, ValueError, "expected values from 0 to at most 2, got 0 to 3"),
        ({"indptr": [0, 5, 2]}, ValueError, "indptr: expected values that do not fall"),
        ({"indices": [0, 4]}, IndexError, r"indices\[1\]: expected a row of x in \[0, 4\), got 4"),
        ({"indices": [-1, 0]}, IndexError, r"indices\[0\]: expected a row of x"),
        ({"x": [1, 2]}, TypeError, "x: expected floats, got torch.int64"),
    ],
)
def test_what_is_wrong_is_told(change: dict[str, Any], error: type, text: str) -> None:
    given: dict[str, Any] = {"x": [[1.0]] * 4, "indptr": [0, 2], "indices": [0, 1], **change}
    arrays = {name: torch.tensor(given[name]) for name in ("x", "indptr", "indices")}
    with pytest.raises(error, match=text):
        segment_reduce(**arrays, reduce=given.get("reduce", "sum"))


def test_what_is_wrong_for_a_block_is_told() -> None:
    block = sampled().blocks[0]
    with pytest.raises(ValueError, match="x: expected a row for each of"):
        block.sum(torch.zeros(block.num_src_nodes + 1, 2))
    with pytest.raises(ValueError, match="weights: expected shape"):
        block.weighted_sum(torch.zeros(block.num_src_nodes, 2), torch.zeros(3))
    with pytest.raises(ValueError, match="weights: expected shape"):
        block.weighted_sum(torch.zeros(block.num_src_nodes, 2), torch.zeros(block.num_edges, 4))


def test_nothing_is_kept() -> None:
    block = sampled(seeds=600).blocks[0]
    before = pgs.engine.memory_stats()["live"]
    x = torch.randn(block.num_src_nodes, 256, requires_grad=True)
    block.mean(x).sum().backward()
    assert pgs.engine.memory_stats()["live"] > before
    del x
    assert pgs.engine.memory_stats()["live"] == before


def test_gradients_of_other_uses_are_added_in_place() -> None:
    """Autograd would write a sum as large as x anew, were the gradient a view."""
    x = torch.rand(64, 4, requires_grad=True)
    indptr, indices = torch.arange(9) * 2, torch.arange(16)
    out = segment_reduce(x, indptr, indices) + x[:8].exp()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        out.sum().backward()
    counts = {event.key: event.count for event in profile.key_averages()}
    assert counts.get("aten::add_") == 1
    assert "aten::add" not in counts
