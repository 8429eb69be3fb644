"""Attention over the edges of a block, with gradients: softmax of scores, and rows summed by it.

The engine makes them where the tensors are, as it makes the sums of ``segments``.
"""

from __future__ import annotations

import struct
from array import array
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

import torch
from torch.autograd.function import once_differentiable

from pygsampler._arrays.devices import current_stream
from pygsampler._engine.checks import describe
from pygsampler._engine.library import call
from pygsampler._ops import segments as by_edge
from pygsampler._ops.segments import SUM, RowTable, Segments

if TYPE_CHECKING:
    from torch import Tensor


def softmax(segments: Segments, scores: Tensor) -> Tensor:
    """The softmax of scores, [edges, ...], over the edges of each row; 0 for padding."""
    edges = segments.indices.shape[0]
    _fits("scores", scores, (edges, ...), segments)
    if not scores.numel():
        return scores.clone()
    flat = scores.reshape(edges, -1)
    if by_edge.is_compiling():
        operator = torch.ops.pygsampler.softmax
        made: Tensor = operator(flat.contiguous(), segments.indptr, segments.indices)
    else:
        made = cast("Any", _Softmax.apply)(flat.contiguous(), segments)
    return made.reshape(scores.shape)


def attention(
    segments: Segments,
    x: Tensor,
    source: Tensor,
    target: Tensor,
    negative_slope: float,
    edge: Tensor | None = None,
) -> Tensor:
    """Rows of x, [sources, heads, ...], summed over each row's edges: [rows, heads, ...].

    Edges have the softmax of their scores as weights, ``leaky_relu(source + target + edge)``; rows
    without edges are 0. Heads of scores share the rows of an x with a single head.
    """
    heads = _heads(x)
    _fits("x", x, (segments.sources, heads, ...), segments)
    if heads == 1:
        heads = _heads(source)
    _fits("source", source, (segments.sources, heads), segments)
    _fits("target", target, (segments.num_rows, heads), segments)
    if edge is not None:
        _fits("edge", edge, (segments.indices.shape[0], heads), segments)
    return _attended(segments, x, (source, target, edge), float(negative_slope))


def attention_v2(
    segments: Segments,
    x_src: Tensor,
    x_dst: Tensor,
    att: Tensor,
    negative_slope: float,
    edge: Tensor | None = None,
) -> Tensor:
    """Rows of x_src, [sources, heads, ...], summed over each row's edges: [rows, heads, ...].

    Edges have the softmax of ``edge_scores`` as weights; rows without edges are 0.
    """
    scores = edge_scores(segments, x_src, x_dst, att, negative_slope, edge)
    # The slope was theirs.
    return _attended(segments, x_src, (None, None, scores), 1.0)


def edge_scores(
    segments: Segments,
    x_src: Tensor,
    x_dst: Tensor,
    att: Tensor,
    negative_slope: float,
    edge: Tensor | None = None,
) -> Tensor:
    """The scores of GATv2: ``att * leaky_relu(x_src + x_dst + edge)``, added for each head.

    x_src is [sources, heads, ...], x_dst [rows, heads, ...], att [heads, ...] and edge [edges,
    heads, ...]; scores are [edges, heads] and 0 for padding, of float32 for rows of 16 bits.
    """
    heads = _heads(x_src)
    _fits("x_src", x_src, (segments.sources, heads, ...), segments)
    shape = x_src.shape[1:]
    _fits("x_dst", x_dst, (segments.num_rows, *shape), segments)
    _fits("att", att, tuple(shape), segments)
    edges = segments.indices.shape[0]
    wide = _wide(x_src.dtype)
    rows = [x_dst.to(x_src.dtype)]
    if edge is not None:
        _fits("edge", edge, (edges, *shape), segments)
        rows.append(edge.to(x_src.dtype))
    if not x_src.flatten(1).shape[1]:
        # The gradients are there all the same.
        none = sum((t.sum() for t in (x_src, att, *rows)), start=x_src.new_zeros(()))
        return x_src.new_zeros((edges, heads), dtype=wide) + none.to(wide)
    own, *more = (t.flatten(1).contiguous() for t in rows)
    weights = att.to(wide).reshape(heads, -1).contiguous()
    given = x_src.flatten(1).contiguous(), own, weights, *(more or (None,))
    if by_edge.is_compiling():
        operator = torch.ops.pygsampler.edge_scores
        made: Tensor = operator(*given, segments.indptr, segments.indices, negative_slope)
    else:
        made = cast("Any", _EdgeScores.apply)(*given, segments, negative_slope)
    return made


def _heads(x: Any) -> int:
    return x.shape[1] if isinstance(x, torch.Tensor) and x.dim() > 1 else 1


def _attended(
    segments: Segments, x: Tensor, score_parts: tuple[Tensor | None, ...], slope: float
) -> Tensor:
    """Attention by the score_parts of scores: of sources, of destinations and of edges."""
    wide = _wide(x.dtype)
    flat = x.flatten(1)
    heads = next(t.shape[1] for t in score_parts if t is not None)
    shape = (segments.num_rows, heads, *x.shape[2:])
    if not heads or not flat.shape[1]:
        # The gradients are there all the same.
        none = sum((t.sum() for t in score_parts if t is not None), start=x.sum())
        return x.new_zeros(shape) + none.to(x.dtype)
    shared = x.shape[1] < heads
    scores = [None if t is None else t.to(wide).contiguous() for t in score_parts]
    given = flat.contiguous(), *scores
    if by_edge.is_compiling():
        operator = torch.ops.pygsampler.attention
        made: Tensor = operator(*given, segments.indptr, segments.indices, slope, shared)[0]
    else:
        made = cast("Any", _Attend.apply)(*given, segments, slope, shared)
    return made.reshape(shape)


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, segments: Segments) -> Tensor:
        made = _scores(segments, x)
        ctx.save_for_backward(made)
        ctx.segments = segments
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (made,) = ctx.saved_tensors
        return _scores(ctx.segments, made, grad.contiguous()), None


def _scores(segments: Segments, x: Tensor, grad: Tensor | None = None) -> Tensor:
    """The softmax of x, [edges, heads], or the gradient of what it is of where x is one."""
    edges, heads = x.shape
    out = by_edge._room(RowTable.of_tensor(x), edges, heads)
    # The values of edges, which has no source.
    table = RowTable.of_tensor(x)._replace(rows=0)
    rows = Segments(segments.indptr, segments.indices, 0)
    about = rows._reduction_words(table, SUM, 1, None, out)
    about.append(0 if grad is None else grad.data_ptr())
    _call("SegmentSoftmax", about, x, table, 1)
    return out


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        source: Tensor | None,
        target: Tensor | None,
        edge: Tensor | None,
        segments: Segments,
        slope: float,
        shared: bool,
    ) -> Tensor:
        part = edge if source is None else source
        assert part is not None
        heads = part.shape[1]
        log = part.new_empty((segments.num_rows, heads))
        table = _by_heads(x, heads if shared else 1)
        out = by_edge._room(table, segments.num_rows, table.width)
        ctx.save_for_backward(x, source, target, edge, log)
        ctx.about = segments, slope, shared
        if out.numel():
            _attention(segments, table, out, slope, shared, source, target, edge, log)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, source, target, edge, log = ctx.saved_tensors
        segments, slope, shared = ctx.about
        edges, heads = len(segments.indices), log.shape[1]
        table, grad = _by_heads(x, heads if shared else 1), grad.contiguous()
        alpha = by_edge._room(table, edges, heads)
        pre = by_edge._room(RowTable.of_tensor(log), edges, heads)
        to_target = None if target is None else torch.empty_like(target)
        to_x = to_source = None
        if edges and segments.num_rows:
            score_parts = source, target, edge, log, alpha, pre, to_target
            _attention(segments, table, grad, slope, shared, *score_parts)
        else:
            pre.zero_()
            if to_target is not None:
                to_target.zero_()
        if any(ctx.needs_input_grad[:2]):
            there = segments.transposed(places=True)
            if ctx.needs_input_grad[0]:
                of_heads = [(grad, alpha)]
                if shared:
                    of_heads = list(zip(grad.chunk(heads, 1), alpha.chunk(heads, 1), strict=True))
                to_x = reduce(
                    torch.add,
                    (there.reduce(g.contiguous(), SUM, a.contiguous()) for g, a in of_heads),
                )
            if ctx.needs_input_grad[1]:
                # Rows of edges, by their sources.
                assert there.places is not None
                to_source = Segments(there.indptr, there.places, edges).reduce(pre, SUM)
        return to_x, to_source, to_target, None if edge is None else pre, None, None, None


def _by_heads(x: Tensor, sharing: int) -> RowTable:
    """Rows of x as the engine sees them, as wide as sums: of as many heads as share them."""
    return RowTable.of_tensor(x)._replace(width=x.shape[1] * sharing)


def _attention(
    segments: Segments,
    x: RowTable,
    out: Tensor,
    slope: float,
    shared: bool,
    *score_parts: Tensor | None,
) -> None:
    """Calls the engine for attention, or its gradients where there is an alpha.

    Parts are source, target, edge, log, alpha, pre and to_target, as far as they are asked for; log
    has the heads.
    """
    log = score_parts[3]
    assert log is not None
    _scored(segments, x, log.shape[1], out, slope, shared, score_parts)


class _EdgeScores(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        x_dst: Tensor,
        att: Tensor,
        edge: Tensor | None,
        segments: Segments,
        slope: float,
    ) -> Tensor:
        edges, heads = len(segments.indices), len(att)
        made = by_edge._room(RowTable.of_tensor(att), edges, heads)
        ctx.save_for_backward(x, x_dst, att, edge)
        ctx.about = segments, slope
        if edges and segments.num_rows:
            _scores_of(segments, x, slope, x_dst, att, edge, made)
        else:
            made.zero_()
        return made

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, x_dst, att, edge = ctx.saved_tensors
        segments, slope = ctx.about
        grad = grad.contiguous()
        to_x = to_att = to_edge = None
        rows = by_edge._room(RowTable.of_tensor(x_dst), *x_dst.shape)
        by_row = by_edge._room(RowTable.of_tensor(att), *x_dst.shape)
        if edge is not None and ctx.needs_input_grad[3]:
            to_edge = by_edge._room(RowTable.of_tensor(edge), *edge.shape)
        if segments.num_rows:
            _scores_of(segments, x, slope, x_dst, att, edge, grad, rows, by_row, to_edge)
        elif to_edge is not None:
            to_edge.zero_()
        if ctx.needs_input_grad[2]:
            to_att = by_row.sum(0).reshape(att.shape)
        if ctx.needs_input_grad[0]:
            to_x = by_edge._room(RowTable.of_tensor(x), *x.shape)
            if len(x):
                there = segments.transposed(places=True)
                _scores_of(there, x_dst, slope, x, att, edge, grad, to_x)
        return to_x, rows, to_att, to_edge, None, None


def _scores_of(
    segments: Segments, x: Tensor, slope: float, x_dst: Tensor, att: Tensor, *others: Tensor | None
) -> None:
    """Calls the engine for scores of edges, or their gradients where there is a third of others.

    Others are edge, scores, and the gradients of x_dst, att and edge, as far as they are asked for.
    """
    table = RowTable.of_tensor(x)
    _scored(segments, table, len(att), None, slope, False, (), (x_dst, att, *others))


def _scored(
    segments: Segments,
    x: RowTable,
    heads: int,
    out: Tensor | None,
    slope: float,
    shared: bool,
    score_parts: tuple[Tensor | None, ...],
    more: tuple[Tensor | None, ...] = (),
) -> None:
    """Calls the engine with a reduction, seven parts of attention, and seven of scores.

    Between them are the slope, and whether heads share the rows of x.
    """
    about = segments._reduction_words(x, SUM, heads, None, out)
    about.extend(_seven(score_parts))
    about.frombytes(struct.pack("d", slope))
    about.append(shared)
    about.extend(_seven(more))
    # Scores alone need no room.
    many = heads if score_parts or len(more) > 4 else 0
    _call("SegmentAttend", about, segments.indptr, x, many)


def _seven(tensors: tuple[Tensor | None, ...]) -> list[int]:
    addresses = [0 if t is None else by_edge._address(t) for t in tensors]
    return [*addresses, *[0] * (7 - len(addresses))]


def _call(name: str, words: array[int], where: Tensor, x: RowTable, heads: int) -> None:
    """Calls the engine, with room for long rows of so many heads, if any."""
    index = by_edge._device(where)
    stream, room = 0, None
    if index >= 0:
        stream = current_stream(index)
        if heads:
            room = by_edge._room_for_long_rows(words, x, False, heads)
    call(name, index, words.buffer_info()[0], stream)
    del room


def _wide(dtype: torch.dtype) -> torch.dtype:
    """Returns the dtype of scores for rows of a dtype."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _fits(name: str, tensor: Tensor, shape: tuple[Any, ...], segments: Segments) -> None:
    """Raises unless a tensor of floats has such a shape, where the segments are."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: expected a tensor, got {describe(tensor)}")
    if tensor.dtype not in by_edge._OURS:
        raise TypeError(f"{name}: expected floats, got {tensor.dtype}")
    more = shape[-1] is ...
    sizes = shape[:-1] if more else shape
    if tuple(tensor.shape[: len(sizes)]) != sizes or (not more and tensor.dim() != len(sizes)):
        expected = ", ".join("..." if size is ... else str(size) for size in shape)
        raise ValueError(f"{name}: expected shape [{expected}], got {tuple(tensor.shape)}")
    device = segments.indices.device
    if tensor.device != device:
        raise ValueError(f"{name}: expected a tensor on {device}, got one on {tensor.device}")
