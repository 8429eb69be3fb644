"""Where the tensors of a torch batch come from: each is made when it is first asked for."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, Protocol

from pygsampler._arrays import devices
from pygsampler._batch import layout as at
from pygsampler._core import library
from pygsampler.array import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch


_OF_BLOCK = ("indptr", "indices", "edge_ids", "src_nodes", "dst_nodes")


class RegionViews:
    """Views of the one tensor that a batch on a device is.

    ``ids`` is the whole region as the ids' dtype, a multiple of 8 bytes long, and ``words``
    describes it. ``device`` is the index of the CUDA device whose engine can read it, or -1.
    """

    # The region as the dtype of the edges' ids, where that is another.
    _edge_ids: torch.Tensor | None = None
    # Whether there are tensors of all arrays.
    _is_split = False
    # Of all blocks, once those of one were asked for: one launch makes them.
    _dst: Sequence[torch.Tensor] | None = None
    _pairs: Sequence[torch.Tensor] | None = None

    def __init__(self, ids: torch.Tensor, words: list[int], device: int) -> None:
        self._ids = ids
        self._words = words
        self._device = device
        # log2 of an id's bytes.
        self._shift = 3 if words[at.ID_BITS] == 64 else 2
        # Tensors of ids that were asked for, by offset and length.
        self._made: dict[tuple[int, int], torch.Tensor] = {}

    def hops(self) -> int:
        return self._words[at.HOPS]

    def of_batch(self, name: str) -> torch.Tensor | None:
        words = self._words
        if name == "input_nodes":
            return self._at(words[at.NODES], words[at.NUM_NODES])
        if name == "output_nodes":
            return self._at(words[at.OUTPUT_NODES], words[at.NUM_OUTPUT])
        if name == "output_index":
            return self._at(words[at.OUTPUT_INDEX], words[at.NUM_OUTPUT])
        return self._at(words[at.TREES], words[at.NUM_NODES]) if words[at.TREES] else None

    def of_block(self, place: int, name: str) -> dict[str, torch.Tensor]:
        # Who asks for these asks for nearly all: one call of torch makes them in a third of the
        # time that one for each takes.
        if name in ("indptr", "edge_ids"):
            self._split()
        block = at.HEADER_WORDS + at.WORDS * place
        words = self._words[block : block + at.WORDS]
        if not self._is_split:
            return {name: self._of_block(words, name)}
        return {each: self._of_block(words, each) for each in _OF_BLOCK}

    def _of_block(self, words: list[int], name: str) -> torch.Tensor:
        if name == "indices":
            return self._at(words[at.INDICES], words[at.NUM_EDGES])
        if name == "indptr":
            return self._at(words[at.INDPTR], words[at.NUM_DST] + 1)
        if name == "edge_ids":
            return self._edges(words[at.EDGE_IDS], words[at.NUM_EDGES])
        nodes = self._words[at.NODES]
        if name == "src_nodes":
            return self._at(nodes, words[at.NUM_SRC])
        return self._at(nodes + (words[at.FIRST_DST] << self._shift), words[at.NUM_DST])

    def _at(self, offset: int, length: int) -> torch.Tensor:
        """Ids; one tensor where several names are of the same ids, as many are."""
        made = self._made.get((offset, length))
        if made is None:
            start = offset >> self._shift
            made = self._made[offset, length] = self._ids[start : start + length]
        return made

    def _split(self) -> None:
        """Makes the tensors of all blocks' arrays, and of the vertices."""
        if self._is_split:
            return
        words, shift = self._words, self._shift
        places = [(words[at.NODES], words[at.NUM_NODES])]
        same_width = words[at.EDGE_ID_BITS] == words[at.ID_BITS]
        for block in range(at.HEADER_WORDS, len(words), at.WORDS):
            edges = words[block + at.NUM_EDGES]
            places.append((words[block + at.INDPTR], words[block + at.NUM_DST] + 1))
            places.append((words[block + at.INDICES], edges))
            if same_width:
                places.append((words[block + at.EDGE_IDS], edges))
        places.sort()
        # What lies between is split off too.
        sizes: list[int] = []
        end = 0
        for offset, length in places:
            start = offset >> shift
            sizes += (start - end, length)
            end = start + length
        sizes.append(self._ids.numel() - end)
        # "Unsafe" says that torch does not count writes to one as writes to the others, which have
        # no element in common.
        pieces = self._ids.unsafe_split_with_sizes(sizes)
        self._made.update(zip(places, pieces[1::2], strict=True))
        self._is_split = True

    def counts(self, place: int) -> tuple[int, int, int, int]:
        block = at.HEADER_WORDS + at.WORDS * place
        num_src, num_dst, num_edges = self._words[block : block + 3]
        return num_src, num_dst, num_edges, self._words[block + at.FIRST_DST]

    def destinations(self, place: int) -> torch.Tensor | None:
        if self._device < 0:
            return None
        made = self._dst
        if made is None:
            if self._pairs is not None and self._shift == 3:
                made = [pair[1] for pair in self._pairs]
            else:
                made = self._expanded(False)
            self._dst = made
        return made[place]

    def edge_index(self, place: int) -> torch.Tensor | None:
        if self._device < 0:
            return None
        made = self._pairs
        if made is None:
            made = self._pairs = [pair.view(2, pair.numel() // 2) for pair in self._expanded(True)]
        return made[place]

    def moved(self, move: Any) -> RegionViews:
        # Without what lies behind the batch, which the next batch may need.
        used = (self._words[at.SIZE] + 7) // 8 * 8 >> self._shift
        ids = move(self._ids[:used])
        return RegionViews(ids, self._words, ids.get_device() if ids.is_cuda else devices.CPU)

    def _expanded(self, both: bool) -> Sequence[torch.Tensor]:
        """Of each block the destinations of its edges, as ids; or, as int64, the sources before
        them. In torch's current stream, as what it is made of."""
        ids, words = self._ids, self._words
        counts = words[at.HEADER_WORDS + at.NUM_EDGES :: at.WORDS]
        if both:
            import torch

            counts = [2 * count for count in counts]
            made = ids.new_empty(sum(counts), dtype=torch.int64)
        else:
            made = ids.new_empty(sum(counts))
        about = array("q", words)
        library.call(
            "DeviceExpand",
            self._device,
            about.buffer_info()[0],
            ids.data_ptr(),
            made.data_ptr(),
            64 if both else 8 << self._shift,
            int(both),
            devices.current_stream(self._device),
        )
        return made.split_with_sizes(counts)

    def _edges(self, offset: int, length: int) -> torch.Tensor:
        bits = self._words[at.EDGE_ID_BITS]
        if bits == self._words[at.ID_BITS]:
            return self._at(offset, length)
        if self._edge_ids is None:
            import torch

            self._edge_ids = self._ids.view(torch.int64 if bits == 64 else torch.int32)
        start = offset * 8 // bits
        return self._edge_ids[start : start + length]


class HostBlock(Protocol):
    """What ``HostViews`` needs of a block."""

    @property
    def num_src_nodes(self) -> int: ...
    @property
    def num_dst_nodes(self) -> int: ...
    @property
    def num_edges(self) -> int: ...
    @property
    def dst_offset(self) -> int: ...


class HostBatch(Protocol):
    """What ``HostViews`` needs of a batch."""

    @property
    def blocks(self) -> Sequence[HostBlock]: ...
    @property
    def input_nodes(self) -> Array: ...


class HostViews:
    """The arrays of a batch on the CPU: each tensor is one of its own, on the batch's memory."""

    __slots__ = ("_batch", "_nodes")

    def __init__(self, batch: HostBatch) -> None:
        self._batch = batch
        # At once, so that a missing torch is told at once. They are converted once, and sliced.
        self._nodes = batch.input_nodes.torch()

    def hops(self) -> int:
        return len(self._batch.blocks)

    def of_batch(self, name: str) -> torch.Tensor | None:
        if name == "input_nodes":
            return self._nodes
        values: Array | None = getattr(self._batch, name)
        return None if values is None else values.torch()

    def of_block(self, place: int, name: str) -> dict[str, torch.Tensor]:
        block = self._batch.blocks[place]
        if name == "src_nodes":
            return {name: self._nodes[: block.num_src_nodes]}
        if name == "dst_nodes":
            return {name: self._nodes[block.dst_offset : block.dst_offset + block.num_dst_nodes]}
        values: Array = getattr(block, name)
        return {name: values.torch()}

    def counts(self, place: int) -> tuple[int, int, int, int]:
        block = self._batch.blocks[place]
        return block.num_src_nodes, block.num_dst_nodes, block.num_edges, block.dst_offset

    def destinations(self, place: int) -> None:
        # torch's operations on the CPU need no launches.
        return None

    def edge_index(self, place: int) -> None:
        return None

    def moved(self, move: Any) -> None:
        # Its memory has room that was reserved and not used.
        return None
