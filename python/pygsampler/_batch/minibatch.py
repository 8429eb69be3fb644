"""``MiniBatch``: what one call of a sampler returns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._batch import buffer as batch_buffer
from pygsampler._batch import layout as at
from pygsampler._batch.array_sources import HostSource, TensorSource
from pygsampler._batch.block import Block
from pygsampler._batch.buffer import check_signature, edges_of_blocks
from pygsampler._batch.edge_values import NO_VALUES, EdgeValueName, split_edge_values
from pygsampler._batch.exports import Exports
from pygsampler._batch.html_tables import blocks_html
from pygsampler._batch.packing import pack_batch
from pygsampler._batch.torch_minibatch import (
    ArrowBlock,
    ArrowMiniBatch,
    NumpyBlock,
    NumpyMiniBatch,
    TorchMiniBatch,
    arrow_array,
)
from pygsampler._engine import memory as memories
from pygsampler._engine.array_descriptor import ArrayDescriptor, dense_shape
from pygsampler._engine.memory import Memory, from_pickle, to_pickle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["ArrowMiniBatch", "MiniBatch", "NumpyMiniBatch", "TorchMiniBatch"]


def __dir__() -> list[str]:
    return sorted(__all__)


# A pickle of less reserve than this is not worth a copy.
_WORTH_A_COPY = 1 << 12
_DESCRIBED = frozenset({"_data", "_device", "_extra_words", "_size", "_words"})
# By its kind: values, or vertices.
_EXTRAS = (
    ArrayDescriptor("values", "float32", at.EXTRA_LENGTH, 0, at.EXTRA_OFFSET),
    ArrayDescriptor("vertices", at.ID_BITS, at.EXTRA_LENGTH, 0, at.EXTRA_OFFSET),
)
_PARTS = frozenset({"_input_nodes", "_output_index", "_output_nodes", "_subgraph_ids", "blocks"})


class MiniBatch(Exports):
    """The sampled neighbourhood of some seeds: one block a hop, and the vertices they touch.

    ``blocks`` has the outermost hop first: ``blocks[-1]`` leads into the seeds, and the
    destinations of each block are the sources of the next. A seed that was given twice is kept
    twice in ``output_nodes`` and is one vertex of the last block; ``output_index`` says which.
    With ``frontier="new"`` all blocks number the vertices alike, by their place in
    ``input_nodes``, and the destinations of a block are those that the hop before it found.

    All arrays are views of one memory block, which lives as long as any of them. Pickling stores
    that block. A batch of a graph on a GPU is on that GPU, complete for every stream; ``cpu()``
    copies it.
    """

    __slots__ = (
        "__weakref__",
        "_data",
        "_device",
        "_extra_words",
        "_input_nodes",
        "_memory",
        "_names",
        "_output_index",
        "_output_nodes",
        "_size",
        "_subgraph_ids",
        "_words",
        "batch",
        "blocks",
        "epoch",
    )

    # What it becomes in the arrays of another library.
    _torch: ClassVar[type[TorchMiniBatch]] = TorchMiniBatch
    _numpy: ClassVar[type[NumpyMiniBatch]] = NumpyMiniBatch
    _arrow: ClassVar[type[ArrowMiniBatch]] = ArrowMiniBatch

    blocks: tuple[Block, ...]
    epoch: int
    batch: int
    _memory: Memory | memoryview
    _data: int
    _size: int
    # -1, or the index of the CUDA device.
    _device: int
    # What describes the batch: see _batch.layout.
    _words: list[int]
    # What describes the arrays beside the blocks, and their names.
    _extra_words: list[int]
    _names: tuple[str | EdgeValueName, ...]
    _input_nodes: Array
    _output_nodes: Array
    _output_index: Array
    _subgraph_ids: Array | None

    def __init__(self) -> None:
        raise TypeError("MiniBatch: made by PGSampler.sample")

    @classmethod
    def from_blocks(
        cls,
        seeds: Any,
        nodes: Any,
        blocks: Sequence[Any],
        *,
        output_index: Any = None,
        epoch: int = 0,
        batch: int = 0,
    ) -> MiniBatch:
        """A batch of arrays on the CPU, for a ``Sampler`` of your own; they are copied.

        Parameters
        ----------
        seeds : int32 or int64, shape [N]
            As they were given, duplicates kept.
        nodes : int32 or int64, shape [V]
            Original ids of the vertices, distinct, the seeds first; their dtype is the batch's.
        blocks : sequence of (indptr, indices, edge_ids) or (indptr, indices, edge_ids, dst_offset)
            Outermost first. Destination i is ``nodes[dst_offset + i]``, and ``indices`` are places
            in ``nodes``. The sources of the first block are all nodes, those of another the nodes
            up to the last destination of the block before it.
        output_index : int32 or int64, shape [N], optional
            For each seed its row in the last block; 0, 1, 2, ... when not given.
        epoch, batch : int
            The numbers that it is a function of.

        Raises
        ------
        TypeError, ValueError
            For arrays of another dtype, shape or range, naming the array.
        """
        region = memoryview(pack_batch(seeds, nodes, blocks, output_index))
        address = memories.address_of(region)
        return cls._read(region, address, address, devices.CPU, epoch, batch)

    @classmethod
    def _of(
        cls, memory: Memory, epoch: int, batch: int, names: tuple[str | EdgeValueName, ...] = ()
    ) -> MiniBatch:
        """Of a batch of the engine's; what is in it is looked at when it is asked for."""
        made = object.__new__(cls)
        made._memory = memory
        made._names = names
        made.epoch = epoch
        made.batch = batch
        return made

    @classmethod
    def _read(
        cls,
        memory: Memory | memoryview,
        data: int,
        header: int,
        device: int,
        epoch: int,
        batch: int,
        names: tuple[str | EdgeValueName, ...] = (),
    ) -> MiniBatch:
        made = object.__new__(cls)
        made._memory = memory
        made._names = names
        made.epoch = epoch
        made.batch = batch
        made._describe(data, header, device)
        return made

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in _DESCRIBED:
                memory = self._memory
                self._describe(memory.data, memory.header, memory.device)
            elif name in _PARTS:
                self._make_parts()
            else:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            return getattr(self, name)

    def _describe(self, data: int, header: int, device: int) -> None:
        magic, _, hops = memories.read_int64(header, at.NUM_HOPS + 1)
        check_signature(magic, at.MAGIC)
        count = at.num_words(hops)
        words = memories.read_int64(header, count + len(self._names) * at.EXTRA_WORDS)
        self._extra_words = words[count:]
        del words[count:]
        self._words = words
        self._data = data
        self._size = words[at.SIZE]
        self._device = device

    def _make_parts(self) -> None:
        memory, data, words, device = self._memory, self._data, self._words, self._device
        nodes, output_nodes, output_index, self._subgraph_ids = (
            Array._of_row(row, words, words, data, memory, device) for row in at.ROWS
        )
        assert nodes is not None
        assert output_nodes is not None
        assert output_index is not None
        self._output_nodes, self._output_index = output_nodes, output_index
        self._input_nodes = nodes
        blocks: list[Block] = []
        before = 0
        dst: list[Memory] = []
        _, named = self._named()
        end = at.edge_id_bits_at(words[at.NUM_HOPS])
        widths = [0, words[at.ID_BITS], words[end]]
        for start in range(at.FIRST_BLOCK, end, at.WORDS):
            of_block = words[start : start + at.WORDS]
            of_edges = named.get(len(blocks), NO_VALUES)
            blocks.append(Block._of(memory, data, nodes, of_block, widths, before, dst, of_edges))
            before += of_block[at.NUM_EDGES]
        # Last: another thread that finds them finds all.
        self.blocks = tuple(blocks)

    @property
    def device(self) -> str:
        """Where all arrays are: ``"cpu"`` or, for one, ``"cuda:0"``."""
        return devices.name(self._device)

    @property
    def input_nodes(self) -> Array:
        """Original ids of the vertices whose features are needed, in the graph's id dtype.

        The seeds are first; these are the sources of ``blocks[0]``.
        """
        return self._input_nodes

    @property
    def output_nodes(self) -> Array:
        """The seeds as they were given, duplicates kept: shape [N], in the graph's id dtype."""
        return self._output_nodes

    @property
    def output_index(self) -> Array:
        """For each seed its row in ``blocks[-1]``: ``h[output_index]`` has a row for each seed.

        Shape [N], in the graph's id dtype. Where no seed was given twice it is 0, 1, 2, ...
        """
        return self._output_index

    @property
    def subgraph_ids(self) -> Array | None:
        """For each of ``input_nodes`` which seed's tree it is in, in the graph's id dtype.

        None without ``disjoint=True``.
        """
        return self._subgraph_ids

    @property
    def extra(self) -> Mapping[str, Array]:
        """What a program has returned beside its blocks, by name: float32, rows of it, or ids."""
        return self._named()[0]

    def _named(self) -> tuple[dict[str, Array], dict[int, dict[str, Array]]]:
        """The arrays beside the blocks, and those of their edges."""
        if not self._names:
            return {}, {}
        words, found = self._extra_words, []
        for name, start in zip(self._names, range(0, len(words), at.EXTRA_WORDS), strict=True):
            about = words[start : start + at.EXTRA_WORDS]
            row = _EXTRAS[about[at.EXTRA_KIND]]
            array = Array._of_row(row, about, self._words, self._data, self._memory, self._device)
            assert array is not None
            if width := about[at.EXTRA_WIDTH]:
                array._shown_as("float32", dense_shape(about[at.EXTRA_LENGTH], width))
            found.append((name, array))
        return split_edge_values(found)

    @property
    def num_edges(self) -> int:
        """Number of sampled edges of all blocks."""
        return sum(edges_of_blocks(self._words))

    def torch(self) -> TorchMiniBatch:
        """The same batch with torch tensors, which share its memory; each made when it is used."""
        views: HostSource | TensorSource
        if self._device < 0:
            views = HostSource(self._memory, self._data, self._words)
        else:
            # The memory is larger than the batch's last array: whole words of 8 bytes.
            bits = self._words[at.ID_BITS]
            length = (self._size + 7) // 8 * 64 // bits
            region = Array._of(self._data, length, bits, self._memory, device=self._device)
            views = TensorSource(region.torch(), self._words, self._device)
        beside, of_edges = self._named()
        extra = {name: array.torch() for name, array in beside.items()}
        named = {
            place: {name: array.torch() for name, array in arrays.items()}
            for place, arrays in of_edges.items()
        }
        return self._torch._of(views, self.epoch, self.batch, extra, named)

    def cpu(self) -> MiniBatch:
        """This batch on the CPU: itself, or a copy of a batch on a device."""
        if self._device < 0:
            return self
        words = [*self._words, *self._extra_words]
        memory = batch_buffer.copy_to_host(
            self._data, self._size, words, self._memory, self._device
        )
        numbers = self.epoch, self.batch
        return self._read(memory, memory.data, memory.data, devices.CPU, *numbers, self._names)

    def numpy(self) -> NumpyMiniBatch:
        """The same batch with NumPy arrays, which share its memory.

        TypeError for a batch on a device, which ``cpu()`` copies.
        """
        self._need_cpu("numpy")
        return self._numpy(*self._parts(Array.numpy, NumpyBlock))

    def arrow(self) -> ArrowMiniBatch:
        """The same batch with pyarrow arrays, which share its memory.

        TypeError for a batch on a device, which ``cpu()`` copies; ImportError without pyarrow.
        """
        self._need_cpu("arrow")
        return self._arrow(*self._parts(arrow_array, ArrowBlock))

    def __repr__(self) -> str:
        hops = ", ".join(
            f"{block.num_src_nodes}->{block.num_dst_nodes} by {block.num_edges}"
            for block in self.blocks
        )
        return (
            f"MiniBatch(seeds={len(self._output_nodes)}, input_nodes={len(self.input_nodes)}, "
            f"blocks=[{hops}], dtype={self._output_nodes.dtype}, "
            f"epoch={self.epoch}, batch={self.batch}{self._where()})"
        )

    def _repr_html_(self) -> str:
        title = (
            f"{type(self).__name__} of {len(self._output_nodes):,} seeds, "
            f"{self._output_nodes.dtype}, epoch {self.epoch}, batch {self.batch}"
            f"{self._where()}"
        )
        return blocks_html(title, self.blocks)

    def _where(self) -> str:
        return "" if self._device < 0 else f", device={self.device}"

    def _need_cpu(self, what: str) -> None:
        if self._device >= 0:
            raise TypeError(
                f"MiniBatch.{what}: expected a batch on the CPU, got one on {self.device}; "
                ".cpu() copies it"
            )

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        self._need_cpu("pickle")
        values = to_pickle(self._without_reserve(), protocol)
        return _from_pickle, (values, self.epoch, self.batch, type(self), self._names)

    def _without_reserve(self) -> memoryview | bytearray:
        """The batch's bytes, less the room that was reserved for vertices and never used."""
        raw = memories.buffer_view(self._data, self._size, self._memory)
        nodes, index = self._words[at.NODES], self._words[at.OUTPUT_INDEX]
        end = nodes + len(self.input_nodes) * self.input_nodes._bits // 8
        # What lies behind stays on cache lines of its own. With trees nothing does.
        gap = (index - end) // 64 * 64
        if gap < _WORTH_A_COPY:
            return raw
        packed = bytearray(self._size - gap)
        packed[:end] = raw[:end]
        packed[index - gap :] = raw[index:]
        count = len(self._words)
        words = memoryview(packed)[: 8 * count].cast("q")
        offsets = [at.OUTPUT_NODES, at.OUTPUT_INDEX, at.SIZE]
        for block in range(at.FIRST_BLOCK, at.edge_id_bits_at(words[at.NUM_HOPS]), at.WORDS):
            offsets += range(block + at.FIRST_OFFSET, block + at.FIRST_OFFSET + at.OFFSETS)
            offsets.append(block + at.EDGE_WEIGHTS)
        for place in offsets:
            if words[place] > nodes:
                words[place] -= gap
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
                nodes[block.dst_offset : block.dst_offset + block.num_dst_nodes],
                block.dst_offset,
                None if block.edge_weights is None else convert(block.edge_weights),
                {name: convert(values) for name, values in block.edge_values.items()},
            )
            for block in self.blocks
        )
        output_nodes, output_index = convert(self._output_nodes), convert(self._output_index)
        subgraph_ids = None if self._subgraph_ids is None else convert(self._subgraph_ids)
        extra = {name: convert(array) for name, array in self.extra.items()}
        return (
            nodes,
            output_nodes,
            output_index,
            blocks,
            self.epoch,
            self.batch,
            subgraph_ids,
            extra,
        )


def _from_pickle(
    values: Any,
    epoch: int,
    batch: int,
    kind: type[MiniBatch] = MiniBatch,
    names: tuple[str | EdgeValueName, ...] = (),
) -> MiniBatch:
    buffer, address = from_pickle(values)
    return kind._read(buffer, address, address, devices.CPU, epoch, batch, names)
