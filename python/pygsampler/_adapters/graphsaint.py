"""GraphSAINT as the samplers of DGL and PyG have it: subgraphs of drawn nodes, and their norms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any

import torch

from pygsampler._adapters.engine_batch import engine_batch
from pygsampler._graph.graph import Graph
from pygsampler.programs import program
from pygsampler.programs.program_sampler import ProgramSampler
from pygsampler.samplers.saint_norms import count_subgraphs
from pygsampler.samplers.subgraphs import induced
from pygsampler.walks import random_walk

__all__ = [
    "CountedNorms",
    "EdgeDraws",
    "ExactNorms",
    "NodeDraws",
    "SaintSubgraphs",
    "WalkDraws",
    "by_out_degree",
]

Norms = tuple[torch.Tensor, torch.Tensor]


class NodeDraws(ABC):
    """Draws the nodes of a batch, which may repeat."""

    @abstractmethod
    def __call__(self, graph: Graph, seed: int, epoch: int, batch: int) -> torch.Tensor:
        """Returns the nodes, on the device of the graph."""


class WalkDraws(NodeDraws):
    """Draws the nodes of ``walks`` walks of ``length`` steps from uniform nodes.

    A walk that finds no out-edge stays where it is.
    """

    def __init__(self, walks: int, length: int) -> None:
        self._walks, self._length = walks, length

    def __call__(self, graph: Graph, seed: int, epoch: int, batch: int) -> torch.Tensor:
        roots = _draw(_roots(count=self._walks, seed=seed), graph, epoch, batch)
        walk = random_walk.RandomWalk(self._length, seed=seed)
        nodes: torch.Tensor = engine_batch(walk, graph, roots, epoch, batch).nodes.flatten()
        return nodes[nodes >= 0]


class EdgeDraws(NodeDraws):
    """Draws the ends of edges, u to v by 1 / out-degree(u) + 1 / in-degree(v), with replacement."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._graph: Graph | None = None

    def __call__(self, graph: Graph, seed: int, epoch: int, batch: int) -> torch.Tensor:
        if self._graph is not graph:
            self._prepare(graph)
        drawn = _draw(_by_chance(count=self._count, seed=seed), self._edges, epoch, batch).long()
        return torch.cat([end[drawn] for end in self._ends])

    def _prepare(self, graph: Graph) -> None:
        """Makes a graph whose nodes are the edges of ``graph``, and which has no edges."""
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


def _draw(sampler: Any, graph: Graph, epoch: int, batch: int) -> torch.Tensor:
    nothing = torch.zeros(0, dtype=torch.int64, device=graph.device)
    drawn: torch.Tensor = engine_batch(sampler, graph, nothing, epoch, batch).extra["drawn"]
    return drawn


class SaintSubgraphs(ProgramSampler[Any]):
    """GraphSAINT's subgraphs: all edges among nodes that ``draws`` draws, whatever the seeds.

    Nodes are in the order in which they are first drawn, or, with ``ascending``, in that of ids.
    """

    def __init__(self, draws: NodeDraws, seed: int | None, ascending: bool = False) -> None:
        super().__init__(induced(seed=seed))
        self._draws, self._ascending = draws, ascending

    @property
    def plan(self) -> Hashable:
        """The plan of the program that induces, and the draws."""
        return "saint", self._program.plan, self._draws, self._ascending

    @property
    def is_rooted(self) -> bool:
        """False: the seeds have no part in a batch."""
        return False

    def launch(self, graph: Graph, seeds: Any, *, epoch: int, batch: int, **how: Any) -> Any:
        """Starts a batch, as ``Sampler.launch`` does, once its nodes are drawn."""
        nodes = self._draws(graph, self.seed, epoch, batch)
        if self._ascending:
            nodes = torch.unique(nodes)
        return self._program.launch(graph, nodes, epoch=epoch, batch=batch, **how)


@program
def by_out_degree(A: Any, seeds: Any, *, budget: int, isolated: bool) -> Any:
    """All edges among ``budget`` draws of nodes by out-degree, with replacement.

    With ``isolated`` the out-degree of a node without out-edges counts as 1.
    """
    degrees = A.count(axis=1)
    if isolated:
        degrees = degrees.maximum(1)
    return A.induce(degrees.draw(budget, replace=True).unique())


class ExactNorms:
    """The norms of nodes and edges of batches of ``budget`` draws by out-degree, by their chances.

    ``pygsampler.pyg.GraphSAINTNodeSampler`` has the formulas.
    """

    def __init__(self, graph: Graph, budget: int) -> None:
        self._graph, self._budget = graph, budget
        sources = graph.indices.torch().long()
        self._chance = torch.bincount(sources, minlength=graph.num_nodes).double()
        self._chance /= max(len(sources), 1)

    def of_batch(
        self, nodes: torch.Tensor, src: torch.Tensor, dst: torch.Tensor, edges: torch.Tensor
    ) -> Norms:
        """Returns the norms of nodes, and of edges between those at the places ``src``, ``dst``."""
        q = self._chance[nodes]
        chance = 1 - self._missed(q)
        both = chance[src] + chance[dst] - 1 + self._missed(q[src] + q[dst])
        both = torch.where(src == dst, chance[src], both)
        node_norm = (1 / (self._graph.num_nodes * chance)).float()
        return node_norm, (chance[dst] / both).float()

    def of_graph(self) -> Norms:
        """Returns the norms of all nodes, and of all edges by their ids."""
        graph = self._graph
        degrees = graph.indptr.torch().diff().long()
        dst = torch.repeat_interleave(torch.arange(len(degrees)), degrees)
        src, ids = graph.indices.torch().long(), graph.edge_ids
        node_norm, edge_norm = self.of_batch(torch.arange(graph.num_nodes), src, dst, dst)
        if ids is None:
            return node_norm, edge_norm
        return node_norm, torch.empty_like(edge_norm).index_copy_(0, ids.torch().long(), edge_norm)

    def _missed(self, q: torch.Tensor) -> torch.Tensor:
        """Returns the chance that no draw hits what has the share ``q``."""
        return torch.exp(self._budget * torch.log1p(-q.clamp(max=1)))


class CountedNorms:
    """The norms of nodes and edges of the batches of ``sampler``, counted in batches of no epoch.

    ``pygsampler.pyg.GraphSAINTRandomWalkSampler`` has the formulas.
    """

    def __init__(self, graph: Graph, sampler: SaintSubgraphs, coverage: int) -> None:
        batches, *counts, targets = count_subgraphs(graph, sampler, coverage)
        nodes, edges = (torch.from_numpy(count).float() for count in counts)
        edge_norm = (nodes[torch.from_numpy(targets)] / edges).clamp(max=1e4)
        edge_norm[edges == 0] = 0.1
        nodes[nodes == 0] = 0.1
        self._norms = batches / nodes / len(nodes), edge_norm

    def of_batch(
        self, nodes: torch.Tensor, src: torch.Tensor, dst: torch.Tensor, edges: torch.Tensor
    ) -> Norms:
        """Returns the norms of these nodes and edges."""
        node_norm, edge_norm = self._norms
        return node_norm[nodes], edge_norm[edges]

    def of_graph(self) -> Norms:
        """Returns the norms of all nodes, and of all edges by their ids."""
        return self._norms
