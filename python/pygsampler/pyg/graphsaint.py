"""GraphSAINT's samplers in the places of PyG's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch_geometric.data import Data

from pygsampler._adapters.saint_draws import EdgeDraws, NodeDraws, WalkDraws
from pygsampler._batch.torch_minibatch import as_torch
from pygsampler._engine.checks import integer
from pygsampler._engine.limits import MAX_EPOCH
from pygsampler.programs import program
from pygsampler.pyg.base_sampler import Sampler
from pygsampler.pyg.shadow import check_data
from pygsampler.pyg.subgraph_loader import SubgraphLoader, filter_data, source_order
from pygsampler.samplers.subgraphs import induced

__all__ = ["GraphSAINTEdgeSampler", "GraphSAINTNodeSampler", "GraphSAINTRandomWalkSampler"]

_MOST = (1 << 31) - 1
# No training comes to this epoch.
_EPOCH = MAX_EPOCH


class _SaintLoader(SubgraphLoader):
    """What all have: batches of the numbers of their steps, by a program, and norms.

    ``N``, ``E``, ``num_steps``, ``sample_coverage``, ``save_dir``, ``log``, ``node_norm`` and
    ``edge_norm`` are attributes as PyG's have them.
    """

    def __init__(
        self,
        data: Any,
        program: Any,
        batches: Callable[[Data, Sampler, Any], _SaintCollate],
        of: Any,
        num_steps: int,
        seed: int | None,
        given: tuple[int, Any, Any],
        kwargs: dict[str, Any],
    ) -> None:
        check_data(data)
        coverage, self.save_dir, self.log = given
        self.sample_coverage = integer(coverage, "sample_coverage", 0, _MOST)
        for name in ("node_norm", "edge_norm"):
            if name in data:
                raise ValueError(f"data: expected no attribute {name}, got one; rename it")
        self.num_steps = integer(num_steps, "num_steps", 0, _MOST)
        sampler = Sampler(data, program, device="cpu")
        sampler.set_seed(seed)
        self.data = data
        self.N, self.E = sampler.num_nodes, data.num_edges
        self._batches = batches(data, sampler, of)
        super().__init__(range(self.num_steps), sampler, self._batches, batch_size=1, **kwargs)

    @property
    def node_norm(self) -> torch.Tensor:
        """That of every node of ``data``; AttributeError where batches have none."""
        return self._known_norms()[0]

    @property
    def edge_norm(self) -> torch.Tensor:
        """That of every edge of ``data``; AttributeError where batches have none."""
        return self._known_norms()[1]

    def _known_norms(self) -> tuple[torch.Tensor, torch.Tensor]:
        norms = self._batches.norms()
        if norms is None:
            raise AttributeError(
                f"{type(self).__name__}: expected sample_coverage above 0 for node_norm and "
                f"edge_norm, got {self.sample_coverage}"
            )
        return norms


class _CountedNormsLoader(_SaintLoader):
    """Subgraphs of vertices that something else draws, with norms that are counted."""

    def __init__(
        self,
        data: Any,
        draws: NodeDraws,
        num_steps: int,
        seed: int | None,
        given: tuple[int, Any, Any],
        kwargs: dict[str, Any],
    ) -> None:
        of = draws, integer(given[0], "sample_coverage", 0, _MOST)
        super().__init__(
            data, induced(seed=seed), _CountedNorms, of, num_steps, seed, given, kwargs
        )


class GraphSAINTNodeSampler(_SaintLoader):
    """GraphSAINT's node sampler in the place of ``torch_geometric.loader.GraphSAINTNodeSampler``.

    It does not need torch-sparse. A batch is a ``Data`` of the distinct nodes among ``batch_size``
    draws, with replacement, by out-degree, and of all edges among them.

    Parameters
    ----------
    data : Data
        Homogeneous, with ``edge_index`` or ``adj_t``, and without ``node_norm`` and ``edge_norm``.
    batch_size : int
        Draws of a batch.
    num_steps : int
        Batches of an epoch.
    sample_coverage, save_dir, log
        Accepted for compatibility: the norms are computed, not estimated by sampling beforehand.
    seed : int, optional
        64-bit seed of the random numbers, which are those of ``NeighborLoader`` of this module in
        all respects. Default: torch's.
    **kwargs
        Those of torch's ``DataLoader``.

    Notes
    -----
    With q(v) = out-degree / edges, n draws and N nodes, v is in a batch by the chance p(v) =
    1 - (1 - q(v))^n, and u and v both are by p(u, v) = p(u) + p(v) - 1 + (1 - q(u) - q(v))^n, p(u)
    for a loop. ``node_norm`` is 1 / (N p(v)), by which a sum over the nodes of a batch is, in the
    mean, the mean over all that can be drawn. ``edge_norm`` of u to v is p(v) / p(u, v), by which a
    sum over the in-edges of a node that is there is, in the mean, that over all of them, as in the
    paper; PyG has p(u) above. Both are float32. Batches have ``n_id`` and ``e_id``, ids in
    ``data``, too.

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
        num_steps: int = 1,
        sample_coverage: int = 0,
        save_dir: str | None = None,
        log: bool = True,
        *,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        budget = integer(batch_size, "batch_size", 1, _MOST)
        program = _by_out_degree(budget=budget, seed=seed)
        given = sample_coverage, save_dir, log
        super().__init__(data, program, _ExactNorms, budget, num_steps, seed, given, kwargs)


class GraphSAINTRandomWalkSampler(_CountedNormsLoader):
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
    Of S batches, C(v) of which have v and C(u, v) its edge from u, ``node_norm`` is S / (N C(v)),
    and ``edge_norm`` is C(v) / C(u, v), at most 1e4: with it a sum over the in-edges of v is, in
    the mean, that over all of them, as in the paper; PyG has C(u) above. Where a count is 0,
    ``edge_norm`` is 0.1, and C(v) counts as 0.1.

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
        walks = integer(batch_size, "batch_size", 1, _MOST)
        self.walk_length = integer(walk_length, "walk_length", 1, _MOST)
        draws = WalkDraws(walks, self.walk_length)
        super().__init__(data, draws, num_steps, seed, (sample_coverage, save_dir, log), kwargs)


class GraphSAINTEdgeSampler(_CountedNormsLoader):
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
        draws = EdgeDraws(integer(batch_size, "batch_size", 1, _MOST))
        super().__init__(data, draws, num_steps, seed, (sample_coverage, save_dir, log), kwargs)


@program
def _by_out_degree(A: Any, seeds: Any, *, budget: int) -> Any:
    return A.induce(A.count(axis=1).draw(budget, replace=True).unique())


class _SaintCollate:
    """Makes a batch of the number of its step; workers get it without the loader."""

    def __init__(self, data: Data, sampler: Sampler) -> None:
        self._data, self._sampler = data, sampler

    def __call__(self, steps: Any) -> Data:
        numbers = torch.as_tensor(steps, dtype=torch.int64, device="cpu")
        nodes, row, col, edges = self._made(*self._sampler._identity.number(numbers))
        order = source_order(row, col, len(nodes))
        row, col, edges = row[order], col[order], edges[order]
        batch = self._data.__class__()
        batch.num_nodes = len(nodes)
        batch.edge_index = torch.stack([row, col])
        batch.n_id, batch.e_id = nodes, edges
        filter_data(batch, self._data, nodes, edges, ())
        self._normed(batch)
        return batch

    def _made(self, epoch: int, number: int) -> tuple[torch.Tensor, ...]:
        """Vertices, and the edges among them: local sources, targets, and ids."""
        made: Any = as_torch(self._sampler._result(self._given(epoch, number), (epoch, number)))
        return made.nodes.long(), *made.edge_index, made.edge_ids.long()

    def _given(self, epoch: int, number: int) -> torch.Tensor:
        """What the program is called with."""
        return torch.empty(0, dtype=torch.int64)

    def _normed(self, batch: Any) -> None:
        raise NotImplementedError

    def norms(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Those of all nodes and edges; None without."""
        raise NotImplementedError


class _ExactNorms(_SaintCollate):
    """Nodes by out-degree, with norms by the chances to be there."""

    def __init__(self, data: Data, sampler: Sampler, budget: int) -> None:
        super().__init__(data, sampler)
        self._budget = budget
        sources = sampler.graph.indices.torch().long()
        self._chance = torch.bincount(sources, minlength=sampler.num_nodes).double()
        self._chance /= max(len(sources), 1)

    def _normed(self, batch: Any) -> None:
        batch.node_norm, batch.edge_norm = self._of(batch.n_id, *batch.edge_index)

    def norms(self) -> tuple[torch.Tensor, torch.Tensor]:
        graph = self._sampler.graph
        degrees = graph.indptr.torch().diff().long()
        col = torch.repeat_interleave(torch.arange(len(degrees)), degrees)
        row, ids = graph.indices.torch().long(), graph.edge_ids
        node_norm, by_place = self._of(torch.arange(graph.num_nodes), row, col)
        if ids is None:
            return node_norm, by_place
        return node_norm, torch.empty_like(by_place).index_copy_(0, ids.torch().long(), by_place)

    def _of(
        self, nodes: torch.Tensor, row: torch.Tensor, col: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The norms of nodes, and of edges between those at the places ``row`` and ``col``."""
        q = self._chance[nodes]
        there = 1 - self._missed(q)
        joint = there[row] + there[col] - 1 + self._missed(q[row] + q[col])
        joint = torch.where(row == col, there[row], joint)
        node_norm = (1 / (self._sampler.num_nodes * there)).float()
        return node_norm, (there[col] / joint).float()

    def _missed(self, q: torch.Tensor) -> torch.Tensor:
        """The chance that no draw hits what has the share ``q``."""
        return torch.exp(self._budget * torch.log1p(-q.clamp(max=1)))


class _CountedNorms(_SaintCollate):
    """Nodes that something else draws, with norms that batches of no epoch are counted for."""

    def __init__(self, data: Data, sampler: Sampler, of: tuple[NodeDraws, int]) -> None:
        super().__init__(data, sampler)
        self._draws, coverage = of
        self._norms = self._counted(coverage) if coverage else None

    def _given(self, epoch: int, number: int) -> torch.Tensor:
        return self._draws(self._sampler.graph, self._sampler.seed, epoch, number)

    def _normed(self, batch: Any) -> None:
        if self._norms is not None:
            node, edge = self._norms
            batch.node_norm, batch.edge_norm = node[batch.n_id], edge[batch.e_id]

    def norms(self) -> tuple[torch.Tensor, torch.Tensor] | None:
        return self._norms

    def _counted(self, coverage: int) -> tuple[torch.Tensor, torch.Tensor]:
        count, edge_count = torch.zeros(self._sampler.num_nodes), torch.zeros(self._data.num_edges)
        target = torch.zeros(self._data.num_edges, dtype=torch.int64)
        batches = met = 0
        while met < coverage * len(count):
            nodes, _, col, edges = self._made(_EPOCH, batches)
            count[nodes] += 1
            edge_count[edges] += 1
            target[edges] = nodes[col]
            met += len(nodes)
            batches += 1
        edge_norm = (count[target] / edge_count).clamp(max=1e4)
        edge_norm[edge_count == 0] = 0.1
        count[count == 0] = 0.1
        return batches / count / len(count), edge_norm
