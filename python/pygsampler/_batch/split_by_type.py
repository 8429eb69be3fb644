"""``split_by_type``: a batch of relations that are one homogeneous graph, split into its types."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from pygsampler._batch import layout as at
from pygsampler._batch.array_sources import EngineSource, relation_ends
from pygsampler._batch.edge_values import EdgeValueName
from pygsampler._batch.minibatch import MiniBatch, as_torch
from pygsampler._batch.torch_sources import TensorSource
from pygsampler._engine import memory as memories

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from pygsampler._graph.homogeneous import HomogeneousView
    from pygsampler._graph.schema import Schema

# The width of float32, where the widths of ids are 32 and 64.
_FLOAT = 0


class BatchTypes(NamedTuple):
    """The types of a heterogeneous graph, and how wide its ids are."""

    schema: Schema
    id_bits: int
    edge_id_bits: Sequence[int]


def split_by_type(
    batch: MiniBatch,
    view: HomogeneousView,
    types: BatchTypes,
    lists: Collection[str] = (),
    form: str = "array",
) -> MiniBatch:
    """Returns a batch of ``view.graph`` as a batch of the heterogeneous graph with these types.

    All arrays are in one memory where the batch is, written in torch's current stream on a GPU.
    ``lists`` are the names of extra arrays that are nodes: such an array has ids within types, and
    the array of its name with ``_type`` at the end has the places of the types.
    """
    return _Split(batch, view, types).write(lists, form)


class _Library(NamedTuple):
    """NumPy or torch, and the functions that they do not have under one name."""

    xp: Any
    ints: Callable[[Iterable[int]], Any]
    arange: Callable[[int], Any]
    sort: Callable[[Any], Any]


class _SortedEdges(NamedTuple):
    """The edges of a block by edge type, in their order; places are within types."""

    order: Any
    src: Any
    rows: Any
    """The place of the edge type times ``span``, plus the place of the destination."""
    ids: Any
    span: int


class _Split:
    """A batch whose arrays are in the order of the types, before the host knows the sizes."""

    def __init__(self, batch: MiniBatch, view: HomogeneousView, types: BatchTypes) -> None:
        self._device: int = view.graph._device
        self._extra_words = batch._source._extra_words(len(batch._names))
        batch = batch.numpy() if self._device < 0 else as_torch(batch)
        self._library = _numpy() if self._device < 0 else _torch(batch.input_nodes.device)
        self._batch, self._view, self._types = batch, view, types
        # Tables of numbers that the host reads all at once, since it has to wait for a GPU: how
        # many elements have the types before a type, and in addition a first part of that type.
        self._tables: list[Any] = []
        self._width = max(map(len, types.schema)) + 1
        # Offset, width and values of each array, and the bytes of all so far.
        self._parts: list[tuple[int, int, Any]] = []
        self._size = 0
        kinds, ids = self._locate_nodes(batch.input_nodes)
        sizes = [(block.num_src_nodes, block.num_dst_nodes) for block in batch.blocks]
        order = self._sort(kinds, *chain.from_iterable(sizes))
        rank = self._library.xp.empty_like(ids)
        rank[order] = self._library.arange(len(ids)) - self._tables[0][kinds[order]]
        self._nodes = ids[order]
        kinds, ids = self._locate_nodes(batch.output_nodes)
        order, index = self._sort(kinds), batch.output_index
        if len(rank):
            # A subgraph may lack a seed, whose place is -1.
            index = self._library.xp.where(index < 0, index, rank[index])
        self._seeds, self._index = ids[order], index[order]
        self._edges = [self._sort_edges(block, rank) for block in batch.blocks]

    def _locate_nodes(self, ids: Any) -> tuple[Any, Any]:
        return self._locate(ids, self._view.nodes, self._types.schema.node_types)

    def _locate(self, ids: Any, starts: Mapping[Any, int], kinds: Sequence[Any]) -> tuple[Any, Any]:
        """Returns the places of the types of ids of the view, and the ids within the types."""
        ints = self._library.ints
        firsts = ints(starts.values())
        # A type without elements begins where the next type does: the last of them is the type.
        place = self._library.xp.searchsorted(firsts, ids, side="right") - 1
        return ints(map(kinds.index, starts))[place], ids - firsts[place]

    def _sort(self, kinds: Any, *lengths: int) -> Any:
        """Returns the order by type, and adds tables for it and for parts of these lengths."""
        library, count = self._library, len(kinds)
        keys = library.sort(kinds * count + library.arange(count))
        firsts = library.arange(self._width) * count
        self._tables += [library.xp.searchsorted(keys, firsts + length) for length in (0, *lengths)]
        return keys % max(count, 1)

    def _sort_edges(self, block: Any, rank: Any) -> _SortedEdges:
        kinds, ids = self._locate(block.edge_ids, self._view.edges, self._types.schema.edge_types)
        order = self._sort(kinds)
        src, dst = (rank[ends[order]] for ends in block.coo())
        span = len(rank) + 1
        return _SortedEdges(order, src, kinds[order] * span + dst, ids[order], span)

    def write(self, lists: Collection[str], form: str) -> MiniBatch:
        """Returns the batch, written to one memory."""
        batch, (schema, bits, edge_bits) = self._batch, self._types
        hops, types, relations = len(batch.blocks), *map(len, schema)
        names = self._names(lists)
        self._size = 8 * at.num_words(hops, types, relations, len(names))
        words = [at.MAGIC, bits, hops, types, relations, len(names), 0, 0]
        tables = self._library.xp.stack(self._tables).tolist()
        # Tables of nodes: of all, then of the sources and of the destinations of each block.
        first, seeds, edges = tables[0], tables[2 * hops + 1], tables[2 * hops + 2 :]
        counts: list[int] = []
        for i in range(types):
            nodes, chosen = slice(first[i], first[i + 1]), slice(seeds[i], seeds[i + 1])
            words += self._place(self._nodes[nodes], bits)
            words += self._place(self._seeds[chosen], bits)
            words += (self._place(self._index[chosen], bits)[1], 0, 0, 0)
            ends = tables[2 * hops], *tables[2 * hops - 1 : 0 : -2]
            counts += [end[i] - first[i] for end in ends]
        for hop, (block, found) in enumerate(zip(batch.blocks, self._edges, strict=True)):
            src_ends, dst_ends = tables[2 * hop + 1 : 2 * hop + 3]
            weights = block.edge_weights
            weights = None if weights is None else weights[found.order]
            for i, (src, dst) in enumerate(relation_ends(schema)):
                num_dst, part = dst_ends[dst] - first[dst], slice(edges[hop][i], edges[hop][i + 1])
                indptr = self._reserve(num_dst + 1, bits)
                if part.start < part.stop:
                    starts = self._library.arange(num_dst + 1) + i * found.span
                    rows = self._library.xp.searchsorted(found.rows, starts) - part.start
                    self._parts.append((indptr, bits, rows))
                num_edges, indices = self._place(found.src[part], bits)
                words += (src_ends[src] - first[src], num_dst, num_edges, indptr, indices)
                words += (self._place(found.ids[part], edge_bits[i])[1], 0)
                words.append(0 if weights is None else self._place(weights[part], _FLOAT)[1])
        words += [*edge_bits, *counts, *self._place_extras(lists, edges)]
        words[at.SIZE] = -(-self._size // 8) * 8
        source = self._source(words, form)
        return MiniBatch._of_source(source, batch.epoch, batch.batch, names)

    def _names(self, lists: Collection[str]) -> tuple[str | EdgeValueName, ...]:
        """Returns the names of the extra arrays, of which edges have one for each edge type."""
        names: list[str | EdgeValueName] = []
        relations = len(self._types.schema.edge_types)
        for name in self._batch._names:
            if isinstance(name, EdgeValueName):
                first = name.block * relations
                names += [EdgeValueName(first + i, name.name) for i in range(relations)]
            else:
                names += (name, f"{name}_type") if name in lists else (name,)
        return tuple(names)

    def _place_extras(self, lists: Collection[str], edges: list[list[int]]) -> list[int]:
        """Returns the words of the extra arrays."""
        batch, bits, words = self._batch, self._types.id_bits, list[int]()
        for name, (kind, length, _, width) in zip(batch._names, self._extra_words, strict=True):
            if isinstance(name, EdgeValueName):
                order, ends = self._edges[name.block].order, edges[name.block]
                values = batch.blocks[name.block].edge_values[name.name][order]
                for i in range(len(self._types.schema.edge_types)):
                    words += (0, *self._place(values[ends[i] : ends[i + 1]], _FLOAT), 0)
            elif name in lists:
                kinds, ids = self._locate_nodes(batch.extra[name])
                words += (kind, *self._place(ids, bits), 0, kind, *self._place(kinds, bits), 0)
            else:
                values = batch.extra[name].reshape(-1)
                words += (kind, length, self._place(values, _FLOAT)[1], width)
        return words

    def _place(self, values: Any, bits: int) -> tuple[int, int]:
        """Returns the length of an array, and where it is to be written."""
        count = len(values)
        offset = self._reserve(count, bits)
        if count:
            self._parts.append((offset, bits, values))
        return count, offset

    def _reserve(self, count: int, bits: int) -> int:
        """Returns where so many zeros are, from a cache line on."""
        offset = -(-self._size // at.ALIGNMENT) * at.ALIGNMENT
        self._size = offset + count * (bits or 32) // 8
        return offset

    def _source(self, words: list[int], form: str) -> EngineSource | TensorSource:
        """Writes the arrays, and returns the source of them all."""
        xp, schema = self._library.xp, self._types.schema
        region = xp.zeros_like(self._library.arange(words[at.SIZE] // 8))
        views = {64: region, 32: region.view(xp.int32), _FLOAT: region.view(xp.float32)}
        for offset, bits, values in self._parts:
            first = offset * 8 // (bits or 32)
            views[bits][first : first + len(values)] = values
        if self._device < 0:
            region[: len(words)] = words
            memory = memoryview(region)
            address = memories.address_of(memory)
            return EngineSource(memory, address, address, self._device, schema, words=words)
        if form == "torch":
            ids = views[self._types.id_bits]
            return TensorSource(ids, words, self._device, schema=schema)
        if region.is_cuda:
            # Arrays are complete for every stream.
            xp.cuda.current_stream(region.device).synchronize()
        address = region.data_ptr()
        return EngineSource(region, address, 0, self._device, schema, words=words)


def _numpy() -> _Library:
    import numpy

    def ints(values: Iterable[int]) -> Any:
        return numpy.array([*values], numpy.int64)

    return _Library(numpy, ints, numpy.arange, numpy.sort)


def _torch(device: Any) -> _Library:
    import torch

    def ints(values: Iterable[int]) -> Any:
        return torch.tensor([*values], dtype=torch.int64, device=device)

    def arange(count: int) -> Any:
        return torch.arange(count, device=device)

    return _Library(torch, ints, arange, lambda values: values.sort().values)
