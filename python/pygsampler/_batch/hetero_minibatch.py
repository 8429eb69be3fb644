"""``HeteroMiniBatch``: what a sampler makes of a graph with types."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array, _copy_to_device
from pygsampler._batch import buffer as batch_buffer
from pygsampler._batch import layout as at
from pygsampler._batch.block import Block
from pygsampler._batch.buffer import check_signature
from pygsampler._batch.exports import HeteroExports
from pygsampler._engine import memory as memories
from pygsampler._engine.memory import from_pickle, to_pickle
from pygsampler._graph.schema import ByEdgeType, ByNodeType

if TYPE_CHECKING:
    from pygsampler._batch.hetero_torch_minibatch import HeteroTorchMiniBatch
    from pygsampler._engine.memory import Memory
    from pygsampler._graph.schema import EdgeTypeMapping, Schema

__all__ = ["HeteroBlock", "HeteroMiniBatch"]


def __dir__() -> list[str]:
    return sorted(__all__)


class HeteroBlock(Block):
    """The edges of one type that were sampled for one hop; ids count within the types."""

    __slots__ = ("_dst_nodes",)

    _dst_nodes: Array

    @property
    def dst_nodes(self) -> Array:
        """Original ids of the destinations, shape [num_dst_nodes]: of the destination type."""
        first = self._words[at.FIRST_DST]
        return self._dst_nodes[first : first + self._words[at.NUM_DST]]

    def _destinations(self) -> Array:
        device = self._nodes._device
        if device < 0:
            return super()._destinations()
        # No kernel writes those of a batch with types: they come from the CPU.
        indptr, bits = self.indptr.cpu(), self._nodes._bits
        words = self._words
        memory = memories.new(
            "ExpandRows", indptr._address, words[at.NUM_DST], words[at.FIRST_DST], bits
        )
        return _copy_to_device(Array._of(memory.data, words[at.NUM_EDGES], bits, memory), device)


# What a batch has once its words were read.
_READ = frozenset(
    (
        *("_counts", "_size", "_words"),
        *("blocks", "input_nodes", "num_edges"),
    )
)
# Of these a loop that needs edges alone asks for none.
_BESIDE = {
    "_output_index": "output_index",
    "_output_nodes": "output_nodes",
    "_subgraph_ids": "subgraph_ids",
}
_TYPE_ROWS = {row.name: row for row in at.TYPE_ROWS}
_PLACE = frozenset(("_data", "_words_at"))


class HeteroMiniBatch(HeteroExports):
    """The sampled neighbourhood of seeds of a graph with types.

    ``blocks`` has the outermost hop first; each is a mapping of edge types to blocks, all types
    among them, also those without edges; ``blocks[0]["writes"]`` is the block of the only type
    with that relation. Local ids count within a vertex type, in the order of
    first occurrence: hop by hop, and within a hop relation by relation. All arrays are views of
    one memory, on the CPU or, of a graph on a GPU, there; ``to`` copies it. Pickling
    stores that of the CPU.
    """

    __slots__ = (
        "__weakref__",
        "_counts",
        "_data",
        "_device",
        "_memory",
        "_output_index",
        "_output_nodes",
        "_schema",
        "_size",
        "_subgraph_ids",
        "_words",
        "_words_at",
        "batch",
        "blocks",
        "epoch",
        "input_nodes",
        "num_edges",
    )

    blocks: tuple[EdgeTypeMapping[HeteroBlock], ...]
    input_nodes: Mapping[str, Array]
    """Original ids of the vertices of each type, in the graph's id dtype; the seeds are first."""
    num_edges: int
    """Number of sampled edges of all blocks."""
    epoch: int
    batch: int
    _memory: Memory | memoryview
    _data: int
    _size: int
    # -1, or the index of the CUDA device.
    _device: int
    # Where on the host the words stand that describe the batch, and these: see _batch.layout.
    _words_at: int
    _words: list[int]
    _schema: Schema
    # Of each type how many vertices it had when each hop began, and in the end.
    _counts: dict[str, list[int]]
    _output_nodes: dict[str, Array]
    _output_index: dict[str, Array]
    _subgraph_ids: dict[str, Array | None]

    def __init__(self) -> None:
        raise TypeError("HeteroMiniBatch: made by PGSampler.sample")

    @classmethod
    def _of(
        cls,
        memory: Memory | memoryview,
        data: int,
        schema: Schema,
        epoch: int,
        batch: int,
        words_at: int | None = None,
        device: int = devices.CPU,
    ) -> HeteroMiniBatch:
        """``words_at`` is where the words stand that describe it, on the host; else at ``data``."""
        made = object.__new__(cls)
        made._memory, made._data, made._schema = memory, data, schema
        made.epoch, made.batch, made._device = epoch, batch, device
        made._words_at = data if words_at is None else words_at
        return made

    @classmethod
    def _of_engine(
        cls, memory: Memory, schema: Schema, epoch: int, batch: int, device: int
    ) -> HeteroMiniBatch:
        """Of a batch of the engine's, of whose memory nothing is read before it is asked for."""
        made = object.__new__(cls)
        made._memory, made._schema, made._device = memory, schema, device
        made.epoch, made.batch = epoch, batch
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Read when something of it is first asked for: a graph has up to a hundred types.
            if name in _READ:
                self._read()
            elif name in _BESIDE:
                setattr(self, name, self._of_types(_BESIDE[name]))
            elif name in _PLACE:
                memory = self._memory
                self._data, self._words_at = memory.data, memory.header
            else:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(self, name)

    def _read(self) -> None:
        data, memory, words_at = self._data, self._memory, self._words_at
        header = memories.read_int64(words_at, at.FIXED_WORDS)
        check_signature(header[at.SIGNATURE], at.MAGIC)
        hops, types, relations = header[at.NUM_HOPS : at.NUM_RELATIONS + 1]
        first, bits = at.first_block(types), at.edge_id_bits_at(hops, types, relations)
        counts = bits + relations
        words = memories.read_int64(words_at, at.num_words(hops, types, relations))
        self._words = words
        self._size = words[at.SIZE]
        self._counts = {}
        for place, kind in enumerate(self._schema.node_types):
            start = counts + place * (hops + 1)
            self._counts[kind] = words[start : start + hops + 1]
        nodes = self._of_types("input_nodes")
        self.input_nodes = MappingProxyType(nodes)
        blocks: list[EdgeTypeMapping[HeteroBlock]] = []
        edges, start = 0, first
        for _ in range(hops):
            by_type: ByEdgeType[HeteroBlock] = ByEdgeType()
            for place, edge_type in enumerate(self._schema.edge_types):
                about = words[start : start + at.WORDS]
                start += at.WORDS
                edges += about[at.NUM_EDGES]
                widths = [0, words[at.ID_BITS], words[bits + place]]
                src, _, dst = edge_type
                block = HeteroBlock._of(memory, data, nodes[src], about, widths, 0, [])
                assert isinstance(block, HeteroBlock)
                block._dst_nodes = nodes[dst]
                by_type[edge_type] = block
            blocks.append(by_type.read_only())
        self.blocks, self.num_edges = tuple(blocks), edges

    def _of_types(self, name: str) -> dict[str, Any]:
        """An array of each type of vertices, or None, by its name among the words."""
        row, words, found = _TYPE_ROWS[name], self._words, ByNodeType[Any]()
        start = at.FIXED_WORDS
        for kind in self._schema.node_types:
            about = words[start : start + at.TYPE_WORDS]
            found[kind] = Array._of_row(row, about, words, self._data, self._memory, self._device)
            start += at.TYPE_WORDS
        return found

    @property
    def device(self) -> str:
        """Where all arrays are: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def output_nodes(self) -> Mapping[str, Array]:
        """The seeds of each type as they were given, duplicates kept."""
        return MappingProxyType(self._output_nodes)

    @property
    def output_index(self) -> Mapping[str, Array]:
        """For each seed of a type its place among ``input_nodes`` of that type."""
        return MappingProxyType(self._output_index)

    @property
    def subgraph_ids(self) -> Mapping[str, Array] | None:
        """The seed of each node's subgraph; None without ``disjoint=True``.

        Seeds are counted over all types, in the order of the types.
        """
        ids = {kind: each for kind, each in self._subgraph_ids.items() if each is not None}
        return MappingProxyType(ids) if ids else None

    @property
    def num_sampled_nodes(self) -> dict[str, list[int]]:
        """Of each type the distinct seeds, and how many vertices each hop found, the seeds'
        neighbours first."""
        return ByNodeType(
            (kind, [ends[0], *(b - a for a, b in itertools.pairwise(ends))])
            for kind, ends in self._counts.items()
        )

    @property
    def num_sampled_edges(self) -> ByEdgeType[list[int]]:
        """Of each type how many edges each hop has, that of the seeds first."""
        return ByEdgeType(
            (kind, [hop[kind].num_edges for hop in reversed(self.blocks)])
            for kind in self._schema.edge_types
        )

    def _whole(self) -> Array:
        """All of its memory, as int32."""
        return Array._of(self._data, self._size // 4, 32, self._memory, device=self._device)

    def torch(self) -> HeteroTorchMiniBatch:
        """The batch in torch's tensors, on the same memory; ImportError without torch."""
        from pygsampler._batch.hetero_torch_minibatch import HeteroTorchMiniBatch

        return HeteroTorchMiniBatch._of(self)

    def cpu(self) -> HeteroMiniBatch:
        """This batch on the CPU: itself, or a copy of a batch on a device."""
        if self._device < 0:
            return self
        memory = self._whole().cpu()._owner
        assert isinstance(memory, memories.Memory)
        found = self._of(memory, memory.data, self._schema, self.epoch, self.batch)
        batch_buffer.write_words(self._words, found._data)
        return found

    def to(self, device: Any) -> HeteroMiniBatch:
        """This batch on another device: itself where it is there, else a copy.

        "cpu", "cuda", "cuda:1", an index or a torch.device, as ``Graph.to`` takes it.

        Raises
        ------
        TypeError, ValueError
            For anything but a device; for a batch on another GPU.
        CudaError
            Where there is no such device, no driver or no room.
        """
        return self._on(devices.parse(device))

    def _on(self, index: int) -> HeteroMiniBatch:
        """As ``to``, by the device's index, -1 for the CPU."""
        if index == self._device:
            return self
        if index < 0:
            return self.cpu()
        if self._device >= 0:
            raise ValueError(
                f"device: expected {self.device!r}, where the batch is, or 'cpu', got "
                f"{devices.name(index)!r}"
            )
        devices.require(index)
        # Its words are read here: they stay on the host.
        words_at, there = self._words_at, _copy_to_device(self._whole(), index)
        memory = there._owner
        assert isinstance(memory, memories.Memory)
        about = self._schema, self.epoch, self.batch, words_at, index
        made = self._of(memory, memory.data, *about)
        made._read()
        return made

    def __repr__(self) -> str:
        nodes = ", ".join(f"{kind}={len(ids)}" for kind, ids in self.input_nodes.items())
        where = "" if self._device < 0 else f", device={self.device}"
        return (
            f"HeteroMiniBatch({nodes}, hops={len(self.blocks)}, edges={self.num_edges}, "
            f"epoch={self.epoch}, batch={self.batch}{where})"
        )

    def _repr_html_(self) -> str:
        from pygsampler._batch.html_tables import types_html

        return types_html(repr(self), self.blocks)

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        if self._device >= 0:
            raise TypeError(
                f"HeteroMiniBatch.pickle: expected a batch on the CPU, got one on {self.device}; "
                ".cpu() copies it"
            )
        values = to_pickle(memories.buffer_view(self._data, self._size, self._memory), protocol)
        return _restored, (values, self._schema, self.epoch, self.batch)


def _restored(values: Any, schema: Schema, epoch: int, batch: int) -> HeteroMiniBatch:
    buffer, address = from_pickle(values)
    return HeteroMiniBatch._of(buffer, address, schema, epoch, batch)
