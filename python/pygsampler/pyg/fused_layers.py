"""PyG's layers as reductions over a CSR: the same numbers, without a row for each edge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torch_geometric.nn import aggr as aggregations
from torch_geometric.nn import conv as layers
from torch_geometric.nn.dense.linear import Linear

from pygsampler._ops.attention import attention, attention_v2, edge_scores, softmax
from pygsampler._ops.segments import MAX, MEAN, SUM, Segments, is_compiling, reduce, weighted_sum
from pygsampler._ops.self_rows import _Fork, self_and_reduce
from pygsampler.pyg.batch_slices import LayerEdges
from pygsampler.pyg.table_rows import TableRows

__all__ = ["FusedLayer", "fused_layer"]

_KINDS = {"mean": MEAN, "sum": SUM, "add": SUM, "max": MAX}
_NAMES = {MEAN: "mean", SUM: "sum", MAX: "max"}
_AGGREGATIONS = {
    aggregations.MeanAggregation: MEAN,
    aggregations.SumAggregation: SUM,
    aggregations.MaxAggregation: MAX,
}
# The hooks that a layer may have, which a fused layer would not call.
_MESSAGE_HOOKS = (
    *("_propagate_forward_pre_hooks", "_propagate_forward_hooks", "_message_forward_pre_hooks"),
    *("_message_forward_hooks", "_aggregate_forward_pre_hooks", "_aggregate_forward_hooks"),
    *("_message_and_aggregate_forward_pre_hooks", "_message_and_aggregate_forward_hooks"),
    *("_edge_update_forward_pre_hooks", "_edge_update_forward_hooks"),
)
_METHODS = frozenset(
    {"message", "aggregate", "update", "message_and_aggregate", "edge_update", "edge_updater"}
)
# The most empty rows of a relation for each edge.
_MOST_EMPTY = 4
# From so many edges on rows that are added are made wider, so that loads are.
_MANY_EDGES = 1 << 20


class FusedLayer(NamedTuple):
    """A computation for a layer of PyG, ``run(layer, x, target, edges, **extras)``.

    ``target`` has the rows of the destinations, None where they are the first rows of x. If
    ``reads_table(layer, edges)``, x may be ``TableRows``.
    """

    name: str
    run: Callable[..., Tensor]
    extras: frozenset[str] = frozenset()
    bipartite: bool = True
    reads_table: Callable[[Any, LayerEdges], bool] = lambda layer, edges: False


class _Rule(NamedTuple):
    layer: FusedLayer
    # Why a layer with its options is not computed so.
    obstacle: Callable[[Any], str | None]


def fused_layer(layer: Any) -> FusedLayer | str:
    """Returns the computation for a layer of PyG, or why there is none."""
    rule = _RULES.get(type(layer))
    if rule is None:
        return "no layer that is computed otherwise"
    if layer.flow != "source_to_target":
        return f"flow={layer.flow!r}"
    if layer.explain or layer.decomposed_layers != 1:
        return "explain or decomposed_layers"
    own = layer.__dict__
    # A step on a GPU waits for Python: one look in C where there are none.
    if any(map(own.get, _MESSAGE_HOOKS)):
        return "hooks on messages"
    if not _METHODS.isdisjoint(own):
        return "methods of its own"
    return rule.obstacle(layer) or rule.layer


def split_rows(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Returns x, which may be ``TableRows``, and its first rows; gradients are added in place."""
    if isinstance(x, TableRows):
        return x, x[:count].gather()
    # A compiler adds the gradients up by itself.
    if x.requires_grad and torch.is_grad_enabled() and not is_compiling():
        both: tuple[Tensor, Tensor] = _Fork.apply(x, slice(0, count))
        return both
    return x, x[:count]


def _self_and_reduce(x: Tensor | TableRows, edges: LayerEdges, kind: int) -> tuple[Tensor, Tensor]:
    """The rows of destinations, which are the first of x, and their in-neighbors' reduced."""
    table, ids = (x.table, x.ids) if isinstance(x, TableRows) else (x, None)
    return self_and_reduce(edges.segments, table, _NAMES[kind], slice(0, edges.targets), ids)


def _reduced(edges: LayerEdges, x: Tensor | TableRows, kind: int) -> Tensor:
    if isinstance(x, TableRows):
        return x.reduce(edges.segments, kind)
    return reduce(edges.segments, x, kind)


def _weighted(edges: LayerEdges, x: Tensor | TableRows, weights: Tensor) -> Tensor:
    if isinstance(x, TableRows):
        return x.weighted_sum(edges.segments, weights)
    return weighted_sum(edges.segments, x, weights)


def _aggregation(layer: Any) -> int | None:
    return _AGGREGATIONS.get(type(layer.aggr_module))


def _reduction_obstacle(layer: Any) -> str | None:
    return None if _aggregation(layer) is not None else f"aggr={layer.aggr!r}"


def _reduces_first(module: Any, edges: LayerEdges) -> bool:
    """Returns True if rows as they come are fewer bytes to add up than mapped rows."""
    outputs, inputs = module.weight.shape
    after = (edges.edges + edges.sources) * outputs + edges.sources * inputs
    return bool(edges.edges * inputs <= after)


def _sage_maps_first(layer: Any, edges: LayerEdges) -> bool:
    """True if rows are mapped before they are reduced."""
    if layer.project:
        return True
    linear = _aggregation(layer) != MAX and _is_plain(layer.lin_l, bias=True)
    return linear and not _reduces_first(layer.lin_l, edges)


def _sage(layer: Any, x: Tensor, target: Tensor | None, edges: LayerEdges) -> Tensor:
    kind, wide = _aggregation(layer), x
    assert kind is not None
    if layer.project:
        wide = layer.lin(x).relu()
        target = x[: edges.targets] if target is None else target
    elif _sage_maps_first(layer, edges):
        if target is None:
            x, target = split_rows(x, edges.targets)
        out = reduce(edges.segments, _mapped_rows(x, layer.lin_l.weight, edges), kind)
        out = out[:, : layer.out_channels]
        return _sage_output(layer, _add_bias(out, layer.lin_l.bias), target)
    if target is None and layer.root_weight:
        target, out = _self_and_reduce(wide, edges, kind)
    else:
        out = _reduced(edges, wide, kind)
    return _sage_output(layer, layer.lin_l(out), target)


def _mapped_rows(x: Tensor, weight: Tensor, edges: LayerEdges) -> Tensor:
    """Rows times a matrix, for a sum over edges; there may be columns of zeros behind them.

    Rows of, say, 47 numbers are loaded one number at a time: with one more column a load has 16
    bytes. This is faster on a GPU with many edges.
    """
    more = -len(weight) % (16 // x.element_size())
    if more and x.is_cuda and not is_compiling() and edges.edges >= _MANY_EDGES:
        weight = functional.pad(weight, (0, 0, 0, more))
    return functional.linear(x, weight)


def _sage_output(layer: Any, out: Tensor, target: Tensor | None) -> Tensor:
    if layer.root_weight:
        out = out + layer.lin_r(target)
    return functional.normalize(out, p=2.0, dim=-1) if layer.normalize else out


def _is_plain(module: Any, bias: bool = False) -> bool:
    """True if a matrix may be used without its module, which nobody has to see at work."""
    hooks = "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks"
    return (
        # A replaced one, as of LoRA, does more than that.
        type(module) in (torch.nn.Linear, Linear)
        and "forward" not in module.__dict__
        and (bias or module.bias is None)
        and not any(module.__dict__.get(name) for name in hooks)
    )


def _add_bias(out: Tensor, bias: Tensor | None) -> Tensor:
    if bias is None:
        return out
    # Rows that nothing else has: without gradients they need no copy.
    in_place = out.dtype == bias.dtype and not torch.is_grad_enabled()
    return out.add_(bias) if in_place else out + bias


def _gin(layer: Any, x: Tensor, target: Tensor | None, edges: LayerEdges) -> Tensor:
    kind = _aggregation(layer)
    assert kind is not None
    if target is None:
        target, out = _self_and_reduce(x, edges, kind)
    else:
        out = reduce(edges.segments, x, kind)
    result: Tensor = layer.nn(out + (1 + layer.eps) * target)
    return result


def _graph(
    layer: Any,
    x: Tensor,
    target: Tensor | None,
    edges: LayerEdges,
    edge_weight: Tensor | None = None,
) -> Tensor:
    kind = _aggregation(layer)
    assert kind is not None
    rows = edges.segments
    if edge_weight is None and target is None:
        target, out = _self_and_reduce(x, edges, kind)
    elif edge_weight is None:
        out = reduce(rows, x, kind)
    else:
        if kind == MAX:
            raise NotImplementedError("edge_weight with aggr='max'")
        if target is None:
            x, target = split_rows(x, edges.targets)
        out = _weighted(edges, x, edges.values(edge_weight).flatten())
        if kind == MEAN:
            out = out / rows.indptr.diff().clamp(min=1).to(out.dtype).unsqueeze(1)
    result: Tensor = layer.lin_rel(out) + layer.lin_root(target)
    return result


def _gcn(
    layer: Any,
    x: Tensor,
    target: Tensor | None,
    edges: LayerEdges,
    edge_weight: Tensor | None = None,
) -> Tensor:
    weight = loop = None
    if layer.normalize:
        counted = edges.counted()
        key = "gcn", layer.improved, layer.add_self_loops, x.dtype, counted.edges

        def compute() -> tuple[Tensor, Tensor | None]:
            # PyG gives all edges the weight 1 where there are none, the loops too.
            fill = 2.0 if layer.improved and edge_weight is not None else 1.0
            return _gcn_norm(counted, edge_weight, fill, layer.add_self_loops, x.dtype)

        weight, loop = edges.groups.cached(key, edge_weight, compute)
        weight = weight[: edges.edges]
    elif edge_weight is not None:
        weight = edges.values(edge_weight).flatten()

    def spread(h: Tensor, first: Tensor | None) -> Tensor:
        if loop is not None and first is None:
            h, first = split_rows(h, edges.targets)
        if weight is None:
            out = _reduced(edges, h, SUM)
        else:
            out = _weighted(edges, h, weight)
        if loop is not None:
            assert first is not None
            out = out + loop[: edges.targets].unsqueeze(1) * first
        return out

    if _gcn_reduces_first(layer, edges):
        out = layer.lin(spread(x, target))
    elif _is_plain(layer.lin) and target is None:
        out = spread(_mapped_rows(x, layer.lin.weight, edges), None)[:, : layer.out_channels]
    else:
        out = spread(layer.lin(x), None if target is None else layer.lin(target))
    return _add_bias(out, layer.bias)


def _gcn_reduces_first(layer: Any, edges: LayerEdges) -> bool:
    return _is_plain(layer.lin) and _reduces_first(layer.lin, edges)


def _gcn_norm(
    edges: LayerEdges, edge_weight: Tensor | None, fill: float, loops: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """The factor of each edge, 0 for a loop that is replaced, and of each node's own loop."""
    rows, dst = edges.segments, edges.destinations()
    src = rows.indices
    weight = None if edge_weight is None else edges.values(edge_weight).flatten()
    if not loops:
        if weight is None:
            degrees = rows.indptr.diff().to(dtype)
        else:
            degrees = edges.sum_of_edges(weight.unsqueeze(1)).squeeze(1)
        loop = None
    else:
        is_loop = src == dst
        loop = torch.full(
            (edges.targets + 1,),
            fill,
            dtype=dtype if weight is None else weight.dtype,
            device=dst.device,
        )
        if weight is None:
            weight = (~is_loop).to(dtype)
        else:
            # Others are written behind the last node.
            at = torch.where(is_loop, dst, edges.targets).long()
            loop = loop.index_put((at,), weight)
            weight = weight.masked_fill(is_loop, 0)
        loop = loop[:-1]
        degrees = edges.sum_of_edges(weight.unsqueeze(1)).squeeze(1) + loop
    factor = degrees.pow(-0.5)
    factor = factor.masked_fill(factor == float("inf"), 0)
    # Nodes that no edge of these leads to, where degrees are of fewer destinations than sources.
    norm = factor[src] * factor[dst]
    return norm if weight is None else norm * weight, None if loop is None else factor**2 * loop


def _gcn_obstacle(layer: Any) -> str | None:
    return None if _aggregation(layer) == SUM else f"aggr={layer.aggr!r}"


def _attention_obstacle(layer: Any) -> str | None:
    if _aggregation(layer) != SUM:
        return f"aggr={layer.aggr!r}"
    for name in ("lin", "lin_src", "lin_dst", "lin_edge"):
        module = getattr(layer, name, None)
        if module is not None and not _is_plain(module):
            return f"{name} with hooks or of another class"
    fill = layer.fill_value
    usual = fill in ("mean", "add", "sum") if isinstance(fill, str) else True
    if layer.add_self_loops and layer.edge_dim is not None and not usual:
        return f"fill_value={fill!r}"
    return None


class _Scored(NamedTuple):
    """The edges of attention, with loops where the layer adds them, and their terms of edges."""

    segments: Segments
    targets: Callable[[], Tensor]
    terms: Tensor | None

    @classmethod
    def of_layer(
        cls, layer: Any, edges: LayerEdges, edge_attr: Tensor | None, matrix: Tensor | None
    ) -> _Scored:
        """``matrix`` maps attributes of an edge to its terms."""
        terms = None
        if edge_attr is not None and matrix is not None:
            attr = edges.values(edge_attr)
            attr = attr.unsqueeze(1) if attr.dim() == 1 else attr
            terms = functional.linear(attr, matrix)
        if not layer.add_self_loops:
            return cls(edges.segments, edges.destinations, terms)
        looped = edges.with_loops()
        if terms is not None and matrix is not None:
            more = _loop_terms(layer.fill_value, edges, terms, matrix)
            terms = torch.cat([terms, more.to(terms.dtype)]).index_select(0, looped.order())
        return cls(looped.segments, looped.targets, terms)

    def apply(self, layer: Any, scores: Tensor, x: Tensor) -> Tensor:
        """Returns rows of x summed by the softmax of scores, with the layer's dropout."""
        alpha = softmax(self.segments, scores)
        alpha = functional.dropout(alpha, p=layer.dropout, training=layer.training)
        return weighted_sum(self.segments, x, alpha)


def _loop_terms(fill: Any, edges: LayerEdges, terms: Tensor, matrix: Tensor) -> Tensor:
    """The terms of the loops, a row for each destination; they are linear in the attributes."""
    if not isinstance(fill, str):
        attr = torch.as_tensor(fill, dtype=terms.dtype, device=terms.device)
        attr = attr.expand(edges.targets, matrix.shape[1])
        return functional.linear(attr, matrix)
    stays = (edges.segments.indices != edges.destinations()).unsqueeze(1).to(terms.dtype)
    summed = edges.sum_of_edges(terms * stays)
    if fill == "mean":
        summed = summed / edges.sum_of_edges(stays).clamp(min=1)
    return summed


def _gat(
    layer: Any, x: Tensor, target: Tensor | None, edges: LayerEdges, edge_attr: Tensor | None = None
) -> Tensor:
    heads, width = layer.heads, layer.out_channels
    both = getattr(layer, "lin", None)
    first = layer.lin_src if both is None else both
    second = layer.lin_dst if both is None else both
    mapped = first(x).view(-1, heads, width)

    def per_head(module: Any, attention_vector: Tensor) -> Tensor:
        """The matrix of a score of each head, which is linear in the rows."""
        matrix: Tensor = module.weight.view(heads, width, -1)
        return (matrix * attention_vector.view(heads, width, 1)).sum(1)

    to_source, to_target = per_head(first, layer.att_src), per_head(second, layer.att_dst)
    if target is None:
        scores = functional.linear(x, torch.cat([to_source, to_target]))
        source, own = scores[:, :heads], scores[: edges.targets, heads:]
    else:
        source, own = functional.linear(x, to_source), functional.linear(target, to_target)
    to_edge = None
    if layer.lin_edge is not None:
        to_edge = per_head(layer.lin_edge, layer.att_edge)
    scored = _Scored.of_layer(layer, edges, edge_attr, to_edge)
    if not (layer.training and layer.dropout):
        slope = layer.negative_slope
        out = attention(scored.segments, mapped, source, own, slope, scored.terms)
    else:
        sums = source.index_select(0, scored.segments.indices)
        sums = sums + own.index_select(0, scored.targets())
        if scored.terms is not None:
            sums = sums + scored.terms
        sums = functional.leaky_relu(sums, layer.negative_slope)
        out = scored.apply(layer, sums, mapped)
    return _attention_output(layer, out, x, target, edges)


def _gat_v2(
    layer: Any, x: Tensor, target: Tensor | None, edges: LayerEdges, edge_attr: Tensor | None = None
) -> Tensor:
    heads, width = layer.heads, layer.out_channels
    left = layer.lin_l(x)
    if target is not None:
        right = layer.lin_r(target)
    elif layer.share_weights:
        left, right = split_rows(left, edges.targets)
    else:
        right = layer.lin_r(x[: edges.targets])
    left, right = left.view(-1, heads, width), right.view(-1, heads, width)
    matrix = None if layer.lin_edge is None else layer.lin_edge.weight
    scored = _Scored.of_layer(layer, edges, edge_attr, matrix)
    terms = None if scored.terms is None else scored.terms.view(-1, heads, width)
    about = scored.segments, left, right, layer.att[0], layer.negative_slope, terms
    if layer.training and layer.dropout:
        out = scored.apply(layer, edge_scores(*about), left)
    else:
        out = attention_v2(*about)
    return _attention_output(layer, out, x, target, edges)


def _attention_output(
    layer: Any, out: Tensor, x: Tensor, target: Tensor | None, edges: LayerEdges
) -> Tensor:
    out = out.flatten(1) if layer.concat else out.mean(dim=1)
    if getattr(layer, "res", None) is not None:
        out = out + layer.res(x[: edges.targets] if target is None else target)
    return _add_bias(out, layer.bias)


def _rgcn(
    layer: Any, x: Tensor, target: Tensor | None, edges: LayerEdges, edge_type: Tensor | None = None
) -> Tensor:
    kind, relations = _aggregation(layer), layer.num_relations
    # A compiled layer is one for all batches.
    is_sparse = edges.targets * relations > _MOST_EMPTY * max(edges.edges, 1)
    if edge_type is None or (is_sparse and not is_compiling()):
        raise NotImplementedError("more relations than edges of a node")
    assert kind is not None
    if target is None:
        x, target = split_rows(x, edges.targets)
    src, dst = edges.segments.indices, edges.destinations()
    # A row for each relation of each destination.
    row = dst * relations + edges.values(edge_type).to(dst.dtype)
    row, order = row.sort(stable=True)
    counts = torch.arange(edges.targets * relations + 1, dtype=row.dtype, device=row.device)
    indptr = torch.searchsorted(row, counts).to(row.dtype)
    summed = reduce(Segments(indptr, src[order], edges.sources), x, kind)
    weight = layer.weight
    if layer.num_bases is not None:
        weight = (layer.comp @ weight.view(layer.num_bases, -1)).view(
            relations, layer.in_channels_l, layer.out_channels
        )
    out = summed.view(edges.targets, -1) @ weight.reshape(-1, layer.out_channels)
    if layer.root is not None:
        out = out + target @ layer.root
    return _add_bias(out, layer.bias)


def _rgcn_obstacle(layer: Any) -> str | None:
    return "num_blocks" if layer.num_blocks is not None else _reduction_obstacle(layer)


_WEIGHT, _ATTR = frozenset({"edge_weight"}), frozenset({"edge_attr"})
_RULES: dict[Any, _Rule] = {
    layers.SAGEConv: _Rule(
        FusedLayer("reduction", _sage, reads_table=lambda *about: not _sage_maps_first(*about)),
        _reduction_obstacle,
    ),
    layers.GINConv: _Rule(
        FusedLayer("reduction", _gin, reads_table=lambda *about: True), _reduction_obstacle
    ),
    layers.GraphConv: _Rule(
        FusedLayer("reduction", _graph, _WEIGHT, reads_table=lambda *about: True),
        _reduction_obstacle,
    ),
    layers.GCNConv: _Rule(
        FusedLayer("weighted sum", _gcn, _WEIGHT, False, _gcn_reduces_first), _gcn_obstacle
    ),
    layers.GATConv: _Rule(FusedLayer("attention", _gat, _ATTR), _attention_obstacle),
    layers.GATv2Conv: _Rule(FusedLayer("attention", _gat_v2, _ATTR), _attention_obstacle),
    layers.RGCNConv: _Rule(
        FusedLayer("reduction by relation", _rgcn, frozenset({"edge_type"})), _rgcn_obstacle
    ),
}
