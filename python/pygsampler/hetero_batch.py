"""``HeteroBatch``: what a sampler makes of a graph with types."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pickle import PickleBuffer
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pygsampler._batch import layout as at
from pygsampler._core import memories
from pygsampler.array import Array
from pygsampler.block import Block

if TYPE_CHECKING:
    from pygsampler._core.memories import Memory
    from pygsampler.hetero_converted import TorchHeteroBatch
    from pygsampler.hetero_graph import EdgeType, Schema


class HeteroBlock(Block):
    """The edges of one type that were sampled for one hop; ids count within the types."""

    __slots__ = ("_dst_nodes",)

    _dst_nodes: Array

    @property
    def dst_nodes(self) -> Array:
        """Original ids of the destinations, shape [num_dst_nodes]: of the destination type."""
        first = self._words[at.FIRST_DST]
        return self._dst_nodes[first : first + self._words[at.NUM_DST]]


class HeteroBatch:
    """The sampled neighbourhood of seeds of a graph with types.

    ``blocks`` has the outermost hop first; each is a mapping of edge types to blocks, all types
    among them, also those without edges. Local ids count within a vertex type, in the order of
    first occurrence: hop by hop, and within a hop relation by relation. All arrays are views of
    one memory. Pickling stores that.
    """

    __slots__ = (
        "__weakref__",
        "_counts",
        "_data",
        "_memory",
        "_output_index",
        "_output_nodes",
        "_schema",
        "_size",
        "_trees",
        "batch",
        "blocks",
        "epoch",
        "nodes",
        "num_edges",
    )

    blocks: tuple[Mapping[EdgeType, HeteroBlock], ...]
    nodes: Mapping[str, Array]
    """Original ids of the vertices of each type, in the graph's id dtype; the seeds are first."""
    num_edges: int
    """Number of sampled edges of all blocks."""
    epoch: int
    batch: int
    _memory: Memory | memoryview
    _data: int
    _size: int
    _schema: Schema
    # Of each type how many vertices it had when each hop began, and in the end.
    _counts: dict[str, list[int]]
    _output_nodes: dict[str, Array]
    _output_index: dict[str, Array]
    _trees: dict[str, Array | None]

    def __init__(self) -> None:
        raise TypeError("HeteroBatch: made by PGSampler.sample")

    @classmethod
    def _of(
        cls, memory: Memory | memoryview, data: int, schema: Schema, epoch: int, batch: int
    ) -> HeteroBatch:
        made = object.__new__(cls)
        made._memory, made._data, made._schema = memory, data, schema
        made.epoch, made.batch = epoch, batch
        made._read()
        return made

    def _read(self) -> None:
        data, memory = self._data, self._memory
        header = memories.read_int64(data, at.HEADER_WORDS)
        assert header[0] == at.TYPED_MAGIC
        hops, types, relations = (
            header[at.TYPED_HOPS],
            header[at.TYPED_NUM_TYPES],
            header[at.TYPED_NUM_RELATIONS],
        )
        counts = at.HEADER_WORDS + at.TYPE_WORDS * types
        bits = counts + types * (hops + 1)
        first = bits + relations
        words = memories.read_int64(data, first + hops * relations * at.WORDS)
        self._size = words[at.SIZE]
        of: dict[str, dict[str, Any]] = {row.name: {} for row in at.TYPE_ROWS}
        self._counts = {}
        for place, kind in enumerate(self._schema.node_types):
            start = at.HEADER_WORDS + at.TYPE_WORDS * place
            about = words[start : start + at.TYPE_WORDS]
            for row in at.TYPE_ROWS:
                of[row.name][kind] = Array._of_row(row, about, words, data, memory)
            start = counts + place * (hops + 1)
            self._counts[kind] = words[start : start + hops + 1]
        self.nodes = MappingProxyType(of["input_nodes"])
        self._output_nodes, self._output_index = of["output_nodes"], of["output_index"]
        self._trees = of["trees"]
        blocks: list[Mapping[EdgeType, HeteroBlock]] = []
        for hop in range(hops):
            by_type: dict[EdgeType, HeteroBlock] = {}
            for place, edge_type in enumerate(self._schema.edge_types):
                start = first + (hop * relations + place) * at.WORDS
                about = words[start : start + at.WORDS]
                widths = [0, words[at.ID_BITS], words[bits + place]]
                src, dst = self._schema.ends(place)
                block = HeteroBlock._of(memory, data, self.nodes[src], about, widths, 0, [])
                assert isinstance(block, HeteroBlock)
                block._dst_nodes = self.nodes[dst]
                by_type[edge_type] = block
            blocks.append(MappingProxyType(by_type))
        self.blocks = tuple(blocks)
        self.num_edges = sum(block.num_edges for hop in blocks for block in hop.values())

    @property
    def input_nodes(self) -> Mapping[str, Array]:
        """``nodes``: of which features are needed."""
        return self.nodes

    @property
    def output_nodes(self) -> Mapping[str, Array]:
        """The seeds of each type as they were given, duplicates kept."""
        return MappingProxyType(self._output_nodes)

    @property
    def output_index(self) -> Mapping[str, Array]:
        """For each seed of a type its place among ``nodes`` of that type."""
        return MappingProxyType(self._output_index)

    @property
    def trees(self) -> Mapping[str, Array] | None:
        """For each of ``nodes`` which seed's tree it is in, counted over the seeds of all types in
        the order of the types; None without ``disjoint=True``."""
        trees = {kind: each for kind, each in self._trees.items() if each is not None}
        return MappingProxyType(trees) if trees else None

    @property
    def num_sampled_nodes(self) -> dict[str, list[int]]:
        """Of each type the distinct seeds, and how many vertices each hop found, the seeds'
        neighbours first."""
        return {
            kind: [ends[0], *(b - a for a, b in itertools.pairwise(ends))]
            for kind, ends in self._counts.items()
        }

    @property
    def num_sampled_edges(self) -> dict[EdgeType, list[int]]:
        """Of each type how many edges each hop has, that of the seeds first."""
        return {
            kind: [hop[kind].num_edges for hop in reversed(self.blocks)]
            for kind in self._schema.edge_types
        }

    def torch(self) -> TorchHeteroBatch:
        """The batch in torch's tensors, on the same memory; ImportError without torch."""
        from pygsampler.hetero_converted import TorchHeteroBatch

        return TorchHeteroBatch._of(self)

    def __repr__(self) -> str:
        nodes = ", ".join(f"{kind}={len(ids)}" for kind, ids in self.nodes.items())
        return (
            f"HeteroBatch({nodes}, hops={len(self.blocks)}, edges={self.num_edges}, "
            f"epoch={self.epoch}, batch={self.batch})"
        )

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        raw = memories.owned_view(self._data, self._size, self._memory)
        values = PickleBuffer(raw) if protocol >= 5 else bytes(raw)
        return _restored, (values, self._schema, self.epoch, self.batch)


def _restored(values: Any, schema: Schema, epoch: int, batch: int) -> HeteroBatch:
    view = memoryview(values)
    if memories.address_of(view) % 8:
        view = memoryview(bytearray(view))
    return HeteroBatch._of(view, memories.address_of(view), schema, epoch, batch)
