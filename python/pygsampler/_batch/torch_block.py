"""Blocks in the arrays of torch, NumPy and pyarrow: those of the batches of ``converted``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pygsampler._batch.attached_features import HasFeatures
from pygsampler._batch.edge_values import NO_VALUES, edge_data
from pygsampler._batch.lazy import LazyAttribute

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy
    import torch

    from pygsampler._batch.lazy import BlockSource
    from pygsampler._features.features import Features
    from pygsampler._ops.segments import Segments

__all__ = ["ArrowBlock", "ForeignBlock", "NumpyBlock", "TorchBlock"]


def __dir__() -> list[str]:
    return sorted(__all__)


ArrayT = TypeVar("ArrayT")


@dataclass(frozen=True, eq=False, repr=False)
class ForeignBlock(Generic[ArrayT]):
    """A ``Block`` whose arrays are another library's; the names and shapes are the same."""

    indptr: ArrayT
    indices: ArrayT
    edge_ids: ArrayT
    src_nodes: ArrayT
    dst_nodes: ArrayT
    dst_offset: int = 0
    # Not a default of the class, which would hide those that are made when they are used.
    edge_weights: ArrayT | None = field(default_factory=lambda: None)
    # Values of edges that a program has given other names than "w".
    edge_values: Mapping[str, ArrayT] = field(default_factory=lambda: NO_VALUES)

    @property
    def edge_data(self) -> Mapping[str, ArrayT]:
        """Values of the edges by name, shape [num_edges], float32: a program's as ``"w"``, and
        those that it gives other names."""
        return edge_data(self.edge_weights, self.edge_values)

    @property
    def num_src_nodes(self) -> int:
        """Number of source vertices, the destinations among them."""
        return len(self.src_nodes)  # type: ignore[arg-type]

    @property
    def num_dst_nodes(self) -> int:
        """Number of destination vertices."""
        return len(self.dst_nodes)  # type: ignore[arg-type]

    @property
    def num_edges(self) -> int:
        """Number of sampled edges."""
        return len(self.indices)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_src_nodes={self.num_src_nodes}, "
            f"num_dst_nodes={self.num_dst_nodes}, num_edges={self.num_edges})"
        )


def _of_block(known: dict[str, Any], views: BlockSource, name: str) -> Any:
    made = views.of_block(known["_place"], name)
    # Those that were handed out stay what they are.
    known.update({**made, **known} if len(made) > 1 else made)
    return known[name]


class TorchBlock(ForeignBlock["torch.Tensor"], HasFeatures):
    """A block of torch tensors.

    A loader that was given ``edge_features`` puts their rows beside them, one for each edge, as
    attributes and in ``features``.
    """

    @classmethod
    def _of(
        cls, views: BlockSource, place: int, named: Mapping[str, torch.Tensor] | None = None
    ) -> TorchBlock:
        block = object.__new__(cls)
        # Around the dataclass, which is frozen. Tensors join them here when they are made.
        known = block.__dict__
        known["_views"] = views
        known["_place"] = place
        known["dst_offset"] = views.dst_offset(place)
        known["edge_values"] = named or NO_VALUES
        return block

    if not TYPE_CHECKING:
        indptr = LazyAttribute(_of_block)
        indices = LazyAttribute(_of_block)
        edge_ids = LazyAttribute(_of_block)
        src_nodes = LazyAttribute(_of_block)
        dst_nodes = LazyAttribute(_of_block)
        edge_weights = LazyAttribute(_of_block)

    @property
    def num_src_nodes(self) -> int:
        """Number of source vertices, the destinations among them."""
        return self._count(0, "src_nodes")

    @property
    def num_dst_nodes(self) -> int:
        """Number of destination vertices."""
        return self._count(1, "dst_nodes")

    @property
    def num_edges(self) -> int:
        """Number of sampled edges."""
        return self._count(2, "indices")

    def _rows_by(self, name: str) -> str:
        return f"edge_features={{{name!r}: ...}}"

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The edges as (source, destination) in local ids, each of shape [num_edges].

        Of a batch that was sampled on a GPU one launch writes those of all blocks, in torch's
        current stream, when the first is asked for; the batch keeps them. A loop that asks the
        batches of a ``DataLoader`` for them has those of a group by one launch.
        """
        known = self.__dict__
        views: BlockSource | None = known.get("_views")
        if views is not None:
            made = views.destinations(known["_place"])
            if made is not None:
                return self.indices, made
        import torch

        first = self.dst_offset
        rows = torch.arange(
            first,
            first + self.num_dst_nodes,
            dtype=self.indices.dtype,
            device=self.indices.device,
        )
        degrees = self.indptr.diff()
        return self.indices, rows.repeat_interleave(degrees, output_size=self.num_edges)

    @property
    def edge_index(self) -> torch.Tensor:
        """The edges as PyG takes them: int64, shape [2, num_edges], row 0 the sources.

        Made as ``coo`` makes its tensors.
        """
        views: BlockSource | None = self.__dict__.get("_views")
        made = None if views is None else views.edge_index(self.__dict__["_place"])
        if made is not None:
            return made
        import torch

        return torch.stack(self.coo()).long()

    @property
    def dst_index(self) -> torch.Tensor:
        """Where each destination stands among the vertices of its type: int64, [num_dst_nodes].

        They follow one another from ``dst_offset`` on. In a static batch that is on the GPU, and
        these are rows to take, and to add to, without asking for it.
        """
        import torch

        at, device = self._own_places(), self.indices.device
        if isinstance(at, slice):
            return torch.arange(at.start, at.stop, device=device)
        return at

    def _own_places(self) -> slice | torch.Tensor:
        """The same, as a slice where the host knows it."""
        first = self.dst_offset
        return slice(first, first + self.num_dst_nodes)

    def in_degrees(self) -> torch.Tensor:
        """How many sampled edges end in each destination: dtype of ``indptr``, [num_dst_nodes]."""
        return self.indptr.diff()

    def out_degrees(self) -> torch.Tensor:
        """How many sampled edges begin in each source: dtype of ``indptr``, [num_src_nodes]."""
        return self._segments().transposed().indptr.diff()

    def sum(self, x: torch.Tensor | Features, *, of: torch.Tensor | None = None) -> torch.Tensor:
        """What each destination's sampled in-neighbours have, added up, with gradients.

        Parameters
        ----------
        x : float tensor of shape [num_src_nodes, ...]
            A row for each source, where the block is. With ``of`` of shape [N, ...], or
            ``Features`` that the block's device reads.
        of : int32 or int64, shape [num_src_nodes], optional
            The row of x that each source has, as ``batch.input_nodes`` says for the first block.
            The rows are read where they are: ``block.sum(x, of=ids)`` is ``block.sum(x[ids])``
            without an array of ``x[ids]``. The gradient of x is dense, 0 in rows that no source
            has; those of a row that several sources have are added up by torch's ``index_add_``.

        Returns
        -------
        torch.Tensor
            Of shape [num_dst_nodes, ...] and x's dtype; 0 for destinations without edges.

        Notes
        -----
        The engine makes it, for float16, bfloat16, float32 and float64, by a pass over the edges as
        they are grouped by destination, without a row for each edge; the gradient likewise over the
        edges grouped by source. Those of 16 bits are added up as float32. On the CPU all idle cores
        do that, on a GPU kernels in torch's current stream, which nobody waits for and a CUDA graph
        may capture. Both add in the order of the edges: the same bits on the CPU, for any number of
        cores, and on a GPU. Only the gradient of weights is added in another order there, one that
        is the same on every run.

        Raises
        ------
        TypeError, ValueError
            For another dtype, shape or device.
        IndexError
            On the CPU, for an id that is no row; on a GPU it adds nothing.
        """
        return self._reduced(x, "SUM", of)

    def mean(self, x: torch.Tensor | Features, *, of: torch.Tensor | None = None) -> torch.Tensor:
        """The mean over each destination's sampled in-neighbours: see ``sum``."""
        return self._reduced(x, "MEAN", of)

    def max(self, x: torch.Tensor | Features, *, of: torch.Tensor | None = None) -> torch.Tensor:
        """The largest of each destination's sampled in-neighbours, element by element: see ``sum``.

        The gradient goes to the first of equals; NaN is larger than all.
        """
        return self._reduced(x, "MAX", of)

    def weighted_sum(
        self,
        x: torch.Tensor | Features,
        weights: torch.Tensor,
        *,
        of: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """As ``sum``, of each in-neighbour's row times its edge's weight, as attention has them.

        Parameters
        ----------
        x : float tensor of shape [num_src_nodes, ...], or [num_src_nodes, heads, ...]
            With ``of`` as for ``sum``.
        weights : float tensor of shape [num_edges], or [num_edges, heads]
            In the order of ``indices``; it has a gradient too. Of another dtype than x both are
            taken in the wider one, but to ``Features`` weights adapt.
        """
        from pygsampler._ops import segments

        return segments.weighted_sum(self._segments(), x, weights, of)

    def self_and_reduce(
        self,
        x: torch.Tensor | Features,
        reduce: str = "mean",
        *,
        of: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The rows of the destinations themselves, and those of their in-neighbours reduced.

        What layers such as GraphSAGE's take: ``x[:block.num_dst_nodes]`` and ``block.mean(x)``,
        with one gradient for both, where torch would make one of all rows for each and add them.

        Parameters
        ----------
        x, of
            As for ``sum``.
        reduce : str
            ``"sum"``, ``"mean"`` or ``"max"``.

        Returns
        -------
        tuple of torch.Tensor
            Each of shape [num_dst_nodes, ...]. Without ``of`` the first is a view of x.
        """
        from pygsampler._ops.self_rows import self_and_reduce

        return self_and_reduce(self._segments(), x, reduce, self._own_places(), of)

    def softmax(self, scores: torch.Tensor) -> torch.Tensor:
        """The softmax of scores over the edges of each destination, with a gradient.

        Parameters
        ----------
        scores : float tensor of shape [num_edges, ...]
            In the order of ``indices``: one for each edge, or one for each edge and head.

        Returns
        -------
        torch.Tensor
            Of that shape and dtype: weights that add up to 1 over the edges of a destination.

        Notes
        -----
        Made by the engine as ``sum`` is, by the exponential function of the machine: the same bits
        on every run, but on a GPU others than on the CPU.

        Raises
        ------
        TypeError, ValueError
            For another dtype, shape or device.
        """
        from pygsampler._ops import attention

        return attention.softmax(self._segments(), scores)

    def attention(
        self,
        x: torch.Tensor,
        source: torch.Tensor,
        target: torch.Tensor,
        negative_slope: float = 0.2,
    ) -> torch.Tensor:
        """The attention of GAT: in-neighbours' rows, summed by the softmax of their scores.

        An edge from u to v has the score ``leaky_relu(source[u] + target[v])`` of each head, its
        weight is the softmax of that over the edges of v, and v gets the sum of ``x[u]`` by it
        (Velickovic et al., "Graph attention networks", 2018). No array of the edges is made of it,
        but of their weights in the gradient.

        Parameters
        ----------
        x : float tensor of shape [num_src_nodes, heads, ...]
        source : float tensor of shape [num_src_nodes, heads]
        target : float tensor of shape [num_dst_nodes, heads]
        negative_slope : float, default: 0.2
            Of ``leaky_relu``.

        Returns
        -------
        torch.Tensor
            Of shape [num_dst_nodes, heads, ...] and x's dtype; 0 for destinations without edges.

        Notes
        -----
        On a GPU forward is one kernel, backward one over the edges by destination and two by source
        (see ``sum``), none with atomics: the same bits on every run, though not those of the CPU.
        Scores are float32 for rows of 16 bits.

        Raises
        ------
        TypeError, ValueError
            For another dtype, shape or device.
        """
        from pygsampler._ops import attention

        return attention.attention(self._segments(), x, source, target, negative_slope)

    def _reduced(self, x: Any, kind: str, of: torch.Tensor | None) -> torch.Tensor:
        from pygsampler._ops import segments

        return segments.reduce(self._segments(), x, getattr(segments, kind), of)

    def _segments(self) -> Segments:
        known = self.__dict__
        made: Segments | None = known.get("_csr")
        if made is None:
            from pygsampler._ops.segments import Segments

            made = known["_csr"] = Segments(self.indptr, self.indices, self.num_src_nodes)
        return made

    def _count(self, which: int, name: str) -> int:
        views: BlockSource | None = self.__dict__.get("_views")
        if views is not None:
            return views.counts(self.__dict__["_place"])[which]
        return len(getattr(self, name))

    def __reduce__(self) -> tuple[Any, ...]:
        arrays = (
            self.indptr,
            self.indices,
            self.edge_ids,
            self.src_nodes,
            self.dst_nodes,
            self.dst_offset,
            self.edge_weights,
            dict(self.edge_values),
        )
        return type(self), arrays, dict(self.features)


class NumpyBlock(ForeignBlock["numpy.ndarray[Any, Any]"]):
    """A block of NumPy arrays."""

    def coo(self) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """The edges as (source, destination) in local ids, each of shape [num_edges]."""
        import numpy

        first = self.dst_offset
        rows = numpy.arange(first, first + self.num_dst_nodes, dtype=self.indices.dtype)
        return self.indices, numpy.repeat(rows, numpy.diff(self.indptr))

    @property
    def edge_index(self) -> numpy.ndarray[Any, Any]:
        """The edges as int64, shape [2, num_edges], row 0 the sources."""
        import numpy

        return numpy.stack(self.coo()).astype(numpy.int64, copy=False)


class ArrowBlock(ForeignBlock[Any]):
    """A block of ``pyarrow.Array``."""
