"""``Block``: the edges of one hop, as a bipartite graph in local ids."""

from __future__ import annotations

from typing import NoReturn

from pygsampler._arrays import devices
from pygsampler._core import memories
from pygsampler._core.memories import Memory
from pygsampler.array import Array


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
        "_bits",
        "_dst",
        "_edge_id_bits",
        "_memory",
        "_nodes",
        "_words",
    )

    _memory: Memory | memoryview
    _nodes: Array
    _bits: int
    _edge_id_bits: int
    # num_src, num_dst, num_edges, the addresses of indptr, indices and edge ids, dst_offset, and
    # the address of the factors, 0 where there are none.
    _words: tuple[int, int, int, int, int, int, int, int]
    _arrays: dict[str, Array]
    # How many edges the blocks before it have, and, for all blocks of a batch on a device, where
    # the destinations of all edges are, once they were asked for.
    _before: int
    _dst: list[Memory]

    def __init__(self) -> None:
        raise TypeError("Block: made by PGSampler.sample")

    @classmethod
    def _of(
        cls,
        memory: Memory | memoryview,
        data: int,
        nodes: Array,
        edge_id_bits: int,
        words: list[int],
        before: int,
        dst: list[Memory],
    ) -> Block:
        block = object.__new__(cls)
        num_src, num_dst, num_edges, indptr, indices, edge_ids, first, factors = words
        block._memory = memory
        block._nodes = nodes
        block._bits = nodes._bits
        block._edge_id_bits = edge_id_bits
        arrays = data + indptr, data + indices, data + edge_ids
        block._words = (num_src, num_dst, num_edges, *arrays, first, factors and data + factors)
        block._arrays = {}
        block._before = before
        block._dst = dst
        return block

    @property
    def num_src_nodes(self) -> int:
        """Number of source vertices, the destinations among them."""
        return self._words[0]

    @property
    def num_dst_nodes(self) -> int:
        """Number of destination vertices."""
        return self._words[1]

    @property
    def dst_offset(self) -> int:
        """Local id of the first destination: 0 but with ``frontier="new"``."""
        return self._words[6]

    @property
    def num_edges(self) -> int:
        """Number of sampled edges."""
        return self._words[2]

    @property
    def indptr(self) -> Array:
        """Row offsets, shape [num_dst_nodes + 1], in the graph's id dtype."""
        return self._array("indptr", self._words[3], self._words[1] + 1, self._bits)

    @property
    def indices(self) -> Array:
        """Local source id of each edge, shape [num_edges], in the graph's id dtype."""
        return self._array("indices", self._words[4], self._words[2], self._bits)

    @property
    def edge_ids(self) -> Array:
        """Original id of each edge, shape [num_edges], in the dtype of the graph's edge ids.

        That is the graph's id dtype where it has none: then the id is the edge's place in the CSC.
        """
        return self._array("edge_ids", self._words[5], self._words[2], self._edge_id_bits)

    @property
    def edge_weights(self) -> Array | None:
        """Factor of each edge, float32, shape [num_edges]; None unless the sampler makes them.

        With ``PGSampler(..., edge_weights="ht")`` the sum of ``edge_weights * y`` over the edges of
        a destination is, in the mean over samples, the sum of ``y`` over all its edges.
        """
        if not self._words[7]:
            return None
        return self._array("edge_weights", self._words[7], self._words[2], 32, "float32")

    @property
    def src_nodes(self) -> Array:
        """Original ids of the sources, shape [num_src_nodes]; the destinations are among them."""
        return self._nodes[: self._words[0]]

    @property
    def dst_nodes(self) -> Array:
        """Original ids of the destinations, shape [num_dst_nodes]: distinct vertices."""
        first = self._words[6]
        return self._nodes[first : first + self._words[1]]

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
        count, bits, device = self._words[2], self._bits, self._nodes._device
        if device < 0:
            indptr, rows, first = self._words[3], self._words[1], self._words[6]
            memory = memories.new("ExpandRows", indptr, rows, first, bits)
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

    def _array(
        self, name: str, address: int, length: int, bits: int, dtype: str | None = None
    ) -> Array:
        array = self._arrays.get(name)
        if array is None:
            array = Array._of(address, length, bits, self._memory, device=self._nodes._device)
            if dtype is not None:
                array._shown_as(dtype, (length,))
            self._arrays[name] = array
        return array
