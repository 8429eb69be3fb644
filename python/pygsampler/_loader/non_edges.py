"""``NonEdges``: the nodes that no edge leads to from a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from pygsampler._loader.candidate_pool import BITS, scaled
from pygsampler._loader.rng import BatchId, DrawShape, device_of, draw

if TYPE_CHECKING:
    from pygsampler._loader.candidate_pool import CandidatePool
    from pygsampler._loader.edge_relation import EdgeRelation

__all__ = ["NonEdges", "non_edges"]

# The bound of counts that random numbers are multiplied by.
_MOST = 1 << BITS // 2
# The key in what a graph keeps.
_KEY = "non-edges"


class _Search(NamedTuple):
    """The arrays of the search for nodes that are not neighbors, on one device."""

    keys: torch.Tensor
    """For neighbour i (from 0) of u, in ascending order, without repetition and u among them: u n,
    and how many nodes below it are allowed."""
    start: torch.Tensor
    """The place where each node's neighbors begin: shape [sources + 1]."""
    raw: torch.Tensor | None
    """With times: u n and the neighbour."""


class NonEdges:
    """The destinations that a source has no edge to; of one type a node is not among its own.

    With times they are numbered in the order of time.
    """

    def __init__(self, relation: EdgeRelation, candidates: CandidatePool | None) -> None:
        self.count = n = relation.num_dst
        sources = relation.num_src
        if max(n, sources) >= _MOST:
            raise ValueError(
                "negative_sampling: expected fewer than 2^31 nodes to draw from, got "
                f"{max(n, sources)}"
            )
        graph = relation.require_graph("'structural'")._source._on_cpu()
        place = torch.arange(n)
        if candidates is not None:
            order = candidates.tensors_on(-1).order
            assert order is not None
            place = torch.empty_like(order)
            place[order] = torch.arange(n)
        same = relation.ends[0] == relation.ends[1]
        degrees = graph.indptr.torch().long().diff()[:n]
        edges = graph.indices.torch().long() * n
        edges += torch.repeat_interleave(place[: len(degrees)], degrees)
        self.others = n - 1 if same else n
        own = torch.arange(n) * n + place
        keys = torch.unique(torch.cat([edges, own]) if same else edges)
        start = torch.searchsorted(keys, torch.arange(sources + 1) * n)
        raw = keys if candidates is None else keys.clone()
        src = torch.div(keys, n, rounding_mode="floor") if n else keys
        keys -= torch.arange(len(keys)) - start[src]
        # Its address is how it is known: it stays as long as this.
        self.array = None if candidates is None else candidates.array
        self._on = {-1: _Search(keys, start, None if candidates is None else raw)}

    def close(self) -> None:
        """Lets go of the tensors."""
        self._on.clear()

    def draw(
        self,
        src: torch.Tensor,
        number: BatchId,
        site: int,
        shape: DrawShape,
        candidates: CandidatePool | None = None,
        bound: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Nodes for each of ``src``, [rows, 1 or each], all that are allowed equally likely."""
        n, index = self.count, device_of(src)
        if index not in self._on:
            # The host waits for the copies, so they are there for every stream.
            made = (None if of is None else of.to(src.device) for of in self._on[-1])
            self._on[index] = _Search(*made)  # type: ignore[arg-type]
        keys, start, raw = self._on[index]
        at = src.long()
        first = start[at]
        if candidates is None:
            allowed = n - (start[at + 1] - first)
        else:
            assert raw is not None
            there = candidates.available(src, bound)
            allowed = there - (torch.searchsorted(raw, at * n + there) - first)
        if bool((allowed <= 0).any()):
            vertex = int(at.expand_as(allowed)[allowed <= 0][0])
            those = (
                f"all {self.others} others" if bound is None else "all that are there at its time"
            )
            raise ValueError(
                f"negative_sampling: expected nodes without an edge to some node, got {vertex}, "
                f"from which edges lead to {those}"
            )
        x = draw(at, number, site, 1 << BITS, shape)
        rank = scaled(x, allowed)
        found = rank + torch.searchsorted(keys, at * n + rank, right=True) - first
        return (found if candidates is None else candidates.named(found)).to(src.dtype)


def non_edges(relation: EdgeRelation, candidates: CandidatePool | None) -> NonEdges:
    """Returns the ``NonEdges`` of a relation, which the graph keeps, on the CPU for a GPU too.

    ``candidates`` has the times of its destinations.
    """
    host = relation.require_graph("'structural'")._source._on_cpu()
    # A graph may be the rows of several relations.
    key = (_KEY, *relation[1:4], None if candidates is None else id(candidates.array))
    kept: NonEdges = host._cached(key, lambda: NonEdges(relation, candidates))
    return kept
