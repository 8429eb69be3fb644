"""Sampling algorithms in torch's own operators, which programs are compared with.

Each takes a graph and seeds on any device and gives its batch as tensors: for each hop, outermost
last, the edges' rows, columns (as places among the hop's columns) and weights. They make no blocks
and number no vertices, which is work that programs do.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Graph:
    """A CSC with weights, on one device: int64 [V + 1], int64 [E], float32 [E]."""

    indptr: Tensor
    indices: Tensor
    weight: Tensor

    @property
    def num_nodes(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True)
class Hop:
    """Sampled edges: rows are vertices, columns places among ``frontier``."""

    frontier: Tensor
    rows: Tensor
    columns: Tensor
    weight: Tensor | None = None


def in_edges(graph: Graph, frontier: Tensor) -> tuple[Tensor, Tensor]:
    """Places of all in-edges in the CSC, and of which of the frontier's vertices each is one."""
    start = graph.indptr[frontier]
    degree = graph.indptr[frontier + 1] - start
    columns = torch.repeat_interleave(degree)
    first = degree.cumsum(0) - degree
    places = torch.arange(len(columns), device=columns.device) + (start - first)[columns]
    return places, columns


def uniform(graph: Graph, frontier: Tensor, fanout: int) -> Hop:
    """``fanout`` distinct in-edges of each vertex: those with the largest of random numbers."""
    places, columns = in_edges(graph, frontier)
    return Hop(
        frontier,
        *_largest(graph, places, columns, torch.rand(len(places), device=columns.device), fanout),
    )


def _largest(
    graph: Graph, places: Tensor, columns: Tensor, keys: Tensor, fanout: int
) -> tuple[Tensor, Tensor]:
    # By column and key at once: keys are in [0, 1).
    order = torch.argsort(columns.double() - keys.double())
    columns = columns[order]
    degree = torch.bincount(columns)
    first = degree.cumsum(0) - degree
    rank = torch.arange(len(columns), device=columns.device) - first[columns]
    keep = rank < fanout
    return graph.indices[places[order[keep]]], columns[keep]


def repeated(graph: Graph, frontier: Tensor, fanout: int) -> Hop:
    """``fanout`` in-edges of each vertex that has some, with replacement."""
    degree = graph.indptr[frontier + 1] - graph.indptr[frontier]
    some = torch.nonzero(degree).squeeze(1)
    draws = torch.rand(len(some), fanout, device=frontier.device)
    places = graph.indptr[frontier[some]][:, None] + (draws * degree[some][:, None]).long()
    return Hop(frontier, graph.indices[places].reshape(-1), some.repeat_interleave(fanout))


def sage(graph: Graph, seeds: Tensor, fanouts: list[int]) -> list[Hop]:
    """GraphSAGE; fanouts from the seeds on."""
    hops = []
    for fanout in fanouts:
        hops.append(uniform(graph, seeds, fanout))
        seeds = torch.unique(torch.cat([seeds, hops[-1].rows]))
    return hops


def again(graph: Graph, seeds: Tensor, fanouts: list[int]) -> list[Hop]:
    """Neighbours with replacement; fanouts from the seeds on."""
    hops = []
    for fanout in fanouts:
        hops.append(repeated(graph, seeds, fanout))
        seeds = torch.unique(torch.cat([seeds, hops[-1].rows]))
    return hops


def kgcn(graph: Graph, seeds: Tensor, fanouts: list[int]) -> list[Hop]:
    """KGCN: distinct edges where there are ``fanout``, else with replacement."""
    hops = []
    for fanout in fanouts:
        many = graph.indptr[seeds + 1] - graph.indptr[seeds] >= fanout
        places = many.nonzero().squeeze(1), (~many).nonzero().squeeze(1)
        parts = uniform(graph, seeds[many], fanout), repeated(graph, seeds[~many], fanout)
        columns = [own[part.columns] for own, part in zip(places, parts, strict=True)]
        hops.append(Hop(seeds, torch.cat([p.rows for p in parts]), torch.cat(columns)))
        seeds = torch.unique(torch.cat([seeds, hops[-1].rows]))
    return hops


def ladies(graph: Graph, seeds: Tensor, sizes: list[int]) -> list[Hop]:
    """LADIES: rows by the squares of their weights, weights by what they were drawn by."""
    hops = []
    for size in sizes:
        places, columns = in_edges(graph, seeds)
        weight = graph.weight[places]
        rows, of = torch.unique(graph.indices[places], return_inverse=True)
        p = torch.zeros(len(rows), device=rows.device).index_add_(0, of, weight * weight)
        keep = _chosen(p, size, False)[of] > 0
        columns, of, weight = columns[keep], of[keep], weight[keep]
        weight = weight / p[of]
        total = torch.zeros(len(seeds), device=rows.device).index_add_(0, columns, weight)
        hops.append(Hop(seeds, rows[of], columns, weight / total[columns]))
        seeds = torch.unique(torch.cat([seeds, hops[-1].rows]))
    return hops


def fastgcn(graph: Graph, seeds: Tensor, sizes: list[int], q: Tensor) -> list[Hop]:
    """FastGCN with rows of the frontier's edges, drawn by q [V] with replacement."""
    hops = []
    for size in sizes:
        places, columns = in_edges(graph, seeds)
        rows, of = torch.unique(graph.indices[places], return_inverse=True)
        p = q[rows]
        count = _chosen(p, size, True)
        keep = count[of] > 0
        columns, of, places = columns[keep], of[keep], places[keep]
        weight = graph.weight[places] * count[of] * p.sum() / (size * p[of])
        hops.append(Hop(seeds, rows[of], columns, weight))
        seeds = torch.unique(torch.cat([seeds, hops[-1].rows]))
    return hops


def asgcn(graph: Graph, seeds: Tensor, sizes: list[int], h: Tensor) -> list[Hop]:
    """AS-GCN with the scores h [V, 2] of vertices as sources and as targets."""
    hops = []
    for size in sizes:
        places, columns = in_edges(graph, seeds)
        weight = graph.weight[places]
        rows, of = torch.unique(graph.indices[places], return_inverse=True)
        p = torch.zeros(len(rows), device=rows.device).index_add_(0, of, weight * weight).sqrt()
        source = h[rows, 0]
        p = p * (torch.relu(source + h[seeds, 1].sum()) + 1) / size * (torch.relu(source) + 1)
        count = _chosen(p, size, True)
        keep = count[of] > 0
        columns, of, weight = columns[keep], of[keep], weight[keep]
        weight = (
            weight
            * (torch.relu(source[of] + h[seeds, 1][columns]) + 1)
            * count[of]
            * p.sum()
            / (size * p[of])
        )
        hops.append(Hop(seeds, rows[of], columns, weight))
        seeds = torch.unique(torch.cat([seeds, hops[-1].rows]))
    return hops


def passed(
    graph: Graph, seeds: Tensor, fanouts: list[int], x: Tensor, w: tuple[Tensor, Tensor, Tensor]
) -> list[Hop]:
    """PASS over all edges of a destination, with the features x [V, d] and the trained w."""
    hops = []
    by = torch.softmax(w[2], 0)
    for fanout in fanouts:
        places, columns = in_edges(graph, seeds)
        rows, of = torch.unique(graph.indices[places], return_inverse=True)
        weight = graph.weight[places]
        total = torch.zeros(len(seeds), device=x.device).index_add_(0, columns, weight)
        score = by[2] * weight / total[columns]
        for k in (0, 1):
            source, target = x[rows] @ w[k], x[seeds] @ w[k]
            score = score + by[k] * (source[of] * target[columns]).sum(1)
        upto = (torch.relu(score) + 1e-9).double().cumsum(0)
        last = torch.bincount(columns, minlength=len(seeds)).cumsum(0)
        some = torch.nonzero(last.diff(prepend=last.new_zeros(1))).squeeze(1)
        ends = upto[last[some] - 1]
        begins = torch.cat([ends.new_zeros(1), ends[:-1]])[:, None]
        draws = begins + torch.rand(len(some), fanout, device=x.device) * (ends[:, None] - begins)
        drawn = torch.searchsorted(upto, draws.reshape(-1)).clamp_(max=len(upto) - 1)
        hops.append(Hop(seeds, rows[of[drawn]], some.repeat_interleave(fanout)))
        seeds = torch.unique(torch.cat([seeds, hops[-1].rows]))
    return hops


def labor(graph: Graph, seeds: Tensor, fanouts: list[int]) -> list[Hop]:
    """LABOR-0: an edge stays where its row's number is at most fanout / degree."""
    hops = []
    for fanout in fanouts:
        places, columns = in_edges(graph, seeds)
        rows = graph.indices[places]
        degree = graph.indptr[seeds + 1] - graph.indptr[seeds]
        r = torch.rand(graph.num_nodes, device=rows.device)
        keep = r[rows] <= fanout / degree[columns]
        hops.append(Hop(seeds, rows[keep], columns[keep]))
        seeds = torch.unique(torch.cat([seeds, hops[-1].rows]))
    return hops


def induced(graph: Graph, vertices: Tensor) -> Hop:
    """The edges among distinct vertices."""
    places, columns = in_edges(graph, vertices)
    rows = graph.indices[places]
    member = torch.zeros(graph.num_nodes, dtype=torch.bool, device=rows.device)
    member[vertices] = True
    keep = member[rows]
    return Hop(vertices, rows[keep], columns[keep])


def shadow(graph: Graph, seeds: Tensor, fanouts: list[int]) -> list[Hop]:
    """ShaDow of all seeds in one subgraph, as gSampler has it."""
    for fanout in fanouts:
        seeds = torch.unique(torch.cat([seeds, uniform(graph, seeds, fanout).rows]))
    return [induced(graph, seeds)]


def saint_nodes(graph: Graph, size: int, q: Tensor) -> list[Hop]:
    """GraphSAINT's node sampler: vertices by q [V] with replacement, and the edges among them."""
    drawn = torch.searchsorted(
        q.cumsum(0), torch.rand(size, dtype=q.dtype, device=q.device) * q.sum()
    )
    return [induced(graph, torch.unique(drawn))]


def saint_walks(graph: Graph, roots: int, length: int) -> list[Hop]:
    """GraphSAINT's walk sampler: what walks along in-edges visit, and the edges among it."""
    visited = [torch.randint(graph.num_nodes, (roots,), device=graph.indptr.device)]
    for _ in range(length):
        at = visited[-1]
        start = graph.indptr[at]
        degree = graph.indptr[at + 1] - start
        step = start + (torch.rand(len(at), device=at.device) * degree).long()
        last = len(graph.indices) - 1
        visited.append(torch.where(degree > 0, graph.indices[step.clamp(max=last)], at))
    return [induced(graph, torch.unique(torch.cat(visited)))]


def _chosen(p: Tensor, size: int, replace: bool) -> Tensor:
    """Returns the number of draws of each row, float32."""
    if not replace and len(p) <= size:
        return torch.ones_like(p)
    drawn = torch.multinomial(p, size, replacement=replace)
    return torch.bincount(drawn, minlength=len(p)).to(p.dtype)
