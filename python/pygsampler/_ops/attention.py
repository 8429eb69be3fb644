"""Attention over the edges of a block, with gradients: softmax of scores, and rows summed by it.

The engine makes them where the tensors are, as it makes the sums of ``segments``.
"""

from __future__ import annotations

import struct
from array import array
from typing import TYPE_CHECKING, Any

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
    edges = len(segments.indices)
    _fits("scores", scores, (edges, ...), segments)
    if not scores.numel():
        return scores.clone()
    flat = scores.reshape(edges, -1)
    apply: Any = _Softmax.apply
    made: Tensor = apply(flat.contiguous(), segments)
    return made.reshape(scores.shape)


def attention(
    segments: Segments, x: Tensor, source: Tensor, target: Tensor, negative_slope: float
) -> Tensor:
    """Rows of x, [sources, heads, ...], summed over each row's edges: [rows, heads, ...].

    Edges have the softmax of their scores as weights, ``leaky_relu(source + target)``; rows without
    edges are 0.
    """
    heads = x.shape[1] if isinstance(x, torch.Tensor) and x.dim() > 1 else 1
    _fits("x", x, (segments.sources, heads, ...), segments)
    _fits("source", source, (segments.sources, heads), segments)
    _fits("target", target, (segments.rows, heads), segments)
    slope = float(negative_slope)
    wide = _wide(x.dtype)
    flat = x.flatten(1)
    if not flat.shape[1]:
        # The gradients are there all the same.
        none = x.sum() + source.sum() + target.sum()
        return x.new_zeros((segments.rows, *x.shape[1:])) + none.to(x.dtype)
    apply: Any = _Attend.apply
    scores = source.to(wide).contiguous(), target.to(wide).contiguous()
    made: Tensor = apply(flat.contiguous(), *scores, segments, slope)
    return made.reshape((segments.rows, *x.shape[1:]))


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
    about = array(
        "q",
        [
            segments.indptr.data_ptr(),
            x.data_ptr(),
            0 if grad is None else grad.data_ptr(),
            out.data_ptr(),
            segments.rows,
            edges,
            heads,
            8 * segments.indptr.element_size(),
            8 * x.element_size(),
            x.dtype == torch.bfloat16,
        ],
    )
    _call("SegmentSoftmax", about, x)
    return out


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, source: Tensor, target: Tensor, segments: Segments, slope: float
    ) -> Tensor:
        table = RowTable.of_tensor(x)
        out = by_edge._room(table, segments.rows, table.width)
        log = torch.empty_like(target)
        ctx.save_for_backward(x, source, target, log)
        ctx.about = segments, slope
        if out.numel():
            _attention(segments, table, out, slope, source, target, log)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, source, target, log = ctx.saved_tensors
        segments, slope = ctx.about
        table, grad = RowTable.of_tensor(x), grad.contiguous()
        edges, heads = len(segments.indices), source.shape[1]
        alpha = by_edge._room(table, edges, heads)
        pre = by_edge._room(RowTable.of_tensor(source), edges, heads)
        to_target = torch.empty_like(target)
        to_x = to_source = None
        if edges and segments.rows:
            _attention(segments, table, grad, slope, source, target, log, alpha, pre, to_target)
        else:
            to_target.zero_()
        if any(ctx.needs_input_grad[:2]):
            there = segments.transposed(places=True)
            if ctx.needs_input_grad[0]:
                to_x = there.reduce(grad, SUM, alpha)
            if ctx.needs_input_grad[1]:
                # Rows of edges, by their sources.
                assert there.places is not None
                to_source = Segments(there.indptr, there.places, edges).reduce(pre, SUM)
        return to_x, to_source, to_target, None, None


def _attention(
    segments: Segments, x: RowTable, out: Tensor, slope: float, source: Tensor, *others: Tensor
) -> None:
    """Attention of engine/cpu/layers: others are target and log, then alpha, pre and to_target."""
    about = segments._about(x, SUM, source.shape[1], None, out)
    addresses = [by_edge._address(tensor) for tensor in (source, *others)]
    about.extend([*addresses, *[0] * (6 - len(addresses))])
    about.frombytes(struct.pack("d", slope))
    _call("SegmentAttend", about, out)


def _call(name: str, about: array[int], where: Tensor) -> None:
    index = by_edge._device(where)
    stream = current_stream(index) if index >= 0 else 0
    call(name, index, about.buffer_info()[0], stream)


def _wide(dtype: torch.dtype) -> torch.dtype:
    """What scores are for rows of a dtype."""
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
