"""Layers of PyG on ranges of a graph."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch_geometric.nn import MessagePassing
from torch_geometric.nn import conv as layers

from pygsampler._inference.block_layers import apply_functions, apply_in_place, widest
from pygsampler._inference.layer_runs import BY_EDGE, FIRST, REDUCED, WHOLE
from pygsampler._ops.segments import Segments
from pygsampler.pyg.batch_slices import LayerEdges
from pygsampler.pyg.fused_layers import FusedLayer, _is_plain, fused_layer
from pygsampler.pyg.layer_run import LayerForward, _certain_way, _is_patched, uses_statistics

if TYPE_CHECKING:
    from torch import Tensor

    from pygsampler._inference.ranges import InEdges, NodeRange
    from pygsampler._inference.tables import NodeTable

__all__ = ["ConvLayer", "list_layer"]

# Degrees are counted in ranges of so many bytes.
_PASS_BYTES = 64 << 20

# Layers that reduce the rows of their sources as they are: a range reads them where they lie.
_REDUCES_FIRST = layers.SAGEConv, layers.GINConv, layers.GraphConv, layers.GCNConv, layers.RGCNConv


class ConvLayer:
    """A layer of PyG, and functions of its rows.

    ``forward`` is the layer's own, or the layer itself if it has hooks, and ``extras`` are its
    tensors of edges, in the order of the graph's CSC.
    """

    def __init__(
        self,
        name: str,
        module: Any,
        forward: Callable[..., Any],
        extras: dict[str, Tensor],
        functions: list[Callable[[Any], Any]] | None = None,
        pair: bool = False,
    ) -> None:
        """Passes separate rows of sources and destinations with ``pair``."""
        self.name, self.module, self.forward = name, module, forward
        self.extras, self.functions, self.pair = extras, functions or [], pair
        self._fused: FusedLayer | None = None
        self._way: str | None = None
        if not _is_patched(module, forward):
            found = fused_layer(module)
            self._fused = found if isinstance(found, FusedLayer) else None

    def access(self, csc: InEdges | None, source: NodeTable, fits: bool) -> str:
        assert csc is not None
        module = self.module
        statistics = any(uses_statistics(each, False) for each in module.modules())
        if statistics or self.forward is module:
            # A norm in the layer, as in the network of a GIN, takes the mean of all nodes; hooks
            # are called once, with what the layer gets.
            self._fused = self._way = None
            return WHOLE
        if self._fused is not None and self._obstacle(csc, source) is not None:
            self._fused = None
        if self._fused is not None:
            # A matrix that somebody has to see at work maps all rows before they are added up.
            seen = isinstance(module, layers.GCNConv) and not _is_plain(module.lin)
            seen = seen or getattr(module, "project", False)
            apart = isinstance(module, _REDUCES_FIRST) and not seen
            return REDUCED if apart and not (fits and self._maps_first(csc)) else FIRST
        self._way = _certain_way(module)
        if self.pair and getattr(module, "add_self_loops", False):
            self._way = None
        return WHOLE if self._way is None else BY_EDGE

    def _maps_first(self, csc: InEdges) -> bool:
        """True if rows of all nodes are fewer bytes to add up once they are mapped."""
        name = {layers.SAGEConv: "lin_l", layers.GCNConv: "lin"}.get(type(self.module))
        linear = None if name is None else getattr(self.module, name)
        if linear is None or self.module.aggr == "max" or not _is_plain(linear, bias=True):
            return False
        outputs, inputs = linear.weight.shape
        mapped = (csc.num_edges + csc.num_src) * outputs + csc.num_src * inputs
        return bool(csc.num_edges * inputs > mapped)

    def _obstacle(self, csc: InEdges, source: NodeTable) -> str | None:
        """Returns why a fused layer does not run, None if it does."""
        assert self._fused is not None
        if len(source.shape) != 2 or (
            source.values is not None and not source.values.is_floating_point()
        ):
            return "x"
        if set(self.extras) - self._fused.extras:
            return "extras"
        if "edge_weight" in self.extras and isinstance(self.module, layers.GraphConv):
            return "edge_weight" if self.module.aggr == "max" else None
        bipartite = self._fused.bipartite and not getattr(self.module, "add_self_loops", False)
        return "types" if self.pair and not bipartite else None

    def cost(self, source: NodeTable) -> tuple[int, int]:
        row = widest([self.module, *self.functions], source)
        if self._fused is not None:
            return 4 * row, 48
        aggregations = len(getattr(self.module, "aggregators", [])) or 1
        return 4 * row, (3 + aggregations) * row + 32

    def run(self, nodes: NodeRange | None, x_src: Tensor, x_dst: Tensor, access: str) -> Tensor:
        assert nodes is not None
        rows = self._compute(nodes, x_src, x_dst, access)
        if self._fused is not None:
            # They are new.
            return apply_in_place(self.functions, rows)
        result: Tensor = apply_functions(self.functions, rows)
        return result

    def _compute(self, nodes: NodeRange, x_src: Tensor, x_dst: Tensor, access: str) -> Tensor:
        if access == WHOLE:
            # The edges of the whole graph are in the order of the CSC.
            x: Any = (x_src, x_dst) if self.pair else x_src
            edge_index = nodes.csc.edge_index()
            result: Tensor
            if self.forward is self.module:
                result = self.forward(x, edge_index, **self.extras)
            else:
                result = self.forward(x, edge_index=edge_index, **self.extras)
            return result
        target = x_dst if access == REDUCED or self.pair else None
        edges = _RangeEdges(nodes, self.extras.get("edge_weight"))
        extras = {name: nodes.edge_values(each) for name, each in self.extras.items()}
        if self._fused is not None:
            try:
                return self._fused.run(self.module, x_src, target, edges, **extras)
            except NotImplementedError:
                # The fused layer does not compute these edges, for example with many relations.
                self._fused, self._way = None, _certain_way(self.module)
        assert self._way is not None
        return LayerForward(self.forward, x_src, target, edges, extras).run(self._way)


def list_layer(
    name: str, module: Any, functions: list[Any], edge_data: dict[str, Tensor]
) -> ConvLayer:
    """Returns a layer of a list with the rows of edges that its forward takes.

    Raises TypeError for a module that has layers of PyG but is none.
    """
    if not isinstance(module, MessagePassing):
        raise TypeError(
            "model: expected layers of PyG (MessagePassing) in a list, got "
            f"{type(module).__name__} with such layers; give that model alone, or list its layers"
        )
    names = inspect.signature(module.forward).parameters
    extras = {key: each for key, each in edge_data.items() if key in names}
    forward = module if module._forward_hooks or module._forward_pre_hooks else module.forward
    return ConvLayer(f"{name}.{type(module).__name__}", module, forward, extras, functions)


class _RangeGroups:
    """The edges of a range as layers ask for those of a batch."""

    def __init__(self, nodes: NodeRange, edge_weight: Tensor | None) -> None:
        self._nodes, self._edge_weight = nodes, edge_weight
        kind = nodes.csc.edge_type
        self.types = (None, None) if kind is None else (kind[0], kind[-1])

    @property
    def edge_index(self) -> Tensor:
        """The edges as PyG has them."""
        nodes = self._nodes
        return torch.stack([nodes.indices.long(), nodes.destinations().long()])

    def cached(self, key: Any, value: Any, compute: Callable[[], Any]) -> Any:
        """Returns the norms of a GCN, which count all edges of the graph."""
        if key[0] != "gcn":
            return compute()
        _, improved, loops, dtype = key[:4]
        return _gcn_norms(self._nodes, self._edge_weight, improved, loops, dtype)


class _RangeEdges(LayerEdges):
    """The edges of a range, with an indptr of its destinations."""

    def __init__(self, nodes: NodeRange, edge_weight: Tensor | None) -> None:
        groups: Any = _RangeGroups(nodes, edge_weight)
        super().__init__(groups, nodes.num_src, nodes.size, nodes.num_edges)
        self._nodes = nodes
        self._segments = Segments(nodes.indptr, nodes.indices, nodes.num_src)

    def destinations(self) -> Tensor:
        return self._nodes.destinations()

    def values(self, values: Tensor) -> Tensor:
        return values

    def counted(self) -> LayerEdges:
        return self


def _gcn_norms(
    nodes: NodeRange, edge_weight: Tensor | None, improved: bool, loops: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """Returns the factor of each edge of a range and of each node's own loop.

    They are those of "Semi-supervised classification with graph convolutional networks" (Kipf and
    Welling, 2017), section 2, with the degrees of the whole graph.
    """
    csc = nodes.csc
    # PyG gives all edges the weight 1 where there are none, the loops too.
    fill = 2.0 if improved and edge_weight is not None else 1.0
    # A model may change its weights in place between two layers.
    tracked = None if edge_weight is None or edge_weight.is_inference() else edge_weight
    key = loops, fill, dtype, id(edge_weight), None if tracked is None else tracked._version
    if key not in csc.cache:
        csc.cache[key] = edge_weight, *_gcn_factors(csc, edge_weight, fill, loops, dtype)
    _, factor, loop = csc.cache[key]
    src = nodes.source_ids()
    own = factor[nodes.first : nodes.last]
    norm = factor[src] * own[nodes.destinations()]
    if edge_weight is not None:
        norm = norm * nodes.edge_values(edge_weight).flatten()
    if not loops:
        return norm, None
    norm = norm.masked_fill(src == nodes.destinations() + nodes.first, 0)
    return norm, own**2 * loop[nodes.first : nodes.last]


def _gcn_factors(
    csc: InEdges, edge_weight: Tensor | None, fill: float, loops: bool, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Returns each node's degree to the power of -1/2, and the weight of its loop."""
    dtype = dtype if edge_weight is None else edge_weight.dtype
    factor = torch.empty(csc.num_dst, dtype=dtype, device=csc.device)
    loop = torch.full((csc.num_dst,), fill if loops else 0.0, dtype=dtype, device=csc.device)
    cuts = csc.ranges(None, 16, 32, _PASS_BYTES)
    for first, last in itertools.pairwise(cuts):
        nodes = csc.range(first, last)
        dst = nodes.destinations()
        if edge_weight is None:
            weight = torch.ones(nodes.num_edges, dtype=dtype, device=csc.device)
        else:
            weight = nodes.edge_values(edge_weight).flatten()
        if loops:
            is_loop = nodes.indices == dst + first
            if edge_weight is not None:
                at = dst[is_loop].long()
                loop[first:last].index_put_((at,), weight[is_loop])
            weight = weight.masked_fill(is_loop, 0)
        degrees = _RangeEdges(nodes, None).sum_of_edges(weight.unsqueeze(1)).squeeze(1)
        factor[first:last] = degrees + loop[first:last]
    factor = factor.pow_(-0.5)
    return factor.masked_fill_(factor == float("inf"), 0), loop
