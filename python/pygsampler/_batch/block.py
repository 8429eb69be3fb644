"""``Block``: the edges of one hop, as a bipartite graph in local ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from pygsampler._arrays import devices
from pygsampler._arrays.array import Array
from pygsampler._batch import layout as at
from pygsampler._batch.edge_values import NO_VALUES, edge_data
from pygsampler._engine import library
from pygsampler._engine import memory as memories
from pygsampler._engine.memory import Memory

__all__ = ["Block"]


def __dir__() -> list[str]:
    return sorted(__all__)


_ROWS = {row.name: row for row in at.BLOCK_ROWS}


class Block:
    """The edges sampled for one hop, from source to destination vertices in local ids.

    Destination i is ``dst_nodes[i]`` and its edges stand at ``indptr[i]:indptr[i + 1]`` of
    ``indices`` (local source ids: positions in ``src_nodes``), of ``edge_ids`` (original ids) and
    of ``edge_weights``, where the sampler makes them.
    The destinations come first among the sources; with ``frontier="new"`` they begin at
    ``dst_offset``, and local ids are the same in all blocks. Arrays are views of the batch's
    memory.
    """

    __slots__ = (
        "__weakref__",
        "_arrays",
        "_before",
        "_data",
        "_dst",
        "_memory",
        "_nodes",
        "_widths",
        "_words",
        "edge_values",
    )

    _memory: Memory | memoryview
    # Where the batch lies, its vertices, and the words that describe the block.
    _data: int
    _nodes: Array
    _words: Sequence[int]
    # Those that were asked for; the widths of integers stand among the batch's words.
    _arrays: dict[str, Array | None]
    _widths: Sequence[int]
    # How many edges the blocks before it have, and, for all blocks of a batch on a device, where
    # the destinations of all edges are, once they were asked for.
    _before: int
    _dst: list[Memory]
    edge_values: Mapping[str, Array]
    """Values of the edges that a program has given other names than ``"w"``: float32."""

    def __init__(self) -> None:
        raise TypeError("Block: made by PGSampler.sample")

    @classmethod
    def _of(
        cls,
        memory: Memory | memoryview,
        data: int,
        nodes: Array,
        words: Sequence[int],
        widths: Sequence[int],
        before: int,
        dst: list[Memory],
        edge_values: Mapping[str, Array] = NO_VALUES,
    ) -> Block:
        block = object.__new__(cls)
        block._memory = memory
        block._data = data
        block._nodes = nodes
        block._words = words
        block._widths = widths
        block._arrays = {}
        block._before = before
        block._dst = dst
        block.edge_values = edge_values
        return block

    @property
    def num_src_nodes(self) -> int:
        """Number of source vertices, the destinations among them."""
        return self._words[at.NUM_SRC]

    @property
    def num_dst_nodes(self) -> int:
        """Number of destination vertices."""
        return self._words[at.NUM_DST]

    @property
    def dst_offset(self) -> int:
        """Local id of the first destination: 0 but with ``frontier="new"``."""
        return self._words[at.FIRST_DST]

    @property
    def num_edges(self) -> int:
        """Number of sampled edges."""
        return self._words[at.NUM_EDGES]

    @property
    def indptr(self) -> Array:
        """Row offsets, shape [num_dst_nodes + 1], in the graph's id dtype."""
        return self._array("indptr")

    @property
    def indices(self) -> Array:
        """Local source id of each edge, shape [num_edges], in the graph's id dtype."""
        return self._array("indices")

    @property
    def edge_ids(self) -> Array:
        """Original id of each edge, shape [num_edges], in the dtype of the graph's edge ids.

        That is the graph's id dtype where it has none: then the id is the edge's place in the CSC.
        """
        return self._array("edge_ids")

    @property
    def edge_weights(self) -> Array | None:
        """Factor of each edge, float32, shape [num_edges]; None unless the sampler makes them.

        With ``PGSampler(..., edge_weights="ht")`` the sum of ``edge_weights * y`` over the edges of
        a destination is, in the mean over samples, the sum of ``y`` over all its edges.
        """
        return self._one("edge_weights")

    @property
    def edge_data(self) -> Mapping[str, Array]:
        """Values of the edges by name, shape [num_edges], float32: a program's as ``"w"``, and
        those that it gives other names."""
        return edge_data(self.edge_weights, self.edge_values)

    @property
    def src_nodes(self) -> Array:
        """Original ids of the sources, shape [num_src_nodes]; the destinations are among them."""
        return self._nodes[: self._words[at.NUM_SRC]]

    @property
    def dst_nodes(self) -> Array:
        """Original ids of the destinations, shape [num_dst_nodes]: distinct vertices."""
        first = self._words[at.FIRST_DST]
        return self._nodes[first : first + self._words[at.NUM_DST]]

    def coo(self) -> tuple[Array, Array]:
        """The edges as (source, destination) in local ids, each of shape [num_edges].

        Of a batch on a device one launch writes the destinations of all blocks, when the first are
        asked for, after the work that is in the current stream; they are there, for every stream,
        when this returns.
        """
        dst = self._arrays.get("dst")
        if dst is None:
            dst = self._arrays["dst"] = self._destinations()
        return self.indices, dst

    def _destinations(self) -> Array:
        words, bits, device = self._words, self._nodes._bits, self._nodes._device
        count = words[at.NUM_EDGES]
        if device < 0:
            indptr = self._data + words[at.INDPTR]
            memory = memories.new(
                "ExpandRows", indptr, words[at.NUM_DST], words[at.FIRST_DST], bits
            )
            return Array._of(memory.data, count, bits, memory)
        made = self._dst
        if not made:
            assert isinstance(self._memory, Memory)
            stream = devices.current_stream(device)
            made.append(memories.new("DeviceDestinations", self._memory.address, stream))
        memory = made[0]
        address = memory.data + self._before * bits // 8
        return Array._of(address, count, bits, memory, device=device)

    def __repr__(self) -> str:
        return (
            f"Block(num_src_nodes={self.num_src_nodes}, num_dst_nodes={self.num_dst_nodes}, "
            f"num_edges={self.num_edges})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("Block: expected something to pickle, got a view; pickle its MiniBatch")

    def _dlpack(self, name: str) -> Any:
        """DLPack's capsule of an array of integers on the CPU, without the Array that it is."""
        memory = self._memory
        if type(memory) is not Memory or not memory.is_of(library.generation()):
            return self._array(name)._capsule(copy=False, versioned=False)
        _, bits, length, more, offset = _ROWS[name]
        words = self._words
        assert isinstance(bits, int)
        address, count = self._data + words[offset], words[length] + more
        return memories.capsule(memory, address, count, self._widths[bits])

    def _array(self, name: str) -> Array:
        array = self._one(name)
        assert array is not None
        return array

    def _one(self, name: str) -> Array | None:
        arrays = self._arrays
        if name not in arrays:
            arrays[name] = Array._of_row(
                _ROWS[name],
                self._words,
                self._widths,
                self._data,
                self._memory,
                self._nodes._device,
            )
        return arrays[name]
