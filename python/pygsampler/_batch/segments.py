"""Reductions over the edges of a block, with gradients: what layers of a graph network do.

The engine makes them where the tensors are: on the CPU before a call returns, on a GPU in torch's
current stream, where nothing here waits for the host.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

from pygsampler._arrays.devices import current_stream
from pygsampler._core.library import call
from pygsampler.array import Array

if TYPE_CHECKING:
    from torch import Tensor

# From so many bytes on memory comes from the engine.
_LARGE = 1 << 18
# As internal/segment numbers them.
SUM, MEAN, MAX = range(3)
# Of a GPU alone, as internal/cuda numbers it: what rows have whose largest a source was.
_TAKEN = 3
# Of a GPU: cuda.MostSegmentWidth and MostSegmentHeads.
_MOST_WIDTH, _MOST_HEADS = 1 << 20, (1 << 16) - 1


class Segments:
    """The edges of a block as a CSR over its destinations, and over its sources once needed."""

    __slots__ = ("_degrees", "_transposed", "indices", "indptr", "sources")

    def __init__(self, indptr: Tensor, indices: Tensor, sources: int) -> None:
        self.indptr = indptr
        self.indices = indices
        self.sources = sources
        self._transposed: tuple[Segments, Tensor] | None = None
        self._degrees: Tensor | None = None

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1

    def degrees(self, like: Tensor) -> Tensor:
        """How many edges each row has, at least 1, shape [rows, 1] and of a dtype."""
        made = self._degrees
        if made is None or made.dtype != like.dtype:
            made = self.indptr.diff().clamp_(min=1).to(like.dtype).unsqueeze(1)
            self._degrees = made
        return made

    def transposed(self) -> tuple[Segments, Tensor]:
        """The edges by their sources, whose sources are the rows here, and each edge's place."""
        made = self._transposed
        ids = self.indices
        if made is None and _device(ids) >= 0:
            narrow = ids.dtype == torch.int32
            ordered, places = torch.sort(ids, stable=True)
            bounds = torch.arange(self.sources + 1, dtype=ids.dtype, device=ids.device)
            starts = torch.searchsorted(ordered, bounds, out_int32=narrow)
            # The last row that begins at the edge or before it.
            edges = places.to(ids.dtype)
            rows = torch.searchsorted(self.indptr, edges, right=True, out_int32=narrow) - 1
            made = self._transposed = Segments(starts, rows, self.rows), places
        elif made is None:
            starts = ids.new_empty(self.sources + 1)
            rows, places = torch.empty_like(ids), torch.empty_like(ids)
            about = self._about(None, None, None, None, SUM, 1, 1, 32)
            call("SegmentTranspose", about.buffer_info()[0], *map(_address, (starts, rows, places)))
            made = self._transposed = Segments(starts, rows, self.rows), places.long()
        return made

    def reduce(
        self, x: Tensor, kind: int, weights: Tensor | None = None, best: Tensor | None = None
    ) -> Tensor:
        """Rows of x, [sources, width], reduced: [rows, width]."""
        out = _room(x, self.rows, x.shape[1])
        if out.numel():
            heads = 1 if weights is None else weights.shape[1]
            sizes = x.shape[1], heads, 8 * x.element_size()
            about = self._about(x, weights, out, best, kind, *sizes)
            address = about.buffer_info()[0]
            index = _device(x)
            if index >= 0:
                # Ids of a GPU are not looked at here: 0 asks for no word of bad ones.
                call("DeviceSegmentReduce", index, address, current_stream(index), 0)
            else:
                call("SegmentReduce", address)
        return out

    def dots(self, x: Tensor, y: Tensor, heads: int) -> Tensor:
        """For each edge the product of its source's row of x and its destination's of y, for each
        of the heads that share the width: [edges, heads]."""
        made = _room(x, len(self.indices), heads)
        if made.numel():
            sizes = x.shape[1], heads, 8 * x.element_size()
            about = self._about(x, None, y, None, SUM, *sizes)
            address = about.buffer_info()[0]
            index = _device(x)
            if index >= 0:
                call("DeviceSegmentDots", index, address, made.data_ptr(), current_stream(index))
            else:
                call("SegmentDots", address, made.data_ptr())
        return made

    def _about(
        self,
        x: Tensor | None,
        weights: Tensor | None,
        out: Tensor | None,
        best: Tensor | None,
        kind: int,
        width: int,
        heads: int,
        bits: int,
    ) -> array[int]:
        """The words of internal/segment's Reduction."""
        ids = self.indices
        # Where only edges are looked at no values are.
        values = [
            _address(ids) if x is None else x.data_ptr(),
            _address(self.indptr),
            _address(ids),
        ]
        values += [0 if weights is None else weights.data_ptr()]
        values += [_address(self.indptr) if out is None else out.data_ptr()]
        values += [0 if best is None else best.data_ptr()]
        values += [self.sources, self.rows, len(ids), width, heads]
        return array("q", [*values, kind, 8 * ids.element_size(), bits])


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, segments: Segments, kind: int) -> Tensor:
        best = None
        if kind == MAX:
            best = _room(segments.indices, segments.rows, x.shape[1])
            ctx.save_for_backward(best)
        ctx.segments, ctx.kind = segments, kind
        return segments.reduce(x, kind, best=best)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        segments: Segments = ctx.segments
        if ctx.kind == MAX:
            (best,) = ctx.saved_tensors
            if _device(grad) >= 0:
                # Not by atomics, whose order is another one each time.
                there, _ = segments.transposed()
                return there.reduce(grad.contiguous(), _TAKEN, best=best), None, None
            # What rows without edges have goes to one row more.
            places = best.masked_fill(best < 0, segments.sources).long()
            made = grad.new_zeros((segments.sources + 1, grad.shape[1]))
            return made.scatter_add_(0, places, grad)[:-1], None, None
        if ctx.kind == MEAN:
            grad = grad / segments.degrees(grad)
        there, _ = segments.transposed()
        return there.reduce(grad.contiguous(), SUM), None, None


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weights: Tensor, segments: Segments) -> Tensor:
        ctx.save_for_backward(x, weights)
        ctx.segments = segments
        return segments.reduce(x, SUM, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, weights = ctx.saved_tensors
        segments: Segments = ctx.segments
        grad = grad.contiguous()
        to_x = to_weights = None
        if ctx.needs_input_grad[0]:
            there, places = segments.transposed()
            to_x = there.reduce(grad, SUM, weights.index_select(0, places))
        if ctx.needs_input_grad[1]:
            to_weights = segments.dots(x, grad, weights.shape[1])
        return to_x, to_weights, None


def reduce(segments: Segments, x: Tensor, kind: int) -> Tensor:
    """``x``, [sources, ...], reduced over each row's edges: [rows, ...]; rows without any are 0."""
    flat = _flat(segments, x)
    if _is_ours(flat):
        made = _Reduce.apply(flat.contiguous(), segments, kind)
    else:
        made = _by_torch(segments, flat.index_select(0, segments.indices), kind)
    result: Tensor = made.reshape((segments.rows, *x.shape[1:]))
    return result


def weighted_sum(segments: Segments, x: Tensor, weights: Tensor) -> Tensor:
    """The sum over each row's edges of x at the source times the edge's weight."""
    flat = _flat(segments, x)
    edges = len(segments.indices)
    heads = weights.shape[1] if weights.dim() == 2 else 1
    fits = weights.dim() == 1 or (weights.dim() == 2 and x.dim() >= 2 and x.shape[1] == heads)
    if not fits or len(weights) != edges:
        raise ValueError(
            f"weights: expected shape [{edges}], or [{edges}, heads] and x of shape "
            f"[{segments.sources}, heads, ...], got {tuple(weights.shape)} and {tuple(x.shape)}"
        )
    if weights.device != x.device:
        raise ValueError(f"weights: expected a tensor on {x.device}, got one on {weights.device}")
    by_head = weights.reshape(edges, heads)
    if x.dtype == weights.dtype and _is_ours(flat, heads) and heads:
        apply: Any = _Weighted.apply
        made = apply(flat.contiguous(), by_head.contiguous(), segments)
    else:
        rows = flat.index_select(0, segments.indices)
        scaled = rows.reshape(edges, heads, -1) * by_head.unsqueeze(2)
        made = _by_torch(segments, scaled.reshape(edges, -1), SUM)
    result: Tensor = made.reshape((segments.rows, *x.shape[1:]))
    return result


def _by_torch(segments: Segments, rows: Tensor, kind: int) -> Tensor:
    """Rows of edges, reduced by torch's own operations, where the engine has none."""
    if not rows.numel():
        # They take none; the gradient of the rows is there all the same.
        return rows.new_zeros((segments.rows, rows.shape[1])) + rows.sum()
    wide = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
    degrees = segments.indptr.diff()
    if kind == MAX:
        # Not segment_reduce, whose gradient counts equals twice.
        dst = torch.arange(segments.rows, device=rows.device).repeat_interleave(degrees)
        least = wide.new_full((segments.rows, wide.shape[1]), -math.inf)
        made = least.scatter_reduce(0, dst.unsqueeze(1).expand_as(wide), wide, "amax")
        made = made.masked_fill(degrees.eq(0).unsqueeze(1), 0)
    else:
        if kind == MEAN:
            wide = wide / segments.degrees(wide).repeat_interleave(degrees, dim=0)
        offsets = segments.indptr
        made = torch.segment_reduce(wide, "sum", offsets=offsets, axis=0, unsafe=True)
    return made.to(rows.dtype)


def _flat(segments: Segments, x: Tensor) -> Tensor:
    if x.dim() < 1 or len(x) != segments.sources:
        raise ValueError(
            f"x: expected a row for each of {segments.sources} sources, got shape {tuple(x.shape)}"
        )
    if not x.is_floating_point():
        raise TypeError(f"x: expected floats, got {x.dtype}")
    if x.device != segments.indices.device:
        raise ValueError(
            f"x: expected a tensor on {segments.indices.device}, got one on {x.device}"
        )
    return x.reshape(len(x), math.prod(x.shape[1:]))


def _is_ours(x: Tensor, heads: int = 1) -> bool:
    if _device(x) >= 0 and (x.shape[1] > _MOST_WIDTH or heads > _MOST_HEADS):
        return False
    return x.dtype in (torch.float32, torch.float64) and x.shape[1] > 0


def _device(x: Tensor) -> int:
    """The index of the GPU that a tensor is on, or -1."""
    return x.get_device() if x.is_cuda else -1


def _room(like: Tensor, rows: int, width: int) -> Tensor:
    """Undefined values of a dtype. On the CPU torch asks the system for large ones each time."""
    if _device(like) >= 0 or rows * width * like.element_size() < _LARGE:
        return like.new_empty((rows, width))
    return Array._room(str(like.dtype).removeprefix("torch."), (rows, width)).torch()


def _address(ids: Tensor) -> int:
    """Of ids that may be none, and then have no address."""
    return ids.data_ptr() or _NOTHING.data_ptr()


_NOTHING = torch.zeros(1, dtype=torch.int64)
