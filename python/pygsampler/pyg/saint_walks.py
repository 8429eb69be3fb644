"""``GraphSAINTEdgeSampler`` and ``GraphSAINTRandomWalkSampler`` in the places of PyG's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch.utils.data import get_worker_info
from torch_geometric.data import Data

from pygsampler import random_walk
from pygsampler._core.checks import integer
from pygsampler.converted import as_torch
from pygsampler.graph import Graph
from pygsampler.programs import program
from pygsampler.pyg.sampler import Sampler
from pygsampler.pyg.shadow import check_data
from pygsampler.pyg.whole import SubgraphLoader, by_source, put

__all__ = ["GraphSAINTEdgeSampler", "GraphSAINTRandomWalkSampler"]

_MOST = (1 << 31) - 1
# No training comes to this epoch.
_EPOCH = (1 << 32) - 1


class _Loader(SubgraphLoader):
    """What both have: subgraphs of vertices that something else draws, and their norms."""

    def __init__(
        self,
        data: Any,
        draws: _Draws,
        num_steps: int,
        sample_coverage: int,
        seed: int | None,
        kwargs: dict[str, Any],
    ) -> None:
        self.num_steps = integer(num_steps, "num_steps", 0, _MOST)
        self.sample_coverage = integer(sample_coverage, "sample_coverage", 0, _MOST)
        sampler = Sampler(data, _among(seed=seed), device="cpu")
        sampler.set_seed(seed)
        draws.graph = sampler.graph
        self.data = data
        made = _Made(data, sampler, draws, self.sample_coverage)
        super().__init__(range(self.num_steps), sampler, made, batch_size=1, **kwargs)


class GraphSAINTRandomWalkSampler(_Loader):
    """GraphSAINT's walks in the place of ``torch_geometric.loader.GraphSAINTRandomWalkSampler``.

    It does not need torch-sparse. A batch is a ``Data`` of the distinct nodes that walks along the
    edges meet, and of all edges among them. A walk that finds no edge stays where it is.

    Parameters
    ----------
    data : Data
        Homogeneous, with ``edge_index`` or ``adj_t``, and without ``node_norm`` and ``edge_norm``.
    batch_size : int
        Walks of a batch, from uniform nodes with replacement.
    walk_length : int
        Steps of a walk.
    num_steps : int
        Batches of an epoch.
    sample_coverage : int
        Above 0 batches have ``node_norm`` and ``edge_norm``, counted in batches of no epoch that
        have so many times the nodes of ``data``.
    save_dir, log
        Accepted for compatibility: norms are counted by each loader.
    seed : int, optional
        64-bit seed of the random numbers, which are those of ``NeighborLoader`` of this module in
        all respects. Default: torch's.
    **kwargs
        Those of torch's ``DataLoader``.

    Notes
    -----
    Of S batches of which C(v) have v and C(u, v) an edge, ``node_norm`` is S / (N C(v)), and
    ``edge_norm`` C(v) / C(u, v), at most 1e4, by which a sum over the in-edges of v is, in the mean,
    that over all of them, as in the paper; PyG has C(u) above. What was not met counts as 0.1.

    Raises
    ------
    TypeError, ValueError
        For arguments of a wrong type or value, naming the argument.
    NotImplementedError
        For HeteroData.
    """

    def __init__(
        self,
        data: Any,
        batch_size: int,
        walk_length: int,
        num_steps: int = 1,
        sample_coverage: int = 0,
        save_dir: str | None = None,
        log: bool = True,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        _check(data)
        walks = integer(batch_size, "batch_size", 1, _MOST)
        self.walk_length = integer(walk_length, "walk_length", 1, _MOST)
        draws = _Walks(walks, self.walk_length)
        super().__init__(data, draws, num_steps, sample_coverage, seed, kwargs)


class GraphSAINTEdgeSampler(_Loader):
    """GraphSAINT's edges in the place of ``torch_geometric.loader.GraphSAINTEdgeSampler``.

    It does not need torch-sparse. A batch is a ``Data`` of the distinct ends of ``batch_size``
    draws of edges, with replacement, u to v by 1 / out-degree(u) + 1 / in-degree(v), as in the
    paper and in DGL, where PyG has the sum of degrees; and of all edges among them.

    Parameters and the rest are those of ``GraphSAINTRandomWalkSampler``, but for ``walk_length``.
    """

    def __init__(
        self,
        data: Any,
        batch_size: int,
        num_steps: int = 1,
        sample_coverage: int = 0,
        save_dir: str | None = None,
        log: bool = True,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        _check(data)
        draws = _Edges(integer(batch_size, "batch_size", 1, _MOST))
        super().__init__(data, draws, num_steps, sample_coverage, seed, kwargs)


def _check(data: Any) -> None:
    check_data(data)
    for name in ("node_norm", "edge_norm"):
        if name in data:
            raise ValueError(f"data: expected no attribute {name}, got one; rename it")


@program
def _among(A: Any, seeds: Any) -> Any:
    return A.induce(seeds.unique())


@program
def _roots(A: Any, seeds: Any, *, count: int) -> Any:
    return {"drawn": A.roots(count)}


@program
def _by_chance(A: Any, seeds: Any, *, count: int) -> Any:
    # The sums of a vector that is made of the graph alone are kept with it, those of an array not.
    return {"drawn": (A.ndata["q"] * 1).draw(count, replace=True)}


class _Draws(ABC):
    """Draws vertices of a batch, which may be the same."""

    graph: Graph

    @abstractmethod
    def __call__(self, seed: int, epoch: int, number: int) -> torch.Tensor:
        """The vertices, int64."""


class _Walks(_Draws):
    def __init__(self, walks: int, length: int) -> None:
        self._walks, self._length = walks, length

    def __call__(self, seed: int, epoch: int, number: int) -> torch.Tensor:
        roots = _drawn(_roots(count=self._walks, seed=seed), self.graph, epoch, number)
        sampler = random_walk.RandomWalk(self._length, seed=seed)
        walks = _made(sampler, self.graph, roots, epoch, number)
        nodes = walks.nodes.flatten().long()
        return nodes[nodes >= 0]


class _Edges(_Draws):
    """Draws edges as the vertices of a graph that has none."""

    _ends: tuple[torch.Tensor, torch.Tensor] | None = None

    def __init__(self, count: int) -> None:
        self._count = count

    def __call__(self, seed: int, epoch: int, number: int) -> torch.Tensor:
        if self._ends is None:
            self._prepare()
        assert self._ends is not None
        drawn = _drawn(_by_chance(count=self._count, seed=seed), self._edges, epoch, number)
        return torch.cat([end[drawn] for end in self._ends])

    def _prepare(self) -> None:
        graph = self.graph
        sources, starts = graph.indices.torch().long(), graph.indptr.torch().long()
        degrees = starts.diff()
        targets = torch.arange(len(degrees)).repeat_interleave(degrees)
        q = 1 / degrees[targets].double()
        q += 1 / torch.bincount(sources, minlength=graph.num_nodes)[sources].double()
        nothing = torch.zeros(0, dtype=torch.int64)
        self._edges = Graph.from_coo(nothing, nothing, num_nodes=len(q), node_data={"q": q})
        self._ends = sources, targets


def _made(sampler: Any, graph: Graph, seeds: torch.Tensor, epoch: int, number: int) -> Any:
    threads = 0 if get_worker_info() is None else 1
    return as_torch(
        sampler.launch(
            graph, seeds, epoch=epoch, batch=number, threads=threads, into="torch"
        ).result()
    )


def _drawn(sampler: Any, graph: Graph, epoch: int, number: int) -> torch.Tensor:
    made = _made(sampler, graph, torch.zeros(0, dtype=torch.int64), epoch, number)
    drawn: torch.Tensor = made.extra["drawn"].long()
    return drawn


class _Made:
    """Makes a batch of the number of its step; workers get it without the loader."""

    def __init__(self, data: Data, sampler: Sampler, draws: _Draws, coverage: int) -> None:
        self._data, self._sampler, self._draws = data, sampler, draws
        self._norms = self._counted(coverage) if coverage else None

    def __call__(self, steps: Any) -> Data:
        numbers = torch.as_tensor(steps, dtype=torch.int64)
        nodes, row, col, edges = self._among(*self._sampler._identity.of(numbers))
        order = by_source(row, col, len(nodes))
        row, col, edges = row[order], col[order], edges[order]
        batch = self._data.__class__()
        batch.num_nodes = len(nodes)
        batch.edge_index = torch.stack([row, col])
        batch.n_id, batch.e_id = nodes, edges
        put(batch, self._data, nodes, edges, ())
        if self._norms is not None:
            node, edge = self._norms
            batch.node_norm, batch.edge_norm = node[nodes], edge[edges]
        return batch

    def _among(self, epoch: int, number: int) -> tuple[torch.Tensor, ...]:
        there = self._draws(self._sampler.seed, epoch, number)
        made: Any = self._sampler._batch(there, epoch, number)
        return made.nodes.long(), *made.edge_index, made.edge_ids.long()

    def _counted(self, coverage: int) -> tuple[torch.Tensor, torch.Tensor]:
        count, edge_count = torch.zeros(self._sampler.num_nodes), torch.zeros(self._data.num_edges)
        target = torch.zeros(self._data.num_edges, dtype=torch.int64)
        batches = met = 0
        while met < coverage * len(count):
            nodes, _, col, edges = self._among(_EPOCH, batches)
            count[nodes] += 1
            edge_count[edges] += 1
            target[edges] = nodes[col]
            met += len(nodes)
            batches += 1
        edge_norm = (count[target] / edge_count).clamp(max=1e4)
        edge_norm[edge_count == 0] = 0.1
        count[count == 0] = 0.1
        return batches / count / len(count), edge_norm
