"""Reductions over the edges of a block, with gradients: what layers of a graph network do.

The engine makes them where the tensors are: on the CPU before a call returns, on a GPU in torch's
current stream, where nothing here waits for the host.
"""

from __future__ import annotations

import math
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from pygsampler._arrays.array import Array
from pygsampler._arrays.devices import current_stream
from pygsampler._engine.checks import describe
from pygsampler._engine.library import call
from pygsampler._features.gather import gather_on_device
from pygsampler._ops import segments

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from pygsampler._features.features import Features

# From so many bytes on memory comes from the engine.
_LARGE = 1 << 18
# The kinds of reductions, as internal/engine/cpu/layers numbers them.
SUM, MEAN, MAX = range(3)
# Rows of at least twice so many edges are added in pieces of so many, in one order everywhere.
_PIECE = 256
# From so many edges on threads of a GPU share long rows. Below, most blocks are sampled and have
# none, and looking for some would cost a tenth of a reduction.
_MANY = 1 << 20
# The sum of the rows whose largest a source was, on a GPU alone: see internal/engine/cuda.
_TAKEN = 3
# The GPU's constants cuda.MostSegmentWidth, MostSegmentHeads, transposeLong and transposeTiles.
_MOST_WIDTH, _MOST_HEADS = 1 << 20, (1 << 16) - 1
_LONG, _TILES = 512, 1024
# The places of the edges and of the scratch in the words of a reduction.
_EDGES, _ROOM = 8, 20
# Operators of torch take the place of functions of autograd, where a compiler asks for them.
is_compiling: Callable[[], bool] = getattr(torch.compiler, "is_compiling", lambda: False)
_OURS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


class RowTable(NamedTuple):
    """Rows of values, [rows, width], as the engine reads them; ``owner`` keeps them."""

    address: int
    rows: int
    width: int
    dtype: torch.dtype
    device: torch.device
    owner: object

    @classmethod
    def of_tensor(cls, x: Tensor) -> RowTable:
        return cls(x.data_ptr(), len(x), x.shape[1], x.dtype, x.device, x)

    @classmethod
    def of_features(cls, x: Features, ids: Tensor) -> tuple[RowTable, Tensor | None]:
        """Returns features' table and ids, or rows read of cached or quantized ones, and no ids."""
        known, place = x._open_array(), x._where()
        if place != _device(ids):
            raise ValueError(f"x: expected features on {ids.device}, got ones on {x.device}")
        dtype = getattr(torch, x.dtype, None)
        if dtype not in _OURS:
            raise TypeError(f"x: expected floats, got {x.dtype}")
        width = math.prod(x.shape[1:])
        if place < 0 and x.stored_dtype != x.dtype:
            return cls.of_tensor(x.read(ids).reshape(len(ids), width)), None
        part = x._part(x._ids(ids, place))
        if part.cache is None and part.scheme is None:
            return cls(part.table, len(known), width, dtype, ids.device, known), ids
        rows = _room(cls(0, 0, width, dtype, ids.device, None), len(ids), width)
        gather_on_device(place, [part._replace(out=rows.data_ptr())])
        return cls.of_tensor(rows), None


class Segments:
    """The edges of a block as a CSR over its destinations, and over its sources once needed.

    Edges from ``indptr[-1]`` on are padding. Nothing is stored of the contents but the result of
    ``transposed``, for the next call on these segments.
    """

    __slots__ = ("_transposed", "indices", "indptr", "places", "sources")

    def __init__(
        self, indptr: Tensor, indices: Tensor, sources: int, places: Tensor | None = None
    ) -> None:
        self.indptr = indptr
        self.indices = indices
        self.sources = sources
        self.places = places
        self._transposed: Segments | None = None

    @property
    def num_rows(self) -> int:
        return self.indptr.shape[0] - 1

    def transposed(self, places: bool = False) -> Segments:
        """The edges by their sources, those of each in their order; its sources are the rows here.

        Asked for ``places``, they say which edge each is.
        """
        if is_compiling():
            operator = torch.ops.pygsampler.transpose
            starts, rows, at = operator(self.indptr, self.indices, self.sources)
            return Segments(starts, rows, self.num_rows, at)
        made = self._transposed
        if made is not None and (made.places is not None or not places):
            return made
        ids = self.indices
        starts, rows = ids.new_empty(self.sources + 1), torch.empty_like(ids)
        at = torch.empty_like(ids) if places else None
        about = self._reduction_words(None)
        address = about.buffer_info()[0]
        addresses = _address(starts), _address(rows), 0 if at is None else _address(at)
        index, size = _device(ids), (0, 0, 0)
        if index >= 0:
            edges = len(ids)
            # cuda.Transposition.Room
            words = 3 * edges + edges // _LONG + _TILES + 1 + self.sources
            room = torch.empty(words, dtype=torch.int32, device=ids.device)
            size = room.data_ptr(), 4 * words, current_stream(index)
        call("SegmentTranspose", index, address, *addresses, *size)
        made = self._transposed = Segments(starts, rows, self.num_rows, at)
        return made

    def reduce(
        self,
        x: Tensor | RowTable,
        kind: int,
        weights: Tensor | None = None,
        best: Tensor | None = None,
        ids: Tensor | None = None,
        degrees: Tensor | None = None,
    ) -> Tensor:
        """Rows of x, [sources, width], reduced: [rows, width].

        With ``ids`` x is a table, of which they name a row for each source. Rows are divided by the
        steps of ``degrees``. Weights are those of ``places``, where these segments have some.
        """
        table = x if isinstance(x, RowTable) else RowTable.of_tensor(x)
        out = _room(table, self.num_rows, table.width)
        if out.numel():
            heads = 1 if weights is None else weights.shape[1]
            about = self._reduction_words(table, kind, heads, weights, out, best, ids, degrees)
            index = _device(out)
            stream, room = 0, None
            if index >= 0:
                stream = current_stream(index)
                room = _room_for_long_rows(about, table, kind != MAX)
            address = about.buffer_info()[0]
            # Ids of a GPU are not looked at here: 0 asks for no word of bad ones.
            call("SegmentReduce", index, address, stream, 0)
            del room
        return out

    def dots(
        self, x: Tensor | RowTable, y: Tensor, heads: int, ids: Tensor | None = None
    ) -> Tensor:
        """Returns for each edge the product of its source's row of x and destination's row of y.

        There is a product for each of the heads that share the width: [edges, heads]; 0 for
        padding.
        """
        table = x if isinstance(x, RowTable) else RowTable.of_tensor(x)
        made = _room(table, len(self.indices), heads)
        if made.numel():
            about = self._reduction_words(table, SUM, heads, None, y, None, ids)
            address = about.buffer_info()[0]
            index = _device(made)
            stream = current_stream(index) if index >= 0 else 0
            call("SegmentDots", index, address, made.data_ptr(), stream)
        return made

    def _reduction_words(
        self,
        x: RowTable | None,
        kind: int = SUM,
        heads: int = 1,
        weights: Tensor | None = None,
        out: Tensor | None = None,
        best: Tensor | None = None,
        ids: Tensor | None = None,
        degrees: Tensor | None = None,
    ) -> array[int]:
        """The words of internal/engine/cpu/layers's Reduction."""
        indices = self.indices
        # Without x only edges are read, and any width and dtype will do.
        width, dtype = (1, torch.float32) if x is None else (x.width, x.dtype)
        places = self.places if ids is None else None
        return array(
            "q",
            [
                _address(indices) if x is None else x.address,
                _address(self.indptr),
                _address(indices),
                0 if weights is None else _address(weights),
                _address(self.indptr) if out is None else out.data_ptr(),
                0 if best is None else best.data_ptr(),
                self.sources,
                self.num_rows,
                len(indices),
                width,
                heads,
                kind,
                8 * indices.element_size(),
                8 * dtype.itemsize,
                dtype == torch.bfloat16,
                0 if ids is None else _address(ids),
                self.sources if x is None else x.rows,
                0 if degrees is None else _address(degrees),
                0 if places is None else _address(places),
                _PIECE,
                0,
                0,
            ],
        )


class _Reduce(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, segments: Segments, kind: int, ids: Tensor | None) -> Tensor:
        best = room_for_best(segments, kind, x.shape[1])
        ctx.save_for_backward(best, ids)
        ctx.segments, ctx.kind, ctx.table = segments, kind, len(x)
        return segments.reduce(x, kind, best=best, ids=ids)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        best, ids = ctx.saved_tensors
        made = gradient_of_sources(ctx.segments, grad, ctx.kind, best)
        return _spread(made, ids, ctx.table), None, None, None


def gradient_of_sources(segments: Segments, grad: Tensor, kind: int, best: Tensor | None) -> Tensor:
    """The gradient of the rows of sources, [sources, width], from that of a reduction of them.

    ``best`` has the sources of the largest values, for ``MAX`` alone.
    """
    grad = grad.contiguous()
    if kind != MAX:
        degrees = segments.indptr if kind == MEAN else None
        return segments.transposed().reduce(grad, SUM, degrees=degrees)
    assert best is not None
    if _device(grad) >= 0:
        # Not by atomics, whose order is another one each time.
        return segments.transposed().reduce(grad, _TAKEN, best=best)
    # The gradients of rows without edges go to one row more, which is cut off.
    places = best.masked_fill(best < 0, segments.sources).long()
    made = grad.new_zeros((segments.sources + 1, grad.shape[1]))
    return made.scatter_add_(0, places, grad)[:-1]


class _Weighted(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weights: Tensor, segments: Segments, ids: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(x, weights, ids)
        ctx.segments = segments
        return segments.reduce(x, SUM, weights, ids=ids)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        x, weights, ids = ctx.saved_tensors
        segments: Segments = ctx.segments
        grad = grad.contiguous()
        to_x = to_weights = None
        if ctx.needs_input_grad[0]:
            made = segments.transposed(places=True).reduce(grad, SUM, weights)
            to_x = _spread(made, ids, len(x))
        if ctx.needs_input_grad[1]:
            to_weights = segments.dots(x, grad, weights.shape[1], ids)
        return to_x, to_weights, None, None


class _WeightsOfTable(torch.autograd.Function):
    """The weighted sum of rows that have no gradient."""

    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, table: RowTable, segments: Segments, ids: Tensor | None
    ) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.about = table, segments, weights.shape[1]
        return segments.reduce(table, SUM, weights, ids=ids)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        (ids,) = ctx.saved_tensors
        table, segments, heads = ctx.about
        return segments.dots(table, grad.contiguous(), heads, ids), None, None, None


def _spread(gradient: Tensor, ids: Tensor | None, num_rows: int) -> Tensor:
    """The gradient of sources as that of a table of so many rows."""
    if ids is None:
        return gradient
    return gradient.new_zeros((num_rows, *gradient.shape[1:])).index_add_(0, ids, gradient)


def reduce(
    segments: Segments, x: Tensor | Features, kind: int, source_ids: Tensor | None = None
) -> Tensor:
    """Rows of ``x`` reduced over each row's edges: [rows, ...]; rows without any are 0.

    ``x`` has a row for each source, or with ``source_ids`` for each id.
    """
    ids = _ids(segments, source_ids)
    if not isinstance(x, torch.Tensor):
        table, ids, shape = _table(x, ids)
        if not table.width:
            return torch.zeros((segments.num_rows, *shape), dtype=table.dtype, device=table.device)
        best = room_for_best(segments, kind, table.width)
        return segments.reduce(table, kind, best=best, ids=ids).reshape((segments.num_rows, *shape))
    flat = _flat(segments, x, ids)
    if _is_ours(flat) and is_compiling():
        operator = torch.ops.pygsampler.reduce
        edges = segments.indptr, segments.indices, segments.sources
        made = operator(flat.contiguous(), *edges, kind, ids)[0]
    elif _is_ours(flat):
        made = _Reduce.apply(flat.contiguous(), segments, kind, ids)
    else:
        made = _by_torch(segments, flat, kind, ids)
    result: Tensor = made.reshape((segments.num_rows, *x.shape[1:]))
    return result


def weighted_sum(
    segments: Segments, x: Tensor | Features, weights: Tensor, source_ids: Tensor | None = None
) -> Tensor:
    """The sum over each row's edges of x at the source times the edge's weight."""
    if not isinstance(weights, torch.Tensor):
        raise TypeError(
            f"weights: expected a tensor with a weight for each edge, got {describe(weights)}; "
            'sampled with edge_weights="ht" a block has edge_weights'
        )
    ids = _ids(segments, source_ids)
    edges = segments.indices.shape[0]
    heads = weights.shape[1] if weights.dim() == 2 else 1
    dims = len(x.shape)
    fits = weights.dim() == 1 or (weights.dim() == 2 and dims >= 2 and x.shape[1] == heads)
    if not fits or weights.shape[0] != edges:
        raise ValueError(
            f"weights: expected shape [{edges}], or [{edges}, heads] and x of shape "
            f"[{segments.sources}, heads, ...], got {tuple(weights.shape)} and {tuple(x.shape)}"
        )
    if weights.device != segments.indices.device:
        raise ValueError(
            f"weights: expected a tensor on {segments.indices.device}, got one on {weights.device}"
        )
    if not isinstance(x, torch.Tensor):
        table, ids, shape = _table(x, ids)
        by_head = weights.reshape(edges, heads).to(table.dtype).contiguous()
        apply: Any = _WeightsOfTable.apply
        made = apply(by_head, table, segments, ids)
        return made.reshape((segments.num_rows, *shape))  # type: ignore[no-any-return]
    flat = _flat(segments, x, ids)
    both = torch.promote_types(x.dtype, weights.dtype)
    flat, by_head = flat.to(both), weights.reshape(edges, heads).to(both)
    if _is_ours(flat, heads) and heads and is_compiling():
        operator = torch.ops.pygsampler.weighted_sum
        csr = segments.indptr, segments.indices, segments.sources
        made = operator(flat.contiguous(), by_head.contiguous(), *csr, ids)
    elif _is_ours(flat, heads) and heads:
        apply = _Weighted.apply
        made = apply(flat.contiguous(), by_head.contiguous(), segments, ids)
    else:
        made = _by_torch(segments, flat, SUM, ids, by_head)
    result: Tensor = made.reshape((segments.num_rows, *x.shape[1:]))
    return result


def _by_torch(
    segments: Segments,
    x: Tensor,
    kind: int,
    ids: Tensor | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """The same by torch's own operations, of a row for each edge, where the engine has none.

    On a GPU it waits for the number of edges.
    """
    degrees = segments.indptr.diff()
    edges = int(segments.indptr[-1])
    sources = segments.indices[:edges].long()
    rows = x.index_select(0, sources if ids is None else ids[sources])
    if weights is not None:
        rows = (rows.reshape(edges, weights.shape[1], -1) * weights[:edges, :, None]).flatten(1)
    if not rows.numel():
        # They take none; the gradient of the rows is there all the same.
        return rows.new_zeros((segments.num_rows, rows.shape[1])) + rows.sum()
    wide = rows if rows.dtype in (torch.float32, torch.float64) else rows.float()
    if kind == MAX:
        # Not segment_reduce, whose gradient counts equals twice.
        dst = torch.arange(segments.num_rows, device=rows.device).repeat_interleave(degrees)
        least = wide.new_full((segments.num_rows, wide.shape[1]), -math.inf)
        made = least.scatter_reduce(0, dst.unsqueeze(1).expand_as(wide), wide, "amax")
        made = made.masked_fill(degrees.eq(0).unsqueeze(1), 0)
    else:
        if kind == MEAN:
            each = degrees.clamp(min=1).to(wide.dtype).repeat_interleave(degrees)
            wide = wide / each.unsqueeze(1)
        offsets = segments.indptr
        made = torch.segment_reduce(wide, "sum", offsets=offsets, axis=0, unsafe=True)
    return made.to(rows.dtype)


def _ids(segments: Segments, source_ids: Tensor | None) -> Tensor | None:
    """The rows that sources have, in the width of the segments' ids."""
    if source_ids is None:
        return None
    ids = segments.indices
    if not isinstance(source_ids, torch.Tensor) or source_ids.dtype not in (
        torch.int32,
        torch.int64,
    ):
        found = getattr(source_ids, "dtype", type(source_ids).__name__)
        raise TypeError(f"of: expected a tensor of int32 or int64, got {found}")
    if (
        source_ids.dim() != 1
        or source_ids.shape[0] != segments.sources
        or source_ids.device != ids.device
    ):
        raise ValueError(
            f"of: expected an id for each of {segments.sources} sources on {ids.device}, got shape "
            f"{tuple(source_ids.shape)} on {source_ids.device}"
        )
    return source_ids.to(ids.dtype).contiguous()


def _table(x: Any, ids: Tensor | None) -> tuple[RowTable, Tensor | None, tuple[int, ...]]:
    """Features as a table, the ids of its rows, and the shape of one."""
    from pygsampler._features.features import Features

    if not isinstance(x, Features) or ids is None:
        expected = "a tensor" if ids is None else "a tensor or Features"
        raise TypeError(f"x: expected {expected}, got {type(x).__name__}")
    return *RowTable.of_features(x, ids), x.shape[1:]


def _flat(segments: Segments, x: Tensor, ids: Tensor | None) -> Tensor:
    if x.dim() < 1 or (ids is None and x.shape[0] != segments.sources):
        raise ValueError(
            f"x: expected a row for each of {segments.sources} sources, got shape {tuple(x.shape)}"
        )
    if not x.is_floating_point():
        raise TypeError(f"x: expected floats, got {x.dtype}")
    if x.device != segments.indices.device:
        raise ValueError(
            f"x: expected a tensor on {segments.indices.device}, got one on {x.device}"
        )
    if x.dim() == 2:
        # A view in between would keep autograd from adding gradients of other uses in place.
        return x
    return x.reshape(x.shape[0], math.prod(x.shape[1:]))


def is_reduced_by_engine(segments: Segments, x: Tensor) -> bool:
    """True for rows that the engine reduces; raises as ``reduce`` does for ones that do not fit."""
    return _is_ours(_flat(segments, x, None))


def _is_ours(x: Tensor, heads: int = 1) -> bool:
    if _device(x) >= 0 and (x.shape[1] > _MOST_WIDTH or heads > _MOST_HEADS):
        return False
    return x.dtype in _OURS and x.shape[1] > 0


def _device(x: Tensor) -> int:
    """The index of the GPU that a tensor is on, or -1."""
    return x.get_device() if x.is_cuda else -1


def _room(like: RowTable, num_rows: int, width: int) -> Tensor:
    """Undefined values of a dtype. On the CPU torch asks the system for large ones each time."""
    dtype, device = like.dtype, like.device
    if device.type == "cuda" or num_rows * width * dtype.itemsize < _LARGE:
        return torch.empty((num_rows, width), dtype=dtype, device=device)
    return Array._room(str(dtype).removeprefix("torch."), (num_rows, width)).torch()


def _room_for_long_rows(
    words: array[int], x: RowTable, plain: bool, heads: int = 1
) -> Tensor | None:
    """Adds scratch on a GPU for long rows to the words of a reduction that may have some.

    It is as large as ``cuda.Segment.RoomBytes``; the tensor must live until after the call.
    """
    edges = words[_EDGES]
    if edges < _MANY:
        return None
    values = -(-edges // _PIECE) * (x.width if plain else 2 * (x.width + heads))
    size = values * max(4, x.dtype.itemsize)
    room = torch.empty(size, dtype=torch.uint8, device=x.device)
    words[_ROOM : _ROOM + 2] = array("q", [room.data_ptr(), size])
    return room


def room_for_best(segments: Segments, kind: int, width: int) -> Tensor | None:
    """Room for the sources of the largest values, [rows, width]; None where none are looked for."""
    if kind != MAX:
        return None
    return _room(RowTable.of_tensor(segments.indices[:, None]), segments.num_rows, width)


def _address(ids: Tensor) -> int:
    """Returns the address of ids, or any address of ids that are none."""
    return ids.data_ptr() or _NOTHING.data_ptr()


_NOTHING = torch.zeros(1, dtype=torch.int64)


def segment_reduce(
    x: torch.Tensor, indptr: torch.Tensor, indices: torch.Tensor, reduce: str = "sum"
) -> torch.Tensor:
    """Reduces the rows of ``x`` that ``indices`` name over segments, with gradients.

    It does the work of the methods ``sum``, ``mean`` and ``max`` of a block for any CSR: words of
    documents, edges of another graph.

    Parameters
    ----------
    x : float tensor of shape [N, ...]
    indptr : int32 or int64, shape [R + 1]
        Segment i is ``indices[indptr[i]:indptr[i + 1]]``; from 0 to at most E, and it does not
        fall. Values behind the last segment are not read.
    indices : the dtype of indptr, shape [E]
        Rows in [0, N).
    reduce : str
        ``"sum"``, ``"mean"`` or ``"max"``.

    Returns
    -------
    torch.Tensor
        Of shape [R, ...] and x's dtype; 0 for empty segments.

    Raises
    ------
    TypeError, ValueError, IndexError
        For arguments of another dtype, shape, device or value; on a GPU values are not checked.
    """
    kinds = {"sum": segments.SUM, "mean": segments.MEAN, "max": segments.MAX}
    if reduce not in kinds:
        raise ValueError(f"reduce: expected 'sum', 'mean' or 'max', got {reduce!r}")
    for name, ids in (("indptr", indptr), ("indices", indices)):
        if ids.dtype not in (torch.int32, torch.int64) or ids.dtype != indptr.dtype:
            raise TypeError(f"{name}: expected int32 or int64 as indptr, got {ids.dtype}")
        if ids.dim() != 1 or ids.device != x.device:
            raise ValueError(
                f"{name}: expected one dimension on {x.device}, got shape {tuple(ids.shape)} on "
                f"{ids.device}"
            )
    if not indptr.shape[0]:
        raise ValueError("indptr: expected at least one value (0), got none")
    csr = segments.Segments(indptr.contiguous(), indices.contiguous(), x.shape[0])
    return segments.reduce(csr, x, kinds[reduce])
