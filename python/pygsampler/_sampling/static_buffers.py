"""``StaticBuffers``: memory of batches that stays where it is, for launches of a CUDA graph."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch

from pygsampler._arrays import devices
from pygsampler._batch.buffer import edges_of_blocks
from pygsampler._batch.static import StaticBlock, StaticMiniBatch
from pygsampler._engine.handle import SLICE_MS, EngineHandle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._graph.graph import Graph
    from pygsampler._sampling.engine_sampler import EngineSampler

__all__ = ["Capacity", "EpochExclusions", "EpochSeeds", "StaticBuffers"]


class Capacity(NamedTuple):
    """How many sources and edges a block of a static batch may have."""

    num_src_nodes: int
    num_edges: int


class EpochSeeds(NamedTuple):
    """The seeds of a pass, batch after batch, in those of a graph with types type by type."""

    # On the GPU.
    ids: torch.Tensor
    # Of each batch where its seeds begin, and how many there are.
    parts: array[int]
    # Of each batch how many of them are of each type, without types all.
    counts: array[int]
    # A time for each, float64 or int64; None: they have none.
    times: array[Any] | None
    # The edges that its batches leave out; None: there are none.
    excluded: EpochExclusions | None = None


class EpochExclusions(NamedTuple):
    """Edges for each batch of a pass, those of each relation."""

    # int64, on the CPU.
    ids: torch.Tensor
    # Where those of each batch and relation begin, and the end.
    starts: array[int]


class StaticBuffers(EngineHandle):
    """Batches of one sampler and one graph on a GPU, one after the other in the same memory.

    Samples lie in slots that take turns, so that one can be made while an earlier one is used;
    ``fill`` copies the next of them to the tensors of ``batch``. All of it is launches in torch's
    current stream, whose arguments are the same for every batch.
    """

    __slots__ = ("__weakref__", "_about", "_device", "_keep", "_turn", "_words", "batch")

    _close_function: ClassVar[str] = "DeviceStaticClose"

    def __init__(
        self,
        graph: Graph,
        sampler: EngineSampler,
        capacities: Sequence[Capacity],
        seeds: int,
        seed_bits: int,
    ) -> None:
        super().__init__()
        self._device = graph._device
        self._words = array("q", bytes(8 * sampler._plan.num_words))
        destinations = [*(block.num_src_nodes for block in capacities[1:]), seeds]
        most = array("q")
        for block, dst in zip(capacities, destinations, strict=True):
            most.extend((block.num_src_nodes, dst, block.num_edges))
        bits = graph._known()[1]._bits
        handles = graph._handle(), sampler._handle()
        about = seeds, seed_bits, 0, len(capacities), most.buffer_info()[0]
        self._create("DeviceStaticNew", *handles, *about)
        self._keep = graph, sampler
        # Counts the batches that were asked for, which what is derived of one belongs to.
        self._turn = [0]
        self._about = array("q")
        self.batch: StaticMiniBatch = self._batch(
            capacities, destinations, bits, self._call("DeviceStaticEdgeBits")
        )

    def _batch(
        self, capacities: Sequence[Capacity], destinations: Sequence[int], bits: int, wide: int
    ) -> StaticMiniBatch:
        """The tensors; ``_about`` says where they are."""
        there = place_of(self._device)
        ids, edge_ids = INTEGERS[bits], INTEGERS[wide]

        def zeros(size: int, dtype: torch.dtype = ids) -> torch.Tensor:
            return torch.zeros(size, dtype=dtype, device=there)

        sources = [padded_rows(block.num_src_nodes) for block in capacities]
        rows = [*sources[1:], padded_rows(destinations[-1])]
        nodes, counts = zeros(sources[0]), zeros(1 + 3 * len(sources), torch.int64)
        seeds, index = zeros(rows[-1]), zeros(rows[-1])
        about, blocks = self._about, []
        about.extend(tensor.data_ptr() for tensor in (nodes, seeds, index))
        about.extend((rows[-1], counts.data_ptr()))
        for place, (src, dst, capacity) in enumerate(zip(sources, rows, capacities, strict=True)):
            indptr = zeros(dst + 1)
            edges = zeros(capacity.num_edges), zeros(capacity.num_edges, edge_ids)
            block = StaticBlock._of_arrays(indptr, *edges, nodes[:src], nodes[:dst])
            known = block.__dict__
            known["_real"] = counts[1 + 3 * place : 4 + 3 * place]
            known["_turn"] = self._turn
            own = array("q", [tensor.data_ptr() for tensor in (indptr, *edges)])
            own.extend((src, dst, capacity.num_edges))
            about.extend(own)
            own.append(known["_real"].data_ptr() + 8)
            known["_edges"] = CooWriter(self, own)
            blocks.append(block)
        fields = {"input_nodes": nodes, "output_nodes": seeds, "output_index": index}
        made = StaticMiniBatch._of_fields({**fields, "blocks": tuple(blocks)}, 0, 0)
        made.__dict__["_counts"] = counts
        return made

    def begin(self, seeds: EpochSeeds, step: int, epoch: int, first: int, stride: int) -> None:
        """Begins a pass over seeds with one of their batches; batch i from there on has the number
        ``first + i * stride``. Waits for torch's current stream. The seeds must stay until the pass
        is over."""
        ids, parts = seeds.ids, seeds.parts[2 * step :]
        numbers = len(parts) // 2, parts.buffer_info()[0], epoch, first, stride
        about = ids.data_ptr(), len(ids), *numbers, devices.current_stream(self._device)
        self._call("DeviceStaticBegin", *about)

    def sample(self) -> None:
        """Samples the next batch of the pass; there are none behind the last."""
        self._call("DeviceStaticSample", devices.current_stream(self._device))

    def fill(self) -> None:
        """Copies the next batch that was sampled to ``batch``."""
        self._turn[0] += 1
        blocks, address = len(self.batch.blocks), self._about.buffer_info()[0]
        stream = devices.current_stream(self._device)
        self._call("DeviceStaticSpread", blocks, address, stream)

    def wait(self, number: int) -> bool:
        """Waits until batch ``number`` of the pass is sampled; False where it is too large."""
        about = len(self._words), self._words.buffer_info()[0]
        while True:
            self._require_own()
            state = self._call("DeviceStaticWait", number, SLICE_MS, *about)
            if state:
                return bool(state == 1)

    def close(self) -> None:
        """Gives the memory of samples back; waits for the GPU."""
        self._release()

    @property
    def num_edges(self) -> int:
        """Edges of the batch that was waited for."""
        return sum(edges_of_blocks(self._words))


class CooWriter:
    """Writes the edges of a block one by one.

    ``about`` is where its indptr, indices and edge ids are, its room for sources, destinations and
    edges, and where the number of its destinations is.
    """

    __slots__ = ("_about", "_standing")

    def __init__(self, standing: StaticBuffers, about: array[int]) -> None:
        self._standing = standing
        self._about = about

    def __call__(self, sources: torch.Tensor | None, destinations: torch.Tensor) -> None:
        standing = self._standing
        about = self._about[:]
        about.extend((0 if sources is None else sources.data_ptr(), destinations.data_ptr()))
        stream = devices.current_stream(standing._device)
        bits = 8 * destinations.element_size()
        standing._call("DeviceStaticEdges", bits, about.buffer_info()[0], stream)


def place_of(device: int) -> torch.device:
    """Where the tensors are."""
    return torch.device("cuda", device)


def padded_rows(used: int) -> int:
    """How many rows there are for so many: some more, over which edges that fill up are dealt out,
    and a multiple of 8, as matrix units like it."""
    return -(-(used + used // 32 + 32) // 8) * 8


INTEGERS = {32: torch.int32, 64: torch.int64}
