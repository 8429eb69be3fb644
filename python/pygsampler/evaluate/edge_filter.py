"""``EdgeFilter``: the candidates that known edges rule out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from pygsampler._engine.checks import describe
from pygsampler._graph.graph import Graph
from pygsampler._loader.edge_relation import EdgeRelation, edge_relation

__all__ = ["EdgeFilter", "filter_relations"]


class EdgeFilter:
    """The ends of links, and the candidates of each that known edges rule out."""

    def __init__(
        self,
        relations: Sequence[EdgeRelation],
        end_ids: tuple[torch.Tensor, torch.Tensor],
        place: int,
        counts: tuple[int, int],
    ) -> None:
        self.place = place
        self.count = counts[place]
        self.fixed = end_ids[1 - place].cpu()
        self.true = end_ids[place].cpu()
        self.rows: list[tuple[torch.Tensor, torch.Tensor]] = []
        for relation in relations:
            if relation.graph is not None:
                rows: Any = relation.graph._source._on_cpu()
                # Row v lists the sources of edges to v.
                rows = rows._transposed() if place else rows
                self.rows.append((rows.indptr.torch(), rows.indices.torch()))

    def blocks(self, links: int, edges: int) -> Iterator[slice]:
        """Yields ranges of links with at most so many links and known edges, or of one link."""
        ends = torch.zeros(len(self.fixed), dtype=torch.int64)
        for indptr, _ in self.rows:
            first, last = self._bounds(indptr, self.fixed)
            ends += last - first
        ends, start = ends.cumsum(0), 0
        while start < len(ends):
            before = int(ends[start - 1]) if start else 0
            fit = int(torch.searchsorted(ends, before + edges, right=True))
            stop = max(start + 1, min(start + links, fit, len(ends)))
            yield slice(start, stop)
            start = stop

    def keys(self, block: slice) -> torch.Tensor:
        """Returns the excluded candidates: ascending, link of the block * nodes + node.

        They are the true end of each link and the other ends of known edges.
        """
        fixed, links = self.fixed[block], torch.arange(block.stop - block.start)
        parts = [links * self.count + self.true[block]]
        for indptr, indices in self.rows:
            first, last = self._bounds(indptr, fixed)
            lengths = last - first
            link = links.repeat_interleave(lengths)
            place = torch.arange(len(link)) + (first - lengths.cumsum(0) + lengths)[link]
            parts.append(link * self.count + indices[place])
        # Several edges between two nodes rule one candidate out.
        keys: torch.Tensor = torch.unique(torch.cat(parts))
        return keys

    @staticmethod
    def _bounds(indptr: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # A graph may have fewer rows than nodes.
        most = len(indptr) - 1
        return indptr[ids.clamp(max=most)].long(), indptr[(ids + 1).clamp(max=most)].long()


def filter_relations(filters: Any, edge_type: Any) -> list[EdgeRelation]:
    """Returns the known edges between the ends of links, for each graph."""
    if filters is None:
        return []
    graphs = filters if isinstance(filters, (list, tuple)) else [filters]
    for graph in graphs:
        if not isinstance(graph, Graph):
            raise TypeError(f"filters: expected a Graph or several, got {describe(graph)}")
    return [edge_relation(graph, edge_type) for graph in graphs]
