"""Ranges of the nodes of a graph with all their in-edges, as slices of its CSC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pygsampler._arrays.array import Array
from pygsampler._batch.array_sources import StoredSource
from pygsampler._batch.block import Block
from pygsampler._inference.tables import tensor_of_array

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from pygsampler._graph.schema import EdgeType

__all__ = ["InEdges", "NodeRange", "as_tensor", "number_sources"]

# Edges of a range are numbered by 32 bits where ids have these.
_MOST_EDGES = (1 << 31) - 1
# The cost of sorting an edge, in bytes of scans of an array of all nodes.
_SORTED_BYTES = 16
# So many edges are counted at a time.
_COUNTED_EDGES = 1 << 22


def as_tensor(array: Array) -> Tensor:
    """Returns an array of a graph as a tensor on its memory, also of a file that is mapped."""
    if array._device >= 0:
        return array.torch()
    try:
        import numpy
    except ImportError:
        return array.torch()
    return tensor_of_array(numpy.asarray(array))


class InEdges:
    """The edges of one type, by destination, for layers on a device.

    ``edge_data`` has rows for edges in the order of the CSC, by the name of a layer's argument.
    """

    def __init__(
        self,
        arrays: tuple[Array, Array, Array | None],
        num_src: int,
        num_dst: int,
        device: torch.device,
        edge_type: EdgeType | None = None,
    ) -> None:
        indptr, indices, edge_ids = arrays
        self.indptr, self.indices = as_tensor(indptr), as_tensor(indices)
        self.edge_ids = None if edge_ids is None else as_tensor(edge_ids)
        self.num_src, self.num_dst, self.num_edges = num_src, num_dst, len(self.indices)
        self.device, self.edge_type = device, edge_type
        self.edge_data: dict[str, Tensor] = {}
        self._offsets: Tensor | None = None
        # Values of nodes that layers share, as norms by degrees.
        self.cache: dict[Any, Any] = {}

    @property
    def one_type(self) -> bool:
        """True if sources and destinations are the same nodes."""
        return self.edge_type is None or self.edge_type[0] == self.edge_type[2]

    @property
    def nbytes(self) -> int:
        """The size of ``indptr`` and ``indices`` in bytes."""
        size = self.indices.element_size()
        return (self.num_edges + self.num_dst + 1) * size

    def to_device(self) -> None:
        """Copies the arrays to the device, from where ranges of them are slices."""
        self.indptr = self.indptr.to(self.device)
        self.indices = self.indices.to(self.device)
        self.edge_data = {name: each.to(self.device) for name, each in self.edge_data.items()}

    def out_degrees(self) -> Tensor:
        """Returns how many edges each source has, int32 on the device."""
        counts = torch.zeros(self.num_src, dtype=torch.int32, device=self.device)
        one = torch.ones(1, dtype=torch.int32, device=self.device)
        for low in range(0, self.num_edges, _COUNTED_EDGES):
            ids = self.indices[low : low + _COUNTED_EDGES].to(self.device).long()
            counts.scatter_add_(0, ids, one.expand(len(ids)))
        return counts

    def offset(self, node: int) -> int:
        """Returns the number of edges into the nodes before this one."""
        # A range of all nodes asks for no other, and then nothing is copied from a GPU. Nodes
        # behind the last row have no edges.
        if node <= 0 or node >= len(self.indptr) - 1:
            return 0 if node <= 0 else self.num_edges
        if self._offsets is None:
            self._offsets = self.indptr.cpu()
        return int(self._offsets[node])

    def ranges(
        self,
        batch_size: int | None,
        row_cost: int,
        edge_cost: int,
        room: int,
        nodes: tuple[int, int] | None = None,
    ) -> list[int]:
        """Returns the first nodes of ranges, and the node that the last one ends before.

        Parameters
        ----------
        batch_size : int or None
            The number of nodes of a range; None cuts by cost.
        row_cost, edge_cost, room : int
            Bytes for a node and for an edge, and how many there may be in a range; each range has
            at least one node.
        nodes : tuple of int, optional
            The first of the nodes to cut, and the one behind the last; all nodes by default.
        """
        begin, end = (0, self.num_dst) if nodes is None else nodes
        if batch_size is not None:
            return [*range(begin, end, batch_size), end]
        cuts = [begin]
        while cuts[-1] < end:
            first = cuts[-1]
            low, high, start = first + 1, end, self.offset(first)
            while low < high:
                middle = (low + high + 1) // 2
                edges = self.offset(middle) - start
                if (middle - first) * row_cost + edges * edge_cost <= room and edges <= _MOST_EDGES:
                    low = middle
                else:
                    high = middle - 1
            cuts.append(low)
        return cuts

    def range(self, first: int, last: int) -> NodeRange:
        """Returns the nodes [first, last) with their in-edges."""
        return NodeRange(self, first, last)

    def edge_index(self) -> Tensor:
        """Returns all edges as PyG has them, int64 [2, edges], in the order of the CSC."""
        whole = self.range(0, self.num_dst)
        return torch.stack([whole.indices.long(), whole.destinations().long()])


class NodeRange:
    """Nodes [first, last) as destinations, with all their in-edges.

    ``indices`` are ids of nodes, or once ``number_sources`` has numbered them the places of nodes
    among those of ``own``, if there is one, and ``others`` behind it.
    """

    def __init__(self, csc: InEdges, first: int, last: int) -> None:
        self.csc, self.first, self.last = csc, first, last
        self.low, self.high = csc.offset(first), csc.offset(last)
        self.others: Tensor | None = None
        self.own: tuple[int, int] | None = None
        self.num_src = csc.num_src
        self.indices = self.source_ids()
        self._destinations: Tensor | None = None
        rows = csc.indptr[first : last + 1].to(csc.device, non_blocking=True)
        missing = last - first + 1 - len(rows)
        if missing:
            end = rows.new_full((missing,), self.high)
            rows = torch.cat([rows, end])
        same = self.low == 0 and rows.dtype == self.indices.dtype
        self.indptr = rows if same else (rows - self.low).to(self.indices.dtype)

    @property
    def size(self) -> int:
        """The number of destinations."""
        return self.last - self.first

    @property
    def num_edges(self) -> int:
        """The number of edges."""
        return self.high - self.low

    @property
    def covers_all(self) -> bool:
        """True if the range has all nodes."""
        return self.first == 0 and self.last == self.csc.num_dst

    def destinations(self) -> Tensor:
        """Returns the place of each edge's destination in the range."""
        if self._destinations is None:
            rows = torch.arange(self.size, dtype=self.indices.dtype, device=self.indices.device)
            degrees = self.indptr.diff()
            self._destinations = rows.repeat_interleave(degrees, output_size=self.num_edges)
        return self._destinations

    def source_ids(self) -> Tensor:
        """Returns the source of each edge."""
        return self.csc.indices[self.low : self.high].to(self.csc.device, non_blocking=True)

    def edge_values(self, values: Tensor) -> Tensor:
        """Returns the rows of the range's edges, of rows in the order of the CSC."""
        return values[self.low : self.high].to(self.csc.device, non_blocking=True)

    def block(self) -> Block:
        """Returns the range as a block."""
        return Block._from_source(_RangeSource(self), 0, edge_type=self.csc.edge_type)


def number_sources(ranges: Sequence[NodeRange], leading: tuple[int, int] | None) -> Tensor:
    """Numbers the sources of ranges by those that occur, and returns these.

    Ranges have edges from nodes of one type. With ``leading`` nodes leading[0] to leading[1] - 1,
    which are of that type, come first, and are not among the result.
    """
    csc = ranges[0].csc
    first, last = (0, 0) if leading is None else leading
    if sum(each.num_edges for each in ranges) * _SORTED_BYTES < csc.num_src:
        others, numbers = _number_by_sorting([each.indices for each in ranges], first, last)
    else:
        others, numbers = _number_by_marks([each.indices for each in ranges], first, last, csc)
    for each, indices in zip(ranges, numbers, strict=True):
        each.indices, each.others, each.own = indices, others, leading
        each.num_src = last - first + len(others)
    return others


def _number_by_marks(
    indices: list[Tensor], first: int, last: int, csc: InEdges
) -> tuple[Tensor, list[Tensor]]:
    """Numbers sources by passes over an array of all nodes."""
    device, size = indices[0].device, last - first
    occurs = torch.zeros(csc.num_src, dtype=torch.bool, device=device)
    for each in indices:
        occurs[each.long()] = True
    places = torch.empty(csc.num_src, dtype=indices[0].dtype, device=device)
    occurs[first:last] = False
    places[first:last] = torch.arange(size, dtype=places.dtype, device=device)
    others = occurs.nonzero().flatten()
    numbers = torch.arange(size, size + len(others), dtype=places.dtype, device=device)
    places[others] = numbers
    return others, [places[each.long()] for each in indices]


def _number_by_sorting(indices: list[Tensor], first: int, last: int) -> tuple[Tensor, list[Tensor]]:
    """Numbers sources in the same way, where they are few of all nodes."""
    together = torch.cat(indices)
    found, places = torch.unique(together, return_inverse=True)
    bounds = torch.tensor([first, last], dtype=found.dtype, device=found.device)
    low, high = torch.searchsorted(found, bounds).tolist()
    others = torch.cat([found[:low], found[high:]]).long()
    size = last - first
    # Sources in the range come first, then the sources before it and behind it.
    behind = places + (size - (high - low))
    numbers = torch.where(places < low, places + size, behind)
    inside = (places >= low) & (places < high)
    numbers = torch.where(inside, together.long() - first, numbers).to(together.dtype)
    return others, list(torch.split(numbers, [len(each) for each in indices]))


class _RangeSource(StoredSource):
    """The arrays of a block of a range; those of all nodes and edges are created on first use."""

    def __init__(self, nodes: NodeRange) -> None:
        sizes = nodes.num_src, nodes.size, nodes.num_edges, 0
        super().__init__("torch", None, {}, [], [sizes])
        self._range = nodes

    def block_arrays(self, place: int, name: str) -> Mapping[str, Any]:
        nodes = self._range
        if name in ("indptr", "indices"):
            return {name: getattr(nodes, name)}
        if name == "edge_weights":
            return {name: None}
        like: Any = {"dtype": nodes.indices.dtype, "device": nodes.indices.device}
        if name == "edge_ids":
            known = nodes.csc.edge_ids
            if known is not None:
                return {name: nodes.edge_values(known)}
            return {name: torch.arange(nodes.low, nodes.high, **like)}
        own = torch.arange(nodes.first, nodes.last, **like)
        if name == "dst_nodes":
            return {name: own}
        if nodes.others is None:
            return {name: torch.arange(nodes.num_src, **like)}
        others = nodes.others.to(own.dtype)
        if nodes.own is None:
            return {name: others}
        first = torch.arange(*nodes.own, **like)
        return {name: torch.cat([first, others])}
