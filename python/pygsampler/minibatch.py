"""``MiniBatch``: what one call of a sampler returns."""

from __future__ import annotations

from html import escape
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any

from pygsampler import _input, _memory
from pygsampler._memory import Memory
from pygsampler.array import Array
from pygsampler.block import FIRST_OFFSET, OFFSETS, WORDS, Block
from pygsampler.converted import (
    ArrowBatch,
    ArrowBlock,
    NumpyBatch,
    NumpyBlock,
    TorchBatch,
    TorchBlock,
    arrow_array,
)

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ArrowBatch", "MiniBatch", "NumpyBatch", "TorchBatch"]

# The header of a batch: these many words of 64 bits, then WORDS for each block.
_HEADER_WORDS = 16
_MAGIC = 0x50475342
_NODES, _OUTPUT_NODES, _OUTPUT_INDEX, _SIZE = 5, 7, 8, 9
# A pickle of less reserve than this is not worth a copy.
_WORTH_A_COPY = 1 << 12


class MiniBatch:
    """The sampled neighbourhood of some seeds: one block a hop, and the vertices they touch.

    ``blocks`` has the outermost hop first: ``blocks[-1]`` leads into the seeds, and the
    destinations of each block are the sources of the next. A seed that was given twice is kept
    twice in ``output_nodes`` and is one vertex of the last block; ``output_index`` says which.

    All arrays are views of one memory block, which lives as long as any of them. Pickling stores
    that block.
    """

    __slots__ = (
        "__weakref__",
        "_data",
        "_memory",
        "_output_index",
        "_output_nodes",
        "_size",
        "batch",
        "blocks",
        "epoch",
    )

    blocks: tuple[Block, ...]
    epoch: int
    batch: int
    _memory: Memory | memoryview
    _data: int
    _size: int
    _output_nodes: Array
    _output_index: Array

    def __init__(self) -> None:
        raise TypeError("MiniBatch: made by PGSampler.sample")

    @classmethod
    def _of(cls, memory: Memory, epoch: int, batch: int) -> MiniBatch:
        return cls._read(memory, memory.data, epoch, batch)

    @classmethod
    def _read(cls, memory: Memory | memoryview, data: int, epoch: int, batch: int) -> MiniBatch:
        header = _memory.read_int64(data, _HEADER_WORDS)
        magic, bits, edge_id_bits, hops, num_output, nodes, num_nodes = header[:7]
        output_nodes, output_index, size = header[7:10]
        assert magic == _MAGIC
        made = object.__new__(cls)
        made._memory = memory
        made._data = data
        made._size = size
        made.epoch = epoch
        made.batch = batch
        all_nodes = Array._of(data + nodes, num_nodes, bits, memory)
        made._output_nodes = Array._of(data + output_nodes, num_output, bits, memory)
        made._output_index = Array._of(data + output_index, num_output, bits, memory)
        words = _memory.read_int64(data + 8 * _HEADER_WORDS, WORDS * hops)
        made.blocks = tuple(
            Block._of(memory, data, all_nodes, edge_id_bits, words[at : at + WORDS])
            for at in range(0, WORDS * hops, WORDS)
        )
        return made

    @property
    def input_nodes(self) -> Array:
        """Original ids of the vertices whose features are needed: the sources of ``blocks[0]``."""
        return self.blocks[0].src_nodes

    @property
    def output_nodes(self) -> Array:
        """The seeds as they were given, duplicates kept, in the graph's id dtype."""
        return self._output_nodes

    @property
    def output_index(self) -> Array:
        """For each seed its row in ``blocks[-1]``: ``h[output_index]`` has a row for each seed.

        Where no seed was given twice it is 0, 1, 2, ...
        """
        return self._output_index

    @property
    def num_edges(self) -> int:
        """Number of sampled edges of all blocks."""
        return sum(block.num_edges for block in self.blocks)

    def torch(self) -> TorchBatch:
        """The same batch with torch tensors, which share its memory."""
        return TorchBatch(*self._parts(Array.torch, TorchBlock))

    def numpy(self) -> NumpyBatch:
        """The same batch with NumPy arrays, which share its memory."""
        return NumpyBatch(*self._parts(Array.numpy, NumpyBlock))

    def arrow(self) -> ArrowBatch:
        """The same batch with pyarrow arrays, which share its memory."""
        return ArrowBatch(*self._parts(arrow_array, ArrowBlock))

    def __repr__(self) -> str:
        hops = ", ".join(
            f"{block.num_src_nodes}->{block.num_dst_nodes} by {block.num_edges}"
            for block in self.blocks
        )
        return (
            f"MiniBatch(seeds={len(self._output_nodes)}, input_nodes={len(self.input_nodes)}, "
            f"blocks=[{hops}], dtype={self._output_nodes.dtype}, "
            f"epoch={self.epoch}, batch={self.batch})"
        )

    def _repr_html_(self) -> str:
        names = ("block", "sources", "destinations", "edges")
        rows = [
            (f"blocks[{i}]", block.num_src_nodes, block.num_dst_nodes, block.num_edges)
            for i, block in enumerate(self.blocks)
        ]
        head = "".join(f"<th>{name}</th>" for name in names)
        body = "".join(
            f"<tr><th>{name}</th>" + "".join(f"<td>{count:,}</td>" for count in counts) + "</tr>"
            for name, *counts in rows
        )
        title = (
            f"MiniBatch of {len(self._output_nodes):,} seeds, "
            f"{self._output_nodes.dtype}, epoch {self.epoch}, batch {self.batch}"
        )
        return (
            f"<table><caption>{escape(title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        )

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        raw = self._without_reserve()
        values = PickleBuffer(raw) if protocol >= 5 else bytes(raw)
        return _restore, (values, self.epoch, self.batch)

    def _without_reserve(self) -> memoryview | bytearray:
        """The batch's bytes, less the room that was reserved for vertices and never used."""
        raw = _memory.owned_view(self._data, self._size, self._memory)
        header = _memory.read_int64(self._data, _HEADER_WORDS)
        nodes, index = header[_NODES], header[_OUTPUT_INDEX]
        end = nodes + len(self.input_nodes) * self.input_nodes._bits // 8
        # What lies behind stays on cache lines of its own.
        gap = (index - end) // 64 * 64
        if gap < _WORTH_A_COPY:
            return raw
        packed = bytearray(self._size - gap)
        packed[:end] = raw[:end]
        packed[index - gap :] = raw[index:]
        count = _HEADER_WORDS + WORDS * len(self.blocks)
        words = memoryview(packed)[: 8 * count].cast("q")
        offsets = [_OUTPUT_NODES, _OUTPUT_INDEX, _SIZE]
        for block in range(_HEADER_WORDS, count, WORDS):
            offsets += range(block + FIRST_OFFSET, block + FIRST_OFFSET + OFFSETS)
        for at in offsets:
            if words[at] > nodes:
                words[at] -= gap
        return packed

    def _parts(self, convert: Callable[[Array], Any], block_type: Callable[..., Any]) -> Any:
        """The arguments of a converted batch; vertices are converted once, and then sliced."""
        nodes = convert(self.input_nodes)
        blocks = tuple(
            block_type(
                convert(block.indptr),
                convert(block.indices),
                convert(block.edge_ids),
                nodes[: block.num_src_nodes],
                nodes[: block.num_dst_nodes],
            )
            for block in self.blocks
        )
        output_nodes, output_index = convert(self._output_nodes), convert(self._output_index)
        return nodes, output_nodes, output_index, blocks, self.epoch, self.batch


def _restore(values: Any, epoch: int, batch: int) -> MiniBatch:
    buffer = memoryview(values)
    address = _input._address_of(buffer)
    if buffer.readonly or address % 8:
        # A batch may be written to; and bytes handed over out of band may lie anywhere.
        buffer = memoryview(bytearray(buffer))
        address = _input._address_of(buffer)
    return MiniBatch._read(buffer, address, epoch, batch)
