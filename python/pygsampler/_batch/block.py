"""``Block``: the edges of one hop, as a bipartite graph in local ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pygsampler._batch.array_sources import BLOCK_ARRAYS, LazyAttribute, StoredSource, block_sizes
from pygsampler._batch.attached_features import HasFeatures
from pygsampler._batch.edge_values import NO_VALUES, edge_data
from pygsampler._engine.checks import describe

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from pygsampler._batch.array_sources import ArraySource
    from pygsampler._features.features import Features
    from pygsampler._graph.schema import EdgeType
    from pygsampler._ops.segments import Segments

__all__ = ["Block"]


def __dir__() -> list[str]:
    return sorted(__all__)


B = TypeVar("B", bound="Block")


def _of_block(attributes: dict[str, Any], source: ArraySource, name: str) -> Any:
    arrays = source.block_arrays(attributes["_place"], name)
    if len(arrays) == 1:
        result = attributes[name] = arrays[name]
        return result
    # Arrays that were handed out stay the same objects.
    attributes.update({**arrays, **attributes})
    return attributes[name]


class Block(HasFeatures):
    """The edges sampled for one hop, and of one edge type, in local ids.

    Destination i is ``dst_nodes[i]``, and its edges stand at ``indptr[i]:indptr[i + 1]`` of
    ``indices`` (local source ids: positions in ``src_nodes``), of ``edge_ids`` (original ids) and
    of ``edge_weights``, which are None unless the sampler makes them. If sources and destinations
    are of one type, the destinations come first among the sources; with ``frontier="new"`` they
    begin at ``dst_offset``, and local ids are the same in all blocks.

    Arrays are views of the batch's memory, and of the same library: `pygsampler.Array`, torch
    tensors, or arrays of NumPy or Arrow. Reductions, softmax and attention need torch tensors. A
    loader with ``edge_features`` attaches a row for each edge, as attributes and in ``features``.
    """

    __slots__ = ("__dict__", "__weakref__")

    edge_type: EdgeType | None = None
    """(source type, relation, destination type); None in a homogeneous graph."""
    edge_values: Mapping[str, Any] = NO_VALUES
    """Values of the edges that a program has given other names than ``"w"``: float32."""
    _source: ArraySource
    _place: int

    if TYPE_CHECKING:
        indptr: Any
        """Row offsets, shape [num_dst_nodes + 1], in the graph's id dtype."""
        indices: Any
        """Local source id of each edge, shape [num_edges], in the graph's id dtype."""
        edge_ids: Any
        """Original id of each edge, shape [num_edges], in the dtype of the graph's edge ids.

        That is the graph's id dtype if it has none: then the id is the edge's place in the CSC.
        """
        src_nodes: Any
        """Original ids of the sources, shape [num_src_nodes]; the destinations are among them."""
        dst_nodes: Any
        """Original ids of the destinations, shape [num_dst_nodes]: distinct nodes."""
        edge_weights: Any
        """Factor of each edge, float32, shape [num_edges]; None unless the sampler makes them.

        With ``PGSampler(..., edge_weights="ht")`` the sum of ``edge_weights * y`` over the edges of
        a destination is, in the mean over samples, the sum of ``y`` over all its edges.
        """
    else:
        indptr = LazyAttribute(_of_block)
        indices = LazyAttribute(_of_block)
        edge_ids = LazyAttribute(_of_block)
        src_nodes = LazyAttribute(_of_block)
        dst_nodes = LazyAttribute(_of_block)
        edge_weights = LazyAttribute(_of_block)

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__}: created by PGSampler.sample only")

    @classmethod
    def _from_source(
        cls: type[B],
        source: ArraySource,
        place: int,
        values: Mapping[str, Any] | None = None,
        edge_type: EdgeType | None = None,
    ) -> B:
        block = object.__new__(cls)
        known = block.__dict__
        known["_source"] = source
        known["_place"] = place
        if values:
            known["edge_values"] = values
        if edge_type is not None:
            known["edge_type"] = edge_type
        return block

    @classmethod
    def _of_arrays(
        cls: type[B],
        indptr: Any,
        indices: Any,
        edge_ids: Any,
        src_nodes: Any,
        dst_nodes: Any,
        dst_offset: Any = 0,
        edge_weights: Any = None,
        values: Mapping[str, Any] | None = None,
        edge_type: EdgeType | None = None,
        form: str = "torch",
    ) -> B:
        """Returns a block of arrays that are there."""
        edges = indptr, indices, edge_ids, edge_weights
        arrays = dict(zip(BLOCK_ARRAYS, (*edges, src_nodes, dst_nodes), strict=True))
        source = StoredSource(form, None, {}, [arrays], [block_sizes(arrays, dst_offset)])
        return cls._from_source(source, 0, values, edge_type)

    @property
    def form(self) -> str:
        """The library of the arrays: ``"array"``, ``"torch"``, ``"numpy"`` or ``"arrow"``."""
        return self._source.form

    @property
    def num_src_nodes(self) -> int:
        """Number of source nodes, the destinations among them."""
        return self._source.block_sizes(self._place)[0]

    @property
    def num_dst_nodes(self) -> int:
        """Number of destination nodes."""
        return self._source.block_sizes(self._place)[1]

    @property
    def num_edges(self) -> int:
        """Number of sampled edges."""
        return self._source.block_sizes(self._place)[2]

    @property
    def dst_offset(self) -> int:
        """Local id of the first destination: 0 but with ``frontier="new"``."""
        return self._source.block_sizes(self._place)[3]

    @property
    def edge_data(self) -> Mapping[str, Any]:
        """Values of the edges by name, float32, shape [num_edges].

        A program returns them, as ``"w"`` or by other names.
        """
        return edge_data(self.edge_weights, self.edge_values)

    def _rows_by(self, name: str) -> str:
        return f"edge_features={{{name!r}: ...}}"

    def coo(self) -> tuple[Any, Any]:
        """The edges as (source, destination) in local ids, each of shape [num_edges].

        On a GPU one launch writes the destinations of all blocks of a batch when the first are
        needed: of torch tensors in torch's current stream, and a loop that asks the batches of a
        ``DataLoader`` for them gets those of a group by one launch; of our arrays after the work
        that is in the current stream, complete for every stream when this returns.
        """
        destinations = self._source.destinations(self._place)
        if destinations is not None:
            return self.indices, destinations
        first, form = self.dst_offset, self.form
        last = first + self.num_dst_nodes
        if form == "torch":
            import torch

            like = {"dtype": self.indices.dtype, "device": self.indices.device}
            rows: Any = torch.arange(first, last, **like)
            degrees = self.indptr.diff()
            return self.indices, rows.repeat_interleave(degrees, output_size=self.num_edges)
        import numpy

        indptr, indices = numpy.asarray(self.indptr), numpy.asarray(self.indices)
        rows = numpy.arange(first, last, dtype=indices.dtype).repeat(numpy.diff(indptr))
        if form == "numpy":
            return self.indices, rows
        import pyarrow

        return self.indices, pyarrow.array(rows)

    @property
    def edge_index(self) -> Any:
        """The edges as PyG takes them: int64, shape [2, num_edges], row 0 the sources.

        Torch tensors, written as by ``coo``, or NumPy arrays.
        """
        if self.form == "numpy":
            import numpy

            return numpy.stack(self.coo()).astype(numpy.int64, copy=False)
        self._need_torch("edge_index")
        result = self._source.edge_index(self._place)
        if result is not None:
            return result
        import torch

        return torch.stack(self.coo()).long()

    @property
    def dst_index(self) -> torch.Tensor:
        """The places of the destinations among the nodes of their type: int64, [num_dst_nodes].

        They follow one another from ``dst_offset`` on. In a static batch that offset is on the
        GPU, and these are rows to read, and to add to, without waiting for it.
        """
        self._need_torch("dst_index")
        import torch

        at, device = self._dst_places(), self.indices.device
        if isinstance(at, slice):
            return torch.arange(at.start, at.stop, device=device)
        return at

    def _dst_places(self) -> slice | torch.Tensor:
        """The same, as a slice where the host knows it."""
        first = self.dst_offset
        return slice(first, first + self.num_dst_nodes)

    def in_degrees(self) -> torch.Tensor:
        """Returns the sampled edges into each destination: dtype of ``indptr``, [num_dst_nodes]."""
        self._need_torch("in_degrees")
        result: torch.Tensor = self.indptr.diff()
        return result

    def out_degrees(self) -> torch.Tensor:
        """Returns the sampled edges out of each source: dtype of ``indptr``, [num_src_nodes]."""
        return self._segments().transposed().indptr.diff()

    def sum(self, x: torch.Tensor | Features, *, of: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the sum over each destination's sampled in-neighbors, with gradients.

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
        The engine computes it, for float16, bfloat16, float32 and float64, by a pass over the edges
        grouped by destination, without a row for each edge, and the gradient by a pass over the
        edges grouped by source. Values of 16 bits are added up as float32. On the CPU all idle
        cores do that, on a GPU kernels in torch's current stream, which nobody waits for and a CUDA
        graph may capture. Both add in the order of the edges, and 512 edges or more in pieces of
        256 edges: the same bits on the CPU, for any number of cores, and on a GPU. Only the
        gradient of weights is added in another order there, one that is the same on every run.

        Raises
        ------
        TypeError, ValueError
            For another dtype, shape or device.
        IndexError
            On the CPU, for an id that is no row; on a GPU it adds nothing.
        """
        return self._reduced(x, "SUM", of)

    def mean(self, x: torch.Tensor | Features, *, of: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the mean over in-neighbors of ``x``, with ``of`` as for ``sum``."""
        return self._reduced(x, "MEAN", of)

    def max(self, x: torch.Tensor | Features, *, of: torch.Tensor | None = None) -> torch.Tensor:
        """Returns the maximum over in-neighbors of ``x``, with ``of`` as for ``sum``.

        It is found element by element. The gradient goes to the first of equals; NaN is larger
        than all numbers.
        """
        return self._reduced(x, "MAX", of)

    def weighted_sum(
        self,
        x: torch.Tensor | Features,
        weights: torch.Tensor,
        *,
        of: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Returns the sum of each in-neighbor's row times its edge's weight, as in attention.

        Parameters
        ----------
        x : float tensor of shape [num_src_nodes, ...], or [num_src_nodes, heads, ...]
            With ``of`` as for ``sum``.
        weights : float tensor of shape [num_edges], or [num_edges, heads]
            In the order of ``indices``; the result has a gradient for them too. If their dtype is
            not the dtype of x, both are converted to the wider one; for ``Features`` the weights
            are converted.
        """
        from pygsampler._ops import segments

        return segments.weighted_sum(self._segments(), x, weights, of)

    def self_and_reduce(
        self,
        x: Any,
        reduce: str = "mean",
        *,
        of: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the rows of the destinations, and the reduced rows of their in-neighbors.

        Layers such as GraphSAGE take both: ``x[:block.num_dst_nodes]`` and ``block.mean(x)``, here
        with one gradient for both; torch would compute a gradient of all rows for each and add
        them.

        Parameters
        ----------
        x, of
            As for ``sum``. Edges between two types need ``(x_src, x_dst)``, and others may have
            it: ``x_dst`` has a row for each node of the destinations' type, at least up to the
            last destination.
        reduce : str
            ``"sum"``, ``"mean"`` or ``"max"``.

        Returns
        -------
        tuple of torch.Tensor
            Each of shape [num_dst_nodes, ...]. Without ``of`` the first is a view of x.
        """
        from pygsampler._ops.self_rows import self_and_reduce, take_rows

        if isinstance(x, (tuple, list)):
            if len(x) != 2:
                raise ValueError(f"x: expected (x_src, x_dst), got {len(x)} of them")
            src, dst = x
            return take_rows(dst, self._dst_places()), self._reduced_by(src, reduce, of)
        if self.edge_type is not None and self.edge_type[0] != self.edge_type[2]:
            raise TypeError(
                f"x: expected (x_src, x_dst) for edges from {self.edge_type[0]!r} to "
                f"{self.edge_type[2]!r}, got {describe(x)}"
            )
        return self_and_reduce(self._segments(), x, reduce, self._dst_places(), of)

    def _reduced_by(self, x: Any, reduce: str, source_ids: torch.Tensor | None) -> torch.Tensor:
        if reduce not in ("sum", "mean", "max"):
            raise ValueError(f"reduce: expected 'sum', 'mean' or 'max', got {describe(reduce)}")
        result: torch.Tensor = getattr(self, reduce)(x, of=source_ids)
        return result

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
        The engine computes it as it does ``sum``, by the exponential function of the machine: the
        same bits on every run, but other bits on a GPU than on the CPU.

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
        edge: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The attention of GAT: in-neighbors' rows, summed by the softmax of their scores.

        An edge from u to v has the score ``leaky_relu(source[u] + target[v])`` of each head, its
        weight is the softmax of that over the edges of v, and v gets the sum of ``x[u]`` by it
        (Velickovic et al., "Graph attention networks", 2018). No array of the edges is written,
        except of their weights in the gradient.

        Parameters
        ----------
        x : float tensor of shape [num_src_nodes, heads, ...]
            With a single head, [num_src_nodes, 1, ...], all heads of the scores sum the same rows,
            which are not copied: rows that need no gradient are so summed before a projection.
        source : float tensor of shape [num_src_nodes, heads]
        target : float tensor of shape [num_dst_nodes, heads]
        negative_slope : float, default: 0.2
            Of ``leaky_relu``.
        edge : float tensor of shape [num_edges, heads], optional
            Added to the scores before ``leaky_relu``, in the order of ``indices``: the scores of
            edge features. It has a gradient, too.

        Returns
        -------
        torch.Tensor
            Of shape [num_dst_nodes, heads, ...] and x's dtype; 0 for destinations without edges.

        Notes
        -----
        On a GPU forward is one kernel, backward one over the edges by destination and two by source
        (see ``sum``), none with atomics: the same bits on every run, though not those of the CPU.
        Scores are float32 for rows of 16 bits. The gradient of rows that heads share is a kernel
        for each head.

        Raises
        ------
        TypeError, ValueError
            For another dtype, shape or device.
        """
        from pygsampler._ops import attention

        return attention.attention(self._segments(), x, source, target, negative_slope, edge)

    def attention_v2(
        self,
        x_src: torch.Tensor,
        x_dst: torch.Tensor,
        att: torch.Tensor,
        negative_slope: float = 0.2,
        edge: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The attention of GATv2: in-neighbors' rows, summed by the softmax of their scores.

        An edge from u to v has the score ``(att * leaky_relu(x_src[u] + x_dst[v] + edge)).sum()``
        of each head, its weight is the softmax of that over the edges of v, and v gets the sum of
        ``x_src[u]`` by it (Brody et al., "How attentive are graph attention networks?", 2022).
        Arrays of the edges have a value for each head; only ``edge`` and its gradient are wider.

        Parameters
        ----------
        x_src : float tensor of shape [num_src_nodes, heads, ...]
        x_dst : float tensor of shape [num_dst_nodes, heads, ...]
        att : float tensor of shape [heads, ...]
        negative_slope : float, default: 0.2
            Of ``leaky_relu``.
        edge : float tensor of shape [num_edges, heads, ...], optional
            In the order of ``indices``: the rows of edge features.

        Returns
        -------
        torch.Tensor
            Of shape [num_dst_nodes, heads, ...] and the dtype of x_src; 0 for destinations without
            edges.

        Notes
        -----
        Scores are float32 for rows of 16 bits. The bits are the same on every run of a device.

        Raises
        ------
        TypeError, ValueError
            For another dtype, shape or device.
        """
        from pygsampler._ops import attention

        return attention.attention_v2(self._segments(), x_src, x_dst, att, negative_slope, edge)

    def _reduced(self, x: Any, kind: str, source_ids: torch.Tensor | None) -> torch.Tensor:
        from pygsampler._ops import segments

        return segments.reduce(self._segments(), x, getattr(segments, kind), source_ids)

    def _segments(self) -> Segments:
        known = self.__dict__
        segments: Segments | None = known.get("_csr")
        if segments is None:
            self._need_torch("sum")
            from pygsampler._ops.segments import Segments, is_compiling

            if not is_compiling():
                segments = Segments(self.indptr, self.indices, self.num_src_nodes)
                known["_csr"] = segments
            elif "indptr" in known and "indices" in known:
                segments = Segments(self.indptr, self.indices, self.num_src_nodes)
            else:
                raise RuntimeError(
                    "Block: expected tensors that exist before a compiled call, got a block "
                    "without them; call batch.create_tensors()"
                )
        return segments

    def _need_torch(self, what: str) -> None:
        if self.form != "torch":
            raise TypeError(
                f"Block.{what}: expected torch tensors, got a block with form={self.form!r}; use "
                "the blocks of batch.torch()"
            )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(num_src_nodes={self.num_src_nodes}, "
            f"num_dst_nodes={self.num_dst_nodes}, num_edges={self.num_edges})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        if self.form == "array":
            raise TypeError("Block: expected something to pickle, got a view; pickle its MiniBatch")
        ends = self.src_nodes, self.dst_nodes, self.dst_offset
        arrays = self.indptr, self.indices, self.edge_ids, *ends, self.edge_weights
        more = dict(self.edge_values), self.edge_type, self.form
        return self._of_arrays, (*arrays, *more), dict(self.features)
