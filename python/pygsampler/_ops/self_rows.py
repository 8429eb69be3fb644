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
    def forward(ctx: Any, x: Tensor, at: slice | Tensor) -> tuple[Tensor, Tensor]:
        ctx.at = at
        return x.view_as(x), take_rows(x, at)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, whole: Tensor, own: Tensor) -> tuple[Tensor, None]:
        _add_rows(whole, ctx.at, own)
        return whole, None


class _SelfAndReduce(torch.autograd.Function):
    """The rows of destinations, and a reduction of all rows, with one gradient for both."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, edges: segments.Segments, kind: int, at: slice | Tensor
    ) -> tuple[Tensor, Tensor]:
        best = segments.room_for_best(edges, kind, x.shape[1])
        ctx.save_for_backward(best)
        ctx.about = edges, kind, at
        ctx.set_materialize_grads(False)
        return take_rows(x, at), edges.reduce(x, kind, best=best)

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, own: Tensor | None, reduced: Tensor | None
    ) -> tuple[Tensor | None, None, None, None]:
        edges, kind, at = ctx.about
        made = None
        if reduced is not None:
            made = segments.gradient_of_sources(edges, reduced, kind, ctx.saved_tensors[0])
        elif own is not None:
            made = own.new_zeros((edges.sources, own.shape[1]))
        if made is not None and own is not None:
            _add_rows(made, at, own)
        return made, None, None, None


def _add_rows(whole: Tensor, at: slice | Tensor, own: Tensor) -> None:
    """Adds rows at some places of a gradient that nobody else has."""
    if isinstance(at, slice):
        whole[at] += own
    else:
        whole.index_add_(0, at, own)


def take_rows(x: Tensor, at: slice | Tensor) -> Tensor:
    """The rows at some places."""
    return x[at] if isinstance(at, slice) else x.index_select(0, at)


def self_and_reduce(
    edges: segments.Segments,
    x: Tensor | Features,
    kind: str,
    at: slice | Tensor,
    of: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Returns the rows of destinations, and the reduction of their in-neighbors' rows.

    The destinations are at some places of the rows.
    """
    if kind not in KINDS:
        raise ValueError(f"reduce: expected 'sum', 'mean' or 'max', got {kind!r}")
    if of is not None:
        reduced = segments.reduce(edges, x, KINDS[kind], of)
        return rows_by_id(x, take_rows(of, at)), reduced
    if not isinstance(x, torch.Tensor):
        raise ValueError("of: expected ids for features, got None")
    # A compiler adds the gradients up by itself.
    if not (x.requires_grad and torch.is_grad_enabled()) or segments.is_compiling():
        return take_rows(x, at), segments.reduce(edges, x, KINDS[kind])
    if x.dim() == 2 and segments.is_reduced_by_engine(edges, x):
        both: tuple[Tensor, Tensor] = _SelfAndReduce.apply(x.contiguous(), edges, KINDS[kind], at)
        return both
    whole, own = _Fork.apply(x, at)
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
    rows, part = x._rows_there(ids, device)
    gather_on_device(device, [part])
    return rows
