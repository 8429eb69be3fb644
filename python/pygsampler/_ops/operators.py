"""Layer operations as operators of torch, for compilers, exporters and profilers.

``torch.ops.pygsampler`` has each operation and its gradient as an operator on plain tensors, with a
fake kernel that says what shapes and dtypes come out. ``torch.compile`` and ``torch.export`` put
operators into their graphs; eager calls take the functions of autograd of ``segments`` and
``attention``, which begin faster. A torch that cannot register gradients (2.3 and older) has none.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pygsampler._ops import attention, segments
from pygsampler._ops.segments import MAX, SUM, Segments
from pygsampler._ops.self_rows import rows_by_id

# Their arguments are those of ``apply``.
_Attend: Any = attention._Attend
_EdgeScores: Any = attention._EdgeScores


class _Context:
    """Stands for the context of a function of autograd where an operator calls it."""

    def __init__(self, *tensors: Tensor | None, **attributes: Any) -> None:
        self.saved_tensors = tensors
        # The gradients of tensors that are not there are not asked for.
        self.needs_input_grad = tuple(tensor is not None for tensor in tensors)
        self.__dict__.update(attributes)

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self.saved_tensors = tensors


def _edges(a: Any, sources: int) -> Segments:
    """The edges among an operator's arguments, with what ``transpose`` returned of them."""
    edges = Segments(a.indptr.contiguous(), a.indices.contiguous(), sources)
    if hasattr(a, "transposed"):
        starts, rows, places = a.transposed
        edges._transposed = Segments(starts, rows, edges.num_rows, places)
    return edges


def _contiguous(*tensors: Tensor | None) -> list[Any]:
    return [None if tensor is None else tensor.contiguous() for tensor in tensors]


def _existing(like: Tensor, tensor: Tensor | None) -> Tensor:
    """An operator returns tensors: one without elements where there is none."""
    return like.new_empty(0) if tensor is None else tensor


class Kernels:
    """The operators by their names, on all devices, since the engine knows them.

    Each takes its arguments as a tuple with the names of the schema.
    """

    @staticmethod
    def gather(a: Any) -> Tensor:
        return rows_by_id(a.table.detach().contiguous(), a.ids.contiguous())

    @staticmethod
    def transpose(a: Any) -> tuple[Tensor, Tensor, Tensor]:
        result = _edges(a, a.sources).transposed(places=True)
        assert result.places is not None
        return result.indptr, result.indices, result.places

    @staticmethod
    def reduce(a: Any) -> tuple[Tensor, Tensor]:
        ctx: Any = _Context()
        edges = _edges(a, a.sources)
        result = segments._Reduce.forward(ctx, a.x.contiguous(), edges, a.kind, a.ids)
        return result, _existing(a.indices, ctx.saved_tensors[0])

    @staticmethod
    def reduce_backward(a: Any) -> Tensor:
        best = a.best if a.kind == MAX else None
        return segments.gradient_of_sources(_edges(a, a.sources), a.grad, a.kind, best)

    @staticmethod
    def weighted_sum(a: Any) -> Tensor:
        x, weights = _contiguous(a.x, a.weights)
        return _edges(a, a.sources).reduce(x, SUM, weights, ids=a.ids)

    @staticmethod
    def weighted_sum_backward(a: Any) -> Tensor:
        grad, weights = _contiguous(a.grad, a.weights)
        return _edges(a, a.sources).transposed(True).reduce(grad, SUM, weights)

    @staticmethod
    def dots(a: Any) -> Tensor:
        x, y = _contiguous(a.x, a.y)
        return _edges(a, a.sources).dots(x, y, a.heads, a.ids)

    @staticmethod
    def softmax(a: Any) -> Tensor:
        return attention._scores(_edges(a, 0), a.scores.contiguous())

    @staticmethod
    def softmax_backward(a: Any) -> Tensor:
        grad, weights = _contiguous(a.grad, a.weights)
        return attention._scores(_edges(a, 0), weights, grad)

    @staticmethod
    def attention(a: Any) -> tuple[Tensor, Tensor]:
        ctx: Any = _Context()
        parts = _contiguous(a.x, a.source, a.target, a.edge)
        result: Tensor = _Attend.forward(ctx, *parts, _edges(a, len(a.x)), a.slope, a.shared)
        return result, ctx.saved_tensors[-1]

    @staticmethod
    def attention_backward(a: Any) -> tuple[Any, ...]:
        parts = _contiguous(a.x, a.source, a.target, a.edge, a.log)
        ctx = _Context(*parts, about=(_edges(a, len(a.x)), a.slope, a.shared))
        first, *others = _Attend.backward(ctx, a.grad)[:4]
        return (first, *(_existing(a.log, one) for one in others))

    @staticmethod
    def edge_scores(a: Any) -> Tensor:
        parts = _contiguous(a.x_src, a.x_dst, a.att, a.edge)
        result: Tensor = _EdgeScores.forward(_Context(), *parts, _edges(a, len(a.x_src)), a.slope)
        return result

    @staticmethod
    def edge_scores_backward(a: Any) -> tuple[Any, ...]:
        parts = _contiguous(a.x_src, a.x_dst, a.att, a.edge)
        ctx = _Context(*parts, about=(_edges(a, len(a.x_src)), a.slope))
        *some, last = _EdgeScores.backward(ctx, a.grad)[:4]
        return (*some, _existing(a.x_src, last))


def _by_destination(a: Any, like: Tensor, width: Any) -> Tensor:
    """A row for each destination, without values."""
    return like.new_empty(a.indptr.shape[0] - 1, width)


def _like(dtype_of: Tensor, *tensors: Tensor | None) -> list[Tensor]:
    """Tensors of the same shapes, without values, and without elements where there is none."""
    return [dtype_of.new_empty(0 if one is None else one.shape) for one in tensors]


def _attention_shapes(a: Any) -> tuple[Tensor, Tensor]:
    part = a.edge if a.source is None else a.source
    heads = part.shape[1]
    width = a.x.shape[1] * (heads if a.shared else 1)
    return _by_destination(a, a.x, width), _by_destination(a, part, heads)


# The edges of a CSR, and grouped by their sources as ``transpose`` returns them.
_CSR = "Tensor indptr, Tensor indices"
_BACK = f"{_CSR}, Tensor[] transposed"
# Each operator's schema, and its fake kernel: what it returns, without values.
_SCHEMAS: dict[str, Callable[[Any], Any]] = {
    "gather(Tensor table, Tensor ids) -> Tensor": (
        lambda a: a.table.new_empty((a.ids.shape[0], *a.table.shape[1:]))
    ),
    f"transpose({_CSR}, SymInt sources) -> (Tensor, Tensor, Tensor)": (
        lambda a: (a.indptr.new_empty(a.sources + 1), *_like(a.indptr, a.indices, a.indices))
    ),
    f"reduce(Tensor x, {_CSR}, SymInt sources, int kind, Tensor? ids) -> (Tensor, Tensor)": (
        lambda a: (
            _by_destination(a, a.x, a.x.shape[1]),
            _by_destination(a, a.indices, a.x.shape[1])
            if a.kind == MAX
            else a.indices.new_empty(0),
        )
    ),
    f"reduce_backward(Tensor grad, Tensor best, {_BACK}, SymInt sources, int kind) -> Tensor": (
        lambda a: a.grad.new_empty(a.sources, a.grad.shape[1])
    ),
    f"weighted_sum(Tensor x, Tensor weights, {_CSR}, SymInt sources, Tensor? ids) -> Tensor": (
        lambda a: _by_destination(a, a.x, a.x.shape[1])
    ),
    f"weighted_sum_backward(Tensor grad, Tensor weights, {_BACK}, SymInt sources) -> Tensor": (
        lambda a: a.grad.new_empty(a.sources, a.grad.shape[1])
    ),
    f"dots(Tensor x, Tensor y, {_CSR}, SymInt sources, SymInt heads, Tensor? ids) -> Tensor": (
        lambda a: a.x.new_empty(a.indices.shape[0], a.heads)
    ),
    f"softmax(Tensor scores, {_CSR}) -> Tensor": lambda a: _like(a.scores, a.scores)[0],
    f"softmax_backward(Tensor grad, Tensor weights, {_CSR}) -> Tensor": (
        lambda a: _like(a.grad, a.grad)[0]
    ),
    f"attention(Tensor x, Tensor? source, Tensor? target, Tensor? edge, {_CSR}, float slope, "
    "bool shared) -> (Tensor, Tensor)": _attention_shapes,
    "attention_backward(Tensor grad, Tensor x, Tensor? source, Tensor? target, Tensor? edge, "
    f"Tensor log, {_BACK}, float slope, bool shared) -> (Tensor, Tensor, Tensor, Tensor)": (
        lambda a: (*_like(a.x, a.x), *_like(a.log, a.source, a.target, a.edge))
    ),
    f"edge_scores(Tensor x_src, Tensor x_dst, Tensor att, Tensor? edge, {_CSR}, float slope)"
    " -> Tensor": lambda a: a.att.new_empty(a.indices.shape[0], a.att.shape[0]),
    "edge_scores_backward(Tensor grad, Tensor x_src, Tensor x_dst, Tensor att, Tensor? edge, "
    f"{_BACK}, float slope) -> (Tensor, Tensor, Tensor, Tensor)": (
        lambda a: (
            *_like(a.x_src, a.x_src),
            *_like(a.x_dst, a.x_dst),
            *_like(a.att, a.att),
            *_like(a.x_src, a.edge),
        )
    ),
}


def _keep_gather(ctx: Any, inputs: Any, output: Tensor) -> None:
    table, ids = inputs
    ctx.save_for_backward(ids)
    ctx.rows = table.shape[0]


def _gather_back(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    (ids,) = ctx.saved_tensors
    return segments._spread(grad, ids, ctx.rows), None


def _keep_reduce(ctx: Any, inputs: Any, output: Any) -> None:
    x, indptr, indices, sources, kind, ids = inputs
    ctx.save_for_backward(indptr, indices, ids, output[1])
    ctx.values = x.shape[0], sources, kind


def _reduce_back(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    indptr, indices, ids, best = ctx.saved_tensors
    table, sources, kind = ctx.values
    ops = torch.ops.pygsampler
    transposed = ops.transpose(indptr, indices, sources)
    made = ops.reduce_backward(grad, best, indptr, indices, transposed, sources, kind)
    return segments._spread(made, ids, table), None, None, None, None, None


def _keep_weighted(ctx: Any, inputs: Any, output: Any) -> None:
    x, weights, indptr, indices, sources, ids = inputs
    ctx.save_for_backward(x, weights, indptr, indices, ids)
    ctx.sources = sources


def _weighted_back(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    x, weights, indptr, indices, ids = ctx.saved_tensors
    sources, ops = ctx.sources, torch.ops.pygsampler
    to_x = to_weights = None
    if ctx.needs_input_grad[0]:
        transposed = ops.transpose(indptr, indices, sources)
        edges = indptr, indices, transposed, sources
        made = ops.weighted_sum_backward(grad, weights, *edges)
        to_x = segments._spread(made, ids, x.shape[0])
    if ctx.needs_input_grad[1]:
        to_weights = ops.dots(x, grad, indptr, indices, sources, weights.shape[1], ids)
    return to_x, to_weights, None, None, None, None


def _keep_softmax(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(output, *inputs[1:])


def _softmax_back(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return torch.ops.pygsampler.softmax_backward(grad, *ctx.saved_tensors), None, None


def _keep_attention(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.slope, ctx.shared = inputs
    ctx.save_for_backward(*tensors, output[1])


def _attention_back(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    *parts, indptr, indices, log = ctx.saved_tensors
    ops = torch.ops.pygsampler
    transposed = ops.transpose(indptr, indices, parts[0].shape[0])
    edges = indptr, indices, transposed
    grads = ops.attention_backward(grad, *parts, log, *edges, ctx.slope, ctx.shared)
    existing = (None if t is None else g for t, g in zip(parts, grads, strict=True))
    return *existing, None, None, None, None


def _keep_scores(ctx: Any, inputs: Any, output: Any) -> None:
    *tensors, ctx.slope = inputs
    ctx.save_for_backward(*tensors)


def _scores_back(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    *parts, indptr, indices = ctx.saved_tensors
    ops = torch.ops.pygsampler
    transposed = ops.transpose(indptr, indices, parts[0].shape[0])
    grads = ops.edge_scores_backward(grad, *parts, indptr, indices, transposed, ctx.slope)
    existing = (None if t is None else g for t, g in zip(parts, grads, strict=True))
    return *existing, None, None, None


_GRADIENTS: dict[str, tuple[Any, Any]] = {
    "gather": (_keep_gather, _gather_back),
    "reduce": (_keep_reduce, _reduce_back),
    "weighted_sum": (_keep_weighted, _weighted_back),
    "softmax": (_keep_softmax, _softmax_back),
    "attention": (_keep_attention, _attention_back),
    "edge_scores": (_keep_scores, _scores_back),
}


def _by_name(schema: str, function: Callable[[Any], Any]) -> Callable[..., Any]:
    """A function of an operator's arguments as torch passes them."""
    declared = schema.partition("(")[2].partition(")")[0].split(", ")
    create: Any = namedtuple
    arguments = create("arguments", [each.split()[-1] for each in declared])
    return lambda *values: function(arguments(*values))


def _register() -> Any:
    if not hasattr(torch.library, "register_autograd"):
        return None
    create: Any = torch.library.Library
    library: Any = create("pygsampler", "DEF")
    for schema, fake in _SCHEMAS.items():
        name = schema.partition("(")[0]
        kernel = _by_name(schema, getattr(Kernels, name))
        library.define(schema)
        library.impl(name, kernel, "CompositeExplicitAutograd")
        qualified = f"pygsampler::{name}"
        torch.library.register_fake(qualified, _by_name(schema, fake), lib=library)
        if name in _GRADIENTS:
            keep, back = _GRADIENTS[name]
            torch.library.register_autograd(qualified, back, setup_context=keep, lib=library)
    return library


# Operators exist as long as it does.
_LIBRARY = _register()
