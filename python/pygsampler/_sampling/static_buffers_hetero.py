"""``HeteroStaticBuffers``: memory at fixed addresses for heterogeneous batches and their kernel."""

from __future__ import annotations

from array import array
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from pygsampler._arrays import devices
from pygsampler._batch import layout as at
from pygsampler._batch.buffer import edges_of_blocks
from pygsampler._batch.static import (
    StaticBlock,
    StaticHeteroBlock,
    StaticHeteroMiniBatch,
    StaticMiniBatch,
)
from pygsampler._engine.handle import EngineHandle
from pygsampler._graph.schema import ByEdgeType, ByNodeType
from pygsampler._sampling import static_buffers
from pygsampler._sampling.static_buffers import (
    INTEGERS,
    CooWriter,
    EpochSeeds,
    StaticBuffers,
    padded_rows,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pygsampler._graph.graph import Graph
    from pygsampler._graph.hetero_graph import EdgeType, HeteroGraph
    from pygsampler._graph.temporal import TimeSortedGraph, TimeSortedRelation
    from pygsampler._sampling.engine_sampler import EngineSampler, HeteroEngineSampler
    from pygsampler._sampling.static_buffers import Capacity

__all__ = ["HeteroCapacity", "HeteroStaticBuffers", "SingleTypeStaticBuffers"]


class HeteroCapacity(NamedTuple):
    """How many vertices of each type a batch may have after a hop, and edges of each type in it."""

    num_nodes: Mapping[str, int]
    num_edges: Mapping[EdgeType, int]


class _Sizes(NamedTuple):
    """What there is room for; types and relations by their places."""

    ends: list[tuple[int, int]]  # of each relation the types of its sources and destinations
    seeds: list[int]  # of each type
    nodes: list[list[int]]  # of each hop, outermost first, and type
    edges: list[list[int]]  # and relation
    new: bool  # each hop expands what the one before has found

    def rows(self, hop: int, kind: int) -> int:
        """How many destinations of a type a block may have."""
        if hop + 1 == len(self.nodes):
            return self.seeds[kind]
        before = self.nodes[hop + 1][kind]
        if not self.new:
            return before
        # Each was found by an edge of the hop before.
        edges = self.edges[hop + 1]
        return min(before, sum(edges[r] for r, (src, _) in enumerate(self.ends) if src == kind))

    def sources(self, hop: int, kind: int) -> int:
        """How many sources of a type it may have. What a hop has found has one number in all
        blocks, and so much room in all of them: what fills them up is behind all of the batch."""
        return self.nodes[0 if self.new else hop][kind]


class HeteroStaticBuffers(StaticBuffers):
    """As ``StaticBuffers``, of a ``HeteroGraph``, with the times of its edges where it has some.

    The engine has a list of the arrays, so that a hundred relations are one launch.
    """

    __slots__ = ("_sizes",)

    batch: Any

    def __init__(
        self,
        graph: HeteroGraph,
        timed: TimeSortedGraph | None,
        sampler: HeteroEngineSampler,
        capacities: Sequence[HeteroCapacity],
        seeds: Mapping[str, int],
        seed_bits: int,
    ) -> None:
        plan = sampler._plan
        types, kinds = graph._schema
        place = {kind: i for i, kind in enumerate(types)}
        sizes = _Sizes(
            [(place[src], place[dst]) for src, _, dst in kinds],
            [seeds.get(kind, 0) for kind in types],
            [[hop.num_nodes[kind] for kind in types] for hop in capacities],
            [[hop.num_edges[kind] for kind in kinds] for hop in capacities],
            plan["frontier"] == "new",
        )
        handles = graph._handle(), sampler._handle()
        self._begin_of(graph._device, sizes, (graph, sampler, timed))
        sorted_at = 0 if timed is None else timed.address
        self._new("DeviceStaticTypedNew", *handles, sorted_at, seed_bits)
        bits = next(iter(graph._open().values()))._known()[1]._bits
        made = self._arrays(bits, plan["disjoint"], plan["edge_weights"] is not None)
        parts: dict[str, Any] = {
            name: MappingProxyType(ByNodeType(zip(types, getattr(made, name), strict=True)))
            for name in ("input_nodes", "output_nodes", "output_index", "subgraph_ids")
        }
        if not plan["disjoint"]:
            parts["subgraph_ids"] = None
        blocks = []
        for hop in made.blocks:
            of: ByEdgeType[StaticHeteroBlock] = ByEdgeType()
            for kind, about in zip(kinds, hop, strict=True):
                of[kind] = self._block(StaticHeteroBlock, about, kind)
            blocks.append(of.read_only())
        parts["blocks"] = tuple(blocks)
        self.batch = StaticHeteroMiniBatch._of_fields(parts, 0, 0, ())
        self.batch.__dict__.update(_counts=made.counts, _joins=sizes.new)

    def _begin_of(self, device: int, sizes: _Sizes, keep: Any) -> None:
        EngineHandle.__init__(self)
        self._device, self._keep, self._sizes = device, keep, sizes
        self._turn = [0]
        types, relations, hops = len(sizes.seeds), len(sizes.ends), len(sizes.nodes)
        self._words = array("q", bytes(8 * at.num_words(hops, types, relations)))

    def _new(self, name: str, *about: int) -> None:
        sizes = self._sizes
        most = array("q", sizes.seeds)
        for nodes, edges in zip(sizes.nodes, sizes.edges, strict=True):
            most.extend((*nodes, *edges))
        self._create(name, *about, 0, len(sizes.nodes), most.buffer_info()[0])

    def _arrays(self, bits: int, subgraph_ids: bool, factors: bool) -> _Arrays:
        """Makes the tensors, and tells the engine where they are."""
        there, sizes = static_buffers.place_of(self._device), self._sizes
        ids = INTEGERS[bits]

        def zeros(size: int, dtype: torch.dtype = ids) -> torch.Tensor:
            return torch.zeros(size, dtype=dtype, device=there)

        hops, relations, types = len(sizes.nodes), len(sizes.ends), len(sizes.seeds)
        counts = zeros(types * (hops + 2) + 3 * hops * relations, torch.int64)
        made = _Arrays([], [], [], [], [], counts)
        told = array("q")
        for most, seeds in zip(sizes.nodes[0], sizes.seeds, strict=True):
            count, outputs = _room(most), _room(seeds)
            for into, size in (
                (made.input_nodes, count),
                (made.subgraph_ids, count if subgraph_ids else 0),
                (made.output_nodes, outputs),
                (made.output_index, outputs),
            ):
                into.append(zeros(size))
                told.append(into[-1].data_ptr())
            told.extend((count, outputs))
        # Of each type its vertices when each hop began, and in the end.
        ends = made.counts[-types * (hops + 1) :].view(types, hops + 1)
        widths = [
            INTEGERS[self._call("DeviceStaticTypedEdgeBits", place)] for place in range(relations)
        ]
        for hop in range(hops):
            of = []
            for place, (src, dst) in enumerate(sizes.ends):
                edges = sizes.edges[hop][place]
                num_src, num_dst = _room(sizes.sources(hop, src)), _room(sizes.rows(hop, dst))
                indptr, indices = zeros(num_dst + 1), zeros(edges)
                edge_ids = zeros(edges, widths[place])
                weights = zeros(edges, torch.float32) if factors else None
                first = types + 3 * (hop * relations + place)
                real = counts[first : first + 3]
                tensors = indptr, indices, edge_ids
                own = array("q", [tensor.data_ptr() for tensor in tensors])
                dst_nodes, joined = made.input_nodes[dst][:num_dst], None
                offset: Any = 0
                told.extend((*own, 0 if weights is None else weights.data_ptr()))
                if sizes.new:
                    dst_nodes = zeros(num_dst)
                    joined = ends[dst, -1], len(made.input_nodes[dst])
                    # A hop expands what those before the last had not found yet.
                    turn = hops - 1 - hop
                    offset = ends[dst, turn - 1] if turn else 0
                told.append(dst_nodes.data_ptr() if sizes.new else 0)
                own.extend((num_src, num_dst, edges))
                told.extend(own[3:])
                own.append(real.data_ptr() + 8)
                nodes = made.input_nodes[src][:num_src], dst_nodes
                of.append(_BlockParts(*tensors, *nodes, offset, weights, real, own, joined))
            made.blocks.append(of)
        told.append(counts.data_ptr())
        self._call("DeviceStaticTypedPlace", len(told), told.buffer_info()[0])
        return made

    def _block(
        self, kind: type[StaticBlock], made: _BlockParts, edge_type: EdgeType | None = None
    ) -> Any:
        block = kind._of_arrays(*made[:7], edge_type=edge_type)
        known = block.__dict__
        known["_real"], known["_turn"], known["_ends"] = made.real, self._turn, made.ends
        known["_edges"] = CooWriter(self, made.about)
        return block

    def begin(self, seeds: EpochSeeds, step: int, epoch: int, first: int, stride: int) -> None:
        """As ``StaticBuffers.begin``."""
        parts, types = seeds.parts[2 * step :], len(self._sizes.seeds)
        counts = seeds.counts[types * step :]
        times = 0 if seeds.times is None else seeds.times.buffer_info()[0]
        excluded, starts = (0, 0), None
        if seeds.excluded is not None:
            starts = seeds.excluded.starts[len(self._sizes.ends) * step :]
            excluded = seeds.excluded.ids.data_ptr(), starts.buffer_info()[0]
        self._call(
            "DeviceStaticTypedBegin",
            seeds.ids.data_ptr(),
            times,
            len(seeds.ids),
            len(parts) // 2,
            parts.buffer_info()[0],
            counts.buffer_info()[0],
            *excluded,
            epoch,
            first,
            stride,
            devices.current_stream(self._device),
        )

    def fill(self) -> None:
        """As ``StaticBuffers.fill``."""
        self._turn[0] += 1
        self._call("DeviceStaticTypedSpread", devices.current_stream(self._device))

    @property
    def num_edges(self) -> int:
        """Edges of the batch that was waited for."""
        return sum(edges_of_blocks(self._words))


class SingleTypeStaticBuffers(HeteroStaticBuffers):
    """As ``StaticBuffers``, of a graph that to the engine is one of one type: with the times of its
    edges, or for what ``StaticBuffers`` does not make."""

    __slots__ = ()

    def __init__(
        self,
        graph: Graph,
        timed: TimeSortedRelation | None,
        sampler: EngineSampler,
        capacities: Sequence[Capacity],
        seeds: int,
        seed_bits: int,
    ) -> None:
        plan = sampler._plan
        sizes = _Sizes(
            [(0, 0)],
            [seeds],
            [[block.num_src_nodes] for block in capacities],
            [[block.num_edges] for block in capacities],
            plan["frontier"] == "new",
        )
        handles = graph._handle(), sampler._handle()
        self._begin_of(graph._device, sizes, (graph, sampler, timed))
        by_time = (0, 0) if timed is None else (timed.memory.address, int(timed.by_vertex))
        self._new("DeviceStaticAloneNew", *handles, *by_time, seed_bits)
        bits = graph._known()[1]._bits
        subgraph_ids = timed is not None or plan["disjoint"]
        made = self._arrays(bits, subgraph_ids, plan["edge_weights"] is not None)
        fields = {
            "input_nodes": made.input_nodes[0],
            "output_nodes": made.output_nodes[0],
            "output_index": made.output_index[0],
            "blocks": tuple(self._block(StaticBlock, about) for (about,) in made.blocks),
            "subgraph_ids": made.subgraph_ids[0] if subgraph_ids else None,
        }
        self.batch = StaticMiniBatch._of_fields(fields, 0, 0)
        self.batch.__dict__["_counts"] = made.counts[: 1 + 3 * len(capacities)]


class _Arrays(NamedTuple):
    """Of each type tensors of vertices and seeds; and what blocks are made of, hop by hop."""

    input_nodes: list[torch.Tensor]
    subgraph_ids: list[torch.Tensor]
    output_nodes: list[torch.Tensor]
    output_index: list[torch.Tensor]
    blocks: list[list[_BlockParts]]
    counts: torch.Tensor


class _BlockParts(NamedTuple):
    """What a block is made of: its tensors, and what the engine and it know of them."""

    indptr: torch.Tensor
    indices: torch.Tensor
    edge_ids: torch.Tensor
    src_nodes: torch.Tensor
    dst_nodes: torch.Tensor
    dst_offset: Any
    edge_weights: torch.Tensor | None
    real: torch.Tensor
    about: array[int]
    ends: tuple[torch.Tensor, int] | None


def _room(used: int) -> int:
    """As ``room``; there is none for what no batch has."""
    return padded_rows(used) if used else 0
