"""``Form``: what static batches are of graphs of a kind, how large, and in which memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pygsampler._engine.checks import describe, integer
from pygsampler._graph.schema import check_by_type, number_of
from pygsampler._sampling.static_buffers import Capacity, StaticBuffers
from pygsampler._sampling.static_buffers_hetero import (
    HeteroCapacity,
    HeteroStaticBuffers,
    SingleTypeStaticBuffers,
)

if TYPE_CHECKING:
    from pygsampler._graph.graph import Graph
    from pygsampler._graph.hetero_graph import EdgeType, HeteroGraph
    from pygsampler.samplers.neighbor import PGSampler

__all__ = ["StaticLayout", "static_layout", "timed_of"]

# Of what batches were seen to need, how much more they get.
_SPARE = 20


class StaticLayout(Protocol):
    """One kind of static batches; it can be pickled."""

    def checked(self, given: Any, sampler: PGSampler) -> list[Any] | None:
        """Capacities as a caller gave them."""
        ...

    def needed(self, batches: Iterable[Any]) -> list[Any]:
        """The capacities that batches need, and some more."""
        ...

    def grown(self, old: list[Any], new: list[Any]) -> list[Any]:
        """What has room for both."""
        ...

    def make(self, graph: Any, sampler: PGSampler, capacities: Any, bits: int) -> StaticBuffers:
        """The memory of batches, with seeds of so many bits each."""
        ...


class PlainLayout:
    """Of graphs without types: a ``Capacity`` for each block."""

    def __init__(self, seeds: int, num_nodes: int) -> None:
        self._seeds = seeds
        self._num_nodes = num_nodes

    def checked(self, given: Any, sampler: PGSampler) -> list[Any] | None:
        """As ``Form.checked``."""
        if given is None:
            return None
        where, hops = "capacities", len(sampler.fanouts)
        if isinstance(given, str) and given == "most":
            return self._most(sampler)
        if not isinstance(given, Sequence) or len(given) != hops:
            raise ValueError(
                f"{where}: expected a pair of sizes for each of {hops} blocks, outermost first, or "
                f"'most', got {describe(given)}"
            )
        made = []
        for place, pair in enumerate(given):
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise TypeError(
                    f"{where}[{place}]: expected (num_src_nodes, num_edges), got {describe(pair)}"
                )
            src = integer(pair[0], f"{where}[{place}][0]", 1)
            made.append(Capacity(src, integer(pair[1], f"{where}[{place}][1]", 0)))
        return made

    def _most(self, sampler: PGSampler) -> list[Any]:
        """What no batch can exceed."""
        made: list[Capacity] = []
        rows = nodes = self._seeds
        for fanout in reversed(sampler.fanouts):
            edges = rows * _bounded(fanout)
            found = edges
            nodes += edges
            if not sampler.disjoint:
                # Seeds may be given twice; all other sources are distinct.
                found = min(found, self._num_nodes)
                nodes = min(nodes, self._seeds + self._num_nodes)
            rows = nodes if sampler.frontier == "all" else found
            made.insert(0, Capacity(max(nodes, 1), edges))
        return made

    def needed(self, batches: Iterable[Any]) -> list[Any]:
        """As ``Form.needed``."""
        most: list[list[int]] = []
        for batch in batches:
            most = most or [[1, 0] for _ in batch.blocks]
            for had, block in zip(most, batch.blocks, strict=True):
                had[0] = max(had[0], block.num_src_nodes)
                had[1] = max(had[1], block.num_edges)
        # There is room for the most seeds, which are sources of each block, in any case.
        return [Capacity(max(_spare(src) + 1, self._seeds), _spare(edges)) for src, edges in most]

    def grown(self, old: list[Any], new: list[Any]) -> list[Any]:
        """As ``Form.grown``."""
        return [Capacity(*map(max, had, has)) for had, has in zip(old, new, strict=True)]

    def make(self, graph: Graph, sampler: PGSampler, capacities: Any, bits: int) -> StaticBuffers:
        """As ``Form.make``."""
        return StaticBuffers(sampler.graph_of(graph), sampler, capacities, self._seeds, bits)


class SingleTypeLayout(PlainLayout):
    """The same by the kernel of graphs with types, which knows of times, trees and other frontiers,
    and of edges that batches leave out."""

    def make(self, graph: Graph, sampler: PGSampler, capacities: Any, bits: int) -> StaticBuffers:
        """As ``Form.make``."""
        about = capacities, self._seeds, bits
        timed = timed_of(graph, sampler)
        if timed is None:
            return SingleTypeStaticBuffers(sampler.graph_of(graph), None, sampler, *about)
        assert sampler._timed is not None
        return SingleTypeStaticBuffers(timed.graph, timed, sampler._timed, *about)


class HeteroLayout:
    """Of graphs with types: a ``HeteroCapacity`` for each hop."""

    def __init__(self, graph: HeteroGraph, seeds: Mapping[str, int]) -> None:
        self._seeds = dict(seeds)
        self._num_nodes = dict(graph.num_nodes)
        self._kinds: list[EdgeType] = list(graph.edge_types)

    def checked(self, given: Any, sampler: PGSampler) -> list[Any] | None:
        """As ``Form.checked``."""
        if given is None:
            return None
        where, hops = "capacities", len(sampler.fanouts)
        if isinstance(given, str) and given == "most":
            return self._most(sampler)
        if not isinstance(given, Sequence) or len(given) != hops:
            raise ValueError(
                f"{where}: expected a pair of mappings for each of {hops} hops, outermost first, "
                f"or 'most', got {describe(given)}"
            )
        made: list[HeteroCapacity] = []
        # A hop has all vertices of those before it.
        nodes = {kind: self._seeds.get(kind, 0) for kind in self._num_nodes}
        for place in reversed(range(hops)):
            pair, here = given[place], f"{where}[{place}]"
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise TypeError(
                    f"{here}: expected mappings of vertex types and of edge types to sizes, got "
                    f"{describe(pair)}"
                )
            own = _sizes(pair[0], f"{here}[0]", nodes)
            nodes = {kind: max(own[kind], nodes[kind]) for kind in nodes}
            edges = _sizes(pair[1], f"{here}[1]", dict.fromkeys(self._kinds, 0))
            for kind, count in edges.items():
                for end in (kind[0], kind[2]):
                    if count and not nodes[end]:
                        raise ValueError(
                            f"{here}[1][{kind!r}]: expected 0 where there is no room for vertices "
                            f"of type {end!r}, got {count}"
                        )
            made.insert(0, HeteroCapacity(nodes, edges))
        return made

    def _most(self, sampler: PGSampler) -> list[Any]:
        """What no batch can exceed."""
        made: list[HeteroCapacity] = []
        nodes = {kind: self._seeds.get(kind, 0) for kind in self._num_nodes}
        rows = nodes
        for hop in reversed(sampler.fanouts):
            edges = {}
            found = dict.fromkeys(nodes, 0)
            for kind in self._kinds:
                fanout = _bounded(_of(hop, kind, sampler.default_fanout))
                edges[kind] = rows[kind[2]] * fanout
                found[kind[0]] += edges[kind]
            nodes = self._distinct({kind: n + found[kind] for kind, n in nodes.items()}, sampler)
            rows = nodes if sampler.frontier == "all" else self._distinct(found, sampler)
            made.insert(0, HeteroCapacity(nodes, edges))
        return made

    def _distinct(self, found: dict[str, int], sampler: PGSampler) -> dict[str, int]:
        """Without trees all vertices of a batch are distinct."""
        if sampler.disjoint:
            return found
        return {kind: min(n, self._num_nodes[kind]) for kind, n in found.items()}

    def needed(self, batches: Iterable[Any]) -> list[Any]:
        """As ``Form.needed``."""
        most: list[HeteroCapacity] = []
        for batch in batches:
            most = self.grown(most, _of_batch(batch)) if most else _of_batch(batch)
        return [
            HeteroCapacity(
                {kind: max(_spare(n), self._seeds.get(kind, 0)) for kind, n in nodes.items()},
                {kind: _spare(n) for kind, n in edges.items()},
            )
            for nodes, edges in most
        ]

    def grown(self, old: list[Any], new: list[Any]) -> list[Any]:
        """As ``Form.grown``."""
        return [
            HeteroCapacity(
                *(
                    {kind: max(a[kind], b[kind]) for kind in a}
                    for a, b in zip(had, has, strict=True)
                )
            )
            for had, has in zip(old, new, strict=True)
        ]

    def make(
        self, graph: HeteroGraph, sampler: PGSampler, capacities: Any, bits: int
    ) -> StaticBuffers:
        """As ``Form.make``."""
        timed = timed_of(graph, sampler)
        graph = sampler.graph_of(graph) if timed is None else timed.graph
        about = capacities, self._seeds, bits
        return HeteroStaticBuffers(graph, timed, sampler._hetero_sampler(), *about)


def static_layout(
    graph: Any, sampler: PGSampler, seeds: int | Mapping[str, int], excludes: bool = False
) -> StaticLayout:
    """What static batches of a graph are, of at most so many seeds, by type where it has types, and
    which may leave edges out."""
    if isinstance(seeds, Mapping):
        return HeteroLayout(graph, seeds)
    more = sampler.temporal is not None or sampler.disjoint or sampler.edge_weights is not None
    kind = SingleTypeLayout if more or excludes or sampler.frontier == "new" else PlainLayout
    return kind(seeds, graph.num_nodes)


def timed_of(graph: Any, sampler: PGSampler) -> Any:
    """The times of the graph's edges, and its rows by them; None for a sampler without."""
    if sampler.temporal is None:
        return None
    sampler._check_span(graph)
    return graph._timed(sampler.temporal.attr, sampler.mask, sampler.prob)


def _of_batch(batch: Any) -> list[HeteroCapacity]:
    """What a batch needs."""
    made: list[HeteroCapacity] = []
    hops = len(batch.blocks)
    for place, hop in enumerate(batch.blocks):
        found = {kind: sum(n[: hops + 1 - place]) for kind, n in batch.num_sampled_nodes.items()}
        made.append(HeteroCapacity(found, {kind: block.num_edges for kind, block in hop.items()}))
    return made


def _spare(n: int) -> int:
    return n + n // _SPARE


def _bounded(fanout: int) -> int:
    if fanout < 0:
        raise ValueError(
            "capacities: expected pairs of sizes with a fanout of -1, which has no bound, got "
            "'most'"
        )
    return fanout


def _of(hop: Any, kind: EdgeType, default: int | None) -> int:
    """How many edges of a type a hop takes."""
    if not isinstance(hop, Mapping):
        number: int = hop
        return number
    return int(number_of(hop, kind, default))


def _sizes(given: Any, where: str, least: Mapping[Any, int]) -> dict[Any, int]:
    """Sizes by type as a caller gave them; of those that are not named as few as may be."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{where}: expected a mapping of types to sizes, got {describe(given)}")
    given = check_by_type(given, where, least)
    return {
        kind: integer(given[kind], f"{where}[{kind!r}]", 0) if kind in given else n
        for kind, n in least.items()
    }
