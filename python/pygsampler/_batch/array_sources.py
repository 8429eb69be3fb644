"""Sources of the arrays of a mini-batch: each array is created when it is first needed."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array, _copy_to_device
from pygsampler._batch import buffer
from pygsampler._batch import layout as at
from pygsampler._batch.buffer import check_signature, edges_of_blocks
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._engine.array_descriptor import ArrayDescriptor, dense_shape
from pygsampler._engine.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import torch

    from pygsampler._graph.schema import Schema

TYPE_ROWS = {row.name: row for row in at.TYPE_ROWS}
BLOCK_ROWS = {row.name: row for row in at.BLOCK_ROWS}
NODE_ARRAYS = tuple(TYPE_ROWS)
BLOCK_ARRAYS = *BLOCK_ROWS, "src_nodes", "dst_nodes"
# Extra arrays by their kind: values, or nodes.
_EXTRAS = (
    ArrayDescriptor("values", "float32", at.EXTRA_LENGTH, 0, at.EXTRA_OFFSET),
    ArrayDescriptor("vertices", at.ID_BITS, at.EXTRA_LENGTH, 0, at.EXTRA_OFFSET),
)
# A pickle of less unused room than this is not worth a copy.
_WORTH_A_COPY = 1 << 12


class ArraySource(Protocol):
    """The arrays of a mini-batch, in the arrays of one library.

    A source must not refer to its batch: a reference cycle would keep the memory until the next
    collection. ``place`` is the number of a block: hop * relations + relation.
    """

    form: str
    schema: Schema | None
    """The types of a heterogeneous graph; None for a homogeneous graph."""

    @property
    def device(self) -> Any: ...

    def hops(self) -> int: ...

    def num_edges(self) -> int:
        """Returns the number of edges of all blocks."""
        ...

    def node_array(self, name: str, node_type: int = 0) -> Any:
        """Returns ``input_nodes``, ``output_nodes``, ``output_index`` or ``subgraph_ids``."""
        ...

    def node_counts(self, node_type: int = 0) -> list[int]:
        """Returns how many nodes a type had when each hop began, and in the end."""
        ...

    def block_arrays(self, place: int, name: str) -> Mapping[str, Any]:
        """Returns the array of a block by its name, and the arrays that are created with it."""
        ...

    def block_sizes(self, place: int) -> tuple[int, int, int, int]:
        """Returns the number of sources, destinations and edges, and the destinations' offset."""
        ...

    def destinations(self, place: int) -> Any:
        """Returns the destination of each edge; None if the caller has to compute them."""
        ...

    def edge_index(self, place: int) -> Any:
        """Returns sources and destinations, int64; None if the caller has to compute them."""
        ...

    def extras(self, count: int) -> list[Any]:
        """Returns the arrays that a program returned in addition to its blocks."""
        ...

    def moved(self, move: Any) -> ArraySource | None:
        """Returns all tensors, moved at once; None if they have to be moved one by one."""
        ...


class LazyAttribute:
    """An attribute that is created when it is first used, and then found in the instance.

    A class's ``__getattr__`` would do the same, in three times the time: Python makes an
    AttributeError before it calls that. ``create`` gets the instance's dictionary, the source of
    its arrays and the name of the attribute.
    """

    __slots__ = ("_create", "_name")

    def __init__(self, create: Callable[[dict[str, Any], Any, str], Any]) -> None:
        self._create = create

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        known = instance.__dict__
        source = known.get("_source")
        if source is None:
            source = instance._source
        return self._create(known, source, self._name)


class HeaderSource:
    """The numbers of a batch, by the words of its header."""

    __slots__ = ("_start", "_words", "schema")

    schema: Schema | None
    _words: Sequence[int]
    # The first word of the blocks.
    _start: int

    def _describe(self, words: Sequence[int], schema: Schema | None) -> None:
        self._words = words
        self.schema = schema
        self._start = at.FIRST_BLOCK if schema is None else at.first_block(len(schema.node_types))

    def hops(self) -> int:
        return self._words[at.NUM_HOPS]

    def num_edges(self) -> int:
        return sum(edges_of_blocks(self._words))

    def block_sizes(self, place: int) -> tuple[int, int, int, int]:
        block = self._start + at.WORDS * place
        num_src, num_dst, num_edges = self._words[block : block + 3]
        return num_src, num_dst, num_edges, self._words[block + at.FIRST_DST]

    def node_counts(self, node_type: int = 0) -> list[int]:
        words, schema = self._words, self.schema
        hops = words[at.NUM_HOPS]
        if schema is None:
            return plain_node_counts([self.block_sizes(place) for place in range(hops)])
        start = at.counts_at(hops, *map(len, schema)) + node_type * (hops + 1)
        return list(words[start : start + hops + 1])

    def _edge_id_bits(self, place: int) -> int:
        words, schema = self._words, self.schema
        if schema is None:
            return words[at.edge_id_bits_at(words[at.NUM_HOPS])]
        types, relations = map(len, schema)
        return words[at.edge_id_bits_at(words[at.NUM_HOPS], types, relations) + place % relations]

    def _node_words(self, node_type: int) -> Sequence[int]:
        start = at.FIXED_WORDS + at.TYPE_WORDS * node_type
        return self._words[start : start + at.TYPE_WORDS]

    def _block_words(self, place: int) -> Sequence[int]:
        start = self._start + at.WORDS * place
        return self._words[start : start + at.WORDS]

    def _extra_words(self, count: int) -> list[Sequence[int]]:
        words = self._words
        start = len(words) - at.EXTRA_WORDS * count
        return [words[i : i + at.EXTRA_WORDS] for i in range(start, len(words), at.EXTRA_WORDS)]

    def _end_types(self, place: int) -> tuple[int, int]:
        """Returns the places of the types of a block's sources and destinations."""
        schema = self.schema
        if schema is None:
            return 0, 0
        ends = relation_ends(schema)
        return ends[place % len(ends)]


class EngineSource(HeaderSource):
    """The arrays of a batch in a memory of the engine, or in bytes of the same layout."""

    __slots__ = ("_data", "_device", "_dst", "_is_moved", "_memory", "_nodes")

    form = "array"

    def __init__(
        self,
        memory: Memory | memoryview | torch.Tensor,
        address: int,
        header: int,
        device: int,
        schema: Schema | None = None,
        extras: int = 0,
        words: list[int] | None = None,
    ) -> None:
        """``words`` is the header if the caller has it; else it is read at ``header``."""
        self._is_moved = words is not None
        if words is None:
            magic, _, hops = memories.read_int64(header, at.NUM_HOPS + 1)
            check_signature(magic, at.MAGIC)
            about = (hops,) if schema is None else (hops, *map(len, schema))
            words = memories.read_int64(header, at.num_words(*about) + at.EXTRA_WORDS * extras)
        self._describe(words, schema)
        self._memory, self._data, self._device = memory, address, device
        self._nodes: dict[int, Array] = {}
        # The destinations of edges: of each block, or of a batch on a device of all together.
        self._dst: dict[int, Array] = {}

    @property
    def device(self) -> str:
        return devices.name(self._device)

    def node_array(self, name: str, node_type: int = 0) -> Array | None:
        if name == "input_nodes" and node_type in self._nodes:
            return self._nodes[node_type]
        of_type, where = self._node_words(node_type), (self._data, self._memory, self._device)
        array = Array._of_row(TYPE_ROWS[name], of_type, self._words, *where)
        if name == "input_nodes":
            assert array is not None
            self._nodes[node_type] = array
        return array

    def block_arrays(self, place: int, name: str) -> Mapping[str, Array | None]:
        words, row, start = self._words, BLOCK_ROWS.get(name), self._start + at.WORDS * place
        if row is not None:
            _, width, length, more, offset = row
            first = words[start + offset]
            if not first:
                return {name: None}
            where = self._data + first, words[start + length] + more
            if width == at.WIDTH_IDS:
                bits = words[at.ID_BITS]
            elif width == at.WIDTH_EDGE_IDS:
                bits = self._edge_id_bits(place)
            else:
                values = Array._from_address(*where, 32, self._memory, device=self._device)
                values._shown_as("float32", (values._length,))
                return {name: values}
            return {name: Array._from_address(*where, bits, self._memory, device=self._device)}
        src, dst = (0, 0) if self.schema is None else self._end_types(place)
        if name == "src_nodes":
            nodes, first, count = src, 0, words[start + at.NUM_SRC]
        else:
            nodes, first, count = dst, words[start + at.FIRST_DST], words[start + at.NUM_DST]
        whole = self._nodes.get(nodes) or self.node_array("input_nodes", nodes)
        assert whole is not None
        return {name: whole[first : first + count]}

    def destinations(self, place: int) -> Array:
        result = self._dst.get(place)
        if result is None:
            result = self._dst[place] = self._expand(place)
        return result

    def _expand(self, place: int) -> Array:
        words, bits, device = self._block_words(place), self._words[at.ID_BITS], self._device
        count = words[at.NUM_EDGES]
        memory = self._memory
        if device < 0 or self.schema is not None or self._is_moved:
            # No kernel writes the destinations of heterogeneous batches: they come from the CPU.
            indptr = self.block_arrays(place, "indptr")["indptr"]
            assert indptr is not None
            rows = indptr if device < 0 else indptr.cpu()
            sizes = words[at.NUM_DST], words[at.FIRST_DST], bits
            made = memories.new("ExpandRows", rows._address, *sizes)
            result = Array._from_address(made.data, count, bits, made)
            return result if device < 0 else _copy_to_device(result, device)
        assert isinstance(memory, Memory)
        made = memories.new("DeviceDestinations", memory.address, devices.current_stream(device))
        address = made.data
        for block, edges in enumerate(edges_of_blocks(self._words)):
            self._dst[block] = Array._from_address(address, edges, bits, made, device=device)
            address += edges * bits // 8
        return self._dst[place]

    def edge_index(self, place: int) -> None:
        return None

    def capsule(self, place: int, name: str) -> Any:
        """Returns DLPack's capsule of integers of a block on the CPU, without an `Array`."""
        memory = self._memory
        if type(memory) is not Memory or not memory.is_of(library.generation()):
            array = self.block_arrays(place, name)[name]
            assert array is not None
            return array._capsule(copy=False, versioned=False)
        _, bits, length, more, offset = BLOCK_ROWS[name]
        words, widths = self._block_words(place), (0, self._words[at.ID_BITS])
        assert isinstance(bits, int)
        width = widths[bits] if bits == at.WIDTH_IDS else self._edge_id_bits(place)
        return memories.capsule(memory, self._data + words[offset], words[length] + more, width)

    def extras(self, count: int) -> list[Array]:
        result = []
        for words in self._extra_words(count):
            row, where = _EXTRAS[words[at.EXTRA_KIND]], (self._data, self._memory, self._device)
            array = Array._of_row(row, words, self._words, *where)
            assert array is not None
            if width := words[at.EXTRA_WIDTH]:
                array._shown_as("float32", dense_shape(words[at.EXTRA_LENGTH], width))
            result.append(array)
        return result

    def on_cpu(self) -> EngineSource:
        """Returns a copy on the CPU of a batch on a device."""
        size, words = self._words[at.SIZE], self._words
        memory = buffer.copy_to_host(self._data, size, words, self._memory, self._device)
        return EngineSource(memory, memory.data, 0, devices.CPU, self.schema, words=list(words))

    def on_device(self, device: int) -> EngineSource:
        """Returns a copy on a device of a batch on the CPU; its header stays on the host."""
        size = self._words[at.SIZE]
        memory = _copy_to_device(
            Array._from_address(self._data, size // 4, 32, self._memory), device
        )._owner
        assert isinstance(memory, Memory)
        words = list(self._words)
        return EngineSource(memory, memory.data, 0, device, self.schema, words=words)

    def moved(self, move: Any) -> None:
        return None

    def packed(self) -> memoryview | bytearray:
        """Returns the batch's bytes, less the room that was reserved for nodes and never used."""
        words = self._words
        raw = memories.buffer_view(self._data, words[at.SIZE], self._memory)
        if self.schema is not None:
            return raw
        nodes, index = words[at.NODES], words[at.OUTPUT_INDEX]
        end = nodes + words[at.NUM_NODES] * words[at.ID_BITS] // 8
        # The arrays behind stay on cache lines. With subgraph ids there is no room in between.
        gap = (index - end) // 64 * 64
        if gap < _WORTH_A_COPY:
            return raw
        packed = bytearray(words[at.SIZE] - gap)
        packed[:end] = raw[:end]
        packed[index - gap :] = raw[index:]
        changed = memoryview(packed)[: 8 * at.num_words(words[at.NUM_HOPS])].cast("q")
        offsets = [at.OUTPUT_NODES, at.OUTPUT_INDEX, at.SIZE]
        for block in range(at.FIRST_BLOCK, at.edge_id_bits_at(words[at.NUM_HOPS]), at.WORDS):
            offsets += range(block + at.FIRST_OFFSET, block + at.FIRST_OFFSET + at.OFFSETS)
            offsets.append(block + at.EDGE_WEIGHTS)
        for place in offsets:
            if changed[place] > nodes:
                changed[place] -= gap
        return packed


class StoredSource:
    """The arrays of a batch, each stored by itself: in NumPy, Arrow, or moved torch tensors.

    ``nodes`` has for each name of `ArraySource.node_array` the arrays of all node types, ``blocks``
    the arrays of each block by their names, and ``sizes`` what `ArraySource.block_sizes` returns.
    """

    def __init__(
        self,
        form: str,
        schema: Schema | None,
        nodes: Mapping[str, Sequence[Any]],
        blocks: Sequence[Mapping[str, Any]],
        sizes: Sequence[tuple[int, int, int, int]],
        counts: Sequence[list[int]] | None = None,
        extras: Sequence[Any] = (),
    ) -> None:
        self.form = form
        self.schema = schema
        self._nodes = nodes
        self._blocks = blocks
        self._sizes = sizes
        # The nodes of each type when each hop began; None for a homogeneous graph.
        self._counts = counts
        self._extras = extras

    @classmethod
    def converted(cls, source: ArraySource, form: str, extras: int, convert: Any) -> StoredSource:
        """Returns the arrays of another source, each of them converted."""
        types = range(1 if source.schema is None else len(source.schema.node_types))
        counts = None
        if source.schema is not None:
            counts = [source.node_counts(node_type) for node_type in types]

        def converted(array: Any) -> Any:
            return None if array is None else convert(array)

        nodes = {
            name: [converted(source.node_array(name, node_type)) for node_type in types]
            for name in NODE_ARRAYS
        }
        blocks, sizes = [], []
        ends = [(0, 0)] if source.schema is None else relation_ends(source.schema)
        for place in range(source.hops() * len(ends)):
            block = {name: converted(source.block_arrays(place, name)[name]) for name in BLOCK_ROWS}
            num_src, num_dst, _, first = size = source.block_sizes(place)
            src, dst = (nodes["input_nodes"][end] for end in ends[place % len(ends)])
            block["src_nodes"], block["dst_nodes"] = src[:num_src], dst[first : first + num_dst]
            blocks.append(block)
            sizes.append(size)
        more = [converted(array) for array in source.extras(extras)]
        return cls(form, source.schema, nodes, blocks, sizes, counts, more)

    @property
    def device(self) -> Any:
        return self._nodes["input_nodes"][0].device if self.form == "torch" else "cpu"

    def hops(self) -> int:
        return len(self._sizes) // (1 if self.schema is None else len(self.schema.edge_types))

    def num_edges(self) -> int:
        return sum(size[2] for size in self._sizes)

    def node_array(self, name: str, node_type: int = 0) -> Any:
        return self._nodes[name][node_type]

    def node_counts(self, node_type: int = 0) -> list[int]:
        counts = self._counts
        return plain_node_counts(self._sizes) if counts is None else list(counts[node_type])

    def block_arrays(self, place: int, name: str) -> Mapping[str, Any]:
        return self._blocks[place]

    def block_sizes(self, place: int) -> tuple[int, int, int, int]:
        return self._sizes[place]

    def destinations(self, place: int) -> None:
        return None

    def edge_index(self, place: int) -> None:
        return None

    def extras(self, count: int) -> list[Any]:
        return list(self._extras)

    def moved(self, move: Any) -> None:
        return None


def block_sizes(arrays: Mapping[str, Any], dst_offset: Any = 0) -> tuple[int, int, int, Any]:
    """Returns the sizes of a block that has these arrays."""
    ends = len(arrays["src_nodes"]), len(arrays["dst_nodes"])
    return *ends, len(arrays["indices"]), dst_offset


@lru_cache(maxsize=64)
def relation_ends(schema: Schema) -> list[tuple[int, int]]:
    """Returns for each relation the places of the types of its sources and destinations."""
    places = {kind: place for place, kind in enumerate(schema.node_types)}
    return [(places[src], places[dst]) for src, _, dst in schema.edge_types]


def plain_node_counts(sizes: Sequence[tuple[int, int, int, int]]) -> list[int]:
    """Returns how many nodes a homogeneous batch had when each hop began, and in the end."""
    if not sizes:
        return [0]
    _, num_dst, _, first = sizes[-1]
    return [first + num_dst, *(block[0] for block in reversed(sizes))]
