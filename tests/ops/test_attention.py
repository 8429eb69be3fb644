"""Softmax over the edges of destinations, and attention, against torch's own operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch_graphs import sampled

import pygsampler as pgs
from pygsampler._batch.block import Block

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def block_of(indptr: list[int], indices: list[int], sources: int) -> Block:
    starts, ids = torch.tensor(indptr), torch.tensor(indices, dtype=torch.int64)
    ends = torch.arange(sources), torch.arange(len(indptr) - 1)
    return Block._of_arrays(starts, ids, ids, *ends)


def by_torch(block: Any, scores: Any) -> Any:
    """The softmax of scores by torch's operations."""
    rows = block.num_dst_nodes
    dst = torch.arange(rows).repeat_interleave(block.indptr.diff().long())
    places = dst.reshape(-1, *[1] * (scores.dim() - 1)).expand_as(scores)
    most = scores.new_full((rows, *scores.shape[1:]), -torch.inf)
    most = most.scatter_reduce(0, places, scores.detach(), "amax")
    parts = (scores - most[dst]).exp()
    return parts / parts.new_zeros(most.shape).index_add(0, dst, parts)[dst]


def ends_of(block: Any) -> tuple[Any, Any]:
    dst = torch.arange(block.num_dst_nodes).repeat_interleave(block.indptr.diff().long())
    return block.indices[: len(dst)].long(), dst


def summed(block: Any, x: Any, scores: Any) -> Any:
    """Rows of x summed by the softmax of scores, in float64."""
    src, dst = ends_of(block)
    weights = by_torch(block, scores)
    rows = x[src] * weights.reshape(*weights.shape, *[1] * (x.dim() - 2))
    return x.new_zeros((block.num_dst_nodes, *x.shape[1:])).index_add(0, dst, rows)


def attention(block: Any, x: Any, source: Any, target: Any, slope: float, edge: Any = None) -> Any:
    src, dst = ends_of(block)
    parts = source[src] + target[dst]
    parts = parts if edge is None else parts + edge[: len(dst)]
    return summed(block, x, F.leaky_relu(parts, slope))


def attention_v2(
    block: Any, x_src: Any, x_dst: Any, att: Any, slope: float, edge: Any = None
) -> Any:
    src, dst = ends_of(block)
    parts = x_src[src] + x_dst[dst]
    parts = parts if edge is None else parts + edge[: len(dst)]
    return summed(block, x_src, (F.leaky_relu(parts, slope) * att).flatten(2).sum(2))


def close(dtype: Any) -> dict[str, float]:
    return {2: {"rtol": 2e-2, "atol": 2e-2}, 4: {"rtol": 1e-4, "atol": 1e-5}}.get(
        dtype.itemsize, {"rtol": 1e-9, "atol": 1e-11}
    )


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (4,), (8,), (33,), (2, 3), (0,)])
def test_softmax_is_torchs(shape: tuple[int, ...], dtype: Any) -> None:
    for ids in (np.int32, np.int64):
        for block in sampled(ids).blocks:
            x = (4 * torch.randn(block.num_edges, *shape)).to(dtype).requires_grad_()
            y = x.detach().double().requires_grad_()
            got, want = block.softmax(x), by_torch(block, y)
            assert got.dtype == dtype and got.shape == x.shape
            torch.testing.assert_close(got.double(), want, **close(dtype))
            weight = torch.randn_like(got)
            (got * weight).sum().backward()
            (want * weight.double()).sum().backward()
            torch.testing.assert_close(x.grad.double(), y.grad, **close(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 47), (4, 8), (3, 5), (2, 3, 2), (8, 64), (1, 602), (5,), (2, 0)]
)
def test_attention_is_torchs(shape: tuple[int, ...], dtype: Any) -> None:
    for ids in (np.int32, np.int64):
        for block in sampled(ids).blocks:
            heads = shape[0]
            sizes = (block.num_src_nodes, *shape), (block.num_src_nodes, heads)
            given = [torch.randn(*s) for s in (*sizes, (block.num_dst_nodes, heads))]
            mine = [t.to(dtype).requires_grad_() for t in given]
            theirs = [t.detach().double().requires_grad_() for t in mine]
            got = block.attention(*mine, negative_slope=0.3)
            want = attention(block, *theirs, 0.3)
            assert got.dtype == dtype and got.shape == want.shape
            torch.testing.assert_close(got.double(), want, **close(dtype))
            weight = torch.randn_like(got)
            (got * weight).sum().backward()
            (want * weight.double()).sum().backward()
            for a, b in zip(mine, theirs, strict=True):
                # Sums of many products of either sign, which were rounded.
                more = {2: {"rtol": 5e-2, "atol": 0.3}, 4: {"rtol": 1e-4, "atol": 1e-4}}.get(
                    dtype.itemsize, close(dtype)
                )
                torch.testing.assert_close(a.grad.double(), b.grad, **more)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("with_edge", [False, True])
@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 47), (4, 8), (3, 5), (2, 3, 2), (8, 64), (1, 602), (2, 0)]
)
def test_attention_v2_is_torchs(shape: tuple[int, ...], with_edge: bool, dtype: Any) -> None:
    for ids in (np.int32, np.int64):
        for block in sampled(ids).blocks:
            sizes = (block.num_src_nodes, *shape), (block.num_dst_nodes, *shape), shape
            sizes += ((block.num_edges, *shape),) * with_edge
            mine = [(torch.randn(*s) / 2).to(dtype).requires_grad_() for s in sizes]
            theirs = [t.detach().double().requires_grad_() for t in mine]
            got = block.attention_v2(*mine[:3], 0.3, *mine[3:])
            want = attention_v2(block, *theirs[:3], 0.3, *theirs[3:])
            assert got.dtype == dtype and got.shape == want.shape
            torch.testing.assert_close(got.double(), want, **close(dtype))
            weight = torch.randn_like(got)
            (got * weight).sum().backward()
            (want * weight.double()).sum().backward()
            for a, b in zip(mine, theirs, strict=True):
                # Sums of many products of either sign, which were rounded.
                more = {2: {"rtol": 5e-2, "atol": 0.5}, 4: {"rtol": 1e-4, "atol": 1e-3}}.get(
                    dtype.itemsize, close(dtype)
                )
                torch.testing.assert_close(a.grad.double(), b.grad, **more)


@pytest.mark.parametrize("dtype", FLOATS)
def test_attention_with_scores_of_edges_is_torchs(dtype: Any) -> None:
    for ids in (np.int32, np.int64):
        for block in sampled(ids).blocks:
            sizes = (block.num_src_nodes, 2, 5), (block.num_src_nodes, 2), (block.num_dst_nodes, 2)
            mine = [
                torch.randn(*s).to(dtype).requires_grad_() for s in (*sizes, (block.num_edges, 2))
            ]
            theirs = [t.detach().double().requires_grad_() for t in mine]
            got, want = (
                block.attention(*mine[:3], 0.3, mine[3]),
                attention(block, *theirs[:3], 0.3, theirs[3]),
            )
            torch.testing.assert_close(got.double(), want, **close(dtype))
            got.square().sum().backward()
            want.square().sum().backward()
            for a, b in zip(mine, theirs, strict=True):
                more = {2: {"rtol": 5e-2, "atol": 0.5}, 4: {"rtol": 1e-4, "atol": 1e-3}}.get(
                    dtype.itemsize, close(dtype)
                )
                torch.testing.assert_close(a.grad.double(), b.grad, **more)


def padded(dtype: Any) -> Block:
    """A block of rows of 0 to 700 edges, with padding behind its edges."""
    indptr = torch.tensor([0, 0, 700, 701, 701, 716])
    indices = torch.cat([torch.arange(716) % 40, torch.full((5,), 40)])
    ends = torch.arange(40), torch.arange(5)
    return Block._of_arrays(indptr.to(dtype), indices.to(dtype), indices.to(dtype), *ends)


@pytest.mark.parametrize("ids", [torch.int32, torch.int64])
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("heads", [1, 2, 3, 4, 5])
def test_heads_share_a_single_head_of_rows(heads: int, dtype: Any, ids: Any) -> None:
    blocks = [padded(ids), *sampled(torch.empty(0, dtype=ids).numpy().dtype.type).blocks]
    for block, shape in [(block, shape) for block in blocks for shape in ((), (1,), (3, 5), (72,))]:
        n, rows, edges = block.num_src_nodes, block.num_dst_nodes, block.num_edges
        sizes = (n, 1, *shape), (n, heads), (rows, heads), (edges, heads)
        values = [torch.randn(*size).to(dtype) for size in sizes]
        found = []
        for copies in (1, heads):
            leaves = [value.clone().requires_grad_() for value in values]
            x, source, target, edge = leaves
            many = x.expand(n, copies, *shape)
            made = block.attention(many, source, target, 0.3, edge)
            assert made.shape == (rows, heads, *shape) and made.dtype == dtype
            (made * made.detach().cos()).sum().backward()
            found.append([made, *(leaf.grad for leaf in leaves[1:]), x.grad])
        (*mine, to_x), (*theirs, to_copies) = found
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
        # Sums of the heads' gradients, which were rounded.
        within = {2: 0.1, 4: 1e-4, 8: 1e-12}[dtype.itemsize]
        most = max(1, float(to_copies.abs().max()))
        torch.testing.assert_close(to_x, to_copies, rtol=0, atol=within * most)


@pytest.mark.parametrize("shape", [(0, 2, 3), (2, 2, 0)])
def test_nothing_to_share(shape: tuple[int, int, int]) -> None:
    heads, parts, width = shape
    block = sampled().blocks[0]
    leaves = [
        torch.randn(*size, requires_grad=True)
        for size in (
            (block.num_src_nodes, 1, parts, width),
            (block.num_src_nodes, heads),
            (block.num_dst_nodes, heads),
        )
    ]
    made = block.attention(*leaves)
    assert made.shape == (block.num_dst_nodes, *shape)
    made.sum().backward()
    assert not any(leaf.grad.any() for leaf in leaves)


def test_gradients_by_differences() -> None:
    block = sampled(fanouts=(3,), seeds=12).blocks[0]
    n, rows = block.num_src_nodes, block.num_dst_nodes
    x, source, target = (
        torch.randn(*s, dtype=torch.float64, requires_grad=True)
        for s in ((n, 2, 3), (n, 2), (rows, 2))
    )
    assert torch.autograd.gradcheck(block.attention, (x, source, target))
    assert torch.autograd.gradcheck(block.attention, (x.detach()[:, :1], source, target))
    shared = x.detach()[:, :1].clone().requires_grad_()
    assert torch.autograd.gradcheck(block.attention, (shared, source, target))
    sizes = (block.num_edges, 2), (block.num_edges, 2, 3), (rows, 2, 3), (2, 3)
    score, edge, x_dst, att = (
        torch.randn(*s, dtype=torch.float64, requires_grad=True) for s in sizes
    )
    assert torch.autograd.gradcheck(block.attention, (x, source, target, 0.2, score))
    assert torch.autograd.gradcheck(block.attention_v2, (x, x_dst, att))
    assert torch.autograd.gradcheck(block.attention_v2, (x, x_dst, att, 0.2, edge))
    scores = torch.randn(block.num_edges, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(block.softmax, (scores,))


def both_close(got: Any, want: Any, mine: list[Any], theirs: list[Any]) -> None:
    """Two results and the gradients of what they were made of."""
    torch.testing.assert_close(got, want)
    got.square().sum().backward()
    want.square().sum().backward()
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad)


@pytest.mark.parametrize(
    ("indptr", "indices"),
    [
        ([0], []),
        ([0, 0, 0], []),
        ([0, 0, 5, 5], [1, 1, 1, 1, 1]),
        ([0, 700, 701], [k % 5 for k in range(701)]),
        ([0] + [k + 1 for k in range(600)], [2] * 600),
    ],
)
def test_awkward_blocks(indptr: list[int], indices: list[int]) -> None:
    block = block_of(indptr, indices, 5)
    shapes = ((5, 2, 3), (5, 2), (len(indptr) - 1, 2))
    # In float64, since a long row's error in float32 has no bound that all draws keep.
    given = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
    mine, theirs = ([t.clone().requires_grad_() for t in given] for _ in range(2))
    got, want = block.attention(*mine), attention(block, *theirs, 0.2)
    both_close(got, want, mine, theirs)
    empty = (torch.tensor(indptr).diff() == 0).nonzero().squeeze(1)
    assert not got[empty].any()
    shapes = (5, 2, 3), (len(indptr) - 1, 2, 3), (2, 3), (len(indices), 2, 3)
    given = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
    mine, theirs = ([t.clone().requires_grad_() for t in given] for _ in range(2))
    got = block.attention_v2(*mine[:3], edge=mine[3])
    want = attention_v2(block, *theirs[:3], 0.2, theirs[3])
    both_close(got, want, mine, theirs)
    assert not got[empty].any()
    scores = torch.randn(len(indices), 2)
    torch.testing.assert_close(block.softmax(scores), by_torch(block, scores))


def test_large_scores_neither_overflow_nor_vanish() -> None:
    block = block_of([0, 2, 4], [0, 1, 1, 2], 3)
    source = torch.tensor([[3e4], [-3e4], [1e38]])
    x = torch.tensor([[[1.0]], [[2.0]], [[3.0]]])
    assert torch.equal(
        block.attention(x, source, torch.zeros(2, 1)).flatten(), torch.tensor([1.0, 3])
    )
    scores = torch.tensor([1e38, -1e38, 1e5, 1e5])
    assert torch.equal(block.softmax(scores), torch.tensor([1, 0, 0.5, 0.5]))


def test_nan_stays_in_its_row() -> None:
    block = block_of([0, 2, 4], [0, 1, 1, 2], 3)
    source = torch.tensor([[torch.nan], [0.0], [1.0]])
    made = block.attention(torch.ones(3, 1, 2), source, torch.zeros(2, 1))
    assert made[0].isnan().all() and torch.equal(made[1], torch.ones(1, 2))
    scores = block.softmax(torch.tensor([1.0, torch.nan, 0, 0]))
    assert scores[:2].isnan().all() and torch.equal(scores[2:], torch.full((2,), 0.5))


def test_padding_changes_nothing() -> None:
    block = sampled().blocks[0]
    n, e, rows = block.num_src_nodes, block.num_edges, block.num_dst_nodes
    indptr = torch.cat([block.indptr, block.indptr[-1:].expand(3)])
    indices = torch.cat([block.indices, torch.full((5,), n)])
    ends = torch.zeros(n + 2, dtype=torch.int64), indptr[1:]
    full = Block._of_arrays(indptr, indices, indices, *ends)
    found = []
    for b in (block, full):
        torch.manual_seed(0)
        x, source, target = (torch.randn(s, 2) for s in (n, n, rows))
        spare = torch.full((b.num_src_nodes - n, 2), torch.nan)
        more = torch.full((b.num_dst_nodes - rows, 2), torch.nan)
        leaves = [x, spare], [source, spare], [target, more]
        given = [torch.cat(parts).requires_grad_() for parts in leaves]
        padding = torch.full((b.num_edges - e, 2), torch.nan)
        scores = torch.cat([torch.randn(e, 2), padding]).requires_grad_()
        pairs = torch.cat([torch.randn(e, 2), padding]).unsqueeze(2).requires_grad_()
        made, weights = b.attention(*given, edge=scores), b.softmax(scores)
        x_src, x_dst = given[0].unsqueeze(2), given[2].unsqueeze(2)
        second = b.attention_v2(x_src, x_dst, torch.ones(2, 1), edge=pairs)
        (made.square().sum() + weights.square().sum() + second.square().sum()).backward()
        found.append([made, weights, second, *(t.grad for t in (*given, scores, pairs))])
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs[: len(mine)], rtol=0, atol=0)
        assert not theirs[len(mine) :].any()


def test_any_number_of_cores_gives_the_same_bits() -> None:
    block = sampled(seeds=600).blocks[0]
    found = []
    before = pgs.get_num_threads()
    try:
        for threads in (1, 2, 5):
            pgs.set_num_threads(threads)
            torch.manual_seed(0)
            n = block.num_src_nodes
            shapes = (n, 4, 64), (n, 4), (block.num_dst_nodes, 4), (block.num_edges, 4)
            *given, scores = (torch.randn(*s).requires_grad_() for s in shapes)
            made, weights = block.attention(*given), block.softmax(scores)
            x_dst = given[0][: block.num_dst_nodes]
            second = block.attention_v2(given[0], x_dst, given[0][0])
            (made.square().sum() + weights.square().sum() + second.square().sum()).backward()
            found.append([made, weights, second, *(t.grad for t in (*given, scores))])
    finally:
        pgs.set_num_threads(before)
    for other in found[1:]:
        assert all(torch.equal(one, two) for one, two in zip(found[0], other, strict=True))


def test_autocast_leaves_dtypes_alone() -> None:
    block = sampled().blocks[0]
    x = torch.randn(block.num_src_nodes, 2, 3, dtype=torch.bfloat16, requires_grad=True)
    source = torch.randn(block.num_src_nodes, 2, requires_grad=True)
    target = torch.randn(block.num_dst_nodes, 2, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        made = block.attention(x, source, target)
    assert made.dtype == torch.bfloat16
    made.sum().backward()
    assert [t.grad.dtype for t in (x, source, target)] == [x.dtype, source.dtype, target.dtype]


def test_what_is_wrong_is_told() -> None:
    block = sampled().blocks[0]
    n, rows, e = block.num_src_nodes, block.num_dst_nodes, block.num_edges
    x, source, target = torch.zeros(n, 2, 3), torch.zeros(n, 2), torch.zeros(rows, 2)
    for change, error, text in (
        ({"x": x[1:]}, ValueError, rf"x: expected shape \[{n}, 2, ...\], got \({n - 1}, 2, 3\)"),
        ({"x": x[:, 0, 0]}, ValueError, rf"x: expected shape \[{n}, 1, ...\], got \({n},\)"),
        ({"x": x.long()}, TypeError, "x: expected floats, got torch.int64"),
        ({"source": source[:, :1]}, ValueError, rf"source: expected shape \[{n}, 2\], got"),
        ({"source": source.int()}, TypeError, "source: expected floats, got torch.int32"),
        ({"x": x.repeat(1, 2, 1)}, ValueError, rf"source: expected shape \[{n}, 4\], got"),
        ({"x": x[:, :1], "target": target[:, :1]}, ValueError, rf"target: .* \[{rows}, 2\], got"),
        ({"target": source[: rows + 1]}, ValueError, rf"target: expected shape \[{rows}, 2\], got"),
        ({"negative_slope": torch.inf}, ValueError, "negative_slope: expected a finite number"),
        ({"edge": source[:1]}, ValueError, rf"edge: expected shape \[{e}, 2\], got"),
    ):
        given = {"x": x, "source": source, "target": target, **change}
        with pytest.raises(error, match=text):
            block.attention(**given)
    x_dst, att = torch.zeros(rows, 2, 3), torch.zeros(2, 3)
    for change, error, text in (
        ({"x_src": x[1:]}, ValueError, rf"x_src: expected shape \[{n}, 2, ...\], got"),
        ({"x_dst": x_dst[1:]}, ValueError, rf"x_dst: expected shape \[{rows}, 2, 3\], got"),
        ({"att": att[:1]}, ValueError, r"att: expected shape \[2, 3\], got"),
        ({"edge": x_dst[:1]}, ValueError, rf"edge: expected shape \[{e}, 2, 3\], got"),
        ({"negative_slope": torch.nan}, ValueError, "negative_slope: expected a finite number"),
    ):
        given = {"x_src": x, "x_dst": x_dst, "att": att, **change}
        with pytest.raises(error, match=text):
            block.attention_v2(**given)
    with pytest.raises(ValueError, match=rf"scores: expected shape \[{e}, ...\], got"):
        block.softmax(torch.zeros(e + 1))
    with pytest.raises(TypeError, match=r"scores: expected floats, got torch\.int64"):
        block.softmax(torch.zeros(e).long())
