"""Batches of fixed sizes in memory that stays where it is, which a static loader yields."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch

from pygsampler._arrays.tensor_frames import is_tensor_frame, row_tensors, with_row_tensors
from pygsampler._batch.block import Block
from pygsampler._batch.minibatch import MiniBatch
from pygsampler._graph.schema import ByEdgeType, ByNodeType
from pygsampler._ops.segments import is_compiling

if TYPE_CHECKING:
    from pygsampler._graph.schema import PerNodeType
    from pygsampler._ops.segments import Segments

__all__ = ["StaticBlock", "StaticMiniBatch", "prefix_mask"]


class StaticBlock(Block):
    """A block with room for a number of edges and nodes, of which a batch uses the first.

    Sizes and shapes are those of the room. The rest of ``indices`` and ``edge_ids`` is filled up
    with edges between rows that the batch does not use, spread over all of those, and rows that it
    does not use have no edges in ``indptr``. So any layer may work on all of it: its result for
    rows in use is its result without the rest. ``src_mask``, ``dst_mask`` and ``edge_mask`` tell
    them apart. A layer that takes all sources as targets too, as PyG's GCNConv does, needs
    ``torch.where(block.edge_mask, dst, src)`` instead of ``dst``: for it the targets of the rest
    are sources in use.

    With ``frontier="new"`` destinations begin where each batch has found them: ``dst_offset`` is an
    int64 tensor of no dimensions on the GPU, ``dst_index`` are their rows. The blocks of a batch
    have one numbering there, and all have room for the sources of the outermost: edges that fill
    one up lead between rows that no block of the batch uses, so that the edges of several may be
    joined.
    """

    # Set by StaticBuffers.
    _edges: Callable[[torch.Tensor | None, torch.Tensor], None]
    _counts: torch.Tensor
    _turn: list[int]
    # With frontier="new": the nodes of the destinations' type that the batch has, and the room.
    _ends: tuple[torch.Tensor, int] | None = None

    @property
    def counts(self) -> torch.Tensor:
        """The numbers of sources, destinations and edges of the batch: int64, [3], on the GPU."""
        return self._counts

    @property
    def src_mask(self) -> torch.Tensor:
        """Marks the sources of the batch: bool, shape [num_src_nodes]."""
        return prefix_mask(self.num_src_nodes, self._counts[0])

    @property
    def dst_mask(self) -> torch.Tensor:
        """Marks the destinations of the batch: bool, shape [num_dst_nodes]."""
        return prefix_mask(self.num_dst_nodes, self._counts[1])

    @property
    def edge_mask(self) -> torch.Tensor:
        """Marks the edges of the batch: bool, shape [num_edges]."""
        return prefix_mask(self.num_edges, self._counts[2])

    def coo(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns the edges as (source, destination) in local ids, each of shape [num_edges].

        Edges that fill up end in rows behind the batch's own. A kernel writes them in torch's
        current stream.
        """
        destinations = torch.empty_like(self.indices)
        self._edges(None, destinations)
        return self.indices, self._as_local(destinations)

    @property
    def edge_index(self) -> torch.Tensor:
        """The edges as PyG takes them, int64 of shape [2, num_edges], written as by ``coo``."""
        edges: torch.Tensor = self.indices.new_empty((2, self.num_edges), dtype=torch.int64)
        self._edges(edges[0], edges[1])
        if self._ends is not None:
            edges[1] = self._as_local(edges[1])
        return edges

    def _dst_places(self) -> slice | torch.Tensor:
        if self._ends is None:
            return slice(0, self.num_dst_nodes)
        all_of_type, size = self._ends
        used = self._counts[1]
        places = torch.arange(self.num_dst_nodes, device=used.device)
        behind = all_of_type + (places - used) % (size - all_of_type)
        return torch.where(places < used, places + self.dst_offset, behind)

    def _as_local(self, indptr_rows: torch.Tensor) -> torch.Tensor:
        """Returns rows of ``indptr`` as local ids of destinations."""
        if self._ends is None or not len(indptr_rows):
            return indptr_rows
        local: torch.Tensor = self.dst_index.to(indptr_rows.dtype).index_select(0, indptr_rows)
        return local

    def _segments(self) -> Segments:
        if is_compiling():
            # The turn is a number that a compiler would compile for.
            return super()._segments()
        # Arrays that are derived from the edges are valid for one batch.
        known = self.__dict__
        turn = self._turn[0]
        if known.get("_csr_turn") != turn:
            known.pop("_csr", None)
            known["_csr_turn"] = turn
        return super()._segments()

    def _trimmed(self, src: int, dst: int, edges: int) -> Block:
        weights = self.edge_weights
        block = Block._of_arrays(
            self.indptr[: dst + 1].clone(),
            self.indices[:edges].clone(),
            self.edge_ids[:edges].clone(),
            self.src_nodes[:src].clone(),
            self.dst_nodes[:dst].clone(),
            int(self.dst_offset),
            None if weights is None else weights[:edges].clone(),
            edge_type=self.edge_type,
        )
        for name, rows in self.features.items():
            block._attach(name, rows[:edges].clone())
        return block

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("StaticBlock: expected a batch to pickle, got a static one; see trimmed()")


class StaticMiniBatch(MiniBatch):
    """A mini-batch with room for a number of nodes and edges, on a GPU.

    The loader writes each batch into the same memory, so a batch is gone once the next is
    requested; ``trimmed()`` is a copy to keep, without what fills it up. Nodes of the graph fill
    ``input_nodes`` and ``output_nodes`` up. Integer labels are filled up with -100, which
    ``torch.nn.functional.cross_entropy`` ignores, others with 0. With ``disjoint`` the nodes that
    fill up are in a subgraph that no seed has.

    Fields are those of the mini-batches of a loader without ``static``: of a heterogeneous graph
    mappings of types. ``num_edges`` counts the edges that there is room for.
    """

    # Set by StaticBuffers.
    _counts: torch.Tensor
    # True if the edges of all blocks may be joined.
    _joins: bool

    @property
    def counts(self) -> torch.Tensor:
        """The sizes of the batch, int64 on the GPU.

        The seeds, of each type; then for each block, the outermost first, its sources, destinations
        and edges. A heterogeneous graph then has for each type the number of its nodes at the start
        of each hop, and at the end.
        """
        return self._counts

    @property
    def seed_mask(self) -> PerNodeType:
        """Marks the seeds of the batch among ``output_nodes``: bool, or a mapping of types."""
        return _masks(self.output_nodes, self._counts)

    @property
    def node_mask(self) -> PerNodeType:
        """Marks the nodes of the batch among ``input_nodes``: bool, or a mapping of types."""
        return _masks(self.input_nodes, self._num_nodes())

    @property
    def num_sampled_nodes(self) -> Any:
        """Raises AttributeError: the host does not know these numbers."""
        raise AttributeError(_UNKNOWN.format("num_sampled_nodes"))

    @property
    def num_sampled_edges(self) -> Any:
        """Raises AttributeError: the host does not know these numbers."""
        raise AttributeError(_UNKNOWN.format("num_sampled_edges"))

    @property
    def edge_index_dict(self) -> Any:
        """The edges of all hops by edge type, with ``frontier="new"``.

        With ``"all"`` edges that fill a hop up may end in nodes that an outer hop has found.
        """
        if self._schema is None or self._joins:
            return super().edge_index_dict
        raise AttributeError(
            "edge_index_dict: expected a batch of other sizes each, got a static one, whose blocks "
            "are to be taken one by one: batch.blocks[i][edge_type].edge_index"
        )

    def trimmed(self) -> MiniBatch:
        """Returns the batch that a loader without ``static`` yields, in memory of its own.

        Waits for the GPU, which knows the sizes.
        """
        counts, schema = self._counts.tolist(), self._schema
        types = ("",) if schema is None else schema.node_types
        sizes = itertools.islice(iter(counts), len(types), None)
        blocks = tuple(_trimmed(hop, sizes) for hop in self.blocks)
        # The nodes when each hop began, and in the end: the sources of the outermost block.
        found = [[counts[1]]] if schema is None else self._node_counts().tolist()
        seeds = dict(zip(types, counts, strict=False))
        nodes = {kind: of[-1] for kind, of in zip(types, found, strict=True)}
        fields = {
            "input_nodes": _first(self.input_nodes, nodes),
            "output_nodes": _first(self.output_nodes, seeds),
            "output_index": _first(self.output_index, seeds),
            "blocks": blocks,
        }
        if self.subgraph_ids is not None:
            fields["subgraph_ids"] = _first(self.subgraph_ids, nodes)
        ends = None if schema is None else found
        batch = MiniBatch._of_fields(fields, self.epoch, self.batch, ends)
        for name, rows in self.features.items():
            batch._attach(name, _first(rows, seeds if name == "y" else nodes))
        return batch

    def _num_nodes(self) -> torch.Tensor:
        """Returns the number of nodes of each type; of a homogeneous graph numbers follow it."""
        # The sources of the outermost block.
        return self._counts[1:] if self._schema is None else self._node_counts()[:, -1]

    def _node_counts(self) -> torch.Tensor:
        """Returns for each node type of a heterogeneous graph the last of ``counts``."""
        types, hops = len(self.output_nodes), len(self.blocks)
        return self._counts[-types * (hops + 1) :].reshape(types, hops + 1)

    def _map(self, move: Any) -> Any:
        return self.trimmed()._map(move)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        raise TypeError(
            "StaticMiniBatch: expected a batch to pickle, got a static one; see trimmed()"
        )


_UNKNOWN = (
    "{}: expected a batch whose sizes the host knows, got a static one; see counts and trimmed()"
)


def _trimmed(hop: Any, sizes: Iterator[int]) -> Any:
    """Returns the block or the blocks of a hop without what fills them up."""
    if isinstance(hop, Mapping):
        blocks = ((kind, _trimmed(block, sizes)) for kind, block in hop.items())
        return ByEdgeType(blocks).read_only()
    return hop._trimmed(*itertools.islice(sizes, 3))


def _first(values: Any, counts: Mapping[str, int]) -> Any:
    """Copies the first values, of each type, as many as ``counts`` says."""
    if isinstance(values, Mapping):
        return ByNodeType((kind, _copied(of, counts[kind])) for kind, of in values.items())
    return _copied(values, counts[""])


def _copied(values: Any, count: int) -> Any:
    """Copies the first rows of a tensor, or of the tensors of a frame."""
    if not is_tensor_frame(values):
        return values[:count].clone()
    rows = {part: _copied(of, count) for part, of in row_tensors(values).items()}
    return with_row_tensors(values, rows)


def _masks(values: Any, counts: torch.Tensor) -> Any:
    """Marks the first values, of each type, as many as ``counts`` says."""
    if isinstance(values, Mapping):
        return {kind: prefix_mask(len(values[kind]), counts[i]) for i, kind in enumerate(values)}
    return prefix_mask(len(values), counts[0])


def prefix_mask(count: int, used: torch.Tensor) -> torch.Tensor:
    """Returns ``count`` marks, the first ``used`` of them True, a number on the GPU."""
    return torch.arange(count, device=used.device) < used
