"""``DGLBlock``: DGL's block, whose sums over edges on the CPU are the engine's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from dgl.base import ALL
from dgl.function import TargetCode
from dgl.function.message import BinaryMessageFunction, CopyMessageFunction
from dgl.function.reducer import SimpleReduceFunction
from dgl.heterograph import DGLBlock as PlainBlock

from pygsampler._ops import segments

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DGLBlock"]

_KINDS = {"sum": segments.SUM, "mean": segments.MEAN, "max": segments.MAX}
_DTYPES = (torch.float32, torch.float64)
# The bytes of the sources' rows, and of a row for each edge that has a factor, from which on the
# engine is faster than DGL: below, the rows of both are in the processor's cache.
_LEAST_ROWS, _LEAST_MESSAGES = 1 << 24, 4_000_000


class DGLBlock(PlainBlock):  # type: ignore[misc]
    """A block of a sampled mini-batch: a subclass of DGL's class, with the same name.

    ``update_all`` of ``copy_u`` with ``sum``, ``mean`` or ``max``, and of ``u_mul_e`` with ``sum``,
    as DGL's ``SAGEConv``, ``GraphConv``, ``GINConv`` and ``GATConv`` call it, is computed by the
    engine for large tensors of float32 and float64 on the CPU, where that is faster, forward and
    backward, to float rounding the same. If several sources have the largest value, its gradient
    goes to the first of them. Everything else is DGL's own.
    """

    def update_all(
        self,
        message_func: Any,
        reduce_func: Any,
        apply_node_func: Callable[..., Any] | None = None,
        etype: Any = None,
    ) -> None:
        """Sends messages along all edges and reduces them, as DGL's method does."""
        if apply_node_func is None and (etype is not None or len(self.canonical_etypes) == 1):
            relation = self if etype is None else self[etype]
            result = _reduced(relation, message_func, reduce_func)
            if result is not None:
                _, dst = self._graph.metagraph.find_edge(self.get_etype_id(etype))
                self._set_n_repr(dst, ALL, {reduce_func.out_field: result})
                return
        super().update_all(message_func, reduce_func, apply_node_func, etype)


def _reduced(block: Any, message: Any, reduce: Any) -> torch.Tensor | None:
    """Returns the reduced messages; None where they are DGL's to compute."""
    if type(reduce) is not SimpleReduceFunction or reduce.name not in _KINDS:
        return None
    if block.device.type != "cpu" or reduce.msg_field != getattr(message, "out_field", None):
        return None
    weights = None
    if type(message) is CopyMessageFunction and message.target == TargetCode.SRC:
        x = block.srcdata[message.in_field]
    elif type(message) is BinaryMessageFunction and message.name == "u_mul_e":
        if reduce.name != "sum":
            return None
        x = block.srcdata[message.lhs_field]
        weights = _weights(x, block.edata[message.rhs_field])
        if weights is None:
            return None
    else:
        return None
    if x.device.type != "cpu" or x.dtype not in _DTYPES:
        return None
    if weights is None:
        is_large = x.nbytes >= _LEAST_ROWS
    else:
        is_large = len(weights) * x[:1].nbytes >= _LEAST_MESSAGES
    if not is_large or not len(x) or not block.num_edges():
        return None
    if not any("csc" in formats for formats in block.formats().values()):
        return None
    indptr, indices, edge_ids = block.adj_tensors("csc")
    edges = segments.Segments(indptr, indices, len(x))
    if weights is not None:
        return segments.weighted_sum(edges, x, weights.index_select(0, edge_ids.long()))
    result = segments.reduce(edges, x, _KINDS[reduce.name])
    # DGL's maxima ignore NaN, and are 0 where they are infinite, as of sources masked by -inf.
    if reduce.name == "max" and not result.detach().sum().isfinite():
        return None
    return result


def _weights(x: torch.Tensor, values: torch.Tensor) -> torch.Tensor | None:
    """Returns the factors of edges, [edges] or [edges, heads]; None for other shapes."""
    if values.dtype != x.dtype or values.dim() != x.dim() or x.dim() < 2:
        return None
    if values[:1].numel() == 1:
        return values.reshape(-1)
    if x.dim() > 2 and values.shape[1] == x.shape[1] and values[:1].numel() == x.shape[1]:
        return values.reshape(values.shape[:2])
    return None
