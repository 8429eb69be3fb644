"""Where the tensors of a torch batch come from: each is made when it is first asked for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from pygsampler._arrays import devices, exchange
from pygsampler._arrays.array import Array
from pygsampler._batch import layout as at
from pygsampler._batch.buffer import edges_of_blocks
from pygsampler._batch.coo_expansion import DESTINATIONS, PAIRS, CooExpander
from pygsampler._engine.array_descriptor import dense_shape

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch

    from pygsampler._engine.array_descriptor import ArrayDescriptor
    from pygsampler._engine.memory import Memory

_ROWS = {row.name: row for row in at.ROWS}
_BLOCK_ROWS = {row.name: row for row in at.BLOCK_ROWS}
_PLACES = {row.name: place for place, row in enumerate(at.ROWS)}


class _HeaderSource:
    """The numbers of a batch, by the words that describe it."""

    __slots__ = ("_words",)

    _words: Sequence[int]

    def hops(self) -> int:
        return self._words[at.NUM_HOPS]

    def num_edges(self) -> int:
        return sum(edges_of_blocks(self._words))

    def counts(self, place: int) -> tuple[int, int, int]:
        block = at.FIRST_BLOCK + at.WORDS * place
        num_src, num_dst, num_edges = self._words[block : block + 3]
        return num_src, num_dst, num_edges

    def dst_offset(self, place: int) -> int:
        return self._words[at.FIRST_BLOCK + at.WORDS * place + at.FIRST_DST]

    def _edge_id_bits(self) -> int:
        return self._words[at.edge_id_bits_at(self._words[at.NUM_HOPS])]


class TensorSource(_HeaderSource):
    """Views of the one tensor that a batch on a device is.

    ``ids`` is the whole region as the ids' dtype, a multiple of 8 bytes long, and ``words``
    describes it. ``device`` is the index of the CUDA device whose engine can read it, or -1.
    Where several batches share a region this one begins ``first`` bytes from its start, a multiple
    of 8: it takes a call of torch to cut a part out, and none to count from elsewhere. ``edges``
    makes the edges of all of them one by one, and this one is at ``place`` there.
    """

    # The region as the dtype of the edges' ids, where that is another.
    _edge_ids: torch.Tensor | None = None
    # The region as float32.
    _floats: torch.Tensor | None = None
    # The edges of all blocks, once those of one were asked for.
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
    ) -> None:
        self._ids = ids
        self._first = first
        self._edges = edges
        self._place = place
        self._words = words
        self._device = device
        # log2 of an id's bytes.
        self._shift = 3 if words[at.ID_BITS] == 64 else 2
        # Tensors of ids that were asked for, by offset and length.
        self._made: dict[tuple[int, int], torch.Tensor] = {}

    def of_batch(self, name: str) -> torch.Tensor | None:
        row = _ROWS[name]
        offset = self._words[row.offset]
        return self._at(offset, self._words[row.length] + row.more) if offset else None

    def of_block(self, place: int, name: str) -> Mapping[str, torch.Tensor | None]:
        block = at.FIRST_BLOCK + at.WORDS * place
        about = self._words[block : block + at.WORDS]
        num_src, num_dst, edges, indptr, indices, edge_ids, first_dst = about[: at.FIRST_DST + 1]
        if name == "edge_weights":
            return {name: self._factors(about[at.EDGE_WEIGHTS], edges)}
        if name == "indices":
            return {name: self._at(indices, edges)}
        nodes = self._words[at.NODES]
        if name == "src_nodes":
            return {name: self._at(nodes, num_src)}
        dst = nodes + (first_dst << self._shift)
        if name == "dst_nodes":
            return {name: self._at(dst, num_dst)}
        # Who asks for these asks for nearly all, and each time that a name is not there yet costs
        # as much as a tensor.
        same_width = self._edge_id_bits() == self._words[at.ID_BITS]
        places = [
            (indptr, num_dst + 1, "indptr"),
            (indices, edges, "indices"),
            # Of another width they are no ids: none of them here.
            (edge_ids, edges if same_width else 0, "edge_ids"),
        ]
        places.sort()
        # What lies between is split off too.
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
        made: dict[str, torch.Tensor | None]
        made = {name: piece for (_, _, name), piece in zip(places, pieces[1::2], strict=True)}
        if not same_width:
            made["edge_ids"] = self._of_edges(edge_ids, edges)
        made["src_nodes"] = self._at(nodes, num_src)
        made["dst_nodes"] = self._at(dst, num_dst)
        return made

    def beside(self, about: Sequence[int]) -> torch.Tensor:
        """An array beside the blocks, which these words describe."""
        length, offset = about[at.EXTRA_LENGTH], about[at.EXTRA_OFFSET]
        if about[at.EXTRA_KIND]:
            return self._at(offset, length)
        made = self._factors(offset, length)
        assert made is not None
        width = about[at.EXTRA_WIDTH]
        return made.view(dense_shape(length, width)) if width else made

    def _at(self, offset: int, length: int) -> torch.Tensor:
        """Ids; one tensor where several names are of the same ids, as many are."""
        made = self._made.get((offset, length))
        if made is None:
            start = (self._first + offset) >> self._shift
            made = self._made[offset, length] = self._ids[start : start + length]
        return made

    def destinations(self, place: int) -> torch.Tensor | None:
        if self._device < 0:
            return None
        made = self._dst
        if made is None:
            made = self._dst = self._one_by_one(DESTINATIONS)
        return made[place]

    def edge_index(self, place: int) -> torch.Tensor | None:
        if self._device < 0:
            return None
        made = self._pairs
        if made is None:
            made = self._pairs = self._one_by_one(PAIRS)
        return made[place]

    def _one_by_one(self, kind: int) -> list[torch.Tensor]:
        edges = self._edges
        if edges is None:
            edges = self._edges = CooExpander(self._ids, self._device, self._shift == 3, set())
            self._place = edges.add(self._words, self._first)
        return edges.of(self._place, kind)

    def moved(self, move: Any) -> TensorSource:
        # Without what lies behind the batch, which the next batch may need, and other batches.
        used = (self._words[at.SIZE] + 7) // 8 * 8 >> self._shift
        first = self._first >> self._shift
        ids = move(self._ids[first : first + used])
        return TensorSource(ids, self._words, ids.get_device() if ids.is_cuda else devices.CPU)

    def _of_edges(self, offset: int, length: int) -> torch.Tensor:
        bits = self._edge_id_bits()
        if self._edge_ids is None:
            import torch

            self._edge_ids = self._ids.view(torch.int64 if bits == 64 else torch.int32)
        start = (self._first + offset) * 8 // bits
        return self._edge_ids[start : start + length]

    def _factors(self, offset: int, length: int) -> torch.Tensor | None:
        if not offset:
            return None
        if self._floats is None:
            import torch

            self._floats = self._ids.view(torch.float32)
        start = (self._first + offset) // 4
        return self._floats[start : start + length]


class HostSource(_HeaderSource):
    """The arrays of a batch on the CPU: each tensor is one of its own.

    Tensors of nodes are parts of one. Where torch has DLPack's C exchange API all tensors are
    created when one is first asked for, by one call; else each by itself.
    """

    __slots__ = ("_data", "_memory", "_parts", "_tensors")

    def __init__(self, memory: Memory | memoryview, address: int, words: Sequence[int]) -> None:
        self._memory = memory
        self._data = address
        self._words = words
        self._tensors: Sequence[torch.Tensor | None] = ()
        # Of the nodes, by their first one and their number.
        self._parts: dict[tuple[int, int], torch.Tensor] = {}
        if not exchange.exchange_api():
            # At once, so that a missing torch is told at once.
            self._nodes(0, words[at.NUM_NODES])

    def of_batch(self, name: str) -> torch.Tensor | None:
        if name == "input_nodes":
            return self._nodes(0, self._words[at.NUM_NODES])
        tensors = self._tensors or self._create()
        return tensors[_PLACES[name]] if tensors else self._convert(_ROWS[name], 0)

    def of_block(self, place: int, name: str) -> Mapping[str, torch.Tensor | None]:
        words, block = self._words, at.FIRST_BLOCK + at.WORDS * place
        tensors = self._tensors or self._create()
        if not tensors and name in _BLOCK_ROWS:
            return {name: self._convert(_BLOCK_ROWS[name], block)}
        first = len(_ROWS) + len(_BLOCK_ROWS) * place
        result = dict(zip(_BLOCK_ROWS, tensors[first : first + len(_BLOCK_ROWS)], strict=False))
        result["src_nodes"] = self._nodes(0, words[block + at.NUM_SRC])
        result["dst_nodes"] = self._nodes(words[block + at.FIRST_DST], words[block + at.NUM_DST])
        return result

    def _nodes(self, first: int, count: int) -> torch.Tensor:
        part = self._parts.get((first, count))
        if part is None:
            number = self._words[at.NUM_NODES]
            if first or count != number:
                part = self._nodes(0, number)[first : first + count]
            else:
                part = self._all_nodes(number)
            self._parts[first, count] = part
        return part

    def _all_nodes(self, number: int) -> torch.Tensor:
        tensors, words = self._tensors, self._words
        if tensors:
            nodes = tensors[0]
        elif api := exchange.exchange_api():
            # By itself: who reads features of a batch needs no more, and others lose little.
            address = self._data + words[at.NODES]
            return exchange.one_tensor(api, self._memory, address, number, words[at.ID_BITS])
        else:
            nodes = self._convert(_ROWS["input_nodes"], 0)
        assert nodes is not None
        return nodes

    def _create(self) -> Sequence[torch.Tensor | None]:
        """Every tensor but parts of the nodes; none without the API."""
        api, words = exchange.exchange_api(), self._words
        if api:
            described = _described(words[at.NUM_HOPS], words[at.ID_BITS], self._edge_id_bits())
            # On the CPU a batch begins with its words.
            result = self._memory, self._data, self._data
            self._tensors = exchange.tensors(api, *result, described)
        return self._tensors

    def _convert(self, array: ArrayDescriptor, start: int) -> torch.Tensor | None:
        words = self._words
        widths = (0, words[at.ID_BITS], self._edge_id_bits()) if start else words
        values = Array._of_row(array, words[start:], widths, self._data, self._memory)
        return None if values is None else values.torch()

    def destinations(self, place: int) -> None:
        # torch's operations on the CPU need no launches.
        return None

    def edge_index(self, place: int) -> None:
        return None

    def moved(self, move: Any) -> None:
        # Its memory has room that was reserved and not used.
        return None


@cache
def _described(hops: int, id_bits: int, edge_id_bits: int) -> bytes:
    """The arrays of a batch for `exchange.tensors`."""
    widths = {at.WIDTH_IDS: id_bits, at.WIDTH_EDGE_IDS: edge_id_bits}
    found = exchange.descriptors(at.ROWS, 0, {at.ID_BITS: id_bits})
    for block in range(at.FIRST_BLOCK, at.edge_id_bits_at(hops), at.WORDS):
        found += exchange.descriptors(at.BLOCK_ROWS, block, widths)
    return found
