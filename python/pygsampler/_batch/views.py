"""Where the tensors of a torch batch come from: each is made when it is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pygsampler._batch import layout as at
from pygsampler.array import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch


class RegionViews:
    """Views of the one tensor that a batch on a device is.

    ``ids`` is the whole region as the ids' dtype, a multiple of 8 bytes long, and ``words``
    describes it.
    """

    __slots__ = ("_edge_ids", "_floats", "_ids", "_shift", "_words")

    def __init__(self, ids: torch.Tensor, words: list[int]) -> None:
        self._ids = ids
        # log2 of an id's bytes.
        self._shift = 3 if words[at.ID_BITS] == 64 else 2
        self._words = words
        # The region as the dtype of the edges' ids, where that is another.
        self._edge_ids: torch.Tensor | None = None
        # The region as float32.
        self._floats: torch.Tensor | None = None

    def hops(self) -> int:
        return self._words[at.HOPS]

    def of_batch(self, name: str) -> torch.Tensor | None:
        words = self._words
        if name == "input_nodes":
            offset, length = words[at.NODES], words[at.NUM_NODES]
        elif name == "output_nodes":
            offset, length = words[at.OUTPUT_NODES], words[at.NUM_OUTPUT]
        elif name == "output_index":
            offset, length = words[at.OUTPUT_INDEX], words[at.NUM_OUTPUT]
        elif words[at.TREES]:
            offset, length = words[at.TREES], words[at.NUM_NODES]
        else:
            return None
        start = offset >> self._shift
        return self._ids[start : start + length]

    def of_block(self, place: int, name: str) -> torch.Tensor | None:
        words = self._words
        block = at.HEADER_WORDS + at.WORDS * place
        if name == "edge_ids":
            return self._edges(words[block + at.EDGE_IDS], words[block + at.NUM_EDGES])
        if name == "edge_weights":
            return self._factors(words[block + at.EDGE_WEIGHTS], words[block + at.NUM_EDGES])
        if name == "indices":
            offset, length = words[block + at.INDICES], words[block + at.NUM_EDGES]
        elif name == "indptr":
            offset, length = words[block + at.INDPTR], words[block + at.NUM_DST] + 1
        else:
            which = at.NUM_SRC if name == "src_nodes" else at.NUM_DST
            offset, length = words[at.NODES], words[block + which]
        start = offset >> self._shift
        if name == "dst_nodes":
            start += words[block + at.FIRST_DST]
        return self._ids[start : start + length]

    def counts(self, place: int) -> tuple[int, int, int, int]:
        block = at.HEADER_WORDS + at.WORDS * place
        num_src, num_dst, num_edges = self._words[block : block + 3]
        return num_src, num_dst, num_edges, self._words[block + at.FIRST_DST]

    def moved(self, move: Any) -> RegionViews:
        # Without what lies behind the batch, which the next batch may need.
        used = (self._words[at.SIZE] + 7) // 8 * 8 >> self._shift
        return RegionViews(move(self._ids[:used]), self._words)

    def _edges(self, offset: int, length: int) -> torch.Tensor:
        bits = self._words[at.EDGE_ID_BITS]
        if bits == self._words[at.ID_BITS]:
            start = offset >> self._shift
            return self._ids[start : start + length]
        if self._edge_ids is None:
            import torch

            self._edge_ids = self._ids.view(torch.int64 if bits == 64 else torch.int32)
        start = offset * 8 // bits
        return self._edge_ids[start : start + length]

    def _factors(self, offset: int, length: int) -> torch.Tensor | None:
        if not offset:
            return None
        if self._floats is None:
            import torch

            self._floats = self._ids.view(torch.float32)
        return self._floats[offset // 4 : offset // 4 + length]


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

    def of_block(self, place: int, name: str) -> torch.Tensor | None:
        block = self._batch.blocks[place]
        if name == "src_nodes":
            return self._nodes[: block.num_src_nodes]
        if name == "dst_nodes":
            return self._nodes[block.dst_offset : block.dst_offset + block.num_dst_nodes]
        values: Array | None = getattr(block, name)
        return None if values is None else values.torch()

    def counts(self, place: int) -> tuple[int, int, int, int]:
        block = self._batch.blocks[place]
        return block.num_src_nodes, block.num_dst_nodes, block.num_edges, block.dst_offset

    def moved(self, move: Any) -> None:
        # Its memory has room that was reserved and not used.
        return None
