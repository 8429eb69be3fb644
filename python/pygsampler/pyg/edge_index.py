"""``EdgeIndex``: PyG's, whose ends know how edges are grouped."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import torch
import torch_geometric
from torch.utils import _pytree as pytree
from torch_geometric import EdgeIndex as PyGEdgeIndex
from torch_geometric.data import Data, HeteroData

from pygsampler._engine.checks import describe
from pygsampler._ops import segments
from pygsampler._ops.segments import Segments

__all__ = ["EdgeIndex", "check_layout", "edge_index_of", "index2ptr", "version"]

_aten = torch.ops.aten
# Since then PyG's class is a wrapper of a tensor.
_FIRST = (2, 6)


def index2ptr(index: torch.Tensor, size: int) -> torch.Tensor:
    """Returns the pointers of ids that ascend; as PyG's, which has it from 2.6 on."""
    wide = index.dtype == torch.int64
    if index.is_cuda:
        # torch's kernel has one thread fill the rows behind the last id: 2 ms of a large batch.
        rows = torch.arange(size + 1, dtype=index.dtype, device=index.device)
        return torch.searchsorted(index, rows, out_int32=not wide)
    return torch._convert_indices_from_coo_to_csr(index, size, out_int32=not wide)


class EdgeIndex(PyGEdgeIndex):  # type: ignore[misc]
    """``torch_geometric.EdgeIndex`` of a batch: layers add up by segments, and not by atomics.

    ``NeighborLoader(..., edge_index="edge_index")`` returns it: int64 or int32, shape [2, edges],
    with sources in row 0. It is ordered by its row 1, with known size and ``get_indptr()``, without
    a check or a sort. It is a tensor, and every layer of PyG takes it:

    - ``edge_index[0]`` and ``[1]`` are ids by which torch's ``index_select``, ``scatter_add_`` and
      ``scatter_reduce_`` work as usual, forward and backward. If they would add rows of floats up
      in the order of threads that meet, the engine's segments do, edge after edge: the same on
      every run.
    - ``edge_index.matmul(x, transpose=True)``, as PyG's ``GraphConv`` calls it, has no row for each
      edge, and has a gradient for weights.
    - ``trim_to_layer``, ``to``, ``pin_memory``, workers and pickles keep the order, and so do
      selections by a mask. Others, such as results of ``add_self_loops``, are sorted once, when
      they are first used.

    A write to it, or to one of its rows, is detected: then edges are sorted anew. Writes to a part
    of a row (``edge_index[0][:3] = 0``) are not allowed.

    The arguments ``(x, x_target)`` of a layer must have the numbers of rows in ``sparse_size()``,
    as with PyG's class.
    """

    # The groups of edges by each end, cached from use to use.
    _groups: tuple[_Groups, _Groups]

    @classmethod
    def _from_ordered(
        cls,
        data: torch.Tensor,
        size: tuple[int | None, int | None],
        order: str | None,
        indptr: torch.Tensor | None = None,
    ) -> EdgeIndex:
        """Edges that have that order: nothing is looked at."""
        made: EdgeIndex = PyGEdgeIndex.__new__(cls, data, sparse_size=size, sort_order=order)
        made._indptr = indptr
        by = None if order is None else ("row", "col").index(order)
        first, second = (_Groups(data, indptr, row == by) for row in (0, 1))
        made._groups = first, second
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        edges = args[0]
        if func is _aten.select.int and type(edges) is cls and args[1] in (0, -2):
            return edges._end(args[2] % 2)
        if func is _aten.unbind.int and (len(args) < 2 or args[1] in (0, -2)):
            return [edges._end(0), edges._end(1)]
        if func is _aten.slice.Tensor and type(edges) is cls and args[1] in (1, -1):
            prefix = edges._prefix(*args[2:])
            if prefix is not None:
                return prefix
        if func._schema.is_mutable and type(edges) is cls:
            for groups in edges._groups:
                groups.forget()
        out = PyGEdgeIndex.__torch_dispatch__.__func__(PyGEdgeIndex, func, types, args, kwargs)
        return pytree.tree_map_only(PyGEdgeIndex, _as_ours, out)

    @staticmethod
    def __tensor_unflatten__(
        inner_tensors: dict[str, Any], ctx: Any, outer_size: Any, outer_stride: Any
    ) -> EdgeIndex:
        made = PyGEdgeIndex.__tensor_unflatten__(inner_tensors, ctx, outer_size, outer_stride)
        return _as_ours(made)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Tensors inside, so that those of a worker travel in shared memory.
        return EdgeIndex._from_ordered, (
            self._data,
            self._sparse_size,
            self.sort_order,
            self._indptr,
        )

    def matmul(
        self,
        other: Any,
        input_value: torch.Tensor | None = None,
        other_value: torch.Tensor | None = None,
        reduce: str = "sum",
        transpose: bool = False,
    ) -> Any:
        """Multiplies like PyG's class, by the engine's segments for floats ordered by target.

        Parameters
        ----------
        other, input_value, other_value, reduce, transpose
            PyG's arguments.
        """
        kinds = {"sum": segments.SUM, "add": segments.SUM, "mean": segments.MEAN}
        if input_value is None:
            kinds["max"] = kinds["amax"] = segments.MAX
        plain = type(other) is torch.Tensor and other.dim() == 2 and other.is_floating_point()
        if (
            not (plain and transpose and self.is_sorted_by_col and other_value is None)
            or reduce not in kinds
            or len(other) != self.get_sparse_size(0)
            or (input_value is not None and input_value.shape != self.shape[1:])
        ):
            return super().matmul(other, input_value, other_value, reduce, transpose)
        rows = Segments(self.get_indptr(), self._data[0].contiguous(), len(other))
        if input_value is None:
            return segments.reduce(rows, other, kinds[reduce])
        made = segments.weighted_sum(rows, other, input_value.to(other.dtype))
        if reduce == "mean":
            made = made / rows.indptr.diff().clamp_(min=1).to(made.dtype).unsqueeze(1)
        return made

    def _end(self, axis: int) -> EdgeEnds:
        """The sources or the targets of the edges."""
        ids = self._data[axis]
        return EdgeEnds._wrap(ids, ids, self._groups[axis])

    def _prefix(
        self, start: int | None = None, end: int | None = None, step: int = 1
    ) -> EdgeIndex | None:
        """The first edges, as ``trim_to_layer`` takes them, with the order and its pointers."""
        edges = self._data.shape[1]
        if start not in (None, 0) or step != 1 or end is None or not 0 <= end < edges:
            return None
        indptr = None if self._indptr is None else self._indptr.clamp(max=end)
        return EdgeIndex._from_ordered(
            self._data[:, :end], self._sparse_size, self.sort_order, indptr
        )


class _Groups:
    """The edges that each node is an end of, found when they are asked for."""

    __slots__ = ("_csr", "_data", "_in_order", "_indptr", "_version")

    def __init__(self, data: torch.Tensor, indptr: torch.Tensor | None, in_order: bool) -> None:
        # The cached facts hold for this version of the edges, since writes to them are not
        # announced.
        self._data, self._version = data, version(data)
        self._in_order, self._indptr = in_order, indptr
        self._csr: Segments | None = None

    def forget(self) -> None:
        """After the edges were written to."""
        self._in_order, self._csr = False, None

    def csr(self, ids: torch.Tensor, num_rows: int) -> Segments:
        """Row v has the places of the edges whose end is v, in their order."""
        if version(self._data) != self._version:
            self._version = version(self._data)
            self.forget()
        made = self._csr
        if made is not None and made.num_rows == num_rows:
            return made
        if self._in_order:
            places = torch.arange(len(ids), dtype=ids.dtype, device=ids.device)
            indptr = self._indptr
            if indptr is None or len(indptr) <= num_rows:
                indptr = index2ptr(ids, num_rows)
            made = Segments(indptr[: num_rows + 1], places, len(ids))
        else:
            # The edges get one common target, since only their order by these ids is needed. It is
            # written on the device: a copy from the host would be waited for.
            one = ids.new_zeros(2)
            one[1:].fill_(len(ids))
            grouped = Segments(one, ids.contiguous(), num_rows).transposed(places=True)
            assert grouped.places is not None
            made = Segments(grouped.indptr, grouped.places, len(ids))
        self._csr = made
        return made


class EdgeEnds(torch.Tensor):
    """An end of edges: ids, shape [edges], or these with more dimensions that repeat them.

    A tensor as any other, but for what torch gathers or scatters by it in dimension 0.
    """

    _data: torch.Tensor
    _ids: torch.Tensor
    _groups: _Groups
    _handled: ClassVar[dict[Any, Callable[..., Any]]] = {}

    # Operations return plain tensors.
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def _wrap(data: torch.Tensor, ids: torch.Tensor, groups: _Groups) -> EdgeEnds:
        made: EdgeEnds = torch.Tensor._make_wrapper_subclass(
            EdgeEnds,
            size=data.size(),
            strides=data.stride(),
            dtype=data.dtype,
            device=data.device,
            layout=data.layout,
            requires_grad=False,
        )
        made._data, made._ids, made._groups = data, ids, groups
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        handled = cls._handled.get(func)
        if handled is not None:
            found = handled(func, *args, **kwargs)
            if found is not NotImplemented:
                return found
        if func._schema.is_mutable and isinstance(args[0], EdgeEnds):
            args[0]._groups.forget()
        args, kwargs = pytree.tree_map_only(EdgeEnds, lambda ends: ends._data, (args, kwargs))
        return func(*args, **kwargs)

    def _segments(self, num_rows: int) -> Segments:
        return self._groups.csr(self._ids, num_rows)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return torch.Tensor.__reduce_ex__(self._data, protocol)  # type: ignore[no-untyped-call]

    def __repr__(self) -> str:  # type: ignore[override]
        return repr(self._data)

    def tolist(self) -> Any:
        """Returns the ids as ``torch.Tensor.tolist`` does."""
        return self._data.tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """Returns the ids as ``torch.Tensor.numpy`` does."""
        return self._data.numpy(force=force)


def _handles(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(handle: Callable[..., Any]) -> Callable[..., Any]:
        EdgeEnds._handled.update(dict.fromkeys(functions, handle))
        return handle

    return decorate


@_handles(_aten.alias.default, _aten.detach.default)
def _map_values(func: Any, edge_ends: Any) -> Any:
    return EdgeEnds._wrap(func(edge_ends._data), edge_ends._ids, edge_ends._groups)


@_handles(_aten.view.default, _aten.expand.default)
def _repeated(func: Any, edge_ends: Any, size: Any, **more: Any) -> Any:
    """The same ids with more dimensions behind, as PyG broadcasts an index."""
    data = func(edge_ends._data, size, **more)
    count = len(edge_ends._ids)
    if not count or data.dim() < 1 or data.shape[0] != count or edge_ends._data.shape[0] != count:
        return data
    # A view that moves ids into another dimension has them nowhere else.
    if func is _aten.view.default and math.prod(data.shape) != count:
        return data
    return EdgeEnds._wrap(data, edge_ends._ids, edge_ends._groups)


@_handles(_aten.gather.default)
def _gather_rows(func: Any, values: Any, dim: int, index: Any, **more: Any) -> Any:
    """Rows in the place of single elements."""
    if not _by_rows(values, dim, index, index):
        return NotImplemented
    return values.index_select(0, index._ids)


@_handles(_aten.index_add.default, _aten.index_add_.default)
def _index_added(func: Any, self: Any, dim: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    """Returns the gradient of ``index_select``."""
    if alpha != 1 or not isinstance(index, EdgeEnds) or index._data is not index._ids:
        return NotImplemented
    return _summed(func is _aten.index_add_.default, self, dim, index, source, source)


@_handles(_aten.scatter_add.default, _aten.scatter_add_.default)
def _scatter_added(func: Any, self: Any, dim: int, index: Any, source: Any) -> Any:
    return _summed(func is _aten.scatter_add_.default, self, dim, index, source, index)


def _summed(in_place: bool, self: Any, dim: int, index: Any, source: Any, like: Any) -> Any:
    if not _by_rows(self, dim, index, like) or not _is_ours(self, source, index):
        return NotImplemented
    made = index._segments(len(self)).reduce(_flat(source), segments.SUM).view(self.shape)
    return self.add_(made) if in_place else self + made


@_handles(_aten.scatter_reduce_.two)
def _scatter_reduced(
    func: Any, self: Any, dim: int, index: Any, source: Any, reduce: str, include_self: bool = True
) -> Any:
    if reduce != "amax" or include_self or not _by_rows(self, dim, index, index):
        return NotImplemented
    if not _is_ours(self, source, index):
        return NotImplemented
    rows = index._segments(len(self))
    flat = _flat(source)
    best = rows.indices.new_empty((rows.num_rows, flat.shape[1]))
    made = rows.reduce(flat, segments.MAX, best=best).view(self.shape)
    reached = rows.indptr.diff().ne(0).view(-1, *(1,) * (self.dim() - 1))
    return self.copy_(torch.where(reached, made, self))


def _by_rows(values: Any, dim: int, index: Any, like: Any) -> bool:
    """True if all elements of a row of ``values`` have one id, that of the row of ``index``."""
    return (
        isinstance(index, EdgeEnds)
        and type(values) is torch.Tensor
        and values.dim() == like.dim()
        and values.dim() > 0
        and dim in (0, -values.dim())
        and values.shape[1:] == like.shape[1:]
    )


def _is_ours(self: Any, source: Any, index: Any) -> bool:
    """True if the engine reduces such values."""
    return (
        type(source) is torch.Tensor
        and self.dtype == source.dtype
        and source.dtype in segments._OURS
        and self.device == source.device == index._ids.device
        and len(source) == len(index._ids)
        and source.shape[1:] == self.shape[1:]
        and self.is_contiguous()
        and 0 < math.prod(source.shape[1:]) <= segments._MOST_WIDTH
        and len(self) > 0
    )


def _flat(values: torch.Tensor) -> torch.Tensor:
    return values.reshape(len(values), math.prod(values.shape[1:])).contiguous()


def version(tensor: torch.Tensor) -> int:
    """Returns how often torch has seen a tensor, or what it is a view of, written to."""
    return 0 if tensor.is_inference() else tensor._version


def _as_ours(edges: Any) -> EdgeIndex:
    """PyG's as our class, with all that it knows."""
    if type(edges) is EdgeIndex:
        return edges
    made = EdgeIndex._from_ordered(edges._data, edges._sparse_size, edges.sort_order, edges._indptr)
    made._is_undirected = edges._is_undirected
    made._T_perm, made._T_index, made._T_indptr = edges._T_perm, edges._T_index, edges._T_indptr
    made._value, made._cat_metadata = edges._value, edges._cat_metadata
    return made


def edge_index_of(edges: torch.Tensor, size: tuple[int, int], order: str | None) -> EdgeIndex:
    """Edges between so many sources and targets, ordered by ``"row"``, ``"col"`` or neither."""
    by = {"row": 0, "col": 1}.get(order or "")
    indptr = None if by is None else index2ptr(edges[by], size[by])
    return EdgeIndex._from_ordered(edges, size, order, indptr)


def check_layout(layout: Any, data: Any) -> None:
    """Raises an error if batches of ``data`` cannot have the ``edge_index=`` of a loader.

    ValueError for an unknown value and for ``data`` without an ``edge_index``; NotImplementedError
    if PyG is too old for its class.
    """
    if layout not in ("coo", "edge_index"):
        raise ValueError(f"edge_index: expected 'coo' or 'edge_index', got {describe(layout)}")
    if layout == "coo":
        return
    stores = data.edge_stores if isinstance(data, (Data, HeteroData)) else ()
    if any("edge_index" not in store for store in stores):
        raise ValueError(
            "edge_index: expected 'coo' with an adj_t of torch-sparse, got 'edge_index'"
        )
    if tuple(map(int, torch_geometric.__version__.split(".")[:2])) < _FIRST:
        raise NotImplementedError(
            f"edge_index: expected 'coo' with PyG {torch_geometric.__version__}, got 'edge_index', "
            "which PyG 2.6 offers"
        )
