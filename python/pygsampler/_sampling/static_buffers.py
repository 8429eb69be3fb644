"""``StaticBuffers``: memory of batches that stays where it is, for launches of a CUDA graph."""

from __future__ import annotations

from array import array
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch

from pygsampler._arrays import devices
from pygsampler._batch import layout as at
from pygsampler._batch.buffer import edges_of_blocks
from pygsampler._batch.static import StaticBlock, StaticMiniBatch
from pygsampler._engine.handle import SLICE_MS, EngineHandle
from pygsampler._graph.schema import ByEdgeType, ByNodeType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pygsampler._graph.schema import Schema
    from pygsampler._sampling.engine_sampler import EngineSampler

__all__ = ["Capacity", "EpochExclusions", "EpochSeeds", "StaticBuffers"]


class Capacity(NamedTuple):
    """The most nodes that a static batch may have after a hop, and the most edges of the hop.

    Numbers, or mappings of node types and of edge types of a heterogeneous graph.
    """

    num_nodes: Any
    num_edges: Any


class EpochSeeds(NamedTuple):
    """The seeds of an epoch, batch after batch, of a heterogeneous graph type by type."""

    # On the GPU.
    ids: torch.Tensor
    # For each batch where its seeds begin, and how many there are.
    parts: array[int]
    # For each batch how many of them are of each type; of a homogeneous graph all.
    counts: array[int]
    # A time for each, float64 or int64; None: they have none.
    times: array[Any] | None
    # The edges that its batches leave out; None: there are none.
    excluded: EpochExclusions | None = None


class EpochExclusions(NamedTuple):
    """Edges that each batch of an epoch leaves out, relation by relation."""

    # int64, on the CPU.
    ids: torch.Tensor
    # The places where the ids of each batch and relation begin, and the end.
    starts: array[int]


class _Sizes(NamedTuple):
    """The room of batches; types and relations are their places in the schema."""

    ends: list[tuple[int, int]]  # the types of sources and destinations, of each relation
    seeds: list[int]  # of each type
    nodes: list[list[int]]  # of each hop, outermost first, and type
    edges: list[list[int]]  # and relation
    new: bool  # each hop expands the nodes that the one before has found

    def destinations(self, hop: int, kind: int) -> int:
        """Returns the most destinations of a type that a block may have."""
        if hop + 1 == len(self.nodes):
            return self.seeds[kind]
        before = self.nodes[hop + 1][kind]
        if not self.new:
            return before
        # Each was found by an edge of the hop before.
        edges = self.edges[hop + 1]
        return min(before, sum(edges[r] for r, (src, _) in enumerate(self.ends) if src == kind))

    def sources(self, hop: int, kind: int) -> int:
        """Returns the most sources of a type that a block may have.

        With ``new`` a node has one number in all blocks, and so much room in all of them: whatever
        fills them up is behind all of the batch.
        """
        return self.nodes[0 if self.new else hop][kind]


class StaticBuffers(EngineHandle):
    """Batches of one sampler and one graph on a GPU, one after the other in the same memory.

    Samples are in slots that take turns, so that one can be sampled while an earlier one is used;
    ``fill`` copies the next of them to the tensors of ``batch``. All of it is launches in torch's
    current stream, whose arguments are the same for every batch. A copy to the arrays of a hundred
    relations is one launch.

    With ``stages`` there is a second set of tensors, ``staged``: ``fill`` copies to that, and
    ``take`` from there to ``batch``, so that rows can be read for a batch while the one before is
    used.

    ``schema`` is that of a heterogeneous graph, ``times`` the graph's rows sorted by time.
    ``is_plain`` says that the kernel without types and times samples the batches.
    """

    __slots__ = (
        "__weakref__",
        "_copies",
        "_device",
        "_keep",
        "_kinds",
        "_sizes",
        "_turn",
        "_words",
        "batch",
        "staged",
    )

    _close_function: ClassVar[str] = "StaticClose"

    def __init__(
        self,
        graph: Any,
        times: Any,
        sampler: EngineSampler,
        schema: Schema | None,
        capacities: Sequence[Capacity],
        seeds: Any,
        seed_bits: int,
        is_plain: bool,
        stages: bool,
    ) -> None:
        super().__init__()
        plan = sampler._plan
        self._device, self._keep = graph._device, (graph, times, sampler)
        sizes = self._sizes = _sizes(schema, capacities, seeds, plan["frontier"] == "new")
        # Counts the batches that were requested: arrays derived from one are valid for it alone.
        self._turn = [0]
        self._kinds = [None] if schema is None else schema.edge_types
        hops, types, relations = len(sizes.nodes), len(sizes.seeds), len(sizes.ends)
        self._words = array("q", bytes(8 * at.num_words(hops, types, relations)))
        handles = graph._handle(), sampler._handle()
        most = array("q")
        if is_plain:
            for hop in range(hops):
                most.extend(
                    (sizes.sources(hop, 0), sizes.destinations(hop, 0), sizes.edges[hop][0])
                )
        else:
            most.extend(sizes.seeds)
            for nodes, edges in zip(sizes.nodes, sizes.edges, strict=True):
                most.extend((*nodes, *edges))
        by_time = array("q")
        if times is not None and schema is None:
            by_time = array("q", (times.memory.address, times.by_node))
        sorted_ = 0 if times is None else times.address if schema else by_time.buffer_info()[0]
        room = sizes.seeds[0] if is_plain else 0, seed_bits, hops, most.buffer_info()[0]
        # The order is that of core.NewStaticAt.
        words = array("q", (*handles, int(is_plain), sorted_, *room))
        self._create("StaticNew", words.buffer_info()[0])
        relation = graph if schema is None else next(iter(graph._open().values()))
        is_disjoint = times is not None or plan["disjoint"]
        has_weights = plan["edge_weights"] is not None
        bits = relation._device_or_host_arrays()[1]._bits
        about = schema, bits, is_disjoint, has_weights
        self.batch, tensors = self._allocate(*about)
        self.staged: StaticMiniBatch | None = None
        if stages:
            # The engine copies to what was allocated last.
            self.staged, staged = self._allocate(*about)
            self._copies = tensors, staged

    def _allocate(
        self, schema: Schema | None, bits: int, is_disjoint: bool, has_weights: bool
    ) -> tuple[StaticMiniBatch, list[torch.Tensor]]:
        """Allocates a batch and all of its tensors, and tells the engine where they are."""
        where, ids, sizes = place_of(self._device), INTEGERS[bits], self._sizes
        hops, relations, types = len(sizes.nodes), len(sizes.ends), len(sizes.seeds)
        arrays: tuple[list[torch.Tensor], ...] = ([], [], [], [])
        nodes, subgraphs, seeds, index = arrays
        addresses = array("q")
        for most, most_seeds in zip(sizes.nodes[0], sizes.seeds, strict=True):
            count, outputs = _room(most), _room(most_seeds)
            lengths = count, count if is_disjoint else 0, outputs, outputs
            for tensors, length in zip(arrays, lengths, strict=True):
                tensors.append(torch.zeros(length, dtype=ids, device=where))
                addresses.append(tensors[-1].data_ptr())
            addresses.extend((count, outputs))
        length = types * (hops + 2) + 3 * hops * relations
        counts = torch.zeros(length, dtype=torch.int64, device=where)
        tensors = [*nodes, *subgraphs, *seeds, *index, counts]
        widths = [self._call("StaticEdgeBits", i) for i in range(relations)]
        hop_blocks = [
            [
                self._block(i, hop, nodes, counts, INTEGERS[width], has_weights, addresses, tensors)
                for i, width in enumerate(widths)
            ]
            for hop in range(hops)
        ]
        addresses.append(counts.data_ptr())
        self._call("StaticPlace", len(addresses), addresses.buffer_info()[0])
        node_types, edge_types = (None, None) if schema is None else schema
        fields = {
            "input_nodes": _value(ByNodeType, node_types, nodes),
            "output_nodes": _value(ByNodeType, node_types, seeds),
            "output_index": _value(ByNodeType, node_types, index),
            "subgraph_ids": _value(ByNodeType, node_types, subgraphs) if is_disjoint else None,
            "blocks": tuple(_value(ByEdgeType, edge_types, blocks) for blocks in hop_blocks),
        }
        batch = StaticMiniBatch._of_fields(fields, 0, 0, None if schema is None else ())
        counts = counts[: 1 + 3 * hops] if schema is None else counts
        batch.__dict__.update(_counts=counts, _joins=sizes.new)
        return batch, tensors

    def _block(
        self,
        relation: int,
        hop: int,
        nodes: list[torch.Tensor],
        counts: torch.Tensor,
        width: torch.dtype,
        has_weights: bool,
        addresses: array[int],
        tensors: list[torch.Tensor],
    ) -> StaticBlock:
        """Allocates the tensors of a block, and appends to the lists of all and of addresses."""
        sizes, hops = self._sizes, len(self._sizes.nodes)
        src, dst = sizes.ends[relation]
        num_src, num_dst = _room(sizes.sources(hop, src)), _room(sizes.destinations(hop, dst))
        num_edges = sizes.edges[hop][relation]
        indptr, indices = (nodes[dst].new_zeros(length) for length in (num_dst + 1, num_edges))
        edge_ids = indices.new_zeros(num_edges, dtype=width)
        weights = indices.new_zeros(num_edges, dtype=torch.float32) if has_weights else None
        tensors += [indptr, indices, edge_ids, *([] if weights is None else [weights])]
        dst_nodes, ends = nodes[dst][:num_dst], None
        offset: torch.Tensor | int = 0
        if sizes.new:
            dst_nodes = indices.new_zeros(num_dst)
            tensors.append(dst_nodes)
            # The nodes of each type when each hop began, and in the end.
            types = len(sizes.seeds)
            found = counts[-types * (hops + 1) :].view(types, hops + 1)[dst]
            ends = found[-1], len(nodes[dst])
            # A hop expands what those before the last had not found yet.
            number = hops - 1 - hop
            offset = found[number - 1] if number else 0
        first = len(sizes.seeds) + 3 * (hop * len(sizes.ends) + relation)
        about = array("q", [tensor.data_ptr() for tensor in (indptr, indices, edge_ids)])
        addresses.extend((*about, 0 if weights is None else weights.data_ptr()))
        addresses.append(dst_nodes.data_ptr() if sizes.new else 0)
        about.extend((num_src, num_dst, num_edges))
        addresses.extend(about[3:])
        about.append(counts[first + 1 :].data_ptr())
        block = StaticBlock._of_arrays(
            *(indptr, indices, edge_ids, nodes[src][:num_src], dst_nodes, offset, weights),
            edge_type=self._kinds[relation],
        )
        block.__dict__.update(
            _counts=counts[first : first + 3],
            _turn=self._turn,
            _ends=ends,
            _edges=CooWriter(self, about),
        )
        return block

    def begin(self, seeds: EpochSeeds, step: int, epoch: int, first: int, stride: int) -> None:
        """Begins an epoch over seeds with one of their batches.

        Batch i from there on has the number ``first + i * stride``. Waits for torch's current
        stream. The seeds must stay until the epoch is over.
        """
        parts, counts = seeds.parts[2 * step :], seeds.counts[len(self._sizes.seeds) * step :]
        times = 0 if seeds.times is None else seeds.times.buffer_info()[0]
        excluded, starts = (0, 0), None
        if seeds.excluded is not None:
            starts = seeds.excluded.starts[len(self._sizes.ends) * step :]
            excluded = seeds.excluded.ids.data_ptr(), starts.buffer_info()[0]
        batches = len(parts) // 2, parts.buffer_info()[0], counts.buffer_info()[0]
        order = epoch, first, stride, devices.current_stream(self._device)
        # The order is that of core.DeviceStatic.Begin.
        ids = seeds.ids.data_ptr(), times, len(seeds.ids)
        words = array("q", (*ids, *batches, *excluded, *order))
        self._call("StaticBegin", words.buffer_info()[0])

    def sample(self) -> None:
        """Samples the next batch of the epoch; there are none behind the last."""
        self._call("StaticSample", devices.current_stream(self._device))

    def fill(self) -> None:
        """Copies the next batch that was sampled to ``batch``, or to ``staged``."""
        if self.staged is None:
            self._turn[0] += 1
        self._call("StaticFill", devices.current_stream(self._device))

    def is_over(self) -> torch.Tensor:
        """Returns a bool on the GPU: ``staged`` is behind the last batch of the epoch."""
        assert self.staged is not None
        return self.staged._counts[: len(self._sizes.seeds)].sum() == 0

    def take(self) -> None:
        """Copies ``staged`` to ``batch``."""
        assert self.staged is not None
        self._turn[0] += 1
        copy_all(*self._copies)

    def wait(self, number: int) -> bool:
        """Waits until batch ``number`` of the epoch is sampled; False where it is too large."""
        about = len(self._words), self._words.buffer_info()[0]
        while True:
            self._require_current_process()
            state = self._call("StaticWait", number, SLICE_MS, *about)
            if state:
                return bool(state == 1)

    def close(self) -> None:
        """Gives the memory of samples back; waits for the GPU."""
        self._release()

    @property
    def num_edges(self) -> int:
        """The number of edges of the batch that was waited for."""
        return sum(edges_of_blocks(self._words))


# Bytes from which a copy of its own is faster than a part of one launch, which reaches half the
# memory's bandwidth.
_LARGE = 1 << 24


def copy_all(targets: list[torch.Tensor], sources: list[torch.Tensor]) -> None:
    """Copies tensors to others of their shapes, by few launches in torch's current stream."""
    pairs: dict[torch.dtype, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
    for target, source in zip(targets, sources, strict=True):
        if target.nbytes > _LARGE:
            target.copy_(source)
            continue
        same = pairs.setdefault(target.dtype, ([], []))
        same[0].append(target)
        same[1].append(source)
    for same in pairs.values():
        # A call with several dtypes would launch a kernel for each tensor.
        torch._foreach_copy_(*same)


class CooWriter:
    """Writes the edges of a block one by one.

    ``block`` has the addresses of its indptr, indices and edge ids, its room for sources,
    destinations and edges, and the address of the number of its destinations.
    """

    __slots__ = ("_block", "_buffers")

    def __init__(self, buffers: StaticBuffers, block: array[int]) -> None:
        self._buffers = buffers
        self._block = block

    def __call__(self, sources: torch.Tensor | None, destinations: torch.Tensor) -> None:
        buffers, block = self._buffers, self._block[:]
        block.extend((0 if sources is None else sources.data_ptr(), destinations.data_ptr()))
        stream = devices.current_stream(buffers._device)
        bits = 8 * destinations.element_size()
        buffers._call("StaticEdges", bits, block.buffer_info()[0], stream)


def place_of(device: int) -> torch.device:
    """Returns the device of the tensors."""
    return torch.device("cuda", device)


def padded_rows(used: int) -> int:
    """Returns the number of rows for ``used``: some more, which edges that fill up lead between.

    It is a multiple of 8, as matrix units like it.
    """
    return -(-(used + used // 32 + 32) // 8) * 8


def _room(used: int) -> int:
    """Returns ``padded_rows``, but none where no batch has any."""
    return padded_rows(used) if used else 0


def _sizes(schema: Schema | None, capacities: Sequence[Capacity], seeds: Any, new: bool) -> _Sizes:
    """Returns the room for batches of so many ``seeds``, and the ``capacities`` of their hops."""
    if schema is None:
        nodes, edges = ([[hop[i]] for hop in capacities] for i in range(2))
        return _Sizes([(0, 0)], [seeds], nodes, edges, new)
    place = {kind: i for i, kind in enumerate(schema.node_types)}
    return _Sizes(
        [(place[src], place[dst]) for src, _, dst in schema.edge_types],
        [seeds.get(kind, 0) for kind in schema.node_types],
        [[hop.num_nodes[kind] for kind in schema.node_types] for hop in capacities],
        [[hop.num_edges[kind] for kind in schema.edge_types] for hop in capacities],
        new,
    )


def _value(kind: type[dict[Any, Any]], names: Sequence[Any] | None, values: list[Any]) -> Any:
    """Returns the only one of ``values``, or a read-only mapping of the names of types to them."""
    if names is None:
        (only,) = values
        return only
    return MappingProxyType(kind(zip(names, values, strict=True)))


INTEGERS = {32: torch.int32, 64: torch.int64}
