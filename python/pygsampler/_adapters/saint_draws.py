"""What the faces of GraphSAINT draw for a batch: walks along edges, and edges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch.utils.data import get_worker_info

from pygsampler._batch.torch_minibatch import as_torch
from pygsampler._graph.graph import Graph
from pygsampler.programs import program
from pygsampler.walks import random_walk

__all__ = ["EdgeDraws", "NodeDraws", "WalkDraws"]


class NodeDraws(ABC):
    """Draws vertices of a batch, which may be the same."""

    @abstractmethod
    def __call__(self, graph: Graph, seed: int, epoch: int, number: int) -> torch.Tensor:
        """The vertices, where the graph samples."""


class WalkDraws(NodeDraws):
    """What so many walks from uniform vertices meet; one that finds no out-edge stays."""

    def __init__(self, walks: int, length: int) -> None:
        self._walks, self._length = walks, length

    def __call__(self, graph: Graph, seed: int, epoch: int, number: int) -> torch.Tensor:
        roots = _drawn(_roots(count=self._walks, seed=seed), graph, epoch, number)
        sampler = random_walk.RandomWalk(self._length, seed=seed)
        nodes: torch.Tensor = _made(sampler, graph, roots, epoch, number).nodes.flatten()
        return nodes[nodes >= 0]


class EdgeDraws(NodeDraws):
    """The ends of edges, u to v by 1 / out-degree(u) + 1 / in-degree(v), with replacement."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._graph: Graph | None = None

    def __call__(self, graph: Graph, seed: int, epoch: int, number: int) -> torch.Tensor:
        if self._graph is not graph:
            self._prepare(graph)
        drawn = _drawn(_by_chance(count=self._count, seed=seed), self._edges, epoch, number).long()
        return torch.cat([end[drawn] for end in self._ends])

    def _prepare(self, graph: Graph) -> None:
        """A graph whose vertices are the edges, and which has none."""
        sources, starts = graph.indices.torch().cpu().long(), graph.indptr.torch().cpu().long()
        degrees = starts.diff()
        targets = torch.arange(len(degrees)).repeat_interleave(degrees)
        q = 1 / degrees[targets].double()
        q += 1 / torch.bincount(sources, minlength=graph.num_nodes)[sources].double()
        nothing = torch.zeros(0, dtype=torch.int64)
        edges = Graph.from_coo(nothing, nothing, num_nodes=len(q), node_data={"q": q})
        self._edges = edges if graph.device == "cpu" else edges.to(graph.device)
        self._ends = [end.to(graph.device) for end in (sources, targets)]
        self._graph = graph


@program
def _roots(A: Any, seeds: Any, *, count: int) -> Any:
    return {"drawn": A.roots(count)}


@program
def _by_chance(A: Any, seeds: Any, *, count: int) -> Any:
    # The sums of what is computed of the graph alone are kept with it, those of an array are not.
    return {"drawn": (A.ndata["q"] * 1).draw(count, replace=True)}


def _made(sampler: Any, graph: Graph, seeds: torch.Tensor, epoch: int, number: int) -> Any:
    threads = 0 if get_worker_info() is None else 1
    job = sampler.launch(graph, seeds, epoch=epoch, batch=number, threads=threads, into="torch")
    return as_torch(job.result())


def _drawn(sampler: Any, graph: Graph, epoch: int, number: int) -> torch.Tensor:
    nothing = torch.zeros(0, dtype=torch.int64, device=graph.device)
    drawn: torch.Tensor = _made(sampler, graph, nothing, epoch, number).extra["drawn"]
    return drawn
