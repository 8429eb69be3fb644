"""``split_by_type``: a batch of relations that are one homogeneous graph, split into its types."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from pygsampler._arrays.array import Array
from pygsampler._batch import layout as at
from pygsampler._batch.array_sources import EngineSource, relation_ends
from pygsampler._batch.edge_values import EdgeValueName
from pygsampler._batch.minibatch import MiniBatch, as_torch
from pygsampler._batch.torch_sources import TensorSource

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from pygsampler._graph.homogeneous import HomogeneousView

# The width of float32, where the widths of ids are 32 and 64.
_FLOAT = 0
_ALL = slice(None)


def split_by_type(
    batch: MiniBatch, view: HomogeneousView, lists: Collection[str], form: str
) -> MiniBatch:
    """Returns a batch of ``view.graph`` as a batch of the heterogeneous graph of the view.

    All arrays are in one memory where the batch is, written in torch's current stream on a GPU.
    ``lists`` are the names of extra arrays that are nodes: such an array has ids within types, and
    the array of its name with ``_type`` at the end has the places of the types.
    """
    return _Split(batch, view).result(lists, form)


class _Split:
    """The arrays of a batch by type, in NumPy or on a GPU in torch, and where they are to be.

    Types are named by their places in the schema; the mappings have the types of the view.
    """

    def __init__(self, batch: MiniBatch, view: HomogeneousView) -> None:
        self._device: int = view.graph._device
        self._extra_words = batch._source._extra_words(len(batch._names))
        self._like: dict[str, Any] = {}
        if self._device < 0:
            import numpy

            self._xp: Any = numpy
        else:
            import torch

            self._xp, batch = torch, as_torch(batch)
            self._like["device"] = batch.input_nodes.device
        self._batch, self._view = batch, view
        schema = view.schema
        # The first id of each type.
        self._nodes = {schema.node_types.index(kind): start for kind, start in view.nodes.items()}
        self._edges = {schema.edge_types.index(kind): start for kind, start in view.edges.items()}
        self._firsts = self._ints(self._nodes.values())
        # Offset, width, length and values of each array.
        self._parts: list[tuple[int, int, int, Any]] = []
        self._size = 0

    def result(self, lists: Collection[str], form: str) -> MiniBatch:
        """Returns the batch, written to one memory."""
        batch, schema, bits = self._batch, self._view.schema, self._view.id_bits
        hops, relations = len(batch.blocks), len(schema.edge_types)
        names: list[str | EdgeValueName] = []
        for name in batch._names:
            if isinstance(name, EdgeValueName):
                first = name.block * relations
                names += [EdgeValueName(first + i, name.name) for i in range(relations)]
            else:
                names += (name, f"{name}_type") if name in lists else (name,)
        shape = hops, len(schema.node_types), relations, len(names)
        self._size = 8 * at.num_words(*shape)
        # Relations without edges share their arrays.
        self._zeros = self._place(0, bits, len(batch.input_nodes) + 1)
        self._sort_nodes()
        self._sort_edges()
        of_nodes, counts = self._node_words()
        words = [at.MAGIC, bits, *shape, 0, 0, *of_nodes]
        for hop in range(hops):
            words += self._block_words(hop)
        words += [*self._view.edge_id_bits, *counts]
        for name, described in zip(batch._names, self._extra_words, strict=True):
            words += self._extra(name, described, lists)
        words[at.SIZE] = self._size = -(-self._size // 8) * 8
        source = self._source(words, form)
        return MiniBatch._of_source(source, batch.epoch, batch.batch, tuple(names))

    def _sort_nodes(self) -> None:
        """Finds the nodes of each type, and the place of each node among those of its type."""
        batch, xp = self._batch, self._xp
        nodes = self._array(batch.input_nodes)
        self._ends = [len(nodes)]
        for block in batch.blocks:
            self._ends += block.num_src_nodes, block.num_dst_nodes
        if len(self._nodes) == 1:
            # Places in the batch are places among the nodes of the type.
            self._members: dict[int, Any] = dict.fromkeys(self._nodes, _ALL)
            self._rank: Any = None
            self._sizes = dict.fromkeys(self._nodes, self._ends)
            return
        found = self._find(nodes, self._firsts)
        self._members = {t: xp.where(found == i)[0] for i, t in enumerate(self._nodes)}
        self._rank = xp.empty_like(nodes)
        for places in self._members.values():
            self._rank[places] = xp.arange(len(places), **self._like)
        # For each type, the number of its nodes before each end.
        ends = self._ints(self._ends)
        tables = [xp.searchsorted(places, ends) for places in self._members.values()]
        self._sizes = dict(zip(self._members, self._read(tables), strict=True))

    def _sort_edges(self) -> None:
        """Finds the edges of each relation in each block: all, or their places in the block."""
        ids = [self._array(block.edge_ids) for block in self._batch.blocks]
        some = [end for each in ids if len(each) for end in (each.min(), each.max())]
        ends = iter(self._read(some))
        starts, types = [*self._edges.values()], [*self._edges]
        self._by_relation: list[dict[int, Any]] = []
        for each in ids:
            members = {}
            if len(each):
                first, last = (bisect_right(starts, next(ends)) - 1 for _ in range(2))
                members = {types[first]: _ALL}
                if first < last:
                    found = self._find(each, self._ints(starts))
                    places = {t: self._xp.where(found == i)[0] for i, t in enumerate(types)}
                    members = {t: chosen for t, chosen in places.items() if len(chosen)}
            self._by_relation.append(members)

    def _find(self, ids: Any, firsts: Any) -> Any:
        """Returns which of the types each id has."""
        # A type without elements begins where the next type does: the last of them is the type.
        return self._xp.searchsorted(firsts, ids, side="right") - 1

    def _node_words(self) -> tuple[list[int], list[int]]:
        """Returns the words of the node types, and those of the numbers of their nodes."""
        batch, bits, zeros = self._batch, self._view.id_bits, self._zeros
        nodes, seeds = self._array(batch.input_nodes), self._array(batch.output_nodes)
        index = self._array(batch.output_index)
        if self._rank is not None and len(self._rank):
            # A subgraph may lack a seed, whose place is -1.
            index = self._xp.where(index < 0, index, self._rank[index])
        types = [*self._nodes]
        found = self._find(seeds, self._firsts)
        hops = len(batch.blocks)
        words: list[int] = []
        counts: list[int] = []
        for place in range(len(self._view.schema.node_types)):
            if place not in self._nodes:
                words += (0, zeros, 0, zeros, zeros, 0, 0, 0)
                counts += [0] * (hops + 1)
                continue
            members, first = self._members[place], self._nodes[place]
            chosen = _ALL if len(types) == 1 else self._xp.where(found == types.index(place))[0]
            sizes = self._sizes[place]
            words += (sizes[0], self._place(nodes[members] - first, bits))
            own = seeds[chosen] - first
            words += (len(own), self._place(own, bits), self._place(index[chosen], bits), 0, 0, 0)
            # From the seeds' hop on outwards.
            counts += [sizes[2 * hops], *sizes[2 * hops - 1 : 0 : -2]]
        return words, counts

    def _block_words(self, hop: int) -> list[int]:
        """Returns the words of the blocks of a hop."""
        block, bits, zeros = self._batch.blocks[hop], self._view.id_bits, self._zeros
        indptr, src = self._array(block.indptr), self._array(block.indices)
        ids, no_weights = self._array(block.edge_ids), block.edge_weights is None
        weights: Any = None if no_weights else self._array(block.edge_weights)
        if self._rank is not None:
            src = self._rank[src]
        words: list[int] = []
        none = [0] * len(self._ends)
        for place, ends in enumerate(relation_ends(self._view.schema)):
            src_sizes, dst_sizes = (self._sizes.get(end, none) for end in ends)
            num_dst = dst_sizes[2 * hop + 2]
            words += (src_sizes[2 * hop + 1], num_dst)
            chosen = self._by_relation[hop].get(place)
            if chosen is None:
                words += (0, zeros, zeros, zeros, 0, 0 if no_weights else zeros)
                continue
            # Rows of other types have no edges of the relation.
            rows = self._members[ends[1]]
            last = indptr[1:] if rows is _ALL else indptr[rows[:num_dst] + 1]
            if chosen is not _ALL:
                last = self._xp.searchsorted(chosen, last)
            first = self._place(0, bits, 1)
            self._parts.append((first + bits // 8, bits, num_dst, last))
            self._size += num_dst * bits // 8
            sources = src[chosen]
            edge_ids = ids[chosen] - self._edges[place]
            words += (
                len(sources),
                first,
                self._place(sources, bits),
                self._place(edge_ids, self._view.edge_id_bits[place]),
                0,
                0 if no_weights else self._place(weights[chosen], _FLOAT),
            )
        return words

    def _extra(
        self, name: str | EdgeValueName, described: Sequence[int], lists: Collection[str]
    ) -> list[int]:
        """Returns the words of an extra array, or of the arrays that it becomes."""
        kind, length, _, width = described
        batch, bits = self._batch, self._view.id_bits
        if isinstance(name, EdgeValueName):
            values = self._array(batch.blocks[name.block].edge_values[name.name])
            words: list[int] = []
            for place in range(len(self._view.schema.edge_types)):
                part = values[self._by_relation[name.block].get(place, slice(0))]
                words += (kind, len(part), self._place(part, _FLOAT), 0)
            return words
        values = self._array(batch.extra[name])
        if name not in lists:
            return [kind, length, self._place(values.reshape(-1), _FLOAT), width]
        found = self._find(values, self._firsts)
        ids = values - self._firsts[found]
        types = self._ints(self._nodes)[found]
        return [kind, length, self._place(ids, bits), 0, kind, length, self._place(types, bits), 0]

    def _read(self, arrays: list[Any]) -> list[Any]:
        """Returns the numbers in arrays of one shape."""
        if self._device < 0 or not arrays:
            return [each.tolist() for each in arrays]
        numbers: list[Any] = self._xp.stack(arrays).tolist()
        return numbers

    def _array(self, array: Any) -> Any:
        return array.numpy() if self._device < 0 else array

    def _ints(self, values: Iterable[int]) -> Any:
        make = self._xp.array if self._device < 0 else self._xp.tensor
        return make([*values], dtype=self._xp.int64, **self._like)

    def _place(self, values: Any, bits: int, count: int | None = None) -> int:
        """Returns where values are to be written, from a cache line on; one value may be many."""
        count = len(values) if count is None else count
        offset = -(-self._size // at.ALIGNMENT) * at.ALIGNMENT
        self._size = offset + count * (bits or 32) // 8
        if count:
            self._parts.append((offset, bits, count, values))
        return offset

    def _source(self, words: list[int], form: str) -> EngineSource | TensorSource:
        """Writes the arrays, and returns their source."""
        xp, device, schema, count = self._xp, self._device, self._view.schema, self._size // 8
        if device < 0:
            room = Array._room("int64", (count,))
            region: Any = room.numpy()
            region[: len(words)] = words
        else:
            region = xp.empty(count, dtype=xp.int64, **self._like)
        views = {64: region, 32: region.view(xp.int32), _FLOAT: region.view(xp.float32)}
        for offset, bits, length, values in self._parts:
            first = offset * 8 // (bits or 32)
            views[bits][first : first + length] = values
        if device < 0:
            owner: Any = room._owner
            return EngineSource(owner, owner.data, owner.data, device, schema, words=words)
        if form == "torch":
            return TensorSource(views[self._view.id_bits], words, device, schema=schema)
        if region.is_cuda:
            # Arrays are complete for every stream.
            xp.cuda.current_stream(region.device).synchronize()
        return EngineSource(region, region.data_ptr(), 0, device, schema, words=words)
