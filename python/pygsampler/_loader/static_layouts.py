"""``StaticLayout``: the sizes of a loader's static batches, and the memory of such sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pygsampler._engine.checks import describe, integer
from pygsampler._graph.schema import check_by_type, number_of
from pygsampler._sampling.static_buffers import Capacity, StaticBuffers

if TYPE_CHECKING:
    from pygsampler._graph.schema import EdgeType, Schema
    from pygsampler.samplers.neighbor import PGSampler

__all__ = ["StaticLayout", "time_sorted_edges"]

# Batches get more room than they were seen to need, by one part in this many.
_SPARE = 20


class StaticLayout:
    """The sizes of static batches of at most so many seeds, a ``Capacity`` for each hop.

    A graph without types has one of each, with empty names.
    """

    def __init__(
        self, graph: Any, sampler: PGSampler, seeds: int | Mapping[str, int], excludes: bool
    ) -> None:
        self._is_hetero = isinstance(seeds, Mapping)
        if isinstance(seeds, Mapping):
            self._seeds, self._num_nodes = dict(seeds), dict(graph.num_nodes)
            self._kinds: list[EdgeType] = list(graph.edge_types)
        else:
            self._seeds, self._num_nodes = {"": seeds}, {"": graph.num_nodes}
            self._kinds = [("", "", "")]
        # The plain kernel has none of these.
        self._is_plain = not (
            self._is_hetero
            or excludes
            or sampler.temporal is not None
            or sampler.disjoint
            or sampler.edge_weights is not None
            or sampler.frontier == "new"
        )

    def checked(self, capacities: Any, sampler: PGSampler) -> list[Capacity] | None:
        """Returns ``capacities`` that a caller wants for batches of ``sampler``, checked."""
        if capacities is None:
            return None
        where, hops = "static", len(sampler.fanouts)
        if isinstance(capacities, str) and capacities == "max":
            return self._most(sampler)
        if not isinstance(capacities, Sequence) or len(capacities) != hops:
            pairs = (
                f"a pair of mappings for each of {hops} hops"
                if self._is_hetero
                else f"a pair of sizes for each of {hops} blocks"
            )
            raise ValueError(
                f"{where}: expected {pairs}, outermost first, True, False or 'max', got "
                f"{describe(capacities)}"
            )
        result: list[Capacity] = []
        # A hop has all nodes of the hops before it.
        nodes = self._seeds_of_types()
        for place in reversed(range(hops)):
            pair, here = capacities[place], f"{where}[{place}]"
            if not isinstance(pair, Sequence) or len(pair) != 2:
                sizes = (
                    "mappings of node types and of edge types to sizes"
                    if self._is_hetero
                    else "(num_nodes, num_edges)"
                )
                raise TypeError(f"{here}: expected {sizes}, got {describe(pair)}")
            if not self._is_hetero:
                src, count = integer(pair[0], f"{here}[0]", 1), integer(pair[1], f"{here}[1]", 0)
                result.insert(0, Capacity({"": src}, {self._kinds[0]: count}))
                continue
            own = _sizes(pair[0], f"{here}[0]", nodes)
            nodes = {kind: max(own[kind], nodes[kind]) for kind in nodes}
            edges = _sizes(pair[1], f"{here}[1]", dict.fromkeys(self._kinds, 0))
            for kind, count in edges.items():
                for end in (kind[0], kind[2]):
                    if count and not nodes[end]:
                        raise ValueError(
                            f"{here}[1][{kind!r}]: expected 0 where there is no room for nodes "
                            f"of type {end!r}, got {count}"
                        )
            result.insert(0, Capacity(nodes, edges))
        return result

    def needed(self, batches: Iterable[Any]) -> list[Capacity]:
        """Returns the capacities that ``batches`` need, and some more."""
        most: list[Capacity] = []
        for batch in batches:
            sizes = self._of_batch(batch)
            most = self.grown(most, sizes) if most else sizes
        # There is room for the most seeds, which are sources of each block, in any case.
        more = 0 if self._is_hetero else 1
        return [
            Capacity(
                {k: max(_spare(n) + more, self._seeds.get(k, 0)) for k, n in nodes.items()},
                {kind: _spare(n) for kind, n in edges.items()},
            )
            for nodes, edges in most
        ]

    def grown(self, first: list[Capacity], second: list[Capacity]) -> list[Capacity]:
        """Returns capacities with room for the ``first`` and the ``second``."""
        return [
            Capacity(_larger(nodes, more_nodes), _larger(edges, more_edges))
            for (nodes, edges), (more_nodes, more_edges) in zip(first, second, strict=True)
        ]

    def shown(self, capacities: list[Capacity]) -> list[Capacity]:
        """Returns ``capacities`` as a caller writes them: numbers, or mappings of types."""
        if self._is_hetero:
            return list(capacities)
        return [Capacity(nodes[""], edges[self._kinds[0]]) for nodes, edges in capacities]

    def allocate(
        self, graph: Any, sampler: PGSampler, capacities: list[Capacity], bits: int, stages: bool
    ) -> StaticBuffers:
        """Returns memory of ``capacities`` for batches of ``sampler``, with seeds of ``bits``.

        ``stages`` is that of ``StaticBuffers``.
        """
        timed = time_sorted_edges(graph, sampler)
        source = sampler.sampled_graph(graph) if timed is None else timed.graph
        schema: Schema | None = None
        seeds: Any = self._seeds
        if self._is_hetero:
            engine: Any = sampler._hetero_sampler()
            schema = source._schema
        else:
            engine = sampler if timed is None else sampler._timed
            seeds = seeds[""]
        sizes = self.shown(capacities), seeds, bits
        return StaticBuffers(source, timed, engine, schema, *sizes, self._is_plain, stages)

    def _seeds_of_types(self) -> dict[str, int]:
        return {kind: self._seeds.get(kind, 0) for kind in self._num_nodes}

    def _most(self, sampler: PGSampler) -> list[Capacity]:
        """Returns sizes that no batch can exceed."""
        result: list[Capacity] = []
        rows = nodes = self._seeds_of_types()
        for hop in reversed(sampler.fanouts):
            edges = {}
            sources = dict.fromkeys(nodes, 0)
            for kind in self._kinds:
                edges[kind] = rows[kind[2]] * _fanout(hop, kind, sampler.default_fanout)
                sources[kind[0]] += edges[kind]
            nodes = {kind: n + sources[kind] for kind, n in nodes.items()}
            if not sampler.disjoint:
                # All nodes are distinct, except for seeds of graphs without types.
                twice = {} if self._is_hetero else self._seeds
                nodes = {k: min(n, self._num_nodes[k] + twice.get(k, 0)) for k, n in nodes.items()}
                sources = {kind: min(n, self._num_nodes[kind]) for kind, n in sources.items()}
            rows = nodes if sampler.frontier == "all" else sources
            least = 0 if self._is_hetero else 1
            room = {kind: max(n, least) for kind, n in nodes.items()}
            result.insert(0, Capacity(room, edges))
        return result

    def _of_batch(self, batch: Any) -> list[Capacity]:
        """Returns the sizes of a batch."""
        if not self._is_hetero:
            (kind,) = self._kinds
            return [
                Capacity({"": block.num_src_nodes}, {kind: block.num_edges})
                for block in batch.blocks
            ]
        result: list[Capacity] = []
        hops = len(batch.blocks)
        for place, hop in enumerate(batch.blocks):
            sampled = batch.num_sampled_nodes.items()
            nodes = {kind: sum(n[: hops + 1 - place]) for kind, n in sampled}
            edges = {kind: block.num_edges for kind, block in hop.items()}
            result.append(Capacity(nodes, edges))
        return result


def time_sorted_edges(graph: Any, sampler: PGSampler) -> Any:
    """Returns the graph's rows sorted by the times of its edges; None for a sampler without."""
    if sampler.temporal is None:
        return None
    sampler._check_span(graph)
    return graph._source._time_sorted(sampler.temporal.attr, sampler.mask, sampler.prob)


def _larger(first: Mapping[Any, int], second: Mapping[Any, int]) -> dict[Any, int]:
    return {kind: max(n, second[kind]) for kind, n in first.items()}


def _spare(n: int) -> int:
    return n + n // _SPARE


def _fanout(hop: Any, kind: EdgeType, default: int | None) -> int:
    """Returns the most edges of a type that a hop takes for a node."""
    fanout = int(number_of(hop, kind, default)) if isinstance(hop, Mapping) else int(hop)
    if fanout < 0:
        raise ValueError(
            "static: expected pairs of sizes with a fanout of -1, which has no bound, got 'most'"
        )
    return fanout


def _sizes(sizes: Any, where: str, least: Mapping[Any, int]) -> dict[Any, int]:
    """Returns sizes by type, checked; types that are not named have as few as may be."""
    if not isinstance(sizes, Mapping):
        raise TypeError(f"{where}: expected a mapping of types to sizes, got {describe(sizes)}")
    sizes = check_by_type(sizes, where, least)
    return {
        kind: integer(sizes[kind], f"{where}[{kind!r}]", 0) if kind in sizes else n
        for kind, n in least.items()
    }
