"""``EdgeSeeds``: edges to predict that a loader iterates over, with negatives and exclusions."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from pygsampler._batch.link_batch import LinkBatch, link_batch
from pygsampler._graph.graph import is_heterogeneous
from pygsampler._loader.edge_exclusion import EdgeExclusion
from pygsampler._loader.epoch_state import shuffle
from pygsampler._loader.seed_edges import BatchSeeds, SampledEdges, all_links, collect_seeds
from pygsampler._loader.seed_source import EpochDraws
from pygsampler._loader.seeds import check_dates, to_device
from pygsampler._loader.static_links import StaticLinks, epoch_seeds, most_seeds
from pygsampler._sampling.sampler import check_blocks, check_graph

if TYPE_CHECKING:
    from pygsampler._loader.epoch_state import EpochRun
    from pygsampler._sampling.sampler import Sampler
    from pygsampler._sampling.static_buffers import EpochSeeds

__all__ = ["EdgeSeeds"]


class EdgeSeeds:
    """The edges of a ``LinkLoader``; ``summary`` is how its ``repr`` shows them."""

    fills_caches: ClassVar[bool] = False
    digest: str | None = None

    def __init__(
        self,
        graph: Any,
        edges: Any,
        sampler: Sampler[Any],
        *,
        negative_sampling: Any,
        labels: Any,
        seed_time: Any,
        exclude: Any,
        reverse_eids: Any,
        reverse_etypes: Any,
    ) -> None:
        self._is_hetero = is_heterogeneous(graph)
        if self._is_hetero:
            check_graph(graph, sampler._takes_types)
        check_blocks(sampler)
        if not sampler.is_rooted:
            raise ValueError(f"sampler: expected one around its seeds, got {sampler!r}")
        given = negative_sampling
        rules = given.values() if isinstance(given, Mapping) else [given]
        rule = getattr(sampler, "temporal", None)
        names = dict.fromkeys(getattr(each, "time_attr", None) for each in rules)
        names[None if rule is None else rule.attr] = None
        check_dates(seed_time, graph, *names)
        self._links = all_links(
            graph, edges, negative_sampling=negative_sampling, labels=labels, seed_time=seed_time
        )
        self._is_temporal = rule is not None
        self._check_times(seed_time)
        self.exclusion = EdgeExclusion(graph, self._links, exclude, reverse_eids, reverse_etypes)
        # Each seed has a subgraph of its own.
        self._is_disjoint = bool(getattr(sampler, "disjoint", False))
        ends = [*itertools.accumulate(map(len, self._links.values()))]
        self._bounds = torch.tensor(ends, dtype=torch.int64)
        self._count = ends[-1] if ends else 0

    def __len__(self) -> int:
        return self._count

    @property
    def summary(self) -> str:
        """The number of edges, in words."""
        return f"{self._count} edges"

    @property
    def excludes(self) -> bool:
        """True if batches leave edges out."""
        return self.exclusion.kind is not None

    def begin(self, run: EpochRun, index: int) -> EpochDraws:
        """Implements ``SeedSource.begin``."""
        order = self._order(run) if run.draws is None else None
        # The batches that are in flight.
        waiting: deque[tuple[list[SampledEdges], list[torch.Tensor]]] = deque()

        def draw(step: int) -> tuple[Any, dict[str, Any]]:
            edges, seeds = self._draw(order, run, step) if order is not None else run.draws[step]
            waiting.append((edges, seeds.where))
            more = {"exclude": self.exclusion.excluded_ids([each.places for each in edges])}
            if self._is_temporal:
                more["seed_time"] = self._as_graph(seeds.times)
            return self._as_graph(seeds.seeds), more

        return EpochDraws(draw, lambda batch: self._batch(batch, *waiting.popleft(), index))

    def most(self, size: int, graph: Any) -> int | Mapping[str, int]:
        """Implements ``SeedSource.most``."""
        seeds: int | Mapping[str, int] = self._as_graph(self._most(size, graph))
        return seeds

    def static_links(self, size: int, graph: Any) -> StaticLinks:
        """Implements ``SeedSource.static_links``."""
        return StaticLinks(self._links, size, self._most(size, graph), self._is_hetero)

    def static_seeds(self, run: EpochRun, graph: Any, times: Any, index: int) -> EpochSeeds:
        """Implements ``SeedSource.static_seeds``; ``run`` has all draws from then on."""
        order = self._order(run)
        run.draws = [self._draw(order, run, step) for step in range(run.shard.steps)]
        return epoch_seeds(
            [seeds for _, seeds in run.draws],
            graph.node_types if self._is_hetero else [""],
            times,
            self.exclusion.of_pass(
                graph, ([each.places for each in edges] for edges, _ in run.draws)
            ),
            lambda ids: to_device(ids, index),
        )

    def _most(self, size: int, graph: Any) -> dict[str, int]:
        nodes = graph.num_nodes if self._is_hetero else {"": graph.num_nodes}
        return most_seeds(self._links, size, nodes, self._is_disjoint)

    def _order(self, run: EpochRun) -> torch.Tensor:
        """Returns the places of the edges in the order of an epoch."""
        places = torch.arange(self._count)
        return shuffle(places, run.seed, run.epoch) if run.shuffle else places

    def _draw(
        self, order: torch.Tensor, run: EpochRun, step: int
    ) -> tuple[list[SampledEdges], BatchSeeds]:
        """Returns the edges of a batch and its negatives, for each relation, and its seeds."""
        start, end = run.shard.bounds(step)
        places, batch = order[start:end], run.shard.number(step)
        relations = torch.bucketize(places, self._bounds, right=True)
        edges, first = [], 0
        for i, links in enumerate(self._links.values()):
            mine = places if len(self._links) == 1 else places[relations == i] - first
            edges.append(links.sample(mine, run.seed, run.epoch, batch))
            first += len(links)
        return edges, collect_seeds(edges, self._is_disjoint)

    def _batch(
        self, minibatch: Any, edges: list[SampledEdges], where: list[torch.Tensor], index: int
    ) -> LinkBatch:
        """Returns a batch as its consumer sees it."""
        rows = iter([to_device(each, index) for each in where])
        fields = {
            kind: links.handed(each.places, [next(rows) for _ in each.lists], index)
            for (kind, links), each in zip(self._links.items(), edges, strict=True)
        }
        return link_batch(minibatch, fields if self._is_hetero else fields[None])

    def _as_graph(self, values: dict[str, Any]) -> Any:
        """Returns a mapping of types, or of a graph without types its only value."""
        return values if self._is_hetero else values[""]

    def _check_times(self, times: Any) -> None:
        """Raises ValueError where times are missing, or nobody needs them."""
        by_negatives = any(links.has_negative_times for links in self._links.values())
        if self._is_temporal and times is None and self._links:
            raise ValueError(
                "seed_time: expected a time for each edge with a sampler that has time, got None"
            )
        if times is not None and not self._is_temporal and not by_negatives:
            raise ValueError(
                "seed_time: expected None for a sampler and negatives without time, got some"
            )
