"""Layer operations as operators of torch, for compilers, exporters and profilers.

``torch.ops.pygsampler`` has each operation and its gradient as an operator on plain tensors, with a
fake kernel that says what shapes and dtypes come out. ``torch.compile`` and ``torch.export`` put
operators into their graphs; eager calls take the functions of autograd of ``segments`` and
``attention``, which begin faster. A torch that cannot register gradients (2.3 and older) has none.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pygsampler._ops import attention, segments
from pygsampler._ops.segments import MAX, SUM, Segments

# The edges of a CSR, and grouped by their sources as ``transpose`` returns them.
_CSR = "Tensor indptr, Tensor indices"
_BACK = f"{_CSR}, Tensor[] transposed"
_SCHEMAS = (
    f"transpose({_CSR}, SymInt sources) -> (Tensor, Tensor, Tensor)",
    f"reduce(Tensor x, {_CSR}, SymInt sources, int kind, Tensor? ids) -> (Tensor, Tensor)",
    f"reduce_backward(Tensor grad, Tensor best, {_BACK}, SymInt sources, int kind) -> Tensor",
    f"weighted_sum(Tensor x, Tensor weights, {_CSR}, SymInt sources, Tensor? ids) -> Tensor",
    f"weighted_sum_backward(Tensor grad, Tensor weights, {_BACK}, SymInt sources) -> Tensor",
    f"dots(Tensor x, Tensor y, {_CSR}, SymInt sources, SymInt heads, Tensor? ids) -> Tensor",
    f"softmax(Tensor scores, {_CSR}) -> Tensor",
    f"softmax_backward(Tensor grad, Tensor weights, {_CSR}) -> Tensor",
    f"attention(Tensor x, Tensor? source, Tensor? target, Tensor? edge, {_CSR}, float slope)"
    " -> (Tensor, Tensor)",
    "attention_backward(Tensor grad, Tensor x, Tensor? source, Tensor? target, Tensor? edge, "
    f"Tensor log, {_BACK}, float slope) -> (Tensor, Tensor, Tensor, Tensor)",
    f"edge_scores(Tensor x_src, Tensor x_dst, Tensor att, Tensor? edge, {_CSR}, float slope)"
    " -> Tensor",
    "edge_scores_backward(Tensor grad, Tensor x_src, Tensor x_dst, Tensor att, Tensor? edge, "
    f"{_BACK}, float slope) -> (Tensor, Tensor, Tensor, Tensor)",
)


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


def _grouped(
    indptr: Tensor, indices: Tensor, sources: int, transposed: list[Tensor] | None = None
) -> Segments:
    edges = Segments(indptr.contiguous(), indices.contiguous(), sources)
    if transposed is not None:
        starts, rows, places = transposed
        edges._transposed = Segments(starts, rows, edges.rows, places)
    return edges


def _existing(like: Tensor, tensor: Tensor | None) -> Tensor:
    """An operator returns tensors: one without elements where there is none."""
    return like.new_empty(0) if tensor is None else tensor


class Kernels:
    """The operators, each by its name: on all devices, since the engine knows them."""

    @staticmethod
    def transpose(indptr: Tensor, indices: Tensor, sources: int) -> tuple[Tensor, Tensor, Tensor]:
        result = _grouped(indptr, indices, sources).transposed(places=True)
        assert result.places is not None
        return result.indptr, result.indices, result.places

    @staticmethod
    def reduce(
        x: Tensor, indptr: Tensor, indices: Tensor, sources: int, kind: int, ids: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        ctx: Any = _Context()
        edges = _grouped(indptr, indices, sources)
        result = segments._Reduce.forward(ctx, x.contiguous(), edges, kind, ids)
        return result, _existing(indices, ctx.saved_tensors[0])

    @staticmethod
    def reduce_backward(
        grad: Tensor,
        best: Tensor,
        indptr: Tensor,
        indices: Tensor,
        transposed: list[Tensor],
        sources: int,
        kind: int,
    ) -> Tensor:
        edges = _grouped(indptr, indices, sources, transposed)
        ctx = _Context(best, None, segments=edges, kind=kind, table=0)
        result: Tensor = segments._Reduce.backward(ctx, grad)[0]
        return result

    @staticmethod
    def weighted_sum(
        x: Tensor,
        weights: Tensor,
        indptr: Tensor,
        indices: Tensor,
        sources: int,
        ids: Tensor | None,
    ) -> Tensor:
        edges = _grouped(indptr, indices, sources)
        return edges.reduce(x.contiguous(), SUM, weights.contiguous(), ids=ids)

    @staticmethod
    def weighted_sum_backward(
        grad: Tensor,
        weights: Tensor,
        indptr: Tensor,
        indices: Tensor,
        transposed: list[Tensor],
        sources: int,
    ) -> Tensor:
        edges = _grouped(indptr, indices, sources, transposed)
        return edges.transposed(True).reduce(grad.contiguous(), SUM, weights.contiguous())

    @staticmethod
    def dots(
        x: Tensor,
        y: Tensor,
        indptr: Tensor,
        indices: Tensor,
        sources: int,
        heads: int,
        ids: Tensor | None,
    ) -> Tensor:
        edges = _grouped(indptr, indices, sources)
        return edges.dots(x.contiguous(), y.contiguous(), heads, ids)

    @staticmethod
    def softmax(scores: Tensor, indptr: Tensor, indices: Tensor) -> Tensor:
        return attention._scores(_grouped(indptr, indices, 0), scores.contiguous())

    @staticmethod
    def softmax_backward(grad: Tensor, weights: Tensor, indptr: Tensor, indices: Tensor) -> Tensor:
        edges = _grouped(indptr, indices, 0)
        return attention._scores(edges, weights.contiguous(), grad.contiguous())

    @staticmethod
    def attention(
        x: Tensor,
        source: Tensor | None,
        target: Tensor | None,
        edge: Tensor | None,
        indptr: Tensor,
        indices: Tensor,
        slope: float,
    ) -> tuple[Tensor, Tensor]:
        ctx: Any = _Context()
        edges = _grouped(indptr, indices, len(x))
        parts = _contiguous(x, source, target, edge)
        result: Tensor = _Attend.forward(ctx, *parts, edges, slope)
        return result, ctx.saved_tensors[-1]

    @staticmethod
    def attention_backward(
        grad: Tensor,
        x: Tensor,
        source: Tensor | None,
        target: Tensor | None,
        edge: Tensor | None,
        log: Tensor,
        indptr: Tensor,
        indices: Tensor,
        transposed: list[Tensor],
        slope: float,
    ) -> tuple[Any, ...]:
        edges = _grouped(indptr, indices, len(x), transposed)
        ctx = _Context(*_contiguous(x, source, target, edge, log), about=(edges, slope))
        first, *others = _Attend.backward(ctx, grad)[:4]
        return (first, *(_existing(log, one) for one in others))

    @staticmethod
    def edge_scores(
        x_src: Tensor,
        x_dst: Tensor,
        att: Tensor,
        edge: Tensor | None,
        indptr: Tensor,
        indices: Tensor,
        slope: float,
    ) -> Tensor:
        edges = _grouped(indptr, indices, len(x_src))
        parts = _contiguous(x_src, x_dst, att, edge)
        result: Tensor = _EdgeScores.forward(_Context(), *parts, edges, slope)
        return result

    @staticmethod
    def edge_scores_backward(
        grad: Tensor,
        x_src: Tensor,
        x_dst: Tensor,
        att: Tensor,
        edge: Tensor | None,
        indptr: Tensor,
        indices: Tensor,
        transposed: list[Tensor],
        slope: float,
    ) -> tuple[Any, ...]:
        edges = _grouped(indptr, indices, len(x_src), transposed)
        ctx = _Context(*_contiguous(x_src, x_dst, att, edge), about=(edges, slope))
        *some, last = _EdgeScores.backward(ctx, grad)[:4]
        return (*some, _existing(x_src, last))


def _contiguous(*tensors: Tensor | None) -> list[Any]:
    return [None if tensor is None else tensor.contiguous() for tensor in tensors]


class Shapes:
    """Fake kernels: what the operators return, without values."""

    @staticmethod
    def transpose(indptr: Tensor, indices: Tensor, sources: int) -> tuple[Tensor, Tensor, Tensor]:
        edges = indices.shape[0]
        return indptr.new_empty(sources + 1), indptr.new_empty(edges), indptr.new_empty(edges)

    @staticmethod
    def reduce(
        x: Tensor, indptr: Tensor, indices: Tensor, sources: int, kind: int, ids: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        shape = indptr.shape[0] - 1, x.shape[1]
        return x.new_empty(shape), indices.new_empty(shape if kind == MAX else 0)

    @staticmethod
    def reduce_backward(grad: Tensor, *others: Any) -> Tensor:
        return grad.new_empty(others[-2], grad.shape[1])

    @staticmethod
    def weighted_sum(x: Tensor, weights: Tensor, indptr: Tensor, *others: Any) -> Tensor:
        return x.new_empty(indptr.shape[0] - 1, x.shape[1])

    @staticmethod
    def weighted_sum_backward(grad: Tensor, *others: Any) -> Tensor:
        return grad.new_empty(others[-1], grad.shape[1])

    @staticmethod
    def dots(
        x: Tensor, y: Tensor, indptr: Tensor, indices: Tensor, sources: int, heads: int, ids: Any
    ) -> Tensor:
        return x.new_empty(indices.shape[0], heads)

    @staticmethod
    def softmax(scores: Tensor, *edges: Tensor) -> Tensor:
        return scores.new_empty(scores.shape)

    softmax_backward = softmax

    @staticmethod
    def attention(
        x: Tensor,
        source: Tensor | None,
        target: Tensor | None,
        edge: Tensor | None,
        indptr: Tensor,
        *others: Any,
    ) -> tuple[Tensor, Tensor]:
        rows, part = indptr.shape[0] - 1, edge if source is None else source
        assert part is not None
        return x.new_empty(rows, x.shape[1]), part.new_empty(rows, part.shape[1])

    @staticmethod
    def attention_backward(
        grad: Tensor,
        x: Tensor,
        source: Tensor | None,
        target: Tensor | None,
        edge: Tensor | None,
        log: Tensor,
        *others: Any,
    ) -> tuple[Any, ...]:
        return (
            x.new_empty(x.shape),
            *(log.new_empty(0 if one is None else one.shape) for one in (source, target, edge)),
        )

    @staticmethod
    def edge_scores(
        x_src: Tensor, x_dst: Tensor, att: Tensor, edge: Any, indptr: Tensor, *others: Any
    ) -> Tensor:
        return att.new_empty(others[0].shape[0], att.shape[0])

    @staticmethod
    def edge_scores_backward(
        grad: Tensor, x_src: Tensor, x_dst: Tensor, att: Tensor, edge: Tensor | None, *others: Any
    ) -> tuple[Any, ...]:
        return (
            *(one.new_empty(one.shape) for one in (x_src, x_dst, att)),
            x_src.new_empty(0 if edge is None else edge.shape),
        )


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
    *tensors, ctx.slope = inputs
    ctx.save_for_backward(*tensors, output[1])


def _attention_back(ctx: Any, grad: Tensor, _: Any) -> tuple[Any, ...]:
    *parts, indptr, indices, log = ctx.saved_tensors
    ops = torch.ops.pygsampler
    transposed = ops.transpose(indptr, indices, parts[0].shape[0])
    edges = indptr, indices, transposed
    grads = ops.attention_backward(grad, *parts, log, *edges, ctx.slope)
    existing = (None if t is None else g for t, g in zip(parts, grads, strict=True))
    return *existing, None, None, None


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
    "reduce": (_keep_reduce, _reduce_back),
    "weighted_sum": (_keep_weighted, _weighted_back),
    "softmax": (_keep_softmax, _softmax_back),
    "attention": (_keep_attention, _attention_back),
    "edge_scores": (_keep_scores, _scores_back),
}


def _register() -> Any:
    if not hasattr(torch.library, "register_autograd"):
        return None
    create: Any = torch.library.Library
    library: Any = create("pygsampler", "DEF")
    for schema in _SCHEMAS:
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, getattr(Kernels, name), "CompositeExplicitAutograd")
        qualified = f"pygsampler::{name}"
        torch.library.register_fake(qualified, getattr(Shapes, name), lib=library)
        if name in _GRADIENTS:
            keep, back = _GRADIENTS[name]
            torch.library.register_autograd(qualified, back, setup_context=keep, lib=library)
    return library


# Operators exist as long as it does.
_LIBRARY = _register()
