"""Sources of torch tensors: on the memory of a batch, or cut out of one tensor."""

from __future__ import annotations

from array import array
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices, exchange
from pygsampler._arrays.array import Array
from pygsampler._batch import layout as at
from pygsampler._batch.array_sources import BLOCK_ROWS, NODE_ARRAYS, TYPE_ROWS, HeaderSource
from pygsampler._batch.coo_expansion import DESTINATIONS, PAIRS, CooExpander
from pygsampler._engine.array_descriptor import dense_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from pygsampler._batch.array_sources import EngineSource
    from pygsampler._graph.schema import Schema

_PLACES = {name: place for place, name in enumerate(NODE_ARRAYS)}


def torch_source(source: EngineSource) -> HostSource | TensorSource:
    """Returns the arrays of a batch of the engine as torch tensors, which share its memory."""
    words, device = source._words, source._device
    if device < 0:
        return HostSource(source)
    # The memory is larger than the batch's last array: it ends at a multiple of 8 bytes.
    bits = words[at.ID_BITS]
    length = (words[at.SIZE] + 7) // 8 * 64 // bits
    region = Array._from_address(source._data, length, bits, source._memory, device=device)
    if exchange.exchange_api():
        return DeviceSource(source, region)
    return TensorSource(region.torch(), words, device, schema=source.schema)


class TensorSource(HeaderSource):
    """Views of one tensor, which holds all arrays of a batch on a device.

    ``ids`` is the whole region as the ids' dtype, a multiple of 8 bytes long, and ``words``
    describes it. ``device`` is the index of the CUDA device whose engine can read it, or -1.
    If several batches share a region, this batch begins ``first`` bytes from its start, a multiple
    of 8: it takes a call of torch to cut a part out, and none to count from another start.
    ``edges`` expands the edges of all of them, and this batch is at ``place`` there.
    """

    form = "torch"
    # The region as the dtype of the edges' ids, by their bits.
    _edge_ids: torch.Tensor | None = None
    # The region as float32.
    _floats: torch.Tensor | None = None
    # The edges of all blocks, once the edges of one were asked for.
    _dst: Sequence[torch.Tensor] | None = None
    _pairs: Sequence[torch.Tensor] | None = None

    def __init__(
        self,
        ids: torch.Tensor,
        words: Sequence[int],
        device: int,
        first: int = 0,
        edges: CooExpander | None = None,
        place: int = 0,
        schema: Schema | None = None,
    ) -> None:
        self._ids = ids
        self._first = first
        self._edges = edges
        self._place = place
        self._device = device
        self._describe(words, schema)
        # log2 of an id's bytes.
        self._shift = 3 if words[at.ID_BITS] == 64 else 2
        # Tensors of ids that were asked for, by offset and length.
        self._made: dict[tuple[int, int], torch.Tensor] = {}

    @property
    def device(self) -> torch.device:
        return self._ids.device

    def node_array(self, name: str, node_type: int = 0) -> torch.Tensor | None:
        row, words = TYPE_ROWS[name], self._node_words(node_type)
        offset = words[row.offset]
        return self._ids_at(offset, words[row.length] + row.more) if offset else None

    def block_arrays(self, place: int, name: str) -> Mapping[str, torch.Tensor | None]:
        words = self._block_words(place)
        num_src, num_dst, edges, indptr, indices, edge_ids, first_dst = words[: at.FIRST_DST + 1]
        if name == "edge_weights":
            return {name: self._factors(words[at.EDGE_WEIGHTS], edges)}
        if name == "indices":
            return {name: self._ids_at(indices, edges)}
        src, dst = self._end_types(place)
        if name == "src_nodes":
            return {name: self._ids_at(self._node_words(src)[at.TYPE_NODES], num_src)}
        dst_nodes = self._node_words(dst)[at.TYPE_NODES] + (first_dst << self._shift)
        if name == "dst_nodes":
            return {name: self._ids_at(dst_nodes, num_dst)}
        # A caller of these asks for nearly all of them, and each time that a name is not there yet
        # costs as much as a tensor.
        bits = self._edge_id_bits(place)
        same_width = bits == self._words[at.ID_BITS]
        places = [
            (indptr, num_dst + 1, "indptr"),
            (indices, edges, "indices"),
            # Edge ids of another width cannot be split off a tensor of ids, so none are.
            (edge_ids, edges if same_width else 0, "edge_ids"),
        ]
        places.sort()
        # The ranges in between are split off too.
        sizes: list[int] = []
        end = 0
        for offset, length, _ in places:
            start = (self._first + offset) >> self._shift
            sizes += start - end, length
            end = start + length
        sizes.append(self._ids.numel() - end)
        # "Unsafe" says that torch does not count writes to one as writes to the others, which have
        # no element in common.
        pieces = self._ids.unsafe_split_with_sizes(sizes)
        result: dict[str, torch.Tensor | None]
        result = {name: piece for (_, _, name), piece in zip(places, pieces[1::2], strict=True)}
        if not same_width:
            result["edge_ids"] = self._of_edges(edge_ids, edges, bits)
        if self.schema is None:
            result["src_nodes"] = self._ids_at(self._words[at.NODES], num_src)
            result["dst_nodes"] = self._ids_at(dst_nodes, num_dst)
        return result

    def extras(self, count: int) -> list[torch.Tensor]:
        result = []
        for words in self._extra_words(count):
            length, offset = words[at.EXTRA_LENGTH], words[at.EXTRA_OFFSET]
            if words[at.EXTRA_KIND]:
                result.append(self._ids_at(offset, length))
                continue
            values = self._factors(offset, length)
            assert values is not None
            width = words[at.EXTRA_WIDTH]
            result.append(values.view(dense_shape(length, width)) if width else values)
        return result

    def _ids_at(self, offset: int, length: int) -> torch.Tensor:
        """Returns ids: one tensor for several names of the same ids, as many are."""
        result = self._made.get((offset, length))
        if result is None:
            start = (self._first + offset) >> self._shift
            result = self._made[offset, length] = self._ids[start : start + length]
        return result

    def destinations(self, place: int) -> torch.Tensor | None:
        if self._device < 0 or self.schema is not None:
            return None
        result = self._dst
        if result is None:
            result = self._dst = self._expand(DESTINATIONS)
        return result[place]

    def edge_index(self, place: int) -> torch.Tensor | None:
        if self._device < 0 or self.schema is not None:
            return None
        result = self._pairs
        if result is None:
            result = self._pairs = self._expand(PAIRS)
        return result[place]

    def _expand(self, kind: int) -> list[torch.Tensor]:
        edges = self._edges
        if edges is None:
            edges = self._edges = CooExpander(self._ids, self._device, self._shift == 3, set())
            self._place = edges.add(self._words, self._first)
        return edges.block_arrays(self._place, kind)

    def moved(self, move: Any) -> TensorSource:
        # Without the bytes behind the batch, which the next batch may need, and other batches.
        used = (self._words[at.SIZE] + 7) // 8 * 8 >> self._shift
        first = self._first >> self._shift
        ids = move(self._ids[first : first + used])
        device = ids.get_device() if ids.is_cuda else devices.CPU
        return TensorSource(ids, self._words, device, schema=self.schema)

    def _of_edges(self, offset: int, length: int, bits: int) -> torch.Tensor:
        whole = self._edge_ids
        if whole is None:
            import torch

            # Ids of edges have one of two widths, and these are not the width of nodes' ids.
            whole = self._edge_ids = self._ids.view(torch.int64 if bits == 64 else torch.int32)
        start = (self._first + offset) * 8 // bits
        return whole[start : start + length]

    def _factors(self, offset: int, length: int) -> torch.Tensor | None:
        if not offset:
            return None
        if self._floats is None:
            import torch

            self._floats = self._ids.view(torch.float32)
        start = (self._first + offset) // 4
        return self._floats[start : start + length]


class HostSource(HeaderSource):
    """The arrays of a batch in the engine's memory as torch tensors, each with its own storage.

    Tensors of nodes are parts of one tensor for each type. If torch has DLPack's C exchange API,
    one call creates all tensors when the first is needed; else each is created by itself.
    """

    __slots__ = ("_base", "_parts", "_tensors")

    form = "torch"

    def __init__(self, base: EngineSource) -> None:
        self._base = base
        self._words, self.schema, self._start = base._words, base.schema, base._start
        self._tensors: Sequence[torch.Tensor | None] = ()
        # Nodes by their type, the first of them, and their number.
        self._parts: dict[tuple[int, int, int], torch.Tensor] = {}
        if not exchange.exchange_api():
            # At once, so that a missing torch is told at once.
            self.node_array("input_nodes")

    @property
    def device(self) -> torch.device:
        nodes = self.node_array("input_nodes")
        assert nodes is not None
        return nodes.device

    def node_array(self, name: str, node_type: int = 0) -> torch.Tensor | None:
        if name == "input_nodes":
            number = self._words[at.FIXED_WORDS + at.TYPE_WORDS * node_type + at.TYPE_NUM_NODES]
            return self._nodes(node_type, 0, number)
        tensors = self._tensors or self._create()
        if tensors:
            return tensors[len(NODE_ARRAYS) * node_type + _PLACES[name]]
        values = self._base.node_array(name, node_type)
        return None if values is None else values.torch()

    def block_arrays(self, place: int, name: str) -> Mapping[str, torch.Tensor | None]:
        schema = self.schema
        if schema is not None and name not in BLOCK_ROWS:
            return {name: self._end(place, name)}
        tensors = self._tensors or self._create()
        if not tensors and name in BLOCK_ROWS:
            values = self._base.block_arrays(place, name)[name]
            return {name: None if values is None else values.torch()}
        first = len(NODE_ARRAYS) * (1 if schema is None else len(schema.node_types))
        first += len(BLOCK_ROWS) * place
        result = dict(zip(BLOCK_ROWS, tensors[first : first + len(BLOCK_ROWS)], strict=False))
        if schema is None:
            words, block = self._words, at.FIRST_BLOCK + at.WORDS * place
            result["src_nodes"] = self._nodes(0, 0, words[block + at.NUM_SRC])
            dst = words[block + at.FIRST_DST], words[block + at.NUM_DST]
            result["dst_nodes"] = self._nodes(0, *dst)
        return result

    def _end(self, place: int, name: str) -> torch.Tensor:
        """Returns the sources or destinations of a block of a heterogeneous graph."""
        num_src, num_dst, _, first = self.block_sizes(place)
        src, dst = self._end_types(place)
        if name == "src_nodes":
            return self._nodes(src, 0, num_src)
        return self._nodes(dst, first, num_dst)

    def _nodes(self, node_type: int, first: int, count: int) -> torch.Tensor:
        part = self._parts.get((node_type, first, count))
        if part is None:
            start = at.FIXED_WORDS + at.TYPE_WORDS * node_type
            number = self._words[start + at.TYPE_NUM_NODES]
            if first or count != number:
                part = self._nodes(node_type, 0, number)[first : first + count]
            else:
                part = self._all_nodes(node_type, start, number)
            self._parts[node_type, first, count] = part
        return part

    def _all_nodes(self, node_type: int, start: int, number: int) -> torch.Tensor:
        tensors, words, base = self._tensors, self._words, self._base
        if tensors:
            nodes = tensors[len(NODE_ARRAYS) * node_type]
        elif (api := exchange.exchange_api()) and self.schema is None:
            # By itself: who reads features of a batch needs no more, and others lose little.
            address = base._data + words[start + at.TYPE_NODES]
            bits = words[at.ID_BITS]
            return exchange.one_tensor(api, base._memory, address, number, bits, base._device)
        elif api:
            nodes = self._create()[len(NODE_ARRAYS) * node_type]
        else:
            values = base.node_array("input_nodes", node_type)
            nodes = None if values is None else values.torch()
        assert nodes is not None
        return nodes

    def _create(self) -> Sequence[torch.Tensor | None]:
        """Creates every tensor but parts of the nodes; none without the API."""
        api = exchange.exchange_api()
        if api:
            base, words, schema = self._base, self._words, self.schema
            hops, bits = words[at.NUM_HOPS], words[at.ID_BITS]
            types, relations = (1, 1) if schema is None else map(len, schema)
            start = at.edge_id_bits_at(hops, types, relations)
            described = _described(hops, types, bits, *words[start : start + relations])
            # On the CPU a batch begins with its header.
            header = array("q", words) if base._device >= 0 else None
            address = base._data if header is None else header.buffer_info()[0]
            result = base._memory, base._data, address
            self._tensors = exchange.tensors(api, *result, described, base._device)
        return self._tensors

    def destinations(self, place: int) -> torch.Tensor | None:
        # torch's operations on the CPU need no launches.
        return None

    def edge_index(self, place: int) -> torch.Tensor | None:
        return None

    def extras(self, count: int) -> list[torch.Tensor]:
        return [array.torch() for array in self._base.extras(count)]

    def moved(self, move: Any) -> TensorSource | None:
        # Its memory has room that was reserved and not used.
        return None


class DeviceSource(HostSource):
    """The arrays of a batch in the engine's memory on a CUDA device, by DLPack's C exchange API.

    ``region`` is all of that memory, as ids. Operations on all of it, and arrays that few callers
    need, are left to a `TensorSource`, which is created when the first of them is needed.
    """

    __slots__ = ("_region", "_views")

    def __init__(self, base: EngineSource, region: Array) -> None:
        # Torch's current stream waits for the batch, as for an array that becomes a tensor.
        region._order(devices.current_stream(region._device))
        super().__init__(base)
        self._region = region
        self._views: TensorSource | None = None

    def _of_region(self) -> TensorSource:
        views = self._views
        if views is None:
            whole, device = self._region.torch(), self._region._device
            views = self._views = TensorSource(whole, self._words, device, schema=self.schema)
        return views

    def destinations(self, place: int) -> torch.Tensor | None:
        return self._of_region().destinations(place)

    def edge_index(self, place: int) -> torch.Tensor | None:
        return self._of_region().edge_index(place)

    def extras(self, count: int) -> list[torch.Tensor]:
        return self._of_region().extras(count)

    def moved(self, move: Any) -> TensorSource:
        return self._of_region().moved(move)


@lru_cache(maxsize=64)
def _described(hops: int, types: int, id_bits: int, *edge_id_bits: int) -> bytes:
    """Returns the arrays of a batch for `exchange.tensors`."""
    result, ids = b"", {at.ID_BITS: id_bits}
    for node_type in range(types):
        result += exchange.descriptors(
            at.TYPE_ROWS, at.FIXED_WORDS + at.TYPE_WORDS * node_type, ids
        )
    start = at.first_block(types)
    for _ in range(hops):
        for bits in edge_id_bits:
            widths = {at.WIDTH_IDS: id_bits, at.WIDTH_EDGE_IDS: bits}
            result += exchange.descriptors(at.BLOCK_ROWS, start, widths)
            start += at.WORDS
    return result
