"""Reads rows of destinations and reduces their in-neighbors' rows in one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.function import once_differentiable

from pygsampler._features.features import Features
from pygsampler._features.gather import gather_on_device
from pygsampler._ops import segments

if TYPE_CHECKING:
    from torch import Tensor

KINDS = {"sum": segments.SUM, "mean": segments.MEAN, "max": segments.MAX}


class _Fork(torch.autograd.Function):
    """Rows twice: all of them, and those of destinations.

    Torch would make the gradient of the latter as large as all rows, and add it to the other.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, dst_index: slice | Tensor) -> tuple[Tensor, Tensor]:
        ctx.at = dst_index
        return x.view_as(x), take_rows(x, dst_index)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor, dst_gradient: Tensor) -> tuple[Tensor, None]:
        _add_rows(gradient, ctx.at, dst_gradient)
        return gradient, None


class _SelfAndReduce(torch.autograd.Function):
    """The rows of destinations, and a reduction of all rows, with one gradient for both."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, edges: segments.Segments, kind: int, dst_index: slice | Tensor
    ) -> tuple[Tensor, Tensor]:
        best = segments.room_for_best(edges, kind, x.shape[1])
        ctx.save_for_backward(best)
        ctx.about = edges, kind, dst_index
        ctx.set_materialize_grads(False)
        return take_rows(x, dst_index), edges.reduce(x, kind, best=best)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, dst_gradient: Tensor | None, reduced: Tensor | None
    ) -> tuple[Tensor | None, None, None, None]:
        edges, kind, at = ctx.about
        made = None
        if reduced is not None:
            made = segments.gradient_of_sources(edges, reduced, kind, ctx.saved_tensors[0])
        elif dst_gradient is not None:
            made = dst_gradient.new_zeros((edges.sources, dst_gradient.shape[1]))
        if made is not None and dst_gradient is not None:
            _add_rows(made, at, dst_gradient)
        return made, None, None, None


def _add_rows(gradient: Tensor, dst_index: slice | Tensor, dst_gradient: Tensor) -> None:
    """Adds rows at some places of a gradient that nobody else has."""
    if isinstance(dst_index, slice):
        gradient[dst_index] += dst_gradient
    else:
        gradient.index_add_(0, dst_index, dst_gradient)


def take_rows(x: Tensor, index: slice | Tensor) -> Tensor:
    """The rows at some places."""
    return x[index] if isinstance(index, slice) else x.index_select(0, index)


def self_and_reduce(
    edges: segments.Segments,
    x: Tensor | Features,
    kind: str,
    dst_index: slice | Tensor,
    source_ids: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Returns the rows of destinations, and the reduction of their in-neighbors' rows.

    The destinations are at some places of the rows.
    """
    if kind not in KINDS:
        raise ValueError(f"reduce: expected 'sum', 'mean' or 'max', got {kind!r}")
    if source_ids is not None:
        reduced = segments.reduce(edges, x, KINDS[kind], source_ids)
        return rows_by_id(x, take_rows(source_ids, dst_index)), reduced
    if not isinstance(x, torch.Tensor):
        raise ValueError("of: expected ids for features, got None")
    # A compiler adds the gradients up by itself.
    if not (x.requires_grad and torch.is_grad_enabled()) or segments.is_compiling():
        return take_rows(x, dst_index), segments.reduce(edges, x, KINDS[kind])
    if x.dim() == 2 and segments.is_reduced_by_engine(edges, x):
        both: tuple[Tensor, Tensor] = _SelfAndReduce.apply(
            x.contiguous(), edges, KINDS[kind], dst_index
        )
        return both
    whole, own = _Fork.apply(x, dst_index)
    return own, segments.reduce(edges, whole, KINDS[kind])


def rows_by_id(x: Tensor | Features, ids: Tensor) -> Tensor:
    """Rows of a table by their ids; on a GPU nobody waits for them."""
    if isinstance(x, torch.Tensor):
        if x.requires_grad or not x.is_cuda or segments.is_compiling():
            return x.index_select(0, ids)
        x = Features.from_tensor(x)
    if not ids.is_cuda:
        made: Tensor = x.read(ids)
        return made
    device = ids.get_device()
    rows, part = x._device_rows(ids, device)
    gather_on_device(device, [part])
    return rows
